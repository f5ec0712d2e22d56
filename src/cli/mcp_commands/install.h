/* install.h - what `mcp install` and `mcp update` share. */
#ifndef MO_CLI_MCP_COMMANDS_INSTALL_H
#define MO_CLI_MCP_COMMANDS_INSTALL_H

#include "cli/mcp_commands/edit.h"
#include "install/place.h"

#define MO_CMD_ENTRY_MAX ((size_t)256 * 1024)

struct mo_cmd_install {
    struct mo_cmd_edit edit; /* the configuration and its file */
    bool as_owner; /* root writes the state as the directory's owner */
    struct mo_install_plan plan;
    struct mo_runner run;
    struct mo_npm npm;
    struct mo_pip pip;
    struct mo_bundle bundle;
    struct mo_place place;
    struct mo_installed done;
    struct mo_buf entry; /* of the configuration */
};

/* MO_CLEANUP(mo_cmd_install_fini) struct mo_cmd_install k = MO_CMD_INSTALL; */
void mo_cmd_install_fini(struct mo_cmd_install *k);
#define MO_CMD_INSTALL                                                         \
    {                                                                          \
        .edit = MO_CMD_EDIT, .run.signals = -1, .bundle.fd = -1,               \
        .place.lock = -1, .entry.max = MO_CMD_ENTRY_MAX                        \
    }

/* Loads the configuration. For root it finds the owner of the state directory,
 * whom npm runs as. 0, or an exit code. */
int mo_cmd_install_load(struct mo_cli *c, struct mo_cmd_install *k);

/* Between these calls root acts as that owner, unless the files are to be
 * root's (install/place.h). */
void mo_cmd_install_begin(const struct mo_cmd_install *k);
void mo_cmd_install_end(const struct mo_cmd_install *k);

/* Asks the registry, npm and pip about the plan. kind, bin: as in plan.h. */
int mo_cmd_install_ask(struct mo_cli *c, struct mo_cmd_install *k,
                       const char *kind, const char *bin, struct mo_err *e);

/* Asks the person, unless --yes is given. 0, or an exit code. */
int mo_cmd_install_agree(struct mo_cli *c, const struct mo_cmd_install *k,
                         const char *question);

/* Writes to the audit log who is about to install what, with its integrity. */
int mo_cmd_install_record(const struct mo_cli *c,
                          const struct mo_cmd_install *k, struct mo_err *e);

/* Opens the place and downloads what the plan says. */
int mo_cmd_install_fetch(struct mo_cli *c, struct mo_cmd_install *k,
                         struct mo_err *e);

/* Sets the server's entry in the lock file; empty: removes it. */
int mo_cmd_install_pin(struct mo_cmd_install *k, struct mo_span json,
                       struct mo_err *e);

/* Node.js or Python. */
const char *mo_cmd_install_runtime(const struct mo_cmd_install *k);

/* Prints the error; returns the exit code. */
int mo_cmd_install_fail(const struct mo_cli *c, const struct mo_err *e);

#endif
