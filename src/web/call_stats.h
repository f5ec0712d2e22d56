/* call_stats.h - counters of the gateway's calls: by server and tool, and by
 * minute for the last hour.
 *
 * Updated once for every call that ended, at a fixed cost. Kept in memory
 * only. Durations are counted in buckets, so that p50 and p95 are known
 * without storing each call; they are accurate to about a third.
 *
 * Limits: MO_CALL_STATS_ROWS servers and tools together, and 511 bytes for
 * the two names of a call; other calls count only in the totals. Knows
 * neither arguments nor clients. */
#ifndef MO_WEB_CALL_STATS_H
#define MO_WEB_CALL_STATS_H

#include "codec/json/json.h"

#define MO_CALL_STATS_ROWS 4096

struct mo_call_stats;

/* own: bytes that the owner may store with each tool. NULL: out of memory. */
struct mo_call_stats *mo_call_stats_new(size_t own);
void mo_call_stats_free(struct mo_call_stats *s); /* may be NULL */

struct mo_call_stats_call {
    struct mo_span server, tool;
    uint64_t ms; /* without waiting for people */
    bool failed;
};
/* Counts a call. now: wall clock in ms. Returns the owner's bytes of the
 * tool, zeroed at first; they do not move. NULL: the tool has no row. */
void *mo_call_stats_add(struct mo_call_stats *s,
                        const struct mo_call_stats_call *c, uint64_t now);

/* Writes members of an object: "calls", "errors", "p50Ms", "p95Ms",
 * "perMinute", "errorsPerMinute", "longestMs". raw: also "took" and "longest",
 * of which those of several processes are computed. */
void mo_call_stats_put(const struct mo_call_stats *s, uint64_t now, bool raw,
                       struct mo_jw *w);
/* The same for one server without the minutes, and "tools", most used first,
 * at most `most` of them. */
void mo_call_stats_put_server(const struct mo_call_stats *s,
                              struct mo_span server, size_t most, bool raw,
                              struct mo_jw *w);
/* Writes the percentile of all calls in such raw objects. */
void mo_call_stats_put_p50(struct mo_jw *w, const struct mo_json *v, size_t n);
void mo_call_stats_put_p95(struct mo_jw *w, const struct mo_json *v, size_t n);

#endif
