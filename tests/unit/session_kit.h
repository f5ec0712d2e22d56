/* session_kit.h - a world for sessions: a store in memory, an engine made of
 * timers whose boxes hold a tiny MCP server, one loop for all of it.
 *
 * The store and the leases here take the place of the real ones at link time.
 * They live in the test's struct; the engine's boxes outlive every driver, as
 * real ones do. */
#ifndef MO_SESSION_KIT_H
#define MO_SESSION_KIT_H

#include "mo_test.h"

#include <sys/socket.h>
#include <unistd.h>

#include "box/driver.h"
#include "codec/frame.h"
#include "codec/rpc.h"
#include "session/instance.h"
#include "session/session.h"

#define LONG    20000 /* ms; a deadline for hanging, not for speed */
#define ROWS    32
#define LEASES  32
#define RECORDS 64

/* --- the store ----------------------------------------------------------- */

struct row {
    bool used;
    char id[MO_SESSION_ID_MAX + 1];
    char doc[2048];
    uint64_t at;
};

struct held {
    char name[MO_STORE_ID_MAX + 1], owner[MO_STORE_ID_MAX + 1];
    uint64_t fence;
    struct mo_lease *by; /* NULL: somebody elsewhere */
};

enum op_kind { OP_WRITE, OP_READ, OP_WHO, OP_BREAK, OP_KINDS };

struct mo_store {
    struct mo_loop *l;
    struct row rows[ROWS];
    struct held leases[LEASES];
    char history[ROWS][MO_SESSION_ID_MAX + 1]; /* who has said something */
    struct mo_list waiting;                    /* leases */
    uint64_t fence;
    unsigned ops, writes;
    bool fail[OP_KINDS];
};

struct op {
    struct mo_later later;
    struct mo_store *s;
    struct mo_read r;
    char session[MO_STORE_ID_MAX + 1], id[MO_STORE_ID_MAX + 1];
    struct mo_err why;
    uint64_t fence;
    void (*written)(void *, const struct mo_written *, const struct mo_err *);
    void (*rows)(void *, const struct mo_rows *, const struct mo_err *);
    void (*who)(void *, struct mo_span, uint64_t, const struct mo_err *);
    void (*broken)(void *, const struct mo_err *);
    void *ctx;
};

struct mo_lease {
    struct mo_list node; /* waiting */
    struct mo_store *s;
    struct mo_later later;
    struct mo_timer wait;
    const struct mo_lease_cb *cb;
    void *ctx;
    char name[MO_STORE_ID_MAX + 1], owner[MO_STORE_ID_MAX + 1];
    uint64_t wait_ms;
    bool dropped, late;
};

static inline void put(char *out, size_t size, struct mo_span s)
{
    assert_true(s.n < size);
    if (s.n)
        memcpy(out, s.p, s.n);
    out[s.n] = '\0';
}

static inline struct row *row_of(struct mo_store *s, const char *id, bool make)
{
    struct row *empty = NULL;

    for (size_t i = 0; i < ROWS; i++) {
        if (s->rows[i].used && strcmp(s->rows[i].id, id) == 0)
            return &s->rows[i];
        if (!s->rows[i].used && !empty)
            empty = &s->rows[i];
    }
    if (!make)
        return NULL;
    assert_non_null(empty);
    empty->used = true;
    put(empty->id, sizeof(empty->id), mo_span_cstr(id));
    return empty;
}

static inline struct held *held_of(struct mo_store *s, const char *name)
{
    for (size_t i = 0; i < LEASES; i++) {
        if (s->leases[i].fence && strcmp(s->leases[i].name, name) == 0)
            return &s->leases[i];
    }
    return NULL;
}

static inline struct held *hold_lease(struct mo_store *s, const char *name,
                                      const char *owner, struct mo_lease *by)
{
    for (size_t i = 0; i < LEASES; i++) {
        struct held *h = &s->leases[i];

        if (h->fence)
            continue;
        put(h->name, sizeof(h->name), mo_span_cstr(name));
        put(h->owner, sizeof(h->owner), mo_span_cstr(owner));
        h->fence = ++s->fence;
        h->by = by;
        return h;
    }
    fail_msg("too many leases");
    return NULL;
}

static inline void wake_waiters(struct mo_store *s)
{
    mo_list_each (it, &s->waiting) {
        struct mo_lease *l = mo_container_of(it, struct mo_lease, node);

        mo_loop_defer(s->l, &l->later);
    }
}

static inline void free_lease(struct mo_store *s, const char *name)
{
    struct held *h = held_of(s, name);

    if (h)
        h->fence = 0;
    wake_waiters(s);
}

static inline bool has_history(const struct mo_store *s, const char *id)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(s->history[i], id) == 0)
            return true;
    }
    return false;
}

static inline void say_something(struct mo_store *s, const char *id, bool on)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (on ? !s->history[i][0] : strcmp(s->history[i], id) == 0) {
            put(s->history[i], sizeof(s->history[i]),
                mo_span_cstr(on ? id : ""));
            return;
        }
    }
}

static inline void apply(struct mo_store *s, const char *id,
                         const struct mo_write *w)
{
    struct row *r = row_of(s, id, w->kind == MO_WRITE_SESSION);

    if (w->kind == MO_WRITE_SESSION)
        put(r->doc, sizeof(r->doc), w->doc);
    if (r && (w->kind == MO_WRITE_SESSION || w->kind == MO_WRITE_TOUCH))
        r->at = w->at > r->at ? w->at : r->at;
    if (r && (w->kind == MO_WRITE_CLOSE || w->kind == MO_WRITE_FORGET))
        memset(r, 0, sizeof(*r));
    if (w->kind == MO_WRITE_FORGET)
        say_something(s, id, false);
}

static inline void on_op(struct mo_later *d)
{
    struct op *op = mo_container_of(d, struct op, later);
    struct mo_store *s = op->s;
    const struct mo_err *why = op->why.code ? &op->why : NULL;
    struct mo_row v[ROWS];
    struct mo_rows rows = {v, 0, false};
    struct mo_written w = {0};
    struct held *h = held_of(s, op->id);

    memset(v, 0, sizeof(v));
    for (size_t i = 0; op->rows && i < ROWS; i++) {
        struct row *r = &s->rows[i];
        bool one = op->r.kind == MO_READ_SESSION;

        if (!r->used || op->r.kind == MO_READ_HISTORY)
            continue;
        if (one ? strcmp(r->id, op->session) != 0
                : (r->at >= op->r.before ||
                   (op->r.after && r->at <= op->r.after)))
            continue;
        v[rows.n++] = (struct mo_row){.session = mo_span_cstr(r->id),
                                      .doc = mo_span_cstr(r->doc),
                                      .at = r->at};
    }
    if (op->r.kind == MO_READ_HISTORY && has_history(s, op->session))
        rows.n = 1;
    if (op->written)
        op->written(op->ctx, why ? NULL : &w, why);
    if (op->rows)
        op->rows(op->ctx, why ? NULL : &rows, why);
    if (op->who)
        op->who(op->ctx, mo_span_cstr(h ? h->owner : ""), h ? h->fence : 0,
                why);
    if (op->broken) {
        if (h && h->fence == op->fence)
            free_lease(s, op->id);
        op->broken(op->ctx, why);
    }
    s->ops--;
    mo_free(op);
}

static inline struct op *op_new(struct mo_store *s, enum op_kind kind,
                                void *ctx, struct mo_err *e)
{
    struct op *op = mo_new(struct op);

    if (!op) {
        (void)mo_fail(e, MO_ENOMEM, "op");
        return NULL;
    }
    op->s = s;
    op->ctx = ctx;
    if (s->fail[kind])
        (void)mo_fail(&op->why, MO_EUNAVAIL, "the store is away");
    mo_later_init(&op->later, on_op);
    mo_loop_defer(s->l, &op->later);
    s->ops++;
    return op;
}

int mo_store_write(struct mo_store *s, const struct mo_store_batch *b,
                   void (*done)(void *ctx, const struct mo_written *w,
                                const struct mo_err *why),
                   void *ctx, struct mo_err *e)
{
    struct op *op = op_new(s, OP_WRITE, ctx, e);
    char id[MO_STORE_ID_MAX + 1];
    struct held *h;

    if (!op)
        return MO_ENOMEM;
    s->writes++;
    op->written = done;
    put(id, sizeof(id), b->session);
    h = held_of(s, id);
    if (!op->why.code && (!h || h->fence != b->fence))
        (void)mo_fail(&op->why, MO_EPOLICY, "an old fence");
    for (size_t i = 0; !op->why.code && i < b->n; i++)
        apply(s, id, &b->writes[i]);
    return 0;
}

int mo_store_read(struct mo_store *s, const struct mo_read *r,
                  void (*done)(void *ctx, const struct mo_rows *rows,
                               const struct mo_err *why),
                  void *ctx, struct mo_err *e)
{
    struct op *op = op_new(s, OP_READ, ctx, e);

    if (!op)
        return MO_ENOMEM;
    op->rows = done;
    op->r = *r;
    put(op->session, sizeof(op->session), r->session);
    return 0;
}

int mo_lease_holder(struct mo_store *s, struct mo_span name,
                    void (*done)(void *ctx, struct mo_span owner,
                                 uint64_t fence, const struct mo_err *why),
                    void *ctx, struct mo_err *e)
{
    struct op *op = op_new(s, OP_WHO, ctx, e);

    if (!op)
        return MO_ENOMEM;
    op->who = done;
    put(op->id, sizeof(op->id), name);
    return 0;
}

int mo_lease_break(struct mo_store *s, struct mo_span name,
                   struct mo_span owner, uint64_t fence,
                   void (*done)(void *ctx, const struct mo_err *why), void *ctx,
                   struct mo_err *e)
{
    struct op *op = op_new(s, OP_BREAK, ctx, e);

    (void)owner;
    if (!op)
        return MO_ENOMEM;
    op->broken = done;
    op->fence = fence;
    put(op->id, sizeof(op->id), name);
    return 0;
}

static inline void lease_gone(struct mo_lease *l)
{
    mo_timer_stop(l->s->l, &l->wait);
    mo_later_cancel(&l->later);
    mo_list_del(&l->node);
    mo_free(l);
}

static inline void lease_refused(struct mo_lease *l, int code)
{
    struct held *h = held_of(l->s, l->name);
    struct mo_err e;

    (void)mo_fail(&e, code, "%s is held by %s", l->name,
                  h ? h->owner : "nobody");
    l->cb->on_held(l->ctx, l, 0, &e);
    lease_gone(l);
}

static inline void on_lease(struct mo_later *d)
{
    struct mo_lease *l = mo_container_of(d, struct mo_lease, later);
    struct held *h = held_of(l->s, l->name);

    if (l->dropped) {
        lease_refused(l, MO_ECANCELED);
    } else if (!h) {
        h = hold_lease(l->s, l->name, l->owner, l);
        mo_timer_stop(l->s->l, &l->wait);
        mo_list_del(&l->node);
        l->cb->on_held(l->ctx, l, h->fence, NULL);
    } else if (l->late || l->wait_ms == 0) {
        lease_refused(l, MO_ETIMEOUT);
    } else if (!mo_timer_on(&l->wait)) {
        mo_timer_start(l->s->l, &l->wait, l->wait_ms);
    }
}

static inline void on_lease_wait(struct mo_timer *t)
{
    struct mo_lease *l = mo_container_of(t, struct mo_lease, wait);

    l->late = true;
    mo_loop_defer(l->s->l, &l->later);
}

int mo_lease_take(struct mo_store *s, struct mo_span name, struct mo_span owner,
                  uint64_t wait_ms, const struct mo_lease_cb *cb, void *ctx,
                  struct mo_lease **out, struct mo_err *e)
{
    struct mo_lease *l = mo_new(struct mo_lease);

    if (!l)
        return mo_fail(e, MO_ENOMEM, "lease");
    l->s = s;
    l->cb = cb;
    l->ctx = ctx;
    l->wait_ms = wait_ms;
    put(l->name, sizeof(l->name), name);
    put(l->owner, sizeof(l->owner), owner);
    mo_later_init(&l->later, on_lease);
    mo_timer_init(&l->wait, on_lease_wait);
    mo_list_push(&s->waiting, &l->node);
    mo_loop_defer(s->l, &l->later);
    *out = l;
    return 0;
}

void mo_lease_drop(struct mo_lease *l)
{
    struct mo_store *s = l->s;
    struct held *h = held_of(s, l->name);

    if (!h || h->by != l) {
        l->dropped = true;
        mo_loop_defer(s->l, &l->later);
        return;
    }
    h->fence = 0;
    lease_gone(l);
    wake_waiters(s);
}

/* Another takes the name away from us. */
static inline void steal_lease(struct mo_store *s, const char *name)
{
    struct held *h = held_of(s, name);
    struct mo_lease *l = h->by;
    struct mo_err e;

    h->fence = 0;
    (void)hold_lease(s, name, "thief", NULL);
    (void)mo_fail(&e, MO_EPOLICY, "somebody else has it");
    l->cb->on_lost(l->ctx, &e);
    lease_gone(l);
}

/* --- the engine ---------------------------------------------------------- */

struct world;

struct record {
    bool used, running, kept;
    char id[16], session[MO_SESSION_ID_MAX + 1], instance[24];
    int files;               /* what is in the workspace */
    struct mo_stream *inner; /* the server's end, NULL: nobody is attached */
    struct mo_frame f;
    unsigned lines, newlines;
    struct world *w;
    struct fake_box *by;
};

struct world {
    struct mo_loop *l;
    struct mo_store store;
    struct mo_boxes bs;
    struct record recs[RECORDS];
    unsigned started, adopted, revived, stopped, let_go, removed, most;
    bool refuse_start, refuse_init, no_kept, mute;
    bool no_stats, slow_stats;
    struct weighed *weighed[RECORDS]; /* slow_stats: who waits */
    size_t nweighed;
    bool closed;
    uint64_t now;
    const char *dead; /* an instance */
    struct mo_sessions *ss;
    bool ss_gone, swept;
};

struct fake_box {
    struct mo_box box;
    struct mo_timer up, down;
    struct mo_box_end end;
    struct record *rec;
};

static inline struct world *world_of(struct mo_box *b)
{
    return mo_container_of(b->bs, struct world, bs);
}

static inline unsigned running(const struct world *w)
{
    unsigned n = 0;

    for (size_t i = 0; i < RECORDS; i++)
        n += w->recs[i].used && w->recs[i].running;
    return n;
}

static inline struct record *record_of(struct world *w, const char *id)
{
    for (size_t i = 0; i < RECORDS; i++) {
        if (w->recs[i].used && strcmp(w->recs[i].id, id) == 0)
            return &w->recs[i];
    }
    return NULL;
}

static inline struct record *record_new(struct world *w, const char *session,
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

static inline void go_down(struct fake_box *f, enum mo_box_cause cause)
{
    mo_timer_stop(f->box.bs->loop, &f->up);
    f->end = (struct mo_box_end){.cause = cause, .code = -1};
    mo_timer_start(f->box.bs->loop, &f->down, 1);
}

/* The box ends by itself. */
static inline void die(struct record *r, enum mo_box_cause cause, bool kept)
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

__attribute__((format(printf, 2, 3))) static inline void
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

static inline void server_line(struct world *w, struct record *r,
                               struct mo_span line)
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

static inline void server_read(void *ctx, char *p, size_t n)
{
    struct record *r = ctx;
    struct mo_span in = mo_span(p, n), line;

    while (in.n && r->inner && mo_frame_next(&r->f, &in, &line) == 1)
        server_line(r->w, r, line);
}

/* A box keeps its end open: it outlives who is attached to it. */
static inline void server_eof(void *ctx)
{
    (void)ctx;
}

static inline void server_closed(void *ctx, const struct mo_err *why)
{
    struct record *r = ctx;

    (void)why;
    r->inner = NULL;
    mo_frame_fini(&r->f);
}

static const struct mo_stream_cb server_cb = {
    .on_read = server_read, .on_eof = server_eof, .on_close = server_closed};

static inline int attach(struct fake_box *f, struct mo_box_io *io)
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

static inline void on_up(struct mo_timer *t)
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

static inline void on_down(struct mo_timer *t)
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

static inline int begin(struct mo_box *b, struct record *r)
{
    struct fake_box *f = mo_container_of(b, struct fake_box, box);

    f->rec = r;
    mo_timer_init(&f->up, on_up);
    mo_timer_init(&f->down, on_down);
    mo_timer_start(b->bs->loop, &f->up, 1);
    return 0;
}

static inline int fake_start(struct mo_box *b, const struct mo_box_spec *spec,
                             bool warm, struct mo_err *e)
{
    struct world *w = world_of(b);

    (void)warm;
    if (w->refuse_start)
        return mo_fail(e, MO_EPOLICY, "the engine has had enough");
    return begin(b, record_new(w, spec->session, "me"));
}

static inline int fake_adopt(struct mo_box *b, const char *id, struct mo_err *e)
{
    struct record *r = record_of(world_of(b), id);

    (void)e;
    world_of(b)->adopted++;
    return begin(b, r && r->running && !r->by ? r : NULL);
}

static inline int fake_revive(struct mo_box *b, const char *id,
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

static inline void fake_stop(struct mo_box *b)
{
    world_of(b)->stopped++;
    go_down(mo_container_of(b, struct fake_box, box), MO_BOX_STOPPED);
}

static inline void fake_let_go(struct mo_box *b)
{
    world_of(b)->let_go++;
    go_down(mo_container_of(b, struct fake_box, box), MO_BOX_LET_GO);
}

/* Listing and removing answer from the loop, too. */
struct asked {
    struct mo_later later;
    struct world *w;
    char id[16];
    void (*listed)(void *, const struct mo_box_row *, size_t,
                   const struct mo_err *);
    void (*removed)(void *, const struct mo_err *);
    void *ctx;
};

static inline void on_asked(struct mo_later *d)
{
    struct asked *a = mo_container_of(d, struct asked, later);
    struct world *w = a->w;
    struct record *r = record_of(w, a->id);
    struct mo_box_row v[RECORDS];
    size_t n = 0;

    for (size_t i = 0; a->listed && i < RECORDS; i++) {
        struct record *x = &w->recs[i];

        if (x->used)
            v[n++] = (struct mo_box_row){.id = x->id,
                                         .session = x->session,
                                         .instance = x->instance,
                                         .policy = "",
                                         .running = x->running};
    }
    if (a->listed)
        a->listed(a->ctx, v, n, NULL);
    if (a->removed && r) {
        w->removed++;
        r->used = r->running = false;
    }
    if (a->removed)
        a->removed(a->ctx, NULL);
    mo_free(a);
}

static inline struct asked *asked_new(struct mo_boxes *bs, void *ctx)
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

static inline int fake_list(struct mo_boxes *bs,
                            void (*done)(void *, const struct mo_box_row *,
                                         size_t, const struct mo_err *),
                            void *ctx, struct mo_err *e)
{
    struct asked *a = asked_new(bs, ctx);

    if (!a)
        return mo_fail(e, MO_ENOMEM, "list");
    a->listed = done;
    return 0;
}

static inline int fake_remove(struct mo_boxes *bs, const char *id,
                              void (*done)(void *, const struct mo_err *),
                              void *ctx, struct mo_err *e)
{
    struct asked *a = asked_new(bs, ctx);

    if (!a)
        return mo_fail(e, MO_ENOMEM, "remove");
    put(a->id, sizeof(a->id), mo_span_cstr(id));
    a->removed = done;
    return 0;
}

static inline void fake_close(struct mo_boxes *bs, void (*gone)(void *),
                              void *ctx)
{
    mo_container_of(bs, struct world, bs)->closed = true;
    if (gone)
        gone(ctx);
}

/* One answer is due: it comes by itself, or when the test says so. */
struct weighed {
    struct mo_later later;
    struct world *w;
    void (*done)(void *, const struct mo_box_stats *, const struct mo_err *);
    void *ctx;
};

static inline void on_weighed(struct mo_later *d)
{
    struct weighed *a = mo_container_of(d, struct weighed, later);
    const struct mo_box_stats s = {
        .memory = 4096, .memory_peak = 8192, .cpu_us = 77, .pids = 3};
    struct mo_err e;

    (void)mo_fail(&e, MO_ECLOSED, "it went");
    a->done(a->ctx, a->w->no_stats ? NULL : &s, a->w->no_stats ? &e : NULL);
    mo_free(a);
}

static inline int fake_stats(struct mo_box *b,
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

/* Those who are late answer now. */
static inline void weigh(struct world *w)
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

static inline uint64_t world_wall(void *ctx)
{
    return ((struct world *)ctx)->now;
}

static inline bool world_dead(void *ctx, struct mo_span instance)
{
    struct world *w = ctx;

    return w->dead && mo_span_is(instance, w->dead);
}

static inline int world_sessions(struct world *w, uint64_t wait_ms)
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

static inline void world_init(struct world *w)
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

static inline void world_open(struct world *w)
{
    world_init(w);
    assert_int_equal(world_sessions(w, LONG), 0);
}

static inline void on_ss_gone(void *ctx)
{
    ((struct world *)ctx)->ss_gone = true;
}

static inline bool is_ss_gone(void *ctx)
{
    return ((struct world *)ctx)->ss_gone;
}

static inline bool is_closed(void *ctx)
{
    return ((struct world *)ctx)->closed;
}

static inline void world_close_sessions(struct world *w)
{
    mo_sessions_close(w->ss, on_ss_gone, w);
    assert_true(mo_loop_until(w->l, is_ss_gone, w, LONG));
}

static inline void world_fini(struct world *w)
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

static inline void world_close(struct world *w)
{
    world_close_sessions(w);
    world_fini(w);
}

static inline void on_swept(void *ctx)
{
    ((struct world *)ctx)->swept = true;
}

static inline bool is_swept(void *ctx)
{
    return ((struct world *)ctx)->swept;
}

static inline void sweep(struct world *w)
{
    struct mo_err e;

    w->swept = false;
    assert_int_equal(mo_sessions_sweep(w->ss, on_swept, w, &e), 0);
    assert_true(mo_loop_until(w->l, is_swept, w, LONG));
}

/* A few turns of the loop, so that what is on its way arrives. */
static inline bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static inline void turns(struct world *w, int n)
{
    while (n-- > 0)
        (void)mo_loop_until(w->l, never, NULL, 1);
}

/* --- somebody who holds -------------------------------------------------- */

struct user {
    struct mo_hold *h;
    unsigned ready, lost, again, idle, closed, notified, used;
    bool resumed;
    enum mo_workspace workspace;
    struct mo_conn *conn;
    char box[16], reason[32], data[64];
    enum mo_box_cause cause;
    unsigned seconds;
    struct mo_err why, used_why;
};

static inline void user_take(struct user *u, const struct mo_session_info *i)
{
    u->resumed = i->resumed;
    u->workspace = i->workspace;
    u->conn = i->conn;
    put(u->box, sizeof(u->box), mo_span_cstr(i->box));
    put(u->data, sizeof(u->data), i->data);
    assert_string_equal(i->driver, "fake");
    assert_true(i->fence > 0);
}

static inline void user_ready(void *ctx, struct mo_hold *h,
                              const struct mo_session_info *info)
{
    struct user *u = ctx;

    assert_ptr_equal(h, u->h);
    assert_int_equal(u->closed, 0);
    u->ready++;
    user_take(u, info);
}

static inline void user_box(void *ctx, struct mo_hold *h,
                            const struct mo_box_end *end,
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

static inline void user_idle(void *ctx, struct mo_hold *h, unsigned seconds)
{
    struct user *u = ctx;

    (void)h;
    u->idle++;
    u->seconds = seconds;
}

static inline void user_notify(void *ctx, struct mo_hold *h,
                               const struct mo_rpc *m)
{
    (void)h;
    (void)m;
    ((struct user *)ctx)->notified++;
}

static inline void user_closed(void *ctx, const char *reason,
                               const struct mo_err *why)
{
    struct user *u = ctx;

    u->closed++;
    u->h = NULL;
    u->conn = NULL;
    put(u->reason, sizeof(u->reason), mo_span_cstr(reason));
    if (why)
        u->why = *why;
}

static const struct mo_hold_cb user_cb = {
    .on_ready = user_ready,
    .on_box = user_box,
    .on_idle = user_idle,
    .on_notify = user_notify,
    .on_closed = user_closed,
};

static inline bool is_settled(void *ctx)
{
    struct user *u = ctx;

    return u->ready || u->closed;
}

static inline bool is_user_closed(void *ctx)
{
    return ((struct user *)ctx)->closed > 0;
}

static inline int hold(struct world *w, struct user *u, const char *id)
{
    struct mo_err e;

    memset(u, 0, sizeof(*u));
    return mo_session_hold(w->ss, mo_span_cstr(id), &user_cb, u, &u->h, &e);
}

static inline void hold_ready(struct world *w, struct user *u, const char *id)
{
    assert_int_equal(hold(w, u, id), 0);
    assert_true(mo_loop_until(w->l, is_settled, u, LONG));
    if (!u->ready)
        fail_msg("not ready: %s: %s", u->reason, u->why.msg);
}

static inline bool none_open(void *ctx)
{
    return mo_sessions_stats(((struct world *)ctx)->ss).open == 0;
}

static inline void release(struct world *w, struct user *u)
{
    mo_session_release(u->h);
    u->h = NULL;
    assert_true(mo_loop_until(w->l, none_open, w, LONG));
}

struct answer {
    unsigned n;
    int64_t files;
    struct mo_err err;
};

static inline void on_answer(void *ctx, const struct mo_reply *r)
{
    struct answer *a = ctx;

    a->n++;
    if (r->err)
        a->err = *r->err;
    (void)mo_json_i64(mo_json_get(r->result, "n"), &a->files);
}

static inline bool has_answer(void *ctx)
{
    return ((struct answer *)ctx)->n > 0;
}

static inline bool call(struct user *u, struct answer *a, const char *method)
{
    struct mo_call_opts o = {.done = on_answer, .ctx = a};
    struct mo_err e;

    memset(a, 0, sizeof(*a));
    return mo_conn_request(u->conn, method, mo_span(NULL, 0), &o, &e) != NULL;
}

static inline int64_t files(struct world *w, struct user *u)
{
    struct answer a;

    assert_true(call(u, &a, "test/files"));
    assert_true(mo_loop_until(w->l, has_answer, &a, LONG));
    assert_int_equal(a.err.code, 0);
    return a.files;
}

#endif
