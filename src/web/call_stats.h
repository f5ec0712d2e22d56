/* call_stats.h - the gateway's calls in sums, for the page: by server and tool,
 * and by the minute of the last hour.
 *
 * Written once for every call that is over, read when somebody looks; fixed
 * cost for each, nothing of it is kept. Times are counted in buckets, so that
 * the usual and the slow ones (p50, p95) are known without keeping them all:
 * each is right to about a third.
 *
 * Limits: MO_CALL_STATS_ROWS servers and tools together, names of 511 bytes
 * together; what is beyond counts in the sums of all. Not known here: what a
 * call was, who made it. */
#ifndef MO_WEB_CALL_STATS_H
#define MO_WEB_CALL_STATS_H

#include "codec/json/json.h"

#define MO_CALL_STATS_ROWS 4096

struct mo_call_stats;

/* own: bytes of the owner's that are kept with each tool. NULL: no memory. */
struct mo_call_stats *mo_call_stats_new(size_t own);
void mo_call_stats_free(struct mo_call_stats *s); /* NULL is fine */

struct mo_call_stats_call {
    struct mo_span server, tool;
    uint64_t ms; /* without what people took */
    bool failed;
};
/* now: wall ms. The owner's bytes of that tool, zeroes at first; they stay
 * where they are. NULL: it has no row. */
void *mo_call_stats_add(struct mo_call_stats *s,
                        const struct mo_call_stats_call *c, uint64_t now);

/* Members of the object that is being written: "calls", "errors", "p50Ms",
 * "p95Ms", "perMinute", "errorsPerMinute", "longestMs". */
void mo_call_stats_put(const struct mo_call_stats *s, uint64_t now,
                       struct mo_jw *w);
/* The same of one server but for the minutes, and "tools", most used first, at
 * most `most` of them. */
void mo_call_stats_put_server(const struct mo_call_stats *s,
                              struct mo_span server, size_t most,
                              struct mo_jw *w);

#endif
