/* Pieces must not matter; what is written must be read back. */
#include <stdlib.h>

#include "codec/http/sse.h"

static void expect(bool ok)
{
    if (!ok)
        abort();
}

#define MAX ((size_t)64) /* small, so that limits are reached often */

static void log_event(struct mo_buf *log, const struct mo_sse_event *ev)
{
    expect(ev->data.n <= MAX && ev->event.n > 0);
    mo_buf_span(log, ev->event);
    mo_buf_putc(log, '#');
    mo_buf_span(log, ev->id);
    mo_buf_putc(log, '[');
    mo_buf_span(log, ev->data);
    mo_buf_putc(log, ']');
}

/* A reader that skips goes on where one that fails has ended. */
static bool log_skip(void *ctx, struct mo_span data)
{
    return mo_buf_span(ctx, data) == 0;
}

static void run(struct mo_buf *log, struct mo_span in, size_t step, bool skips)
{
    struct mo_sse_event ev;
    enum mo_sse_result r = MO_SSE_MORE;
    struct mo_sse s;
    struct mo_err e;

    mo_sse_init(&s, MAX);
    if (skips)
        mo_sse_skip(&s, log_skip, log);
    mo_buf_init(log, 16 << 20);
    for (; in.n && r != MO_SSE_ERROR; in = mo_span_skip(in, step)) {
        struct mo_span piece = mo_span_head(in, step);

        for (;;) {
            r = mo_sse_next(&s, &piece, &ev, &e);
            if (r < MO_SSE_EVENT)
                break;
            expect(r == MO_SSE_EVENT || (skips && ev.data.n == 0));
            mo_buf_putc(log, r == MO_SSE_EVENT ? '=' : '~');
            log_event(log, &ev);
        }
        expect(r == MO_SSE_ERROR || piece.n == 0);
    }
    mo_buf_printf(log, "%d %lld ", (int)r, (long long)s.retry_ms);
    mo_buf_span(log, mo_buf_view(&s.last_id));
    mo_sse_fini(&s);
}

static void compare(struct mo_span in, bool skips)
{
    struct mo_buf a, b;

    run(&a, in, in.n, skips);
    for (size_t step = 1; step < 4; step++) {
        run(&b, in, step, skips);
        expect(mo_span_eq(mo_buf_view(&a), mo_buf_view(&b)));
        mo_buf_fini(&b);
    }
    mo_buf_fini(&a);
}

/* Line ends become LF. */
static void normal(struct mo_buf *b, struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\r') {
            mo_buf_putc(b, '\n');
            i += i + 1 < s.n && s.p[i + 1] == '\n';
        } else {
            mo_buf_putc(b, s.p[i]);
        }
    }
}

static void round_trip(struct mo_span in)
{
    struct mo_sse_event ev = {.data = in}, got;
    struct mo_buf text, want;
    struct mo_span rest;
    struct mo_sse s;
    struct mo_err e;
    size_t third = in.n / 3;

    mo_buf_init(&text, 16 << 20);
    mo_buf_init(&want, 16 << 20);
    mo_sse_init(&s, 16 << 20);
    if (third) {
        ev.event = mo_span_head(in, third);
        ev.id = mo_span_head(mo_span_skip(in, third), third);
        ev.data = mo_span_skip(in, 2 * third);
    }
    if (mo_sse_put(&text, &ev) == 0) {
        rest = mo_buf_view(&text);
        normal(&want, ev.data);
        expect(mo_sse_next(&s, &rest, &got, &e) == MO_SSE_EVENT);
        expect(rest.n == 0 && mo_span_eq(got.data, mo_buf_view(&want)));
        if (third)
            expect(mo_span_eq(got.event, ev.event) &&
                   mo_span_eq(got.id, ev.id));
    }
    mo_sse_fini(&s);
    mo_buf_fini(&text);
    mo_buf_fini(&want);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span in = mo_span((const char *)data, n);

    if (n == 0)
        return 0;
    compare(in, false);
    compare(in, true);
    round_trip(in);
    return 0;
}
