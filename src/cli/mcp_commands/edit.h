/* edit.h - helpers of the commands that change the configured servers. */
#ifndef MO_CLI_MCP_COMMANDS_EDIT_H
#define MO_CLI_MCP_COMMANDS_EDIT_H

#include "cli/cmd.h"
#include "config/file_edit.h"

struct mo_cmd_edit {
    struct mo_cmd_config cfg;
    struct mo_file_edit file;
    const char *server; /* that is changed; NULL: several */
    bool is_recorded;   /* the audit log has the change already */
};

/* Loads the configuration, again if it is loaded, and opens its file. Returns
 * 0, or an exit code: the error was printed. Closed at the end of its scope:
 * mo_autoedit struct mo_cmd_edit m = MO_CMD_EDIT; */
int mo_cmd_edit_open(struct mo_cli *c, struct mo_cmd_edit *m);
void mo_cmd_edit_close(struct mo_cmd_edit *m);
#define mo_autoedit MO_CLEANUP(mo_cmd_edit_close)
#define MO_CMD_EDIT                                                            \
    {                                                                          \
        .file.lock = -1                                                        \
    }

/* Checks and writes the file; 0 or an exit code. */
int mo_cmd_edit_save(struct mo_cli *c, struct mo_cmd_edit *m);
/* Sets or removes (empty value) a part of the file and saves it. done: the verb
 * of the line that is printed; NULL: none. */
int mo_cmd_edit_change(struct mo_cli *c, struct mo_cmd_edit *m,
                       const char *const *path, struct mo_span value,
                       const char *done);

/* Splits NAME=VALUE or 'Name: value' of an option. A literal key is refused,
 * because other users can read it. 0, or an exit code. */
int mo_cmd_pair(struct mo_cli *c, const char *option, const char *word,
                char mark, struct mo_span *name, struct mo_span *value);

/* Connects to a server, enabled or not; 0 or an exit code, and the reason was
 * printed (health.c). */
int mo_cmd_works(struct mo_cli *c, const struct mo_config *cfg,
                 const char *server);

#endif
