/* oauth_back.h - the loopback listener to which the browser returns.
 *
 * Listens on loopback during one sign-in and hands over the query of a GET on
 * the path of its address. If the address has no port the kernel chooses one.
 * Any local program can connect: the owner checks the query, and a wrong one
 * changes nothing. */
#ifndef MO_MCP_OAUTH_OAUTH_BACK_H
#define MO_MCP_OAUTH_OAUTH_BACK_H

#include "loop/loop.h"

#define MO_BACK_URI     "http://127.0.0.1/callback"
#define MO_BACK_URI_MAX 256

struct mo_back;

/* Check a redirect URI: http, on 127.0.0.1, localhost or [::1], with a path and
 * nothing after it. Returns NULL, or the fault. */
const char *mo_back_check(const char *uri);
/* True if both are equal except for the port. */
bool mo_back_same(const char *uri, const char *other);

/* uri NULL: MO_BACK_URI. on_query returns 0 if the query was the expected
 * answer. */
int mo_back_open(struct mo_loop *l, const char *uri,
                 int (*on_query)(void *ctx, struct mo_span query), void *ctx,
                 struct mo_back **out, struct mo_err *e);
const char *mo_back_uri(const struct mo_back *b); /* with its port */
/* Stop: no more on_query; gone fires once, later. The page is still sent. */
void mo_back_close(struct mo_back *b, void (*gone)(void *ctx), void *ctx);

#endif
