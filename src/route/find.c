/* find.c - search the index with a request.
 *
 * Every tool gets a score: its shared words, relative to the best tool's, plus
 * the similarity of meaning. Servers are ranked by their best tools. The
 * confidence depends on the best tool's similarity to the request and on its
 * lead over the best tool of another server, with constants fitted to labelled
 * requests (docs/router.md). */
#include <math.h>

#include "base/mem.h"
#include "route/route_priv.h"
#include "route/row.h"
#include "route/verbs.h"

#define MEANING_SCALE 0.3f
#define SERVER_MORE   0.02f /* weight of its second and third best tool */
#define SAME_VERB     0.1f
#define VERB_WORDS    6 /* of a request, searched for a verb */
#define VERB_BYTES    120
#define BASE          (-2.6f)
#define PER_MEANING   3.6f
#define PER_MARGIN    1.8f
#define SAME_SERVER   0.8f
#define STRANGE_NEAR  0.45f
#define STRANGE_MOST  0.3f
#define RIVALS        16

struct ask {
    struct mo_vector8 about;
    unsigned known, asked;   /* terms of the request: in the index, in all */
    uint32_t first;          /* the best server */
    uint32_t rivals[RIVALS]; /* servers with the best tools, best first */
    size_t nrivals;
};

/* --- scores -------------------------------------------------------------- */

static void score_tools(struct mo_route *r, struct mo_span request,
                        struct ask *a)
{
    struct mo_vector_sum sum = {.n = 0};
    struct mo_row_parts parts = {
        .scale = MEANING_SCALE,
        .kind = mo_verbs(mo_span_head(request, VERB_BYTES), VERB_WORDS),
        .bonus = SAME_VERB,
    };

    memset(r->words, 0, r->ntools * sizeof(*r->words));
    parts.most =
        mo_index_score(&r->index, request, r->words, &a->known, &a->asked);
    mo_route_add_text(r, request, &sum);
    mo_vector_norm(&sum);
    mo_vector_pack(sum.v, &a->about);
    mo_vector_dots(&a->about, r->abouts, r->ntools, r->scores);
    mo_row_join(&parts, r->words, r->verbs, r->scores, r->ntools);
}

/* A server's score is its best tool's plus a little of the next two. */
static void score_server(struct mo_route *r, uint32_t s)
{
    const struct server *v = &r->servers[s];
    float best[MO_ROW_BEST];

    mo_row_best(r->scores + v->first, v->ntools, best);
    r->top_scores[s] = r->server_scores[s] = best[0];
    for (unsigned i = 1; i < MO_ROW_BEST && i < v->ntools; i++)
        r->server_scores[s] += SERVER_MORE * best[i];
}

/* The server's best tool; the first among equals. It has at least one. */
static uint32_t top_tool(const struct mo_route *r, uint32_t s)
{
    uint32_t t = r->servers[s].first;

    while (r->scores[t] != r->top_scores[s])
        t++;
    return t;
}

/* --- confidence ---------------------------------------------------------- */

/* Two servers for the same purpose: either will do. */
static bool is_same_purpose(const struct mo_route *r, uint32_t a, uint32_t b)
{
    return r->vectors && mo_vector_dot(&r->servers[a].vector,
                                       &r->servers[b].vector) > SAME_SERVER;
}

/* The score of the best tool of any server for another purpose. Usually one of
 * the rivals. */
static float best_rival(const struct mo_route *r, const struct ask *a,
                        uint32_t server)
{
    float most = 0;

    for (size_t i = 0; i < a->nrivals; i++)
        if (a->rivals[i] != server && !is_same_purpose(r, a->rivals[i], server))
            return fmaxf(r->top_scores[a->rivals[i]], 0);
    for (uint32_t s = 0; s < r->nservers; s++)
        if (s != server && r->top_scores[s] > most &&
            !is_same_purpose(r, s, server))
            most = r->top_scores[s];
    return most;
}

static float confidence_of(const struct mo_route *r, const struct ask *a,
                           uint32_t t, float near)
{
    float ahead = r->scores[t] - best_rival(r, a, r->tools[t].server);
    float x = BASE + PER_MEANING * near + PER_MARGIN * ahead;
    float sure = 1.0f / (1.0f + expf(-x));

    /* no word of it is known: it may not be a request at all */
    if (a->known == 0 && near < STRANGE_NEAR && sure > STRANGE_MOST)
        sure = STRANGE_MOST;
    return sure;
}

static void fill_hit(const struct mo_route *r, const struct ask *a, uint32_t t,
                     struct mo_route_hit *h)
{
    uint32_t s = r->tools[t].server;
    float near = mo_vector_dot(&a->about, &r->tools[t].own);

    *h = (struct mo_route_hit){
        .server = server_name(r, s),
        .tool = tool_name(r, t),
        .confidence = confidence_of(r, a, t, near),
        .score = r->scores[t],
        .words = r->words[t],
        .meaning = near,
        .equal = s != a->first && is_same_purpose(r, s, a->first),
    };
}

/* A lower bound of the `max` best scores in the row, taken from the best
 * servers. Lower scores can be skipped. */
static float score_floor(const float *row, const struct ask *a, size_t max)
{
    float least = INFINITY;

    if (a->nrivals < max)
        return -INFINITY;
    for (size_t i = 0; i < max; i++)
        least = fminf(row[a->rivals[i]], least);
    return least;
}

int mo_route_find(struct mo_route *r, struct mo_span request, size_t limit,
                  struct mo_route_answer *out)
{
    uint32_t tools[MO_ROUTE_HITS_MAX], servers[MO_ROUTE_TOP_MAX];
    struct ask a;
    int rc = mo_route_settle(r);

    *out = (struct mo_route_answer){.n = 0};
    if (rc < 0)
        return rc;
    request = mo_span_head(request, MO_ROUTE_TEXT_MAX);
    limit = limit < MO_ROUTE_HITS_MAX ? limit : MO_ROUTE_HITS_MAX;
    score_tools(r, request, &a);
    out->named = mo_route_raise_named(r, request);
    for (uint32_t s = 0; s < r->nservers; s++)
        score_server(r, s);
    a.nrivals =
        mo_row_pick(r->top_scores, r->nservers, RIVALS, -INFINITY, a.rivals);
    out->n = mo_row_pick(r->scores, r->ntools, limit,
                         score_floor(r->top_scores, &a, limit), tools);
    out->nservers = mo_row_pick(
        r->server_scores, r->nservers, MO_ROUTE_TOP_MAX,
        score_floor(r->server_scores, &a, MO_ROUTE_TOP_MAX), servers);
    a.first = out->nservers ? servers[0] : 0;
    for (size_t i = 0; i < out->n; i++)
        fill_hit(r, &a, tools[i], &out->hits[i]);
    for (size_t i = 0; i < out->nservers; i++)
        if (r->servers[servers[i]].ntools)
            fill_hit(r, &a, top_tool(r, servers[i]), &out->servers[i]);
    return 0;
}
