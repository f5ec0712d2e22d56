/* api.h - the API of a Kubernetes cluster.
 *
 * One object is one cluster, reached as an access says (access.h). Requests are
 * HTTP/1.1 over TLS with a client certificate or a bearer token; tokens of
 * files and plugins are renewed here.
 *
 * An answer of 429 or 503, and for requests that may be repeated (GET, DELETE)
 * also 500, 502, 504 and a broken connection, is followed by at most
 * MO_KUBE_TRIES - 1 repetitions: after Retry-After, or after a pause that
 * doubles. A 401 leads to one repetition with a new token.
 *
 * Ownership: everything in a request is copied; a reply is borrowed until
 * done() returns. Limits: a gathered reply REPLY_MAX bytes, requests as in
 * httpu.h. It knows requests and answers, and nothing of boxes. */
#ifndef MO_KUBE_API_H
#define MO_KUBE_API_H

#include "codec/json/json.h"
#include "loop/split.h"

#define MO_KUBE_TRIES     4
#define MO_KUBE_PATH_MAX  1024
#define MO_KUBE_TOKEN_MAX ((size_t)32 * 1024)

struct mo_kube;
struct mo_kube_access;

/* Takes the access, also on failure. */
struct mo_kube *mo_kube_new(struct mo_loop *l, struct mo_kube_access *a,
                            struct mo_err *e);
/* Cancels the requests under way; gone(ctx) once, later. */
void mo_kube_close(struct mo_kube *k, void (*gone)(void *ctx), void *ctx);
const char *mo_kube_server(const struct mo_kube *k);
const char *mo_kube_what(const struct mo_kube *k); /* which access it is */

/* --- requests ------------------------------------------------------------ */

struct mo_kube_reply {
    int status; /* 0: no answer */
    struct mo_span body;
    struct mo_json json; /* none if the body is not JSON */
};

struct mo_kube_req {
    const char *method;  /* NULL: GET */
    const char *path;    /* "/api/v1/namespaces/boxes/pods" */
    struct mo_span body; /* JSON, of a PATCH a merge patch; p == NULL: none */
    unsigned total_ms;   /* of one try; 0: ANSWER_MS */
    unsigned idle_ms;    /* of a streamed answer; 0: forever */
    bool once;           /* no repetitions */
    /* Not NULL: a good answer comes in pieces, and reply.body is empty. */
    void (*on_data)(void *ctx, struct mo_span data);
    void (*on_head)(void *ctx); /* such an answer begins */
};

struct mo_kube_call;

/* done() once, later. `why` is set for a status of 400 and above too, with the
 * cluster's message: 400 and 422 MO_EINVAL, 401 and 403 MO_EPOLICY, 404
 * MO_ENOTFOUND, 409 MO_EEXISTS, 410 MO_ECLOSED, the rest MO_EUNAVAIL, as is a
 * cluster that cannot be reached. */
typedef void mo_kube_done(void *ctx, const struct mo_kube_reply *r,
                          const struct mo_err *why);
int mo_kube_ask(struct mo_kube *k, const struct mo_kube_req *req,
                mo_kube_done *done, void *ctx, struct mo_kube_call **out,
                struct mo_err *e);
void mo_kube_cancel(struct mo_kube_call *c); /* done: MO_ECANCELED */

/* Attaches to stdin, stdout and stderr of a pod's container: path is that of
 * the attach with its query. done() once: the connection and the
 * version of its protocol, or why. */
typedef void mo_kube_attached(void *ctx, struct mo_stream *s,
                              struct mo_span early, enum mo_split_wire wire,
                              const struct mo_err *why);
int mo_kube_attach(struct mo_kube *k, const char *path, mo_kube_attached *done,
                   void *ctx, struct mo_kube_call **out, struct mo_err *e);

#endif
