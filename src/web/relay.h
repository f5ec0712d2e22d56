/* relay.h - HTTP requests that one process of a store passes to another.
 *
 *   client -> gate of this process -> store.dir/run/NAME.http -> handler there
 *                                  -> TLS (peer/cluster.h)    -> the same, on
 *                                                                another
 * machine
 *
 * The process that a client is connected to judges who it is. It passes the
 * request on with that as one header, "Mo-Relay": name, role, personal token,
 * door, address and groups. Only this socket's requests are believed it: a
 * process of the same user or of root at a socket of mode 0600, which could
 * read and write the store and the memory of this one, or a server of another
 * machine that has proved the key (peer/peer.h). Elsewhere the header means
 * nothing, and it is never copied from a client's request.
 *
 * An answer is passed back as it comes, event streams included. Reading stops
 * while the client does not read. Either side's end ends the other's.
 *
 * Limits: CONNS_MAX connections at the socket; one connection a request. */
#ifndef MO_WEB_RELAY_H
#define MO_WEB_RELAY_H

#include "loop/httpd.h"
#include "peer/cluster.h"
#include "people/people.h"

#define MO_RELAY_ASK_MS 2000

struct mo_relay;

struct mo_relay_opts {
    const char *dir, *instance;
    struct mo_httpd_limits limits; /* of a request */
    /* A request that another process has admitted: who, caller, role, grant,
     * door, from and groups are set. */
    void (*handler)(void *ctx, struct mo_req *rq);
    void *ctx;
    struct mo_people *const *people; /* who know groups */
    struct mo_cluster *cluster;      /* other machines; NULL: none. Borrowed */
};

int mo_relay_open(struct mo_loop *l, const struct mo_relay_opts *o,
                  struct mo_relay **out, struct mo_err *e);
/* No further requests of others, and the end of passed requests whose answers
 * carry only notifications, and of polls; drained(ctx) once, later, when the
 * running ones have been answered or the time is over. */
void mo_relay_stop(struct mo_relay *r, uint64_t grace_ms,
                   void (*drained)(void *ctx), void *ctx);
/* After that, when the clients of all passed requests are gone. */
void mo_relay_close(struct mo_relay *r, void (*gone)(void *ctx), void *ctx);

enum mo_relay_end {
    MO_RELAY_DONE,   /* answered */
    MO_RELAY_UNSENT, /* nobody listens there: the request had no effect */
    MO_RELAY_UNMET,  /* no connection: it had no effect, the process may live */
    MO_RELAY_SENT,   /* lost without an answer: it may have had one */
    MO_RELAY_BEGUN,  /* lost within its answer, which must be ended */
};
typedef void mo_relay_done(void *ctx, struct mo_req *rq, enum mo_relay_end end,
                           const struct mo_err *why);

/* Pass the request to the process at that path (peer/others.h). Uses rq->data
 * and rq->gone meanwhile. done() is called once, later; rq NULL: the client has
 * gone. */
int mo_relay_pass(struct mo_relay *r, const char *path, struct mo_req *rq,
                  struct mo_span body, mo_relay_done *done, void *ctx,
                  struct mo_err *e);

/* Append what is said about the sender of a request. */
int mo_relay_facts(const struct mo_relay *r, const struct mo_req *rq,
                   struct mo_buf *out);

/* The same of this process itself, which speaks for no person. */
int mo_relay_own_facts(struct mo_buf *out);

struct mo_relay_ask {
    const char *path, *method, *url;
    struct mo_span facts;
    struct mo_span body; /* JSON; empty: none */
    unsigned ms;         /* 0: MO_RELAY_ASK_MS */
};
/* Send a request of our own for that sender. done() is called once, at most
 * q->ms later; status 0: no answer. */
int mo_relay_ask(struct mo_relay *r, const struct mo_relay_ask *q,
                 void (*done)(void *ctx, int status, struct mo_span body),
                 void *ctx, struct mo_err *e);

#endif
