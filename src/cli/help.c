/* help - explains all commands, one group or one command; prints the man
 * page. */
#include "cli/help_text.h"

#include "cli/cmd.h"

/* "config" "check" -> "config check" */
static const char *join_topic(const struct mo_cli *c, struct mo_buf *name)
{
    for (size_t i = 0; i < c->nargs; i++)
        mo_buf_printf(name, "%s%s", i ? " " : "", c->args[i]);
    return mo_buf_cstr(name);
}

static int print_topic(struct mo_cli *c, struct mo_span name, struct mo_buf *b)
{
    const struct mo_cmd *cmd = mo_cli_find(c->table, name);
    const char *best;

    if (cmd)
        mo_help_command(c->table, cmd, b);
    else if (mo_cli_is_group(c->table, name))
        mo_help_overview(c->table, c->args[0], b);
    if (b->len || mo_buf_err(b))
        return 0;
    best = mo_cli_nearest(c->table, name);
    return mo_cli_error(c, MO_EXIT_USAGE, "there is no command '%.*s'%s%s%s",
                        (int)mo_span_head(name, 60).n, name.p,
                        best ? "; did you mean '" : "", best ? best : "",
                        best ? "'?" : "");
}

int mo_run_help(struct mo_cli *c)
{
    struct mo_buf b, name;
    int rc = 0;

    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    mo_buf_init(&name, 256);
    if (mo_cli_has(c, "man"))
        mo_help_man(c->table, &b);
    else if (c->nargs == 0)
        mo_help_overview(c->table, NULL, &b);
    else
        rc = print_topic(c, mo_span_cstr(join_topic(c, &name)), &b);
    mo_buf_fini(&name);
    if (rc == 0)
        return mo_cli_print(c, &b);
    mo_buf_fini(&b);
    return rc;
}
