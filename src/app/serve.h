/* serve.h - runs the server from the first listen to the last byte.
 *
 * The command `serve` calls it with a valid configuration and an open log.
 * Ownership: both belong to the caller and outlive the call; the configuration
 * may be reloaded through its holder. Returns an exit code (enum mo_exit_code,
 * cli/cli.h); the reason is logged. */
#ifndef MO_APP_SERVE_H
#define MO_APP_SERVE_H

#include "app/own_user.h"
#include "config/config.h"

struct mo_serve_opts {
    struct mo_own_user *user; /* of the caller (own_user.h) */
    bool no_auth;    /* no token, and everyone on this machine may do all */
    bool print_link; /* with the token, also if stdout is no terminal */
    bool test_echo;  /* echo Socket.IO events; for tests */
    bool test_bare;  /* no sessions and no conversations; for tests */
    /* POINT or POINT:N: SIGKILL this process when it passes POINT, the N-th
     * time; for tests (agent/chat/chat.h). */
    const char *test_crash;
    unsigned test_ping_ms; /* Engine.IO heartbeat, a tenth of its timeout */
};

int mo_serve(struct mo_config_holder *h, struct mo_log *log,
             const struct mo_serve_opts *o);

#endif
