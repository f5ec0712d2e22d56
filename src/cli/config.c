/* config check, show, schema, docs - checks and prints the configuration. */
#include "config/doc.h"

#include <stdio.h>

#include "cli/cmd.h"

/* --- check --------------------------------------------------------------- */

int mo_run_config_check(struct mo_cli *c)
{
    struct mo_config_holder h;
    struct mo_cmd_flags flags;
    struct mo_buf b;
    int rc = mo_cmd_load(c, &flags, &h);

    if (rc)
        return rc;
    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    if (h.now->file)
        mo_buf_printf(&b, "%s: ok, %zu MCP server%s\n", h.now->file,
                      h.now->mcp.n, h.now->mcp.n == 1 ? "" : "s");
    else
        mo_buf_puts(&b, "ok: no config file, defaults are used\n");
    mo_config_close(&h);
    return mo_cli_print(c, &b);
}

/* --- show ---------------------------------------------------------------- */

int mo_run_config_show(struct mo_cli *c)
{
    struct mo_config_holder h;
    struct mo_cmd_flags flags;
    bool json = mo_cli_has(c, "json"), all = mo_cli_has(c, "all");
    struct mo_buf b;
    int rc = mo_cmd_load(c, &flags, &h);

    if (rc)
        return rc;
    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    if (json)
        mo_config_show_json(h.now, all, &b);
    else
        mo_config_show(h.now, all, &b);
    mo_config_close(&h);
    return json ? mo_cmd_print_json(c, &b) : mo_cli_print(c, &b);
}

/* --- schema -------------------------------------------------------------- */

int mo_run_config_schema(struct mo_cli *c)
{
    struct mo_buf b;

    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    mo_config_schema(&b);
    return mo_cmd_print_json(c, &b);
}

/* --- docs ---------------------------------------------------------------- */

int mo_run_config_docs(struct mo_cli *c)
{
    struct mo_buf b;

    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    mo_config_docs(&b);
    return mo_cli_print(c, &b);
}
