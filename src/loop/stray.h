/* stray.h - end processes that left the session of their server.
 *
 * A process that calls setsid() leaves the group that is killed with a server.
 * So a server gets a variable with a mark of its own in its environment, which
 * its descendants inherit. Whoever ends the server looks for processes with
 * that mark in /proc and kills them.
 *
 * Not found: a process that left the session and cleared its environment, or
 * that belongs to another user. Run untrusted programs in a box, whose cgroup
 * they cannot leave. Only system calls and the stack. */
#ifndef MO_LOOP_STRAY_H
#define MO_LOOP_STRAY_H

#include <stdint.h>

#define MO_STRAY_VAR "MCP_ORCHESTRATOR_CHILD"
#define MO_STRAY_MAX 80 /* bytes of the variable, with its NUL */
#define MO_STRAY_ALL 0  /* any mark of that key */

/* "MCP_ORCHESTRATOR_CHILD=KEY-MARK". key: random, of one guard; mark: 1... */
void mo_stray_var(uint64_t key, uint32_t mark, char out[MO_STRAY_MAX]);
/* Kills all processes with this mark, and those that they start meanwhile. */
void mo_stray_kill(uint64_t key, uint32_t mark);

#endif
