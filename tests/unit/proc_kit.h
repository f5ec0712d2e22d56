/* proc_kit.h - starts child processes under a guard and records their output.
 *
 * The started program is often the test itself: under the name of a role
 * (start_role()) it does one thing and prints the result, so main() calls
 * play_role() first. fix_init() and fix_fini() count descriptors and
 * children: a test that leaves one behind fails. */
#ifndef MO_PROC_KIT_H
#define MO_PROC_KIT_H

#include <sys/types.h>

#include "loop/proc.h"
#include "loop/spawn.h"
#include "mo_test.h"

#define LONG   30000 /* ms; a deadline for hangs, not for speed */
#define GONE_S 2     /* the requirement: stopped children are gone by then */

extern const char *const plain_env[];

/* --- fixture ------------------------------------------------------------- */

struct gw_child {
    struct mo_proc *p;
    struct mo_proc_io s;
    struct mo_buf out, err;
    struct mo_exit x;
    int exits, closes, eofs;
    size_t got; /* bytes, also those not kept */
    bool count_only;
    struct mo_span feed; /* what is still to be written */
    size_t fed, high;    /* written so far; highest queue seen */
};

struct fix {
    struct mo_loop *l;
    struct mo_guard *g;
    int fds, gone;
};

int count_fds(void);
void on_gone(void *ctx);
bool is_gone(void *ctx);
void fix_init(struct fix *f);
void fix_fini(struct fix *f);

/* Write in pieces, wait while the queue is high. */
void feed(struct gw_child *k);

int start(struct fix *f, struct gw_child *k, const struct mo_proc_opts *o,
          struct mo_err *e);
void start_argv(struct fix *f, struct gw_child *k, const char *const *argv,
                enum mo_proc_err err);
void start_role(struct fix *f, struct gw_child *k, const char *role);
bool has_exited(void *ctx);
bool has_ended(void *ctx);
bool has_line(void *ctx);
void finish(struct fix *f, struct gw_child *k);
bool pids_of(struct gw_child *k, pid_t *a, pid_t *b);

/* Gone, or a zombie that init has not reaped yet. */
bool dead(pid_t pid);

bool both_dead(void *ctx);

/* libuv opens a pipe for signals once and keeps it: open it before counting. */
int warm_up(void **state);

/* Call first in main(). A role exits without a leak check, which would take
 * longer than everything else. */
void play_role(int argc, char **argv);

#endif
