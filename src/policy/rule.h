/* rule.h - may this call run, must a person be asked, or not at all?
 *
 * The operator's rules stand in the configuration, in order; the first that
 * fits decides. What a person said "always" to is a rule as well, asked only
 * where the operator's say "ask" (and let themselves be remembered) or say
 * nothing. Where nobody says anything, the default does.
 *
 *   operator: deny, allow         final
 *   operator: ask, remember off   final
 *   operator: ask, or no rule  -> the person's rules -> "ask" or the default
 *
 * A server's own words about its tools (annotations) may narrow a rule down,
 * but are a claim, not a fact: a rule must name them, none is trusted by
 * itself.
 *
 * Pure. Ownership: everything is borrowed from whoever made the rules. */
#ifndef MO_POLICY_RULE_H
#define MO_POLICY_RULE_H

#include "codec/match.h"
#include "codec/tool_claims.h"
#include "config/choices.h"

struct mo_rule_arg {
    struct mo_span path, cond;
};

struct mo_rule {
    struct mo_span server, tool;    /* patterns; empty: any */
    const struct mo_rule_arg *args; /* all must fit */
    size_t nargs;
    unsigned claims, denials; /* mo_claim bits that must be on, be off */
    enum mo_action action;
    struct mo_span reason; /* for the person; for the model when denied */
    bool final;            /* ask: what was remembered does not count */
};

struct mo_rules {
    const struct mo_rule *v;
    size_t n;
};

struct mo_subject { /* one call */
    struct mo_span server, tool;
    struct mo_json args;
    unsigned claims;
};

struct mo_verdict {
    enum mo_action action;
    const struct mo_rule *rule; /* that decided; NULL: the default */
    bool remembered;            /* it is one of the person's */
};

/* Every pattern, path and condition of a rule; says which is wrong. */
int mo_rule_check(const struct mo_rule *r, struct mo_err *e);
bool mo_rule_fits(const struct mo_rule *r, const struct mo_subject *s);

/* The first part of a rule that does not fit, for a person who wonders. arg
 * (may be NULL) gets the number of the condition. */
enum mo_rule_part {
    MO_RULE_FITS,
    MO_RULE_SERVER,
    MO_RULE_TOOL,
    MO_RULE_CLAIMS,
    MO_RULE_ARG,
};
enum mo_rule_part mo_rule_misses(const struct mo_rule *r,
                                 const struct mo_subject *s, size_t *arg);

/* persons: lists of rules, each may be NULL; the first that fits counts. */
struct mo_verdict mo_rules_ask(const struct mo_rules *operators,
                               const struct mo_rules *const *persons,
                               size_t npersons, enum mo_action fallback,
                               const struct mo_subject *s);

#endif
