/* test_kill.c - SIGKILL of us, seen from outside.
 *
 *   test_kill <kill_driver> <stubborn>
 *
 * kill_driver stands for the orchestrator and starts children which ignore
 * everything that can be ignored, with children of their own. It is killed
 * at some moment, and 2 s later (the requirement, measured from the kill)
 * nothing of it may be alive: driver, children, grandchildren, guardian,
 * children that were just being born.
 *
 * They are found by a mark that each has in its command line; a child that
 * has not yet run its program still has that of the driver. */
#include "mo_test.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define GONE     (2 * MO_S)  /* the requirement */
#define PATIENCE (10 * MO_S) /* then we stop looking */

struct paths {
    char *driver, *stubborn;
};

struct run {
    pid_t driver, guardian;
    int out; /* its stdout */
    char mark[64];
};

/* --- looking at /proc ---------------------------------------------------- */

struct seen {
    pid_t pid, parent;
    char state;
    char args[512]; /* NULs turned into blanks */
};

static size_t read_proc(pid_t pid, const char *what, char *out, size_t max)
{
    char path[64];
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? 0 : read(fd, out, max - 1);
    if (fd >= 0)
        (void)close(fd);
    if (n < 0)
        n = 0;
    out[n] = '\0';
    return (size_t)n;
}

/* False if it is gone or a zombie. */
static bool look(pid_t pid, struct seen *s)
{
    char stat[512], *p;
    size_t n;
    int parent = 0;

    *s = (struct seen){.pid = pid};
    if (!read_proc(pid, "stat", stat, sizeof(stat)))
        return false;
    p = strrchr(stat, ')');
    if (!p || sscanf(p + 1, " %c %d", &s->state, &parent) != 2)
        return false;
    s->parent = parent;
    n = read_proc(pid, "cmdline", s->args, sizeof(s->args));
    for (size_t i = 0; i + 1 < n; i++) {
        if (!s->args[i])
            s->args[i] = ' ';
    }
    return s->state != 'Z' && s->state != 'X';
}

/* How many are alive that pass; the last of them in *last (may be NULL). */
static int count(bool (*pass)(const struct seen *, const struct run *),
                 const struct run *r, pid_t *last)
{
    DIR *d = opendir("/proc");
    struct dirent *en;
    struct seen s;
    int n = 0;

    assert_non_null(d);
    for (en = readdir(d); en; en = readdir(d)) {
        if (!isdigit((unsigned char)en->d_name[0]))
            continue;
        if (!look((pid_t)strtol(en->d_name, NULL, 10), &s) || !pass(&s, r))
            continue;
        n++;
        if (last)
            *last = s.pid;
    }
    (void)closedir(d);
    return n;
}

static bool is_marked(const struct seen *s, const struct run *r)
{
    return strstr(s->args, r->mark) && s->pid != getpid();
}

static bool is_guardian(const struct seen *s, const struct run *r)
{
    return s->parent == r->driver && strncmp(s->args, "mo-guardian", 11) == 0;
}

static bool alive(pid_t pid)
{
    struct seen s;

    return pid > 0 && look(pid, &s);
}

/* --- running the driver -------------------------------------------------- */

static void run_driver(struct run *r, const struct paths *p, const char *how,
                       int children, int depth, int round)
{
    char n[16];
    int fds[2];

    /* stubborn reads the number in front of the mark */
    (void)snprintf(r->mark, sizeof(r->mark), "%d:mo-kill-%d-%d", depth,
                   (int)getpid(), round);
    (void)snprintf(n, sizeof(n), "%d", children);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    r->driver = fork();
    assert_true(r->driver >= 0);
    if (r->driver == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test ends it too */
        (void)dup2(fds[1], 1);
        (void)execl(p->driver, p->driver, how, n, p->stubborn, r->mark,
                    (char *)NULL);
        _exit(127);
    }
    (void)close(fds[1]);
    r->out = fds[0];
}

/* Until the driver and every process below it has said its line. */
static void wait_ready(const struct run *r, int want)
{
    int lines = 0;
    char buf[256];

    while (lines < want) {
        ssize_t n = read(r->out, buf, sizeof(buf));

        if (n <= 0)
            fail_msg("driver ended after %d of %d lines", lines, want);
        for (ssize_t i = 0; i < n; i++)
            lines += buf[i] == '\n';
    }
}

/* A new program's command line is not there from its first moment. */
static bool find_guardian(struct run *r)
{
    uint64_t t0 = mo_now_ns();

    while (mo_now_ns() - t0 < PATIENCE) {
        if (count(is_guardian, r, &r->guardian) == 1)
            return true;
        (void)usleep(2000);
    }
    return false;
}

/* Nanoseconds until nothing is alive, or PATIENCE. */
static uint64_t time_to_gone(const struct run *r)
{
    uint64_t t0 = mo_now_ns();

    while (mo_now_ns() - t0 < PATIENCE) {
        if (count(is_marked, r, NULL) == 0 && !alive(r->guardian))
            return mo_now_ns() - t0;
        (void)usleep(2000);
    }
    return PATIENCE;
}

/* So that a failed run says what stayed, and leaves nothing either. */
static bool kill_rest(const struct seen *s, const struct run *r)
{
    if (!is_marked(s, r) && s->pid != r->guardian)
        return false;
    print_message("still alive: %d, state %c: %s\n", (int)s->pid, s->state,
                  s->args);
    return kill(s->pid, SIGKILL) == 0;
}

static void check_gone(const struct run *r, const char *name, uint64_t *worst)
{
    uint64_t took = time_to_gone(r);

    if (took >= PATIENCE)
        (void)count(kill_rest, r, NULL);
    if (took >= GONE)
        fail_msg("%s: still alive after %u ms", name, (unsigned)(took / MO_MS));
    if (took > *worst)
        *worst = took;
}

static int end_driver(struct run *r, int sig)
{
    int status = 0;

    if (sig)
        assert_int_equal(kill(r->driver, sig), 0);
    assert_int_equal(waitpid(r->driver, &status, 0), r->driver);
    return status;
}

#define ROUNDS 40 /* of test_killed_busy; other marks are above and below */

/* --- the tests ----------------------------------------------------------- */

static const struct {
    const char *name, *how;
    int children, depth;
} rows[] = {
    {"one child", "wait", 1, 0},
    {"a child with a child", "wait", 1, 1},
    {"ten, three generations each", "wait", 10, 3},
    {"guardian was replaced", "orphan", 5, 1},
};

static void test_killed(void **state)
{
    const struct paths *p = *state;

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        int all = rows[i].children * (rows[i].depth + 1);
        uint64_t worst = 0;
        struct run r;

        run_driver(&r, p, rows[i].how, rows[i].children, rows[i].depth,
                   ROUNDS + (int)i);
        wait_ready(&r, all + 1);
        check_row(rows[i].name, count(is_marked, &r, NULL) == all + 1);
        check_row(rows[i].name, find_guardian(&r));
        (void)end_driver(&r, SIGKILL);
        check_gone(&r, rows[i].name, &worst);
        print_message("%s: all gone after %u ms\n", rows[i].name,
                      (unsigned)(worst / MO_MS));
        (void)close(r.out);
    }
}

/* Killed at any moment of a birth. */
static void test_killed_busy(void **state)
{
    const struct paths *p = *state;
    uint64_t worst = 0;

    for (int i = 0; i < ROUNDS; i++) {
        struct run r;

        run_driver(&r, p, "busy", 1, 1, i);
        wait_ready(&r, 3);
        assert_true(find_guardian(&r));
        (void)usleep((useconds_t)(i * 137 % 5000));
        (void)end_driver(&r, SIGKILL);
        check_gone(&r, "busy", &worst);
        (void)close(r.out);
    }
    print_message("%d kills at any moment: all gone, worst %u ms\n", ROUNDS,
                  (unsigned)(worst / MO_MS));
}

/* Leaving by itself is clean too, and needs no killing by the guardian. */
static void test_leaves(void **state)
{
    const struct paths *p = *state;
    uint64_t worst = 0;
    struct run r;
    int status;

    run_driver(&r, p, "leave", 5, 1, -1);
    r.guardian = 0;
    status = end_driver(&r, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    check_gone(&r, "leave", &worst);
    (void)close(r.out);
}

int main(int argc, char **argv)
{
    struct paths p = {argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_killed, &p),
        cmocka_unit_test_prestate(test_killed_busy, &p),
        cmocka_unit_test_prestate(test_leaves, &p),
    };

    if (argc != 3) {
        (void)fprintf(stderr, "usage: test_kill <kill_driver> <stubborn>\n");
        return 2;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
