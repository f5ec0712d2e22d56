/* try_tool_priv.h - what the files of try_tool.h share.
 *
 *   try_tool.c       jobs, the list of servers, their tools, accepting a change
 *   try_tool_call.c  may a call run, and running it */
#ifndef MO_SERVERS_TRY_TOOL_PRIV_H
#define MO_SERVERS_TRY_TOOL_PRIV_H

#include "base/rand.h"
#include "gateway/inside.h"
#include "servers/tools.h"
#include "servers/try_tool.h"

#define TRIES       32
#define QUESTIONS   16
#define ASK_MS      600000
#define CALL_RANDOM 16 /* bytes of a call's number */
#define ANSWER_MAX  ((size_t)24 * 1024 * 1024)
#define AUDIT_MAX   ((size_t)64 * 1024) /* of a result; a longer one is not */
#define WORD_MAX    1024
#define READ_MS     60000 /* for a server to say what it has */

struct question {
    char digest[MO_EXACT_DIGEST]; /* "": none */
    char call[MO_TOKEN_LEN(CALL_RANDOM) + 1];
    uint64_t expires; /* ns */
};

struct mo_try_tool {
    struct mo_try_tool_opts o;
    struct mo_link *link; /* until the connection has it */
    struct mo_conn *conn; /* NULL: there is none */
    bool open;            /* it is */
    uint64_t peer;        /* its number at the gateway */
    struct mo_list jobs;
    struct question asked[QUESTIONS];
    size_t next;
    unsigned under_way;
    bool stopped;
    struct mo_later ending;  /* calls gone() */
    void (*gone)(void *ctx); /* NULL: it is not being closed */
    void *gone_ctx;
};

enum kind { LIST, CALL, ACCEPT };

struct job {
    struct mo_list node;
    struct mo_try_tool *t;
    enum kind kind;
    bool reading; /* the server's list */
    struct mo_gw_read read;
    struct mo_tools *tools;
    const struct mo_tool *tool;
    struct mo_buf server, name, args, digest, who;
    const char *by; /* "person", "rule" */
    uint64_t began;
    mo_job_done_fn *done;
    void *arg;
};

/* --- try_tool.c
 * --------------------------------------------------------------- */

/* Answer and end the job. */
void mo_try_tool_finish(struct job *j, struct mo_span json,
                        const struct mo_err *why);
void mo_try_tool_finish_buf(struct job *j, struct mo_buf *b);
void mo_try_tool_finish_fail(struct job *j, int code, const char *text);
void mo_try_tool_put(struct mo_jw *w, const char *key, struct mo_span text);
void mo_try_tool_put_json(struct mo_jw *w, const char *key,
                          struct mo_span json);
struct mo_gateway *mo_try_tool_gateway(const struct mo_try_tool *t);

/* --- try_tool_call.c
 * ---------------------------------------------------------- */

void mo_try_tool_run(struct job *j);
/* One row that belongs to no session; nobody waits for it. */
void mo_try_tool_audit(struct job *j, struct mo_span doc);

#endif
