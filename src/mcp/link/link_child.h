/* link_child.h - a link to an MCP server run as a child process (stdio).
 *
 * Messages are lines on its standard input and output. Its standard error is
 * never parsed: the last bytes are kept and go into the error when the process
 * ends unexpectedly.
 *
 * The link ends when the owner closes it (EOF, SIGTERM, SIGKILL, see proc.h),
 * when the process exits, or when it closes its output, breaks the framing or
 * floods us; then it is stopped the same way. on_close always comes after the
 * process is dead and its output is read: a grandchild that holds the pipe open
 * is waited for DRAIN_MS only. */
#ifndef MO_MCP_LINK_LINK_CHILD_H
#define MO_MCP_LINK_LINK_CHILD_H

#include "loop/proc.h"
#include "mcp/link/link.h"

#define MO_CHILD_TAIL_MAX        4096 /* bytes of stderr that are kept */
#define MO_CHILD_ENV_MAX         128  /* variables a child may have */
#define MO_CHILD_PASSED_MAX      64   /* of them inherited */
#define MO_CHILD_WHO_MAX         80
#define MO_CHILD_INSTALL_STOP_MS 10000

struct mo_child_opts {
    const char *const *argv; /* NULL-terminated; argv[0] is the program */
    const char *const *env;  /* the whole environment; see mo_child_env() */
    const char *cwd;         /* NULL: the directory of this process */
    size_t line_max;         /* 0: MO_LINK_LINE_MAX */
    /* Called with stderr as it arrives, also while the process is being
     * stopped; may be NULL. first: there was no output before. ctx must live as
     * long as the guard. */
    void (*said)(void *ctx, const char *who, struct mo_span bytes, bool first);
    void *said_ctx;
    const char *who;      /* for said(); copied, up to MO_CHILD_WHO_MAX */
    uint64_t data_max;    /* as in spawn.h */
    struct mo_hide *hide; /* as in spawn.h */
    /* The program may be downloaded first (loop/runner.h). While it is, closing
     * the link asks the process to end and waits for MO_CHILD_INSTALL_STOP_MS
     * before it is killed, so that no half of a package stays in its cache. */
    bool runner;
    /* Locked file (flock) that says that it installs; 0: none. The link owns
     * it, also on failure, and unlocks it when the program runs or has ended.
     */
    int turn;
};

/* The options are borrowed for the call only. */
int mo_link_child(struct mo_guard *g, const struct mo_child_opts *o,
                  struct mo_link **out, struct mo_err *e);

/* Build a child's environment: those of this process that every program needs
 * (HOME, PATH, LANG, TZ, the proxy and CA variables, ...; see link_child.c), at
 * most MO_CHILD_PASSED_MAX, and the given ones ("NAME=VALUE"), which take
 * precedence. MO_ETOOBIG, MO_ENOMEM. */
int mo_child_env(struct mo_arena *a, char *const *ours,
                 const char *const *given, size_t n, const char *const **out,
                 struct mo_err *e);

#endif
