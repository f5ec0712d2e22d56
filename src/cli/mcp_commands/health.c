/* mcp health - connects to all configured servers in parallel.
 *
 * At most AT_ONCE at a time, so that hundreds of servers are not started
 * together; each has its own deadline. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/chat/terminal.h"
#include "cli/cmd.h"
#include "cli/mcp_commands/edit.h"
#include "cli/mcp_commands/mcp.h"
#include "connect/connect_test.h"
#include "loop/loop.h"

#define AT_ONCE  16
#define USUAL_MS 30000
#define FOREVER  ((uint64_t)24 * 3600 * 1000)
#define ROW_MAX  ((size_t)256 * 1024)

struct row {
    struct round *all;
    const struct mo_config_mcp *server;
    bool ok, sign_in;
    struct mo_err why;
    uint64_t ms;
    size_t tools;
    struct mo_buf json; /* result of mo_connect_test_json() */
};

struct round {
    struct mo_cli *c;
    struct mo_loop *loop;
    struct mo_server_link *link;
    const struct mo_config *cfg;
    uint64_t timeout_ms;
    const char *only; /* also if it is disabled; NULL: all enabled servers */
    struct row *v;
    size_t next, under_way;
    bool link_gone;
};

/* --- testing -------------------------------------------------------------- */

static void start_more(struct round *a);

static void note_result(struct row *r, const struct mo_connect_test_result *x)
{
    struct mo_jw w;

    r->ok = x->why.code == 0;
    r->why = x->why;
    r->sign_in = x->sign_in;
    r->ms = x->ms;
    r->tools = x->tools;
    w = mo_jw_object(&r->json);
    mo_connect_test_json(&w, x, mo_server_link_said(r->all->link),
                         r->server->name);
    mo_jw_end(&w);
}

static void on_done(void *ctx, const struct mo_connect_test_result *x)
{
    struct row *r = ctx;

    note_result(r, x);
    r->all->under_way--;
    start_more(r->all);
}

static void start_test(struct row *r)
{
    struct mo_connect_test_opts o = {
        .loop = r->all->loop,
        .link = r->all->link,
        .server = r->server,
        .timeout_ms = r->all->timeout_ms,
        .done = on_done,
        .ctx = r,
    };
    struct mo_connect_test_result no = {.ms = 0};
    struct mo_connect_test *x = NULL;

    if (mo_connect_test_start(&o, &x, &no.why) == 0)
        r->all->under_way++;
    else
        note_result(r, &no);
}

static bool is_meant(const struct round *a, const struct mo_config_mcp *s)
{
    return a->only ? strcmp(s->name, a->only) == 0 : s->enabled;
}

static void start_more(struct round *a)
{
    while (a->next < a->cfg->mcp.n && a->under_way < AT_ONCE) {
        struct row *r = &a->v[a->next++];

        if (is_meant(a, r->server))
            start_test(r);
    }
}

static bool is_over(void *ctx)
{
    const struct round *a = ctx;

    return a->next == a->cfg->mcp.n && a->under_way == 0;
}

static bool is_gone(void *ctx)
{
    return ((const struct round *)ctx)->link_gone;
}

static void on_link_gone(void *ctx)
{
    ((struct round *)ctx)->link_gone = true;
}

static int test_all(struct round *a, struct mo_err *e)
{
    (void)signal(SIGPIPE, SIG_IGN);
    if (mo_cmd_record(a->c, a->cfg, a->only, e) < 0)
        return e->code;
    a->loop = mo_loop_new(NULL, e);
    if (a->loop == NULL)
        return e->code;
    if (mo_server_link_new(a->loop, a->cfg, &a->link, e) < 0) {
        mo_loop_free(a->loop);
        return e->code;
    }
    start_more(a);
    (void)mo_loop_until(a->loop, is_over, a, FOREVER);
    mo_server_link_close(a->link, on_link_gone, a);
    (void)mo_loop_until(a->loop, is_gone, a, FOREVER);
    mo_loop_free(a->loop);
    return 0;
}

/* --- reporting ------------------------------------------------------------ */

static const char *state(const struct row *r)
{
    if (!r->server->enabled)
        return "disabled";
    if (r->ok)
        return "ok";
    return r->sign_in ? "sign_in" : "failed";
}

static void put_text(const struct round *a, struct mo_buf *b)
{
    bool tty = isatty(a->c->out) == 1;

    if (a->cfg->mcp.n == 0)
        mo_buf_puts(b, MO_CMD_NO_SERVERS);
    for (size_t i = 0; i < a->cfg->mcp.n; i++) {
        const struct row *r = &a->v[i];

        mo_buf_printf(b, "%-20s %-8s", r->server->name, state(r));
        if (r->ok)
            mo_buf_printf(b, " %zu tool%s, %llu ms", r->tools,
                          r->tools == 1 ? "" : "s", (unsigned long long)r->ms);
        if (r->why.code) {
            mo_buf_putc(b, ' ');
            mo_term_text(b, mo_span_cstr(r->why.msg), tty);
        }
        mo_buf_putc(b, '\n');
    }
}

static void put_json(const struct round *a, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_array(b);

    for (size_t i = 0; i < a->cfg->mcp.n; i++) {
        const struct row *r = &a->v[i];

        mo_jw_obj(&w);
        mo_jw_member_cstr(&w, "name", r->server->name);
        mo_jw_member_cstr(&w, "state", state(r));
        mo_json_each (it, ((struct mo_json){r->json.p, r->json.len})) {
            mo_jw_key_raw(&w, it.key);
            mo_jw_raw(&w, mo_json_text(it.val));
        }
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
}

static int print_all(const struct round *a)
{
    bool ill = false;
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    int rc;

    for (size_t i = 0; i < a->cfg->mcp.n; i++)
        ill |= a->v[i].server->enabled && !a->v[i].ok;
    if (mo_cli_has(a->c, "json"))
        put_json(a, &b);
    else
        put_text(a, &b);
    rc = mo_cmd_print(a->c, &b);
    return rc ? rc : ill ? MO_EXIT_FAIL : 0;
}

/* --- command -------------------------------------------------------------- */

static int run_round(struct round *a, int (*told)(const struct round *a))
{
    struct mo_err e = {0};
    int rc;

    a->v = mo_zalloc((a->cfg->mcp.n + 1) * sizeof(*a->v));
    if (a->v == NULL)
        return mo_cli_error(a->c, MO_EXIT_FAIL, "out of memory");
    for (size_t i = 0; i < a->cfg->mcp.n; i++) {
        a->v[i] = (struct row){.all = a, .server = &a->cfg->mcp.v[i]};
        mo_buf_init(&a->v[i].json, ROW_MAX);
    }
    rc = test_all(a, &e) < 0 ? mo_cli_error(a->c, MO_EXIT_FAIL, "%s", e.msg)
                             : told(a);
    for (size_t i = 0; i < a->cfg->mcp.n; i++)
        mo_buf_fini(&a->v[i].json);
    mo_free(a->v);
    return rc;
}

static int print_one(const struct round *a)
{
    for (size_t i = 0; i < a->cfg->mcp.n; i++) {
        const struct row *r = &a->v[i];

        if (!is_meant(a, r->server))
            continue;
        if (r->why.code)
            return mo_cli_error(
                a->c, r->sign_in ? MO_EXIT_SIGN_IN : MO_EXIT_UNAVAIL,
                "'%s' was not saved, because it does not work: %s", a->only,
                r->why.msg);
        (void)dprintf(a->c->out, "'%s' works: %zu tool%s\n", a->only, r->tools,
                      r->tools == 1 ? "" : "s");
    }
    return 0;
}

int mo_cmd_works(struct mo_cli *c, const struct mo_config *cfg,
                 const char *server)
{
    struct round a = {
        .c = c, .cfg = cfg, .timeout_ms = USUAL_MS, .only = server};

    return run_round(&a, print_one);
}

int mo_run_mcp_health(struct mo_cli *c)
{
    struct round a = {.c = c};
    mo_autoconfig struct mo_cmd_config cfg = {.now = NULL};
    int rc;

    if (!mo_cmd_timeout(c, USUAL_MS / 1000, 3600, &a.timeout_ms))
        return mo_cli_error(c, MO_EXIT_USAGE,
                            "--timeout is a number of seconds");
    rc = mo_cmd_load(c, &cfg);
    a.cfg = cfg.now;
    return rc ? rc : run_round(&a, print_all);
}
