/* chat_mode.h - the mode of a conversation: calls that run without asking.
 *
 *   ask    every call that the rules leave to people is asked about (default)
 *   reads  calls of tools that say they only read (readOnlyHint) run
 *   box    calls of the tools of the session's own box run
 *
 * A mode answers only where the default of the configuration asks. It never
 * answers for a rule: what a rule of the operator asks about or denies, with or
 * without approvers, and what a person has denied, stays so. Changed tools stay
 * blocked (load_tools.h). A call is judged when it arrives and once more
 * directly before it is sent (verdict.c), each time by the mode of that moment,
 * so a mode that was switched off lets nothing through any more.
 *
 * reads: the annotation is a claim of the tool's server. The mode holds for the
 * tools of the conversation at the moment it was set (those that the person was
 * shown, if the request names them), by the digests of their definitions: a
 * tool that comes later, or changes, is asked about.
 *
 * box: only while nothing in the box can leave it without asking: no network,
 * or one that asks about every host, and no folder of the host to write to.
 *
 * The operator permits modes (`approvals.modes`). A mode that is not permitted
 * has no effect while that is so.
 *
 * Limits: KNOWN_MAX tools of "reads"; further ones are asked about. */
#ifndef MO_AGENT_CHAT_CHAT_MODE_H
#define MO_AGENT_CHAT_CHAT_MODE_H

#include "agent/chat/chat.h"

#define KNOWN_MAX    512
#define KNOWN_DIGEST 32 /* of the hexadecimal digits of a tool's digest */
#define KNOWN_BYTES  ((size_t)KNOWN_MAX * KNOWN_DIGEST)

struct call;
struct chat;

struct chat_mode {
    enum mo_chat_mode set;
    char who[MO_PERSON_MAX]; /* who set it, for the audit log */
    uint64_t at;             /* wall ms */
    struct mo_buf known;     /* reads: digests, KNOWN_DIGEST bytes each */
    unsigned wishes;         /* to set it, so far: the last one counts */
};

/* The mode that has effect now. */
enum mo_chat_mode mo_chat_mode_now(const struct chat *c);
/* True if the mode answers this verdict, which asks. */
bool mo_chat_mode_allows(const struct call *k, const struct mo_verdict *v);
/* "mode:reads", for struct call. */
const char *mo_chat_mode_by(const struct chat *c);
/* Why the mode cannot be set now; NULL: it can. */
const char *mo_chat_mode_refuses(const struct chat *c, enum mo_chat_mode m);
/* How the box reaches the network: "none", "ask" (a person decides about each
 * host), "some" (hosts that the configuration or a rule allows are reached
 * without asking). */
const char *mo_chat_box_network(const struct chat *c);

/* In the document of the session: {"name","who","at","tools"}. */
void mo_chat_mode_read(struct chat *c, struct mo_json v);
void mo_chat_mode_put(struct mo_jw *w, const struct chat *c);
/* For members: {"mode","by"?,"at"?,"tools"?,"modes":[...],"grants"}. */
void mo_chat_mode_tell(struct mo_jw *w, const struct chat *c);

#endif
