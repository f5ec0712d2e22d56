/* proofs_shared.h - the proofs (proof.h) that the workers of one server have
 * seen, in memory that they share.
 *
 * Without it a proof would be good once in each worker. Two tables of digests
 * behind one lock: the older one is forgotten when none of its proofs can be
 * valid.
 *
 * Limit: MO_PROOFS_SHARED_MAX proofs in a table; MO_EBUSY beyond. */
#ifndef MO_PEOPLE_PROOFS_SHARED_H
#define MO_PEOPLE_PROOFS_SHARED_H

#include "base/lock.h"
#include "base/str.h"

#define MO_PROOFS_SHARED_MAX   ((size_t)128 * 1024)
#define MO_PROOFS_SHARED_SLOTS (2 * MO_PROOFS_SHARED_MAX)

struct mo_proofs_shared {
    struct mo_lock lock;
    uint64_t since_s; /* of the present table */
    struct mo_proofs_table {
        uint32_t turn;
        size_t n;
        struct mo_proofs_slot {
            uint32_t turn; /* of the table; another one: free */
            unsigned char digest[16];
        } v[MO_PROOFS_SHARED_SLOTS];
    } tables[2];
    unsigned now; /* which table is the present one */
};

/* The memory is zero. */
int mo_proofs_shared_init(struct mo_proofs_shared *s, struct mo_err *e);
/* 0: it is new, and remembered. MO_EEXISTS, MO_EBUSY. */
int mo_proofs_shared_add(struct mo_proofs_shared *s, struct mo_span id,
                         uint64_t now_s);

#endif
