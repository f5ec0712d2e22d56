/* resolve.h - the addresses of a name, from the system's resolver.
 *
 * Runs on a thread of libuv's pool. Limit: MO_RESOLVE_MAX addresses; the rest
 * is left out. */
#ifndef MO_LOOP_RESOLVE_H
#define MO_LOOP_RESOLVE_H

#include "codec/ip.h"
#include "loop/loop.h"

#define MO_RESOLVE_MAX 8

struct mo_resolve;

/* why is NULL if there is at least one address. v is borrowed. */
typedef void mo_resolve_fn(void *ctx, const struct mo_ip *v, size_t n,
                           const struct mo_err *why);

/* done fires once, later. */
int mo_resolve(struct mo_loop *l, const char *name, mo_resolve_fn *done,
               void *ctx, struct mo_resolve **out, struct mo_err *e);
/* done does not fire any more. */
void mo_resolve_drop(struct mo_resolve *r);

#endif
