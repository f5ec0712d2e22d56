/* npm.h - runs the host's npm and reads its answers.
 *
 * npm decides by its own settings which registry it asks, through which proxy
 * and with which token; this room knows none of that. Install scripts do not
 * run unless the caller says so.
 *
 * Blocking. Between mo_npm_open() and mo_npm_close() SIGINT, SIGTERM and SIGHUP
 * do not end the process: npm is killed, the call returns MO_ECANCELED, and the
 * caller can clean up. npm dies with this process. */
#ifndef MO_INSTALL_NPM_H
#define MO_INSTALL_NPM_H

#include <signal.h>

#include "codec/json/json.h"
#include "config/config.h"
#include "loop/spawn.h"

#define MO_NPM_VIEW_MS    60000
#define MO_NPM_INSTALL_MS 600000
#define MO_NPM_TEXT_MAX   ((size_t)4 * 1024 * 1024) /* of an answer */
#define MO_NPM_TAIL_MAX   2000 /* bytes of its errors that are kept */
#define MO_NPM_NAME_MAX   214  /* as npm has it */

/* Whom npm runs as, if the caller is root and the files are for another user:
 * without a way back to root, and with the settings of that user. */
struct mo_npm_user {
    uid_t uid; /* 0: the caller's own */
    gid_t gid;
    const char *home;
};

struct mo_npm {
    const char *const *env;
    struct mo_npm_user user;
    char npm[MO_SPAWN_PATH_MAX], node[MO_SPAWN_PATH_MAX]; /* "": missing */
    int say; /* descriptor for npm's progress, or -1 */
    /* private */
    const char **own_env; /* of user, or NULL */
    int signals;
    sigset_t was;
    char tail[MO_NPM_TAIL_MAX + 1];
    size_t ntail;
};

/* Finds both programs. MO_ENOTFOUND: the error says what to install. Call
 * mo_npm_close() in any case. n->user was set before. */
int mo_npm_open(struct mo_npm *n, const struct mo_config *cfg, int say,
                struct mo_err *e);
void mo_npm_close(struct mo_npm *n);
#define mo_autonpm MO_CLEANUP(mo_npm_close)

/* True once a signal has arrived. */
bool mo_npm_is_stopped(struct mo_npm *n);

/* True for a name as npm allows it now: "name" or "@scope/name". */
bool mo_npm_is_name(struct mo_span s);
/* True for an exact version ("1.2.3-rc.1") or a tag ("latest"). */
bool mo_npm_is_version(struct mo_span s);

/* Appends what the registry of npm knows about a version: a JSON object with
 * name, version, dist.integrity, dist.tarball, repository.url, maintainers,
 * bin, mcpName, deprecated, scripts.preinstall, scripts.install and
 * scripts.postinstall, as far as they exist. version: or a tag. MO_ENOTFOUND:
 * there is none. */
int mo_npm_view(struct mo_npm *n, struct mo_span name, struct mo_span version,
                struct mo_buf *out, struct mo_err *e);

/* Installs the packages that dir/package.json names, without their install
 * scripts. */
int mo_npm_install(struct mo_npm *n, const char *dir, struct mo_err *e);
/* Runs their install scripts, with only those variables of our environment that
 * npm and compilers need. */
int mo_npm_rebuild(struct mo_npm *n, const char *dir, struct mo_err *e);

/* Downloads the package as a file into dir, and writes the file's SHA-256. */
int mo_npm_pack(struct mo_npm *n, const char *dir, struct mo_span name,
                struct mo_span version, char sha256[65], struct mo_err *e);

#endif
