/* strikes.h - who guesses tokens is made to wait.
 *
 * One row for each address that was refused lately, MO_STRIKES_PEERS of them;
 * the one that has been quiet the longest makes room. After MO_STRIKES_FREE
 * refusals within MO_STRIKES_MS the rest of them is answered "too many". Only
 * refusals are counted: who has the right token is never kept out by others
 * who share the address. Pure but for the clock it is given. */
#ifndef MO_WEB_STRIKES_H
#define MO_WEB_STRIKES_H

#include <stdint.h>

#define MO_STRIKES_PEERS 64
#define MO_STRIKES_FREE  30
#define MO_STRIKES_MS    60000
#define MO_STRIKES_NAME  64

struct mo_strikes {
    struct mo_strike {
        char peer[MO_STRIKES_NAME]; /* without its port */
        unsigned n;
        uint64_t since; /* ns */
    } v[MO_STRIKES_PEERS];
};

/* One more refusal for "ADDRESS:PORT". Seconds it has to wait; 0: none. */
unsigned mo_strikes_add(struct mo_strikes *s, const char *peer, uint64_t now);

#endif
