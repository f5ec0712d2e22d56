/* oauth_meta.h - strict parser of authorization challenges and metadata.
 *
 * Pure functions: challenges (WWW-Authenticate), the metadata of a protected
 * resource (RFC 9728) and of an authorization server (RFC 8414, OpenID
 * Discovery), and the rules for their agreement. oauth_addr.h has the addresses
 * of these documents. No I/O; all texts are copied into the caller's arena.
 *
 * Trust: every text was written by a peer that may want our tokens.
 *  - An address is kept only if mo_oauth_url_ok() accepts it.
 *  - `issuer` must equal, byte by byte, the issuer whose document was
 *    requested.
 *  - `resource` must be our server or a parent of its path.
 *  - An authorization server that does not offer PKCE with S256 is refused,
 *    unless no person signs in.
 *    Limits: the MO_OAUTH_* below. */
#ifndef MO_MCP_OAUTH_OAUTH_META_H
#define MO_MCP_OAUTH_OAUTH_META_H

#include "mcp/oauth/oauth_addr.h"

#define MO_OAUTH_DOC_MAX     ((size_t)256 * 1024)
#define MO_OAUTH_TEXT_MAX    ((size_t)8 * 1024) /* bytes of one value */
#define MO_OAUTH_SERVERS_MAX 8

/* --- challenge ----------------------------------------------------------- */

struct mo_oauth_challenge {
    bool bearer; /* there was a challenge of Bearer or DPoP */
    bool dpop;   /* of DPoP: the server knows proofs (dpop.h) */
    bool nonce;  /* its error is use_dpop_nonce */
    const char *error, *scope, *resource_metadata; /* NULL: absent */
};

/* Parse all WWW-Authenticate headers, joined by commas. MO_EPROTO: malformed;
 * *out holds the part before the fault. */
int mo_oauth_challenge(struct mo_arena *a, struct mo_span header,
                       struct mo_oauth_challenge *out);

/* --- documents ----------------------------------------------------------- */

struct mo_oauth_resource {
    const char *resource;
    const char *servers[MO_OAUTH_SERVERS_MAX]; /* issuers */
    size_t nservers;
    const char *scope; /* scopes_supported, separated by blanks; NULL: absent */
    bool dpop;         /* it knows our proofs (dpop.h) */
};

enum { /* how a client authenticates at the token endpoint */
       MO_OAUTH_BASIC = 1,
       MO_OAUTH_POST = 2,
       MO_OAUTH_NONE = 4,
       MO_OAUTH_KEY = 8, /* private_key_jwt */
};

struct mo_oauth_server {
    const char *issuer, *authorize, *token;
    const char *registration; /* or NULL, as the next ones */
    const char *keys;         /* jwks_uri */
    const char *device;       /* device_authorization_endpoint */
    const char *introspection;
    const char *revocation; /* RFC 7009 */
    const char *end_session;
    const char *userinfo;
    const char *scope; /* scopes_supported, or NULL */
    unsigned auth;     /* MO_OAUTH_* it accepts; never 0 */
    bool iss;          /* it sends iss in redirects */
    bool cimd;         /* a URL may be the client id */
    bool pkce;         /* it offers S256 */
    bool dpop;         /* it accepts our proofs */
};

int mo_oauth_resource_parse(struct mo_arena *a, struct mo_span json,
                            const char *server, struct mo_oauth_resource *out,
                            struct mo_err *e);
int mo_oauth_server_parse(struct mo_arena *a, struct mo_span json,
                          const char *issuer, const char *server,
                          struct mo_oauth_server *out, struct mo_err *e);
/* Both parts of it: reads the document; then: can a person sign in there? */
int mo_oauth_server_parse_any(struct mo_arena *a, struct mo_span json,
                              const char *issuer, const char *server,
                              struct mo_oauth_server *out, struct mo_err *e);
int mo_oauth_server_check(const struct mo_oauth_server *s, struct mo_err *e);
/* The defaults for a server of 2025-03-26 without any document. */
int mo_oauth_server_default(struct mo_arena *a, const char *server,
                            struct mo_oauth_server *out);

/* "client_secret_basic" and its like; 0 / NULL: unknown. */
unsigned mo_oauth_auth_method(struct mo_span name);
const char *mo_oauth_auth_name(unsigned method);

/* --- scopes -------------------------------------------------------------- */

/* True if the list (separated by blanks) has this scope. */
bool mo_oauth_scope_has(const char *list, struct mo_span one);
/* True if `list` has all scopes of `part`. NULL is the empty list. */
bool mo_oauth_scope_covers(const char *list, const char *part);
/* Join both lists without duplicates; NULL when both are empty. */
int mo_oauth_scope_union(struct mo_arena *a, const char *x, const char *y,
                         const char **out);

#endif
