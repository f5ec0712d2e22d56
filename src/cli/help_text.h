/* help_text.h - help, manual pages and shell completions from the command
 * table.
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

/* Exit codes and their meaning; the last row has no text. */
struct mo_help_exit {
    int code;
    const char *says;
};
extern const struct mo_help_exit mo_help_exits[];

/* Manual pages as roff: mcp-orchestrator(1), one for each command
 * (mcp-orchestrator-mcp-add(1)), and mcp-orchestrator.json(5). */
void mo_man_program(const struct mo_cli_table *t, struct mo_buf *b);
void mo_man_command(const struct mo_cli_table *t, const struct mo_cmd *cmd,
                    struct mo_buf *b);
void mo_man_config(struct mo_buf *b);
/* Writes all pages into a directory, with mode 0600. */
int mo_man_write(const struct mo_cli_table *t, const char *dir,
                 struct mo_err *e);

/* "bash", "zsh", "fish"; MO_ENOTFOUND for any other. */
int mo_help_completion(const struct mo_cli_table *t, const char *shell,
                       struct mo_buf *b);

#endif
