/* child.c - one child: start, faults, idle time and end.
 *
 *   NEW -> STARTING -> OPEN -> CLOSING -> GONE
 *    |         |  \      |                 ^
 *    |         |   +-> CLOSING             |
 *    +---------+---------+-----------------+
 *
 * A child with a conn reaches GONE in the conn's on_close; a NEW child has
 * no conn and goes directly. It is freed when it is GONE and no longer held. */
#include "base/rand.h"
#include "gateway/upstream/upstream_priv.h"
#include "mcp/edit.h"

/* Client capabilities told to a child that several clients share. Its questions
 * go to the client of the call, or are refused if that client lacks the
 * capability. */
#define CAPS_ALL                                                               \
    "{\"sampling\":{},\"elicitation\":{\"form\":{},\"url\":{}},"               \
    "\"roots\":{\"listChanged\":true},"                                        \
    "\"extensions\":{\"" MO_MCP_EXT_TASKS "\":{},\"" MO_MCP_EXT_SKILLS         \
    "\":{},\"" MO_MCP_EXT_APPS                                                 \
    "\":{\"mimeTypes\":[\"text/html;profile=mcp-app\"]}}}"

#define CAPS_MAX ((size_t)64 * 1024)

#define TO(s) (1u << (s))

static bool is_running(enum child_state s)
{
    return s == CH_STARTING || s == CH_OPEN || s == CH_CLOSING;
}

static void child_move(struct mo_child *c, enum child_state to)
{
    static const uint8_t legal[] = {
        [CH_NEW] = TO(CH_STARTING) | TO(CH_GONE),
        [CH_STARTING] = TO(CH_OPEN) | TO(CH_CLOSING) | TO(CH_GONE),
        [CH_OPEN] = TO(CH_CLOSING) | TO(CH_GONE),
        [CH_CLOSING] = TO(CH_GONE),
        [CH_GONE] = 0,
    };
    struct mo_upstream_pool *p = c->up->pool;

    MO_BUG_ON(!(legal[c->state] & TO(to)));
    p->running += is_running(to);
    p->running -= is_running(c->state);
    p->closing += to == CH_CLOSING;
    p->closing -= c->state == CH_CLOSING;
    p->queued -= c->state == CH_NEW;
    c->up->count[c->state]--;
    c->up->count[to]++;
    c->state = to;
    mo_list_del(&c->queue_node);
    mo_list_del(&c->idle_node);
    mo_timer_stop(c->up->opts.loop, &c->idle);
    mo_upstream_schedule(c->up);
}

struct mo_span mo_child_who(const struct mo_child *c)
{
    return mo_span(c->who, c->who_len);
}

/* A line of the log about its server; ns and error may be 0 and NULL. */
#define log_child(c, lv, took_ns, error, ...)                                  \
    mo_log_about(                                                              \
        mo_loop_log((c)->up->opts.loop), (lv), "upstream",                     \
        &(struct mo_log_facts){.server = mo_span_cstr((c)->up->server.name),   \
                               .ns = (took_ns),                                \
                               .err = (error)},                                \
        __VA_ARGS__)

/* --- faults -------------------------------------------------------------- */

static void note_outcome(struct mo_upstream *u, bool good)
{
    u->heard_at = mo_wall_coarse_ms();
    if (good)
        u->good_at = u->heard_at;
    u->row = good ? 0 : u->row + 1;
}

/* Faults with the same loop turn have the same cause and count once. */
static void note_fault(struct mo_child *c, const struct mo_err *why)
{
    struct mo_upstream *u = c->up;
    uint64_t turn = mo_loop_stats(u->opts.loop).turns;
    bool again = c->fault_turn == turn;

    c->fault_turn = turn;
    if (!again)
        note_outcome(u, false);
    if (why && !u->server.per_person)
        u->why = *why;
    else if (!again)
        (void)mo_fail(&u->why, MO_EUNAVAIL, "a call failed");
    mo_upstream_schedule(u);
    if (again || !mo_breaker_report(&u->breaker, mo_upstream_now(), true))
        return;
    log_child(
        c, MO_WARN, 0, &u->why,
        "fails again and again: its circuit breaker is open, no calls "
        "for %llu s",
        (unsigned long long)mo_breaker_wait(&u->breaker, mo_upstream_now()) /
            1000);
}

void mo_child_report_fault(struct mo_child *c, const struct mo_err *why)
{
    c->trial = false;
    note_fault(c, why);
}

void mo_child_report(struct mo_child *c, bool is_fault)
{
    struct mo_upstream *u = c->up;
    bool was_open = u->breaker.state != MO_BREAKER_CLOSED;

    c->trial = false;
    if (is_fault) {
        note_fault(c, NULL);
        return;
    }
    note_outcome(u, true);
    (void)mo_breaker_report(&u->breaker, mo_upstream_now(), false);
    if (was_open && u->breaker.state == MO_BREAKER_CLOSED)
        log_child(c, MO_INFO, 0, NULL,
                  "works again: its circuit breaker is closed");
    if (u->why.code && u->breaker.state == MO_BREAKER_CLOSED) {
        mo_err_clear(&u->why);
        mo_upstream_schedule(u);
    }
}

/* --- end ----------------------------------------------------------------- */

static void child_free(struct mo_child *c)
{
    struct mo_upstream *u = c->up;

    mo_list_del(&c->node);
    u->count[c->state]--;
    mo_free(c->caps);
    mo_free(c);
    mo_upstream_maybe_free(u);
}

/* Requests that waited for it fail. If no open child is left, so do the
 * requests for any child. */
void mo_upstream_child_end(struct mo_child *c, enum refusal refusal)
{
    struct mo_upstream *u = c->up;

    child_move(c, CH_GONE);
    if (c->trial)
        mo_breaker_cancel_trial(&u->breaker);
    c->trial = false;
    mo_upstream_refuse_all(&c->requests, refusal);
    if (refusal != REFUSED_CLOSED && u->count[CH_OPEN] == 0)
        mo_upstream_refuse_all(&u->requests, refusal);
    u->freed_place = true;
    if (c->calls == 0)
        child_free(c);
}

void mo_upstream_child_close(struct mo_child *c, int code, const char *why)
{
    if (c->state == CH_NEW) {
        mo_upstream_child_end(c, REFUSED_CLOSED);
        return;
    }
    if (c->state != CH_STARTING && c->state != CH_OPEN)
        return;
    log_child(c, MO_INFO, 0, NULL, "%s", why);
    child_move(c, CH_CLOSING);
    mo_conn_close(c->conn, mo_error(code, "%s", why));
}

void mo_child_lost(struct mo_child *c)
{
    mo_upstream_child_close(c, MO_ECLOSED, "connection lost");
}

/* Texts that a server wrote to one person are not told to the others. */
static void hide_reason(struct mo_upstream *u, const struct mo_err *why)
{
    (void)mo_fail(&u->failed, why->code, "%s",
                  why->code == MO_ETIMEOUT   ? "it does not answer in time"
                  : why->code == MO_EPROTO   ? "its answer makes no sense"
                  : why->code == MO_EUNAVAIL ? "it cannot be reached"
                                             : "no connection; see the log");
    u->why = u->failed;
}

/* The person must sign in, or their credentials cannot be read: nobody else has
 * to wait for that. */
static bool fail_sign_in(struct mo_child *c, const struct mo_err *why)
{
    if (!c->up->server.per_person ||
        (why->code != MO_EPOLICY && !c->not_dialed))
        return false;
    log_child(c, MO_INFO, mo_now_ns() - c->began_ns, why,
              "the person must sign in");
    mo_upstream_child_end(c, REFUSED_SIGN_IN);
    return true;
}

static void fail_start(struct mo_child *c, const struct mo_err *why)
{
    struct mo_upstream *u = c->up;
    uint64_t now = mo_upstream_now();

    if (fail_sign_in(c, why))
        return;
    u->why = u->failed = *why;
    u->fails++;
    u->sign_in = why->code == MO_EPOLICY && !c->not_dialed;
    if (u->sign_in)
        mo_backoff_pause(&u->backoff, now, MO_UPSTREAM_SIGN_IN_MS);
    else
        mo_backoff_failed(&u->backoff, now, mo_random_u64());
    if (u->breaker.state == MO_BREAKER_HALF)
        note_fault(c, why);
    else
        note_outcome(u, false);
    log_child(c, MO_WARN, mo_now_ns() - c->began_ns, why,
              "could not be started");
    if (u->server.per_person)
        hide_reason(u, why);
    mo_upstream_child_end(c, REFUSED_START);
}

static void note_lost(struct mo_child *c, const struct mo_err *why)
{
    struct mo_upstream *u = c->up;
    bool young = mo_upstream_now() - c->opened_ms < MO_UPSTREAM_YOUNG_MS;

    u->fails++;
    u->why = *why;
    if (u->server.per_person)
        (void)mo_fail(&u->why, why->code, "connection lost");
    if (c->calls || young)
        note_fault(c, why);
    else
        note_outcome(u, false);
    log_child(c, MO_WARN, (mo_upstream_now() - c->opened_ms) * MO_MS, why,
              "connection lost");
}

/* A server recorded as legacy may have been upgraded: try once without that
 * knowledge. After a timeout or a refusal (MO_EPOLICY) a second try would
 * not help. */
static bool try_without_verdict(struct mo_child *c, const struct mo_err *why)
{
    static const struct mo_conn_verdict unknown = {.era = MO_ERA_UNKNOWN};
    struct mo_upstream *u = c->up;

    if (c->retried || c->not_dialed || c->known.era != MO_ERA_LEGACY ||
        u->server.mode != MO_CONN_AUTO || why->code == MO_EPOLICY)
        return false;
    c->retried = true;
    if (u->opts.learnt)
        u->opts.learnt(u->opts.ctx, u->server.name, unknown);
    return why->code != MO_ETIMEOUT;
}

static void on_conn_tap(void *ctx, bool to_server, struct mo_span text)
{
    const struct mo_child *c = ctx;
    const struct mo_upstream_opts *o = &c->up->opts;

    o->tap(o->tap_ctx, c->up->server.name, c->number, to_server, text);
}

static int connect_child(struct mo_child *c, struct mo_err *e);

/* The session, or the person's name. */
static struct mo_span dialed_for(const struct mo_child *c)
{
    return mo_span_skip(mo_child_who(c), c->up->server.per_person
                                             ? sizeof(MO_UPSTREAM_PERSON) - 1
                                             : 0);
}

static void release_links(struct mo_child *c)
{
    const struct mo_upstream_opts *o = &c->up->opts;

    for (; c->dials; c->dials--)
        if (o->done)
            o->done(o->ctx, c->up->server.name, dialed_for(c));
}

static void on_conn_close(void *ctx, const struct mo_err *given)
{
    struct mo_child *c = ctx;
    struct mo_upstream *u = c->up;
    struct mo_err why;
    enum child_state was = c->state;

    if (given)
        why = *given;
    else
        (void)mo_fail(&why, MO_ECLOSED, "the connection ended");
    c->conn = NULL;
    release_links(c);
    if (was == CH_STARTING && try_without_verdict(c, &why) &&
        connect_child(c, &why) == 0)
        return;
    if (was == CH_STARTING) {
        fail_start(c, &why);
        return;
    }
    if (was == CH_OPEN) {
        note_lost(c, &why);
        child_move(c, CH_CLOSING); /* hides the conn from callers */
    }
    c->calls++; /* on_lost may release it */
    if (c->opened)
        u->cb->on_lost(u->ctx, c, &why);
    c->calls--;
    mo_upstream_child_end(c, REFUSED_CLOSED);
}

/* --- callbacks of its connection ----------------------------------------- */

static void report_verdict(struct mo_child *c)
{
    const struct mo_upstream_opts *o = &c->up->opts;
    struct mo_conn_verdict v = mo_conn_info(c->conn)->verdict;

    if (o->learnt && v.era != MO_ERA_UNKNOWN &&
        (v.era != c->known.era || v.at_ms != c->known.at_ms))
        o->learnt(o->ctx, c->up->server.name, v);
}

static void start_idle(struct mo_child *c);

static void on_conn_open(void *ctx, struct mo_conn *conn)
{
    struct mo_child *c = ctx;
    struct mo_upstream *u = c->up;

    (void)conn;
    child_move(c, CH_OPEN);
    c->opened = true;
    c->opened_ms = mo_upstream_now();
    log_child(c, MO_INFO, mo_now_ns() - c->began_ns, NULL, "started");
    note_outcome(u, true);
    u->sign_in = false;
    mo_backoff_reset(&u->backoff);
    if (u->breaker.state == MO_BREAKER_CLOSED)
        mo_err_clear(&u->why);
    report_verdict(c);
    c->calls++; /* on_open may hold and release it */
    u->cb->on_open(u->ctx, c);
    c->calls--;
    if (c->calls == 0 && c->state == CH_OPEN)
        start_idle(c);
    while (c->state == CH_OPEN && !mo_list_empty(&c->requests))
        mo_upstream_grant(
            mo_list_first(&c->requests, struct mo_child_request, node), c);
}

static void on_conn_ask(void *ctx, struct mo_conn *conn, struct mo_ask *a)
{
    struct mo_child *c = ctx;

    (void)conn;
    c->up->cb->on_ask(c->up->ctx, c, a);
}

static void on_conn_ask_gone(void *ctx, struct mo_ask *a)
{
    struct mo_child *c = ctx;

    c->up->cb->on_ask_gone(c->up->ctx, a);
}

static void on_conn_notify(void *ctx, struct mo_conn *conn,
                           const struct mo_rpc *m, uint64_t stream_of)
{
    struct mo_child *c = ctx;

    (void)conn;
    c->up->cb->on_notify(c->up->ctx, c, m, stream_of);
}

static void on_conn_noise(void *ctx, struct mo_span line)
{
    const struct mo_upstream *u = ((struct mo_child *)ctx)->up;

    if (u->opts.noise)
        u->opts.noise(u->opts.ctx, u->server.name, line);
}

static const struct mo_conn_cb conn_cb = {
    .on_open = on_conn_open,
    .on_noise = on_conn_noise,
    .on_ask = on_conn_ask,
    .on_ask_gone = on_conn_ask_gone,
    .on_notify = on_conn_notify,
    .on_close = on_conn_close,
};

/* --- start --------------------------------------------------------------- */

static int on_conn_dial(void *ctx, struct mo_conn *conn, struct mo_err *e)
{
    struct mo_child *c = ctx;
    const struct mo_upstream_opts *o = &c->up->opts;
    int rc = o->dial(o->ctx, c->up->server.name, dialed_for(c), conn, e);

    c->not_dialed = rc < 0;
    c->dials += rc == 0;
    return rc;
}

char *mo_upstream_own_caps(struct mo_span caps)
{
    struct mo_json obj = {caps.p, caps.n};
    const struct mo_edit own[] = {{MO_MCP_EXT_TASKS, MO_SPAN("{}")},
                                  {MO_MCP_EXT_SKILLS, MO_SPAN("{}")}};
    mo_autobuf struct mo_buf ext = {.max = CAPS_MAX}, all = {.max = CAPS_MAX};
    struct mo_edit ed = {"extensions", {NULL, 0}};

    (void)mo_edit(&ext, mo_json_get(obj, "extensions"), own, MO_COUNT(own));
    ed.to = mo_buf_view(&ext);
    if (mo_buf_err(&ext) || mo_edit(&all, obj, &ed, 1) < 0)
        return NULL;
    return mo_strndup(all.p, all.len);
}

static struct mo_span capabilities_of(const struct mo_child *c)
{
    const char *own = c->caps ? c->caps : c->up->caps;

    return own ? mo_span_cstr(own) : MO_SPAN(CAPS_ALL);
}

static int connect_child(struct mo_child *c, struct mo_err *e)
{
    const struct mo_upstream_opts *o = &c->up->opts;
    const struct mo_gw_server *s = &c->up->server;
    struct mo_conn_opts co = {
        .mode = s->mode,
        .open_ms = s->start_ms,
        .install_ms = s->install_ms,
        .capabilities = capabilities_of(c),
        .log_level = "debug", /* filtered per client later */
        .dial = on_conn_dial,
        .cb = &conn_cb,
        .ctx = c,
    };

    if (o->tap)
        co.tap = on_conn_tap;
    c->known = (struct mo_conn_verdict){.era = MO_ERA_UNKNOWN};
    if (o->verdict && !c->retried)
        c->known = o->verdict(o->ctx, s->name);
    co.known = c->known;
    return mo_conn_open(o->loop, &co, &c->conn, e);
}

void mo_upstream_child_start(struct mo_child *c)
{
    struct mo_err e;

    child_move(c, CH_STARTING);
    c->number = ++c->up->starts;
    c->began_ns = mo_now_ns();
    if (connect_child(c, &e) < 0)
        fail_start(c, &e);
}

static void on_idle_timeout(struct mo_timer *t)
{
    struct mo_child *c = mo_container_of(t, struct mo_child, idle);
    uint64_t since = mo_upstream_now() - c->idle_ms,
             stop_ms = c->up->server.stop_ms;

    if (c->calls || c->state != CH_OPEN)
        return;
    if (since < stop_ms)
        mo_timer_start(c->up->opts.loop, &c->idle, stop_ms - since);
    else
        mo_upstream_child_close(c, MO_ECANCELED, "stopped: idle");
}

/* The timer keeps running during calls and checks again when it fires: calls
 * come and go far more often. */
static void start_idle(struct mo_child *c)
{
    struct mo_upstream *u = c->up;

    c->idle_ms = mo_upstream_now();
    mo_list_del(&c->idle_node);
    mo_list_push(&u->pool->idle, &c->idle_node);
    if (u->server.stop_ms && !mo_timer_on(&c->idle))
        mo_timer_start(u->opts.loop, &c->idle, u->server.stop_ms);
}

void mo_child_hold(struct mo_child *c)
{
    c->calls++;
    mo_list_del(&c->idle_node);
}

struct mo_child *mo_upstream_child_new(struct mo_upstream *u,
                                       struct mo_span who, struct mo_span caps)
{
    struct mo_child *c = mo_zalloc(sizeof(*c) + who.n + 1);

    if (c == NULL)
        return NULL;
    if (u->server.per_session && caps.n) {
        c->caps = mo_strndup(caps.p, caps.n);
        if (c->caps == NULL) {
            mo_free(c);
            return NULL;
        }
    }
    c->up = u;
    c->fault_turn = UINT64_MAX;
    c->who_len = who.n;
    if (who.n)
        memcpy(c->who, who.p, who.n);
    mo_list_init(&c->requests);
    mo_list_init(&c->idle_node);
    mo_list_init(&c->queue_node);
    mo_timer_init(&c->idle, on_idle_timeout);
    mo_list_push(&u->children, &c->node);
    mo_list_push(&u->pool->queue, &c->queue_node);
    u->pool->queued++;
    u->count[CH_NEW]++;
    return c;
}

/* --- references ---------------------------------------------------------- */

void mo_upstream_child_released(struct mo_child *c)
{
    if (c->calls || !mo_list_empty(&c->requests))
        return;
    if (c->trial)
        mo_breaker_cancel_trial(&c->up->breaker);
    c->trial = false;
    if (c->state == CH_GONE)
        child_free(c);
    else if (c->orphan)
        mo_upstream_child_close(c, MO_ECANCELED, "stopped: its session ended");
    else if (c->state == CH_OPEN)
        start_idle(c);
}

void mo_child_release(struct mo_child *c)
{
    MO_BUG_ON(c->calls == 0);
    if (!mo_list_empty(&c->up->requests))
        mo_upstream_schedule(c->up);
    c->calls--;
    mo_upstream_child_released(c);
}

void mo_child_release_call(struct mo_child *c)
{
    mo_fair_queue_call_ended(c->up);
    mo_child_release(c);
}

struct mo_conn *mo_child_conn(const struct mo_child *c)
{
    return c->state == CH_OPEN ? c->conn : NULL;
}

/* --- ping ---------------------------------------------------------------- */

static void on_ping_reply(void *ctx, const struct mo_reply *r)
{
    struct mo_child *c = ctx;
    struct mo_conn *conn = mo_child_conn(c);

    if (conn && r->err && r->err->code == MO_ETIMEOUT)
        mo_conn_close(conn, mo_error(MO_ETIMEOUT, "it does not answer a ping"));
    mo_child_release(c);
}

void mo_child_ping(struct mo_child *c)
{
    struct mo_conn *conn = mo_child_conn(c);
    struct mo_call_opts o = {
        .idle_ms = MO_CHILD_PING_MS,
        .hard_ms = MO_CHILD_PING_MS,
        .done = on_ping_reply,
        .ctx = c,
    };
    const char *method = NULL;

    if (!conn)
        return;
    method = mo_conn_info(conn)->modern ? "server/discover" : "ping";
    mo_child_hold(c);
    if (!mo_conn_request(conn, method, MO_SPAN("{}"), &o, NULL))
        mo_child_release(c);
}
