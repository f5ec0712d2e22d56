/* sessions.c - all sessions of this process: opening, closing, ending one. */
#include "session/priv.h"

#define ARENA_MAX ((size_t)256 * 1024)

#define IDLE_MS  ((uint64_t)15 * 60 * 1000)
#define WARN_MS  60000
#define SWEEP_MS 60000
#define WAIT_MS  30000

/* --- one of them --------------------------------------------------------- */

bool mo_session_id_ok(struct mo_span id)
{
    return id.n > 0 && id.n <= MO_SESSION_ID_MAX &&
           mo_span_only(id, MO_ALNUM "_-");
}

int mo_session_new(struct mo_sessions *ss, struct mo_span id,
                   struct session **out, struct mo_err *e)
{
    struct session *s;
    int rc;

    if (!mo_session_id_ok(id))
        return mo_fail(e, MO_EINVAL,
                       "a session's id is 1 to %d of A-Z a-z 0-9 _ -",
                       MO_SESSION_ID_MAX);
    if (ss->closing)
        return mo_fail(e, MO_ECLOSED, "the program is ending");
    if (ss->n >= ss->o.max)
        return mo_fail(e, MO_EBUSY, "%u sessions are open already", ss->n);
    s = mo_new(struct session);
    rc = s ? mo_map_put(&ss->map, id, s, NULL) : MO_ENOMEM;
    if (rc < 0) {
        mo_free(s);
        return mo_fail(e, rc, "session");
    }
    s->ss = ss;
    memcpy(s->id, id.p, id.n);
    mo_buf_init(&s->data, MO_SESSION_DATA_MAX);
    mo_list_init(&s->holds);
    mo_list_init(&s->uses);
    mo_list_init(&s->kills);
    mo_list_init(&s->served);
    mo_timer_init(&s->flush, mo_session_flush_due);
    mo_timer_init(&s->cause, mo_session_cause_due);
    mo_list_push(&ss->all, &s->node);
    ss->n++;
    *out = s;
    return 0;
}

void mo_session_free(struct session *s)
{
    struct mo_sessions *ss = s->ss;

    mo_timer_stop(ss->loop, &s->flush);
    mo_timer_stop(ss->loop, &s->cause);
    (void)mo_map_del(&ss->map, mo_span_cstr(s->id));
    mo_list_del(&s->node);
    mo_buf_fini(&s->data);
    mo_free(s);
    ss->n--;
}

const char *mo_session_owner(const struct mo_sessions *ss, struct mo_span id)
{
    const struct session *s = mo_map_get(&ss->map, id);

    return s ? s->row.owner : "";
}

/* --- ending one from outside --------------------------------------------- */

static int end_one(struct mo_sessions *ss, struct mo_span id,
                   enum session_end how, mo_done_fn *done, void *ctx,
                   struct mo_err *e)
{
    struct session *s = mo_map_get(&ss->map, id);
    struct kill *k = mo_new(struct kill);
    bool fresh = !s;
    int rc = k ? 0 : mo_fail(e, MO_ENOMEM, "session");

    if (rc == 0 && fresh)
        rc = mo_session_new(ss, id, &s, e);
    if (rc < 0 || !s) {
        mo_free(k);
        return rc;
    }
    *k = (struct kill){.ss = ss, .how = how, .done = done, .ctx = ctx};
    mo_list_push(&s->kills, &k->node);
    ss->nkills++;
    if (fresh)
        mo_session_begin(s);
    else if (s->held && s->state != S_READING && s->state != S_ENDING)
        mo_session_finish(s, how, mo_session_end_reason(how), NULL);
    return 0;
}

int mo_session_end(struct mo_sessions *ss, struct mo_span id, bool forget,
                   mo_done_fn *done, void *ctx, struct mo_err *e)
{
    return end_one(ss, id, forget ? END_FORGET : END_CLOSE, done, ctx, e);
}

int mo_session_sleep(struct mo_sessions *ss, struct mo_span id,
                     mo_done_fn *done, void *ctx, struct mo_err *e)
{
    return end_one(ss, id, END_SLEEP, done, ctx, e);
}

/* --- all of them --------------------------------------------------------- */

static void on_over(struct mo_later *d)
{
    struct mo_sessions *ss = mo_container_of(d, struct mo_sessions, later);
    struct mo_gone gone = ss->gone;
    struct sweep sweep = ss->sweep;

    mo_map_fini(&ss->map);
    mo_arena_fini(&ss->arena);
    mo_free(ss);
    mo_gone_fire(sweep.done);
    mo_gone_fire(gone);
}

void mo_sessions_settle(struct mo_sessions *ss)
{
    if (ss->closing && ss->n == 0 && ss->nkills == 0 && !ss->sweep.on &&
        mo_list_empty(&ss->parting))
        mo_loop_defer(ss->loop, &ss->later);
}

void mo_sessions_budget(struct mo_sessions *ss, struct mo_budget *b,
                        const struct mo_budget_holding *hold)
{
    ss->budget = b;
    ss->holding = hold;
}

void mo_sessions_close(struct mo_sessions *ss, void (*gone)(void *ctx),
                       void *ctx)
{
    MO_BUG_ON(ss->closing);
    ss->closing = true;
    ss->gone = (struct mo_gone){gone, ctx};
    mo_timer_stop(ss->loop, &ss->tick);
    mo_list_each_entry_safe (s, &ss->all, struct session, node) {
        mo_session_answer_kills(&s->kills,
                                mo_error(MO_ECLOSED, "the program is ending"));
        if (s->state == S_ENDING)
            mo_holds_part(s, "shutdown", NULL); /* holds taken meanwhile */
        else
            mo_session_finish(s, END_LET_GO, "shutdown", NULL);
    }
    mo_sessions_settle(ss);
}

static uint64_t or_default(uint64_t v, uint64_t def)
{
    return v ? v : def;
}

static void take_settings(struct mo_sessions_opts *to,
                          const struct mo_sessions_opts *o)
{
    to->idle_ms = or_default(o->idle_ms, IDLE_MS);
    to->sweep_ms = or_default(o->sweep_ms, SWEEP_MS);
    to->max = (unsigned)or_default(o->max, MO_SESSIONS_MAX);
}

static int copy_opts(struct mo_sessions *ss, const struct mo_sessions_opts *o)
{
    struct mo_sessions_opts *to = &ss->o;
    size_t bytes = o->ndrivers * sizeof(struct mo_boxes *);
    struct mo_boxes **drivers = mo_arena_alloc(&ss->arena, bytes);

    *to = *o;
    to->instance =
        mo_arena_strndup(&ss->arena, o->instance, strlen(o->instance));
    if (!drivers || !to->instance ||
        mo_arena_span(&ss->arena, o->capabilities, &to->capabilities) < 0 ||
        mo_box_spec_copy(&ss->arena, &o->spec, &to->spec) < 0)
        return MO_ENOMEM;
    memcpy(drivers, o->drivers, bytes);
    to->drivers = drivers;
    to->warn_ms = or_default(o->warn_ms, WARN_MS);
    to->wait_ms = or_default(o->wait_ms, WAIT_MS);
    take_settings(to, o);
    return 0;
}

int mo_sessions_open(struct mo_loop *l, const struct mo_sessions_opts *o,
                     struct mo_sessions **out, struct mo_err *e)
{
    struct mo_sessions *ss = NULL;
    int rc;

    if (o->ndrivers == 0)
        return mo_fail(e, MO_EINVAL, "sessions: no driver for boxes");
    ss = mo_new(struct mo_sessions);
    if (!ss)
        return mo_fail(e, MO_ENOMEM, "sessions");
    ss->loop = l;
    mo_arena_init(&ss->arena, ARENA_MAX);
    rc = copy_opts(ss, o);
    if (rc < 0)
        (void)mo_fail(e, rc, "sessions");
    else if (ss->o.warm)
        rc = mo_boxes_warm(ss->o.drivers[0], &ss->o.spec, ss->o.warm, e);
    if (rc < 0) {
        mo_arena_fini(&ss->arena);
        mo_free(ss);
        return rc;
    }
    mo_map_init(&ss->map, MO_SESSIONS_MAX);
    mo_list_init(&ss->all);
    mo_list_init(&ss->parting);
    mo_later_init(&ss->later, on_over);
    mo_janitor_start(ss);
    *out = ss;
    return 0;
}

void mo_sessions_change(struct mo_sessions *ss,
                        const struct mo_sessions_opts *o)
{
    uint64_t was = ss->o.sweep_ms;

    take_settings(&ss->o, o);
    if (ss->o.sweep_ms != was && ss->sweep.first_over && mo_timer_on(&ss->tick))
        mo_timer_start(ss->loop, &ss->tick, ss->o.sweep_ms);
}

struct mo_sessions_stats mo_sessions_stats(const struct mo_sessions *ss)
{
    struct mo_sessions_stats st = ss->stats;

    st.open = ss->n;
    mo_list_each_entry (s, &ss->all, struct session, node)
        st.ready += s->state == S_READY;
    for (size_t i = 0; i < ss->o.ndrivers; i++)
        st.warm += mo_boxes_warm_now(ss->o.drivers[i]);
    return st;
}
