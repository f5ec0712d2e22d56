/* rules_api.h - JSON bodies of /api/rules: list the rules, add and remove
 * remembered ones, and try all of them on an example call.
 *
 * A try runs nothing and stores nothing. It may contain a draft, a rule that is
 * not stored yet and is tested after all others. Rules of a single session are
 * not included. */
#ifndef MO_POLICY_RULES_API_H
#define MO_POLICY_RULES_API_H

#include "policy/policy.h"

int mo_rules_api_list(const struct mo_policy *p, struct mo_buf *out);
/* body: of the request. MO_EINVAL or MO_EPROTO: the body is invalid. */
int mo_rules_api_add(struct mo_policy *p, struct mo_span body, const char *who,
                     struct mo_buf *out, struct mo_err *e);
int mo_rules_api_try(const struct mo_policy *p, struct mo_span body,
                     struct mo_buf *out, struct mo_err *e);

#endif
