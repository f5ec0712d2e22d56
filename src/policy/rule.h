/* rule.h - approval rules: allow a call, deny it, or ask a person.
 *
 * The first matching rule of the operator decides. Rules of people (answers
 * "always") apply only if the operator's rule says "ask" and permits remembered
 * answers, or if no rule of the operator matches. If no rule matches, the
 * default decides.
 *
 *   operator: deny, allow         final
 *   operator: ask, remember off   final
 *   operator: ask, or no rule  -> the person's rules -> "ask" or the default
 *
 * A condition of "deny" or "ask" that cannot read its value counts as true, one
 * of "allow" as false (codec/match.h). An argument that is missing cannot be
 * read, unless the tool's schema shows that the tool has no such argument.
 *
 * A rule may require annotations that the server claims for its tools. They are
 * claims, not facts, so they have no effect unless a rule names them.
 *
 * A connection of a box is judged as a call of the tool MO_RULE_CONNECT with
 * the arguments host and port. A rule allows it only if it has a condition on
 * the host: "allow every tool of this server" allows no network.
 *
 * Pure: no I/O. Ownership: all texts are borrowed from the maker of the
 * rules. */
#ifndef MO_POLICY_RULE_H
#define MO_POLICY_RULE_H

#include "audit/gateway_call.h"
#include "codec/match.h"
#include "codec/tool_claims.h"
#include "config/choices.h"
#include "policy/panel.h"

/* No tool of a server has this name: the policy denies calls of such a tool. */
#define MO_RULE_CONNECT "network:connect"

struct mo_rule_arg {
    struct mo_span path, cond;
};

struct mo_rule {
    struct mo_span server, tool;    /* patterns; empty: any */
    const struct mo_rule_arg *args; /* all must match */
    size_t nargs;
    unsigned claims, denials; /* mo_claim bits that must be on, be off */
    enum mo_action action;
    struct mo_span reason;     /* for the person; for the model when denied */
    bool final;                /* ask: remembered answers do not apply */
    enum mo_approver approver; /* ask: who may answer */
    struct mo_panel panel;     /* ask: who must, instead; with it: final */
};

struct mo_rules {
    const struct mo_rule *v;
    size_t n;
    bool of_session; /* made by the members of a session: they do not answer
                      * where only the operator may */
};

struct mo_subject { /* one call */
    struct mo_span server, tool;
    struct mo_json args;
    unsigned claims;
    struct mo_json schema; /* of the tool's arguments; none: unknown */
};

struct mo_verdict {
    enum mo_action action;
    const struct mo_rule *rule; /* the deciding rule; NULL: the default */
    bool remembered;            /* the rule is a person's */
    bool of_view;               /* the rule is a view's */
    bool of_mode; /* allow: by the mode of a conversation, not by a rule */
    enum mo_approver approver; /* ask: who may answer */
    struct mo_panel panel;     /* ask: who must, instead; need 0: nobody */
};

/* Checks every pattern, path and condition; the error names the bad one. */
int mo_rule_check(const struct mo_rule *r, struct mo_err *e);

/* The first part of a rule that does not match. For MO_RULE_ARG, *arg (may be
 * NULL) is the index of the condition. */
enum mo_rule_part {
    MO_RULE_FITS,
    MO_RULE_SERVER,
    MO_RULE_TOOL,
    MO_RULE_CLAIMS,
    MO_RULE_ARG,
};
enum mo_rule_part mo_rule_misses(const struct mo_rule *r,
                                 const struct mo_subject *s, size_t *arg);

bool mo_rules_same(const struct mo_rules *a, const struct mo_rules *b);

/* persons: lists of rules, each may be NULL; the first match decides. */
struct mo_verdict mo_rules_judge(const struct mo_rules *operators,
                                 const struct mo_rules *const *persons,
                                 size_t npersons, enum mo_action fallback,
                                 const struct mo_subject *s);

/* True if a call with that verdict may run; by: who approved these bytes;
 * panel: of MO_ANSWERED_PANEL, else 0. A call is judged again directly before
 * it runs, so an approval does not outlive the rules. */
bool mo_verdict_may_run(const struct mo_verdict *v, enum mo_answered by,
                        uint64_t panel);
const char *mo_approver_name(enum mo_approver a); /* as in the configuration */

#endif
