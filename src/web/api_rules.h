/* api_rules.h - the approval rules: list, add, remove, and try.
 *
 *   GET    /api/rules      {"rules":[{id, server, tool, action, args?, at,
 *                          who}], "operator":[...], "default"}
 *   POST   /api/rules      {server, tool, action, args?}: add a rule of the
 *                          person, by exact names
 *   POST   /api/rules/try  {server, tool, args?, annotations?, draft?}: which
 *                          rule would decide, and why not the others
 *   DELETE /api/rules/ID   remove it: the call needs approval again
 *
 * policy NULL: they are not there yet (503). */
#ifndef MO_WEB_API_RULES_H
#define MO_WEB_API_RULES_H

#include "policy/rules_api.h"
#include "web/site.h"

struct mo_api_rules {
    struct mo_policy *policy; /* NULL: not there yet */
};

/* rules is borrowed as long as the site lives. */
int mo_api_rules_routes(struct mo_site *s, struct mo_api_rules *rules);

#endif
