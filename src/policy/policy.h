/* policy.h - decides whether a tool call may run.
 *
 * A policy joins the operator's rules (`approvals.rules`), the rules that
 * people asked to be remembered (remembered_rules.h) and the pinned definitions
 * of tools (tool_pins.h). One object serves the whole process: conversations,
 * clients of the gateway, tools tried on the page and the rule try-out all
 * call mo_policy_judge(), so a changed rule reaches all of them at once.
 *
 * Order: the operator's first matching rule decides. If it says "ask" (and
 * permits remembered answers), or no rule matches, the rules of people apply:
 * those of the session first, then the remembered ones. If none matches, the
 * caller's default applies (see the table in policy.c). A call through a view
 * (`views.NAME.rules`) is also judged by the rules of the view, where no match
 * means "allow"; the stricter decision counts.
 *
 * Ownership: the policy refers to its configuration and owns everything else.
 * Limits: MO_POLICY_CHANGED_MAX changed tools are listed for people; further
 * ones are blocked but not listed. */
#ifndef MO_POLICY_POLICY_H
#define MO_POLICY_POLICY_H

#include "config/config.h"
#include "loop/loop.h"
#include "policy/remembered_rules.h"
#include "policy/tool_pins.h"

#define MO_POLICY_CHANGED_MAX 256

struct mo_policy;

/* How long a person's answer holds. */
enum mo_remember { MO_REMEMBER_NO, MO_REMEMBER_SESSION, MO_REMEMBER_ALWAYS };

int mo_policy_open(struct mo_loop *l, const struct mo_config *cfg,
                   struct mo_policy **out, struct mo_err *e);
void mo_policy_close(struct mo_policy *p); /* NULL is fine */
/* Takes the rules of another configuration; on failure the old ones stay. */
int mo_policy_reload(struct mo_policy *p, const struct mo_config *cfg,
                     struct mo_err *e);
const struct mo_config *mo_policy_config(const struct mo_policy *p);

/* --- one call ------------------------------------------------------------ */

enum mo_policy_from {
    MO_POLICY_CHAT,      /* the model of a conversation */
    MO_POLICY_CHAT_META, /* the same, a meta tool that only lists tools */
    MO_POLICY_CLIENT,    /* a client of the gateway */
    MO_POLICY_FORWARDED, /* judged as CHAT before; checked again */
    MO_POLICY_STAND_IN,  /* FORWARDED, but at another server than was judged */
    MO_POLICY_PAGE,      /* a person tries the tool on the page */
    MO_POLICY_TRY_OUT,   /* a person tries the rules; nothing runs */
    MO_POLICY_SESSION_NET, /* a connection of a session's box */
    MO_POLICY_SERVER_NET,  /* a connection of a server's box */
    MO_POLICY_FROMS,
};

struct mo_policy_call {
    enum mo_policy_from from;
    struct mo_span server, tool;
    struct mo_span view;            /* that a client uses, or empty */
    unsigned claims;                /* mo_claim bits */
    struct mo_json args;            /* or: */
    struct mo_span args_text;       /* parsed if args is none */
    struct mo_json schema;          /* of the arguments; none: unknown */
    const struct mo_rules *session; /* remembered for a session only, or NULL */
    const struct mo_rules *draft;   /* TRY_OUT: asked last, or NULL */
};

struct mo_verdict mo_policy_judge(const struct mo_policy *p,
                                  const struct mo_policy_call *c);
/* Changes with every change of the rules, its upper half with every change of
 * the configured ones. */
uint64_t mo_policy_version(const struct mo_policy *p);
/* True if a person's answer to this call may be remembered. */
bool mo_policy_may_remember(const struct mo_policy *p,
                            const struct mo_policy_call *c);
/* False if every call of a client, through that view or none, would be allowed
 * without looking at it. */
bool mo_policy_has_rules(const struct mo_policy *p, struct mo_span view);

const struct mo_rules *mo_policy_operator_rules(const struct mo_policy *p);
struct mo_remembered_rules *mo_policy_remembered(const struct mo_policy *p);
/* Removes a remembered rule here and in the other servers. done() once, maybe
 * from inside. MO_ENOTFOUND: no rule has that id; MO_EUNAVAIL: the store is
 * away, and the rule stays. */
void mo_policy_remove_rule(struct mo_policy *p, struct mo_span id,
                           void (*done)(void *ctx, const struct mo_err *why),
                           void *ctx);

/* --- other servers ------------------------------------------------------- */

/* Has remembered rules and pins in common with servers that have another
 * store.dir (store/shared_rows.h); nothing if the store is this machine's. */
int mo_policy_share(struct mo_policy *p, struct mo_store *store,
                    struct mo_err *e);
void mo_policy_unshare(struct mo_policy *p); /* before the store closes */
/* NULL: all rules are known; else why not. ctx: the policy. */
const char *mo_policy_why(void *ctx);

/* --- pinned definitions -------------------------------------------------- */

/* Reads the pins on first use, so that the program start does not wait. */
int mo_policy_load_pins(struct mo_policy *p, struct mo_err *e);
/* True if the tool is as it was first seen, or is new (and pinned now). If
 * not, `before` (may be NULL) gets the JSON of the first definition, and the
 * tool is listed for people to accept. If the pins cannot be read: false. */
bool mo_policy_tool_is_pinned(struct mo_policy *p, const struct mo_tool *t,
                              struct mo_buf *before);
/* The same for a definition as its server lists it; cheap when the bytes were
 * seen before. */
bool mo_policy_item_is_pinned(struct mo_policy *p, struct mo_span server,
                              struct mo_span tool, struct mo_json item);
/* True if the definition differs from the pinned one. An unknown tool counts
 * as unchanged and is not pinned. As mo_gw_find wants it; ctx: the policy. */
bool mo_policy_item_changed(void *ctx, struct mo_span server,
                            struct mo_span tool, struct mo_json item);
/* A person accepted the tool as it is now. */
int mo_policy_accept_tool(struct mo_policy *p, const struct mo_tool *t);
/* Writes new pins to the disk now instead of within a second. */
void mo_policy_flush_pins(struct mo_policy *p);

/* [{"server","tool","digest","before","now"}], without those that another
 * process accepted meanwhile. */
void mo_policy_put_changed(struct mo_policy *p, struct mo_jw *w);
/* Shares the pins with other workers (tool_pins.h). */
void mo_policy_share_pins(struct mo_policy *p, atomic_uint *changes);
/* The changed tool of that name, or NULL. Borrowed until the next call. */
const struct mo_tool *mo_policy_find_changed(const struct mo_policy *p,
                                             struct mo_span server,
                                             struct mo_span tool);

#endif
