/* upstream.c - requests for children, and the status of a server.
 *
 * Work that must not happen inside a caller's call is done in on_later():
 * granting shared children, delivering requests and the end. Any change only
 * calls mo_upstream_schedule(). */
#include "gateway/upstream/upstream_priv.h"

uint64_t mo_upstream_now(void)
{
    return mo_now_ns() / MO_MS;
}

void mo_upstream_schedule(struct mo_upstream *u)
{
    mo_loop_soon(u->opts.loop, &u->later);
}

/* --- granting and refusing ----------------------------------------------- */

static void move_to_ready(struct mo_child_request *w)
{
    mo_list_del(&w->node);
    mo_list_push(&w->up->ready, &w->node);
    mo_upstream_schedule(w->up);
}

void mo_upstream_refuse(struct mo_child_request *w, enum refusal refusal)
{
    w->refusal = (unsigned char)refusal;
    w->child = NULL;
    if (w->trial)
        mo_breaker_cancel_trial(&w->up->breaker);
    w->trial = false;
    move_to_ready(w);
}

void mo_upstream_refuse_all(struct mo_list *requests, enum refusal refusal)
{
    mo_list_each_entry_safe (w, requests, struct mo_child_request, node)
        mo_upstream_refuse(w, refusal);
}

void mo_upstream_grant(struct mo_child_request *w, struct mo_child *c)
{
    w->child = c;
    w->granted = true;
    mo_fair_queue_granted(c->up, w);
    mo_child_hold(c);
    move_to_ready(w);
}

static unsigned round_up_seconds(uint64_t ms)
{
    return ms ? (unsigned)((ms + 999) / 1000) : 1;
}

static void explain_refusal(const struct mo_upstream *u, enum refusal refusal,
                            struct mo_err *e)
{
    const char *name = u->server.name;
    unsigned pause =
        round_up_seconds(mo_backoff_wait(&u->backoff, mo_upstream_now()));
    unsigned broken =
        round_up_seconds(mo_breaker_wait(&u->breaker, mo_upstream_now()));

    switch (refusal) {
    case REFUSED_SIGN_IN:
        (void)mo_fail(e, MO_EPOLICY,
                      "%s: it does not accept your credentials; connect to it "
                      "again",
                      name);
        break;
    case NOT_REFUSED:
    case REFUSED_START:
        *e = u->failed;
        (void)mo_wrap(e, "%s", name);
        break;
    case REFUSED_BACKOFF:
        (void)mo_fail(e, u->sign_in ? MO_EPOLICY : MO_EUNAVAIL,
                      "%s: %s; tried again in %u s: %s", name,
                      u->sign_in ? "a person must sign in"
                                 : "the server could not be started",
                      pause, u->failed.msg);
        break;
    case REFUSED_BREAKER:
        (void)mo_fail(
            e, MO_EUNAVAIL,
            "%s: the server fails again and again; tried again in %u s: %s",
            name, broken, u->why.msg);
        break;
    case REFUSED_ROOM:
        (void)mo_fail(e, MO_EBUSY,
                      "%s: no free place for another server process (%u are "
                      "running, none is idle); try again later",
                      name, u->pool->running);
        break;
    case REFUSED_QUEUE:
        (void)mo_fail(e, MO_EBUSY,
                      "%s: the server is busy (%u calls under way, others "
                      "wait); try again later",
                      name, u->under_way);
        break;
    case REFUSED_MEMORY:
        (void)mo_fail(e, MO_ENOMEM, "%s: out of memory", name);
        break;
    case REFUSED_CLOSED:
        (void)mo_fail(e, MO_ECLOSED, "%s: the server is being stopped", name);
        break;
    }
}

/* --- number of children --------------------------------------------------
 *
 * A closing child still takes its place. A NEW child waits only while a place
 * is about to become free; otherwise its requests fail at once. */

void mo_upstream_pool_init(struct mo_upstream_pool *p, unsigned max)
{
    *p = (struct mo_upstream_pool){.max = max ? max : MO_UPSTREAM_POOL_MAX};
    mo_list_init(&p->idle);
    mo_list_init(&p->queue);
}

static unsigned child_limit(const struct mo_upstream *u)
{
    if (u->server.per_person)
        return MO_UPSTREAM_PERSONS_MAX;
    return u->server.per_session ? MO_UPSTREAM_CHILDREN_MAX
                                 : u->server.instances;
}

/* Each session or person has a child of its own. */
static bool has_own_children(const struct mo_upstream *u)
{
    return u->server.per_session || u->server.per_person;
}

static unsigned count_running(const struct mo_upstream *u)
{
    return u->count[CH_STARTING] + u->count[CH_OPEN] + u->count[CH_CLOSING];
}

/* True while the session's previous child is closing: a session has one
 * child at a time. */
static bool has_closing_twin(const struct mo_child *c)
{
    if (!has_own_children(c->up) || c->up->count[CH_CLOSING] == 0)
        return false;
    mo_list_each_entry (t, &c->up->children, struct mo_child, node) {
        if (t->state == CH_CLOSING &&
            mo_span_eq(mo_child_who(t), mo_child_who(c)))
            return true;
    }
    return false;
}

static bool has_room(const struct mo_child *c)
{
    return c->up->pool->running < c->up->pool->max &&
           count_running(c->up) < child_limit(c->up) && !has_closing_twin(c);
}

static bool close_oldest_idle(struct mo_upstream_pool *p,
                              const struct mo_upstream *of)
{
    mo_list_each_entry (c, &p->idle, struct mo_child, idle_node) {
        if (of && c->up != of)
            continue;
        mo_upstream_child_close(c, MO_ECANCELED,
                                "stopped to make room for another server");
        return true;
    }
    return false;
}

/* True if a place is about to become free. Closes an idle child if needed. */
static bool make_room(const struct mo_child *c)
{
    struct mo_upstream *u = c->up;
    struct mo_upstream_pool *p = u->pool;

    if (count_running(u) >= child_limit(u) &&
        u->count[CH_CLOSING] < u->count[CH_NEW] && !close_oldest_idle(p, u))
        return false;
    return p->running < p->max || p->closing >= p->queued ||
           close_oldest_idle(p, NULL);
}

/* Starts a NEW child, leaves it queued, or ends it (false). */
static bool admit_child(struct mo_child *c)
{
    if (has_room(c))
        mo_upstream_child_start(c);
    else if (!make_room(c)) {
        mo_upstream_child_end(c, REFUSED_ROOM);
        return false;
    }
    return true;
}

/* A place is free. Safe to iterate: admitting a child takes no other child out
 * of the queue, since ends are handled later. */
static void admit_queued(struct mo_upstream_pool *p)
{
    mo_list_each_safe (it, &p->queue)
        (void)admit_child(mo_container_of(it, struct mo_child, queue_node));
}

/* --- choosing a child ---------------------------------------------------- */

static struct mo_child *least_busy(const struct mo_upstream *u)
{
    struct mo_child *best = NULL;

    mo_list_each_entry (c, &u->children, struct mo_child, node) {
        if (c->state == CH_OPEN && (!best || c->calls < best->calls))
            best = c;
    }
    return best;
}

static bool may_start(const struct mo_upstream *u)
{
    return !u->closing && mo_backoff_wait(&u->backoff, mo_upstream_now()) == 0;
}

/* Children that will be open unless their start fails. */
static unsigned count_coming(const struct mo_upstream *u)
{
    return u->count[CH_NEW] + u->count[CH_STARTING];
}

static bool may_start_another(const struct mo_upstream *u)
{
    return u->count[CH_OPEN] < u->server.instances && may_start(u);
}

/* Starts one more shared child. NOT_REFUSED: one is coming. */
static enum refusal start_another(struct mo_upstream *u)
{
    struct mo_child *c = NULL;

    if (!may_start(u))
        return u->closing ? REFUSED_CLOSED : REFUSED_BACKOFF;
    c = mo_upstream_child_new(u, mo_span(NULL, 0), mo_span(NULL, 0));
    if (c == NULL)
        return REFUSED_MEMORY;
    return admit_child(c) ? NOT_REFUSED : REFUSED_ROOM;
}

static void grant_shared(struct mo_upstream *u)
{
    for (;;) {
        struct mo_child_request *w = mo_fair_queue_next(u);
        struct mo_child *c = w ? least_busy(u) : NULL;
        enum refusal refusal = NOT_REFUSED;

        if (!w)
            return;
        if (c &&
            (c->calls == 0 || (!count_coming(u) && !may_start_another(u)))) {
            mo_upstream_grant(w, c);
            continue;
        }
        if (count_coming(u))
            return;
        refusal = start_another(u);
        if (refusal != NOT_REFUSED && c)
            mo_upstream_grant(w, c);
        else if (refusal != NOT_REFUSED)
            mo_upstream_refuse_all(&u->requests, refusal);
    }
}

static struct mo_child *find_session_child(const struct mo_upstream *u,
                                           struct mo_span who)
{
    mo_list_each_entry (c, &u->children, struct mo_child, node) {
        if (c->state < CH_CLOSING && mo_span_eq(mo_child_who(c), who))
            return c;
    }
    return NULL;
}

static void request_own_child(struct mo_upstream *u, struct mo_span who,
                              struct mo_span caps, struct mo_child_request *w)
{
    struct mo_child *c = find_session_child(u, who);
    bool fresh = c == NULL;

    if (fresh && !may_start(u)) {
        mo_upstream_refuse(w, REFUSED_BACKOFF);
        return;
    }
    if (fresh)
        c = mo_upstream_child_new(u, who, caps);
    if (c == NULL) {
        mo_upstream_refuse(w, REFUSED_MEMORY);
        return;
    }
    c->orphan = false;
    if (c->state == CH_OPEN) {
        mo_upstream_grant(w, c);
        return;
    }
    w->child = c;
    mo_list_push(&c->requests, &w->node);
    if (fresh)
        (void)admit_child(c);
}

static void request_shared_child(struct mo_upstream *u,
                                 struct mo_child_request *w)
{
    if (w->counts && mo_fair_queue_full(u)) {
        mo_upstream_refuse(w, REFUSED_QUEUE);
        return;
    }
    mo_list_push(&u->requests, &w->node);
    mo_upstream_schedule(u);
}

void mo_upstream_request_child(struct mo_upstream *u, struct mo_span who,
                               struct mo_span caps, struct mo_child_request *w)
{
    uint64_t now = mo_upstream_now();

    mo_list_init(&w->node);
    w->up = u;
    w->child = NULL;
    w->refusal = NOT_REFUSED;
    w->granted = w->trial = false;
    w->who = w->counts ? mo_fair_queue_caller(u, who) : 0;
    w->since_ms = now;
    if (u->closing) {
        mo_upstream_refuse(w, REFUSED_CLOSED);
        return;
    }
    if (!mo_breaker_allow(&u->breaker, now)) {
        mo_upstream_refuse(w, REFUSED_BREAKER);
        return;
    }
    w->trial = u->breaker.state == MO_BREAKER_HALF;
    if (u->pool->single && !u->caps && caps.n)
        u->caps = mo_upstream_own_caps(caps);
    if (has_own_children(u))
        request_own_child(u, who, caps, w);
    else
        request_shared_child(u, w);
}

void mo_upstream_cancel_request(struct mo_child_request *w)
{
    struct mo_child *c = w->child;

    if (w->up == NULL)
        return;
    mo_list_del(&w->node);
    if (w->trial)
        mo_breaker_cancel_trial(&w->up->breaker);
    if (c && w->granted) {
        c->calls--;
        if (w->counts)
            mo_fair_queue_call_ended(w->up);
    }
    w->up = NULL;
    w->child = NULL;
    if (c)
        mo_upstream_child_released(c);
}

/* --- deferred work ------------------------------------------------------- */

/* The granted child was lost before delivery and nothing was sent: request
 * another one. */
static void grant_another(struct mo_upstream *u, struct mo_child_request *w)
{
    struct mo_child *c = w->child;

    mo_list_del(&w->node);
    w->child = NULL;
    w->granted = false;
    if (w->counts)
        mo_fair_queue_call_ended(u);
    if (u->closing)
        mo_upstream_refuse(w, REFUSED_CLOSED);
    else if (has_own_children(u))
        request_own_child(u, mo_child_who(c), mo_span_cstr(c->caps), w);
    else
        request_shared_child(u, w);
    c->calls--;
    mo_upstream_child_released(c);
}

static void deliver_request(struct mo_upstream *u, struct mo_child_request *w)
{
    struct mo_child *c = w->child;
    struct mo_err e;

    if (c && c->state != CH_OPEN) {
        grant_another(u, w);
        return;
    }
    mo_list_del(&w->node);
    w->up = NULL;
    if (c) {
        c->trial = c->trial || w->trial;
        w->ready(w, c, NULL);
    } else {
        explain_refusal(u, (enum refusal)w->refusal, &e);
        w->ready(w, NULL, &e);
    }
}

static bool is_installing(const struct mo_upstream *u)
{
    mo_list_each_entry (c, &u->children, const struct mo_child, node) {
        const struct mo_link *k =
            c->state == CH_STARTING ? mo_conn_link(c->conn) : NULL;

        if (k && mo_link_is_installing(k))
            return true;
    }
    return false;
}

static enum mo_upstream_state state_of(const struct mo_upstream *u)
{
    if (mo_breaker_wait(&u->breaker, mo_upstream_now()))
        return MO_UPSTREAM_BROKEN;
    if (u->breaker.state != MO_BREAKER_CLOSED)
        return MO_UPSTREAM_FAILED;
    if (u->count[CH_OPEN])
        return MO_UPSTREAM_OK;
    if (count_coming(u))
        return is_installing(u) ? MO_UPSTREAM_INSTALLING : MO_UPSTREAM_STARTING;
    if (u->sign_in)
        return MO_UPSTREAM_SIGN_IN;
    return u->why.code ? MO_UPSTREAM_FAILED : MO_UPSTREAM_COLD;
}

static void upstream_free(struct mo_upstream *u)
{
    mo_fair_queue_fini(u);
    mo_later_cancel(&u->later);
    mo_free(u->caps);
    mo_free((void *)(uintptr_t)u->server.name);
    mo_free(u);
}

/* Frees u after gone(), unless held children remain. */
void mo_upstream_maybe_free(struct mo_upstream *u)
{
    if (u->gone_called && mo_list_empty(&u->children))
        upstream_free(u);
}

static bool is_close_done(const struct mo_upstream *u)
{
    return u->closing && !u->gone_called && mo_list_empty(&u->ready) &&
           count_coming(u) + u->count[CH_OPEN] + u->count[CH_CLOSING] == 0;
}

static void call_gone(struct mo_upstream *u)
{
    struct mo_gone gone = u->gone;

    u->gone_called = true;
    mo_upstream_maybe_free(u);
    mo_gone_fire(gone);
}

static void on_later(struct mo_later *d)
{
    struct mo_upstream *u = mo_container_of(d, struct mo_upstream, later);

    if (u->gone_called)
        return;
    if (u->freed_place) {
        u->freed_place = false;
        admit_queued(u->pool);
    }
    grant_shared(u);
    mo_list_splice(&u->delivering, &u->ready);
    while (!mo_list_empty(&u->delivering))
        deliver_request(u, mo_container_of(u->delivering.next,
                                           struct mo_child_request, node));
    if (mo_list_empty(&u->ready) && mo_list_empty(&u->requests) &&
        !u->freed_place)
        mo_later_cancel(&u->later); /* nothing left to do */
    if (is_close_done(u))
        call_gone(u);
}

/* --- life ---------------------------------------------------------------- */

void mo_upstream_reconfigure(struct mo_upstream *u,
                             const struct mo_gw_server *s)
{
    u->server.max_calls = s->max_calls;
}

struct mo_upstream *mo_upstream_new(const struct mo_upstream_opts *o,
                                    const struct mo_gw_server *s,
                                    const struct mo_upstream_cb *cb, void *ctx,
                                    struct mo_err *e)
{
    struct mo_upstream *u = mo_new(struct mo_upstream);

    if (u == NULL)
        return mo_null(mo_fail(e, MO_ENOMEM, "%s: out of memory", s->name));
    u->opts = *o;
    u->server = *s;
    u->server.prefix = u->server.description = u->server.keywords =
        u->server.categories = NULL; /* kept by the catalogue */
    u->server.fallback = (struct mo_config_list){NULL, 0};
    u->server.tools = NULL;
    u->server.ntools = 0;
    u->server.name = mo_strndup(s->name, strlen(s->name));
    u->server.instances = s->instances == 0 ? 1
                          : s->instances > MO_UPSTREAM_CHILDREN_MAX
                              ? MO_UPSTREAM_CHILDREN_MAX
                              : s->instances;
    u->cb = cb;
    u->ctx = ctx;
    mo_upstream_pool_init(&u->own, 0);
    u->pool = &u->own;
    mo_list_init(&u->children);
    mo_list_init(&u->requests);
    mo_list_init(&u->ready);
    mo_list_init(&u->delivering);
    mo_later_init(&u->later, on_later);
    mo_fair_queue_init(u);
    if (!u->server.name) {
        upstream_free(u);
        return mo_null(mo_fail(e, MO_ENOMEM, "%s: out of memory", s->name));
    }
    return u;
}

void mo_upstream_join_pool(struct mo_upstream *u, struct mo_upstream_pool *p)
{
    MO_BUG_ON(!mo_list_empty(&u->children));
    u->pool = p;
}

void mo_upstream_close(struct mo_upstream *u, void (*gone)(void *ctx),
                       void *ctx)
{
    MO_BUG_ON(u->closing);
    u->closing = true;
    u->gone = (struct mo_gone){gone, ctx};
    mo_timer_stop(u->opts.loop, &u->queue_timer);
    mo_upstream_refuse_all(&u->requests, REFUSED_CLOSED);
    mo_list_each_entry_safe (c, &u->children, struct mo_child, node) {
        mo_upstream_refuse_all(&c->requests, REFUSED_CLOSED);
        mo_upstream_child_close(c, MO_ECANCELED, "the server is being stopped");
    }
    mo_upstream_schedule(u);
}

const struct mo_gw_server *mo_upstream_server(const struct mo_upstream *u)
{
    return &u->server;
}

static unsigned list_length(const struct mo_list *l)
{
    unsigned n = 0;

    mo_list_each (it, l)
        n++;
    return n;
}

void mo_upstream_status(const struct mo_upstream *u,
                        struct mo_upstream_status *out)
{
    uint64_t now = mo_upstream_now(), pause = mo_backoff_wait(&u->backoff, now),
             broken = mo_breaker_wait(&u->breaker, now);

    *out = (struct mo_upstream_status){
        .state = state_of(u),
        .children = u->count[CH_OPEN],
        .waiting = list_length(&u->requests) + list_length(&u->ready),
        .starts = u->starts,
        .fails = u->fails,
        .heard_at = u->heard_at,
        .good_at = u->good_at,
        .row = u->row,
        .breaker = u->breaker.state,
        .why = u->why,
    };
    if (u->count[CH_OPEN])
        pause = 0; /* only affects a further instance */
    out->retry_ms = pause > broken ? pause : broken;
    mo_list_each_entry (c, &u->children, const struct mo_child, node) {
        out->calls += c->state == CH_OPEN ? c->calls : 0;
        out->waiting += list_length(&c->requests);
    }
}

void mo_upstream_retry_now(struct mo_upstream *u)
{
    mo_backoff_reset(&u->backoff);
    mo_breaker_reset(&u->breaker);
    u->sign_in = false;
    mo_upstream_schedule(u);
}

void mo_upstream_close_child_of(struct mo_upstream *u, struct mo_span who)
{
    mo_list_each_entry_safe (c, &u->children, struct mo_child, node) {
        if (c->state < CH_CLOSING && mo_span_eq(mo_child_who(c), who))
            mo_upstream_child_close(c, MO_ECANCELED, "disconnected");
    }
}

void mo_upstream_session_gone(struct mo_upstream *u, struct mo_span who)
{
    if (!u->server.per_session)
        return;
    mo_list_each_entry_safe (c, &u->children, struct mo_child, node) {
        if (c->state >= CH_CLOSING || !mo_span_eq(mo_child_who(c), who))
            continue;
        c->orphan = true;
        mo_upstream_child_released(c);
    }
}
