/* api_route.h - ask and teach the router over HTTP.
 *
 *   GET /api/route?q=WORDS[&limit=N][&threshold=X]
 *     {query, learnt, results: [...], ruledOut: [...]}, the same as
 *     `find --json`
 *   POST /api/route/teach  {words, server, tool, right}
 *     these words mean that tool, or do not: counts like one choice
 *   DELETE /api/route/learnt
 *     forget everything learnt
 *
 * Asks the running gateway and starts nothing. ctx NULL: the gateway is not
 * running (503). */
#ifndef MO_WEB_API_ROUTE_H
#define MO_WEB_API_ROUTE_H

#include "web/site.h"

#define MO_API_ROUTE_LIMIT 50 /* results, at most */

struct mo_api_route_ask {
    struct mo_span words;
    const char *who; /* asks: its address */
    size_t limit;    /* 0: as usual */
    double threshold;
};

struct mo_api_lesson {
    struct mo_span words, server, tool;
    bool right;
};

struct mo_api_route {
    int (*find)(void *ctx, const struct mo_api_route_ask *a,
                struct mo_buf *out);
    bool (*teach)(void *ctx, const struct mo_api_lesson *l); /* no such tool */
    void (*forget)(void *ctx);
    void *ctx;
};

/* r is borrowed as long as the site lives. */
int mo_api_route_routes(struct mo_site *s, struct mo_api_route *r);

#endif
