/* runner.h - package runners: commands that download a program before they run
 * it (npx, uvx, ...).
 *
 * A first start may take minutes. It must not be mistaken for a server that
 * hangs, and a runner that is killed in the middle may leave a broken cache. So
 * the owner of such a process asks whether its program runs yet.
 *
 * The program runs once the runner has a child process that is no script of an
 * installation (npm names those in npm_lifecycle_event). Reads /proc only. */
#ifndef MO_LOOP_RUNNER_H
#define MO_LOOP_RUNNER_H

#include <stdbool.h>
#include <sys/types.h>

/* True for "npx ...", "/usr/bin/uvx ...", "pnpm dlx ...". NULL-terminated. */
bool mo_runner_is(const char *const *argv);
/* True while the runner, which has not ended, has not started its program.
 * False if /proc cannot be read. */
bool mo_runner_installing(pid_t runner);

#endif
