/* edit.h - helpers of the commands that change the configured servers. */
#ifndef MO_CLI_MCP_COMMANDS_EDIT_H
#define MO_CLI_MCP_COMMANDS_EDIT_H

#include "cli/cmd.h"
#include "config/file_edit.h"

struct mo_cmd_edit {
    struct mo_cmd_config cfg;
    struct mo_file_edit file;
};

/* Returns 0, or an exit code: the error was printed. Closed at the end of its
 * scope: mo_autoedit struct mo_cmd_edit m = MO_CMD_EDIT; */
int mo_cmd_edit_open(struct mo_cli *c, struct mo_cmd_edit *m);
void mo_cmd_edit_close(struct mo_cmd_edit *m);
#define mo_autoedit MO_CLEANUP(mo_cmd_edit_close)
#define MO_CMD_EDIT                                                            \
    {                                                                          \
        .file.lock = -1                                                        \
    }

/* Checks and writes the file; 0 or an exit code. */
int mo_cmd_edit_save(struct mo_cli *c, struct mo_cmd_edit *m);

/* Connects to a server, enabled or not; 0 or an exit code, and the reason was
 * printed (health.c). */
int mo_cmd_works(struct mo_cli *c, const struct mo_config *cfg,
                 const char *server);

#endif
