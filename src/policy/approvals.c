#include "policy/approvals_priv.h"

#include <stdio.h>

#define DEF_MAX ((size_t)4 * 1024 * 1024) /* of a tool */

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

/* def: what is known of the tool, its annotations among it. */
static struct mo_verdict verdict_of(const struct mo_approvals *d,
                                    const struct mo_gw_case *k,
                                    struct mo_json def, struct mo_span args)
{
    return mo_policy_judge(
        d->policy, &(struct mo_policy_call){
                       .from = MO_POLICY_CLIENT,
                       .server = k->server,
                       .tool = k->tool,
                       .claims = mo_claims_of(mo_json_get(def, "annotations")),
                       .args_text = args,
                   });
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
        mo_jw_u64(&w,
                  (uint64_t)(v->rule - mo_policy_operator_rules(d->policy)->v));
        mo_jw_key(&w, "server");
        mo_jw_str(&w, v->rule->server);
        mo_jw_key(&w, "tool");
        mo_jw_str(&w, v->rule->tool);
        mo_jw_key(&w, "remember");
        mo_jw_bool(&w, !v->rule->final);
    }
    mo_jw_end(&w);
}

/* The digest of the tool's definition, as pins have it. */
static int digest_of(const struct mo_gw_case *k, char out[MO_EXACT_DIGEST])
{
    struct mo_arena a;
    struct mo_tool t;
    int rc;

    mo_arena_init(&a, DEF_MAX);
    rc = mo_tool_pins_read_tool(k->server, k->tool, k->item, &a, &t);
    if (rc == 0)
        memcpy(out, t.digest, MO_EXACT_DIGEST);
    mo_arena_fini(&a);
    return rc;
}

/* A person is asked: what is shown is kept. */
static enum mo_gw_ruling ask(struct mo_approvals *d, struct pending_call *m,
                             struct mo_buf *question)
{
    struct mo_gw_case *k = m->k;

    if (d->nheld >= HELD_MAX)
        return refuse(k, "too many calls wait for a person already");
    put_def(&m->def, k->item);
    if (mo_buf_err(&m->def) || digest_of(k, m->tool_digest) < 0)
        return refuse(k, "out of memory");
    (void)snprintf(m->why, sizeof(m->why), "%s", k->reason);
    m->at = mo_wall_ms();
    m->expires =
        m->at +
        (uint64_t)mo_policy_config(d->policy)->approvals.timeout_seconds * 1000;
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
    if (!mo_policy_config(d->policy)->audit.arguments)
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

/* A call of a conversation: its person was asked there, by the same rules and
 * their own. What the operator denies is denied here too, and nobody was asked
 * about a server that stands in. */
static enum mo_gw_ruling from_inside(const struct mo_approvals *d,
                                     struct mo_gw_case *k)
{
    static const enum mo_gw_ruling rulings[] = {
        [MO_ACTION_ASK] = MO_GW_ASK,
        [MO_ACTION_ALLOW] = MO_GW_LET,
        [MO_ACTION_DENY] = MO_GW_REFUSE,
    };
    struct mo_verdict v;

    if (k->routed)
        return refuse(k, "nobody was asked about this tool; name it and begin "
                         "again");
    v = mo_policy_judge(
        d->policy,
        &(struct mo_policy_call){
            .from = k->stand_in ? MO_POLICY_STAND_IN : MO_POLICY_FORWARDED,
            .server = k->server,
            .tool = k->tool,
            .claims = mo_claims_of(mo_json_get(k->item, "annotations")),
            .args = k->arguments,
        });
    k->by = "rule";
    if (v.rule)
        (void)snprintf(k->reason, sizeof(k->reason), "%.*s",
                       (int)v.rule->reason.n, v.rule->reason.p);
    return rulings[v.action];
}

static enum mo_gw_ruling rule(void *ctx, struct mo_gw_case *k,
                              struct mo_buf *question)
{
    struct mo_approvals *d = ctx;
    const struct mo_config *cfg = mo_policy_config(d->policy);
    bool off = cfg->gateway.approvals == MO_GW_NO_RULES;
    bool rules = mo_policy_has_rules(d->policy);
    struct pending_call *m;
    struct mo_err e;

    k->by = NULL;
    if (!off && mo_policy_load_pins(d->policy, &e) < 0)
        return refuse(k, e.msg);
    if (!off &&
        !mo_policy_item_is_pinned(d->policy, k->server, k->tool, k->item))
        return refuse(k, "its server changed this tool since it was first "
                         "seen; a person must look at it and accept it "
                         "(`mcp-orchestrator approvals list`)");
    if (k->inside.n)
        return from_inside(d, k);
    if (!rules && !cfg->audit.arguments)
        return MO_GW_LET;
    m = matter_new(d, k);
    if (!m)
        return refuse(k, "out of memory");
    if (rules)
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

static bool changed(void *ctx, struct mo_span server, struct mo_span tool,
                    struct mo_json item)
{
    return mo_policy_item_changed(((struct mo_approvals *)ctx)->policy, server,
                                  tool, item);
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
        .changed = changed,
        .ctx = d,
        .wait_ms =
            (uint64_t)mo_policy_config(d->policy)->approvals.timeout_seconds *
            1000,
    };
}

/* --- from open to close -------------------------------------------------- */

int mo_approvals_reload(struct mo_approvals *d, const struct mo_config *cfg,
                        struct mo_err *e)
{
    int rc = mo_policy_reload(d->policy, cfg, e);

    if (rc == 0)
        mo_audit_config(d->audit, cfg);
    return rc;
}

static void on_audit_gone(void *ctx)
{
    struct mo_approvals *d = ctx;
    void (*gone)(void *) = d->gone;
    void *gone_ctx = d->ctx;

    MO_BUG_ON(d->nheld);
    mo_policy_close(d->policy);
    mo_free(d);
    if (gone)
        gone(gone_ctx);
}

static void on_ending(struct mo_later *d)
{
    on_audit_gone(mo_container_of(d, struct mo_approvals, ending));
}

void mo_approvals_close(struct mo_approvals *d, void (*gone)(void *ctx),
                        void *ctx)
{
    d->gone = gone;
    d->ctx = ctx;
    if (d->audit)
        mo_audit_close(mo_take_ptr(&d->audit), on_audit_gone, d);
    else if (gone)
        mo_loop_defer(d->loop, &d->ending);
    else
        on_audit_gone(d);
}

int mo_approvals_open(struct mo_loop *l, const struct mo_config *cfg,
                      struct mo_approvals **out, struct mo_err *e)
{
    struct mo_approvals *d = mo_new(struct mo_approvals);
    int rc;

    if (!d)
        return mo_fail(e, MO_ENOMEM, "approvals");
    d->loop = l;
    mo_list_init(&d->held);
    mo_later_init(&d->ending, on_ending);
    rc = mo_policy_open(l, cfg, &d->policy, e);
    if (rc == 0)
        rc = mo_audit_open(l, cfg, &d->audit, e);
    if (rc < 0) {
        mo_approvals_close(d, NULL, NULL);
        return rc;
    }
    *out = d;
    return 0;
}

struct mo_policy *mo_approvals_policy(const struct mo_approvals *d)
{
    return d->policy;
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
