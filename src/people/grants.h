/* grants.h - the personal tokens of this server, kept in the store.
 *
 * All of them are in memory too, so the check of one reads nothing. They are
 * read again every MO_GRANTS_READ_MS: so long a change by another process may
 * take. An unknown id leads to a reading at once, because another process may
 * have made the token just now, but at most one in MO_GRANTS_PAUSE_MS: guessing
 * cannot flood the store. If the store does not answer, what is known is valid
 * for MO_GRANTS_STALE_MS. Workers of one server know changes at once.
 *
 *   grant:ID             the document (grant.h)
 *   grant:ID:used        {"at"}: the last use, written at most once a minute.
 *                        A row of its own: a process that has not heard of a
 *                        revocation cannot bring the token back by writing it
 *   grant-owner:DIGEST   {"owner", "role", "seen"}: the role that a provider's
 *                        person had at the last sign-in, if they have tokens.
 *                        Nobody tells us that an account was closed: after
 *                        MO_GRANTS_SEEN_MS without a sign-in the tokens rest
 *                        until the next one
 *
 * Expired tokens are shown for MO_GRANTS_KEPT_MS, then removed.
 *
 * Limits: MO_GRANTS_MAX (more are refused, or ignored if they are in the
 * store), MO_GRANTS_PERSON of one owner. Ownership: loop and store are
 * borrowed until mo_grants_close(); afterwards it waits by itself for its last
 * operation. */
#ifndef MO_PEOPLE_GRANTS_H
#define MO_PEOPLE_GRANTS_H

#include <stdatomic.h>

#include "people/grant.h"
#include "people/provider.h"
#include "store/store.h"

#define MO_GRANTS_MAX      10000
#define MO_GRANTS_PERSON   100
#define MO_GRANTS_READ_MS  ((uint64_t)15 * 1000)
#define MO_GRANTS_PAUSE_MS ((uint64_t)2 * 1000)
#define MO_GRANTS_STALE_MS ((uint64_t)10 * 60 * 1000)
#define MO_GRANTS_USED_MS  ((uint64_t)60 * 1000)
#define MO_GRANTS_SEEN_MS  ((uint64_t)30 * 24 * 3600 * 1000)
#define MO_GRANTS_KEPT_MS  ((uint64_t)30 * 24 * 3600 * 1000)

struct mo_grants;

struct mo_grants_opts {
    struct mo_loop *loop;
    struct mo_store *store;
    /* The token was revoked or has expired: what it opened must be closed. */
    void (*ended)(void *ctx, const char *id);
    void *ctx;
    /* Shared with the other workers of this server: changes with each token
     * that one of them adds or revokes, and all others read it at once. NULL:
     * there are none. */
    atomic_uint *changes;
};

int mo_grants_open(const struct mo_grants_opts *o, struct mo_grants **out,
                   struct mo_err *e);
/* All who wait get MO_ECANCELED, from inside this call. */
void mo_grants_close(struct mo_grants *g);

/* 0: *out is borrowed until the loop goes on, and counts as used now.
 * MO_EPOLICY: it is no valid token. MO_EUNAVAIL: the store must be read first;
 * wait and ask again. */
int mo_grants_check(struct mo_grants *g, struct mo_span text,
                    const struct mo_grant **out, struct mo_err *e);
/* Reads the store, or joins the reading under way. */
void mo_grants_read(struct mo_grants *g, struct mo_provider_wait *w);

/* NULL: none of that id. Borrowed as above. */
const struct mo_grant *mo_grants_find(const struct mo_grants *g,
                                      struct mo_span id);
/* fn() for each, in no order. */
void mo_grants_each(const struct mo_grants *g,
                    void (*fn)(void *ctx, const struct mo_grant *one),
                    void *ctx);

/* Stores a token that mo_grant_make() has completed. seen: the owner's role,
 * if they are a provider's person. MO_EBUSY: too many. done() fires once,
 * later. */
int mo_grants_add(struct mo_grants *g, const struct mo_grant *one,
                  enum mo_role seen, mo_done_fn *done, void *ctx,
                  struct mo_err *e);
/* Valid no longer in this process, at once; done() when it is out of the
 * store, after which no process accepts it for longer than
 * MO_GRANTS_READ_MS. */
int mo_grants_revoke(struct mo_grants *g, struct mo_span id, mo_done_fn *done,
                     void *ctx, struct mo_err *e);

/* The role that a provider's person had at the last sign-in; MO_ROLE_NONE:
 * unknown, or it was too long ago. Only people who have tokens are known. */
enum mo_role mo_grants_seen(const struct mo_grants *g, const char *owner);
/* They have signed in, or sent a signed token. */
void mo_grants_saw(struct mo_grants *g, const char *owner, enum mo_role role);

#endif
