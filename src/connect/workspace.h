/* workspace.h - folders in which boxed servers keep their files.
 *
 * A server with `workspace` has STORE_DIR/workspaces/NAME as /workspace of its
 * boxes, mode 0700. All its boxes share it. It stays until the server is
 * removed from the configuration with `mcp remove` or on the page.
 *
 * A removed one is renamed to .gone-* first, so that a new server of that name
 * starts empty. Boxes that still run in it keep writing there; what they leave
 * goes with the next sweep.
 *
 * Limits: none on the size of a workspace, except that a file has at most
 * `sandbox.workspaceMb`. Everything here blocks. */
#ifndef MO_CONNECT_WORKSPACE_H
#define MO_CONNECT_WORKSPACE_H

#include <limits.h>

#include "config/config.h"

#define MO_WORKSPACE_SWEEP     20000   /* entries that a loop may wait for */
#define MO_WORKSPACE_SWEEP_ALL 5000000 /* for a command */

/* The directory of the server, which may not exist. MO_EINVAL for a name that
 * starts with a dot. */
int mo_workspace_path(const struct mo_config *cfg, const char *server,
                      char out[PATH_MAX], struct mo_err *e);
/* The same without links, created if it is missing. */
int mo_workspace_make(const struct mo_config *cfg, const char *server,
                      char out[PATH_MAX], struct mo_err *e);
/* Removes it, if there is one, and what earlier calls left: at most `max`
 * entries. */
int mo_workspace_remove(const struct mo_config *cfg, const char *server,
                        size_t max, struct mo_err *e);
/* Removes what mo_workspace_remove() left. */
void mo_workspace_sweep(const struct mo_config *cfg, size_t max);

#endif
