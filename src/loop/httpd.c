/* httpd.c - the server and its connections. See httpd_priv.h for the
 * invariants. */
#include "loop/httpd_priv.h"
#include "loop/tls.h"

#define IN_PAUSE     ((size_t)16 * 1024) /* unparsed bytes that stop reading */
#define IN_MAX       (IN_PAUSE + MO_LOOP_READ_BUF)
#define QUEUE_HIGH   ((size_t)64 * 1024) /* queued bytes that stop parsing */
#define FINISH_MS    1000
#define LOOK_MS      20 /* whether another process has fewer connections */
#define BODY_TOTAL   10 /* times body_ms */
#define PARTS_RATE   ((uint64_t)8 * 1024) /* bytes a second, after that */
/* Default; the pages and clients of one machine need fewer. */
#define PER_PEER_MIN 64u

/* --- the timer of a connection ------------------------------------------- */

static unsigned limit_ms(const struct conn *c)
{
    const struct mo_httpd_limits *m = &c->h->o.limits;

    if (c->phase == CLOSING)
        return 0; /* mo_stream_finish() has its own deadline */
    if (mo_stream_queued(c->s))
        return m->send_ms;
    if (c->phase == IDLE)
        return m->idle_ms;
    if (c->phase == HEAD)
        return m->head_ms;
    if (c->phase == BODY && !c->body_paused)
        return m->body_ms;
    return 0;
}

void mo_httpd_conn_touch(struct conn *c)
{
    unsigned ms = limit_ms(c);

    c->since = mo_loop_now(c->h->loop);
    if (!ms)
        return;
    /* The running timer fires too late for the new limit. */
    if (!mo_timer_on(&c->timer) || c->timer.at > c->since + (ms + 1) * MO_MS)
        mo_timer_start(c->h->loop, &c->timer, ms);
}

static bool sending_stalls(struct conn *c)
{
    size_t queued = mo_stream_queued(c->s);
    bool stalls = queued && queued == c->queued_seen;

    c->queued_seen = queued;
    return stalls;
}

static void expire_wait(struct conn *c)
{
    if (mo_stream_queued(c->s)) {
        if (sending_stalls(c))
            mo_stream_close(c->s, NULL);
        else
            mo_httpd_conn_touch(c);
    } else if (c->phase == HEAD && mo_http1_begun(c->parser)) {
        mo_httpd_conn_refuse(c, 408, "head_timeout",
                             "the request head took too long");
    } else if (c->phase == BODY) {
        mo_httpd_conn_refuse(c, 408, "body_timeout",
                             "the request body took too long");
    } else {
        c->phase = CLOSING;
        mo_stream_finish(c->s, FINISH_MS);
    }
}

static void on_timer(struct mo_timer *t)
{
    struct conn *c = mo_container_of(t, struct conn, timer);
    uint64_t now = mo_loop_now(c->h->loop);
    unsigned ms = limit_ms(c);
    uint64_t due = c->since + ms * MO_MS;

    if (!ms)
        return;
    if (c->phase == BODY && now > c->body_since + ms * MO_MS * BODY_TOTAL)
        due = now;
    if (due <= now)
        expire_wait(c);
    else
        mo_timer_start(c->h->loop, t, (due - now + MO_MS - 1) / MO_MS);
}

/* --- one request: begin, body, end --------------------------------------- */

static void begin_request(struct conn *c)
{
    struct mo_httpd *h = c->h;

    h->stats.requests++;
    c->rq = (struct mo_req){.head = mo_http1_head(c->parser),
                            .number = ++h->loop->requests};
    c->rq.query = c->rq.head->target;
    c->rq.path = mo_span_cut(&c->rq.query, '?');
    c->requests++;
    c->begun = h->o.done ? mo_now_ns() : 0;
    c->phase = HANDLED;
    c->live = true;
    c->whole = c->rq.head->content_length <= 0 && !c->rq.head->chunked;
    /* After a refused upgrade the other process would go on to pass bytes of
     * its client, which are not looked at there. */
    c->keep = c->rq.head->keep_alive && !h->closing &&
              !(c->inner && c->rq.head->upgrade) &&
              c->requests < h->o.limits.requests;
    h->o.handler(h->o.ctx, &c->rq);
}

static void complete_body(struct conn *c, struct mo_span body)
{
    void (*done)(struct mo_req *, struct mo_span) = c->body_done;
    void (*part)(struct mo_req *, struct mo_span, bool) = c->body_part;

    c->whole = true;
    if (part) {
        c->body_part = NULL;
        c->phase = HANDLED;
        part(&c->rq, mo_span(NULL, 0), true);
    }
    if (!done)
        return;
    c->body_done = NULL;
    c->phase = HANDLED;
    done(&c->rq, body);
}

/* Bytes that came give the rest more time. */
static void pass_part(struct conn *c, struct mo_span piece)
{
    uint64_t now = mo_loop_now(c->h->loop);

    c->parts += piece.n;
    c->body_since += piece.n * MO_S / PARTS_RATE;
    if (c->body_since > now)
        c->body_since = now;
    if (c->parts > c->parts_max)
        mo_httpd_conn_refuse(c, 413, "body_too_big",
                             "the request body is too big");
    else
        c->body_part(&c->rq, piece, false);
}

static void body_piece(struct conn *c, struct mo_span piece)
{
    const struct mo_http_head *head = c->rq.head;

    mo_httpd_conn_touch(c);
    if (c->body_part) {
        pass_part(c, piece);
        return;
    }
    /* the whole body in one piece: no copy */
    if (c->body.len == 0 && head->content_length == (int64_t)piece.n)
        complete_body(c, piece);
    else if (mo_buf_span(&c->body, piece) == MO_ETOOBIG)
        mo_httpd_conn_refuse(c, 413, "body_too_big",
                             "the request body is too big");
    else if (mo_buf_err(&c->body))
        mo_httpd_conn_refuse(c, 503, "no_memory", "out of memory");
}

/* Detach the request from its handler, answered or not. */
static void detach_handler(struct conn *c)
{
    struct mo_httpd *h = c->h;
    void (*gone)(struct mo_req *) = c->rq.gone;

    c->live = false;
    c->rq.gone = NULL;
    if (gone)
        gone(&c->rq);
    if (h->o.done)
        h->o.done(h->o.ctx, &c->rq, c->status,
                  c->begun ? mo_now_ns() - c->begun : 0);
    c->status = 0;
    c->begun = 0;
    mo_free(c->rq.facts);
    c->rq.facts = NULL;
}

static void end_request(struct conn *c)
{
    detach_handler(c);
    mo_buf_fini(&c->headers);
    mo_buf_fini(&c->body);
    c->started = c->answered = c->streaming = c->chunked = false;
    c->cached = c->sized = c->own_policy = false;
    c->drain = NULL;
    c->body_part = NULL;
    c->body_paused = c->parts = 0;
    c->rq = (struct mo_req){.head = NULL};
    if (!c->s)
        return;
    if (!c->keep || (c->eof && !c->cur->n)) {
        c->phase = CLOSING;
        mo_stream_finish(c->s, FINISH_MS);
        return;
    }
    mo_http1_reset(c->parser);
    c->phase = IDLE;
    mo_httpd_conn_touch(c);
}

/* --- input --------------------------------------------------------------- */

static bool wants_input(const struct conn *c)
{
    if (!c->s || c->phase == CLOSING)
        return false;
    if (!c->live)
        return mo_stream_queued(c->s) < QUEUE_HIGH;
    return c->phase == BODY && !c->body_paused;
}

static const char *code_of(int status)
{
    static const struct {
        int status;
        const char *code;
    } codes[] = {
        {414, "target_too_long"}, {431, "head_too_big"},
        {501, "not_implemented"}, {503, "no_memory"},
        {505, "http_version"},
    };

    for (size_t i = 0; i < MO_COUNT(codes); i++) {
        if (codes[i].status == status)
            return codes[i].code;
    }
    return "bad_request";
}

static void bad_request(struct conn *c, const struct mo_err *e)
{
    int status = mo_http1_status(c->parser);

    mo_httpd_conn_refuse(c, status ? status : 400, code_of(status), e->msg);
}

/* Handle one parser event; false if there is nothing more to do now. */
static bool parse_step(struct conn *c, struct mo_span *in)
{
    struct mo_span body;
    struct mo_err e;

    if (c->live && c->phase == BODY && c->whole) {
        complete_body(c, mo_buf_view(&c->body)); /* it has none */
        return true;
    }
    /* After the last piece of a body the parser reports one more event. */
    if (!in->n && !(c->phase == BODY && (c->body.len || c->parts)))
        return false;
    if (c->phase == IDLE) {
        c->phase = HEAD;
        mo_httpd_conn_touch(c);
    }
    switch (mo_http1_next(c->parser, in, &body, &e)) {
    case MO_HTTP1_ERROR:
        bad_request(c, &e);
        return true;
    case MO_HTTP1_HEAD:
        begin_request(c);
        return true;
    case MO_HTTP1_BODY:
        body_piece(c, body);
        return true;
    case MO_HTTP1_DONE:
        complete_body(c, mo_buf_view(&c->body));
        return true;
    case MO_HTTP1_MORE:
        break;
    }
    return in->n > 0;
}

/* Parse and answer as far as possible (invariant 2). */
static void parse_input(struct conn *c, struct mo_span *in)
{
    c->working = true;
    c->cur = in;
    for (;;) {
        if (c->live && c->answered) {
            end_request(c);
            continue;
        }
        if (!wants_input(c) || !parse_step(c, in))
            break;
    }
    c->cur = NULL;
    c->working = false;
}

static void conn_free(struct conn *c);

static void regulate_reading(struct conn *c)
{
    if (!c->s)
        conn_free(c);
    else if (c->in.len > IN_PAUSE)
        mo_stream_pause(c->s);
    else
        mo_stream_resume(c->s);
}

static void work_conn(struct conn *c)
{
    struct mo_span in = mo_buf_view(&c->in);
    size_t had = in.n;

    parse_input(c, &in);
    if (in.n == 0)
        mo_buf_wipe(&c->in);
    else
        mo_buf_drop(&c->in, had - in.n);
    if (c->s && c->eof && c->phase == BODY && !c->body_paused)
        mo_stream_close(c->s, NULL); /* the rest will not come */
    regulate_reading(c);
}

void mo_httpd_conn_kick(struct conn *c)
{
    if (!c->working)
        mo_loop_defer(c->h->loop, &c->kick);
}

static void on_kick(struct mo_later *d)
{
    work_conn(mo_container_of(d, struct conn, kick));
}

static void read_input(struct conn *c, struct mo_span in)
{
    if (c->in.len) { /* older bytes first */
        if (mo_buf_span(&c->in, in) < 0)
            mo_stream_close(c->s, NULL);
        else
            work_conn(c);
        return;
    }
    parse_input(c, &in);
    if (c->s && in.n && c->phase != CLOSING && mo_buf_span(&c->in, in) < 0)
        mo_stream_close(c->s, NULL);
    regulate_reading(c);
}

/* The loop's buffer keeps no token: a head in it is overwritten. */
static void on_read(void *ctx, char *p, size_t n)
{
    struct conn *c = ctx;
    bool has_head = c->phase == IDLE || c->phase == HEAD;

    c->h->stats.bytes_in += n;
    read_input(c, mo_span(p, n));
    if (has_head)
        explicit_bzero(p, n < MO_HTTP_HEAD_MAX ? n : MO_HTTP_HEAD_MAX);
}

static void on_eof(void *ctx)
{
    struct conn *c = ctx;

    c->eof = true;
    if (!c->live && !c->in.len) {
        c->phase = CLOSING;
        mo_stream_finish(c->s, FINISH_MS);
    } else if (c->phase == BODY ? !c->body_paused : c->streaming) {
        mo_stream_close(c->s, NULL);
    } else if (c->live && c->rq.hangup) {
        c->rq.hangup(&c->rq);
    }
}

static void on_drain(void *ctx)
{
    struct conn *c = ctx;

    c->queued_seen = 0;
    mo_httpd_conn_touch(c);
    if (c->live && c->drain)
        c->drain(&c->rq);
    if (!c->live || c->answered)
        work_conn(c);
}

static void listeners_pause(struct mo_httpd *h, bool paused)
{
    if (paused && !h->paused)
        mo_log(h->loop->log, MO_DEBUG, "httpd",
               "%u connections are open: no more are accepted until one ends",
               h->stats.open);
    h->paused = paused;
    /* one that goes on may accept at once, and pause all of them again */
    for (size_t i = 0; i < h->nlisteners && h->paused == paused; i++)
        mo_listener_pause(h->listeners[i], paused);
}

static bool is_full(const struct mo_httpd *h)
{
    unsigned n =
        h->o.crowd.all ? mo_crowd_open(&h->o.crowd) : h->stats.open - h->ninner;

    return n >= h->o.limits.connections;
}

static void maybe_ended(struct mo_httpd *h)
{
    if (h->closing && h->stats.open == 0)
        mo_loop_defer(h->loop, &h->ended);
}

static void conn_free(struct conn *c)
{
    struct mo_httpd *h = c->h;
    bool inner = c->inner;

    if (c->live)
        detach_handler(c);
    mo_timer_stop(h->loop, &c->timer);
    mo_later_cancel(&c->kick);
    mo_list_del(&c->node);
    h->crowded -= c->crowded;
    mo_http1_free(c->parser);
    mo_buf_fini(&c->in);
    mo_buf_fini(&c->headers);
    mo_buf_fini(&c->body);
    mo_free(c);
    h->stats.open--;
    h->ninner -= inner;
    if (h->o.crowd.all && !inner)
        mo_crowd_leave(&h->o.crowd);
    if (h->waiting && !h->closing)
        mo_timer_start(h->loop, &h->look, 1); /* there may be room for it */
    else if (h->paused && !h->closing && !is_full(h))
        listeners_pause(h, false);
    maybe_ended(h);
}

static void on_close(void *ctx, const struct mo_err *why)
{
    (void)why;
    conn_free(ctx);
}

static const struct mo_stream_cb conn_cb = {on_read, on_eof, on_drain,
                                            on_close};

/* --- the server ---------------------------------------------------------- */

static struct conn *conn_new(struct mo_httpd *h, struct mo_stream *s)
{
    struct conn *c = mo_new(struct conn);

    if (c)
        c->parser = mo_http1_new(MO_HTTP1_REQUEST);
    if (!c || !c->parser) {
        mo_free(c);
        return NULL;
    }
    c->h = h;
    c->s = s;
    mo_timer_init(&c->timer, on_timer);
    mo_later_init(&c->kick, on_kick);
    mo_buf_init(&c->in, IN_MAX);
    mo_buf_init(&c->headers, HEADERS_MAX);
    mo_buf_init(&c->body, 0);
    mo_list_push(&h->conns, &c->node);
    h->stats.open++;
    h->stats.accepted++;
    return c;
}

static struct mo_stream *wrap_tls(struct mo_httpd *h, struct mo_stream *s)
{
    struct mo_stream *t;
    struct mo_err e;

    if (!h->o.tls)
        return s;
    if (mo_tls_wrap(h->o.tls, s, true, NULL, &t, &e) == 0)
        return t;
    mo_log_about(h->loop->log, MO_WARN, "httpd",
                 &(struct mo_log_facts){.from = mo_stream_peer(s), .err = &e},
                 "connection refused: no TLS");
    mo_stream_close(s, NULL);
    return NULL;
}

static bool may_come(const struct mo_httpd *h, struct mo_stream *s)
{
    if (!h->o.own_user || mo_stream_is_own_user(s))
        return true;
    mo_log_about(h->loop->log, MO_WARN, "httpd",
                 &(struct mo_log_facts){.from = mo_stream_peer(s)},
                 "connection refused: another user");
    mo_stream_close(s, NULL);
    return false;
}

/* NULL: there is no memory, and the stream is closed. */
static struct conn *serve_stream(struct mo_httpd *h, struct mo_stream *s)
{
    struct conn *c = s ? conn_new(h, s) : NULL;

    if (!c) {
        if (s)
            mo_stream_close(s, NULL);
        return NULL;
    }
    mo_log_about(h->loop->log, MO_DEBUG, "httpd",
                 &(struct mo_log_facts){.from = mo_stream_peer(s)},
                 "connection accepted");
    mo_stream_limit(s, h->o.limits.queue);
    mo_stream_attach(s, &conn_cb, c);
    c->phase = HEAD; /* a new connection must send a head in time */
    mo_httpd_conn_touch(c);
    return c;
}

static void count_conn(struct conn *c)
{
    struct mo_httpd *h = c->h;

    c->s->counted = mo_peers_join(h->peers, mo_stream_peer(c->s));
    if (c->s->counted && mo_peers_count(c->s->counted) > h->o.limits.per_peer)
        mo_httpd_conn_crowd(c);
    if (is_full(h))
        listeners_pause(h, true);
}

/* It has a place among the connections of all processes. */
static void admit(struct mo_httpd *h, struct mo_stream *plain)
{
    struct conn *c = serve_stream(h, wrap_tls(h, plain));

    if (!c) {
        if (h->o.crowd.all)
            mo_crowd_leave(&h->o.crowd);
        return;
    }
    count_conn(c);
    if (h->paused && h->o.crowd.all && !mo_timer_on(&h->look))
        mo_timer_start(h->loop, &h->look, LOOK_MS);
}

void mo_httpd_take(struct mo_httpd *h, struct mo_stream *s)
{
    struct conn *c;

    if (h->closing || is_full(h)) {
        mo_stream_close(s, NULL);
        return;
    }
    c = serve_stream(h, s);
    if (c)
        count_conn(c);
}

static void on_accept(void *ctx, struct mo_stream *plain)
{
    struct mo_httpd *h = ctx;

    if (!may_come(h, plain))
        return;
    if (!h->o.crowd.all ||
        mo_crowd_enter(&h->o.crowd, h->o.limits.connections)) {
        admit(h, plain);
        return;
    }
    h->waiting = plain;
    listeners_pause(h, true);
    mo_timer_start(h->loop, &h->look, LOOK_MS);
}

/* A connection of another process may have ended. */
static void on_look(struct mo_timer *t)
{
    struct mo_httpd *h = mo_container_of(t, struct mo_httpd, look);

    if (h->waiting && mo_crowd_enter(&h->o.crowd, h->o.limits.connections))
        admit(h, mo_take_ptr(&h->waiting));
    if (!h->waiting && h->paused && !is_full(h))
        listeners_pause(h, false);
    if (h->paused && !mo_timer_on(t))
        mo_timer_start(h->loop, t, LOOK_MS);
}

static void on_accept_inner(void *ctx, struct mo_stream *s)
{
    struct mo_httpd *h = ctx;
    struct conn *c = mo_stream_is_own_user(s) ? serve_stream(h, s) : NULL;

    if (!c) {
        if (!mo_stream_is_own_user(s))
            mo_stream_close(s, NULL);
        return;
    }
    c->inner = true;
    h->ninner++;
}

static void fill_limits(struct mo_httpd_limits *m)
{
#define FILL(x, usual) m->x = m->x ? m->x : (usual)
    FILL(connections, 4096);
    FILL(per_peer,
         m->connections / 4 < PER_PEER_MIN ? PER_PEER_MIN : m->connections / 4);
    FILL(head_ms, 10 * 1000);
    FILL(body_ms, 30 * 1000);
    FILL(idle_ms, 75 * 1000);
    FILL(send_ms, 30 * 1000);
    FILL(requests, 100 * 1000);
    FILL(body, (size_t)4 * 1024 * 1024);
    FILL(queue, MO_STREAM_QUEUE_MAX);
#undef FILL
}

static void close_all(struct mo_timer *t)
{
    struct mo_httpd *h = mo_container_of(t, struct mo_httpd, grace);

    mo_list_each_entry (c, &h->conns, struct conn, node) {
        if (c->s)
            mo_stream_close(c->s, NULL);
    }
}

static void on_ended(struct mo_later *d)
{
    struct mo_httpd *h = mo_container_of(d, struct mo_httpd, ended);
    struct mo_gone gone = h->gone;

    mo_timer_stop(h->loop, &h->grace);
    mo_buf_fini(&h->scratch);
    mo_peers_free(h->peers);
    mo_free(h);
    mo_gone_fire(gone);
}

struct mo_httpd *mo_httpd_new(struct mo_loop *l, const struct mo_httpd_opts *o,
                              struct mo_err *e)
{
    struct mo_httpd *h = mo_new(struct mo_httpd);

    if (h)
        h->peers = mo_peers_new(&o->crowd);
    if (!h || !h->peers) {
        mo_free(h);
        return mo_null(mo_fail(e, MO_ENOMEM, "http server"));
    }
    h->loop = l;
    h->o = *o;
    fill_limits(&h->o.limits);
    mo_list_init(&h->conns);
    MO_BUG_ON(o->headers.n > MO_HTTPD_HEADERS_MAX);
    mo_buf_init(&h->scratch, HEADERS_MAX + MO_HTTPD_HEADERS_MAX + 1024);
    mo_timer_init(&h->grace, close_all);
    mo_timer_init(&h->look, on_look);
    mo_later_init(&h->ended, on_ended);
    return h;
}

int mo_httpd_listen(struct mo_httpd *h, const struct mo_listen_opts *o,
                    struct mo_err *e)
{
    int rc;

    if (h->nlisteners == MO_COUNT(h->listeners))
        return mo_fail(e, MO_EBUSY, "more than %zu listen addresses",
                       MO_COUNT(h->listeners));
    rc = mo_listen(h->loop, o, on_accept, h, &h->listeners[h->nlisteners], e);
    if (rc == 0)
        h->nlisteners++;
    return rc;
}

int mo_httpd_listen_inner(struct mo_httpd *h, const struct mo_listen_opts *o,
                          struct mo_err *e)
{
    MO_BUG_ON(h->inner);
    return mo_listen(h->loop, o, on_accept_inner, h, &h->inner, e);
}

unsigned mo_httpd_port(const struct mo_httpd *h)
{
    return h->nlisteners ? mo_listener_port(h->listeners[0]) : 0;
}

void mo_httpd_tls(struct mo_httpd *h, struct mo_tls_ctx *tls)
{
    h->o.tls = tls;
}

void mo_httpd_limit(struct mo_httpd *h, const struct mo_httpd_limits *m)
{
    h->o.limits = *m;
    fill_limits(&h->o.limits);
    if (!h->closing)
        listeners_pause(h, h->waiting || is_full(h));
    if (h->paused && h->o.crowd.all && !mo_timer_on(&h->look))
        mo_timer_start(h->loop, &h->look, LOOK_MS);
}

bool mo_httpd_is_who(const char *who, const char *name)
{
    size_t n = who ? strlen(who) : 0;

    if (n > 0 && who[n - 1] == ':')
        return strncmp(name, who, n) == 0;
    return !who || strcmp(name, who) == 0;
}

static bool is_from(const struct mo_req *rq, const char *who, const char *door,
                    const char *grant)
{
    return mo_httpd_is_who(who, rq->who) &&
           (!door || (rq->door && strcmp(rq->door, door) == 0)) &&
           (!grant || strcmp(rq->grant, grant) == 0);
}

void mo_httpd_abort(struct mo_httpd *h, const char *who, const char *door,
                    const char *grant)
{
    mo_list_each_entry (c, &h->conns, struct conn, node) {
        if (!c->live || c->answered || (!c->rq.gone && c->phase != BODY) ||
            !is_from(&c->rq, who, door, grant))
            continue;
        if (c->phase == BODY)
            c->phase = CLOSING; /* not even what has been received of it */
        mo_req_abort(&c->rq);
    }
}

void mo_httpd_close(struct mo_httpd *h, uint64_t grace_ms,
                    void (*gone)(void *ctx), void *ctx)
{
    MO_BUG_ON(h->closing);
    h->closing = true;
    h->gone = (struct mo_gone){gone, ctx};
    for (size_t i = 0; i < h->nlisteners; i++)
        mo_listener_close(h->listeners[i]);
    h->nlisteners = 0;
    if (h->inner)
        mo_listener_close(mo_take_ptr(&h->inner));
    mo_timer_stop(h->loop, &h->look);
    if (h->waiting)
        mo_stream_close(mo_take_ptr(&h->waiting), NULL);
    mo_list_each_entry (c, &h->conns, struct conn, node) {
        c->keep = false;
        if (c->s && !c->live && !mo_http1_begun(c->parser)) {
            c->phase = CLOSING;
            mo_stream_finish(c->s, FINISH_MS);
        }
    }
    mo_timer_start(h->loop, &h->grace, grace_ms);
    maybe_ended(h);
}

struct mo_httpd_stats mo_httpd_stats(const struct mo_httpd *h)
{
    return h->stats;
}
