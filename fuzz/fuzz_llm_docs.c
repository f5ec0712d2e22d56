/* Documents around a model: schemas for Gemini, refusals, lists of models,
 * conversations from the store, plain words. */
#include <stdlib.h>

#include "agent/llm/llm_priv.h"
#include "codec/text/utf8.h"

static void expect(bool ok)
{
    if (!ok)
        abort();
}

/* Translated once, nothing is left to translate. */
static void schema(struct mo_json v)
{
    struct mo_buf one, two;
    struct mo_json_doc doc;
    struct mo_err e;

    mo_buf_init(&one, 16 << 20);
    mo_buf_init(&two, 16 << 20);
    expect(mo_llm_gschema(v, &one) == 0);
    expect(mo_json_parse(mo_buf_view(&one), 0, &doc, &e) == 0);
    expect(mo_llm_gschema(doc.root, &two) == 0);
    expect(mo_json_parse(mo_buf_view(&two), 0, &doc, &e) == 0);
    mo_buf_fini(&one);
    mo_buf_fini(&two);
}

static void judge(struct mo_span in)
{
    struct mo_llm_hint h = {429, -1, -1};
    struct mo_llm_verdict v;

    mo_llm_judge("Them", &h, in, MO_SPAN("SECRET"), &v);
    expect(v.f.code && v.f.err.code < 0);
    expect(mo_utf8_valid(mo_span_cstr(v.f.err.msg)) || !mo_utf8_valid(in));
    expect(!strstr(v.f.err.msg, "SECRET"));
}

static int each(void *ctx, const struct mo_llm_model *m, double rank,
                struct mo_err *e)
{
    (void)ctx;
    (void)rank;
    (void)e;
    expect(m->id.n && m->name.n);
    return 0;
}

static void page(struct mo_span in)
{
    struct mo_span next;
    struct mo_arena a;
    struct mo_err e;

    for (int k = MO_LLM_CLAUDE; k <= MO_LLM_COMPATIBLE; k++) {
        mo_arena_init(&a, 16 << 20);
        (void)mo_llm_page((enum mo_llm_kind)k, in, &a, each, NULL, &next, &e);
        mo_arena_fini(&a);
    }
}

static void steps(struct mo_span in)
{
    struct mo_llm_step v[MO_LLM_STEPS_MAX];
    size_t n = mo_llm_demo_steps(in, v);

    expect(n <= MO_LLM_STEPS_MAX);
    for (size_t i = 0; i < n; i++)
        expect(v[i].said.n <= in.n && v[i].path.n <= in.n);
}

/* Entries as they may stand in a store somebody wrote to. */
static void ask(struct mo_span in)
{
    struct mo_span v[] = {
        MO_SPAN("{\"role\":\"user\",\"blocks\":[{\"type\":\"text\","
                "\"text\":\"a\"}]}"),
        in, in};
    struct mo_llm_request r = {.model = "m", .entries = v, .nentries = 3};

    for (int k = MO_LLM_CLAUDE; k <= MO_LLM_COMPATIBLE; k++) {
        struct mo_llm_ask q = {
            .kind = (enum mo_llm_kind)k, .url = "u", .r = &r};
        struct mo_json_doc doc;
        struct mo_arena a;
        struct mo_buf b;
        struct mo_err e;

        mo_arena_init(&a, 65536);
        mo_buf_init(&b, 64 << 20);
        if (mo_llm_ask_init(&q, &a, &e) == 0) {
            expect(mo_llm_wire(q.kind, "m")->put(&q, &b, &e) == 0);
            expect(mo_json_parse(mo_buf_view(&b), 0, &doc, &e) == 0);
        }
        mo_buf_fini(&b);
        mo_arena_fini(&a);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span in = mo_span((const char *)data, n);
    struct mo_json_doc doc;

    if (n == 0)
        return 0;
    judge(in);
    steps(in);
    if (mo_json_parse(in, 0, &doc, NULL) < 0)
        return 0;
    schema(doc.root);
    page(in);
    ask(in);
    return 0;
}
