/* budget_priv.h - shared by budget.c (questions of others), limits.c (the
 * configured limits) and count.c (counting and refusing). */
#ifndef MO_BUDGET_BUDGET_PRIV_H
#define MO_BUDGET_BUDGET_PRIV_H

#include "budget/budget.h"
#include "budget/local.h"
#include "budget/shared.h"

#define OPERATOR  "operator"
#define WHOSE_MAX 100             /* bytes of a name that people are shown */
#define WANTS     MO_COUNTERS_MAX /* limits of one question */

/* One limit of a question, or (limit 0) a count without a limit. */
struct want {
    enum mo_budget_kind kind;
    uint64_t limit;
    int64_t add;
    uint64_t day;                       /* 0: today */
    char name[MO_COUNTER_NAME_MAX + 1]; /* of the counter */
};

struct wants {
    struct want v[WANTS];
    size_t n;
    struct mo_span holder;
    struct mo_span person; /* for the audit log */
};

struct limits { /* each: name -> value in the configuration, which is lent */
    struct mo_map people, tokens; /* const struct mo_config_budget * */
    struct mo_map views, servers; /* int64_t *, calls a minute */
};

struct mo_budget {
    struct mo_loop *loop;
    const struct mo_config *cfg;
    struct mo_audit *audit;
    struct mo_store *store;
    struct limits limits;
    struct mo_local local;
    struct mo_budget_shared *shared; /* with other processes; or NULL */
    unsigned owner;                  /* number of this process in it */
    struct mo_list ops;              /* struct mo_budget_op */
    struct mo_timer renew;
    struct mo_budget_stats stats;
    unsigned readers; /* spend.c: it is not freed before they are done */
    bool awaits_store;
    bool closing;
};

/* --- limits.c ------------------------------------------------------------ */

int mo_limits_read(struct limits *l, const struct mo_config *c);
void mo_limits_fini(struct limits *l);
/* Adds the counters of a person and of a token that are limited in that way. */
void mo_limits_add(const struct mo_budget *b, struct wants *w,
                   const struct mo_budget_who *who, enum mo_budget_kind kind,
                   int64_t add);
void mo_limits_add_named(const struct mo_map *m, struct wants *w,
                         const char *kind, struct mo_span name);
/* Adds the counter of a person or token, limited or not. */
void mo_want_add(struct wants *w, enum mo_budget_kind kind, const char *what,
                 struct mo_span name, uint64_t limit, int64_t add);

/* "bob", "the server x": for people. */
void mo_want_whose(const struct want *x, char *out, size_t size);
/* Makes a counter of tokens one of tokens without a price. */
void mo_want_unpriced(struct want *x);

/* --- count.c ------------------------------------------------------------- */

/* Counts all or nothing. share: what is reserved by it, or NULL. */
enum mo_budget_answer mo_count_ask(struct mo_budget *b, const struct wants *w,
                                   struct mo_budget_share *share,
                                   struct mo_budget_ask *a,
                                   struct mo_budget_no *no);
/* Counts without a question: corrections, ends. */
void mo_count_tell(struct mo_budget *b, const struct wants *w);
/* The counts of `shared` hold, not those of `local`. */
bool mo_count_is_joint(const struct mo_budget *b);
void mo_count_renew(struct mo_timer *t);
/* Fills *no, counts and records the refusal. */
void mo_count_refuse(struct mo_budget *b, const struct wants *w, size_t which,
                     uint64_t wait_ms, struct mo_budget_no *no);
void mo_count_refuse_unknown(struct mo_budget *b, const struct wants *w,
                             const char *why, struct mo_budget_no *no);
void mo_budget_check(struct mo_budget *b); /* frees it if it is closed */

#endif
