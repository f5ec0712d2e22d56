/* box_mounts.h - folders of the host in boxes, from the configuration.
 *
 * Names the files of this program that no box may see (box/host_path.h), and
 * judges configured mounts for people who look at them. */
#ifndef MO_CONNECT_BOX_MOUNTS_H
#define MO_CONNECT_BOX_MOUNTS_H

#include <limits.h>

#include "box/host_path.h"
#include "codec/json/json.h"
#include "config/config.h"

#define MO_BOX_GUARD_PATHS 8 /* at most */

/* Texts are in this struct or of the configuration, which must stay. */
struct mo_box_guard {
    struct mo_host_guard g;
    const char *paths[MO_BOX_GUARD_PATHS + 1];
    char home[PATH_MAX], config[PATH_MAX], file[PATH_MAX], dotenv[PATH_MAX];
};
void mo_box_guard_init(struct mo_box_guard *x, const struct mo_config *cfg);

/* Reads a mount and judges it as if a box started now. *out is set also if it
 * is refused. */
int mo_box_mounts_judge(const struct mo_config *cfg, const char *text,
                        struct mo_mount *out, struct mo_err *e);

/* For a server with mounts: writes "mounts", of each {"host","box","mode"} and,
 * if it would be refused now, "error". And "workspace", the folder of the host,
 * if it keeps one. */
void mo_box_mounts_put(struct mo_jw *w, const struct mo_config *cfg,
                       const struct mo_config_mcp *s);
/* The same as lines for people. */
void mo_box_mounts_print(struct mo_buf *b, const struct mo_config *cfg,
                         const struct mo_config_mcp *s);

#endif
