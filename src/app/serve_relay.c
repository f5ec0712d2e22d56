/* serve_relay.c - requests to and from other processes of the store. See
 * serve_priv.h.
 *
 * Others pass on requests for MCP sessions and pending calls that are here.
 * A request that they have admitted is served like a request of the site. */
#include <stdio.h>

#include "app/serve_priv.h"
#include "peer/others.h"
#include "secrets/resolve.h"
#include "web/box_files.h"

#define KEY_MAX ((size_t)4096) /* bytes of cluster.key */

/* --- other machines ------------------------------------------------------- */

static int resolve(const struct server *s, const char *name, const char *text,
                   struct mo_buf *out, struct mo_err *e)
{
    if (!text || mo_reference_resolve(s->first, text, out, e) == 0)
        return 0;
    e->code = MO_EINVAL; /* a missing file is an invalid value */
    return mo_wrap(e, "cluster.%s", name);
}

static int open_cluster(struct server *s, struct mo_err *e)
{
    const struct mo_config_cluster *c = &s->first->cluster;
    mo_autowipe struct mo_buf key = {.max = KEY_MAX};
    mo_autobuf struct mo_buf listen = {.max = MO_CLUSTER_ADDRESS_MAX - 1},
                             address = {.max = MO_CLUSTER_ADDRESS_MAX - 1};
    struct mo_cluster_opts o = {
        .offset = s->worker.number ? s->worker.number - 1 : 0};
    int rc;

    (void)mo_buf_room(&key, KEY_MAX); /* no growth, which would leave a copy */
    rc = resolve(s, "listen", c->listen, &listen, e);
    if (rc == 0)
        rc = resolve(s, "address", c->address, &address, e);
    if (rc == 0)
        rc = resolve(s, "key", c->key, &key, e);
    if (rc < 0)
        return rc;
    o.listen = mo_buf_cstr(&listen);
    o.address = c->address ? mo_buf_cstr(&address) : NULL;
    o.key = mo_buf_view(&key);
    return mo_cluster_open(s->loop, &o, &s->cluster, e);
}

static void measure_cluster(void *ctx)
{
    struct server *s = ctx;

    for (size_t i = 0; s->cluster && i < MO_CLUSTER_COUNTS; i++) {
        uint64_t now = mo_cluster_count(s->cluster, (enum mo_cluster_count)i);

        mo_prom_count(s->cluster_counts[i], now - s->cluster_seen[i]);
        s->cluster_seen[i] = now;
    }
}

static int add_metrics(struct server *s, struct mo_err *e)
{
    static const char *const words[MO_CLUSTER_COUNTS] = {
        [MO_CLUSTER_ACCEPTED] = "accepted",
        [MO_CLUSTER_BAD_KEY] = "bad_key",
        [MO_CLUSTER_BAD_NAME] = "bad_instance",
        [MO_CLUSTER_BAD_OTHER] = "bad_handshake",
        [MO_CLUSTER_CROWDED] = "crowded",
        [MO_CLUSTER_FAILED] = "failed",
    };
    static const struct mo_prom_desc desc = {
        .kind = MO_PROM_COUNTER,
        .name = "mo_cluster_connections_total",
        .help = "Connections from servers on other machines by outcome; "
                "failed: those to them",
        .labels = {"outcome"},
    };
    struct mo_prom *prom = mo_site_prom(s->site);
    struct mo_prom_metric *m = mo_prom_add(prom, &desc, e);

    if (!m)
        return e->code;
    for (size_t i = 0; i < MO_CLUSTER_COUNTS; i++) {
        struct mo_span word = mo_span_cstr(words[i]);

        s->cluster_counts[i] = mo_prom_with(m, &word);
    }
    return mo_prom_hook(prom, measure_cluster, s);
}

int mo_serve_cluster_open(struct server *s, struct mo_err *e)
{
    int rc;

    if (!s->first->cluster.listen)
        return 0;
    rc = open_cluster(s, e);
    if (rc == 0)
        rc = add_metrics(s, e);
    if (rc == 0)
        mo_log(s->log, MO_INFO, "cluster", "other servers reach this one at %s",
               mo_cluster_address(s->cluster));
    return rc;
}

/* --- requests ------------------------------------------------------------- */

static void on_relayed(void *ctx, struct mo_req *rq)
{
    struct server *s = ctx;

    mo_serve_catch_up(s);
    if (mo_span_is(rq->path, "/mcp") ||
        mo_span_starts(rq->path, MO_SPAN("/mcp/")))
        mo_serve_mcp(s, rq);
    else if (mo_serve_subscriptions_relayed(s, rq) ||
             mo_box_files_relayed(&s->api, rq))
        return;
    else if (!s->site || !mo_site_relayed(s->site, rq))
        mo_api_approvals_handle(&s->api, rq);
}

/* Before it is open nobody can say that there is no such session. */
static bool on_elsewhere(void *ctx, const char *view, struct mo_req *rq,
                         struct mo_span id, struct mo_span body)
{
    struct server *s = ctx;

    if (s->home || !mo_ep_id_is(id))
        return mo_mcp_home_elsewhere(s->home, view, rq, id, body);
    mo_req_header(rq, "Retry-After", MO_SPAN("1"));
    mo_req_reply(rq, 503, "application/json",
                 MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":"
                         "{\"code\":-32000,\"message\":"
                         "\"this server is not ready yet\"}}"));
    return true;
}

const char *mo_serve_relay_why(void *ctx)
{
    const struct server *s = ctx;

    return s->home && !mo_ep_home_has_key(&s->ep_home)
               ? "the key of MCP sessions is not read yet"
               : NULL;
}

static bool on_pass(void *ctx, struct mo_req *rq, const struct mo_ep_away *to)
{
    return mo_mcp_home_pass(((struct server *)ctx)->home, rq, to);
}

static void on_ended(void *ctx, struct mo_req *rq, struct mo_span id)
{
    mo_mcp_home_ended(((struct server *)ctx)->home, rq, id);
}

void mo_serve_relay_opts(struct server *s, struct mo_ep_http_opts *o)
{
    o->home = &s->ep_home;
    o->elsewhere = on_elsewhere;
    o->pass = on_pass;
    o->ended = on_ended;
}

static struct mo_ep_http *door_of(void *ctx, const char *view)
{
    return mo_serve_door(ctx, view);
}

static void on_keyed(void *ctx)
{
    mo_serve_await_end(ctx);
}

/* Without conversations there are none of an agent. */
static int open_peers(struct server *s, struct mo_err *e)
{
    const struct mo_peers_opts o = {
        .store = mo_runtime_store(s->runtime),
        .instance = mo_runtime_instance(s->runtime),
        .dir = mo_runtime_dir(s->runtime),
    };
    int rc = s->agent ? 0 : mo_peers_open(s->loop, &o, &s->peers, e);

    if (s->peers && s->cluster)
        mo_peers_cluster(s->peers, s->cluster);
    s->api.peers = s->agent ? mo_agent_setup_peers(s->agent) : s->peers;
    return rc;
}

static int open_home(struct server *s, struct mo_err *e)
{
    const struct mo_mcp_home_opts o = {
        .loop = s->loop,
        .store = mo_runtime_store(s->runtime),
        .peers = s->api.peers,
        .relay = s->relay,
        .instance = mo_runtime_instance(s->runtime),
        .ep = &s->ep_home,
        .door = door_of,
        .keyed = on_keyed,
        .ctx = s,
    };

    return mo_mcp_home_open(&o, &s->home, e);
}

/* For mo_api.worker. */
static bool find_worker(void *ctx, unsigned i, char path[MO_API_WORKER_MAX])
{
    const struct server *s = ctx;
    char name[MO_INSTANCE_MAX] = "";
    int n = 0;

    path[0] = '\0';
    if (i >= s->worker.count)
        return false;
    if (i + 1 != s->worker.number && mo_worker_named(&s->worker, i + 1, name))
        n = snprintf(path, MO_API_WORKER_MAX, "%s/%s" MO_OTHER_SUFFIX,
                     mo_runtime_dir(s->runtime), name);
    if (n < 0 || n >= MO_API_WORKER_MAX)
        path[0] = '\0';
    return true;
}

void mo_serve_relay_open(struct server *s)
{
    const struct mo_relay_opts o = {
        .dir = mo_runtime_dir(s->runtime),
        .instance = mo_runtime_instance(s->runtime),
        .limits = mo_serve_limits(&s->first->server.limits),
        .handler = on_relayed,
        .ctx = s,
        .people = &s->people,
        .cluster = s->cluster,
    };
    struct mo_err e;
    int rc;

    if (!o.instance) {
        mo_serve_await_end(s);
        return;
    }
    rc = mo_relay_open(s->loop, &o, &s->relay, &e);
    s->relaying = rc == 0;
    if (rc == 0)
        rc = open_peers(s, &e);
    if (rc == 0) {
        s->api.relay = s->relay;
        s->api.instance = o.instance;
    }
    if (rc == 0 && s->worker.number) {
        s->api.worker = find_worker;
        s->api.elsewhere_ctx = s;
        mo_worker_name(&s->worker, o.instance);
    }
    if (rc == 0)
        rc = open_home(s, &e);
    if (rc < 0)
        mo_log_err(s->log, MO_WARN, "serve", &e,
                   "other servers cannot pass requests on to this one");
    if (!s->home)
        mo_serve_await_end(s);
}

void mo_serve_relay_stop(struct server *s, uint64_t grace_ms,
                         void (*drained)(void *ctx))
{
    if (s->relay)
        mo_relay_stop(s->relay, grace_ms, drained, s);
}

static void close_peers(struct server *s, void (*gone)(void *ctx))
{
    mo_peers_stop(s->peers);
    mo_peers_close(mo_take_ptr(&s->peers), gone, s);
}

bool mo_serve_relay_close(struct server *s, void (*gone)(void *ctx))
{
    s->api.relay = NULL;
    if (s->home)
        mo_mcp_home_close(mo_take_ptr(&s->home), gone, s);
    else if (s->relay)
        mo_relay_close(mo_take_ptr(&s->relay), gone, s);
    else if (s->peers)
        close_peers(s, gone);
    else
        return false;
    return true;
}
