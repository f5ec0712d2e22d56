/* service_manager.h - a service manager such as systemd: the socket that it
 * passes, and what it is told.
 *
 * The protocol is that of sd_listen_fds(3) and sd_notify(3): LISTEN_PID,
 * LISTEN_FDS and NOTIFY_SOCKET of the environment. Without these variables
 * nothing happens. Programs that the server starts do not inherit them. */
#ifndef MO_APP_SERVICE_MANAGER_H
#define MO_APP_SERVICE_MANAGER_H

#include "config/config.h"

/* Takes the listening socket that was passed to this process; *fd 0: none. It
 * must have the address and port of the configuration, on which tokens, links
 * and checks rely: MO_EINVAL otherwise, also for more than one socket and for
 * other kinds. */
int mo_service_manager_socket(const struct mo_config_server *c, int *fd,
                              struct mo_err *e);

void mo_service_manager_ready(void);
void mo_service_manager_reloading(void); /* then _ready() */
/* seconds: how long it may take before it counts as hanging. */
void mo_service_manager_stopping(int64_t seconds);

#endif
