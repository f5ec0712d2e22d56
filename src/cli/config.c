/* config check, allow, show, schema, docs - checks and prints the
 * configuration, and confirms files of the working directory. */
#include "config/doc.h"

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

static void say_allowed(void *ctx, const char *path)
{
    struct mo_buf *b = ctx;

    mo_buf_printf(b, "%s: confirmed as it is now\n", path);
}

int mo_run_config_allow(struct mo_cli *c)
{
    const struct mo_config_input in = {.environ = c->environ};
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    struct mo_err e = {0};

    if (mo_config_allow(&in, say_allowed, &b, &e) < 0)
        return mo_cli_error(c, MO_EXIT_CONFIG, "%s", e.msg);
    if (b.len == 0)
        return mo_cli_error(c, MO_EXIT_CONFIG,
                            "this directory has no " MO_CONFIG_FILE
                            " and no .env");
    return mo_cli_print(c, &b);
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
