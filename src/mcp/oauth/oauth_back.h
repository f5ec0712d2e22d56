/* oauth_back.h - the door on this machine through which a browser comes back.
 *
 * Listens on loopback for as long as one sign-in lasts, and hands over the
 * query of GET on the path of its address. Where the address names no port
 * the kernel chooses one. Whoever knows the port can knock: what is in the
 * query is judged by its owner, and a wrong one changes nothing. */
#ifndef MO_MCP_OAUTH_OAUTH_BACK_H
#define MO_MCP_OAUTH_OAUTH_BACK_H

#include "loop/loop.h"

#define MO_BACK_URI     "http://127.0.0.1/callback"
#define MO_BACK_URI_MAX 256

struct mo_back;

/* May it be opened: http, on 127.0.0.1, localhost or [::1], a path, and
 * nothing behind it? NULL, or what is wrong. */
const char *mo_back_check(const char *uri);
/* The same but for the port, which may be another one? */
bool mo_back_same(const char *uri, const char *other);

/* uri NULL: MO_BACK_URI. on_query: 0 if that was the answer we wait for. */
int mo_back_open(struct mo_loop *l, const char *uri,
                 int (*on_query)(void *ctx, struct mo_span query), void *ctx,
                 struct mo_back **out, struct mo_err *e);
const char *mo_back_uri(const struct mo_back *b); /* with its port */
/* No more on_query; gone fires once, later. The page is still sent. */
void mo_back_close(struct mo_back *b, void (*gone)(void *ctx), void *ctx);

#endif
