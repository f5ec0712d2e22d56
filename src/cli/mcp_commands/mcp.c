/* mcp list, test, info - prints and tests the configured MCP servers. */
#include "cli/mcp_commands/mcp.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "codec/text/visible.h"
#include "config/doc.h"
#include "connect/box_mounts.h"
#include "connect/connect_test.h"
#include "install/place.h"
#include "servers/server_view.h"

static int get_list(struct mo_sync_client *p, const char *cap,
                    const char *method, struct mo_json *out, struct mo_err *e)
{
    *out = (struct mo_json){"[]", 2};
    return mo_sync_client_can(p, cap)
               ? mo_sync_client_list(p, method, cap, out, e)
               : 0;
}

/* --- list ---------------------------------------------------------------- */

/* Lists the tools of one server now; a failure does not end the list. */
static void put_tools(struct mo_cli *c, struct mo_cmd_client *m,
                      const struct mo_config_mcp *s, struct mo_jw *w,
                      struct mo_buf *text)
{
    struct mo_json tools = {NULL, 0};
    struct mo_err e = {0};
    int rc = mo_cmd_client_connect(c, m, s, &e);

    if (rc == 0)
        rc = get_list(m->client, "tools", "tools/list", &tools, &e);
    if (w && m->needs_sign_in)
        mo_jw_member_cstr(w, "signIn", "needed");
    if (w) {
        mo_jw_key(w, rc < 0 ? "error" : "tools");
        if (rc < 0)
            mo_jw_cstr(w, e.msg);
        else
            mo_jw_raw(w, mo_json_text(tools));
    } else if (rc < 0) {
        mo_buf_printf(text, "    (%s)\n", e.msg);
    }
    mo_json_each_while (it, tools, !w) {
        mo_buf_puts(text, "    ");
        mo_cmd_put_name(text, mo_json_get(it.val, "name"));
        mo_buf_putc(text, '\n');
    }
    mo_sync_client_close(m->client);
    m->client = NULL;
}

/* Source and version of an installed server. */
static void say_source(struct mo_buf *b, struct mo_json entry)
{
    if (!entry.p)
        return;
    mo_buf_puts(b, " (");
    mo_cmd_put_name(b, mo_json_get(entry, "source"));
    mo_cmd_put_member(b, " ", mo_json_get(entry, "version"));
    mo_buf_putc(b, ')');
}

/* installed: of servers.lock.json. */
static void list_json(struct mo_cli *c, struct mo_cmd_client *m,
                      struct mo_json installed, struct mo_buf *b)
{
    const struct mo_config *cfg = m->cfg.now;
    mo_autobuf struct mo_buf where = {.max = MO_SYNC_CLIENT_TEXT_MAX};
    struct mo_jw w = mo_jw_array(b);

    for (size_t i = 0; i < cfg->mcp.n; i++) {
        const struct mo_config_mcp *s = &cfg->mcp.v[i];

        mo_jw_obj(&w);
        mo_jw_member_cstr(&w, "name", s->name);
        mo_jw_member_cstr(&w, "transport", mo_server_view_transport(s));
        mo_buf_reset(&where);
        mo_config_put_where(&where, s);
        mo_jw_member(&w, "where", mo_buf_view(&where));
        mo_jw_member_bool(&w, "enabled", s->enabled);
        mo_jw_copy(&w, mo_json_get(installed, s->name), "source");
        mo_jw_copy(&w, mo_json_get(installed, s->name), "version");
        mo_box_mounts_put(&w, cfg, s);
        if (mo_cli_has(c, "tools") && s->enabled)
            put_tools(c, m, s, &w, NULL);
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
}

static void list_text(struct mo_cli *c, struct mo_cmd_client *m,
                      struct mo_json installed, struct mo_buf *b)
{
    const struct mo_config *cfg = m->cfg.now;

    if (cfg->mcp.n == 0)
        mo_buf_puts(b, MO_CMD_NO_SERVERS);
    for (size_t i = 0; i < cfg->mcp.n; i++) {
        const struct mo_config_mcp *s = &cfg->mcp.v[i];

        mo_buf_printf(b, "%-20s %-6s ", s->name, mo_server_view_transport(s));
        mo_config_put_where(b, s);
        say_source(b, mo_json_get(installed, s->name));
        mo_buf_puts(b, s->enabled ? "\n" : " (disabled)\n");
        mo_box_mounts_print(b, cfg, s);
        if (mo_cli_has(c, "tools") && s->enabled)
            put_tools(c, m, s, NULL, b);
    }
}

int mo_run_mcp_list(struct mo_cli *c)
{
    mo_autoclient struct mo_cmd_client m = {.many = true};
    mo_autobuf struct mo_buf b = {.max = MO_SYNC_CLIENT_TEXT_MAX};
    mo_autobuf struct mo_buf lock = {.max = MO_PLACE_LOCK_MAX};
    struct mo_json installed;
    struct mo_err e = {0};
    int rc = mo_cmd_load(c, &m.cfg);

    if (rc)
        return rc;
    if (mo_place_read_lock(m.cfg.now, &lock, &installed, &e) < 0)
        (void)dprintf(c->err, "%s\n", e.msg);
    if (mo_cli_has(c, "json"))
        list_json(c, &m, installed, &b);
    else
        list_text(c, &m, installed, &b);
    return mo_cmd_print(c, &b);
}

/* --- test ---------------------------------------------------------------- */

static int need_server(struct mo_cli *c, struct mo_cmd_client *m)
{
    bool typed = mo_cli_has(c, "command") || mo_cli_has(c, "url");

    if (typed == (c->nargs > 0))
        return mo_cli_error(c, MO_EXIT_USAGE,
                            "needs a server's name, --command or --url");
    m->server = typed ? NULL : c->args[0];
    return mo_cmd_client_open(c, m);
}

struct tested {
    uint64_t opened_ms, listed_ms;
    size_t tools;
    struct mo_definition_notes notes;
    struct mo_err e;
};

static int test_client(struct mo_sync_client *p, struct tested *t)
{
    uint64_t start = mo_now_ns();
    struct mo_json v;
    int rc = get_list(p, "tools", "tools/list", &v, &t->e);

    if (rc == 0) {
        mo_autobuf struct mo_buf b = {.max = MO_SYNC_CLIENT_TEXT_MAX};

        t->tools = mo_json_len(v);
        (void)mo_definition_mend(MO_DEFINITION_TOOL, v, &b, &t->notes);
    }
    if (rc == 0 && !mo_sync_client_info(p)->modern)
        rc = mo_sync_client_call(p, "ping", mo_span(NULL, 0), &v, &t->e);
    t->listed_ms = (mo_now_ns() - start) / MO_MS;
    return rc;
}

static void put_server(struct mo_jw *w, const struct mo_conn_info *in)
{
    static const char *const eras[] = {"unknown", "legacy", "modern"};

    mo_jw_member_cstr(w, "protocolVersion", mo_mcp_version_text(in->version));
    mo_jw_member_cstr(w, "era",
                      eras[in->modern ? MO_ERA_MODERN : MO_ERA_LEGACY]);
    mo_jw_member_raw(w, "serverInfo",
                     in->server.p ? mo_json_text(in->server) : MO_SPAN("null"));
}

static void say_note(struct mo_buf *b, size_t n, const char *what,
                     const char *text)
{
    if (!n)
        return;
    mo_buf_printf(b, "warning: %zu tool%s %s for strict clients: ", n,
                  n == 1 ? "" : "s", what);
    mo_visible_text(b, mo_span_cstr(text));
    mo_buf_putc(b, '\n');
}

static int report_test(struct mo_cli *c, struct mo_cmd_client *m,
                       const struct tested *t)
{
    const struct mo_conn_info *in = mo_sync_client_info(m->client);
    const struct mo_conn_stats *s = mo_sync_client_stats(m->client);
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    struct mo_jw w;

    if (mo_cli_has(c, "json")) {
        mo_jw_init(&w, &b);
        mo_jw_obj(&w);
        mo_jw_member_bool(&w, "ok", true);
        put_server(&w, in);
        mo_jw_member_u64(&w, "tools", t->tools);
        mo_connect_test_put_notes(&w, &t->notes);
        mo_jw_member_u64(&w, "noise", s->noise);
        mo_jw_member_u64(&w, "openedMs", t->opened_ms);
        mo_jw_member_u64(&w, "listedMs", t->listed_ms);
        mo_jw_end(&w);
        return mo_cmd_print_json(c, &b);
    }
    mo_buf_puts(&b, "ok: ");
    mo_cmd_put_name(&b, mo_json_get(in->server, "name"));
    mo_buf_putc(&b, ' ');
    mo_cmd_put_name(&b, mo_json_get(in->server, "version"));
    mo_buf_printf(&b, " speaks %s, %zu tools, ready after %llu ms\n",
                  mo_mcp_version_text(in->version), t->tools,
                  (unsigned long long)t->opened_ms);
    say_note(&b, t->notes.nmended, "mended", t->notes.mended);
    say_note(&b, t->notes.nleft_out, "left out", t->notes.left_out);
    if (s->noise)
        mo_buf_printf(
            &b, "warning: %llu lines on its standard output are not JSON\n",
            (unsigned long long)s->noise);
    return mo_cli_print(c, &b);
}

int mo_run_mcp_test(struct mo_cli *c)
{
    mo_autoclient struct mo_cmd_client m = {0};
    uint64_t start = mo_now_ns();
    struct tested t = {0};
    int rc = need_server(c, &m);

    if (rc)
        return rc;
    t.opened_ms = (mo_now_ns() - start) / MO_MS;
    return test_client(m.client, &t) == 0
               ? report_test(c, &m, &t)
               : mo_cmd_client_error(c, &m, MO_EXIT_UNAVAIL, &t.e);
}

/* --- info ---------------------------------------------------------------- */

static const struct {
    const char *cap, *method, *key, *name;
} lists[] = {
    {"tools", "tools/list", "tools", "name"},
    {"prompts", "prompts/list", "prompts", "name"},
    {"resources", "resources/list", "resources", "uri"},
    {"resources", "resources/templates/list", "resourceTemplates",
     "uriTemplate"},
};

/* Issuer of the token and its expiry. */
static void put_sign_in(struct mo_jw *w, const struct mo_sync_client *p)
{
    const struct mo_sign_in *s = mo_sync_client_sign_in(p);
    const struct mo_token *k = s ? mo_sign_in_token(s) : NULL;
    char date[MO_ISO8601_MAX];

    if (!mo_sync_client_is_http(p))
        return;
    mo_jw_member_obj(w, "signIn");
    mo_jw_member_cstr(w, "state", k ? "signed in" : "not needed");
    if (k) {
        mo_jw_member_cstr(w, "issuer", k->issuer);
        mo_jw_member_cstr(w, "scope", k->scope);
        mo_jw_member_bool(w, "refreshable", k->refresh != NULL);
    }
    if (k && k->expires_ms) {
        mo_wall_format(k->expires_ms, date);
        mo_jw_member_cstr(w, "expiresAt", date);
    }
    mo_jw_end(w);
}

static void say_sign_in(struct mo_buf *b, const struct mo_sync_client *p)
{
    const struct mo_sign_in *s = mo_sync_client_sign_in(p);
    const struct mo_token *k = s ? mo_sign_in_token(s) : NULL;
    char date[MO_ISO8601_MAX];

    if (!k)
        return;
    mo_buf_printf(b, "signed in at %s", k->issuer);
    if (k->scope)
        mo_buf_printf(b, " for %s", k->scope);
    if (k->expires_ms) {
        mo_wall_format(k->expires_ms, date);
        mo_buf_printf(b, " until %s%s", date,
                      k->refresh ? ", then refreshed" : "");
    }
    mo_buf_putc(b, '\n');
}

static int info_json(struct mo_sync_client *p, struct mo_buf *b,
                     struct mo_err *e)
{
    const struct mo_conn_info *in = mo_sync_client_info(p);
    int rc = 0;
    struct mo_jw w = mo_jw_object(b);

    put_server(&w, in);
    put_sign_in(&w, p);
    mo_jw_member_raw(&w, "capabilities",
                     in->capabilities.p ? mo_json_text(in->capabilities)
                                        : MO_SPAN("{}"));
    mo_jw_member_raw(&w, "instructions",
                     in->instructions.p ? mo_json_text(in->instructions)
                                        : MO_SPAN("null"));
    for (size_t i = 0; i < MO_COUNT(lists) && rc == 0; i++) {
        struct mo_json v;

        if (!mo_sync_client_can(p, lists[i].cap))
            continue;
        rc = mo_sync_client_list(p, lists[i].method, lists[i].key, &v, e);
        mo_jw_member_raw(&w, lists[i].key,
                         rc == 0 ? mo_json_text(v) : MO_SPAN("null"));
    }
    mo_jw_end(&w);
    return rc;
}

static void put_names(struct mo_buf *b, struct mo_json items, const char *name)
{
    mo_json_each (it, items) {
        mo_buf_puts(b, "  ");
        mo_cmd_put_name(b, mo_json_get(it.val, name));
        mo_buf_putc(b, '\n');
    }
}

static int info_text(struct mo_sync_client *p, bool tty, struct mo_buf *b,
                     struct mo_err *e)
{
    const struct mo_conn_info *in = mo_sync_client_info(p);
    int rc = 0;

    mo_cmd_put_name(b, mo_json_get(in->server, "name"));
    mo_buf_putc(b, ' ');
    mo_cmd_put_name(b, mo_json_get(in->server, "version"));
    mo_buf_printf(b, ", MCP %s\n", mo_mcp_version_text(in->version));
    say_sign_in(b, p);
    if (in->instructions.p) {
        mo_cmd_put_text(b, in->instructions, tty);
        mo_buf_putc(b, '\n');
    }
    for (size_t i = 0; i < MO_COUNT(lists) && rc == 0; i++) {
        struct mo_json v;

        if (!mo_sync_client_can(p, lists[i].cap))
            continue;
        rc = mo_sync_client_list(p, lists[i].method, lists[i].key, &v, e);
        if (rc == 0) {
            mo_buf_printf(b, "%s (%zu)\n", lists[i].key, mo_json_len(v));
            put_names(b, v, lists[i].name);
        }
    }
    return rc;
}

int mo_run_mcp_info(struct mo_cli *c)
{
    mo_autoclient struct mo_cmd_client m = {0};
    mo_autobuf struct mo_buf b = {.max = MO_SYNC_CLIENT_TEXT_MAX};
    struct mo_err e = {0};
    int rc = need_server(c, &m);

    if (rc)
        return rc;
    rc = mo_cli_has(c, "json")
             ? info_json(m.client, &b, &e)
             : info_text(m.client, isatty(c->out) == 1, &b, &e);
    if (rc < 0)
        return mo_cmd_client_error(c, &m, MO_EXIT_UNAVAIL, &e);
    return mo_cmd_print(c, &b);
}
