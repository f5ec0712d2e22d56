/* mcp add, remove, enable, disable - changes the configured MCP servers. */
#include <stdio.h>
#include <strings.h>

#include "cli/mcp_commands/edit.h"
#include "cli/mcp_commands/mcp.h"
#include "config/reference.h"
#include "connect/server_link.h"
#include "install/place.h"
#include "servers/gateway_setup.h"

#define SERVER_MAX ((size_t)256 * 1024) /* bytes of one server's JSON */

int mo_cmd_edit_open(struct mo_cli *c, struct mo_cmd_edit *m)
{
    struct mo_config_report rep = {.kept = 0};
    struct mo_err e = {0};
    int rc = 0;

    if (!m->cfg.now) {
        rc = mo_cmd_load(c, &m->cfg);
    } else if (mo_config_reload(&m->cfg.h, &rep, &e) < 0) {
        mo_cmd_print_report(c, &rep);
        rc = mo_cli_error(c, MO_EXIT_CONFIG, "%s", e.msg);
    }
    m->cfg.now = m->cfg.h.now;
    if (rc == 0 && mo_file_edit_open(&m->file, &m->cfg.h, &e) < 0)
        rc = mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    return rc;
}

void mo_cmd_edit_close(struct mo_cmd_edit *m)
{
    mo_file_edit_close(&m->file);
    mo_cmd_close(&m->cfg);
}

int mo_cmd_edit_save(struct mo_cli *c, struct mo_cmd_edit *m)
{
    struct mo_config_report rep;
    struct mo_err e = {0};
    int rc = 0;

    mo_own_user_begin(&m->cfg.user);
    if (!m->is_recorded)
        rc = mo_cmd_record(c, m->cfg.now, m->server, &e);
    mo_own_user_end(&m->cfg.user);
    if (rc < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    rc = mo_file_edit_save(&m->file, &rep, &e);
    mo_cmd_print_report(c, &rep);
    if (rc == MO_EINVAL && rep.errors)
        return mo_cli_error(
            c, MO_EXIT_CONFIG,
            "%s was not changed: the configuration would be invalid",
            m->file.path);
    return rc < 0 ? mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg) : 0;
}

/* --- add ----------------------------------------------------------------- */

/* NAME=VALUE or Name: value. */
static bool split_pair(const char *word, char mark, struct mo_span *name,
                       struct mo_span *value)
{
    *value = mo_span_cstr(word);
    *name = mo_span_trim(mo_span_cut(value, mark));
    *value = value->p ? mo_span_trim(*value) : *value;
    return name->n > 0 && value->p;
}

/* True for a literal key: other users can read it with ps. */
static bool is_typed_secret(struct mo_span name, struct mo_span value)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "%.*s", (int)mo_span_head(name, 120).n,
                   name.p);
    return !mo_reference_any(value) &&
           (mo_dotenv_secret_name(text) ||
            strcasecmp(text, "authorization") == 0 ||
            strcasecmp(text, "cookie") == 0);
}

int mo_cmd_pair(struct mo_cli *c, const char *option, const char *word,
                char mark, struct mo_span *name, struct mo_span *value)
{
    if (!split_pair(word, mark, name, value))
        return mo_cli_error(c, MO_EXIT_USAGE, "--%s is %s", option,
                            mark == '=' ? "NAME=VALUE" : "'Name: value'");
    if (is_typed_secret(*name, *value))
        return mo_cli_error(
            c, MO_EXIT_USAGE,
            "%.*s sounds like a secret, and others can read a command "
            "line: `" MO_PROGRAM " secrets set NAME`, then '${secret:NAME}'"
            " here",
            (int)name->n, name->p);
    return 0;
}

static int put_pairs(struct mo_cli *c, struct mo_jw *w, const char *option,
                     const char *key, char mark)
{
    bool any = false;

    for (size_t i = 0; i < c->ngot; i++) {
        struct mo_span name, value;
        int rc;

        if (strcmp(c->got[i].opt->name, option) != 0)
            continue;
        rc = mo_cmd_pair(c, option, c->got[i].value, mark, &name, &value);
        if (rc)
            return rc;
        if (!any)
            mo_jw_member_obj(w, key);
        any = true;
        mo_jw_key_span(w, name);
        mo_jw_str(w, value);
    }
    if (any)
        mo_jw_end(w);
    return 0;
}

static void put_words(struct mo_jw *w, const char *const *v, size_t n)
{
    mo_jw_member_cstr(w, "command", v[0]);
    if (n < 2)
        return;
    mo_jw_member_arr(w, "args");
    for (size_t i = 1; i < n; i++)
        mo_jw_cstr(w, v[i]);
    mo_jw_end(w);
}

static int put_command(struct mo_cli *c, struct mo_jw *w)
{
    const char *line = mo_cli_get(c, "command");
    const char **v;
    struct mo_err e = {0};
    mo_autoarena struct mo_arena a = {.cap = SERVER_MAX};
    size_t n = 0;

    if (c->nargs > 1)
        put_words(w, c->args + 1, c->nargs - 1);
    if (!line)
        return 0;
    if (mo_sync_client_words(&a, line, &v, &n, &e) < 0)
        return mo_cli_error(c, MO_EXIT_USAGE, "--command: %s", e.msg);
    put_words(w, v, n);
    return 0;
}

static int put_server(struct mo_cli *c, struct mo_jw *w)
{
    static const char *const texts[] = {"url", "image", "transport", "cwd",
                                        "description"};
    int rc;

    mo_jw_obj(w);
    rc = put_command(c, w);
    if (rc)
        return rc;
    for (size_t i = 0; i < MO_COUNT(texts); i++)
        if (mo_cli_has(c, texts[i]))
            mo_jw_member_cstr(w, texts[i], mo_cli_get(c, texts[i]));
    rc = put_pairs(c, w, "env", "env", '=');
    if (rc == 0)
        rc = put_pairs(c, w, "header", "headers", ':');
    if (mo_cli_has(c, "disabled"))
        mo_jw_member_bool(w, "enabled", false);
    if (rc == 0)
        mo_jw_end(w);
    return rc;
}

/* Tests the server with the file as it would be saved. The file lock is not
 * held meanwhile. */
static int test_server(struct mo_cli *c, struct mo_span json)
{
    const char *path[] = {"mcpServers", c->args[0], NULL};
    struct mo_config_report rep = {.kept = 0};
    struct mo_config_holder h = {.now = NULL};
    mo_autoedit struct mo_cmd_edit m = MO_CMD_EDIT;
    struct mo_err e = {0};
    int rc = mo_cmd_edit_open(c, &m);

    if (rc)
        return rc;
    if (mo_file_edit_set(&m.file, path, json, &e) < 0 ||
        mo_file_edit_try(&m.file, &h, &rep, &e) < 0) {
        mo_cmd_print_report(c, &rep);
        return mo_cli_error(c, MO_EXIT_CONFIG, "%s", e.msg);
    }
    mo_close_fd(&m.file.lock);
    rc = mo_cmd_works(c, h.now, c->args[0]);
    mo_config_close(&h);
    return rc;
}

int mo_cmd_edit_change(struct mo_cli *c, struct mo_cmd_edit *m,
                       const char *const *path, struct mo_span value,
                       const char *done)
{
    struct mo_err e = {0};
    int rc;

    if (mo_file_edit_set(&m->file, path, value, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    rc = mo_cmd_edit_save(c, m);
    if (rc || !done)
        return rc;
    (void)dprintf(c->out, "%s '%s' in %s", done, m->server, m->file.path);
    if (m->file.stamp.there)
        (void)dprintf(c->out, "; the old file is %s.bak", m->file.path);
    (void)dprintf(c->out, "\n");
    return 0;
}

static int add_server(struct mo_cli *c, struct mo_span json)
{
    const char *path[] = {"mcpServers", c->args[0], NULL};
    mo_autoedit struct mo_cmd_edit m = MO_CMD_EDIT;
    int rc = mo_cmd_edit_open(c, &m);
    bool there;

    if (rc)
        return rc;
    m.server = c->args[0];
    there = mo_server_link_find(m.cfg.now, mo_span_cstr(c->args[0])) != NULL;
    if (there && !mo_cli_has(c, "replace"))
        return mo_cli_error(
            c, MO_EXIT_FAIL,
            "the server '%s' exists in %s already; --replace overwrites it",
            c->args[0], m.file.path);
    return mo_cmd_edit_change(c, &m, path, json, there ? "replaced" : "added");
}

int mo_run_mcp_add(struct mo_cli *c)
{
    mo_autobuf struct mo_buf b = {.max = SERVER_MAX};
    struct mo_jw w;
    int kinds = mo_cli_has(c, "command") + mo_cli_has(c, "url") +
                mo_cli_has(c, "image") + (c->nargs > 1);
    int rc;

    if (kinds != 1)
        return mo_cli_error(
            c, MO_EXIT_USAGE,
            "needs one of --command, --url, --image, or a command after --");
    mo_jw_init(&w, &b);
    rc = put_server(c, &w);
    if (rc == 0 && mo_buf_err(&b))
        rc = mo_cli_error(c, MO_EXIT_USAGE, "the server's texts are too long");
    if (rc == 0 && mo_cli_has(c, "test"))
        rc = test_server(c, mo_buf_view(&b));
    return rc ? rc : add_server(c, mo_buf_view(&b));
}

/* --- remove, enable, disable --------------------------------------------- */

/* Opens the file and finds the server. */
static int open_for_server(struct mo_cli *c, struct mo_cmd_edit *m,
                           const struct mo_config_mcp **out)
{
    int rc = mo_cmd_edit_open(c, m);

    if (rc)
        return rc;
    m->server = c->args[0];
    *out = mo_server_link_find(m->cfg.now, mo_span_cstr(c->args[0]));
    if (*out)
        return 0;
    return mo_cli_error(c, MO_EXIT_CONFIG,
                        "there is no server '%.100s' in %s; see `mcp list`",
                        c->args[0], m->file.path);
}

static bool is_installed(const struct mo_config *cfg, const char *name)
{
    mo_autobuf struct mo_buf lock = {.max = MO_PLACE_LOCK_MAX};
    struct mo_json servers;

    return mo_place_read_lock(cfg, &lock, &servers, NULL) == 0 &&
           mo_json_find(servers, mo_span_cstr(name)).p;
}

int mo_run_mcp_remove(struct mo_cli *c)
{
    const char *path[] = {"mcpServers", c->args[0], NULL};
    const struct mo_config_mcp *s;
    mo_autoedit struct mo_cmd_edit m = MO_CMD_EDIT;
    int rc = open_for_server(c, &m, &s);

    if (rc == 0)
        rc = mo_cmd_edit_change(c, &m, path, mo_span(NULL, 0), "removed");
    mo_own_user_begin(&m.cfg.user);
    if (rc == 0)
        mo_gateway_setup_forget(m.cfg.now, c->args[0]);
    mo_own_user_end(&m.cfg.user);
    if (rc == 0 && is_installed(m.cfg.now, c->args[0]))
        (void)dprintf(c->out,
                      "its files stay; `" MO_PROGRAM " mcp uninstall %s` "
                      "removes them\n",
                      c->args[0]);
    return rc;
}

static int set_enabled(struct mo_cli *c, bool on)
{
    const char *path[] = {"mcpServers", c->args[0], "enabled", NULL};
    const char *word = on ? "enabled" : "disabled";
    const struct mo_config_mcp *s;
    mo_autoedit struct mo_cmd_edit m = MO_CMD_EDIT;
    int rc = open_for_server(c, &m, &s);

    if (rc)
        return rc;
    if (s->enabled != on)
        return mo_cmd_edit_change(
            c, &m, path, on ? MO_SPAN("true") : MO_SPAN("false"), word);
    (void)dprintf(c->out, "'%s' is %s already\n", s->name, word);
    return 0;
}

int mo_run_mcp_enable(struct mo_cli *c)
{
    return set_enabled(c, true);
}

int mo_run_mcp_disable(struct mo_cli *c)
{
    return set_enabled(c, false);
}
