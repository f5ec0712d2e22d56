/* find.c - search the index with a request.
 *
 * Every tool gets a score: its shared words, relative to the best tool's, plus
 * the similarity of meaning. Servers are ranked by their best tools. The
 * confidence depends on the best tool's similarity to the request and on its
 * lead over the best tool of another server, with constants fitted to labelled
 * requests (docs/router.md). */
#include <math.h>

#include "base/mem.h"
#include "route/request.h"
#include "route/route_priv.h"
#include "route/row.h"
#include "route/verbs.h"

#define MEANING_SCALE 0.3f
#define SERVER_MORE   0.02f /* weight of its second and third best tool */
#define SAME_VERB     0.1f
#define OTHER_VERB    (-0.05f)
#define WITHIN_VERB   1.0f /* among the tools of a server */
#define WITHIN_READ   0.5f /* the same, for what a question asks */
#define SAME_ARGUMENT 0.3f /* it takes the address or file in the request */
#define MORE_WORDS    0.8f /* weight of related words */
#define MORE_MEANING  0.5f
#define MORE_SHORT    6.0f /* words; in a longer request they fade */
#define BASE          (-2.6f)
#define PER_MEANING   3.6f
#define PER_MARGIN    1.8f
#define TOOL_BASE     0.5f
#define PER_TOOL_LEAD 5.0f
#define TWIN          0.93f
#define SAME_SERVER   0.8f
#define STRANGE_NEAR  0.45f
#define STRANGE_MOST  0.3f
#define RIVALS        16

struct ask {
    struct mo_vector8 about;
    struct mo_verbs_asked verbs;
    float share;             /* of the related words */
    unsigned known, asked;   /* terms of the request: in the index, in all */
    uint32_t first;          /* the best server */
    uint32_t rivals[RIVALS]; /* servers with the best tools, best first */
    size_t nrivals;
};

/* --- scores -------------------------------------------------------------- */

/* Weight of the related words: a long request says enough by itself. */
static float more_share(const struct mo_request *q)
{
    float n = (float)q->words;

    return n > MORE_SHORT ? (MORE_SHORT / n) * (MORE_SHORT / n) : 1;
}

/* Meaning of the request; its related words count less. */
static void request_vector(const struct mo_route *r, const struct mo_request *q,
                           struct mo_vector8 *out)
{
    struct mo_vector_sum sum = {.n = 0}, more = {.n = 0};
    float share = more_share(q);

    mo_route_add_text(r, mo_span(q->text, q->n), &sum);
    mo_vector_norm(&sum);
    if (q->nmore) {
        mo_route_add_text(r, mo_span(q->more, q->nmore), &more);
        mo_vector_norm(&more);
        for (size_t i = 0; i < MO_VECTOR_DIM; i++)
            sum.v[i] += share * MORE_MEANING * more.v[i];
        sum.n = 1;
        mo_vector_norm(&sum);
    }
    mo_vector_pack(sum.v, out);
}

static void score_tools(struct mo_route *r, struct mo_span request,
                        struct ask *a)
{
    struct mo_request q;
    struct mo_row_parts parts = {.scale = MEANING_SCALE};

    mo_request_read(request, &q);
    a->verbs = q.verbs;
    a->share = more_share(&q);
    parts.v[0].kinds = q.verbs.kinds;
    parts.v[0].bonus = SAME_VERB;
    parts.v[1].kinds = q.verbs.kinds ? ~q.verbs.kinds & KINDS_OF_VERB : 0;
    parts.v[1].bonus = OTHER_VERB;
    parts.v[2].kinds =
        (q.address ? TAKES_ADDRESS : 0) | (q.file ? TAKES_FILE : 0);
    parts.v[2].bonus = SAME_ARGUMENT;
    memset(r->words, 0, r->ntools * sizeof(*r->words));
    parts.most = mo_index_score(&r->index, mo_span(q.text, q.n), r->words,
                                &a->known, &a->asked);
    if (q.nmore)
        parts.most = mo_index_score_more(&r->index, mo_span(q.more, q.nmore),
                                         more_share(&q) * MORE_WORDS, r->words);
    request_vector(r, &q, &a->about);
    mo_vector_dots(&a->about, r->abouts, r->ntools, r->scores);
    mo_row_join(&parts, r->words, r->kinds, r->scores, r->ntools);
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

/* Put the tools of a server in order by their verbs, which decide more among
 * tools for the same things than among servers. Its best score stays. */
static void order_by_verb(struct mo_route *r, const struct ask *a, uint32_t s)
{
    const struct server *v = &r->servers[s];
    uint32_t best = v->first;

    for (uint32_t t = v->first; t < v->first + v->ntools; t++) {
        if (r->kinds[t] & a->verbs.against && !(r->kinds[t] & a->verbs.kinds))
            r->scores[t] -= a->share * WITHIN_VERB;
        if (a->verbs.question && r->kinds[t] & MO_VERB_READ)
            r->scores[t] += a->share * WITHIN_READ;
        if (r->scores[t] > r->scores[best])
            best = t;
    }
    for (uint32_t t = v->first; t < v->first + v->ntools; t++)
        if (t != best)
            r->scores[t] += r->top_scores[s] - r->scores[best];
    r->scores[best] = r->top_scores[s];
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

/* Two tools of a server that do almost the same: either will do. */
static bool is_twin(const struct mo_route *r, uint32_t a, uint32_t b)
{
    return r->vectors && r->kinds[a] == r->kinds[b] &&
           mo_vector_dot(&r->tools[a].own, &r->tools[b].own) > TWIN;
}

/* How likely a tool is the right one of its server: by its lead over the best
 * other tool there that does something else. */
static float tool_share(const struct mo_route *r, uint32_t t)
{
    const struct server *v = &r->servers[r->tools[t].server];
    float most = -INFINITY;

    for (uint32_t i = v->first; i < v->first + v->ntools; i++)
        if (i != t && r->scores[i] > most && !is_twin(r, t, i))
            most = r->scores[i];
    return 1.0f /
           (1.0f + expf(-(TOOL_BASE + PER_TOOL_LEAD * (r->scores[t] - most))));
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

/* The hits of an answer: sure of the tool, not only of its server. None is more
 * likely than one before it. */
static void fill_tools(const struct mo_route *r, const struct ask *a,
                       const uint32_t *tools, struct mo_route_answer *out)
{
    float most = 1;

    for (size_t i = 0; i < out->n; i++) {
        struct mo_route_hit *h = &out->hits[i];

        fill_hit(r, a, tools[i], h);
        h->confidence = fminf(h->confidence * tool_share(r, tools[i]), most);
        most = h->confidence;
    }
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
    for (size_t i = 0; i < a.nrivals && a.verbs.against && !out->named; i++)
        if (r->servers[a.rivals[i]].ntools)
            order_by_verb(r, &a, a.rivals[i]);
    out->n = mo_row_pick(r->scores, r->ntools, limit,
                         score_floor(r->top_scores, &a, limit), tools);
    out->nservers = mo_row_pick(
        r->server_scores, r->nservers, MO_ROUTE_TOP_MAX,
        score_floor(r->server_scores, &a, MO_ROUTE_TOP_MAX), servers);
    a.first = out->nservers ? servers[0] : 0;
    fill_tools(r, &a, tools, out);
    for (size_t i = 0; i < out->nservers; i++)
        if (r->servers[servers[i]].ntools)
            fill_hit(r, &a, top_tool(r, servers[i]), &out->servers[i]);
    return 0;
}
