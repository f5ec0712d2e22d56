/* find - prints which tools the router would choose for a request.
 *
 * Reads the configuration and the cached catalogues of its servers. Starts no
 * server unless --refresh is given. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "audit/audit.h"
#include "cli/cmd.h"
#include "codec/json/json.h"
#include "gateway/inside.h"
#include "policy/tool_pins.h"
#include "servers/gateway_setup.h"

#define REFRESH_MS 60000 /* timeout for all servers together */
#define WORDS_MAX  ((size_t)4096)
#define TEXT_MAX   90 /* bytes of a description */

struct finding {
    struct mo_loop *loop;
    struct mo_gateway_setup *gateway;
    struct mo_audit *audit;
    struct mo_tool_pins
        *pins; /* NULL: the pins cannot be read, no tool is excluded */
    bool gone;
};

/* --- text output ---------------------------------------------------------- */

static void put_str(struct mo_buf *b, struct mo_json v)
{
    mo_autobuf struct mo_buf s = {.max = MO_CMD_TEXT_MAX};

    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &s) == 0)
        (void)mo_buf_span(b, mo_buf_view(&s));
}

/* The first line, shortened to fit. */
static void put_line(struct mo_buf *b, struct mo_json v)
{
    struct mo_span rest;
    mo_autobuf struct mo_buf s = {.max = MO_CMD_TEXT_MAX};

    if (mo_json_is(v, MO_JSON_STRING))
        (void)mo_json_str_buf(v, &s);
    rest = mo_buf_view(&s);
    rest = mo_span_cut(&rest, '\n');
    for (size_t i = 0; i < rest.n && i < TEXT_MAX; i++)
        (void)mo_buf_putc(b, (unsigned char)rest.p[i] < ' ' ? ' ' : rest.p[i]);
}

static void put_hits(struct mo_buf *b, struct mo_json list, const char *last)
{
    mo_json_each (it, list) {
        struct mo_json tool = mo_json_get(it.val, "tool");
        double sure = 0;

        (void)mo_json_f64(mo_json_get(it.val, "confidence"), &sure);
        (void)mo_buf_printf(b, "  %.2f  ", sure);
        put_str(b, mo_json_get(it.val, "server"));
        if (tool.p)
            (void)mo_buf_putc(b, '/');
        put_str(b, tool);
        (void)mo_buf_puts(b, "\n        ");
        put_line(b, mo_json_get(it.val, last));
        (void)mo_buf_putc(b, '\n');
    }
}

static void put_people(struct mo_buf *b, struct mo_json root, size_t servers)
{
    struct mo_json found = mo_json_get(root, "results");
    struct mo_json out = mo_json_get(root, "ruledOut");

    if (mo_json_len(found) == 0)
        (void)mo_buf_puts(b, servers ? "no usable tool matches\n"
                                     : MO_CMD_NO_SERVERS);
    put_hits(b, found, "description");
    if (mo_json_len(out) == 0)
        return;
    (void)mo_buf_puts(b, "matching, but not usable:\n");
    put_hits(b, out, "why");
}

static int print_result(const struct mo_cli *c, const struct mo_buf *made,
                        size_t servers)
{
    struct mo_json_doc doc;
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    if (mo_cli_has(c, "json"))
        return mo_cmd_print_json(c, made);
    if (mo_json_parse(mo_buf_view(made), 0, &doc, NULL) == 0)
        put_people(&b, doc.root, servers);
    return mo_cli_print(c, &b);
}

/* --- search --------------------------------------------------------------- */

static bool has_all(void *ctx)
{
    struct finding *f = ctx;

    return !mo_gateway_busy(mo_gateway_setup_gateway(f->gateway));
}

static void audit_lookup(const struct finding *f, const struct mo_gw_find *what,
                         struct mo_span answer)
{
    char who[32];
    struct mo_audit_lookup lookup = {
        .via = "find", .words = what->words, .answer = answer};

    (void)snprintf(who, sizeof(who), "uid:%u", (unsigned)getuid());
    lookup.who = mo_span_cstr(who);
    if (f->audit)
        mo_audit_lookup(f->audit, &lookup);
}

static int ask_router(const struct mo_cli *c, struct finding *f,
                      const struct mo_gw_find *words)
{
    struct mo_gateway *g = mo_gateway_setup_gateway(f->gateway);
    struct mo_gw_find what = *words;
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    if (mo_cli_has(c, "refresh")) {
        mo_gateway_refresh(g);
        (void)mo_loop_until(f->loop, has_all, f, REFRESH_MS);
    }
    if (f->pins) {
        what.changed = mo_tool_pins_changed;
        what.ctx = f->pins;
    }
    if (mo_gateway_find(g, &what, &b) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "out of memory");
    audit_lookup(f, &what, mo_buf_view(&b));
    return print_result(c, &b, mo_gateway_count(g));
}

static void on_gone(void *ctx)
{
    ((struct finding *)ctx)->gone = true;
}

static bool is_gone(void *ctx)
{
    return ((struct finding *)ctx)->gone;
}

static int find_tools(const struct mo_cli *c, const struct mo_config *cfg,
                      struct mo_log *log, const struct mo_gw_find *what)
{
    struct finding f = {.gone = false};
    struct mo_err e = {0};
    int rc = MO_EXIT_OK;

    f.loop = mo_loop_new(log, &e);
    if (!f.loop)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    if (mo_gateway_setup_open(f.loop, cfg, NULL, NULL, &f.gateway, &e) < 0) {
        rc = mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    } else {
        if (mo_audit_open(f.loop, cfg, &f.audit, &e) < 0)
            mo_log_err(log, MO_ERROR, "find", &e, "the lookup is not audited");
        if (cfg->gateway.approvals != MO_GW_NO_RULES &&
            mo_tool_pins_open(log, cfg->store.dir, &f.pins, &e) < 0)
            mo_log_err(log, MO_WARN, "find", &e,
                       "changed tools are not detected");
        rc = ask_router(c, &f, what);
        mo_tool_pins_close(f.pins);
        if (f.audit)
            mo_audit_close(f.audit, NULL, NULL);
        mo_gateway_setup_close(f.gateway, on_gone, &f);
        (void)mo_loop_until(f.loop, is_gone, &f, REFRESH_MS);
    }
    mo_loop_run(f.loop); /* finish closing */
    mo_loop_free(f.loop);
    return rc;
}

/* --- command -------------------------------------------------------------- */

/* Joins the remaining arguments, quoted or not. */
static void join_args(const struct mo_cli *c, struct mo_buf *b)
{
    for (size_t i = 0; i < c->nargs; i++)
        (void)mo_buf_printf(b, "%s%s", i ? " " : "", c->args[i]);
}

static bool take_numbers(const struct mo_cli *c, struct mo_gw_find *f)
{
    const char *limit = mo_cli_get(c, "limit");
    const char *least = mo_cli_get(c, "threshold");
    uint64_t n = 0;
    char *end = NULL;

    if (limit && (mo_span_u64(mo_span_cstr(limit), &n) < 0 || n < 1 || n > 50))
        return false;
    f->limit = (size_t)n;
    if (!least)
        return true;
    f->threshold = strtod(least, &end);
    return *least && *end == '\0' && f->threshold >= 0 && f->threshold <= 1;
}

static int forget_learning(const struct mo_cli *c, const struct mo_config *cfg)
{
    struct mo_err e;

    if (!mo_cli_has(c, "forget"))
        return mo_cli_error(c, MO_EXIT_USAGE, "find what?");
    if (c->nargs)
        return mo_cli_error(c, MO_EXIT_USAGE, "--forget takes no words");
    return mo_gateway_setup_forget_habit(cfg, &e) < 0
               ? mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg)
               : MO_EXIT_OK;
}

int mo_run_find(struct mo_cli *c)
{
    mo_autoconfig struct mo_cmd_config cfg = {.now = NULL};
    struct mo_gw_find f = {.limit = 0};
    mo_autobuf struct mo_buf words = {.max = WORDS_MAX};
    struct mo_log log;
    int rc;

    if (!take_numbers(c, &f))
        return mo_cli_error(c, MO_EXIT_USAGE,
                            "--limit is 1 to 50, --threshold from 0 to 1");
    rc = mo_cmd_load(c, &cfg);
    if (rc)
        return rc;
    if (mo_cli_has(c, "forget") || c->nargs == 0)
        return forget_learning(c, cfg.now);
    join_args(c, &words);
    f.words = mo_buf_view(&words);
    if (mo_buf_err(&words))
        return mo_cli_error(c, MO_EXIT_USAGE, "too many words");
    (void)signal(SIGPIPE, SIG_IGN);
    mo_log_init(&log, STDERR_FILENO);
    (void)mo_log_levels(&log, MO_SPAN("error"), NULL);
    rc = find_tools(c, cfg.now, &log, &f);
    mo_log_fini(&log);
    return rc;
}
