/* runtime_wait.h - the house (app/runtime.h) for a command that waits for
 * things.
 */
#ifndef MO_CLI_RUNTIME_WAIT_H
#define MO_CLI_RUNTIME_WAIT_H

#include "app/runtime.h"
#include "cli/cmd.h"

struct mo_cmd_house {
    struct mo_cli *c;
    struct mo_cmd_flags flags;
    struct mo_config_holder h;
    struct mo_log log;
    struct mo_loop *loop;
    struct mo_runtime *house;
    bool loaded, done;
    struct mo_err why; /* code 0: what was waited for went well */
};

/* Load the configuration and open as much as is wanted. On failure all is
 * said and the exit code returned. Closed in any case by the caller. */
int mo_cmd_house_open(struct mo_cli *c, struct mo_cmd_house *m,
                      enum mo_runtime_want want);
/* The configuration and a loop only. */
int mo_cmd_house_load(struct mo_cli *c, struct mo_cmd_house *m);
void mo_cmd_house_close(struct mo_cmd_house *m);

/* m->done is set by some callback. */
void mo_cmd_house_wait(struct mo_cmd_house *m);

#endif
