/* approvals_priv.h - what approvals.c (judging) and approvals_list.c (looking
 * at what waits, deciding) share.
 *
 * Invariants
 *  1. A matter is k->data of its case while k is set; k is NULL when the case
 *     is over and the matter only waits for the disk.
 *  2. A matter is in d->held while its case can be seen by people. */
#ifndef MO_POLICY_APPROVALS_PRIV_H
#define MO_POLICY_APPROVALS_PRIV_H

#include "base/map.h"
#include "policy/approvals.h"
#include "policy/config_rules.h"
#include "policy/exact.h"

#define HELD_MAX    256
#define CHANGED_MAX 256
#define KNOWN_MAX   16384 /* definitions that were seen to be as they were */
#define WHO_MAX     128
#define LIST_MAX    ((size_t)32 * 1024 * 1024)

struct pending_call {
    struct mo_list node;
    struct mo_approvals *d;
    struct mo_gw_case *k;
    struct mo_buf args; /* exact; empty: not kept */
    struct mo_buf def;  /* of the tool: what people want to see of it */
    struct mo_buf rule; /* that wants a person to be asked, JSON */
    char digest[MO_EXACT_DIGEST];
    char tool_digest[MO_EXACT_DIGEST];
    char who[WHO_MAX], why[MO_GW_REASON_MAX]; /* who decided; why asked */
    uint64_t at, expires;                     /* wall ms */
    bool writing;
};

struct changed_tool { /* a tool that is not what it was */
    struct mo_list node;
    struct mo_tool tool; /* texts in the arena */
    struct mo_arena arena;
    struct mo_buf before;
};

struct mo_approvals {
    struct mo_loop *loop;
    const struct mo_config *cfg;
    struct mo_arena arena; /* the rules */
    struct mo_rules rules;
    struct mo_tool_pins *pins;
    struct mo_remembered_rules *always;
    struct mo_audit *audit;
    struct mo_approvals_watch watch;
    struct mo_list held, changed;
    unsigned nheld, nchanged;
    struct mo_map known; /* server NUL tool -> hash of its definition */
    uint64_t key0, key1;
    struct mo_timer flush; /* of pins */
    void (*gone)(void *ctx);
    void *ctx;
};

/* approvals.c: do the rules let people run this call with such arguments? 0, or
 * MO_EINVAL and which does not. */
int mo_approvals_may_be(const struct mo_approvals *d,
                        const struct pending_call *m, struct mo_span args,
                        struct mo_err *e);

/* approvals_list.c */
int mo_approvals_list(void *ctx, struct mo_buf *out);
int mo_approvals_decide(void *ctx, const struct mo_api_decision *x,
                        struct mo_err *e);
int mo_approvals_accept(void *ctx, const struct mo_api_accept *x,
                        struct mo_err *e);
/* The question as text: what would run, nothing in it that hides. */
int mo_approvals_question(const struct pending_call *m, struct mo_buf *out);
void mo_approvals_changed_free(struct mo_approvals *d, struct changed_tool *c);

/* approvals_tool.c: forget changes that were accepted elsewhere; is the tool of
 * this case what it was? */
void mo_approvals_drop_accepted(struct mo_approvals *d);
bool mo_approvals_is_same(struct mo_approvals *d, struct mo_gw_case *k);
/* The digest of its definition, as pins have it. */
int mo_approvals_digest(const struct mo_gw_case *k, char out[MO_EXACT_DIGEST]);

#endif
