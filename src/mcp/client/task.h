/* task.h - a call that was answered with a promise.
 *
 * A server may answer a call with a task: a name to ask for the real answer
 * with, later. In 2025-11-25 we say in the call that we want one (params.task)
 * and fetch the answer with tasks/result; in the modern extension
 * (MO_MCP_EXT_TASKS in our capabilities) the server decides, and tasks/get
 * brings the answer. This room asks until there is one and hands it over as
 * if it were the call's own.
 *
 * What a task wants to know meanwhile: a legacy server asks as always
 * (on_ask); a modern one gives inputRequests, which come up once each in
 * on_input and are answered by mo_task_input().
 *
 * done fires exactly once, from the loop and before the connection's on_close;
 * the task is gone after it. A server that cannot be reached is asked again a
 * few times: the promise outlives a request, but not our connection. */
#ifndef MO_MCP_CLIENT_TASK_H
#define MO_MCP_CLIENT_TASK_H

#include "mcp/client/conn.h"

#define MO_TASK_POLL_MS     1000 /* when the server names no time */
#define MO_TASK_POLL_MIN_MS 50
#define MO_TASK_POLL_MAX_MS 60000
#define MO_TASK_HARD_MS     ((uint64_t)3600 * 1000)
#define MO_TASK_TRIES       5    /* failures in a row, then it is lost */
#define MO_TASK_ID_MAX      1024 /* bytes as written */
#define MO_TASK_INPUTS_MAX  64   /* questions of one task */

enum mo_task_status {
    MO_TASK_WORKING,
    MO_TASK_INPUT,
    MO_TASK_COMPLETED,
    MO_TASK_FAILED,
    MO_TASK_CANCELLED,
    MO_TASK_STATUSES,
};

struct mo_task;

struct mo_task_opts {
    uint64_t hard_ms; /* 0: MO_TASK_HARD_MS; MO_CALL_FOREVER */
    /* Something has changed; message: a string or none. May be NULL. */
    void (*on_status)(void *ctx, enum mo_task_status s, struct mo_json message);
    /* Questions by key, each {method,params}; borrowed. NULL: a task that has
     * any is cancelled (MO_EPOLICY). */
    void (*on_input)(void *ctx, struct mo_task *t, struct mo_json requests);
    void (*done)(void *ctx, const struct mo_reply *r);
    void *ctx;
};

/* Is the result of a call on c a task? */
bool mo_task_is(const struct mo_conn *c, struct mo_json result);

/* Wait for it. MO_EPROTO: it is none, or its name is missing or too long. */
int mo_task_watch(struct mo_conn *c, struct mo_json result,
                  const struct mo_task_opts *o, struct mo_task **out,
                  struct mo_err *e);
/* Answers by key (object text), all or some. An answer that the server does
 * not like leaves it waiting. 0, MO_EBUSY, MO_ETOOBIG, ... */
int mo_task_input(struct mo_task *t, struct mo_span responses);
/* Is that (a JSON string) its name? */
bool mo_task_is_named(const struct mo_task *t, struct mo_json id);
/* The server is told; done follows with MO_ECANCELED. Again = nothing. */
void mo_task_cancel(struct mo_task *t);

#endif
