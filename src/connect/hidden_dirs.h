/* hidden_dirs.h - the directories that plain servers cannot see, and the files
 * that they cannot change.
 *
 *   store.dir                         token, secrets and their key, rules,
 * pins, audit log, databases, sockets CONFIG_HOME/mcp-orchestrator config.json,
 * the list of confirmed files
 *   (unchanged)                       the configuration file and .env
 *
 * Installed packages, `servers` in store.dir, stay visible and cannot be
 * changed.
 *
 * The directories are created if they are missing: a server could create them
 * instead. A file that is replaced while servers run is protected only from
 * those that start later. */
#ifndef MO_CONNECT_HIDDEN_DIRS_H
#define MO_CONNECT_HIDDEN_DIRS_H

#include "config/config.h"
#include "loop/hide.h"

/* Fails if store.dir cannot be hidden; the other one is hidden if possible. */
int mo_hidden_dirs_init(struct mo_hide *h, const struct mo_config *cfg,
                        struct mo_err *e);

/* Fails with MO_EINVAL if the server is configured to run from or in a hidden
 * directory. */
int mo_hidden_dirs_check(const struct mo_hide *h, const struct mo_config_mcp *s,
                         struct mo_err *e);

#endif
