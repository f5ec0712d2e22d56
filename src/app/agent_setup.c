/* agent_setup.c - see agent_setup.h. */
#include "app/agent_setup.h"

#include "servers/try_tool.h"

struct mo_agent_setup {
    struct mo_loop *loop;
    const struct mo_config *cfg;
    struct mo_httpc *http;
    struct mo_models *models;
    struct mo_approvals *approvals;
    struct mo_gateway_setup *gateway;
    struct mo_approvals *own_desk;    /* NULL: borrowed */
    struct mo_runtime *runtime;       /* that uses own_desk */
    struct mo_gateway_setup *own_hub; /* likewise */
    struct mo_agent *agent;
    struct mo_sessions *sessions; /* that use the budget; or NULL */
    struct mo_peers *peers;
    struct mo_try_tool *try;
    struct mo_gone gone;
};

/* --- open and close ------------------------------------------------------- */

/* Settings that a reload may change. */
static struct mo_agent_opts settings_of(const struct mo_agent_setup *c)
{
    const struct mo_config *cfg = c->cfg;

    return (struct mo_agent_opts){
        .approval_ms = (uint64_t)cfg->approvals.timeout_seconds * 1000,
        .steps = (unsigned)cfg->llm.max_steps,
        .history_tokens = (uint64_t)cfg->llm.max_history_tokens,
        .instructions = mo_span_cstr(cfg->llm.system_prompt),
        .model_titles = cfg->llm.titles == MO_TITLES_MODEL,
    };
}

static int make_agent(struct mo_agent_setup *c, struct mo_runtime *h,
                      struct mo_err *e)
{
    struct mo_agent_opts o = settings_of(c);

    o.servers = (struct mo_agent_servers){
        .gateway = mo_gateway_setup_gateway(c->gateway),
        .endpoint = mo_gateway_setup_endpoint(c->gateway),
        .offer = (enum mo_gw_expose)c->cfg->llm.tools,
        .apps = c->cfg->apps.enabled && !c->own_desk};
    o.budget = mo_gateway_setup_budget(c->gateway);
    o.policy = mo_approvals_policy(c->approvals);
    o.approvals = c->approvals;
    o.audit = mo_approvals_audit(c->approvals);
    o.sessions = mo_runtime_sessions(h);
    o.store = mo_runtime_store(h);
    o.models = c->models;
    c->agent = mo_agent_new(c->loop, &o, e);
    return c->agent ? 0 : e->code;
}

static int make_peers(struct mo_agent_setup *c, struct mo_runtime *h,
                      struct mo_err *e)
{
    const struct mo_peers_opts o = {
        .agent = c->agent,
        .store = mo_runtime_store(h),
        .instance = mo_runtime_instance(h),
        .dir = mo_runtime_dir(h),
    };

    return mo_peers_open(c->loop, &o, &c->peers, e);
}

static void on_accepted(void *ctx)
{
    struct mo_agent_setup *c = ctx;

    if (c->agent)
        mo_agent_stale(c->agent);
}

static int make_try(struct mo_agent_setup *c, struct mo_err *e)
{
    const struct mo_try_tool_opts o = {
        .loop = c->loop,
        .gateway = c->gateway,
        .policy = mo_approvals_policy(c->approvals),
        .audit = mo_approvals_audit(c->approvals),
        .accepted = on_accepted,
        .ctx = c,
    };

    return mo_try_tool_new(&o, &c->try, e);
}

static void agent_setup_free(struct mo_agent_setup *c)
{
    struct mo_gone gone = c->gone;

    mo_models_free(c->models);
    mo_config_unref(c->cfg);
    mo_free(c);
    mo_gone_fire(gone);
}

static void close_next(void *ctx);

static void close_approvals(struct mo_agent_setup *c)
{
    mo_runtime_approvals(c->runtime, NULL);
    mo_approvals_close(mo_take_ptr(&c->own_desk), close_next, c);
}

/* Closes in reverse order of opening. */
static void close_next(void *ctx)
{
    struct mo_agent_setup *c = ctx;

    if (c->peers)
        mo_peers_close(mo_take_ptr(&c->peers), close_next, c);
    else if (c->try)
        mo_try_tool_close(mo_take_ptr(&c->try), close_next, c);
    else if (c->http)
        mo_httpc_close(mo_take_ptr(&c->http), close_next, c);
    else if (c->own_hub)
        mo_gateway_setup_close(mo_take_ptr(&c->own_hub), close_next, c);
    else if (c->own_desk)
        close_approvals(c);
    else
        agent_setup_free(c);
}

static void on_agent_gone(void *ctx)
{
    struct mo_agent_setup *c = ctx;

    c->agent = NULL;
    if (c->sessions)
        mo_sessions_budget(c->sessions, NULL, NULL);
    close_next(c);
}

/* Rules, pins and the audit log. Approvals opened here also write to the
 * store. */
static int use_approvals(struct mo_agent_setup *c, struct mo_runtime *h,
                         struct mo_approvals *approvals, struct mo_err *e)
{
    int rc = 0;

    c->approvals = approvals;
    if (!approvals) {
        rc = mo_approvals_open(c->loop, c->cfg, &c->own_desk, e);
        c->approvals = c->own_desk;
    }
    if (c->own_desk) {
        mo_audit_store(mo_approvals_audit(c->approvals), mo_runtime_store(h));
        mo_runtime_approvals(h, c->approvals);
        c->runtime = h;
    }
    if (rc == 0)
        rc = mo_policy_load_pins(mo_approvals_policy(c->approvals), e);
    return rc;
}

static int use_gateway(struct mo_agent_setup *c, struct mo_runtime *h,
                       struct mo_gateway_setup *gateway, struct mo_err *e)
{
    int rc = 0;

    c->gateway = gateway;
    if (!gateway) {
        rc = mo_gateway_setup_open(c->loop, c->cfg, c->approvals, NULL,
                                   &c->own_hub, e);
        c->gateway = c->own_hub;
    }
    if (rc == 0)
        mo_budget_store(mo_gateway_setup_budget(c->gateway),
                        mo_runtime_store(h));
    if (rc == 0)
        mo_sessions_budget(mo_runtime_sessions(h),
                           mo_gateway_setup_budget(c->gateway),
                           &mo_budget_holding);
    c->sessions = mo_runtime_sessions(h);
    return rc;
}

int mo_agent_setup_open(struct mo_loop *l, const struct mo_config *cfg,
                        struct mo_runtime *h, struct mo_approvals *approvals,
                        struct mo_gateway_setup *gateway,
                        struct mo_agent_setup **out, struct mo_err *e)
{
    struct mo_httpc_opts ho = {.gzip = true};
    struct mo_agent_setup *c = mo_new(struct mo_agent_setup);
    int rc = 0;

    if (c == NULL)
        return mo_fail(e, MO_ENOMEM, "agent: out of memory");
    c->loop = l;
    c->cfg = mo_config_ref(cfg);
    c->http = mo_httpc_new(l, &ho, e);
    if (c->http)
        c->models = mo_models_new(l, c->http, cfg, e);
    rc = c->models ? 0 : e->code;
    if (rc == 0)
        rc = use_approvals(c, h, approvals, e);
    if (rc == 0)
        rc = use_gateway(c, h, gateway, e);
    if (rc == 0)
        rc = make_try(c, e);
    if (rc == 0)
        rc = make_agent(c, h, e);
    if (rc == 0)
        rc = make_peers(c, h, e);
    if (rc < 0 && c->agent)
        mo_agent_close(c->agent, 0, on_agent_gone, c);
    else if (rc < 0)
        on_agent_gone(c);
    if (rc < 0)
        return rc;
    *out = c;
    return 0;
}

void mo_agent_setup_reload(struct mo_agent_setup *c,
                           const struct mo_config *cfg)
{
    const struct mo_config *old = c->cfg;
    struct mo_agent_opts o;

    c->cfg = mo_config_ref(cfg);
    mo_models_config(c->models, cfg);
    o = settings_of(c);
    mo_agent_reload(c->agent, &o);
    mo_config_unref(old);
}

void mo_agent_setup_close(struct mo_agent_setup *c, uint64_t grace_ms,
                          void (*gone)(void *ctx), void *ctx)
{
    c->gone = (struct mo_gone){gone, ctx};
    mo_peers_stop(c->peers);
    mo_agent_close(c->agent, grace_ms, on_agent_gone, c);
}

struct mo_models *mo_agent_setup_models(const struct mo_agent_setup *c)
{
    return c->models;
}

struct mo_agent *mo_agent_setup_agent(const struct mo_agent_setup *c)
{
    return c->agent;
}

struct mo_peers *mo_agent_setup_peers(const struct mo_agent_setup *c)
{
    return c->peers;
}

struct mo_try_tool *mo_agent_setup_try_tool(const struct mo_agent_setup *c)
{
    return c->try;
}
