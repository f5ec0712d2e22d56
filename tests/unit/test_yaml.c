/* YAML as programs write it, and what is refused. */
#include "mo_test.h"

#include "codec/json/json.h"
#include "codec/yaml.h"

/* json NULL: refused, and the message has `why`. */
static const struct {
    const char *name, *yaml, *json, *why;
} rows[] = {
    {"a map", "a: 1\nb: two\n", "{\"a\":\"1\",\"b\":\"two\"}", NULL},
    {"no line end", "a: 1", "{\"a\":\"1\"}", NULL},
    {"line ends of DOS", "a: 1\r\nb: 2\r\n", "{\"a\":\"1\",\"b\":\"2\"}", NULL},
    {"words", "a: true\nb: false\nc: null\nd: ~\ne: True\n",
     "{\"a\":true,\"b\":false,\"c\":null,\"d\":null,\"e\":\"True\"}", NULL},
    {"nothing", "a:\nb: 1\n", "{\"a\":null,\"b\":\"1\"}", NULL},
    {"nested", "a:\n  b:\n    c: d\ne: f\n",
     "{\"a\":{\"b\":{\"c\":\"d\"}},\"e\":\"f\"}", NULL},
    {"a list at the key's column", "a:\n- x\n- y\nb: z\n",
     "{\"a\":[\"x\",\"y\"],\"b\":\"z\"}", NULL},
    {"a list below its key", "a:\n  - x\n  - y\n", "{\"a\":[\"x\",\"y\"]}",
     NULL},
    {"maps in a list", "- a: 1\n  b: 2\n- a: 3\n",
     "[{\"a\":\"1\",\"b\":\"2\"},{\"a\":\"3\"}]", NULL},
    {"maps in maps in a list", "- a:\n    b: 1\n  c: 2\n",
     "[{\"a\":{\"b\":\"1\"},\"c\":\"2\"}]", NULL},
    {"lists in a list", "- - x\n  - y\n- - z\n", "[[\"x\",\"y\"],[\"z\"]]",
     NULL},
    {"an item below its dash", "-\n  a: 1\n-\n", "[{\"a\":\"1\"},null]", NULL},
    {"empty ones", "a: {}\nb: []\n", "{\"a\":{},\"b\":[]}", NULL},
    {"JSON in it", "a: {\"b\": [1, \"x\"]}\n", "{\"a\":{\"b\": [1, \"x\"]}}",
     NULL},
    {"quotes", "a: \"x\\ty: z\"\nb: 'it''s # so'\n\"c d\": e\n",
     "{\"a\":\"x\\ty: z\",\"b\":\"it's # so\",\"c d\":\"e\"}", NULL},
    {"comments", "# one\na: b # two\nc: d#e\n\n  # three\n",
     "{\"a\":\"b\",\"c\":\"d#e\"}", NULL},
    {"a document's head", "---\na: b\n", "{\"a\":\"b\"}", NULL},
    {"several lines", "a: one two\n  three\n  four\nb: c\n",
     "{\"a\":\"one two three four\",\"b\":\"c\"}", NULL},
    {"a literal", "a: |\n  one\n    two\n\n  three\nb: c\n",
     "{\"a\":\"one\\n  two\\n\\nthree\\n\",\"b\":\"c\"}", NULL},
    {"a literal without its end", "a: |-\n  one\n\n\nb: c\n",
     "{\"a\":\"one\",\"b\":\"c\"}", NULL},
    {"colons in a value", "a: https://h:1/x\n", "{\"a\":\"https://h:1/x\"}",
     NULL},
    {"dashes as a value", "a:\n- --flag\n- -x\n", "{\"a\":[\"--flag\",\"-x\"]}",
     NULL},
    {"empty", "", NULL, "empty"},
    {"only a comment", "# x\n", NULL, "empty"},
    {"an anchor", "a: &x b\n", NULL, "line 1: this form"},
    {"an alias", "a: b\nc: *x\n", NULL, "line 2: this form"},
    {"a tag", "a: !!str b\n", NULL, "line 1"},
    {"a folded block", "a: >\n  b\n", NULL, "line 1"},
    {"a flow that is no JSON", "a: {b: c}\n", NULL, "line 1: must be JSON"},
    {"a flow over lines", "a: [\"b\",\n \"c\"]\n", NULL, "line 1"},
    {"a tab", "a:\n\tb: c\n", NULL, "line 2: a tab"},
    {"another document", "a: b\n---\nc: d\n", NULL, "line 2"},
    {"a stray indentation", "a: b\n  c: d\n", NULL, "line 2"},
    {"a step back to nowhere", "a:\n    b: c\n  d: e\n", NULL, "line 3"},
    {"a map in a list's column", "- a\nb: c\n", NULL, "line 2"},
    {"an open quote", "a: 'b\n", NULL, "line 1"},
    {"an open double quote", "a: \"b\n", NULL, "line 1"},
    {"text behind a quote", "a: 'b' c\n", NULL, "line 1"},
    {"a question", "? a\n: b\n", NULL, "line 1"},
    {"no key", ": b\n", NULL, "line 1"},
    {"a lone word", "word\n", NULL, "line 1"},
    {"a control byte", "a: \xff\n", NULL, "UTF-8"},
};

static void rows_become_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf b = {.max = 4096};
        struct mo_json_doc doc;
        struct mo_err e = {0};
        int rc = mo_yaml_to_json(mo_span_cstr(rows[i].yaml), &b, &e);

        if (rows[i].json &&
            (rc < 0 || !mo_span_is(mo_buf_view(&b), rows[i].json)))
            fail_msg("%s: %d %s %s", rows[i].name, rc, e.msg, mo_buf_cstr(&b));
        if (!rows[i].json && (rc != MO_EINVAL || !strstr(e.msg, rows[i].why)))
            fail_msg("%s: %d %s", rows[i].name, rc, e.msg);
        if (rows[i].json)
            assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL), 0);
    }
}

/* As the yaml package of npm reads them, too (YAML 1.2, core schema). */
static const struct {
    const char *yaml, *json; /* json NULL: refused */
} core[] = {
    {"a: 1\nb: -007\nc: +1.50\nd: .5\ne: 1e3\nf: 1.\n",
     "{\"a\":1,\"b\":-7,\"c\":1.50,\"d\":0.5,\"e\":1e3,\"f\":1}"},
    {"a: 0x1F\nb: 0o17\nc: 1_000\nd: 1.2.3\ne: 1e\nf: '1'\n",
     "{\"a\":31,\"b\":15,\"c\":\"1_000\",\"d\":\"1.2.3\",\"e\":\"1e\","
     "\"f\":\"1\"}"},
    {"a: True\nb: FALSE\nc: Null\nd: yes\n",
     "{\"a\":true,\"b\":false,\"c\":null,\"d\":\"yes\"}"},
    {"a: [Read, \"b c\", 'd', 2, true]\n",
     "{\"a\":[\"Read\",\"b c\",\"d\",2,true]}"},
    {"a: {b: c, d: [1, {}], \"e\": x:y,}\n",
     "{\"a\":{\"b\":\"c\",\"d\":[1,{}],\"e\":\"x:y\"}}"},
    {"a: []\nb: {}\n", "{\"a\":[],\"b\":{}}"},
    {"a: >\n  one\n  two\n\n  three\nb: c\n",
     "{\"a\":\"one two\\nthree\\n\",\"b\":\"c\"}"},
    {"a: >-\n  one\n    deep\n  two\n", "{\"a\":\"one\\n  deep\\ntwo\"}"},
    {"a: |+\n  one\n\nb: c\n", "{\"a\":\"one\\n\\n\",\"b\":\"c\"}"},
    {"a: |\n\n  one \n", "{\"a\":\"\\none \\n\"}"},
    {"a: .inf\n", NULL},
    {"a: -.Inf\n", NULL},
    {"a: .NaN\n", NULL},
    {"a: 0xfffffffffffffff\n", NULL},
    {"a: [b\n", NULL},
    {"a: [b] c\n", NULL},
    {"a: [b: c]\n", NULL},
    {"a: [,]\n", NULL},
    {"a: [&x b]\n", NULL},
    {"a: ['b''c']\n", NULL},
    {"a: {b}\n", NULL},
    {"a: {b:\n", NULL},
    {"a: {b: }\n", NULL},
    {"a: [{-b :\n", NULL},
    {"a: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]\n", NULL},
};

static void core_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(core); i++) {
        mo_autobuf struct mo_buf b = {.max = 4096};
        struct mo_err e = {0};
        int rc = mo_yaml_core_to_json(mo_span_cstr(core[i].yaml), &b, &e);

        if (core[i].json ? rc < 0 || !mo_span_is(mo_buf_view(&b), core[i].json)
                         : rc != MO_EINVAL)
            fail_msg("%s: %d %s %s", core[i].yaml, rc, e.msg, mo_buf_cstr(&b));
    }
}

static void depth_is_limited(void **state)
{
    mo_autobuf struct mo_buf in = {.max = 4096}, out = {.max = 4096};
    struct mo_err e;

    (void)state;
    for (int i = 0; i < MO_YAML_DEPTH + 1; i++)
        (void)mo_buf_puts(&in, "- ");
    (void)mo_buf_puts(&in, "x\n");
    assert_int_equal(mo_yaml_to_json(mo_buf_view(&in), &out, &e), MO_EINVAL);
    assert_non_null(strstr(e.msg, "levels"));
}

static void a_small_buffer(void **state)
{
    mo_autobuf struct mo_buf out = {.max = 8};

    (void)state;
    assert_int_equal(mo_yaml_to_json(MO_SPAN("a: much too long\n"), &out, NULL),
                     MO_ETOOBIG);
}

static void torture_body(void *ctx)
{
    (void)ctx;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf b = {.max = 4096};
        int rc = mo_yaml_to_json(mo_span_cstr(rows[i].yaml), &b, NULL);

        if (rc == 0)
            assert_string_equal(mo_buf_cstr(&b), rows[i].json);
    }
    for (size_t i = 0; i < MO_COUNT(core); i++) {
        mo_autobuf struct mo_buf b = {.max = 4096};

        if (mo_yaml_core_to_json(mo_span_cstr(core[i].yaml), &b, NULL) == 0)
            assert_string_equal(mo_buf_cstr(&b), core[i].json);
    }
}

static void memory_may_fail(void **state)
{
    (void)state;
    torture(torture_body, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_become_json), cmocka_unit_test(core_rows),
        cmocka_unit_test(depth_is_limited), cmocka_unit_test(a_small_buffer),
        cmocka_unit_test(memory_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
