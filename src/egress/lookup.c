/* lookup.c - names resolved outside, a few at a time. See relay.h.
 *
 * One lookup of a name serves all connections that wait for it, and those of
 * the next CACHE_MS. Whether an address may be reached is not decided here but
 * by each connection. */
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "egress/relay_priv.h"

#define CACHE_MS 5000

static bool has_address(const struct ifaddrs *f, const struct mo_ip *ip)
{
    const struct sockaddr_in *a4 = (const void *)f->ifa_addr;
    const struct sockaddr_in6 *a6 = (const void *)f->ifa_addr;

    if (f->ifa_addr && f->ifa_addr->sa_family == AF_INET)
        return mo_ip_is_v4(ip) && memcmp(&a4->sin_addr, ip->b + 12, 4) == 0;
    if (f->ifa_addr && f->ifa_addr->sa_family == AF_INET6)
        return memcmp(&a6->sin6_addr, ip->b, 16) == 0;
    return false;
}

/* Servers of this machine may trust what comes from itself, also at its public
 * addresses. */
static void mark_own(struct mo_egress_name *n)
{
    struct ifaddrs *all = NULL;
    bool known = getifaddrs(&all) == 0;

    for (size_t i = 0; i < n->nfound; i++) {
        n->own[i] = !known;
        for (struct ifaddrs *f = all; f && !n->own[i]; f = f->ifa_next)
            n->own[i] = has_address(f, &n->found[i]);
    }
    if (known)
        freeifaddrs(all);
}

static void start_next(struct mo_egress *x);

static void on_resolved(void *ctx, const struct mo_ip *v, size_t n,
                        const struct mo_err *why)
{
    struct mo_egress_name *name = ctx;
    struct mo_egress *x = name->relay;

    name->resolve = NULL;
    x->lookups--;
    name->nfound = n < MO_EGRESS_CACHE ? n : MO_EGRESS_CACHE;
    memcpy(name->found, v, name->nfound * sizeof(*v));
    mark_own(name);
    name->found_until = mo_loop_now(x->loop) + CACHE_MS * MO_MS;
    mo_egress_conn_resolved(&name->waiting, why);
    start_next(x);
}

static void start_lookup(struct mo_egress *x, struct mo_egress_name *n)
{
    struct mo_err e;

    if (mo_resolve(x->loop, n->text, on_resolved, n, &n->resolve, &e) == 0)
        x->lookups++;
    else
        mo_egress_conn_resolved(&n->waiting, &e);
}

static void start_next(struct mo_egress *x)
{
    while (x->lookups < MO_EGRESS_LOOKUPS && !x->closing) {
        struct mo_egress_name *n =
            mo_list_pop(&x->queue, struct mo_egress_name, queued);

        if (!n)
            return;
        start_lookup(x, n);
    }
}

bool mo_egress_lookup(struct mo_egress *x, struct mo_egress_name *n)
{
    if (n->nfound && mo_loop_now(x->loop) < n->found_until)
        return true;
    n->relay = x;
    if (n->resolve || !mo_list_empty(&n->queued))
        return false;
    mo_list_push(&x->queue, &n->queued);
    start_next(x);
    return false;
}

void mo_egress_lookups_drop(struct mo_egress *x)
{
    mo_list_drain (n, &x->queue, struct mo_egress_name, queued) {
    }
    mo_map_each (en, &x->names.by_text) {
        struct mo_egress_name *n = en->value;

        if (n->resolve)
            mo_resolve_drop(mo_take_ptr(&n->resolve));
    }
}
