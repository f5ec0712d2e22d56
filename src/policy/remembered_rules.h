/* remembered_rules.h - rules made by answering "always", valid for all
 * sessions.
 *
 * A rule names one tool of one server exactly, and optionally conditions on
 * arguments (codec/match.h). It applies only where the operator's rules leave
 * the decision to a person (policy/rule.h), so it cannot override an "allow" or
 * "deny" of the configuration.
 *
 * The rules are one file in the state directory. It is read at the start; a
 * change locks it, reads it again, replaces it whole and syncs it before it
 * returns, so several processes can share it. A damaged file is an error: only
 * a person may discard rules.
 *
 * Limits: MO_REMEMBERED_RULES_MAX rules (MO_EBUSY),
 * MO_REMEMBERED_RULES_FILE_MAX bytes. */
#ifndef MO_POLICY_REMEMBERED_RULES_H
#define MO_POLICY_REMEMBERED_RULES_H

#include <stdatomic.h>

#include "base/mem.h"
#include "policy/rule.h"
#include "store/shared_rows.h"

#define MO_REMEMBERED_RULES_FILE     "rules.json"
#define MO_REMEMBERED_RULES_MAX      256
#define MO_REMEMBERED_RULES_FILE_MAX ((size_t)1024 * 1024)

struct mo_remembered_rules;

/* dir: the state directory. */
int mo_remembered_rules_open(const char *dir, struct mo_remembered_rules **out,
                             struct mo_err *e);
void mo_remembered_rules_close(
    struct mo_remembered_rules *a); /* NULL is fine */

/* Shared with the other workers of this server: changes with each change that
 * one of them makes, and all others read the file before they look at a rule.
 * Borrowed. */
void mo_remembered_rules_share(struct mo_remembered_rules *a,
                               atomic_uint *changes);
/* changed(ctx) after each change that this process makes. */
void mo_remembered_rules_on_change(struct mo_remembered_rules *a,
                                   void (*changed)(void *ctx), void *ctx);
/* Shared with servers that have another file (store/shared_rows.h): takes their
 * rules, drops those that are gone, and gives them what they lack. */
#define MO_REMEMBERED_RULES_KIND "rule"
void mo_remembered_rules_merge(struct mo_remembered_rules *a,
                               const struct mo_map *theirs,
                               struct mo_shared_rows *r,
                               const struct mo_log *log);
/* All rules, in order; borrowed until the next change, or the next call of this
 * or of mo_remembered_rules_changes(). */
const struct mo_rules *
mo_remembered_rules_all(const struct mo_remembered_rules *a);
/* How often they were changed, as far as this process knows. */
uint64_t mo_remembered_rules_changes(const struct mo_remembered_rules *a);
struct mo_span mo_remembered_rules_doc(const struct mo_remembered_rules *a,
                                       size_t i); /* JSON */

/* Parses one rule of the file. Texts are in the arena or the document. */
int mo_remembered_rules_read(struct mo_arena *a, struct mo_json doc,
                             struct mo_rule *r, struct mo_err *e);

struct mo_remembered_rule_wish {
    struct mo_span server, tool; /* exact names */
    enum mo_action action;       /* allow or deny */
    struct mo_span conditions;   /* {"path":"condition"}, or empty */
    const char *who;
};
/* On return the rule is on disk; id is set. */
#define MO_REMEMBERED_RULES_ID_MAX 17
int mo_remembered_rules_add(struct mo_remembered_rules *a,
                            const struct mo_remembered_rule_wish *w,
                            char id[MO_REMEMBERED_RULES_ID_MAX],
                            struct mo_err *e);
bool mo_remembered_rules_has(const struct mo_remembered_rules *a,
                             struct mo_span id);
/* MO_ENOTFOUND: no rule has that id. */
int mo_remembered_rules_remove(struct mo_remembered_rules *a, struct mo_span id,
                               struct mo_err *e);

#endif
