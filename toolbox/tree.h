/* tree.h - every process below another, killed.
 *
 * Whatever a command starts has it as an ancestor: a child whose parent dies
 * is given to the nearest subreaper, not lost. So the table of parents in
 * /proc is the truth, also for daemons with a session of their own.
 *
 * A process is signalled through its directory in /proc, opened before it is
 * looked at again: a number that was reused meanwhile is not hit. */
#ifndef TB_TREE_H
#define TB_TREE_H

#include <stddef.h>
#include <sys/types.h>

/* One round: SIGKILL to all below `top`, except `spare` and what is below
 * them. How many were alive, 0 when there is nothing left, -1 without /proc.
 * Those that were born meanwhile are for the next round. */
int tb_tree_kill(pid_t top, const pid_t *spare, size_t nspare);

#endif
