/* session.c - the way to a ready session: lease, row, box, connection.
 *
 * Every callback here may find the session ENDING: it then only takes note
 * and lets session_end_step() go on. A box is looked for in three ways, best
 * first (enum session_try); each that fails leads to the next.
 *
 * A box and its connection end apart. LOSING waits for both, so that calls in
 * flight have failed with the cause before anybody hears of the loss. */
#include <stdio.h>

#include "base/rand.h"
#include "session/priv.h"

#define TO(state) (1u << (state))

void session_move(struct session *s, enum session_state to)
{
    static const uint16_t legal[] = {
        [S_WAITING] = TO(S_READING) | TO(S_ENDING),
        [S_READING] = TO(S_BOXING) | TO(S_ENDING),
        [S_BOXING] = TO(S_OPENING) | TO(S_BOXLESS) | TO(S_ENDING),
        [S_OPENING] = TO(S_READY) | TO(S_LOSING) | TO(S_ENDING),
        [S_READY] = TO(S_LOSING) | TO(S_ENDING),
        [S_LOSING] = TO(S_BOXING) | TO(S_BOXLESS) | TO(S_ENDING),
        [S_BOXLESS] = TO(S_BOXING) | TO(S_ENDING),
        [S_ENDING] = TO(S_WAITING) | TO(S_GONE),
        [S_GONE] = 0,
    };

    MO_BUG_ON(!(legal[s->state] & TO(to)));
    s->state = to;
}

static void losing_step(struct session *s);

/* An operation is back. True: nobody waits for it but the end. */
bool session_landed(struct session *s)
{
    s->pending--;
    if (s->state == S_ENDING)
        session_end_step(s);
    else if (s->state == S_LOSING)
        losing_step(s);
    else
        return false;
    return true;
}

/* --- the lease ------------------------------------------------------------ */

static void read_row(struct session *s);
static void ask_holder(struct session *s);

static void on_held(void *ctx, struct mo_lease *l, uint64_t fence,
                    const struct mo_err *why)
{
    struct session *s = ctx;

    if (!why) {
        s->lease = l;
        s->held = true;
        s->fence = fence;
        session_move(s, S_READING);
        read_row(s);
        return;
    }
    s->lease = NULL;
    if (s->state == S_ENDING)
        session_end_step(s);
    else if (why->code == MO_ETIMEOUT && !s->second)
        ask_holder(s);
    else
        session_fail(s, why);
}

static void on_lost(void *ctx, const struct mo_err *why)
{
    struct session *s = ctx;

    s->lease = NULL;
    s->held = false;
    mo_log_err(mo_loop_log(s->ss->loop), MO_WARN, "session", why,
               "%s: its lease is lost", s->id);
    if (s->state == S_ENDING)
        session_end_step(s);
    else
        session_end(s, END_TAKEN, "taken over", why);
}

static void take(struct session *s, uint64_t wait_ms)
{
    static const struct mo_lease_cb cb = {on_held, on_lost};
    struct mo_sessions *ss = s->ss;
    struct mo_err e;

    if (mo_lease_take(ss->o.store, mo_span_cstr(s->id),
                      mo_span_cstr(ss->o.instance), wait_ms, &cb, s, &s->lease,
                      &e) < 0)
        session_fail(s, &e);
}

static void on_broken(void *ctx, const struct mo_err *why)
{
    struct session *s = ctx;

    if (session_landed(s))
        return;
    if (why)
        session_fail(s, why);
    else
        take(s, s->ss->o.wait_ms);
}

/* Somebody has it. The dead are not waited for; who wants to end a session
 * does not wait for the living either. */
static void on_holder(void *ctx, struct mo_span owner, uint64_t fence,
                      const struct mo_err *why)
{
    struct session *s = ctx;
    struct mo_sessions *ss = s->ss;
    bool dead = !why && owner.n && ss->o.is_dead &&
                ss->o.is_dead(ss->o.dead_ctx, owner);
    struct mo_err e;

    if (session_landed(s))
        return;
    if (why) {
        session_fail(s, why);
    } else if (dead) {
        s->pending++;
        if (mo_lease_break(ss->o.store, mo_span_cstr(s->id), owner, fence,
                           on_broken, s, &e) < 0) {
            s->pending--;
            session_fail(s, &e);
        }
    } else if (owner.n && mo_list_empty(&s->holds)) {
        (void)mo_fail(&e, MO_EBUSY, "session %s is in use by instance %.*s",
                      s->id, (int)owner.n, owner.p);
        session_fail(s, &e);
    } else {
        take(s, ss->o.wait_ms);
    }
}

static void ask_holder(struct session *s)
{
    struct mo_err e;

    s->second = true;
    s->pending++;
    if (mo_lease_holder(s->ss->o.store, mo_span_cstr(s->id), on_holder, s,
                        &e) == 0)
        return;
    s->pending--;
    session_fail(s, &e);
}

void session_begin(struct session *s)
{
    s->second = false;
    take(s, 0);
}

/* --- the row -------------------------------------------------------------- */

/* The row is read and the lease held: what was asked of us? */
static void decide(struct session *s)
{
    uint64_t now = wall_now(s->ss);
    bool forget = false;
    struct mo_err e;

    mo_list_each (it, &s->kills)
        forget |= mo_container_of(it, struct kill, node)->forget;
    if (!mo_list_empty(&s->kills) && !s->known) {
        (void)mo_fail(&e, MO_ENOTFOUND, "there is no session %s", s->id);
        session_kills_served(s, &e);
    } else if (!mo_list_empty(&s->kills)) {
        session_end(s, forget ? END_FORGET : END_CLOSE, "killed", NULL);
        return;
    }
    if (!mo_list_empty(&s->holds)) {
        s->attempt = s->row.box[0] && session_driver(s) ? TRY_ADOPT : TRY_START;
        s->active = now;
        s->dirty = true;
        session_box(s);
    } else if (s->reap && s->has_row && s->active + s->ss->o.idle_ms <= now) {
        s->ss->stats.reaped++;
        session_end(s, END_CLOSE, NULL, NULL);
    } else {
        session_end(s, END_LET_GO, NULL, NULL);
    }
}

static void on_history(void *ctx, const struct mo_rows *rows,
                       const struct mo_err *why)
{
    struct session *s = ctx;

    if (session_landed(s))
        return;
    if (why) {
        session_fail(s, why);
        return;
    }
    s->known = s->old_files = rows->n > 0;
    decide(s);
}

/* No row: the janitor has taken it, but what was said may still be there. */
static void read_history(struct session *s)
{
    struct mo_read r = {.kind = MO_READ_HISTORY,
                        .session = mo_span_cstr(s->id),
                        .limit = 1,
                        .newest = true};
    struct mo_err e;

    s->pending++;
    if (mo_store_read(s->ss->o.store, &r, on_history, s, &e) == 0)
        return;
    s->pending--;
    session_fail(s, &e);
}

/* A row we cannot read is no reason to turn its owner away. */
static void take_row(struct session *s, const struct mo_row *r)
{
    struct mo_err e;

    s->known = s->has_row = true;
    s->active = r->at;
    if (row_read(&s->row, r->doc, &e) < 0)
        mo_log_err(mo_loop_log(s->ss->loop), MO_WARN, "session", &e,
                   "%s: as if it had no box", s->id);
    s->old_files = s->row.box[0] != '\0';
}

static void on_row(void *ctx, const struct mo_rows *rows,
                   const struct mo_err *why)
{
    struct session *s = ctx;

    if (session_landed(s))
        return;
    if (why) {
        session_fail(s, why);
    } else if (rows->n == 0) {
        read_history(s);
    } else {
        take_row(s, &rows->v[0]);
        decide(s);
    }
}

static void read_row(struct session *s)
{
    struct mo_read r = {.kind = MO_READ_SESSION,
                        .session = mo_span_cstr(s->id)};
    struct mo_err e;

    s->pending++;
    if (mo_store_read(s->ss->o.store, &r, on_row, s, &e) == 0)
        return;
    s->pending--;
    session_fail(s, &e);
}

/* --- ready, and not any more ---------------------------------------------- */

static void try_box(struct session *s);

static void fill_info(struct session *s)
{
    bool kept = s->attempt != TRY_START;

    s->info = (struct mo_session_info){
        .id = s->id,
        .box = s->row.box,
        .driver = s->row.driver,
        .resumed = s->known,
        .workspace = kept           ? MO_WORKSPACE_KEPT
                     : s->old_files ? MO_WORKSPACE_LOST
                                    : MO_WORKSPACE_FRESH,
        .fence = s->fence,
        .data = mo_buf_view(&s->row.data),
        .conn = s->conn,
    };
}

static void check_ready(struct session *s)
{
    uint64_t *count[] = {&s->ss->stats.adopted, &s->ss->stats.revived,
                         &s->ss->stats.started};

    if (s->state != S_OPENING || !s->opened || !s->named)
        return;
    session_move(s, S_READY);
    ++*count[s->attempt];
    fill_info(s);
    s->served_once = true;
    session_touched(s);
    mo_list_each (it, &s->holds) {
        struct mo_hold *h = mo_container_of(it, struct mo_hold, node);

        hold_tell(h, h->ready ? N_BOX : N_READY);
    }
    uses_answer(s, NULL);
}

void session_box_error(const struct session *s, struct mo_err *e)
{
    const struct mo_err *why = s->end.why;

    if (s->fault.code) {
        *e = s->fault;
        return;
    }
    (void)mo_fail(
        e, why ? why->code : MO_ECLOSED, "the session's box has gone: %s%s%s",
        mo_box_cause_name(s->end.cause), why ? ": " : "", why ? why->msg : "");
}

/* There is no box to be had. Who was served before may try again. */
static void no_box(struct session *s, const struct mo_err *why)
{
    if (!s->served_once) {
        session_fail(s, why);
        return;
    }
    if (s->attempt == TRY_NONE)
        s->attempt = TRY_START;
    session_move(s, S_BOXLESS);
    uses_answer(s, why);
}

/* Whoever looks again later may find the box, and the files in it. */
static bool may_pass(const struct session *s, int code)
{
    if (s->attempt == TRY_START || s->up)
        return false;
    return code == MO_ENOMEM || code == MO_EBUSY || code == MO_EUNAVAIL ||
           code == MO_ECLOSED;
}

/* It never got ready: the next way. */
static void next_try(struct session *s)
{
    bool away = s->end.cause == MO_BOX_ENGINE_GONE;
    struct mo_err e;

    session_box_error(s, &e);
    if (may_pass(s, away ? MO_EUNAVAIL : s->end.why ? s->end.why->code : 0)) {
        no_box(s, &e);
        return;
    }
    if (s->attempt == TRY_ADOPT && s->up && !s->end.workspace_kept)
        s->attempt = TRY_REVIVE; /* it lived, and nothing was kept of it */
    if (++s->attempt == TRY_NONE) {
        no_box(s, &e);
        return;
    }
    if (s->state == S_LOSING)
        session_move(s, S_BOXING);
    mo_log_err(mo_loop_log(s->ss->loop), MO_INFO, "session", &e,
               "%s: its box cannot be used", s->id);
    try_box(s);
}

static void losing_step(struct session *s)
{
    struct mo_err e;

    if (!s->box && s->link) {
        session_box_error(s, &e);
        boxlink_cause(s->link, &e);
    }
    if (s->box || s->conn || s->err || s->pending)
        return;
    mo_timer_stop(s->ss->loop, &s->cause);
    if (!s->opened || !s->named) {
        next_try(s);
        return;
    }
    s->ss->stats.lost++;
    s->attempt = s->end.workspace_kept ? TRY_REVIVE : TRY_START;
    s->old_files = true;
    session_move(s, S_BOXLESS);
    holds_tell(s, N_LOST);
    if (!mo_list_empty(&s->uses))
        session_box(s);
}

/* Box or connection have gone, or must go. */
static void lose(struct session *s)
{
    session_move(s, S_LOSING);
    s->info.conn = NULL;
    if (s->err)
        mo_stream_close(s->err, NULL);
    if (s->box)
        mo_box_stop(s->box);
    losing_step(s);
}

static void blame(struct session *s, const struct mo_err *why)
{
    if (!s->fault.code)
        s->fault = *why;
    lose(s);
}

/* --- the connection ------------------------------------------------------- */

static void on_open(void *ctx, struct mo_conn *c)
{
    struct session *s = ctx;

    (void)c;
    s->opened = true;
    check_ready(s);
}

static void on_conn_close(void *ctx, const struct mo_err *why)
{
    struct session *s = ctx;

    s->conn = NULL;
    if (s->link && !s->dialed)
        mo_link_close(boxlink_link(s->link), NULL);
    s->link = NULL;
    if (s->state == S_ENDING)
        session_end_step(s);
    else if (s->state == S_LOSING)
        losing_step(s);
    else if (why)
        blame(s, why);
    else
        lose(s);
}

static void on_notify(void *ctx, struct mo_conn *c, const struct mo_rpc *m,
                      uint64_t stream_of)
{
    (void)c;
    (void)stream_of;
    holds_notify(ctx, m);
}

static void on_ask(void *ctx, struct mo_conn *c, struct mo_ask *a)
{
    (void)c;
    if (!holds_ask(ctx, a))
        mo_ask_refuse(a, -32601, "nobody is there to answer");
}

static int dial(void *ctx, struct mo_conn *c, struct mo_err *e)
{
    struct session *s = ctx;

    if (!s->link || s->dialed)
        return mo_fail(e, MO_ECLOSED, "the box has gone");
    s->dialed = true;
    mo_conn_dialed(c, boxlink_link(s->link), NULL);
    return 0;
}

/* A server that broke the protocol is ended at once; one whose output has
 * just ended has a moment to die of its own cause. */
static void on_output_end(void *ctx, const struct mo_err *why)
{
    struct session *s = ctx;

    if (why->code == MO_EPROTO || why->code == MO_ETOOBIG ||
        why->code == MO_ENOMEM) {
        s->fault = *why;
        if (s->box)
            mo_box_stop(s->box);
        return;
    }
    mo_timer_start(s->ss->loop, &s->cause, CAUSE_MS);
}

void on_cause_due(struct mo_timer *t)
{
    struct session *s = mo_container_of(t, struct session, cause);

    (void)mo_fail(&s->fault, MO_ECLOSED,
                  "the server in the box has closed its output");
    if (s->box)
        mo_box_stop(s->box);
}

static int open_conn(struct session *s, struct mo_stream *io, struct mo_err *e)
{
    static const struct mo_conn_cb cb = {
        .on_open = on_open,
        .on_ask = on_ask,
        .on_notify = on_notify,
        .on_close = on_conn_close,
    };
    bool adopted = s->attempt == TRY_ADOPT;
    struct mo_conn_opts o = {
        .mode = MO_CONN_LEGACY,
        .capabilities = s->ss->o.capabilities,
        .open_ms = adopted ? ADOPT_MS : 0,
        .after_id = adopted ? mo_random_u64() >> 16 : 0,
        .dial = dial,
        .cb = &cb,
        .ctx = s,
    };
    int rc;

    /* A line that our dead self began must not swallow our first one. */
    if (adopted)
        (void)mo_stream_write(io, MO_SPAN("\n"));
    s->dialed = false;
    rc = boxlink_new(s->ss->loop, io, on_output_end, s, &s->link, e);
    if (rc < 0)
        return rc;
    rc = mo_conn_open(s->ss->loop, &o, &s->conn, e);
    if (rc < 0)
        mo_link_close(boxlink_link(mo_take_ptr(&s->link)), NULL);
    return rc;
}

/* --- the box -------------------------------------------------------------- */

static void on_err_read(void *ctx, char *p, size_t n)
{
    struct session *s = ctx;

    mo_log(mo_loop_log(s->ss->loop), MO_DEBUG, "session", "%s: stderr: %.*s",
           s->id, (int)(n > 1000 ? 1000 : n), p);
}

static void on_err_close(void *ctx, const struct mo_err *why)
{
    struct session *s = ctx;

    (void)why;
    s->err = NULL;
    if (s->state == S_ENDING)
        session_end_step(s);
    else if (s->state == S_LOSING)
        losing_step(s);
}

static void take_err(struct session *s, struct mo_stream *err)
{
    static const struct mo_stream_cb cb = {.on_read = on_err_read,
                                           .on_close = on_err_close};

    s->err = err;
    if (err)
        mo_stream_attach(err, &cb, s);
}

static void on_named(void *ctx, const struct mo_written *w,
                     const struct mo_err *why)
{
    struct session *s = ctx;

    (void)w;
    if (!why)
        s->has_row = s->named = true;
    if (session_landed(s))
        return;
    if (why)
        blame(s, why);
    else
        check_ready(s);
}

/* The row names the box before anybody hears of it. */
static int name_box(struct session *s, struct mo_err *e)
{
    s->named = s->attempt == TRY_ADOPT;
    if (s->named)
        return 0;
    (void)snprintf(s->row.box, sizeof(s->row.box), "%s", mo_box_id(s->box));
    (void)snprintf(s->row.driver, sizeof(s->row.driver), "%s",
                   mo_box_driver(s->box));
    if (!s->row.created)
        s->row.created = wall_now(s->ss);
    return session_keep_row(s, on_named, s, e);
}

static void on_box_ready(void *ctx, struct mo_box *b,
                         const struct mo_box_io *io)
{
    struct session *s = ctx;
    struct mo_err e;
    int rc;

    s->up = true;
    take_err(s, io->err);
    if (s->state == S_ENDING) { /* it was waited for, to let it go */
        s->box = b;
        mo_stream_close(io->io, NULL);
        (void)name_box(s, &e);
        session_end_step(s);
        return;
    }
    session_move(s, S_OPENING);
    rc = name_box(s, &e);
    if (rc < 0)
        mo_stream_close(io->io, NULL);
    else
        rc = open_conn(s, io->io, &e);
    if (rc < 0)
        blame(s, &e);
}

static void on_box_gone(void *ctx, const struct mo_box_end *end)
{
    struct session *s = ctx;

    s->box = NULL;
    s->end = *end;
    s->end.why = NULL;
    if (end->why) {
        s->end_why = *end->why;
        s->end.why = &s->end_why;
    } else if (s->fault.code) {
        s->end_why = s->fault;
        s->end.why = &s->end_why;
    }
    if (s->state == S_ENDING)
        session_end_step(s);
    else if (s->state == S_BOXING)
        next_try(s);
    else if (s->state == S_LOSING)
        losing_step(s);
    else
        lose(s);
}

struct mo_boxes *session_driver(const struct session *s)
{
    const struct mo_sessions_opts *o = &s->ss->o;

    for (size_t i = 0; i < o->ndrivers; i++) {
        if (strcmp(mo_boxes_driver(o->drivers[i]), s->row.driver) == 0)
            return o->drivers[i];
    }
    return NULL;
}

static int attempt_box(struct session *s, struct mo_err *e)
{
    static const struct mo_box_cb cb = {on_box_ready, on_box_gone};
    const struct mo_sessions_opts *o = &s->ss->o;
    struct mo_boxes *of = session_driver(s);
    struct mo_box_spec spec = o->spec;

    spec.session = s->id;
    spec.linger_ms = o->idle_ms + 2 * o->sweep_ms;
    spec.expires = (wall_now(s->ss) + spec.linger_ms) / 1000;
    if (s->attempt == TRY_START)
        return mo_box_start(o->drivers[0], &spec, &cb, s, &s->box, e);
    if (!of)
        return mo_fail(e, MO_ENOTFOUND, "driver %s is not in use",
                       s->row.driver);
    if (s->attempt == TRY_ADOPT)
        return mo_box_adopt(of, s->row.box, &cb, s, &s->box, e);
    return mo_box_revive(of, s->row.box, &spec, &cb, s, &s->box, e);
}

static void try_box(struct session *s)
{
    struct mo_err e = {0};
    int rc = -1;

    mo_err_clear(&s->fault);
    s->up = s->opened = s->named = false;
    while (rc < 0 && s->attempt < TRY_NONE) {
        s->box = NULL;
        rc = attempt_box(s, &e);
        if (rc == 0)
            return;
        if (may_pass(s, rc))
            break;
        s->attempt++;
    }
    s->box = NULL;
    no_box(s, &e);
}

void session_box(struct session *s)
{
    session_move(s, S_BOXING);
    try_box(s);
}
