/* seccomp.c - the table of allowed system calls, and the kernel filter. See
 * seccomp.h.
 *
 * Left out on purpose: io_uring, userfaultfd, bpf, perf and keyctl (large
 * attack surface with a long record of bugs), unshare, setns, mount and the
 * calls of the new mount interface, ptrace, process_vm_*, pidfd_getfd and kcmp
 * (other processes), chroot, sync and syncfs (they would flush the host's
 * disks), mq_*, io_setup, vmsplice, mempolicy, and every call that needs a
 * capability that no process in a box has. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "base/mem.h"
#include "codec/seccomp.h"

#define NONE     MO_SECCOMP_NONE
#define ALL_BITS 0xffffffffu

/* name, arm64, amd64 */
/* clang-format off */
static const struct mo_seccomp_call calls[] = {
    /* files: by path and by descriptor */
    {"read", {63, 0}},
    {"write", {64, 1}},
    {"close", {57, 3}},
    {"stat", {NONE, 4}},
    {"fstat", {80, 5}},
    {"lstat", {NONE, 6}},
    {"lseek", {62, 8}},
    {"pread64", {67, 17}},
    {"pwrite64", {68, 18}},
    {"readv", {65, 19}},
    {"writev", {66, 20}},
    {"preadv", {69, 295}},
    {"pwritev", {70, 296}},
    {"preadv2", {286, 327}},
    {"pwritev2", {287, 328}},
    {"access", {NONE, 21}},
    {"faccessat", {48, 269}},
    {"faccessat2", {439, 439}},
    {"openat2", {437, 437}},
    {"newfstatat", {79, 262}},
    {"statx", {291, 332}},
    {"dup", {23, 32}},
    {"dup2", {NONE, 33}},
    {"dup3", {24, 292}},
    {"fcntl", {25, 72}},
    {"flock", {32, 73}},
    {"fsync", {82, 74}},
    {"fdatasync", {83, 75}},
    {"sync_file_range", {84, 277}},
    {"truncate", {45, 76}},
    {"ftruncate", {46, 77}},
    {"fallocate", {47, 285}},
    {"fadvise64", {223, 221}},
    {"readahead", {213, 187}},
    {"getdents", {NONE, 78}},
    {"getdents64", {61, 217}},
    {"getcwd", {17, 79}},
    {"chdir", {49, 80}},
    {"fchdir", {50, 81}},
    {"rename", {NONE, 82}},
    {"renameat", {38, 264}},
    {"renameat2", {276, 316}},
    {"mkdir", {NONE, 83}},
    {"mkdirat", {34, 258}},
    {"rmdir", {NONE, 84}},
    {"link", {NONE, 86}},
    {"linkat", {37, 265}},
    {"unlink", {NONE, 87}},
    {"unlinkat", {35, 263}},
    {"symlink", {NONE, 88}},
    {"symlinkat", {36, 266}},
    {"readlink", {NONE, 89}},
    {"readlinkat", {78, 267}},
    {"chown", {NONE, 92}},
    {"fchown", {55, 93}},
    {"lchown", {NONE, 94}},
    {"fchownat", {54, 260}},
    {"umask", {166, 95}},
    {"utime", {NONE, 132}},
    {"utimes", {NONE, 235}},
    {"futimesat", {NONE, 261}},
    {"utimensat", {88, 280}},
    {"statfs", {43, 137}},
    {"fstatfs", {44, 138}},
    {"setxattr", {5, 188}},
    {"lsetxattr", {6, 189}},
    {"fsetxattr", {7, 190}},
    {"getxattr", {8, 191}},
    {"lgetxattr", {9, 192}},
    {"fgetxattr", {10, 193}},
    {"listxattr", {11, 194}},
    {"llistxattr", {12, 195}},
    {"flistxattr", {13, 196}},
    {"removexattr", {14, 197}},
    {"lremovexattr", {15, 198}},
    {"fremovexattr", {16, 199}},
    {"sendfile", {71, 40}},
    {"splice", {76, 275}},
    {"tee", {77, 276}},
    {"copy_file_range", {285, 326}},
    {"close_range", {436, 436}},
    {"inotify_init", {NONE, 253}},
    {"inotify_init1", {26, 294}},
    {"inotify_add_watch", {27, 254}},
    {"inotify_rm_watch", {28, 255}},
    {"memfd_create", {279, 319}},
    {"pipe", {NONE, 22}},
    {"pipe2", {59, 293}},
    /* waiting */
    {"poll", {NONE, 7}},
    {"ppoll", {73, 271}},
    {"select", {NONE, 23}},
    {"pselect6", {72, 270}},
    {"epoll_create", {NONE, 213}},
    {"epoll_create1", {20, 291}},
    {"epoll_ctl", {21, 233}},
    {"epoll_wait", {NONE, 232}},
    {"epoll_pwait", {22, 281}},
    {"epoll_pwait2", {441, 441}},
    {"eventfd", {NONE, 284}},
    {"eventfd2", {19, 290}},
    {"signalfd", {NONE, 282}},
    {"signalfd4", {74, 289}},
    {"timerfd_create", {85, 283}},
    {"timerfd_settime", {86, 286}},
    {"timerfd_gettime", {87, 287}},
    {"nanosleep", {101, 35}},
    {"clock_nanosleep", {115, 230}},
    {"pause", {NONE, 34}},
    {"restart_syscall", {128, 219}},
    /* memory */
    {"mmap", {222, 9}},
    {"munmap", {215, 11}},
    {"mremap", {216, 25}},
    {"mprotect", {226, 10}},
    {"madvise", {233, 28}},
    {"brk", {214, 12}},
    {"msync", {227, 26}},
    {"mincore", {232, 27}},
    {"mlock", {228, 149}},
    {"mlock2", {284, 325}},
    {"munlock", {229, 150}},
    {"mlockall", {230, 151}},
    {"munlockall", {231, 152}},
    {"membarrier", {283, 324}},
    {"pkey_alloc", {289, 330}},
    {"pkey_free", {290, 331}},
    {"pkey_mprotect", {288, 329}},
    /* processes and threads (clone: see the rules below) */
    {"fork", {NONE, 57}},
    {"vfork", {NONE, 58}},
    {"execve", {221, 59}},
    {"execveat", {281, 322}},
    {"exit", {93, 60}},
    {"exit_group", {94, 231}},
    {"wait4", {260, 61}},
    {"waitid", {95, 247}},
    {"getpid", {172, 39}},
    {"getppid", {173, 110}},
    {"gettid", {178, 186}},
    {"getpgid", {155, 121}},
    {"getpgrp", {NONE, 111}},
    {"setpgid", {154, 109}},
    {"getsid", {156, 124}},
    {"setsid", {157, 112}},
    {"kill", {129, 62}},
    {"tkill", {130, 200}},
    {"tgkill", {131, 234}},
    {"pidfd_open", {434, 434}},
    {"pidfd_send_signal", {424, 424}},
    {"set_tid_address", {96, 218}},
    {"set_robust_list", {99, 273}},
    {"get_robust_list", {100, 274}},
    {"rseq", {293, 334}},
    {"futex", {98, 202}},
    {"futex_waitv", {449, 449}},
    {"sched_yield", {124, 24}},
    {"sched_getaffinity", {123, 204}},
    {"sched_setaffinity", {122, 203}},
    {"sched_getparam", {121, 143}},
    {"sched_getscheduler", {120, 145}},
    {"sched_getattr", {275, 315}},
    {"sched_get_priority_max", {125, 146}},
    {"sched_get_priority_min", {126, 147}},
    {"sched_rr_get_interval", {127, 148}},
    {"getpriority", {141, 140}},
    {"setpriority", {140, 141}},
    {"ioprio_get", {31, 252}},
    {"ioprio_set", {30, 251}},
    {"getcpu", {168, 309}},
    {"prctl", {167, 157}},
    {"arch_prctl", {NONE, 158}},
    {"seccomp", {277, 317}},
    {"landlock_create_ruleset", {444, 444}},
    {"landlock_add_rule", {445, 445}},
    {"landlock_restrict_self", {446, 446}},
    /* signals */
    {"rt_sigaction", {134, 13}},
    {"rt_sigprocmask", {135, 14}},
    {"rt_sigpending", {136, 127}},
    {"rt_sigtimedwait", {137, 128}},
    {"rt_sigqueueinfo", {138, 129}},
    {"rt_tgsigqueueinfo", {240, 297}},
    {"rt_sigsuspend", {133, 130}},
    {"rt_sigreturn", {139, 15}},
    {"sigaltstack", {132, 131}},
    /* identity; harmless without capabilities */
    {"getuid", {174, 102}},
    {"geteuid", {175, 107}},
    {"getgid", {176, 104}},
    {"getegid", {177, 108}},
    {"getresuid", {148, 118}},
    {"getresgid", {150, 120}},
    {"getgroups", {158, 115}},
    {"setuid", {146, 105}},
    {"setgid", {144, 106}},
    {"setreuid", {145, 113}},
    {"setregid", {143, 114}},
    {"setresuid", {147, 117}},
    {"setresgid", {149, 119}},
    {"setfsuid", {151, 122}},
    {"setfsgid", {152, 123}},
    {"setgroups", {159, 116}},
    {"capget", {90, 125}},
    {"capset", {91, 126}},
    /* limits, clocks, the machine's name */
    {"getrlimit", {163, 97}},
    {"setrlimit", {164, 160}},
    {"prlimit64", {261, 302}},
    {"getrusage", {165, 98}},
    {"times", {153, 100}},
    {"sysinfo", {179, 99}},
    {"uname", {160, 63}},
    {"time", {NONE, 201}},
    {"gettimeofday", {169, 96}},
    {"clock_gettime", {113, 228}},
    {"clock_getres", {114, 229}},
    {"alarm", {NONE, 37}},
    {"getitimer", {102, 36}},
    {"setitimer", {103, 38}},
    {"timer_create", {107, 222}},
    {"timer_settime", {110, 223}},
    {"timer_gettime", {108, 224}},
    {"timer_getoverrun", {109, 225}},
    {"timer_delete", {111, 226}},
    {"getrandom", {278, 318}},
    /* sockets (socket, socketpair: see the rules below) */
    {"bind", {200, 49}},
    {"listen", {201, 50}},
    {"accept", {202, 43}},
    {"accept4", {242, 288}},
    {"connect", {203, 42}},
    {"shutdown", {210, 48}},
    {"getsockname", {204, 51}},
    {"getpeername", {205, 52}},
    {"getsockopt", {209, 55}},
    {"setsockopt", {208, 54}},
    {"sendto", {206, 44}},
    {"recvfrom", {207, 45}},
    {"sendmsg", {211, 46}},
    {"recvmsg", {212, 47}},
    {"sendmmsg", {269, 307}},
    {"recvmmsg", {243, 299}},
    /* System V IPC, in a namespace of the box's own */
    {"shmget", {194, 29}},
    {"shmat", {196, 30}},
    {"shmdt", {197, 67}},
    {"shmctl", {195, 31}},
    {"semget", {190, 64}},
    {"semop", {193, 65}},
    {"semtimedop", {192, 220}},
    {"semctl", {191, 66}},
    {"msgget", {186, 68}},
    {"msgsnd", {189, 69}},
    {"msgrcv", {188, 70}},
    {"msgctl", {187, 71}},
};

#define OPEN        {"open", {NONE, 2}}
#define OPENAT      {"openat", {56, 257}}
#define CREAT       {"creat", {NONE, 85}}
#define CHMOD       {"chmod", {NONE, 90}}
#define FCHMOD      {"fchmod", {52, 91}}
#define FCHMODAT    {"fchmodat", {53, 268}}
#define MKNOD       {"mknod", {NONE, 133}}
#define MKNODAT     {"mknodat", {33, 259}}
#define CLONE       {"clone", {220, 56}}
#define SOCKET      {"socket", {198, 41}}
#define SOCKETPAIR  {"socketpair", {199, 53}}
#define IOCTL       {"ioctl", {29, 16}}
#define PERSONALITY {"personality", {92, 135}}
#define SCHEDULER   {"sched_setscheduler", {119, 144}}

/* CLONE_NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET */
#define NEW_NAMESPACES 0x7e020000u
#define UNIX 1u /* AF_UNIX */
#define INET4 2u /* AF_INET */
#define INET6 10u /* AF_INET6 */
#define TYPE_MASK 15u /* without SOCK_CLOEXEC and SOCK_NONBLOCK */
#define CREATES 0x400040u /* O_CREAT, O_TMPFILE without O_DIRECTORY */
#define SET_ID 06000u /* S_ISUID, S_ISGID */

/* Rows of one call are adjacent: the filter makes one block of them. */
static const struct mo_seccomp_rule rules[] = {
    /* A file in a writable mount belongs to a user of the host: with these bits
     * it would give others that user's rights. */
    {OPEN, 1, CREATES, 0},
    {OPEN, 2, SET_ID, 0},
    {OPENAT, 2, CREATES, 0},
    {OPENAT, 3, SET_ID, 0},
    {CREAT, 1, SET_ID, 0},
    {CHMOD, 1, SET_ID, 0},
    {FCHMOD, 1, SET_ID, 0},
    {FCHMODAT, 2, SET_ID, 0},
    {MKNOD, 1, SET_ID, 0},
    {MKNODAT, 2, SET_ID, 0},
    {CLONE, 0, NEW_NAMESPACES, 0},
    {SOCKET, 0, ALL_BITS, UNIX},
    {SOCKETPAIR, 0, ALL_BITS, UNIX},
    {PERSONALITY, 0, ALL_BITS, 0},
    {PERSONALITY, 0, ALL_BITS, ALL_BITS}, /* asks, changes nothing */
    {SCHEDULER, 1, ALL_BITS, 0}, /* SCHED_OTHER */
    {SCHEDULER, 1, ALL_BITS, 3}, /* SCHED_BATCH */
    {SCHEDULER, 1, ALL_BITS, 5}, /* SCHED_IDLE */
    {IOCTL, 1, ALL_BITS, 0x5401}, /* TCGETS */
    {IOCTL, 1, ALL_BITS, 0x5402}, /* TCSETS */
    {IOCTL, 1, ALL_BITS, 0x5403}, /* TCSETSW */
    {IOCTL, 1, ALL_BITS, 0x5404}, /* TCSETSF */
    {IOCTL, 1, ALL_BITS, 0x5409}, /* TCSBRK */
    {IOCTL, 1, ALL_BITS, 0x540b}, /* TCFLSH */
    {IOCTL, 1, ALL_BITS, 0x540f}, /* TIOCGPGRP */
    {IOCTL, 1, ALL_BITS, 0x5410}, /* TIOCSPGRP */
    {IOCTL, 1, ALL_BITS, 0x5411}, /* TIOCOUTQ */
    {IOCTL, 1, ALL_BITS, 0x5413}, /* TIOCGWINSZ */
    {IOCTL, 1, ALL_BITS, 0x5414}, /* TIOCSWINSZ */
    {IOCTL, 1, ALL_BITS, 0x541b}, /* FIONREAD */
    {IOCTL, 1, ALL_BITS, 0x5421}, /* FIONBIO */
    {IOCTL, 1, ALL_BITS, 0x5422}, /* TIOCNOTTY */
    {IOCTL, 1, ALL_BITS, 0x5429}, /* TIOCGSID */
    {IOCTL, 1, ALL_BITS, 0x802c542a}, /* TCGETS2 */
    {IOCTL, 1, ALL_BITS, 0x5450}, /* FIONCLEX */
    {IOCTL, 1, ALL_BITS, 0x5451}, /* FIOCLEX */
    {IOCTL, 1, ALL_BITS, 0x5452}, /* FIOASYNC */
    {IOCTL, 1, ALL_BITS, 0x40049409}, /* FICLONE */
    {IOCTL, 1, ALL_BITS, 0x4020940d}, /* FICLONERANGE */
    {IOCTL, 1, ALL_BITS, 0x80086601}, /* FS_IOC_GETFLAGS */
    {IOCTL, 1, ALL_BITS, 0xc020660b}, /* FS_IOC_FIEMAP */
};
/* clang-format on */

const struct mo_seccomp_call mo_seccomp_clone3 = {"clone3", {435, 435}};
static const struct mo_seccomp_call openat2_call = {"openat2", {437, 437}};

static const uint32_t audit_arch[MO_SECCOMP_ARCHES] = {
    [MO_SECCOMP_ARM64] = AUDIT_ARCH_AARCH64,
    [MO_SECCOMP_AMD64] = AUDIT_ARCH_X86_64,
};

#define X32_BIT 0x40000000u

const struct mo_seccomp_call *mo_seccomp_calls(size_t *n)
{
    *n = MO_COUNT(calls);
    return calls;
}

const struct mo_seccomp_rule *mo_seccomp_rules(size_t *n)
{
    *n = MO_COUNT(rules);
    return rules;
}

/* --- the filter ---------------------------------------------------------- */

#define ALLOW         SECCOMP_RET_ALLOW
#define KILL          SECCOMP_RET_KILL_PROCESS
#define DENY          (SECCOMP_RET_ERRNO | EPERM)
#define NO_SUCH       (SECCOMP_RET_ERRNO | ENOSYS)
#define OFFSET(m)     ((uint32_t)offsetof(struct seccomp_data, m))
/* both machines are little-endian: the low word of an argument comes first */
#define OFFSET_ARG(i) ((uint32_t)(OFFSET(args) + (i) * sizeof(uint64_t)))

struct program {
    struct sock_filter *out;
    size_t n;
};

static void emit_insn(struct program *p, uint16_t code, uint8_t jt, uint8_t jf,
                      uint32_t k)
{
    MO_BUG_ON(p->n >= MO_SECCOMP_BPF_MAX);
    p->out[p->n++] = (struct sock_filter){code, jt, jf, k};
}

static void emit_load(struct program *p, uint32_t offset)
{
    emit_insn(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offset);
}

static void emit_ret(struct program *p, uint32_t verdict)
{
    emit_insn(p, BPF_RET | BPF_K, 0, 0, verdict);
}

/* if (A op k) return verdict */
static void emit_ret_if(struct program *p, uint16_t op, uint32_t k,
                        uint32_t verdict)
{
    emit_insn(p, (uint16_t)(BPF_JMP | op | BPF_K), 0, 1, k);
    emit_ret(p, verdict);
}

static void emit_arch(struct program *p, enum mo_seccomp_arch arch)
{
    emit_load(p, OFFSET(arch));
    emit_insn(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, audit_arch[arch]);
    emit_ret(p, KILL);
    emit_load(p, OFFSET(nr));
    if (arch == MO_SECCOMP_AMD64)
        emit_ret_if(p, BPF_JGE, X32_BIT, KILL);
}

static bool same_call(const struct mo_seccomp_rule *a,
                      const struct mo_seccomp_rule *b, enum mo_seccomp_arch m)
{
    return a->call.nr[m] == b->call.nr[m];
}

/* if (A is none of these) return DENY */
static void emit_one_of(struct program *p, const uint32_t *v, uint8_t n)
{
    for (uint8_t i = 0; i < n; i++)
        emit_insn(p, BPF_JMP | BPF_JEQ | BPF_K, (uint8_t)(n - i), 0, v[i]);
    emit_ret(p, DENY);
}

/* SOCK_STREAM or SOCK_DGRAM of TCP, UDP or the default protocol. The kernel
 * loads modules for others. */
const uint32_t mo_seccomp_inet_families[2] = {INET4, INET6},
               mo_seccomp_inet_types[2] = {1, 2},
               mo_seccomp_inet_protocols[3] = {0, 6, 17};

static void emit_inet(struct program *p)
{
    emit_load(p, OFFSET_ARG(0));
    emit_one_of(p, mo_seccomp_inet_families, 2);
    emit_load(p, OFFSET_ARG(1));
    emit_insn(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, MO_SECCOMP_TYPE_MASK);
    emit_one_of(p, mo_seccomp_inet_types, 2);
    emit_load(p, OFFSET_ARG(2));
    emit_one_of(p, mo_seccomp_inet_protocols, 3);
    emit_ret(p, ALLOW);
}

/* Emit all rows of the call of rules[i]; returns the index after them. */
static size_t emit_block(struct program *p, enum mo_seccomp_arch arch,
                         bool network, size_t i)
{
    static const struct mo_seccomp_call sockets = SOCKET;
    size_t jump = p->n, first = i;

    emit_insn(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0,
              (uint32_t)rules[i].call.nr[arch]);
    for (; i < MO_COUNT(rules) && same_call(&rules[first], &rules[i], arch);
         i++) {
        emit_load(p, OFFSET_ARG(rules[i].arg));
        if (rules[i].mask != ALL_BITS)
            emit_insn(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, rules[i].mask);
        emit_ret_if(p, BPF_JEQ, rules[i].value, ALLOW);
    }
    if (network && rules[first].call.nr[arch] == sockets.nr[arch])
        emit_inet(p);
    else
        emit_ret(p, DENY);
    MO_BUG_ON(p->n - jump - 1 > UINT8_MAX);
    p->out[jump].jf = (uint8_t)(p->n - jump - 1);
    return i;
}

/* Numbers increase from run to run, so one comparison skips a whole run. */
static void emit_run(struct program *p, uint32_t from, uint32_t to)
{
    emit_insn(p, BPF_JMP | BPF_JGT | BPF_K, 3, 0, to);
    emit_insn(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, from);
    emit_ret(p, ALLOW);
    emit_ret(p, DENY);
}

static void emit_runs(struct program *p, enum mo_seccomp_arch arch)
{
    bool yes[MO_SECCOMP_NR_MAX + 2] = {false};
    uint32_t from = 0;

    for (size_t i = 0; i < MO_COUNT(calls); i++)
        if (calls[i].nr[arch] != NONE)
            yes[calls[i].nr[arch]] = true;
    for (uint32_t nr = 0; nr <= MO_SECCOMP_NR_MAX; nr++) {
        if (yes[nr] && (nr == 0 || !yes[nr - 1]))
            from = nr;
        if (yes[nr] && !yes[nr + 1])
            emit_run(p, from, nr);
    }
}

size_t mo_seccomp_bpf(enum mo_seccomp_arch arch, unsigned flags,
                      struct sock_filter out[MO_SECCOMP_BPF_MAX])
{
    struct program p = {out, 0};
    size_t i = 0;

    emit_arch(&p, arch);
    emit_ret_if(&p, BPF_JEQ, (uint32_t)mo_seccomp_clone3.nr[arch], NO_SUCH);
    emit_ret_if(&p, BPF_JGT, MO_SECCOMP_NR_MAX, NO_SUCH);
    if (!(flags & MO_SECCOMP_OPENAT2))
        emit_ret_if(&p, BPF_JEQ, (uint32_t)openat2_call.nr[arch], NO_SUCH);
    while (i < MO_COUNT(rules))
        i = rules[i].call.nr[arch] == NONE
                ? i + 1
                : emit_block(&p, arch, flags & MO_SECCOMP_NETWORK, i);
    /* a block that did not match has left the number in place */
    emit_runs(&p, arch);
    emit_ret(&p, DENY);
    return p.n;
}
