/* A body continued from the last request equals one written from the start: for
 * all wires, over many conversations that grow, are cut back, are changed in
 * the middle, and get other tools. */
#include "agent/llm/llm_priv.h"
#include "mo_test.h"

#define ENTRIES_MAX 40
#define ENTRY_MAX   1024
#define MODEL       "m"

struct talk {
    enum mo_llm_kind kind;
    uint32_t seed;
    char text[ENTRIES_MAX][ENTRY_MAX];
    struct mo_span v[ENTRIES_MAX];
    uint64_t ids[ENTRIES_MAX], last_id;
    size_t n;
    bool numbered; /* entries have ids */
    bool other;    /* other tools */
    bool without;  /* no instructions */
    char base[MO_LLM_BASE_MAX];
    struct mo_llm_memo memo;
    unsigned took_up, took_entries;
};

static uint32_t roll(struct talk *t, uint32_t sides)
{
    t->seed = t->seed * 1664525u + 1013904223u;
    return (t->seed >> 8) % sides;
}

#define BY                                                                     \
    "\"by\":{\"provider\":\"%s\",\"model\":\"" MODEL                           \
    "\",\"url\":\"u\",\"base\":\"%s\"}"

/* Format arguments: provider, base, number. */
static const char *const kinds[] = {
    "{\"role\":\"user\",\"a\":\"%s%s\",\"blocks\":[{\"type\":\"text\","
    "\"text\":\"say %u \\\"x\\\"\"}]}",
    "{\"role\":\"user\",\"a\":\"%s%s\",\"blocks\":[{\"type\":\"text\","
    "\"text\":\"  \"}],\"n\":%u}",
    "{\"role\":\"user\",\"a\":\"%s%s\",\"blocks\":[{\"type\":\"image\","
    "\"mimeType\":\"image/png\",\"data\":\"AAAA\"},{\"type\":\"text\",\"text\":"
    "\"%u\"}]}",
    "{\"role\":\"assistant\",\"a\":\"%s%s\",\"blocks\":[{\"type\":\"text\","
    "\"text\":\"foreign %u\"}]}",
    "{\"role\":\"assistant\"," BY ",\"blocks\":[{\"type\":\"thinking\",\"text\""
    ":\"t\",\"raw\":{\"type\":\"thinking\",\"reasoning\":\"r\"}},{\"type\":"
    "\"text\",\"text\":\"own %u\",\"raw\":{\"type\":\"text\",\"text\":\"o\"}}"
    "]}",
    "{\"role\":\"assistant\"," BY ",\"stop\":\"refused\",\"blocks\":[{\"type\":"
    "\"text\",\"text\":\"no %u\"}]}",
    "{\"role\":\"assistant\"," BY ",\"blocks\":[{\"type\":\"call\",\"key\":"
    "\"k\",\"id\":\"own%u\",\"name\":\"w\",\"args\":{\"a\":1},\"raw\":{"
    "\"type\":\"tool_use\",\"id\":\"i\",\"name\":\"w\",\"input\":{}}}]}",
    "{\"role\":\"assistant\",\"a\":\"%s%s\",\"blocks\":[{\"type\":\"text\","
    "\"text\":\" \"},{\"type\":\"call\",\"key\":\"k\",\"name\":\"w\",\"args\":{"
    "\"a\":%u}},{\"type\":\"call\",\"key\":\"k2\",\"name\":\"x\",\"args\":{}}]"
    "}",
    "{\"role\":\"tool\",\"a\":\"%s%s\",\"results\":[{\"key\":\"k\",\"name\":"
    "\"w\",\"isError\":false,\"content\":[{\"type\":\"text\",\"text\":\"%u\"},"
    "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"AAAA\"}]}]}",
    "{\"role\":\"tool\",\"a\":\"%s%s\",\"results\":[],\"n\":%u}",
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void set(struct talk *t, size_t i, size_t kind)
{
    int n = snprintf(t->text[i], ENTRY_MAX, kinds[kind],
                     mo_llm_kind_name(t->kind), t->base, roll(t, 1000));

    assert_true(n > 0 && n < ENTRY_MAX);
    t->v[i] = mo_span(t->text[i], (size_t)n);
    t->ids[i] = ++t->last_id;
}
#pragma GCC diagnostic pop

static void add(struct talk *t)
{
    size_t kind = t->n ? roll(t, MO_COUNT(kinds)) : 0;

    set(t, t->n++, kind);
}

/* Changes as a chat makes them, and others it never makes. */
static void change(struct talk *t)
{
    uint32_t what = roll(t, 24);

    if (what == 0 && t->n > 2)
        t->n -= 1 + roll(t, 2);
    else if (what == 1)
        set(t, 0, 0);
    else if (what == 2 && t->n > 1)
        set(t, 1 + roll(t, (uint32_t)t->n - 1), roll(t, MO_COUNT(kinds)));
    else if (what == 3)
        t->other = !t->other;
    else if (what == 4)
        t->without = !t->without;
    for (uint32_t more = roll(t, 4); more > 0 && t->n < ENTRIES_MAX; more--)
        add(t);
    if (t->n == 0)
        add(t);
}

static const struct mo_llm_tool tools[] = {
    {MO_SPAN("w"), MO_SPAN("d"), MO_SPAN("{\"type\":\"object\"}")},
    {MO_SPAN("w"), MO_SPAN("d"), MO_SPAN("{\"title\":\"another\"}")},
    {MO_SPAN("w"), MO_SPAN("d"), MO_SPAN("{\"type\":\"object\"}"),
     MO_SPAN("d1")},
    {MO_SPAN("w"), MO_SPAN("d"), MO_SPAN("{\"title\":\"another\"}"),
     MO_SPAN("d2")},
};

static int write_body(struct talk *t, bool kept, bool quiet, struct mo_buf *out)
{
    struct mo_llm_request r = {
        .model = MODEL,
        .system = t->without ? MO_SPAN("") : MO_SPAN("s"),
        .tools = &tools[(t->other ? 1 : 0) + (t->numbered ? 2 : 0)],
        .ntools = 1,
        .entries = t->v,
        .nentries = t->n,
        .ids = t->numbered ? t->ids : NULL,
        .quiet = quiet,
    };
    struct mo_llm_ask q = {.kind = t->kind, .url = "u", .r = &r};
    struct mo_arena a;
    struct mo_err e;
    int rc;

    mo_arena_init(&a, 65536);
    if (kept)
        mo_llm_memo_find(&t->memo, &q, out);
    t->took_up += q.from.len > 0;
    t->took_entries += q.from.entry > 0;
    rc = mo_llm_ask_init(&q, &a, &e);
    if (rc == 0)
        rc = mo_llm_wire(t->kind, MODEL)->put(&q, out, &e);
    if (rc == 0 && kept)
        mo_llm_memo_keep(&t->memo, &q, out);
    if (rc == 0 && !quiet)
        memcpy(t->base, q.base, sizeof(t->base));
    mo_arena_fini(&a);
    return rc;
}

static void same_bodies(struct talk *t, bool quiet)
{
    struct mo_buf whole, kept;
    char was[MO_LLM_BASE_MAX];
    int rc;

    mo_buf_init(&whole, 1 << 20);
    mo_buf_init(&kept, 1 << 20);
    rc = write_body(t, false, quiet, &whole);
    memcpy(was, t->base, sizeof(was));
    assert_int_equal(write_body(t, true, quiet, &kept), rc);
    if (rc == 0 && !mo_span_eq(mo_buf_view(&whole), mo_buf_view(&kept)))
        fail_msg("%s, %zu entries: %s\nis not %s", mo_llm_kind_name(t->kind),
                 t->n, mo_buf_cstr(&kept), mo_buf_cstr(&whole));
    assert_memory_equal(was, t->base, sizeof(was));
    mo_buf_fini(&whole);
    mo_buf_fini(&kept);
}

static const enum mo_llm_kind wires[] = {MO_LLM_CLAUDE, MO_LLM_GEMINI,
                                         MO_LLM_OPENAI, MO_LLM_COMPATIBLE};

static void taken_up_is_the_same(void **state)
{
    static struct talk t;

    (void)state;
    for (uint32_t run = 0; run < 160; run++) {
        t = (struct talk){.kind = wires[run % MO_COUNT(wires)],
                          .seed = run,
                          .numbered = run / MO_COUNT(wires) % 2};
        mo_llm_memo_init(&t.memo);
        while (t.n < ENTRIES_MAX) {
            change(&t);
            same_bodies(&t, roll(&t, 8) == 0);
        }
        check_row(mo_llm_kind_name(t.kind), t.took_up > 0);
        mo_buf_fini(&t.memo.text);
    }
}

/* In a growing conversation only the last step is written. */
static void it_is_taken_up(void **state)
{
    static const size_t order[] = {0, 4, 0, 6, 8, 4};
    static struct talk t;

    (void)state;
    for (size_t w = 0; w < MO_COUNT(wires); w++) {
        t = (struct talk){.kind = wires[w], .numbered = true};
        mo_llm_memo_init(&t.memo);
        for (size_t i = 0; i < ENTRIES_MAX; i++) {
            set(&t, t.n++, order[i % MO_COUNT(order)]);
            if (order[i % MO_COUNT(order)] != 4 &&
                order[i % MO_COUNT(order)] != 6)
                same_bodies(&t, false);
        }
        assert_true(t.took_up >= ENTRIES_MAX / 2 - 1);
        assert_true(t.took_entries > ENTRIES_MAX / 3);
        assert_true(t.memo.knot.entry + 8 > t.n);
        mo_buf_fini(&t.memo.text);
    }
}

/* A body over the limit is not kept. */
static void long_ones_are_not_kept(void **state)
{
    static const char begin[] =
        "{\"role\":\"user\",\"blocks\":[{\"type\":\"text\",\"text\":\"";
    static struct talk t;
    struct mo_buf b;
    char *text = mo_alloc(300000);

    (void)state;
    assert_non_null(text);
    t = (struct talk){.kind = MO_LLM_CLAUDE};
    mo_llm_memo_init(&t.memo);
    add(&t);
    set(&t, t.n++, 3);
    memset(text, 'a', 300000);
    memcpy(text, begin, sizeof(begin) - 1);
    memcpy(text + 300000 - 4, "\"}]}", 4);
    t.v[0] = mo_span(text, 300000);
    for (int i = 0; i < 6; i++) {
        set(&t, t.n++, i % 2 ? 3 : 0);
        mo_buf_init(&b, 1 << 20);
        assert_int_equal(write_body(&t, true, false, &b), 0);
        mo_buf_fini(&b);
    }
    assert_int_equal(t.memo.text.len, 0);
    mo_buf_fini(&t.memo.text);
    mo_free(text);
}

static void grow(void *ctx)
{
    struct talk *t = ctx;
    struct mo_buf b, whole;

    *t = (struct talk){.kind = t->kind, .numbered = true, .seed = 7};
    mo_llm_memo_init(&t->memo);
    for (int i = 0; i < 4; i++) {
        add(t);
        add(t);
        mo_buf_init(&b, 1 << 20);
        mo_buf_init(&whole, 1 << 20);
        if (write_body(t, true, false, &b) == 0 &&
            write_body(t, false, false, &whole) == 0)
            assert_true(mo_span_eq(mo_buf_view(&b), mo_buf_view(&whole)));
        mo_buf_fini(&b);
        mo_buf_fini(&whole);
    }
    mo_buf_fini(&t->memo.text);
}

static void without_memory(void **state)
{
    static struct talk t;

    (void)state;
    for (size_t w = 0; w < MO_COUNT(wires); w++) {
        t.kind = wires[w];
        torture(grow, &t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken_up_is_the_same),
        cmocka_unit_test(it_is_taken_up),
        cmocka_unit_test(long_ones_are_not_kept),
        cmocka_unit_test(without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
