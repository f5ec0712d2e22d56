/* boxed_link.h - configured MCP servers that run in a box, as links.
 *
 * A server with an image, or a command whose `sandbox` names a driver, gets a
 * box of its own for every link: no network, no rights, only its workspace to
 * write to (box/box.h). The box ends with the link, and the link with the box;
 * whoever is waiting hears why it ended. A box dies with us too: nobody comes
 * back for one.
 *
 * A sandbox is opened for each kind of server (driver and image) when the
 * first of them is dialled, and kept.
 *
 * Ownership: the loop is borrowed. All links must be gone before
 * mo_boxed_link_close(). */
#ifndef MO_CONNECT_BOXED_LINK_H
#define MO_CONNECT_BOXED_LINK_H

#include "config/config.h"
#include "connect/stderr_tail.h"
#include "mcp/client/conn.h"

/* In a box without an image: the toolbox that this program carries. */
#define MO_BOXED_TOOLBOX "mo-toolbox"

struct mo_boxed_link;

bool mo_boxed_link_is(const struct mo_config_mcp *s);

/* said: where their stderr goes; borrowed. */
int mo_boxed_link_new(struct mo_loop *l, struct mo_stderr_tail *said,
                      struct mo_boxed_link **out, struct mo_err *e);
void mo_boxed_link_close(struct mo_boxed_link *b, void (*gone)(void *ctx),
                         void *ctx);

/* The link goes to mo_conn_dialed(), later. */
int mo_boxed_link_dial(struct mo_boxed_link *b, const struct mo_config *cfg,
                       const struct mo_config_mcp *s, struct mo_conn *c,
                       struct mo_err *e);

#endif
