/* strikes.h - slow down clients that guess tokens.
 *
 * One row per recently refused address, MO_STRIKES_PEERS of them; a new address
 * replaces the row whose period began first. After MO_STRIKES_FREE refusals
 * within a period of MO_STRIKES_MS further ones are answered "too many". Only
 * refusals are counted: a client with the right token is never kept out by
 * others that share its address. No I/O; the caller passes the time. */
#ifndef MO_WEB_STRIKES_H
#define MO_WEB_STRIKES_H

#include <stdint.h>

#include "base/lock.h"

#define MO_STRIKES_PEERS 64
#define MO_STRIKES_FREE  30
#define MO_STRIKES_MS    60000
#define MO_STRIKES_NAME  64

struct mo_strikes {
    struct mo_strike {
        char peer[MO_STRIKES_NAME]; /* without the port */
        unsigned n;
        uint64_t since; /* ns */
    } v[MO_STRIKES_PEERS];
};

/* The same for several processes, in memory that they share. */
struct mo_strikes_shared {
    struct mo_lock lock;
    struct mo_strikes s;
};

int mo_strikes_shared_init(struct mo_strikes_shared *s, struct mo_err *e);
unsigned mo_strikes_shared_add(struct mo_strikes_shared *s, const char *peer,
                               uint64_t now);

/* Count one refusal for "ADDRESS:PORT". Returns the seconds to wait; 0:
 * none. */
unsigned mo_strikes_add(struct mo_strikes *s, const char *peer, uint64_t now);

#endif
