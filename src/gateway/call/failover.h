/* failover.h - retries a failed call, or moves it to a fallback server.
 *
 * A call is sent again only if nothing can have been done yet (there was no
 * child, or nothing was written), or if repeating it does no harm: a tool that
 * its server or the configuration declares read-only or idempotent, or a
 * method that only reads (resources, prompts, completions). Otherwise the
 * outcome is "unknown".
 *
 * First the same server is tried, up to the configured retries
 * (server_overrides.h) and within the time for the call. Then its fallback
 * servers, in order, each once, and only for tools. A server that cannot be
 * reached is not retried. A call stays with its server once that server has
 * asked a question or given it a task. */
#ifndef MO_GATEWAY_CALL_FAILOVER_H
#define MO_GATEWAY_CALL_FAILOVER_H

#include "gateway/call/rewrite.h"

/* Most moves to a server that replaced the one of that name. */
#define FAILOVER_MOVES_MAX 8

struct forwarded_call;

struct failover {
    uint64_t begun_ms;      /* first written; 0: never */
    unsigned tries;         /* retries on the current server */
    unsigned next_fallback; /* first fallback that was not tried */
    unsigned moves;
    bool sent;          /* one of the tries may have been run */
    bool on_fallback;   /* the current server is a fallback */
    bool pinned;        /* a task has begun: no more moves */
    char *why;          /* why it left the first server; NULL: it did not */
    char *first_server; /* name of that server */
};

enum failover_how {
    FAILOVER_NO_CHILD, /* there was no child */
    FAILOVER_UNSENT,   /* nothing was written */
    FAILOVER_SENT,     /* the server may have run it */
};

void mo_failover_fini(struct failover *d);
/* Call after a failure. True: the call is being tried again. */
bool mo_failover_retry(struct forwarded_call *f, enum failover_how how,
                       const struct mo_err *why);
/* The current target. 0; MO_EBUSY: the call was moved and requests a child
 * again; MO_ENOTFOUND: the target no longer exists. */
int mo_failover_target(struct forwarded_call *f, struct call_target *t);

/* Call before sending. Returns how long to wait for an answer, in ms. */
uint64_t mo_failover_time_left(struct forwarded_call *f,
                               const struct call_target *t);
/* True if the error occurred before anything was sent. */
bool mo_failover_is_unsent(const struct mo_reply *r);
/* Writes f->route: where the call goes, for _meta of its result; empty if it
 * runs unchanged on the server that the client named. */
int mo_failover_route(struct forwarded_call *f, const struct call_target *t);

#endif
