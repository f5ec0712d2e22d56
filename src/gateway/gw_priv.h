/* gw_priv.h - what the rooms of the gateway share: gateway (life, servers),
 * front (requests of clients), flight (a call that crosses), refresh (what
 * servers offer), watch (resources and log levels wanted, news of servers).
 * Nobody else includes it.
 *
 * Invariants
 *  1. slot->no is the server's number in the catalogue, SLOT_NONE from the
 *     moment it is to go. Only gateway.c writes it.
 *  2. A kid is there from a child's on_open to its on_lost.
 *  3. A slot that is to go closes its up when no flight is on it, or after
 *     GW_DRAIN_MS; it is freed when its up is gone and no flight is on it:
 *     every call on its children has ended by then. */
#ifndef MO_GATEWAY_GW_PRIV_H
#define MO_GATEWAY_GW_PRIV_H

#include <limits.h>

#include "base/map.h"
#include "base/pool.h"
#include "gateway/catalog/catalog.h"
#include "gateway/upstream/latency.h"
#include "gateway/upstream/upstream.h"
#include "mcp/client/pages.h"

#define SLOT_NONE UINT_MAX

#define GW_LIST_MS          2000  /* a list waits so long for servers */
#define GW_FIND_MS          60000 /* a call of what nobody is known to have */
#define GW_AWAY_MS          ((uint64_t)900 * 1000) /* a client that does not return */
#define GW_GATHER_MS        100 /* questions of a legacy server, for one answer */
#define GW_DRAIN_MS         30000 /* calls on a server that is to go */
#define GW_AWAY_MAX         1024  /* flights that wait for their client */
#define GW_WATCHED_MAX      65536 /* resources that somebody listens to */
#define GW_QUIET_MS         5000  /* before servers are told to log less */
#define GW_LISTEN_MS        1000 /* before a lost listen is tried again, at first */
#define GW_LISTEN_MAX       ((uint64_t)300 * 1000)
#define GW_ELICITATIONS_MAX 1024
#define GW_TEXT_MAX         ((size_t)32 * 1024 * 1024) /* of one message */

struct server_slot;

struct reading { /* one list of a server, being read */
    struct gw_child *child;
    struct mo_pages *pages; /* NULL: it is not */
};

struct gw_child {        /* an open child */
    struct mo_list node; /* in slot->kids */
    struct server_slot *slot;
    struct mo_child *child;
    struct mo_conn *conn;
    /* gateway/catalog/refresh.c */
    struct reading lists[MO_CAT_KINDS];
    unsigned busy, again; /* kinds, as bits */
    unsigned announced;   /* those it said have changed */
    bool held, bad;
    /* gateway/catalog/watch.c */
    enum mo_mcp_level level;  /* told; MO_MCP_LEVELS: nothing */
    struct listening *listen; /* NULL: none is open */
    struct mo_timer relisten;
    uint64_t relisten_ms;
    bool no_listen; /* it does not know listens */
};

struct server_slot {     /* a server */
    struct mo_list node; /* in g->leaving */
    struct mo_gateway *g;
    struct mo_upstream *up;
    unsigned no;
    bool gone;    /* up is closed */
    bool closing; /* it was told to close */
    struct server_overrides *overrides;
    struct mo_timer drain; /* to go: for calls that are under way */
    struct mo_later leave; /* the last of them is over */
    struct mo_list calls;  /* under way */
    struct mo_list children;
    struct mo_child_request start; /* for its lists */
    bool starting;
    struct mo_child_request hold; /* for those who listen */
    struct mo_child *held;
    bool holding;
    unsigned nwatched;
};

struct watched_resource {     /* a resource that somebody listens to */
    struct server_slot *slot; /* NULL: nobody can say whose it is */
    unsigned n;               /* endpoints that want it */
};

struct gw_ep {
    struct mo_list node;
    struct mo_endpoint *ep;
};

struct mo_gateway {
    struct mo_gateway_opts o;
    struct mo_loop *loop;
    struct mo_catalog *cat;
    struct router_index *router_index;
    struct router_index
        *query_index; /* over all there is; NULL: not asked yet */
    struct result_store *results;
    struct router_learning *learning;
    struct mo_latency latency;
    struct server_slot **v;
    size_t n;
    struct mo_upstream_pool pool;
    struct mo_list leaving; /* slots */
    struct mo_list eps;
    struct mo_list calls; /* all */
    struct mo_pool spare_calls, spare_cases;
    struct mo_map parked;      /* id -> flight */
    struct mo_list list_waits; /* front.c's */
    struct mo_list reads;      /* inside.c's */
    struct mo_map watched;     /* exposed uri -> struct watched */
    bool listed[3]; /* by enum mo_ep_what: since the last news of it */
    struct mo_map elicitations;  /* gateway/call/elicitation.c's */
    struct mo_map watched_tasks; /* gateway/catalog/watch_task.c's */
    enum mo_mcp_level level;
    struct mo_timer quiet;
    uint64_t key0, key1; /* names of tasks */
    uint64_t lost_logs;  /* nobody could say whose they were */
    size_t kept_bytes;   /* gateway/call/forwarded_call_task.c's */
    struct mo_later ending;
    bool single; /* one client, ever */
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* --- gateway.c ----------------------------------------------------------- */

struct server_slot *mo_gw_slot(struct mo_gateway *g, unsigned no);
struct gw_child *mo_gw_child(const struct server_slot *s,
                             const struct mo_child *c);
/* Tell clients, if any of them has a list that is old now. */
void mo_gw_changed(struct mo_gateway *g, enum mo_ep_what what);
/* Something has gone: may the slot, or the gateway, go too? */
void mo_gw_slot_check(struct server_slot *s);

/* --- front.c ------------------------------------------------------------- */

void mo_gw_front_handle(void *ctx, struct mo_ep_call *c);
/* A call that was on its way and is not: whose it is has to be found anew. */
void mo_gw_front_restart(struct mo_gateway *g, struct mo_ep_call *c);
struct mo_json mo_gw_front_schema(void *ctx, struct mo_span tool);
enum mo_ep_task_support mo_gw_front_task(void *ctx, struct mo_span tool);
/* Lists have come, or cannot: who waited for them may go on. */
void mo_gw_front_settled(struct mo_gateway *g);

/* --- gateway/catalog/refresh.c
 * ----------------------------------------------------------- */

#define LISTS_ALL ((1u << MO_CAT_KINDS) - 1)

/* Ask for the lists of everybody who has none; true: some are on the way. */
bool mo_catalog_refresh_wanted(struct mo_gateway *g, struct mo_span who,
                               struct mo_span caps);
bool mo_catalog_refresh_pending(const struct mo_gateway *g);
/* Everybody's, also those that are known; are any of them on the way? */
void mo_catalog_refresh_all(struct mo_gateway *g, struct mo_span who,
                            struct mo_span caps);
bool mo_catalog_refresh_busy(const struct mo_gateway *g);
void mo_catalog_refresh_child(struct gw_child *k, unsigned kinds);
void mo_catalog_refresh_list_changed(struct gw_child *k, enum mo_cat_kind kind);
void mo_catalog_refresh_stop(struct server_slot *s); /* it is to go */
/* One server's, also if they are known; is it being asked? */
void mo_catalog_refresh_slot(struct server_slot *s, struct mo_span who,
                             struct mo_span caps);
bool mo_catalog_refresh_reading(const struct server_slot *s);
/* The tools of those that run. */
void mo_catalog_refresh_running(struct mo_gateway *g);

/* --- inside.c ------------------------------------------------------------ */

/* Lists have come, or cannot. */
void mo_gw_inside_settled(struct mo_gateway *g);
/* Is it one of our own tools, called from inside? Then that is its name. */
bool mo_gw_inside_name(struct mo_span *name);

/* Does a tool say of its result that it failed? */
static inline bool gw_failed(struct mo_json result)
{
    bool is = false;

    (void)mo_json_bool(mo_json_get(result, "isError"), &is);
    return is;
}

/* --- gateway/catalog/watch.c
 * ------------------------------------------------------------- */

void mo_gw_watch_opened(struct gw_child *k);
void mo_gw_watch_lost(struct gw_child *k);
void mo_gw_watch_notify(struct gw_child *k, const struct mo_rpc *m,
                        uint64_t stream_of);
/* Names may mean something else now. */
void mo_gw_watch_resubscribe(struct mo_gateway *g);
void mo_gw_watch_stop(struct server_slot *s);
void mo_gw_watch_uri(void *ctx, struct mo_span uri, bool on);
void mo_gw_watch_level(void *ctx, enum mo_mcp_level lv);
void mo_gw_watch_fini(struct mo_gateway *g);
void mo_gw_watch_init(struct mo_gateway *g);

/* The child's listen, anew. */
void mo_gw_watch_listen(struct gw_child *k);

/* --- gateway/catalog/watch_task.c
 * -------------------------------------------------------- */

/* A client wants to hear of a task, or does no longer (opts.watch_task). */
void mo_gw_watch_task_wanted(void *ctx, const struct mo_ep_call *listen,
                             struct mo_span id, bool on);
/* "taskIds":[...] of a child's listen, if there are any. */
void mo_gw_watch_task_ids(const struct gw_child *k, struct mo_jw *w);
void mo_gw_watch_task_status(struct gw_child *k, struct mo_json params);
void mo_gw_watch_task_stop(const struct server_slot *s);
void mo_gw_watch_task_fini(struct mo_gateway *g);

/* --- gateway/call/elicitation.c
 * ------------------------------------------------------------- */

struct forwarded_call;

/* The client of the flight is sent to a page by that question. */
void mo_elicitation_begin(const struct forwarded_call *f,
                          struct mo_json params);
/* The server says that somebody is done. */
void mo_elicitation_done(struct gw_child *k, struct mo_json params);
/* peer 0: of the whole endpoint. */
void mo_elicitation_forget(struct mo_gateway *g, const struct mo_endpoint *ep,
                           uint64_t peer);

#endif
