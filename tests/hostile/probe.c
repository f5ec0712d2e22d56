/* probe - tries from inside a box what a box must not do.
 *
 *   probe                      every attempt, one line each: NAME VERDICT
 *   probe write|read PATH...   opens and writes one byte / counts the bytes
 *   probe connect TARGET...    inet:A|P inet6:A|P udp:A|P vsock:C|P unix:@NAME
 *   probe env|fds              the environment; the open descriptors
 *   probe whoami               uid, effective uid, capabilities, no_new_privs
 *   probe exe                  tries to overwrite the running programs
 *   probe crash                dies of SIGSEGV
 *   probe bomb                 forks without end, deaf to SIGTERM
 *   probe forks N              N children at once; how many there were
 *   probe eat malloc|tmpfs|memfd|shm|cache MIB
 *   probe fill DIR             a file until it is full, then inodes
 *
 * The verdict of a system call is ALLOWED or the name of its errno; of a path
 * ALLOWED or DENIED, because drivers hide them in different ways. The answer
 * to `probe` alone is the same for every driver: probe.golden. Static, no
 * libraries, so that it runs in an empty image. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

extern char **environ;

static const char *errno_name(int e)
{
    static const struct {
        int e;
        const char *name;
    } names[] = {{EPERM, "EPERM"},   {ENOSYS, "ENOSYS"},
                 {EACCES, "EACCES"}, {ENOENT, "ENOENT"},
                 {EROFS, "EROFS"},   {EINVAL, "EINVAL"},
                 {ENOSPC, "ENOSPC"}, {EFAULT, "EFAULT"},
                 {EBADF, "EBADF"},   {ENOTDIR, "ENOTDIR"},
                 {EAGAIN, "EAGAIN"}, {ENOMEM, "ENOMEM"},
                 {EFBIG, "EFBIG"},   {ETXTBSY, "ETXTBSY"},
                 {ENODEV, "ENODEV"}, {EAFNOSUPPORT, "EAFNOSUPPORT"},
                 {ESRCH, "ESRCH"},   {EISDIR, "EISDIR"},
                 {ENXIO, "ENXIO"},   {ECONNREFUSED, "ECONNREFUSED"},
                 {EIO, "EIO"},       {ENOTTY, "ENOTTY"}};
    static char other[24];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].e == e)
            return names[i].name;
    snprintf(other, sizeof(other), "errno %d", e);
    return other;
}

static void say(const char *name, long rc)
{
    printf("%s %s\n", name, rc >= 0 ? "ALLOWED" : errno_name(errno));
    fflush(stdout);
}

static void say_path(const char *name, bool allowed)
{
    printf("%s %s\n", name, allowed ? "ALLOWED" : "DENIED");
    fflush(stdout);
}

/* --- system calls -------------------------------------------------------- */

/* Zeros for arguments: the filter answers before the kernel looks at them. */
static const struct {
    const char *name;
    long nr;
    long args[5];
} calls[] = {
    {"io_uring_setup", SYS_io_uring_setup, {1}},
    {"io_uring_enter", SYS_io_uring_enter, {-1}},
    {"io_uring_register", SYS_io_uring_register, {-1}},
    {"userfaultfd", SYS_userfaultfd, {1}},
    {"bpf", SYS_bpf, {0}},
    {"perf_event_open", SYS_perf_event_open, {0}},
    {"keyctl", SYS_keyctl, {0, -3}},
    {"add_key", SYS_add_key, {0}},
    {"request_key", SYS_request_key, {0}},
    {"unshare user", SYS_unshare, {CLONE_NEWUSER}},
    {"unshare mount", SYS_unshare, {CLONE_NEWNS}},
    {"unshare net", SYS_unshare, {CLONE_NEWNET}},
    {"setns", SYS_setns, {0}},
    {"clone user", SYS_clone, {CLONE_NEWUSER | SIGCHLD}},
    {"clone pid", SYS_clone, {CLONE_NEWPID | SIGCHLD}},
    {"clone3", SYS_clone3, {0}},
    {"mount", SYS_mount, {0}},
    {"umount2", SYS_umount2, {0}},
    {"pivot_root", SYS_pivot_root, {0}},
    {"chroot", SYS_chroot, {0}},
    {"fsopen", SYS_fsopen, {0}},
    {"fsmount", SYS_fsmount, {0}},
    {"open_tree", SYS_open_tree, {0}},
    {"move_mount", SYS_move_mount, {0}},
    {"mount_setattr", SYS_mount_setattr, {0}},
    {"ptrace", SYS_ptrace, {0}},
    {"process_vm_readv", SYS_process_vm_readv, {1}},
    {"process_vm_writev", SYS_process_vm_writev, {1}},
    {"pidfd_getfd", SYS_pidfd_getfd, {0}},
    {"kcmp", SYS_kcmp, {1, 1}},
    {"init_module", SYS_init_module, {0}},
    {"finit_module", SYS_finit_module, {0}},
    {"delete_module", SYS_delete_module, {0}},
    {"kexec_load", SYS_kexec_load, {0}},
    {"reboot", SYS_reboot, {0}},
    {"swapon", SYS_swapon, {0}},
    {"acct", SYS_acct, {0}},
    {"syslog", SYS_syslog, {3}},
    {"quotactl", SYS_quotactl, {0}},
    {"open_by_handle_at", SYS_open_by_handle_at, {0}},
    {"name_to_handle_at", SYS_name_to_handle_at, {0}},
    {"fanotify_init", SYS_fanotify_init, {0}},
    {"settimeofday", SYS_settimeofday, {0}},
    {"clock_settime", SYS_clock_settime, {0}},
    {"clock_adjtime", SYS_clock_adjtime, {0}},
    {"sethostname", SYS_sethostname, {0}},
    {"mbind", SYS_mbind, {0}},
    {"move_pages", SYS_move_pages, {0}},
    {"memfd_secret", 447, {0}},
    {"vmsplice", SYS_vmsplice, {0}},
    {"sync", SYS_sync, {0}},
    {"io_setup", SYS_io_setup, {0}},
    {"mq_open", SYS_mq_open, {0}},
    {"personality", SYS_personality, {0x400000}},
    {"sched_setscheduler fifo", SYS_sched_setscheduler, {0, 1}},
    {"sched_setparam", SYS_sched_setparam, {0}},
    {"sched_setattr", SYS_sched_setattr, {0}},
    {"a call of the future", 1000, {0}},
    {"socket unix", SYS_socket, {AF_UNIX, SOCK_STREAM}},
    {"socket inet", SYS_socket, {AF_INET, SOCK_STREAM}},
    {"socket inet6", SYS_socket, {AF_INET6, SOCK_STREAM}},
    {"socket udp", SYS_socket, {AF_INET, SOCK_DGRAM}},
    {"socket raw", SYS_socket, {AF_INET, SOCK_RAW, 1}},
    {"socket netlink", SYS_socket, {AF_NETLINK, SOCK_RAW}},
    {"socket packet", SYS_socket, {AF_PACKET, SOCK_RAW}},
    {"socket alg", SYS_socket, {38, SOCK_SEQPACKET}},
    {"socket vsock", SYS_socket, {40, SOCK_STREAM}},
    {"socket bluetooth", SYS_socket, {31, SOCK_RAW}},
    {"ioctl TIOCSTI", SYS_ioctl, {0, TIOCSTI}},
    {"setpriority -20", SYS_setpriority, {0, 0, -20}},
};

static void try_calls(void)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        const long *a = calls[i].args;
        long rc = syscall(calls[i].nr, a[0], a[1], a[2], a[3], a[4]);

        if (rc == 0 && calls[i].nr == SYS_clone)
            _exit(0); /* the child of a clone that should not be */
        say(calls[i].name, rc);
    }
    /* in a user namespace there is no root to become: EINVAL */
    say_path("setuid 0", setuid(0) == 0);
    say_path("setgid 0", setgid(0) == 0);
    say_path("setgroups", setgroups(0, NULL) == 0);
    /* a bit above the 32 that the kernel looks at must change nothing */
    say("socket vsock, high bit",
        syscall(SYS_socket, ((long)1 << 32) | 40, SOCK_STREAM, 0));
    say("ioctl TIOCSTI, high bit",
        syscall(SYS_ioctl, 0, ((long)1 << 32) | TIOCSTI, "x"));
}

/* --- paths --------------------------------------------------------------- */

static bool opens(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static size_t readable(const char *path)
{
    char buf[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf));

    if (fd >= 0)
        close(fd);
    return n < 0 ? 0 : (size_t)n;
}

static void try_paths(void)
{
    static const char *const no_write[] = {
        "/proc/sys/kernel/core_pattern",
        "/proc/sysrq-trigger",
        "/proc/sys/vm/drop_caches",
        "/sys/kernel/uevent_helper",
        "/sys/fs/cgroup/cgroup.procs",
        "/dev/mem",
        "/dev/kmsg",
        "/etc/passwd",
        "/etc/x",
        "/usr/x",
        "/x",
        "/dev/x",
    };
    static const char *const no_read[] = {
        "/proc/kcore",       "/proc/keys",
        "/proc/kallsyms",    "/proc/timer_list",
        "/proc/sched_debug", "/sys/firmware/fdt",
        "/etc/shadow",       "/proc/1/root/etc/shadow",
        "/root/.bashrc",     "/var/run/docker.sock",
    };
    static const char *const places[] = {"/workspace/x", "/tmp/x"};
    char name[128];

    for (size_t i = 0; i < sizeof(no_write) / sizeof(no_write[0]); i++) {
        snprintf(name, sizeof(name), "write %s", no_write[i]);
        say_path(name, opens(no_write[i], O_WRONLY | O_CREAT));
    }
    for (size_t i = 0; i < sizeof(no_read) / sizeof(no_read[0]); i++) {
        snprintf(name, sizeof(name), "read %s", no_read[i]);
        say_path(name, readable(no_read[i]) > 0);
    }
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(name, sizeof(name), "write %s", places[i]);
        say_path(name, opens(places[i], O_WRONLY | O_CREAT));
        unlink(places[i]);
    }
    say_path("write /dev/null", opens("/dev/null", O_WRONLY));
    say_path("read /dev/urandom", readable("/dev/urandom") > 0);
}

static void copy_self(const char *to)
{
    static char buf[65536];
    int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    ssize_t n = 1;

    while (in >= 0 && out >= 0 && n > 0) {
        n = read(in, buf, sizeof(buf));
        if (n > 0 && write(out, buf, (size_t)n) != n)
            n = -1;
    }
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
}

static bool runs(const char *path)
{
    char *argv[] = {(char *)(uintptr_t)path, (char *)(uintptr_t) "true", NULL};
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        execv(path, argv);
        _exit(9);
    }
    waitpid(pid, &status, 0);
    return status == 0;
}

static void try_files(void)
{
    struct stat st;

    copy_self("/workspace/prog");
    copy_self("/tmp/prog");
    say_path("run from /workspace", runs("/workspace/prog"));
    say_path("run from /tmp", runs("/tmp/prog"));
    say_path("chown to root", chown("/workspace/prog", 0, 0) == 0);
    say_path("device node",
             mknod("/workspace/dev", S_IFCHR | 0600, 0x101) == 0);
    say("fifo", mkfifo("/workspace/fifo", 0600));
    say("symlink out", symlink("/etc/shadow", "/workspace/link"));
    say_path("setuid bit works", chmod("/workspace/prog", 04755) == 0 &&
                                     stat("/workspace/prog", &st) == 0 &&
                                     st.st_uid == 0);
    unlink("/workspace/prog");
    unlink("/tmp/prog");
    unlink("/workspace/dev");
    unlink("/workspace/fifo");
    unlink("/workspace/link");
}

/* --- state --------------------------------------------------------------- */

static void status_line(const char *key)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, key, strlen(key)) == 0)
            fputs(line, stdout);
    if (f)
        fclose(f);
}

static void print_state(void)
{
    struct rlimit core, rtprio, nice;
    gid_t groups[64];
    int n = getgroups(64, groups), extra = 0;

    for (int i = 0; i < n; i++)
        extra += groups[i] != getegid();
    printf("root %s\n", getuid() == 0 || geteuid() == 0 ? "YES" : "no");
    printf("other groups %d\n", extra);
    getrlimit(RLIMIT_RTPRIO, &rtprio);
    getrlimit(RLIMIT_NICE, &nice);
    printf("realtime %s\n", rtprio.rlim_max || nice.rlim_max ? "YES" : "no");
    getrlimit(RLIMIT_CORE, &core);
    printf("core %s\n", core.rlim_max <= 1 ? "none" : "YES");
    status_line("CapInh:");
    status_line("CapPrm:");
    status_line("CapEff:");
    status_line("CapBnd:");
    status_line("CapAmb:");
    status_line("NoNewPrivs:");
    status_line("Seccomp:");
    kill(1, SIGKILL);
    printf("process 1 %s\n",
           kill(1, 0) == 0 || errno == EPERM ? "lives" : "is gone");
}

static int cmd_all(void)
{
    try_calls();
    try_paths();
    try_files();
    print_state();
    return 0;
}

/* --- single attempts ----------------------------------------------------- */

static int cmd_write(char **paths)
{
    for (; *paths; paths++) {
        int fd = open(*paths, O_WRONLY | O_CLOEXEC);

        printf("%s %s\n", *paths, fd >= 0 ? "ALLOWED" : errno_name(errno));
        if (fd >= 0)
            close(fd);
    }
    return 0;
}

static int cmd_read(char **paths)
{
    for (; *paths; paths++)
        printf("%s %zu\n", *paths, readable(*paths));
    return 0;
}

/* Ends p at the first c; what follows it, or "". */
static char *cut(char *p, char c)
{
    char *at = strchr(p, c);

    if (!at)
        return p + strlen(p);
    *at = '\0';
    return at + 1;
}

static long try_connect(char *target)
{
    const char *kind = target;
    char *host = cut(target, ':');
    const char *port = cut(host, '|');
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr_vm vm = {.svm_family = 40};
    unsigned p = (unsigned)strtoul(port, NULL, 10);
    bool udp = strcmp(kind, "udp") == 0;
    const struct sockaddr *a = (const struct sockaddr *)&v4;
    socklen_t n = sizeof(v4);
    int fd;

    if (strcmp(kind, "inet6") == 0) {
        inet_pton(AF_INET6, host, &v6.sin6_addr);
        v6.sin6_port = htons((uint16_t)p);
        a = (const struct sockaddr *)&v6;
        n = sizeof(v6);
    } else if (strcmp(kind, "unix") == 0) {
        strncpy(un.sun_path, host, sizeof(un.sun_path) - 1);
        n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(host));
        if (un.sun_path[0] == '@')
            un.sun_path[0] = '\0';
        else
            n++;
        a = (const struct sockaddr *)&un;
    } else if (strcmp(kind, "vsock") == 0) {
        vm.svm_cid = (unsigned)strtoul(host, NULL, 10);
        vm.svm_port = p;
        a = (const struct sockaddr *)&vm;
        n = sizeof(vm);
    } else {
        inet_pton(AF_INET, host, &v4.sin_addr);
        v4.sin_port = htons((uint16_t)p);
    }
    fd = socket(a->sa_family, udp ? SOCK_DGRAM : SOCK_STREAM, 0);
    if (fd < 0)
        return fd;
    if (udp)
        return sendto(fd, "x", 1, 0, a, n);
    return connect(fd, a, n);
}

static int cmd_connect(char **targets)
{
    for (; *targets; targets++) {
        char name[256];

        snprintf(name, sizeof(name), "%s", *targets);
        say(name, try_connect(*targets));
    }
    return 0;
}

static int cmd_env(void)
{
    for (char **e = environ; *e; e++)
        puts(*e);
    return 0;
}

static int cmd_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    char link[300], to[256];

    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        ssize_t n;

        if (e->d_name[0] == '.' || strtol(e->d_name, NULL, 10) == dirfd(d))
            continue;
        snprintf(link, sizeof(link), "/proc/self/fd/%s", e->d_name);
        n = readlink(link, to, sizeof(to) - 1);
        printf("%s %.*s\n", e->d_name, (int)(n < 0 ? 0 : n), to);
    }
    return 0;
}

static int cmd_whoami(void)
{
    printf("uid %d euid %d\n", (int)getuid(), (int)geteuid());
    status_line("CapEff:");
    status_line("NoNewPrivs:");
    return 0;
}

static int cmd_exe(void)
{
    say("/proc/self/exe", open("/proc/self/exe", O_WRONLY));
    say("/proc/1/exe", open("/proc/1/exe", O_WRONLY));
    say("/proc/self/exe, append", open("/proc/self/exe", O_WRONLY | O_APPEND));
    say("/proc/1/exe, read", open("/proc/1/exe", O_RDONLY));
    return 0;
}

static int cmd_crash(void)
{
    raise(SIGSEGV);
    return 0;
}

static __attribute__((noreturn)) void bomb(void)
{
    puts("ticking");
    fflush(stdout);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    for (;;) {
        pid_t pid = fork();

        if (pid == 0)
            setsid(); /* a daemon that bombs as well */
        if (pid < 0)
            usleep(20000); /* full: do not burn the test machine too */
    }
}

static int cmd_forks(unsigned n)
{
    unsigned made = 0;
    int gate[2];
    char c;

    if (pipe(gate) < 0)
        return 1;
    for (unsigned i = 0; i < n; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            close(gate[1]);
            _exit(read(gate[0], &c, 1) != 0);
        }
        made += pid > 0;
    }
    close(gate[1]);
    while (wait(NULL) > 0) {
    }
    printf("%u\n", made);
    return 0;
}

/* --- eating -------------------------------------------------------------- */

static void *touch(void *p, size_t n)
{
    if (p == MAP_FAILED || !p)
        return NULL;
    memset(p, 0x55, n);
    return p;
}

static bool write_mib(int fd)
{
    static char buf[MIB];

    memset(buf, 0x55, sizeof(buf));
    return fd >= 0 && write(fd, buf, sizeof(buf)) == (ssize_t)sizeof(buf);
}

static int cmd_eat(const char *what, size_t mib)
{
    size_t i;
    int fd = -1;

    if (strcmp(what, "tmpfs") == 0 || strcmp(what, "cache") == 0)
        fd = open("/workspace/eat", O_RDWR | O_CREAT, 0600);
    if (strcmp(what, "memfd") == 0)
        fd = memfd_create("eat", 0);
    for (i = 0; i < mib; i++) {
        bool ok;

        if (strcmp(what, "malloc") == 0)
            ok = touch(malloc(MIB), MIB);
        else if (strcmp(what, "shm") == 0)
            ok = touch(shmat(shmget(IPC_PRIVATE, MIB, 0600), NULL, 0), MIB);
        else
            ok = write_mib(fd);
        if (!ok)
            break;
    }
    printf("%zu %s\n", i, i < mib ? errno_name(errno) : "ALLOWED");
    return 0;
}

static int cmd_fill(const char *dir)
{
    char path[256];
    size_t mib = 0, files = 0;
    int fd;

    snprintf(path, sizeof(path), "%s/big", dir);
    signal(SIGXFSZ, SIG_IGN);
    fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0) {
        printf("%s %s\n", dir, errno_name(errno));
        return 0;
    }
    while (mib < 4096 && write_mib(fd))
        mib++;
    printf("bytes %zu %s\n", mib, errno_name(errno));
    if (ftruncate(fd, 0) == 0)
        printf("sparse %s\n", ftruncate(fd, (off_t)1 << 40) == 0
                                  ? "ALLOWED"
                                  : errno_name(errno));
    close(fd);
    unlink(path);
    for (; files < 1000000; files++) {
        snprintf(path, sizeof(path), "%s/f%zu", dir, files);
        fd = open(path, O_WRONLY | O_CREAT, 0600);
        if (fd < 0)
            break;
        close(fd);
    }
    printf("files %zu %s\n", files, errno_name(errno));
    return 0;
}

int main(int argc, char **argv)
{
    const char *cmd = argc > 1 ? argv[1] : "";
    const char *arg = argc > 2 ? argv[2] : "";

    if (argc == 1)
        return cmd_all();
    if (strcmp(cmd, "true") == 0)
        return 0;
    if (strcmp(cmd, "write") == 0)
        return cmd_write(argv + 2);
    if (strcmp(cmd, "read") == 0)
        return cmd_read(argv + 2);
    if (strcmp(cmd, "connect") == 0)
        return cmd_connect(argv + 2);
    if (strcmp(cmd, "env") == 0)
        return cmd_env();
    if (strcmp(cmd, "fds") == 0)
        return cmd_fds();
    if (strcmp(cmd, "whoami") == 0)
        return cmd_whoami();
    if (strcmp(cmd, "exe") == 0)
        return cmd_exe();
    if (strcmp(cmd, "crash") == 0)
        return cmd_crash();
    if (strcmp(cmd, "bomb") == 0)
        bomb();
    if (strcmp(cmd, "forks") == 0)
        return cmd_forks((unsigned)strtoul(arg, NULL, 10));
    if (strcmp(cmd, "eat") == 0 && argc > 3)
        return cmd_eat(arg, strtoul(argv[3], NULL, 10));
    if (strcmp(cmd, "fill") == 0)
        return cmd_fill(arg);
    return 2;
}
