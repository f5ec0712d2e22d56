/* api_stats.h - current figures in one answer.
 *
 *   GET /api/stats  sessions, boxes and their resources, pending calls, tokens
 *                   by model, calls per minute, and the gateway's figures if
 *                   there are any
 *
 * Boxes are measured only on request. CPU use is relative to the previous
 * request, so the first one has no figure; requests within MO_STATS_FRESH_MS
 * get the same figure.
 *
 * With several workers the figures are those of all (api_workers.h). */
#ifndef MO_WEB_API_STATS_H
#define MO_WEB_API_STATS_H

#include "web/api.h"

#define MO_STATS_FRESH_MS 1000

struct mo_stats_sample { /* one box, when it was looked at last */
    char box[MO_BOX_ID_MAX];
    uint64_t cpu_us, at;
    int permille; /* of one core; -1: not known */
};

struct mo_api_stats {
    struct mo_api *api;
    uint64_t began; /* wall ms */
    struct mo_stats_sample *last;
    size_t nlast;
    /* The gateway's: writes one object. NULL: none. raw: with the members that
     * are needed to merge those of several workers. */
    void (*gateway)(void *ctx, bool raw, struct mo_jw *w);
    void *gateway_ctx;
};

/* st is borrowed as long as the site lives. */
int mo_api_stats_routes(struct mo_site *s, struct mo_api_stats *st);
void mo_api_stats_fini(struct mo_api_stats *st);

/* A new sample of a box, compared with `last`; NULL: there is none. Pure. */
struct mo_stats_sample mo_stats_compare(const struct mo_stats_sample *last,
                                        const char *box, uint64_t cpu_us,
                                        uint64_t at);

#endif
