/* eiod.c - the server and its HTTP requests. See eiod_priv.h for the
 * invariants. */
#include <stdio.h>

#include "web/eiod_priv.h"

#define QUERY_MAX ((size_t)2048)

/* --- requests ------------------------------------------------------------ */

/* engine.io's own texts and numbers: stock clients know them. */
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

/* A raw parameter of the query: those read here are never encoded. */
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
    mo_eiod_engine_close(g, MO_ENG_NORMAL, "transport close");
}

static void poll_hangup(struct mo_req *rq)
{
    mo_req_abort(rq);
}

static void set_poll(struct engine *g, struct mo_req *rq)
{
    g->poll = rq;
    rq->data = g;
    rq->gone = poll_gone;
}

/* A second GET or POST at a time: packets could overtake each other. */
static void refuse_second(struct engine *g, struct mo_req *rq)
{
    refuse(g->d, rq, BAD_REQUEST);
    mo_eiod_engine_close(g, MO_ENG_PROTOCOL, "transport error");
}

static void on_get(struct engine *g, struct mo_req *rq)
{
    if (g->poll) {
        refuse_second(g, rq);
        return;
    }
    set_poll(g, rq);
    rq->hangup = poll_hangup;
    if (g->mailbox)
        mo_eiod_engine_empty_mailbox(g);
    else
        mo_eiod_engine_flush(g);
}

static void post_gone(struct mo_req *rq)
{
    struct engine *g = rq->data;

    if (g)
        mo_eiod_engine_release_post(g);
}

static void on_post_body(struct mo_req *rq, struct mo_span body)
{
    struct engine *g = rq->data;
    struct mo_eio p = {.type = MO_EIO_NOOP};
    struct mo_err e;
    unsigned n = 0;
    int rc = 1;

    while (rq->data && (!g->closed || g->mailbox) && rc > 0) {
        rc = mo_eio_next(&body, &n, &p, &e);
        if (rc > 0)
            mo_eiod_engine_packet(g, &p);
    }
    g = rq->data; /* NULL when a packet closed the session */
    if (g && rc < 0) {
        refuse(g->d, rq, BAD_REQUEST);
        mo_eiod_engine_close(g, MO_ENG_PROTOCOL, "parse error");
    } else if (g) {
        g->taken = true;
        mo_eiod_engine_answer_post(g);
    } else {
        mo_req_reply(rq, 200, "text/html", MO_SPAN("ok"));
    }
}

static void on_post(struct engine *g, struct mo_req *rq)
{
    if (g->post) {
        refuse_second(g, rq);
        return;
    }
    g->post = rq;
    rq->data = g;
    rq->gone = post_gone;
    mo_req_body(rq, g->d->o.max_payload, on_post_body);
}

/* A session of another caller, or of another personal token, counts as
 * unknown. */
static struct engine *find(struct mo_eiod *d, const struct mo_req *rq,
                           struct mo_span sid)
{
    struct engine *g = mo_map_get(&d->sessions, sid);

    return g && strcmp(g->pub.who, rq->who) == 0 &&
                   strcmp(g->pub.grant, rq->grant) == 0
               ? g
               : NULL;
}

/* NULL: answered. */
static struct engine *new_engine(struct mo_eiod *d, struct mo_req *rq)
{
    struct engine *g = mo_eiod_engine_new(d, rq);

    if (!g)
        mo_req_problem(rq, 503, "busy", "too many sessions, try later");
    return g;
}

static void open_polling(struct mo_eiod *d, struct mo_req *rq)
{
    struct engine *g = new_engine(d, rq);

    if (!g)
        return;
    set_poll(g, rq);
    mo_eiod_engine_open(g);
}

/* True: another process has the session and answers. */
static bool is_elsewhere(struct mo_eiod *d, struct mo_req *rq,
                         struct mo_span sid)
{
    return d->o.elsewhere && sid.n > 0 &&
           d->o.elsewhere(d->o.elsewhere_ctx, rq, sid);
}

static void on_polling(struct mo_eiod *d, struct mo_req *rq, struct mo_span sid)
{
    struct engine *g = sid.p ? find(d, rq, sid) : NULL;

    if (!sid.p && rq->head->method == MO_HTTP_GET)
        open_polling(d, rq);
    else if (!sid.p)
        refuse(d, rq, BAD_METHOD);
    else if (!g && is_elsewhere(d, rq, sid))
        return;
    else if (!g)
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
        g = find(d, rq, sid);
        if (!g && is_elsewhere(d, rq, sid))
            return;
        if (!g || g->closed || g->ws || g->probe) {
            refuse(d, rq, g ? BAD_REQUEST : UNKNOWN_SID);
            return;
        }
    } else {
        g = new_engine(d, rq);
        if (!g)
            return;
    }
    w = mo_wsc_accept(d, rq, &early);
    if (!w) {
        if (!sid.p)
            mo_eiod_engine_close(g, MO_ENG_OURS, "transport error");
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
        mo_eiod_engine_open(g);
    }
    if (early.n)
        mo_wsc_read(w, (char *)(uintptr_t)early.p, early.n);
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

/* --- the server ---------------------------------------------------------- */

void mo_eiod_maybe_ended(struct mo_eiod *d)
{
    if (d->closing && !d->wscs && mo_list_empty(&d->engines))
        mo_loop_defer(d->loop, &d->ended);
}

static void on_ended(struct mo_later *later)
{
    struct mo_eiod *d = mo_container_of(later, struct mo_eiod, ended);
    struct mo_gone gone = d->gone;

    mo_map_fini(&d->sessions);
    mo_free(d);
    mo_gone_fire(gone);
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

    if (!d)
        return mo_null(mo_fail(e, MO_ENOMEM, "engine.io server"));
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

static bool is_theirs(const char *want, const char *is)
{
    return !want || strcmp(want, is) == 0;
}

void mo_eiod_drop(struct mo_eiod *d, const char *who, const char *door,
                  const char *grant)
{
    mo_list_each_entry (g, &d->engines, struct engine, node) {
        if (!mo_httpd_is_who(who, g->pub.who) ||
            !is_theirs(door, g->pub.door) || !is_theirs(grant, g->pub.grant))
            continue;
        if (g->mailbox)
            mo_eiod_engine_end_mailbox(g);
        mo_eiod_engine_close(g, MO_ENG_POLICY, "signed out");
    }
}

void mo_eiod_close(struct mo_eiod *d, void (*gone)(void *ctx), void *ctx)
{
    MO_BUG_ON(d->closing);
    d->closing = true;
    d->gone = (struct mo_gone){gone, ctx};
    mo_list_each_entry (g, &d->engines, struct engine, node) {
        if (g->mailbox)
            mo_eiod_engine_end_mailbox(g);
        mo_eiod_engine_close(g, MO_ENG_AWAY, "server shutting down");
    }
    mo_eiod_maybe_ended(d);
}

struct mo_eiod_stats mo_eiod_stats(const struct mo_eiod *d)
{
    return d->stats;
}
