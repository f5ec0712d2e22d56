/* oauth_flow.h - one run from a refusal to a token.
 *
 *   RESOURCE -> ISSUER -> REGISTER -> SIGN_IN -> TOKEN -> ended
 *                                  DEVICE -> PAUSE <-> POLL -> ended
 *   REFRESH -> ended
 *
 * RESOURCE and ISSUER try each metadata address in turn; REGISTER is skipped
 * when a client is known; SIGN_IN waits for a person, PAUSE and POLL too, if
 * the owner and the issuer want the device grant. A step is one request
 * (oauth_ask.h).
 *
 * A server without any metadata is treated as one of 2025-03-26, which is its
 * own authorization server.
 *
 * Ownership: done fires exactly once, from the loop, and the flow is freed
 * after it. The token it passes is borrowed until done returns. */
#ifndef MO_MCP_OAUTH_OAUTH_FLOW_H
#define MO_MCP_OAUTH_OAUTH_FLOW_H

#include "mcp/oauth/oauth.h"
#include "mcp/oauth/oauth_req.h"

#define MO_FLOW_SIGN_IN_MS ((uint64_t)15 * 60 * 1000)

struct mo_flow;

struct mo_flow_opts {                  /* all borrowed until done */
    const struct mo_oauth_opts *oauth; /* the owner's */
    const char *redirect;
    const char *scope; /* scopes always requested, or NULL */
    bool local;        /* the server is at a private address */
    /* The client just registered at the issuer (borrowed; without tokens), so
     * that an unfinished sign-in need not register again. NULL: the client from
     * `tokens` must not be used any more. May be NULL. */
    void (*on_client)(void *ctx, const struct mo_token *k);
    /* A person must open this URL (borrowed). */
    void (*on_url)(void *ctx, const char *url);
    /* asked: the requested scopes, or NULL. */
    void (*done)(void *ctx, const struct mo_token *k, const char *asked,
                 const struct mo_err *why);
    void *ctx;
};

/* Start from a challenge (its texts are copied). */
int mo_flow_start(const struct mo_flow_opts *o,
                  const struct mo_oauth_challenge *c, struct mo_flow **out,
                  struct mo_err *e);
/* Start a refresh of a token. done gets MO_EPOLICY when the issuer refuses it.
 */
int mo_flow_refresh(const struct mo_flow_opts *o, const struct mo_token *old,
                    struct mo_flow **out, struct mo_err *e);
/* Pass the query the browser returned with. MO_EINVAL: not for this sign-in,
 * and the flow keeps waiting; otherwise the flow continues or ends by itself.
 */
int mo_flow_redirected(struct mo_flow *f, struct mo_span query,
                       struct mo_err *e);
void mo_flow_cancel(struct mo_flow *f); /* done follows with MO_ECANCELED */

#endif
