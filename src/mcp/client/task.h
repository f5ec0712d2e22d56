/* task.h - wait for the result of a call that was answered with a task.
 *
 * A server may answer a call with a task: an id with which to fetch the result
 * later. In 2025-11-25 the call asks for one (params.task) and tasks/result
 * fetches the result. In the modern extension (MO_MCP_EXT_TASKS in our
 * capabilities) the server decides, and tasks/get returns the result. This code
 * polls until there is a result and delivers it like the call's own.
 *
 * Questions of a task: a legacy server sends its usual requests (on_ask). A
 * modern server lists inputRequests; each is passed to on_input once and
 * answered with mo_task_input().
 *
 * done fires exactly once, from the loop and before the connection's on_close;
 * the task is freed after it. A failed poll is repeated up to MO_TASK_TRIES
 * times: a task outlives a request, but not its connection. */
#ifndef MO_MCP_CLIENT_TASK_H
#define MO_MCP_CLIENT_TASK_H

#include "mcp/client/conn.h"

#define MO_TASK_POLL_MS     1000 /* if the server gives no interval */
#define MO_TASK_POLL_MIN_MS 50
#define MO_TASK_POLL_MAX_MS 60000
#define MO_TASK_HARD_MS     ((uint64_t)3600 * 1000)
#define MO_TASK_TRIES       5 /* failed polls in a row, then the task fails */
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
    /* The status changed; message: a string or none. May be NULL. */
    void (*on_status)(void *ctx, enum mo_task_status s, struct mo_json message);
    /* Questions by key, each {method,params}; borrowed. NULL: a task that has
     * questions is cancelled (MO_EPOLICY). */
    void (*on_input)(void *ctx, struct mo_task *t, struct mo_json requests);
    void (*done)(void *ctx, const struct mo_reply *r);
    void *ctx;
};

/* True if the result of a call on c is a task. */
bool mo_task_is(const struct mo_conn *c, struct mo_json result);

/* Wait for the task's result. MO_EPROTO: not a task, or its id is missing or
 * too long. */
int mo_task_watch(struct mo_conn *c, struct mo_json result,
                  const struct mo_task_opts *o, struct mo_task **out,
                  struct mo_err *e);
/* Send answers by key (object text), all or some. The server keeps waiting for
 * an answer it rejects. Returns 0, MO_EBUSY, MO_ETOOBIG, ... */
int mo_task_input(struct mo_task *t, struct mo_span responses);
/* True if id (a JSON string) is the task's id. */
bool mo_task_is_named(const struct mo_task *t, struct mo_json id);
/* Cancel the task at the server; done follows with MO_ECANCELED. Repeating it
 * has no effect. */
void mo_task_cancel(struct mo_task *t);

#endif
