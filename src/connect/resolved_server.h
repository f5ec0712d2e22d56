/* resolved_server.h - a configured server with its references resolved, ready
 * to start or connect.
 *
 * The values of references are kept in the arena and go to this server only.
 * Starts nothing.
 *
 * The resolved values are listed, so that they can be removed from the log and
 * from errors of this server (a dying server may print them), and can be
 * wiped. */
#ifndef MO_CONNECT_RESOLVED_SERVER_H
#define MO_CONNECT_RESOLVED_SERVER_H

#include "config/config.h"
#include "connect/era_cache.h"
#include "mcp/link/link_child.h"
#include "mcp/link/link_http.h"

struct mo_resolved_server {
    struct mo_arena *a; /* owns all texts; borrowed */
    bool old_sse;
    struct mo_child_opts child;      /* of a server without an address */
    struct mo_link_http_opts remote; /* http and auth are set by the caller */
    struct mo_resolved_server_text *secrets; /* in the arena */
    bool no_memory;                          /* for one of them */
};

int mo_resolved_server_init(struct mo_resolved_server *t, struct mo_arena *a,
                            const struct mo_config *cfg,
                            const struct mo_config_mcp *s, struct mo_err *e);
/* The key of the server in the era cache. Needs no secrets but those of its
 * address. */
int mo_resolved_server_key(const struct mo_config *cfg,
                           const struct mo_config_mcp *s,
                           struct mo_era_cache_key *out);

/* Sets t->child.argv: the command, if there is one, and the arguments. Only
 * t->a must be set. */
int mo_resolved_server_words(struct mo_resolved_server *t,
                             const struct mo_config_mcp *s, struct mo_err *e);
/* Resolves the environment of the server: "NAME=VALUE" strings in t->a,
 * NULL-terminated. Only t->a must be set. */
int mo_resolved_server_env(struct mo_resolved_server *t,
                           const struct mo_config *cfg,
                           const struct mo_config_mcp *s,
                           const char *const **out, struct mo_err *e);
/* Adds the resolved values to the secrets of the loop's log, and warns there if
 * its table is full. */
void mo_resolved_server_hide(const struct mo_resolved_server *t,
                             struct mo_loop *l, const char *server);
/* Blanks resolved values out of an error message. */
void mo_resolved_server_scrub(const struct mo_resolved_server *t,
                              struct mo_err *e);
/* Overwrites the resolved values. Call it before the arena is freed; nothing
 * can be started afterwards. */
void mo_resolved_server_wipe(struct mo_resolved_server *t);

#endif
