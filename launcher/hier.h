/* hier.h - which cgroup hierarchies this machine mounts, and where we are.
 *
 * Reads /proc/self/mountinfo and /proc/self/cgroup once. A hierarchy is named
 * by one of its controllers; the unified one by MO_HIER_V2. */
#ifndef MO_LAUNCHER_HIER_H
#define MO_LAUNCHER_HIER_H

#include "base/str.h"

#define MO_HIER_V2 "" /* as /proc/self/cgroup calls it */

enum mo_hier_place { MO_HIER_TOP, MO_HIER_OWN };

struct mo_hier {
    struct mo_span mounts, groups;
    char *text; /* what mo_hier_read() read, or NULL */
};

#define MO_HIER_PATH_MAX 1024

int mo_hier_read(struct mo_hier **out, struct mo_err *e);
/* The same from texts of those two files; borrowed. */
void mo_hier_init(struct mo_hier *h, const char *mounts, const char *groups);
void mo_hier_free(struct mo_hier *h);

bool mo_hier_has(const struct mo_hier *h, const char *controller);
/* Where that is; false: no such hierarchy, or too long a name. */
bool mo_hier_path(const struct mo_hier *h, const char *controller,
                  enum mo_hier_place where, char out[MO_HIER_PATH_MAX]);
/* The top of what is mounted, or the group we are in; -1 and errno. */
int mo_hier_open(const struct mo_hier *h, const char *controller,
                 enum mo_hier_place where);
bool mo_hier_is_top(const struct mo_hier *h, int dir); /* of v2 */

#endif
