/* oauth_back.h - the door on this machine through which a browser comes back.
 *
 * Listens on 127.0.0.1, a port of the kernel's choosing, for as long as one
 * sign-in lasts, and hands over the query of GET /callback. Whoever knows the
 * port can knock: what is in the query is judged by its owner, and a wrong
 * one changes nothing. */
#ifndef MO_MCP_OAUTH_BACK_H
#define MO_MCP_OAUTH_BACK_H

#include "loop/loop.h"

struct mo_back;

/* on_query: 0 if that was the answer we wait for. */
int mo_back_open(struct mo_loop *l,
                 int (*on_query)(void *ctx, struct mo_span query), void *ctx,
                 struct mo_back **out, struct mo_err *e);
const char *mo_back_uri(const struct mo_back *b);
/* No more on_query; gone fires once, later. The page is still sent. */
void mo_back_close(struct mo_back *b, void (*gone)(void *ctx), void *ctx);

#endif
