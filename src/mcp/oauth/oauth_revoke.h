/* oauth_revoke.h - takes a token back at its issuer (RFC 7009).
 *
 * One request, by the rules of oauth_ask.h. Revoking the refresh token ends its
 * access tokens too at an issuer that follows the standard.
 *
 * Ownership: the token is copied. done (may be NULL) fires once, from the loop;
 * mo_oauth_revoke_cancel() makes it fire, too. Then it is freed. */
#ifndef MO_MCP_OAUTH_OAUTH_REVOKE_H
#define MO_MCP_OAUTH_OAUTH_REVOKE_H

#include "loop/httpc.h"
#include "mcp/oauth/tokens.h"

struct mo_oauth_revoke;

struct mo_oauth_revoke_opts {
    struct mo_httpc *http;
    const struct mo_token *token;
    const char *secret; /* of a configured client, or NULL: the token's */
    /* why NULL: revoked. */
    void (*done)(void *ctx, const struct mo_err *why);
    void *ctx;
};

/* MO_ENOTFOUND: the issuer has no such address, or there is no token. */
int mo_oauth_revoke(const struct mo_oauth_revoke_opts *o,
                    struct mo_oauth_revoke **out, struct mo_err *e);
void mo_oauth_revoke_cancel(struct mo_oauth_revoke *r);

#endif
