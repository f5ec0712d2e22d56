/* record.c - the audit rows of calls through the gateway, without the calls.
 *
 *   record before|after DIR CALLS
 *
 * after: the row with the outcome only. before: also the record that a call
 * leaves, which the kernel has before the call is sent. One call in each turn
 * of the loop, as with one session. The difference is the cost of the record.
 * Prints one line of JSON: calls, CPU time of all threads, p50 of a call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/audit.h"
#include "meter.h"

#define CALLS_MAX 1000000

struct record {
    struct mo_loop *loop;
    struct mo_audit *audit;
    struct mo_later later;
    bool before, gone;
    unsigned left; /* calls to make */
    uint32_t *ns;  /* of each call */
    size_t n;
};

static void make_call(struct record *r)
{
    struct mo_gw_case k = {
        .server = MO_SPAN("s"),
        .tool = MO_SPAN("echo"),
        .who = MO_SPAN("a-session-of-some-length"),
        .owner = MO_SPAN("operator"),
        .client = MO_SPAN("{\"name\":\"load\",\"version\":\"1\"}"),
        .args_bytes = 20,
        .by = "rule",
        .bytes = 100,
    };
    uint64_t since = meter_now_ns();
    struct mo_err e;

    memset(k.digest, 'a', sizeof(k.digest) - 1);
    if (r->before && mo_audit_begin(r->audit, &k, NULL, &k.left, &e) < 0)
        meter_die("%s", e.msg);
    mo_audit_call(r->audit, MO_AUDIT_DONE, &k, mo_span(NULL, 0), NULL);
    mo_audit_end(r->audit, k.left);
    r->ns[r->n++] = (uint32_t)(meter_now_ns() - since);
}

static void on_turn(struct mo_later *later)
{
    struct record *r = mo_container_of(later, struct record, later);

    make_call(r);
    if (--r->left)
        mo_loop_soon(r->loop, later);
}

static bool is_over(void *ctx)
{
    return ((struct record *)ctx)->left == 0;
}

static void on_gone(void *ctx)
{
    ((struct record *)ctx)->gone = true;
}

static bool is_gone(void *ctx)
{
    return ((struct record *)ctx)->gone;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    struct record r = {.gone = false};
    struct mo_config cfg = {.audit.max_mb = 64, .audit.files = 2};
    uint64_t cpu;
    struct mo_err e;

    if (argc != 4)
        meter_die("usage: record before|after DIR CALLS");
    r.before = strcmp(argv[1], "before") == 0;
    cfg.store.dir = argv[2];
    r.left = meter_arg(argv[3], "CALLS", CALLS_MAX);
    r.ns = calloc(r.left, sizeof(*r.ns));
    r.loop = mo_loop_new(NULL, &e);
    if (!r.ns || !r.loop || mo_audit_open(r.loop, &cfg, &r.audit, &e) < 0)
        meter_die("%s: it cannot be opened", argv[2]);
    mo_later_init(&r.later, on_turn);
    cpu = meter_cpu_ns(getpid());
    mo_loop_soon(r.loop, &r.later);
    if (!mo_loop_until(r.loop, is_over, &r, 60000))
        meter_die("the calls do not end");
    mo_audit_close(r.audit, on_gone, &r);
    if (!mo_loop_until(r.loop, is_gone, &r, 60000))
        meter_die("the log does not close");
    cpu = meter_cpu_ns(getpid()) - cpu;
    qsort(r.ns, r.n, sizeof(*r.ns), by_size);
    (void)printf("{\"ops\":%zu,\"cpu_ns\":%llu,\"p50_ns\":%u}\n", r.n,
                 (unsigned long long)cpu, r.ns[r.n / 2]);
    mo_loop_free(r.loop);
    free(r.ns);
    return 0;
}
