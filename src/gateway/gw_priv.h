/* gw_priv.h - the gateway's state, shared by its files: gateway.c (life,
 * servers, endpoints), front.c (requests of clients), refresh.c (reads the
 * servers' lists), watch.c and watch_task.c (subscriptions, log levels,
 * notifications), call/ (forwarded calls) and router/ (meta-tools, search).
 * Not included outside of src/gateway.
 *
 * Invariants
 *  1. slot->no is the server's number in the catalogue, or SLOT_NONE once the
 *     server has been removed. Only gateway.c writes it.
 *  2. A gw_child exists from a child's on_open to its on_lost.
 *  3. A removed slot closes its upstream when it has no calls, or after
 *     GW_DRAIN_MS. It is freed when its upstream is gone and it has no calls:
 *     every call on its children has ended by then. */
#ifndef MO_GATEWAY_GW_PRIV_H
#define MO_GATEWAY_GW_PRIV_H

#include <limits.h>

#include "base/map.h"
#include "base/pool.h"
#include "gateway/catalog/catalog.h"
#include "gateway/gateway.h"
#include "gateway/upstream/latency.h"
#include "gateway/upstream/upstream.h"
#include "mcp/client/pages.h"

#define SLOT_NONE UINT_MAX

#define GW_LIST_MS          2000  /* a list request waits for servers */
#define GW_FIND_MS          60000 /* a call of an unknown name waits for them */
#define GW_AWAY_MS          ((uint64_t)900 * 1000) /* default of opts.away_ms */
#define GW_GATHER_MS        100   /* default of opts.gather_ms */
#define GW_DRAIN_MS         30000 /* for the calls of a removed server */
#define GW_AWAY_MAX         1024  /* calls that wait for their client */
#define GW_WATCHED_MAX      65536 /* resources with a subscription */
#define GW_QUIET_MS         5000  /* before servers are told to log less */
#define GW_LISTEN_MS        1000  /* first pause before a listen is renewed */
#define GW_LISTEN_MAX       ((uint64_t)300 * 1000) /* longest such pause */
#define GW_ELICITATIONS_MAX 1024
#define GW_TEXT_MAX         ((size_t)32 * 1024 * 1024) /* of one message */

struct server_slot;
struct call_target;

struct reading { /* one list of a server, being read */
    struct gw_child *child;
    struct mo_pages *pages; /* NULL: not being read */
};

struct gw_child {        /* an open child */
    struct mo_list node; /* in slot->children */
    struct server_slot *slot;
    struct mo_child *child;
    struct mo_conn *conn;
    /* refresh.c */
    struct reading lists[MO_CAT_KINDS];
    unsigned busy, again; /* lists being read, and to be read again; bits */
    unsigned announced;   /* lists it said have changed; bits */
    bool held, bad;       /* held while reading; a list could not be read */
    /* watch.c */
    enum mo_mcp_level level;  /* set there; MO_MCP_LEVELS: none */
    struct listening *listen; /* NULL: none is open */
    struct mo_timer relisten;
    uint64_t relisten_ms;
    bool no_listen; /* it does not support subscriptions/listen */
};

struct server_slot {     /* a configured server */
    struct mo_list node; /* in g->leaving */
    struct mo_gateway *g;
    struct mo_upstream *up;
    unsigned no;
    bool gone;    /* up is closed */
    bool closing; /* up is being closed */
    struct server_overrides *overrides;
    struct mo_timer drain; /* removed: ends its remaining calls */
    struct mo_later leave; /* removed: its last call ended */
    struct mo_list calls;  /* under way */
    struct mo_list children;
    struct mo_child_request start; /* for reading its lists */
    bool starting;
    struct mo_child_request hold; /* for subscriptions */
    struct mo_child *held;
    bool holding;
    unsigned nwatched; /* resources with a subscription */
};

struct watched_resource {
    struct server_slot *slot; /* NULL: its server is not known */
    unsigned n;               /* endpoints that subscribed */
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
    struct router_index *query_index; /* also unoffered tools; NULL: unused */
    struct result_store *results;
    struct router_learning *learning;
    /* The router's mo_meta_tools_execute_target(), for call/rewrite.c. */
    bool (*execute_target)(struct mo_gateway *g, const struct mo_ep_call *c,
                           struct call_target *t, int *rc);
    struct mo_latency latency;
    struct server_slot **v;
    size_t n;
    struct mo_upstream_pool pool;
    struct mo_list leaving; /* removed slots */
    struct mo_list eps;
    struct mo_list calls; /* all */
    struct mo_pool spare_calls, spare_cases;
    struct mo_map parked;      /* id -> forwarded call without its client */
    struct mo_list list_waits; /* front.c */
    struct mo_list reads;      /* inside.c */
    struct mo_map watched;     /* exposed URI -> struct watched_resource */
    bool listed[3]; /* by enum mo_ep_what: listed since the last change */
    struct mo_map elicitations;  /* call/elicitation.c */
    struct mo_map watched_tasks; /* watch_task.c */
    enum mo_mcp_level level;
    struct mo_timer quiet;
    uint64_t key0, key1; /* of the hash in task names */
    uint64_t lost_logs;  /* log messages whose client is unknown */
    size_t kept_bytes;   /* outcomes in call/forwarded_call_task.c */
    struct mo_later ending;
    bool single; /* there is only ever one client */
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* --- gateway.c ----------------------------------------------------------- */

struct server_slot *mo_gw_slot(struct mo_gateway *g, unsigned no);
struct gw_child *mo_gw_child(const struct server_slot *s,
                             const struct mo_child *c);
/* Tells clients that have read a list since its last change. */
void mo_gw_changed(struct mo_gateway *g, enum mo_ep_what what);
/* Frees a removed slot, and the gateway, once nothing uses it. */
void mo_gw_slot_check(struct server_slot *s);

/* --- front.c ------------------------------------------------------------- */

void mo_gw_front_handle(void *ctx, struct mo_ep_call *c);
/* Handles a call again whose server was removed before it was sent. */
void mo_gw_front_restart(struct mo_gateway *g, struct mo_ep_call *c);
struct mo_json mo_gw_front_schema(void *ctx, struct mo_span tool);
enum mo_ep_task_support mo_gw_front_task(void *ctx, struct mo_span tool);
/* A list was read, or could not be: continues the calls that waited. */
void mo_gw_front_settled(struct mo_gateway *g);
/* The table of servers was replaced: calls that waited look again, and wait for
 * the lists of a replaced server if they must. */
void mo_gw_front_reloaded(struct mo_gateway *g);

/* --- refresh.c ----------------------------------------------------------- */

#define LISTS_ALL ((1u << MO_CAT_KINDS) - 1)

/* Reads the lists of all servers that have none. True: some are pending. */
bool mo_catalog_refresh_wanted(struct mo_gateway *g, struct mo_span who,
                               struct mo_span caps);
bool mo_catalog_refresh_pending(const struct mo_gateway *g);
/* Reads the lists of all servers, also known ones. */
void mo_catalog_refresh_all(struct mo_gateway *g, struct mo_span who,
                            struct mo_span caps);
bool mo_catalog_refresh_busy(const struct mo_gateway *g);
void mo_catalog_refresh_child(struct gw_child *k, unsigned kinds);
void mo_catalog_refresh_list_changed(struct gw_child *k, enum mo_cat_kind kind);
void mo_catalog_refresh_stop(struct server_slot *s); /* it was removed */
/* Reads the lists of one server, also known ones. */
void mo_catalog_refresh_slot(struct server_slot *s, struct mo_span who,
                             struct mo_span caps);
bool mo_catalog_refresh_reading(const struct server_slot *s);
/* Reads the tools of all servers that are running. */
void mo_catalog_refresh_running(struct mo_gateway *g);

/* --- inside.c ------------------------------------------------------------ */

/* A list was read, or could not be. */
void mo_gw_inside_settled(struct mo_gateway *g);
/* True if *name has the prefix MO_GW_OURS, which is then removed. */
bool mo_gw_inside_name(struct mo_span *name);

/* True if a tool's result says that the tool failed. */
static inline bool gw_failed(struct mo_json result)
{
    bool is = false;

    (void)mo_json_bool(mo_json_get(result, "isError"), &is);
    return is;
}

/* --- watch.c ------------------------------------------------------------- */

void mo_gw_watch_opened(struct gw_child *k);
void mo_gw_watch_lost(struct gw_child *k);
void mo_gw_watch_notify(struct gw_child *k, const struct mo_rpc *m,
                        uint64_t stream_of);
/* The catalogue changed: subscribes to resources whose server was unknown. */
void mo_gw_watch_resubscribe(struct mo_gateway *g);
void mo_gw_watch_stop(struct server_slot *s);
void mo_gw_watch_uri(void *ctx, struct mo_span uri, bool on);
void mo_gw_watch_level(void *ctx, enum mo_mcp_level lv);
void mo_gw_watch_fini(struct mo_gateway *g);
void mo_gw_watch_init(struct mo_gateway *g);

/* Opens the child's listen, replacing an open one. */
void mo_gw_watch_listen(struct gw_child *k);

/* --- watch_task.c -------------------------------------------------------- */

/* A client subscribes to a task, or no longer does (opts.watch_task). */
void mo_gw_watch_task_wanted(void *ctx, const struct mo_ep_call *listen,
                             struct mo_span id, bool on);
/* Writes "taskIds":[...] of a child's listen, if there are any. */
void mo_gw_watch_task_ids(const struct gw_child *k, struct mo_jw *w);
void mo_gw_watch_task_status(struct gw_child *k, struct mo_json params);
void mo_gw_watch_task_stop(const struct server_slot *s);
void mo_gw_watch_task_fini(struct mo_gateway *g);

/* --- call/elicitation.c -------------------------------------------------- */

struct forwarded_call;

/* The client of the call is asked to open a URL. */
void mo_elicitation_begin(const struct forwarded_call *f,
                          struct mo_json params);
/* The server says that the person has finished there. */
void mo_elicitation_done(struct gw_child *k, struct mo_json params);
/* Forgets those of one client; peer 0: of the whole endpoint. */
void mo_elicitation_forget(struct mo_gateway *g, const struct mo_endpoint *ep,
                           uint64_t peer);

#endif
