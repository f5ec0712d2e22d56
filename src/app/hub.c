#include "app/hub.h"

#include <stdio.h>

#include "app/dial.h"
#include "app/file.h"
#include "app/route_table.h"
#include "base/mem.h"
#include "codec/sha256.h"

struct mo_hub {
    struct mo_loop *loop;
    struct mo_dial *dial;
    struct mo_gateway *gateway;
    struct mo_endpoint *ep;
    bool serving;
    void (*gone)(void *ctx);
    void *gone_ctx;
};

/* --- what makes a server what it is -------------------------------------- */

/* Lengths go before texts, so that no two lists look alike. */
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
                                 o->scope, o->redirect};

    for (size_t i = 0; i < MO_COUNT(texts); i++)
        put_text(h, texts[i]);
    put_number(h, o->enabled);
}

/* The box of a server that does not say otherwise is the sandbox's. */
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
}

static void digest(const struct mo_config *cfg, const struct mo_config_mcp *s,
                   char out[65])
{
    const char *const texts[] = {s->name, s->command, s->cwd,
                                 s->url,  s->image,   s->tool_prefix};
    const int64_t numbers[] = {s->transport,    s->sandbox,
                               s->scope,        s->instances,
                               s->timeout_ms,   s->start_ms,
                               s->idle_seconds, s->memory_mb,
                               s->pids,         (int64_t)(s->cpus * 1000)};
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
    put_box(&h, cfg, s);
    mo_sha256_end(&h, sum);
    for (size_t i = 0; i < sizeof(sum); i++)
        (void)snprintf(out + 2 * i, 3, "%02x", sum[i]);
}

void mo_hub_server(const struct mo_config *cfg, const struct mo_config_mcp *s,
                   struct mo_gw_server *out)
{
    *out = (struct mo_gw_server){
        .name = s->name,
        .prefix = s->tool_prefix,
        .description = s->description,
        .per_session = s->scope == MO_SCOPE_SESSION,
        .instances = (unsigned)s->instances,
        .start_ms = (uint64_t)s->start_ms,
        .call_ms = (uint64_t)s->timeout_ms,
        .stop_ms = (uint64_t)s->idle_seconds * 1000,
        .mode = MO_CONN_AUTO,
    };
    digest(cfg, s, out->digest);
}

/* --- the gateway's servers ----------------------------------------------- */

#define KEYWORDS_MAX ((size_t)1024 * 1024)

/* In one text, in the arena; NULL: there are none. */
static const char *keywords(struct mo_arena *a, const struct mo_config_list *l)
{
    const char *text = NULL;
    struct mo_buf b;

    mo_buf_init(&b, KEYWORDS_MAX);
    for (size_t i = 0; i < l->n; i++)
        (void)mo_buf_printf(&b, "%s%s", i ? " " : "", l->v[i]);
    if (l->n)
        text = mo_arena_strndup(a, mo_buf_cstr(&b), b.len);
    mo_buf_fini(&b);
    return text;
}

int mo_hub_reload(struct mo_hub *h, const struct mo_config *cfg,
                  struct mo_err *e)
{
    mo_autofree struct mo_gw_server *v =
        mo_zalloc((cfg->mcp.n + 1) * sizeof(struct mo_gw_server));
    struct mo_arena a;
    size_t n = 0;
    int rc;

    if (!v)
        return mo_fail(e, MO_ENOMEM, "gateway");
    mo_arena_init(&a, KEYWORDS_MAX);
    for (size_t i = 0; i < cfg->mcp.n && n < MO_GW_SERVERS_MAX; i++) {
        if (!cfg->mcp.v[i].enabled)
            continue;
        mo_hub_server(cfg, &cfg->mcp.v[i], &v[n]);
        v[n++].keywords = keywords(&a, &cfg->mcp.v[i].keywords);
    }
    mo_dial_config(h->dial, cfg);
    rc = mo_gateway_servers(h->gateway, v, n, e);
    mo_arena_fini(&a);
    return rc;
}

/* --- from open to close -------------------------------------------------- */

static int make_gateway(struct mo_hub *h, const struct mo_config *cfg,
                        struct mo_err *e)
{
    struct mo_gateway_opts o = {
        .loop = h->loop,
        .prefix = (enum mo_gw_prefix)cfg->gateway.prefix,
        .expose = (enum mo_gw_expose)cfg->gateway.expose,
        .few = (unsigned)cfg->gateway.few,
        .table = mo_route_table(),
        .pieces = mo_route_pieces(),
        .dial = mo_dial_server,
        .verdict = mo_dial_verdict,
        .learnt = mo_dial_learnt,
    };
    char dir[PATH_MAX];
    int n = snprintf(dir, sizeof(dir), "%s/" MO_HUB_CACHE, cfg->store.dir);
    struct mo_err why;
    int rc = 0;

    if (n < 0 || (size_t)n >= sizeof(dir))
        return mo_fail(e, MO_ETOOBIG, "store.dir is too long");
    if (mo_file_mkdir(dir, &why) == 0)
        o.cache = dir;
    else
        mo_log_err(mo_loop_log(h->loop), MO_WARN, "gateway", &why,
                   "lists of servers are not kept between runs");
    rc = mo_dial_new(h->loop, cfg, &h->dial, e);
    o.ctx = h->dial;
    return rc < 0 ? rc : mo_gateway_new(&o, &h->gateway, e);
}

static int make_endpoint(struct mo_hub *h, struct mo_err *e)
{
    struct mo_endpoint_opts o = {
        .name = "mcp-orchestrator",
        .title = "MCP Orchestrator",
        .version = MO_VERSION,
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

static void on_dial_gone(void *ctx)
{
    struct mo_hub *h = ctx;
    void (*gone)(void *) = h->gone;
    void *gone_ctx = h->gone_ctx;

    mo_free(h);
    if (gone)
        gone(gone_ctx);
}

static void on_gateway_gone(void *ctx)
{
    struct mo_hub *h = ctx;

    h->gateway = NULL;
    if (h->dial)
        mo_dial_close(h->dial, on_dial_gone, h);
    else
        on_dial_gone(h);
}

void mo_hub_close(struct mo_hub *h, void (*gone)(void *ctx), void *ctx)
{
    h->gone = gone;
    h->gone_ctx = ctx;
    if (h->serving)
        mo_gateway_unserve(h->gateway, h->ep);
    if (h->ep)
        mo_endpoint_free(h->ep);
    h->ep = NULL;
    if (h->gateway)
        mo_gateway_close(h->gateway, on_gateway_gone, h);
    else
        on_gateway_gone(h);
}

int mo_hub_open(struct mo_loop *l, const struct mo_config *cfg,
                struct mo_hub **out, struct mo_err *e)
{
    struct mo_hub *h = mo_new(struct mo_hub);
    int rc = 0;

    if (!h)
        return mo_fail(e, MO_ENOMEM, "gateway");
    h->loop = l;
    rc = make_gateway(h, cfg, e);
    if (rc == 0)
        rc = mo_hub_reload(h, cfg, e);
    if (rc == 0)
        rc = make_endpoint(h, e);
    if (rc < 0) {
        mo_hub_close(h, NULL, NULL); /* what is left ends with the loop */
        return rc;
    }
    *out = h;
    return 0;
}

struct mo_endpoint *mo_hub_endpoint(const struct mo_hub *h)
{
    return h->ep;
}

struct mo_gateway *mo_hub_gateway(const struct mo_hub *h)
{
    return h->gateway;
}

const struct mo_tails *mo_hub_said(const struct mo_hub *h)
{
    return mo_dial_said(h->dial);
}
