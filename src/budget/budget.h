/* budget.h - limits of people, personal tokens, views and servers.
 *
 * Asked before something is done: a tool call, a model request, a box. Whatever
 * has no limit in the configuration is answered at once, without I/O.
 *
 *   calls a minute   sliding: never more than the limit in any 60 seconds
 *   boxes, turns     at once; a turn is held from its first model request
 *   tokens, money    of a UTC day. An estimate is reserved before the request
 *                    and corrected by the provider's numbers after it. What a
 *                    crash leaves reserved stays counted
 *
 * With Redis all replicas share the counts, and one batch of counters is one
 * script: however many ask at once, no limit is passed. Otherwise this process
 * counts calls, boxes and turns (local.h; several workers: shared.h) and SQLite
 * the days. If the store
 * does not answer, whatever has a limit is refused.
 *
 * A person is the name that the audit log shows; "" is the operator without a
 * name, who is called "operator" in the configuration. Limits of "*" hold for
 * each person who is not named there, one by one.
 *
 * Refusals are rows of the audit log, subject "budget".
 *
 * Ownership: the configuration is referenced, loop, audit log and store are
 * borrowed. A struct mo_budget_ask is the caller's and stays where it is until
 * done() or mo_budget_cancel(). Limits: those of store.h and local.h. */
#ifndef MO_BUDGET_BUDGET_H
#define MO_BUDGET_BUDGET_H

#include "audit/audit.h"
#include "budget/price.h"
#include "store/store.h"

struct mo_budget;
struct mo_budget_shared; /* shared.h */

enum mo_budget_kind {
    MO_BUDGET_CALLS,
    MO_BUDGET_BOXES,
    MO_BUDGET_TURNS,
    MO_BUDGET_TOKENS,
    MO_BUDGET_MONEY,
    MO_BUDGET_KINDS
};
/* "callsPerMinute", "boxes", ...: the key of the configuration. */
const char *mo_budget_kind_name(enum mo_budget_kind k);

struct mo_budget_no { /* a refusal */
    enum mo_budget_kind kind;
    bool is_unknown;  /* the count could not be read, or a price is missing */
    uint64_t wait_ms; /* 0: not known */
    char text[300];   /* for people: what, whose, when to try again */
};

enum mo_budget_answer {
    MO_BUDGET_YES,
    MO_BUDGET_NO,
    MO_BUDGET_LATER, /* done() follows */
};

struct mo_budget_ask { /* zero it before its first use */
    /* no NULL: yes. */
    void (*done)(struct mo_budget_ask *a, const struct mo_budget_no *no);
    struct mo_budget_op *op; /* ours; not NULL while done() is due */
};

struct mo_budget_who {
    struct mo_span person; /* "": the operator */
    struct mo_span token;  /* id of a personal token; empty: none */
};

/* audit: may be NULL. */
int mo_budget_new(struct mo_loop *l, const struct mo_config *c,
                  struct mo_audit *audit, struct mo_budget **out,
                  struct mo_err *e);
/* On failure the old limits stay. */
int mo_budget_reload(struct mo_budget *b, const struct mo_config *c,
                     struct mo_err *e);
/* on: a store is being opened; until then limits cannot be checked. Off: there
 * will be none. If it is shared, limits cannot be checked without it. */
void mo_budget_await_store(struct mo_budget *b, bool on);
/* Without Redis, count calls and holders there, together with the other
 * processes; owner: the number of this one. Borrowed. */
void mo_budget_share(struct mo_budget *b, struct mo_budget_shared *s,
                     unsigned owner);
/* Call it with NULL before the store is closed. */
void mo_budget_store(struct mo_budget *b, struct mo_store *s);
/* Freed when the questions under way are answered. NULL is fine. */
void mo_budget_close(struct mo_budget *b);

/* --- calls --------------------------------------------------------------- */

/* False: no call is limited at all. */
bool mo_budget_limits_calls(const struct mo_budget *b);

struct mo_budget_call {
    const struct mo_budget_who *who; /* NULL: counted elsewhere */
    struct mo_span view, server;     /* empty: none */
};
/* b: NULL means yes. */
enum mo_budget_answer mo_budget_call(struct mo_budget *b,
                                     const struct mo_budget_call *c,
                                     struct mo_budget_ask *a,
                                     struct mo_budget_no *no);

/* --- things at once ------------------------------------------------------ */

/* kind: MO_BUDGET_BOXES. holder: unique among all processes. What is held
 * already is held on. */
enum mo_budget_answer
mo_budget_hold(struct mo_budget *b, enum mo_budget_kind kind,
               const struct mo_budget_who *who, struct mo_span holder,
               struct mo_budget_ask *a, struct mo_budget_no *no);
/* Also for what was not held. kind: MO_BUDGET_BOXES or MO_BUDGET_TURNS. */
void mo_budget_release(struct mo_budget *b, enum mo_budget_kind kind,
                       const struct mo_budget_who *who, struct mo_span holder);

/* The same, in ms: the box stays for a while. Holding it again undoes this. */
void mo_budget_release_after(struct mo_budget *b, enum mo_budget_kind kind,
                             const struct mo_budget_who *who,
                             struct mo_span holder, uint64_t ms);

/* These functions for a room that is linked without this one. */
struct mo_budget_holding {
    enum mo_budget_answer (*hold)(struct mo_budget *b, enum mo_budget_kind kind,
                                  const struct mo_budget_who *who,
                                  struct mo_span holder,
                                  struct mo_budget_ask *a,
                                  struct mo_budget_no *no);
    void (*release)(struct mo_budget *b, enum mo_budget_kind kind,
                    const struct mo_budget_who *who, struct mo_span holder);
    void (*release_after)(struct mo_budget *b, enum mo_budget_kind kind,
                          const struct mo_budget_who *who,
                          struct mo_span holder, uint64_t ms);
};
extern const struct mo_budget_holding mo_budget_holding;

/* --- models -------------------------------------------------------------- */

struct mo_budget_share { /* what a model request has reserved */
    bool is_open;
    uint64_t tokens, day;
    int64_t money; /* -1: no price is known */
};

struct mo_budget_request {
    const struct mo_budget_who *who;
    struct mo_span turn;  /* holder; unique among all processes; empty: it
                             is no turn, and none is held */
    struct mo_span model; /* without its provider */
    struct mo_usage most; /* estimate */
};

/* True if anything limits the turns of this person or token. */
bool mo_budget_limits_turns(const struct mo_budget *b,
                            const struct mo_budget_who *who);
/* Before each model request of a turn: holds the turn and reserves a share,
 * which is valid after the yes. */
enum mo_budget_answer mo_budget_request(struct mo_budget *b,
                                        const struct mo_budget_request *r,
                                        struct mo_budget_share *share,
                                        struct mo_budget_ask *a,
                                        struct mo_budget_no *no);
/* After it: counts what was used, in place of the share. used NULL: nothing. */
void mo_budget_settle(struct mo_budget *b, const struct mo_budget_who *who,
                      struct mo_span model, struct mo_budget_share *share,
                      const struct mo_usage *used);

void mo_budget_cancel(struct mo_budget_ask *a); /* no done() any more */

/* --- what there is ------------------------------------------------------- */

struct mo_budget_stats {
    uint64_t refused[MO_BUDGET_KINDS];
    uint64_t tokens, unpriced; /* counted since the start */
    uint64_t money;            /* millionths */
};
struct mo_budget_stats mo_budget_stats(const struct mo_budget *b);
const struct mo_config *mo_budget_config(const struct mo_budget *b);
struct mo_store *mo_budget_store_now(const struct mo_budget *b); /* or NULL */
/* The limits of a person or token; NULL: none. */
const struct mo_config_budget *mo_budget_of_person(const struct mo_budget *b,
                                                   struct mo_span name);
const struct mo_config_budget *mo_budget_of_token(const struct mo_budget *b,
                                                  struct mo_span id);

#endif
