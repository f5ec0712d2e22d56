/* rules_api.h - the rules about calls as a person works with them: the
 * operator's to be read, their own to be added and removed, and all of them to
 * be tried on a call that nobody makes.
 *
 * A try runs nothing and remembers nothing. A draft is a rule of the person's
 * that is not kept yet: it is asked last, as it would be. What was answered
 * for one session only is not known here. */
#ifndef MO_POLICY_RULES_API_H
#define MO_POLICY_RULES_API_H

#include "policy/remembered_rules.h"
#include "web/api_rules.h"

struct mo_rules_api { /* all of it borrowed */
    const struct mo_rules *operators;
    enum mo_action fallback;
    struct mo_remembered_rules *always;
};

struct mo_api_rules mo_rules_api_api(struct mo_rules_api *d);

#endif
