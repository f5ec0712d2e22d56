/* eiod.c - see eiod.h.
 *
 * Invariants
 *  1. A session has one transport: websocket if g->ws, else polling. During
 *     an upgrade g->probe is a second websocket that carries no messages.
 *  2. g->out holds packets in the polling encoding; it is empty on websocket.
 *  3. close_engine() is the only way to `closed`. The owner is told one turn
 *     later. A polling client that has not fetched its last packets gets
 *     LINGER_MS to do so, by a GET or by the upgrade it is about to finish;
 *     until then the session is only a mailbox.
 *  4. let_go() cuts every link from requests and websockets to the session,
 *     so that nothing can reach it when it is freed.
 *  5. A wsc (websocket connection) frees itself in its stream's on_close.
 *  6. Who makes us queue stops being read: a websocket whose queue is over
 *     HIGH is paused until it is empty, the answer to a POST waits until the
 *     client has fetched what it made us say. */
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
#define LINGER_MS     5000
#define HIGH(d)       ((d)->o.max_queue / 4)

struct wsc;

struct engine {
    struct mo_eng pub;
    struct mo_eiod *d;
    struct mo_list node;
    struct wsc *ws, *probe;
    struct mo_req *poll; /* a GET that waits for packets */
    struct mo_req *post; /* a POST whose body is arriving, or was taken */
    struct mo_buf out;
    struct mo_timer beat;    /* next ping, the pong's deadline; lingering */
    struct mo_timer upgrade; /* of a probe; every NOOP_EVERY_MS after it */
    uint64_t upgrade_by;     /* ns */
    struct mo_later later;
    const char *reason;
    bool awaiting_pong, probed;
    bool taken;  /* the body of g->post; only its answer is missing */
    bool opened; /* the owner knows of it */
    bool closed; /* the owner hears of it, or has */
    bool mailbox;
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
    struct mo_list engines; /* engine.node */
    struct mo_eiod_stats stats;
    unsigned wscs; /* memory still held */
    bool closing;
    struct mo_later ended;
    void (*gone)(void *ctx);
    void *gone_ctx;
};

static struct engine *engine_of(const struct mo_eng *g)
{
    return mo_container_of(g, struct engine, pub);
}

static void close_engine(struct engine *g, uint16_t code, const char *reason);

static void maybe_ended(struct mo_eiod *d)
{
    if (d->closing && !d->wscs && mo_list_empty(&d->engines))
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

static void on_packet(struct engine *g, const struct mo_eio *p);
static void on_probe_packet(struct wsc *w, const struct mo_eio *p);

/* Session and connection forget each other; the session, if there was one,
 * and whether it spoke over this connection. */
static struct engine *ws_detach(struct wsc *w, bool *spoke)
{
    struct engine *g = w->g;

    *spoke = g && g->ws == w;
    w->g = NULL;
    if (!g)
        return NULL;
    if (*spoke) {
        g->ws = NULL;
        g->d->stats.websockets--;
    } else {
        g->probe = NULL;
        g->probed = false;
        mo_timer_stop(g->d->loop, &g->upgrade);
    }
    return g;
}

/* The session no longer wants this connection. */
static void ws_drop(struct wsc *w, uint16_t code, const char *why)
{
    bool spoke;

    if (!w)
        return;
    (void)ws_detach(w, &spoke);
    ws_end(w, code, why);
}

/* The session ends with the connection it speaks over; a probe that is lost
 * leaves it on polling. */
static void ws_lost(struct wsc *w, const char *why)
{
    bool spoke;
    struct engine *g = ws_detach(w, &spoke);

    if (spoke)
        close_engine(g, MO_ENG_NORMAL, why);
}

/* The peer broke a rule: tell it, and end the session it belonged to. */
static void ws_fail(struct wsc *w, uint16_t code, const char *why)
{
    ws_end(w, code, why);
    ws_lost(w, "parse error");
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
    if (mo_stream_queued(w->s) > HIGH(w->d))
        mo_stream_pause(w->s);
}

static void ws_drain(void *ctx)
{
    struct wsc *w = ctx;

    mo_stream_resume(w->s);
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

static const struct mo_stream_cb ws_cb = {ws_read, ws_eof, ws_drain, ws_closed};

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

static void release_poll(struct engine *g)
{
    g->poll->data = NULL;
    g->poll->hangup = NULL;
    g->poll = NULL;
}

static void release_post(struct engine *g)
{
    g->post->data = NULL;
    g->post = NULL;
    g->taken = false;
}

/* The body of the POST was taken; say so unless there is much to fetch. */
static void answer_post(struct engine *g)
{
    struct mo_req *rq = g->post;

    if (!rq || !g->taken || (!g->closed && !g->ws && g->out.len > HIGH(g->d)))
        return;
    release_post(g);
    mo_req_reply(rq, 200, "text/html", MO_SPAN("ok"));
}

/* Answer the waiting GET with what there is. */
static void flush_poll(struct engine *g)
{
    struct mo_req *rq = g->poll;

    if (!rq || !g->out.len)
        return;
    release_poll(g);
    mo_req_reply(rq, 200, "text/plain; charset=UTF-8", mo_buf_view(&g->out));
    mo_buf_fini(&g->out);
    answer_post(g);
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
        if (rc == 0)
            flush_poll(g);
    }
    if (rc == 0)
        return 0;
    close_engine(g, MO_ENG_POLICY, "client too slow");
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

static void end_mailbox(struct engine *g);

static void on_beat(struct mo_timer *t)
{
    struct engine *g = mo_container_of(t, struct engine, beat);

    if (g->mailbox) {
        end_mailbox(g);
        return;
    }
    if (g->awaiting_pong) {
        close_engine(g, MO_ENG_POLICY, "ping timeout");
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
            close_engine(g, MO_ENG_POLICY, "binary message");
            return;
        }
        d->stats.messages_in++;
        d->o.on_message(d->o.ctx, &g->pub, p->data);
        return;
    case MO_EIO_PONG:
        on_pong(g);
        return;
    case MO_EIO_CLOSE:
        close_engine(g, MO_ENG_NORMAL, "transport close");
        return;
    case MO_EIO_OPEN:
    case MO_EIO_PING: /* the server pings, in protocol 4 */
    case MO_EIO_UPGRADE:
    case MO_EIO_NOOP:
        break;
    }
    close_engine(g, MO_ENG_PROTOCOL, "parse error");
}

static void on_upgrade_timer(struct mo_timer *t)
{
    struct engine *g = mo_container_of(t, struct engine, upgrade);

    if (!g->probed || mo_loop_now(g->d->loop) > g->upgrade_by) {
        ws_drop(g->probe, MO_ENG_POLICY, "no upgrade in time");
        return;
    }
    /* The client waits for its GET to end before it steps over. The timer
     * first: sending may close the session and stop it for good. */
    mo_timer_start(g->d->loop, t, NOOP_EVERY_MS);
    if (g->poll)
        (void)send_packet(g, MO_EIO_NOOP, mo_span(NULL, 0));
}

static void send_waiting(struct engine *g)
{
    struct mo_span body = mo_buf_view(&g->out);

    while (body.p && body.n && g->ws) {
        struct mo_span packet = mo_span_cut(&body, '\x1e');

        if (ws_send(g->ws, MO_WS_OP_TEXT, &packet, 1) < 0)
            close_engine(g, MO_ENG_POLICY, "client too slow");
    }
    mo_buf_fini(&g->out);
}

/* Step over: polling ends, what still waits goes out as frames. */
static void finish_upgrade(struct engine *g)
{
    mo_timer_stop(g->d->loop, &g->upgrade);
    if (g->poll && send_packet(g, MO_EIO_NOOP, mo_span(NULL, 0)) < 0)
        return;
    g->ws = g->probe;
    g->probe = NULL;
    g->probed = false;
    g->d->stats.websockets++;
    send_waiting(g);
    answer_post(g);
    if (g->mailbox)
        end_mailbox(g);
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
        ws_drop(w, MO_ENG_PROTOCOL, "unexpected packet");
    }
}

static int put_close(struct engine *g)
{
    return mo_eio_put_polling(&g->out, MO_EIO_CLOSE, false, mo_span(NULL, 0));
}

/* Nothing outside reaches the session any more (invariant 4). */
static void let_go(struct engine *g, uint16_t code)
{
    struct mo_req *poll = g->poll;

    if (poll) { /* there was no memory for even a close packet */
        release_poll(g);
        mo_req_abort(poll);
    }
    answer_post(g);
    if (g->post)
        release_post(g);
    ws_drop(g->ws, code, code == MO_ENG_NORMAL ? "" : g->reason);
    ws_drop(g->probe, MO_ENG_NORMAL, "");
    mo_timer_stop(g->d->loop, &g->beat);
    mo_timer_stop(g->d->loop, &g->upgrade);
    (void)mo_map_del(&g->d->sessions, mo_span_cstr(g->pub.sid));
}

static void engine_free(struct engine *g)
{
    struct mo_eiod *d = g->d;

    mo_list_del(&g->node);
    mo_buf_fini(&g->out);
    mo_free((char *)(uintptr_t)g->pub.query.p);
    mo_free(g);
    maybe_ended(d);
}

static void on_closed(struct mo_later *later)
{
    struct engine *g = mo_container_of(later, struct engine, later);
    struct mo_eiod *d = g->d;

    if (g->opened)
        d->o.on_close(d->o.ctx, &g->pub, g->reason);
    g->opened = false;
    if (!g->mailbox)
        engine_free(g);
}

/* The last packets were fetched, or will not be. */
static void end_mailbox(struct engine *g)
{
    g->mailbox = false;
    let_go(g, MO_ENG_NORMAL);
    mo_loop_defer(g->d->loop, &g->later);
}

static void close_engine(struct engine *g, uint16_t code, const char *reason)
{
    struct mo_eiod *d = g->d;

    if (g->closed)
        return;
    g->closed = true;
    g->reason = reason;
    d->stats.sessions--;
    if (g->poll) {
        mo_buf_reset(&g->out); /* it may have failed by being full */
        (void)put_close(g);
        flush_poll(g);
    }
    if (g->mailbox) {
        if (!g->probed) /* else it comes for them that way */
            ws_drop(g->probe, MO_ENG_NORMAL, "");
        answer_post(g);
        mo_timer_start(d->loop, &g->beat, LINGER_MS);
    } else {
        let_go(g, code);
    }
    mo_loop_defer(d->loop, &g->later);
}

void mo_eng_close(struct mo_eng *pub, uint16_t code, const char *reason)
{
    struct engine *g = engine_of(pub);

    if (g->closed)
        return;
    /* Between two polls: what was said last would be lost. */
    if (code == MO_ENG_NORMAL && !g->ws && !g->poll)
        g->mailbox = put_close(g) == 0;
    close_engine(g, code, reason);
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
    /* What is fetched goes out behind the head of an HTTP answer. */
    mo_buf_init(&g->out, d->o.max_queue - d->o.max_queue / 64);
    mo_timer_init(&g->beat, on_beat);
    mo_timer_init(&g->upgrade, on_upgrade_timer);
    mo_later_init(&g->later, on_closed);
    mo_list_push(&d->engines, &g->node);
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
    mo_timer_start(d->loop, &g->beat, d->o.ping_interval_ms);
    if (mo_eio_put_open(&b, &o) < 0)
        close_engine(g, MO_ENG_OURS, "out of memory");
    else
        (void)send_packet(g, MO_EIO_OPEN, mo_buf_view(&b));
    mo_buf_fini(&b);
    if (g->closed)
        return;
    g->opened = true;
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
    close_engine(g, MO_ENG_NORMAL, "transport close");
}

static void poll_hangup(struct mo_req *rq)
{
    mo_req_abort(rq);
}

static void on_get(struct engine *g, struct mo_req *rq)
{
    if (g->poll) { /* two at once: packets could overtake each other */
        refuse(g->d, rq, BAD_REQUEST);
        close_engine(g, MO_ENG_PROTOCOL, "transport error");
        return;
    }
    g->poll = rq;
    rq->data = g;
    rq->gone = poll_gone;
    rq->hangup = poll_hangup;
    flush_poll(g);
    if (g->mailbox)
        end_mailbox(g);
}

static void post_gone(struct mo_req *rq)
{
    struct engine *g = rq->data;

    if (g)
        release_post(g);
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
        close_engine(g, MO_ENG_PROTOCOL, "parse error");
    } else if (g) {
        g->taken = true;
        answer_post(g);
    } else {
        mo_req_reply(rq, 200, "text/html", MO_SPAN("ok"));
    }
}

static void on_post(struct engine *g, struct mo_req *rq)
{
    if (g->post) {
        refuse(g->d, rq, BAD_REQUEST);
        close_engine(g, MO_ENG_PROTOCOL, "transport error");
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
        if (!g || g->closed || g->ws || g->probe) {
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
            close_engine(g, MO_ENG_OURS, "transport error");
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
        mo_req_header(rq, "Sec-WebSocket-Version", MO_SPAN("13"));
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
    mo_list_init(&d->engines);
    mo_later_init(&d->ended, on_ended);
    return d;
}

void mo_eiod_close(struct mo_eiod *d, void (*gone)(void *ctx), void *ctx)
{
    MO_BUG_ON(d->closing);
    d->closing = true;
    d->gone = gone;
    d->gone_ctx = ctx;
    mo_list_each (n, &d->engines) {
        struct engine *g = mo_container_of(n, struct engine, node);

        if (g->mailbox)
            end_mailbox(g);
        close_engine(g, MO_ENG_AWAY, "server shutting down");
    }
    maybe_ended(d);
}

struct mo_eiod_stats mo_eiod_stats(const struct mo_eiod *d)
{
    return d->stats;
}
