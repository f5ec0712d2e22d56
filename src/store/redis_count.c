/* redis_count.c - counters in Redis: one script for a batch. All of them are in
 * one slot, because a batch is one step. */
#include <stdio.h>

#include "store/redis_priv.h"

#define BUDGET "mcp:budget:"
#define SLOT   MO_SPAN("budget")
#define DAY_MS ((uint64_t)24 * 3600 * 1000)

static bool on_counted(struct mo_rop *o, const struct mo_resp *r)
{
    struct mo_counted *c = &o->op->counted;
    uint64_t ok = 0, which = 0;

    if (r->kind != MO_RESP_ARRAY || r->n != 4 || !mo_resp_u64(&r->v[0], &ok) ||
        !mo_resp_u64(&r->v[1], &which) || !mo_resp_u64(&r->v[2], &c->wait_ms) ||
        !mo_resp_u64(&r->v[3], &c->day) || which >= o->op->ncounters)
        return false;
    c->refused = ok == 0;
    c->which = which;
    return true;
}

void mo_redis_count(struct mo_rop *o)
{
    static const char kinds[][2] = {[MO_COUNTER_RATE] = "r",
                                    [MO_COUNTER_HELD] = "h",
                                    [MO_COUNTER_DAY] = "d"};
    struct mo_rcall *k = mo_rcall_new(o, MO_LUA_COUNT, SLOT, on_counted, 0);

    mo_rcall_put(k, "skiiiii", "1", BUDGET, SLOT, (uint64_t)o->op->ncounters,
                 MO_COUNTER_TERM_MS, MO_COUNTER_DAYS * DAY_MS,
                 (uint64_t)MO_COUNTER_NAMES, (uint64_t)MO_COUNTER_SUM_MAX);
    for (size_t i = 0; i < o->op->ncounters; i++) {
        const struct mo_counter *c = &o->op->counters[i];
        char add[24];

        (void)snprintf(add, sizeof(add), "%lld", (long long)c->add);
        mo_rcall_put(k, "stisit", kinds[c->kind], c->name, c->limit, add,
                     c->day, c->holder);
        if (k && c->kind != MO_COUNTER_HELD)
            k->once = true; /* else it would be counted twice */
    }
    mo_rcall_go(k);
}

void mo_redis_read_day(struct mo_rop *o, mo_rgot *got)
{
    const struct mo_read *q = &o->op->read;
    char key[64];

    (void)snprintf(key, sizeof(key), BUDGET "{budget}:d:%llu",
                   (unsigned long long)q->after);
    mo_rcall(o, MO_LUA_DAY, SLOT, got, 0, "sstti", "1", key, q->text, q->id,
             (uint64_t)q->limit);
}
