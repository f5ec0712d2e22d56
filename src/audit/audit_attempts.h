/* audit_attempts.h - refused attempts, counted so that an attacker cannot fill
 * the audit log.
 *
 * The first attempt of a peer and person for a reason is written at once, the
 * others are counted and written as one row: a minute after the first, and,
 * while they go on, after two minutes more, four, ... up to an hour. A peer is
 * an address without its port. `count` of a row is the number of attempts since
 * the row before, so no attempt is missing from the sum.
 *
 * Limits: MO_AUDIT_ATTEMPTS_PEERS of these at a time. Further ones share one
 * entry, whose peer is "others". Texts are cut to the sizes below;
 * bytes that are not printable ASCII become "?". No I/O; the caller passes the
 * time. */
#ifndef MO_AUDIT_AUDIT_ATTEMPTS_H
#define MO_AUDIT_AUDIT_ATTEMPTS_H

#include "audit/audit_row.h"

#define MO_AUDIT_ATTEMPTS_PEERS 32
#define MO_AUDIT_ATTEMPTS_MS    ((uint64_t)60 * 1000)
#define MO_AUDIT_ATTEMPTS_MOST  (60 * MO_AUDIT_ATTEMPTS_MS)

struct mo_audit_attempts {
    struct mo_audit_attempt {
        bool used;
        char kind[16], peer[64], reason[32], who[97];  /* the key */
        char via[16], path[128], host[64], origin[96]; /* the last */
        uint64_t count;                                /* not in a row yet */
        uint64_t due, period;                          /* ns */
    } v[MO_AUDIT_ATTEMPTS_PEERS + 1]; /* the last one: others */
};

typedef void mo_audit_attempt_fn(void *ctx, const struct mo_audit_row *r);

/* Counts an attempt; write() is called if it is the first. */
void mo_audit_attempts_add(struct mo_audit_attempts *t,
                           const struct mo_audit_row *r, uint64_t now,
                           mo_audit_attempt_fn *write, void *ctx);
/* Writes the entries that are due and forgets those of peers that have stopped;
 * all: writes every count. False: no entry is left. */
bool mo_audit_attempts_flush(struct mo_audit_attempts *t, uint64_t now,
                             bool all, mo_audit_attempt_fn *write, void *ctx);

#endif
