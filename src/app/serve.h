/* serve.h - the server's life from the first listen to the last byte.
 *
 * Called by `serve` with a configuration that is loaded and valid and a log
 * that is set up from it. Ownership: both are the caller's and outlive the
 * call; the configuration may be reloaded through its holder meanwhile.
 * Returns an exit code (enum mo_exit_code, cli/cli.h) and has logged why. */
#ifndef MO_APP_SERVE_H
#define MO_APP_SERVE_H

#include "config/config.h"

struct mo_serve_opts {
    bool test_echo;         /* Socket.IO events come back; for tests */
    bool test_bare;         /* no sessions, no conversations; for tests */
    const char *test_crash; /* POINT or POINT:N: SIGKILL ourselves there, the
                               N-th time; for tests (agent/chat/chat.h) */
    unsigned test_ping_ms;  /* Engine.IO heartbeat, a tenth of its timeout */
};

int mo_serve(struct mo_config_holder *h, struct mo_log *log,
             const struct mo_serve_opts *o);

#endif
