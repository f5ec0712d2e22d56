/* spawn.h - start a program and know at once whether it runs.
 *
 * The cost of fork() grows with our memory, so the child borrows it:
 * clone(CLONE_VM | CLONE_VFORK), as posix_spawn() does. posix_spawn() itself
 * cannot run the two steps needed in the child before the program: set
 * PR_SET_PDEATHSIG and register with the guardian (guard.h). The caller is
 * stopped until the program runs or has failed to run; a failure is reported at
 * once, with a message.
 *
 * The program gets three descriptors and no other, a session and a process
 * group of its own (both numbered like the child), default action for every
 * signal and none blocked, exactly the given environment, and SIGKILL when the
 * *thread* that started it ends. So call this from the loop's thread. It can be
 * kept out of directories and other processes (hide.h).
 *
 * PATH is taken from the given environment, or MO_SPAWN_PATH if it has none;
 * entries that are not absolute are skipped. A script without "#!" is refused,
 * not handed to a shell. No allocation; does not use the loop. */
#ifndef MO_LOOP_SPAWN_H
#define MO_LOOP_SPAWN_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct mo_hide;

#define MO_SPAWN_PATH     "/usr/local/bin:/usr/bin:/bin"
#define MO_SPAWN_PATH_MAX 4096

struct mo_spawn {
    const char *file;        /* searched in PATH unless it has a slash */
    const char *const *argv; /* NULL-terminated, argv[0] included */
    const char *const *env;  /* NULL: empty */
    const char *cwd;         /* NULL: inherit */
    int fds[3];              /* become 0, 1, 2; the caller keeps its copies */
    int keep;                /* close-on-exec descriptor that stays open until
                              * the program runs, so that `file` may be
                              * /proc/self/fd/N; 0: none */
    bool outlive;            /* does not die with this process */
    bool foreground;         /* stays in our session and group: foreground.h */
    uint64_t data_max;       /* bytes of private memory for each of its
                              * processes (RLIMIT_DATA); 0: inherit */
    struct mo_hide *hide;    /* what it cannot reach (hide.h); NULL: nothing.
                              * hide->refused is set */

    /* May be NULL. enlist runs in the child, in our memory, while we are
     * stopped: only system calls are allowed; returns 0 or an errno. delist
     * undoes it in the parent if a later step failed; the child is a zombie
     * then, so its pid is still valid. */
    int (*enlist)(void *ctx);
    void (*delist)(void *ctx, pid_t pid);
    void *ctx;
};

/* The caller reaps the child with waitid(P_PIDFD). A failure leaves nothing
 * behind: MO_ENOTFOUND (program, directory), MO_EINVAL (not a program),
 * MO_EUNAVAIL (enlist), MO_ETOOBIG (arguments), MO_EBUSY, MO_ENOMEM, MO_EIO;
 * *pidfd is -1 then. */
int mo_spawn(const struct mo_spawn *s, pid_t *pid, int *pidfd,
             struct mo_err *e);

struct mo_exit {
    int code;   /* exit status, or -1 */
    int signal; /* signal that killed it, or 0 */
};

/* True if the child has ended; flags as for waitid(): WNOHANG, WNOWAIT. */
bool mo_spawn_ended(int pidfd, int flags, struct mo_exit *x);

/* "exit 3", "killed by signal 9 (Killed)". */
#define MO_EXIT_TEXT_MAX 64
void mo_exit_text(struct mo_exit x, char out[MO_EXIT_TEXT_MAX]);

/* Find `file` in PATH. MO_ENOTFOUND, or MO_EINVAL if all files of that name are
 * not executable. */
int mo_spawn_find(const char *file, const char *const *env,
                  char out[MO_SPAWN_PATH_MAX], struct mo_err *e);

#endif
