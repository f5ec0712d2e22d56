/* sentinel.h - asks a Redis Sentinel for the address of the master. Private to
 * store/. */
#ifndef MO_STORE_SENTINEL_H
#define MO_STORE_SENTINEL_H

#include "store/rconn.h"

/* master, or NULL and why. */
typedef void mo_sentinel_fn(void *ctx, const struct mo_rtarget *master,
                            const struct mo_err *why);

/* Asks for the master conf->master. done fires once, later. */
int mo_sentinel_ask(const struct mo_rconf *conf, const struct mo_rtarget *at,
                    mo_sentinel_fn *done, void *ctx, struct mo_sentinel **out,
                    struct mo_err *e);
void mo_sentinel_cancel(struct mo_sentinel *q); /* done still fires */

#endif
