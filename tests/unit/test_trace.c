/* Trace contexts: what has the form of one, where it is looked for. ' is
 * written for ". */
#include "mo_test.h"
#include "trace/context.h"

#define ID     "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN   "00f067aa0ba902b7"
#define PARENT "00-" ID "-" SPAN "-01"
#define OTHER  "00-11112222333344445555666677778888-" SPAN "-00"

static const struct {
    const char *name;
    enum mo_trace_key key;
    const char *value;
    bool good;
} forms[] = {
    {"usual", MO_TRACE_PARENT, PARENT, true},
    {"a newer version", MO_TRACE_PARENT, "01-" ID "-" SPAN "-01", true},
    {"and more", MO_TRACE_PARENT, "cc-" ID "-" SPAN "-01-what-ever", true},
    {"more of the first version", MO_TRACE_PARENT, PARENT "-x", false},
    {"more without a dash", MO_TRACE_PARENT, "cc-" ID "-" SPAN "-01x", false},
    {"version ff", MO_TRACE_PARENT, "ff-" ID "-" SPAN "-01", false},
    {"capitals", MO_TRACE_PARENT,
     "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01", false},
    {"no trace", MO_TRACE_PARENT,
     "00-00000000000000000000000000000000-" SPAN "-01", false},
    {"no span", MO_TRACE_PARENT, "00-" ID "-0000000000000000-01", false},
    {"short", MO_TRACE_PARENT, "00-" ID "-" SPAN "-1", false},
    {"dots", MO_TRACE_PARENT, "00." ID "." SPAN ".01", false},
    {"nothing", MO_TRACE_PARENT, "", false},
    {"one state", MO_TRACE_STATE, "congo=t61rcWkgMzE", true},
    {"states", MO_TRACE_STATE, "rojo=00f067aa0ba902b7, t@v=a b,,", true},
    {"no value", MO_TRACE_STATE, "rojo=", false},
    {"no key", MO_TRACE_STATE, "=x", false},
    {"a capital key", MO_TRACE_STATE, "Rojo=1", false},
    {"two values", MO_TRACE_STATE, "a=b=c", false},
    {"a line end", MO_TRACE_STATE, "a=b\nc", false},
    {"one bag", MO_TRACE_BAGGAGE, "userId=alice", true},
    {"bags", MO_TRACE_BAGGAGE, "a=1;p;q=2 , b = %20x", true},
    {"an empty value", MO_TRACE_BAGGAGE, "a=", true},
    {"no pair", MO_TRACE_BAGGAGE, "a", false},
    {"a blank", MO_TRACE_BAGGAGE, "a=b c", false},
    {"a quote", MO_TRACE_BAGGAGE, "a=\"b\"", false},
    {"an empty member", MO_TRACE_BAGGAGE, "a=1,,b=2", false},
    {"beyond ASCII", MO_TRACE_BAGGAGE, "a=\xc3\xa9", false},
};

static void test_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(forms); i++)
        check_row(forms[i].name,
                  mo_trace_is(forms[i].key, mo_span_cstr(forms[i].value)) ==
                      forms[i].good);
}

/* Head and _meta in, "parent;state;baggage" out. */
static const struct {
    const char *name;
    const char *head[4][2];
    const char *meta, *want;
} rows[] = {
    {"nothing", {{"Host", "x"}}, "", ";;"},
    {"all three",
     {{"Traceparent", PARENT}, {"tracestate", "a=1"}, {"baggage", "k=v"}},
     "",
     PARENT ";a=1;k=v"},
    {"blanks around", {{"traceparent", " " PARENT "\t"}}, "{}", PARENT ";;"},
    {"a state alone", {{"tracestate", "a=1"}}, "", ";;"},
    {"a wrong parent takes its state along",
     {{"traceparent", "00-xyz"}, {"tracestate", "a=1"}, {"baggage", "k=v"}},
     "",
     ";;k=v"},
    {"two parents are none",
     {{"traceparent", PARENT}, {"traceparent", OTHER}},
     "",
     ";;"},
    {"lists are joined",
     {{"traceparent", PARENT}, {"tracestate", "a=1"}, {"tracestate", "b=2"}},
     "",
     PARENT ";a=1,b=2;"},
    {"_meta alone",
     {{"Host", "x"}},
     "{'traceparent':'" PARENT "','baggage':'k=v'}",
     PARENT ";;k=v"},
    {"_meta first",
     {{"traceparent", PARENT}, {"tracestate", "a=1"}, {"baggage", "k=v"}},
     "{'traceparent':'" OTHER "'}",
     OTHER ";;k=v"},
    {"both say where from",
     {{"traceparent", PARENT}, {"baggage", "k=v"}},
     "{'baggage':'l=w'}",
     PARENT ";;l=w"},
    {"_meta is wrong", {{"traceparent", PARENT}}, "{'traceparent':7}", ";;"},
    {"no object", {{"traceparent", PARENT}}, "[]", PARENT ";;"},
};

static struct mo_json parse(struct mo_buf *b, const char *text)
{
    mo_buf_init(b, 4096);
    for (; *text; text++)
        (void)mo_buf_putc(b, *text == '\'' ? '"' : *text);
    return (struct mo_json){b->p, b->len};
}

static int run_row(size_t i, struct mo_buf *out)
{
    struct mo_http_header h[4] = {{{NULL, 0}, {NULL, 0}}};
    struct mo_http_head head = {.headers = h};
    struct mo_trace t = {0};
    struct mo_arena a;
    struct mo_buf meta;
    int rc;

    for (; head.nheaders < 4 && rows[i].head[head.nheaders][0];
         head.nheaders++) {
        h[head.nheaders].name = mo_span_cstr(rows[i].head[head.nheaders][0]);
        h[head.nheaders].value = mo_span_cstr(rows[i].head[head.nheaders][1]);
    }
    mo_arena_init(&a, 1 << 20);
    rc = mo_trace_head(&head, &a, &t);
    mo_trace_meta(parse(&meta, rows[i].meta), &t);
    for (size_t k = 0; k < MO_TRACE_KEYS; k++) {
        (void)mo_buf_puts(out, k ? ";" : "");
        (void)mo_buf_span(out, t.v[k]);
    }
    mo_buf_fini(&meta);
    mo_arena_fini(&a);
    return rc;
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf out;

        mo_buf_init(&out, 4096);
        assert_int_equal(run_row(i, &out), 0);
        check_row(rows[i].name, mo_span_is(mo_buf_view(&out), rows[i].want));
        mo_buf_fini(&out);
    }
}

/* Too much of it is none of it. */
static void test_limits(void **state)
{
    struct mo_http_header h[80];
    struct mo_http_head head = {.headers = h};
    char much[MO_TRACE_BAGGAGE_MAX + 8] = "a=";
    struct mo_trace t = {0};
    struct mo_arena a;

    (void)state;
    memset(much + 2, 'x', sizeof(much) - 3);
    mo_arena_init(&a, 1 << 20);
    h[0].name = MO_SPAN("baggage");
    h[0].value = mo_span(much, MO_TRACE_BAGGAGE_MAX);
    head.nheaders = 1;
    assert_int_equal(mo_trace_head(&head, &a, &t), 0);
    assert_int_equal(t.v[MO_TRACE_BAGGAGE].n, MO_TRACE_BAGGAGE_MAX);
    t = (struct mo_trace){0};
    h[0].value.n++;
    assert_int_equal(mo_trace_head(&head, &a, &t), 0);
    assert_false(mo_trace_any(&t));
    for (size_t i = 0; i < MO_COUNT(h); i++)
        h[i] = (struct mo_http_header){MO_SPAN("baggage"), MO_SPAN("k=v")};
    head.nheaders = MO_TRACE_MEMBERS;
    assert_int_equal(mo_trace_head(&head, &a, &t), 0);
    assert_true(mo_trace_any(&t));
    t = (struct mo_trace){0};
    head.nheaders++;
    assert_int_equal(mo_trace_head(&head, &a, &t), 0);
    assert_false(mo_trace_any(&t));
    mo_arena_fini(&a);
}

static void join_lists(void *ctx)
{
    struct mo_buf out;
    int rc;

    (void)ctx;
    mo_buf_init(&out, 4096);
    rc = run_row(6, &out);
    assert_true(rc == 0 || rc == MO_ENOMEM);
    mo_buf_fini(&out);
}

static void test_torture(void **state)
{
    (void)state;
    torture(join_lists, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
