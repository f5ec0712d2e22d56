/* tokens.h - the token file: clients and tokens from authorization servers.
 *
 * One entry for each pair of issuer and MCP server: our client there and its
 * tokens. Entries never move from one issuer to another. The file is one JSON
 * object, mode 0600, replaced as a whole (written to a temporary file, synced,
 * renamed), so that a crash leaves the old or the new one. A file that others
 * may read is refused: MO_EPOLICY.
 *
 * Several processes may use one file: a writer locks its directory (flock),
 * reads the entries of others, and changes only its own. It waits for the lock
 * MO_TOKENS_LOCK_MS at most, then continues without it.
 *
 * Nothing of it is ever logged, and errors name the file only. Without a path
 * everything is kept in memory only.
 *
 * A sealed file (mo_tokens_open_sealed) is written by its owner's functions,
 * and exists only while it has entries: another process that removes it takes
 * the tokens away.
 *
 * Limits: MO_TOKENS_MAX entries (the oldest is dropped), MO_TOKENS_FILE_MAX
 * bytes. Wall clock: expiry outlives the process, so it is a date; a wrong date
 * leads to a 401. */
#ifndef MO_MCP_OAUTH_TOKENS_H
#define MO_MCP_OAUTH_TOKENS_H

#include "base/str.h"

#define MO_TOKENS_MAX      256
#define MO_TOKENS_FILE_MAX ((size_t)4 * 1024 * 1024)
#define MO_TOKENS_LOCK_MS  500

/* Absent texts are NULL; issuer and server are always set. */
struct mo_token {
    const char *issuer, *server;
    const char *resource;                 /* the name in its metadata */
    const char *endpoint;                 /* the token endpoint */
    const char *revocation;               /* the revocation endpoint */
    const char *client, *secret, *method; /* our client there */
    const char *redirect;                 /* the client is registered for it */
    const char *access, *refresh, *scope;
    const char *dpop;    /* the key to which they are bound (dpop.h): PEM */
    uint64_t expires_ms; /* mo_wall_ms(); 0: not known */
    bool local;          /* the server was at a private address at that time */
};

struct mo_tokens;

/* path NULL: memory only. The file need not exist yet. */
int mo_tokens_open(const char *path, struct mo_tokens **out, struct mo_err *e);
/* The content of the file as its owner writes it; ctx and functions must
 * outlive the store. Both append to out. */
struct mo_tokens_seal {
    int (*seal)(void *ctx, struct mo_span plain, struct mo_buf *out,
                struct mo_err *e);
    int (*open)(void *ctx, struct mo_span sealed, struct mo_buf *out,
                struct mo_err *e);
    /* For servers with another file; each may be NULL. claim: 0, or MO_EBUSY
     * and it is called again soon; after 0, unclaim() once. changed: the file
     * was written, or removed. */
    int (*claim)(void *ctx);
    void (*unclaim)(void *ctx);
    void (*changed)(void *ctx, bool removed);
    void *ctx;
};
int mo_tokens_open_sealed(const char *path, const struct mo_tokens_seal *seal,
                          struct mo_tokens **out, struct mo_err *e);
void mo_tokens_close(struct mo_tokens *t); /* t may be NULL */

/* True if a change could not be saved. */
bool mo_tokens_unsaved(const struct mo_tokens *t);
/* Load the entries that other processes wrote; a file that cannot be read
 * changes nothing. */
void mo_tokens_sync(struct mo_tokens *t);
/* Claim the right to refresh tokens among the processes that share the file: an
 * issuer may take a token refreshed twice for stolen. Returns 0 and a
 * descriptor for mo_tokens_unclaim() (-1 if the file is not shared), or
 * MO_EBUSY. A
 * process that waits finds the new token with mo_tokens_sync(). */
int mo_tokens_claim(struct mo_tokens *t, int *fd);
/* Ends it and closes the descriptor; nothing if there is none. */
void mo_tokens_unclaim(struct mo_tokens *t, int *fd);
/* Find a token; borrowed until the next put, drop or sync; NULL: none. Without
 * an issuer: the entry that was put last. */
const struct mo_token *mo_tokens_get(const struct mo_tokens *t,
                                     const char *issuer, const char *server);
/* The i-th entry, or NULL; borrowed likewise. */
const struct mo_token *mo_tokens_at(const struct mo_tokens *t, size_t i);
/* Insert or replace an entry, and save. On MO_EIO it is kept in memory all the
 * same. Texts are copied first: they may belong to the replaced entry. */
int mo_tokens_put(struct mo_tokens *t, const struct mo_token *k,
                  struct mo_err *e);
/* Remove the entries of a server (of every issuer when NULL), and save. */
int mo_tokens_drop(struct mo_tokens *t, const char *issuer, const char *server,
                   struct mo_err *e);

#endif
