/* janitor.c - the sweep: ends idle sessions and removes boxes without an
 * owner.
 *
 * A round has four parts, one after the other:
 *  1. our own open sessions: idle ones are warned, later ended. Activity in
 *     memory counts, work under way always does.
 *  2. the store's idle rows. A session with a box loses it and sleeps. One
 *     that sleeps is removed after keep_ms without activity, as its history
 *     is. REAP_BATCH of them at a time are opened like any session, lease
 *     first, so a session that is in use anywhere is left alone; those that
 *     may go on sleeping are not touched.
 *  3. every box of each driver. A box stays if its instance lives (it may not
 *     have written the box's name yet), or if a session's row names it. The
 *     instance is asked first: a dead one writes nothing any more. A box that
 *     was kept warm may not show whose it is (an engine's labels cannot be
 *     changed), so for those all rows are searched, once per dead instance.
 *  4. every kept workspace of each driver, by the same rule. Those of boxes
 *     that this process uses are not listed.
 *
 * The first round begins at once, the second soon after: requests that a dead
 * process made to an engine may still have been under way. */
#include <stdio.h>

#include "session/instance.h"
#include "session/priv.h"

#define REAP_BATCH 16
#define PAGE       128 /* rows read at a time */
#define SECOND_MS  2000

static void round_over(struct mo_sessions *ss);
static void next_driver(struct mo_sessions *ss);
static void next_suspect(struct mo_sessions *ss);

/* --- 1. our own ---------------------------------------------------------- */

static void warn_holds(struct session *s, uint64_t now, uint64_t left)
{
    s->warned = now;
    mo_list_each_entry (h, &s->holds, struct mo_hold, node) {
        h->idle_left = (unsigned)((left + 999) / 1000);
        if (h->ready)
            mo_hold_tell(h, N_IDLE);
    }
}

/* No session loses its box without a warning warn_ms before. */
static void check_open_session(struct session *s, uint64_t now)
{
    const struct mo_sessions_opts *o = &s->ss->o;
    uint64_t idle = now > s->active ? now - s->active : 0;
    uint64_t warn_ms = o->warn_ms < o->idle_ms ? o->warn_ms : o->idle_ms;
    uint64_t left = idle < o->idle_ms ? o->idle_ms - idle : 0;

    if (s->state != S_READY && s->state != S_BOXLESS)
        return;
    if (s->busy) {
        mo_session_touched(s);
    } else if (!s->warned && left <= warn_ms) {
        warn_holds(s, now, left > warn_ms ? left : warn_ms);
    } else if (s->warned && left == 0 && now - s->warned >= warn_ms) {
        s->ss->stats.reaped++;
        mo_session_finish(s, END_SLEEP, "idle", NULL);
    }
}

/* --- 2. the store's ------------------------------------------------------ */

static void next_batch(struct mo_sessions *ss);

/* The batch is over when each of its sessions is done. */
static void batch_step(struct mo_sessions *ss)
{
    if (ss->sweep.reaping)
        return;
    if (ss->closing)
        round_over(ss);
    else if (ss->sweep.more)
        next_batch(ss);
    else
        next_driver(ss);
}

void mo_janitor_reaped(struct mo_sessions *ss)
{
    ss->sweep.reaping--;
    batch_step(ss);
}

static void reap_session(struct mo_sessions *ss, struct mo_span id)
{
    struct session *s = NULL;

    if (mo_map_get(&ss->map, id) || mo_session_new(ss, id, &s, NULL) < 0)
        return;
    s->reap = true;
    ss->sweep.reaping++;
    mo_session_begin(s);
}

static bool has_expired(const struct mo_sessions *ss, uint64_t at, uint64_t now)
{
    return ss->o.keep_ms && at < now && now - at >= ss->o.keep_ms;
}

enum session_end mo_janitor_judge(struct session *s, uint64_t now)
{
    struct mo_sessions_stats *stats = &s->ss->stats;

    if (!s->has_row || s->active + s->ss->o.idle_ms > now)
        return END_LET_GO;
    if (has_expired(s->ss, s->active, now)) {
        *(s->row.box[0] ? &stats->reaped : &stats->expired) += 1;
        return END_CLOSE;
    }
    if (s->row.asleep)
        return END_LET_GO;
    stats->reaped++;
    return END_SLEEP;
}

/* Decided without the lease: only whether opening the session is worth it. */
static bool may_sleep_on(const struct mo_sessions *ss, const struct mo_row *r)
{
    struct mo_session_row row;

    return mo_session_row(r->doc, &row, NULL) == 0 && row.asleep &&
           !has_expired(ss, r->at, wall_now(ss));
}

static void on_idle_rows(void *ctx, const struct mo_rows *rows,
                         const struct mo_err *why)
{
    struct mo_sessions *ss = ctx;
    struct sweep *sw = &ss->sweep;

    if (why)
        mo_log_err(mo_loop_log(ss->loop), MO_WARN, "session", why,
                   "idle sessions cannot be listed");
    sw->more = !why && rows->more;
    sw->reaping = 1; /* one for this loop, until all have begun */
    for (size_t i = 0; !why && !ss->closing && i < rows->n; i++) {
        const struct mo_row *r = &rows->v[i];

        if (sw->reaping > REAP_BATCH) {
            sw->more = true;
            break;
        }
        sw->after = r->at;
        (void)snprintf(sw->after_id, sizeof(sw->after_id), "%.*s",
                       (int)r->session.n, r->session.p);
        if (!may_sleep_on(ss, r))
            reap_session(ss, r->session);
    }
    mo_janitor_reaped(ss);
}

static void next_batch(struct mo_sessions *ss)
{
    uint64_t now = wall_now(ss);
    struct mo_read r = {
        .kind = MO_READ_SESSIONS,
        .before = now > ss->o.idle_ms ? now - ss->o.idle_ms : 1,
        .after = ss->sweep.after,
        .id = mo_span_cstr(ss->sweep.after_id),
        .limit = PAGE,
    };

    if (mo_store_read(ss->o.store, &r, on_idle_rows, ss, NULL) < 0)
        next_driver(ss);
}

/* --- 3. boxes ------------------------------------------------------------ */

/* ASKED: an answer will come. KEEP: the box stays, or was dealt with. */
enum verdict { ASKED, KEEP };

static struct suspect *suspect_now(struct mo_sessions *ss)
{
    return mo_list_first(&ss->sweep.suspects, struct suspect, node);
}

/* The box that the present question is about. */
static struct suspect *suspect_asked(struct mo_sessions *ss)
{
    struct suspect *x = suspect_now(ss);

    MO_BUG_ON(!x);
    return x;
}

static void drop_suspect(struct mo_sessions *ss)
{
    mo_free(mo_list_pop(&ss->sweep.suspects, struct suspect, node));
}

/* Continues with the next box unless another answer will come. */
static void continue_round(struct mo_sessions *ss, enum verdict v)
{
    if (v == ASKED)
        return;
    drop_suspect(ss);
    next_suspect(ss);
}

static const char *kind_of(const struct mo_sessions *ss)
{
    return ss->sweep.files ? "workspace" : "box";
}

/* True if the row is of the box or workspace in question. */
static bool names(const struct mo_sessions *ss,
                  const struct mo_session_row *row, const struct suspect *x)
{
    return strcmp(ss->sweep.files ? row->files : row->box, x->id) == 0;
}

static void on_removed(void *ctx, const struct mo_err *why)
{
    struct mo_sessions *ss = ctx;

    if (why)
        mo_log_err(mo_loop_log(ss->loop), MO_WARN, "session", why,
                   "%s %s could not be removed", kind_of(ss),
                   suspect_asked(ss)->id);
    else
        ss->stats.swept++;
    continue_round(ss, KEEP);
}

static enum verdict remove_suspect(struct mo_sessions *ss)
{
    struct suspect *x = suspect_asked(ss);
    struct mo_boxes *of = ss->o.drivers[ss->sweep.driver];

    mo_log_about(mo_loop_log(ss->loop), MO_INFO, "session",
                 &(struct mo_log_facts){.session = x->session},
                 "%s %s has no owner: removing it", kind_of(ss), x->id);
    if (ss->sweep.files)
        return mo_boxes_forget(of, x->id, on_removed, ss, NULL) == 0 ? ASKED
                                                                     : KEEP;
    return mo_boxes_remove(of, x->id, on_removed, ss, NULL) == 0 ? ASKED : KEEP;
}

static bool in_use_here(struct mo_sessions *ss, const struct suspect *x)
{
    return mo_map_get(&ss->map, mo_span_cstr(x->session)) != NULL;
}

static void on_suspects_row(void *ctx, const struct mo_rows *rows,
                            const struct mo_err *why)
{
    struct mo_sessions *ss = ctx;
    struct suspect *x = suspect_asked(ss);
    struct mo_session_row row;
    bool named = false;

    /* A row that cannot be parsed may name the box. */
    if (!why && rows->n)
        named = mo_session_row(rows->v[0].doc, &row, NULL) < 0 ||
                names(ss, &row, x);
    if (why || named || ss->closing || in_use_here(ss, x))
        continue_round(ss, KEEP);
    else
        continue_round(ss, remove_suspect(ss));
}

static int read_names(struct mo_sessions *ss);

static void look_up_names(struct mo_sessions *ss, const struct mo_row *r)
{
    struct mo_session_row row;
    bool damaged = mo_session_row(r->doc, &row, NULL) < 0; /* may name any */

    ss->sweep.after = r->at;
    (void)snprintf(ss->sweep.after_id, sizeof(ss->sweep.after_id), "%.*s",
                   (int)r->session.n, r->session.p);
    mo_list_each_entry (x, &ss->sweep.suspects, struct suspect, node) {
        if (damaged || names(ss, &row, x))
            x->named = true;
    }
}

/* A page of all sessions; after the last one the box is judged. */
static void on_names(void *ctx, const struct mo_rows *rows,
                     const struct mo_err *why)
{
    struct mo_sessions *ss = ctx;
    struct suspect *x = suspect_asked(ss);

    for (size_t i = 0; !why && i < rows->n; i++)
        look_up_names(ss, &rows->v[i]);
    if (!why && !ss->closing && rows->more && rows->n) {
        if (read_names(ss) < 0)
            continue_round(ss, KEEP);
        return;
    }
    if (!why)
        (void)snprintf(ss->sweep.looked, sizeof(ss->sweep.looked), "%s",
                       x->instance);
    if (why || ss->closing || x->named)
        continue_round(ss, KEEP);
    else
        continue_round(ss, remove_suspect(ss));
}

static int read_names(struct mo_sessions *ss)
{
    struct mo_read r = {
        .kind = MO_READ_SESSIONS,
        .after = ss->sweep.after,
        .id = mo_span_cstr(ss->sweep.after_id),
        .limit = PAGE,
    };

    return mo_store_read(ss->o.store, &r, on_names, ss, NULL);
}

/* The box of a dead instance does not show whose it is. */
static enum verdict ask_names(struct mo_sessions *ss)
{
    struct suspect *x = suspect_asked(ss);

    if (x->named)
        return KEEP;
    if (strcmp(ss->sweep.looked, x->instance) == 0)
        return remove_suspect(ss);
    ss->sweep.after = 0;
    ss->sweep.after_id[0] = '\0';
    return read_names(ss) == 0 ? ASKED : KEEP;
}

/* Its instance is dead, or is us and does not use it. */
static enum verdict ask_row(struct mo_sessions *ss)
{
    struct suspect *x = suspect_asked(ss);
    struct mo_read r = {.kind = MO_READ_SESSION,
                        .session = mo_span_cstr(x->session)};

    if (!x->session[0])
        return ask_names(ss);
    return mo_store_read(ss->o.store, &r, on_suspects_row, ss, NULL) == 0
               ? ASKED
               : KEEP;
}

static void on_instance(void *ctx, struct mo_span owner, uint64_t fence,
                        const struct mo_err *why)
{
    struct mo_sessions *ss = ctx;
    struct sweep *sw = &ss->sweep;
    const char *instance = suspect_asked(ss)->instance;
    char *known = owner.n ? sw->alive : sw->dead;

    (void)fence;
    if (!why)
        (void)snprintf(known, sizeof(sw->alive), "%s", instance);
    if (why || owner.n || ss->closing)
        continue_round(ss, KEEP);
    else
        continue_round(ss, ask_row(ss));
}

static enum verdict ask_instance(struct mo_sessions *ss,
                                 const struct suspect *x)
{
    char name[sizeof(MO_INSTANCE_LEASE) + sizeof(x->instance)];

    (void)snprintf(name, sizeof(name), MO_INSTANCE_LEASE "%s", x->instance);
    return mo_lease_holder(ss->o.store, mo_span_cstr(name), on_instance, ss,
                           NULL) == 0
               ? ASKED
               : KEEP;
}

static bool is_dead(struct mo_sessions *ss, const char *instance)
{
    const struct mo_sessions_opts *o = &ss->o;

    return strcmp(instance, ss->sweep.dead) == 0 ||
           (o->is_dead && o->is_dead(o->dead_ctx, mo_span_cstr(instance)));
}

static enum verdict judge_suspect(struct mo_sessions *ss,
                                  const struct suspect *x)
{
    bool ours = strcmp(x->instance, ss->o.instance) == 0;

    if (ss->closing || in_use_here(ss, x))
        return KEEP;
    if (ours && !x->session[0] && !ss->sweep.files)
        return KEEP; /* a warm box of the pool */
    if (ours || is_dead(ss, x->instance))
        return ask_row(ss);
    if (strcmp(x->instance, ss->sweep.alive) == 0)
        return KEEP;
    return ask_instance(ss, x);
}

static void next_suspect(struct mo_sessions *ss)
{
    struct suspect *x = suspect_now(ss);

    for (; x; x = suspect_now(ss)) {
        if (judge_suspect(ss, x) == ASKED)
            return;
        drop_suspect(ss);
    }
    if (!ss->sweep.place[0])
        ss->sweep.driver++;
    next_driver(ss);
}

static void add_suspect(struct mo_sessions *ss, const struct mo_box_row *r)
{
    struct suspect *x = mo_new(struct suspect);

    if (!x)
        return; /* the next round finds it */
    (void)snprintf(x->id, sizeof(x->id), "%s", r->id);
    (void)snprintf(x->session, sizeof(x->session), "%s", r->session);
    (void)snprintf(x->instance, sizeof(x->instance), "%s", r->instance);
    mo_list_push(&ss->sweep.suspects, &x->node);
}

/* One part of them. The next is asked for when these are judged, so a round
 * sees all of them, whatever their number. */
static void on_boxes(void *ctx, const struct mo_box_rows *rows,
                     const struct mo_err *why)
{
    struct mo_sessions *ss = ctx;
    const char *next = why || !rows->next ? "" : rows->next;

    if (why)
        mo_log_err(mo_loop_log(ss->loop), MO_WARN, "session", why,
                   "%s cannot be listed",
                   ss->sweep.files ? "kept workspaces" : "boxes");
    (void)snprintf(ss->sweep.place, sizeof(ss->sweep.place), "%s", next);
    ss->sweep.looked[0] = '\0';
    for (size_t i = 0; !why && i < rows->n; i++)
        add_suspect(ss, &rows->v[i]);
    next_suspect(ss);
}

static void next_driver(struct mo_sessions *ss)
{
    size_t *i = &ss->sweep.driver;

    for (; !ss->closing && *i < ss->o.ndrivers; ++*i) {
        struct mo_boxes *of = ss->o.drivers[*i];
        const char *from = ss->sweep.place[0] ? ss->sweep.place : NULL;

        if ((ss->sweep.files
                 ? mo_boxes_files(of, from, on_boxes, ss, NULL)
                 : mo_boxes_list(of, from, on_boxes, ss, NULL)) == 0)
            return;
        ss->sweep.place[0] = '\0';
    }
    if (ss->closing || ss->sweep.files) {
        round_over(ss);
        return;
    }
    ss->sweep.files = true;
    *i = 0;
    next_driver(ss);
}

/* --- rounds -------------------------------------------------------------- */

static void on_tick(struct mo_timer *t)
{
    struct mo_sessions *ss = mo_container_of(t, struct mo_sessions, tick);
    struct sweep *sw = &ss->sweep;
    uint64_t now = wall_now(ss);

    sw->on = true;
    sw->driver = 0;
    sw->files = false;
    sw->after = 0;
    sw->after_id[0] = sw->alive[0] = sw->dead[0] = sw->place[0] = '\0';
    mo_list_each_entry_safe (s, &ss->all, struct session, node)
        check_open_session(s, now);
    next_batch(ss);
}

static void round_over(struct mo_sessions *ss)
{
    struct sweep *sw = &ss->sweep;
    struct mo_gone done = sw->done;
    uint64_t next = ss->o.sweep_ms;

    if (sw->rounds++ == 0 && next > SECOND_MS)
        next = SECOND_MS;
    sw->on = false;
    sw->first_over = true;
    if (!ss->closing && (sw->again || !ss->o.no_janitor))
        mo_timer_start(ss->loop, &ss->tick, sw->again ? 0 : next);
    if (!sw->again) {
        sw->done = (struct mo_gone){NULL, NULL};
        mo_gone_fire(done);
    }
    sw->again = false;
    mo_sessions_settle(ss);
}

int mo_sessions_sweep(struct mo_sessions *ss, void (*done)(void *ctx),
                      void *ctx, struct mo_err *e)
{
    struct sweep *sw = &ss->sweep;

    if (ss->closing)
        return mo_fail(e, MO_ECLOSED, "the program is ending");
    if (sw->done.fire)
        return mo_fail(e, MO_EBUSY, "a caller waits for a sweep already");
    sw->done = (struct mo_gone){done, ctx};
    sw->again = sw->on;
    if (!sw->on)
        mo_timer_start(ss->loop, &ss->tick, 0);
    return 0;
}

void mo_janitor_start(struct mo_sessions *ss)
{
    mo_list_init(&ss->sweep.suspects);
    mo_timer_init(&ss->tick, on_tick);
    if (!ss->o.no_janitor)
        mo_timer_start(ss->loop, &ss->tick, 0);
}
