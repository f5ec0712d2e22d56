/* rewrite.h - where a request goes, and what is rewritten on its way.
 *
 * The thing a request names is looked up in the catalogue; towards its server
 * only that name changes (and what is between the client and us goes: task,
 * requestState, inputResponses). A request that needs no change crosses as
 * the bytes it was.
 *
 * Tasks of the modern extension keep no table here: a task's name as clients
 * see it is a keyed hash of who was given it, the server and the rest: how long
 * its tool's results may be, if they may not be any length, and its own name.
 * Somebody else's is not found.
 *
 *   0123456789abcdef.OWN    0123456789abcdef-10000px.OWN
 *
 * (hexadecimal bytes; p: a schema was promised, x: execute ran it). */
#ifndef MO_GATEWAY_CALL_REWRITE_H
#define MO_GATEWAY_CALL_REWRITE_H

#include "gateway/call/result_limit.h"

struct call_target {
    struct server_slot *slot;
    struct mo_span own;       /* the thing's name there */
    struct mo_span given;     /* a tool's, as clients know it here */
    struct mo_json item;      /* as its server lists it, or none */
    struct mo_json execution; /* that member of it, or none */
    bool has_output_schema;   /* it has an outputSchema */
    /* of execute (gateway/router/meta_tools.h): the tool's arguments, else
     * none; how sure it is */
    struct mo_json arguments;
    float sure;
    struct mo_json edited; /* a person's, in the place of any; or none */
};

/* Whom it is for. 0; MO_ENOTFOUND: nobody has it; MO_EINVAL: it names nothing.
 * Borrowed until the catalogue changes or the call ends. */
int mo_rewrite_target(struct mo_gateway *g, const struct mo_ep_call *c,
                      struct call_target *t);
/* What is said when nobody has it. */
void mo_rewrite_refuse(struct mo_ep_call *c);

/* The arguments that its server gets, as they are now. */
struct mo_json mo_rewrite_args(const struct mo_ep_call *c,
                               const struct call_target *t);
/* Its params for that server: *out is in b, or the client's own bytes. 0 or
 * the buffer's error. */
int mo_rewrite_params(const struct mo_ep_call *c, const struct call_target *t,
                      bool as_task, struct mo_buf *b, struct mo_span *out);
/* Must the server be asked for a task (2025-11-25)? */
bool mo_rewrite_is_task(const struct call_target *t,
                        const struct mo_conn *conn);

/* The result of a task's method or of a call that became one: with the name
 * that the client knows. */
int mo_rewrite_task_result(struct mo_gateway *g, const struct mo_ep_call *c,
                           const struct server_slot *s,
                           const struct result_limit *how,
                           struct mo_json result, struct mo_buf *out);
/* How long its tool's results may be, by the name of one that was found. */
void mo_rewrite_task_limit(struct mo_span id, struct result_limit *how);
bool mo_rewrite_is_task_method(const struct mo_ep_call *c);
/* Whose task that is, if it is one of c's client. */
int mo_rewrite_task(struct mo_gateway *g, const struct mo_ep_call *c,
                    struct mo_span id, struct call_target *t);

/* Who asks, for what must not get to another: the connection or session, else
 * the caller. */
void mo_rewrite_who(uint64_t peer, struct mo_span caller,
                    char out[MO_GW_WHO_MAX]);
/* What a child of its own may be told that it can do, for good. Empty: that
 * differs from request to request (modern clients). */
struct mo_span mo_rewrite_caps(const struct mo_ep_call *c);
/* The content of a result that is ours: one text. */
void mo_rewrite_put_text(struct mo_jw *w, struct mo_span text);
/* The connection or session in it, 0: it is a caller. */
uint64_t mo_rewrite_peer(struct mo_span who);

#endif
