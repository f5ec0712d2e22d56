#include "loop/rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

/* Kept: file rights, uid changes, cgroups and mounts, network and process
 * rights, which the launcher of native boxes needs. */
static const unsigned char unused_caps[] = {
    CAP_SYS_MODULE,      CAP_SYS_RAWIO,     CAP_SYS_BOOT,
    CAP_SYS_TIME,        CAP_SYS_PACCT,     CAP_SYS_TTY_CONFIG,
    CAP_SYSLOG,          CAP_AUDIT_CONTROL, CAP_AUDIT_READ,
    CAP_LINUX_IMMUTABLE, CAP_LEASE,         CAP_MAC_ADMIN,
    CAP_MAC_OVERRIDE,    CAP_WAKE_ALARM,    CAP_BLOCK_SUSPEND,
    CAP_PERFMON,         CAP_BPF,           CAP_CHECKPOINT_RESTORE,
};

/* Not ptrace: a server may be a debugger. */
static const unsigned short unused_calls[] = {
#ifdef SYS_kexec_load
    SYS_kexec_load,
#endif
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_open_by_handle_at,
};

#if defined(__x86_64__)
#    define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#    define ARCH AUDIT_ARCH_AARCH64
#endif

static int drop_caps(struct mo_err *e)
{
    struct __user_cap_header_struct head = {.version =
                                                _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct set[2] = {{0}};

    if (syscall(SYS_capget, &head, set) < 0)
        return mo_fail_sys(e, "capabilities");
    for (size_t i = 0; i < MO_COUNT(unused_caps); i++) {
        unsigned cap = unused_caps[i];
        uint32_t others = ~(1u << cap % 32);

        set[cap / 32].effective &= others;
        set[cap / 32].permitted &= others;
        set[cap / 32].inheritable &= others;
        /* EINVAL: newer than the kernel */
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
            return mo_fail_sys(e, "capability %u", cap);
    }
    if (syscall(SYS_capset, &head, set) < 0)
        return mo_fail_sys(e, "capabilities");
    return 0;
}

#ifdef ARCH
#    define CALLS MO_COUNT(unused_calls)

static int filter_calls(struct mo_err *e)
{
    const size_t refuse = CALLS + 4;
    struct sock_filter v[CALLS + 5] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 0, CALLS + 1),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    struct sock_fprog prog = {.len = CALLS + 5, .filter = v};

    for (size_t i = 0; i < CALLS; i++)
        v[3 + i] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, unused_calls[i],
            (unsigned char)(refuse - (3 + i) - 1), 0);
    v[refuse - 1] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    v[refuse] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                             SECCOMP_RET_ERRNO | EPERM);
    /* without the flag older kernels slow the whole process down */
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                SECCOMP_FILTER_FLAG_SPEC_ALLOW, &prog) < 0)
        return mo_fail_sys(e, "seccomp");
    return 0;
}

#else
static int filter_calls(struct mo_err *e)
{
    return mo_fail(e, MO_EUNAVAIL, "seccomp: unknown machine");
}
#endif

int mo_rights_reduce(bool may_setuid, struct mo_err *e)
{
    bool is_root = geteuid() == 0;
    int rc = is_root ? drop_caps(e) : 0;

    if (rc < 0 || (may_setuid && !is_root))
        return rc;
    rc = is_root ? filter_calls(e) : MO_EPOLICY;
    if (rc == 0 || may_setuid)
        return rc;
    /* an ordinary user, or root in a container */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return mo_fail_sys(e, "no_new_privs");
    return filter_calls(e);
}

/* A program with setuid bits gets what is in the bounding set. */
static int empty_bounding_set(struct mo_err *e)
{
    for (unsigned cap = 0; cap < 64; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
            return mo_fail_sys(e, "capability %u", cap);
    return 0;
}

static bool has_caps(void)
{
    struct __user_cap_header_struct head = {.version =
                                                _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct set[2] = {{.effective = 1}};

    return syscall(SYS_capget, &head, set) < 0 || set[0].effective ||
           set[0].permitted || set[1].effective || set[1].permitted;
}

static int set_user(uid_t uid, gid_t gid, const gid_t *groups, size_t n,
                    struct mo_err *e)
{
    if (setgroups(n, groups) < 0 || setresgid(gid, gid, gid) < 0 ||
        setresuid(uid, uid, uid) < 0)
        return mo_fail_sys(e, "become user %u", (unsigned)uid);
    if (setuid(0) == 0 || setgid(0) == 0 || has_caps())
        return mo_fail(e, MO_EPOLICY,
                       "this kernel lets user %u become root again",
                       (unsigned)uid);
    return 0;
}

int mo_rights_become(uid_t uid, gid_t gid, const gid_t *groups, size_t ngroups,
                     bool may_setuid, struct mo_err *e)
{
    int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    int rc = may_setuid ? 0 : empty_bounding_set(e);

    if (rc == 0 && prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
        rc = mo_fail_sys(e, "capabilities");
    if (rc == 0)
        rc = set_user(uid, gid, groups, ngroups, e);
    /* the change of the user has set it to the system's default */
    if (rc == 0 && prctl(PR_SET_DUMPABLE, dumpable == 1, 0, 0, 0) < 0)
        rc = mo_fail_sys(e, "dumpable");
    if (rc == 0 && !may_setuid && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        rc = mo_fail_sys(e, "no_new_privs");
    return rc;
}
