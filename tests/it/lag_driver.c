/* lag_driver - how late is the loop while a server (argv[1..]) floods us?
 *
 * Opens the server, calls its tool "t", and looks every few milliseconds how
 * much later than asked it was woken. One JSON object on stdout: how it ended,
 * and percentiles of that in microseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "mcp/client/conn.h"
#include "mcp/link/link_child.h"

#define EVERY_MS    5
#define SAMPLES_MAX 20000

struct lag {
    struct mo_loop *l;
    struct mo_guard *g;
    struct mo_conn *c;
    char **argv;
    struct mo_timer timer;
    uint64_t due;               /* ns */
    uint64_t late[SAMPLES_MAX]; /* ns */
    size_t n;
};

static void arm(struct lag *d)
{
    d->due = mo_now_ns() + EVERY_MS * MO_MS;
    mo_timer_start(d->l, &d->timer, EVERY_MS);
}

static void on_timer(struct mo_timer *t)
{
    struct lag *d = mo_container_of(t, struct lag, timer);
    uint64_t now = mo_now_ns();

    if (d->n < SAMPLES_MAX)
        d->late[d->n++] = now > d->due ? now - d->due : 0;
    arm(d);
}

static int on_dial(void *ctx, struct mo_conn *c, struct mo_err *e)
{
    struct lag *d = ctx;
    struct mo_child_opts o = {
        .argv = (const char *const *)d->argv,
        .env = (const char *const *)environ,
    };
    struct mo_link *k;
    int rc = mo_link_child(d->g, &o, &k, e);

    if (rc == 0)
        mo_conn_dialed(c, k, NULL);
    return rc;
}

static void on_done(void *ctx, const struct mo_reply *r)
{
    struct lag *d = ctx;

    if (!r->err)
        mo_conn_close(d->c, NULL);
}

static void on_open(void *ctx, struct mo_conn *c)
{
    struct lag *d = ctx;
    struct mo_call_opts o = {.done = on_done, .ctx = d};
    struct mo_err e;

    arm(d);
    if (!mo_conn_request(c, "tools/call",
                         MO_SPAN("{\"name\":\"t\",\"arguments\":{}}"), &o, &e))
        mo_conn_close(c, &e);
}

static int by_size(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static unsigned long long percentile(struct lag *d, unsigned p)
{
    return d->n ? d->late[(d->n - 1) * p / 100] / 1000 : 0;
}

static void on_gone(void *ctx)
{
    (void)ctx;
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct lag *d = ctx;

    mo_timer_stop(d->l, &d->timer);
    qsort(d->late, d->n, sizeof(d->late[0]), by_size);
    (void)printf("{\"why\":%d,\"samples\":%zu,\"p50\":%llu,\"p99\":%llu,"
                 "\"max\":%llu}\n",
                 why ? why->code : 0, d->n, percentile(d, 50),
                 percentile(d, 99), percentile(d, 100));
    mo_guard_stop(d->g, on_gone, NULL);
}

static const struct mo_conn_cb cb = {.on_open = on_open, .on_close = on_close};

int main(int argc, char **argv)
{
    struct mo_conn_opts o = {
        .mode = MO_CONN_LEGACY, .dial = on_dial, .cb = &cb};
    static struct lag d;
    struct mo_err e;

    if (mo_guard_wanted(argc, argv))
        mo_guard_main();
    if (argc < 2)
        return 2;
    d.argv = argv + 1;
    o.ctx = &d;
    mo_timer_init(&d.timer, on_timer);
    d.l = mo_loop_new(NULL, &e);
    d.g = d.l ? mo_guard_new(d.l, &e) : NULL;
    if (!d.g || mo_conn_open(d.l, &o, &d.c, &e) < 0)
        return 3;
    mo_loop_run(d.l);
    mo_loop_free(d.l);
    return 0;
}
