/* rewrite.h - finds the target of a request and rewrites its names.
 *
 * The name in a request is looked up in the catalogue. The server gets the
 * request with its own name for the item, without the members that belong to
 * the client's connection (task, requestState, inputResponses). A request that
 * needs no change is forwarded as the same bytes.
 *
 * The gateway keeps no table of the tasks of modern servers. The exposed id of
 * a task is a keyed hash of the client, the server and the rest of the id,
 * then the result limit of its tool if there is one, then the server's own id.
 * The task of another client is not found.
 *
 *   0123456789abcdef.OWN    0123456789abcdef-10000px.OWN
 *
 * (the limit in hexadecimal bytes; p: has an output schema, x: by execute). */
#ifndef MO_GATEWAY_CALL_REWRITE_H
#define MO_GATEWAY_CALL_REWRITE_H

#include "gateway/call/result_limit.h"

struct call_target {
    struct server_slot *slot;
    struct mo_span own;       /* the server's name for the item */
    struct mo_span given;     /* a tool's configured name, or own */
    struct mo_json item;      /* the item as listed, or none */
    struct mo_json execution; /* its member "execution", or none */
    bool has_output_schema;
    /* Of execute (gateway/router/meta_tools.h): the tool's arguments, else
     * none, and the confidence of the choice. */
    struct mo_json arguments;
    float sure;
    struct mo_json edited; /* arguments changed by a person; or none */
};

/* Finds the target. 0; MO_ENOTFOUND: no server has the item; MO_EINVAL: the
 * request names none. Borrowed until the catalogue changes or the call
 * ends. */
int mo_rewrite_target(struct mo_gateway *g, const struct mo_ep_call *c,
                      struct call_target *t);
/* Copies the names and members of a catalogue item into a target. */
void mo_rewrite_use_item(struct call_target *t, const struct mo_cat_item *it);
/* Answers a request without a target with an error. */
void mo_rewrite_refuse(struct mo_ep_call *c);

/* The arguments that the server gets. */
struct mo_json mo_rewrite_args(const struct mo_ep_call *c,
                               const struct call_target *t);
/* The params for that server: *out is in b, or the client's own bytes. 0 or
 * the buffer's error. */
int mo_rewrite_params(const struct mo_ep_call *c, const struct call_target *t,
                      bool as_task, struct mo_buf *b, struct mo_span *out);
/* True if the request names a resource, skill or directory by a prefixed
 * URI. */
bool mo_rewrite_is_prefixed(const struct mo_ep_call *c,
                            const struct call_target *t);
/* Writes the result of such a request: its URIs get the same prefix. */
int mo_rewrite_result_uris(const struct mo_ep_call *c, struct mo_json result,
                           struct mo_buf *out);
/* True if the result may link to resources of its server (result_links.h). */
bool mo_rewrite_has_links(const struct mo_ep_call *c);
/* True if the server must be asked for a task (2025-11-25). */
bool mo_rewrite_is_task(const struct call_target *t,
                        const struct mo_conn *conn);

/* Writes the result of a tasks/... method, or of a call that became a task,
 * with the exposed task id. */
int mo_rewrite_task_result(struct mo_gateway *g, const struct mo_ep_call *c,
                           const struct server_slot *s,
                           const struct result_limit *how,
                           struct mo_json result, struct mo_buf *out);
/* Reads the result limit from an exposed task id. */
void mo_rewrite_task_limit(struct mo_span id, struct result_limit *how);
bool mo_rewrite_is_task_method(const struct mo_ep_call *c);
/* The target of an exposed task id, if the task belongs to c's client. */
int mo_rewrite_task(struct mo_gateway *g, const struct mo_ep_call *c,
                    struct mo_span id, struct call_target *t);

/* Writes the key of a client: its connection or session, else its caller, and
 * the view that it uses. */
void mo_rewrite_who(uint64_t peer, struct mo_span caller,
                    char out[MO_GW_WHO_MAX]);
void mo_rewrite_client(const struct mo_ep_call *c, char out[MO_GW_WHO_MAX]);
/* Writes the key of a person's own child. */
void mo_rewrite_person(struct mo_span person, char out[MO_GW_WHO_MAX]);
/* The capabilities for a child of this client alone. Empty: they may differ
 * from request to request (modern clients that are not the only one). */
struct mo_span mo_rewrite_caps(const struct mo_gateway *g,
                               const struct mo_ep_call *c);
/* Writes "content" with one text, for results of our own. */
void mo_rewrite_put_text(struct mo_jw *w, struct mo_span text);
/* Answers with the JSON in b, or with an error if memory ran out. */
void mo_rewrite_answer(struct mo_ep_call *c, const struct mo_buf *b);
/* The connection or session in a client key; 0: it is a caller. */
uint64_t mo_rewrite_peer(struct mo_span who);

#endif
