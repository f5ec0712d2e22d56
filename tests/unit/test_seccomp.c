#include "mo_test.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "codec/json/json.h"
#include "codec/seccomp.h"

/* --- the kernel's part: an interpreter of what the filter uses ----------- */

static uint32_t load(const struct seccomp_data *d, uint32_t offset)
{
    uint32_t v;

    assert_true(offset + sizeof(v) <= sizeof(*d) && offset % 4 == 0);
    memcpy(&v, (const char *)d + offset, sizeof(v));
    return v;
}

static bool taken(uint16_t op, uint32_t a, uint32_t k)
{
    switch (op) {
    case BPF_JEQ:
        return a == k;
    case BPF_JGT:
        return a > k;
    case BPF_JGE:
        return a >= k;
    default:
        fail_msg("jump %#x", op);
        return false;
    }
}

static uint32_t run(const struct sock_filter *f, size_t n,
                    const struct seccomp_data *d)
{
    uint32_t a = 0;

    for (size_t i = 0; i < n; i++) {
        if (f[i].code == (BPF_LD | BPF_W | BPF_ABS))
            a = load(d, f[i].k);
        else if (f[i].code == (BPF_ALU | BPF_AND | BPF_K))
            a &= f[i].k;
        else if (f[i].code == (BPF_RET | BPF_K))
            return f[i].k;
        else if (BPF_CLASS(f[i].code) == BPF_JMP)
            i += taken(BPF_OP(f[i].code), a, f[i].k) ? f[i].jt : f[i].jf;
        else
            fail_msg("instruction %#x", f[i].code);
    }
    fail_msg("ran off the end");
    return 0;
}

static const uint32_t arches[] = {AUDIT_ARCH_AARCH64, AUDIT_ARCH_X86_64};

struct filter {
    struct sock_filter v[MO_SECCOMP_BPF_MAX];
    size_t n;
    uint32_t arch;
};

static void filter_init(struct filter *f, enum mo_seccomp_arch m)
{
    f->n = mo_seccomp_bpf(m, MO_SECCOMP_OPENAT2, f->v);
    f->arch = arches[m];
    assert_in_range(f->n, 1, MO_SECCOMP_BPF_MAX);
}

static uint32_t verdict(const struct filter *f, int nr, unsigned arg,
                        uint64_t value)
{
    struct seccomp_data d = {.nr = nr, .arch = f->arch};

    d.args[arg] = value;
    return run(f->v, f->n, &d);
}

#define ALLOW   SECCOMP_RET_ALLOW
#define DENY    (SECCOMP_RET_ERRNO | EPERM)
#define NO_SUCH (SECCOMP_RET_ERRNO | ENOSYS)
#define KILL    SECCOMP_RET_KILL_PROCESS

/* --- rows ---------------------------------------------------------------- */

#define HIGH ((uint64_t)1 << 32)

/* name, arm64, amd64, argument, its value, verdict */
static const struct row {
    const char *name;
    short nr[MO_SECCOMP_ARCHES];
    unsigned arg;
    uint64_t value;
    uint32_t want;
} rows[] = {
    {"io_uring_setup", {425, 425}, 0, 0, DENY},
    {"io_uring_enter", {426, 426}, 0, 0, DENY},
    {"io_uring_register", {427, 427}, 0, 0, DENY},
    {"userfaultfd", {282, 323}, 0, 0, DENY},
    {"bpf", {280, 321}, 0, 0, DENY},
    {"perf_event_open", {241, 298}, 0, 0, DENY},
    {"keyctl", {219, 250}, 0, 0, DENY},
    {"add_key", {217, 248}, 0, 0, DENY},
    {"request_key", {218, 249}, 0, 0, DENY},
    {"unshare", {97, 272}, 0, 0, DENY},
    {"setns", {268, 308}, 0, 0, DENY},
    {"chmod", {-1, 90}, 1, 0755, ALLOW},
    {"chmod setuid", {-1, 90}, 1, 04755, DENY},
    {"fchmod setgid", {52, 91}, 1, 02755, DENY},
    {"fchmod sticky", {52, 91}, 1, 01777, ALLOW},
    {"fchmod, a high bit", {52, 91}, 1, HIGH | 04000, DENY},
    {"fchmodat setuid", {53, 268}, 2, 04755, DENY},
    {"fchmodat", {53, 268}, 2, 0644, ALLOW},
    {"creat setuid", {-1, 85}, 1, 04755, DENY},
    {"mknod setuid", {-1, 133}, 1, 0104755, DENY},
    {"mknodat setuid", {33, 259}, 2, 0104755, DENY},
    {"mknodat fifo", {33, 259}, 2, 0010644, ALLOW},
    {"mount", {40, 165}, 0, 0, DENY},
    {"umount2", {39, 166}, 0, 0, DENY},
    {"pivot_root", {41, 155}, 0, 0, DENY},
    {"chroot", {51, 161}, 0, 0, DENY},
    {"move_mount", {429, 429}, 0, 0, DENY},
    {"open_tree", {428, 428}, 0, 0, DENY},
    {"fsopen", {430, 430}, 0, 0, DENY},
    {"fsmount", {432, 432}, 0, 0, DENY},
    {"mount_setattr", {442, 442}, 0, 0, DENY},
    {"ptrace", {117, 101}, 0, 0, DENY},
    {"process_vm_readv", {270, 310}, 0, 0, DENY},
    {"process_vm_writev", {271, 311}, 0, 0, DENY},
    {"process_madvise", {440, 440}, 0, 0, DENY},
    {"pidfd_getfd", {438, 438}, 0, 0, DENY},
    {"kcmp", {272, 312}, 0, 0, DENY},
    {"init_module", {105, 175}, 0, 0, DENY},
    {"finit_module", {273, 313}, 0, 0, DENY},
    {"kexec_load", {104, 246}, 0, 0, DENY},
    {"reboot", {142, 169}, 0, 0, DENY},
    {"swapon", {224, 167}, 0, 0, DENY},
    {"acct", {89, 163}, 0, 0, DENY},
    {"syslog", {116, 103}, 0, 0, DENY},
    {"open_by_handle_at", {265, 304}, 0, 0, DENY},
    {"name_to_handle_at", {264, 303}, 0, 0, DENY},
    {"fanotify_init", {262, 300}, 0, 0, DENY},
    {"settimeofday", {170, 164}, 0, 0, DENY},
    {"clock_settime", {112, 227}, 0, 0, DENY},
    {"sethostname", {161, 170}, 0, 0, DENY},
    {"mbind", {235, 237}, 0, 0, DENY},
    {"memfd_secret", {447, 447}, 0, 0, DENY},
    {"vmsplice", {75, 278}, 0, 0, DENY},
    {"sync", {81, 162}, 0, 0, DENY},
    {"syncfs", {267, 306}, 0, 0, DENY},
    {"io_setup", {0, 206}, 0, 0, DENY},
    {"mq_open", {180, 240}, 0, 0, DENY},
    {"iopl", {-1, 172}, 0, 0, DENY},
    {"modify_ldt", {-1, 154}, 0, 0, DENY},
    {"clone3", {435, 435}, 0, 0, NO_SUCH},
    {"newer than the table", {450, 450}, 0, 0, NO_SUCH},
    {"far newer", {5000, 5000}, 0, 0, NO_SUCH},
    {"read", {63, 0}, 0, 0, ALLOW},
    {"openat", {56, 257}, 2, 0, ALLOW},
    {"openat2", {437, 437}, 0, 0, ALLOW},
    {"open", {-1, 2}, 1, 0, ALLOW},
    {"fork", {-1, 57}, 0, 0, ALLOW},
    {"execve", {221, 59}, 0, 0, ALLOW},
    {"futex", {98, 202}, 0, 0, ALLOW},
    {"exit_group", {94, 231}, 0, 0, ALLOW},
    {"futex_waitv", {449, 449}, 0, 0, ALLOW},
    {"fork by clone", {220, 56}, 0, 17, ALLOW},
    {"thread by clone", {220, 56}, 0, 0x3d0f00, ALLOW},
    {"clone NEWNS", {220, 56}, 0, 0x20000, DENY},
    {"clone NEWCGROUP", {220, 56}, 0, 0x2000000, DENY},
    {"clone NEWUTS", {220, 56}, 0, 0x4000000, DENY},
    {"clone NEWIPC", {220, 56}, 0, 0x8000000, DENY},
    {"clone NEWUSER", {220, 56}, 0, 0x10000000 | 17, DENY},
    {"clone NEWPID", {220, 56}, 0, 0x20000000, DENY},
    {"clone NEWNET", {220, 56}, 0, 0x40000000, DENY},
    {"clone NEWUSER, a high bit", {220, 56}, 0, HIGH | 0x10000000, DENY},
    {"AF_UNIX", {198, 41}, 0, 1, ALLOW},
    {"AF_UNSPEC", {198, 41}, 0, 0, DENY},
    {"AF_INET", {198, 41}, 0, 2, DENY},
    {"AF_INET6", {198, 41}, 0, 10, DENY},
    {"AF_NETLINK", {198, 41}, 0, 16, DENY},
    {"AF_PACKET", {198, 41}, 0, 17, DENY},
    {"AF_ALG", {198, 41}, 0, 38, DENY},
    {"AF_VSOCK", {198, 41}, 0, 40, DENY},
    {"AF_VSOCK, a high bit", {198, 41}, 0, HIGH | 40, DENY},
    {"AF_UNIX pair", {199, 53}, 0, 1, ALLOW},
    {"AF_TIPC pair", {199, 53}, 0, 30, DENY},
    {"TCGETS", {29, 16}, 1, 0x5401, ALLOW},
    {"FIONREAD", {29, 16}, 1, 0x541b, ALLOW},
    {"TIOCSTI", {29, 16}, 1, 0x5412, DENY},
    {"TIOCSTI, a high bit", {29, 16}, 1, HIGH | 0x5412, DENY},
    {"TIOCLINUX", {29, 16}, 1, 0x541c, DENY},
    {"TIOCSETD", {29, 16}, 1, 0x5423, DENY},
    {"SCHED_OTHER", {119, 144}, 1, 0, ALLOW},
    {"SCHED_BATCH", {119, 144}, 1, 3, ALLOW},
    {"SCHED_FIFO", {119, 144}, 1, 1, DENY},
    {"SCHED_RR", {119, 144}, 1, 2, DENY},
    {"SCHED_DEADLINE", {119, 144}, 1, 6, DENY},
    {"SCHED_BATCH, a high bit", {119, 144}, 1, HIGH | 3, ALLOW},
    {"sched_setparam", {118, 142}, 0, 0, DENY},
    {"sched_setattr", {274, 314}, 0, 0, DENY},
    {"personality 0", {92, 135}, 0, 0, ALLOW},
    {"personality, asked", {92, 135}, 0, 0xffffffff, ALLOW},
    {"personality READ_IMPLIES_EXEC", {92, 135}, 0, 0x400000, DENY},
};

static void test_rows(void **state)
{
    (void)state;
    for (int m = 0; m < MO_SECCOMP_ARCHES; m++) {
        struct filter f;

        filter_init(&f, (enum mo_seccomp_arch)m);
        for (size_t i = 0; i < MO_COUNT(rows); i++) {
            const struct row *r = &rows[i];

            if (r->nr[m] >= 0)
                check_row(r->name,
                          verdict(&f, r->nr[m], r->arg, r->value) == r->want);
        }
    }
}

/* What a box with a network may open. */
static const struct {
    const char *name;
    uint64_t family, type, protocol;
    uint32_t want;
} sockets[] = {
    {"AF_UNIX", 1, 5, 0, ALLOW},
    {"TCP", 2, 1, 0, ALLOW},
    {"TCP over IPv6", 10, 1, 6, ALLOW},
    {"UDP", 2, 2, 17, ALLOW},
    {"UDP, flags", 10, 2 | 0x80800, 0, ALLOW},
    {"TCP, a high bit", HIGH | 2, HIGH | 1, HIGH, ALLOW},
    {"raw", 2, 3, 0, DENY},
    {"raw, flags", 2, 3 | 0x80800, 1, DENY},
    {"SOCK_PACKET", 2, 10, 0, DENY},
    {"SCTP", 2, 1, 132, DENY},
    {"SCTP messages", 10, 5, 132, DENY},
    {"MPTCP", 2, 1, 262, DENY},
    {"DCCP", 2, 6, 33, DENY},
    {"UDP-Lite", 2, 2, 136, DENY},
    {"ping", 2, 2, 1, DENY},
    {"AF_UNSPEC", 0, 1, 0, DENY},
    {"AF_NETLINK", 16, 2, 0, DENY},
    {"AF_PACKET", 17, 2, 0, DENY},
    {"AF_VSOCK", 40, 1, 0, DENY},
};

/* A box with a network: TCP and UDP, nothing else of IP, and every other row
 * as before. */
static void test_network(void **state)
{
    static const short nr[] = {198, 41};

    (void)state;
    for (int m = 0; m < MO_SECCOMP_ARCHES; m++) {
        struct filter f = {.arch = arches[m]};

        f.n = mo_seccomp_bpf((enum mo_seccomp_arch)m,
                             MO_SECCOMP_NETWORK | MO_SECCOMP_OPENAT2, f.v);
        for (size_t i = 0; i < MO_COUNT(sockets); i++) {
            struct seccomp_data d = {.nr = nr[m],
                                     .arch = f.arch,
                                     .args = {sockets[i].family,
                                              sockets[i].type,
                                              sockets[i].protocol}};

            check_row(sockets[i].name, run(f.v, f.n, &d) == sockets[i].want);
        }
        for (size_t i = 0; i < MO_COUNT(rows); i++)
            if (rows[i].nr[m] >= 0 && rows[i].nr[m] != nr[m])
                check_row(rows[i].name, verdict(&f, rows[i].nr[m], rows[i].arg,
                                                rows[i].value) == rows[i].want);
    }
}

/* A mode counts only if a file is created; without, it may be any value. */
static void test_modes(void **state)
{
    static const struct {
        const char *name;
        uint64_t flags, mode;
        uint32_t want;
    } opens[] = {
        {"no creation", 0, 04755, ALLOW},
        {"O_CREAT", 0101, 0644, ALLOW},
        {"O_CREAT setuid", 0101, 04755, DENY},
        {"O_CREAT setgid", 0101, 02755, DENY},
        {"O_TMPFILE setuid", 020200002, 04755, DENY},
        {"O_TMPFILE", 020200002, 0600, ALLOW},
    };
    static const short openat_nr[] = {56, 257}, openat2_nr = 437;

    (void)state;
    for (int m = 0; m < MO_SECCOMP_ARCHES; m++) {
        struct filter f;

        filter_init(&f, (enum mo_seccomp_arch)m);
        for (size_t i = 0; i < MO_COUNT(opens); i++) {
            struct seccomp_data d = {
                .nr = openat_nr[m],
                .arch = f.arch,
                .args = {0, 0, opens[i].flags, opens[i].mode}};

            check_row(opens[i].name, run(f.v, f.n, &d) == opens[i].want);
        }
        assert_int_equal(verdict(&f, openat2_nr, 0, 0), ALLOW);
        f.n = mo_seccomp_bpf((enum mo_seccomp_arch)m, 0, f.v);
        assert_int_equal(verdict(&f, openat2_nr, 0, 0), NO_SUCH);
    }
}

/* Another architecture's numbers mean other calls: no answer but death. */
static void test_foreign(void **state)
{
    static const uint32_t foreign[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM,
                                       AUDIT_ARCH_RISCV64, 0};

    (void)state;
    for (int m = 0; m < MO_SECCOMP_ARCHES; m++) {
        struct filter f;

        filter_init(&f, (enum mo_seccomp_arch)m);
        for (size_t i = 0; i < MO_COUNT(foreign); i++) {
            f.arch = foreign[i];
            assert_int_equal(verdict(&f, 0, 0, 0), KILL);
        }
        f.arch = arches[!m];
        assert_int_equal(verdict(&f, 0, 0, 0), KILL);
    }
}

static void test_x32(void **state)
{
    struct filter f;

    (void)state;
    filter_init(&f, MO_SECCOMP_AMD64);
    assert_int_equal(verdict(&f, 0x40000000, 0, 0), KILL);
    assert_int_equal(verdict(&f, 0x40000000 | 59, 0, 0), KILL);
    assert_int_equal(verdict(&f, -1, 0, 0), KILL);
    filter_init(&f, MO_SECCOMP_ARM64);
    assert_int_equal(verdict(&f, -1, 0, 0), NO_SUCH);
}

static bool listed(enum mo_seccomp_arch m, int nr)
{
    size_t n;
    const struct mo_seccomp_call *v = mo_seccomp_calls(&n);

    for (size_t i = 0; i < n; i++)
        if (v[i].nr[m] == nr)
            return true;
    return false;
}

static bool ruled(enum mo_seccomp_arch m, int nr)
{
    size_t n;
    const struct mo_seccomp_rule *v = mo_seccomp_rules(&n);

    for (size_t i = 0; i < n; i++)
        if (v[i].call.nr[m] == nr)
            return true;
    return false;
}

/* Every number there is: allowed if and only if it is in the table. */
static void test_all_numbers(void **state)
{
    (void)state;
    for (int m = 0; m < MO_SECCOMP_ARCHES; m++) {
        enum mo_seccomp_arch arch = (enum mo_seccomp_arch)m;
        struct filter f;

        filter_init(&f, arch);
        for (int nr = 0; nr < 1024; nr++) {
            uint32_t got = verdict(&f, nr, 5, 0);

            assert_false(listed(arch, nr) && ruled(arch, nr));
            if (!ruled(arch, nr))
                assert_int_equal(got == ALLOW, listed(arch, nr));
        }
    }
}

/* The numbers of this machine, as its own headers have them. */
static void test_numbers(void **state)
{
#define HERE(name)                                                             \
    {                                                                          \
#        name, __NR_##name                                                     \
    }
    static const struct {
        const char *name;
        int nr;
    } here[] = {HERE(read),        HERE(write),
                HERE(openat2),     HERE(execve),
                HERE(execveat),    HERE(mmap),
                HERE(brk),         HERE(futex),
                HERE(wait4),       HERE(exit_group),
                HERE(kill),        HERE(getdents64),
                HERE(statx),       HERE(prlimit64),
                HERE(renameat2),   HERE(sendmsg),
                HERE(pidfd_open),  HERE(close_range),
                HERE(seccomp),     HERE(memfd_create),
                HERE(rseq),        HERE(landlock_restrict_self),
                HERE(epoll_pwait2)};
    size_t n;
    const struct mo_seccomp_call *v = mo_seccomp_calls(&n);

    (void)state;
    for (size_t i = 0; i < MO_COUNT(here); i++) {
        bool found = false;

        for (size_t k = 0; k < n; k++)
            if (strcmp(v[k].name, here[i].name) == 0)
                found = v[k].nr[MO_SECCOMP_HERE] == here[i].nr;
        check_row(here[i].name, found);
    }
}

/* --- the profile --------------------------------------------------------- */

/* Does the profile allow the call with this argument? As an engine reads it. */
static bool profile_allows(struct mo_json root, const char *name, unsigned arg,
                           uint64_t value)
{
    struct mo_json_iter it;
    struct mo_json entry, key;
    bool yes = false;

    mo_json_iter(&it, mo_json_get(root, "syscalls"));
    while (mo_json_next(&it, &key, &entry)) {
        struct mo_json names = mo_json_get(entry, "names");
        struct mo_json test = mo_json_at(mo_json_get(entry, "args"), 0);
        uint64_t index, mask, want;
        bool here = false;

        for (size_t i = 0; i < mo_json_len(names); i++)
            here |= mo_json_str_eq(mo_json_at(names, i), mo_span_cstr(name));
        if (!here || !mo_json_str_eq(mo_json_get(entry, "action"),
                                     MO_SPAN("SCMP_ACT_ALLOW")))
            continue;
        if (mo_json_is(test, MO_JSON_NONE))
            return true;
        assert_int_equal(mo_json_u64(mo_json_get(test, "index"), &index), 0);
        assert_int_equal(mo_json_u64(mo_json_get(test, "value"), &mask), 0);
        assert_int_equal(mo_json_u64(mo_json_get(test, "valueTwo"), &want), 0);
        yes |= index == arg && (value & mask) == want;
    }
    return yes;
}

/* What the rows above call "AF_VSOCK" is the call "socket". */
static const char *call_name(const struct row *r)
{
    size_t n;
    const struct mo_seccomp_rule *v = mo_seccomp_rules(&n);

    for (size_t i = 0; i < n; i++)
        if (memcmp(v[i].call.nr, r->nr, sizeof(r->nr)) == 0)
            return v[i].call.name;
    return r->name;
}

static void test_profile_agrees(void **state)
{
    struct mo_json_doc doc;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MO_SECCOMP_JSON_MAX);
    assert_int_equal(mo_seccomp_json(false, &b), 0);
    assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL), 0);
    assert_true(mo_json_str_eq(mo_json_get(doc.root, "defaultAction"),
                               MO_SPAN("SCMP_ACT_ERRNO")));
    assert_int_equal(mo_json_len(mo_json_get(doc.root, "archMap")), 2);
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].name,
                  profile_allows(doc.root, call_name(&rows[i]), rows[i].arg,
                                 rows[i].value) == (rows[i].want == ALLOW));
    mo_buf_fini(&b);
}

/* All arguments of one entry fit. */
static bool profile_opens(struct mo_json root, const uint64_t *args)
{
    struct mo_json_iter it;
    struct mo_json entry, key;

    mo_json_iter(&it, mo_json_get(root, "syscalls"));
    while (mo_json_next(&it, &key, &entry)) {
        struct mo_json tests = mo_json_get(entry, "args");
        bool fits = true;

        if (!mo_json_str_eq(mo_json_at(mo_json_get(entry, "names"), 0),
                            MO_SPAN("socket")))
            continue;
        for (size_t i = 0; i < mo_json_len(tests); i++) {
            struct mo_json test = mo_json_at(tests, i);
            uint64_t index = 9, mask = 0, want = 1;

            (void)mo_json_u64(mo_json_get(test, "index"), &index);
            (void)mo_json_u64(mo_json_get(test, "value"), &mask);
            (void)mo_json_u64(mo_json_get(test, "valueTwo"), &want);
            fits = fits && index < 3 && (args[index] & mask) == want;
        }
        if (fits)
            return true;
    }
    return false;
}

static void test_profile_network(void **state)
{
    struct mo_json_doc doc;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MO_SECCOMP_JSON_MAX);
    assert_int_equal(mo_seccomp_json(true, &b), 0);
    assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL), 0);
    for (size_t i = 0; i < MO_COUNT(sockets); i++) {
        const uint64_t args[] = {sockets[i].family, sockets[i].type,
                                 sockets[i].protocol};

        check_row(sockets[i].name,
                  profile_opens(doc.root, args) == (sockets[i].want == ALLOW));
    }
    mo_buf_fini(&b);
}

static void write_profile(void *ctx)
{
    struct mo_buf b;
    int rc;

    (void)ctx;
    mo_buf_init(&b, MO_SECCOMP_JSON_MAX);
    rc = mo_seccomp_json(true, &b);
    assert_true(rc == 0 || rc == MO_ENOMEM);
    mo_buf_fini(&b);
}

static void test_torture(void **state)
{
    (void)state;
    torture(write_profile, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_x32),
        cmocka_unit_test(test_all_numbers),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_profile_agrees),
        cmocka_unit_test(test_profile_network),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
