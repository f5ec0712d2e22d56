/* installed_files.h - what a server that `mcp install` installed needs in its
 * box: the read-only directory of its package, and its runtime.
 *
 * A server is installed if one of its arguments lies in the place of installed
 * packages (install/place.h): STATE/servers/NAME/VERSION/ or, if root installed
 * it, STATE.servers/NAME/VERSION/. A runtime in a system directory is in every
 * box; another one (nvm, /opt) is shown as a single file, because the directory
 * around it may be somebody's home. */
#ifndef MO_CONNECT_INSTALLED_FILES_H
#define MO_CONNECT_INSTALLED_FILES_H

#include "config/config.h"

#define MO_INSTALLED_DIR       "servers"
#define MO_INSTALLED_FILES_MAX 2

/* Sets *out to the absolute paths, NULL-terminated, in the arena; or to NULL:
 * the server was not installed. MO_ENOMEM. */
int mo_installed_files(struct mo_arena *a, const struct mo_config *cfg,
                       const struct mo_config_mcp *s, const char *const **out,
                       struct mo_err *e);

#endif
