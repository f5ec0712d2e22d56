/* oauth_flow.h - one run from a refusal to a token.
 *
 *   RESOURCE -> ISSUER -> REGISTER -> SIGN_IN -> TOKEN -> ended
 *   REFRESH -> ended
 *
 * RESOURCE and ISSUER look for metadata at each address in turn; REGISTER is
 * left out when we are known there; SIGN_IN waits for a person. A step is one
 * question (oauth_ask.h).
 *
 * A server without any metadata is taken for one of 2025-03-26, which is its
 * own authorization server.
 *
 * Ownership: done fires exactly once, from the loop, and the flow is gone
 * after it. The token handed over is borrowed until done returns. */
#ifndef MO_MCP_OAUTH_OAUTH_FLOW_H
#define MO_MCP_OAUTH_OAUTH_FLOW_H

#include "loop/httpc.h"
#include "mcp/oauth/oauth_req.h"

#define MO_FLOW_SIGN_IN_MS ((uint64_t)15 * 60 * 1000)

struct mo_flow;

struct mo_flow_opts { /* all borrowed until done */
    struct mo_loop *loop;
    struct mo_httpc *http;
    const struct mo_tokens *tokens; /* for clients registered earlier */
    const char *server;
    const char *redirect;
    const char *client_name;
    const char *client_id, *client_secret; /* registered by hand, or NULL */
    const char *client_url;                /* of our metadata, or NULL */
    const char *scope;                     /* wanted in any case, or NULL */
    uint64_t sign_in_ms;                   /* 0: MO_FLOW_SIGN_IN_MS */
    bool local; /* the server is at a private address */
    /* Who we have just become at the issuer (borrowed; no tokens in it), so
     * that a sign-in nobody finishes need not register again. NULL: the one
     * that `tokens` knew is not to be used any more. May be NULL. */
    void (*on_client)(void *ctx, const struct mo_token *k);
    /* A person must open that (borrowed). */
    void (*on_url)(void *ctx, const char *url);
    /* asked: the scopes asked for, or NULL. */
    void (*done)(void *ctx, const struct mo_token *k, const char *asked,
                 const struct mo_err *why);
    void *ctx;
};

/* From a challenge (its texts are copied). */
int mo_flow_start(const struct mo_flow_opts *o,
                  const struct mo_oauth_challenge *c, struct mo_flow **out,
                  struct mo_err *e);
/* A new token for an old one that can be refreshed. done says MO_EPOLICY
 * when the issuer refuses that. */
int mo_flow_refresh(const struct mo_flow_opts *o, const struct mo_token *old,
                    struct mo_flow **out, struct mo_err *e);
/* The query the browser came back with. MO_EINVAL: not ours, and the flow
 * waits on; any other way the flow goes on or ends by itself. */
int mo_flow_redirected(struct mo_flow *f, struct mo_span query,
                       struct mo_err *e);
void mo_flow_cancel(struct mo_flow *f); /* done follows: MO_ECANCELED */

#endif
