/* stray.h - end processes that left the session of their server.
 *
 * A process that calls setsid() leaves the group that is killed with a server.
 * Whoever ends the server looks in /proc for processes that it left behind and
 * kills them. They are known by two signs that descendants inherit:
 *
 *   - a variable with a mark of the server in their environment
 *   - the server's mount namespace, if it got its own (hide.h): a process that
 *     cleared its environment still has that
 *
 * Not found: a process that left the session, cleared its environment and made
 * a namespace of its own, or that belongs to another user. Run untrusted
 * programs in a box, whose cgroup they cannot leave. Only system calls and the
 * stack. */
#ifndef MO_LOOP_STRAY_H
#define MO_LOOP_STRAY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MO_STRAY_VAR "MCP_ORCHESTRATOR_CHILD"
#define MO_STRAY_MAX 80 /* bytes of the variable, with its NUL */
#define MO_STRAY_ALL 0  /* any mark of that key */

/* "MCP_ORCHESTRATOR_CHILD=KEY-MARK". key: random, of one guard; mark: 1... */
void mo_stray_var(uint64_t key, uint32_t mark, char out[MO_STRAY_MAX]);
/* Opens the mount namespace of a process (0: of this one). As long as it is
 * open, no other namespace gets its number. -1: it cannot be opened. Also for a
 * child before exec. */
int mo_stray_space(pid_t pid);

struct mo_stray {
    uint64_t key;
    uint32_t mark;
    const ino_t *spaces; /* numbers of open namespaces; 0 is none */
    size_t nspaces;
};

/* Kills all processes with the mark or in one of the namespaces, and those
 * that they start meanwhile. */
void mo_stray_kill(const struct mo_stray *s);

#endif
