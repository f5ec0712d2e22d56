/* own_user.h - root's commands run as the owner of the state directory.
 *
 * Principle: whoever owns the state directory runs the server, and every other
 * command that root starts beside it. So no command leaves files there that the
 * server cannot use, and a directory of root keeps a server of root.
 *
 *   state directory       --user        result
 *   --------------------  ------------ ----------------------------------------
 *   exists, of root       none, root    stays root; the log says how to change
 *   exists, of root       another       refused: chown it first
 *   exists, of user U     none, U       becomes U
 *   exists, of user U     another       refused
 *   does not exist        another       made for that user, who it becomes
 *   /var/lib/... (state_dir.h), does
 *     not exist           none          made for the own user, who it becomes
 *   elsewhere, does not exist  none     stays root
 *
 * The own user is `mcp-orchestrator` of /etc/passwd, else the number
 * MO_OWN_USER_ID beside the user ids of boxes. Never `nobody`: other programs
 * share that one. A user id of boxes is refused: a box could send signals to
 * the server.
 *
 * Changing the user: what needs root is opened (ports, also below 1024), the
 * privileged helper is forked (box/privileged_helper.h), then groups, gid and
 * uid change for good (loop/rights.h). HOME becomes a directory of the user, in
 * which servers can keep caches; it is not in the state directory, which is
 * hidden from servers. Then the configuration is loaded again as that user. A
 * file that only root can read is read by the helper. If root has no
 * configuration file, the user's own in the new HOME is used, which the page
 * can write.
 *
 * Commands that edit a configuration file of root stay root (keeps_root); they
 * write their audit row as the owner (mo_own_user_begin()). npm, which
 * `mcp install` runs, becomes the owner for good (install/npm.h). */
#ifndef MO_APP_OWN_USER_H
#define MO_APP_OWN_USER_H

#include "base/passwd.h"
#include "box/privileged_helper.h"
#include "config/config.h"

#define MO_OWN_USER_NAME "mcp-orchestrator"
#define MO_OWN_USER_ID   19999

/* --- who ------------------------------------------------------------------ */

struct mo_own_user_facts {
    const char *dir;    /* the state directory */
    bool exists;        /* it exists and ... */
    uid_t owner;        /* ... belongs to */
    bool is_system_dir; /* it is MO_STATE_DIR_STATE */
    bool is_asked;      /* --user or server.user */
    uid_t asked;
    uid_t own; /* the own user */
};

/* For a command of root. *uid 0: stay root. MO_EPOLICY: the message says what
 * to do. */
int mo_own_user_decide(const struct mo_own_user_facts *f, uid_t *uid,
                       struct mo_err *e);
/* A name or number as a user. MO_ENOTFOUND: there is no such name. passwd: text
 * of that file. */
int mo_own_user_read(struct mo_span passwd, const char *text,
                     struct mo_passwd *out, struct mo_err *e);

/* --- changing the user ---------------------------------------------------- */

struct mo_own_user {
    bool changed;       /* root has become another user */
    bool stays_root;    /* root stays root, */
    bool is_asked_root; /* because it was asked for */
    uid_t uid;          /* of the state directory's owner */
    gid_t gid;
    struct mo_err rights; /* code < 0: why unused rights were not given up */
    int helper;           /* of the privileged helper; 0: none */
    pid_t helper_pid;
    /* Bound for server.listen and server.port, one for each worker; 0: none */
    int listeners[MO_CONFIG_WORKERS_MAX];
    char listen[256];
    int64_t port, workers;
    char home[PATH_MAX], cwd[PATH_MAX], state_dir[PATH_MAX];
    char files[MO_PRIVILEGED_FILES][PATH_MAX]; /* the helper's */
};

struct mo_own_user_opts {
    bool serves;     /* bind the address of the server */
    bool keeps_root; /* the command edits a file of root */
};

/* Changes the user if the table says so and loads the configuration of h
 * again. Call it before the first thread. On failure end the program. u is
 * closed by the caller and outlives h. */
int mo_own_user_enter(struct mo_own_user *u, struct mo_config_holder *h,
                      const struct mo_own_user_opts *o,
                      struct mo_config_report *rep, struct mo_err *e);
void mo_own_user_close(struct mo_own_user *u);

/* For a process that does not change the user: gives up rights that it never
 * uses (loop/rights.h). */
int mo_own_user_reduce(const struct mo_config *c, struct mo_err *e);

/* Takes the sockets bound for this address; false if there are none. */
bool mo_own_user_listeners(struct mo_own_user *u,
                           const struct mo_config_server *c,
                           int fds[MO_CONFIG_WORKERS_MAX]);
/* The path of a file of the configuration, or, if only root can read it, a path
 * in /proc that leads to its content while *fd is open. */
void mo_own_user_file(const struct mo_own_user *u, const char *path, int *fd,
                      char out[PATH_MAX]);

/* For a command that stays root: finds the owner of the state directory, and
 * makes it for that user if it does not exist. Does nothing for others. */
int mo_own_user_stay(struct mo_own_user *u, const struct mo_config *c,
                     struct mo_err *e);
/* Between these calls a command that stays root acts as the owner of the state
 * directory. It starts no program there. */
void mo_own_user_begin(const struct mo_own_user *u);
void mo_own_user_end(const struct mo_own_user *u);

#endif
