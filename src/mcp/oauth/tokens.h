/* tokens.h - what authorization servers gave us, kept in one file.
 *
 * One entry for each pair of issuer and MCP server: the client that we are
 * there, and the tokens it got. Entries never move from one issuer to
 * another. The file is one JSON object, mode 0600, replaced as a whole
 * (written beside, synced, renamed), so that a crash leaves the old or the
 * new one. A file that others may read is not believed: MO_EPOLICY.
 *
 * Several processes may use one file: whoever writes locks its directory
 * (flock), reads what others wrote, and changes only the entry it is about.
 * The lock is waited for MO_TOKENS_LOCK_MS at most, then done without.
 *
 * Nothing in here is ever logged, and errors name the file only. Without a
 * path everything is kept in memory alone.
 *
 * Limits: MO_TOKENS_MAX entries (the oldest goes), MO_TOKENS_FILE_MAX bytes.
 * Wall clock: expiry outlives the process, so it is a date; who is wrong
 * about it learns so by a 401. */
#ifndef MO_MCP_OAUTH_TOKENS_H
#define MO_MCP_OAUTH_TOKENS_H

#include "base/str.h"

#define MO_TOKENS_MAX      256
#define MO_TOKENS_FILE_MAX ((size_t)4 * 1024 * 1024)
#define MO_TOKENS_LOCK_MS  500

/* Texts are NULL when there is none, but for issuer and server. */
struct mo_token {
    const char *issuer, *server;
    const char *resource;                 /* as its metadata names it */
    const char *endpoint;                 /* where tokens are had */
    const char *client, *secret, *method; /* who we are there */
    const char *redirect;                 /* what the client was made for */
    const char *access, *refresh, *scope;
    uint64_t expires_ms; /* mo_wall_ms(); 0: not known */
    bool local;          /* the server was at a private address then */
};

struct mo_tokens;

/* path NULL: memory only. A file that is not there yet is fine. */
int mo_tokens_open(const char *path, struct mo_tokens **out, struct mo_err *e);
void mo_tokens_close(struct mo_tokens *t); /* NULL is fine */

/* Is there something that could not be saved? */
bool mo_tokens_unsaved(const struct mo_tokens *t);
/* Take over what other processes wrote meanwhile; what cannot be read changes
 * nothing. */
void mo_tokens_sync(struct mo_tokens *t);
/* The right to refresh tokens, among the processes that share the file: a
 * token that is refreshed twice may be taken for stolen. 0 and a descriptor to
 * close afterwards (-1 where nobody shares it), or MO_EBUSY. Whoever waits for
 * it finds what came of it by mo_tokens_sync(). */
int mo_tokens_claim(const struct mo_tokens *t, int *fd);
/* Borrowed until the next put, drop or sync; NULL: none. Without an issuer:
 * the one that was put last. */
const struct mo_token *mo_tokens_get(const struct mo_tokens *t,
                                     const char *issuer, const char *server);
/* Insert or replace, and save. On MO_EIO it is kept in memory all the same.
 * Texts are copied first: they may be of the entry that is replaced. */
int mo_tokens_put(struct mo_tokens *t, const struct mo_token *k,
                  struct mo_err *e);
/* Forget all of a server (any issuer when NULL), and save. */
int mo_tokens_drop(struct mo_tokens *t, const char *issuer, const char *server,
                   struct mo_err *e);

#endif
