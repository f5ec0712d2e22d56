/* mcp uninstall, verify - removes and checks installed MCP servers. */
#include <stdio.h>
#include <unistd.h>

#include "cli/mcp_commands/install.h"
#include "cli/mcp_commands/mcp.h"
#include "connect/server_link.h"
#include "servers/gateway_setup.h"

static struct mo_json find_entry(struct mo_json servers, const char *name)
{
    return mo_json_find(servers, mo_span_cstr(name));
}

static int not_installed(struct mo_cli *c, const char *name)
{
    return mo_cli_error(c, MO_EXIT_CONFIG,
                        "'%.100s' was not installed by `mcp install`; `mcp "
                        "remove` removes other servers",
                        name);
}

/* --- uninstall ------------------------------------------------------------ */

/* The row of the removal, with the integrity, before it happens. */
static int record(struct mo_cli *c, const struct mo_cmd_config *cfg,
                  struct mo_json entry)
{
    static const char *const keys[] = {"source", "registry", "version",
                                       "integrity"};
    mo_autobuf struct mo_buf b = {.max = 65536};
    struct mo_jw w = mo_jw_object(&b);
    struct mo_err e = {0};
    int rc;

    for (size_t i = 0; i < MO_COUNT(keys); i++)
        mo_jw_copy(&w, entry, keys[i]);
    mo_jw_end(&w);
    mo_own_user_begin(&cfg->user);
    rc = mo_cmd_record_entry(c, cfg->now, c->args[0], mo_buf_view(&b), &e);
    mo_own_user_end(&cfg->user);
    return rc < 0 ? mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg) : 0;
}

static int remove_entry(struct mo_cli *c, struct mo_cmd_install *k)
{
    const char *path[] = {"mcpServers", c->args[0], NULL};
    struct mo_cmd_edit *m = &k->edit;
    int rc = mo_cmd_edit_open(c, m);

    if (rc)
        return rc;
    m->server = c->args[0];
    m->is_recorded = true;
    if (mo_server_link_find(m->cfg.now, mo_span_cstr(m->server)))
        rc = mo_cmd_edit_change(c, m, path, mo_span(NULL, 0), NULL);
    mo_file_edit_close(&m->file);
    mo_own_user_begin(&m->cfg.user);
    if (rc == 0)
        mo_gateway_setup_forget(m->cfg.now, m->server);
    mo_own_user_end(&m->cfg.user);
    return rc;
}

static int remove_files(struct mo_cli *c, struct mo_cmd_install *k)
{
    struct mo_err e = {0};
    int rc;

    mo_cmd_install_begin(k);
    rc = mo_place_open(&k->place, k->edit.cfg.now, &e);
    if (rc == 0)
        rc = mo_place_remove(&k->place, c->args[0], NULL, &e);
    if (rc == 0)
        rc = mo_place_pin(&k->place, c->args[0], mo_span(NULL, 0), &e);
    if (rc == 0)
        (void)rmdir(k->place.dir); /* the last one */
    mo_cmd_install_end(k);
    if (rc < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    (void)dprintf(c->out, "uninstalled '%s'\n", c->args[0]);
    return 0;
}

int mo_run_mcp_uninstall(struct mo_cli *c)
{
    MO_CLEANUP(mo_cmd_install_fini) struct mo_cmd_install k = MO_CMD_INSTALL;
    mo_autobuf struct mo_buf text = {.max = MO_PLACE_LOCK_MAX};
    struct mo_json servers;
    struct mo_err e = {0};
    int rc = mo_cmd_install_load(c, &k);

    if (rc)
        return rc;
    if (mo_place_read_lock(k.edit.cfg.now, &text, &servers, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    if (!find_entry(servers, c->args[0]).p)
        return not_installed(c, c->args[0]);
    rc = record(c, &k.edit.cfg, find_entry(servers, c->args[0]));
    if (rc == 0)
        rc = remove_entry(c, &k);
    return rc ? rc : remove_files(c, &k);
}

/* --- verify --------------------------------------------------------------- */

/* True if the files of the server are as they were. */
static bool verify(const struct mo_config *cfg, struct mo_json name,
                   struct mo_json entry, struct mo_jw *w, struct mo_buf *b)
{
    struct mo_err e = {0};
    bool good = mo_place_verify(cfg, entry, &e) == 0;

    if (w) {
        mo_jw_obj(w);
        mo_jw_member_raw(w, "name", mo_json_text(name));
        mo_jw_member_bool(w, "ok", good);
        mo_jw_copy(w, entry, "source");
        mo_jw_copy(w, entry, "version");
        if (!good)
            mo_jw_member_cstr(w, "problem", e.msg);
        mo_jw_end(w);
        return good;
    }
    mo_cmd_put_name(b, name);
    mo_buf_puts(b, good ? ": unchanged, " : ": ");
    if (good)
        mo_cmd_put_name(b, mo_json_get(entry, "source"));
    else
        mo_buf_puts(b, e.msg);
    mo_buf_putc(b, '\n');
    return good;
}

static int print_verified(struct mo_cli *c, const struct mo_config *cfg,
                          struct mo_json servers)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    bool json = mo_cli_has(c, "json"), good = true;
    struct mo_jw w;
    int rc;

    mo_jw_init(&w, &b);
    if (json)
        mo_jw_arr(&w);
    mo_json_each (it, servers) {
        if (c->nargs && !mo_json_str_eq(it.key, mo_span_cstr(c->args[0])))
            continue;
        if (!verify(cfg, it.key, it.val, json ? &w : NULL, &b))
            good = false;
    }
    if (json)
        mo_jw_end(&w);
    else if (mo_json_len(servers) == 0)
        mo_buf_puts(&b, "no server is installed\n");
    rc = mo_cmd_print(c, &b);
    return rc ? rc : good ? MO_EXIT_OK : MO_EXIT_FAIL;
}

int mo_run_mcp_verify(struct mo_cli *c)
{
    mo_autoconfig struct mo_cmd_config cfg = {.now = NULL};
    mo_autobuf struct mo_buf text = {.max = MO_PLACE_LOCK_MAX};
    struct mo_json servers;
    struct mo_err e = {0};
    int rc = mo_cmd_load(c, &cfg);

    if (rc)
        return rc;
    if (mo_place_read_lock(cfg.now, &text, &servers, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    if (c->nargs && !find_entry(servers, c->args[0]).p)
        return not_installed(c, c->args[0]);
    return print_verified(c, cfg.now, servers);
}
