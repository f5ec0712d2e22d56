/* gateway_call.h - the facts about one tool call that passes the gateway: who
 * called what, how it was found, who decided, and the outcome.
 *
 * The gateway fills it in, approvals (policy/approvals.h) decide about it, the
 * audit log and the metrics read it. Ownership: the gateway's, until the call
 * is over; `item` and `arguments` are valid only while it is being judged. */
#ifndef MO_AUDIT_GATEWAY_CALL_H
#define MO_AUDIT_GATEWAY_CALL_H

#include "codec/json/json.h"

#define MO_GW_CASE_ID     12 /* random bytes of an id */
#define MO_GW_CASE_ID_LEN 16
#define MO_GW_REASON_MAX  1024

enum mo_gw_outcome {
    MO_GW_OK,
    MO_GW_TOOL_ERROR, /* the tool says that it failed */
    MO_GW_ERROR,      /* refused by its server, or never sent */
    MO_GW_LOST,       /* sent, and no answer: it may have been done */
    MO_GW_CANCELED,   /* by its client */
    MO_GW_DENIED,     /* by a rule, a person, or the clock */
    MO_GW_OUTCOMES,
};

struct mo_gw_case_ops;

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
    /* The gateway's, for who decides (policy/judge.h): */
    const struct mo_gw_case_ops *ops;
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

#endif
