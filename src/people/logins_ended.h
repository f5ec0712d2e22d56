/* logins_ended.h - the sign-outs of the last minute.
 *
 * The store writes a sign-out a moment later, and other processes look at the
 * store every MO_LOGIN_LOOK_MS: until then, what the store shows and what is in
 * memory is not believed if it is in this table. Workers of one server have one
 * table in memory that they share, so a sign-out counts in all of them at once.
 *
 * Limit: the last MO_LOGINS_ENDED sign-outs; of older ones the store tells. */
#ifndef MO_PEOPLE_LOGINS_ENDED_H
#define MO_PEOPLE_LOGINS_ENDED_H

#include <stdatomic.h>

#include "base/lock.h"
#include "codec/sha256.h"
#include "people/access_token.h"

#define MO_LOGINS_ENDED    128
#define MO_LOGINS_ENDED_MS ((uint64_t)60000) /* the store has it by then */

struct mo_logins_ended {
    struct mo_lock lock;
    atomic_uint changes; /* grows with each sign-out */
    unsigned next;       /* row that is overwritten next */
    struct mo_login_ended {
        char digest[MO_SHA256_HEX + 1]; /* "": all logins of the person */
        char who[MO_PERSON_MAX];
        uint64_t at_ms; /* 0: none */
    } v[MO_LOGINS_ENDED];
};

/* The memory is zero. */
int mo_logins_ended_init(struct mo_logins_ended *t, struct mo_err *e);
/* digest "": all logins of that person that have begun by now. */
void mo_logins_ended_add(struct mo_logins_ended *t, const char *digest,
                         const char *who, uint64_t now_ms);
bool mo_logins_ended_has(struct mo_logins_ended *t, const char *digest,
                         const char *who, uint64_t began_ms, uint64_t now_ms);

#endif
