/* conn_kit.c - the scripted server and the fixture of conn_kit.h. */
#include "conn_kit.h"

#include <sys/socket.h>
#include <unistd.h>

/* --- the server ---------------------------------------------------------- */

void peer_say(struct peer *p, struct mo_span text)
{
    struct mo_buf b;
    ptrdiff_t at = mo_span_search(text, MO_SPAN("$id"));

    if (!p->s)
        return;
    mo_buf_init(&b, 8 << 20);
    for (; at >= 0; at = mo_span_search(text, MO_SPAN("$id"))) {
        mo_buf_span(&b, mo_span_head(text, (size_t)at));
        mo_buf_puts(&b, p->id);
        text = mo_span_skip(text, (size_t)at + 3);
    }
    mo_buf_span(&b, text);
    mo_buf_putc(&b, '\n');
    if (!mo_buf_err(&b))
        (void)mo_stream_write(p->s, mo_buf_view(&b));
    mo_buf_fini(&b);
}

void peer_line(struct peer *p, struct mo_span line)
{
    struct mo_rpc m;

    mo_buf_span(&p->log, line);
    mo_buf_putc(&p->log, '\n');
    if (mo_rpc_parse(line, &m, NULL) < 0 || !m.method.p)
        return;
    if (m.id.p)
        (void)snprintf(p->id, sizeof(p->id), "%.*s", (int)m.id.n, m.id.p);
    for (const struct rule *r = p->rules; r && r->method; r++) {
        if (!mo_json_str_eq(m.method, mo_span_cstr(r->method)))
            continue;
        if (r->lines && strcmp(r->lines, "CLOSE") == 0)
            mo_stream_close(p->s, NULL);
        else if (r->lines)
            peer_say(p, mo_span_cstr(r->lines));
        return;
    }
}

static void peer_read(void *ctx, char *bytes, size_t n)
{
    struct peer *p = ctx;
    struct mo_span in = mo_span(bytes, n), line;

    while (in.n && p->s && mo_frame_next(&p->f, &in, &line) == 1)
        peer_line(p, line);
}

void peer_closed(void *ctx, const struct mo_err *why)
{
    struct peer *p = ctx;

    (void)why;
    p->s = NULL;
}

const struct mo_stream_cb peer_cb = {
    .on_read = peer_read,
    .on_close = peer_closed,
};

bool peer_saw(const struct peer *p, const char *text)
{
    return mo_span_search(mo_buf_view(&p->log), mo_span_cstr(text)) >= 0;
}

/* --- the client's owner -------------------------------------------------- */

int fix_dial(void *ctx, struct mo_conn *c, struct mo_err *e)
{
    struct fix *f = ctx;
    struct peer *p = &f->peers[f->dials];
    struct mo_stream *ours = NULL, *theirs = NULL;
    struct mo_link *k = NULL;
    int v[2], rc;

    if (f->no_dial)
        return mo_fail(e, MO_EUNAVAIL, "no such server");
    assert_true(f->dials < DIALS_MAX);
    p->rules = f->rules[f->dials++];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, v), 0);
    rc = mo_stream_from_fds(f->l, v[0], v[0], &ours, e);
    if (rc < 0) {
        (void)close(v[1]);
        return rc;
    }
    rc = mo_stream_from_fds(f->l, v[1], v[1], &theirs, e);
    if (rc < 0) {
        mo_stream_close(ours, NULL);
        return rc;
    }
    p->s = theirs;
    mo_frame_init(&p->f, 8 << 20);
    mo_buf_init(&p->log, 64 << 20);
    mo_stream_attach(theirs, &peer_cb, p);
    rc = mo_link_lines(f->l, ours, 0, &k, e);
    if (rc == 0)
        mo_conn_dialed(c, k, NULL);
    return rc;
}

static void fix_opened(void *ctx, struct mo_conn *c)
{
    struct fix *f = ctx;

    assert_ptr_equal(c, f->c);
    assert_int_equal(f->closed, 0);
    f->opened++;
}

static void fix_ask(void *ctx, struct mo_conn *c, struct mo_ask *a)
{
    struct fix *f = ctx;

    (void)c;
    if (f->on_ask) {
        f->on_ask(f, a);
        return;
    }
    assert_true(f->nasks < MO_COUNT(f->asks));
    f->asks[f->nasks++] = a;
}

static void fix_ask_gone(void *ctx, struct mo_ask *a)
{
    (void)a;
    ((struct fix *)ctx)->gone++;
}

static void fix_notify(void *ctx, struct mo_conn *c, const struct mo_rpc *m,
                       uint64_t stream_of)
{
    (void)c;
    (void)m;
    (void)stream_of;
    ((struct fix *)ctx)->notified++;
}

static void fix_noise(void *ctx, struct mo_span line)
{
    (void)line;
    ((struct fix *)ctx)->noise++;
}

static void fix_closed(void *ctx, const struct mo_err *why)
{
    struct fix *f = ctx;

    f->closed++;
    f->c = NULL;
    if (why)
        f->why = *why;
}

const struct mo_conn_cb fix_cb = {
    .on_open = fix_opened,
    .on_ask = fix_ask,
    .on_ask_gone = fix_ask_gone,
    .on_notify = fix_notify,
    .on_noise = fix_noise,
    .on_close = fix_closed,
};

void fix_done(void *ctx, const struct mo_reply *r)
{
    struct fix *f = ctx;
    struct mo_json v = r->result.p ? r->result : r->error;

    assert_int_equal(f->closed, 0); /* done comes before on_close */
    f->dones++;
    mo_err_clear(&f->err);
    if (r->err)
        f->err = *r->err;
    f->code = r->code;
    mo_buf_reset(&f->result);
    mo_buf_span(&f->result, mo_json_text(v));
}

void fix_progress(void *ctx, struct mo_json params)
{
    (void)params;
    ((struct fix *)ctx)->progressed++;
}

/* --- driving ------------------------------------------------------------- */

static bool is_settled(void *ctx)
{
    struct fix *f = ctx;

    return f->opened || f->closed;
}

bool is_closed(void *ctx)
{
    return ((struct fix *)ctx)->closed > 0;
}

bool is_done(void *ctx)
{
    struct fix *f = ctx;

    return f->dones > 0;
}

struct turns {
    struct fix *f;
    int left;
};

static bool few_turns(void *ctx)
{
    struct turns *t = ctx;

    return t->left-- <= 0;
}

void fix_settle(struct fix *f)
{
    struct turns t = {f, 20};

    while (t.left > 0)
        (void)mo_loop_until(f->l, few_turns, &t, 1);
}

void fix_init(struct fix *f, const struct rule *first)
{
    struct mo_err e;

    memset(f, 0, sizeof(*f));
    mo_buf_init(&f->result, 8 << 20);
    f->rules[0] = first;
    f->l = mo_loop_new(NULL, &e);
    assert_non_null(f->l);
}

int fix_try_open(struct fix *f, struct mo_conn_opts o)
{
    struct mo_err e;
    int rc;

    o.dial = fix_dial;
    o.cb = &fix_cb;
    o.ctx = f;
    rc = mo_conn_open(f->l, &o, &f->c, &e);
    if (rc == 0)
        assert_true(mo_loop_until(f->l, is_settled, f, LONG));
    return rc;
}

void fix_open(struct fix *f, struct mo_conn_opts o)
{
    assert_int_equal(fix_try_open(f, o), 0);
    if (!f->opened)
        fail_msg("not opened: %s", f->why.msg);
}

struct mo_call *fix_call(struct fix *f, const char *method, const char *params)
{
    struct mo_call_opts o = {.done = fix_done, .ctx = f};
    struct mo_err e;

    return mo_conn_request(f->c, method, mo_span_cstr(params), &o, &e);
}

void fix_fini(struct fix *f)
{
    if (f->c)
        mo_conn_close(f->c, NULL);
    if (f->c)
        assert_true(mo_loop_until(f->l, is_closed, f, LONG));
    for (int i = 0; i < f->dials; i++) {
        if (f->peers[i].s)
            mo_stream_close(f->peers[i].s, NULL);
    }
    mo_loop_run(f->l);
    for (int i = 0; i < f->dials; i++) {
        mo_frame_fini(&f->peers[i].f);
        mo_buf_fini(&f->peers[i].log);
    }
    mo_buf_fini(&f->result);
    mo_loop_free(f->l);
}
