/* root.h - the directory tools may touch, enforced by the kernel.
 *
 * A path from a peer is made relative to the root's descriptor and opened by
 * openat2(RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS). The kernel, not a check of
 * the text, ensures that it stays inside, so nothing can change between a check
 * and the use. The few rules on the text only make errors clearer.
 *
 * Reading follows symbolic links that stay inside. Writing follows none. An
 * absolute path is accepted if it starts with the root's own name as whole
 * components ("/workspace/a", not "/workspace-b/a").
 *
 * Without openat2 tb_root_open() fails: there is no fallback. Limits: paths of
 * TB_PATH_MAX bytes and TB_DEPTH_MAX components. */
#ifndef TB_ROOT_H
#define TB_ROOT_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/str.h"

#define TB_PATH_MAX  4096 /* including the NUL */
#define TB_DEPTH_MAX 128

struct tb_root {
    int fd;
    char name[TB_PATH_MAX]; /* absolute, no slash at the end ("" for /) */
};

/* A path that passed the rules, relative to the root; "." is the root. */
struct tb_path {
    char text[TB_PATH_MAX];
};

int tb_root_open(struct tb_root *r, const char *name, struct mo_err *e);
void tb_root_close(struct tb_root *r);

/* Check the rules on the text. MO_EPATH. */
int tb_path_read(const struct tb_root *r, struct mo_span from,
                 struct tb_path *out, struct mo_err *e);

/* Returns a descriptor, or -1 with *e filled. Opens a regular file with
 * O_RDONLY; st may be NULL. */
int tb_open_file(const struct tb_root *r, const struct tb_path *p,
                 struct stat *st, struct mo_err *e);
/* Open a directory to list, or with O_PATH to work in. */
int tb_open_dir(const struct tb_root *r, const struct tb_path *p, int flags,
                struct mo_err *e);
/* Open a file to read or a directory to list, whichever it is. */
int tb_open_any(const struct tb_root *r, const struct tb_path *p,
                struct stat *st, struct mo_err *e);

/* Open the directory that holds p's last component, without following any link;
 * missing directories are created if `create`. *base points at the last
 * component in p. */
int tb_open_parent(const struct tb_root *r, const struct tb_path *p,
                   bool create, const char **base, struct mo_err *e);

/* Turn the errno of a path operation into an error that says what to do. */
int tb_path_fail(struct mo_err *e, int sys, const char *path);

#endif
