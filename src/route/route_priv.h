/* route_priv.h - shared by route.c (servers and tools), find.c (search) and
 * named.c (tools named in a request). */
#ifndef MO_ROUTE_ROUTE_PRIV_H
#define MO_ROUTE_ROUTE_PRIV_H

#include "route/index.h"
#include "route/route.h"

/* Beside the kinds of verbs: what its parameters take. */
#define TAKES_ADDRESS ((uint32_t)1 << 30)
#define TAKES_FILE    ((uint32_t)1 << 29)
#define KINDS_OF_VERB ((uint32_t)0xffff)

struct server {
    char *name;
    size_t n;
    bool dead; /* until the next settle */
    uint32_t first, ntools;
    struct mo_vector8 vector;
};

struct tool {
    char *name;
    size_t n;
    uint32_t server;
    struct mo_vector8 own; /* meaning, without its server's share */
};

struct mo_route {
    const struct mo_vectors *vectors;
    struct mo_index index;
    struct server *servers;
    size_t nservers;
    /* Tools of a server are adjacent. The data that every request reads is kept
     * in separate arrays. */
    struct tool *tools;
    struct mo_vector8 *abouts; /* meaning, with its server's share */
    uint32_t *kinds;           /* of verbs in its name (verbs.h), TAKES_ */
    size_t ntools, cap_tools;
    /* Hash table of names, ignoring case: slot -> tool + 1, and the next tool
     * in the same slot. */
    uint32_t *name_slots, *next_named;
    size_t nname_slots;
    /* Of the current request, one per tool or server. */
    float *words, *scores;
    float *server_scores, *top_scores; /* top: score of its best tool */
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

/* Number of slots for so many names; fill the table (memory is allocated). */
size_t mo_route_name_slots(size_t ntools);
void mo_route_list_names(struct mo_route *r);
/* Raise the scores of tools that the request names; true if there are any. */
bool mo_route_raise_named(struct mo_route *r, struct mo_span request);

#endif
