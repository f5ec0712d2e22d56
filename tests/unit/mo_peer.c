/* mo_peer.c - the scripted server and the recording client of mo_peer.h. */
#include "mo_peer.h"

struct peer_conn {
    struct mo_list node;
    struct peer *p;
    struct mo_stream *s;
    struct mo_buf in, out;
    struct mo_later turn;
    unsigned served;
    bool raw;
};

static void peer_push(struct mo_later *d)
{
    struct peer_conn *c = mo_container_of(d, struct peer_conn, turn);
    size_t n = c->out.len;

    if (c->p->piece && n > c->p->piece)
        n = c->p->piece;
    if (n && mo_stream_write(c->s, mo_span(c->out.p, n)) < 0)
        return;
    mo_buf_drop(&c->out, n);
    if (c->out.len)
        mo_loop_defer(c->p->l, &c->turn);
    else if (c->p->then == END)
        mo_stream_finish(c->s, WAIT_MS);
    else if (c->p->then == BREAK)
        mo_stream_close(c->s, NULL);
}

/* Bytes of the first whole request in b, or 0. */
static size_t peer_request(struct mo_buf *b)
{
    struct mo_span all = mo_buf_view(b);
    ptrdiff_t end = mo_span_search(all, MO_SPAN("\r\n\r\n"));
    ptrdiff_t cl = mo_span_search(all, MO_SPAN("Content-Length: "));
    struct mo_span v = all;
    uint64_t n = 0;

    if (end < 0)
        return 0;
    if (cl >= 0 && cl < end) {
        v = mo_span_skip(all, (size_t)cl + 16);
        assert_int_equal(mo_span_u64(mo_span_cut(&v, '\r'), &n), 0);
    }
    n += (size_t)end + 4;
    return n <= all.n ? n : 0;
}

static void peer_read(void *ctx, char *p, size_t n)
{
    struct peer_conn *c = ctx;
    struct peer *peer = c->p;
    size_t used;

    if (c->raw) {
        (void)mo_stream_write(c->s, mo_span(p, n));
        return;
    }
    (void)mo_buf_put(&c->in, p, n);
    used = peer_request(&c->in);
    if (!used)
        return;
    peer->requests++;
    mo_buf_reset(&peer->last);
    (void)mo_buf_put(&peer->last, c->in.p, used);
    mo_buf_drop(&c->in, used);
    if (peer->good && c->served >= peer->good) {
        mo_stream_close(c->s, NULL);
        return;
    }
    c->served++;
    c->raw = peer->raw;
    (void)mo_buf_span(&c->out, peer->reply);
    mo_loop_defer(peer->l, &c->turn);
}

static void peer_eof(void *ctx)
{
    struct peer_conn *c = ctx;

    if (c->raw)
        (void)mo_stream_write(c->s, MO_SPAN("bye"));
    mo_stream_finish(c->s, WAIT_MS);
}

static void peer_gone(void *ctx, const struct mo_err *why)
{
    struct peer_conn *c = ctx;

    (void)why;
    mo_later_cancel(&c->turn);
    mo_list_del(&c->node);
    mo_buf_fini(&c->in);
    mo_buf_fini(&c->out);
    mo_free(c);
}

static const struct mo_stream_cb peer_cb = {peer_read, peer_eof, NULL,
                                            peer_gone};

static void peer_accept(void *ctx, struct mo_stream *s)
{
    struct peer *p = ctx;
    struct peer_conn *c;

    if (p->tls && mo_tls_wrap(p->tls, s, true, NULL, &s, NULL) < 0)
        return;
    c = mo_new(struct peer_conn);
    if (!c) {
        mo_stream_close(s, NULL);
        return;
    }
    c->p = p;
    c->s = s;
    p->accepted++;
    mo_buf_init(&c->in, GOT_MAX);
    mo_buf_init(&c->out, GOT_MAX);
    mo_later_init(&c->turn, peer_push);
    mo_list_push(&p->conns, &c->node);
    mo_stream_limit(s, GOT_MAX);
    mo_stream_attach(s, &peer_cb, c);
    if (p->greeting.n)
        (void)mo_stream_write(s, p->greeting);
}

void peer_open(struct peer *p, struct mo_loop *l, const char *addr)
{
    struct mo_listen_opts o = {.addr = addr};
    struct mo_err e;

    p->l = l;
    mo_list_init(&p->conns);
    mo_buf_init(&p->last, GOT_MAX);
    if (mo_listen(l, &o, peer_accept, p, &p->ls, &e) < 0)
        fail_msg("%s", e.msg);
    if (mo_listener_port(p->ls))
        (void)snprintf(p->addr, sizeof(p->addr), "127.0.0.1:%u",
                       mo_listener_port(p->ls));
    else
        (void)snprintf(p->addr, sizeof(p->addr), "%s", addr);
}

void peer_close(struct peer *p)
{
    mo_listener_close(p->ls);
    mo_list_each_safe (n, &p->conns)
        mo_stream_close(mo_container_of(n, struct peer_conn, node)->s, NULL);
    mo_buf_fini(&p->last);
}

/* --- the callbacks of a client ------------------------------------------- */

void seen_init(struct seen *me)
{
    *me = (struct seen){.heads = 0};
    mo_buf_init(&me->body, GOT_MAX);
}

static void seen_head(void *ctx, const struct mo_http_head *h)
{
    struct seen *me = ctx;
    struct mo_span t = mo_http_get(h, "content-type");

    assert_false(me->starting);
    assert_int_equal(me->heads, 0);
    assert_int_equal(me->dones, 0);
    me->heads++;
    me->status = h->status;
    (void)snprintf(me->type, sizeof(me->type), "%.*s", (int)t.n, t.p);
    if (me->at_head)
        me->at_head(me);
}

static void seen_data(void *ctx, struct mo_span data)
{
    struct seen *me = ctx;

    assert_false(me->starting);
    assert_int_equal(me->heads, 1);
    assert_int_equal(me->dones, 0);
    me->datas++;
    (void)mo_buf_span(&me->body, data);
    if (me->at_data)
        me->at_data(me);
}

static void seen_done(void *ctx, const struct mo_err *why)
{
    struct seen *me = ctx;

    assert_false(me->starting);
    me->dones++;
    if (why)
        me->err = *why;
}

const struct mo_http_cb seen_cb = {seen_head, seen_data, seen_done};

bool seen_all(void *ctx)
{
    return ((struct seen *)ctx)->dones > 0;
}

/* --- our own server, answering in each of its ways ----------------------- */

static void own_body(struct mo_req *rq, struct mo_span body)
{
    mo_req_reply(rq, 200, "text/plain", body);
}

static void own_up(struct mo_req *rq)
{
    struct mo_span early;
    struct mo_stream *s;
    struct end *me = rq->data;

    if (mo_req_upgrade(rq, "tcp", &s, &early, NULL) < 0)
        return;
    (void)mo_buf_span(&me->got, early);
    end_attach(me, s);
}

void own_handler(void *ctx, struct mo_req *rq)
{
    rq->data = ctx;
    if (mo_span_is(rq->path, "/echo")) {
        mo_req_body(rq, 0, own_body);
    } else if (mo_span_is(rq->path, "/stream")) {
        mo_req_start(rq, 200, "text/event-stream");
        for (int i = 0; i < 3; i++)
            (void)mo_req_write(rq, MO_SPAN("data: x\n\n"));
        mo_req_end(rq);
    } else if (mo_span_is(rq->path, "/up")) {
        own_up(rq);
    } else {
        mo_req_problem(rq, 404, "not_found", "no such page");
    }
}

bool flag_set(void *ctx)
{
    return *(bool *)ctx;
}

void set_flag(void *ctx)
{
    *(bool *)ctx = true;
}
