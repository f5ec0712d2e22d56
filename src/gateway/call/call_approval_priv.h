/* call_approval_priv.h - what call_approval.c (a case's life) and
 * call_approval_shown.c (what a person is shown of it, and may change)
 * share; see call_approval.h. */
#ifndef MO_GATEWAY_CALL_CALL_APPROVAL_PRIV_H
#define MO_GATEWAY_CALL_CALL_APPROVAL_PRIV_H

#include "gateway/call/call_approval.h"
#include "policy/exact.h"

enum state { NEW, WAITS, SAID, WRITING, RUNS, OVER };

struct call_approval {
    struct mo_gw_case pub;
    struct forwarded_call *f;
    enum state state;
    bool yes;
    uint64_t began, held; /* ns */
    uint64_t request;     /* number of its HTTP request, or 0 */
    struct mo_log_trace mark;
    const struct mo_log_trace *trace; /* mark, or NULL: it is not recorded */
    struct mo_later later;
    struct mo_timer deadline, beat;
    unsigned beats;
    char shown[MO_EXACT_DIGEST]; /* of what a person was asked about */
    struct mo_buf texts;
};

static inline struct call_approval *call_approval_of(struct mo_gw_case *k)
{
    return mo_container_of(k, struct call_approval, pub);
}

/* --- call_approval_shown.c ----------------------------------------------- */

/* Of arguments, none being an empty object; sha256 in hex. */
void mo_call_approval_digest(struct mo_json args, char out[MO_EXACT_DIGEST]);
/* Of tool, definition and arguments, the last in the form that is shown. */
int mo_call_approval_shown(const struct forwarded_call *f,
                           const struct call_target *t,
                           char out[MO_EXACT_DIGEST]);
/* Replaces the arguments of a held call; see policy/approval_hooks.h. */
int mo_call_approval_edit(struct mo_gw_case *k, struct mo_span args,
                          struct mo_err *e);
/* A stand-in gets arguments that were made for another tool: false if they do
 * not fit its schema, and the reason is set. */
bool mo_call_approval_fits(struct call_approval *j,
                           const struct call_target *t);
/* Is that what was ruled on? */
bool mo_call_approval_is_same(const struct call_approval *j,
                              const struct call_target *t);

#endif
