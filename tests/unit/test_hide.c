/* test_hide.c - what a child process cannot reach, with and without root. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "loop/hide.h"
#include "loop/rights.h"
#include "loop/spawn.h"
#include "mo_test.h"

#define NOBODY 65534
#define OUTPUT 4096

struct place {
    char top[PATH_MAX], state[PATH_MAX], other[PATH_MAX];
    struct mo_hide hide;
};

static void write_file(const char *dir, const char *name)
{
    char path[PATH_MAX];
    struct mo_err e;

    (void)snprintf(path, sizeof(path), "%.4000s/%s", dir, name);
    assert_int_equal(mo_file_replace(path, MO_SPAN("secret\n"), &e), 0);
}

static void place_init(struct place *p)
{
    char config[PATH_MAX];
    struct mo_err e;

    *p = (struct place){.top = "/tmp/mo-hide-XXXXXX"};
    assert_non_null(mkdtemp(p->top));
    (void)snprintf(p->state, sizeof(p->state), "%.100s/a/state", p->top);
    (void)snprintf(p->other, sizeof(p->other), "%.100s/b", p->top);
    assert_int_equal(mo_file_mkdir(p->state, &e), 0);
    assert_int_equal(mo_file_mkdir(p->other, &e), 0);
    write_file(p->state, "token");
    write_file(p->other, "file");
    write_file(p->other, "config");
    (void)snprintf(config, sizeof(config), "%.200s/config", p->other);
    assert_int_equal(mo_hide_add(&p->hide, p->state, &e), 0);
    assert_int_equal(mo_hide_keep(&p->hide, config, &e), 0);
}

static void place_fini(struct place *p)
{
    const char *argv[] = {"rm", "-rf", p->top, NULL};
    const struct mo_spawn s = {.file = "rm", .argv = argv, .fds = {0, 1, 2}};
    struct mo_exit x;
    struct mo_err e;
    pid_t pid;
    int fd;

    assert_int_equal(mo_spawn(&s, &pid, &fd, &e), 0);
    assert_true(mo_spawn_ended(fd, 0, &x));
    (void)close(fd);
}

/* Runs a shell script that gets the place's directory as $1; what it printed,
 * standard error included. */
static void run_script(struct place *p, const char *script, const char *cwd,
                       char out[OUTPUT])
{
    const char *argv[] = {"sh", "-c", script, "sh", p->top, NULL};
    struct mo_spawn s = {
        .file = "sh", .argv = argv, .cwd = cwd, .hide = &p->hide};
    struct mo_exit x;
    struct mo_err e = {0};
    int pipes[2], pidfd;
    size_t got = 0;
    ssize_t n = 1;
    pid_t pid;

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    s.fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    s.fds[1] = s.fds[2] = pipes[1];
    if (mo_spawn(&s, &pid, &pidfd, &e) < 0)
        fail_msg("%s", e.msg);
    (void)close(pipes[1]);
    (void)close(s.fds[0]);
    while (n > 0 && got < OUTPUT - 1) {
        n = read(pipes[0], out + got, OUTPUT - 1 - got);
        got += n > 0 ? (size_t)n : 0;
    }
    out[got] = '\0';
    (void)close(pipes[0]);
    assert_true(mo_spawn_ended(pidfd, 0, &x));
    (void)close(pidfd);
}

static void expect(struct place *p, const char *script, const char *want)
{
    char out[OUTPUT];

    run_script(p, script, "/", out);
    if (strcmp(out, want) != 0)
        fail_msg("%s: '%s' instead of '%s'", script, out, want);
}

/* --- cost ----------------------------------------------------------------- */

static int compare_ns(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Microseconds, the median. */
static double time_spawns(struct mo_hide *h)
{
    static const char *const argv[] = {"true", NULL};
    const struct mo_spawn s = {
        .file = "true", .argv = argv, .fds = {0, 1, 2}, .hide = h};
    uint64_t took[100];

    for (size_t i = 0; i < MO_COUNT(took); i++) {
        uint64_t from = mo_now_ns();
        struct mo_exit x;
        struct mo_err e;
        pid_t pid;
        int fd;

        assert_int_equal(mo_spawn(&s, &pid, &fd, &e), 0);
        took[i] = mo_now_ns() - from;
        assert_true(mo_spawn_ended(fd, 0, &x));
        (void)close(fd);
    }
    qsort(took, MO_COUNT(took), sizeof(took[0]), compare_ns);
    return (double)took[MO_COUNT(took) / 2] / 1000;
}

/* Printed, not judged: machines differ. */
static void print_cost(struct place *p)
{
    print_message("spawn as user %d: %.0f us, with a hidden directory: %.0f\n",
                  (int)geteuid(), time_spawns(NULL), time_spawns(&p->hide));
}

/* --- the rows ------------------------------------------------------------- */

static const struct {
    const char *script, *out;
} rows[] = {
    /* the directory is empty and cannot be written */
    {"ls -A $1/a/state", ""},
    {"cat $1/a/state/token 2>/dev/null || echo no", "no\n"},
    {"cd $1/b && cat ../a/state/token 2>/dev/null || echo no", "no\n"},
    {"cat /proc/self/root$1/a/state/token 2>/dev/null || echo no", "no\n"},
    {"(: >$1/a/state/token) 2>/dev/null || echo no", "no\n"},
    {"(: >$1/a/state/rules) 2>/dev/null || echo no", "no\n"},
    {"chmod 777 $1/a/state 2>/dev/null || echo no", "no\n"},
    {"rm -rf $1/a/state 2>/dev/null || echo no", "no\n"},
    /* nor replaced */
    {"mv $1/a/state $1/a/x 2>/dev/null || echo no", "no\n"},
    {"mv $1/a $1/x 2>/dev/null || echo no", "no\n"},
    {"mv $1 $1.x 2>/dev/null || echo no", "no\n"},
    /* a kept file can be read, nothing else */
    {"cat $1/b/config", "secret\n"},
    {"(echo >>$1/b/config) 2>/dev/null || echo no", "no\n"},
    {"chmod 666 $1/b/config 2>/dev/null || echo no", "no\n"},
    {"rm -f $1/b/config 2>/dev/null || echo no", "no\n"},
    {"echo >$1/b/mine; mv -f $1/b/mine $1/b/config 2>/dev/null || echo no",
     "no\n"},
    {"mv $1/b/config $1/b/mine 2>/dev/null || echo no", "no\n"},
    {"mv $1/b $1/x 2>/dev/null || echo no", "no\n"},
    {"unshare -Urm sh -c 'umount $0/b/config; mount -o remount,rw,bind "
     "$0/b/config; echo >>$0/b/config' $1 2>/dev/null || echo no",
     "no\n"},
    /* the directory is not uncovered, also in a namespace of its own */
    {"umount $1/a/state 2>/dev/null; cat $1/a/state/token 2>/dev/null || "
     "echo no",
     "no\n"},
    {"unshare -Urm sh -c 'umount $0/a/state $0/a $0; cat $0/a/state/token' $1 "
     "2>/dev/null || echo no",
     "no\n"},
    {"cat /proc/$PPID/root$1/a/state/token 2>/dev/null || echo no", "no\n"},
    {"nsenter -t $PPID -m cat $1/a/state/token 2>/dev/null || echo no", "no\n"},
    /* other processes: the parent here, and what it has open */
    {"cat /proc/$PPID/environ 2>/dev/null || echo no", "no\n"},
    {"head -c1 /proc/$PPID/mem 2>&1 | grep -c denied", "1\n"},
    {"readlink /proc/$PPID/fd/* || echo no", "no\n"},
    {"ls /proc/$PPID/cwd/ >/dev/null 2>&1 || echo no", "no\n"},
    /* everything else is as it was */
    {"cat $1/b/file", "secret\n"},
    {"echo more >>$1/b/file && tail -1 $1/b/file", "more\n"},
    {"echo new >$1/a/new && mv $1/a/new $1/a/moved && cat $1/a/moved", "new\n"},
    {"cd $1/b && pwd >x && tail -c 3 x", "/b\n"},
    {"sleep 60 & kill $! && echo killed", "killed\n"},
    {"cat /proc/$$/environ >/dev/null && echo own", "own\n"},
};

/* A tracer may not be hindered by the kernel's settings alone. */
static void check_rows(struct place *p)
{
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        expect(p, rows[i].script, rows[i].out);
    assert_int_equal(p->hide.refused, 0);
}

static void test_rows(void **state)
{
    struct place p;

    (void)state;
    place_init(&p);
    check_rows(&p);
    print_cost(&p);
    place_fini(&p);
}

/* --- a visible directory in a hidden one ---------------------------------- */

static const struct {
    const char *script, *out;
} shown_rows[] = {
    {"ls -A $1/a/state", "servers\n"},
    {"cat $1/a/state/token 2>/dev/null || echo no", "no\n"},
    {"cat $1/a/state/servers/../token 2>/dev/null || echo no", "no\n"},
    {"cat $1/a/state/servers/x/code", "secret\n"},
    {"(echo >>$1/a/state/servers/x/code) 2>/dev/null || echo no", "no\n"},
    {"(: >$1/a/state/servers/y) 2>/dev/null || echo no", "no\n"},
    {"(: >$1/a/state/y) 2>/dev/null || echo no", "no\n"},
    {"chmod 777 $1/a/state/servers/x 2>/dev/null || echo no", "no\n"},
    {"rm -rf $1/a/state/servers/x 2>/dev/null || echo no", "no\n"},
    {"mv $1/a/state/servers $1/a/state/x 2>/dev/null || echo no", "no\n"},
    {"unshare -Urm sh -c 'umount $0/a/state/servers; mount -o remount,rw,bind "
     "$0/a/state/servers; echo >>$0/a/state/servers/x/code' $1 2>/dev/null || "
     "echo no",
     "no\n"},
    {"unshare -Urm sh -c 'umount $0/a/state/servers $0/a/state; cat "
     "$0/a/state/token' $1 2>/dev/null || echo no",
     "no\n"},
};

static void check_shown(struct place *p)
{
    char dir[PATH_MAX];
    struct mo_err e;
    struct mo_hide h = {.n = 0};

    assert_int_equal(mo_hide_add(&h, p->state, &e), 0);
    mo_hide_show(&h, "servers");
    p->hide = h;
    expect(p, "ls -A $1/a/state", ""); /* there is none yet */
    (void)snprintf(dir, sizeof(dir), "%.200s/servers/x", p->state);
    assert_int_equal(mo_file_mkdir(dir, &e), 0);
    write_file(dir, "code");
    for (size_t i = 0; i < MO_COUNT(shown_rows); i++)
        expect(p, shown_rows[i].script, shown_rows[i].out);
    assert_int_equal(p->hide.refused, 0);
    assert_false(mo_hide_has(&h, dir));
    assert_true(mo_hide_has(&h, p->state));
}

static void test_shown(void **state)
{
    struct place p;

    (void)state;
    place_init(&p);
    check_shown(&p);
    place_fini(&p);
}

/* The same as a user without rights. In a process of its own. */
static void test_rows_as_nobody(void **state)
{
    int status = 0;
    pid_t pid;

    (void)state;
    if (geteuid() != 0)
        skip();
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        struct place p;

        if (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
            _exit(2);
        place_init(&p);
        check_rows(&p);
        print_cost(&p);
        check_shown(&p);
        (void)fflush(NULL);
        place_fini(&p);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* --- two children --------------------------------------------------------- */

static void test_other_child(void **state)
{
    static const char *const argv[] = {"sleep", "60", NULL};
    static const char *const env[] = {"KEY=other", "PATH=/usr/bin:/bin", NULL};
    char script[200];
    struct mo_exit x;
    struct mo_err e;
    struct place p;
    pid_t pid;
    int fd;

    (void)state;
    place_init(&p);
    {
        const struct mo_spawn s = {.file = "sleep",
                                   .argv = argv,
                                   .env = env,
                                   .fds = {0, 1, 2},
                                   .hide = &p.hide};

        assert_int_equal(mo_spawn(&s, &pid, &fd, &e), 0);
    }
    (void)snprintf(script, sizeof(script),
                   "grep -c KEY /proc/%d/environ 2>/dev/null || echo no; "
                   "kill %d 2>/dev/null || echo no",
                   (int)pid, (int)pid);
    expect(&p, script, "no\nno\n");
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_true(mo_spawn_ended(fd, 0, &x));
    (void)close(fd);
    place_fini(&p);
}

/* --- working directory ---------------------------------------------------- */

static void test_cwd(void **state)
{
    char out[OUTPUT], was[PATH_MAX];
    struct mo_hide h = {.n = 0};
    struct mo_err e;
    struct place p;

    (void)state;
    place_init(&p);
    assert_non_null(getcwd(was, sizeof(was)));
    assert_int_equal(chdir(p.other), 0);
    run_script(&p, "pwd; cat ../a/state/token 2>/dev/null || echo no", NULL,
               out);
    assert_non_null(strstr(out, "/b\nno\n"));
    assert_int_equal(chdir(p.state), 0);
    assert_int_equal(mo_hide_add(&h, p.state, &e), MO_EINVAL);
    assert_int_equal(chdir(was), 0);
    assert_int_equal(mo_hide_add(&h, "/", &e), MO_EINVAL);
    assert_int_equal(mo_hide_add(&h, "/tmp/mo-hide-none", &e), MO_ENOTFOUND);
    assert_int_equal(h.n, 0);
    place_fini(&p);
}

static void test_has(void **state)
{
    struct mo_hide h = {
        .path = {"/x/state", "/x/f"}, .is_file = {false, true}, .n = 2};

    (void)state;
    assert_true(mo_hide_has(&h, "/x/state"));
    assert_true(mo_hide_has(&h, "/x/state/a"));
    assert_false(mo_hide_has(&h, "/x/stateful"));
    assert_false(mo_hide_has(&h, "/x"));
    assert_false(mo_hide_has(&h, "state"));
    assert_false(mo_hide_has(&h, "/x/f"));
}

/* --- a kernel that does not allow it ------------------------------------- */

/* From here on unshare() fails. */
static void forbid_unshare(int err)
{
    struct sock_filter v[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)err),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {.len = MO_COUNT(v), .filter = v};

    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
}

/* Refused: it starts and still cannot look into us. No room: it does not
 * start. */
static int start_forbidden(int err)
{
    static const char *const argv[] = {"true", NULL};
    struct mo_exit x;
    struct mo_err e;
    struct place p;
    pid_t pid;
    int fd;

    place_init(&p);
    forbid_unshare(err);
    if (err == EPERM) {
        expect(&p, "cat $1/a/state/token", "secret\n");
        assert_int_equal(p.hide.refused, EPERM);
        expect(&p, "cat /proc/$PPID/environ 2>/dev/null || echo no", "no\n");
        assert_int_equal(mo_hide_try(&p.hide), EPERM);
    } else {
        const struct mo_spawn s = {
            .file = "true", .argv = argv, .fds = {0, 1, 2}, .hide = &p.hide};
        int rc = mo_spawn(&s, &pid, &fd, &e);

        assert_int_equal(rc, MO_EIO);
        assert_non_null(strstr(e.msg, "hide directories"));
        assert_false(mo_spawn_ended(-1, WNOHANG, &x));
    }
    place_fini(&p);
    return 0;
}

static void test_refused(void **state)
{
    static const int errs[] = {EPERM, ENOSPC};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(errs); i++) {
        int status = 0;
        pid_t pid;

        (void)fflush(NULL);
        pid = fork();
        if (pid == 0)
            _exit(start_forbidden(errs[i]));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

/* --- rights --------------------------------------------------------------- */

/* Returns the exit status of a child that looks at itself. */
static int check_rights(uid_t uid)
{
    static const char *const argv[] = {
        "sh", "-c",
        "grep -q '^Seccomp:.*2$' /proc/self/status && "
        "! grep -q '^CapEff:.*[1357bdf]....$' /proc/self/status || exit 1; "
        "sleep 60 & kill $!",
        NULL};
    const struct mo_spawn s = {.file = "sh", .argv = argv, .fds = {0, 1, 2}};
    struct mo_exit x = {.code = 3};
    struct mo_err e;
    pid_t pid;
    int fd;

    if (uid && setuid(uid) < 0)
        return 4;
    if (mo_rights_reduce(false, &e) < 0 || mo_spawn(&s, &pid, &fd, &e) < 0)
        return 2;
    (void)mo_spawn_ended(fd, 0, &x);
    return x.code;
}

static void test_rights(void **state)
{
    static const uid_t who[] = {0, NOBODY};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(who); i++) {
        int status = 0;
        pid_t pid;

        if (who[i] && geteuid() != 0)
            continue;
        (void)fflush(NULL);
        pid = fork();
        if (pid == 0)
            _exit(check_rights(who[i]));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_shown),
        cmocka_unit_test(test_rows_as_nobody),
        cmocka_unit_test(test_other_child),
        cmocka_unit_test(test_cwd),
        cmocka_unit_test(test_has),
        cmocka_unit_test(test_refused),

        cmocka_unit_test(test_rights),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
