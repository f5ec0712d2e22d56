/* The same bytes, whole and in pieces, must give the same messages; what is
 * accepted must survive being written and read again. */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/http/http1.h"

static void expect(bool ok)
{
    if (!ok)
        abort();
}

struct player {
    struct mo_http1 *h;
    struct mo_buf log;
    bool over;
};

static void log_head(struct player *p, const struct mo_http_head *hd)
{
    expect(hd->nheaders <= MO_HTTP_HEADERS_MAX);
    expect(!(hd->chunked && hd->content_length >= 0));
    mo_buf_printf(&p->log, "H%d %d %d %lld %d%d%d%d ", (int)hd->method,
                  hd->status, hd->minor, (long long)hd->content_length,
                  hd->chunked, hd->keep_alive, hd->upgrade,
                  hd->expect_continue);
    mo_buf_span(&p->log, hd->method_text);
    mo_buf_span(&p->log, hd->target);
    mo_buf_span(&p->log, hd->reason);
    for (size_t i = 0; i < hd->nheaders; i++) {
        expect(mo_http_is_token(hd->headers[i].name));
        mo_buf_span(&p->log, hd->headers[i].name);
        mo_buf_putc(&p->log, '=');
        mo_buf_span(&p->log, hd->headers[i].value);
        mo_buf_putc(&p->log, '\n');
    }
}

/* Write the head anew and read it: nothing may change. */
static void round_trip(const struct mo_http_head *hd)
{
    struct mo_http1 *h = mo_http1_new(MO_HTTP1_REQUEST);
    struct mo_span in, body;
    const char *method;
    struct mo_buf b;
    struct mo_err e;

    mo_buf_init(&b, 1 << 16);
    method = mo_strndup(hd->method_text.p, hd->method_text.n);
    mo_http1_put_request(&b, method, hd->target);
    for (size_t i = 0; i < hd->nheaders; i++) {
        char *name = mo_strndup(hd->headers[i].name.p, hd->headers[i].name.n);

        mo_http1_put_header(&b, name, hd->headers[i].value);
        mo_free(name);
    }
    expect(mo_http1_put_end(&b) == 0);
    in = mo_buf_view(&b);
    if (hd->minor == 1 && in.n <= MO_HTTP_HEAD_MAX) {
        const struct mo_http_head *got;

        expect(mo_http1_next(h, &in, &body, &e) == MO_HTTP1_HEAD);
        got = mo_http1_head(h);
        expect(in.n == 0 && got->nheaders == hd->nheaders);
        expect(mo_span_eq(got->target, hd->target));
        expect(got->content_length == hd->content_length);
        expect(got->chunked == hd->chunked && got->upgrade == hd->upgrade);
        for (size_t i = 0; i < hd->nheaders; i++)
            expect(mo_span_eq(got->headers[i].value, hd->headers[i].value));
    }
    mo_free((char *)(uintptr_t)method);
    mo_buf_fini(&b);
    mo_http1_free(h);
}

static void play(struct player *p, struct mo_span in, bool first)
{
    struct mo_span body;
    struct mo_err e;

    while (!p->over) {
        size_t had = in.n;
        enum mo_http1_event ev = mo_http1_next(p->h, &in, &body, &e);

        expect(in.n <= had);
        if (ev == MO_HTTP1_MORE) {
            expect(in.n == 0);
            return;
        }
        if (ev == MO_HTTP1_ERROR) {
            mo_buf_printf(&p->log, "E%d", mo_http1_status(p->h));
            p->over = true;
        }
        if (ev == MO_HTTP1_HEAD) {
            log_head(p, mo_http1_head(p->h));
            if (first && mo_http1_head(p->h)->status == 0)
                round_trip(mo_http1_head(p->h));
        }
        if (ev == MO_HTTP1_BODY) {
            expect(body.n > 0);
            mo_buf_span(&p->log, body);
        }
        if (ev == MO_HTTP1_DONE) {
            mo_buf_puts(&p->log, "D\n");
            if (mo_http1_head(p->h)->status == 101)
                p->over = true; /* what follows is not HTTP */
            else
                mo_http1_reset(p->h);
        }
    }
}

/* step 0: whole. */
static void run(struct player *p, enum mo_http1_kind kind, struct mo_span in,
                size_t step)
{
    struct mo_err e;

    p->over = false;
    p->h = mo_http1_new(kind);
    mo_buf_init(&p->log, 16 << 20);
    if (step == 0)
        play(p, in, true);
    for (; step && in.n; in = mo_span_skip(in, step))
        play(p, mo_span_head(in, step), false);
    if (!p->over)
        mo_buf_printf(&p->log, "eof%d", (int)mo_http1_eof(p->h, &e));
    mo_http1_free(p->h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span in;
    struct player a, b;
    enum mo_http1_kind kind;
    size_t steps[2];

    if (n < 1)
        return 0;
    kind = data[0] & 1 ? MO_HTTP1_RESPONSE : MO_HTTP1_REQUEST;
    in = mo_span((const char *)data + 1, n - 1);
    steps[0] = 1;
    steps[1] = 2 + (data[0] >> 1);
    run(&a, kind, in, 0);
    for (size_t i = 0; i < 2; i++) {
        run(&b, kind, in, steps[i]);
        expect(mo_span_eq(mo_buf_view(&a.log), mo_buf_view(&b.log)));
        mo_buf_fini(&b.log);
    }
    mo_buf_fini(&a.log);
    return 0;
}
