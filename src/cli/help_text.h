/* help_text.h - what can be said about the command table.
 *
 * Four readings of one table: --help for a person, a man page, and shell
 * completions. All write text into the caller's buffer; errors are the
 * buffer's own sticky ones. Hidden commands and options are in none. */
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

/* Exit codes, documented where they are used. */
struct mo_help_exit {
    int code;
    const char *says;
};
extern const struct mo_help_exit mo_help_exits[];
extern const size_t mo_help_nexits;

#endif
