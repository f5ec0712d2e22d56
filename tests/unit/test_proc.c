/* test_proc.c - real child processes: their bytes, their exits, their
 * environment. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/npx_cache.h"
#include "loop/runner.h"
#include "proc_kit.h"

/* --- bytes --------------------------------------------------------------- */

static void test_cat(void **state)
{
    static const char *const argv[] = {"cat", NULL};
    struct fix f;
    struct gw_child k;

    (void)state;
    fix_init(&f);
    start_argv(&f, &k, argv, MO_PROC_ERR_NULL);
    assert_null(k.s.err);
    assert_int_equal(mo_stream_write(k.s.io, MO_SPAN("hello\n")), 0);
    assert_true(mo_loop_until(f.l, has_line, &k, LONG));
    assert_string_equal(mo_buf_cstr(&k.out), "hello\n");
    assert_int_equal(k.exits, 0);
    mo_stream_shutdown(k.s.io);
    assert_true(mo_loop_until(f.l, has_ended, &k, LONG));
    assert_int_equal(k.x.code, 0);
    assert_int_equal(k.x.signal, 0);
    finish(&f, &k);
    assert_int_equal(k.exits, 1);
    fix_fini(&f);
}

/* Echo more than all buffers together hold. */
static void test_big(void **state)
{
    size_t total = (size_t)24 << 20;
    char *data = mo_alloc(total);
    struct fix f;
    struct gw_child k;

    (void)state;
    assert_non_null(data);
    memset(data, 'x', total);
    fix_init(&f);
    start_role(&f, &k, "role-echo");
    k.count_only = true;
    k.feed = mo_span(data, total);
    feed(&k);
    assert_true(mo_loop_until(f.l, has_ended, &k, 4 * LONG));
    assert_int_equal(k.fed, total);
    assert_int_equal(k.got, total);
    assert_int_equal(k.x.code, 0);
    assert_in_range(k.high, 1, 512 * 1024);
    finish(&f, &k);
    fix_fini(&f);
    mo_free(data);
}

/* Bytes written before the half-close arrive, queued or not. */
static void test_queue_then_eof(void **state)
{
    size_t n = (size_t)300 * 1024;
    char *data = mo_alloc(n);
    struct fix f;
    struct gw_child k;

    (void)state;
    assert_non_null(data);
    memset(data, 'y', n);
    fix_init(&f);
    start_role(&f, &k, "role-echo");
    k.count_only = true;
    for (int i = 0; i < 3; i++)
        assert_int_equal(mo_stream_write(k.s.io, mo_span(data, n)), 0);
    mo_stream_shutdown(k.s.io);
    assert_true(mo_loop_until(f.l, has_ended, &k, LONG));
    assert_int_equal(k.got, 3 * n);
    finish(&f, &k);
    fix_fini(&f);
    mo_free(data);
}

/* A child that does not read costs at most the queue's limit. */
static void test_deaf(void **state)
{
    static char piece[64 * 1024];
    size_t limit = 1 << 20, taken = 0;
    struct fix f;
    struct gw_child k;
    int rc = 0;

    (void)state;
    fix_init(&f);
    start_role(&f, &k, "role-stubborn");
    mo_stream_limit(k.s.io, limit);
    assert_true(mo_loop_until(f.l, has_line, &k, LONG));
    while (rc == 0 && taken < 4 * limit) {
        rc = mo_stream_write(k.s.io, mo_span(piece, sizeof(piece)));
        taken += rc == 0 ? sizeof(piece) : 0;
        assert_true(mo_stream_queued(k.s.io) <= limit);
    }
    assert_int_equal(rc, MO_EBUSY);
    assert_in_range(taken, limit / 2, 2 * limit);
    finish(&f, &k);
    fix_fini(&f);
}

static void test_stderr(void **state)
{
    static const char *const argv[] = {"sh", "-c", "echo o; echo e >&2", NULL};
    struct fix f;
    struct gw_child k;

    (void)state;
    fix_init(&f);
    start_argv(&f, &k, argv, MO_PROC_ERR_STREAM);
    assert_non_null(k.s.err);
    assert_true(mo_loop_until(f.l, has_ended, &k, LONG));
    assert_string_equal(mo_buf_cstr(&k.out), "o\n");
    assert_string_equal(mo_buf_cstr(&k.err), "e\n");
    finish(&f, &k);
    fix_fini(&f);
}

/* --- exits and failures -------------------------------------------------- */

static const struct {
    const char *script;
    int code, signal;
    const char *text;
} ends[] = {
    {"exit 0", 0, 0, "exit 0"},
    {"exit 3", 3, 0, "exit 3"},
    {"exit 255", 255, 0, "exit 255"},
    {"kill -KILL $$", -1, SIGKILL, "killed by signal 9 (Killed)"},
    {"kill -TERM $$", -1, SIGTERM, "killed by signal 15 (Terminated)"},
    {"kill -PIPE $$", -1, SIGPIPE, "killed by signal 13 (Broken pipe)"},
};

static void test_ends(void **state)
{
    struct fix f;
    struct gw_child k;

    (void)state;
    fix_init(&f);
    for (size_t i = 0; i < MO_COUNT(ends); i++) {
        const char *argv[] = {"sh", "-c", ends[i].script, NULL};
        char text[MO_EXIT_TEXT_MAX];

        start_argv(&f, &k, argv, MO_PROC_ERR_NULL);
        assert_true(mo_loop_until(f.l, has_ended, &k, LONG));
        mo_exit_text(k.x, text);
        check_row(ends[i].script, k.x.code == ends[i].code);
        check_row(ends[i].script, k.x.signal == ends[i].signal);
        check_row(ends[i].script, strcmp(text, ends[i].text) == 0);
        finish(&f, &k);
        check_row(ends[i].script, k.exits == 1);
    }
    fix_fini(&f);
}

static const char *const no_path[] = {"A=b", NULL};
static const char *const odd_path[] = {"PATH=:.:relative:/nonexistent:/tmp",
                                       NULL};

/* %s in file and cwd is the scratch directory made by the test. */
static const struct {
    const char *name, *file;
    const char *const *env;
    const char *cwd;
    int rc;
    const char *says;
} bad[] = {
    {"not in PATH", "no-such-program-xyz", plain_env, NULL, MO_ENOTFOUND,
     "no such program 'no-such-program-xyz' in PATH"},
    {"no file", "/nonexistent/x", plain_env, NULL, MO_ENOTFOUND,
     "program '/nonexistent/x'"},
    {"empty name", "", plain_env, NULL, MO_EINVAL, "without a name"},
    {"a directory", "/usr", plain_env, NULL, MO_EINVAL, "program '/usr'"},
    {"not executable", "@/plain", plain_env, NULL, MO_EINVAL, "/plain'"},
    {"not a program", "@/garbage", plain_env, NULL, MO_EINVAL, "/garbage'"},
    {"no interpreter", "@/orphan", plain_env, NULL, MO_ENOTFOUND,
     "interpreter of program"},
    {"cwd missing", "cat", plain_env, "/nonexistent/dir", MO_ENOTFOUND,
     "working directory '/nonexistent/dir'"},
    {"cwd is a file", "cat", plain_env, "@/plain", MO_ENOTFOUND,
     "working directory"},
    {"relative PATH entries are skipped", "cat", odd_path, NULL, MO_ENOTFOUND,
     "no such program 'cat'"},
    {"relative to cwd", "./nothing", plain_env, "/tmp", MO_ENOTFOUND,
     "program './nothing' in '/tmp'"},
    {"default PATH", "no-such-program-xyz", no_path, NULL, MO_ENOTFOUND,
     "no such program"},
};

static void put_file(const char *dir, const char *name, const char *text,
                     mode_t mode)
{
    char path[256];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

static const char *in_dir(const char *dir, const char *s, char out[256])
{
    if (!s || s[0] != '@')
        return s;
    (void)snprintf(out, 256, "%s%s", dir, s + 1);
    return out;
}

static void test_bad(void **state)
{
    char dir[] = "/tmp/mo-proc-XXXXXX";
    static const char *const names[] = {"plain", "garbage", "orphan"};
    static const char *const argv[] = {"x", NULL};
    char a[256], b[256];
    struct mo_err e;
    struct fix f;
    struct gw_child k;

    (void)state;
    assert_non_null(mkdtemp(dir));
    put_file(dir, "plain", "#!/bin/sh\n", 0600);
    put_file(dir, "garbage", "\x01\x02 no program\n", 0700);
    put_file(dir, "orphan", "#!/nonexistent/interpreter\n", 0700);
    fix_init(&f);
    for (size_t i = 0; i < MO_COUNT(bad); i++) {
        struct mo_proc_opts o = {.file = in_dir(dir, bad[i].file, a),
                                 .argv = argv,
                                 .env = bad[i].env,
                                 .cwd = in_dir(dir, bad[i].cwd, b)};
        int rc = start(&f, &k, &o, &e);

        if (rc != bad[i].rc || e.code != rc || !strstr(e.msg, bad[i].says))
            fail_msg("row '%s': %d, %s", bad[i].name, rc, e.msg);
    }
    fix_fini(&f);
    for (size_t i = 0; i < MO_COUNT(names); i++) {
        (void)snprintf(a, sizeof(a), "%s/%s", dir, names[i]);
        assert_int_equal(unlink(a), 0);
    }
    assert_int_equal(rmdir(dir), 0);
}

/* A caller may close what it was given. */
static void test_no_descriptor(void **state)
{
    static const char *const argv[] = {"x", NULL};
    const struct mo_spawn s = {
        .file = "/nowhere/x", .argv = argv, .fds = {0, 1, 2}};
    int pidfd = -1;
    struct mo_err e;
    pid_t pid;

    (void)state;
    assert_int_equal(mo_spawn(&s, &pid, &pidfd, &e), MO_ENOTFOUND);
    assert_int_equal(pidfd, -1);
}

static void test_find(void **state)
{
    static const char *const two[] = {"X=1", "PATH=/nonexistent:/bin", NULL};
    char path[MO_SPAWN_PATH_MAX];
    struct mo_err e;

    (void)state;
    assert_int_equal(mo_spawn_find("sh", two, path, &e), 0);
    assert_string_equal(path, "/bin/sh");
    assert_int_equal(mo_spawn_find("sh", NULL, path, NULL), 0);
    assert_string_equal(path, "/usr/bin/sh");
    assert_int_equal(mo_spawn_find("./a b", two, path, &e), 0);
    assert_string_equal(path, "./a b");
}

/* --- environment of the child -------------------------------------------- */

static void see(struct fix *f, const char *role, const char *want)
{
    struct gw_child k;

    start_role(f, &k, role);
    assert_true(mo_loop_until(f->l, has_ended, &k, LONG));
    assert_string_equal(mo_buf_cstr(&k.out), want);
    assert_int_equal(k.x.code, 0);
    finish(f, &k);
}

static void ignore(int sig)
{
    (void)sig;
}

static void test_sees(void **state)
{
    sigset_t usr, old;
    struct fix f;
    int open_fd;

    (void)state;
    fix_init(&f);
    open_fd = dup(1); /* not close-on-exec, on purpose */
    (void)signal(SIGUSR1, ignore);
    (void)signal(SIGUSR2, SIG_IGN);
    (void)sigemptyset(&usr);
    (void)sigaddset(&usr, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &usr, &old);
    see(&f, "role-fds", "0\n1\n2\n");
    see(&f, "role-env", "PATH=/usr/bin:/bin\n");
    see(&f, "role-self", "leader=1 odd=0 pdeath=9\n");
    (void)sigprocmask(SIG_SETMASK, NULL, &usr);
    assert_int_equal(sigismember(&usr, SIGUSR1), 1); /* ours is unchanged */
    assert_int_equal(sigismember(&usr, SIGTERM), 0);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    (void)signal(SIGUSR1, SIG_DFL);
    (void)signal(SIGUSR2, SIG_DFL);
    (void)close(open_fd);
    fix_fini(&f);
}

static void test_empty_env_and_cwd(void **state)
{
    static const char *const argv[] = {"sh", "-c", "pwd; cat /proc/$$/environ",
                                       NULL};
    struct mo_proc_opts o = {.file = "sh", .argv = argv, .cwd = "/usr/lib"};
    struct mo_err e;
    struct fix f;
    struct gw_child k;

    (void)state;
    fix_init(&f);
    assert_int_equal(start(&f, &k, &o, &e), 0);
    assert_true(mo_loop_until(f.l, has_ended, &k, LONG));
    assert_string_equal(mo_buf_cstr(&k.out), "/usr/lib\n");
    finish(&f, &k);
    fix_fini(&f);
}

/* Also when our own 0, 1 and 2 are closed and the pipes get those numbers. */
static void test_low_fds(void **state)
{
    int saved[3];
    struct fix f;
    struct gw_child k;

    (void)state;
    fix_init(&f);
    (void)fflush(stdout);
    for (int i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 100);
        (void)close(i);
    }
    start_role(&f, &k, "role-fds");
    (void)mo_loop_until(f.l, has_ended, &k, LONG);
    finish(&f, &k);
    mo_buf_init(&k.out, 100);
    start_role(&f, &k, "role-fds");
    (void)mo_loop_until(f.l, has_ended, &k, LONG);
    for (int i = 0; i < 3; i++) {
        if (fcntl(i, F_GETFD) < 0)
            (void)dup2(saved[i], i);
    }
    assert_string_equal(mo_buf_cstr(&k.out), "0\n1\n2\n");
    finish(&f, &k);
    mo_guard_stop(f.g, on_gone, &f);
    assert_true(mo_loop_until(f.l, is_gone, &f, LONG));
    mo_loop_free(f.l);
    for (int i = 0; i < 3; i++) {
        (void)dup2(saved[i], i);
        (void)close(saved[i]);
    }
    assert_int_equal(count_fds(), f.fds);
}

/* --- package runners ----------------------------------------------------- */

static void test_runner_names(void **state)
{
    static const struct {
        const char *argv[4];
        bool is;
    } rows[] = {
        {{"npx", "-y", "x"}, true},
        {{"/usr/bin/uvx", "x"}, true},
        {{"pnpm", "dlx", "x"}, true},
        {{"pnpm", "run", "x"}, false},
        {{"pnpm"}, false},
        {{"uv", "tool", "run"}, true},
        {{"npxx"}, false},
        {{"node", "npx"}, false},
        {{"/opt/npx/node", "x"}, false},
        {{NULL}, false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        assert_int_equal(mo_runner_is(rows[i].argv), rows[i].is);
}

#define NPX "/home/a/.npm/_npx/0123456789abcdef"

static void test_npx_cache_named(void **state)
{
    static const struct {
        const char *said;
        bool is;
    } rows[] = {
        {"Error: Cannot find module '" NPX "/node_modules/zod/index.js'\n",
         true},
        {"npm error ENOTEMPTY: directory not empty, rename '" NPX
         "/node_modules/a' -> 'b'\n",
         true},
        {"x\nCannot find package 'zod' imported from file://" NPX "/a.js\ny",
         true},
        {"ENOENT: no such file, open '/data/x'\n at a (" NPX "/b.js:1:2)\n",
         false},
        {"Cannot find module './plugin'\n at (" NPX "/b.js)\n", false},
        {"Cannot find module '/a/_npx/0123456789ABCDEF/x'\n", false},
        {"Cannot find module '/a/_npx/0123/x'\n", false},
        {"Cannot find module 'relative/_npx/0123456789abcdef/x'\n", false},
        {"", false},
    };
    char path[PATH_MAX];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        assert_int_equal(mo_npx_cache_named(mo_span_cstr(rows[i].said), path),
                         rows[i].is);
        if (rows[i].is)
            assert_string_equal(path, NPX);
    }
}

/* True once the process has executed its command line. */
static bool has_argument(pid_t pid, const char *text)
{
    char name[64], got[1024];
    ssize_t n;
    int fd;

    (void)snprintf(name, sizeof(name), "/proc/%ld/cmdline", (long)pid);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    n = read(fd, got, sizeof(got));
    (void)close(fd);
    return n > 0 && memmem(got, (size_t)n, text, strlen(text)) != NULL;
}

/* Moved once; not another directory, and not while a process runs from it. */
static void test_npx_cache_move(void **state)
{
    char dir[] = "/tmp/mo-npx-XXXXXX";
    char path[128], modules[256], broken[160];
    int in[2];
    pid_t pid;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/0123456789abcdef", dir);
    (void)snprintf(modules, sizeof(modules), "%s/node_modules", path);
    (void)snprintf(broken, sizeof(broken), "%s.broken", path);
    assert_false(mo_npx_cache_move(path));
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(mo_npx_cache_move(path));
    assert_int_equal(mkdir(modules, 0700), 0);
    assert_int_equal(pipe(in), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(in[0], 0);
        (void)close(in[1]);
        (void)execl("/bin/sh", "sh", "-c", "read x; true", path, NULL);
        _exit(127);
    }
    (void)close(in[0]);
    while (!has_argument(pid, path))
        (void)usleep(1000);
    assert_false(mo_npx_cache_move(path));
    (void)close(in[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(mo_npx_cache_move(path));
    assert_int_equal(access(broken, F_OK), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(mkdir(modules, 0700), 0);
    assert_false(mo_npx_cache_move(path)); /* it has not helped */
    (void)rmdir(modules);
    (void)rmdir(path);
    (void)snprintf(modules, sizeof(modules), "%s/node_modules", broken);
    (void)rmdir(modules);
    (void)rmdir(broken);
    (void)rmdir(dir);
}

/* The program runs when the runner has a child that is no install script. */
static void test_runner_installing(void **state)
{
    static const struct {
        const char *script;
        bool installing;
    } rows[] = {
        {"echo; read x; exit", true},
        {"sh -c 'echo; sleep 100' & wait", false},
        {"npm_lifecycle_event=npx sh -c 'echo; sleep 100' & wait", false},
        {"npm_lifecycle_event=postinstall sh -c 'echo; sleep 100' & wait",
         true},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const char *const argv[] = {"sh", "-c", rows[i].script, NULL};
        struct fix f;
        struct gw_child k;

        fix_init(&f);
        start_argv(&f, &k, argv, MO_PROC_ERR_NULL);
        assert_true(mo_loop_until(f.l, has_line, &k, LONG));
        assert_int_equal(mo_runner_installing(mo_proc_pid(k.p)),
                         rows[i].installing);
        mo_proc_kill(k.p);
        assert_true(mo_loop_until(f.l, has_exited, &k, LONG));
        finish(&f, &k);
        fix_fini(&f);
    }
}

/* Asked at once, and given time to clean up. */
static void test_term(void **state)
{
    static const char *const argv[] = {
        "sh", "-c",
        "trap 'echo bye; exit 7' TERM; echo; while :; do sleep 1; done", NULL};
    struct fix f;
    struct gw_child k;

    (void)state;
    fix_init(&f);
    start_argv(&f, &k, argv, MO_PROC_ERR_NULL);
    assert_true(mo_loop_until(f.l, has_line, &k, LONG));
    mo_proc_term(k.p, LONG);
    assert_true(mo_loop_until(f.l, has_ended, &k, LONG));
    assert_string_equal(mo_buf_cstr(&k.out), "\nbye\n");
    assert_int_equal(k.x.code, 7);
    finish(&f, &k);
    fix_fini(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cat),
        cmocka_unit_test(test_big),
        cmocka_unit_test(test_queue_then_eof),
        cmocka_unit_test(test_deaf),
        cmocka_unit_test(test_stderr),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_no_descriptor),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_sees),
        cmocka_unit_test(test_empty_env_and_cwd),
        cmocka_unit_test(test_low_fds),
        cmocka_unit_test(test_runner_names),
        cmocka_unit_test(test_npx_cache_named),
        cmocka_unit_test(test_npx_cache_move),
        cmocka_unit_test(test_runner_installing),
        cmocka_unit_test(test_term),
    };

    play_role(argc, argv);
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
