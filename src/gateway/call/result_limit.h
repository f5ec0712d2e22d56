/* result_limit.h - cuts long results and keeps the rest for read_result.
 *
 * A tool's result may be limited to a number of bytes of text
 * (server_overrides.h). The text is cut after a whole character and ends
 * with a mark that names a handle. The whole text is kept, and the tool
 * read_result returns it piece by piece. Structured content that is too long
 * is left out and kept in the same way, unless the tool has an output
 * schema: then it stays. Images and audio are not cut.
 *
 * At most RESULT_BYTES_MAX bytes are kept, each text for RESULT_KEEP_MS; the
 * oldest goes first. Only the client that asked for the result may read it
 * (the same connection, session or caller). A text that cannot be kept is
 * cut all the same, and the mark says that the rest is lost.
 *
 * Other processes of the store do not have it. A handle ends with the name of
 * its process, "RANDOM.NAME", and a modern client's call that comes to another
 * one is passed there. The name says where to ask and proves nothing.
 *
 * read_result is listed if any tool has a configured limit. With the
 * meta-tools it is run by execute and not listed. */
#ifndef MO_GATEWAY_CALL_RESULT_LIMIT_H
#define MO_GATEWAY_CALL_RESULT_LIMIT_H

#include "gateway/state/state.h"
#include "mcp/server/ep_id.h"

#define RESULT_EXECUTE_MAX ((size_t)65536) /* default for execute */
#define RESULT_LIMIT_MIN   ((size_t)256)   /* lower limits are raised to this */
#define RESULT_PAGE        ((size_t)65536) /* default bytes of one read_result */
#define RESULT_PAGE_MAX    ((size_t)1024 * 1024)
#define RESULT_BYTES_MAX   ((size_t)64 * 1024 * 1024)
#define RESULT_ONE_MAX     ((size_t)16 * 1024 * 1024) /* of one text */
#define RESULT_ROWS_MAX    4096
#define RESULT_KEEP_MS     ((uint64_t)900 * 1000)
#define RESULT_TOOL        "read_result"
#define RESULT_META        "mcp-orchestrator/result"

struct result_store;

struct result_store *
mo_result_limit_new(struct mo_loop *l);            /* NULL: out of memory */
void mo_result_limit_free(struct result_store *s); /* may be NULL */
/* The name of this process, as soon as it has a key; borrowed. */
void mo_result_limit_home(struct result_store *s, const struct mo_ep_home *h);

struct result_limit {
    const char *who;        /* client that may read the rest */
    size_t max;             /* bytes */
    bool has_output_schema; /* keep structured content */
    bool by_execute;        /* the mark names execute for the rest */
};

/* Writes the shortened result. False: it is short enough, or memory ran out;
 * use it as it is. */
bool mo_result_limit_cut(struct result_store *s, const struct result_limit *how,
                         struct mo_json result, struct mo_buf *out);

/* The same for a modern server's task that contains its result. */
bool mo_result_limit_task(struct result_store *s,
                          const struct result_limit *how, struct mo_json task,
                          struct mo_buf *out);

/* True if read_result is to be listed in that view. */
bool mo_result_limit_is_on(const struct mo_gw_view *v);
/* True if c calls our read_result, and no server has a tool of that name. */
bool mo_result_limit_is_call(struct mo_gateway *g, const struct mo_ep_call *c);
/* Answers a call of read_result. */
void mo_result_limit_call(struct mo_gateway *g, struct mo_ep_call *c,
                          struct mo_json arguments);
/* Inserts read_result as the first tool of {"tools":[...]}. */
int mo_result_limit_list(struct mo_span page, struct mo_buf *out);

#endif
