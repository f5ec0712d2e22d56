/* bench_budget.c - what the question before a call costs: without limits, with
 * limits of other people, and with limits of the person, the view and the
 * server, counted in this process.
 *
 *   bench_budget [redis://...]
 *
 * With a store: also in that Redis, one question after the other. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "budget/budget.h"

#define ASKS  20000
#define CALLS 900000 /* below the limits */

static const struct {
    const char *name, *config;
} rows[] = {
    {"no limits", "{}"},
    {"limits of others",
     "{\"budgets\":{\"people\":{\"ann\":{\"callsPerMinute\":5}}}}"},
    {"limit of the person",
     "{\"budgets\":{\"people\":{\"*\":{\"callsPerMinute\":1000000}}}}"},
    {"limits of person, view and server",
     "{\"budgets\":{\"people\":{\"*\":{\"callsPerMinute\":1000000}}},"
     "\"views\":{\"v\":{\"callsPerMinute\":1000000}},"
     "\"mcpServers\":{\"s\":{\"command\":\"x\",\"callsPerMinute\":1000000}}}"},
};

static void die(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(1);
}

struct asked {
    struct mo_budget_ask ask;
    bool done;
};

static void on_answer(struct mo_budget_ask *a, const struct mo_budget_no *no)
{
    if (no)
        die(no->text);
    mo_container_of(a, struct asked, ask)->done = true;
}

static bool is_done(void *ctx)
{
    return ((struct asked *)ctx)->done;
}

static void on_gone(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_gone(void *ctx)
{
    return *(bool *)ctx;
}

/* Waits for each answer. */
static void ask_redis(struct mo_loop *l, struct mo_budget *b, const char *url,
                      const struct mo_budget_call *call)
{
    const struct mo_store_opts o = {.url = url};
    struct mo_budget_no no;
    struct mo_store *s;
    struct mo_err e;
    uint64_t began = 0;
    bool gone = false;

    if (mo_store_open(l, &o, &s, &e) < 0)
        die(e.msg);
    mo_budget_store(b, s);
    for (unsigned n = 0; n <= ASKS; n++) {
        struct asked a = {.ask = {.done = on_answer}};

        if (n == 1) /* it is connected */
            began = mo_now_ns();
        if (mo_budget_call(b, call, &a.ask, &no) != MO_BUDGET_LATER ||
            !mo_loop_until(l, is_done, &a, 10000))
            die("no answer");
    }
    printf("budget, the same in Redis: %.1f us a call\n",
           (double)(mo_now_ns() - began) / ASKS / 1000);
    mo_store_close(s, on_gone, &gone);
    (void)mo_loop_until(l, is_gone, &gone, 10000);
}

static void measure(struct mo_loop *l, const char *path, size_t i,
                    const char *url)
{
    const struct mo_budget_who who = {.person =
                                          MO_SPAN("corp:bob@example.com")};
    const struct mo_budget_call call = {
        .who = &who, .view = MO_SPAN("v"), .server = MO_SPAN("s")};
    struct mo_config_input in = {.file = path};
    struct mo_config_holder h;
    static struct mo_config_report rep;
    struct mo_budget_ask a = {.done = NULL};
    struct mo_budget_no no;
    struct mo_budget *b;
    struct mo_err e;
    uint64_t began, yes = 0;

    if (mo_file_save(path, mo_span_cstr(rows[i].config), 0600, &e) < 0 ||
        mo_config_open(&h, &in, &rep, &e) < 0 ||
        mo_budget_new(l, h.now, NULL, &b, &e) < 0)
        die(e.msg);
    began = mo_now_ns();
    for (unsigned n = 0; n < CALLS; n++)
        yes += mo_budget_call(b, &call, &a, &no) == MO_BUDGET_YES;
    printf("budget, %s: %.0f ns a call (%.0f %% refused)\n", rows[i].name,
           (double)(mo_now_ns() - began) / CALLS,
           100.0 * (double)(CALLS - yes) / CALLS);
    if (url && i + 1 == MO_COUNT(rows))
        ask_redis(l, b, url, &call);
    mo_budget_close(b);
    mo_config_close(&h);
}

int main(int argc, char **argv)
{
    char path[] = "/tmp/mo-bench-budget-XXXXXX";
    int fd = mkstemp(path);
    struct mo_err e;
    struct mo_loop *l = mo_loop_new(NULL, &e);

    if (fd < 0 || !l)
        die("cannot begin");
    (void)close(fd);
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        measure(l, path, i, argc > 1 ? argv[1] : NULL);
    (void)unlink(path);
    mo_loop_free(l);
    return 0;
}
