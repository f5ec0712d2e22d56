/* saver.h - when a workspace that is kept (kept.h) is loaded and saved.
 *
 * The keeper calls it: open before the box has its file system, load after
 * that, begin whenever mo_saver_left() is 0, end when `result` is readable, and
 * last when the box's programs are gone.
 *
 * A save while the box works is done by a child process, so that no client
 * waits for the disk. It is done only if the box used its processor since the
 * last one, at most every MO_SAVER_MS, and takes at most a twentieth of the
 * time. */
#ifndef MO_LAUNCHER_SAVER_H
#define MO_LAUNCHER_SAVER_H

#include "launcher/kept.h"

#define MO_SAVER_MS   5000
#define MO_SAVER_PART 20

struct mo_saver {
    struct mo_kept_place place;
    int workspace;       /* or -1: it is not kept */
    int from;            /* the file to load; or -1 */
    pid_t pid;           /* of the child; 0: none */
    int result;          /* of the child; or -1 */
    uint64_t began, due; /* mo_now_ns() */
    uint64_t cpu_us;     /* of the box at the last save */
};

void mo_saver_init(struct mo_saver *s);
/* Raises the sizes of r->workspace to those of its files, which may be of a
 * time with a higher limit. */
int mo_saver_open(struct mo_saver *s, struct mo_boxreq *r, int dir,
                  const struct mo_owner *owner, struct mo_err *e);
int mo_saver_load(struct mo_saver *s, const struct mo_cg *g, uid_t uid,
                  bool root, struct mo_err *e);

/* ms until the next save may begin; UINT64_MAX: one is under way. */
uint64_t mo_saver_left(const struct mo_saver *s);
void mo_saver_begin(struct mo_saver *s, const struct mo_cg *g,
                    const struct mo_kept_head *labels);
void mo_saver_end(struct mo_saver *s);
int mo_saver_last(struct mo_saver *s, const struct mo_kept_head *labels,
                  struct mo_err *e);

#endif
