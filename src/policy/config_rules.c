#include "policy/config_rules.h"

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

int mo_rules_make(const struct mo_config *cfg, struct mo_arena *a,
                  struct mo_rules *out, struct mo_err *e)
{
    const struct mo_config_rules *from = &cfg->approvals.rules;
    struct mo_rule *v = mo_arena_zalloc(a, (from->n + 1) * sizeof(*v));

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
        if (copy_args(a, &f->args, &v[i]) < 0)
            return mo_fail(e, MO_ENOMEM, "rules: out of memory");
        if (mo_rule_check(&v[i], e) < 0)
            return mo_wrap(e, "approvals.rules[%zu]", i);
    }
    *out = (struct mo_rules){v, from->n};
    return 0;
}
