/* eiod.c - see eiod.h.
 *
 * Invariants
 *  1. A session has one transport: websocket if g->ws, else polling. During
 *     an upgrade g->probe is a second websocket that carries no messages.
 *  2. g->out holds packets in the polling encoding; it is empty on websocket.
 *  3. close_engine() is the only way to CLOSED. It cuts every link from
 *     requests and websockets to the session, so that nothing can reach it
 *     when it is freed one turn later.
 *  4. A wsc (websocket connection) frees itself in its stream's on_close. */
#include "web/eiod.h"

#include <stdio.h>

#include "base/map.h"
#include "base/rand.h"
#include "codec/eio.h"
#include "codec/json.h"
#include "codec/ws.h"

#define SID_BYTES     20
#define WS_FINISH_MS  1000
#define BODY_ARENA    ((size_t)2 * 1024 * 1024)
#define QUERY_MAX     ((size_t)2048)
#define NOOP_EVERY_MS 100

struct wsc;

struct engine {
    struct mo_eng pub;
    struct mo_eiod *d;
    struct wsc *ws, *probe;
    struct mo_req *poll; /* a GET that waits for packets */
    struct mo_req *post; /* a POST whose body is arriving */
    struct mo_buf out;
    struct mo_timer beat;    /* next ping, or the pong's deadline */
    struct mo_timer upgrade; /* of a probe; every NOOP_EVERY_MS after it */
    uint64_t upgrade_by;     /* ns */
    struct mo_later later;
    const char *reason;
    bool awaiting_pong, probed, closed;
};

/* One websocket connection. g is NULL once nobody cares for it. */
struct wsc {
    struct mo_eiod *d;
    struct engine *g;
    struct mo_stream *s;
    struct mo_ws ws;
    bool ending;
};

struct mo_eiod {
    struct mo_loop *loop;
    struct mo_eiod_opts o;
    struct mo_map sessions;
    struct mo_eiod_stats stats;
    unsigned wscs, engines; /* memory still held */
    bool closing;
    struct mo_later ended;
    void (*gone)(void *ctx);
    void *gone_ctx;
};

static struct engine *engine_of(const struct mo_eng *g)
{
    return mo_container_of(g, struct engine, pub);
}

static void close_engine(struct engine *g, const char *reason);

static void maybe_ended(struct mo_eiod *d)
{
    if (d->closing && !d->wscs && !d->engines)
        mo_loop_defer(d->loop, &d->ended);
}

/* --- websocket connections ------------------------------------------------
 */

static int ws_send(struct wsc *w, enum mo_ws_op op, const struct mo_span *v,
                   size_t n)
{
    unsigned char head[10];
    struct mo_span all[4];
    size_t total = 0;

    MO_BUG_ON(n > MO_COUNT(all) - 1);
    for (size_t i = 0; i < n; i++) {
        all[i + 1] = v[i];
        total += v[i].n;
    }
    all[0] = mo_span((char *)head, mo_ws_server_head(head, op, total));
    return mo_stream_writev(w->s, all, n + 1);
}

/* Say goodbye with a close frame and let the stream go. */
static void ws_end(struct wsc *w, uint16_t code, const char *why)
{
    struct mo_buf b;

    if (w->ending)
        return;
    w->ending = true;
    mo_buf_init(&b, 256);
    (void)mo_ws_put_close(&b, MO_WS_SERVER, code, mo_span_cstr(why));
    (void)mo_stream_write(w->s, mo_buf_view(&b));
    mo_buf_fini(&b);
    mo_stream_finish(w->s, WS_FINISH_MS);
}

/* The session no longer wants this connection. */
static void ws_drop(struct wsc *w, uint16_t code, const char *why)
{
    if (!w)
        return;
    w->g = NULL;
    ws_end(w, code, why);
}

static void on_packet(struct engine *g, const struct mo_eio *p);
static void on_probe_packet(struct wsc *w, const struct mo_eio *p);

/* The peer broke a rule: tell it, and end the session it belonged to. */
static void ws_fail(struct wsc *w, uint16_t code, const char *why)
{
    struct engine *g = w->g;

    ws_end(w, code, why);
    if (!g)
        return;
    if (g->ws == w)
        close_engine(g, "parse error");
    else
        g->probe = NULL;
    w->g = NULL;
}

static void ws_text(struct wsc *w, struct mo_span text)
{
    struct mo_eio p;
    struct mo_err e;

    if (mo_eio_decode(text, &p, &e) < 0) {
        ws_fail(w, 1002, e.msg);
        return;
    }
    if (w->g->probe == w)
        on_probe_packet(w, &p);
    else
        on_packet(w->g, &p);
}

/* The session ends with the connection it speaks over. */
static void ws_lost(struct wsc *w, const char *why)
{
    struct engine *g = w->g;

    w->g = NULL;
    if (!g)
        return;
    if (g->probe == w) {
        g->probe = NULL;
        g->probed = false;
        mo_timer_stop(g->d->loop, &g->upgrade);
    } else {
        close_engine(g, why);
    }
}

static void ws_event(struct wsc *w, enum mo_ws_event ev, struct mo_span data,
                     const struct mo_err *e)
{
    switch (ev) {
    case MO_WS_TEXT:
        ws_text(w, data);
        break;
    case MO_WS_BINARY:
        ws_fail(w, 1003, "binary messages are not accepted");
        break;
    case MO_WS_PING:
        if (ws_send(w, MO_WS_OP_PONG, &data, 1) < 0)
            mo_stream_close(w->s, NULL);
        break;
    case MO_WS_CLOSE:
        ws_end(w, w->ws.close_code, "");
        ws_lost(w, "transport close");
        break;
    case MO_WS_ERROR:
        ws_fail(w, w->ws.close_code, e->msg);
        break;
    case MO_WS_PONG:
    case MO_WS_MORE:
        break;
    }
}

static void ws_read(void *ctx, char *p, size_t n)
{
    struct wsc *w = ctx;
    struct mo_ws_in in = {p, n};
    enum mo_ws_event ev = MO_WS_PONG;

    while (!w->ending && w->g && ev != MO_WS_MORE) {
        struct mo_span data = {NULL, 0};
        struct mo_err e;

        mo_err_clear(&e);
        ev = mo_ws_next(&w->ws, &in, &data, &e);
        ws_event(w, ev, data, &e);
    }
}

static void ws_eof(void *ctx)
{
    struct wsc *w = ctx;

    ws_lost(w, "transport close");
    mo_stream_close(w->s, NULL);
}

static void ws_closed(void *ctx, const struct mo_err *why)
{
    struct wsc *w = ctx;
    struct mo_eiod *d = w->d;

    ws_lost(w, why ? "transport error" : "transport close");
    mo_ws_fini(&w->ws);
    mo_free(w);
    d->wscs--;
    maybe_ended(d);
}

static const struct mo_stream_cb ws_cb = {ws_read, ws_eof, NULL, ws_closed};

/* Answer 101 and own the stream from here on; NULL when that failed (the
 * request has been answered then). *early: bytes that came with the head. */
static struct wsc *ws_accept(struct mo_eiod *d, struct mo_req *rq,
                             struct mo_span *early)
{
    struct mo_span key = mo_http_get(rq->head, "Sec-WebSocket-Key");
    char accept[MO_WS_ACCEPT_LEN + 1];
    struct wsc *w = mo_new(struct wsc);
    struct mo_err e;

    if (!w) {
        mo_req_problem(rq, 503, "no_memory", "out of memory");
        return NULL;
    }
    mo_ws_accept(key, accept);
    mo_req_header(rq, "Sec-WebSocket-Accept", mo_span_cstr(accept));
    if (mo_req_upgrade(rq, "websocket", &w->s, early, &e) < 0) {
        mo_free(w);
        mo_req_abort(rq);
        return NULL;
    }
    w->d = d;
    d->wscs++;
    mo_ws_init(&w->ws, MO_WS_SERVER, d->o.max_payload);
    mo_stream_limit(w->s, d->o.max_queue);
    mo_stream_attach(w->s, &ws_cb, w);
    return w;
}

/* --- sessions -------------------------------------------------------------
 */

/* Answer the waiting GET with what there is. */
static void flush_poll(struct engine *g)
{
    struct mo_req *rq = g->poll;

    if (!rq || !g->out.len)
        return;
    g->poll = NULL;
    rq->data = NULL;
    rq->hangup = NULL;
    mo_req_reply(rq, 200, "text/plain; charset=UTF-8", mo_buf_view(&g->out));
    mo_buf_fini(&g->out);
}

static int send_packet(struct engine *g, enum mo_eio_type type,
                       struct mo_span data)
{
    char digit = (char)('0' + type);
    struct mo_span v[2] = {{&digit, 1}, data};
    int rc;

    if (g->closed)
        return MO_ECLOSED;
    if (g->ws) {
        rc = ws_send(g->ws, MO_WS_OP_TEXT, v, 2);
    } else {
        rc = mo_eio_put_polling(&g->out, type, false, data);
        flush_poll(g);
    }
    if (rc == 0)
        return 0;
    close_engine(g, "client too slow");
    return MO_EBUSY;
}

int mo_eng_send(struct mo_eng *pub, struct mo_span text)
{
    struct engine *g = engine_of(pub);
    int rc = send_packet(g, MO_EIO_MESSAGE, text);

    if (rc == 0)
        g->d->stats.messages_out++;
    return rc;
}

static void on_beat(struct mo_timer *t)
{
    struct engine *g = mo_container_of(t, struct engine, beat);

    if (g->awaiting_pong) {
        close_engine(g, "ping timeout");
        return;
    }
    g->awaiting_pong = true;
    mo_timer_start(g->d->loop, t, g->d->o.ping_timeout_ms);
    (void)send_packet(g, MO_EIO_PING, mo_span(NULL, 0));
}

static void on_pong(struct engine *g)
{
    g->awaiting_pong = false;
    mo_timer_start(g->d->loop, &g->beat, g->d->o.ping_interval_ms);
}

static void on_packet(struct engine *g, const struct mo_eio *p)
{
    struct mo_eiod *d = g->d;

    if (g->closed)
        return;
    switch (p->type) {
    case MO_EIO_MESSAGE:
        if (p->binary) {
            close_engine(g, "binary message");
            return;
        }
        d->stats.messages_in++;
        d->o.on_message(d->o.ctx, &g->pub, p->data);
        return;
    case MO_EIO_PONG:
        on_pong(g);
        return;
    case MO_EIO_CLOSE:
        close_engine(g, "transport close");
        return;
    case MO_EIO_OPEN:
    case MO_EIO_PING: /* the server pings, in protocol 4 */
    case MO_EIO_UPGRADE:
    case MO_EIO_NOOP:
        break;
    }
    close_engine(g, "parse error");
}

static void on_upgrade_timer(struct mo_timer *t)
{
    struct engine *g = mo_container_of(t, struct engine, upgrade);
    struct wsc *w = g->probe;

    if (!g->probed || mo_loop_now(g->d->loop) > g->upgrade_by) {
        g->probe = NULL;
        ws_drop(w, 1008, "no upgrade in time");
        return;
    }
    /* The client waits for its GET to end before it steps over. */
    if (g->poll)
        (void)send_packet(g, MO_EIO_NOOP, mo_span(NULL, 0));
    mo_timer_start(g->d->loop, t, NOOP_EVERY_MS);
}

/* Step over: polling ends, what still waits goes out as frames. */
static void finish_upgrade(struct engine *g)
{
    struct wsc *w = g->probe;
    struct mo_span body;

    mo_timer_stop(g->d->loop, &g->upgrade);
    if (g->poll)
        (void)send_packet(g, MO_EIO_NOOP, mo_span(NULL, 0));
    g->probe = NULL;
    g->ws = w;
    g->d->stats.websockets++;
    body = mo_buf_view(&g->out);
    while (body.p && body.n && !g->closed) {
        struct mo_span packet = mo_span_cut(&body, '\x1e');

        if (ws_send(w, MO_WS_OP_TEXT, &packet, 1) < 0)
            close_engine(g, "client too slow");
    }
    mo_buf_fini(&g->out);
}

static void on_probe_packet(struct wsc *w, const struct mo_eio *p)
{
    struct mo_span pong = MO_SPAN("3probe");
    struct engine *g = w->g;

    if (p->type == MO_EIO_PING && mo_span_is(p->data, "probe") && !g->probed) {
        g->probed = true;
        if (ws_send(w, MO_WS_OP_TEXT, &pong, 1) < 0)
            mo_stream_close(w->s, NULL);
        mo_timer_start(g->d->loop, &g->upgrade, 0);
    } else if (p->type == MO_EIO_UPGRADE && g->probed) {
        finish_upgrade(g);
    } else {
        g->probe = NULL;
        g->probed = false;
        mo_timer_stop(g->d->loop, &g->upgrade);
        ws_drop(w, 1002, "unexpected packet");
    }
}

static void free_engine(struct mo_later *later)
{
    struct engine *g = mo_container_of(later, struct engine, later);
    struct mo_eiod *d = g->d;

    d->o.on_close(d->o.ctx, &g->pub, g->reason);
    mo_buf_fini(&g->out);
    mo_free((char *)(uintptr_t)g->pub.query.p);
    mo_free(g);
    d->engines--;
    maybe_ended(d);
}

static void close_engine(struct engine *g, const char *reason)
{
    struct mo_eiod *d = g->d;

    if (g->closed)
        return;
    if (g->poll) {
        mo_buf_reset(&g->out); /* it may have failed by being full */
        (void)mo_eio_put_polling(&g->out, MO_EIO_CLOSE, false,
                                 mo_span(NULL, 0));
        flush_poll(g);
    }
    g->closed = true;
    g->reason = reason;
    if (g->poll) /* no memory for even that */
        mo_req_abort(g->poll);
    if (g->post)
        g->post->data = NULL;
    if (g->ws)
        d->stats.websockets--;
    ws_drop(g->ws, 1000, "");
    ws_drop(g->probe, 1000, "");
    g->ws = g->probe = NULL;
    g->poll = g->post = NULL;
    mo_timer_stop(d->loop, &g->beat);
    mo_timer_stop(d->loop, &g->upgrade);
    (void)mo_map_del(&d->sessions, mo_span_cstr(g->pub.sid));
    d->stats.sessions--;
    mo_loop_defer(d->loop, &g->later);
}

void mo_eng_close(struct mo_eng *pub, const char *reason)
{
    close_engine(engine_of(pub), reason);
}

bool mo_eng_is_websocket(const struct mo_eng *pub)
{
    return engine_of(pub)->ws != NULL;
}

static struct engine *engine_new(struct mo_eiod *d, struct mo_req *rq)
{
    struct engine *g = mo_new(struct engine);
    char *query;

    if (!g)
        return NULL;
    query = mo_strndup(rq->query.p, rq->query.n);
    mo_random_token(g->pub.sid, SID_BYTES);
    if (!query ||
        mo_map_put(&d->sessions, mo_span_cstr(g->pub.sid), g, NULL) < 0) {
        mo_free(query);
        mo_free(g);
        return NULL;
    }
    g->d = d;
    g->pub.query = mo_span(query, rq->query.n);
    (void)snprintf(g->pub.peer, sizeof(g->pub.peer), "%s", mo_req_peer(rq));
    mo_buf_init(&g->out, d->o.max_queue);
    mo_timer_init(&g->beat, on_beat);
    mo_timer_init(&g->upgrade, on_upgrade_timer);
    mo_later_init(&g->later, free_engine);
    d->engines++;
    d->stats.sessions++;
    d->stats.opened++;
    return g;
}

/* The open packet, then the owner learns of the session. */
static void engine_open(struct engine *g)
{
    struct mo_eiod *d = g->d;
    struct mo_eio_open o = {
        .sid = mo_span_cstr(g->pub.sid),
        .can_upgrade = g->ws == NULL,
        .ping_interval_ms = d->o.ping_interval_ms,
        .ping_timeout_ms = d->o.ping_timeout_ms,
        .max_payload = d->o.max_payload,
    };
    struct mo_buf b;

    mo_buf_init(&b, 512);
    (void)mo_eio_put_open(&b, &o);
    mo_timer_start(d->loop, &g->beat, d->o.ping_interval_ms);
    (void)send_packet(g, MO_EIO_OPEN, mo_buf_view(&b));
    mo_buf_fini(&b);
    d->o.on_open(d->o.ctx, &g->pub);
}

/* --- requests -------------------------------------------------------------
 */

/* engine.io's own words and numbers: stock clients know them. */
enum refusal {
    UNKNOWN_TRANSPORT,
    UNKNOWN_SID,
    BAD_METHOD,
    BAD_REQUEST,
    FORBIDDEN,
    BAD_VERSION,
};

static void refuse(struct mo_eiod *d, struct mo_req *rq, enum refusal r)
{
    static const char *const words[] = {
        [UNKNOWN_TRANSPORT] = "Transport unknown",
        [UNKNOWN_SID] = "Session ID unknown",
        [BAD_METHOD] = "Bad handshake method",
        [BAD_REQUEST] = "Bad request",
        [FORBIDDEN] = "Forbidden",
        [BAD_VERSION] = "Unsupported protocol version",
    };
    char body[96];
    int n = snprintf(body, sizeof(body), "{\"code\":%d,\"message\":\"%s\"}",
                     (int)r, words[r]);

    d->stats.refused++;
    mo_req_reply(rq, 400, "application/json", mo_span(body, (size_t)n));
}

/* A raw parameter of the query: the ones read here are never encoded. */
static struct mo_span param(struct mo_span query, const char *name)
{
    while (query.p) {
        struct mo_span value = mo_span_cut(&query, '&');
        struct mo_span key = mo_span_cut(&value, '=');

        if (mo_span_is(key, name))
            return value;
    }
    return mo_span(NULL, 0);
}

static void poll_gone(struct mo_req *rq)
{
    struct engine *g = rq->data;

    if (!g)
        return;
    g->poll = NULL;
    close_engine(g, "transport close");
}

static void poll_hangup(struct mo_req *rq)
{
    mo_req_abort(rq);
}

static void on_get(struct engine *g, struct mo_req *rq)
{
    if (g->poll) { /* two at once: packets could overtake each other */
        refuse(g->d, rq, BAD_REQUEST);
        close_engine(g, "transport error");
        return;
    }
    g->poll = rq;
    rq->data = g;
    rq->gone = poll_gone;
    rq->hangup = poll_hangup;
    flush_poll(g);
}

static void post_gone(struct mo_req *rq)
{
    struct engine *g = rq->data;

    if (g)
        g->post = NULL;
}

static void on_post_body(struct mo_req *rq, struct mo_span body)
{
    struct engine *g = rq->data;
    struct mo_eio p = {.type = MO_EIO_NOOP};
    struct mo_arena a;
    struct mo_err e;
    unsigned n = 0;
    int rc = 1;

    mo_arena_init(&a, BODY_ARENA);
    while (g && !g->closed && rc > 0) {
        rc = mo_eio_next(&body, &n, &a, &p, &e);
        if (rc > 0)
            on_packet(g, &p);
    }
    mo_arena_fini(&a);
    g = rq->data; /* NULL when a packet closed the session */
    if (g && rc < 0) {
        refuse(g->d, rq, BAD_REQUEST);
        close_engine(g, "parse error");
    } else {
        mo_req_reply(rq, 200, "text/html", MO_SPAN("ok"));
    }
}

static void on_post(struct engine *g, struct mo_req *rq)
{
    if (g->post) {
        refuse(g->d, rq, BAD_REQUEST);
        close_engine(g, "transport error");
        return;
    }
    g->post = rq;
    rq->data = g;
    rq->gone = post_gone;
    mo_req_body(rq, g->d->o.max_payload, on_post_body);
}

static void on_polling(struct mo_eiod *d, struct mo_req *rq, struct mo_span sid)
{
    struct engine *g;

    if (!sid.p) {
        if (rq->head->method != MO_HTTP_GET) {
            refuse(d, rq, BAD_METHOD);
            return;
        }
        g = engine_new(d, rq);
        if (!g) {
            mo_req_problem(rq, 503, "busy", "too many sessions, try later");
            return;
        }
        g->poll = rq;
        rq->data = g;
        rq->gone = poll_gone;
        engine_open(g);
        return;
    }
    g = mo_map_get(&d->sessions, sid);
    if (!g)
        refuse(d, rq, UNKNOWN_SID);
    else if (g->ws)
        refuse(d, rq, BAD_REQUEST);
    else if (rq->head->method == MO_HTTP_GET)
        on_get(g, rq);
    else if (rq->head->method == MO_HTTP_POST)
        on_post(g, rq);
    else
        refuse(d, rq, BAD_REQUEST);
}

static bool is_ws_handshake(const struct mo_http_head *h)
{
    return h->method == MO_HTTP_GET && h->upgrade &&
           mo_http_has_token(h, "Upgrade", "websocket") &&
           mo_span_is(mo_http_get(h, "Sec-WebSocket-Version"), "13") &&
           mo_ws_key_ok(mo_http_get(h, "Sec-WebSocket-Key"));
}

static void on_websocket(struct mo_eiod *d, struct mo_req *rq,
                         struct mo_span sid)
{
    struct mo_span early = {NULL, 0};
    struct engine *g = NULL;
    struct wsc *w;

    if (sid.p) {
        g = mo_map_get(&d->sessions, sid);
        if (!g || g->ws || g->probe) {
            refuse(d, rq, g ? BAD_REQUEST : UNKNOWN_SID);
            return;
        }
    } else {
        g = engine_new(d, rq);
        if (!g) {
            mo_req_problem(rq, 503, "busy", "too many sessions, try later");
            return;
        }
    }
    w = ws_accept(d, rq, &early);
    if (!w) {
        if (!sid.p)
            close_engine(g, "transport error");
        return;
    }
    w->g = g;
    if (sid.p) {
        g->probe = w;
        g->probed = false;
        g->upgrade_by = mo_loop_now(d->loop) + d->o.upgrade_timeout_ms * MO_MS;
        mo_timer_start(d->loop, &g->upgrade, d->o.upgrade_timeout_ms);
    } else {
        g->ws = w;
        d->stats.websockets++;
        engine_open(g);
    }
    if (early.n)
        ws_read(w, (char *)(uintptr_t)early.p, early.n);
}

void mo_eiod_handle(struct mo_eiod *d, struct mo_req *rq)
{
    struct mo_span transport = param(rq->query, "transport");
    struct mo_span sid = param(rq->query, "sid");

    if (d->closing) {
        mo_req_problem(rq, 503, "closing", "the server is shutting down");
    } else if (!mo_span_is(param(rq->query, "EIO"), "4")) {
        refuse(d, rq, BAD_VERSION);
    } else if (rq->query.n > QUERY_MAX) {
        refuse(d, rq, BAD_REQUEST);
    } else if (mo_span_is(transport, "polling")) {
        on_polling(d, rq, sid);
    } else if (!mo_span_is(transport, "websocket")) {
        refuse(d, rq, UNKNOWN_TRANSPORT);
    } else if (!is_ws_handshake(rq->head)) {
        refuse(d, rq, BAD_REQUEST);
    } else {
        on_websocket(d, rq, sid);
    }
}

/* --- the server -----------------------------------------------------------
 */

static void on_ended(struct mo_later *later)
{
    struct mo_eiod *d = mo_container_of(later, struct mo_eiod, ended);
    void (*gone)(void *) = d->gone;
    void *ctx = d->gone_ctx;

    mo_map_fini(&d->sessions);
    mo_free(d);
    if (gone)
        gone(ctx);
}

#define DEFAULT(member, value)                                                 \
    do {                                                                       \
        if (!(member))                                                         \
            (member) = (value);                                                \
    } while (0)

struct mo_eiod *mo_eiod_new(struct mo_loop *l, const struct mo_eiod_opts *o,
                            struct mo_err *e)
{
    struct mo_eiod *d = mo_new(struct mo_eiod);

    if (!d) {
        (void)mo_fail(e, MO_ENOMEM, "engine.io server");
        return NULL;
    }
    d->loop = l;
    d->o = *o;
    DEFAULT(d->o.ping_interval_ms, 25000);
    DEFAULT(d->o.ping_timeout_ms, 20000);
    DEFAULT(d->o.upgrade_timeout_ms, 10000);
    DEFAULT(d->o.sessions, 10000);
    DEFAULT(d->o.max_payload, 1000 * 1000);
    DEFAULT(d->o.max_queue, MO_STREAM_QUEUE_MAX);
    mo_map_init(&d->sessions, d->o.sessions);
    mo_later_init(&d->ended, on_ended);
    return d;
}

void mo_eiod_close(struct mo_eiod *d, void (*gone)(void *ctx), void *ctx)
{
    MO_BUG_ON(d->closing);
    d->closing = true;
    d->gone = gone;
    d->gone_ctx = ctx;
    while (d->sessions.len) {
        struct engine *g = NULL;

        mo_map_each (en, &d->sessions) {
            g = en->value;
            break;
        }
        close_engine(g, "server shutting down");
    }
    maybe_ended(d);
}

struct mo_eiod_stats mo_eiod_stats(const struct mo_eiod *d)
{
    return d->stats;
}
