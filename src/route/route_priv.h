/* route_priv.h - what route.c (what there is), find.c (what a request finds)
 * and named.c (what it names) share. */
#ifndef MO_ROUTE_ROUTE_PRIV_H
#define MO_ROUTE_ROUTE_PRIV_H

#include "route/index.h"
#include "route/route.h"

struct server {
    char *name;
    size_t n;
    bool dead; /* until the index is put in order */
    uint32_t first, ntools;
    struct mo_vector8 vector;
};

struct tool {
    char *name;
    size_t n;
    uint32_t server;
    struct mo_vector8 own; /* what it is about, without its server's share */
};

struct mo_route {
    const struct mo_vectors *vectors;
    struct mo_index index;
    struct server *servers;
    size_t nservers;
    /* Tools of a server follow each other. What every request looks at is in
     * rows of its own. */
    struct tool *tools;
    struct mo_vector8 *abouts; /* with its server's share */
    uint32_t *verbs;           /* what it does */
    size_t ntools, cap_tools;
    /* names, without regard to capitals -> tool + 1, and the next one whose
     * name falls together with it */
    uint32_t *name_slots, *next_named;
    size_t nname_slots;
    /* for the present request, one for each tool or server */
    float *words, *scores;
    float *server_scores, *top_scores; /* top: of its best tool */
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

/* Slots for so many names; the table of names, in memory that is there. */
size_t mo_route_name_slots(size_t ntools);
void mo_route_list_names(struct mo_route *r);
/* Raise the scores of tools that the request names. Any? */
bool mo_route_raise_named(struct mo_route *r, struct mo_span request);

#endif
