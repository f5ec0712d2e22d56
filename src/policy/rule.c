/* rule.c - finds the first matching rule; see rule.h. */
#include "policy/rule.h"

/* "allow" requires that every value of a path can be read and matches; for
 * "deny" and "ask" one value that matches or cannot be read is enough. */
static enum mo_match_want match_mode(const struct mo_rule *r)
{
    return r->action == MO_ACTION_ALLOW ? MO_MATCH_EVERY : MO_MATCH_ANY;
}

/* True if the schema lists every argument that the tool has. */
static bool lists_arguments(struct mo_json schema)
{
    static const char *const more[] = {
        "$ref", "$dynamicRef", "allOf", "anyOf",           "oneOf",
        "if",   "then",        "else",  "dependentSchemas"};

    for (size_t i = 0; i < MO_COUNT(more); i++)
        if (mo_json_get(schema, more[i]).p)
            return false;
    return mo_json_is(mo_json_get(schema, "properties"), MO_JSON_OBJECT);
}

/* True if the tool has no such argument, and the call does not give it. A
 * missing argument of the tool may have any value: its server's default. */
static bool is_unknown_argument(const struct mo_subject *s, struct mo_span path)
{
    return !mo_match_has(s->args, path) && lists_arguments(s->schema) &&
           !mo_match_has(mo_json_get(s->schema, "properties"), path);
}

static bool arg_fits(const struct mo_rule_arg *a, const struct mo_subject *s,
                     enum mo_match_want want)
{
    if (want == MO_MATCH_ANY && is_unknown_argument(s, a->path))
        return mo_span_is(a->cond, "absent");
    return mo_match_args(s->args, a->path, a->cond, want);
}

static bool names_host(const struct mo_rule *r)
{
    for (size_t i = 0; i < r->nargs; i++)
        if (mo_span_is(r->args[i].path, "host"))
            return true;
    return false;
}

enum mo_rule_part mo_rule_misses(const struct mo_rule *r,
                                 const struct mo_subject *s, size_t *arg)
{
    enum mo_match_want want = match_mode(r);

    if (r->server.n > 0 && !mo_match_text(r->server, s->server, want))
        return MO_RULE_SERVER;
    if (r->tool.n > 0 && !mo_match_text(r->tool, s->tool, want))
        return MO_RULE_TOOL;
    if (r->action == MO_ACTION_ALLOW && mo_span_is(s->tool, MO_RULE_CONNECT) &&
        !names_host(r))
        return MO_RULE_TOOL;
    if ((s->claims & r->claims) != r->claims || (s->claims & r->denials) != 0)
        return MO_RULE_CLAIMS;
    for (size_t i = 0; i < r->nargs; i++) {
        if (arg)
            *arg = i;
        if (!arg_fits(&r->args[i], s, want))
            return MO_RULE_ARG;
    }
    return MO_RULE_FITS;
}

static bool same_rule(const struct mo_rule *a, const struct mo_rule *b)
{
    bool same = mo_span_eq(a->server, b->server) &&
                mo_span_eq(a->tool, b->tool) &&
                mo_span_eq(a->reason, b->reason) && a->nargs == b->nargs &&
                a->claims == b->claims && a->denials == b->denials &&
                a->action == b->action && a->final == b->final &&
                a->approver == b->approver &&
                mo_panel_digest(&a->panel) == mo_panel_digest(&b->panel);

    for (size_t i = 0; same && i < a->nargs; i++)
        same = mo_span_eq(a->args[i].path, b->args[i].path) &&
               mo_span_eq(a->args[i].cond, b->args[i].cond);
    return same;
}

bool mo_rules_same(const struct mo_rules *a, const struct mo_rules *b)
{
    bool same = a->n == b->n;

    for (size_t i = 0; same && i < a->n; i++)
        same = same_rule(&a->v[i], &b->v[i]);
    return same;
}

static const struct mo_rule *first_match(const struct mo_rules *rules,
                                         const struct mo_subject *s)
{
    for (size_t i = 0; rules && i < rules->n; i++)
        if (mo_rule_misses(&rules->v[i], s, NULL) == MO_RULE_FITS)
            return &rules->v[i];
    return NULL;
}

struct mo_verdict mo_rules_judge(const struct mo_rules *operators,
                                 const struct mo_rules *const *persons,
                                 size_t npersons, enum mo_action fallback,
                                 const struct mo_subject *s)
{
    const struct mo_rule *op = first_match(operators, s);

    if (op && (op->action != MO_ACTION_ASK || op->final))
        return (struct mo_verdict){.action = op->action,
                                   .rule = op,
                                   .approver = op->approver,
                                   .panel = op->panel};
    if (op == NULL && fallback == MO_ACTION_DENY)
        return (struct mo_verdict){.action = MO_ACTION_DENY};
    for (size_t i = 0; i < npersons; i++) {
        const struct mo_rule *person = NULL;

        if (persons[i] && !(persons[i]->of_session && op &&
                            op->approver == MO_APPROVER_OPERATOR))
            person = first_match(persons[i], s);
        if (person)
            return (struct mo_verdict){
                .action = person->action, .rule = person, .remembered = true};
    }
    if (op)
        return (struct mo_verdict){
            .action = MO_ACTION_ASK, .rule = op, .approver = op->approver};
    return (struct mo_verdict){.action = fallback};
}

bool mo_verdict_may_run(const struct mo_verdict *v, enum mo_answered by,
                        uint64_t panel)
{
    if (v->action != MO_ACTION_ASK)
        return v->action == MO_ACTION_ALLOW;
    if (v->panel.need)
        return by == MO_ANSWERED_PANEL && panel == mo_panel_digest(&v->panel);
    switch (by) {
    case MO_ANSWERED_CLIENT:
        return v->approver == MO_APPROVER_CLIENT;
    case MO_ANSWERED_OWNER:
        return v->approver != MO_APPROVER_OPERATOR;
    default:
        return by == MO_ANSWERED_OPERATOR;
    }
}

const char *mo_approver_name(enum mo_approver a)
{
    static const char *const names[] = {
        [MO_APPROVER_AUTO] = "auto",
        [MO_APPROVER_OPERATOR] = "operator",
        [MO_APPROVER_OWNER] = "owner",
        [MO_APPROVER_CLIENT] = "client",
    };

    return names[a];
}

int mo_rule_check(const struct mo_rule *r, struct mo_err *e)
{
    if ((r->claims & r->denials) != 0)
        return mo_fail(e, MO_EINVAL,
                       "an annotation is both required and excluded");
    for (size_t i = 0; i < r->nargs; i++) {
        int rc = mo_match_check(r->args[i].path, r->args[i].cond, e);

        if (rc < 0)
            return mo_wrap(e, "args.%.*s", (int)r->args[i].path.n,
                           r->args[i].path.p);
    }
    return 0;
}
