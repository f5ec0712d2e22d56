/* redis_write.c - batches, leases and sweeping in Redis.
 *
 * A batch is one script on the session's own slot. The indexes are in other
 * slots: a session (or an audit row) is added there beside the script, and the
 * batch is acknowledged when both are done. A name in the index without a row
 * is normal: readers skip it, and sweeping removes it after a while. */
#include <stdio.h>

#include "store/redis_priv.h"

#define STALE_MS   60000 /* longer than any operation takes */
#define SWEEP_PAGE 500

/* --- batches ------------------------------------------------------------- */

static const char kinds[][2] = {
    [MO_WRITE_SESSION] = "s", [MO_WRITE_TOUCH] = "t", [MO_WRITE_CLOSE] = "x",
    [MO_WRITE_FORGET] = "f",  [MO_WRITE_ENTRY] = "e", [MO_WRITE_FRESH] = "n",
    [MO_WRITE_CALL] = "c",    [MO_WRITE_MOVE] = "m",  [MO_WRITE_AUDIT] = "a",
};

static void fail_refused(struct mo_rop *o, struct mo_span why)
{
    static const struct {
        const char *word;
        int code;
        const char *text;
    } reasons[] = {
        {"fence", MO_EPOLICY, "it was taken over by another process"},
        {"session", MO_ENOTFOUND, "no such session"},
        {"exists", MO_EEXISTS, "the call exists already"},
        {"call", MO_ENOTFOUND, "no such call"},
        {"state", MO_EPOLICY, "the call is in another state already"},
    };
    struct mo_span s = o->op->batch.session;

    for (size_t i = 0; i < MO_COUNT(reasons); i++) {
        if (mo_span_is(why, reasons[i].word)) {
            mo_rop_fail(o, reasons[i].code, "store: %.*s: %s", (int)s.n, s.p,
                        reasons[i].text);
            return;
        }
    }
    mo_rop_odd(o);
}

static void on_written(struct mo_rop *o, struct mo_rcall *k,
                       const struct mo_resp *r)
{
    struct mo_written *w = &o->op->written;
    uint64_t which = 0;

    (void)k;
    if (r->kind != MO_RESP_ARRAY || r->n != 4 ||
        !mo_resp_u64(&r->v[1], &which) ||
        !mo_resp_u64(&r->v[2], &w->conversation) ||
        !mo_resp_u64(&r->v[3], &w->seq)) {
        mo_rop_odd(o);
        return;
    }
    w->failed = which;
    if (r->v[0].kind == MO_RESP_BULK)
        fail_refused(o, r->v[0].text);
}

/* ZADD ... GT: never backwards (Redis 6.2). */
static void add_to_index(struct mo_rop *o, const char *index, uint64_t at)
{
    struct mo_rcall *k = mo_rcall_new(o, -1, mo_span_cstr(index));

    mo_rcall_puts(k, "ZADD");
    mo_rcall_puts(k, index);
    mo_rcall_puts(k, "GT");
    mo_rcall_u64(k, at);
    mo_rcall_put(k, o->op->batch.session);
    mo_rcall_go(k);
}

static void enlist_all(struct mo_rop *o)
{
    uint64_t seen = 0, audited = 0;

    for (size_t i = 0; i < o->op->batch.n; i++) {
        const struct mo_write *w = &o->op->batch.writes[i];

        if ((w->kind == MO_WRITE_SESSION || w->kind == MO_WRITE_TOUCH) &&
            w->at > seen)
            seen = w->at;
        if (w->kind == MO_WRITE_AUDIT && w->at > audited)
            audited = w->at;
    }
    if (seen)
        add_to_index(o, MO_REDIS_INDEX, seen);
    if (audited)
        add_to_index(o, MO_REDIS_AUDITS, audited);
}

static void put_keys(struct mo_rcall *k, struct mo_span session)
{
    static const char *const keys[] = {"mcp:session:", "mcp:conversation:",
                                       "mcp:call:", "mcp:lock:", "mcp:audit:"};

    mo_rcall_u64(k, MO_COUNT(keys));
    for (size_t i = 0; i < MO_COUNT(keys); i++)
        mo_rcall_key(k, session.n ? keys[i] : "mcp:audit:", session);
}

void mo_redis_write(struct mo_rop *o)
{
    const struct mo_store_batch *b = &o->op->batch;
    const struct mo_store *s = &o->r->s;
    struct mo_rcall *k;

    enlist_all(o);
    k = mo_rcall_new(o, MO_LUA_WRITE, b->session);
    put_keys(k, b->session);
    mo_rcall_u64(k, b->fence);
    mo_rcall_u64(k, s->history_ttl_ms);
    mo_rcall_u64(k, s->audit_ttl_ms);
    mo_rcall_u64(k, o->op->now_ms);
    mo_rcall_u64(k, b->n);
    for (size_t i = 0; i < b->n; i++) {
        const struct mo_write *w = &b->writes[i];

        mo_rcall_puts(k, kinds[w->kind]);
        mo_rcall_put(k, w->id);
        mo_rcall_u64(k, w->kind == MO_WRITE_ENTRY ? w->again : w->to);
        mo_rcall_u64(k, w->from);
        mo_rcall_u64(k, w->at);
        mo_rcall_put(k, w->doc);
    }
    if (k)
        k->got = on_written;
    mo_rcall_go(k);
}

/* --- leases -------------------------------------------------------------- */

static void keep_holder(struct mo_rop *o, struct mo_span owner)
{
    char *p = mo_arena_strndup(&o->op->mem, owner.p, owner.n);

    if (!p)
        mo_rop_fail(o, MO_ENOMEM, "store: lease");
    else
        o->op->holder = mo_span(p, owner.n);
}

static void on_tried(struct mo_rop *o, struct mo_rcall *k,
                     const struct mo_resp *r)
{
    struct mo_op *op = o->op;
    uint64_t held = 0;

    (void)k;
    if (r->kind != MO_RESP_ARRAY || r->n < 2 || !mo_resp_u64(&r->v[0], &held) ||
        !mo_resp_u64(&r->v[1], &op->fence) || (!held && r->n != 4)) {
        mo_rop_odd(o);
        return;
    }
    op->held = held;
    if (held)
        return;
    keep_holder(o, r->v[2].text);
    if (r->v[3].kind == MO_RESP_NUMBER && r->v[3].number > 0)
        op->left_ms = (uint64_t)r->v[3].number;
}

static void on_renewed(struct mo_rop *o, struct mo_rcall *k,
                       const struct mo_resp *r)
{
    (void)k;
    if (r->kind != MO_RESP_NUMBER || r->number != 1)
        mo_rop_fail(o, MO_EPOLICY, "%.*s: the lease was lost",
                    (int)o->op->name.n, o->op->name.p);
}

/* "FENCE TOKEN OWNER" */
static void on_who(struct mo_rop *o, struct mo_rcall *k,
                   const struct mo_resp *r)
{
    struct mo_span rest = r->text;

    (void)k;
    if (r->kind == MO_RESP_NIL)
        return;
    if (mo_span_u64(mo_span_cut(&rest, ' '), &o->op->fence) < 0) {
        mo_rop_odd(o);
        return;
    }
    (void)mo_span_cut(&rest, ' ');
    keep_holder(o, rest);
}

static void ask_who(struct mo_rop *o)
{
    struct mo_rcall *k = mo_rcall_new(o, -1, o->op->name);

    mo_rcall_puts(k, "GET");
    mo_rcall_key(k, "mcp:lock:", o->op->name);
    if (k)
        k->got = on_who;
    mo_rcall_go(k);
}

static void ask_break(struct mo_rop *o)
{
    struct mo_op *op = o->op;
    struct mo_rcall *k = mo_rcall_new(o, MO_LUA_BREAK, op->name);

    mo_rcall_u64(k, 1);
    mo_rcall_key(k, "mcp:lock:", op->name);
    mo_rcall_u64(k, op->fence);
    mo_rcall_put(k, op->owner);
    mo_rcall_puts(k, MO_REDIS_WAKE);
    mo_rcall_put(k, op->name);
    mo_rcall_go(k);
}

void mo_redis_lease(struct mo_rop *o)
{
    static const struct {
        enum mo_lua script;
        void (*got)(struct mo_rop *, struct mo_rcall *, const struct mo_resp *);
    } how[] = {
        [MO_OP_TRY] = {MO_LUA_TRY, on_tried},
        [MO_OP_RENEW] = {MO_LUA_RENEW, on_renewed},
        [MO_OP_DROP] = {MO_LUA_DROP, NULL},
    };
    struct mo_op *op = o->op;
    struct mo_rcall *k;

    if (op->kind == MO_OP_WHO) {
        ask_who(o);
        return;
    }
    if (op->kind == MO_OP_BREAK) {
        ask_break(o);
        return;
    }
    k = mo_rcall_new(o, how[op->kind].script, op->name);
    mo_rcall_u64(k, op->kind == MO_OP_TRY ? 2 : 1);
    mo_rcall_key(k, "mcp:lock:", op->name);
    if (op->kind == MO_OP_TRY)
        mo_rcall_key(k, "mcp:fence:", op->name);
    mo_rcall_puts(k, op->token);
    if (op->kind == MO_OP_TRY)
        mo_rcall_put(k, op->owner);
    if (op->kind == MO_OP_DROP) {
        mo_rcall_puts(k, MO_REDIS_WAKE);
        mo_rcall_put(k, op->name);
    } else {
        mo_rcall_u64(k, o->r->s.lease_ttl_ms);
    }
    if (k)
        k->got = how[op->kind].got;
    mo_rcall_go(k);
}

/* --- sweeping: the rest expires by itself -------------------------------- */

static void on_exists(struct mo_rop *o, struct mo_rcall *k,
                      const struct mo_resp *r)
{
    struct mo_rcall *out;
    char score[32];

    if (r->kind != MO_RESP_NUMBER || r->number != 0)
        return;
    (void)snprintf(score, sizeof(score), "%.17g", o->scores[k->tag]);
    out = mo_rcall_new(o, MO_LUA_UNLIST, MO_SPAN(MO_REDIS_INDEX));
    mo_rcall_u64(out, 1);
    mo_rcall_puts(out, MO_REDIS_INDEX);
    mo_rcall_put(out, o->ids[k->tag]);
    mo_rcall_puts(out, score);
    mo_rcall_go(out);
}

static void look_behind(struct mo_rop *o)
{
    o->step = NULL;
    for (size_t i = 0; i < o->nids; i++) {
        struct mo_rcall *k = mo_rcall_new(o, -1, o->ids[i]);

        mo_rcall_puts(k, "EXISTS");
        mo_rcall_key(k, "mcp:session:", o->ids[i]);
        if (k) {
            k->got = on_exists;
            k->tag = i;
        }
        mo_rcall_go(k);
    }
}

static void on_old(struct mo_rop *o, struct mo_rcall *k,
                   const struct mo_resp *r)
{
    (void)k;
    mo_redis_page(o, r);
    o->r->swept = o->nids < SWEEP_PAGE ? 0 : o->r->swept + SWEEP_PAGE;
    o->step = look_behind;
}

static void sweep_audits(struct mo_rop *o)
{
    struct mo_rcall *k;
    uint64_t ttl = o->r->s.audit_ttl_ms;

    if (!ttl || ttl > o->op->now_ms)
        return;
    k = mo_rcall_new(o, -1, MO_SPAN(MO_REDIS_AUDITS));
    mo_rcall_puts(k, "ZREMRANGEBYSCORE");
    mo_rcall_puts(k, MO_REDIS_AUDITS);
    mo_rcall_puts(k, "-inf");
    mo_rcall_u64(k, o->op->now_ms - ttl);
    mo_rcall_go(k);
}

void mo_redis_sweep(struct mo_rop *o)
{
    struct mo_rcall *k = mo_rcall_new(o, -1, MO_SPAN(MO_REDIS_INDEX));

    mo_rcall_puts(k, "ZRANGEBYSCORE");
    mo_rcall_puts(k, MO_REDIS_INDEX);
    mo_rcall_puts(k, "-inf");
    mo_rcall_u64(k, o->op->now_ms > STALE_MS ? o->op->now_ms - STALE_MS : 0);
    mo_rcall_puts(k, "WITHSCORES");
    mo_rcall_puts(k, "LIMIT");
    mo_rcall_u64(k, o->r->swept);
    mo_rcall_u64(k, SWEEP_PAGE);
    if (k)
        k->got = on_old;
    mo_rcall_go(k);
    sweep_audits(o);
}
