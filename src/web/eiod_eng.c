/* eiod_eng.c - an Engine.IO session, independent of its transport: packets in
 * both directions, heartbeat, upgrade from polling to websocket, and close. See
 * eiod_priv.h. */
#include <stdio.h>

#include "base/rand.h"
#include "web/eiod_priv.h"

#define SID_BYTES     20
#define NOOP_EVERY_MS 100
#define LINGER_MS     5000

static struct engine *engine_of(const struct mo_eng *g)
{
    return mo_container_of(g, struct engine, pub);
}

static void log_engine(const struct engine *g, const char *what)
{
    const struct mo_log_facts about = {.who = g->pub.who, .from = g->pub.peer};

    mo_log_about(mo_loop_log(g->d->loop), MO_DEBUG, "sio", &about, "%s", what);
}

static void release_poll(struct engine *g)
{
    g->poll->data = NULL;
    g->poll->hangup = NULL;
    g->poll = NULL;
}

void mo_eiod_engine_release_post(struct engine *g)
{
    g->post->data = NULL;
    g->post = NULL;
    g->taken = false;
}

void mo_eiod_engine_answer_post(struct engine *g)
{
    struct mo_req *rq = g->post;

    if (!rq || !g->taken ||
        (!g->closed && !g->ws && g->out.len > MO_EIOD_HIGH(g->d)))
        return;
    mo_eiod_engine_release_post(g);
    mo_req_reply(rq, 200, "text/html", MO_SPAN("ok"));
}

void mo_eiod_engine_flush(struct engine *g)
{
    struct mo_req *rq = g->poll;

    if (!rq || !g->out.len)
        return;
    release_poll(g);
    mo_req_reply(rq, 200, "text/plain; charset=UTF-8", mo_buf_view(&g->out));
    mo_buf_fini(&g->out);
    mo_eiod_engine_answer_post(g);
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
        rc = mo_wsc_send(g->ws, MO_WS_OP_TEXT, v, 2);
    } else {
        rc = mo_eio_put_polling(&g->out, type, data);
        if (rc == 0)
            mo_eiod_engine_flush(g);
    }
    if (rc == 0)
        return 0;
    mo_eiod_engine_close(g, MO_ENG_POLICY, "client too slow");
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

    if (g->mailbox) {
        mo_eiod_engine_end_mailbox(g);
        return;
    }
    if (g->awaiting_pong) {
        mo_eiod_engine_close(g, MO_ENG_POLICY, "ping timeout");
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

void mo_eiod_engine_packet(struct engine *g, const struct mo_eio *p)
{
    struct mo_eiod *d = g->d;

    if (g->closed) {
        if (g->mailbox && p->type == MO_EIO_CLOSE)
            mo_eiod_engine_end_mailbox(g);
        return;
    }
    switch (p->type) {
    case MO_EIO_MESSAGE:
        if (p->binary) {
            mo_eiod_engine_close(g, MO_ENG_POLICY, "binary message");
            return;
        }
        d->stats.messages_in++;
        d->o.on_message(d->o.ctx, &g->pub, p->data);
        return;
    case MO_EIO_PONG:
        on_pong(g);
        return;
    case MO_EIO_CLOSE:
        mo_eiod_engine_close(g, MO_ENG_NORMAL, "transport close");
        return;
    case MO_EIO_OPEN:
    case MO_EIO_PING: /* in protocol 4 only the server pings */
    case MO_EIO_UPGRADE:
    case MO_EIO_NOOP:
        break;
    }
    mo_eiod_engine_close(g, MO_ENG_PROTOCOL, "parse error");
}

static void on_upgrade_timer(struct mo_timer *t)
{
    struct engine *g = mo_container_of(t, struct engine, upgrade);

    if (!g->probed || mo_loop_now(g->d->loop) > g->upgrade_by) {
        mo_wsc_drop(g->probe, MO_ENG_POLICY, "no upgrade in time");
        return;
    }
    /* The client waits for its GET to end before it upgrades. Start the timer
     * first: sending may close the session and stop the timer. */
    mo_timer_start(g->d->loop, t, NOOP_EVERY_MS);
    if (g->poll)
        (void)send_packet(g, MO_EIO_NOOP, mo_span(NULL, 0));
}

static void send_waiting(struct engine *g)
{
    struct mo_span body = mo_buf_view(&g->out);

    while (body.p && body.n && g->ws) {
        struct mo_span packet = mo_span_cut(&body, '\x1e');

        if (mo_wsc_send(g->ws, MO_WS_OP_TEXT, &packet, 1) < 0)
            mo_eiod_engine_close(g, MO_ENG_POLICY, "client too slow");
    }
    mo_buf_fini(&g->out);
}

/* Finish the upgrade: polling ends, queued packets are sent as frames. */
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
    mo_eiod_engine_answer_post(g);
    if (g->mailbox)
        mo_eiod_engine_end_mailbox(g);
}

void mo_eiod_engine_probe(struct wsc *w, const struct mo_eio *p)
{
    struct mo_span pong = MO_SPAN("3probe");
    struct engine *g = w->g;

    if (p->type == MO_EIO_PING && mo_span_is(p->data, "probe") && !g->probed) {
        g->probed = true;
        if (mo_wsc_send(w, MO_WS_OP_TEXT, &pong, 1) < 0)
            mo_stream_close(w->s, NULL);
        mo_timer_start(g->d->loop, &g->upgrade, 0);
    } else if (p->type == MO_EIO_UPGRADE && g->probed) {
        finish_upgrade(g);
    } else {
        mo_wsc_drop(w, MO_ENG_PROTOCOL, "unexpected packet");
    }
}

static int put_close(struct engine *g)
{
    return mo_eio_put_polling(&g->out, MO_EIO_CLOSE, mo_span(NULL, 0));
}

/* Cut all references to the session (invariant 4). */
static void let_go(struct engine *g, uint16_t code)
{
    struct mo_req *poll = g->poll;

    if (poll) { /* no memory even for a close packet */
        release_poll(g);
        mo_req_abort(poll);
    }
    mo_eiod_engine_answer_post(g);
    if (g->post)
        mo_eiod_engine_release_post(g);
    mo_wsc_drop(g->ws, code, code == MO_ENG_NORMAL ? "" : g->reason);
    mo_wsc_drop(g->probe, MO_ENG_NORMAL, "");
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
    mo_eiod_maybe_ended(d);
}

static void on_closed(struct mo_later *later)
{
    struct engine *g = mo_container_of(later, struct engine, later);
    struct mo_eiod *d = g->d;

    if (g->opened) {
        log_engine(g, "client disconnected");
        d->o.on_close(d->o.ctx, &g->pub, g->reason);
    }
    g->opened = false;
    if (!g->mailbox)
        engine_free(g);
}

void mo_eiod_engine_end_mailbox(struct engine *g)
{
    g->mailbox = false;
    let_go(g, MO_ENG_NORMAL);
    mo_loop_defer(g->d->loop, &g->later);
}

/* The close packet goes alone: a stock client that finds it in one answer with
 * "disconnect" reports a lost connection instead. */
void mo_eiod_engine_empty_mailbox(struct engine *g)
{
    bool last = !g->out.len;

    if (last)
        (void)put_close(g);
    mo_eiod_engine_flush(g);
    if (last)
        mo_eiod_engine_end_mailbox(g);
}

void mo_eiod_engine_close(struct engine *g, uint16_t code, const char *reason)
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
        mo_eiod_engine_flush(g);
    }
    if (g->mailbox) {
        if (!g->probed) /* else the upgrade delivers them */
            mo_wsc_drop(g->probe, MO_ENG_NORMAL, "");
        mo_eiod_engine_answer_post(g);
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
    /* Between two polls: keep the last packets for the client. */
    g->mailbox = code == MO_ENG_NORMAL && !g->ws && !g->poll;
    mo_eiod_engine_close(g, code, reason);
}

/* Unguessable, and says which process has the session. */
static void make_sid(const struct mo_eiod *d, char *sid, size_t max)
{
    const char *home = d->o.home ? d->o.home(d->o.elsewhere_ctx) : NULL;
    size_t n;

    mo_random_token(sid, SID_BYTES);
    if (d->o.mark)
        sid[0] = d->o.mark;
    n = strlen(sid);
    if (home)
        (void)snprintf(sid + n, max - n, ".%s", home);
}

struct engine *mo_eiod_engine_new(struct mo_eiod *d, struct mo_req *rq)
{
    struct engine *g = mo_new(struct engine);
    char *query;

    if (!g)
        return NULL;
    query = mo_strndup(rq->query.p, rq->query.n);
    make_sid(d, g->pub.sid, sizeof(g->pub.sid));
    if (!query ||
        mo_map_put(&d->sessions, mo_span_cstr(g->pub.sid), g, NULL) < 0) {
        mo_free(query);
        mo_free(g);
        return NULL;
    }
    g->d = d;
    g->pub.query = mo_span(query, rq->query.n);
    (void)snprintf(g->pub.peer, sizeof(g->pub.peer), "%s", mo_req_peer(rq));
    memcpy(g->pub.who, rq->who, sizeof(g->pub.who));
    memcpy(g->pub.caller, rq->caller, sizeof(g->pub.caller));
    memcpy(g->pub.grant, rq->grant, sizeof(g->pub.grant));
    g->pub.role = rq->role;
    g->pub.door = rq->door;
    /* Leave room for the head of the HTTP answer that carries them. */
    mo_buf_init(&g->out, d->o.max_queue - d->o.max_queue / 64);
    mo_timer_init(&g->beat, on_beat);
    mo_timer_init(&g->upgrade, on_upgrade_timer);
    mo_later_init(&g->later, on_closed);
    mo_list_push(&d->engines, &g->node);
    d->stats.sessions++;
    d->stats.opened++;
    return g;
}

/* Send the open packet, then tell the owner. */
void mo_eiod_engine_open(struct engine *g)
{
    struct mo_eiod *d = g->d;
    struct mo_eio_open o = {
        .sid = mo_span_cstr(g->pub.sid),
        .can_upgrade = g->ws == NULL,
        .ping_interval_ms = d->o.ping_interval_ms,
        .ping_timeout_ms = d->o.ping_timeout_ms,
        .max_payload = d->o.max_payload,
    };
    mo_autobuf struct mo_buf b = {.max = 512};

    mo_timer_start(d->loop, &g->beat, d->o.ping_interval_ms);
    if (mo_eio_put_open(&b, &o) < 0)
        mo_eiod_engine_close(g, MO_ENG_OURS, "out of memory");
    else
        (void)send_packet(g, MO_EIO_OPEN, mo_buf_view(&b));
    if (g->closed)
        return;
    g->opened = true;
    log_engine(g, "client connected");
    d->o.on_open(d->o.ctx, &g->pub);
}
