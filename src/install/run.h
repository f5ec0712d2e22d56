/* run.h - runs a package manager of the host, such as npm, and reads its
 * output.
 *
 * Blocking. Between mo_runner_open() and mo_runner_close() SIGINT, SIGTERM and
 * SIGHUP do not end the process: the running program is killed, the call
 * returns MO_ECANCELED, and the caller can clean up. The program dies with this
 * process. */
#ifndef MO_INSTALL_RUN_H
#define MO_INSTALL_RUN_H

#include <signal.h>
#include <sys/types.h>

#include "config/config.h"
#include "loop/spawn.h"

#define MO_RUN_TAIL_MAX 2000 /* bytes of its errors that are kept */

/* Whom it runs as, if the caller is root and the files are for another user:
 * without a way back to root, and with the settings of that user. */
struct mo_run_user {
    uid_t uid; /* 0: the caller's own */
    gid_t gid;
    const char *home;
};

struct mo_runner {
    const char *const *env;
    struct mo_run_user user;
    int say;                        /* descriptor for progress, or -1 */
    char tail[MO_RUN_TAIL_MAX + 1]; /* the end of its errors */
    size_t ntail;
    /* private */
    const char **own_env; /* of user, or NULL */
    int signals;
    sigset_t was;
};

/* n->user was set before. Call mo_runner_close() in any case; signals is -1
 * before the first call. */
int mo_runner_open(struct mo_runner *n, const struct mo_config *cfg, int say,
                   struct mo_err *e);
void mo_runner_close(struct mo_runner *n);

/* True once a signal has arrived. */
bool mo_runner_is_stopped(struct mo_runner *n);

struct mo_run {
    const char *name; /* in messages */
    const char *file; /* absolute */
    const char *const *argv;
    const char *cwd;
    unsigned ms;   /* MO_ETIMEOUT after that */
    bool is_quiet; /* its errors are not shown */
};

/* Runs it to its end; out has its output, up to out->max. MO_EUNAVAIL: it
 * failed; the error has its last words. */
int mo_runner_do(struct mo_runner *n, const struct mo_run *what,
                 struct mo_buf *out, struct mo_err *e);

#endif
