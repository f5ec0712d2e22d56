/* rules_api.h - the rules about calls as a person works with them: the
 * operator's to be read, their own to be added and removed, and all of them to
 * be tried on a call that nobody makes.
 *
 * A try runs nothing and remembers nothing. A draft is a rule of the person's
 * that is not kept yet: it is asked last, as it would be. What was answered
 * for one session only is not known here. */
#ifndef MO_POLICY_RULES_API_H
#define MO_POLICY_RULES_API_H

#include "policy/policy.h"

int mo_rules_api_list(const struct mo_policy *p, struct mo_buf *out);
/* MO_ENOTFOUND: there is no rule of that id. */
int mo_rules_api_remove(struct mo_policy *p, struct mo_span id,
                        struct mo_err *e);
/* body: the request as it came. MO_EINVAL or MO_EPROTO: it is wrong. */
int mo_rules_api_add(struct mo_policy *p, struct mo_span body, const char *who,
                     struct mo_buf *out, struct mo_err *e);
int mo_rules_api_try(const struct mo_policy *p, struct mo_span body,
                     struct mo_buf *out, struct mo_err *e);

#endif
