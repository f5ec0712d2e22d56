/* sync_client.h - one MCP server, opened for the length of a command.
 *
 * For `call` and `mcp ...`: a loop of its own, one connection, and calls that
 * return when the answer is there. The server's side (serve) shares nothing
 * with this but the rooms below.
 *
 * The server comes from the configuration or is typed by the person: a
 * command line, which is split into words without a shell, or an address.
 * References in its environment or headers are resolved and go to that server
 * only. A server that wants a sign-in gets one (sign_in.h): calls wait for it.
 * The era a server was found to speak is remembered (era_cache.h).
 *
 * Ownership: mo_sync_client_close() takes everything back, whatever state it is
 * in; the child is gone when it returns. */
#ifndef MO_CONNECT_SYNC_CLIENT_H
#define MO_CONNECT_SYNC_CLIENT_H

#include "connect/sign_in.h"
#include "mcp/client/conn.h"
#include "mcp/client/mirror.h"

#define MO_SYNC_CLIENT_WORDS_MAX 256
#define MO_SYNC_CLIENT_TEXT_MAX  ((size_t)32 * 1024 * 1024) /* of an answer */

struct mo_sync_client;

struct mo_sync_client_opts {
    const struct mo_config *cfg;
    const struct mo_config_mcp *server; /* one of cfg's, or NULL: */
    const char *command;                /* a command line, or */
    const char *url;                    /* an address */
    enum mo_conn_mode mode;
    uint64_t timeout_ms; /* of each call; 0: the server's, or the usual */
    bool may_ask;        /* a person may be asked to sign in */
    int err;             /* where: a descriptor */
    /* Set by whatever fails because a person must sign in; may be NULL. */
    bool *sign_in_needed;
};

/* Opened and ready, or a sentence why not. */
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

/* One call; 0 and the result in *out (borrowed until the next call), or an
 * error: MO_EINVAL for one that the server gave, e has its message then. */
int mo_sync_client_call(struct mo_sync_client *p, const char *method,
                        struct mo_span params, struct mo_json *out,
                        struct mo_err *e);
/* The same with headers (Mcp-Param-*); m may be NULL. */
int mo_sync_client_call_with(struct mo_sync_client *p, const char *method,
                             struct mo_span params, const struct mo_mirror *m,
                             struct mo_json *out, struct mo_err *e);
/* The code of the error that the server gave to the last call, or 0. */
int64_t mo_sync_client_code(const struct mo_sync_client *p);
/* tools/call: as above, with what the tool's schema wants in the head. When
 * the server finds that they do not match (its tools have changed), they are
 * made again from a fresh list, once. */
int mo_sync_client_tool(struct mo_sync_client *p, const char *tool,
                        struct mo_span args, struct mo_json *out,
                        struct mo_err *e);
/* All pages of a list. */
int mo_sync_client_list(struct mo_sync_client *p, const char *method,
                        const char *key, struct mo_json *out, struct mo_err *e);

/* "a 'b c' \"d\"" -> words in the arena, NULL at the end; *n without it. */
int mo_sync_client_words(struct mo_arena *a, const char *line,
                         const char *const **out, size_t *n, struct mo_err *e);

#endif
