#include "people/identity.h"

#define TEXT_MAX 160

/* "corp:*" means every name that begins with "corp:". */
static bool is_of_provider(const char *name, struct mo_span text)
{
    struct mo_span rest = mo_span_cstr(name);

    return text.n > 2 && text.p[text.n - 1] == '*' &&
           text.p[text.n - 2] == ':' &&
           mo_span_strip(&rest, mo_span_head(text, text.n - 1));
}

bool mo_identity_is(const struct mo_identity *i, struct mo_span text)
{
    enum mo_role least;

    if (i->role == MO_ROLE_NONE || text.n == 0)
        return false;
    if (mo_span_is(text, "*"))
        return true;
    if (text.p[0] == '@') {
        least = mo_role_named(mo_span_skip(text, 1));
        return least != MO_ROLE_NONE && i->role >= least;
    }
    if (!*i->name)
        return false;
    if (mo_span_is(text, i->name) || is_of_provider(i->name, text))
        return true;
    return i->people && mo_span_find(text, '/') > 0 &&
           mo_people_member(i->people, i->name, text);
}

int mo_identity_check(struct mo_span text, struct mo_err *e)
{
    if (text.n == 0 || text.n > TEXT_MAX)
        return mo_fail(e, MO_EINVAL, "a person or group has 1 to %d bytes",
                       TEXT_MAX);
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
            return mo_fail(e, MO_EINVAL,
                           "a person or group has no control characters");
    if (text.p[0] == '@' &&
        mo_role_named(mo_span_skip(text, 1)) == MO_ROLE_NONE)
        return mo_fail(e, MO_EINVAL,
                       "a role is @viewer, @user, @approver or @operator");
    return 0;
}
