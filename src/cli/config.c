/* config check, allow, show, schema, docs - checks and prints the
 * configuration, and confirms files of the working directory. */
#include "config/doc.h"

#include "audit/audit_config.h"
#include "cli/cmd.h"

int mo_run_config_check(struct mo_cli *c)
{
    mo_autoconfig struct mo_cmd_config cfg = {.now = NULL};
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    int rc = mo_cmd_load(c, &cfg);

    if (rc)
        return rc;
    if (cfg.now->file)
        mo_buf_printf(&b, "%s: ok, %zu MCP server%s\n", cfg.now->file,
                      cfg.now->mcp.n, cfg.now->mcp.n == 1 ? "" : "s");
    else
        mo_buf_puts(&b, "ok: no config file, defaults are used\n");
    return mo_cli_print(c, &b);
}

struct allowing {
    const struct mo_config *cfg;
    const struct mo_own_user *user;
    struct mo_buf told;
};

static int record_allowed(void *ctx, const char *path, struct mo_span text,
                          struct mo_err *e)
{
    struct allowing *a = ctx;
    int rc;

    mo_own_user_begin(a->user);
    rc = mo_audit_confirmed_now(a->cfg, path, text, e);
    mo_own_user_end(a->user);
    if (rc < 0)
        return mo_wrap(e, "not done, because the audit log cannot be written");
    mo_buf_printf(&a->told, "%s: confirmed as it is now\n", path);
    return 0;
}

int mo_run_config_allow(struct mo_cli *c)
{
    const struct mo_config_input in = {.environ = c->environ};
    mo_autoconfig struct mo_cmd_config cfg = {.now = NULL};
    struct allowing a = {.told = {.max = MO_CMD_TEXT_MAX}};
    struct mo_err e = {0};
    int rc;

    if (mo_cmd_open_own(c, &cfg, &e) < 0 ||
        mo_own_user_stay(&cfg.user, cfg.now, &e) < 0)
        return mo_cli_error(c, MO_EXIT_CONFIG, "%s", e.msg);
    a.cfg = cfg.now;
    a.user = &cfg.user;
    if (mo_config_allow(&in, record_allowed, &a, &e) < 0)
        rc = mo_cli_error(c, MO_EXIT_CONFIG, "%s", e.msg);
    else if (a.told.len == 0)
        rc = mo_cli_error(c, MO_EXIT_CONFIG,
                          "this directory has no " MO_CONFIG_FILE
                          " and no .env");
    else
        rc = mo_cli_print(c, &a.told);
    mo_buf_fini(&a.told);
    return rc;
}

int mo_run_config_show(struct mo_cli *c)
{
    mo_autoconfig struct mo_cmd_config cfg = {.now = NULL};
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    int rc = mo_cmd_load(c, &cfg);

    if (rc)
        return rc;
    if (mo_cli_has(c, "json"))
        mo_config_show_json(cfg.now, mo_cli_has(c, "all"), &b);
    else
        mo_config_show(cfg.now, mo_cli_has(c, "all"), &b);
    return mo_cmd_print(c, &b);
}

int mo_run_config_schema(struct mo_cli *c)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    mo_config_schema(&b);
    return mo_cmd_print_json(c, &b);
}

int mo_run_config_docs(struct mo_cli *c)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    mo_config_docs(&b);
    return mo_cli_print(c, &b);
}
