/* oauth_req.h - write requests to an authorization server, read its answers.
 *
 * Pure functions: the address a person opens, the posted forms, their answers,
 * and the redirect. No I/O. These texts hold secrets: they are never logged,
 * and errors repeat nothing of them. */
#ifndef MO_MCP_OAUTH_OAUTH_REQ_H
#define MO_MCP_OAUTH_OAUTH_REQ_H

#include "mcp/oauth/dpop.h"
#include "mcp/oauth/oauth_meta.h"
#include "mcp/oauth/tokens.h"

#define MO_OAUTH_VERIFIER 64 /* characters, from 48 random bytes */
#define MO_OAUTH_STATE    32 /* characters, from 24 random bytes */

struct mo_oauth_client {
    const char *id, *secret; /* secret: or NULL */
    unsigned method;         /* one MO_OAUTH_* */
};

/* The best authentication method of the client that the server accepts. */
unsigned mo_oauth_pick(unsigned offered, const char *secret);

/* The data of one sign-in; texts are borrowed. */
struct mo_oauth_try {
    const char *redirect, *resource;
    const char *scope;         /* NULL: left to the server */
    char jkt[MO_DPOP_JKT + 1]; /* thumbprint of the key (dpop.h); "": none */
    char verifier[MO_OAUTH_VERIFIER + 1];
    char state[MO_OAUTH_STATE + 1];
};

void mo_oauth_try_fresh(struct mo_oauth_try *t); /* verifier and state */
int mo_oauth_authorize_url(struct mo_buf *b, const char *endpoint,
                           const char *client, const struct mo_oauth_try *t);

#define MO_OAUTH_DEVICE_GRANT "urn:ietf:params:oauth:grant-type:device_code"

/* JSON for dynamic registration (RFC 7591). device: the client wants the device
 * grant, too (oauth_device.h). */
int mo_oauth_register_body(struct mo_buf *b, const char *name,
                           const char *redirect, const char *scope,
                           unsigned method, bool device);
int mo_oauth_register_parse(struct mo_arena *a, struct mo_span json,
                            unsigned offered, struct mo_oauth_client *out,
                            struct mo_err *e);

/* Append key=value, escaped, after `sep` unless that is 0; nothing if the value
 * is NULL. */
void mo_oauth_put_pair(struct mo_buf *b, char sep, const char *key,
                       const char *value);
/* The client's part of a form, unless it authenticates by header. */
void mo_oauth_put_client(struct mo_buf *b, const struct mo_oauth_client *c);

/* Forms for the token endpoint. A client that authenticates by header uses
 * mo_oauth_basic(). */
int mo_oauth_code_body(struct mo_buf *b, const struct mo_oauth_client *c,
                       const struct mo_oauth_try *t, const char *code);
int mo_oauth_refresh_body(struct mo_buf *b, const struct mo_oauth_client *c,
                          const struct mo_token *k);
/* Appends to "token=..." (RFC 7662). */
int mo_oauth_introspect_body(struct mo_buf *b, const struct mo_oauth_client *c);
/* RFC 7009: revokes the refresh token, else the access token. */
int mo_oauth_revoke_body(struct mo_buf *b, const struct mo_oauth_client *c,
                         const struct mo_token *k);
int mo_oauth_basic(struct mo_buf *b, const struct mo_oauth_client *c);
/* Read access, refresh, scope and expires_ms into *k; refresh and scope stay
 * unchanged when the answer has none, and all other members always, except
 * dpop: NULL if the issuer has not bound the token to our key. A bound token
 * is refused if there is none. */
int mo_oauth_token_parse(struct mo_arena *a, struct mo_span json,
                         uint64_t now_ms, struct mo_token *k, struct mo_err *e);
/* Write the `error` of a refusal for people, or "no reason given". */
const char *mo_oauth_error(struct mo_arena *a, struct mo_span json);

/* Read the query of the redirect. MO_EINVAL: not of this sign-in (wrong state);
 * anybody may have sent it, so it ends nothing. Other errors are the server's
 * answer. `iss` must equal the issuer if present, and must be present if the
 * metadata promised it (RFC 9207). */
int mo_oauth_redirect(struct mo_arena *a, struct mo_span query,
                      const char *state, const struct mo_oauth_server *s,
                      const char **code, struct mo_err *e);

#endif
