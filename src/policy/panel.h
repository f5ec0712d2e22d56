/* panel.h - the persons who must approve a call (`approvers`, `approvals`,
 * `fourEyes` of a rule).
 *
 * A rule with a panel asks its persons instead of the owner of the call. Each
 * of them counts once, by name, whichever credential they use. With four eyes,
 * and wherever two or more must approve, whoever asked for the call does not
 * count. An operator counts as one of the approvers. "Always" and "for this
 * session" do not answer such a rule.
 *
 * Limit: MO_KEY_PERSONS_MAX persons. */
#ifndef MO_POLICY_PANEL_H
#define MO_POLICY_PANEL_H

#include "config/keys.h"
#include "people/identity.h"

#define MO_PANEL_LISTS 2 /* of the rule of the configuration, and of a view */

struct mo_panel {
    const struct mo_config_list *lists[MO_PANEL_LISTS]; /* one of each */
    size_t nlists;
    unsigned need; /* so many persons; 0: there is no panel */
    bool four_eyes;
};

/* The persons who have approved so far. */
struct mo_said {
    uint64_t panel; /* mo_panel_digest() of the panel they approved for */
    unsigned n;
    char names[MO_KEY_PERSONS_MAX][MO_PERSON_MAX];
};

struct mo_panel mo_panel_of_rule(const struct mo_config_rule *r);
/* The panel that has what both require. */
struct mo_panel mo_panel_join(const struct mo_panel *a,
                              const struct mo_panel *b);
/* Differs if the panel does; 0: there is none. */
uint64_t mo_panel_digest(const struct mo_panel *p);
/* True if the person is one of the approvers, whoever asked. */
bool mo_panel_has(const struct mo_panel *p, const struct mo_identity *who);

/* Why this person's yes does not count; NULL: it does. askers: the names of
 * those who asked for the call. */
const char *mo_panel_refuses(const struct mo_panel *p,
                             const struct mo_said *said,
                             const struct mo_identity *who,
                             const struct mo_span *askers, size_t n);
/* Adds the person. Those who approved for another panel are dropped. True: they
 * are enough. */
bool mo_said_add(struct mo_said *s, const struct mo_panel *p, const char *name);
/* How many are missing if this is the panel now. */
unsigned mo_said_missing(const struct mo_said *s, const struct mo_panel *p);

/* The members "approvers", "approvals", "fourEyes" and, unless said is NULL,
 * "approvedBy"; none without a panel. */
void mo_panel_put(struct mo_jw *w, const struct mo_panel *p,
                  const struct mo_said *said);
/* "approvedBy" and "panel" as they are stored with a call, and back. */
void mo_said_put(struct mo_jw *w, const struct mo_said *s);
void mo_said_read(struct mo_said *s, struct mo_json doc);

/* The operator has no name of their own. */
#define MO_PANEL_OPERATOR "operator"
static inline const char *mo_panel_shown(const char *name)
{
    return *name ? name : MO_PANEL_OPERATOR;
}

#endif
