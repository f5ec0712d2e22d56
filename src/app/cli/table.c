/* table.c - the command table: what there is, in the order of the help. */
#include "app/cli/cmd.h"

static const struct mo_cmd *const commands[] = {
    &mo_cmd_serve,         &mo_cmd_gateway,        &mo_cmd_replay,
    &mo_cmd_chat,          &mo_cmd_call,           &mo_cmd_mcp_list,
    &mo_cmd_mcp_test,      &mo_cmd_mcp_info,       &mo_cmd_mcp_add,
    &mo_cmd_mcp_remove,    &mo_cmd_mcp_enable,     &mo_cmd_mcp_disable,
    &mo_cmd_mcp_import,    &mo_cmd_sessions_list,  &mo_cmd_sessions_show,
    &mo_cmd_mcp_health,    &mo_cmd_sessions_kill,  &mo_cmd_route_eval,
    &mo_cmd_box_run,       &mo_cmd_box_image,      &mo_cmd_secrets_set,
    &mo_cmd_secrets_list,  &mo_cmd_secrets_remove, &mo_cmd_secrets_check,
    &mo_cmd_doctor,        &mo_cmd_config_check,   &mo_cmd_config_show,
    &mo_cmd_config_schema, &mo_cmd_config_docs,    &mo_cmd_version,
    &mo_cmd_help,          &mo_cmd_completion,     &mo_cmd_find,
};

static const struct mo_opt globals[] = {
    {.name = "config",
     .letter = 'c',
     .arg = "FILE",
     .words = "@file",
     .doc = "Configuration file to use"},
    {.name = "log",
     .arg = "LEVELS",
     .key = "log.level",
     .words = "error warn info debug",
     .doc = "How much to log: error, warn, info, debug, or per room as in "
            "info,httpd=debug"},
    {.name = "help", .letter = 'h', .doc = "Explain, and do nothing else"},
    {.name = "version", .letter = 'V', .doc = "Print the version"},
};

const struct mo_cli_table mo_commands = {
    .cmds = commands,
    .ncmds = MO_COUNT(commands),
    .globals = globals,
    .nglobals = MO_COUNT(globals),
};
