#include "store/sentinel.h"

#include <stdio.h>

#include "codec/http/url.h"
#include "loop/net.h"

#define REPLY_MAX ((size_t)16 * 1024)
#define TREE_MAX  ((size_t)64 * 1024)

struct mo_sentinel {
    const struct mo_rconf *conf;
    struct mo_rtarget at, master;
    struct mo_dial *dial;
    struct mo_stream *stream;
    struct mo_resp_in in;
    struct mo_timer deadline;
    unsigned skip; /* replies before that to the question */
    bool is_found;
    struct mo_err why;
    mo_sentinel_fn *done;
    void *ctx;
};

static void end(struct mo_sentinel *q)
{
    struct mo_sentinel was = *q;

    mo_timer_stop(q->conf->loop, &q->deadline);
    mo_resp_fini(&q->in);
    mo_free(q);
    was.done(was.ctx, was.is_found ? &was.master : NULL,
             was.is_found ? NULL : &was.why);
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct mo_sentinel *q = ctx;

    q->stream = NULL;
    if (why && !q->why.code)
        q->why = *why;
    if (!q->why.code)
        (void)mo_fail(&q->why, MO_EUNAVAIL,
                      "sentinel: it closed the connection");
    end(q);
}

/* --- the answer ---------------------------------------------------------- */

static int take_address(struct mo_sentinel *q, const struct mo_resp *r)
{
    struct mo_rtarget *m = &q->master;
    uint64_t port = 0;
    bool is_v6;

    if (r->kind == MO_RESP_ERROR)
        return mo_fail(&q->why, MO_EUNAVAIL, "sentinel: %.*s",
                       (int)(r->text.n < 120 ? r->text.n : 120), r->text.p);
    if (r->kind == MO_RESP_NIL)
        return mo_fail(&q->why, MO_EUNAVAIL,
                       "sentinel: it knows no master %.64s", q->conf->master);
    if (r->kind != MO_RESP_ARRAY || r->n != 2 || !r->v[0].text.n ||
        r->v[0].text.n >= sizeof(m->host) ||
        mo_span_u64(r->v[1].text, &port) < 0 || port == 0 || port > 65535)
        return mo_fail(&q->why, MO_EPROTO,
                       "sentinel: an answer that makes no sense");
    (void)snprintf(m->host, sizeof(m->host), "%.*s", (int)r->v[0].text.n,
                   r->v[0].text.p);
    is_v6 = strchr(m->host, ':') != NULL;
    (void)snprintf(m->addr, sizeof(m->addr), is_v6 ? "[%s]:%u" : "%s:%u",
                   m->host, (unsigned)port);
    q->is_found = true;
    return 0;
}

static void on_read(void *ctx, char *p, size_t n)
{
    struct mo_sentinel *q = ctx;
    const struct mo_resp *r = NULL;
    mo_autoarena struct mo_arena mem = {.cap = TREE_MAX};
    int rc = mo_resp_feed(&q->in, p, n);

    if (rc < 0)
        (void)mo_fail(&q->why, rc, "sentinel: a reply over the limit");
    while (rc >= 0) {
        rc = mo_resp_next(&q->in, &mem, &r, &q->why);
        if (rc == 0)
            return;
        if (rc == 1 && q->skip == 0)
            break;
        if (rc == 1)
            q->skip--;
        mo_arena_reset(&mem);
    }
    if (rc == 1)
        (void)take_address(q, r);
    mo_stream_close(q->stream, NULL);
}

/* --- the question -------------------------------------------------------- */

static void put(struct mo_buf *b, const char *const *words, size_t n)
{
    mo_resp_put_head(b, n);
    for (size_t i = 0; i < n; i++)
        mo_resp_put(b, mo_span_cstr(words[i]));
}

/* A sentinel without a password refuses AUTH; then that does not matter. */
static void put_question(struct mo_sentinel *q, struct mo_buf *b)
{
    const struct mo_rconf *f = q->conf;
    const char *const auth[] = {"AUTH", f->user, f->password};
    const char *const bare[] = {"AUTH", f->password};
    const char *const ask[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME",
                               f->master};

    if (f->password && f->user)
        put(b, auth, MO_COUNT(auth));
    else if (f->password)
        put(b, bare, MO_COUNT(bare));
    q->skip = f->password ? 1 : 0;
    put(b, ask, MO_COUNT(ask));
}

static void on_dialled(void *ctx, struct mo_stream *s, const struct mo_err *why)
{
    static const struct mo_stream_cb cb = {.on_read = on_read,
                                           .on_close = on_close};
    struct mo_sentinel *q = ctx;
    mo_autowipe struct mo_buf b = {.max = REPLY_MAX};

    q->dial = NULL;
    if (s && q->conf->tls &&
        mo_tls_wrap(q->conf->tls, s, false, q->at.host, &s, &q->why) < 0)
        s = NULL;
    if (why)
        q->why = *why;
    if (!s) {
        end(q);
        return;
    }
    q->stream = s;
    mo_stream_attach(s, &cb, q);
    put_question(q, &b);
    if (mo_buf_err(&b) || mo_stream_write(s, mo_buf_view(&b)) < 0) {
        (void)mo_fail(&q->why, MO_ENOMEM, "sentinel: out of memory");
        mo_stream_close(s, NULL);
    }
}

void mo_sentinel_cancel(struct mo_sentinel *q)
{
    if (!q->why.code)
        (void)mo_fail(&q->why, MO_ECANCELED, "sentinel: cancelled");
    if (q->stream)
        mo_stream_close(q->stream, NULL);
    else
        mo_dial_cancel(q->dial);
}

static void on_deadline(struct mo_timer *t)
{
    struct mo_sentinel *q = mo_container_of(t, struct mo_sentinel, deadline);

    (void)mo_fail(&q->why, MO_EUNAVAIL, "sentinel: no answer");
    mo_sentinel_cancel(q);
}

int mo_sentinel_ask(const struct mo_rconf *conf, const struct mo_rtarget *at,
                    mo_sentinel_fn *done, void *ctx, struct mo_sentinel **out,
                    struct mo_err *e)
{
    struct mo_sentinel *q = mo_new(struct mo_sentinel);
    int rc;

    if (!q)
        return mo_fail(e, MO_ENOMEM, "sentinel");
    q->conf = conf;
    q->at = *at;
    q->done = done;
    q->ctx = ctx;
    mo_resp_init(&q->in, REPLY_MAX);
    mo_timer_init(&q->deadline, on_deadline);
    rc = mo_dial(conf->loop, at->addr, MO_RCONN_DIAL_MS, on_dialled, q,
                 &q->dial, e);
    if (rc < 0) {
        mo_free(q);
        return rc;
    }
    mo_timer_start(conf->loop, &q->deadline, MO_RCONN_DIAL_MS);
    *out = q;
    return 0;
}
