/* fuzz_route.c - any bytes as servers, tools and requests. The texts are what
 * stands between NUL bytes; nothing may be found that was not put in, scores
 * go down, confidence stays a share of one. */
#include <stdlib.h>

#include "route/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define ROWS  4
#define TOOLS 3

static void must(bool ok)
{
    if (!ok)
        abort();
}

static struct mo_vectors *small_vectors(void)
{
    static char table[12 + ROWS * (sizeof(float) + MO_VECTOR_DIM)];
    const uint32_t head[2] = {ROWS, MO_VECTOR_DIM};
    const float scale = 0.01f;
    char *rows = table + 12 + ROWS * sizeof(float);

    memcpy(table, "MSV1", 4);
    memcpy(table + 4, head, sizeof(head));
    for (size_t i = 0; i < ROWS; i++) {
        memcpy(table + 12 + i * sizeof(scale), &scale, sizeof(scale));
        rows[i * MO_VECTOR_DIM + i] = 100;
    }
    return mo_vectors_new(mo_span(table, sizeof(table)),
                          MO_SPAN("a\n##b\nc\n\xC3\xA6\n"), NULL);
}

static void check(const struct mo_route_answer *a, size_t tools)
{
    must(a->n <= tools);
    for (size_t i = 0; i < a->n; i++) {
        must(a->hits[i].confidence >= 0 && a->hits[i].confidence <= 1);
        must(i == 0 || a->hits[i].score <= a->hits[i - 1].score);
    }
    must(a->nservers <= 2);
}

static void put(struct mo_route *r, struct mo_span *rest, const char *name)
{
    struct mo_route_tool tools[TOOLS];
    struct mo_span params[TOOLS];
    struct mo_route_server s = {.name = mo_span_cstr(name),
                                .description = mo_span_cut(rest, '\0'),
                                .keywords = mo_span_cut(rest, '\0'),
                                .tools = tools,
                                .ntools = TOOLS};

    for (size_t i = 0; i < TOOLS; i++) {
        params[i] = mo_span_cut(rest, '\0');
        tools[i] = (struct mo_route_tool){
            mo_span_cut(rest, '\0'), mo_span_cut(rest, '\0'), &params[i], 1};
    }
    must(mo_route_put(r, &s) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct mo_route_answer a;
    struct mo_vectors *v = small_vectors();
    struct mo_route *r = mo_route_new(n % 2 ? v : NULL);
    struct mo_span rest = mo_span((const char *)data, n), request;

    must(v && r);
    request = mo_span_cut(&rest, '\0');
    put(r, &rest, "one");
    put(r, &rest, "two");
    must(mo_route_find(r, request, 10, &a) == 0);
    check(&a, 2 * TOOLS);
    put(r, &rest, "one"); /* another one of that name */
    mo_route_drop(r, MO_SPAN("two"));
    must(mo_route_find(r, request, 10, &a) == 0);
    check(&a, TOOLS);
    for (size_t i = 0; i < a.n; i++)
        must(mo_span_is(a.hits[i].server, "one"));
    mo_route_free(r);
    mo_vectors_free(v);
    return 0;
}
