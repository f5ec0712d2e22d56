/* hold.c - the users of a session: their callbacks and requests.
 *
 * News for a hold is a set of bits and one deferred call that reports the
 * lowest of them. So a callback may release any hold, this one included, and
 * none fires from inside a call. Notifications of the server are the
 * exception: they are passed on at once, and the walk over the holds keeps its
 * place in s->walk, which a release advances. */
#include "codec/json/json.h"
#include "session/priv.h"

/* --- news ---------------------------------------------------------------- */

static void hold_free(struct mo_hold *h)
{
    struct mo_sessions *ss = h->ss;

    mo_later_cancel(&h->later);
    mo_list_del(&h->node);
    ss->stats.holds--;
    mo_free(h);
}

static void tell_closed(struct mo_hold *h)
{
    struct mo_hold was = *h;

    if (!mo_list_empty(&h->asks))
        return; /* the answers come first; the last one tells */
    hold_free(h);
    was.cb->on_closed(was.ctx, was.reason, was.why.code ? &was.why : NULL);
    mo_sessions_settle(was.ss);
}

static void tell_hold(struct mo_hold *h, enum news what)
{
    struct session *s = h->s;

    switch (what) {
    case N_READY:
        h->ready = true;
        h->cb->on_ready(h->ctx, h, &s->info);
        break;
    case N_LOST:
        h->cb->on_box(h->ctx, h, &s->end, NULL);
        break;
    case N_BOX:
        h->cb->on_box(h->ctx, h, NULL, &s->info);
        break;
    case N_IDLE:
        h->cb->on_idle(h->ctx, h, h->idle_left);
        break;
    case N_CLOSED:
        tell_closed(h);
        break;
    }
}

static void on_news(struct mo_later *d)
{
    struct mo_hold *h = mo_container_of(d, struct mo_hold, later);
    unsigned lowest = h->news & -h->news;

    h->news &= ~lowest;
    if (h->news)
        mo_loop_defer(h->ss->loop, &h->later);
    tell_hold(h, (enum news)lowest);
}

void mo_hold_tell(struct mo_hold *h, enum news what)
{
    h->news |= what;
    mo_loop_defer(h->ss->loop, &h->later);
}

void mo_holds_tell(struct session *s, enum news what)
{
    mo_list_each_entry (h, &s->holds, struct mo_hold, node) {
        /* A hold that was not told of the box is not told of its loss. */
        if (h->ready || (h->news & N_READY))
            mo_hold_tell(h, what);
    }
}

/* --- what they asked for ------------------------------------------------- */

static void ask_free(struct ask *a)
{
    mo_later_cancel(&a->later);
    mo_list_del(&a->node);
    mo_list_del(&a->mine);
    mo_free(a);
}

/* The hold would have to start a box, and must not. */
static bool is_boxless_visit(const struct mo_hold *h)
{
    return h->visits && (h->s->state == S_BOXLESS || h->s->state == S_LOSING);
}

/* The session may have lost its box again: then the request goes on waiting. */
static bool waits_again(struct ask *a)
{
    struct session *s = a->s;

    if (!s || !a->used || a->why.code || s->state == S_READY)
        return false;
    if (is_boxless_visit(a->h)) {
        (void)mo_fail(&a->why, MO_EPOLICY, MO_SESSION_NO_BOX);
        return false;
    }
    mo_list_push(&s->uses, &a->node);
    if (s->state == S_BOXLESS)
        mo_session_start_box(s);
    return true;
}

static void on_ask_later(struct mo_later *d)
{
    struct ask *a = mo_container_of(d, struct ask, later);
    struct ask told = *a;

    if (waits_again(a))
        return;
    ask_free(a);
    if (!told.h->s && mo_list_empty(&told.h->asks))
        mo_hold_tell(told.h, N_CLOSED);
    if (told.kept)
        told.kept(told.ctx, told.why.code ? &told.why : NULL);
    else if (told.why.code)
        told.used(told.ctx, NULL, &told.why);
    else
        told.used(told.ctx, &told.s->info, NULL);
}

static void ask_answer(struct ask *a, const struct mo_err *why)
{
    mo_list_del(&a->node);
    if (why)
        a->why = *why;
    mo_loop_defer(a->h->ss->loop, &a->later);
}

void mo_session_answer_uses(struct session *s, const struct mo_err *why)
{
    mo_list_each_entry_safe (a, &s->uses, struct ask, node)
        ask_answer(a, why);
}

static struct ask *ask_new(struct mo_hold *h, void *ctx)
{
    struct ask *a = mo_new(struct ask);

    if (!a)
        return NULL;
    *a = (struct ask){.h = h, .s = h->s, .ctx = ctx};
    mo_list_init(&a->node);
    mo_later_init(&a->later, on_ask_later);
    mo_list_push(&h->asks, &a->mine);
    return a;
}

void mo_session_trace(struct mo_hold *h, const struct mo_trace_span *span)
{
    struct mo_trace out = {0};

    if (h->s && h->s->state == S_BOXLESS)
        mo_trace_send(span, &out, h->s->traceparent);
}

int mo_session_use(struct mo_hold *h, mo_session_used_fn *done, void *ctx,
                   struct mo_err *e)
{
    struct session *s = h->s;
    struct ask *a;

    if (!s)
        return mo_fail(e, MO_ECLOSED, "the session has ended");
    if (is_boxless_visit(h))
        return mo_fail(e, MO_EPOLICY, MO_SESSION_NO_BOX);
    a = ask_new(h, ctx);
    if (!a)
        return mo_fail(e, MO_ENOMEM, "session %s", s->id);
    a->used = done;
    mo_list_push(&s->uses, &a->node);
    if (s->state == S_READY)
        ask_answer(a, NULL);
    else if (s->state == S_BOXLESS)
        mo_session_start_box(s);
    return 0;
}

/* The hold may have been released; the write counts all the same. */
static void on_kept(void *ctx, const struct mo_written *w,
                    const struct mo_err *why)
{
    struct ask *a = ctx;
    struct session *s = a->s;

    (void)w;
    if (a->h)
        ask_answer(a, why);
    else
        ask_free(a);
    (void)mo_session_landed(s);
}

int mo_session_keep(struct mo_hold *h, struct mo_span data, mo_done_fn *done,
                    void *ctx, struct mo_err *e)
{
    struct session *s = h->s;
    struct mo_json_doc doc;
    struct ask *a;
    int rc;

    if (!s)
        return mo_fail(e, MO_ECLOSED, "the session has ended");
    if (!h->ready)
        return mo_fail(e, MO_EINVAL, "session %s is not ready yet", s->id);
    if (data.n > MO_SESSION_DATA_MAX)
        return mo_fail(e, MO_ETOOBIG, "session %s: over %zu bytes to keep",
                       s->id, MO_SESSION_DATA_MAX);
    rc = mo_json_parse(data, 0, &doc, e);
    if (rc < 0)
        return rc;
    a = ask_new(h, ctx);
    if (!a)
        return mo_fail(e, MO_ENOMEM, "session %s", s->id);
    a->kept = done;
    rc = mo_buf_set(&s->data, data);
    if (rc < 0)
        (void)mo_fail(e, rc, "session %s", s->id);
    else
        rc = mo_session_keep_row(s, on_kept, a, e);
    if (rc < 0)
        ask_free(a);
    s->info.data = mo_buf_view(&s->data);
    return rc;
}

/* --- the server in the box ----------------------------------------------- */

void mo_holds_notify(struct session *s, const struct mo_rpc *m)
{
    s->walk = s->holds.next;
    while (s->walk != &s->holds) {
        struct mo_hold *h = mo_container_of(s->walk, struct mo_hold, node);

        s->walk = s->walk->next;
        if (h->ready && h->cb->on_notify)
            h->cb->on_notify(h->ctx, h, m);
    }
    s->walk = NULL;
}

bool mo_holds_ask(struct session *s, struct mo_ask *a)
{
    mo_list_each_entry (h, &s->holds, struct mo_hold, node) {
        if (h->ready && h->cb->on_ask) {
            h->cb->on_ask(h->ctx, h, a);
            return true;
        }
    }
    return false;
}

/* --- whose it is --------------------------------------------------------- */

static int not_there(struct mo_err *e)
{
    return mo_fail(e, MO_ENOTFOUND, "there is no such session");
}

static bool is_owner(const struct session *s, const struct mo_hold *h)
{
    return !h->owner[0] || strcmp(h->owner, s->row.owner) == 0;
}

bool mo_holds_owned(const struct session *s)
{
    mo_list_each_entry (h, &s->holds, struct mo_hold, node)
        if (h->owner[0])
            return true;
    return false;
}

/* --- coming and going ---------------------------------------------------- */

static int find_or_make(struct mo_sessions *ss, struct mo_span id,
                        struct session **out, bool *fresh, struct mo_err *e)
{
    size_t n = 0;

    *out = mo_map_get(&ss->map, id);
    *fresh = !*out;
    if (*fresh)
        return mo_session_new(ss, id, out, e);
    mo_list_each (it, &(*out)->holds)
        n++;
    if (n >= MO_SESSION_HOLDS_MAX)
        return mo_fail(e, MO_EBUSY, "session %s has %d users already",
                       (*out)->id, MO_SESSION_HOLDS_MAX);
    return 0;
}

/* The row was read and is not going to be read again. */
static bool has_owner(const struct session *s)
{
    return s->state != S_WAITING && s->state != S_READING &&
           s->state != S_ENDING;
}

int mo_session_hold(struct mo_sessions *ss, struct mo_span id,
                    struct mo_span owner, const struct mo_hold_cb *cb,
                    void *ctx, struct mo_hold **out, struct mo_err *e)
{
    struct mo_hold *h = mo_new(struct mo_hold);
    struct session *s = NULL;
    bool fresh = false;
    int rc = 0;

    if (!h)
        return mo_fail(e, MO_ENOMEM, "session");
    if (owner.n >= sizeof(h->owner))
        rc = mo_fail(e, MO_EINVAL, "the owner's name is too long");
    if (rc == 0 && owner.n)
        memcpy(h->owner, owner.p, owner.n);
    if (rc == 0)
        rc = find_or_make(ss, id, &s, &fresh, e);
    if (rc == 0 && has_owner(s) && !is_owner(s, h))
        rc = not_there(e);
    if (rc < 0 || !s) {
        mo_free(h);
        return rc;
    }
    h->ss = ss;
    h->s = s;
    h->cb = cb;
    h->ctx = ctx;
    mo_later_init(&h->later, on_news);
    mo_list_init(&h->asks);
    mo_list_push(&s->holds, &h->node);
    ss->stats.holds++;
    *out = h;
    if (s->state == S_READY || s->state == S_BOXLESS) {
        mo_session_touched(s);
        mo_hold_tell(h, N_READY);
    }
    if (fresh)
        mo_session_begin(s); /* may free s, not h */
    return 0;
}

void mo_session_visits(struct mo_hold *h)
{
    h->visits = true;
}

bool mo_holds_only_visit(const struct session *s)
{
    mo_list_each_entry (h, &s->holds, struct mo_hold, node)
        if (!h->visits)
            return false;
    return !mo_list_empty(&s->holds);
}

void mo_session_may_move(struct mo_hold *h, uint64_t wait_ms)
{
    h->may_move = true;
    h->move_ms = wait_ms;
}

bool mo_holds_may_move(const struct session *s, uint64_t *wait_ms)
{
    *wait_ms = 0;
    mo_list_each_entry (h, &s->holds, struct mo_hold, node) {
        if (!h->may_move)
            return false;
        if (h->move_ms > *wait_ms)
            *wait_ms = h->move_ms;
    }
    return !mo_list_empty(&s->holds);
}

/* Subtracts the hold from the session's counts. */
static void detach_hold(struct mo_hold *h)
{
    struct session *s = h->s;

    if (s->walk == &h->node)
        s->walk = h->node.next;
    s->busy -= h->busy;
    mo_list_del(&h->node);
    h->busy = 0;
    h->s = NULL;
}

/* Ends one hold; its requests fail with why. */
static void end_hold(struct mo_hold *h, const char *reason,
                     const struct mo_err *why)
{
    detach_hold(h);
    mo_list_push(&h->ss->parting, &h->node);
    h->reason = reason;
    h->news = 0;
    mo_list_each_entry (ask, &h->asks, struct ask, mine) {
        if (ask->used && !ask->why.code)
            ask_answer(ask, why);
    }
    mo_hold_tell(h, N_CLOSED);
}

void mo_holds_part(struct session *s, const char *reason,
                   const struct mo_err *why)
{
    mo_list_each_entry_safe (h, &s->holds, struct mo_hold, node) {
        end_hold(h, reason,
                 why ? why
                     : mo_error(MO_ECLOSED, "the session has ended (%s)",
                                reason ? reason : "released"));
        if (why)
            h->why = *why;
    }
}

void mo_holds_sort(struct session *s)
{
    struct mo_hold *first = mo_list_first(&s->holds, struct mo_hold, node);
    struct mo_err e;

    if (first == NULL)
        return;
    if (!s->known)
        memcpy(s->row.owner, first->owner, sizeof(s->row.owner));
    (void)not_there(&e);
    mo_list_each_entry_safe (h, &s->holds, struct mo_hold, node) {
        if (is_owner(s, h))
            continue;
        end_hold(h, "failed", &e);
        h->why = e;
    }
}

void mo_session_release(struct mo_hold *h)
{
    struct session *s = h->s;

    mo_list_each_entry_safe (a, &h->asks, struct ask, mine) {
        if (a->kept && mo_list_empty(&a->later.node)) {
            mo_list_del(&a->mine); /* freed when the write returns */
            a->h = NULL;
        } else {
            ask_free(a);
        }
    }
    if (s)
        detach_hold(h);
    hold_free(h);
    if (s && mo_list_empty(&s->holds) && s->state != S_ENDING)
        mo_session_finish(s, END_LET_GO, NULL, NULL);
}

/* --- small things -------------------------------------------------------- */

void mo_session_touch(struct mo_hold *h)
{
    if (h->s)
        mo_session_touched(h->s);
}

void mo_session_busy(struct mo_hold *h, bool busy)
{
    if (!h->s)
        return;
    MO_BUG_ON(!busy && !h->busy);
    h->busy += busy ? 1 : -1u;
    h->s->busy += busy ? 1 : -1u;
    mo_session_touched(h->s);
}

const struct mo_session_info *mo_session_info(const struct mo_hold *h)
{
    return h->s && h->ready ? &h->s->info : NULL;
}
