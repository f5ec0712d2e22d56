/* store.c - the backend-independent half of the store: limits, deadlines,
 * answers.
 *
 * Every request is checked and copied here, so that backends see only valid
 * ones. Deadlines pass here, and closing waits here for operations under way.
 * This file knows nothing of SQLite or Redis. */
#include "store/store.h"

#include <stdio.h>

#include "base/rand.h"
#include "store/priv.h"

#define ROOM        "store"
#define SWEEP_MAX   ((uint64_t)60 * 1000)
#define SWEEP_SOON  ((uint64_t)1000) /* the first one, and while rows remain */
#define SWEEP_MEM   ((size_t)512 * 1024)
#define ROWS_USUAL  100
#define LINES_MAX   4096 /* leases waited for or held in this process */
#define OP_OVERHEAD ((size_t)16 * 1024)

/* --- birth --------------------------------------------------------------- */

const char *mo_call_state_name(enum mo_call_state state)
{
    static const char *const names[] = {
        [MO_CALL_PENDING] = "pending",   [MO_CALL_APPROVED] = "approved",
        [MO_CALL_RUNNING] = "running",   [MO_CALL_DONE] = "done",
        [MO_CALL_REJECTED] = "rejected", [MO_CALL_UNKNOWN] = "unknown",
    };

    return names[state];
}

static void on_sweep(struct mo_timer *t);
static void on_settled(struct mo_later *d);

void mo_store_init(struct mo_store *s, const struct mo_store_ops *ops,
                   struct mo_loop *l, const struct mo_store_opts *o)
{
    s->ops = ops;
    s->loop = l;
    s->history_ttl_ms = o->history_ttl_ms;
    s->audit_ttl_ms = o->audit_ttl_ms;
    s->deadline_ms = o->deadline_ms ? o->deadline_ms : MO_STORE_DEADLINE_MS;
    s->lease_ttl_ms = o->lease_ttl_ms ? o->lease_ttl_ms : MO_LEASE_TTL_MS;
    s->health.backend = ops->name;
    mo_map_init(&s->lines, LINES_MAX);
    mo_list_init(&s->leases);
    mo_timer_init(&s->sweep, on_sweep);
    mo_later_init(&s->later, on_settled);
    mo_timer_start(l, &s->sweep, SWEEP_SOON);
}

int mo_store_open(struct mo_loop *l, const struct mo_store_opts *o,
                  struct mo_store **out, struct mo_err *e)
{
    static const struct {
        struct mo_span scheme;
        int (*open)(struct mo_loop *l, const struct mo_store_opts *o,
                    struct mo_store **out, struct mo_err *e);
    } kinds[] = {
        {MO_SPAN("sqlite:"), mo_sqlite_open},
        {MO_SPAN("redis://"), mo_redis_open},
        {MO_SPAN("rediss://"), mo_redis_open},
        {MO_SPAN("redis+sentinel://"), mo_redis_open},
        {MO_SPAN("rediss+sentinel://"), mo_redis_open},
        {MO_SPAN("redis+unix:"), mo_redis_open},
    };
    struct mo_span url = mo_span_cstr(o->url);

    for (size_t i = 0; i < MO_COUNT(kinds); i++) {
        if (mo_span_starts(url, kinds[i].scheme))
            return kinds[i].open(l, o, out, e);
    }
    return mo_fail(e, MO_EINVAL,
                   "store: the address must begin with sqlite:, redis://, "
                   "rediss:// or redis+unix:");
}

/* --- health -------------------------------------------------------------- */

void mo_store_up(struct mo_store *s)
{
    if (!s->health.up && s->health.why[0])
        mo_log(mo_loop_log(s->loop), MO_INFO, ROOM, "%s: works again",
               s->ops->name);
    s->health.up = true;
    s->health.why[0] = '\0';
}

/* Logs once when the store becomes unavailable, not for every operation that
 * fails. */
void mo_store_down(struct mo_store *s, const struct mo_err *why)
{
    if (s->health.up || !s->health.why[0])
        mo_log_err(mo_loop_log(s->loop), MO_WARN, ROOM, why, "%s: unavailable",
                   s->ops->name);
    s->health.up = false;
    (void)snprintf(s->health.why, sizeof(s->health.why), "%.*s",
                   (int)sizeof(s->health.why) - 1, why->msg);
}

struct mo_store_health mo_store_health(const struct mo_store *s)
{
    struct mo_store_health h = s->health;

    h.queued = s->nasked;
    return h;
}

/* --- an operation's life ------------------------------------------------- */

static void on_deadline(struct mo_timer *t);
static void on_op_later(struct mo_later *d);

struct mo_op *mo_op_new(struct mo_store *s, enum mo_op_kind kind, size_t mem)
{
    struct mo_op *op = mo_new(struct mo_op);

    if (!op)
        return NULL;
    op->s = s;
    op->kind = kind;
    op->now_ms = mo_wall_ms();
    mo_list_init(&op->node);
    mo_arena_init(&op->mem, mem + OP_OVERHEAD);
    mo_timer_init(&op->deadline, on_deadline);
    mo_later_init(&op->later, on_op_later);
    s->nops++;
    return op;
}

void mo_op_free(struct mo_op *op)
{
    struct mo_store *s = op->s;

    mo_timer_stop(s->loop, &op->deadline);
    mo_later_cancel(&op->later);
    mo_arena_fini(&op->mem);
    s->bytes -= op->bytes;
    s->nops--;
    mo_free(op);
    mo_store_settle(s);
}

static bool asked_by_caller(const struct mo_op *op)
{
    return !op->to.on_op && op->kind != MO_OP_SWEEP;
}

static void answer_caller(struct mo_op *op)
{
    const struct mo_err *why = op->err.code ? &op->err : NULL;

    op->answered = true;
    mo_timer_stop(op->s->loop, &op->deadline);
    if (asked_by_caller(op))
        op->s->nasked--;
    op->s->health.ops++;
    if (why && why->code == MO_EUNAVAIL)
        op->s->health.failed++;
    if (why)
        op->rows = (struct mo_rows){0};
    if (op->to.on_written)
        op->to.on_written(op->to.ctx, &op->written, why);
    else if (op->to.on_rows)
        op->to.on_rows(op->to.ctx, &op->rows, why);
    else if (op->to.on_counted)
        op->to.on_counted(op->to.ctx, &op->counted, why);
    else if (op->to.on_who)
        op->to.on_who(op->to.ctx, op->holder, op->fence, why);
    else if (op->to.on_broken)
        op->to.on_broken(op->to.ctx, why);
    else if (op->to.on_op)
        op->to.on_op(op->to.ctx, op);
}

void mo_op_finish(struct mo_op *op)
{
    mo_list_del(&op->node);
    if (op->kind == MO_OP_BREAK)
        mo_lease_wake(op->s, op->name);
    if (!op->answered)
        answer_caller(op);
    mo_op_free(op);
}

static void on_op_later(struct mo_later *d)
{
    mo_op_finish(mo_container_of(d, struct mo_op, later));
}

void mo_op_finish_later(struct mo_op *op)
{
    mo_loop_defer(op->s->loop, &op->later);
}

/* The backend may be writing the result now, on another thread: only members
 * that belong to the loop are touched. */
static void on_deadline(struct mo_timer *t)
{
    struct mo_op *op = mo_container_of(t, struct mo_op, deadline);
    struct mo_store *s = op->s;
    struct mo_op told = {
        .s = s, .kind = op->kind, .name = op->name, .to = op->to};

    (void)mo_fail(&told.err, MO_EUNAVAIL, "store: no answer from %s in %llu ms",
                  s->ops->name, (unsigned long long)s->deadline_ms);
    if (s->health.why[0])
        (void)mo_fail(&told.err, MO_EUNAVAIL, "store: %s", s->health.why);
    mo_timer_init(&told.deadline, on_deadline);
    op->answered = true;
    answer_caller(&told);
    if (s->ops->give_up)
        s->ops->give_up(s, op);
}

void mo_op_submit(struct mo_op *op, struct mo_op_answer to)
{
    struct mo_store *s = op->s;

    op->to = to;
    mo_timer_start(s->loop, &op->deadline, s->deadline_ms);
    if (asked_by_caller(op))
        s->nasked++;
    op->bytes = op->mem.held;
    s->bytes += op->bytes;
    s->ops->submit(s, op);
}

/* Checks that hold for every kind of request. */
static int check_room(const struct mo_store *s, size_t bytes, struct mo_err *e)
{
    if (s->closing)
        return mo_fail(e, MO_ECLOSED, "store: closed");
    if (s->nasked >= MO_STORE_OPS_MAX)
        return mo_fail(e, MO_EBUSY, "store: %d operations under way",
                       MO_STORE_OPS_MAX);
    if (s->bytes + bytes > MO_STORE_QUEUE_MAX)
        return mo_fail(e, MO_EBUSY, "store: too many bytes under way");
    return 0;
}

static int no_memory(struct mo_op *op, struct mo_err *e)
{
    if (op)
        mo_op_free(op);
    return mo_fail(e, MO_ENOMEM, "store");
}

static bool copy_span(struct mo_arena *a, struct mo_span *s)
{
    if (s->n)
        return mo_arena_span(a, *s, s) == 0;
    *s = MO_SPAN("");
    return true;
}

bool mo_store_id_ok(struct mo_span id)
{
    return id.n && id.n <= MO_STORE_ID_MAX && mo_span_only(id, MO_ALNUM "_.:-");
}

/* --- writing ------------------------------------------------------------- */

static int check_write(const struct mo_write *w, struct mo_err *e)
{
    bool named = w->kind == MO_WRITE_CALL || w->kind == MO_WRITE_MOVE ||
                 w->kind == MO_WRITE_MARK;

    if ((unsigned)w->kind > MO_WRITE_SHARE || (unsigned)w->to > MO_CALL_UNKNOWN)
        return mo_fail(e, MO_EINVAL, "store: unknown kind of write");
    if (named && !mo_store_id_ok(w->id))
        return mo_fail(e, MO_EINVAL,
                       "store: an id is 1 to %d of "
                       "A-Z a-z 0-9 _ . : -",
                       MO_STORE_ID_MAX);
    if (w->kind == MO_WRITE_MOVE && !w->from)
        return mo_fail(e, MO_EINVAL,
                       "store: MOVE needs the states a call may come from");
    if (w->doc.n > MO_STORE_DOC_MAX || w->text.n > MO_STORE_DOC_MAX)
        return mo_fail(e, MO_ETOOBIG, "store: a document has at most %zu bytes",
                       MO_STORE_DOC_MAX);
    if (w->at > INT64_MAX)
        return mo_fail(e, MO_EINVAL, "store: the time is out of range");
    return 0;
}

/* Bytes of the batch, or an error. */
static int check_batch(const struct mo_store_batch *b, size_t *bytes,
                       struct mo_err *e)
{
    *bytes = b->session.n + b->n * (sizeof(*b->writes) + 64);
    if (!b->n || !b->writes)
        return mo_fail(e, MO_EINVAL, "store: the batch is empty");
    if (b->n > MO_STORE_BATCH_MAX)
        return mo_fail(e, MO_ETOOBIG, "store: a batch has at most %d writes",
                       MO_STORE_BATCH_MAX);
    if (b->session.n && !mo_store_id_ok(b->session))
        return mo_fail(e, MO_EINVAL,
                       "store: a session's id is 1 to %d of "
                       "A-Z a-z 0-9 _ . : -",
                       MO_STORE_ID_MAX);
    for (size_t i = 0; i < b->n; i++) {
        const struct mo_write *w = &b->writes[i];
        int rc = check_write(w, e);

        if (rc < 0)
            return rc;
        if (!b->session.n && (w->kind < MO_WRITE_AUDIT || b->fence))
            return mo_fail(e, MO_EINVAL, "store: the batch needs a session");
        *bytes += w->id.n + w->doc.n + w->text.n;
    }
    if (*bytes > MO_STORE_BATCH_BYTES)
        return mo_fail(e, MO_ETOOBIG, "store: a batch has at most %zu bytes",
                       MO_STORE_BATCH_BYTES);
    return 0;
}

static bool copy_batch(struct mo_op *op, const struct mo_store_batch *b)
{
    struct mo_write *w = mo_arena_alloc(&op->mem, b->n * sizeof(*w));

    if (!w)
        return false;
    memcpy(w, b->writes, b->n * sizeof(*w));
    op->batch = *b;
    op->batch.writes = w;
    if (!copy_span(&op->mem, &op->batch.session))
        return false;
    for (size_t i = 0; i < b->n; i++) {
        if (!w[i].at)
            w[i].at = op->now_ms;
        if (!copy_span(&op->mem, &w[i].id) || !copy_span(&op->mem, &w[i].doc) ||
            !copy_span(&op->mem, &w[i].text))
            return false;
    }
    return true;
}

void mo_store_on_audit(struct mo_store *s,
                       void (*on_row)(void *ctx, struct mo_span session,
                                      uint64_t at, struct mo_span doc),
                       void *ctx)
{
    s->on_audit = on_row;
    s->on_audit_ctx = ctx;
}

static void call_audit_listener(const struct mo_store *s,
                                const struct mo_store_batch *b)
{
    for (size_t i = 0; s->on_audit && i < b->n; i++) {
        const struct mo_write *w = &b->writes[i];

        if (w->kind == MO_WRITE_AUDIT)
            s->on_audit(s->on_audit_ctx, b->session, w->at, w->doc);
    }
}

int mo_store_write(struct mo_store *s, const struct mo_store_batch *b,
                   void (*done)(void *ctx, const struct mo_written *w,
                                const struct mo_err *why),
                   void *ctx, struct mo_err *e)
{
    struct mo_op *op;
    size_t bytes = 0;
    int rc = check_batch(b, &bytes, e);

    if (rc == 0)
        rc = check_room(s, bytes, e);
    if (rc < 0)
        return rc;
    op = mo_op_new(s, MO_OP_WRITE, 2 * bytes);
    if (!op || !copy_batch(op, b))
        return no_memory(op, e);
    call_audit_listener(s, &op->batch);
    mo_op_submit(op, (struct mo_op_answer){.on_written = done, .ctx = ctx});
    return 0;
}

/* --- reading ------------------------------------------------------------- */

/* Each with a line end. */
static bool are_ids(struct mo_span list)
{
    if (list.n && list.p[list.n - 1] != '\n')
        return false;
    while (list.n)
        if (!mo_store_id_ok(mo_span_cut(&list, '\n')))
            return false;
    return true;
}

static int check_read(const struct mo_read *r, struct mo_err *e)
{
    static const struct {
        bool session, id, text;
    } needs[] = {
        [MO_READ_SESSION] = {.session = true},
        [MO_READ_HISTORY] = {.session = true},
        [MO_READ_CALLS] = {.session = true},
        [MO_READ_CALL] = {.session = true, .id = true},
        [MO_READ_SEARCH] = {.text = true},
        [MO_READ_AUDIT] = {0},
        [MO_READ_MARK] = {.id = true},
        [MO_READ_MARKS] = {.text = true},
        [MO_READ_DAY] = {0},
    };

    if ((unsigned)r->kind >= MO_COUNT(needs))
        return mo_fail(e, MO_EINVAL, "store: unknown kind of read");
    if ((r->session.n || needs[r->kind].session) && !mo_store_id_ok(r->session))
        return mo_fail(e, MO_EINVAL, "store: the session's id is not valid");
    if ((r->id.n || needs[r->kind].id) && r->kind != MO_READ_DAY &&
        !mo_store_id_ok(r->id))
        return mo_fail(e, MO_EINVAL, "store: the id is not valid");
    if (needs[r->kind].text && !mo_span_trim(r->text).n)
        return mo_fail(e, MO_EINVAL, "store: nothing to search for");
    if (r->text.n > MO_STORE_ID_MAX * 8 || r->id.n > MO_COUNTER_NAME_MAX)
        return mo_fail(e, MO_ETOOBIG,
                       "store: the text to search for is too long");
    if (r->among.n > MO_STORE_AMONG_MAX)
        return mo_fail(e, MO_ETOOBIG, "store: too many sessions to search");
    if (!are_ids(r->among))
        return mo_fail(e, MO_EINVAL, "store: a session's id is not valid");
    if (r->after > INT64_MAX || r->before > INT64_MAX ||
        r->conversation > INT64_MAX)
        return mo_fail(e, MO_EINVAL, "store: a number is out of range");
    return 0;
}

int mo_store_read(struct mo_store *s, const struct mo_read *r,
                  void (*done)(void *ctx, const struct mo_rows *rows,
                               const struct mo_err *why),
                  void *ctx, struct mo_err *e)
{
    struct mo_op *op;
    int rc = check_read(r, e);

    if (rc == 0)
        rc = check_room(s, 0, e);
    if (rc < 0)
        return rc;
    op = mo_op_new(s, MO_OP_READ, 2 * MO_STORE_ANSWER_MAX);
    if (!op)
        return no_memory(op, e);
    op->read = *r;
    if (!op->read.limit)
        op->read.limit = ROWS_USUAL;
    if (op->read.limit > MO_STORE_ROWS_MAX)
        op->read.limit = MO_STORE_ROWS_MAX;
    if (!copy_span(&op->mem, &op->read.session) ||
        !copy_span(&op->mem, &op->read.id) ||
        !copy_span(&op->mem, &op->read.text) ||
        !copy_span(&op->mem, &op->read.among))
        return no_memory(op, e);
    mo_op_submit(op, (struct mo_op_answer){.on_rows = done, .ctx = ctx});
    return 0;
}

/* --- counters ------------------------------------------------------------ */

bool mo_store_is_shared(const struct mo_store *s)
{
    return s->ops->is_shared;
}

static int check_counter(const struct mo_store *s, const struct mo_counter *c,
                         struct mo_err *e)
{
    int64_t most = c->kind == MO_COUNTER_DAY ? MO_COUNTER_SUM_MAX : 1000000;

    if ((unsigned)c->kind > MO_COUNTER_DAY || !c->name.n ||
        c->name.n > MO_COUNTER_NAME_MAX || c->holder.n > MO_COUNTER_NAME_MAX ||
        c->limit > (uint64_t)MO_COUNTER_SUM_MAX || c->add > most ||
        c->add < -most || c->day > UINT32_MAX)
        return mo_fail(e, MO_EINVAL, "store: a counter is out of range");
    if (c->kind != MO_COUNTER_DAY && !s->ops->is_shared)
        return mo_fail(e, MO_EINVAL, "store: only days are counted there");
    return 0;
}

int mo_store_count(struct mo_store *s, const struct mo_counter *v, size_t n,
                   void (*done)(void *ctx, const struct mo_counted *c,
                                const struct mo_err *why),
                   void *ctx, struct mo_err *e)
{
    struct mo_counter *copy;
    struct mo_op *op;
    int rc =
        n > 0 && n <= MO_COUNTERS_MAX
            ? 0
            : mo_fail(e, MO_EINVAL, "store: 1 to %d counters", MO_COUNTERS_MAX);

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = check_counter(s, &v[i], e);
    if (rc == 0)
        rc = check_room(s, 0, e);
    if (rc < 0)
        return rc;
    op = mo_op_new(s, MO_OP_COUNT, MO_COUNTERS_MAX * 3 * MO_COUNTER_NAME_MAX);
    copy = op ? mo_arena_alloc(&op->mem, n * sizeof(*copy)) : NULL;
    if (!copy)
        return no_memory(op, e);
    memcpy(copy, v, n * sizeof(*copy));
    for (size_t i = 0; i < n; i++)
        if (!copy_span(&op->mem, &copy[i].name) ||
            !copy_span(&op->mem, &copy[i].holder))
            return no_memory(op, e);
    op->counters = copy;
    op->ncounters = n;
    mo_op_submit(op, (struct mo_op_answer){.on_counted = done, .ctx = ctx});
    return 0;
}

struct mo_op *mo_op_lease(struct mo_store *s, enum mo_op_kind kind,
                          struct mo_span name, struct mo_span owner)
{
    struct mo_op *op = mo_op_new(s, kind, 2 * (MO_STORE_ID_MAX + 1));

    if (!op)
        return NULL;
    op->name = name;
    op->owner = owner;
    if (copy_span(&op->mem, &op->name) && copy_span(&op->mem, &op->owner))
        return op;
    mo_op_free(op);
    return NULL;
}

static int new_lease_op(struct mo_store *s, enum mo_op_kind kind,
                        struct mo_span name, struct mo_span owner,
                        struct mo_op **out, struct mo_err *e)
{
    int rc = check_room(s, 0, e);

    if (rc < 0)
        return rc;
    if (!mo_store_id_ok(name) || (owner.n && !mo_store_id_ok(owner)))
        return mo_fail(e, MO_EINVAL,
                       "store: the lease's name or owner is not valid");
    *out = mo_op_lease(s, kind, name, owner);
    return *out ? 0 : no_memory(NULL, e);
}

int mo_lease_holder(struct mo_store *s, struct mo_span name,
                    void (*done)(void *ctx, struct mo_span owner,
                                 uint64_t fence, const struct mo_err *why),
                    void *ctx, struct mo_err *e)
{
    struct mo_op *op = NULL;
    int rc = new_lease_op(s, MO_OP_WHO, name, MO_SPAN(""), &op, e);

    if (op == NULL)
        return rc;
    mo_op_submit(op, (struct mo_op_answer){.on_who = done, .ctx = ctx});
    return 0;
}

int mo_lease_break(struct mo_store *s, struct mo_span name,
                   struct mo_span owner, uint64_t fence,
                   void (*done)(void *ctx, const struct mo_err *why), void *ctx,
                   struct mo_err *e)
{
    struct mo_op *op = NULL;
    int rc = owner.n ? new_lease_op(s, MO_OP_BREAK, name, owner, &op, e)
                     : mo_fail(e, MO_EINVAL, "store: a lease has an owner");

    if (op == NULL)
        return rc;
    op->fence = fence;
    mo_op_submit(op, (struct mo_op_answer){.on_broken = done, .ctx = ctx});
    return 0;
}

/* --- sweeping ------------------------------------------------------------ */

/* Every minute, or more often if the time to live is shorter. */
static uint64_t sweep_ms(const struct mo_store *s)
{
    uint64_t ms = s->history_ttl_ms / 2;

    if (!ms || ms > SWEEP_MAX)
        return SWEEP_MAX;
    return ms < SWEEP_SOON ? SWEEP_SOON : ms;
}

static void on_swept(void *ctx, const struct mo_op *op)
{
    struct mo_store *s = ctx;

    if (!s->closing)
        mo_timer_start(s->loop, &s->sweep,
                       op->rows.more ? SWEEP_SOON : sweep_ms(s));
}

static void on_sweep(struct mo_timer *t)
{
    struct mo_store *s = mo_container_of(t, struct mo_store, sweep);
    struct mo_op *op = mo_op_new(s, MO_OP_SWEEP, SWEEP_MEM);

    if (!op) {
        mo_timer_start(s->loop, &s->sweep, SWEEP_MAX);
        return;
    }
    mo_op_submit(op, (struct mo_op_answer){.on_op = on_swept, .ctx = s});
}

/* --- the end ------------------------------------------------------------- */

void mo_store_settle(struct mo_store *s)
{
    if (s->closing && !s->closed && !s->nops && mo_list_empty(&s->leases))
        mo_loop_defer(s->loop, &s->later);
}

static void on_settled(struct mo_later *d)
{
    struct mo_store *s = mo_container_of(d, struct mo_store, later);

    if (s->closed || s->nops || !mo_list_empty(&s->leases))
        return;
    s->closed = true;
    s->ops->close(s);
}

void mo_store_close(struct mo_store *s, void (*gone)(void *ctx), void *ctx)
{
    if (!s)
        return;
    MO_BUG_ON(s->closing);
    s->closing = true;
    s->gone = (struct mo_gone){gone, ctx};
    mo_timer_stop(s->loop, &s->sweep);
    mo_lease_close_all(s);
    mo_store_settle(s);
}

void mo_store_gone(struct mo_store *s)
{
    struct mo_gone gone = s->gone;

    mo_timer_stop(s->loop, &s->sweep);
    mo_later_cancel(&s->later);
    mo_map_fini(&s->lines);
    mo_free(s);
    mo_gone_fire(gone);
}
