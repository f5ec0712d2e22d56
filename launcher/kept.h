/* kept.h - the files of a workspace, kept on disk after their box.
 *
 * A workspace is a tmpfs: the kernel limits its bytes and inodes, whatever the
 * disk is and whoever we are. So that its files outlive the box, the keeper
 * writes them as one file (codec/kept_files.h), <dir>/<name>.files: when the
 * box ends, and every few seconds while it works, if something has changed. A
 * later box with that name gets them back before its program starts.
 *
 * A box never reaches this file, and nothing of its tree is ever on the disk
 * as a tree: removing the workspace is removing one file.
 *
 * Saving reads a tree of the box, which may change meanwhile: names are opened
 * without following links, one by one; what vanishes is left out. Loading is
 * done by a process of its own in the box's cgroups, with the box's user id
 * and in the box's file system, so a damaged file can do what the box can.
 *
 * Left out: sockets, extended attributes, and folders below MO_KEPT_DEPTH.
 *
 * Failures: if the file cannot be written, the last one stays. A file that is
 * not the one that this box loaded or wrote last belongs to a later box: it is
 * never replaced. */
#ifndef MO_LAUNCHER_KEPT_H
#define MO_LAUNCHER_KEPT_H

#include <sys/types.h>

#include "codec/boxreq.h"
#include "codec/kept_files.h"
#include "launcher/cgroup.h"
#include "launcher/owner.h"

#define MO_KEPT_SUFFIX  ".files"
#define MO_KEPT_DEPTH   200
/* A save must leave this part of the disk free: 1/50. */
#define MO_KEPT_RESERVE 50

struct mo_kept_place {
    int dir; /* borrowed; belongs to the owner */
    const struct mo_owner *owner;
    char name[MO_BOXREQ_ID_MAX + 16];
    bool exists; /* the file that we know: */
    dev_t dev;
    ino_t ino;
    uint64_t print; /* of the tree that was saved; 0: none */
};

void mo_kept_init(struct mo_kept_place *p, int dir, const char *name,
                  const struct mo_owner *owner);

/* Opens the file and reads its head. 0: there is none. 1: *fd is after the
 * head, and bytes and inodes are what the files need. */
int mo_kept_open(struct mo_kept_place *p, int *fd, uint64_t *bytes,
                 uint64_t *inodes, struct mo_err *e);
/* Loads fd into `to`, the empty workspace, and waits for it. */
int mo_kept_load(int fd, int to, const struct mo_cg *g, uid_t uid, bool root,
                 struct mo_err *e);

/* Writes the tree of `from`. 0: written; 1: nothing has changed. It may be
 * called in a child process; then the parent calls mo_kept_saved() with the
 * print. */
int mo_kept_save(struct mo_kept_place *p, int from,
                 const struct mo_kept_head *labels, struct mo_err *e);
void mo_kept_saved(struct mo_kept_place *p, uint64_t print);

#endif
