/* guard.h - nobody outlives us: the guardian of our children.
 *
 * If we are killed with SIGKILL, no line of ours runs any more, and a child
 * that ignores EOF would stay for ever. PR_SET_PDEATHSIG (spawn.h) takes the
 * direct child along, but not what that child has started. So with the first
 * child a guardian is started: our own program once more (/proc/self/exe
 * under the name mo-guardian), which does nothing but wait at a socket. Each
 * child is entered in its book before it runs, and struck out when we have
 * buried it; when the socket ends, because we did, the guardian kills every
 * process group that is still in the book, and goes.
 *
 *  1. No gap at birth: the child enters itself, between clone and exec, and
 *     holds the socket open until then. The guardian cannot see the end of
 *     the socket before it has seen the entry.
 *  2. No wrong victim: the entry carries a pidfd made by the child itself,
 *     not a number to look up later. An entry is struck out before its
 *     child is reaped, so that the number of every group in the book is
 *     still taken. Since Linux 6.9 the group is killed through the pidfd;
 *     before, by its number, which a stranger could only have got if, after
 *     our death, init reaps the leader, the group is empty and all pids wrap
 *     around, within the millisecond that the guardian needs.
 *  3. A guardian that dies is replaced and given the whole book again; one
 *     that does not read any more is killed, then replaced. Until the new
 *     one is there no child is started (MO_EUNAVAIL).
 *
 * What it cannot catch: a grandchild that calls setsid() or setpgid() leaves
 * the group. Untrusted programs belong in a box, whose cgroup has no such
 * door. Nor may we signal a set-user-id program of somebody else.
 *
 * Cost: one process per run of ours, none while there is no child.
 * main() must begin with:
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
/* Never returns, and runs nobody's atexit(). */
void mo_guard_main(void) __attribute__((noreturn));

struct mo_guard;

struct mo_guard *mo_guard_new(struct mo_loop *l, struct mo_err *e);
/* Waits, on the loop, until the last child is freed and the guardian has
 * gone; then gone(ctx) fires (may be NULL) and g is no more. */
void mo_guard_stop(struct mo_guard *g, void (*gone)(void *ctx), void *ctx);

struct mo_loop *mo_guard_loop(const struct mo_guard *g);
pid_t mo_guard_pid(const struct mo_guard *g); /* 0: none now */

/* --- for proc.c ---------------------------------------------------------- */

struct mo_spawn;

/* A child in the book; lives in the child's own struct. */
struct mo_ward {
    struct mo_list node;
    pid_t pid; /* also its group's and session's number */
    int pidfd;
    bool told; /* the present guardian knows it */
};

/* mo_spawn() with an entry in the book. w->pidfd is the caller's. */
int mo_guard_spawn(struct mo_guard *g, struct mo_spawn *s, struct mo_ward *w,
                   struct mo_err *e);
/* Strike it out. Call with the child dead but not reaped. */
void mo_guard_forget(struct mo_guard *g, struct mo_ward *w);

#endif
