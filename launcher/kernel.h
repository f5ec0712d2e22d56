/* kernel.h - system calls without a libc wrapper.
 *
 * Only those the launcher uses. Numbers of structures and flags newer than
 * Debian 12's headers are defined here. Each returns like syscall(2): -1 and
 * errno on failure. */
#ifndef MO_LAUNCHER_KERNEL_H
#define MO_LAUNCHER_KERNEL_H

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static inline int k_open_tree(int dir, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, dir, path, flags);
}

/* Attach the mount `from` (a descriptor) to `path` below `to`. */
static inline int k_attach(int from, int to, const char *path)
{
    return (int)syscall(SYS_move_mount, from, "", to, path,
                        MOVE_MOUNT_F_EMPTY_PATH);
}

static inline int k_mount_setattr(int fd, unsigned flags,
                                  struct mount_attr *attr)
{
    return (int)syscall(SYS_mount_setattr, fd, "", flags | AT_EMPTY_PATH, attr,
                        sizeof(*attr));
}

static inline int k_fsopen(const char *type)
{
    return (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
}

static inline int k_fsconfig(int fs, unsigned cmd, const char *key,
                             const char *value)
{
    return (int)syscall(SYS_fsconfig, fs, cmd, key, value, 0);
}

static inline int k_fsmount(int fs, unsigned attrs)
{
    return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attrs);
}

static inline int k_openat2(int dir, const char *path, uint64_t flags,
                            uint64_t resolve)
{
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = resolve};

    return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static inline int k_pivot_root(const char *to, const char *old)
{
    return (int)syscall(SYS_pivot_root, to, old);
}

static inline int k_close_range(unsigned from, unsigned to)
{
    return (int)syscall(SYS_close_range, from, to, 0);
}

static inline int k_pidfd_kill(int pidfd, int sig)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

/* Like fork: the child has no stack of its own. The process must have only one
 * thread. */
static inline pid_t k_clone(uint64_t flags, int cgroup, int *pidfd)
{
    struct clone_args a = {
        .flags = flags | CLONE_PIDFD,
        .pidfd = (uint64_t)(uintptr_t)pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = cgroup < 0 ? 0 : (uint64_t)cgroup,
    };

    if (cgroup >= 0)
        a.flags |= CLONE_INTO_CGROUP;
    return (pid_t)syscall(SYS_clone3, &a, sizeof(a));
}

/* idtype of waitid(2) for a pidfd; newer than some libcs. */
#define K_P_PIDFD 3

#endif
