/* failover.h - another try, or another server, for a call that came to nothing.
 *
 * A call has one outcome. So it is sent again only when nothing can have been
 * done yet (no child was to be had, or it was never written), or when doing it
 * twice does no harm: a tool that is called read-only or idempotent by its
 * server or by the configuration, and whatever only reads (resources, prompts,
 * completions). Everything else ends as "not known".
 *
 * First the same server, as often as it may be
 * (gateway/upstream/server_overrides.h) and while the time for the call lasts;
 * then those who stand in for it, in their order, each once, and only for
 * tools. One that is down is not tried again but left at once. Whoever has been
 * asked something by a server, or been given a task, stays with it. */
#ifndef MO_GATEWAY_CALL_FAILOVER_H
#define MO_GATEWAY_CALL_FAILOVER_H

#include "gateway/call/rewrite.h"

#define FAILOVER_MOVES_MAX                                                     \
    8 /* to a server that has replaced the one it was                          \
       */

struct forwarded_call;

struct failover {
    uint64_t begun_ms; /* first written; 0: never */
    unsigned tries;    /* again, on the present server */
    unsigned
        next_fallback; /* the first of those who stand in that was not tried */
    unsigned moves;
    bool sent;          /* one of the tries may have been done */
    bool on_fallback;   /* at one of them */
    bool pinned;        /* a task has begun: it stays */
    char *why;          /* of leaving the first one; NULL: it did not */
    char *first_server; /* its name */
};

enum failover_how {
    FAILOVER_NO_CHILD, /* none was to be had */
    FAILOVER_UNSENT,   /* nothing was written */
    FAILOVER_SENT,     /* it may have been done */
};

void mo_failover_fini(struct failover *d);
/* It has failed. True: it is on its way again. */
bool mo_failover_retry(struct forwarded_call *f, enum failover_how how,
                       const struct mo_err *why);
/* Where it goes now. 0; MO_EBUSY: it was moved and wishes again; MO_ENOTFOUND:
 * it is not there any more. */
int mo_failover_target(struct forwarded_call *f, struct call_target *t);

/* It is about to be sent: how long it may wait for an answer, in ms. */
uint64_t mo_failover_time_left(struct forwarded_call *f,
                               const struct call_target *t);
/* Did an error come before anything was sent? */
bool mo_failover_is_unsent(const struct mo_reply *r);
/* What the result says of where it went; nothing if there is nothing to say. */
int mo_failover_route(struct forwarded_call *f, const struct call_target *t);

#endif
