/* rules_api.c - reads requests and writes answers of /api/rules; see
 * rules_api.h. */
#include "policy/rules_api.h"

#include <stdio.h>

#define TRY_MEMORY ((size_t)4 * 1024 * 1024)

static const char *const actions[] = {
    [MO_ACTION_ASK] = "ask",
    [MO_ACTION_ALLOW] = "allow",
    [MO_ACTION_DENY] = "deny",
};

/* --- listing ------------------------------------------------------------- */

static void put_claims(struct mo_jw *w, const struct mo_rule *r)
{
    char text[64];

    if (r->claims == 0 && r->denials == 0)
        return;
    mo_jw_member_arr(w, "annotations");
    for (unsigned i = 0; i < MO_CLAIMS; i++) {
        bool denied = r->denials & 1u << i;

        if (!denied && !(r->claims & 1u << i))
            continue;
        (void)snprintf(text, sizeof(text), "%s%s", denied ? "!" : "",
                       mo_claim_name(i));
        mo_jw_cstr(w, text);
    }
    mo_jw_end(w);
}

static void put_operator_rule(struct mo_jw *w, const struct mo_rule *r)
{
    mo_jw_obj(w);
    mo_jw_member(w, "server", r->server);
    mo_jw_member(w, "tool", r->tool);
    mo_jw_member(w, "action", mo_span_cstr(actions[r->action]));
    if (r->nargs > 0) {
        mo_jw_member_obj(w, "args");
        for (size_t i = 0; i < r->nargs; i++) {
            mo_jw_key_span(w, r->args[i].path);
            mo_jw_str(w, r->args[i].cond);
        }
        mo_jw_end(w);
    }
    put_claims(w, r);
    mo_jw_member_opt(w, "reason", r->reason);
    mo_jw_member_bool(w, "remember", !r->final);
    mo_jw_member_cstr(w, "approver", mo_approver_name(r->approver));
    mo_panel_put(w, &r->panel, NULL);
    mo_jw_end(w);
}

int mo_rules_api_list(const struct mo_policy *p, struct mo_buf *out)
{
    size_t n = mo_remembered_rules_all(mo_policy_remembered(p))->n;
    struct mo_jw w = mo_jw_object(out);

    mo_jw_member_arr(&w, "rules");
    for (size_t i = 0; i < n; i++)
        mo_jw_raw(&w, mo_remembered_rules_doc(mo_policy_remembered(p), i));
    mo_jw_end(&w);
    mo_jw_member_arr(&w, "operator");
    for (size_t i = 0; i < mo_policy_operator_rules(p)->n; i++)
        put_operator_rule(&w, &mo_policy_operator_rules(p)->v[i]);
    mo_jw_end(&w);
    mo_jw_member(
        &w, "default",
        mo_span_cstr(actions[mo_policy_config(p)->approvals.fallback]));
    mo_jw_end(&w);
    return mo_buf_err(out);
}

/* --- adding -------------------------------------------------------------- */

static int read_rule(struct mo_arena *a, struct mo_json doc, struct mo_rule *r,
                     struct mo_err *e)
{
    static const char *const known[] = {"allow", "deny", NULL};

    if (!mo_json_str_in(mo_json_get(doc, "action"), known))
        return mo_fail(e, MO_EINVAL,
                       "\"action\" must be \"allow\" or \"deny\"");
    return mo_remembered_rules_read(a, doc, r, e);
}

/* Says if the operator decides about every call of that tool: a rule without
 * conditions that is final, or a default that denies. */
static void put_overridden(struct mo_jw *w, const struct mo_policy *p,
                           const struct mo_remembered_rule_wish *wish)
{
    const struct mo_rules *all = mo_policy_operator_rules(p);
    const struct mo_subject s = {.server = wish->server, .tool = wish->tool};

    for (size_t i = 0; i < all->n; i++) {
        const struct mo_rule *r = &all->v[i];

        if (r->nargs || r->claims || r->denials ||
            mo_rule_misses(r, &s, NULL) != MO_RULE_FITS)
            continue;
        if (r->action == MO_ACTION_ASK && !r->final)
            return;
        mo_jw_member_obj(w, "overriddenBy");
        mo_jw_member_u64(w, "index", i);
        mo_jw_member_cstr(w, "action", actions[r->action]);
        mo_jw_end(w);
        return;
    }
    if (mo_policy_config(p)->approvals.fallback == MO_ACTION_DENY)
        mo_jw_member_bool(w, "byDefault", true);
}

static void put_added(struct mo_buf *out, const struct mo_policy *p,
                      const struct mo_remembered_rule_wish *wish,
                      const char *id)
{
    struct mo_jw w = mo_jw_object(out);

    mo_jw_member_bool(&w, "ok", true);
    mo_jw_member_cstr(&w, "id", id);
    put_overridden(&w, p, wish);
    mo_jw_end(&w);
}

static int add_from_json(struct mo_policy *p, struct mo_json doc,
                         struct mo_arena *a, const char *who,
                         struct mo_buf *out, struct mo_err *e)
{
    struct mo_json args = mo_json_get(doc, "args");
    struct mo_remembered_rule_wish wish = {.who = who};
    char id[MO_REMEMBERED_RULES_ID_MAX];
    struct mo_rule r = {.nargs = 0};
    int rc = read_rule(a, doc, &r, e);

    if (rc < 0)
        return rc;
    wish.action = r.action;
    if (r.nargs > 0)
        wish.conditions = mo_json_text(args);
    if (mo_json_str(mo_json_get(doc, "server"), a, &wish.server) < 0 ||
        mo_json_str(mo_json_get(doc, "tool"), a, &wish.tool) < 0)
        return mo_fail(e, MO_ENOMEM, "rules: out of memory");
    rc = mo_remembered_rules_add(mo_policy_remembered(p), &wish, id, e);
    if (rc == 0)
        put_added(out, p, &wish, id);
    return rc;
}

int mo_rules_api_add(struct mo_policy *p, struct mo_span body, const char *who,
                     struct mo_buf *out, struct mo_err *e)
{
    struct mo_json_doc doc;
    mo_autoarena struct mo_arena a = {.cap = TRY_MEMORY};
    int rc = mo_json_parse(body, 0, &doc, e);

    if (rc < 0)
        return rc;
    return add_from_json(p, doc.root, &a, who, out, e);
}

/* --- trying -------------------------------------------------------------- */

struct trial {
    struct mo_subject s;
    struct mo_rule draft;
    struct mo_rules drafts; /* the draft, or none */
    struct mo_verdict v;
};

static int read_draft(struct mo_json draft, struct mo_arena *a, struct trial *t,
                      struct mo_err *e)
{
    if (draft.p == NULL)
        return 0;
    if (read_rule(a, draft, &t->draft, e) < 0)
        return mo_wrap(e, "draft");
    t->drafts = (struct mo_rules){&t->draft, 1};
    return 0;
}

static int read_trial(struct mo_json doc, struct mo_arena *a, struct trial *t,
                      struct mo_err *e)
{
    struct mo_json args = mo_json_get(doc, "args");
    struct mo_json server = mo_json_get(doc, "server");
    struct mo_json tool = mo_json_get(doc, "tool");

    if (!mo_json_is(server, MO_JSON_STRING) ||
        !mo_json_is(tool, MO_JSON_STRING) ||
        mo_json_str(server, a, &t->s.server) < 0 ||
        mo_json_str(tool, a, &t->s.tool) < 0)
        return mo_fail(e, MO_EINVAL, "\"server\" and \"tool\" must be strings");
    if (args.p && !mo_json_is(args, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL, "\"args\" must be an object");
    t->s.args = args.p ? args : (struct mo_json){"{}", 2};
    t->s.claims = mo_claims_of(mo_json_get(doc, "annotations"));
    t->s.schema = mo_json_get(doc, "inputSchema");
    return read_draft(mo_json_get(doc, "draft"), a, t, e);
}

static void put_misses(struct mo_jw *w, const struct mo_rule *r,
                       const struct mo_subject *s)
{
    static const char *const parts[] = {
        [MO_RULE_SERVER] = "server",
        [MO_RULE_TOOL] = "tool",
        [MO_RULE_CLAIMS] = "annotations",
        [MO_RULE_ARG] = "args",
    };
    size_t arg = 0;
    enum mo_rule_part part = mo_rule_misses(r, s, &arg);

    mo_jw_member_bool(w, "fits", part == MO_RULE_FITS);
    if (part == MO_RULE_FITS)
        return;
    mo_jw_member(w, "misses", mo_span_cstr(parts[part]));
    if (part == MO_RULE_ARG)
        mo_jw_member(w, "path", r->args[arg].path);
}

static void put_rule_result(struct mo_jw *w, const struct trial *t,
                            const char *by, size_t i, const struct mo_rule *r)
{
    mo_jw_obj(w);
    mo_jw_member(w, "by", mo_span_cstr(by));
    mo_jw_member_u64(w, "index", i);
    put_misses(w, r, &t->s);
    mo_jw_member_bool(w, "decides", t->v.rule == r);
    mo_jw_end(w);
}

static const char *decider_name(const struct trial *t)
{
    if (t->v.rule == NULL)
        return "default";
    if (!t->v.remembered)
        return "operator";
    return t->v.rule == &t->draft ? "draft" : "person";
}

static void put_trial(struct mo_jw *w, const struct mo_policy *p,
                      const struct trial *t)
{
    const struct mo_rules *operators = mo_policy_operator_rules(p);
    const struct mo_rules *remembered =
        mo_remembered_rules_all(mo_policy_remembered(p));

    mo_jw_obj(w);
    mo_jw_member(w, "action", mo_span_cstr(actions[t->v.action]));
    mo_jw_member(w, "by", mo_span_cstr(decider_name(t)));
    if (t->v.rule)
        mo_jw_member_opt(w, "reason", t->v.rule->reason);
    mo_jw_member_arr(w, "rules");
    for (size_t i = 0; i < operators->n; i++)
        put_rule_result(w, t, "operator", i, &operators->v[i]);
    for (size_t i = 0; i < remembered->n; i++)
        put_rule_result(w, t, "person", i, &remembered->v[i]);
    if (t->drafts.n)
        put_rule_result(w, t, "draft", remembered->n, &t->draft);
    mo_jw_end(w);
    mo_jw_end(w);
}

int mo_rules_api_try(const struct mo_policy *p, struct mo_span body,
                     struct mo_buf *out, struct mo_err *e)
{
    struct trial t = {.drafts = {NULL, 0}};
    struct mo_json_doc doc;
    mo_autoarena struct mo_arena a = {.cap = TRY_MEMORY};
    struct mo_jw w;
    int rc = mo_json_parse(body, 0, &doc, e);

    if (rc < 0)
        return rc;
    rc = read_trial(doc.root, &a, &t, e);
    if (rc == 0) {
        t.v = mo_policy_judge(p, &(struct mo_policy_call){
                                     .from = MO_POLICY_TRY_OUT,
                                     .server = t.s.server,
                                     .tool = t.s.tool,
                                     .claims = t.s.claims,
                                     .args = t.s.args,
                                     .schema = t.s.schema,
                                     .draft = &t.drafts,
                                 });
        mo_jw_init(&w, out);
        put_trial(&w, p, &t);
    }
    return rc;
}
