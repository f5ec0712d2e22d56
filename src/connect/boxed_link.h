/* boxed_link.h - links to configured MCP servers that run in a box.
 *
 * A server with an image, or a command whose `sandbox` names a driver, gets its
 * own box for every link: no network, no privileges, only its workspace is
 * writable (box/box.h). The box ends with the link and the link ends with the
 * box; the link's close callback gets the reason. Boxes also end with this
 * process and are never adopted.
 *
 * The box drivers for each combination of driver and image are opened by the
 * first link that needs them and stay open.
 *
 * Ownership: the loop is borrowed. All links must be gone before
 * mo_boxed_link_close(). */
#ifndef MO_CONNECT_BOXED_LINK_H
#define MO_CONNECT_BOXED_LINK_H

#include "config/config.h"
#include "connect/stderr_tail.h"
#include "mcp/client/conn.h"
#include "policy/approvals.h"

struct mo_boxed_link;

bool mo_boxed_link_is(const struct mo_config_mcp *s);

/* True if both texts are equal, or both are NULL. */
static inline bool mo_server_link_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* tail: receives the stderr of the servers; borrowed. */
int mo_boxed_link_new(struct mo_loop *l, struct mo_stderr_tail *tail,
                      struct mo_boxed_link **out, struct mo_err *e);
/* Decide about hosts that a box asks about, and record its connections; NULL:
 * every such host is refused. Set before the first box. */
void mo_boxed_link_approvals(struct mo_boxed_link *b,
                             struct mo_approvals *approvals);
void mo_boxed_link_close(struct mo_boxed_link *b, void (*gone)(void *ctx),
                         void *ctx);

/* Starts the box. The link is passed to mo_conn_dialed() later. */
int mo_boxed_link_dial(struct mo_boxed_link *b, const struct mo_config *cfg,
                       const struct mo_config_mcp *s, struct mo_conn *c,
                       struct mo_err *e);

#endif
