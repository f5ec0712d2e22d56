/* engine.h - a container engine, by Docker's HTTP API.
 *
 * One object is one engine at one address (a unix socket, TCP, or TLS over
 * TCP). mo_engine_hello() agrees on a version of the API and learns what the
 * engine can do; requests may follow. No command line program is used, and two
 * endpoints are never called: /exec enters a running box, and /archive walks
 * its files while it changes them; both have been used to attack engines.
 *
 * Ownership: everything in a request is copied; a reply is borrowed until
 * done() returns. Limits: a gathered reply ENGINE_REPLY_MAX bytes, requests
 * under way and waiting as in httpu.h.
 *
 * It knows requests and answers, and nothing of boxes. */
#ifndef MO_ENGINE_ENGINE_H
#define MO_ENGINE_ENGINE_H

#include "codec/json/json.h"
#include "loop/stream.h"

#define MO_ENGINE_API_MIN  41 /* 1.41: Docker 20.10, podman 3 and later */
#define MO_ENGINE_API_MAX  47
#define MO_ENGINE_HOST_MAX 256
#define MO_ENGINE_PATH_MAX 1024

struct mo_engine;

struct mo_engine_opts {
    const char *host;  /* DOCKER_HOST: unix:///path, tcp://host:port */
    const char *certs; /* tcp: a directory with ca.pem, cert.pem, key.pem;
                          NULL: no TLS */
};

struct mo_engine *mo_engine_new(struct mo_loop *l,
                                const struct mo_engine_opts *o,
                                struct mo_err *e);
/* Cancels the requests under way; gone(ctx) once, later. */
void mo_engine_close(struct mo_engine *en, void (*gone)(void *ctx), void *ctx);
const char *mo_engine_host(const struct mo_engine *en);

/* --- what it is ---------------------------------------------------------- */

struct mo_engine_facts {
    bool podman;
    unsigned api; /* minor: 41 = 1.41 */
    char version[32];
    char arch[24];
    bool seccomp, userns;
    bool memory_limit, swap_limit, pids_limit, cpu_quota;
};

/* Connects; done() once. The facts belong to the engine. */
typedef void mo_engine_greeted(void *ctx, const struct mo_engine_facts *f,
                               const struct mo_err *why);
int mo_engine_hello(struct mo_engine *en, mo_engine_greeted *done, void *ctx,
                    struct mo_err *e);

/* --- requests ------------------------------------------------------------ */

struct mo_engine_reply {
    int status; /* 0: no answer */
    struct mo_span body;
    struct mo_json json; /* none if the body is not JSON */
};

struct mo_engine_req {
    const char *method;  /* NULL: GET */
    const char *path;    /* "/containers/json?all=1"; without the version */
    struct mo_span body; /* p == NULL: none */
    const char *type;    /* of the body; NULL: application/json */
    unsigned total_ms;   /* 0: ANSWER_MS */
    bool stream;         /* may take long: only silence times out */
    uint64_t max_bytes;  /* of a streamed answer; 0: no limit */
    /* Not NULL: called when a good answer begins; its body comes in pieces,
     * and reply.body stays empty. */
    void (*on_head)(void *ctx);
    void (*on_data)(void *ctx, struct mo_span data);
};

struct mo_engine_call;

/* done() once, later. `why` is set for a status of 400 and above too, with the
 * engine's message: 400 MO_EINVAL, 401 and 403 MO_EPOLICY, 404 MO_ENOTFOUND,
 * 409 MO_EEXISTS, the rest MO_EUNAVAIL, as is an engine that cannot be
 * reached. */
typedef void mo_engine_done(void *ctx, const struct mo_engine_reply *r,
                            const struct mo_err *why);
int mo_engine_ask(struct mo_engine *en, const struct mo_engine_req *req,
                  mo_engine_done *done, void *ctx, struct mo_engine_call **out,
                  struct mo_err *e);
void mo_engine_cancel(struct mo_engine_call *c); /* done: MO_ECANCELED */

/* Attaches to stdin, stdout and stderr of a container. done() once: a paused
 * stream with the bytes that came early (valid until it returns), or NULL and
 * why. */
typedef void mo_engine_attached(void *ctx, struct mo_stream *s,
                                struct mo_span early, const struct mo_err *why);
int mo_engine_attach(struct mo_engine *en, const char *id,
                     mo_engine_attached *done, void *ctx,
                     struct mo_engine_call **out, struct mo_err *e);

/* Append path, which ends in "filters=", and {"type":type,"label":[label]}.
 * type: JSON text, or NULL. */
int mo_engine_put_filter(struct mo_buf *b, const char *path, const char *type,
                         const char *label);
/* True for a text that may stand in a path as an id or a name. */
bool mo_engine_is_name(struct mo_span s);

#endif
