/* case.h - may this call cross, and what came of it: for whoever decides that.
 *
 * The gateway knows no rules. Before a tools/call leaves for its server the
 * owner's judge looks at it and lets it go, refuses it, or wants a person's
 * yes. The person is asked through the client (an elicitation) where that is
 * possible; else the call is held, its client hears progress, and somebody
 * decides elsewhere with mo_gw_decide(). A yes is written down before the call
 * runs: agreed(), then mo_gw_run(). Nobody's answer in time is a no.
 *
 * What was agreed to is what runs: when its server is ready the call is looked
 * up once more, and if tool, definition or arguments are not those that were
 * shown it does not run.
 *
 * Ownership: a case is the gateway's from rule() to done(); after that it is
 * gone. Its texts are its own, `item` and `arguments` are valid during rule()
 * only. Callbacks must not free or decide the case they are given, but for
 * agreed(), which may say mo_gw_run() at once. */
#ifndef MO_GATEWAY_CALL_CASE_H
#define MO_GATEWAY_CALL_CASE_H

#include "codec/json/json.h"

#define MO_GW_CASE_ID     12 /* random bytes of an id */
#define MO_GW_CASE_ID_LEN 16
#define MO_GW_REASON_MAX  1024
#define MO_GW_WAIT_MS     ((uint64_t)600 * 1000) /* for a person */

enum mo_gw_ruling {
    MO_GW_LET,
    MO_GW_REFUSE, /* reason says why */
    MO_GW_ASK,    /* a person must agree first */
};

enum mo_gw_outcome {
    MO_GW_OK,
    MO_GW_TOOL_ERROR, /* the tool says that it failed */
    MO_GW_ERROR,      /* refused by its server, or never sent */
    MO_GW_LOST,       /* sent, and no answer: it may have been done */
    MO_GW_CANCELED,   /* by its client */
    MO_GW_DENIED,     /* by a rule, a person, or the clock */
    MO_GW_OUTCOMES,
};

struct mo_gw_case {
    struct mo_span server, tool; /* as they are configured and listed */
    struct mo_span who;          /* connection or session, else the caller */
    struct mo_span client;       /* its clientInfo, JSON; or empty */
    struct mo_span words;        /* execute by words: the request; or empty */
    struct mo_span trace;        /* traceparent of the call, or empty */
    struct mo_span inside;       /* it came from this program, which has asked
                                  * about it already: by whom; or empty */
    bool stand_in;               /* for another server, about which it was */
    struct mo_json item;         /* the tool as its server lists it, or none */
    struct mo_json arguments;    /* or none */
    char digest[65];             /* of the arguments' bytes, sha256 */
    char before[65];             /* a person has changed them: as they were */
    size_t args_bytes;
    bool routed; /* by execute */
    float sure;  /* of that; 1: it was named */
    /* The judge's: */
    char reason[MO_GW_REASON_MAX]; /* for the person, and the model if denied */
    const char *by; /* who decided: "rule", "person", "client", "time" */
    void *data;
    /* Set by the gateway as they become known: */
    char id[MO_GW_CASE_ID_LEN + 1]; /* of one that is asked about; else "" */
    bool by_client;                 /* the client is asked */
    enum mo_gw_outcome outcome;
    uint64_t ms, waited_ms; /* all of it; of that, for a person */
    size_t bytes;           /* of the answer */
};

/* What words were taken for. */
struct mo_gw_guess {
    struct mo_span server, tool;
    float sure;
};

struct mo_gw_routing {
    const char *by; /* "find_tool", "execute" */
    const char *who;
    struct mo_span words;
    const struct mo_gw_guess *v; /* best first */
    size_t n;
    bool acted; /* the first one is called */
};

struct mo_gw_judge { /* each may be NULL */
    /* question: for ask, what the client shows to its person; left empty the
     * client is not asked. */
    enum mo_gw_ruling (*rule)(void *ctx, struct mo_gw_case *k,
                              struct mo_buf *question);
    /* It waits from now on: for mo_gw_decide(), or (by_client) its client. */
    void (*held)(void *ctx, struct mo_gw_case *k);
    /* A person agreed: write it down, then mo_gw_run(). Without it the call
     * runs at once. */
    void (*agreed)(void *ctx, struct mo_gw_case *k);
    /* Once for every call, with its outcome; the case is gone after it. */
    void (*done)(void *ctx, struct mo_gw_case *k);
    void (*routed)(void *ctx, const struct mo_gw_routing *r);
    /* Is that tool not what people saw first? rule() would refuse it. */
    bool (*changed)(void *ctx, struct mo_span server, struct mo_span tool,
                    struct mo_json item);
    void *ctx;
    uint64_t wait_ms; /* 0: MO_GW_WAIT_MS */
};

/* Of one that is held and not by_client. false: it is decided already. */
bool mo_gw_decide(struct mo_gw_case *k, bool yes, const char *by);
/* Before that, others in the place of its arguments, which are in the exact
 * form (policy/exact.h): they run if it is let. MO_EINVAL: they do not fit the
 * tool; MO_EPOLICY: the tool is not what was shown. */
int mo_gw_edit(struct mo_gw_case *k, struct mo_span args, struct mo_err *e);
/* What agreed() asked for is done; why: it could not be, and nothing runs. */
void mo_gw_run(struct mo_gw_case *k, const struct mo_err *why);

#endif
