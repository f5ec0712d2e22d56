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
    [MO_WRITE_MARK] = "k",    [MO_WRITE_SHARE] = "h",
};

static bool fail_refused(struct mo_rop *o, struct mo_span why)
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
        if (mo_span_is(why, reasons[i].word))
            return mo_rop_fail(o, reasons[i].code, "store: %.*s: %s", (int)s.n,
                               s.p, reasons[i].text);
    }
    return false;
}

static bool on_written(struct mo_rop *o, const struct mo_resp *r)
{
    struct mo_written *w = &o->op->written;
    uint64_t which = 0;

    if (r->kind != MO_RESP_ARRAY || r->n != 4 ||
        !mo_resp_u64(&r->v[1], &which) ||
        !mo_resp_u64(&r->v[2], &w->conversation) ||
        !mo_resp_u64(&r->v[3], &w->seq))
        return false;
    w->failed = which;
    if (r->v[0].kind != MO_RESP_BULK)
        mo_redis_index_later(o->r, &o->op->batch);
    return r->v[0].kind != MO_RESP_BULK || fail_refused(o, r->v[0].text);
}

/* ZADD ... GT: never backwards (Redis 6.2). */
static void add_to_index(struct mo_rop *o, const char *index, uint64_t at)
{
    if (at)
        mo_rcall(o, -1, mo_span_cstr(index), NULL, 0, "sssit", "ZADD", index,
                 "GT", at, o->op->batch.session);
}

static void write_mark(struct mo_rop *o, const struct mo_write *w)
{
    if (w->doc.n)
        mo_rcall(o, -1, MO_SPAN(MO_REDIS_MARKS), NULL, 0, "sstt", "HSET",
                 MO_REDIS_MARKS, w->id, w->doc);
    else
        mo_rcall(o, -1, MO_SPAN(MO_REDIS_MARKS), NULL, 0, "sst", "HDEL",
                 MO_REDIS_MARKS, w->id);
}

static void enlist_all(struct mo_rop *o)
{
    uint64_t seen = 0, audited = 0, closed = 0;

    for (size_t i = 0; i < o->op->batch.n; i++) {
        const struct mo_write *w = &o->op->batch.writes[i];

        if ((w->kind == MO_WRITE_SESSION || w->kind == MO_WRITE_TOUCH) &&
            w->at > seen)
            seen = w->at;
        if (w->kind == MO_WRITE_AUDIT && w->at > audited)
            audited = w->at;
        if (w->kind == MO_WRITE_CLOSE)
            closed = w->at;
        if (w->kind == MO_WRITE_MARK)
            write_mark(o, w);
    }
    add_to_index(o, MO_REDIS_CLOSED, closed);
    add_to_index(o, MO_REDIS_INDEX, seen);
    add_to_index(o, MO_REDIS_AUDITS, audited);
}

static void put_keys(struct mo_rcall *k, struct mo_span session)
{
    static const char *const keys[] = {"mcp:session:", "mcp:conversation:",
                                       "mcp:call:", "mcp:lock:", "mcp:audit:"};

    mo_rcall_put(k, "i", (uint64_t)MO_COUNT(keys));
    for (size_t i = 0; i < MO_COUNT(keys); i++)
        mo_rcall_put(k, "k", session.n ? keys[i] : "mcp:audit:", session);
}

void mo_redis_write(struct mo_rop *o)
{
    const struct mo_store_batch *b = &o->op->batch;
    const struct mo_store *s = &o->r->s;
    struct mo_rcall *k;

    o->step = o->r->copies ? mo_rop_await_copies : NULL;
    enlist_all(o);
    k = mo_rcall_new(o, MO_LUA_WRITE, b->session, on_written, 0);
    put_keys(k, b->session);
    mo_rcall_put(k, "iiiii", b->fence, s->history_ttl_ms, s->audit_ttl_ms,
                 o->op->now_ms, (uint64_t)b->n);
    for (size_t i = 0; i < b->n; i++) {
        const struct mo_write *w = &b->writes[i];

        mo_rcall_put(k, "stiiit", kinds[w->kind], w->id,
                     (uint64_t)(w->kind == MO_WRITE_ENTRY ? w->again : w->to),
                     (uint64_t)w->from, w->at, w->doc);
    }
    mo_rcall_go(k);
}

/* --- leases -------------------------------------------------------------- */

static bool on_tried(struct mo_rop *o, const struct mo_resp *r)
{
    struct mo_op *op = o->op;
    uint64_t held = 0;

    if (r->kind != MO_RESP_ARRAY || r->n < 2 || !mo_resp_u64(&r->v[0], &held) ||
        !mo_resp_u64(&r->v[1], &op->fence) || (!held && r->n != 4))
        return false;
    op->held = held;
    if (held)
        return true;
    if (r->v[3].kind == MO_RESP_NUMBER && r->v[3].number > 0)
        op->left_ms = (uint64_t)r->v[3].number;
    return mo_rop_keep(o, r->v[2].text, &op->holder);
}

static bool on_renewed(struct mo_rop *o, const struct mo_resp *r)
{
    return (r->kind == MO_RESP_NUMBER && r->number == 1) ||
           mo_rop_fail(o, MO_EPOLICY, "%.*s: the lease was lost",
                       (int)o->op->name.n, o->op->name.p);
}

/* "FENCE TOKEN OWNER" */
static bool on_who(struct mo_rop *o, const struct mo_resp *r)
{
    struct mo_span rest = r->text;

    if (r->kind == MO_RESP_NIL)
        return true;
    if (mo_span_u64(mo_span_cut(&rest, ' '), &o->op->fence) < 0)
        return false;
    (void)mo_span_cut(&rest, ' ');
    return mo_rop_keep(o, rest, &o->op->holder);
}

void mo_redis_lease(struct mo_rop *o)
{
    struct mo_op *op = o->op;
    uint64_t ttl = o->r->s.lease_ttl_ms;

    switch (op->kind) {
    case MO_OP_TRY: /* a fence that is lost would be given twice */
        o->step = o->r->copies ? mo_rop_await_copies : NULL;
        mo_rcall(o, MO_LUA_TRY, op->name, on_tried, 0, "skksti", "2",
                 "mcp:lock:", op->name, "mcp:fence:", op->name, op->token,
                 op->owner, ttl);
        break;
    case MO_OP_RENEW:
        mo_rcall(o, MO_LUA_RENEW, op->name, on_renewed, 0, "sksi", "1",
                 "mcp:lock:", op->name, op->token, ttl);
        break;
    case MO_OP_DROP:
        mo_rcall(o, MO_LUA_DROP, op->name, NULL, 0, "sksst", "1",
                 "mcp:lock:", op->name, op->token, MO_REDIS_WAKE, op->name);
        break;
    case MO_OP_BREAK:
        mo_rcall(o, MO_LUA_BREAK, op->name, NULL, 0, "skitst", "1",
                 "mcp:lock:", op->name, op->fence, op->owner, MO_REDIS_WAKE,
                 op->name);
        break;
    default: /* MO_OP_WHO */
        mo_rcall(o, -1, op->name, on_who, 0, "sk", "GET",
                 "mcp:lock:", op->name);
    }
}

/* --- sweeping: the rest expires by itself -------------------------------- */

static bool on_exists(struct mo_rop *o, const struct mo_resp *r)
{
    char score[32];

    if (r->kind != MO_RESP_NUMBER || r->number != 0)
        return true;
    (void)snprintf(score, sizeof(score), "%.17g", o->scores[o->tag]);
    mo_rcall(o, MO_LUA_UNLIST, MO_SPAN(MO_REDIS_INDEX), NULL, 0, "ssts", "1",
             MO_REDIS_INDEX, o->ids[o->tag], score);
    return true;
}

static void look_behind(struct mo_rop *o)
{
    o->step = NULL;
    for (size_t i = 0; i < o->nids; i++)
        mo_rcall(o, -1, o->ids[i], on_exists, i, "sk", "EXISTS",
                 "mcp:session:", o->ids[i]);
}

static bool on_old(struct mo_rop *o, const struct mo_resp *r)
{
    bool ok = mo_redis_page(o, r);

    o->r->swept = o->last_page ? 0 : o->next;
    o->step = look_behind;
    return ok;
}

static void sweep_index(struct mo_rop *o, const char *index, uint64_t ttl)
{
    if (ttl && ttl <= o->op->now_ms)
        mo_rcall(o, -1, mo_span_cstr(index), NULL, 0, "sssi",
                 "ZREMRANGEBYSCORE", index, "-inf", o->op->now_ms - ttl);
}

void mo_redis_sweep(struct mo_rop *o)
{
    uint64_t now = o->op->now_ms;
    char old[32];

    (void)snprintf(old, sizeof(old), "%llu",
                   (unsigned long long)(now > STALE_MS ? now - STALE_MS : 0));
    o->next = o->r->swept;
    o->page = SWEEP_PAGE;
    mo_redis_ask_page(o, "ZRANGEBYSCORE", MO_REDIS_INDEX, "-inf", old, on_old);
    sweep_index(o, MO_REDIS_AUDITS, o->r->s.audit_ttl_ms);
    sweep_index(o, MO_REDIS_CLOSED, o->r->s.history_ttl_ms);
}
