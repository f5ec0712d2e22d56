/* ending.c - ending a session: connection, box, row, lease, memory.
 *
 * mo_session_finish() sets how, tells the holds, and begins.
 * mo_session_finish_step() is called whenever an operation returns; it does
 * the next possible step and returns while anything is under way. So the order
 * of the answers does not matter.
 *
 * A box that the row names is let go, never stopped, unless the session goes
 * to sleep or is closed: its files belong to a person. */
#include "session/priv.h"

/* --- who asked for the end ----------------------------------------------- */

static void on_kill(struct mo_later *d)
{
    struct kill *k = mo_container_of(d, struct kill, later);
    struct mo_sessions *ss = k->ss;
    struct kill told = *k;

    mo_list_del(&k->node);
    mo_free(k);
    told.done(told.ctx, told.why.code ? &told.why : NULL);
    ss->nkills--;
    mo_sessions_settle(ss);
}

void mo_session_answer_kills(struct mo_list *kills, const struct mo_err *why)
{
    mo_list_each_entry_safe (k, kills, struct kill, node) {
        mo_list_del(&k->node);
        if (why)
            k->why = *why;
        mo_later_init(&k->later, on_kill);
        mo_loop_defer(k->ss->loop, &k->later);
    }
}

const char *mo_session_end_reason(enum session_end how)
{
    return how == END_SLEEP ? "closed" : "killed";
}

/* The requests that this end answers. */
static void serve_kills(struct session *s, bool all)
{
    mo_list_each_entry_safe (k, &s->kills, struct kill, node) {
        if (!all && k->how > s->how)
            continue; /* it is tried again */
        mo_list_del(&k->node);
        mo_list_push(&s->served, &k->node);
    }
}

/* --- steps --------------------------------------------------------------- */

static void op_returned(struct session *s, const struct mo_err *why,
                        const char *what)
{
    s->pending--;
    if (why) {
        s->why = *why;
        session_log(s, MO_WARN, 0, why, "%s", what);
    }
    mo_session_finish_step(s);
}

static void on_removed(void *ctx, const struct mo_err *why)
{
    struct session *s = ctx;

    if (!why)
        session_log(s, MO_INFO, 0, NULL, "box %s removed", s->row.box);
    op_returned(ctx, why, "box could not be removed");
}

static void on_closed(void *ctx, const struct mo_written *w,
                      const struct mo_err *why)
{
    (void)w;
    op_returned(ctx, why, "could not be closed in the store");
}

/* Also removes what a driver kept of a box that ended by itself. */
static void remove_box(struct session *s)
{
    struct mo_boxes *of = mo_session_driver(s);

    s->removed = true;
    if (!s->row.box[0] || !of)
        return;
    s->pending++;
    if (mo_boxes_remove(of, s->row.box, on_removed, s, &s->why) < 0)
        s->pending--;
}

static void on_forgotten(void *ctx, const struct mo_err *why)
{
    op_returned(ctx, why, "kept files could not be removed");
}

/* After its box, which may save them at its end. A failure is left to the
 * sweep: the row does not name them any more. */
static void forget_files(struct session *s)
{
    struct mo_boxes *of = mo_session_driver(s);

    s->forgotten = true;
    if (s->how < END_CLOSE || !s->row.files[0] || !of)
        return;
    s->pending++;
    if (mo_boxes_forget(of, s->row.files, on_forgotten, s, NULL) < 0)
        s->pending--;
}

static void close_row(struct session *s)
{
    struct mo_write w = {.kind = s->how == END_FORGET ? MO_WRITE_FORGET
                                                      : MO_WRITE_CLOSE};

    s->closed = true;
    if (!s->has_row && s->how != END_FORGET)
        return;
    if (s->how != END_SLEEP) {
        (void)mo_session_write(s, &w, 1, on_closed, s, &s->why);
        return;
    }
    /* The row stays, so that the conversation can be opened again. */
    s->row.box[0] = '\0';
    s->row.asleep = true;
    (void)mo_session_keep_row(s, on_closed, s, &s->why);
}

/* A box that the row names, or will name in a moment, is not stopped. */
static bool must_stop(const struct session *s)
{
    if (s->how >= END_SLEEP)
        return true;
    return s->up ? !s->named : s->attempt == TRY_START;
}

static void release_box(struct session *s)
{
    if (s->stopping)
        return;
    if (s->how < END_SLEEP && s->pending)
        return; /* its name may be being written */
    if (must_stop(s)) {
        s->stopping = true;
        if (s->how >= END_CLOSE)
            mo_box_drop_files(s->box);
        mo_box_stop(s->box);
    } else if (s->up && !s->conn && !s->err) {
        s->stopping = true;
        mo_box_let_go(s->box);
    }
}

static void close_streams(struct session *s)
{
    if (s->conn) {
        mo_conn_close(
            s->conn, s->why.code
                         ? &s->why
                         : mo_error(MO_ECANCELED, "the session has ended (%s)",
                                    s->reason ? s->reason : "no user is left"));
    }
    if (s->err)
        mo_stream_close(s->err, NULL);
}

static void finish_or_restart(struct session *s)
{
    struct mo_sessions *ss = s->ss;
    bool again = !mo_list_empty(&s->holds) || !mo_list_empty(&s->kills);

    mo_session_answer_kills(&s->served, s->why.code ? &s->why : NULL);
    if (s->how != END_LET_GO)
        mo_session_uncount_box(s, false);
    else if (!s->reap)
        mo_session_uncount_box(s, s->named);
    if (s->reap) {
        s->reap = false;
        mo_janitor_reaped(ss);
    }
    if (!again || ss->closing) {
        mo_session_move(s, S_GONE);
        mo_session_free(s);
        mo_sessions_settle(ss);
        return;
    }
    s->row = (struct mo_session_row){.box = ""};
    mo_buf_reset(&s->data);
    s->known = s->has_row = s->old_files = s->served_once = s->dirty = false;
    s->up = s->named = s->opened = s->files_loaded = s->elsewhere = false;
    s->warned = 0;
    mo_session_move(s, S_WAITING);
    mo_session_begin(s);
}

void mo_session_finish_step(struct session *s)
{
    if (s->lease && !s->held && !s->dropping) {
        s->dropping = true;
        mo_lease_drop(s->lease); /* on_held follows */
    }
    close_streams(s);
    if (s->box)
        release_box(s);
    if (s->box || s->conn || s->err || s->pending || (s->lease && !s->held))
        return;
    if (s->held && s->how >= END_SLEEP && !s->removed)
        remove_box(s);
    if (s->held && !s->pending && s->how >= END_SLEEP && !s->closed)
        close_row(s);
    if (s->held && !s->pending && s->how >= END_CLOSE && !s->forgotten)
        forget_files(s);
    if (s->how == END_LET_GO)
        mo_session_flush(s);
    if (s->pending)
        return;
    if (s->held)
        mo_lease_drop(mo_take_ptr(&s->lease));
    s->held = false;
    finish_or_restart(s);
}

/* --- beginning ----------------------------------------------------------- */

/* A look of the janitor that changes nothing is not worth a line at info. */
static void log_end(const struct session *s)
{
    static const char *const words[] = {
        [END_LET_GO] = "left; its box stays",
        [END_TAKEN] = "taken over by another instance",
        [END_MOVED] = "used through another instance",
        [END_SLEEP] = "asleep; its box is removed",
        [END_CLOSE] = "closed",
        [END_FORGET] = "deleted",
    };
    bool quiet = (s->reap && s->how == END_LET_GO) || s->how == END_MOVED;
    const char *why = s->reason ? s->reason : s->reap ? "idle" : "";

    session_log(s, quiet ? MO_DEBUG : MO_INFO, 0, NULL, "%s%s%s", words[s->how],
                *why ? ": " : "", why);
}

void mo_session_finish(struct session *s, enum session_end how,
                       const char *reason, const struct mo_err *why)
{
    static const struct mo_err none;

    if (s->state == S_ENDING)
        return;
    mo_session_move(s, S_ENDING);
    s->how = how;
    s->reason = reason;
    s->why = why ? *why : none;
    s->stopping = s->removed = s->forgotten = s->closed = s->dropping = false;
    s->info.conn = NULL;
    log_end(s);
    mo_timer_stop(s->ss->loop, &s->flush);
    mo_timer_stop(s->ss->loop, &s->cause);
    if (how >= END_SLEEP || why)
        serve_kills(s, why != NULL || how >= END_CLOSE);
    mo_holds_part(s, reason, why);
    mo_session_finish_step(s);
}

void mo_session_fail(struct session *s, const struct mo_err *why)
{
    struct mo_err e = *why;

    if (!mo_list_empty(&s->holds))
        session_log(s, MO_WARN, mo_now_ns() - s->begun_ns, &e,
                    "cannot be opened");
    mo_session_finish(s, s->held ? END_LET_GO : END_TAKEN, "failed", &e);
}
