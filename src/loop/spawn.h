/* spawn.h - start one program, at once and for certain.
 *
 * The cost of fork() grows with our memory, so the child borrows it instead:
 * clone(CLONE_VM | CLONE_VFORK), which is what posix_spawn() is made of. We
 * do not call posix_spawn() itself because it has no place for the lines
 * that must run in the child before the program does: "die with me" and "the
 * guardian knows me" (guard.h). Everything else is as there: we are stopped
 * until the program runs or has failed to, and a failure is told here and
 * now, in words.
 *
 * What the program gets: three descriptors and no other, a session and a
 * process group of its own (both numbered like the child), every signal at
 * its default and none blocked, exactly the environment given, and SIGKILL
 * when the *thread* that started it ends: so start from the loop's thread.
 *
 * PATH is the one of the given environment, or MO_SPAWN_PATH if that has
 * none; entries that are not absolute are skipped. A script without "#!" is
 * refused, not handed to a shell. No allocation; knows no loop. */
#ifndef MO_LOOP_SPAWN_H
#define MO_LOOP_SPAWN_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define MO_SPAWN_PATH     "/usr/local/bin:/usr/bin:/bin"
#define MO_SPAWN_PATH_MAX 4096

struct mo_spawn {
    const char *file;        /* searched in PATH unless it has a slash */
    const char *const *argv; /* NULL-terminated, argv[0] included */
    const char *const *env;  /* NULL: an empty one */
    const char *cwd;         /* NULL: ours */
    int fds[3];              /* become 0, 1, 2; stay the caller's */
    bool outlive;            /* does not die with us */
    bool foreground;         /* stays in our session and group: foreground.h */
    uint64_t data_max;       /* bytes of memory of its own, each process of
                              * it (RLIMIT_DATA); 0: as ours */

    /* May be NULL. enlist runs in the child, in our memory, while we are
     * stopped: system calls only; returns 0 or an errno. delist undoes it in
     * the parent when a later step failed; the child is a zombie then, so
     * its pid still means it. */
    int (*enlist)(void *ctx);
    void (*delist)(void *ctx, pid_t pid);
    void *ctx;
};

/* The child is ours to reap with waitid(P_PIDFD). Nothing is left behind on
 * failure: MO_ENOTFOUND (program, directory), MO_EINVAL (not a program),
 * MO_EUNAVAIL (enlist), MO_ETOOBIG (arguments), MO_EBUSY, MO_ENOMEM, MO_EIO. */
int mo_spawn(const struct mo_spawn *s, pid_t *pid, int *pidfd,
             struct mo_err *e);

/* Where `file` is. MO_ENOTFOUND, or MO_EINVAL when only things that cannot
 * be executed have that name. */
int mo_spawn_find(const char *file, const char *const *env,
                  char out[MO_SPAWN_PATH_MAX], struct mo_err *e);

#endif
