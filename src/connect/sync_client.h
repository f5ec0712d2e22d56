/* sync_client.h - one connection to an MCP server with blocking calls, for a
 * command.
 *
 * Used by `call` and `mcp ...`. It has its own loop and one connection; a call
 * returns when the answer is there. It shares no state with `serve`.
 *
 * The server comes from the configuration, from a command line (split into
 * words without a shell), or from an address. References in its environment or
 * headers are resolved and go to this server only. If the server requires a
 * sign-in, calls wait for it (sign_in.h). The era of the server is remembered
 * (era_cache.h).
 *
 * Ownership: mo_sync_client_close() frees everything in any state; the child is
 * gone when it returns. */
#ifndef MO_CONNECT_SYNC_CLIENT_H
#define MO_CONNECT_SYNC_CLIENT_H

#include "connect/sign_in.h"
#include "mcp/client/conn.h"
#include "mcp/client/mirror.h"

#define MO_SYNC_CLIENT_WORDS_MAX 256
#define MO_SYNC_CLIENT_TEXT_MAX  ((size_t)32 * 1024 * 1024) /* an answer */

struct mo_sync_client;

struct mo_sync_client_opts {
    const struct mo_config *cfg;
    const struct mo_config_mcp *server; /* owned by cfg, or NULL and one of: */
    const char *command;                /* a command line */
    const char *url;                    /* an address */
    enum mo_conn_mode mode;
    uint64_t timeout_ms; /* of each call; 0: of the server, or the default */
    bool may_ask;        /* a person may be asked to sign in */
    int err;             /* descriptor for messages to the person */
    /* Set to true if something fails because a person must sign in. May be
     * NULL. */
    bool *sign_in_needed;
};

/* Returns 0 and an open connection, or an error with the reason. */
int mo_sync_client_open(const struct mo_sync_client_opts *o,
                        struct mo_sync_client **out, struct mo_err *e);
void mo_sync_client_close(struct mo_sync_client *p); /* NULL is fine */

const struct mo_conn_info *mo_sync_client_info(const struct mo_sync_client *p);
const struct mo_conn_stats *
mo_sync_client_stats(const struct mo_sync_client *p);
bool mo_sync_client_can(const struct mo_sync_client *p, const char *capability);
bool mo_sync_client_is_http(const struct mo_sync_client *p);
const struct mo_sign_in *
mo_sync_client_sign_in(const struct mo_sync_client *p); /* or NULL */

/* Calls a method. 0: *out is the result, borrowed until the next call.
 * MO_EINVAL: the server returned an error, *e has its message. */
int mo_sync_client_call(struct mo_sync_client *p, const char *method,
                        struct mo_span params, struct mo_json *out,
                        struct mo_err *e);
/* tools/call with the headers that the tool's schema requires. If the server
 * reports that the headers do not match (its tools changed), they are rebuilt
 * from a fresh list, once. */
int mo_sync_client_tool(struct mo_sync_client *p, const char *tool,
                        struct mo_span args, struct mo_json *out,
                        struct mo_err *e);
/* Reads all pages of a list. */
int mo_sync_client_list(struct mo_sync_client *p, const char *method,
                        const char *key, struct mo_json *out, struct mo_err *e);

/* Splits "a 'b c' \"d\"" into words in the arena, NULL-terminated; *n does not
 * count the NULL. */
int mo_sync_client_words(struct mo_arena *a, const char *line,
                         const char ***out, size_t *n, struct mo_err *e);

#endif
