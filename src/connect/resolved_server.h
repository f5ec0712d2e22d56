/* resolved_server.h - a configured server with its references resolved, ready
 * to start or connect.
 *
 * Built from the options of a command: splits the command line into words,
 * resolves references (the values are kept in the arena and go to this server
 * only) and computes the key of the era cache. Starts nothing.
 *
 * The resolved values are listed, so that they can be removed from the log and
 * from errors of this server (a dying server may print them), and can be
 * wiped. */
#ifndef MO_CONNECT_RESOLVED_SERVER_H
#define MO_CONNECT_RESOLVED_SERVER_H

#include "connect/era_cache.h"
#include "connect/sync_client.h"
#include "mcp/link/link_child.h"
#include "mcp/link/link_http.h"

struct mo_resolved_server {
    struct mo_arena *a; /* owns all texts; borrowed */
    bool is_remote;
    bool old_sse;
    struct mo_child_opts child;
    struct mo_link_http_opts remote; /* http and auth are set by the caller */
    struct mo_era_cache_key key;
    struct mo_resolved_server_text *secrets; /* in the arena */
};

int mo_resolved_server_init(struct mo_resolved_server *t, struct mo_arena *a,
                            const struct mo_sync_client_opts *o,
                            struct mo_err *e);

/* Resolves the environment of the server: "NAME=VALUE" strings in t->a,
 * NULL-terminated. Only t->a must be set. */
int mo_resolved_server_env(struct mo_resolved_server *t,
                           const struct mo_config *cfg,
                           const struct mo_config_mcp *s,
                           const char *const **out, struct mo_err *e);
/* Adds the resolved values to the secrets of the loop's log. MO_EBUSY: its
 * table is full. */
int mo_resolved_server_hide(const struct mo_resolved_server *t,
                            struct mo_loop *l);
/* Replaces resolved values in *text. The result is in b if there was one, else
 * *text is unchanged. 0 or MO_ENOMEM. */
int mo_resolved_server_redact(const struct mo_resolved_server *t,
                              struct mo_span *text, struct mo_buf *b);
/* Blanks resolved values out of an error message. */
void mo_resolved_server_scrub(const struct mo_resolved_server *t,
                              struct mo_err *e);
/* Overwrites the resolved values. Call it before the arena is freed; nothing
 * can be started afterwards. */
void mo_resolved_server_wipe(struct mo_resolved_server *t);

#endif
