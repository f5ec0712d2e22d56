/* route.h - plain words to tools.
 *
 * An index over the tools of all servers, asked with a request as a person
 * or a model words it. Two views are joined: which words they share (BM25F:
 * index.h) and what they are about (vector.h). The answer is a ranking with a
 * confidence that was fitted to mean something: of the requests answered with
 * 0.8, about eight in ten are right (docs/router.md has the figures).
 *
 * Whoever keeps it puts and drops servers as they come and change; the index
 * is put in order when it is next asked. Everything is copied in. Pure: no
 * I/O, no clock; one thread at a time.
 *
 * Limits: MO_ROUTE_TOOLS_MAX tools, MO_ROUTE_SERVERS_MAX servers; of a text
 * the first MO_ROUTE_TEXT_MAX bytes count. */
#ifndef MO_ROUTE_ROUTE_H
#define MO_ROUTE_ROUTE_H

#include "route/vector.h"

#define MO_ROUTE_TOOLS_MAX   65536
#define MO_ROUTE_SERVERS_MAX 4096
#define MO_ROUTE_TEXT_MAX    4096
#define MO_ROUTE_PARAMS_MAX  64
#define MO_ROUTE_HITS_MAX    50
#define MO_ROUTE_TOP_MAX     10 /* servers of an answer */

/* At or above the first: act. At or above the second: act when told to, and
 * show the others. Below: say so. */
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
    struct mo_span keywords; /* with spaces between */
    const struct mo_route_tool *tools;
    size_t ntools;
};

/* vectors: borrowed, or NULL: by words alone (confidence is then lower). */
struct mo_route *mo_route_new(const struct mo_vectors *vectors);
void mo_route_free(struct mo_route *r); /* NULL is fine */

/* Add it, or replace the one of that name. MO_EBUSY: too many; MO_ENOMEM. The
 * index is unchanged then. */
int mo_route_put(struct mo_route *r, const struct mo_route_server *s);
void mo_route_drop(struct mo_route *r, struct mo_span server);

struct mo_route_hit {
    struct mo_span server, tool; /* borrowed until the next put or drop */
    float confidence;            /* 0 to 1 */
    float score;                 /* what the order is by */
    float words, meaning;        /* its parts: shared words (of the best), */
                                 /* cosine of request and tool */
    bool equal;                  /* as good as the first one, elsewhere */
};

struct mo_route_answer {
    struct mo_route_hit hits[MO_ROUTE_HITS_MAX];
    size_t n;
    bool named; /* the request says the tool's name */
    /* The best tool of each server, servers in their order (which is by
     * more than that tool: mo_route_find). */
    struct mo_route_hit servers[MO_ROUTE_TOP_MAX];
    size_t nservers;
};

/* The best `limit` tools. 0, or MO_ENOMEM. Nothing that fits: n == 0. */
int mo_route_find(struct mo_route *r, struct mo_span request, size_t limit,
                  struct mo_route_answer *out);

struct mo_route_stats {
    size_t servers, tools, terms, postings, bytes;
};
struct mo_route_stats mo_route_stats(const struct mo_route *r);

#endif
