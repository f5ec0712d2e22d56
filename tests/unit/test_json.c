#include <math.h>

#include "codec/json/json.h"
#include "json_plain.h"
#include "json_rows.h"
#include "mo_test.h"

#define MAX ((size_t)1 << 20)

static struct mo_json parse(const char *text)
{
    struct mo_json_doc doc;
    struct mo_err e;

    if (mo_json_parse(mo_span_cstr(text), 0, &doc, &e) < 0)
        fail_msg("%s: %s", text, e.msg);
    return doc.root;
}

/* --- accepting and refusing ---------------------------------------------- */

/* The text stands in a block of exactly its size, so that reading one byte
 * too far is seen. */
static void check_text(const char *name, struct mo_span text, size_t bad_at)
{
    char *copy = mo_alloc(text.n ? text.n : 1);
    struct mo_json_doc doc, plain;
    struct mo_err e = {0};
    struct mo_span in = mo_span(copy, text.n);
    int rc;

    assert_non_null(copy);
    if (text.n)
        memcpy(copy, text.p, text.n);
    rc = mo_json_parse(in, 0, &doc, &e);
    check_row(name, rc == (bad_at == ROW_GOOD ? 0 : MO_EPROTO));
    check_row(name, bad_at == ROW_GOOD || doc.bad_at == bad_at);
    check_row(name, bad_at == ROW_GOOD || e.code == MO_EPROTO);
    check_row(name, bad_at == ROW_GOOD || strstr(e.msg, "line "));
    check_row(name, (doc.root.p != NULL) == (rc == 0));
    check_row(name, plain_json_parse(in, 0, &plain, NULL) == rc);
    check_row(name, doc.root.p == plain.root.p && doc.root.n == plain.root.n);
    check_row(name, doc.bad_at == plain.bad_at);
    check_row(name, doc.has_nl == plain.has_nl);
    mo_free(copy);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(json_rows); i++) {
        const struct json_row *r = &json_rows[i];

        check_row(r->name, r->name[0] == (r->bad_at == ROW_GOOD ? 'y' : 'n') ||
                               r->name[0] == 'i');
        check_text(r->name, r->text, r->bad_at);
    }
}

/* A row inside other text, so that everything happens at every distance from
 * the vector's edge. */
static void test_rows_shifted(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < MO_COUNT(json_rows); i++) {
        const struct json_row *r = &json_rows[i];

        for (size_t pad = 0; pad < 40; pad++) {
            bool good = r->bad_at == ROW_GOOD;
            size_t at;

            if (!good && r->bad_at < r->text.n)
                continue; /* may be wrong for another reason in an array */
            mo_buf_reset(&b);
            mo_buf_puts(&b, "[\"");
            for (size_t k = 0; k < pad; k++)
                mo_buf_putc(&b, 'x');
            mo_buf_puts(&b, "\",");
            at = b.len;
            mo_buf_span(&b, r->text);
            if (good)
                mo_buf_puts(&b, ",\"and some more text behind it\"]");
            check_text(r->name, mo_buf_view(&b),
                       good ? ROW_GOOD : at + r->bad_at);
        }
    }
    mo_buf_fini(&b);
}

/* Every prefix of a good text is cut, or is itself a value; never wrong
 * before its end. */
static void test_prefixes(void **state)
{
    static const char text[] =
        " {\"a\":[1,-2.5e+3,true,null,\"\\u00e9 \xe6\xbc\xa2 \\\"x\\\"\"],\n"
        "\"long enough to leave a vector behind\":{\"b\":{},\"c\":[[]]}} ";

    (void)state;
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        struct mo_json_doc doc;
        int rc = mo_json_parse(mo_span(text, n), 0, &doc, NULL);

        if (n == sizeof(text) - 2) {
            assert_int_equal(rc, 0);
            continue;
        }
        assert_int_equal(rc, MO_EPROTO);
        assert_int_equal(doc.bad_at, n);
    }
}

/* Each byte value at each place of a string of each length. */
static void test_every_byte(void **state)
{
    char text[48];

    (void)state;
    for (size_t n = 3; n <= sizeof(text); n += 3) {
        for (size_t at = 1; at + 1 < n; at++) {
            for (int c = 0; c < 0x80; c++) {
                bool plain = c >= 0x20 && c != '"' && c != '\\';
                struct mo_json_doc doc;
                int rc;

                memset(text, 'x', n);
                text[0] = text[n - 1] = '"';
                text[at] = (char)c;
                rc = mo_json_parse(mo_span(text, n), 0, &doc, NULL);
                assert_int_equal(rc, plain ? 0 : MO_EPROTO);
                if (c < 0x20)
                    assert_int_equal(doc.bad_at, at);
                if (c == '"')
                    assert_int_equal(doc.bad_at, at + 1);
            }
        }
    }
}

static void check_depth(const char *unit, size_t unit_n, size_t levels, int cap,
                        size_t bad_at)
{
    struct mo_json_doc doc;
    struct mo_buf b;
    int rc;

    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < levels; i++)
        mo_buf_put(&b, unit, unit_n);
    mo_buf_puts(&b, "[]");
    for (size_t i = 0; i < levels; i++)
        mo_buf_putc(&b, unit[0] == '[' ? ']' : '}');
    rc = mo_json_parse(mo_buf_view(&b), cap, &doc, NULL);
    assert_int_equal(rc, bad_at == ROW_GOOD ? 0 : MO_EPROTO);
    if (rc < 0)
        assert_int_equal(doc.bad_at, bad_at);
    mo_buf_fini(&b);
}

static void test_depth(void **state)
{
    (void)state;
    check_depth("[", 1, 511, 0, ROW_GOOD);
    check_depth("[", 1, 512, 0, 512);
    check_depth("[", 1, 5000, 0, 512);
    check_depth("{\"\":", 4, 511, 0, ROW_GOOD);
    check_depth("{\"\":", 4, 512, 0, 2048);
    check_depth("[", 1, 2, 3, ROW_GOOD);
    check_depth("[", 1, 3, 3, 3);
    check_depth("[", 1, 512, 100000, 512);
    check_depth("[", 1, 0, 1, ROW_GOOD);
}

static void test_has_nl(void **state)
{
    static const struct {
        const char *text;
        bool has_nl;
    } rows[] = {
        {"{}", false},         {"{\n}", true},        {"[1,\r2]", true},
        {"{\"a\"\n:1}", true}, {"{\"a\":\n1}", true}, {"[ 1 ,\t2 ]", false},
        {"\n[1]\n", false}, /* outside of the value */
        {"[\"\\n\"]", false},  {"\"\\n\"", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_json_doc doc;

        assert_int_equal(
            mo_json_parse(mo_span_cstr(rows[i].text), 0, &doc, NULL), 0);
        check_row(rows[i].text, doc.has_nl == rows[i].has_nl);
    }
}

static void test_message(void **state)
{
    struct mo_json_doc doc;
    struct mo_err e;
    unsigned line, col;

    (void)state;
    assert_int_equal(
        mo_json_parse(MO_SPAN("{\n  \"a\": 1,\n  b\n}"), 0, &doc, &e),
        MO_EPROTO);
    assert_string_equal(e.msg,
                        "bad JSON at line 3 column 3: a key was expected");
    assert_int_equal(mo_json_parse(MO_SPAN("["), 0, &doc, &e), MO_EPROTO);
    assert_string_equal(e.msg,
                        "bad JSON at line 1 column 2: the text ends too early");
    mo_json_where(MO_SPAN("a\nbc\n"), 5, &line, &col);
    assert_int_equal(line, 3);
    assert_int_equal(col, 1);
    mo_json_where(MO_SPAN("a"), 99, &line, &col);
    assert_int_equal(col, 2);
}

/* --- walking ------------------------------------------------------------- */

static void test_types(void **state)
{
    (void)state;
    assert_int_equal(mo_json_type((struct mo_json){NULL, 0}), MO_JSON_NONE);
    assert_int_equal(mo_json_type(parse("null")), MO_JSON_NULL);
    assert_int_equal(mo_json_type(parse("true")), MO_JSON_BOOL);
    assert_int_equal(mo_json_type(parse("false")), MO_JSON_BOOL);
    assert_int_equal(mo_json_type(parse("-1")), MO_JSON_NUMBER);
    assert_int_equal(mo_json_type(parse("0")), MO_JSON_NUMBER);
    assert_int_equal(mo_json_type(parse("\"\"")), MO_JSON_STRING);
    assert_int_equal(mo_json_type(parse(" []")), MO_JSON_ARRAY);
    assert_int_equal(mo_json_type(parse(" {} ")), MO_JSON_OBJECT);
}

static void test_iter(void **state)
{
    static const char *const want[] = {"1",  "\"a,b]}\"",         "[2,[3]]",
                                       "{}", "{\"x\":\"}\\\"\"}", "null"};
    struct mo_json v = parse("[ 1 ,\"a,b]}\", [2,[3]] ,{},{\"x\":\"}\\\"\"},"
                             "null ]");
    struct mo_json k, val;
    struct mo_json_iter it;
    size_t n = 0;

    (void)state;
    mo_json_iter(&it, v);
    while (mo_json_next(&it, &k, &val)) {
        assert_true(n < MO_COUNT(want));
        assert_null(k.p);
        check_row(want[n], mo_span_is(mo_json_text(val), want[n]));
        n++;
    }
    assert_int_equal(n, MO_COUNT(want));
    assert_false(mo_json_next(&it, &k, &val));
    assert_int_equal(mo_json_len(v), n);
}

static void test_iter_object(void **state)
{
    struct mo_json v = parse("{ \"a\" : 1 , \"\\\"\":[],\"c\":\"d\" }");
    static const char *const keys[] = {"\"a\"", "\"\\\"\"", "\"c\""};
    static const char *const vals[] = {"1", "[]", "\"d\""};
    struct mo_json k, val;
    struct mo_json_iter it;
    size_t n = 0;

    (void)state;
    mo_json_iter(&it, v);
    for (; mo_json_next(&it, &k, &val); n++) {
        assert_true(n < MO_COUNT(keys));
        check_row(keys[n], mo_span_is(mo_json_text(k), keys[n]));
        check_row(vals[n], mo_span_is(mo_json_text(val), vals[n]));
    }
    assert_int_equal(n, 3);
    n = 0;
    mo_json_each (at, v) {
        assert_true(n < MO_COUNT(keys));
        check_row(keys[n], mo_span_is(mo_json_text(at.key), keys[n]));
        check_row(vals[n], mo_span_is(mo_json_text(at.val), vals[n]));
        n++;
    }
    assert_int_equal(n, 3);
}

static void test_iter_none(void **state)
{
    static const char *const scalars[] = {"1", "\"[1]\"", "null", "true"};
    struct mo_json none = {NULL, 0}, k, val;
    struct mo_json_iter it;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(scalars); i++) {
        mo_json_iter(&it, parse(scalars[i]));
        assert_false(mo_json_next(&it, &k, &val));
    }
    mo_json_iter(&it, none);
    assert_false(mo_json_next(&it, &k, &val));
    assert_int_equal(mo_json_len(none), 0);
    assert_int_equal(mo_json_len(parse("[ ]")), 0);
    assert_int_equal(mo_json_len(parse("{\n}")), 0);
}

/* Into each element that can be entered, `deep` members of it looked at. */
static void enter_all(struct mo_json v, size_t deep)
{
    struct mo_json_iter by_step, at_once, inner;
    struct mo_json k, val, got;

    mo_json_iter(&by_step, v);
    mo_json_iter(&at_once, v);
    while (mo_json_next(&at_once, &k, &val)) {
        assert_true(mo_json_more(&by_step));
        got = mo_json_key(&by_step);
        assert_true(got.p == k.p && got.n == k.n);
        if (mo_json_enter(&by_step, &inner)) {
            assert_int_equal(inner.object, *val.p == '{');
            for (size_t i = 0; i < deep && mo_json_more(&inner); i++)
                (void)mo_json_next(&inner, &k, &got);
            got = mo_json_leave(&by_step, &inner);
        } else {
            assert_true(*val.p != '{' && *val.p != '[');
            got = mo_json_value(&by_step);
        }
        assert_true(got.p == val.p && got.n == val.n);
    }
    assert_false(mo_json_more(&by_step));
}

/* Step by step it is the same walk, however much of an element is seen. */
static void test_enter(void **state)
{
    static const char *const rows[] = {
        "[]",
        "[ ]",
        "[{}]",
        "[ {} , [ ] ,7 ]",
        "{\"a\":{\"x\":[1,2],\"y\":\"}]\"} , \"b\" : [ [] , {} ] }",
        ("[{\"name\":\"a\",\"s\":{\"type\":\"object\"}},\n "
         "{\"name\":\"b]\",\"t\":[{\"u\":\"\\\"}\"}]},\"c\",null]"),
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        for (size_t deep = 0; deep < 4; deep++)
            enter_all(parse(rows[i]), deep);
}

/* A container of every length around the 64-byte block, with a quote, an
 * escape or a bracket in a string at every place of it. */
static void test_skip_blocks(void **state)
{
    static const char *const odd[] = {"\\\"", "]", "}",       "[",
                                      "\\\\", "{", "\\\\\\\""};

    (void)state;
    for (size_t pad = 0; pad < 140; pad++) {
        for (size_t i = 0; i < MO_COUNT(odd); i++) {
            char text[400];
            struct mo_json v, inner;
            int n = snprintf(text, sizeof(text),
                             "[[\"%*s%s\",{\"k\":[\"%s\"]}],7,\"%*s\"]",
                             (int)pad, "", odd[i], odd[i], (int)(pad % 67), "");
            struct mo_json k, val;
            struct mo_json_iter it;

            assert_true(n > 0 && (size_t)n < sizeof(text));
            v = parse(text);
            assert_int_equal(mo_json_len(v), 3);
            assert_int_equal(plain_json_len(v), 3);
            inner = mo_json_at(v, 0);
            assert_int_equal(mo_json_len(inner), 2);
            assert_true(mo_span_is(mo_json_text(mo_json_at(v, 1)), "7"));
            plain_json_iter(&it, v);
            assert_true(plain_json_next(&it, &k, &val));
            assert_int_equal(val.n, inner.n);
        }
    }
}

static void test_get(void **state)
{
    struct mo_json v = parse("{\"a\":1,\"b\":{\"a\":2},\"\\u0063\":3,\"a\":4,"
                             "\"\":5,\"x\\u0000y\":6}");

    (void)state;
    assert_true(mo_span_is(mo_json_text(mo_json_get(v, "a")), "4"));
    assert_true(mo_span_is(mo_json_text(mo_json_get(v, "b")), "{\"a\":2}"));
    assert_true(mo_span_is(mo_json_text(mo_json_get(v, "c")), "3"));
    assert_true(mo_span_is(mo_json_text(mo_json_get(v, "")), "5"));
    assert_null(mo_json_get(v, "d").p);
    assert_null(mo_json_get(v, "x").p);
    assert_null(mo_json_get(v, "\\u0063").p);
    assert_null(mo_json_get(parse("[\"a\",1]"), "a").p);
    assert_null(mo_json_get((struct mo_json){NULL, 0}, "a").p);
    assert_true(mo_span_is(mo_json_text(mo_json_first(v, "a")), "1"));
    assert_true(mo_span_is(mo_json_text(mo_json_first(v, "c")), "3"));
    assert_true(mo_span_is(mo_json_text(mo_json_first(v, "")), "5"));
    assert_null(mo_json_first(v, "d").p);
    assert_null(mo_json_first(parse("[\"a\",1]"), "a").p);
    assert_null(mo_json_first((struct mo_json){NULL, 0}, "a").p);
}

static void test_at(void **state)
{
    struct mo_json v = parse("[10,[20],{\"k\":30}]");

    (void)state;
    assert_true(mo_span_is(mo_json_text(mo_json_at(v, 0)), "10"));
    assert_true(mo_span_is(mo_json_text(mo_json_at(v, 2)), "{\"k\":30}"));
    assert_null(mo_json_at(v, 3).p);
    assert_null(mo_json_at(parse("7"), 0).p);
    assert_true(
        mo_span_is(mo_json_text(mo_json_at(parse("{\"a\":1}"), 0)), "1"));
}

/* --- strings and numbers ------------------------------------------------- */

static const struct {
    const char *json;
    struct mo_span plain;
} strings[] = {
    {"\"\"", MO_SPAN("")},
    {"\"abc\"", MO_SPAN("abc")},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", MO_SPAN("\"\\/\b\f\n\r\t")},
    {"\"\\u0041\\u00e9\\u20aC\"", MO_SPAN("A\xc3\xa9\xe2\x82\xac")},
    {"\"\\ud83d\\ude00!\"", MO_SPAN("\xf0\x9f\x98\x80!")},
    {"\"\\uDBFF\\uDFFF\"", MO_SPAN("\xf4\x8f\xbf\xbf")},
    {"\"a\\u0000b\"", MO_SPAN("a\0b")},
    {"\"\\ud800\"", MO_SPAN("\xef\xbf\xbd")},
    {"\"\\udc00x\"", MO_SPAN("\xef\xbf\xbdx")},
    {"\"\\udc00\\udc01\"", MO_SPAN("\xef\xbf\xbd\xef\xbf\xbd")},
    {"\"\\ud800\\u0041\"", MO_SPAN("\xef\xbf\xbd"
                                   "A")},
    {"\"\\ud800\\n\"", MO_SPAN("\xef\xbf\xbd\n")},
    {"\"\\ud83d\\ud83d\\ude00\"", MO_SPAN("\xef\xbf\xbd\xf0\x9f\x98\x80")},
    {"\"\\\\u0041\"", MO_SPAN("\\u0041")},
    {"\"x\\\\\"", MO_SPAN("x\\")},
    {"\"\xe6\xbc\xa2\\t\xc3\xa9\"", MO_SPAN("\xe6\xbc\xa2\t\xc3\xa9")},
};

static void test_strings(void **state)
{
    struct mo_arena a;
    struct mo_buf b;

    (void)state;
    mo_arena_init(&a, MAX);
    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < MO_COUNT(strings); i++) {
        const char *name = strings[i].json;
        struct mo_json v = parse(name);
        struct mo_span got;

        assert_int_equal(mo_json_str(v, &a, &got), 0);
        check_row(name, mo_span_eq(got, strings[i].plain));
        mo_buf_reset(&b);
        assert_int_equal(mo_json_str_buf(v, &b), 0);
        check_row(name, mo_span_eq(mo_buf_view(&b), strings[i].plain));
        check_row(name, mo_json_str_eq(v, strings[i].plain));
        for (size_t k = 0; k < MO_COUNT(strings); k++)
            check_row(name, mo_json_str_eq(v, strings[k].plain) ==
                                mo_span_eq(strings[i].plain, strings[k].plain));
    }
    mo_buf_fini(&b);
    mo_arena_fini(&a);
}

static void test_strings_not(void **state)
{
    struct mo_json none = {NULL, 0}, v = parse("\"abc\"");
    struct mo_arena a;
    struct mo_span s;
    struct mo_buf b;

    (void)state;
    mo_arena_init(&a, MAX);
    mo_buf_init(&b, MAX);
    assert_int_equal(mo_json_str(none, &a, &s), MO_EINVAL);
    assert_int_equal(mo_json_str(parse("1"), &a, &s), MO_EINVAL);
    assert_int_equal(mo_json_str_buf(parse("[\"a\"]"), &b), MO_EINVAL);
    assert_false(mo_json_str_eq(none, MO_SPAN("")));
    assert_false(mo_json_str_eq(parse("1"), MO_SPAN("1")));
    assert_false(mo_json_str_eq(v, MO_SPAN("ab")));
    assert_false(mo_json_str_eq(v, MO_SPAN("abcd")));
    assert_int_equal(mo_json_str(v, &a, &s), 0);
    assert_ptr_equal(s.p, v.p + 1); /* borrowed, nothing taken */
    assert_int_equal(a.held, 0);
    mo_buf_fini(&b);
    mo_arena_fini(&a);
}

static void test_integers(void **state)
{
    static const struct {
        const char *json;
        int i_rc;
        int64_t i;
        int u_rc;
        uint64_t u;
    } rows[] = {
        {"0", 0, 0, 0, 0},
        {"-1", 0, -1, MO_EINVAL, 0},
        {"9007199254740993", 0, 9007199254740993, 0, 9007199254740993},
        {"9223372036854775807", 0, INT64_MAX, 0, INT64_MAX},
        {"9223372036854775808", MO_EINVAL, 0, 0, (uint64_t)INT64_MAX + 1},
        {"-9223372036854775808", 0, INT64_MIN, MO_EINVAL, 0},
        {"-9223372036854775809", MO_EINVAL, 0, MO_EINVAL, 0},
        {"18446744073709551615", MO_EINVAL, 0, 0, UINT64_MAX},
        {"18446744073709551616", MO_EINVAL, 0, MO_EINVAL, 0},
        {"1.0", MO_EINVAL, 0, MO_EINVAL, 0},
        {"1e3", MO_EINVAL, 0, MO_EINVAL, 0},
        {"\"1\"", MO_EINVAL, 0, MO_EINVAL, 0},
        {"true", MO_EINVAL, 0, MO_EINVAL, 0},
        {"[1]", MO_EINVAL, 0, MO_EINVAL, 0},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_json v = parse(rows[i].json);
        int64_t si = 0;
        uint64_t ui = 0;

        check_row(rows[i].json, mo_json_i64(v, &si) == rows[i].i_rc);
        check_row(rows[i].json, si == rows[i].i);
        check_row(rows[i].json, mo_json_u64(v, &ui) == rows[i].u_rc);
        check_row(rows[i].json, ui == rows[i].u);
    }
    assert_int_equal(mo_json_i64((struct mo_json){NULL, 0}, &(int64_t){0}),
                     MO_EINVAL);
}

static void test_doubles(void **state)
{
    char big[1200];
    double d = 0;

    (void)state;
    assert_int_equal(mo_json_f64(parse("1.0"), &d), 0);
    assert_true(d == 1.0);
    assert_int_equal(mo_json_f64(parse("-2.5e-3"), &d), 0);
    assert_true(d == -2.5e-3);
    assert_int_equal(mo_json_f64(parse("-0"), &d), 0);
    assert_true(d == 0 && signbit(d));
    assert_int_equal(mo_json_f64(parse("5e-324"), &d), 0);
    assert_true(d > 0);
    assert_int_equal(mo_json_f64(parse("1e-400"), &d), 0);
    assert_true(d == 0);
    assert_int_equal(mo_json_f64(parse("1e400"), &d), MO_EINVAL);
    assert_int_equal(mo_json_f64(parse("\"1\""), &d), MO_EINVAL);
    assert_int_equal(mo_json_f64(parse("null"), &d), MO_EINVAL);
    memset(big, '1', sizeof(big));
    big[1] = '.';
    big[1024] = '\0';
    assert_int_equal(mo_json_f64(parse(big), &d), 0);
    big[1024] = '1';
    big[1025] = '\0';
    assert_int_equal(mo_json_f64(parse(big), &d), MO_EINVAL);
}

static void test_bools(void **state)
{
    bool b = false;

    (void)state;
    assert_int_equal(mo_json_bool(parse("true"), &b), 0);
    assert_true(b);
    assert_int_equal(mo_json_bool(parse("false"), &b), 0);
    assert_false(b);
    assert_int_equal(mo_json_bool(parse("null"), &b), MO_EINVAL);
    assert_true(mo_json_flag(parse("{\"a\":true}"), "a"));
    assert_false(mo_json_flag(parse("{\"a\":false}"), "a"));
    assert_false(mo_json_flag(parse("{\"a\":1}"), "a"));
    assert_false(mo_json_flag(parse("{\"a\":true}"), "b"));
    assert_int_equal(mo_json_bool(parse("1"), &b), MO_EINVAL);
}

/* --- no memory ----------------------------------------------------------- */

static void use_memory(void *ctx)
{
    struct mo_json v = parse("\"a\\nb \\ud83d\\ude00\"");
    struct mo_arena a;
    struct mo_span s;
    struct mo_buf b;
    int rc;

    (void)ctx;
    mo_arena_init(&a, MAX);
    mo_buf_init(&b, MAX);
    rc = mo_json_str(v, &a, &s);
    assert_true(rc == MO_ENOMEM || mo_span_is(s, "a\nb \xf0\x9f\x98\x80"));
    rc = mo_json_str_buf(v, &b);
    assert_true(rc == 0 || rc == MO_ENOMEM);
    mo_buf_fini(&b);
    mo_arena_fini(&a);
}

static void test_no_memory(void **state)
{
    struct mo_buf b;

    (void)state;
    torture(use_memory, NULL);
    mo_buf_init(&b, 3);
    assert_int_equal(mo_json_str_buf(parse("\"a\\nbcd\""), &b), MO_ETOOBIG);
    mo_buf_fini(&b);
}

static void test_str_copy(void **state)
{
    char out[5];

    (void)state;
    assert_int_equal(mo_json_str_copy(parse("\"a\\nbc\""), out, sizeof(out)),
                     0);
    assert_string_equal(out, "a\nbc");
    assert_int_equal(mo_json_str_copy(parse("\"abcde\""), out, sizeof(out)),
                     MO_ETOOBIG);
    assert_string_equal(out, "");
    out[0] = 'x';
    assert_int_equal(mo_json_str_copy(parse("1"), out, sizeof(out)), MO_EINVAL);
    assert_string_equal(out, "");
    mo_mem_fail_at(1, true);
    assert_int_equal(mo_json_str_copy(parse("\"ab\""), out, sizeof(out)),
                     MO_ENOMEM);
    mo_mem_fail_at(0, false);
    assert_string_equal(out, "");
}

/* One pass that validates and finds. */
static void test_parse_members(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    static const struct {
        const char *text, *a, *b;
        int rc;
    } rows[] = {
        {"{\"b\":[1,2],\"x\":{\"a\":3},\"a\":\"z\"}", "\"z\"", "[1,2]", 0},
        {" { \"a\" : 1 , \"a\" : 2 } ", "2", NULL, 0},
        {"{\"\\u0061\":null}", "null", NULL, 0},
        {"{}", NULL, NULL, 0},
        {"", NULL, NULL, MO_EPROTO},
        {"[]", NULL, NULL, MO_EPROTO},
        {"{\"a\":1", NULL, NULL, MO_EPROTO},
        {"{\"a\":1} x", NULL, NULL, MO_EPROTO},
        {"{\"a\":01}", NULL, NULL, MO_EPROTO},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_json v[3];
        int rc = mo_json_parse_members(mo_span_cstr(rows[i].text), names, 3, v,
                                       NULL);

        assert_int_equal(rc, rows[i].rc);
        if (rc < 0)
            continue;
        assert_true(mo_span_is(mo_json_text(v[0]), rows[i].a ? rows[i].a : ""));
        assert_true(mo_span_is(mo_json_text(v[1]), rows[i].b ? rows[i].b : ""));
        assert_null(v[2].p);
    }
}

static void test_walk(void **state)
{
    static const char *const names[] = {"a", "b", NULL};
    struct mo_json v = {"{\"a\":1,\"c\":2,\"\\u0062\":3}", 23};
    unsigned known = 0, all = 0;

    (void)state;
    mo_json_each (m, v) {
        all++;
        known += mo_json_str_in(m.key, names);
    }
    assert_int_equal(all, 3);
    assert_int_equal(known, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_members),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_rows_shifted),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_has_nl),
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_iter),
        cmocka_unit_test(test_iter_object),
        cmocka_unit_test(test_str_copy),
        cmocka_unit_test(test_iter_none),
        cmocka_unit_test(test_enter),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_skip_blocks),
        cmocka_unit_test(test_get),
        cmocka_unit_test(test_at),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_strings_not),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_bools),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
