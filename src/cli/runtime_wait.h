/* runtime_wait.h - the runtime (app/runtime.h) for a command that blocks until
 * a callback has run. */
#ifndef MO_CLI_RUNTIME_WAIT_H
#define MO_CLI_RUNTIME_WAIT_H

#include "app/runtime.h"
#include "cli/cmd.h"

struct mo_cmd_runtime {
    struct mo_cli *c;
    struct mo_cmd_config cfg;
    struct mo_log log;
    struct mo_loop *loop;
    struct mo_runtime *runtime;
    bool done;
    struct mo_err why; /* result of the last wait; code 0: success */
};

/* Loads the configuration and opens as much as `want` says. On failure the
 * errors are printed and the exit code is returned. The caller closes m in any
 * case, with mo_autoruntime or by hand. */
int mo_cmd_runtime_open(struct mo_cli *c, struct mo_cmd_runtime *m,
                        enum mo_runtime_want want);
/* The two halves of it. A command loads the configuration once: root has become
 * the owner of the state directory then, who may not be able to read it. */
int mo_cmd_runtime_load(struct mo_cli *c, struct mo_cmd_runtime *m);
int mo_cmd_runtime_begin(struct mo_cmd_runtime *m, enum mo_runtime_want want);
void mo_cmd_runtime_close(struct mo_cmd_runtime *m); /* also a zeroed one */
#define mo_autoruntime MO_CLEANUP(mo_cmd_runtime_close)

/* Runs the loop until a callback sets m->done. */
void mo_cmd_runtime_wait(struct mo_cmd_runtime *m);
/* A callback without a result that does so; ctx is m. */
void mo_cmd_runtime_done(void *ctx);

#endif
