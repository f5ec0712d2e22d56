/* config check, show, schema, docs - checks and prints the configuration. */
#include "config/doc.h"

#include <stdio.h>

#include "cli/cmd.h"

/* --- check --------------------------------------------------------------- */

static int run_check(struct mo_cli *c)
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

const struct mo_cmd mo_cmd_config_check = {
    .name = "config check",
    .summary = "Check the configuration and report every error",
    .args = "[FILE]",
    .max_args = 1,
    .words = "@file",
    .text = "Reads the configuration as serve does: environment, .env, file. "
            "Every error is shown with file, line and column.",
    .example = "config check",
    .example_says = "checks the file that serve would use in this directory",
    .run = run_check,
};

/* --- show ---------------------------------------------------------------- */

static int run_show(struct mo_cli *c)
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

static const struct mo_opt show_opts[] = {
    {.name = "all",
     .letter = 'a',
     .doc = "Include keys that have their default value"},
    MO_OPT_JSON,
};

const struct mo_cmd mo_cmd_config_show = {
    .name = "config show",
    .summary = "Print every value in effect and where it comes from",
    .text = "API keys and passwords are shown as ***; references such as "
            "${env:NAME} are not resolved.",
    .example = "config show --json",
    .example_says = "prints key, value and source of everything as JSON",
    .opts = show_opts,
    .nopts = MO_COUNT(show_opts),
    .run = run_show,
};

/* --- schema -------------------------------------------------------------- */

static int run_schema(struct mo_cli *c)
{
    struct mo_buf b;

    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    mo_config_schema(&b);
    return mo_cmd_print_json(c, &b);
}

const struct mo_cmd mo_cmd_config_schema = {
    .name = "config schema",
    .summary = "Print the JSON Schema of the configuration file",
    .text = "Editors use the schema to complete and check the file: put its "
            "path into the \"$schema\" key.",
    .example = "config schema > mcp-orchestrator.schema.json",
    .example_says = "writes the schema to a file",
    .run = run_schema,
};

/* --- docs ---------------------------------------------------------------- */

static int run_docs(struct mo_cli *c)
{
    struct mo_buf b;

    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    mo_config_docs(&b);
    return mo_cli_print(c, &b);
}

const struct mo_cmd mo_cmd_config_docs = {
    .name = "config docs",
    .summary = "Print docs/configuration.md",
    .example = "config docs > docs/configuration.md",
    .example_says = "updates the documentation",
    .run = run_docs,
    .flags = MO_CLI_HIDDEN,
};
