/* Answers of several workers as one. */
#include "web/merge.h"

#include "mo_test.h"

static void put_count(struct mo_jw *w, const struct mo_json *v, size_t n)
{
    (void)v;
    mo_jw_u64(w, n);
}

static const struct mo_merge_rule in[] = {
    {"n", MO_MERGE_SUM},
    {"hidden", MO_MERGE_HIDE},
    {"count", MO_MERGE_PUT, .put = put_count},
    {NULL, MO_MERGE_SUM},
};
static const struct mo_merge_rule line[] = {
    {"at", MO_MERGE_LATEST},
    {NULL, MO_MERGE_SUM},
};
static const struct mo_merge_rule rules[] = {
    {"lines", MO_MERGE_BY, .by = "a", .and = "b", .also = "c", .in = line,
     .order = "at"},
    {"sum", MO_MERGE_SUM},
    {"last", MO_MERGE_LATEST},
    {"first", MO_MERGE_FIRST},
    {"each", MO_MERGE_EACH_SUM},
    {"most", MO_MERGE_EACH_MOST},
    {"mean", MO_MERGE_EACH_MEAN, .by = "each"},
    {"join", MO_MERGE_JOIN},
    {"rows", MO_MERGE_BY, .by = "a", .and = "b", .in = in},
    {"top", MO_MERGE_BY, .by = "a", .in = in, .order = "n", .most = 2},
    {"in", MO_MERGE_IN, .in = in},
    {NULL, MO_MERGE_SUM},
};

static struct mo_json parse(const char *text)
{
    struct mo_json_doc d;

    assert_int_equal(mo_json_parse(mo_span_cstr(text), 0, &d, NULL), 0);
    return d.root;
}

static const struct {
    const char *name, *a, *b, *out;
} rows[] = {
    {"numbers", "{\"sum\":1,\"last\":5,\"first\":5,\"x\":1}",
     "{\"sum\":2,\"last\":7,\"first\":3,\"x\":2}",
     "{\"sum\":3,\"last\":7,\"first\":3,\"x\":1}"},
    {"0 is no time", "{\"first\":0}", "{\"first\":9}", "{\"first\":9}"},
    {"what one lacks counts as nothing", "{\"sum\":1}", "{}", "{\"sum\":1}"},
    {"places", "{\"each\":[1,0,3],\"most\":[1,9]}",
     "{\"each\":[1,1],\"most\":[2,3,4]}",
     "{\"each\":[2,1,3],\"most\":[2,9,4]}"},
    {"a mean is weighted", "{\"each\":[1,0],\"mean\":[10,0]}",
     "{\"each\":[3,0],\"mean\":[30,0]}", "{\"each\":[4,0],\"mean\":[25,0]}"},
    {"joined", "{\"join\":[1,{}]}", "{\"join\":[\"x\"]}",
     "{\"join\":[1,{},\"x\"]}"},
    {"rows by two members",
     "{\"rows\":[{\"a\":1,\"b\":1,\"n\":1},{\"a\":1,\"b\":2,\"n\":1}]}",
     "{\"rows\":[{\"a\":1,\"b\":2,\"n\":5},{\"a\":2,\"b\":2,\"n\":7}]}",
     "{\"rows\":[{\"a\":1,\"b\":1,\"n\":1},{\"a\":1,\"b\":2,\"n\":6},"
     "{\"a\":2,\"b\":2,\"n\":7}]}"},
    {"the largest first",
     "{\"top\":[{\"a\":1,\"n\":2},{\"a\":2,\"n\":1},{\"a\":3,\"n\":1}]}",
     "{\"top\":[{\"a\":2,\"n\":4}]}",
     "{\"top\":[{\"a\":2,\"n\":5},{\"a\":1,\"n\":2}]}"},
    {"the latest first",
     "{\"lines\":[{\"a\":1,\"b\":1,\"c\":true,\"at\":5},"
     "{\"a\":1,\"b\":1,\"c\":false,\"at\":4}]}",
     "{\"lines\":[{\"a\":2,\"b\":1,\"c\":true,\"at\":6},"
     "{\"a\":1,\"b\":1,\"c\":true,\"at\":3}]}",
     "{\"lines\":[{\"a\":2,\"b\":1,\"c\":true,\"at\":6},"
     "{\"a\":1,\"b\":1,\"c\":true,\"at\":5},"
     "{\"a\":1,\"b\":1,\"c\":false,\"at\":4}]}"},
    {"inside", "{\"in\":{\"n\":1,\"hidden\":1,\"count\":0}}",
     "{\"in\":{\"n\":2,\"hidden\":2,\"count\":0}}",
     "{\"in\":{\"n\":3,\"count\":2}}"},
    {"inside of one only", "{\"in\":{\"n\":1}}", "{}", "{\"in\":{\"n\":1}}"},
    {"the state of the last outcome",
     "{\"state\":\"ok\",\"lastCheck\":5,\"sum\":1}",
     "{\"state\":\"failed\",\"lastCheck\":6,\"error\":\"e\",\"sum\":1}",
     "{\"state\":\"failed\",\"lastCheck\":6,\"error\":\"e\",\"sum\":2}"},
    {"a cold one does not know", "{\"state\":\"cold\",\"lastCheck\":9}",
     "{\"state\":\"ok\",\"lastCheck\":6}",
     "{\"state\":\"ok\",\"lastCheck\":6}"},
    {"nor this one", "{\"state\":\"ok\",\"lastCheck\":6}",
     "{\"state\":\"cold\",\"lastCheck\":9}",
     "{\"state\":\"ok\",\"lastCheck\":6}"},
    {"the first starts", "{\"state\":\"cold\"}", "{\"state\":\"starting\"}",
     "{\"state\":\"starting\"}"},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const struct mo_json v[] = {parse(rows[i].a), parse(rows[i].b)};
        mo_autobuf struct mo_buf b = {.max = 4096};
        struct mo_jw w;

        mo_jw_init(&w, &b);
        mo_merge(&w, v, 2, rules);
        check_row(rows[i].name, mo_span_is(mo_buf_view(&b), rows[i].out));
    }
}

/* Without memory for them there are no rows, and nothing else happens. */
static void once(void *ctx)
{
    const struct mo_json v[] = {parse(rows[6].a), parse(rows[6].b)};
    mo_autobuf struct mo_buf b = {.max = 4096};
    struct mo_jw w;

    (void)ctx;
    mo_jw_init(&w, &b);
    mo_merge(&w, v, 2, rules);
}

static void test_no_memory(void **state)
{
    (void)state;
    torture(once, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
