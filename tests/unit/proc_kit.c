/* proc_kit.c - the roles, the fixture and the children of proc_kit.h. */
#include "proc_kit.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const plain_env[] = {"PATH=/usr/bin:/bin", NULL};

/* --- roles --------------------------------------------------------------- */

static int role_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *en = readdir(d);

    for (; en; en = readdir(d)) {
        if (en->d_name[0] != '.' && strtol(en->d_name, NULL, 10) != dirfd(d))
            printf("%s\n", en->d_name);
    }
    (void)closedir(d);
    return 0;
}

static int role_env(void)
{
    for (char **v = environ; *v; v++)
        printf("%s\n", *v);
    return 0;
}

/* session, group and pid equal; nothing ignored, nothing blocked. */
static int role_self(void)
{
    sigset_t mask;
    int odd = 0, sig = 0;

    (void)sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int i = 1; i < 65; i++) {
        struct sigaction sa = {.sa_flags = 0};

        odd += sigismember(&mask, i) == 1;
        if (sigaction(i, NULL, &sa) == 0)
            odd += sa.sa_handler == SIG_IGN;
    }
    (void)prctl(PR_GET_PDEATHSIG, &sig);
    printf("leader=%d odd=%d pdeath=%d\n",
           getsid(0) == getpid() && getpgrp() == getpid(), odd, sig);
    return 0;
}

static int role_echo(void)
{
    char buf[65536];
    ssize_t n = read(0, buf, sizeof(buf));

    while (n > 0) {
        for (ssize_t done = 0; done < n;) {
            ssize_t w = write(1, buf + done, (size_t)(n - done));

            if (w < 0)
                return 1;
            done += w;
        }
        n = read(0, buf, sizeof(buf));
    }
    return 0;
}

static int linger(void)
{
    while (pause() < 0)
        ;
    return 0;
}

/* Never reads; prints its pid and its child's when both are ready. */
static int role_stubborn(void)
{
    pid_t pid;

    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    pid = fork();
    if (pid > 0) {
        printf("%d %d\n", (int)getpid(), (int)pid);
        (void)fflush(stdout);
    }
    return linger();
}

/* Exits at once; its child holds stdout. */
static int role_leave(void)
{
    pid_t pid = fork();

    if (pid == 0)
        return linger();
    printf("%d %d\n", (int)getpid(), (int)pid);
    return 0;
}

static const struct {
    const char *name;
    int (*main)(void);
} roles[] = {
    {"role-fds", role_fds},           {"role-env", role_env},
    {"role-self", role_self},         {"role-echo", role_echo},
    {"role-stubborn", role_stubborn}, {"role-leave", role_leave},
};

/* --- fixture ------------------------------------------------------------- */

int count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}

void on_gone(void *ctx)
{
    ((struct fix *)ctx)->gone++;
}

bool is_gone(void *ctx)
{
    return ((struct fix *)ctx)->gone > 0;
}

void fix_init(struct fix *f)
{
    struct mo_err e;

    memset(f, 0, sizeof(*f));
    f->fds = count_fds();
    f->l = mo_loop_new(NULL, &e);
    assert_non_null(f->l);
    f->g = mo_guard_new(f->l, &e);
    assert_non_null(f->g);
}

void fix_fini(struct fix *f)
{
    siginfo_t si;

    mo_guard_stop(f->g, on_gone, f);
    assert_int_equal(f->gone, 0);
    assert_true(mo_loop_until(f->l, is_gone, f, LONG));
    assert_int_equal(f->gone, 1);
    mo_loop_free(f->l);
    assert_int_equal(count_fds(), f->fds);
    /* neither children nor zombies */
    assert_int_equal(waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT), -1);
    assert_int_equal(errno, ECHILD);
}

static void on_exit_(void *ctx, struct mo_proc *p, struct mo_exit x)
{
    struct gw_child *k = ctx;

    assert_ptr_equal(p, k->p);
    k->x = x;
    k->exits++;
}

static void keep(struct gw_child *k, struct mo_buf *b, const char *p, size_t n)
{
    k->got += n;
    if (!k->count_only)
        assert_int_equal(mo_buf_put(b, p, n), 0);
}

static void on_read(void *ctx, char *p, size_t n)
{
    keep(ctx, &((struct gw_child *)ctx)->out, p, n);
}

static void on_read_err(void *ctx, char *p, size_t n)
{
    keep(ctx, &((struct gw_child *)ctx)->err, p, n);
}

static void on_eof(void *ctx)
{
    ((struct gw_child *)ctx)->eofs++;
}

static void on_close(void *ctx, const struct mo_err *why)
{
    (void)why;
    ((struct gw_child *)ctx)->closes++;
}

void feed(struct gw_child *k)
{
    while (k->feed.n && mo_stream_queued(k->s.io) < 256 * 1024) {
        struct mo_span piece = mo_span_head(k->feed, 50000);

        assert_int_equal(mo_stream_write(k->s.io, piece), 0);
        k->feed = mo_span_skip(k->feed, piece.n);
        k->fed += piece.n;
        if (mo_stream_queued(k->s.io) > k->high)
            k->high = mo_stream_queued(k->s.io);
    }
    if (!k->feed.n && mo_stream_queued(k->s.io) == 0)
        mo_stream_shutdown(k->s.io);
}

static void on_drain(void *ctx)
{
    struct gw_child *k = ctx;

    if (k->fed)
        feed(k);
}

static const struct mo_proc_cb proc_cb = {on_exit_};

static const struct mo_stream_cb io_cb = {on_read, on_eof, on_drain, on_close};

static const struct mo_stream_cb err_cb = {on_read_err, on_eof, NULL, on_close};

int start(struct fix *f, struct gw_child *k, const struct mo_proc_opts *o,
          struct mo_err *e)
{
    int rc;

    memset(k, 0, sizeof(*k));
    mo_err_clear(e);
    mo_buf_init(&k->out, 1 << 20);
    mo_buf_init(&k->err, 1 << 20);
    rc = mo_proc_start(f->g, o, &proc_cb, k, &k->p, &k->s, e);
    assert_int_equal(k->exits, 0);
    if (rc < 0) {
        assert_null(k->s.io);
        assert_null(k->s.err);
        return rc;
    }
    mo_stream_attach(k->s.io, &io_cb, k);
    if (k->s.err)
        mo_stream_attach(k->s.err, &err_cb, k);
    return 0;
}

void start_argv(struct fix *f, struct gw_child *k, const char *const *argv,
                enum mo_proc_err err)
{
    struct mo_proc_opts o = {
        .file = argv[0], .argv = argv, .env = plain_env, .err = err};
    struct mo_err e;

    if (start(f, k, &o, &e) < 0)
        fail_msg("%s", e.msg);
}

void start_role(struct fix *f, struct gw_child *k, const char *role)
{
    const char *argv[] = {role, NULL};
    struct mo_proc_opts o = {.file = "/proc/self/exe",
                             .argv = argv,
                             .env = plain_env,
                             .err = MO_PROC_ERR_INHERIT};
    struct mo_err e;

    if (start(f, k, &o, &e) < 0)
        fail_msg("%s", e.msg);
}

bool has_exited(void *ctx)
{
    return ((struct gw_child *)ctx)->exits > 0;
}

bool has_ended(void *ctx)
{
    struct gw_child *k = ctx;

    return k->exits > 0 && k->eofs >= (k->s.err ? 2 : 1);
}

bool has_line(void *ctx)
{
    struct mo_span v = mo_buf_view(&((struct gw_child *)ctx)->out);

    return mo_span_find(v, '\n') >= 0;
}

static bool has_closed(void *ctx)
{
    struct gw_child *k = ctx;

    return k->closes == (k->s.err ? 2 : 1);
}

void finish(struct fix *f, struct gw_child *k)
{
    mo_stream_close(k->s.io, NULL);
    if (k->s.err)
        mo_stream_close(k->s.err, NULL);
    mo_proc_free(k->p);
    assert_true(mo_loop_until(f->l, has_closed, k, LONG));
    mo_buf_fini(&k->out);
    mo_buf_fini(&k->err);
}

bool pids_of(struct gw_child *k, pid_t *a, pid_t *b)
{
    char *end;

    *a = (pid_t)strtol(mo_buf_cstr(&k->out), &end, 10);
    *b = (pid_t)strtol(end, NULL, 10);
    return *a > 1 && *b > 1;
}

bool dead(pid_t pid)
{
    char path[64], line[256] = "";
    FILE *fp;
    char *p;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fp = fopen(path, "re");
    if (!fp)
        return true;
    if (!fgets(line, sizeof(line), fp))
        line[0] = '\0';
    (void)fclose(fp);
    p = strrchr(line, ')');
    return !p || p[2] == 'Z' || p[2] == 'X';
}

bool both_dead(void *ctx)
{
    pid_t *pids = ctx;

    (void)usleep(1000);
    return dead(pids[0]) && dead(pids[1]);
}

int warm_up(void **state)
{
    struct mo_loop *l = mo_loop_new(NULL, NULL);

    (void)state;
    mo_loop_free(l);
    return l ? 0 : -1;
}

void play_role(int argc, char **argv)
{
    if (mo_guard_wanted(argc, argv))
        mo_guard_main();
    for (size_t i = 0; i < MO_COUNT(roles); i++) {
        if (strcmp(argv[0], roles[i].name) == 0) {
            int rc = roles[i].main();

            (void)fflush(stdout);
            _exit(rc);
        }
    }
}
