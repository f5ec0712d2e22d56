/* config_rules.h - converts `approvals.rules` of the configuration to struct
 * mo_rules (policy/rule.h).
 *
 * Ownership: rules live in the arena, their texts in the configuration.
 * Failure: a rule that does not pass mo_rule_check(); the error names it. */
#ifndef MO_POLICY_CONFIG_RULES_H
#define MO_POLICY_CONFIG_RULES_H

#include "config/config.h"
#include "policy/rule.h"

#define MO_RULES_ARENA ((size_t)1024 * 1024)

int mo_rules_make(const struct mo_config *cfg, struct mo_arena *a,
                  struct mo_rules *out, struct mo_err *e);

#endif
