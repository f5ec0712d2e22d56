/* oauth_req.h - what we say to an authorization server, and what it answers.
 *
 * Pure: the address a person opens, the forms that are posted, the answers
 * to them, and the redirect that comes back. No I/O. What is put together
 * here holds secrets: it is never logged, and errors repeat nothing of it. */
#ifndef MO_MCP_OAUTH_OAUTH_REQ_H
#define MO_MCP_OAUTH_OAUTH_REQ_H

#include "mcp/oauth/oauth_meta.h"
#include "mcp/oauth/tokens.h"

#define MO_OAUTH_VERIFIER 64 /* characters, of 48 random bytes */
#define MO_OAUTH_STATE    32 /* characters, of 24 random bytes */

struct mo_oauth_client {
    const char *id, *secret; /* secret: or NULL */
    unsigned method;         /* one MO_OAUTH_* */
};

/* The best way for that client out of those the server takes. */
unsigned mo_oauth_pick(unsigned offered, const char *secret);

/* What one sign-in is about; texts are borrowed. */
struct mo_oauth_try {
    const char *redirect, *resource;
    const char *scope; /* NULL: left to the server */
    char verifier[MO_OAUTH_VERIFIER + 1];
    char state[MO_OAUTH_STATE + 1];
};

void mo_oauth_try_fresh(struct mo_oauth_try *t); /* verifier and state */
int mo_oauth_authorize_url(struct mo_buf *b, const char *endpoint,
                           const char *client, const struct mo_oauth_try *t);

/* JSON for dynamic registration (RFC 7591). */
int mo_oauth_register_body(struct mo_buf *b, const char *name,
                           const char *redirect, const char *scope,
                           unsigned method);
int mo_oauth_register_parse(struct mo_arena *a, struct mo_span json,
                            unsigned offered, struct mo_oauth_client *out,
                            struct mo_err *e);

/* Forms for the token endpoint. Who proves itself by a header puts
 * mo_oauth_basic() there. */
int mo_oauth_code_body(struct mo_buf *b, const struct mo_oauth_client *c,
                       const struct mo_oauth_try *t, const char *code);
int mo_oauth_refresh_body(struct mo_buf *b, const struct mo_oauth_client *c,
                          const struct mo_token *k);
int mo_oauth_basic(struct mo_buf *b, const struct mo_oauth_client *c);
/* access, refresh, scope and expires_ms of *k; others are left alone, and
 * so are refresh and scope when the answer has none. */
int mo_oauth_token_parse(struct mo_arena *a, struct mo_span json,
                         uint64_t now_ms, struct mo_token *k, struct mo_err *e);
/* The `error` of a refusal for people, or "no reason given". */
const char *mo_oauth_error(struct mo_arena *a, struct mo_span json);

/* The query of the redirect. MO_EINVAL: not of this sign-in (wrong state),
 * which may be anybody's doing and ends nothing. Other failures are the
 * server's answer. `iss` must be the issuer if it is there, and must be
 * there if that was promised (RFC 9207). */
int mo_oauth_redirect(struct mo_arena *a, struct mo_span query,
                      const char *state, const struct mo_oauth_server *s,
                      const char **code, struct mo_err *e);

#endif
