/* kill_driver.c - an orchestrator in small, made to be killed.
 *
 *   kill_driver <how> <children> <program> [argument]
 *
 * Starts that many children and passes on what they print. how:
 *   wait     stays until it is killed
 *   orphan   first kills its guardian and waits for the new one
 *   busy     starts and frees further children all the time, so that a kill
 *            hits any moment of a birth
 *   leave    frees everything and exits by itself */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/proc.h"

#define CHILDREN_MAX 64

struct kid {
    struct mo_proc *p;
    struct mo_proc_io s;
    bool closed;
};

struct driver {
    struct mo_loop *l;
    struct mo_guard *g;
    const char *const *argv;
    struct kid kids[CHILDREN_MAX];
    int n;
    pid_t old;
    bool gone;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "kill_driver: %s\n", what);
    exit(1);
}

static void say(const char *p, size_t n)
{
    if (write(1, p, n) != (ssize_t)n)
        die("stdout");
}

static void on_read(void *ctx, char *p, size_t n)
{
    (void)ctx;
    say(p, n);
}

static void on_eof(void *ctx)
{
    (void)ctx;
}

static void on_close(void *ctx, const struct mo_err *why)
{
    (void)why;
    ((struct kid *)ctx)->closed = true;
}

static void on_exit_(void *ctx, struct mo_proc *p, struct mo_exit x)
{
    (void)ctx;
    (void)p;
    (void)x;
}

static void start(struct driver *d, struct kid *k)
{
    static const struct mo_proc_cb cb = {on_exit_};
    static const struct mo_stream_cb io = {on_read, on_eof, NULL, on_close};
    struct mo_proc_opts o = {
        .file = d->argv[0], .argv = d->argv, .err = MO_PROC_ERR_INHERIT};
    struct mo_err e;

    *k = (struct kid){.closed = false};
    if (mo_proc_start(d->g, &o, &cb, k, &k->p, &k->s, &e) < 0)
        die(e.msg);
    mo_stream_attach(k->s.io, &io, k);
}

static void let_go(struct kid *k)
{
    mo_proc_free(k->p);
    mo_stream_close(k->s.io, NULL);
}

static bool is_closed(void *ctx)
{
    return ((struct kid *)ctx)->closed;
}

static bool new_guardian(void *ctx)
{
    const struct driver *d = ctx;

    return mo_guard_pid(d->g) > 0 && mo_guard_pid(d->g) != d->old;
}

static void orphan(struct driver *d)
{
    d->old = mo_guard_pid(d->g);
    (void)kill(d->old, SIGKILL);
    if (!mo_loop_until(d->l, new_guardian, d, 20000))
        die("no new guardian");
}

static void be_busy(struct driver *d)
{
    for (;;) {
        struct kid k;

        start(d, &k);
        let_go(&k);
        if (!mo_loop_until(d->l, is_closed, &k, 20000))
            die("a stream that does not close");
    }
}

static void on_gone(void *ctx)
{
    ((struct driver *)ctx)->gone = true;
}

static void leave(struct driver *d)
{
    for (int i = 0; i < d->n; i++)
        let_go(&d->kids[i]);
    mo_guard_stop(d->g, on_gone, d);
    mo_loop_run(d->l);
    if (!d->gone)
        die("guardian still there");
    mo_loop_free(d->l);
    _exit(0); /* a leak check would outlast the test */
}

int main(int argc, char **argv)
{
    struct driver d = {.n = 0};

    if (mo_guard_wanted(argc, argv))
        mo_guard_main();
    if (argc < 4)
        die("usage: kill_driver <how> <children> <program> [argument]");
    d.n = (int)strtol(argv[2], NULL, 10);
    d.argv = (const char *const *)&argv[3];
    d.l = mo_loop_new(NULL, NULL);
    d.g = d.l ? mo_guard_new(d.l, NULL) : NULL;
    if (!d.g || d.n < 0 || d.n > CHILDREN_MAX)
        die("cannot begin");
    for (int i = 0; i < d.n; i++)
        start(&d, &d.kids[i]);
    if (strcmp(argv[1], "orphan") == 0)
        orphan(&d);
    say("ready\n", 6);
    if (strcmp(argv[1], "busy") == 0)
        be_busy(&d);
    if (strcmp(argv[1], "leave") == 0)
        leave(&d);
    mo_loop_run(d.l);
    return 0;
}
