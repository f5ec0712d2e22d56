/* state.h - the gateway's state, shared by its files: call/ (forwarded calls),
 * router/ (meta-tools, search) and those of gateway/. Not included outside of
 * src/gateway.
 *
 * Invariants
 *  1. slot->no is the server's number in the catalogue, or SLOT_NONE once the
 *     server has been removed. Only gateway.c writes it.
 *  2. A gw_child exists from a child's on_open to its on_lost.
 *  3. A removed slot closes its upstream when it has no calls, or after
 *     GW_DRAIN_MS. It is freed when its upstream is gone and it has no calls:
 *     every call on its children has ended by then. */
#ifndef MO_GATEWAY_STATE_STATE_H
#define MO_GATEWAY_STATE_STATE_H

#include <limits.h>

#include "base/map.h"
#include "base/pool.h"
#include "config/keys.h"
#include "gateway/catalog/catalog.h"
#include "gateway/state/opts.h"
#include "gateway/upstream/latency.h"
#include "mcp/client/pages.h"
#include "mcp/server/endpoint.h"

#define SLOT_NONE    UINT_MAX
#define SLOT_SCRIPTS (UINT_MAX - 1) /* of g->script.slot */

/* A list request waits so long for a server whose lists are not known, counted
 * from the first request: while it is being installed; while it starts; if it
 * did not answer in time before, in an earlier run too. */
#define GW_LIST_INSTALL_MS 25000
#define GW_LIST_FIRST_MS   10000
#define GW_LIST_AGAIN_MS   2000
#define GW_PROGRESS_MS     1000  /* between two reports of such a wait */
#define GW_FIND_MS         60000 /* a call of an unknown name waits for them */
#define GW_AWAY_MS         ((uint64_t)900 * 1000) /* default of opts.away_ms */
#define GW_GATHER_MS       100 /* default of opts.gather_ms */
#define GW_PERSON_LIST_MS                                                      \
    ((uint64_t)300 * 1000)        /* lists of a server with users'             \
                                   * credentials stay so long */
#define GW_DRAIN_MS         30000 /* for the calls of a removed server */
#define GW_AWAY_MAX         1024  /* calls that wait for their client */
#define GW_WATCHED_MAX      65536 /* resources with a subscription */
#define GW_QUIET_MS         5000  /* before servers are told to log less */
#define GW_RETELL_MS        200   /* between changes that nobody read here */
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
    bool held, bad;       /* held while reading; its tools could not be read */
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
    bool gone;                                /* up is closed */
    bool closing;                             /* up is being closed */
    const struct server_overrides *overrides; /* of the catalogue; or NULL */
    struct mo_timer drain; /* removed: ends its remaining calls */
    struct mo_later leave; /* removed: its last call ended */
    struct mo_list calls;  /* under way */
    struct mo_list children;
    struct mo_child_request start; /* for reading its lists */
    bool starting;
    uint64_t asked_ms; /* a client first asked for its lists; 0: none did */
    uint64_t read_ms;  /* its lists were read last; 0: never */
    struct mo_child_request hold; /* for subscriptions */
    struct mo_child *held;
    bool holding;
    unsigned nwatched; /* resources with a subscription */
    unsigned nheld;    /* of them by clients of this process */
    bool listen_due;   /* watch.c: within a batch */
    unsigned shared;   /* of g->lists, as far as its lists were read */
};

struct watched_resource {
    struct server_slot *slot; /* NULL: its server is not known */
    unsigned n;               /* endpoints that subscribed */
    unsigned others;          /* processes whose clients did */
};

/* The part of the gateway that clients of an endpoint see: a configured view,
 * or everything (g->whole). It is the ctx of the endpoint's callbacks and the
 * scope of its calls. */
struct mo_gw_view {
    struct mo_list node; /* in g->views */
    struct mo_gateway *g;
    char name[MO_KEY_NAME_MAX + 1]; /* "": everything */
    struct mo_catalog *part;        /* NULL: the whole catalogue */
    int expose; /* enum mo_gw_expose, or MO_GW_EXPOSE_SAME */
    struct router_index *router_index; /* of the part; NULL: not used yet */
    struct router_index *skill_index;  /* NULL: not used yet */
    bool listed[3];   /* by enum mo_ep_what: listed since the last change */
    uint64_t sums[3]; /* of these lists, when they were listed or told */
    bool untold[3];   /* changed while listed was false */
    struct mo_timer retell;
    struct mo_map watched; /* URI here -> struct view_watch (watch.c) */
};

struct gw_ep {
    struct mo_list node;
    struct mo_endpoint *ep;
    struct mo_gw_view *view;
};

struct forwarded_call;

/* Scripts of clients (gateway/script/script.h). */
struct gw_scripts {
    struct server_slot *slot; /* NULL: there are none */
    unsigned max;             /* calls of run_script at a time */
    uint64_t max_seconds;
    /* For call/, from the folder above it. True if c calls run_script. */
    bool (*target)(struct mo_gateway *g, const struct mo_ep_call *c,
                   struct call_target *t);
    /* Writes the params of the request. */
    int (*begin)(struct forwarded_call *f, const struct call_target *t,
                 struct mo_buf *params);
    /* Time in ms that it may take. */
    uint64_t (*time)(const struct forwarded_call *f,
                     const struct call_target *t);
    void (*frame)(void *ctx, struct mo_json params); /* ctx: the call */
    void (*end)(struct forwarded_call *f);
    /* For router/: how a script sees the tool, if scripts are to be written. */
    void (*declare)(struct mo_jw *w, const struct mo_gw_view *v,
                    const struct mo_cat_item *it);
};

struct mo_gateway {
    struct mo_gateway_opts o;
    struct mo_loop *loop;
    struct mo_catalog *cat;
    struct router_index *router_index;
    struct router_index *query_index; /* also unoffered tools; NULL: unused */
    struct result_store *results;
    struct router_learning *learning;
    struct embeddings *embeddings; /* NULL: not configured */
    /* For call/, from the folders above it: the router's
     * mo_meta_tools_execute_target(), mo_gw_front_restart() and
     * mo_catalog_refresh_child() and mo_catalog_refresh_slot(). */
    bool (*execute_target)(struct mo_gateway *g, const struct mo_ep_call *c,
                           struct call_target *t, int *rc);
    void (*restart)(struct mo_gateway *g, struct mo_ep_call *c);
    void (*read_lists)(struct gw_child *k, unsigned kinds);
    void (*refresh_slot)(struct server_slot *s, struct mo_span who,
                         struct mo_span person, struct mo_span caps);
    struct gw_scripts script;
    struct mo_latency latency;
    struct mo_lists_shared *lists; /* NULL: there are no other workers */
    unsigned lists_all;            /* of it, as far as they were read */
    unsigned announced[3];         /* the same */
    void (*tell)(void *ctx);
    void *tell_ctx;
    struct server_slot **v;
    size_t n;
    struct mo_upstream_pool pool;
    struct mo_upstream_pool
        person_pool; /* of servers with users' credentials */
    struct mo_list
        connects; /* call/connect_ask.c: calls of persons who sign in */
    struct mo_list leaving; /* removed slots */
    struct mo_list eps;
    struct mo_gw_view whole;
    struct mo_list views;
    struct mo_list calls; /* all */
    struct mo_pool spare_calls, spare_cases;
    struct mo_map parked;        /* id -> forwarded call without its client */
    struct mo_list list_waits;   /* front.c */
    struct mo_list reads;        /* inside.c */
    struct mo_map watched;       /* exposed URI -> struct watched_resource */
    struct mo_map elicitations;  /* call/forwarded_call_owner.c */
    struct mo_map watched_tasks; /* watch.c */
    bool watch_batch;            /* the same */
    struct mo_gw_watching watching;
    struct mo_list watch_sources; /* watch_others.c */
    enum mo_mcp_level level;
    struct mo_timer quiet;
    uint64_t key0, key1; /* of the hash in task names */
    size_t kept_bytes;   /* outcomes in call/forwarded_call_task.c */
    struct mo_later ending;
    bool single; /* there is only ever one client */
    bool closing;
    struct mo_gone gone;
};

/* The view that a call comes through. */
static inline struct mo_gw_view *mo_gw_view_of(struct mo_gateway *g,
                                               const struct mo_ep_call *c)
{
    return c->scope ? c->scope : &g->whole;
}

/* The offer there. Borrowed until the catalogue changes. */
static inline const struct mo_catalog *mo_gw_cat(const struct mo_gw_view *v)
{
    return v->part ? mo_catalog_part_now(v->part) : v->g->cat;
}

static inline const struct mo_catalog *mo_gw_cat_of(struct mo_gateway *g,
                                                    const struct mo_ep_call *c)
{
    return mo_gw_cat(mo_gw_view_of(g, c));
}

static inline enum mo_gw_expose mo_gw_view_expose(const struct mo_gw_view *v)
{
    return v->expose == MO_GW_EXPOSE_SAME ? v->g->o.expose
                                          : (enum mo_gw_expose)v->expose;
}

/* True if the server belongs to the view. */
static inline bool mo_gw_shows(const struct mo_gw_view *v,
                               const struct server_slot *s)
{
    return !v->part || mo_catalog_shows(mo_catalog_part_now(v->part), s->no);
}

struct server_slot *mo_gw_slot(struct mo_gateway *g, unsigned no);
/* By the name of its server; NULL: none. */
struct server_slot *mo_gw_find_slot(const struct mo_gateway *g,
                                    struct mo_span name);
struct gw_child *mo_gw_child(const struct server_slot *s,
                             const struct mo_child *c);
/* Frees a removed slot, and the gateway, once nothing uses it. */
void mo_gw_slot_check(struct server_slot *s);

#endif
