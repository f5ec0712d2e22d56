/* try_tool_priv.h - shared by the files of try_tool.h.
 *
 *   try_tool.c       jobs, list of servers, their tools, accepting a change
 *   try_tool_call.c  decides whether a call may run, and runs it
 *   try_tool_live.c  progress, questions and cancelling while it runs */
#ifndef MO_SERVERS_TRY_TOOL_PRIV_H
#define MO_SERVERS_TRY_TOOL_PRIV_H

#include "base/rand.h"
#include "gateway/inside.h"
#include "servers/tools.h"
#include "servers/try_tool.h"

#define TRIES            32
/* As of conversations: they share processes of the servers. */
#define TRY_CAPABILITIES "{\"elicitation\":{\"form\":{},\"url\":{}}}"
#define QUESTIONS        16
#define ASK_MS           600000
#define CALL_RANDOM      16 /* bytes of a nonce */
#define ANSWER_MAX       ((size_t)24 * 1024 * 1024)
#define AUDIT_MAX        ((size_t)64 * 1024) /* of a result; longer: not logged */
#define WORD_MAX         1024
#define READ_MS          60000 /* timeout for the list of a server */
#define PROGRESS_MAX     ((size_t)64 * 1024)

struct question {
    char digest[MO_EXACT_DIGEST]; /* "": unused */
    char call[MO_TOKEN_LEN(CALL_RANDOM) + 1];
    uint64_t expires; /* ns */
};

struct mo_try_tool {
    struct mo_try_tool_opts o;
    struct mo_link *link; /* NULL once the connection owns it */
    struct mo_conn *conn; /* NULL: not connected */
    bool open;            /* conn is open */
    uint64_t client;      /* client id at the gateway */
    struct mo_list jobs;
    struct question asked[QUESTIONS];
    size_t next;
    unsigned under_way;
    bool stopped;
    struct mo_later ending; /* calls gone() */
    struct mo_gone gone;    /* NULL: not closing */
};

enum kind { LIST, KNOWN, CALL, ACCEPT }; /* KNOWN: LIST without a start */

struct job {
    struct mo_list node;
    struct mo_try_tool *t;
    enum kind kind;
    bool reading; /* waits for the list of the server */
    struct mo_gw_read read;
    struct mo_tools *tools;
    const struct mo_tool *tool;
    struct mo_buf server, name, args, digest, who;
    const char *by;   /* "person", "rule" */
    const char *from; /* door of the request */
    struct mo_door door;
    enum mo_answered answered;
    uint64_t began;
    struct mo_buf run;      /* its name for look and tell; empty: none */
    struct mo_call *call;   /* NULL: not sent yet, or over */
    bool canceled;          /* by the person */
    struct mo_buf progress; /* JSON object; empty: none */
    struct mo_ask *ask;     /* open question of the server, or NULL */
    char ask_id[MO_TOKEN_LEN(CALL_RANDOM) + 1];
    struct mo_timer ask_timer;
    mo_job_done_fn *done;
    void *arg;
};

/* --- try_tool.c ---------------------------------------------------------- */

/* Answers and frees the job. */
void mo_try_tool_finish(struct job *j, struct mo_span json,
                        const struct mo_err *why);
void mo_try_tool_finish_buf(struct job *j, struct mo_buf *b);
void mo_try_tool_finish_fail(struct job *j, int code, const char *text);
void mo_try_tool_put_json(struct mo_jw *w, const char *key,
                          struct mo_span json);
struct mo_gateway *mo_try_tool_gateway(const struct mo_try_tool *t);

/* --- try_tool_call.c ----------------------------------------------------- */

void mo_try_tool_run(struct job *j);

/* --- try_tool_live.c ----------------------------------------------------- */

void mo_try_tool_live_init(struct job *j);
void mo_try_tool_live_end(struct job *j); /* an open question is canceled */
/* Callbacks of the call and of the connection. */
void mo_try_tool_progress(void *ctx, struct mo_json params);
void mo_try_tool_question(void *ctx, struct mo_conn *conn, struct mo_ask *a);
void mo_try_tool_question_gone(void *ctx, struct mo_ask *a);

#endif
