/* server.h - the Model Context Protocol over lines, all revisions at once.
 *
 * Each message is classified by itself: one with a modern envelope is modern,
 * the others belong to the legacy session that `initialize` opened. A second
 * `initialize` opens a new session on the same stream. The peer of the old
 * session is gone, so its calls are cancelled.
 *
 * No I/O: a line goes in, messages go out through send(), tools are a table. So
 * tests and a fuzzer run it without a process.
 *
 * Ownership: a line is borrowed during tb_server_line(), a message during
 * send(). The server owns calls until they end. Limits: TB_CALLS_MAX calls at a
 * time, ids and progress tokens of TB_ID_MAX bytes; each has its own error. */
#ifndef TB_SERVER_H
#define TB_SERVER_H

#include "codec/rpc.h"
#include "toolbox/tool.h"

#define TB_CALLS_MAX 16
#define TB_ID_MAX    512

/* A method beside those of MCP, answered at once. params.arguments are its
 * arguments; run() writes the members of the result. */
struct tb_method {
    const char *name;
    int (*run)(void *ctx, struct mo_json args, struct mo_jw *w,
               struct mo_err *e);
};

struct tb_server {
    const struct tb_tool *const *tools; /* terminated by NULL */
    const struct tb_tool *unlisted;     /* its error says what is missing */
    /* Tables that end with a row without a name; the last one is NULL. */
    const struct tb_method *const *methods;
    /* A word for a failure of one of them. */
    const char *(*word)(const struct mo_err *e);
    const char *instructions;
    void *ctx; /* for the tools */
    void (*send)(void *to, struct mo_span message);
    void *to;

    /* private */
    enum tb_version version; /* of the legacy session */
    enum tb_level level;
    struct mo_list calls;
    size_t ncalls;
    struct mo_buf message; /* the message being written */
};

/* The caller sets the public members first. */
void tb_server_init(struct tb_server *s);
void tb_server_fini(struct tb_server *s); /* cancels all calls */

void tb_server_line(struct tb_server *s, struct mo_span line);
/* Report a line that was too long to read. id: of the request; empty: unknown.
 */
void tb_server_overlong(struct tb_server *s, struct mo_span id);
void tb_server_cancel_all(struct tb_server *s);

#endif
