/* reload.h - a new configuration while the program runs.
 *
 * It is taken if it is good, and what it changes is said in the log; a bad one
 * is reported, with every mistake at its place, and the old one kept. */
#ifndef MO_CONFIG_RELOAD_H
#define MO_CONFIG_RELOAD_H

#include "config/config.h"

#define MO_RELOAD_WATCH_MS 1000 /* how often files are to be looked at */

/* apply(ctx) when h->now is a new one. */
void mo_reload(struct mo_config_holder *h, struct mo_log *log,
               void (*apply)(void *ctx), void *ctx);
/* How much is logged, in which form, and what never. */
void mo_reload_log(struct mo_log *log, const struct mo_config *c);

#endif
