/* cmd.h - the rows of the command table, and helpers that several commands
 * use. */
#ifndef MO_CLI_CMD_H
#define MO_CLI_CMD_H

#include "cli/cli.h"
#include "codec/json/json.h"
#include "config/config.h"

extern const struct mo_cmd mo_cmd_find;
extern const struct mo_cmd mo_cmd_gateway, mo_cmd_replay, mo_cmd_route_eval,
    mo_cmd_serve, mo_cmd_chat, mo_cmd_version, mo_cmd_doctor,
    mo_cmd_config_check, mo_cmd_config_show, mo_cmd_config_schema,
    mo_cmd_config_docs, mo_cmd_help, mo_cmd_completion, mo_cmd_call,
    mo_cmd_mcp_list, mo_cmd_mcp_test, mo_cmd_mcp_info, mo_cmd_sessions_list,
    mo_cmd_sessions_show, mo_cmd_sessions_kill, mo_cmd_box_run,
    mo_cmd_box_image;
extern const struct mo_cmd mo_cmd_secrets_set, mo_cmd_secrets_list,
    mo_cmd_secrets_remove, mo_cmd_secrets_check, mo_cmd_mcp_add,
    mo_cmd_mcp_remove, mo_cmd_mcp_enable, mo_cmd_mcp_disable, mo_cmd_mcp_import,
    mo_cmd_mcp_health;
extern const struct mo_cmd mo_cmd_audit_list, mo_cmd_audit_tail,
    mo_cmd_audit_verify, mo_cmd_approvals_list, mo_cmd_approvals_approve,
    mo_cmd_approvals_reject, mo_cmd_approvals_accept;

#define MO_CMD_TEXT_MAX ((size_t)4 * 1024 * 1024) /* bytes of printed text */
#define MO_CMD_NO_SERVERS                                                      \
    "no MCP servers are configured: `mcp-orchestrator mcp add NAME -- "        \
    "PROGRAM` adds one,\n`mcp-orchestrator mcp import` takes over those of "   \
    "another client\n"

/* Options that several commands share. */
#define MO_OPT_JSON                                                            \
    {                                                                          \
        .name = "json", .doc = "Print JSON for programs"                       \
    }

/* Loads the configuration according to the command line. On failure the errors
 * are printed and the exit code is returned. Else returns 0 and the caller
 * closes h. flags must live as long as h. */
struct mo_cmd_flags {
    struct mo_config_flag v[MO_CLI_OPTS_MAX];
    size_t n;
};
int mo_cmd_load(const struct mo_cli *c, struct mo_cmd_flags *flags,
                struct mo_config_holder *h);

/* The same without printing: rep and e hold the errors. */
int mo_cmd_open(const struct mo_cli *c, struct mo_cmd_flags *flags,
                struct mo_config_holder *h, struct mo_config_report *rep,
                struct mo_err *e);
void mo_cmd_print_report(const struct mo_cli *c,
                         const struct mo_config_report *rep);

/* Indents compact JSON and prints it. */
int mo_cmd_print_json(const struct mo_cli *c, struct mo_buf *b);

/* Appends `before` and the value, a string without its quotes; nothing if there
 * is no value. */
void mo_cmd_put_member(struct mo_buf *b, const char *before, struct mo_json v);

#endif
