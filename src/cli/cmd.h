/* cmd.h - the functions of the commands, and helpers that several of them
 * use. */
#ifndef MO_CLI_CMD_H
#define MO_CLI_CMD_H

#include "app/own_user.h"
#include "cli/cli.h"
#include "codec/json/json.h"
#include "config/config.h"

/* The functions of the commands in data/commands.json. */
typedef int mo_cmd_run(struct mo_cli *c); /* an enum mo_exit_code */
mo_cmd_run mo_run_approvals_accept, mo_run_approvals_approve,
    mo_run_approvals_list, mo_run_approvals_reject;
mo_cmd_run mo_run_audit_list, mo_run_audit_tail, mo_run_audit_verify;
mo_cmd_run mo_run_box_image, mo_run_box_run, mo_run_call, mo_run_chat,
    mo_run_complete, mo_run_completion, mo_run_doctor, mo_run_find,
    mo_run_gateway, mo_run_help, mo_run_health, mo_run_login, mo_run_logout,
    mo_run_open, mo_run_replay, mo_run_roles, mo_run_route_eval, mo_run_serve,
    mo_run_spend, mo_run_version, mo_run_whoami;
mo_cmd_run mo_run_config_allow, mo_run_config_check, mo_run_config_docs,
    mo_run_config_schema, mo_run_config_show;
mo_cmd_run mo_run_mcp_add, mo_run_mcp_disable, mo_run_mcp_enable,
    mo_run_mcp_health, mo_run_mcp_import, mo_run_mcp_info, mo_run_mcp_install,
    mo_run_mcp_list, mo_run_mcp_uninstall, mo_run_mcp_update, mo_run_mcp_verify,
    mo_run_mcp_remove, mo_run_mcp_search, mo_run_mcp_test;
mo_cmd_run mo_run_connections_list, mo_run_connections_remove;
mo_cmd_run mo_run_secrets_check, mo_run_secrets_list, mo_run_secrets_remove,
    mo_run_secrets_set;
mo_cmd_run mo_run_token_create, mo_run_token_list, mo_run_token_revoke;
mo_cmd_run mo_run_sessions_kill, mo_run_sessions_list, mo_run_sessions_show;
mo_cmd_run mo_run_backup, mo_run_restore, mo_run_state_check;
mo_cmd_run mo_run_views_list, mo_run_views_show;

#define MO_CMD_TEXT_MAX ((size_t)4 * 1024 * 1024) /* bytes of printed text */
#define MO_CMD_NO_SERVERS                                                      \
    "no MCP servers are configured: `mcp-orchestrator mcp add NAME -- "        \
    "PROGRAM` adds one,\n`mcp-orchestrator mcp import` takes over those of "   \
    "another client\n"

/* The configuration of a command; closed at the end of its scope:
 * mo_autoconfig struct mo_cmd_config cfg = {.now = NULL}; */
struct mo_cmd_config {
    const struct mo_config *now; /* NULL: not loaded */
    struct mo_config_holder h;
    struct mo_config_flag flags[MO_CLI_OPTS_MAX]; /* h borrows them */
    struct mo_own_user user;                      /* h borrows it */
};
#define mo_autoconfig MO_CLEANUP(mo_cmd_close)

/* Loads the configuration according to the command line, and changes the user
 * (app/own_user.h). On failure the errors are printed and the exit code is
 * returned. Files that are not trusted get a row in the audit log. */
int mo_cmd_load(const struct mo_cli *c, struct mo_cmd_config *cfg);
/* The same without changing the user and without printing: rep and e hold the
 * errors. */
int mo_cmd_open(const struct mo_cli *c, struct mo_cmd_config *cfg,
                struct mo_config_report *rep, struct mo_err *e);
/* The configuration without files of the working directory or named ones: says
 * where the audit log is. */
int mo_cmd_open_own(const struct mo_cli *c, struct mo_cmd_config *cfg,
                    struct mo_err *e);
/* Changes the user; part of mo_cmd_load(). */
int mo_cmd_change_user(const struct mo_cli *c, struct mo_cmd_config *cfg);
void mo_cmd_close(struct mo_cmd_config *cfg); /* also if it is not open */
void mo_cmd_print_report(const struct mo_cli *c,
                         const struct mo_config_report *rep);

/* For a command that runs for long: gives up rights that it never uses
 * (loop/rights.h), and says in the log if it cannot. */
void mo_cmd_reduce_rights(const struct mo_cmd_config *cfg, struct mo_log *log);

/* Indents compact JSON and prints it. */
int mo_cmd_print_json(const struct mo_cli *c, const struct mo_buf *b);
/* The same with --json; else prints the text. */
int mo_cmd_print(const struct mo_cli *c, const struct mo_buf *b);

/* Appends a name for shell completion and a newline; leaves out one with
 * characters that a shell could evaluate. */
void mo_cmd_put_completion(struct mo_buf *b, struct mo_span name);
/* Prints the ids of sessions likewise. */
int mo_cmd_complete_sessions(struct mo_cli *c);

/* Appends `before` and the value, a string without its quotes; nothing if there
 * is no value. */
void mo_cmd_put_member(struct mo_buf *b, const char *before, struct mo_json v);

#endif
