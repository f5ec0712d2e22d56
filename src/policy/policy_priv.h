/* policy_priv.h - shared by policy.c (rules) and changed_tools.c (pins). */
#ifndef MO_POLICY_POLICY_PRIV_H
#define MO_POLICY_POLICY_PRIV_H

#include "base/map.h"
#include "policy/config_rules.h"
#include "policy/policy.h"

struct mo_policy {
    struct mo_loop *loop;
    const struct mo_config *cfg;
    struct mo_arena arena; /* the operator's rules */
    struct mo_rules rules;
    struct mo_remembered_rules *remembered;
    struct mo_tool_pins *pins; /* NULL: not read yet */
    struct mo_list changed;    /* of struct changed_tool */
    unsigned nchanged;
    struct mo_map known; /* server NUL tool -> hash of a good definition */
    uint64_t key0, key1; /* of that hash */
    struct mo_timer flush;
};

/* changed_tools.c */
void mo_policy_init_pins(struct mo_policy *p);
void mo_policy_fini_pins(struct mo_policy *p);

#endif
