#include "servers/gateway_setup.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "codec/sha256.h"
#include "connect/workspace.h"
#include "gateway/catalog/catalog.h"
#include "route/route_table.h"

struct mo_gateway_setup {
    struct mo_loop *loop;
    struct mo_server_link *link;
    struct mo_budget *budget;
    struct mo_gateway *gateway;
    struct mo_endpoint *ep;
    bool serving;
    struct mo_view_table views;
    struct mo_later ending; /* calls gone() if there is no gateway to close */
    struct mo_gone gone;
};

/* --- digest of the settings of a server ----------------------------------- */

/* Lengths precede texts, so that different lists have different digests. */
static void put_text(struct mo_sha256 *h, const char *s)
{
    uint64_t n = s ? strlen(s) + 1 : 0;

    mo_sha256_put(h, &n, sizeof(n));
    if (s)
        mo_sha256_put(h, s, (size_t)n);
}

static void put_number(struct mo_sha256 *h, int64_t v)
{
    mo_sha256_put(h, &v, sizeof(v));
}

static void put_list(struct mo_sha256 *h, const struct mo_config_list *l)
{
    put_number(h, (int64_t)l->n);
    for (size_t i = 0; i < l->n; i++)
        put_text(h, l->v[i]);
}

static void put_map(struct mo_sha256 *h, const struct mo_config_map *m)
{
    put_number(h, (int64_t)m->n);
    for (size_t i = 0; i < m->n; i++) {
        put_text(h, m->v[i].name);
        put_text(h, m->v[i].value);
    }
}

static void put_oauth(struct mo_sha256 *h, const struct mo_config_oauth *o)
{
    const char *const texts[] = {o->client_id, o->client_secret, o->client_url,
                                 o->issuer,    o->scope,         o->redirect};

    for (size_t i = 0; i < MO_COUNT(texts); i++)
        put_text(h, texts[i]);
    put_number(h, o->enabled);
}

/* A server without box settings uses those of the sandbox. */
static void put_box(struct mo_sha256 *h, const struct mo_config *cfg,
                    const struct mo_config_mcp *s)
{
    const struct mo_config_sandbox *b = &cfg->sandbox;

    if (!s->image && s->sandbox == MO_DRIVER_AUTO)
        return;
    put_number(h, b->driver);
    put_text(h, b->image);
    put_text(h, b->docker_host);
    put_number(h, b->memory_mb);
    put_number(h, b->pids);
    put_number(h, b->workspace_mb);
    put_number(h, (int64_t)(b->cpus * 1000));
    put_text(h, s->network.json);
    for (size_t i = 0; s->mounts.v && s->mounts.v[i]; i++)
        put_text(h, s->mounts.v[i]);
    put_number(h, s->workspace);
}

static void put_digest(const struct mo_config *cfg,
                       const struct mo_config_mcp *s, char out[65])
{
    const char *const texts[] = {s->name, s->command, s->cwd,
                                 s->url,  s->image,   s->tool_prefix};
    const int64_t numbers[] = {s->transport,    s->sandbox,
                               s->scope,        s->instances,
                               s->timeout_ms,   s->start_ms,
                               s->idle_seconds, s->memory_mb,
                               s->pids,         (int64_t)(s->cpus * 1000),
                               s->isolate,      s->install_ms,
                               s->era,          s->credentials};
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 h;

    mo_sha256_init(&h);
    for (size_t i = 0; i < MO_COUNT(texts); i++)
        put_text(&h, texts[i]);
    for (size_t i = 0; i < MO_COUNT(numbers); i++)
        put_number(&h, numbers[i]);
    put_list(&h, &s->args);
    put_map(&h, &s->env);
    put_map(&h, &s->headers);
    put_oauth(&h, &s->oauth);
    put_text(&h, s->exchange.url);
    put_text(&h, s->exchange.client_id);
    put_text(&h, s->exchange.client_secret);
    put_text(&h, s->exchange.audience);
    put_text(&h, s->exchange.scope);
    put_box(&h, cfg, s);
    mo_sha256_end(&h, sum);
    mo_hex(sum, sizeof(sum), out);
}

void mo_gateway_setup_server(const struct mo_config *cfg,
                             const struct mo_config_mcp *s,
                             struct mo_gw_server *out)
{
    *out = (struct mo_gw_server){
        .name = s->name,
        .prefix = s->tool_prefix,
        .description = s->description,
        .per_session = s->scope == MO_SCOPE_SESSION,
        .per_person = s->credentials != MO_CREDENTIALS_SHARED,
        .instances = (unsigned)s->instances,
        .start_ms = (uint64_t)s->start_ms,
        .install_ms = (uint64_t)s->install_ms,
        .call_ms = (uint64_t)s->timeout_ms,
        .stop_ms = (uint64_t)s->idle_seconds * 1000,
        .mode = mo_server_link_mode(s),
        .fallback = s->fallback,
        .retries = (int)s->retries,
        .result_bytes = s->result_bytes,
        .max_calls = (unsigned)s->max_calls,
        .tools = s->tools.v,
        .ntools = s->tools.n,
    };
    put_digest(cfg, s, out->digest);
}

/* --- servers of the gateway ----------------------------------------------- */

#define TEXTS_MAX ((size_t)16 * 1024 * 1024)

/* Joins the texts into one, in the arena; NULL: the list is empty. */
static const char *join_texts(struct mo_arena *a,
                              const struct mo_config_list *const *lists,
                              size_t n, char between)
{
    const char *text = NULL;
    mo_autobuf struct mo_buf b = {.max = TEXTS_MAX};

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < lists[i]->n; j++) {
            if (b.len)
                (void)mo_buf_putc(&b, between);
            (void)mo_buf_puts(&b, lists[i]->v[j]);
        }
    }
    if (b.len)
        text = mo_arena_strndup(a, mo_buf_cstr(&b), b.len);
    return text;
}

/* Texts for the router that need memory of their own. */
static void put_words(struct mo_arena *a, const struct mo_config_mcp *m,
                      struct mo_gw_server *s)
{
    const struct mo_config_list *const words[] = {&m->keywords, &m->categories,
                                                  &m->tags};

    s->keywords = join_texts(a, words, MO_COUNT(words), ' ');
    s->categories = join_texts(a, words + 1, MO_COUNT(words) - 1, '\n');
}

/* A person has as long to answer a server's question as to approve a call, at
 * least ANSWER_MS. The endpoint waits 5 s longer, so that the asker hears of
 * the timeout first. */
#define ANSWER_MS 600000

static uint64_t answer_ms(const struct mo_config *cfg)
{
    uint64_t ms = (uint64_t)cfg->approvals.timeout_seconds * 1000;

    return (ms > ANSWER_MS ? ms : ANSWER_MS) + 5000;
}

/* Each script has a box of its own, which ends with it. */
static int set_scripts(struct mo_gateway_setup *h, const struct mo_config *cfg,
                       struct mo_err *e)
{
    const struct mo_config_scripts *c = &cfg->gateway.scripts;
    struct mo_gw_script s = {.max = (unsigned)c->max,
                             .max_seconds = (uint64_t)c->max_seconds};

    if (!c->server)
        return mo_gateway_scripts(h->gateway, NULL, e);
    mo_gateway_setup_server(cfg, c->server, &s.server);
    s.server.per_session = true;
    s.server.stop_ms = 1;
    return mo_gateway_scripts(h->gateway, &s, e);
}

int mo_gateway_setup_reload(struct mo_gateway_setup *h,
                            const struct mo_config *cfg, struct mo_err *e)
{
    mo_autofree struct mo_gw_server *v =
        mo_zalloc((cfg->mcp.n + 1) * sizeof(struct mo_gw_server));
    mo_autoarena struct mo_arena a = {.cap = 2 * TEXTS_MAX};
    size_t n = 0;

    if (!v)
        return mo_fail(e, MO_ENOMEM, "gateway");
    for (int off = 0; off <= 1; off++) { /* disabled servers come last */
        for (size_t i = 0; i < cfg->mcp.n && n < MO_GW_SERVERS_MAX; i++) {
            if (cfg->mcp.v[i].enabled == (off != 0))
                continue;
            mo_gateway_setup_server(cfg, &cfg->mcp.v[i], &v[n]);
            v[n].off = off;
            put_words(&a, &cfg->mcp.v[i], &v[n++]);
        }
    }
    if (mo_budget_reload(h->budget, cfg, e) < 0)
        return e->code;
    mo_server_link_config(h->link, cfg);
    if (h->ep)
        mo_endpoint_ask_ms(h->ep, answer_ms(cfg));
    h->views.ask_ms = answer_ms(cfg);
    /* First: no call that waits may go on to a new server by an old view. */
    if (mo_view_table_reload(&h->views, cfg, e) < 0 ||
        set_scripts(h, cfg, e) < 0)
        return e->code;
    return mo_gateway_servers(h->gateway, v, n, e);
}

static int path_of(const struct mo_config *cfg, const char *name,
                   char out[PATH_MAX])
{
    int n = snprintf(out, PATH_MAX, "%s/%s", cfg->store.dir, name);

    return n < 0 || n >= PATH_MAX ? MO_ETOOBIG : 0;
}

int mo_gateway_setup_forget_habit(const struct mo_config *cfg, struct mo_err *e)
{
    char path[PATH_MAX];

    if (path_of(cfg, MO_GATEWAY_SETUP_HABIT, path) < 0)
        return mo_fail(e, MO_ETOOBIG, "store.dir is too long");
    if (unlink(path) < 0 && errno != ENOENT)
        return mo_fail_sys(e, "%s", path);
    return 0;
}

void mo_gateway_setup_forget(const struct mo_config *cfg, const char *server)
{
    char dir[PATH_MAX];

    if (path_of(cfg, MO_GATEWAY_SETUP_CACHE, dir) == 0)
        mo_catalog_forget(dir, server);
    (void)mo_workspace_remove(cfg, server, MO_WORKSPACE_SWEEP_ALL, NULL);
}

/* --- open and close ------------------------------------------------------- */

static int make_gateway(struct mo_gateway_setup *h, const struct mo_config *cfg,
                        struct mo_approvals *approvals, struct mo_record *rec,
                        struct mo_err *e)
{
    struct mo_gateway_opts o = {
        .up = {.loop = h->loop,
               .dial = mo_server_link_server,
               .done = mo_server_link_done,
               .connected = mo_server_link_connected,
               .verdict = mo_server_link_verdict,
               .learnt = mo_server_link_learnt,
               .noise = mo_server_link_noise,
               .tap = rec ? mo_record_message : NULL,
               .tap_ctx = rec},
        .prefix = (enum mo_gw_prefix)cfg->gateway.prefix,
        .expose = (enum mo_gw_expose)cfg->gateway.expose,
        .few = (unsigned)cfg->gateway.few,
        .most = (unsigned)cfg->gateway.processes,
        .table = mo_route_table(),
        .pieces = mo_route_pieces(),
    };
    char dir[PATH_MAX], habit[PATH_MAX], vectors[PATH_MAX];
    struct mo_err why;
    int rc = 0;

    if (approvals)
        o.judge = mo_approvals_hooks(approvals);
    if (path_of(cfg, MO_GATEWAY_SETUP_CACHE, dir) < 0 ||
        path_of(cfg, MO_GATEWAY_SETUP_HABIT, habit) < 0 ||
        path_of(cfg, MO_GATEWAY_SETUP_VECTORS, vectors) < 0)
        return mo_fail(e, MO_ETOOBIG, "store.dir is too long");
    if (mo_file_mkdir(dir, &why) == 0)
        o.cache = dir;
    else
        mo_log_err(mo_loop_log(h->loop), MO_WARN, "gateway", &why,
                   "lists of servers are not kept between runs");
    o.learning_file = o.cache ? habit : NULL;
    o.embeddings_file = o.cache ? vectors : NULL;
    o.cfg = cfg;
    rc = mo_budget_new(h->loop, cfg,
                       approvals ? mo_approvals_audit(approvals) : NULL,
                       &h->budget, e);
    o.budget = h->budget;
    if (rc == 0)
        rc = mo_server_link_new(h->loop, cfg, &h->link, e);
    if (rc == 0 && approvals)
        mo_server_link_approvals(h->link, approvals);
    o.up.ctx = h->link;
    if (rc == 0)
        rc = mo_gateway_new(&o, &h->gateway, e);
    h->views.gateway = h->gateway;
    return rc;
}

static int make_endpoint(struct mo_gateway_setup *h,
                         const struct mo_config *cfg, struct mo_err *e)
{
    struct mo_endpoint_opts o = {
        .name = "mcp-orchestrator",
        .title = "MCP Orchestrator",
        .version = MO_VERSION,
        .limits = {.ask_ms = answer_ms(cfg)},
    };
    int rc = 0;

    mo_gateway_endpoint(h->gateway, &o);
    h->ep = mo_endpoint_new(h->loop, &o, e);
    if (!h->ep)
        return e->code;
    rc = mo_gateway_serve(h->gateway, h->ep);
    h->serving = rc == 0;
    return rc < 0 ? mo_fail(e, rc, "gateway") : 0;
}

static void on_link_gone(void *ctx)
{
    struct mo_gateway_setup *h = ctx;
    struct mo_gone gone = h->gone;

    mo_free(h);
    mo_gone_fire(gone);
}

static void on_gateway_gone(void *ctx)
{
    struct mo_gateway_setup *h = ctx;

    h->gateway = NULL;
    mo_budget_close(mo_take_ptr(&h->budget));
    if (h->link)
        mo_server_link_close(h->link, on_link_gone, h);
    else
        on_link_gone(h);
}

static void on_ending(struct mo_later *d)
{
    on_gateway_gone(mo_container_of(d, struct mo_gateway_setup, ending));
}

void mo_gateway_setup_close(struct mo_gateway_setup *h, void (*gone)(void *ctx),
                            void *ctx)
{
    h->gone = (struct mo_gone){gone, ctx};
    mo_view_table_close(&h->views);
    if (h->serving)
        mo_gateway_unserve(h->gateway, h->ep);
    if (h->ep)
        mo_endpoint_free(h->ep);
    h->ep = NULL;
    if (h->gateway)
        mo_gateway_close(h->gateway, on_gateway_gone, h);
    else if (gone)
        mo_loop_defer(h->loop, &h->ending);
    else
        on_gateway_gone(h);
}

int mo_gateway_setup_open(struct mo_loop *l, const struct mo_config *cfg,
                          struct mo_approvals *approvals, struct mo_record *rec,
                          struct mo_gateway_setup **out, struct mo_err *e)
{
    struct mo_gateway_setup *h = mo_new(struct mo_gateway_setup);
    int rc = 0;

    if (!h)
        return mo_fail(e, MO_ENOMEM, "gateway");
    h->loop = l;
    mo_view_table_init(&h->views, l);
    mo_later_init(&h->ending, on_ending);
    mo_workspace_sweep(cfg, MO_WORKSPACE_SWEEP);
    rc = make_gateway(h, cfg, approvals, rec, e);
    if (rc == 0)
        rc = mo_gateway_setup_reload(h, cfg, e);
    if (rc == 0)
        rc = make_endpoint(h, cfg, e);
    if (rc < 0) {
        mo_gateway_setup_close(h, NULL, NULL); /* the loop frees the rest */
        return rc;
    }
    *out = h;
    return 0;
}

struct mo_endpoint *mo_gateway_setup_endpoint(const struct mo_gateway_setup *h)
{
    return h->ep;
}

struct mo_view_table *mo_gateway_setup_views(struct mo_gateway_setup *h)
{
    return &h->views;
}

struct mo_gateway *mo_gateway_setup_gateway(const struct mo_gateway_setup *h)
{
    return h->gateway;
}

struct mo_server_link *mo_gateway_setup_link(const struct mo_gateway_setup *h)
{
    return h->link;
}

struct mo_budget *mo_gateway_setup_budget(const struct mo_gateway_setup *h)
{
    return h->budget;
}
