/* oauth_addr.h - choose and check the addresses used for authorization.
 *
 * Pure functions: where metadata may be found (RFC 9728, RFC 8414, OpenID
 * Discovery), and which addresses named by a peer are accepted: https, or http
 * on this machine; no user, no fragment. Loopback and literal private addresses
 * only if the configured server has such an address itself. The addresses that
 * a name resolves to are checked when connecting (public_only in
 * loop/httpcall.h). */
#ifndef MO_MCP_OAUTH_OAUTH_ADDR_H
#define MO_MCP_OAUTH_OAUTH_ADDR_H

#include "base/mem.h"
#include "base/str.h"

#define MO_OAUTH_URLS_MAX 3 /* addresses of one document */

/* True for an address on this machine or, if literal, in a private network. */
bool mo_oauth_is_private(const char *url);

/* True if two URLs have the same host, whatever their ports. */
bool mo_oauth_same_host(const char *a, const char *b);
/* True if two issuers are the same, but for slashes at the end. */
bool mo_oauth_same_issuer(const char *a, const char *b);

/* Returns 0 if `url` may be requested on behalf of the configured `server`,
 * else MO_EPOLICY. */
int mo_oauth_url_ok(const char *url, const char *server, struct mo_err *e);

struct mo_oauth_urls {
    const char *v[MO_OAUTH_URLS_MAX];
    size_t n;
};

/* List the addresses where the server's metadata may be, best first. If `told`
 * (from the challenge, or NULL) is set it is the only one. MO_EINVAL,
 * MO_ENOMEM. */
int mo_oauth_resource_urls(struct mo_arena *a, const char *server,
                           const char *told, struct mo_oauth_urls *out);
int mo_oauth_issuer_urls(struct mo_arena *a, const char *issuer,
                         struct mo_oauth_urls *out);
/* Join scheme://host[:port] of a URL and `path`. */
int mo_oauth_at_origin(struct mo_arena *a, const char *url, const char *path,
                       const char **out);

/* Copy a text into the arena; keep_buf returns the buffer's error, if it has
 * one; copy accepts NULL, which stays NULL. 0 or MO_ENOMEM. */
int mo_oauth_copy(struct mo_arena *a, const char *from, const char **to);
int mo_oauth_keep(struct mo_arena *a, struct mo_span s, const char **out);
int mo_oauth_keep_buf(struct mo_arena *a, const struct mo_buf *b,
                      const char **out);
struct mo_url;

/* The path of a URL without slashes at its end. */
struct mo_span mo_oauth_bare_path(const struct mo_url *u);

#endif
