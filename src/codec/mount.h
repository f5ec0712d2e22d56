/* mount.h - a folder or file of the host that a box shows, as text.
 *
 *   HOST[:BOX][:ro|rw]
 *
 * HOST is absolute or starts with "~/". BOX is its place in the box, by default
 * the same path. `ro`, the default, is read-only. Both paths are plain: no "."
 * or "..", no empty parts, no control characters. A colon separates, so no path
 * can have one.
 *
 * Places in the box that programs, devices and the box itself need are refused
 * (mo_mount_parse()). Whether a host path may be mounted is not decided here
 * (box/host_path.h), and nothing is opened.
 *
 * Limits: MO_MOUNT_PATH_MAX bytes of a path, MO_MOUNTS_MAX mounts of a box. */
#ifndef MO_CODEC_MOUNT_H
#define MO_CODEC_MOUNT_H

#include "base/str.h"

#define MO_MOUNTS_MAX      32
#define MO_MOUNT_PATH_MAX  512
#define MO_MOUNT_TEXT_MAX  (2 * MO_MOUNT_PATH_MAX + sizeof("::rw"))
#define MO_MOUNT_WORKSPACE "/workspace"

struct mo_mount {
    char host[MO_MOUNT_PATH_MAX + 1], box[MO_MOUNT_PATH_MAX + 1];
    bool rw;
};

/* home: stands for "~"; NULL or "": there is none. MO_EINVAL. */
int mo_mount_parse(struct mo_span text, const char *home, struct mo_mount *out,
                   struct mo_err *e);
/* "HOST:BOX:ro", which mo_mount_parse() reads. */
void mo_mount_put(const struct mo_mount *m, char out[MO_MOUNT_TEXT_MAX]);

/* True if path is dir or below it. */
bool mo_path_is_in(const char *path, const char *dir);

#endif
