/* session_kit.c - the engine, the world and the users of session_kit.h. */
#include "session_kit.h"

#include <sys/socket.h>
#include <unistd.h>

/* --- the engine ---------------------------------------------------------- */

static struct world *world_of(struct mo_box *b)
{
    return mo_container_of(b->bs, struct world, bs);
}

unsigned running(const struct world *w)
{
    unsigned n = 0;

    for (size_t i = 0; i < RECORDS; i++)
        n += w->recs[i].used && w->recs[i].running;
    return n;
}

struct record *record_of(struct world *w, const char *id)
{
    for (size_t i = 0; i < RECORDS; i++) {
        if (w->recs[i].used && strcmp(w->recs[i].id, id) == 0)
            return &w->recs[i];
    }
    return NULL;
}

struct record *record_new(struct world *w, const char *session,
                          const char *instance)
{
    for (size_t i = 0; i < RECORDS; i++) {
        struct record *r = &w->recs[i];

        if (r->used)
            continue;
        memset(r, 0, sizeof(*r));
        r->used = r->running = true;
        r->w = w;
        (void)snprintf(r->id, sizeof(r->id), "b%u", ++w->started);
        put(r->session, sizeof(r->session), mo_span_cstr(session));
        put(r->instance, sizeof(r->instance), mo_span_cstr(instance));
        w->most = running(w) > w->most ? running(w) : w->most;
        return r;
    }
    fail_msg("too many boxes");
    return NULL;
}

void go_down(struct fake_box *f, enum mo_box_cause cause)
{
    mo_timer_stop(f->box.bs->loop, &f->up);
    f->end = (struct mo_box_end){.cause = cause, .code = -1};
    mo_timer_start(f->box.bs->loop, &f->down, 1);
}

void die(struct record *r, enum mo_box_cause cause, bool kept)
{
    r->running = false;
    r->kept = kept;
    r->used = kept;
    if (r->inner)
        mo_stream_close(r->inner, NULL);
    if (r->by) {
        go_down(r->by, cause);
        r->by->end.workspace_kept = kept;
        r->by->rec = NULL;
    }
    r->by = NULL;
}

__attribute__((format(printf, 2, 3))) static void
server_say(struct record *r, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if (r->inner)
        (void)mo_stream_write(r->inner, mo_span(line, (size_t)n));
}

static void server_line(struct world *w, struct record *r, struct mo_span line)
{
    struct mo_rpc m;

    r->lines++;
    if (line.n == 0)
        r->newlines++;
    if (mo_rpc_parse(line, &m, NULL) < 0 || m.kind != MO_RPC_REQUEST || w->mute)
        return;
    if (mo_json_str_eq(m.method, MO_SPAN("initialize")) && w->refuse_init)
        server_say(r,
                   "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":-1,"
                   "\"message\":\"once is enough\"}}\n",
                   (int)m.id.n, m.id.p);
    else if (mo_json_str_eq(m.method, MO_SPAN("initialize")))
        server_say(r,
                   "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{"
                   "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
                   "\"serverInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n",
                   (int)m.id.n, m.id.p);
    else if (mo_json_str_eq(m.method, MO_SPAN("test/files")))
        server_say(r,
                   "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"n\":%d}}\n",
                   (int)m.id.n, m.id.p, ++r->files);
    else if (mo_json_str_eq(m.method, MO_SPAN("test/notify")))
        server_say(r, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n");
    else if (mo_json_str_eq(m.method, MO_SPAN("test/oom")))
        die(r, MO_BOX_OOM, false);
    else if (mo_json_str_eq(m.method, MO_SPAN("test/shut")))
        mo_stream_close(r->inner, NULL);
}

static void server_read(void *ctx, char *p, size_t n)
{
    struct record *r = ctx;
    struct mo_span in = mo_span(p, n), line;

    while (in.n && r->inner && mo_frame_next(&r->f, &in, &line) == 1)
        server_line(r->w, r, line);
}

/* A box keeps its end open: it outlives who is attached to it. */
static void server_eof(void *ctx)
{
    (void)ctx;
}

static void server_closed(void *ctx, const struct mo_err *why)
{
    struct record *r = ctx;

    (void)why;
    r->inner = NULL;
    mo_frame_fini(&r->f);
}

static const struct mo_stream_cb server_cb = {
    .on_read = server_read, .on_eof = server_eof, .on_close = server_closed};

static int attach(struct fake_box *f, struct mo_box_io *io)
{
    struct record *r = f->rec;
    struct mo_loop *l = f->box.bs->loop;
    struct mo_stream *theirs = NULL;
    struct mo_err e;
    int v[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, v) < 0)
        return MO_EIO;
    if (mo_stream_from_fds(l, v[0], v[0], &io->io, &e) < 0) {
        (void)close(v[1]);
        return e.code;
    }
    if (mo_stream_from_fds(l, v[1], v[1], &theirs, &e) < 0) {
        mo_stream_close(io->io, NULL);
        return e.code;
    }
    mo_frame_init(&r->f, 1 << 20);
    r->inner = theirs;
    r->by = f;
    mo_stream_attach(theirs, &server_cb, r);
    return 0;
}

static void on_up(struct mo_timer *t)
{
    struct fake_box *f = mo_container_of(t, struct fake_box, up);
    struct mo_box_io io = {NULL, NULL};
    char id[16];

    if (!f->rec || attach(f, &io) < 0) {
        go_down(f, MO_BOX_REFUSED);
        return;
    }
    put(id, sizeof(id), mo_span_cstr(f->rec->id));
    mo_box_up(&f->box, id, &io);
}

static void on_down(struct mo_timer *t)
{
    struct fake_box *f = mo_container_of(t, struct fake_box, down);
    struct record *r = f->rec;

    if (r && r->inner)
        mo_stream_close(r->inner, NULL);
    if (r && f->end.cause != MO_BOX_LET_GO)
        r->used = r->running = false;
    if (r)
        r->by = NULL;
    mo_box_down(&f->box, &f->end);
}

static int begin(struct mo_box *b, struct record *r)
{
    struct fake_box *f = mo_container_of(b, struct fake_box, box);

    f->rec = r;
    mo_timer_init(&f->up, on_up);
    mo_timer_init(&f->down, on_down);
    mo_timer_start(b->bs->loop, &f->up, 1);
    return 0;
}

static int fake_start(struct mo_box *b, const struct mo_box_spec *spec,
                      bool warm, struct mo_err *e)
{
    struct world *w = world_of(b);

    (void)warm;
    if (w->refuse_start)
        return mo_fail(e, MO_EPOLICY, "the engine has had enough");
    return begin(b, record_new(w, spec->session, "me"));
}

static int fake_adopt(struct mo_box *b, const char *id, const char *session,
                      struct mo_err *e)
{
    struct record *r = record_of(world_of(b), id);

    (void)session, (void)e;
    world_of(b)->adopted++;
    return begin(b, r && r->running && !r->by ? r : NULL);
}

static int fake_revive(struct mo_box *b, const char *id,
                       const struct mo_box_spec *spec, struct mo_err *e)
{
    struct world *w = world_of(b);
    struct record *old = record_of(w, id), *r;

    if (!old || !old->kept || w->no_kept)
        return mo_fail(e, MO_ENOTFOUND, "nothing is kept of %s", id);
    r = record_new(w, spec->session, "me");
    r->files = old->files;
    old->used = false;
    w->revived++;
    return begin(b, r);
}

static void fake_stop(struct mo_box *b)
{
    world_of(b)->stopped++;
    go_down(mo_container_of(b, struct fake_box, box), MO_BOX_STOPPED);
}

static void fake_let_go(struct mo_box *b)
{
    world_of(b)->let_go++;
    go_down(mo_container_of(b, struct fake_box, box), MO_BOX_LET_GO);
}

/* Listing and removing answer from the loop, too. */
struct asked {
    struct mo_later later;
    struct world *w;
    char id[16];
    size_t from; /* the first record of this part */
    mo_box_rows_fn *listed;
    void (*removed)(void *, const struct mo_err *);
    void *ctx;
};

static void tell_part(struct asked *a)
{
    struct world *w = a->w;
    struct mo_box_row v[RECORDS];
    struct mo_box_rows rows = {.v = v};
    char next[24];
    size_t i = a->from;

    for (; i < RECORDS && (!w->part || rows.n < w->part); i++) {
        struct record *x = &w->recs[i];

        if (x->used)
            v[rows.n++] = (struct mo_box_row){.id = x->id,
                                              .session = x->session,
                                              .instance = x->instance,
                                              .policy = "",
                                              .running = x->running};
    }
    (void)snprintf(next, sizeof(next), "%zu", i);
    if (i < RECORDS)
        rows.next = next;
    w->parts++;
    a->listed(a->ctx, &rows, NULL);
}

static void on_asked(struct mo_later *d)
{
    struct asked *a = mo_container_of(d, struct asked, later);
    struct world *w = a->w;
    struct record *r = record_of(w, a->id);

    if (a->listed)
        tell_part(a);
    if (a->removed && r) {
        w->removed++;
        r->used = r->running = false;
    }
    if (a->removed)
        a->removed(a->ctx, NULL);
    mo_free(a);
}

static struct asked *asked_new(struct mo_boxes *bs, void *ctx)
{
    struct asked *a = mo_new(struct asked);

    if (!a)
        return NULL;
    a->w = mo_container_of(bs, struct world, bs);
    a->ctx = ctx;
    mo_later_init(&a->later, on_asked);
    mo_loop_defer(bs->loop, &a->later);
    return a;
}

static int fake_list(struct mo_boxes *bs, const char *from,
                     mo_box_rows_fn *done, void *ctx, struct mo_err *e)
{
    struct asked *a = asked_new(bs, ctx);
    uint64_t first = 0;

    if (!a)
        return mo_fail(e, MO_ENOMEM, "list");
    if (from)
        assert_int_equal(mo_span_u64(mo_span_cstr(from), &first), 0);
    a->from = first;
    a->listed = done;
    return 0;
}

static int fake_remove(struct mo_boxes *bs, const char *id,
                       void (*done)(void *, const struct mo_err *), void *ctx,
                       struct mo_err *e)
{
    struct asked *a = asked_new(bs, ctx);

    if (!a)
        return mo_fail(e, MO_ENOMEM, "remove");
    put(a->id, sizeof(a->id), mo_span_cstr(id));
    a->removed = done;
    return 0;
}

static void fake_close(struct mo_boxes *bs)
{
    mo_container_of(bs, struct world, bs)->closed = true;
    mo_gone_fire(bs->gone);
}

static void on_weighed(struct mo_later *d)
{
    struct weighed *a = mo_container_of(d, struct weighed, later);
    const struct mo_box_stats s = {
        .memory = 4096, .memory_peak = 8192, .cpu_us = 77, .pids = 3};
    struct mo_err e;

    (void)mo_fail(&e, MO_ECLOSED, "it went");
    a->done(a->ctx, a->w->no_stats ? NULL : &s, a->w->no_stats ? &e : NULL);
    mo_free(a);
}

static int fake_stats(struct mo_box *b,
                      void (*done)(void *, const struct mo_box_stats *,
                                   const struct mo_err *),
                      void *ctx, struct mo_err *e)
{
    struct weighed *a = mo_new(struct weighed);
    struct world *w = world_of(b);

    if (!a)
        return mo_fail(e, MO_ENOMEM, "stats");
    *a = (struct weighed){.w = w, .done = done, .ctx = ctx};
    mo_later_init(&a->later, on_weighed);
    if (w->slow_stats && w->nweighed < RECORDS)
        w->weighed[w->nweighed++] = a;
    else
        mo_loop_defer(b->bs->loop, &a->later);
    return 0;
}

void weigh(struct world *w)
{
    while (w->nweighed > 0)
        on_weighed(&w->weighed[--w->nweighed]->later);
}

static const struct mo_box_ops fake_ops = {
    .name = "fake",
    .box_size = sizeof(struct fake_box),
    .start = fake_start,
    .adopt = fake_adopt,
    .revive = fake_revive,
    .stop = fake_stop,
    .let_go = fake_let_go,
    .stats = fake_stats,
    .list = fake_list,
    .remove = fake_remove,
    .close = fake_close,
};

/* --- the world ----------------------------------------------------------- */

static uint64_t world_wall(void *ctx)
{
    return ((struct world *)ctx)->now;
}

static bool world_dead(void *ctx, struct mo_span instance)
{
    struct world *w = ctx;

    return w->dead && mo_span_is(instance, w->dead);
}

int world_sessions(struct world *w, uint64_t wait_ms)
{
    struct mo_boxes *drivers[] = {&w->bs};
    struct mo_sessions_opts o = {
        .store = &w->store,
        .drivers = drivers,
        .ndrivers = 1,
        .spec = {.limits = mo_box_limits_default, .session = ""},
        .instance = "me",
        .idle_ms = 900000,
        .keep_ms = 86400000,
        .warn_ms = 60000,
        .sweep_ms = 3600000,
        .wait_ms = wait_ms,
        .is_dead = world_dead,
        .dead_ctx = w,
        .wall = world_wall,
        .wall_ctx = w,
    };
    struct mo_err e;

    w->ss_gone = false;
    return mo_sessions_open(w->l, &o, &w->ss, &e);
}

void world_init(struct world *w)
{
    struct mo_err e;

    memset(w, 0, sizeof(*w));
    w->now = 1000000000;
    w->l = mo_loop_new(NULL, &e);
    assert_non_null(w->l);
    w->store.l = w->l;
    mo_list_init(&w->store.waiting);
    mo_boxes_setup(&w->bs, w->l, &fake_ops);
}

void world_open(struct world *w)
{
    world_init(w);
    assert_int_equal(world_sessions(w, LONG), 0);
}

static void on_ss_gone(void *ctx)
{
    ((struct world *)ctx)->ss_gone = true;
}

static bool is_ss_gone(void *ctx)
{
    return ((struct world *)ctx)->ss_gone;
}

static bool is_closed(void *ctx)
{
    return ((struct world *)ctx)->closed;
}

void world_close_sessions(struct world *w)
{
    mo_sessions_close(w->ss, on_ss_gone, w);
    assert_true(mo_loop_until(w->l, is_ss_gone, w, LONG));
}

void world_fini(struct world *w)
{
    mo_boxes_close(&w->bs, NULL, NULL);
    assert_true(mo_loop_until(w->l, is_closed, w, LONG));
    for (size_t i = 0; i < RECORDS; i++) {
        if (w->recs[i].inner)
            mo_stream_close(w->recs[i].inner, NULL);
    }
    mo_loop_run(w->l);
    assert_int_equal(w->store.ops, 0);
    mo_loop_free(w->l);
}

void world_close(struct world *w)
{
    world_close_sessions(w);
    world_fini(w);
}

static void on_swept(void *ctx)
{
    ((struct world *)ctx)->swept = true;
}

static bool is_swept(void *ctx)
{
    return ((struct world *)ctx)->swept;
}

void sweep(struct world *w)
{
    struct mo_err e;

    w->swept = false;
    assert_int_equal(mo_sessions_sweep(w->ss, on_swept, w, &e), 0);
    assert_true(mo_loop_until(w->l, is_swept, w, LONG));
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

void turns(struct world *w, int n)
{
    while (n-- > 0)
        (void)mo_loop_until(w->l, never, NULL, 1);
}

/* --- a user of a session ------------------------------------------------- */

void user_take(struct user *u, const struct mo_session_info *i)
{
    u->resumed = i->resumed;
    u->workspace = i->workspace;
    u->elsewhere = i->elsewhere;
    u->conn = i->conn;
    put(u->box, sizeof(u->box), mo_span_cstr(i->box));
    put(u->data, sizeof(u->data), i->data);
    assert_string_equal(i->driver, "fake");
    assert_true(i->fence > 0);
}

static void user_ready(void *ctx, struct mo_hold *h,
                       const struct mo_session_info *info)
{
    struct user *u = ctx;

    assert_ptr_equal(h, u->h);
    assert_int_equal(u->closed, 0);
    u->ready++;
    user_take(u, info);
}

static void user_box(void *ctx, struct mo_hold *h, const struct mo_box_end *end,
                     const struct mo_session_info *info)
{
    struct user *u = ctx;

    (void)h;
    assert_int_equal(u->closed, 0);
    assert_true(!end != !info);
    if (end) {
        u->lost++;
        u->cause = end->cause;
        u->conn = NULL;
    } else {
        u->again++;
        user_take(u, info);
    }
}

static void user_idle(void *ctx, struct mo_hold *h, unsigned seconds)
{
    struct user *u = ctx;

    (void)h;
    u->idle++;
    u->seconds = seconds;
}

static void user_notify(void *ctx, struct mo_hold *h, const struct mo_rpc *m)
{
    (void)h;
    (void)m;
    ((struct user *)ctx)->notified++;
}

static void user_closed(void *ctx, const char *reason, const struct mo_err *why)
{
    struct user *u = ctx;

    u->closed++;
    u->h = NULL;
    u->conn = NULL;
    put(u->reason, sizeof(u->reason), mo_span_cstr(reason));
    if (why)
        u->why = *why;
}

const struct mo_hold_cb user_cb = {
    .on_ready = user_ready,
    .on_box = user_box,
    .on_idle = user_idle,
    .on_notify = user_notify,
    .on_closed = user_closed,
};

bool is_settled(void *ctx)
{
    struct user *u = ctx;

    return u->ready || u->closed;
}

bool is_user_closed(void *ctx)
{
    return ((struct user *)ctx)->closed > 0;
}

int hold(struct world *w, struct user *u, const char *id)
{
    struct mo_err e;

    memset(u, 0, sizeof(*u));
    return mo_session_hold(w->ss, mo_span_cstr(id), mo_span(NULL, 0), &user_cb,
                           u, &u->h, &e);
}

void hold_ready(struct world *w, struct user *u, const char *id)
{
    assert_int_equal(hold(w, u, id), 0);
    assert_true(mo_loop_until(w->l, is_settled, u, LONG));
    if (!u->ready)
        fail_msg("not ready: %s: %s", u->reason, u->why.msg);
}

bool none_open(void *ctx)
{
    return mo_sessions_stats(((struct world *)ctx)->ss).open == 0;
}

void release(struct world *w, struct user *u)
{
    mo_session_release(u->h);
    u->h = NULL;
    assert_true(mo_loop_until(w->l, none_open, w, LONG));
}

static void on_answer(void *ctx, const struct mo_reply *r)
{
    struct answer *a = ctx;

    a->n++;
    if (r->err)
        a->err = *r->err;
    (void)mo_json_i64(mo_json_get(r->result, "n"), &a->files);
}

bool has_answer(void *ctx)
{
    return ((struct answer *)ctx)->n > 0;
}

bool call(struct user *u, struct answer *a, const char *method)
{
    struct mo_call_opts o = {.done = on_answer, .ctx = a};
    struct mo_err e;

    memset(a, 0, sizeof(*a));
    return mo_conn_request(u->conn, method, mo_span(NULL, 0), &o, &e) != NULL;
}

int64_t files(struct world *w, struct user *u)
{
    struct answer a;

    assert_true(call(u, &a, "test/files"));
    assert_true(mo_loop_until(w->l, has_answer, &a, LONG));
    assert_int_equal(a.err.code, 0);
    return a.files;
}
