/* mcp.h - helpers of `call` and the `mcp` commands. */
#ifndef MO_CLI_MCP_COMMANDS_MCP_H
#define MO_CLI_MCP_COMMANDS_MCP_H

#include "cli/cmd.h"
#include "connect/sync_client.h"

/* The connection of a command to a server. Zero it, set server (a configured
 * name, or NULL for --command or --url), and close it in any case. */
struct mo_cmd_client {
    const char *server;
    struct mo_cmd_config cfg;
    bool many; /* several servers: no sign-in unless --sign-in is given */
    bool needs_sign_in; /* it failed because a person must sign in */
    struct mo_sync_client *client;
};

/* Writes to the audit log that this command is about to start or change a
 * server (NULL: several), synced to disk. Fails: it must not. */
int mo_cmd_record(const struct mo_cli *c, const struct mo_config *cfg,
                  const char *server, struct mo_err *e);
/* The same with more about it: a JSON object. */
int mo_cmd_record_entry(const struct mo_cli *c, const struct mo_config *cfg,
                        const char *server, struct mo_span entry,
                        struct mo_err *e);

/* Returns 0, or an exit code after printing the error. */
int mo_cmd_client_open(struct mo_cli *c, struct mo_cmd_client *m);
void mo_cmd_client_close(struct mo_cmd_client *m);
#define mo_autoclient MO_CLEANUP(mo_cmd_client_close)

/* Opens only the connection; e has the reason of a failure. */
int mo_cmd_client_connect(struct mo_cli *c, struct mo_cmd_client *m,
                          const struct mo_config_mcp *s, struct mo_err *e);

/* Prints the error, and the command to run if a person must sign in. Returns
 * the exit code for that, or `code` for other failures. */
int mo_cmd_client_error(const struct mo_cli *c, const struct mo_cmd_client *m,
                        int code, const struct mo_err *e);

/* Reads --timeout, in seconds; false: it is none from 1 to most. */
bool mo_cmd_timeout(const struct mo_cli *c, uint64_t usual, uint64_t most,
                    uint64_t *ms);

/* Writes the text of a JSON string; on a terminal without control characters,
 * which a server could use to manipulate the display. Other values are written
 * as JSON. */
void mo_cmd_put_text(struct mo_buf *b, struct mo_json v, bool tty);

/* Writes a name of a server's making into a line: no control characters, also
 * where the output is no terminal. */
void mo_cmd_put_name(struct mo_buf *b, struct mo_json v);

#endif
