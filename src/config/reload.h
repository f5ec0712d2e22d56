/* reload.h - reloads the configuration while the program runs.
 *
 * On success the log names every key that changed. On failure the log has every
 * error with its place, and the old configuration stays in effect. */
#ifndef MO_CONFIG_RELOAD_H
#define MO_CONFIG_RELOAD_H

#include "config/config.h"

#define MO_RELOAD_WATCH_MS 1000 /* how often to call mo_config_stale() */

/* Calls apply(ctx) after h->now was replaced. *rep: what was found. */
void mo_reload(struct mo_config_holder *h, struct mo_log *log,
               struct mo_config_report *rep, void (*apply)(void *ctx),
               void *ctx);
/* Sets level, format and secrets of the log. */
void mo_reload_log(struct mo_log *log, const struct mo_config *c);

#endif
