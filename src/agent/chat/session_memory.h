/* session_memory.h - settings stored with a session: the model, the title, its
 * mode of approval (chat_mode.h), and decisions remembered for the session
 * (grants).
 *
 * Limit: REMEMBERED_MAX decisions. */
#ifndef MO_AGENT_CHAT_SESSION_MEMORY_H
#define MO_AGENT_CHAT_SESSION_MEMORY_H

#include "base/mem.h"
#include "base/rand.h"
#include "codec/json/json.h"
#include "policy/policy.h"

struct call;
struct chat;
struct mo_decision;

#define REMEMBERED_MAX   64
#define REMEMBERED_BYTES ((size_t)76 * 1024)

#define GRANT_BYTES  9
#define GRANT_ID_MAX (MO_TOKEN_LEN(GRANT_BYTES) + 1)

struct grant_note { /* beside a rule: who made it */
    char id[GRANT_ID_MAX];
    struct mo_span who; /* empty: unknown */
    uint64_t at;        /* wall ms; 0: unknown */
};

struct remembered { /* the person's rules for one session */
    struct mo_arena arena;
    struct mo_rule *v;        /* room for REMEMBERED_MAX; NULL: none yet */
    struct grant_note *notes; /* likewise */
    struct mo_rules rules;
};

void mo_session_memory_read(struct chat *c, struct mo_json doc);
/* Remembers a decision for the session or for always. */
int mo_session_memory_decision(struct call *k, const struct mo_decision *d,
                               struct mo_err *e);
/* The person's message is stored. */
void mo_session_memory_said(struct chat *c, struct mo_span text);
void mo_session_memory_save(struct chat *c);
/* The same; done() once, later, when it is stored. */
int mo_session_memory_store(struct chat *c, mo_done_fn *done, void *ctx,
                            struct mo_err *e);
/* The number of the grant; REMEMBERED_MAX: there is none of that id. */
size_t mo_session_memory_find(const struct chat *c, struct mo_span grant);
/* Forgets the grant of that number, in memory. MO_ENOMEM: it is still there. */
int mo_session_memory_drop(struct chat *c, size_t i);
/* Writes the members of about.h. */
void mo_session_memory_put_about(const struct chat *c, struct mo_jw *w);

#endif
