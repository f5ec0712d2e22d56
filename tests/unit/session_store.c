/* session_store.c - the store and the leases of session_store.h. */
#include "session_store.h"

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

void put(char *out, size_t size, struct mo_span s)
{
    assert_true(s.n < size);
    if (s.n)
        memcpy(out, s.p, s.n);
    out[s.n] = '\0';
}

struct row *row_of(struct mo_store *s, const char *id, bool make)
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

struct held *held_of(struct mo_store *s, const char *name)
{
    for (size_t i = 0; i < LEASES; i++) {
        if (s->leases[i].fence && strcmp(s->leases[i].name, name) == 0)
            return &s->leases[i];
    }
    return NULL;
}

struct held *hold_lease(struct mo_store *s, const char *name, const char *owner,
                        struct mo_lease *by)
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

static void wake_waiters(struct mo_store *s)
{
    mo_list_each (it, &s->waiting) {
        struct mo_lease *l = mo_container_of(it, struct mo_lease, node);

        mo_loop_defer(s->l, &l->later);
    }
}

void free_lease(struct mo_store *s, const char *name)
{
    struct held *h = held_of(s, name);

    if (h)
        h->fence = 0;
    wake_waiters(s);
}

bool has_history(const struct mo_store *s, const char *id)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(s->history[i], id) == 0)
            return true;
    }
    return false;
}

void say_something(struct mo_store *s, const char *id, bool on)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (on ? !s->history[i][0] : strcmp(s->history[i], id) == 0) {
            put(s->history[i], sizeof(s->history[i]),
                mo_span_cstr(on ? id : ""));
            return;
        }
    }
}

static void apply(struct mo_store *s, const char *id, const struct mo_write *w)
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

static void on_op(struct mo_later *d)
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
                : ((op->r.before && r->at >= op->r.before) ||
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

static struct op *op_new(struct mo_store *s, enum op_kind kind, void *ctx,
                         struct mo_err *e)
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

static void lease_gone(struct mo_lease *l)
{
    mo_timer_stop(l->s->l, &l->wait);
    mo_later_cancel(&l->later);
    mo_list_del(&l->node);
    mo_free(l);
}

static void lease_refused(struct mo_lease *l, int code)
{
    struct held *h = held_of(l->s, l->name);
    struct mo_err e;

    (void)mo_fail(&e, code, "%s is held by %s", l->name,
                  h ? h->owner : "nobody");
    l->cb->on_held(l->ctx, l, 0, &e);
    lease_gone(l);
}

static void on_lease(struct mo_later *d)
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

static void on_lease_wait(struct mo_timer *t)
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

void steal_lease(struct mo_store *s, const char *name)
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
