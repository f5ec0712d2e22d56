/* npm.h - runs the host's npm and reads its answers.
 *
 * npm decides by its own settings which registry it asks, through which proxy
 * and with which token; this room knows none of that. Install scripts do not
 * run unless the caller says so. Blocking, see run.h. */
#ifndef MO_INSTALL_NPM_H
#define MO_INSTALL_NPM_H

#include "codec/json/json.h"
#include "install/run.h"
#include "loop/spawn.h"

#define MO_NPM_VIEW_MS    60000
#define MO_NPM_INSTALL_MS 600000
#define MO_NPM_TEXT_MAX   ((size_t)4 * 1024 * 1024) /* of an answer */
#define MO_NPM_NAME_MAX   214                       /* as npm has it */

struct mo_npm {
    struct mo_runner *run;
    char npm[MO_SPAWN_PATH_MAX], node[MO_SPAWN_PATH_MAX]; /* "": missing */
};

/* Finds Node.js only. */
int mo_npm_open_node(struct mo_npm *n, struct mo_runner *run, struct mo_err *e);
/* Finds both programs. MO_ENOTFOUND: the error says what to install. */
int mo_npm_open(struct mo_npm *n, struct mo_runner *run, struct mo_err *e);

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
