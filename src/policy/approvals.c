#include "policy/approvals_priv.h"

#include <stdio.h>

#include "base/rand.h"

/* --- a matter ------------------------------------------------------------ */

static struct pending_call *matter_new(struct mo_approvals *d,
                                       struct mo_gw_case *k)
{
    struct pending_call *m = mo_new(struct pending_call);

    if (!m)
        return NULL;
    m->d = d;
    m->k = k;
    mo_list_init(&m->node);
    mo_buf_init(&m->args, MO_EXACT_MAX);
    mo_buf_init(&m->def, MO_EXACT_MAX);
    mo_buf_init(&m->rule, MO_EXACT_MAX);
    k->data = m;
    return m;
}

static void unhold(struct pending_call *m)
{
    if (mo_list_empty(&m->node))
        return;
    mo_list_del(&m->node);
    mo_list_init(&m->node);
    m->d->nheld--;
}

static void matter_free(struct pending_call *m)
{
    unhold(m);
    mo_buf_fini(&m->args);
    mo_buf_fini(&m->def);
    mo_buf_fini(&m->rule);
    mo_free(m);
}

/* --- judging ------------------------------------------------------------- */

static enum mo_gw_ruling refuse(struct mo_gw_case *k, const char *why)
{
    k->by = "rule";
    (void)snprintf(k->reason, sizeof(k->reason), "%s", why);
    return MO_GW_REFUSE;
}

static bool has_rules(const struct mo_approvals *d)
{
    return d->cfg->gateway.approvals == MO_GW_ASK_REST || d->rules.n ||
           mo_remembered_rules_for(d->always).rules(d->always)->n;
}

/* def: what is known of the tool, its annotations among it. */
static struct mo_verdict verdict_of(const struct mo_approvals *d,
                                    const struct mo_gw_case *k,
                                    struct mo_json def, struct mo_span args)
{
    struct mo_subject s = {
        .server = k->server,
        .tool = k->tool,
        .claims = mo_claims_of(mo_json_get(def, "annotations")),
    };
    enum mo_action rest = d->cfg->gateway.approvals == MO_GW_ASK_REST
                              ? MO_ACTION_ASK
                              : MO_ACTION_ALLOW;
    struct mo_json_doc doc;

    if (mo_json_parse(args, 0, &doc, NULL) == 0)
        s.args = doc.root;
    return mo_rules_ask(&d->rules,
                        mo_remembered_rules_for(d->always).rules(d->always),
                        rest, &s);
}

static void put_member(struct mo_jw *w, struct mo_json item, const char *key)
{
    struct mo_json v = mo_json_get(item, key);

    if (!v.p)
        return;
    mo_jw_key(w, key);
    mo_jw_raw(w, mo_json_text(v));
}

static void put_def(struct mo_buf *b, struct mo_json item)
{
    static const char *const keys[] = {"title", "description", "annotations"};
    struct mo_jw w;

    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    for (size_t i = 0; i < MO_COUNT(keys); i++)
        put_member(&w, item, keys[i]);
    mo_jw_end(&w);
}

/* {"by":"operator","index":0,...}, counted as /api/rules lists them. */
static void put_rule(const struct mo_approvals *d, const struct mo_verdict *v,
                     struct mo_buf *b)
{
    struct mo_jw w;

    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    mo_jw_key(&w, "by");
    mo_jw_cstr(&w, v->rule ? "operator" : "default");
    if (v->rule) {
        mo_jw_key(&w, "index");
        mo_jw_u64(&w, (uint64_t)(v->rule - d->rules.v));
        mo_jw_key(&w, "server");
        mo_jw_str(&w, v->rule->server);
        mo_jw_key(&w, "tool");
        mo_jw_str(&w, v->rule->tool);
        mo_jw_key(&w, "remember");
        mo_jw_bool(&w, !v->rule->final);
    }
    mo_jw_end(&w);
}

/* A person is asked: what is shown is kept. */
static enum mo_gw_ruling ask(struct mo_approvals *d, struct pending_call *m,
                             struct mo_buf *question)
{
    struct mo_gw_case *k = m->k;

    if (d->nheld >= HELD_MAX)
        return refuse(k, "too many calls wait for a person already");
    put_def(&m->def, k->item);
    if (mo_buf_err(&m->def) || mo_approvals_digest(k, m->tool_digest) < 0)
        return refuse(k, "out of memory");
    (void)snprintf(m->why, sizeof(m->why), "%s", k->reason);
    m->at = mo_wall_ms();
    m->expires = m->at + (uint64_t)d->cfg->approvals.timeout_seconds * 1000;
    if (mo_approvals_question(m, question) < 0)
        mo_buf_reset(question); /* too long for a form: people look elsewhere */
    return MO_GW_ASK;
}

static enum mo_gw_ruling by_rules(struct mo_approvals *d,
                                  struct pending_call *m,
                                  struct mo_buf *question)
{
    struct mo_gw_case *k = m->k;
    struct mo_verdict v;
    struct mo_err e;

    if (mo_exact_args(k->arguments, &m->args, &e) < 0) {
        mo_buf_reset(&m->args);
        return refuse(k, e.msg);
    }
    v = verdict_of(d, k, k->item, mo_buf_view(&m->args));
    k->by = v.remembered ? "remembered" : v.rule ? "rule" : NULL;
    if (v.rule)
        (void)snprintf(k->reason, sizeof(k->reason), "%.*s",
                       (int)v.rule->reason.n, v.rule->reason.p);
    if (v.action == MO_ACTION_DENY)
        return MO_GW_REFUSE;
    if (v.action == MO_ACTION_ASK) {
        put_rule(d, &v, &m->rule);
        return ask(d, m, question);
    }
    k->reason[0] = '\0';
    if (!d->cfg->audit.arguments)
        mo_buf_fini(&m->args);
    return MO_GW_LET;
}

int mo_approvals_may_be(const struct mo_approvals *d,
                        const struct pending_call *m, struct mo_span args,
                        struct mo_err *e)
{
    struct mo_verdict v =
        verdict_of(d, m->k, (struct mo_json){m->def.p, m->def.len}, args);
    struct mo_span why = v.rule ? v.rule->reason : MO_SPAN("");

    if (v.action != MO_ACTION_DENY)
        return 0;
    return mo_fail(e, MO_EINVAL, "with these arguments it is not allowed%s%.*s",
                   why.n ? ": " : "", (int)why.n, why.p ? why.p : "");
}

/* A call of a conversation: its person has been asked there, by the same rules
 * and what that person said before. What the operator denies is denied here
 * too, and nobody was asked about a server that stands in. */
static enum mo_gw_ruling from_inside(const struct mo_approvals *d,
                                     struct mo_gw_case *k)
{
    const struct mo_rules none = {NULL, 0};
    struct mo_subject s = {
        .server = k->server,
        .tool = k->tool,
        .claims = mo_claims_of(mo_json_get(k->item, "annotations")),
        .args = k->arguments,
    };
    struct mo_verdict v;

    if (k->routed)
        return refuse(k, "nobody was asked about this tool; name it and begin "
                         "again");
    v = mo_rules_ask(&d->rules,
                     k->stand_in
                         ? mo_remembered_rules_for(d->always).rules(d->always)
                         : &none,
                     (enum mo_action)d->cfg->approvals.fallback, &s);
    k->by = "rule";
    if (v.rule)
        (void)snprintf(k->reason, sizeof(k->reason), "%.*s",
                       (int)v.rule->reason.n, v.rule->reason.p);
    if (v.action == MO_ACTION_DENY && (v.rule || k->stand_in))
        return MO_GW_REFUSE;
    return v.action == MO_ACTION_ASK && k->stand_in ? MO_GW_ASK : MO_GW_LET;
}

static enum mo_gw_ruling rule(void *ctx, struct mo_gw_case *k,
                              struct mo_buf *question)
{
    struct mo_approvals *d = ctx;
    bool off = d->cfg->gateway.approvals == MO_GW_NO_RULES;
    struct mo_tool_pins *pins;
    struct pending_call *m;
    struct mo_err e;

    k->by = NULL;
    if (!off && mo_approvals_pins(d, &pins, &e) < 0)
        return refuse(k, e.msg);
    if (!off && !mo_approvals_is_same(d, k))
        return refuse(k, "its server changed this tool since it was first "
                         "seen; a person must look at it and accept it "
                         "(`mcp-orchestrator approvals list`)");
    if (k->inside.n)
        return from_inside(d, k);
    if ((off || !has_rules(d)) && !d->cfg->audit.arguments)
        return MO_GW_LET;
    m = matter_new(d, k);
    if (!m)
        return refuse(k, "out of memory");
    if (!off && has_rules(d))
        return by_rules(d, m, question);
    if (k->arguments.p)
        (void)mo_buf_span(&m->args, mo_json_text(k->arguments));
    return MO_GW_LET;
}

/* --- what becomes of it -------------------------------------------------- */

static void held(void *ctx, struct mo_gw_case *k)
{
    struct mo_approvals *d = ctx;
    struct pending_call *m = k->data;
    const struct mo_exact_call what = {
        .session = k->who,
        .call = mo_span_cstr(k->id),
        .server = k->server,
        .tool = k->tool,
        .args = mo_buf_view(&m->args),
        .tool_digest = m->tool_digest,
    };

    mo_exact_call(&what, m->digest);
    mo_list_push(&d->held, &m->node);
    d->nheld++;
}

static void on_sure(void *ctx, const struct mo_err *why)
{
    struct pending_call *m = ctx;

    m->writing = false;
    if (m->k)
        mo_gw_run(m->k, why);
    else
        matter_free(m);
}

static void agreed(void *ctx, struct mo_gw_case *k)
{
    struct mo_approvals *d = ctx;
    struct pending_call *m = k->data;
    struct mo_err e;

    unhold(m);
    mo_audit_call(d->audit, MO_AUDIT_AGREED, k, mo_buf_view(&m->args), m->who);
    if (mo_audit_sure(d->audit, on_sure, m, &e) == 0)
        m->writing = true;
    else
        mo_gw_run(k, &e);
}

static void done(void *ctx, struct mo_gw_case *k)
{
    struct mo_approvals *d = ctx;
    struct pending_call *m = k->data;

    if (!k->inside.n) /* who asked writes it down, with the rest of it */
        mo_audit_call(d->audit, MO_AUDIT_DONE, k,
                      m ? mo_buf_view(&m->args) : mo_span(NULL, 0),
                      m ? m->who : NULL);
    if (d->watch.done)
        d->watch.done(d->watch.ctx, k);
    k->data = NULL;
    if (!m)
        return;
    m->k = NULL;
    unhold(m);
    if (!m->writing)
        matter_free(m);
}

static void routed(void *ctx, const struct mo_gw_routing *r)
{
    mo_audit_routing(((struct mo_approvals *)ctx)->audit, r);
}

struct mo_gw_judge mo_approvals_judge(struct mo_approvals *d)
{
    return (struct mo_gw_judge){
        .rule = rule,
        .held = held,
        .agreed = agreed,
        .done = done,
        .routed = routed,
        .changed = mo_approvals_changed,
        .ctx = d,
        .wait_ms = (uint64_t)d->cfg->approvals.timeout_seconds * 1000,
    };
}

/* --- from open to close -------------------------------------------------- */

static void on_flush(struct mo_timer *t)
{
    struct mo_approvals *d = mo_container_of(t, struct mo_approvals, flush);
    struct mo_agent_pins p = mo_tool_pins_for(d->pins);

    p.flush(p.ctx);
}

int mo_approvals_reload(struct mo_approvals *d, const struct mo_config *cfg,
                        struct mo_err *e)
{
    struct mo_rules rules;
    struct mo_arena arena;
    int rc;

    mo_arena_init(&arena, MO_RULES_ARENA);
    rc = mo_rules_make(cfg, &arena, &rules, e);
    if (rc < 0) {
        mo_arena_fini(&arena);
        return rc;
    }
    mo_arena_fini(&d->arena);
    d->arena = arena;
    d->rules = rules;
    mo_config_unref(d->cfg);
    d->cfg = mo_config_ref(cfg);
    if (d->audit)
        mo_audit_config(d->audit, cfg);
    return 0;
}

static void desk_over(void *ctx)
{
    struct mo_approvals *d = ctx;
    void (*gone)(void *) = d->gone;
    void *gone_ctx = d->ctx;

    MO_BUG_ON(d->nheld);
    while (!mo_list_empty(&d->changed))
        mo_approvals_changed_free(
            d, mo_list_first(&d->changed, struct changed_tool, node));
    mo_map_fini(&d->known);
    mo_tool_pins_close(d->pins);
    mo_remembered_rules_close(d->always);
    mo_arena_fini(&d->arena);
    mo_config_unref(d->cfg);
    mo_free(d);
    if (gone)
        gone(gone_ctx);
}

void mo_approvals_close(struct mo_approvals *d, void (*gone)(void *ctx),
                        void *ctx)
{
    d->gone = gone;
    d->ctx = ctx;
    if (mo_timer_on(&d->flush))
        on_flush(&d->flush);
    mo_timer_stop(d->loop, &d->flush);
    if (d->audit)
        mo_audit_close(mo_take_ptr(&d->audit), desk_over, d);
    else
        desk_over(d);
}

int mo_approvals_open(struct mo_loop *l, const struct mo_config *cfg,
                      struct mo_approvals **out, struct mo_err *e)
{
    struct mo_approvals *d = mo_new(struct mo_approvals);
    int rc;

    if (!d)
        return mo_fail(e, MO_ENOMEM, "approvals");
    d->loop = l;
    d->cfg = mo_config_ref(cfg);
    d->key0 = mo_random_u64();
    d->key1 = mo_random_u64();
    mo_arena_init(&d->arena, MO_RULES_ARENA);
    mo_list_init(&d->held);
    mo_list_init(&d->changed);
    mo_map_init(&d->known, KNOWN_MAX);
    mo_timer_init(&d->flush, on_flush);
    rc = mo_rules_make(cfg, &d->arena, &d->rules, e);
    if (rc == 0)
        rc = mo_remembered_rules_open(cfg->store.dir, &d->always, e);
    if (rc == 0)
        rc = mo_audit_open(l, cfg, &d->audit, e);
    if (rc < 0) {
        mo_approvals_close(d, NULL, NULL);
        return rc;
    }
    *out = d;
    return 0;
}

static int verify(void *ctx,
                  void (*told)(void *arg, struct mo_span json,
                               const struct mo_err *why),
                  void *arg, struct mo_err *e)
{
    return mo_audit_verify(((struct mo_approvals *)ctx)->audit, told, arg, e);
}

struct mo_api_approvals mo_approvals_api(struct mo_approvals *d)
{
    return (struct mo_api_approvals){.list = mo_approvals_list,
                                     .decide = mo_approvals_decide,
                                     .accept = mo_approvals_accept,
                                     .verify = verify,
                                     .ctx = d};
}

int mo_approvals_pins(struct mo_approvals *d, struct mo_tool_pins **out,
                      struct mo_err *e)
{
    int rc = d->pins ? 0
                     : mo_tool_pins_open(mo_loop_log(d->loop),
                                         d->cfg->store.dir, &d->pins, e);

    *out = d->pins;
    return rc;
}

struct mo_remembered_rules *
mo_approvals_remembered(const struct mo_approvals *d)
{
    return d->always;
}

struct mo_audit *mo_approvals_audit(const struct mo_approvals *d)
{
    return d->audit;
}

void mo_approvals_watch(struct mo_approvals *d,
                        const struct mo_approvals_watch *w)
{
    d->watch = *w;
}

unsigned mo_approvals_waiting(const struct mo_approvals *d)
{
    return d->nheld;
}
