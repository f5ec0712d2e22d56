/* rule.c - finds the first matching rule; see rule.h. */
#include "policy/rule.h"

/* "allow" requires that every value of a path matches; for "deny" and "ask"
 * one value is enough. */
static enum mo_match_want match_mode(const struct mo_rule *r)
{
    return r->action == MO_ACTION_ALLOW ? MO_MATCH_EVERY : MO_MATCH_ANY;
}

enum mo_rule_part mo_rule_misses(const struct mo_rule *r,
                                 const struct mo_subject *s, size_t *arg)
{
    if (r->server.n > 0 && !mo_match_text(r->server, s->server))
        return MO_RULE_SERVER;
    if (r->tool.n > 0 && !mo_match_text(r->tool, s->tool))
        return MO_RULE_TOOL;
    if ((s->claims & r->claims) != r->claims || (s->claims & r->denials) != 0)
        return MO_RULE_CLAIMS;
    for (size_t i = 0; i < r->nargs; i++) {
        if (arg)
            *arg = i;
        if (!mo_match_args(s->args, r->args[i].path, r->args[i].cond,
                           match_mode(r)))
            return MO_RULE_ARG;
    }
    return MO_RULE_FITS;
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
        return (struct mo_verdict){op->action, op, false};
    if (op == NULL && fallback == MO_ACTION_DENY)
        return (struct mo_verdict){MO_ACTION_DENY, NULL, false};
    for (size_t i = 0; i < npersons; i++) {
        const struct mo_rule *person = first_match(persons[i], s);

        if (person)
            return (struct mo_verdict){person->action, person, true};
    }
    if (op)
        return (struct mo_verdict){MO_ACTION_ASK, op, false};
    return (struct mo_verdict){fallback, NULL, false};
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
