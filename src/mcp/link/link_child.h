/* link_child.h - an MCP server that is a child process of ours (stdio).
 *
 * Messages are lines on its standard input and output. Its standard error is
 * never parsed: the last bytes of it are kept, and go into the error when it
 * ends without being asked.
 *
 * How it ends: the owner closes the link (EOF, SIGTERM, SIGKILL, as proc.h
 * says); it exits; or it closes its output, breaks the framing or floods us,
 * and is then stopped the same way. In every case on_close comes when the
 * process is dead and its output read: a grandchild that holds the pipe open
 * is waited for DRAIN_MS and no longer. */
#ifndef MO_MCP_LINK_LINK_CHILD_H
#define MO_MCP_LINK_LINK_CHILD_H

#include "loop/proc.h"
#include "mcp/link/link.h"

#define MO_CHILD_TAIL_MAX 4096 /* bytes of stderr that are kept */
#define MO_CHILD_ENV_MAX  128  /* variables a child may have */
#define MO_CHILD_WHO_MAX  80

struct mo_child_opts {
    const char *const *argv; /* NULL-terminated; argv[0] is the program */
    const char *const *env;  /* the whole of it; see mo_child_env() */
    const char *cwd;         /* NULL: ours */
    size_t line_max;         /* 0: MO_LINK_LINE_MAX */
    /* What it says on stderr, as it comes, also while it is being stopped;
     * NULL: nobody listens. first: it had said nothing before. ctx must live
     * as long as the guard. */
    void (*said)(void *ctx, const char *who, struct mo_span bytes, bool first);
    void *said_ctx;
    const char *who;   /* for said(); copied, up to MO_CHILD_WHO_MAX */
    uint64_t data_max; /* as in spawn.h */
};

/* The options are not needed any more when it returns. */
int mo_link_child(struct mo_guard *g, const struct mo_child_opts *o,
                  struct mo_link **out, struct mo_err *e);

/* The last of its stderr, borrowed until the loop runs again; empty for
 * other kinds of link. */
struct mo_span mo_link_child_said(struct mo_link *k);

/* What a child may see: HOME LOGNAME PATH SHELL TERM USER of ours, and the
 * given ones ("NAME=VALUE", which win). MO_ETOOBIG, MO_ENOMEM. */
int mo_child_env(struct mo_arena *a, char *const *ours,
                 const char *const *given, size_t n, const char *const **out,
                 struct mo_err *e);

#endif
