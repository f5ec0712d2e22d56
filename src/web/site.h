/* site.h - the web server on its one port.
 *
 * A table of routes over httpd.h, with access control (gate.h) in front, the
 * same security headers on every answer, and counters of requests. Other files
 * add routes with mo_site_route(); they deal with paths, not sockets.
 *
 * Pages of a listed origin (gate.h) may read every answer: those answers carry
 * CORS headers, and their preflights are granted. Preflights of other origins
 * are not. */
#ifndef MO_WEB_SITE_H
#define MO_WEB_SITE_H

#include "audit/audit.h"
#include "codec/prom.h"
#include "loop/tls.h"
#include "web/gate.h"
#include "web/siod.h"

#define MO_SITE_ROUTES_MAX 256

struct mo_site;
struct mo_strikes_shared; /* strikes.h */

struct mo_site_opts {
    struct mo_httpd_limits limits;
    struct mo_tls_ctx *tls;         /* NULL: no TLS; borrowed */
    struct mo_gate gate;            /* its pointers are borrowed */
    const struct mo_siod_opts *sio; /* NULL: no Socket.IO; copied */
    const char *frames; /* origin that pages may show in frames, or NULL */
    /* Of all workers of the server, borrowed; NULL: there is one process. */
    struct mo_crowd_place crowd;
    struct mo_strikes_shared *strikes;
};

struct mo_site *mo_site_new(struct mo_loop *l, const struct mo_site_opts *o,
                            struct mo_err *e);
/* Refused requests are written there from now on; borrowed. NULL: nowhere. */
void mo_site_audit(struct mo_site *s, struct mo_audit *a);
struct mo_audit *mo_site_audit_now(const struct mo_site *s);
/* Write that the request was refused, for the code of its answer. door: the
 * credential it came with. */
void mo_site_note_refused(struct mo_site *s, const struct mo_req *rq,
                          const char *code, const char *door);
/* Count a request with a missing or wrong token. False if its peer has sent too
 * many: *no is the answer then, and its Retry-After is set. */
bool mo_site_strike(struct mo_site *s, struct mo_req *rq,
                    struct mo_refusal *no);
/* To listen, and to change limits and certificate; borrowed. */
struct mo_httpd *mo_site_httpd(struct mo_site *s);
const struct mo_gate *mo_site_gate_now(const struct mo_site *s);
/* Use these rules from now on; g's pointers are borrowed. */
void mo_site_gate(struct mo_site *s, const struct mo_gate *g);

/* Close the requests that wait, event streams and sockets of this person that
 * came through that door, with that personal token; NULL: any. A `who` that
 * ends with ':' is everybody of that provider. */
void mo_site_drop(struct mo_site *s, const char *who, const char *door,
                  const char *grant);

enum {
    MO_ROUTE_OPEN = 1,    /* a file that everyone may read */
    MO_ROUTE_PREFIX = 2,  /* every path below it too */
    MO_ROUTE_VIEW = 4,    /* a view of the page: strangers see the sign-in */
    MO_ROUTE_WORKERS = 8, /* also for requests of other processes (relay.h) */
};

struct mo_route {
    enum mo_http_method method; /* MO_HTTP_OTHER: any; GET answers HEAD too */
    const char *path; /* "{name}" stands for a segment that is not empty */
    unsigned flags;
    void (*handle)(void *ctx, struct mo_req *rq);
    void *ctx;
    /* Instead of handle(): gets the body, of at most `max` bytes, in one piece;
     * rq->data is ctx. */
    void (*body)(struct mo_req *rq, struct mo_span body);
    size_t max;
    int arg; /* becomes rq->arg, for a function that serves several rows */
};

/* MO_EBUSY when the table is full, MO_EPOLICY if access.h does not say who may
 * use it. The row is copied, its strings are not. Of
 * several paths that fit a request, the one that was added first decides. */
int mo_site_route(struct mo_site *s, const struct mo_route *r);
/* Adds n rows; ctx is for all of them. */
int mo_site_add(struct mo_site *s, const struct mo_route *v, size_t n,
                void *ctx);
/* True if path and method of the request fit the row. */
bool mo_route_fits(const struct mo_route *r, const struct mo_req *rq);
/* Calls the row's function. */
void mo_route_call(const struct mo_route *r, void *ctx, struct mo_req *rq);
/* The i-th segment of the request's path, from 0, still percent-encoded. */
struct mo_span mo_req_segment(const struct mo_req *rq, unsigned i);
/* Answers a request that another worker has admitted, if it is for a row with
 * MO_ROUTE_WORKERS. False: it is not. */
bool mo_site_relayed(struct mo_site *s, struct mo_req *rq);
/* All rows, borrowed until the next one is added. */
size_t mo_site_routes(const struct mo_site *s, const struct mo_route **out);

/* One check of /readyz: returns NULL if ready, else the reason. */
struct mo_ready {
    const char *name;
    const char *(*check)(void *ctx);
    void *ctx;
};

#define MO_SITE_READY_MAX 16

int mo_site_ready(struct mo_site *s, const struct mo_ready *r);

struct mo_prom *mo_site_prom(struct mo_site *s); /* others may add metrics */
/* Answers /metrics instead of the site itself. */
void mo_site_metrics(struct mo_site *s,
                     void (*show)(void *ctx, struct mo_req *rq), void *ctx);

/* Calls before(ctx) before each request is answered, from now on. */
void mo_site_before(struct mo_site *s, void (*before)(void *ctx), void *ctx);

/* Not ready from now on, but everything is served. */
void mo_site_drain(struct mo_site *s);
/* Stop accepting requests, let running ones end, then call `gone`, once,
 * later. */
void mo_site_close(struct mo_site *s, uint64_t grace_ms,
                   void (*gone)(void *ctx), void *ctx);

#endif
