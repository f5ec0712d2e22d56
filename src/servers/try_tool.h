/* try_tool.h - lists the configured servers and runs a tool for a person.
 *
 * Implements the requests of web/api.h with the gateway
 * (servers/gateway_setup.h), the pinned definitions (policy/tool_pins.h) and
 * the approval rules. It is a client of the gateway, as conversations are
 * (mcp/server/link_inside.h).
 *
 * Invariants
 *   1. A tool runs under the rules of a conversation, without the remembered
 *      rules of conversations: allow runs it, deny refuses it, ask asks.
 *   2. A question is answered with its digest, which covers server, tool, its
 *      definition, the exact arguments and a nonce. At most QUESTIONS are open;
 *      a new one replaces the oldest, and each expires after ASK_MS.
 *   3. Nothing runs before the audit log has it. Then the rules and the pin are
 *      checked once more.
 *   4. A bare token cannot answer a question that was put to it; a person signs
 *      in to the page for that (or the rule says `approver: client`).
 *   5. A tool whose definition changed does not run before it is accepted.
 *
 * Ownership: everything passed in is borrowed until gone(). Limit: TRIES at
 * once. */
#ifndef MO_SERVERS_TRY_TOOL_H
#define MO_SERVERS_TRY_TOOL_H

#include "audit/audit.h"
#include "policy/policy.h"
#include "servers/gateway_setup.h"

#define MO_TRY_TOOL_ARGS_MAX ((size_t)1024 * 1024) /* body of a call */

struct mo_try_tool;

struct mo_try_tool_opts {
    struct mo_loop *loop;
    struct mo_gateway_setup *gateway;
    struct mo_policy *policy;
    struct mo_audit *audit;
    void (*accepted)(void *ctx); /* a changed tool was accepted */
    void *ctx;
};

int mo_try_tool_new(const struct mo_try_tool_opts *o, struct mo_try_tool **out,
                    struct mo_err *e);
/* Refuses new jobs and calls gone(ctx) later, when running jobs have ended.
 * Close it before the gateway. */
void mo_try_tool_close(struct mo_try_tool *t, void (*gone)(void *ctx),
                       void *ctx);

struct mo_try_tool_ask {
    struct mo_span server, tool;
    struct mo_span args;   /* JSON object; empty: no arguments */
    struct mo_span digest; /* of the question answered; empty: none yet */
    struct mo_span who;    /* caller, for the audit log */
    struct mo_span run;    /* the caller's name of the call; empty: none */
    const char *door;      /* how they were admitted: struct mo_door; static */
};

/* Appends all configured servers and their states. */
int mo_try_tool_list(struct mo_try_tool *t, struct mo_buf *out);
enum mo_try_tool_read {
    MO_TRY_TOOL_READ,  /* starts the server if need be */
    MO_TRY_TOOL_NOW,   /* also one that is paused after a failure */
    MO_TRY_TOOL_KNOWN, /* the last list; MO_ENOTFOUND: there is none */
};

/* These call done() once, later, and copy everything before they return. */
int mo_try_tool_tools(struct mo_try_tool *t, struct mo_span server,
                      enum mo_try_tool_read how, mo_job_done_fn *done,
                      void *arg, struct mo_err *e);
int mo_try_tool_call(struct mo_try_tool *t, const struct mo_try_tool_ask *a,
                     mo_job_done_fn *done, void *arg, struct mo_err *e);
/* A call with a name while it runs: its progress and its server's question.
 *
 *   {"calling":true,"progress":{"progress":3,"total":10,"message":"..."},
 *    "question":{"id":"...","mode":"form","message":"...","schema":{...}}}
 *
 * MO_ENOTFOUND: there is none, or it has ended. */
int mo_try_tool_look(struct mo_try_tool *t, struct mo_span run,
                     struct mo_buf *out);

struct mo_try_tool_word {    /* of the person, about a running call */
    struct mo_span question; /* its id; empty: about the call itself */
    struct mo_span action;   /* accept, decline, cancel; call: cancel */
    struct mo_json content;  /* of a form, or none */
};
int mo_try_tool_tell(struct mo_try_tool *t, struct mo_span run,
                     const struct mo_try_tool_word *w, struct mo_err *e);
int mo_try_tool_accept(struct mo_try_tool *t, const struct mo_try_tool_ask *a,
                       mo_job_done_fn *done, void *arg, struct mo_err *e);

#endif
