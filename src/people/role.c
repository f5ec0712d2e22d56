#include "people/role.h"

#include "codec/jwt.h"

static const char *const names[MO_ROLES] = {
    [MO_ROLE_NONE] = "none",         [MO_ROLE_VIEWER] = "viewer",
    [MO_ROLE_USER] = "user",         [MO_ROLE_APPROVER] = "approver",
    [MO_ROLE_OPERATOR] = "operator",
};

const char *mo_role_name(enum mo_role r)
{
    return names[r];
}

enum mo_role mo_role_named(struct mo_span name)
{
    for (int r = MO_ROLE_VIEWER; r < MO_ROLES; r++)
        if (mo_span_is(name, names[r]))
            return (enum mo_role)r;
    return MO_ROLE_NONE;
}

const struct mo_config_list *mo_role_holders(const struct mo_config *c,
                                             enum mo_role r)
{
    const struct mo_config_roles *all = &c->people.roles;

    switch (r) {
    case MO_ROLE_VIEWER:
        return &all->viewer;
    case MO_ROLE_USER:
        return &all->user;
    case MO_ROLE_APPROVER:
        return &all->approver;
    default:
        return &all->op;
    }
}

enum mo_role mo_role_of_token(const struct mo_config *c, const char *name)
{
    for (int r = MO_ROLE_OPERATOR; r > MO_ROLE_NONE; r--) {
        const struct mo_config_list *who = mo_role_holders(c, (enum mo_role)r);

        for (size_t i = 0; i < who->n; i++)
            if (strcmp(who->v[i], name) == 0)
                return (enum mo_role)r;
    }
    return MO_ROLE_USER;
}

/* True if the entry of people.roles means this person. */
static bool is_meant(const char *entry, const char *provider,
                     struct mo_span name, struct mo_json groups)
{
    struct mo_span rest = mo_span_cstr(entry);
    char sign;

    if (!mo_span_strip(&rest, mo_span_cstr(provider)) || rest.n < 2)
        return false;
    sign = rest.p[0];
    rest = mo_span_skip(rest, 1);
    if (sign == ':')
        return mo_span_is(rest, "*") || mo_span_eq(rest, name);
    return sign == '/' && mo_jwt_claim_has(groups, rest);
}

enum mo_role mo_role_of_claims(const struct mo_config *c, const char *provider,
                               struct mo_span name, struct mo_json groups)
{
    for (int r = MO_ROLE_OPERATOR; r > MO_ROLE_NONE; r--) {
        const struct mo_config_list *who = mo_role_holders(c, (enum mo_role)r);

        for (size_t i = 0; i < who->n; i++)
            if (is_meant(who->v[i], provider, name, groups))
                return (enum mo_role)r;
    }
    return MO_ROLE_NONE;
}
