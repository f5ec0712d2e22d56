/* mcp.h - what `call` and the `mcp` commands share. */
#ifndef MO_CLI_MCP_COMMANDS_MCP_H
#define MO_CLI_MCP_COMMANDS_MCP_H

#include "cli/cmd.h"
#include "connect/sync_client.h"

#define MO_OPT_COMMAND                                                         \
    {                                                                          \
        .name = "command", .arg = "LINE",                                      \
        .doc = "Start this server instead of a configured one"                 \
    }
#define MO_OPT_URL                                                             \
    {                                                                          \
        .name = "url", .arg = "URL",                                           \
        .doc = "Talk to the server at this address instead"                    \
    }
#define MO_OPT_ERA                                                             \
    {                                                                          \
        .name = "era", .arg = "WORD", .words = "auto legacy modern",           \
        .doc = "How to open it: auto (the default), legacy or modern"          \
    }
#define MO_OPT_TIMEOUT                                                         \
    {                                                                          \
        .name = "timeout", .arg = "SECONDS",                                   \
        .doc = "How long to wait for each answer"                              \
    }
#define MO_OPT_SIGN_IN                                                         \
    {                                                                          \
        .name = "sign-in",                                                     \
        .doc = "Wait for a sign-in if the server wants one; the default on a " \
               "terminal"                                                      \
    }
#define MO_OPT_NO_SIGN_IN                                                      \
    {                                                                          \
        .name = "no-sign-in",                                                  \
        .doc = "End with 5 instead of asking a person to sign in"              \
    }

/* A server that a command talks to. Zero it, set server (a configured name,
 * or NULL: --command or --url), and close it in the end whatever happened. */
struct mo_cmd_peer {
    const char *server;
    struct mo_cmd_flags flags;
    struct mo_config_holder h;
    bool loaded;
    bool many; /* servers in a row: nobody is asked unless --sign-in is given */
    bool needs_sign_in; /* that is why it failed */
    struct mo_sync_client *peer;
};

/* 0, or an exit code; everything is said on stderr then. */
int mo_cmd_peer_open(struct mo_cli *c, struct mo_cmd_peer *m);
void mo_cmd_peer_close(struct mo_cmd_peer *m);

/* Only the configuration. */
int mo_cmd_peer_load(struct mo_cli *c, struct mo_cmd_peer *m);
/* Only the connection; e says why not. */
int mo_cmd_peer_dial(struct mo_cli *c, struct mo_cmd_peer *m,
                     const struct mo_config_mcp *s, struct mo_err *e);

/* Something failed: say so, and what to run if a person must sign in. The exit
 * code for it; `code` for all other failures. */
int mo_cmd_peer_error(const struct mo_cli *c, const struct mo_cmd_peer *m,
                      int code, const struct mo_err *e);

/* A JSON string's text; on a terminal without control characters, which a
 * server could use to draw what it likes. Else: the JSON as it is. */
void mo_cmd_put_text(struct mo_buf *b, struct mo_json v, bool tty);

#endif
