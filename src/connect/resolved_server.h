/* resolved_server.h - a server as it is to be started or connected to.
 *
 * Made out of the options of a command: words are split, references resolved
 * (they are in the arena then, and go to that server only), and the name under
 * which its era is remembered is worked out. Nothing is started here.
 *
 * What stood behind references is written down as well: so that the log and
 * the errors of that server can be kept free of it, whoever puts it there (a
 * server that dies says its last words), and so that it can be wiped. */
#ifndef MO_CONNECT_RESOLVED_SERVER_H
#define MO_CONNECT_RESOLVED_SERVER_H

#include "connect/era_cache.h"
#include "connect/sync_client.h"
#include "mcp/link/link_child.h"
#include "mcp/link/link_http.h"

struct mo_resolved_server {
    struct mo_arena *a; /* all texts; borrowed */
    bool is_remote;
    bool old_sse;
    struct mo_child_opts child;
    struct mo_link_http_opts remote; /* its http and auth are not set here */
    struct mo_era_cache_key key;
    struct mo_resolved_server_text *secrets; /* in the arena */
};

int mo_resolved_server_init(struct mo_resolved_server *t, struct mo_arena *a,
                            const struct mo_sync_client_opts *o,
                            struct mo_err *e);

/* A server's own variables, resolved: "NAME=VALUE" in t->a, NULL at the end.
 * Of t only that need be set. */
int mo_resolved_server_env(struct mo_resolved_server *t,
                           const struct mo_config *cfg,
                           const struct mo_config_mcp *s,
                           const char *const **out, struct mo_err *e);
/* Tell the loop's log. MO_EBUSY: not all fit into its table. */
int mo_resolved_server_hide(const struct mo_resolved_server *t,
                            struct mo_loop *l);
/* A text of its server's without them: in b if there was one, else as it is. 0
 * or MO_ENOMEM. */
int mo_resolved_server_redact(const struct mo_resolved_server *t,
                              struct mo_span *text, struct mo_buf *b);
/* Blank them out of a message. */
void mo_resolved_server_scrub(const struct mo_resolved_server *t,
                              struct mo_err *e);
/* Overwrite them; nothing can be started afterwards. Before the arena goes. */
void mo_resolved_server_wipe(struct mo_resolved_server *t);

#endif
