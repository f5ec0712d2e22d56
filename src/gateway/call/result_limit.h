/* result_limit.h - results that are too long for whoever asked.
 *
 * A tool's result may be limited to so many bytes of text
 * (gateway/upstream/server_overrides.h). What is beyond is cut off behind a
 * whole character, with a mark that says so and names a handle; the whole text
 * is kept, and read_result gives it out piece by piece. Structured content that
 * is too long goes the same way, unless the client was promised a schema for
 * it: then it stays. Pictures and sounds are not cut: half of one is none.
 *
 * Kept are RESULT_BYTES_MAX bytes in all, the oldest goes first, and each for
 * RESULT_KEEP_MS; only whoever asked for the result may read it (the same
 * connection, session or caller). A text that finds no place is cut all the
 * same, and the mark says that the rest is lost.
 *
 * read_result is listed when any tool has a limit of its own; where tools are
 * run by execute it can also be run so, since four are to be enough. */
#ifndef MO_GATEWAY_CALL_RESULT_LIMIT_H
#define MO_GATEWAY_CALL_RESULT_LIMIT_H

#include "gateway/gw_priv.h"

#define RESULT_EXECUTE_MAX ((size_t)65536) /* of what execute runs */
#define RESULT_LIMIT_MIN   ((size_t)256)   /* a lower limit is this one */
#define RESULT_PAGE        ((size_t)65536) /* bytes that read_result gives */
#define RESULT_PAGE_MAX    ((size_t)1024 * 1024)
#define RESULT_BYTES_MAX   ((size_t)64 * 1024 * 1024)
#define RESULT_ONE_MAX     ((size_t)16 * 1024 * 1024) /* of one text */
#define RESULT_ROWS_MAX    4096
#define RESULT_KEEP_MS     ((uint64_t)900 * 1000)
#define RESULT_TOOL        "read_result"
#define RESULT_META        "mcp-orchestrator/result"

struct result_store;

struct result_store *
mo_result_limit_new(struct mo_loop *l);            /* NULL: no memory */
void mo_result_limit_free(struct result_store *s); /* NULL is fine */

struct result_limit {
    const char *who;        /* may read the rest */
    size_t max;             /* bytes */
    bool has_output_schema; /* structured content stays */
    bool by_execute;        /* is how the rest is to be read, too */
};

/* The result as that one may see it. False: it is short enough as it is (or
 * there is no memory: better too much than nothing). */
bool mo_result_limit_cut(struct result_store *s, const struct result_limit *how,
                         struct mo_json result, struct mo_buf *out);

/* The same for a modern server's task, which carries its result. */
bool mo_result_limit_task(struct result_store *s,
                          const struct result_limit *how, struct mo_json task,
                          struct mo_buf *out);

/* Is read_result to be listed? */
bool mo_result_limit_is_on(const struct mo_gateway *g);
/* Is it a call of it, and nobody else's? */
bool mo_result_limit_is_call(const struct mo_gateway *g,
                             const struct mo_ep_call *c);
/* The call, with its arguments. */
void mo_result_limit_call(struct mo_gateway *g, struct mo_ep_call *c,
                          struct mo_json arguments);
/* {"tools":[...]} with it as the first one. */
int mo_result_limit_list(struct mo_span page, struct mo_buf *out);

#endif
