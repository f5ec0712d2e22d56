/*
 * converse.c - see converse.h.
 */
#include "app/converse.h"

#include "app/resolve.h"

#define RULES_ARENA ((size_t)1024 * 1024)
#define KEY_MAX     ((size_t)16 * 1024)

struct mo_converse {
    struct mo_loop *loop;
    const struct mo_config *cfg;
    struct mo_httpc *http;
    struct mo_agent *agent;
    struct mo_arena arena; /* the rules */
    struct mo_rules rules;
    void (*gone)(void *ctx);
    void *gone_ctx;
};

/* --- which model --------------------------------------------------------- */

static const struct mo_config_api *api_of(const struct mo_config *cfg,
                                          enum mo_llm_kind k)
{
    switch (k) {
    case MO_LLM_CLAUDE:
        return &cfg->llm.claude;
    case MO_LLM_GEMINI:
        return &cfg->llm.gemini;
    case MO_LLM_OPENAI:
    case MO_LLM_COMPATIBLE:
        return &cfg->llm.openai;
    default:
        return NULL;
    }
}

static enum mo_llm_kind usual(const struct mo_config *cfg)
{
    static const enum mo_llm_kind order[] = {MO_LLM_CLAUDE, MO_LLM_GEMINI,
                                             MO_LLM_OPENAI};

    if (cfg->llm.provider != MO_LLM_AUTO)
        return (enum mo_llm_kind)cfg->llm.provider;
    for (size_t i = 0; i < MO_COUNT(order); i++)
        if (api_of(cfg, order[i])->api_key)
            return order[i];
    return MO_LLM_DEMO;
}

/* OpenAI's protocol at somebody else's address is somebody else's. */
static enum mo_llm_kind true_kind(const struct mo_config *cfg,
                                  enum mo_llm_kind k)
{
    const char *url = k == MO_LLM_OPENAI ? cfg->llm.openai.base_url : NULL;

    if (url && strstr(url, "api.openai.com") == NULL)
        return MO_LLM_COMPATIBLE;
    return k;
}

struct choice {
    enum mo_llm_kind kind;
    struct mo_span model; /* empty: the usual one */
};

/* "provider:model", or a model of the usual provider. */
static struct choice choose(const struct mo_config *cfg, struct mo_span wanted)
{
    struct choice c = {usual(cfg), wanted};
    ptrdiff_t colon = mo_span_find(wanted, ':');
    int kind =
        colon < 0 ? -1 : mo_llm_kind(mo_span_head(wanted, (size_t)colon));

    if (kind >= 0) {
        c.kind = (enum mo_llm_kind)kind;
        c.model = mo_span_skip(wanted, (size_t)colon + 1);
    } else if (wanted.n == 0 && cfg->llm.model) {
        c.model = mo_span_cstr(cfg->llm.model);
    } else if (mo_llm_kind(wanted) >= 0) {
        c.kind = (enum mo_llm_kind)mo_llm_kind(wanted);
        c.model = (struct mo_span){NULL, 0};
    }
    c.kind = true_kind(cfg, c.kind);
    return c;
}

static int make_llm(struct mo_converse *c, enum mo_llm_kind kind,
                    struct mo_span key, struct mo_llm **out, struct mo_err *e)
{
    const struct mo_config_api *api = api_of(c->cfg, kind);
    struct mo_llm_opts o = {
        .kind = kind,
        .base_url = api ? api->base_url : NULL,
        .key = key,
        .max_output = (unsigned)c->cfg->llm.max_output_tokens,
    };
    struct mo_buf ours;
    int rc = 0;

    mo_buf_init(&ours, KEY_MAX);
    if (key.n == 0 && api && api->api_key) {
        rc = mo_ref_resolve(c->cfg, api->api_key, &ours, e);
        o.key = mo_buf_view(&ours);
    }
    if (rc == 0) {
        *out = mo_llm_new(c->loop, c->http, &o, e);
        rc = *out ? 0 : e->code;
    }
    if (ours.p)
        explicit_bzero(ours.p, ours.cap);
    mo_buf_fini(&ours);
    return rc;
}

static int pick(void *ctx, struct mo_span wanted, struct mo_span key,
                struct mo_llm **out, const char **provider,
                struct mo_buf *model, struct mo_err *e)
{
    struct mo_converse *c = ctx;
    struct choice what = choose(c->cfg, wanted);
    const char *usual_model = mo_llm_default_model(what.kind);
    int rc = 0;

    if (what.model.n > 0)
        rc = mo_buf_span(model, what.model);
    else if (usual_model)
        rc = mo_buf_puts(model, usual_model);
    else
        return mo_fail(e, MO_EINVAL,
                       "this provider has no usual model: set llm.model");
    if (rc < 0)
        return mo_fail(e, rc, "the model's name is too long");
    *provider = mo_llm_kind_name(what.kind);
    return make_llm(c, what.kind, key, out, e);
}

/* --- which calls need a person ----------------------------------------------
 */

static int copy_args(struct mo_arena *a, const struct mo_config_map *m,
                     struct mo_rule *r)
{
    struct mo_rule_arg *v = mo_arena_alloc(a, (m->n + 1) * sizeof(*v));

    if (v == NULL)
        return MO_ENOMEM;
    for (size_t i = 0; i < m->n; i++)
        v[i] = (struct mo_rule_arg){mo_span_cstr(m->v[i].name),
                                    mo_span_cstr(m->v[i].value)};
    r->args = v;
    r->nargs = m->n;
    return 0;
}

static void copy_claims(const struct mo_config_list *l, struct mo_rule *r)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *s = l->v[i];

        if (*s == '!')
            r->denials |= mo_claim_bit(mo_span_cstr(s + 1));
        else
            r->claims |= mo_claim_bit(mo_span_cstr(s));
    }
}

/* The texts stay the configuration's. */
static int make_rules(struct mo_converse *c, struct mo_err *e)
{
    const struct mo_config_rules *from = &c->cfg->approvals.rules;
    struct mo_rule *v = mo_arena_zalloc(&c->arena, (from->n + 1) * sizeof(*v));

    if (v == NULL)
        return mo_fail(e, MO_ENOMEM, "rules: out of memory");
    for (size_t i = 0; i < from->n; i++) {
        const struct mo_config_rule *f = &from->v[i];

        v[i] = (struct mo_rule){
            .server = mo_span_cstr(f->server),
            .tool = mo_span_cstr(f->tool),
            .reason = mo_span_cstr(f->reason),
            .action = (enum mo_action)f->action,
            .final = !f->remember,
        };
        copy_claims(&f->annotations, &v[i]);
        if (copy_args(&c->arena, &f->args, &v[i]) < 0)
            return mo_fail(e, MO_ENOMEM, "rules: out of memory");
        if (mo_rule_check(&v[i], e) < 0)
            return mo_wrap(e, "approvals.rules[%zu]", i);
    }
    c->rules = (struct mo_rules){v, from->n};
    return 0;
}

/* --- all of it
 * ------------------------------------------------------------------ */

static int make_agent(struct mo_converse *c, struct mo_house *h,
                      struct mo_err *e)
{
    const struct mo_config *cfg = c->cfg;
    struct mo_agent_opts o = {
        .sessions = mo_house_sessions(h),
        .store = mo_house_store(h),
        .llm = {pick, c},
        .rules = &c->rules,
        .fallback = (enum mo_action)cfg->approvals.fallback,
        .approval_ms = (uint64_t)cfg->approvals.timeout_seconds * 1000,
        .steps = (unsigned)cfg->llm.max_steps,
        .history_tokens = (uint64_t)cfg->llm.max_history_tokens,
        .instructions = mo_span_cstr(cfg->llm.system_prompt),
    };

    c->agent = mo_agent_new(c->loop, &o, e);
    return c->agent ? 0 : e->code;
}

static void converse_free(struct mo_converse *c)
{
    void (*gone)(void *) = c->gone;
    void *ctx = c->gone_ctx;

    mo_config_unref(c->cfg);
    mo_arena_fini(&c->arena);
    mo_free(c);
    if (gone)
        gone(ctx);
}

static void on_http_gone(void *ctx)
{
    converse_free(ctx);
}

static void on_agent_gone(void *ctx)
{
    struct mo_converse *c = ctx;

    c->agent = NULL;
    if (c->http)
        mo_httpc_close(c->http, on_http_gone, c);
    else
        converse_free(c);
}

int mo_converse_open(struct mo_loop *l, const struct mo_config *cfg,
                     struct mo_house *h, struct mo_converse **out,
                     struct mo_err *e)
{
    struct mo_httpc_opts ho = {.gzip = true};
    struct mo_converse *c = mo_new(struct mo_converse);
    int rc = 0;

    if (c == NULL)
        return mo_fail(e, MO_ENOMEM, "agent: out of memory");
    c->loop = l;
    c->cfg = mo_config_ref(cfg);
    mo_arena_init(&c->arena, RULES_ARENA);
    c->http = mo_httpc_new(l, &ho, e);
    rc = c->http ? make_rules(c, e) : e->code;
    if (rc == 0)
        rc = make_agent(c, h, e);
    if (rc < 0) {
        on_agent_gone(c);
        return rc;
    }
    *out = c;
    return 0;
}

void mo_converse_close(struct mo_converse *c, void (*gone)(void *ctx),
                       void *ctx)
{
    c->gone = gone;
    c->gone_ctx = ctx;
    mo_agent_close(c->agent, on_agent_gone, c);
}

struct mo_agent *mo_converse_agent(const struct mo_converse *c)
{
    return c->agent;
}
