/* cmd.h - the rows of the command table, and what several commands share. */
#ifndef MO_CLI_CMD_H
#define MO_CLI_CMD_H

#include "cli/cli.h"
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

#define MO_CMD_TEXT_MAX ((size_t)4 * 1024 * 1024) /* of any printed text */
#define MO_CMD_NO_SERVERS                                                      \
    "no MCP servers are configured: `mcp-orchestrator mcp add NAME -- "        \
    "PROGRAM` adds one,\n`mcp-orchestrator mcp import` takes over those of "   \
    "another client\n"

/* Options as every command spells them. */
#define MO_OPT_JSON                                                            \
    {                                                                          \
        .name = "json", .doc = "Print JSON for programs"                       \
    }

/* Load the configuration as the command line asks. On failure everything is
 * said on stderr already and the exit code returned; else 0 and h is to be
 * closed. flags must live as long as h. */
struct mo_cmd_flags {
    struct mo_config_flag v[MO_CLI_OPTS_MAX];
    size_t n;
};
int mo_cmd_load(const struct mo_cli *c, struct mo_cmd_flags *flags,
                struct mo_config_holder *h);

/* The same without a word: rep and e have what is wrong. */
int mo_cmd_open(const struct mo_cli *c, struct mo_cmd_flags *flags,
                struct mo_config_holder *h, struct mo_config_report *rep,
                struct mo_err *e);
void mo_cmd_print_report(const struct mo_cli *c,
                         const struct mo_config_report *rep);

/* Indent compact JSON and print it. */
int mo_cmd_print_json(const struct mo_cli *c, struct mo_buf *b);

#endif
