/* oauth_addr.h - which addresses of an authorization are asked, and where.
 *
 * Pure: the places where metadata may lie (RFC 9728, RFC 8414, OpenID
 * Discovery), and which of the addresses a peer names are used at all: https,
 * or http on this very machine; no user, no fragment. Loopback and literal
 * private addresses only when the configured server is such a one itself. What
 * a name resolves to is not seen here, but when it is connected to
 * (public_only in loop/httpcall.h). */
#ifndef MO_MCP_OAUTH_OAUTH_ADDR_H
#define MO_MCP_OAUTH_OAUTH_ADDR_H

#include "base/mem.h"
#include "base/str.h"

#define MO_OAUTH_URLS_MAX 3 /* places to look for a document */

/* On this machine or, by a literal address, in a private network? */
bool mo_oauth_is_private(const char *url);

/* May `url` be asked on behalf of the configured `server`? 0, MO_EPOLICY. */
int mo_oauth_url_ok(const char *url, const char *server, struct mo_err *e);

struct mo_oauth_urls {
    const char *v[MO_OAUTH_URLS_MAX];
    size_t n;
};

/* Where the metadata of the server may lie, best first. `told` (from the
 * challenge, or NULL) is then the only place. MO_EINVAL, MO_ENOMEM. */
int mo_oauth_resource_urls(struct mo_arena *a, const char *server,
                           const char *told, struct mo_oauth_urls *out);
int mo_oauth_issuer_urls(struct mo_arena *a, const char *issuer,
                         struct mo_oauth_urls *out);
/* scheme://host[:port] of a URL and `path` behind it. */
int mo_oauth_at_origin(struct mo_arena *a, const char *url, const char *path,
                       const char **out);

#endif
