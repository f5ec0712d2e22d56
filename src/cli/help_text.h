/* help_text.h - help, man page and shell completions from the command table.
 *
 * All functions write into the buffer of the caller; errors are the sticky
 * errors of the buffer. Hidden commands and options are left out. */
#ifndef MO_CLI_HELP_TEXT_H
#define MO_CLI_HELP_TEXT_H

#include "cli/cli.h"

/* All commands, or those of one group ("config"). */
void mo_help_overview(const struct mo_cli_table *t, const char *group,
                      struct mo_buf *b);
void mo_help_command(const struct mo_cli_table *t, const struct mo_cmd *cmd,
                     struct mo_buf *b);

void mo_help_man(const struct mo_cli_table *t, struct mo_buf *b); /* roff */

/* "bash", "zsh", "fish"; MO_ENOTFOUND for any other. */
int mo_help_completion(const struct mo_cli_table *t, const char *shell,
                       struct mo_buf *b);

#endif
