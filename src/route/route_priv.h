/* route_priv.h - what route.c (what there is) and find.c (what a request finds)
 * share. */
#ifndef MO_ROUTE_ROUTE_PRIV_H
#define MO_ROUTE_ROUTE_PRIV_H

#include "route/index.h"
#include "route/route.h"

#define BEST 3

struct server {
    char *name;
    size_t n;
    bool dead; /* until the index is put in order */
    struct mo_vector8 vector;
};

struct tool {
    char *name;
    size_t n;
    uint32_t server;
    unsigned verbs; /* what it does */
    /* What the tool is about: with its server's share, beside what every
     * request looks at, and without. */
    struct mo_vector8 both;
    struct mo_vector8 own;
};

struct best { /* tools of one server, best first */
    uint32_t tool[BEST];
    unsigned n;
};

struct mo_route {
    const struct mo_vectors *vectors;
    struct mo_index index;
    struct server *servers;
    size_t nservers;
    struct tool *tools;
    size_t ntools, cap_tools;
    /* for the present request, one for each tool or server */
    float *words, *scores, *server_scores;
    struct best *best;
    uint32_t *moved; /* used while closing up */
};

static inline struct mo_span tool_name(const struct mo_route *r, uint32_t t)
{
    return mo_span(r->tools[t].name, r->tools[t].n);
}

static inline struct mo_span server_name(const struct mo_route *r, uint32_t s)
{
    return mo_span(r->servers[s].name, r->servers[s].n);
}

void mo_route_add_text(const struct mo_route *r, struct mo_span text,
                       struct mo_vector_sum *sum);
int mo_route_settle(struct mo_route *r);

#endif
