/* fair_queue.c - which waiting request is granted next at max_calls.
 *
 * Each caller has the number of the turn in which it was last served. The
 * caller with the lowest number is next; a caller who was never served comes
 * first. The requests of one caller keep their order. Numbers of
 * QUEUE_CALLERS_MAX callers are stored; when there are more, all numbers are
 * cleared.
 *
 * Requests that do not count (lists, listeners) never wait here. */
#include "base/rand.h"
#include "gateway/upstream/upstream_priv.h"

#define QUEUE_CALLERS_MAX 1024
#define QUEUE_WAIT_MS     MO_CONN_IDLE_MS /* default of call_ms */

static uint64_t max_wait_ms(const struct mo_upstream *u)
{
    return u->server.call_ms ? u->server.call_ms : QUEUE_WAIT_MS;
}

static struct mo_span caller_key(const uint64_t *who)
{
    return mo_span((const char *)who, sizeof(*who));
}

/* Requests are in order of arrival: the first one is the oldest. */
static void on_queue_timeout(struct mo_timer *t)
{
    struct mo_upstream *u = mo_container_of(t, struct mo_upstream, queue_timer);
    uint64_t now = mo_upstream_now();

    mo_list_each_entry_safe (w, &u->requests, struct mo_child_request, node) {
        if (!w->counts)
            continue;
        if (now - w->since_ms < max_wait_ms(u)) {
            mo_timer_start(u->opts.loop, t, w->since_ms + max_wait_ms(u) - now);
            return;
        }
        mo_upstream_refuse(w, REFUSED_QUEUE);
    }
}

void mo_fair_queue_init(struct mo_upstream *u)
{
    mo_map_init(&u->turns, QUEUE_CALLERS_MAX);
    mo_timer_init(&u->queue_timer, on_queue_timeout);
}

void mo_fair_queue_fini(struct mo_upstream *u)
{
    mo_timer_stop(u->opts.loop, &u->queue_timer);
    mo_map_fini(&u->turns);
}

uint64_t mo_fair_queue_caller(struct mo_upstream *u, struct mo_span who)
{
    /* Drawn now, because many servers are never called. */
    if (!u->hash_key[0])
        mo_random(u->hash_key, sizeof(u->hash_key));
    return mo_siphash(u->hash_key[0], u->hash_key[1], who);
}

static bool at_call_limit(const struct mo_upstream *u)
{
    return u->server.max_calls && u->under_way >= u->server.max_calls;
}

bool mo_fair_queue_full(const struct mo_upstream *u)
{
    unsigned n = 0;

    if (!at_call_limit(u))
        return false;
    mo_list_each (it, &u->requests)
        n++;
    return n >= MO_UPSTREAM_QUEUE_MAX;
}

static uint64_t last_turn(const struct mo_upstream *u,
                          const struct mo_child_request *w)
{
    void *v = mo_map_get(&u->turns, caller_key(&w->who));

    return (uint64_t)(uintptr_t)v;
}

/* The first request of the caller who was served least recently. */
static struct mo_child_request *pick_fairest(const struct mo_upstream *u)
{
    struct mo_child_request *best = NULL;
    uint64_t lowest = UINT64_MAX;

    mo_list_each_entry (w, &u->requests, struct mo_child_request, node) {
        uint64_t turn = w->counts ? last_turn(u, w) : 0;

        if (turn < lowest) {
            best = w;
            lowest = turn;
        }
        if (lowest == 0)
            break;
    }
    return best;
}

static struct mo_child_request *
first_uncounted_request(const struct mo_upstream *u)
{
    mo_list_each_entry (w, &u->requests, struct mo_child_request, node) {
        if (!w->counts)
            return w;
    }
    return NULL;
}

struct mo_child_request *mo_fair_queue_next(struct mo_upstream *u)
{
    if (mo_list_empty(&u->requests))
        return NULL;
    if (!u->server.max_calls) /* no limit: first come, first served */
        return mo_container_of(u->requests.next, struct mo_child_request, node);
    if (!at_call_limit(u))
        return pick_fairest(u);
    if (!mo_timer_on(&u->queue_timer))
        mo_timer_start(u->opts.loop, &u->queue_timer, max_wait_ms(u));
    return first_uncounted_request(u);
}

void mo_fair_queue_granted(struct mo_upstream *u,
                           const struct mo_child_request *w)
{
    if (!w->counts)
        return;
    u->under_way++;
    if (!u->server.max_calls)
        return;
    if (u->turns.len >= QUEUE_CALLERS_MAX)
        mo_map_clear(&u->turns);
    u->turn++;
    (void)mo_map_put(&u->turns, caller_key(&w->who), (void *)(uintptr_t)u->turn,
                     NULL);
}

void mo_fair_queue_call_ended(struct mo_upstream *u)
{
    MO_BUG_ON(u->under_way == 0);
    u->under_way--;
    if (!mo_list_empty(&u->requests))
        mo_upstream_schedule(u);
}
