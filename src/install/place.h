/* place.h - where installed packages lie, and the file that pins them.
 *
 *   STATE/servers/NAME/VERSION-DIGEST/   a package with all it needs, read-only
 *   STATE/servers.lock.json              source, version, integrity of every
 *                                        package, digest of the directory
 *
 * If root installs for a server of another user (app/own_user.h), and only root
 * can change the directories above the state directory, they are
 * STATE.servers and STATE.servers.lock.json, and root's: that server reads and
 * starts them and cannot change them. npm runs as the other user all the same.
 *
 * A directory appears by a rename, complete and synced, or not at all. What an
 * interrupted installation left is removed by the next one. One process at a
 * time changes the place (a lock on the directory). */
#ifndef MO_INSTALL_PLACE_H
#define MO_INSTALL_PLACE_H

#include "codec/json/json.h"
#include "config/config.h"
#include "connect/installed_files.h"
#include "install/bundle.h"
#include "install/npm.h"
#include "install/pip.h"
#include "install/plan.h"
#include "install/tree.h"

#define MO_PLACE_DIR MO_INSTALLED_DIR
#define MO_PLACE_LOCK_MAX                                                      \
    ((size_t)16 * 1024 * 1024) /* of servers.lock.json                         \
                                */

struct mo_place {
    char dir[PATH_MAX];       /* STATE/servers, without links */
    char lock_file[PATH_MAX]; /* STATE/servers.lock.json */
    bool is_roots;
    int lock;
};

/* True if root, who is the caller, installs into a place of its own. */
bool mo_place_is_roots(const struct mo_config *cfg);

/* Creates the directory, takes the lock and removes leftovers. MO_EBUSY: an
 * installation runs. MO_EPOLICY: the place is root's, and the caller is not. */
int mo_place_open(struct mo_place *p, const struct mo_config *cfg,
                  struct mo_err *e);
void mo_place_close(struct mo_place *p);
#define mo_autoplace MO_CLEANUP(mo_place_close)

struct mo_installed {
    char path[PATH_MAX]; /* absolute */
    struct mo_tree tree;
    struct mo_buf scripts; /* names of packages with install scripts */
    struct mo_buf lock;    /* its entry of servers.lock.json */
};
void mo_installed_fini(struct mo_installed *x);

/* The program that downloads and unpacks. */
struct mo_place_tools {
    struct mo_runner *run;
    struct mo_npm *npm;
    struct mo_pip *pip;
    struct mo_bundle *bundle;
};

/* Downloads and checks the package of the plan and puts it into place. On
 * failure nothing stays. */
int mo_place_add(struct mo_place *p, const struct mo_place_tools *tools,
                 const struct mo_install_plan *plan, bool allow_scripts,
                 struct mo_installed *out, struct mo_err *e);

/* The same for an image or a remote server, which has no files here. */
void mo_place_describe(const struct mo_install_plan *plan,
                       struct mo_installed *out);

/* Sets the entry of a server in the lock file; empty: removes it. */
int mo_place_pin(struct mo_place *p, const char *name, struct mo_span json,
                 struct mo_err *e);

/* Removes the directories of a server, except `keep` (absolute, or NULL). */
int mo_place_remove(struct mo_place *p, const char *name, const char *keep,
                    struct mo_err *e);

/* --- without the lock ----------------------------------------------------- */

/* Reads servers.lock.json; *servers has an entry for each server. A missing
 * file has none. text holds the bytes. */
int mo_place_read_lock(const struct mo_config *cfg, struct mo_buf *text,
                       struct mo_json *servers, struct mo_err *e);

/* Compares the directory of an entry with its digest. MO_EPOLICY: it was
 * changed; MO_ENOTFOUND: it is missing. An entry without directory is fine. */
int mo_place_verify(const struct mo_config *cfg, struct mo_json entry,
                    struct mo_err *e);

#endif
