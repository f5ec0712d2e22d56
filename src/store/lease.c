/* lease.c - taking, waiting for, renewing and giving back leases; the same for
 * every backend.
 *
 * Leases of one name in this process form a line. Only the first of the line
 * asks the store; while one of ours holds the name, none asks. The first asks
 * again when a release is announced (mo_lease_wake) or at the end of the
 * holder's term; it never polls.
 *
 * Invariants:
 *  1. A lease is in line->waiting in QUEUED, TRYING and WAITING, and only the
 *     first of a line is in one of the latter two. (A lease with wait_ms 0 is
 *     in no line: it asks once.)
 *  2. `expire` runs while HELD, from the moment the last successful renewal
 *     was *asked* for: we stop before the store gives the name away.
 *  3. The operation that gives a lease back is allocated with the lease, so
 *     that giving back cannot fail for lack of memory.
 *  4. on_held and on_lost fire from `later` only; after that the lease is
 *     freed as soon as it has no operation under way. */
#include <stdio.h>

#include "store/priv.h"

enum lease_state {
    LEASE_QUEUED,
    LEASE_TRYING,
    LEASE_WAITING,
    LEASE_HELD,
    LEASE_ENDING, /* the callback is on its way */
    LEASE_GONE,   /* freed when its operation returns */
};

struct line {
    struct mo_store *s;
    struct mo_list waiting;
    struct mo_lease *holder; /* one of ours, or NULL */
    unsigned leaving;        /* being given back by us */
    char name[MO_STORE_ID_MAX + 1];
};

struct mo_lease {
    struct mo_list node; /* in its line */
    struct mo_list all;  /* in s->leases */
    struct mo_store *s;
    struct line *line; /* NULL: asks once */
    enum lease_state state;
    struct mo_lease_cb cb;
    void *ctx;
    struct mo_op *bye;
    uint64_t fence;
    uint64_t asked_ns; /* start of the operation under way */
    struct mo_timer wait, retry, renew, expire;
    struct mo_later later;
    struct mo_err why;
    bool busy;    /* an operation is under way */
    bool again;   /* woken while asking */
    bool dropped; /* while asking */
    bool late;    /* the wait was over while asking */
    bool was_held;
    char name[MO_STORE_ID_MAX + 1], owner[MO_STORE_ID_MAX + 1];
    char holder[MO_STORE_ID_MAX + 1];
    char token[MO_LEASE_TOKEN_LEN + 1];
};

static void lease_try(struct mo_lease *l);

static void lease_move(struct mo_lease *l, enum lease_state to)
{
    static const uint8_t legal[] = {
        [LEASE_QUEUED] =
            MO_TO(LEASE_TRYING) | MO_TO(LEASE_WAITING) | MO_TO(LEASE_ENDING),
        [LEASE_TRYING] =
            MO_TO(LEASE_WAITING) | MO_TO(LEASE_HELD) | MO_TO(LEASE_ENDING),
        [LEASE_WAITING] = MO_TO(LEASE_TRYING) | MO_TO(LEASE_ENDING),
        [LEASE_HELD] = MO_TO(LEASE_ENDING) | MO_TO(LEASE_GONE),
        [LEASE_ENDING] = MO_TO(LEASE_GONE),
        [LEASE_GONE] = 0,
    };

    MO_MOVE(l->state, to, legal);
}

static void copy_id(char out[MO_STORE_ID_MAX + 1], struct mo_span id)
{
    size_t n = id.n < MO_STORE_ID_MAX ? id.n : MO_STORE_ID_MAX;

    if (n)
        memcpy(out, id.p, n);
    out[n] = '\0';
}

/* --- the line ------------------------------------------------------------ */

static struct line *line_of(struct mo_store *s, struct mo_span name, int *rc)
{
    struct line *line = mo_map_get(&s->lines, name);

    if (line)
        return line;
    line = mo_new(struct line);
    *rc = line ? mo_map_put(&s->lines, name, line, NULL) : MO_ENOMEM;
    if (*rc < 0) {
        mo_free(line);
        return NULL;
    }
    line->s = s;
    mo_list_init(&line->waiting);
    copy_id(line->name, name);
    return line;
}

static bool is_ours(const struct line *line)
{
    return line->holder || line->leaving;
}

/* Starts the new first of the line, or frees an empty line. */
static void line_next(struct line *line)
{
    struct mo_lease *l = mo_list_first(&line->waiting, struct mo_lease, node);

    if (!l && !is_ours(line)) {
        (void)mo_map_del(&line->s->lines, mo_span_cstr(line->name));
        mo_free(line);
        return;
    }
    if (!l || l->state != LEASE_QUEUED || line->s->closing)
        return;
    if (is_ours(line))
        lease_move(l, LEASE_WAITING);
    else
        lease_try(l);
}

static void leave_line(struct mo_lease *l)
{
    struct line *line = l->line;

    l->line = NULL;
    if (!line)
        return;
    mo_list_del(&l->node);
    if (line->holder == l)
        line->holder = NULL;
    line_next(line);
}

/* --- the end of a lease -------------------------------------------------- */

static void stop_timers(struct mo_lease *l)
{
    mo_timer_stop(l->s->loop, &l->wait);
    mo_timer_stop(l->s->loop, &l->retry);
    mo_timer_stop(l->s->loop, &l->renew);
    mo_timer_stop(l->s->loop, &l->expire);
}

static void lease_free(struct mo_lease *l)
{
    struct mo_store *s = l->s;

    if (l->busy)
        return;
    stop_timers(l);
    mo_later_cancel(&l->later);
    mo_list_del(&l->all);
    if (l->bye)
        mo_op_free(l->bye);
    mo_free(l);
    mo_store_settle(s);
}

static void on_dropped(void *ctx, const struct mo_op *op)
{
    struct mo_store *s = ctx;
    struct line *line = mo_map_get(&s->lines, op->name);

    if (!line)
        return;
    if (line->leaving)
        line->leaving--;
    line_next(line); /* the line may be gone now */
    mo_lease_wake(s, op->name);
}

/* Our own waiters are woken when the store has answered, as those of other
 * processes are: living in the holder's process gives no head start. */
static void give_back(struct mo_lease *l)
{
    struct mo_op *op = mo_take_ptr(&l->bye);

    if (!op)
        return;
    if (l->line)
        l->line->leaving++;
    mo_op_submit(op, (struct mo_op_answer){.on_op = on_dropped, .ctx = l->s});
}

static void on_end(struct mo_later *d)
{
    struct mo_lease *l = mo_container_of(d, struct mo_lease, later);
    struct mo_err why = l->why;

    lease_move(l, LEASE_GONE);
    if (l->was_held)
        l->cb.on_lost(l->ctx, &why);
    else
        l->cb.on_held(l->ctx, l, 0, &why);
    lease_free(l);
}

/* l->why is set. */
static void lease_end(struct mo_lease *l)
{
    stop_timers(l);
    lease_move(l, LEASE_ENDING);
    mo_loop_defer(l->s->loop, &l->later);
    leave_line(l);
}

static void lease_lost(struct mo_lease *l)
{
    give_back(l);
    lease_end(l);
}

/* --- asking -------------------------------------------------------------- */

static const char *who_has_it(const struct mo_lease *l)
{
    if (l->line && l->line->holder)
        return l->line->holder->owner;
    return l->holder[0] ? l->holder : "somebody";
}

static void end_late(struct mo_lease *l)
{
    (void)mo_fail(&l->why, MO_ETIMEOUT, "%s is held by %s", l->name,
                  who_has_it(l));
    lease_end(l);
}

static void on_wait_over(struct mo_timer *t)
{
    struct mo_lease *l = mo_container_of(t, struct mo_lease, wait);

    if (l->state == LEASE_TRYING)
        l->late = true;
    else
        end_late(l);
}

static void on_retry(struct mo_timer *t)
{
    lease_try(mo_container_of(t, struct mo_lease, retry));
}

static void start_expire(struct mo_lease *l)
{
    uint64_t gone = (mo_loop_now(l->s->loop) - l->asked_ns) / MO_MS;
    uint64_t ttl = l->s->lease_ttl_ms;

    mo_timer_start(l->s->loop, &l->expire, gone < ttl ? ttl - gone : 0);
}

static void lease_held(struct mo_lease *l, uint64_t fence)
{
    mo_timer_stop(l->s->loop, &l->wait);
    lease_move(l, LEASE_HELD);
    l->was_held = true;
    l->fence = fence;
    start_expire(l);
    mo_timer_start(l->s->loop, &l->renew, l->s->lease_ttl_ms / 3);
    if (l->line) {
        l->line->holder = l;
        mo_list_del(&l->node);
        line_next(l->line);
    }
    l->cb.on_held(l->ctx, l, fence, NULL);
}

static void lease_busy(struct mo_lease *l, const struct mo_op *op)
{
    copy_id(l->holder, op->holder);
    if (!l->line || l->late) {
        end_late(l);
        return;
    }
    lease_move(l, LEASE_WAITING);
    if (l->again)
        lease_try(l);
    else
        mo_timer_start(l->s->loop, &l->retry, op->left_ms + 1);
}

static void on_tried(void *ctx, const struct mo_op *op)
{
    struct mo_lease *l = ctx;

    l->busy = false;
    if (op->err.code || l->dropped) {
        l->why = op->err;
        if (l->dropped)
            (void)mo_fail(&l->why, MO_ECANCELED, "%s: the wait was cancelled",
                          l->name);
        give_back(l); /* the lost answer may have been "yours" */
        lease_end(l);
    } else if (op->held) {
        lease_held(l, op->fence);
    } else {
        lease_busy(l, op);
    }
}

static struct mo_op *lease_op(const struct mo_lease *l, enum mo_op_kind kind)
{
    struct mo_op *op =
        mo_op_lease(l->s, kind, mo_span_cstr(l->name), mo_span_cstr(l->owner));

    if (op)
        memcpy(op->token, l->token, sizeof(op->token));
    return op;
}

static bool submit_lease_op(struct mo_lease *l, enum mo_op_kind kind,
                            void (*on_op)(void *ctx, const struct mo_op *op))
{
    struct mo_op *op = lease_op(l, kind);

    if (!op)
        return false;
    l->busy = true;
    l->asked_ns = mo_loop_now(l->s->loop);
    mo_op_submit(op, (struct mo_op_answer){.on_op = on_op, .ctx = l});
    return true;
}

static void lease_try(struct mo_lease *l)
{
    mo_timer_stop(l->s->loop, &l->retry);
    l->again = false;
    if (submit_lease_op(l, MO_OP_TRY, on_tried)) {
        lease_move(l, LEASE_TRYING);
        return;
    }
    (void)mo_fail(&l->why, MO_ENOMEM, "lease %s", l->name);
    lease_end(l);
}

static void wake_lease(struct mo_lease *l)
{
    if (l->state == LEASE_TRYING)
        l->again = true;
    else if (l->state == LEASE_WAITING && !is_ours(l->line))
        lease_try(l);
}

void mo_lease_wake(struct mo_store *s, struct mo_span name)
{
    struct line *line = mo_map_get(&s->lines, name);
    struct mo_lease *l =
        line ? mo_list_first(&line->waiting, struct mo_lease, node) : NULL;

    if (l)
        wake_lease(l);
}

/* Waking may end a lease for lack of memory, and with it remove a line from
 * the map. So the leases are walked, which live until `later`. */
void mo_lease_wake_if(struct mo_store *s,
                      bool (*pick)(struct mo_span name, const void *arg),
                      const void *arg)
{
    mo_list_each_entry (l, &s->leases, struct mo_lease, all)
        if (l->line && (!pick || pick(mo_span_cstr(l->name), arg)))
            wake_lease(l);
}

/* --- holding ------------------------------------------------------------- */

static void on_renewed(void *ctx, const struct mo_op *op)
{
    struct mo_lease *l = ctx;
    uint64_t third = l->s->lease_ttl_ms / 3;

    l->busy = false;
    if (l->state == LEASE_GONE) {
        lease_free(l);
        return;
    }
    if (l->state != LEASE_HELD)
        return;
    if (!op->err.code) {
        start_expire(l);
        mo_timer_start(l->s->loop, &l->renew, third);
    } else if (op->err.code == MO_EPOLICY) {
        l->why = op->err;
        lease_lost(l);
    } else {
        mo_timer_start(l->s->loop, &l->renew, third / 4);
    }
}

static void on_renew(struct mo_timer *t)
{
    struct mo_lease *l = mo_container_of(t, struct mo_lease, renew);

    if (!submit_lease_op(l, MO_OP_RENEW, on_renewed))
        mo_timer_start(l->s->loop, &l->renew, l->s->lease_ttl_ms / 12);
}

static void on_expire(struct mo_timer *t)
{
    struct mo_lease *l = mo_container_of(t, struct mo_lease, expire);

    (void)mo_fail(&l->why, MO_EUNAVAIL, "%s: not renewed in time", l->name);
    lease_lost(l);
}

/* --- the two calls ------------------------------------------------------- */

static struct mo_lease *lease_new(struct mo_store *s, struct mo_span name,
                                  struct mo_span owner)
{
    struct mo_lease *l = mo_new(struct mo_lease);

    if (!l)
        return NULL;
    l->s = s;
    copy_id(l->name, name);
    copy_id(l->owner, owner);
    mo_random_token(l->token, 12);
    mo_list_init(&l->node);
    mo_list_init(&l->all);
    mo_timer_init(&l->wait, on_wait_over);
    mo_timer_init(&l->retry, on_retry);
    mo_timer_init(&l->renew, on_renew);
    mo_timer_init(&l->expire, on_expire);
    mo_later_init(&l->later, on_end);
    l->bye = lease_op(l, MO_OP_DROP);
    if (l->bye)
        return l;
    mo_free(l);
    return NULL;
}

int mo_lease_take(struct mo_store *s, struct mo_span name, struct mo_span owner,
                  uint64_t wait_ms, const struct mo_lease_cb *cb, void *ctx,
                  struct mo_lease **out, struct mo_err *e)
{
    struct mo_lease *l;
    int rc = 0;

    if (s->closing)
        return mo_fail(e, MO_ECLOSED, "store: closed");
    if (!mo_store_id_ok(name) || !mo_store_id_ok(owner))
        return mo_fail(e, MO_EINVAL,
                       "store: a lease's name and owner are of "
                       "A-Z a-z 0-9 _ . : -");
    if (s->nops >= MO_STORE_OPS_MAX * 2)
        return mo_fail(e, MO_EBUSY, "store: too many leases");
    l = lease_new(s, name, owner);
    if (!l)
        return mo_fail(e, MO_ENOMEM, "lease");
    if (wait_ms)
        l->line = line_of(s, name, &rc);
    if (rc < 0) {
        lease_free(l);
        return mo_fail(e, rc, "lease");
    }
    l->cb = *cb;
    l->ctx = ctx;
    mo_list_push(&s->leases, &l->all);
    *out = l;
    if (!wait_ms) {
        lease_try(l);
        return 0;
    }
    s->ops->listen(s);
    mo_list_push(&l->line->waiting, &l->node);
    mo_timer_start(s->loop, &l->wait, wait_ms);
    if (l->line->waiting.next == &l->node)
        line_next(l->line);
    return 0;
}

static void cancel_wait(struct mo_lease *l)
{
    if (l->state == LEASE_TRYING) {
        l->dropped = true;
        return;
    }
    (void)mo_fail(&l->why, MO_ECANCELED, "%s: the wait was cancelled", l->name);
    lease_end(l);
}

void mo_lease_drop(struct mo_lease *l)
{
    if (!l || l->state == LEASE_GONE)
        return;
    if (!l->was_held) {
        if (l->state != LEASE_ENDING)
            cancel_wait(l);
        return;
    }
    mo_later_cancel(&l->later);
    stop_timers(l);
    lease_move(l, LEASE_GONE);
    give_back(l);
    leave_line(l);
    lease_free(l);
}

void mo_lease_close_all(struct mo_store *s)
{
    mo_list_each_entry (l, &s->leases, struct mo_lease, all) {
        if (l->state == LEASE_HELD) {
            (void)mo_fail(&l->why, MO_ECLOSED, "store: closed");
            lease_lost(l);
        } else if (l->state < LEASE_HELD) {
            cancel_wait(l);
        }
    }
}
