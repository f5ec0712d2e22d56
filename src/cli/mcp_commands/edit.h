/* edit.h - what the commands share that change the configured servers. */
#ifndef MO_CLI_MCP_COMMANDS_EDIT_H
#define MO_CLI_MCP_COMMANDS_EDIT_H

#include "cli/cmd.h"
#include "config/file_edit.h"

struct mo_cmd_edit {
    struct mo_cmd_flags flags;
    struct mo_config_holder h;
    struct mo_file_edit file;
};

/* 0, or an exit code: everything is said on stderr, nothing is to be closed. */
int mo_cmd_edit_open(struct mo_cli *c, struct mo_cmd_edit *m);
void mo_cmd_edit_close(struct mo_cmd_edit *m);

/* Check and write; 0 or an exit code. */
int mo_cmd_edit_save(struct mo_cli *c, struct mo_cmd_edit *m);

/* Connect to one of them, enabled or not; 0 or an exit code, and the reason is
 * said (health.c). */
int mo_cmd_works(struct mo_cli *c, const struct mo_config *cfg,
                 const char *server);

#endif
