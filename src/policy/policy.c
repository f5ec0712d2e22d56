/* policy.c - applies the rules to a call; see policy.h. */
#include "policy/policy_priv.h"

#define PERSONS_MAX 3 /* session, remembered, draft */

/* --- one call ------------------------------------------------------------ */

/* Which rules and which default apply to each kind of caller. */
static const struct {
    bool session, remembered, draft; /* rules of people that apply */
    bool asks;                       /* false: "ask" was answered elsewhere */
    enum { BY_CONFIG, BY_GATEWAY, ALLOWED } rest; /* if no rule matches */
} callers[MO_POLICY_FROMS] = {
    [MO_POLICY_CHAT] = {true, true, false, true, BY_CONFIG},
    [MO_POLICY_CHAT_META] = {true, true, false, true, ALLOWED},
    [MO_POLICY_CLIENT] = {false, true, false, true, BY_GATEWAY},
    [MO_POLICY_FORWARDED] = {false, false, false, false, ALLOWED},
    [MO_POLICY_STAND_IN] = {false, true, false, true, BY_CONFIG},
    [MO_POLICY_PAGE] = {false, false, false, true, BY_CONFIG},
    [MO_POLICY_TRY_OUT] = {false, true, true, true, BY_CONFIG},
};

static enum mo_action default_action(const struct mo_policy *p,
                                     enum mo_policy_from from)
{
    switch (callers[from].rest) {
    case ALLOWED:
        return MO_ACTION_ALLOW;
    case BY_GATEWAY:
        return p->cfg->gateway.approvals == MO_GW_ASK_REST ? MO_ACTION_ASK
                                                           : MO_ACTION_ALLOW;
    default:
        return (enum mo_action)p->cfg->approvals.fallback;
    }
}

static struct mo_subject make_subject(const struct mo_policy_call *c,
                                      struct mo_json_doc *doc)
{
    struct mo_subject s = {.server = c->server,
                           .tool = c->tool,
                           .claims = c->claims,
                           .args = c->args};

    if (!s.args.p && mo_json_parse(c->args_text, 0, doc, NULL) == 0)
        s.args = doc->root;
    return s;
}

struct mo_verdict mo_policy_judge(const struct mo_policy *p,
                                  const struct mo_policy_call *c)
{
    const struct mo_rules *persons[PERSONS_MAX] = {
        callers[c->from].session ? c->session : NULL,
        callers[c->from].remembered ? mo_remembered_rules_all(p->remembered)
                                    : NULL,
        callers[c->from].draft ? c->draft : NULL,
    };
    struct mo_json_doc doc;
    struct mo_subject s = make_subject(c, &doc);
    struct mo_verdict v = mo_rules_judge(&p->rules, persons, PERSONS_MAX,
                                         default_action(p, c->from), &s);

    if (v.action == MO_ACTION_ASK && !callers[c->from].asks)
        v.action = MO_ACTION_ALLOW;
    return v;
}

bool mo_policy_may_remember(const struct mo_policy *p,
                            const struct mo_policy_call *c)
{
    struct mo_json_doc doc;
    struct mo_subject s = make_subject(c, &doc);
    struct mo_verdict v = mo_rules_judge(
        &p->rules, NULL, 0, (enum mo_action)p->cfg->approvals.fallback, &s);

    return v.action == MO_ACTION_ASK && !(v.rule && v.rule->final);
}

bool mo_policy_has_rules(const struct mo_policy *p)
{
    if (p->cfg->gateway.approvals == MO_GW_NO_RULES)
        return false;
    return p->cfg->gateway.approvals == MO_GW_ASK_REST || p->rules.n ||
           mo_remembered_rules_all(p->remembered)->n;
}

const struct mo_rules *mo_policy_operator_rules(const struct mo_policy *p)
{
    return &p->rules;
}

struct mo_remembered_rules *mo_policy_remembered(const struct mo_policy *p)
{
    return p->remembered;
}

/* --- from open to close -------------------------------------------------- */

const struct mo_config *mo_policy_config(const struct mo_policy *p)
{
    return p->cfg;
}

int mo_policy_reload(struct mo_policy *p, const struct mo_config *cfg,
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
    mo_arena_fini(&p->arena);
    p->arena = arena;
    p->rules = rules;
    mo_config_unref(p->cfg);
    p->cfg = mo_config_ref(cfg);
    return 0;
}

int mo_policy_open(struct mo_loop *l, const struct mo_config *cfg,
                   struct mo_policy **out, struct mo_err *e)
{
    struct mo_policy *p = mo_new(struct mo_policy);
    int rc;

    if (!p)
        return mo_fail(e, MO_ENOMEM, "policy");
    p->loop = l;
    p->cfg = mo_config_ref(cfg);
    mo_arena_init(&p->arena, MO_RULES_ARENA);
    mo_policy_init_pins(p);
    rc = mo_rules_make(cfg, &p->arena, &p->rules, e);
    if (rc == 0)
        rc = mo_remembered_rules_open(cfg->store.dir, &p->remembered, e);
    if (rc < 0) {
        mo_policy_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

void mo_policy_close(struct mo_policy *p)
{
    if (!p)
        return;
    mo_policy_fini_pins(p);
    mo_remembered_rules_close(p->remembered);
    mo_arena_fini(&p->arena);
    mo_config_unref(p->cfg);
    mo_free(p);
}
