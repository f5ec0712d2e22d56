/* session_memory.h - settings stored with a session: the model, the title, and
 * decisions remembered for the session.
 *
 * Limit: REMEMBERED_MAX decisions. */
#ifndef MO_AGENT_CHAT_SESSION_MEMORY_H
#define MO_AGENT_CHAT_SESSION_MEMORY_H

#include "base/mem.h"
#include "codec/json/json.h"
#include "policy/policy.h"

struct call;
struct chat;
struct mo_decision;

#define REMEMBERED_MAX   64
#define REMEMBERED_BYTES ((size_t)64 * 1024)

struct remembered { /* the person's rules for one session */
    struct mo_arena arena;
    struct mo_rule v[REMEMBERED_MAX];
    struct mo_rules rules;
};

void mo_session_memory_read(struct chat *c, struct mo_json doc);
/* Remembers a decision for the session or for always. */
int mo_session_memory_decision(struct call *k, const struct mo_decision *d,
                               struct mo_err *e);
/* The person's message is stored. */
void mo_session_memory_said(struct chat *c, struct mo_span text);
void mo_session_memory_save(struct chat *c);
/* Writes the members of about.h. */
void mo_session_memory_put_about(const struct chat *c, struct mo_jw *w);

#endif
