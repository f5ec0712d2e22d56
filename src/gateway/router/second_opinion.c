#include "gateway/router/second_opinion.h"

#include <math.h>

#include "gateway/router/meta_tools_priv.h"
#include "gateway/router/router.h"

#define ARENA_MAX  ((size_t)1024 * 1024)
#define NEAR_LEAST (-1.5f) /* below: it is not known */
#define SPREAD_MIN 0.001f
#define MOST_SIGMA 2.0f

/* --- vectors of tools ---------------------------------------------------- */

static void put_tool_text(struct mo_buf *b, struct mo_span server,
                          struct mo_span tool, struct mo_span description)
{
    (void)mo_buf_span(b, server);
    (void)mo_buf_puts(b, ": ");
    (void)mo_buf_span(b, tool);
    (void)mo_buf_puts(b, ". ");
    (void)mo_buf_span(b, mo_span_head(description, EMBEDDINGS_TEXT_MAX));
}

void mo_second_opinion_want(struct embeddings *m, struct mo_span server,
                            const struct mo_route_tool *t)
{
    mo_autobuf struct mo_buf b = {.max = 2 * EMBEDDINGS_TEXT_MAX};

    if (!m)
        return;
    put_tool_text(&b, server, t->name, t->description);
    if (mo_buf_err(&b) == 0)
        mo_embeddings_want(m, mo_buf_view(&b));
}

static float near_of(struct embeddings *m, const struct mo_catalog *cat,
                     const struct embedding *words,
                     const struct mo_route_hit *h)
{
    const struct mo_cat_item *it = mo_meta_tools_find(cat, h->server, h->tool);
    mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};
    mo_autobuf struct mo_buf b = {.max = 2 * EMBEDDINGS_TEXT_MAX};
    struct mo_span about = {"", 0};
    struct mo_json text;

    if (!it)
        return -2;
    text = mo_json_get(it->item, "description");
    if (mo_json_is(text, MO_JSON_STRING))
        (void)mo_json_str(text, &a, &about);
    put_tool_text(&b, h->server, h->tool, about);
    if (mo_buf_err(&b) < 0)
        return -2;
    return mo_embedding_near(words, mo_embeddings_get(m, mo_buf_view(&b)));
}

/* --- an answer ----------------------------------------------------------- */

struct opinion {
    float near[MO_ROUTE_HITS_MAX];
    size_t n, best; /* n: hits whose vectors are known */
    float mean, spread;
};

static void form_opinion(struct embeddings *m, const struct mo_catalog *cat,
                         const struct embedding *words,
                         const struct mo_route_answer *a, struct opinion *o)
{
    float sum = 0, squares = 0;

    *o = (struct opinion){.n = 0};
    for (size_t i = 0; i < a->n; i++) {
        o->near[i] = near_of(m, cat, words, &a->hits[i]);
        if (o->near[i] < NEAR_LEAST)
            continue;
        if (o->n == 0 || o->near[i] > o->near[o->best])
            o->best = i;
        o->n++;
        sum += o->near[i];
        squares += o->near[i] * o->near[i];
    }
    if (o->n == 0)
        return;
    o->mean = sum / (float)o->n;
    o->spread = sqrtf(fmaxf(squares / (float)o->n - o->mean * o->mean, 0));
}

static void add_opinion(const struct opinion *o, struct mo_route_answer *a)
{
    for (size_t i = 0; i < a->n; i++) {
        float z = (o->near[i] - o->mean) / o->spread;

        if (o->near[i] >= NEAR_LEAST)
            a->hits[i].score +=
                OPINION_SCORE * fmaxf(fminf(z, MOST_SIGMA), -MOST_SIGMA);
        if (a->hits[i].confidence > OPINION_MOST)
            a->hits[i].confidence = OPINION_MOST;
    }
    for (size_t i = 1; i < a->n; i++) {
        struct mo_route_hit x = a->hits[i];
        size_t k = i;

        for (; k > 0 && a->hits[k - 1].score < x.score; k--)
            a->hits[k] = a->hits[k - 1];
        a->hits[k] = x;
    }
}

void mo_second_opinion_apply(struct embeddings *m, const struct mo_catalog *cat,
                             struct mo_span words, struct mo_route_answer *a)
{
    const struct embedding *v =
        m && !a->named && a->n > 1 ? mo_embeddings_get(m, words) : NULL;
    struct opinion o;

    if (!v)
        return;
    form_opinion(m, cat, v, a, &o);
    if (o.n < 2 || o.near[0] < NEAR_LEAST || o.spread < SPREAD_MIN)
        return;
    if (o.best != 0)
        add_opinion(&o, a);
    else if (a->hits[0].confidence < OPINION_MOST)
        a->hits[0].confidence =
            fminf(a->hits[0].confidence + OPINION_AGREES, OPINION_MOST);
}

/* --- a call that waits --------------------------------------------------- */

struct opinion_wait {
    struct embeddings_wait w;
    struct mo_gateway *g;
    struct mo_ep_call *c;
    void (*run)(struct mo_gateway *g, struct mo_ep_call *c);
};

static void release_call(struct mo_ep_call *c)
{
    c->data = NULL;
    c->canceled = NULL;
}

static void on_canceled(struct mo_ep_call *c)
{
    struct opinion_wait *x = c->data;

    release_call(c);
    mo_embeddings_leave(&x->w);
    mo_free(x);
    mo_ep_call_error(c, MO_RPC_INTERNAL, "cancelled", mo_span(NULL, 0));
}

static void on_opinion(struct embeddings_wait *w)
{
    struct opinion_wait x = *mo_container_of(w, struct opinion_wait, w);

    mo_free(mo_container_of(w, struct opinion_wait, w));
    release_call(x.c);
    x.run(x.g, x.c);
}

bool mo_second_opinion_wait(struct mo_gateway *g, struct mo_ep_call *c,
                            struct mo_span words,
                            void (*run)(struct mo_gateway *g,
                                        struct mo_ep_call *c))
{
    struct opinion_wait *x;

    if (!g->embeddings || !words.n)
        return false;
    x = mo_new(struct opinion_wait);
    if (!x)
        return false;
    *x =
        (struct opinion_wait){.w.done = on_opinion, .g = g, .c = c, .run = run};
    mo_list_init(&x->w.node);
    if (!mo_embeddings_ask(g->embeddings,
                           mo_span_head(words, MO_ROUTE_TEXT_MAX), &x->w)) {
        mo_free(x);
        return false;
    }
    c->data = x;
    c->canceled = on_canceled;
    return true;
}

bool mo_gateway_embeddings(const struct mo_gateway *g,
                           struct embeddings_stats *out)
{
    if (g->embeddings)
        *out = mo_embeddings_stats(g->embeddings);
    return g->embeddings != NULL;
}
