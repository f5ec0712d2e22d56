/* reload.h - reloads the configuration while the program runs.
 *
 * On success the log names every key that changed, and those that wait for a
 * restart. On failure the log has every error with its place, and the old
 * configuration stays in effect. */
#ifndef MO_CONFIG_RELOAD_H
#define MO_CONFIG_RELOAD_H

#include "config/config.h"

#define MO_RELOAD_WATCH_MS 1000 /* how often to call mo_config_stale() */
#define MO_RELOAD_KEYS_MAX 4096 /* bytes of one list; the rest is left out */

/* The outcome of a reload. Lists are JSON arrays of keys, or empty. */
struct mo_reload_news {
    bool is_loaded;
    struct mo_buf changed; /* since the configuration before */
    struct mo_buf waiting; /* for a restart: not as they were at the start */
};

/* Calls apply(ctx) after h->now was replaced. first: the configuration of the
 * start. *rep: what was found. news: the caller frees both lists. */
void mo_reload(struct mo_config_holder *h, const struct mo_config *first,
               struct mo_log *log, struct mo_config_report *rep,
               struct mo_reload_news *news, void (*apply)(void *ctx),
               void *ctx);
/* Sets level, format and secrets of the log. */
void mo_reload_log(struct mo_log *log, const struct mo_config *c);

#endif
