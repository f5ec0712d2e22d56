/* always.h - what people said "always" to, beyond one session.
 *
 * One rule is about one tool of one server, by their exact names, and perhaps
 * about some of its arguments (policy/match.h). It is asked only where the
 * operator's rules leave the matter to a person (policy/rule.h), so it can
 * neither allow what the configuration denies nor the other way round.
 *
 * Kept in one file of the state directory, read at the start and replaced as
 * a whole, synced before it is acknowledged; it is read again before each
 * change, so that a `chat` beside the server takes nothing away. A broken file
 * is an error: forgetting must be a person's decision.
 *
 * Limits: MO_ALWAYS_MAX rules, MO_ALWAYS_FILE_MAX bytes; a rule more is
 * refused and the person is told. */
#ifndef MO_APP_ALWAYS_H
#define MO_APP_ALWAYS_H

#include "agent/chat.h"
#include "web/api_rules.h"

#define MO_ALWAYS_FILE     "rules.json"
#define MO_ALWAYS_MAX      256
#define MO_ALWAYS_FILE_MAX ((size_t)1024 * 1024)

struct mo_always;

/* dir: the state directory. */
int mo_always_open(const char *dir, struct mo_always **out, struct mo_err *e);
void mo_always_close(struct mo_always *a); /* NULL is fine */

struct mo_agent_always mo_always_for(struct mo_always *a);
struct mo_api_rules mo_always_api(struct mo_always *a);

#endif
