/* tree.h - kill every process below another.
 *
 * Every process that a command starts has it as an ancestor: a child whose
 * parent dies is moved to the nearest subreaper. So the parents in /proc are
 * complete, also for daemons with a session of their own.
 *
 * A process is signalled through its directory in /proc, opened before it is
 * checked again, so a reused pid is not hit. */
#ifndef TB_TREE_H
#define TB_TREE_H

#include <stddef.h>
#include <sys/types.h>

/* One round: SIGKILL to all processes below `top`, except `spare` and those
 * below them. Returns how many were alive, 0 when nothing is left, -1 without
 * /proc. Processes started meanwhile are left for the next round. */
int tb_tree_kill(pid_t top, const pid_t *spare, size_t nspare);

#endif
