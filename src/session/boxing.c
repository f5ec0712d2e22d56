/* boxing.c - the second half of opening a session: its box, and the connection
 * to the server in it; and losing them.
 *
 * A box is had in one of three ways, best first (enum session_try). Each
 * failure leads to the next way, unless waiting may help: files are not given
 * up because of a temporary error.
 *
 * A box and its connection end separately. LOSING waits for both, so that
 * calls in flight have failed with the cause before any hold is told of the
 * loss. */
#include <stdio.h>

#include "base/rand.h"
#include "session/priv.h"

/* --- ready, and not any more --------------------------------------------- */

static void try_box(struct session *s);

static void fill_info(struct session *s)
{
    bool kept = s->attempt != TRY_START || s->files_loaded;

    s->info = (struct mo_session_info){
        .id = s->id,
        .box = s->row.box,
        .driver = s->row.driver,
        .mounts = s->ss->o.spec.mounts,
        .owner = s->row.owner,
        .resumed = s->known,
        .workspace = kept           ? MO_WORKSPACE_KEPT
                     : s->old_files ? MO_WORKSPACE_LOST
                                    : MO_WORKSPACE_FRESH,
        .elsewhere = !kept && s->old_files && s->elsewhere,
        .keeps_files = s->row.files[0] != '\0',
        .fence = s->fence,
        .data = mo_buf_view(&s->data),
        .conn = s->conn,
    };
}

static void check_ready(struct session *s)
{
    uint64_t *count[] = {&s->ss->stats.adopted, &s->ss->stats.revived,
                         &s->ss->stats.started};

    if (s->state != S_OPENING || !s->opened || !s->named)
        return;
    mo_session_move(s, S_READY);
    ++*count[s->attempt];
    session_log(s, MO_INFO, mo_now_ns() - s->begun_ns, NULL, "%s",
                s->served_once ? "has a new box"
                : s->known     ? "opened again"
                               : "opened");
    fill_info(s);
    s->served_once = true;
    mo_session_touched(s);
    mo_list_each_entry (h, &s->holds, struct mo_hold, node) {
        mo_hold_tell(h, h->ready ? N_BOX : N_READY);
    }
    mo_session_answer_uses(s, NULL);
}

static void box_error(const struct session *s, struct mo_err *e)
{
    const struct mo_err *why = s->end.why;

    if (s->fault.code) {
        *e = s->fault;
        return;
    }
    (void)mo_fail(
        e, why ? why->code : MO_ECLOSED, "the session's box has ended: %s%s%s",
        mo_box_cause_name(s->end.cause), why ? ": " : "", why ? why->msg : "");
}

static struct mo_budget_who owner_of(const struct session *s)
{
    return (struct mo_budget_who){.person = mo_span_cstr(s->row.owner)};
}

/* The box is gone, or (stays) nobody here uses it any more. */
void mo_session_uncount_box(struct session *s, bool stays)
{
    const struct mo_sessions_opts *o = &s->ss->o;
    const struct mo_budget_who who = owner_of(s);
    const struct mo_budget_holding *f = s->ss->holding;
    struct mo_span id = mo_span_cstr(s->id);

    if (!s->ss->budget)
        return;
    if (stays)
        f->release_after(s->ss->budget, MO_BUDGET_BOXES, &who, id,
                         o->idle_ms + 2 * o->sweep_ms);
    else
        f->release(s->ss->budget, MO_BUDGET_BOXES, &who, id);
}

/* No box can be had. A session that was ready before may try again later. */
static void no_box(struct session *s, const struct mo_err *why)
{
    mo_session_uncount_box(s, false);
    if (!s->served_once) {
        mo_session_fail(s, why);
        return;
    }
    if (s->attempt == TRY_NONE)
        s->attempt = TRY_START;
    mo_session_move(s, S_BOXLESS);
    mo_session_answer_uses(s, why);
}

/* True if the error may be temporary: a later try may find the box and its
 * files. */
static bool may_pass(const struct session *s, int code)
{
    if (s->attempt == TRY_START || s->up)
        return false;
    return code == MO_ENOMEM || code == MO_EBUSY || code == MO_EUNAVAIL ||
           code == MO_ECLOSED;
}

/* The error of a box that never became ready; 0: it has ended by itself. */
static int code_of(const struct mo_box_end *end)
{
    if (end->cause == MO_BOX_EXITED)
        return 0;
    if (end->cause == MO_BOX_ENGINE_GONE)
        return MO_EUNAVAIL;
    return end->why ? end->why->code : 0;
}

/* The box never became ready: try the next way. */
static void next_try(struct session *s)
{
    struct mo_err e;

    box_error(s, &e);
    if (may_pass(s, code_of(&s->end))) {
        no_box(s, &e);
        return;
    }
    if (s->attempt == TRY_ADOPT && s->up && !s->end.workspace_kept)
        s->attempt = TRY_REVIVE; /* it ran, and nothing was kept of it */
    if (++s->attempt == TRY_NONE) {
        no_box(s, &e);
        return;
    }
    if (s->state == S_LOSING)
        mo_session_move(s, S_BOXING);
    session_log(s, MO_INFO, 0, &e, "box cannot be used");
    try_box(s);
}

void mo_session_losing_step(struct session *s)
{
    struct mo_err e;

    if (!s->box && s->link) {
        box_error(s, &e);
        mo_boxlink_cause(s->link, &e);
    }
    if (s->box || s->conn || s->err || s->pending)
        return;
    mo_timer_stop(s->ss->loop, &s->cause);
    if (!s->opened || !s->named) {
        next_try(s);
        return;
    }
    s->ss->stats.lost++;
    s->attempt = s->end.cause == MO_BOX_ENGINE_GONE
                     ? TRY_ADOPT /* the box may still run */
                 : s->end.workspace_kept ? TRY_REVIVE
                                         : TRY_START;
    s->old_files = true;
    s->elsewhere = false;
    mo_session_uncount_box(s, false);
    mo_session_move(s, S_BOXLESS);
    mo_holds_tell(s, N_LOST);
    if (!mo_list_empty(&s->uses))
        mo_session_start_box(s);
}

/* Box or connection has ended, or must end. why: what we hold against it, or
 * NULL; the first reason counts. */
static void lose_box(struct session *s, const struct mo_err *why)
{
    if (why && !s->fault.code)
        s->fault = *why;
    mo_session_move(s, S_LOSING);
    s->info.conn = NULL;
    if (s->err)
        mo_stream_close(s->err, NULL);
    if (s->box)
        mo_box_stop(s->box);
    mo_session_losing_step(s);
}

/* --- the connection ------------------------------------------------------ */

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
        mo_link_close(mo_boxlink_link(s->link), NULL);
    s->link = NULL;
    if (mo_session_ends(s))
        return;
    lose_box(s, why);
}

static void on_notify(void *ctx, struct mo_conn *c, const struct mo_rpc *m,
                      uint64_t stream_of)
{
    (void)c;
    (void)stream_of;
    mo_holds_notify(ctx, m);
}

static void on_ask(void *ctx, struct mo_conn *c, struct mo_ask *a)
{
    (void)c;
    if (!mo_holds_ask(ctx, a))
        mo_ask_refuse(a, -32601, "nobody is there to answer");
}

static int dial_box(void *ctx, struct mo_conn *c, struct mo_err *e)
{
    struct session *s = ctx;

    if (!s->link || s->dialed)
        return mo_fail(e, MO_ECLOSED, "the box has ended");
    s->dialed = true;
    mo_conn_dialed(c, mo_boxlink_link(s->link), NULL);
    return 0;
}

/* A server that broke the protocol is stopped at once. One whose output has
 * just ended gets CAUSE_MS to exit by itself. */
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

void mo_session_cause_due(struct mo_timer *t)
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
        .dial = dial_box,
        .cb = &cb,
        .ctx = s,
    };
    int rc;

    /* An earlier process may have died in the middle of a line: end that line.
     */
    if (adopted)
        (void)mo_stream_write(io, MO_SPAN("\n"));
    s->dialed = false;
    rc = mo_boxlink_new(s->ss->loop, io, on_output_end, s, &s->link, e);
    if (rc < 0)
        return rc;
    rc = mo_conn_open(s->ss->loop, &o, &s->conn, e);
    if (rc < 0)
        mo_link_close(mo_boxlink_link(mo_take_ptr(&s->link)), NULL);
    return rc;
}

/* --- the box ------------------------------------------------------------- */

static void on_err_read(void *ctx, char *p, size_t n)
{
    struct session *s = ctx;

    session_log(s, MO_DEBUG, 0, NULL, "stderr of the box: %.*s",
                (int)(n > 1000 ? 1000 : n), p);
}

static void on_err_close(void *ctx, const struct mo_err *why)
{
    struct session *s = ctx;

    (void)why;
    s->err = NULL;
    (void)mo_session_ends(s);
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
    if (mo_session_landed(s))
        return;
    if (why)
        lose_box(s, why);
    else
        check_ready(s);
}

/* Writes the box's name to the row before any hold is told of it. */
static int name_box(struct session *s, struct mo_err *e)
{
    const struct mo_boxes *of =
        s->attempt == TRY_START ? s->ss->o.drivers[0] : mo_session_driver(s);

    s->named = s->attempt == TRY_ADOPT;
    if (s->named)
        return 0;
    if (s->elsewhere && s->attempt == TRY_START && !s->files_loaded)
        session_log(s, MO_WARN, 0, NULL,
                    "its files are at %s, which this server cannot reach: its "
                    "new box has none of them",
                    s->row.where);
    (void)snprintf(s->row.box, sizeof(s->row.box), "%s", mo_box_id(s->box));
    (void)snprintf(s->row.where, sizeof(s->row.where), "%s",
                   mo_boxes_where(of));
    if (s->attempt == TRY_START)
        (void)snprintf(s->row.files, sizeof(s->row.files), "%s",
                       mo_box_files(s->box));
    (void)snprintf(s->row.driver, sizeof(s->row.driver), "%s",
                   mo_box_driver(s->box));
    s->row.asleep = false;
    if (!s->row.created)
        s->row.created = wall_now(s->ss);
    return mo_session_keep_row(s, on_named, s, e);
}

/* A box that was started for a call is a part of its trace. */
static void trace_start(struct session *s, const struct mo_box *b,
                        const char *how)
{
    struct mo_trace in = {.v = {mo_span_cstr(s->traceparent)}};
    struct mo_trace_span *t = mo_trace_begin(
        mo_loop_tracer(s->ss->loop), MO_TRACE_INTERNAL, "start box", &in, true);

    mo_trace_began(t, s->begun_ns);
    mo_trace_text(t, "gen_ai.conversation.id", mo_span_cstr(s->id));
    mo_trace_text(t, "mcp_orchestrator.box.driver",
                  mo_span_cstr(mo_box_driver(b)));
    mo_trace_text(t, "mcp_orchestrator.box.way", mo_span_cstr(how));
    mo_trace_end(t);
    s->traceparent[0] = '\0';
}

static void on_box_ready(void *ctx, struct mo_box *b,
                         const struct mo_box_io *io)
{
    static const char *const way[] = {"adopted", "revived", "started"};
    struct session *s = ctx;
    struct mo_err e;
    int rc;

    s->up = true;
    s->files_loaded = mo_box_has_old_files(b);
    s->up_ns = mo_now_ns();
    session_log(s, MO_INFO, s->up_ns - s->begun_ns, NULL, "box %s %s",
                mo_box_id(b), way[s->attempt]);
    trace_start(s, b, way[s->attempt]);
    take_err(s, io->err);
    if (s->state == S_ENDING) { /* waited for only to let it go */
        s->box = b;
        mo_stream_close(io->io, NULL);
        (void)name_box(s, &e);
        mo_session_finish_step(s);
        return;
    }
    mo_session_move(s, S_OPENING);
    rc = name_box(s, &e);
    if (rc < 0)
        mo_stream_close(io->io, NULL);
    else
        rc = open_conn(s, io->io, &e);
    if (rc < 0)
        lose_box(s, &e);
}

/* ms is how long the box ran. A box that was let go lives on. */
static void log_box_end(const struct session *s)
{
    enum mo_box_cause cause = s->end.cause;
    enum mo_level lv = cause == MO_BOX_LET_GO ? MO_DEBUG
                       : cause == MO_BOX_STOPPED || s->state == S_ENDING
                           ? MO_INFO
                           : MO_WARN;

    session_log(s, lv, s->up_ns ? mo_now_ns() - s->up_ns : 0, s->end.why,
                "box ended: %s", mo_box_cause_name(cause));
}

static void on_box_gone(void *ctx, const struct mo_box_end *end)
{
    struct session *s = ctx;

    s->box = NULL;
    s->end = *end;
    s->end_why = end->why ? *end->why : s->fault;
    s->end.why = s->end_why.code ? &s->end_why : NULL;
    log_box_end(s);
    s->up_ns = 0;
    if (mo_session_ends(s))
        return;
    if (s->state == S_BOXING)
        next_try(s);
    else
        lose_box(s, NULL);
}

struct mo_boxes *mo_session_driver(const struct session *s)
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
    struct mo_boxes *of = mo_session_driver(s);
    struct mo_box_spec spec = o->spec;

    spec.session = s->id;
    spec.files = of == o->drivers[0] ? s->row.files : NULL;
    spec.linger_ms = o->idle_ms + 2 * o->sweep_ms;
    spec.expires = (wall_now(s->ss) + spec.linger_ms) / 1000;
    if (s->attempt == TRY_START)
        return mo_box_start(o->drivers[0], &spec, &cb, s, &s->box, e);
    if (!of)
        return mo_fail(e, MO_ENOTFOUND, "driver %s is not in use",
                       s->row.driver);
    if (s->attempt == TRY_ADOPT)
        return mo_box_adopt(of, s->row.box, s->id, &cb, s, &s->box, e);
    return mo_box_revive(of, s->row.box, &spec, &cb, s, &s->box, e);
}

static void try_box(struct session *s)
{
    struct mo_err e = {0};
    int rc = -1;

    mo_err_clear(&s->fault);
    s->up = s->opened = s->named = s->files_loaded = false;
    while (rc < 0 && s->attempt < TRY_NONE) {
        s->box = NULL;
        if (s->attempt != TRY_ADOPT && mo_holds_only_visit(s)) {
            no_box(s, mo_error(MO_EPOLICY, MO_SESSION_NO_BOX));
            return;
        }
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

/* --- the owner's budget -------------------------------------------------- */

static void refuse_box(struct session *s, const struct mo_budget_no *no)
{
    no_box(s, mo_error(MO_EPOLICY, "%s", no->text));
}

static void on_box_counted(struct mo_budget_ask *a,
                           const struct mo_budget_no *no)
{
    struct session *s = mo_container_of(a, struct session, budget);

    if (mo_session_landed(s))
        return;
    if (no)
        refuse_box(s, no);
    else
        try_box(s);
}

void mo_session_start_box(struct session *s)
{
    const struct mo_budget_who who = owner_of(s);
    enum mo_budget_answer yes = MO_BUDGET_YES;
    struct mo_budget_no no;

    if (s->served_once)
        s->begun_ns = mo_now_ns();
    mo_session_move(s, S_BOXING);
    s->budget.done = on_box_counted;
    if (s->ss->budget)
        yes = s->ss->holding->hold(s->ss->budget, MO_BUDGET_BOXES, &who,
                                   mo_span_cstr(s->id), &s->budget, &no);
    if (yes == MO_BUDGET_LATER)
        s->pending++;
    else if (yes == MO_BUDGET_NO)
        refuse_box(s, &no);
    else
        try_box(s);
}
