/* A provider's stream: pieces must not matter; what becomes a reply is good
 * JSON and can be sent back, to the same provider and to any other. */
#include <stdlib.h>

#include "agent/llm/llm_priv.h"

#define EVENT_MAX ((size_t)16 * 1024)

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static const struct mo_llm_by by[] = {
    {"claude", "m", "u"},
    {"gemini", "m", "u"},
    {"openai", "gpt-6", "u"},
    {"compatible", "m", "u"},
};
static const enum mo_llm_kind kinds[] = {MO_LLM_CLAUDE, MO_LLM_GEMINI,
                                         MO_LLM_OPENAI, MO_LLM_COMPATIBLE};

static void on_delta(void *ctx, struct mo_span s)
{
    (void)mo_buf_span(ctx, s);
}

static const struct mo_llm_cb cb = {on_delta, on_delta, NULL, NULL};

/* What came of it, and all that was shown. */
static void run(struct mo_span in, size_t which, size_t step,
                struct mo_buf *entry, struct mo_buf *shown)
{
    struct mo_sse_event ev;
    struct mo_llm_reply r;
    struct mo_llm_in x;
    struct mo_sse sse;
    struct mo_err e;
    bool bad = false;

    mo_buf_init(entry, 4 * MO_LLM_REPLY_MAX);
    mo_buf_init(shown, MO_LLM_REPLY_MAX);
    mo_sse_init(&sse, EVENT_MAX);
    mo_llm_in_init(&x, mo_llm_wire(kinds[which], by[which].model), kinds[which],
                   &cb, shown);
    memcpy(x.key, "k", 2);
    for (; in.n && !bad && !x.whole; in = mo_span_skip(in, step)) {
        struct mo_span piece = mo_span_head(in, step);

        while (!bad && !x.whole) {
            enum mo_sse_result got = mo_sse_next(&sse, &piece, &ev, &e);

            if (got == MO_SSE_MORE)
                break;
            bad = got == MO_SSE_ERROR || mo_llm_event(&x, ev.data, &e) < 0;
        }
    }
    if (!bad && mo_llm_in_reply(&x, &by[which], &r, &e) == 0) {
        expect(r.ncalls <= MO_LLM_CALLS_MAX);
        (void)mo_buf_span(entry, r.entry);
    }
    mo_llm_in_fini(&x);
    mo_sse_fini(&sse);
}

static void send_back(struct mo_span entry, size_t to)
{
    struct mo_span v[] = {
        MO_SPAN("{\"role\":\"user\",\"blocks\":[{\"type\":\"text\","
                "\"text\":\"a\"}]}"),
        entry};
    struct mo_llm_request rq = {
        .model = by[to].model, .entries = v, .nentries = 2};
    struct mo_llm_ask q = {.kind = kinds[to], .url = "u", .r = &rq};
    struct mo_json_doc doc;
    struct mo_arena a;
    struct mo_buf b;
    struct mo_err e;

    mo_arena_init(&a, 65536);
    mo_buf_init(&b, MO_LLM_REQUEST_MAX);
    expect(mo_llm_ask_init(&q, &a, &e) == 0);
    expect(mo_llm_wire(q.kind, rq.model)->put(&q, &b, &e) == 0);
    expect(mo_json_parse(mo_buf_view(&b), 0, &doc, &e) == 0);
    mo_buf_fini(&b);
    mo_arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span in = mo_span((const char *)data, n);
    struct mo_buf a, b, shown_a, shown_b;
    struct mo_json_doc doc;
    struct mo_err e;
    size_t which;

    if (n < 2)
        return 0;
    which = data[0] % MO_COUNT(kinds);
    in = mo_span_skip(in, 1);
    run(in, which, in.n, &a, &shown_a);
    run(in, which, 1 + data[0] / 64, &b, &shown_b);
    expect(mo_span_eq(mo_buf_view(&a), mo_buf_view(&b)));
    expect(mo_span_eq(mo_buf_view(&shown_a), mo_buf_view(&shown_b)));
    if (a.len) {
        expect(mo_json_parse(mo_buf_view(&a), 0, &doc, &e) == 0);
        for (size_t to = 0; to < MO_COUNT(kinds); to++)
            send_back(mo_buf_view(&a), to);
    }
    mo_buf_fini(&a);
    mo_buf_fini(&b);
    mo_buf_fini(&shown_a);
    mo_buf_fini(&shown_b);
    return 0;
}
