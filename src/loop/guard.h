/* guard.h - kill all child processes when this process dies.
 *
 * After a SIGKILL this process runs no more code, and a child that ignores EOF
 * would run for ever. PR_SET_PDEATHSIG (spawn.h) kills the direct child, but
 * not its descendants. So a guardian process is started with the first child:
 * the same program (/proc/self/exe under the name mo-guardian), which only
 * waits on a socket. Each child is registered with it before the child runs,
 * and removed after the child's death. When the socket ends because this
 * process died, the guardian kills every process group still registered and
 * exits.
 *
 *  1. No gap at the start: the child registers itself between clone and exec
 *     and holds the socket open until then. The guardian cannot see the end
 *     of the socket before it has seen the entry.
 *  2. No wrong target: the entry carries a pidfd made by the child itself, not
 *     a number to look up later. An entry is removed before its child is
 *     reaped, so the number of every registered group is still in use. Since
 *     Linux 6.9 the group is killed through the pidfd; before, by its number.
 *     The number could belong to another group only if, after our death, init
 *     reaps the leader, the group is empty and all pids wrap around within the
 *     millisecond that the guardian needs.
 *  3. A guardian that dies is replaced, and all entries are sent to the new
 *     one. A guardian that stops reading is killed and replaced. Until the
 *     new one is ready no child is started (MO_EUNAVAIL).
 *
 * A grandchild that calls setsid() or setpgid() leaves the group. The guardian
 * finds it by the mark in its environment or by its mount namespace (stray.h):
 * when the entry of its server is removed, and when this process died. A
 * set-user-id program of another user cannot be signalled.
 *
 * Cost: one process, only while there are children. main() must begin with:
 *
 *     if (mo_guard_wanted(argc, argv))
 *         mo_guard_main(); */
#ifndef MO_LOOP_GUARD_H
#define MO_LOOP_GUARD_H

#include <sys/types.h>

#include "loop/loop.h"

#define MO_GUARD_NAME "mo-guardian"
#define MO_GUARD_MAX  1024 /* children at a time, then MO_EBUSY */

bool mo_guard_wanted(int argc, char *const *argv);
/* Never returns and runs no atexit() handlers. */
void mo_guard_main(void) __attribute__((noreturn));

struct mo_guard;

struct mo_guard *mo_guard_new(struct mo_loop *l, struct mo_err *e);
/* Wait, on the loop, until the last child is freed and the guardian has exited.
 * Then gone(ctx) fires (may be NULL) and g is freed. */
void mo_guard_stop(struct mo_guard *g, void (*gone)(void *ctx), void *ctx);

struct mo_loop *mo_guard_loop(const struct mo_guard *g);
pid_t mo_guard_pid(const struct mo_guard *g); /* 0: not running */

/* --- for proc.c ---------------------------------------------------------- */

struct mo_spawn;

/* A registered child; embedded in the child's own struct. */
struct mo_ward {
    struct mo_list node;
    pid_t pid; /* also the number of its group and session */
    int pidfd;
    uint32_t mark; /* in its environment (stray.h); 0: none */
    bool told;     /* the current guardian knows it */
};

/* mo_spawn() that registers the child. The caller owns w->pidfd. marked: its
 * environment gets a mark, and the guardian kills what the child leaves behind
 * in other sessions. */
int mo_guard_spawn(struct mo_guard *g, struct mo_spawn *s, bool marked,
                   struct mo_ward *w, struct mo_err *e);
/* Remove the entry. The child must be dead but not reaped. */
void mo_guard_forget(struct mo_guard *g, struct mo_ward *w);

#endif
