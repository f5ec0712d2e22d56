/* gateway_call.h - one tool call through the gateway: caller, tool, routing,
 * decision and outcome.
 *
 * The gateway fills it in, approvals (policy/approvals.h) decide about it, the
 * audit log and the metrics read it. Ownership: the gateway's, until the call
 * is over; `item` and `arguments` are valid only during rule()
 * (policy/approval_hooks.h). */
#ifndef MO_AUDIT_GATEWAY_CALL_H
#define MO_AUDIT_GATEWAY_CALL_H

#include "codec/json/json.h"

#define MO_GW_CASE_ID     12 /* random bytes of an id */
#define MO_GW_CASE_ID_LEN 16
#define MO_GW_REASON_MAX  1024

enum mo_gw_outcome {
    MO_GW_OK,
    MO_GW_TOOL_ERROR, /* the tool reported isError */
    MO_GW_ERROR,      /* refused by its server, or never sent */
    MO_GW_LOST,       /* sent, no answer: the tool may have run */
    MO_GW_CANCELED,   /* by its client */
    MO_GW_DENIED,     /* by a rule, a person or the timeout */
    MO_GW_OUTCOMES,
};

/* The source of the approval. */
enum mo_answered {
    MO_ANSWERED_NOT,
    MO_ANSWERED_CLIENT, /* the client that made the call, by its own form */
    MO_ANSWERED_OWNER,  /* the person whose session or token it is */
    MO_ANSWERED_OPERATOR,
    MO_ANSWERED_PANEL, /* the persons whom the rule names (policy/panel.h) */
};

/* Where a decision came from, and whether by the same credential as the
 * call. */
struct mo_door {
    const char *name; /* "page", "token", "socket", "terminal", "client",
                       * "open" (`serve --no-auth`); NULL: nobody decided */
    bool is_requester;
};

struct mo_gw_case_ops;

struct mo_gw_case {
    struct mo_span server, tool; /* configured name, listed name */
    struct mo_span view;         /* that it came through, or empty */
    struct mo_span who;          /* connection, session or else caller */
    struct mo_span owner;        /* the person whose token it used, or empty */
    struct mo_span client;       /* its clientInfo, JSON; or empty */
    struct mo_span words;        /* query given to execute, or empty */
    struct mo_span trace;        /* traceparent of the call, or empty */
    struct mo_span inside;       /* set for a call of a conversation, which was
                                  * judged there: its caller; or empty */
    bool stand_in;               /* replaces the server that was judged */
    bool is_own;                 /* a tool of this program: it needs no pin */
    struct mo_span script;    /* SHA-256 of the script that made it; or empty */
    uint64_t line;            /* of that script; 0: unknown */
    struct mo_json item;      /* the tool as its server lists it, or none */
    struct mo_json arguments; /* or none */
    char digest[65];          /* sha256 of the arguments */
    char before[65];          /* digest before a person edited them */
    size_t args_bytes;
    bool routed; /* execute chose the tool */
    float sure;  /* confidence of that choice; 1: the tool was named */
    /* Set by rule(): */
    char reason[MO_GW_REASON_MAX]; /* for people; for the model if denied */
    const char *by;   /* who decided: "rule", "person", "client", "time" */
    uint64_t rules;   /* version of the rules that judged it */
    uint64_t wait_ms; /* how long it may wait for a person; 0: the default */
    /* Set with the decision: */
    enum mo_answered answered;
    uint64_t panel; /* MO_ANSWERED_PANEL: its digest */
    struct mo_door door;
    void *data;
    struct mo_audit_open *left; /* set by leaves(): its record; or NULL */
    /* How to decide, edit and run it (policy/approval_hooks.h): */
    const struct mo_gw_case_ops *ops;
    /* Set by the gateway as they become known: */
    char id[MO_GW_CASE_ID_LEN + 1]; /* if a person is asked; else "" */
    bool by_client;                 /* the client is asked */
    bool decided;                   /* no answer counts any more */
    enum mo_gw_outcome outcome;
    uint64_t ms, waited_ms; /* total; waiting for a person */
    size_t bytes;           /* of the answer */
};

/* A candidate tool for a query. */
struct mo_gw_guess {
    struct mo_span server, tool;
    float sure;
};

struct mo_gw_routing {
    const char *by; /* "find_tool", "execute" */
    const char *who;
    const char *view; /* "": none */
    struct mo_span words;
    const struct mo_gw_guess *v; /* best first */
    size_t n;
    bool acted; /* the first one is called */
};

#endif
