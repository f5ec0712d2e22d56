/* names.h - the addresses that stand for names inside a box.
 *
 * Each name has one address of 198.18.0.0/15 (RFC 2544, in no real network) and
 * one of fd6d:6f2d:626f:7800::/96 with the same low bits. In a pod, where only
 * the loopback's addresses can be ours, it is one of 127.18.0.0/15. They have
 * no meaning outside: a connection to one of them tells which name the program
 * has asked for.
 *
 * The address is computed from the name, so a box that is adopted by a new
 * process mostly finds its names where they were. If two names collide, the
 * later one takes the next free address.
 *
 * Ownership: a name lives as long as the table.
 * Limit: MO_EGRESS_NAMES_MAX names; one more fails with MO_EBUSY. */
#ifndef MO_EGRESS_NAMES_H
#define MO_EGRESS_NAMES_H

#include "base/list.h"
#include "base/map.h"
#include "egress/policy.h"

#define MO_EGRESS_NAMES_MAX 4096
#define MO_EGRESS_CACHE     8 /* resolved addresses of a name */

struct mo_egress;
struct mo_resolve;

struct mo_egress_name {
    uint32_t index; /* the low bits of its address; a key of by_index */
    /* Its addresses outside; used by lookup.c. */
    struct mo_ip found[MO_EGRESS_CACHE];
    bool own[MO_EGRESS_CACHE]; /* it is an address of this machine */
    size_t nfound;
    uint64_t found_until;       /* mo_loop_now() */
    struct mo_egress *relay;    /* set while it is resolved */
    struct mo_resolve *resolve; /* runs, or NULL */
    struct mo_list queued;      /* until it may run */
    struct mo_list waiting;     /* connections that need it */
    char text[];
};

struct mo_egress_names {
    struct mo_map by_text, by_index;
    bool loopback; /* addresses of 127.18.0.0/15 */
};

void mo_egress_names_init(struct mo_egress_names *t, bool loopback);
void mo_egress_names_fini(struct mo_egress_names *t);

/* Finds the name, or gives it an address. text: as mo_egress_host() makes
 * it. */
int mo_egress_names_add(struct mo_egress_names *t, const char *text,
                        struct mo_egress_name **out);
/* The name at this address, or NULL. */
struct mo_egress_name *mo_egress_names_at(const struct mo_egress_names *t,
                                          const struct mo_ip *ip);

struct mo_ip mo_egress_name_v4(const struct mo_egress_names *t,
                               const struct mo_egress_name *n);
struct mo_ip mo_egress_name_v6(const struct mo_egress_name *n);
/* Is it an address of the ranges that no network has? */
bool mo_egress_is_inside(const struct mo_ip *ip);

#endif
