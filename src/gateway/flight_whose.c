/* flight_whose.c - whose a question or a log message of a server is. */
#include "gateway/flight.h"
#include "gateway/hush.h"

/* --- whose it is --------------------------------------------------------- */

/* Of one connection, or the same flight. */
static bool is_one(const struct flight *a, const struct flight *b)
{
    return a == b || (a->peer && a->peer == b->peer);
}

struct flight *flight_of(struct slot *s, const struct mo_child *c,
                         uint64_t number)
{
    bool shared = !mo_child_who(c).n;
    struct flight *newest = NULL;

    mo_list_each (n, &s->flights) {
        struct flight *f = mo_container_of(n, struct flight, snode);

        if (f->child == c && number && f->number == number)
            return f;
    }
    mo_list_each (n, &s->flights) {
        struct flight *f = mo_container_of(n, struct flight, snode);

        if (f->child != c)
            continue;
        if (newest && shared && !is_one(newest, f))
            return NULL;
        newest = f;
    }
    return newest;
}

/* Of a child that serves one connection or session: to that one. A caller
 * without any is not there. */
static bool log_to_session(struct kid *k, struct mo_json params)
{
    struct mo_span who = mo_child_who(k->child);
    uint64_t peer = cross_peer(who);

    if (!peer)
        return false;
    mo_list_each_safe (n, &k->slot->g->eps)
        mo_endpoint_log(mo_container_of(n, struct gw_ep, node)->ep, peer,
                        params);
    return true;
}

void flight_log(struct kid *k, uint64_t stream_of, struct mo_json params)
{
    struct flight *f = flight_of(k->slot, k->child, stream_of);
    struct mo_buf b;

    mo_buf_init(&b, 2 * GW_TEXT_MAX);
    params = hush(k->slot->g->loop, params, &b);
    if (!params.p || (f && !f->down))
        k->slot->g->lost_logs++;
    else if (f)
        mo_ep_call_log_raw(f->down, params);
    else if (!log_to_session(k, params))
        k->slot->g->lost_logs++;
    mo_buf_fini(&b);
}
