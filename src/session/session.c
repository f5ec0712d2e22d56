/* session.c - the state table, and the first half of opening a session: lease
 * and row. boxing.c continues from there.
 *
 * Every callback may find the session ENDING: then it only records the result
 * and calls mo_session_finish_step(). */
#include "session/priv.h"

void mo_session_move(struct session *s, enum session_state to)
{
    static const uint16_t legal[] = {
        [S_WAITING] = MO_TO(S_READING) | MO_TO(S_ENDING),
        [S_READING] = MO_TO(S_BOXING) | MO_TO(S_ENDING),
        [S_BOXING] = MO_TO(S_OPENING) | MO_TO(S_BOXLESS) | MO_TO(S_ENDING),
        [S_OPENING] = MO_TO(S_READY) | MO_TO(S_LOSING) | MO_TO(S_ENDING),
        [S_READY] = MO_TO(S_LOSING) | MO_TO(S_ENDING),
        [S_LOSING] = MO_TO(S_BOXING) | MO_TO(S_BOXLESS) | MO_TO(S_ENDING),
        [S_BOXLESS] = MO_TO(S_BOXING) | MO_TO(S_ENDING),
        [S_ENDING] = MO_TO(S_WAITING) | MO_TO(S_GONE),
        [S_GONE] = 0,
    };

    MO_MOVE(s->state, to, legal);
}

bool mo_session_ends(struct session *s)
{
    if (s->state == S_ENDING)
        mo_session_finish_step(s);
    else if (s->state == S_LOSING)
        mo_session_losing_step(s);
    else
        return false;
    return true;
}

bool mo_session_landed(struct session *s)
{
    s->pending--;
    return mo_session_ends(s);
}

/* An operation has returned. False: it failed, or the session ends. */
static bool goes_on(struct session *s, const struct mo_err *why)
{
    if (mo_session_landed(s))
        return false;
    if (why)
        mo_session_fail(s, why);
    return !why;
}

/* An operation was begun, or refused (rc, e). */
static void await(struct session *s, int rc, const struct mo_err *e)
{
    if (rc < 0)
        mo_session_fail(s, e);
    else
        s->pending++;
}

/* --- the lease ----------------------------------------------------------- */

static void read_row(struct session *s);
static void ask_holder(struct session *s);

static void move_away(struct session *s, const struct mo_err *why)
{
    mo_session_finish(s, END_MOVED, "elsewhere", why);
}

static void on_held(void *ctx, struct mo_lease *l, uint64_t fence,
                    const struct mo_err *why)
{
    struct session *s = ctx;
    uint64_t wait;

    if (!why) {
        s->lease = l;
        s->held = true;
        s->fence = fence;
        mo_session_move(s, S_READING);
        read_row(s);
        return;
    }
    s->lease = NULL;
    if (s->state == S_ENDING)
        mo_session_finish_step(s);
    else if (why->code == MO_ETIMEOUT && !s->second)
        ask_holder(s);
    else if (why->code == MO_ETIMEOUT && mo_holds_may_move(s, &wait))
        move_away(s, why);
    else
        mo_session_fail(s, why);
}

static void on_lost(void *ctx, const struct mo_err *why)
{
    struct session *s = ctx;

    s->lease = NULL;
    s->held = false;
    session_log(s, MO_WARN, 0, why, "lease lost");
    if (s->state == S_ENDING)
        mo_session_finish_step(s);
    else
        mo_session_finish(s, END_TAKEN, "taken over", why);
}

static void take_lease(struct session *s, uint64_t wait_ms)
{
    static const struct mo_lease_cb cb = {on_held, on_lost};
    struct mo_sessions *ss = s->ss;
    struct mo_err e;

    if (mo_lease_take(ss->o.store, mo_span_cstr(s->id),
                      mo_span_cstr(ss->o.instance), wait_ms, &cb, s, &s->lease,
                      &e) < 0)
        mo_session_fail(s, &e);
}

static void wait_for_lease(struct session *s)
{
    uint64_t wait;

    take_lease(s, mo_holds_may_move(s, &wait) ? wait : s->ss->o.wait_ms);
}

static void on_broken(void *ctx, const struct mo_err *why)
{
    struct session *s = ctx;

    if (goes_on(s, why))
        wait_for_lease(s);
}

/* Another process has the lease. The lease of a dead process is broken. A
 * request to end the session does not wait for a living one; neither do holds
 * that can go there, unless they want to. */
static void on_holder(void *ctx, struct mo_span owner, uint64_t fence,
                      const struct mo_err *why)
{
    struct session *s = ctx;
    struct mo_sessions *ss = s->ss;
    bool dead = !why && owner.n && ss->o.is_dead &&
                ss->o.is_dead(ss->o.dead_ctx, owner);
    uint64_t wait;
    struct mo_err e;

    if (!goes_on(s, why))
        return;
    if (owner.n)
        (void)mo_fail(&e, MO_EBUSY, "session %s is in use by instance %.*s",
                      s->id, (int)owner.n, owner.p);
    if (dead) {
        await(s,
              mo_lease_break(ss->o.store, mo_span_cstr(s->id), owner, fence,
                             on_broken, s, &e),
              &e);
    } else if (owner.n && mo_list_empty(&s->holds)) {
        mo_session_fail(s, &e);
    } else if (owner.n && mo_holds_may_move(s, &wait) && wait == 0) {
        move_away(s, &e);
    } else {
        wait_for_lease(s);
    }
}

static void ask_holder(struct session *s)
{
    struct mo_err e;

    s->second = true;
    await(
        s,
        mo_lease_holder(s->ss->o.store, mo_span_cstr(s->id), on_holder, s, &e),
        &e);
}

void mo_session_begin(struct session *s)
{
    s->second = false;
    s->begun_ns = mo_now_ns();
    take_lease(s, 0);
}

/* --- the row ------------------------------------------------------------- */

/* The row is read and the lease held: end, reap or open. */
static void decide_after_row(struct session *s)
{
    uint64_t now = wall_now(s->ss);
    enum session_end how = END_SLEEP;

    mo_list_each_entry (k, &s->kills, struct kill, node)
        how = k->how > how ? k->how : how;
    if (!mo_list_empty(&s->kills) && !s->known) {
        mo_session_answer_kills(
            &s->kills, mo_error(MO_ENOTFOUND, "there is no session %s", s->id));
    } else if (!mo_list_empty(&s->kills)) {
        mo_session_finish(s, how, mo_session_end_reason(how), NULL);
        return;
    }
    mo_holds_sort(s);
    if (!mo_list_empty(&s->holds)) {
        s->attempt =
            s->row.box[0] && mo_session_driver(s) ? TRY_ADOPT : TRY_START;
        s->active = now;
        s->dirty = true;
        mo_session_start_box(s);
    } else {
        mo_session_finish(s, s->reap ? mo_janitor_judge(s, now) : END_LET_GO,
                          NULL, NULL);
    }
}

static void on_history(void *ctx, const struct mo_rows *rows,
                       const struct mo_err *why)
{
    struct session *s = ctx;

    if (!goes_on(s, why))
        return;
    /* With an owner's hold it is as new: the old owner is unknown. */
    s->known = s->old_files = rows->n > 0 && !mo_holds_owned(s);
    decide_after_row(s);
}

/* No row: the janitor has removed it, but its history may still exist. */
static void read_history(struct session *s)
{
    struct mo_read r = {.kind = MO_READ_HISTORY,
                        .session = mo_span_cstr(s->id),
                        .limit = 1,
                        .newest = true};
    struct mo_err e;

    await(s, mo_store_read(s->ss->o.store, &r, on_history, s, &e), &e);
}

/* A row that cannot be parsed does not keep its owner out. */
static void take_row(struct session *s, const struct mo_row *r)
{
    struct mo_err e;

    s->known = s->has_row = true;
    s->active = r->at;
    if (mo_session_row_read(s, r->doc, &e) < 0)
        session_log(s, MO_WARN, 0, &e, "opened as if it had no box");
    s->old_files = s->row.box[0] || s->row.asleep;
    s->elsewhere =
        (s->row.box[0] || s->row.files[0]) && s->row.where[0] &&
        strcmp(s->row.where, mo_boxes_where(s->ss->o.drivers[0])) != 0;
}

static void on_row(void *ctx, const struct mo_rows *rows,
                   const struct mo_err *why)
{
    struct session *s = ctx;

    if (!goes_on(s, why))
        return;
    if (rows->n == 0) {
        read_history(s);
    } else {
        take_row(s, &rows->v[0]);
        decide_after_row(s);
    }
}

static void read_row(struct session *s)
{
    struct mo_read r = {.kind = MO_READ_SESSION,
                        .session = mo_span_cstr(s->id)};
    struct mo_err e;

    await(s, mo_store_read(s->ss->o.store, &r, on_row, s, &e), &e);
}
