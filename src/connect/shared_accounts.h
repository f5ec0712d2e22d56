/* shared_accounts.h - connections of people that all servers of a store have.
 *
 * Processes with one store.dir share the files of connections
 * (account_file.h). Servers with another one get them through the store
 * (store/shared_rows.h):
 *
 *   connections:file:KEY   {"at", "seal"}: the file, sealed as it is there, so
 *                          the store knows neither names nor tokens
 *
 * All servers must have the same key of the secrets; a row that does not open
 * is left alone. The newest file counts, by the time of the file. A change that
 * is made here, also a removal, is later than what the store had, whatever the
 * clocks say.
 *
 * One server at a time refreshes a token: it takes the lease
 * "connection-KEY", reads the row, refreshes, writes the row and gives the
 * lease back. If the store is away it refreshes without.
 *
 * Limit: a connection that was removed while the store was away comes back if
 * this process ends before the store is there again; its tokens are revoked
 * where the issuer can do that. */
#ifndef MO_CONNECT_SHARED_ACCOUNTS_H
#define MO_CONNECT_SHARED_ACCOUNTS_H

#include "config/config.h"
#include "secrets/secrets.h"
#include "store/shared_rows.h"

struct mo_shared_accounts;

struct mo_shared_accounts_opts {
    struct mo_loop *loop;
    struct mo_store *store;
    const char *instance;           /* holder of the leases */
    const struct mo_config *cfg;    /* referenced */
    const struct mo_secrets *vault; /* must outlive it */
    /* A person was connected or disconnected at another server. */
    void (*told)(void *ctx, const char *server, const char *person, bool on);
    void *ctx;
};

int mo_shared_accounts_open(const struct mo_shared_accounts_opts *o,
                            struct mo_shared_accounts **out, struct mo_err *e);
/* Before the store closes. Files that are in use stay usable. */
void mo_shared_accounts_close(struct mo_shared_accounts *s); /* NULL is fine */

/* True as soon as those of the other servers have been read once. */
bool mo_shared_accounts_are_read(const struct mo_shared_accounts *s);

/* For account_file.c, with the key of a file: as in struct mo_tokens_seal. */
int mo_shared_accounts_claim(struct mo_shared_accounts *s, const char *key);
void mo_shared_accounts_unclaim(struct mo_shared_accounts *s, const char *key);
void mo_shared_accounts_changed(struct mo_shared_accounts *s, const char *key,
                                bool removed);

#endif
