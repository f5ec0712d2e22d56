/* hier.h - the cgroup hierarchies of this machine, and our place in them.
 *
 * Reads /proc/self/mountinfo and /proc/self/cgroup once. A hierarchy is named
 * by one of its controllers; the unified one by MO_HIER_V2. */
#ifndef MO_LAUNCHER_HIER_H
#define MO_LAUNCHER_HIER_H

#include "base/str.h"

#define MO_HIER_V2 "" /* its name in /proc/self/cgroup */

enum mo_hier_place { MO_HIER_TOP, MO_HIER_OWN };

struct mo_hier {
    struct mo_span mounts, groups;
    char *text; /* content of both files, or NULL */
};

#define MO_HIER_PATH_MAX 1024

int mo_hier_read(struct mo_hier **out, struct mo_err *e);
/* The same from the text of those two files; borrowed. */
void mo_hier_init(struct mo_hier *h, const char *mounts, const char *groups);
void mo_hier_free(struct mo_hier *h);

bool mo_hier_has(const struct mo_hier *h, const char *controller);
/* The path of that place; false: no such hierarchy, or the path is too long. */
bool mo_hier_path(const struct mo_hier *h, const char *controller,
                  enum mo_hier_place where, char out[MO_HIER_PATH_MAX]);
/* Open the top of the mount, or our own group; -1 and errno. */
int mo_hier_open(const struct mo_hier *h, const char *controller,
                 enum mo_hier_place where);
bool mo_hier_is_top(const struct mo_hier *h, int dir); /* of v2 */

#endif
