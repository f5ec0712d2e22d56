/* opts.h - the options of a gateway; see gateway/gateway.h. */
#ifndef MO_GATEWAY_STATE_OPTS_H
#define MO_GATEWAY_STATE_OPTS_H

#include <stdatomic.h>

#include "config/choices.h"
#include "gateway/upstream/upstream.h"
#include "policy/approval_hooks.h"

#define MO_GW_WHO_MAX 208 /* key of a client, with its NUL */
/* In front of the name of one of the gateway's own tools, when it is called
 * from inside (gateway/inside.h). */
#define MO_GW_OURS    "router/"

struct mo_budget; /* budget/budget.h */
struct mo_config; /* config/config.h */

#define MO_LISTS_SHARED 256

/* Memory of all workers: how often lists of servers were written to the cache,
 * by a hash of the server's name; how often a server said that its list of a
 * kind (enum mo_ep_what) has changed, and it had not; and both in all. */
struct mo_lists_shared {
    atomic_uint all, v[MO_LISTS_SHARED], announced[3];
};

/* How other processes learn of subscriptions to resources; all NULL: there are
 * none. */
struct mo_gw_watching {
    /* A client here has subscribed to a resource, or none is any longer. */
    void (*changed)(void *ctx, struct mo_span uri, bool on);
    /* A resource was updated that clients of that process watch. */
    void (*updated)(void *ctx, const char *to, struct mo_span uri);
    void *ctx;
};

struct mo_gateway_opts {
    struct mo_upstream_opts up; /* the loop, and how servers are reached */
    enum mo_gw_prefix prefix;
    enum mo_gw_expose expose;
    unsigned few;                 /* tools, for MO_GW_AUTO; 0: META_TOOLS_FEW */
    unsigned most;                /* children of all servers; 0: default */
    struct mo_span table, pieces; /* the router's vectors (route/vector.h), */
                                  /* borrowed; empty: words only */
    const char *cache;            /* directory of the list cache; NULL: none */
    const char *learning_file;    /* of the router; NULL: none */
    const struct mo_config *cfg;  /* for the embeddings server; NULL: none */
    const char *embeddings_file;  /* its vectors; NULL: none */
    uint64_t away_ms;   /* for a modern client to return with its answers to
                         * a server's questions; 0: 15 min */
    uint64_t gather_ms; /* wait for more questions of a legacy server before
                         * asking a modern client; 0: GW_GATHER_MS */
    uint64_t list_ms;   /* a list request waits for a server that was never
                         * read; 0: GW_LIST_FIRST_MS */
    struct mo_budget *budget;       /* limits of calls; borrowed, or NULL */
    struct mo_approval_hooks judge; /* approves calls; has its own context */
};

#endif
