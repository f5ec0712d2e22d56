/* script_grant.h - calls of a script that are granted ahead.
 *
 * With the yes to one call of a script, a person may allow further calls of the
 * same tool by the same run of the script: at most `count`, for `seconds`, and
 * only with the same values of the top-level arguments named in `same`. Such a
 * grant answers only where a person's decision may be remembered
 * (mo_policy_may_remember()), never for approvers that a rule names nor for the
 * operator. A call takes its place when it is judged; directly before it is
 * sent it is judged again, so a revoked grant lets nothing through any more.
 *
 * Limits: GRANTS_MAX grants of a script, COUNT_MAX calls, SECONDS_MAX, SAME_MAX
 * names. A grant ends with its script and is stored nowhere but in the audit
 * log. */
#ifndef MO_AGENT_CHAT_SCRIPT_GRANT_H
#define MO_AGENT_CHAT_SCRIPT_GRANT_H

#include "policy/policy.h"

struct call;
struct chat;
struct mo_decision;

/* Grants calls like k, whose arguments were approved: the text of conditions is
 * {"count","seconds"?,"same"?}. */
int mo_script_grant(struct call *k, struct mo_span conditions,
                    struct mo_err *e);
/* Takes a place of a grant for a call that is asked about. */
bool mo_script_take_grant(struct call *k, const struct mo_verdict *v);
/* True while the grant that the call has taken holds. */
bool mo_script_is_granted(const struct call *k, const struct mo_verdict *v);
/* The person who gave it; "": none. */
const char *mo_script_granter(const struct call *k);
bool mo_script_has_grant(const struct chat *c, struct mo_span id);
/* False: there is none of that id. */
bool mo_script_revoke(struct chat *c, struct mo_span id);
void mo_script_grants_free(struct call *k); /* k: the script */
/* The member grants of a script; none: nothing. */
void mo_script_put_grants(struct mo_jw *w, const struct call *k);

#endif
