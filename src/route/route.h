/* route.h - find the tools that match a request in plain words.
 *
 * An index over the tools of all servers. Two scores are combined: shared words
 * (BM25F, index.h) and similar meaning (vector.h). The result is a ranking with
 * a calibrated confidence: of the requests answered with 0.8, about eight in
 * ten are right (docs/router.md has the figures).
 *
 * The owner puts and drops servers as they change; the index is updated at the
 * next search. Everything is copied. No I/O, no clock; one thread at a time.
 *
 * Limits: MO_ROUTE_TOOLS_MAX tools, MO_ROUTE_SERVERS_MAX servers, the first
 * MO_ROUTE_TEXT_MAX bytes of a text. */
#ifndef MO_ROUTE_ROUTE_H
#define MO_ROUTE_ROUTE_H

#include "route/vector.h"

#define MO_ROUTE_TOOLS_MAX   65536
#define MO_ROUTE_SERVERS_MAX 4096
#define MO_ROUTE_TEXT_MAX    4096
#define MO_ROUTE_PARAMS_MAX  64
#define MO_ROUTE_HITS_MAX    50
#define MO_ROUTE_TOP_MAX     10 /* servers in an answer */

/* At or above the first: call the tool. At or above the second: call it if
 * asked to, and list the others. Below: report that nothing fits. */
#define MO_ROUTE_SURE  0.8f
#define MO_ROUTE_MAYBE 0.4f

struct mo_route;

struct mo_route_tool {
    struct mo_span name, description;
    const struct mo_span *params; /* names of its arguments */
    size_t nparams;
};

struct mo_route_server {
    struct mo_span name, description;
    struct mo_span keywords; /* separated by spaces */
    const struct mo_route_tool *tools;
    size_t ntools;
};

/* vectors: borrowed; NULL: compare words only (confidence is lower then). */
struct mo_route *mo_route_new(const struct mo_vectors *vectors);
void mo_route_free(struct mo_route *r); /* NULL is fine */

/* Add the server or replace the one of that name. MO_EBUSY: too many;
 * MO_ENOMEM. The index is unchanged then. */
int mo_route_put(struct mo_route *r, const struct mo_route_server *s);
void mo_route_drop(struct mo_route *r, struct mo_span server);

struct mo_route_hit {
    struct mo_span server, tool; /* borrowed until the next put or drop */
    float confidence;            /* 0 to 1; falls from hit to hit */
    float score;                 /* the ranking is by this */
    float words;                 /* part of it: shared words, of the best's */
    float meaning;               /* part of it: cosine of request and tool */
    bool equal;                  /* another server, as good as the first one */
};

struct mo_route_answer {
    struct mo_route_hit hits[MO_ROUTE_HITS_MAX];
    size_t n;
    bool named; /* the request contains the tool's name */
    /* The best tool of each server, in the order of the servers (their score
     * counts more than that tool: mo_route_find). The confidence is about the
     * server: any of its tools may be meant. */
    struct mo_route_hit servers[MO_ROUTE_TOP_MAX];
    size_t nservers;
};

/* Find the best `limit` tools. 0 or MO_ENOMEM. Nothing fits: n == 0. */
int mo_route_find(struct mo_route *r, struct mo_span request, size_t limit,
                  struct mo_route_answer *out);

struct mo_route_stats {
    size_t servers, tools, terms, postings, bytes;
};
struct mo_route_stats mo_route_stats(const struct mo_route *r);

#endif
