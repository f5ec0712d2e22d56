/* help, completion, version - explains all commands, one group or one command;
 * prints manual pages, completion scripts and the version. */
#include "cli/help_text.h"

#include "base/build.h"
#include "cli/cmd.h"

static int print_topic(struct mo_cli *c, struct mo_span name, struct mo_buf *b)
{
    const struct mo_cmd *cmd = mo_cli_find(c->table, name);
    const char *best;

    if (cmd && mo_cli_has(c, "man"))
        mo_man_command(c->table, cmd, b);
    else if (cmd)
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

static int write_pages(struct mo_cli *c)
{
    struct mo_err e = {0};

    if (mo_man_write(c->table, mo_cli_get(c, "man-pages"), &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    return MO_EXIT_OK;
}

int mo_run_help(struct mo_cli *c)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    mo_autobuf struct mo_buf name = {.max = 256};
    int rc = 0;

    if (mo_cli_has(c, "man-pages"))
        return write_pages(c);
    if (c->nargs == 0 && mo_cli_has(c, "man"))
        mo_man_program(c->table, &b);
    else if (c->nargs == 0)
        mo_help_overview(c->table, NULL, &b);
    else
        rc = print_topic(c, mo_cli_join(c, &name), &b);
    return rc ? rc : mo_cli_print(c, &b);
}

int mo_run_completion(struct mo_cli *c)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    if (mo_help_completion(c->table, c->args[0], &b) != MO_ENOTFOUND)
        return mo_cli_print(c, &b);
    return mo_cli_error(c, MO_EXIT_USAGE,
                        "no completion for '%.40s'; choose bash, zsh or fish",
                        c->args[0]);
}

static void put_version(struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "name", MO_PROGRAM);
    mo_jw_member_cstr(&w, "version", MO_VERSION);
    mo_jw_member_cstr(&w, "arch", MO_BUILD_ARCH);
    mo_jw_member_cstr(&w, "build", MO_BUILD_KIND);
    mo_jw_member_cstr(&w, "compiler", __VERSION__);
    mo_jw_end(&w);
}

int mo_run_version(struct mo_cli *c)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    if (mo_cli_has(c, "json"))
        put_version(&b);
    else
        mo_buf_puts(&b, MO_PROGRAM " " MO_VERSION " (" MO_BUILD_ARCH
                                   ", " MO_BUILD_KIND ")\n");
    return mo_cmd_print(c, &b);
}
