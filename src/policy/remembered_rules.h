/* remembered_rules.h - what people said "always" to, beyond one session.
 *
 * One rule is about one tool of one server, by their exact names, and perhaps
 * about some of its arguments (codec/match.h). It is asked only where the
 * operator's rules leave the matter to a person (policy/rule.h), so it can
 * neither allow what the configuration denies nor the other way round.
 *
 * Kept in one file of the state directory, read at the start and replaced as
 * a whole, synced before it is acknowledged. Each change locks the file and
 * reads it again, so that processes lose no rule of each other. A broken file
 * is an error: forgetting must be a person's decision.
 *
 * Limits: MO_REMEMBERED_RULES_MAX rules, MO_REMEMBERED_RULES_FILE_MAX bytes; a
 * rule more is refused and the person is told. */
#ifndef MO_POLICY_REMEMBERED_RULES_H
#define MO_POLICY_REMEMBERED_RULES_H

#include "base/mem.h"
#include "policy/rule.h"

#define MO_REMEMBERED_RULES_FILE     "rules.json"
#define MO_REMEMBERED_RULES_MAX      256
#define MO_REMEMBERED_RULES_FILE_MAX ((size_t)1024 * 1024)

struct mo_remembered_rules;

/* dir: the state directory. */
int mo_remembered_rules_open(const char *dir, struct mo_remembered_rules **out,
                             struct mo_err *e);
void mo_remembered_rules_close(
    struct mo_remembered_rules *a); /* NULL is fine */

/* The present ones, in order; borrowed until the next change. */
const struct mo_rules *
mo_remembered_rules_all(const struct mo_remembered_rules *a);
struct mo_span mo_remembered_rules_doc(const struct mo_remembered_rules *a,
                                       size_t i); /* JSON */

/* One rule as it is kept (pure); texts are in the arena or the document. */
int mo_remembered_rules_read(struct mo_arena *a, struct mo_json doc,
                             struct mo_rule *r, struct mo_err *e);

struct mo_remembered_rule_wish {
    struct mo_span server, tool; /* exact names */
    enum mo_action action;       /* allow or deny */
    struct mo_span conditions;   /* {"path":"condition"}, or empty */
    const char *who;
};
/* id: of the new rule, when it is durable. */
#define MO_REMEMBERED_RULES_ID_MAX 17
int mo_remembered_rules_add(struct mo_remembered_rules *a,
                            const struct mo_remembered_rule_wish *w,
                            char id[MO_REMEMBERED_RULES_ID_MAX],
                            struct mo_err *e);
/* MO_ENOTFOUND: there is none of that id. */
int mo_remembered_rules_remove(struct mo_remembered_rules *a, struct mo_span id,
                               struct mo_err *e);

#endif
