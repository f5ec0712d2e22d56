/* completion - prints shell completion scripts, built from the command
 * table. */
#include "cli/cmd.h"
#include "cli/help_text.h"

int mo_run_completion(struct mo_cli *c)
{
    struct mo_buf b;
    int rc;

    mo_buf_init(&b, MO_CMD_TEXT_MAX);
    rc = mo_help_completion(c->table, c->args[0], &b);
    if (rc != MO_ENOTFOUND)
        return mo_cli_print(c, &b);
    mo_buf_fini(&b);
    return mo_cli_error(c, MO_EXIT_USAGE,
                        "no completion for '%.40s'; choose bash, zsh or fish",
                        c->args[0]);
}
