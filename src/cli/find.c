/* find - prints which tools the router would choose for a request.
 *
 * Reads the configuration and the cached catalogues of its servers. Starts no
 * server unless --refresh is given. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "audit/audit.h"
#include "cli/runtime_wait.h"
#include "codec/json/json.h"
#include "codec/text/utf8.h"
#include "codec/text/visible.h"
#include "gateway/inside.h"
#include "policy/tool_pins.h"
#include "servers/gateway_setup.h"

#define REFRESH_MS 60000 /* timeout for all servers together */
#define WORDS_MAX  ((size_t)4096)
#define TEXT_MAX   90 /* bytes of a description */

struct finding {
    struct mo_cmd_runtime m;
    struct mo_gateway_setup *gateway;
    struct mo_audit *audit;
    struct mo_tool_pins
        *pins; /* NULL: the pins cannot be read, no tool is excluded */
};

/* --- text output ---------------------------------------------------------- */

static void put_str(struct mo_buf *b, struct mo_json v)
{
    mo_autobuf struct mo_buf s = {.max = MO_CMD_TEXT_MAX};

    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &s) == 0)
        mo_visible_name(b, mo_buf_view(&s));
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
    mo_visible_name(b, mo_span_head(rest, mo_utf8_cut(rest, TEXT_MAX)));
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
        (void)mo_loop_until(f->m.loop, has_all, f, REFRESH_MS);
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

static void end_finding(struct finding *f)
{
    mo_tool_pins_close(f->pins);
    if (f->audit)
        mo_audit_close(f->audit, NULL, NULL);
    if (f->gateway) {
        mo_gateway_setup_close(f->gateway, mo_cmd_runtime_done, &f->m);
        mo_cmd_runtime_wait(&f->m);
    }
    if (f->m.loop)
        mo_loop_run(f->m.loop); /* finish closing */
    mo_cmd_runtime_close(&f->m);
}

static int find_tools(const struct mo_cli *c, struct finding *f,
                      const struct mo_gw_find *what)
{
    const struct mo_config *cfg = f->m.cfg.now;
    struct mo_err e = {0};

    if (mo_gateway_setup_open(f->m.loop, cfg, NULL, NULL, &f->gateway, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    if (mo_audit_open(f->m.loop, cfg, &f->audit, &e) < 0)
        mo_log_err(&f->m.log, MO_ERROR, "find", &e,
                   "the lookup is not audited");
    if (cfg->gateway.approvals != MO_GW_NO_RULES &&
        mo_tool_pins_open(&f->m.log, cfg->store.dir, &f->pins, &e) < 0)
        mo_log_err(&f->m.log, MO_WARN, "find", &e,
                   "changed tools are not detected");
    return ask_router(c, f, what);
}

/* --- command -------------------------------------------------------------- */

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
    MO_CLEANUP(end_finding) struct finding f = {.gateway = NULL};
    struct mo_gw_find what = {.limit = 0};
    mo_autobuf struct mo_buf words = {.max = WORDS_MAX};
    int rc;

    if (!take_numbers(c, &what))
        return mo_cli_error(c, MO_EXIT_USAGE,
                            "--limit is 1 to 50, --threshold from 0 to 1");
    rc = mo_cmd_runtime_load(c, &f.m);
    if (rc)
        return rc;
    f.m.log.level = MO_ERROR;
    if (mo_cli_has(c, "forget") || c->nargs == 0)
        return forget_learning(c, f.m.cfg.now);
    mo_cli_join(c, &words);
    what.words = mo_buf_view(&words);
    if (mo_buf_err(&words))
        return mo_cli_error(c, MO_EXIT_USAGE, "too many words");
    (void)signal(SIGPIPE, SIG_IGN);
    return find_tools(c, &f, &what);
}
