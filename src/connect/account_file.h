/* account_file.h - the tokens of one person at one server, sealed.
 *
 *   store.dir/connections/DIGEST    mode 0600, its directory 0700
 *
 * DIGEST is the SHA-256 of both names with their lengths before them, so two
 * pairs of names never share a file. The content is sealed with the key of the
 * secrets (secrets/secrets.h) for that DIGEST: a file that was copied to the
 * name of another one does not open. It holds the names, then the token file
 * of mcp/oauth/tokens.h. It exists as long as the person is connected.
 *
 * The client that we registered at the server's issuer is kept likewise, once
 * for all persons, in a file of its own (mo_account_client).
 *
 * Ownership: the struct is the caller's, and must stay where it is while its
 * tokens are open. */
#ifndef MO_CONNECT_ACCOUNT_FILE_H
#define MO_CONNECT_ACCOUNT_FILE_H

#include <limits.h>

#include "codec/sha256.h"
#include "config/config.h"
#include "connect/shared_accounts.h"
#include "mcp/oauth/tokens.h"
#include "secrets/secrets.h"

#define MO_ACCOUNTS_DIR "connections" /* in store.dir */

struct mo_account_file {
    struct mo_tokens_seal seal;
    const struct mo_secrets *vault; /* borrowed */
    /* Other servers, or NULL; it may be set and unset at any time. */
    struct mo_shared_accounts *const *shared;
    char key[MO_SHA256_HEX + 1];
    char *path;
    struct mo_buf names; /* the first bytes of the content */
};

/* The name of the file: a digest of the pair. */
void mo_account_key(struct mo_span server, struct mo_span person,
                    char out[MO_SHA256_HEX + 1]);
bool mo_account_is_key(const char *name);
/* The path of that file; of "" that of the directory. MO_ETOOBIG. */
int mo_account_path(const struct mo_config *c, const char *key,
                    char out[PATH_MAX]);
/* True if the person is connected: one look at the directory. */
bool mo_account_exists(const struct mo_config *c, struct mo_span server,
                       struct mo_span person);

int mo_account_file_init(struct mo_account_file *f, const struct mo_config *c,
                         const struct mo_secrets *vault, struct mo_span server,
                         struct mo_span person, struct mo_err *e);
/* The file of the client that all persons use there. */
int mo_account_client_init(struct mo_account_file *f, const struct mo_config *c,
                           const struct mo_secrets *vault,
                           struct mo_span server, struct mo_err *e);
void mo_account_file_fini(struct mo_account_file *f);
/* A damaged file is removed: its person connects again. e must not be NULL. */
int mo_account_file_open(struct mo_account_file *f, struct mo_tokens **out,
                         struct mo_err *e);

/* Has the file in common with other servers. Before it is opened. */
void mo_account_file_share(struct mo_account_file *f,
                           struct mo_shared_accounts *const *shared);

/* One connection as people see it; borrowed. */
struct mo_account_info {
    struct mo_span server, person;
    uint64_t since_ms; /* wall clock: the tokens were got or refreshed */
    const struct mo_tokens *tokens;
};

/* The names in the content of a file; false: it is a client's. Borrowed. */
bool mo_account_names(struct mo_span content, struct mo_account_info *out);

/* Calls fn() for every connection that can be read until it returns nonzero.
 * Files that do not open are left out; *bad counts them (may be NULL). */
int mo_accounts_each(const struct mo_config *c, const struct mo_secrets *vault,
                     int (*fn)(void *ctx, const struct mo_account_info *i),
                     void *ctx, unsigned *bad, struct mo_err *e);

#endif
