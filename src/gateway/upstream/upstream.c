/* upstream.c - a server: who wants a child, who gets which, what is shown of
 * it.
 *
 * Everything that must not happen inside a call happens in on_later(): shared
 * children are given out, wishes are delivered, a change of state is told,
 * and the end is. Whatever changes anything just calls mo_upstream_changed().
 */
#include "gateway/upstream/upstream_priv.h"

uint64_t mo_upstream_now(void)
{
    return mo_now_ns() / MO_MS;
}

void mo_upstream_changed(struct mo_upstream *u)
{
    mo_loop_soon(u->o.loop, &u->later);
}

/* --- what a wish comes to ------------------------------------------------ */

/* Of a list that is not empty. */
static struct mo_child_request *first(const struct mo_list *wishes)
{
    return mo_container_of(wishes->next, struct mo_child_request, node);
}

static void put_ready(struct mo_child_request *w)
{
    mo_list_del(&w->node);
    mo_list_push(&w->up->ready, &w->node);
    mo_upstream_changed(w->up);
}

void mo_upstream_refuse(struct mo_child_request *w, enum no no)
{
    w->no = (unsigned char)no;
    w->child = NULL;
    if (w->trial)
        mo_breaker_skip(&w->up->breaker);
    w->trial = false;
    put_ready(w);
}

void mo_upstream_refuse_all(struct mo_list *wishes, enum no no)
{
    while (!mo_list_empty(wishes))
        mo_upstream_refuse(first(wishes), no);
}

void mo_upstream_grant(struct mo_child_request *w, struct mo_child *c)
{
    w->child = c;
    w->granted = true;
    mo_fair_queue_had(c->up, w);
    mo_upstream_child_busy(c);
    put_ready(w);
}

static unsigned seconds(uint64_t ms)
{
    return ms ? (unsigned)((ms + 999) / 1000) : 1;
}

static void explain(const struct mo_upstream *u, enum no no, struct mo_err *e)
{
    const char *name = u->s.name;
    unsigned pause = seconds(mo_backoff_wait(&u->backoff, mo_upstream_now()));
    unsigned broken = seconds(mo_breaker_wait(&u->breaker, mo_upstream_now()));

    switch (no) {
    case NO_NOT:
    case NO_START:
        *e = u->failed;
        (void)mo_wrap(e, "%s", name);
        break;
    case NO_PAUSE:
        (void)mo_fail(e, u->sign_in ? MO_EPOLICY : MO_EUNAVAIL,
                      "%s: %s, tried again in %u s: %s", name,
                      u->sign_in ? "a person must sign in"
                                 : "it could not be started",
                      pause, u->failed.msg);
        break;
    case NO_BROKEN:
        (void)mo_fail(e, MO_EUNAVAIL,
                      "%s: it fails again and again, tried again in %u s: %s",
                      name, broken, u->why.msg);
        break;
    case NO_ROOM:
        (void)mo_fail(e, MO_EBUSY,
                      "%s: too many servers are busy (%u in all), try later",
                      name, u->pool->running);
        break;
    case NO_TURN:
        (void)mo_fail(e, MO_EBUSY,
                      "%s: %u calls are under way and others wait, try later",
                      name, u->under_way);
        break;
    case NO_MEMORY:
        (void)mo_fail(e, MO_ENOMEM, "%s: out of memory", name);
        break;
    case NO_CLOSED:
        (void)mo_fail(e, MO_ECLOSED, "%s: it is being stopped", name);
        break;
    }
}

/* --- who gets which ------------------------------------------------------ */

static struct mo_child *least_busy(const struct mo_upstream *u)
{
    struct mo_child *best = NULL;

    mo_list_each (it, &u->children) {
        struct mo_child *c = mo_container_of(it, struct mo_child, node);

        if (c->state == CH_OPEN && (!best || c->calls < best->calls))
            best = c;
    }
    return best;
}

static bool may_start(const struct mo_upstream *u)
{
    return !u->closing && mo_backoff_wait(&u->backoff, mo_upstream_now()) == 0;
}

/* Children that will be open if all goes well. */
static unsigned coming(const struct mo_upstream *u)
{
    return u->count[CH_NEW] + u->count[CH_STARTING];
}

static bool may_grow(const struct mo_upstream *u)
{
    return u->count[CH_OPEN] < u->s.instances && may_start(u);
}

/* A child for whoever wants one. Not NO_NOT: there will be none. */
static enum no grow(struct mo_upstream *u)
{
    struct mo_child *c = NULL;

    if (!may_start(u))
        return u->closing ? NO_CLOSED : NO_PAUSE;
    c = mo_upstream_child_new(u, mo_span(NULL, 0), mo_span(NULL, 0));
    if (c == NULL)
        return NO_MEMORY;
    return mo_process_limit_settle(c) ? NO_NOT : NO_ROOM;
}

static void give_out(struct mo_upstream *u)
{
    for (;;) {
        struct mo_child_request *w = mo_fair_queue_next(u);
        struct mo_child *c = w ? least_busy(u) : NULL;
        enum no no = NO_NOT;

        if (!w)
            return;
        if (c && (c->calls == 0 || (!coming(u) && !may_grow(u)))) {
            mo_upstream_grant(w, c);
            continue;
        }
        if (coming(u))
            return;
        no = grow(u);
        if (no != NO_NOT && c)
            mo_upstream_grant(w, c);
        else if (no != NO_NOT)
            mo_upstream_refuse_all(&u->wishes, no);
    }
}

static struct mo_child *find(const struct mo_upstream *u, struct mo_span who)
{
    mo_list_each (it, &u->children) {
        struct mo_child *c = mo_container_of(it, struct mo_child, node);

        if (c->state < CH_CLOSING && mo_span_eq(mo_upstream_child_who(c), who))
            return c;
    }
    return NULL;
}

static void want_own(struct mo_upstream *u, struct mo_span who,
                     struct mo_span caps, struct mo_child_request *w)
{
    struct mo_child *c = find(u, who);
    bool fresh = c == NULL;

    if (fresh && !may_start(u)) {
        mo_upstream_refuse(w, NO_PAUSE);
        return;
    }
    if (fresh)
        c = mo_upstream_child_new(u, who, caps);
    if (c == NULL) {
        mo_upstream_refuse(w, NO_MEMORY);
        return;
    }
    c->orphan = false;
    if (c->state == CH_OPEN) {
        mo_upstream_grant(w, c);
        return;
    }
    w->child = c;
    mo_list_push(&c->wishes, &w->node);
    if (fresh)
        (void)mo_process_limit_settle(c);
}

static void want_any(struct mo_upstream *u, struct mo_child_request *w)
{
    if (w->counts && mo_fair_queue_full(u)) {
        mo_upstream_refuse(w, NO_TURN);
        return;
    }
    mo_list_push(&u->wishes, &w->node);
    mo_upstream_changed(u);
}

void mo_upstream_want(struct mo_upstream *u, struct mo_span who,
                      struct mo_span caps, struct mo_child_request *w)
{
    uint64_t now = mo_upstream_now();

    mo_list_init(&w->node);
    w->up = u;
    w->child = NULL;
    w->no = NO_NOT;
    w->granted = w->trial = false;
    w->who = w->counts ? mo_fair_queue_who(u, who) : 0;
    w->since_ms = now;
    if (u->closing) {
        mo_upstream_refuse(w, NO_CLOSED);
        return;
    }
    if (!mo_breaker_allow(&u->breaker, now)) {
        mo_upstream_refuse(w, NO_BROKEN);
        return;
    }
    w->trial = u->breaker.state == MO_BREAKER_HALF;
    if (u->s.per_session)
        want_own(u, who, caps, w);
    else
        want_any(u, w);
}

void mo_upstream_unwant(struct mo_child_request *w)
{
    struct mo_child *c = w->child;

    if (w->up == NULL)
        return;
    mo_list_del(&w->node);
    if (w->trial)
        mo_breaker_skip(&w->up->breaker);
    if (c && w->granted) {
        c->calls--;
        if (w->counts)
            mo_fair_queue_over(w->up);
    }
    w->up = NULL;
    w->child = NULL;
    if (c)
        mo_upstream_child_unused(c);
}

/* --- later --------------------------------------------------------------- */

/* Its child was lost before it had it, and nothing was sent: another one. */
static void grant_another(struct mo_upstream *u, struct mo_child_request *w)
{
    struct mo_child *c = w->child;

    mo_list_del(&w->node);
    w->child = NULL;
    w->granted = false;
    if (w->counts)
        mo_fair_queue_over(u);
    if (u->closing)
        mo_upstream_refuse(w, NO_CLOSED);
    else if (u->s.per_session)
        want_own(u, mo_upstream_child_who(c), mo_span_cstr(c->caps), w);
    else
        want_any(u, w);
    c->calls--;
    mo_upstream_child_unused(c);
}

static void deliver_one(struct mo_upstream *u, struct mo_child_request *w)
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
        explain(u, (enum no)w->no, &e);
        w->ready(w, NULL, &e);
    }
}

static enum mo_upstream_state state_of(const struct mo_upstream *u)
{
    if (mo_breaker_wait(&u->breaker, mo_upstream_now()))
        return MO_UPSTREAM_BROKEN;
    if (u->breaker.state != MO_BREAKER_CLOSED)
        return MO_UPSTREAM_FAILED;
    if (u->count[CH_OPEN])
        return MO_UPSTREAM_OK;
    if (coming(u))
        return MO_UPSTREAM_STARTING;
    if (u->sign_in)
        return MO_UPSTREAM_SIGN_IN;
    return u->why.code ? MO_UPSTREAM_FAILED : MO_UPSTREAM_COLD;
}

static void show(struct mo_upstream *u)
{
    enum mo_upstream_state now = state_of(u);

    if (now == MO_UPSTREAM_BROKEN)
        mo_timer_start(u->o.loop, &u->look,
                       mo_breaker_wait(&u->breaker, mo_upstream_now()) + 1);
    if (now == u->shown)
        return;
    u->shown = now;
    if (u->cb->on_state)
        u->cb->on_state(u->ctx, u);
}

static void on_look(struct mo_timer *t)
{
    mo_upstream_changed(mo_container_of(t, struct mo_upstream, look));
}

static void up_free(struct mo_upstream *u)
{
    mo_timer_stop(u->o.loop, &u->look);
    mo_fair_queue_fini(u);
    mo_later_cancel(&u->later);
    mo_free((void *)(uintptr_t)u->s.name);
    mo_free((void *)(uintptr_t)u->s.prefix);
    mo_free((void *)(uintptr_t)u->s.description);
    mo_free((void *)(uintptr_t)u->s.keywords);
    mo_free((void *)(uintptr_t)u->s.categories);
    mo_free(u);
}

/* Children that are gone but held keep it. */
void mo_upstream_maybe_free(struct mo_upstream *u)
{
    if (u->gone_told && mo_list_empty(&u->children))
        up_free(u);
}

static bool is_over(const struct mo_upstream *u)
{
    return u->closing && !u->gone_told && mo_list_empty(&u->ready) &&
           coming(u) + u->count[CH_OPEN] + u->count[CH_CLOSING] == 0;
}

static void tell_gone(struct mo_upstream *u)
{
    void (*gone)(void *) = u->gone;
    void *ctx = u->gone_ctx;

    u->gone_told = true;
    mo_upstream_maybe_free(u);
    gone(ctx);
}

static void on_later(struct mo_later *d)
{
    struct mo_upstream *u = mo_container_of(d, struct mo_upstream, later);

    if (u->gone_told)
        return;
    if (u->made_room) {
        u->made_room = false;
        mo_process_limit_made(u->pool);
    }
    give_out(u);
    mo_list_splice(&u->now, &u->ready);
    while (!mo_list_empty(&u->now))
        deliver_one(u, first(&u->now));
    if (mo_list_empty(&u->ready) && mo_list_empty(&u->wishes) && !u->made_room)
        mo_later_cancel(&u->later); /* that was all: not once more for it */
    if (!u->closing)
        show(u);
    if (is_over(u))
        tell_gone(u);
}

/* --- the whole ----------------------------------------------------------- */

static char *copy(const char *s)
{
    return s ? mo_strndup(s, strlen(s)) : NULL;
}

static void replace(const char **to, const char *text)
{
    const char *now = copy(text);

    if (text && !now)
        return;
    mo_free((void *)(uintptr_t)*to);
    *to = now;
}

void mo_upstream_describe(struct mo_upstream *u, const struct mo_gw_server *s)
{
    u->s.max_calls = s->max_calls;
    replace(&u->s.description, s->description);
    replace(&u->s.keywords, s->keywords);
    replace(&u->s.categories, s->categories);
}

struct mo_upstream *mo_upstream_new(const struct mo_gateway_opts *o,
                                    const struct mo_gw_server *s,
                                    const struct mo_upstream_cb *cb, void *ctx,
                                    struct mo_err *e)
{
    struct mo_upstream *u = mo_new(struct mo_upstream);

    if (u == NULL) {
        (void)mo_fail(e, MO_ENOMEM, "%s: out of memory", s->name);
        return NULL;
    }
    u->o = *o;
    u->s = *s;
    u->s.fallback =
        (struct mo_gw_texts){NULL, 0}; /* server_overrides.h's, not ours */
    u->s.tools = NULL;
    u->s.ntools = 0;
    u->s.name = copy(s->name);
    u->s.prefix = copy(s->prefix);
    u->s.description = copy(s->description);
    u->s.keywords = copy(s->keywords);
    u->s.categories = copy(s->categories);
    u->s.instances = s->instances == 0 ? 1
                     : s->instances > MO_UPSTREAM_CHILDREN_MAX
                         ? MO_UPSTREAM_CHILDREN_MAX
                         : s->instances;
    u->cb = cb;
    u->ctx = ctx;
    mo_upstream_pool_init(&u->own, 0);
    u->pool = &u->own;
    mo_list_init(&u->children);
    mo_list_init(&u->wishes);
    mo_list_init(&u->ready);
    mo_list_init(&u->now);
    mo_later_init(&u->later, on_later);
    mo_timer_init(&u->look, on_look);
    mo_fair_queue_init(u);
    if (!u->s.name || (s->prefix && !u->s.prefix) ||
        (s->description && !u->s.description) ||
        (s->keywords && !u->s.keywords) ||
        (s->categories && !u->s.categories)) {
        up_free(u);
        (void)mo_fail(e, MO_ENOMEM, "%s: out of memory", s->name);
        return NULL;
    }
    return u;
}

void mo_upstream_join(struct mo_upstream *u, struct mo_upstream_pool *p)
{
    MO_BUG_ON(!mo_list_empty(&u->children));
    u->pool = p;
}

void mo_upstream_close(struct mo_upstream *u, void (*gone)(void *ctx),
                       void *ctx)
{
    MO_BUG_ON(u->closing);
    u->closing = true;
    u->gone = gone;
    u->gone_ctx = ctx;
    mo_timer_stop(u->o.loop, &u->look);
    mo_timer_stop(u->o.loop, &u->tired);
    mo_upstream_refuse_all(&u->wishes, NO_CLOSED);
    mo_list_each_safe (it, &u->children) {
        struct mo_child *c = mo_container_of(it, struct mo_child, node);

        mo_upstream_refuse_all(&c->wishes, NO_CLOSED);
        mo_upstream_child_close(c, MO_ECANCELED, "the server is being stopped");
    }
    mo_upstream_changed(u);
}

const struct mo_gw_server *mo_upstream_server(const struct mo_upstream *u)
{
    return &u->s;
}

static unsigned length(const struct mo_list *l)
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
        .waiting = length(&u->wishes) + length(&u->ready),
        .starts = u->starts,
        .fails = u->fails,
        .heard_at = u->heard_at,
        .good_at = u->good_at,
        .row = u->row,
        .breaker = u->breaker.state,
        .why = u->why,
    };
    if (u->count[CH_OPEN])
        pause = 0; /* of another instance: nobody waits for it */
    out->retry_ms = pause > broken ? pause : broken;
    mo_list_each (it, &u->children) {
        const struct mo_child *c = mo_container_of(it, struct mo_child, node);

        out->calls += c->state == CH_OPEN ? c->calls : 0;
        out->waiting += length(&c->wishes);
    }
}

void mo_upstream_again(struct mo_upstream *u)
{
    mo_backoff_reset(&u->backoff);
    mo_breaker_reset(&u->breaker);
    u->sign_in = false;
    mo_upstream_changed(u);
}

void mo_upstream_session_gone(struct mo_upstream *u, struct mo_span who)
{
    if (!u->s.per_session)
        return;
    mo_list_each_safe (it, &u->children) {
        struct mo_child *c = mo_container_of(it, struct mo_child, node);

        if (c->state >= CH_CLOSING ||
            !mo_span_eq(mo_upstream_child_who(c), who))
            continue;
        c->orphan = true;
        mo_upstream_child_unused(c);
    }
}
