/* find.c - what a request finds.
 *
 * Every tool gets a score: its share of words, next to the best one's, plus
 * what it is about. Servers are ranked by their best tools. How sure we are
 * depends on how near the best tool is to the request, and how far behind it
 * the best one of another server: constants fitted on labelled requests
 * (docs/router.md). */
#include <math.h>

#include "base/mem.h"
#include "route/route_priv.h"
#include "route/verbs.h"

#define MEANING_SCALE 0.3f
#define SERVER_MORE   0.02f /* what its second and third best tool add */
#define SAME_VERB     0.1f
#define VERB_WORDS    6 /* of a request, in which its verb is looked for */
#define VERB_BYTES    120
#define BASE          (-2.6f)
#define PER_MEANING   3.6f
#define PER_MARGIN    1.8f
#define NAMED         10.0f /* more than any score */
#define SAME_SERVER   0.8f
#define STRANGE_NEAR  0.45f
#define STRANGE_MOST  0.3f

struct ask {
    struct mo_vector8 about;
    unsigned known, asked; /* terms of the request, in the index and in all */
    uint32_t first;        /* the best server */
};

/* --- scores -------------------------------------------------------------- */

static void score_tools(struct mo_route *r, struct mo_span request,
                        struct ask *a)
{
    struct mo_vector_sum sum = {.n = 0};
    unsigned verbs = mo_verbs(mo_span_head(request, VERB_BYTES), VERB_WORDS);
    float most;

    memset(r->words, 0, r->ntools * sizeof(*r->words));
    most = mo_index_score(&r->index, request, r->words, &a->known, &a->asked);
    mo_route_add_text(r, request, &sum);
    mo_vector_norm(&sum);
    mo_vector_pack(sum.v, &a->about);
    if (r->ntools)
        mo_vector_dots(&a->about, &r->tools[0].both, sizeof(*r->tools),
                       r->ntools, r->scores);
    for (size_t i = 0; i < r->ntools; i++) {
        if (most > 0 && r->words[i] != 0)
            r->words[i] /= most;
        r->scores[i] = r->words[i] + r->scores[i] / MEANING_SCALE;
        if (r->tools[i].verbs & verbs)
            r->scores[i] += SAME_VERB;
    }
}

/* Tool t among the best of its server, if it is. */
static void keep(const struct mo_route *r, struct best *b, uint32_t t)
{
    unsigned at = b->n;

    while (at > 0 && r->scores[t] > r->scores[b->tool[at - 1]])
        at--;
    if (at == BEST)
        return;
    if (b->n < BEST)
        b->n++;
    for (unsigned i = b->n - 1; i > at; i--)
        b->tool[i] = b->tool[i - 1];
    b->tool[at] = t;
}

static void score_servers(struct mo_route *r)
{
    memset(r->best, 0, r->nservers * sizeof(*r->best));
    for (uint32_t t = 0; t < r->ntools; t++)
        keep(r, &r->best[r->tools[t].server], t);
    for (size_t s = 0; s < r->nservers; s++) {
        const struct best *b = &r->best[s];
        float sum = b->n ? r->scores[b->tool[0]] : -INFINITY;

        for (unsigned i = 1; i < b->n; i++)
            sum += SERVER_MORE * r->scores[b->tool[i]];
        r->server_scores[s] = sum;
    }
}

/* Numbers of the `max` best, best first; of equals the first. How many. */
static size_t pick(const float *scores, size_t n, size_t max, uint32_t *out)
{
    size_t have = 0;

    for (uint32_t i = 0; i < n; i++) {
        size_t at = have;

        while (at > 0 && scores[i] > scores[out[at - 1]])
            at--;
        if (at == max)
            continue;
        if (have < max)
            have++;
        for (size_t k = have - 1; k > at; k--)
            out[k] = out[k - 1];
        out[at] = i;
    }
    return have;
}

/* --- said by name -------------------------------------------------------- */

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || (c & 0x80) || strchr("_-./:", c);
}

/* A word that nobody writes by chance: a_b, a-b-c, a/b, a:b, aB. Names of
 * products look like AaBb, and people join two words by a hyphen. */
static bool is_telling(struct mo_span w)
{
    bool small = w.n && w.p[0] >= 'a' && w.p[0] <= 'z';
    unsigned hyphens = 0;

    for (size_t i = 1; i + 1 < w.n; i++) {
        if (strchr("_/:", w.p[i]) || (small && w.p[i] >= 'A' && w.p[i] <= 'Z'))
            return true;
        hyphens += w.p[i] == '-';
    }
    return hyphens > 1;
}

/* w is the tool's name, perhaps behind its server's: files/read, files.read,
 * files:read, files__read. */
static bool is_named(const struct mo_route *r, uint32_t t, struct mo_span w)
{
    struct mo_span name = tool_name(r, t);
    struct mo_span server = server_name(r, r->tools[t].server);
    struct mo_span mid;

    if (mo_span_ieq(w, name))
        return true;
    if (w.n <= server.n + name.n ||
        !mo_span_ieq(mo_span_head(w, server.n), server) ||
        !mo_span_ieq(mo_span_skip(w, w.n - name.n), name))
        return false;
    mid = mo_span_skip(mo_span_head(w, w.n - name.n), server.n);
    return (mid.n == 1 && strchr("/.:_", mid.p[0])) || mo_span_is(mid, "__");
}

/* Every tool that a word of the request names gets ahead of all others. */
static bool raise_named(struct mo_route *r, struct mo_span w)
{
    bool any = false;

    for (uint32_t t = 0; t < r->ntools; t++) {
        if (!is_named(r, t, w))
            continue;
        r->scores[t] += NAMED;
        any = true;
    }
    return any;
}

/* The next run of bytes that names are made of, without the sentence's own
 * signs behind it; empty: there is none. */
static struct mo_span next_name(struct mo_span *rest)
{
    struct mo_span w;
    size_t n = 0;

    while (rest->n && !is_name_byte(rest->p[0]))
        *rest = mo_span_skip(*rest, 1);
    while (n < rest->n && is_name_byte(rest->p[n]))
        n++;
    w = mo_span_head(*rest, n);
    *rest = mo_span_skip(*rest, n);
    while (w.n && strchr(".:/-", w.p[w.n - 1]))
        w.n--;
    return w;
}

static bool find_named(struct mo_route *r, struct mo_span request)
{
    struct mo_span all = mo_span_trim(request), rest = all;
    bool any = false;

    while (rest.n) {
        struct mo_span w = next_name(&rest);

        if (w.n > 1 && (w.n == all.n || is_telling(w)))
            any |= raise_named(r, w);
    }
    return any;
}

/* --- how sure ------------------------------------------------------------ */

/* Two servers for the same purpose: one is as good as the other. */
static bool is_same(const struct mo_route *r, uint32_t a, uint32_t b)
{
    return r->vectors && mo_vector_dot(&r->servers[a].vector,
                                       &r->servers[b].vector) > SAME_SERVER;
}

/* The score of the best tool that a server for another purpose has. */
static float rival(const struct mo_route *r, uint32_t server)
{
    float most = 0;

    for (uint32_t s = 0; s < r->nservers; s++) {
        float best = r->best[s].n ? r->scores[r->best[s].tool[0]] : 0;

        if (s != server && best > most && !is_same(r, s, server))
            most = best;
    }
    return most;
}

static float surety(const struct mo_route *r, const struct ask *a, uint32_t t,
                    float near)
{
    float ahead = r->scores[t] - rival(r, r->tools[t].server);
    float x = BASE + PER_MEANING * near + PER_MARGIN * ahead;
    float sure = 1.0f / (1.0f + expf(-x));

    /* not one word of it is known here: it may be no request at all */
    if (a->known == 0 && near < STRANGE_NEAR && sure > STRANGE_MOST)
        sure = STRANGE_MOST;
    return sure;
}

static void tell(const struct mo_route *r, const struct ask *a, uint32_t t,
                 struct mo_route_hit *h)
{
    uint32_t s = r->tools[t].server;
    float near = mo_vector_dot(&a->about, &r->tools[t].own);

    *h = (struct mo_route_hit){
        .server = server_name(r, s),
        .tool = tool_name(r, t),
        .confidence = surety(r, a, t, near),
        .score = r->scores[t],
        .words = r->words[t],
        .meaning = near,
        .equal = s != a->first && is_same(r, s, a->first),
    };
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
    score_tools(r, request, &a);
    out->named = find_named(r, request);
    score_servers(r);
    out->n = pick(r->scores, r->ntools,
                  limit < MO_ROUTE_HITS_MAX ? limit : MO_ROUTE_HITS_MAX, tools);
    out->nservers =
        pick(r->server_scores, r->nservers, MO_ROUTE_TOP_MAX, servers);
    a.first = out->nservers ? servers[0] : 0;
    for (size_t i = 0; i < out->n; i++)
        tell(r, &a, tools[i], &out->hits[i]);
    for (size_t i = 0; i < out->nservers; i++)
        if (r->best[servers[i]].n)
            tell(r, &a, r->best[servers[i]].tool[0], &out->servers[i]);
    return 0;
}
