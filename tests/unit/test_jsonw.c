#include <float.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/json/json.h"
#include "json_rows.h"
#include "mo_test.h"

#define MAX ((size_t)1 << 20)

/* What `write` wrote must be this text, and JSON. */
static void check_written(const char *want, void (*write)(struct mo_jw *w))
{
    struct mo_json_doc doc;
    struct mo_buf b;
    struct mo_jw w;

    mo_buf_init(&b, MAX);
    mo_jw_init(&w, &b);
    write(&w);
    assert_int_equal(w.depth, 0);
    assert_string_equal(mo_buf_cstr(&b), want);
    assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL), 0);
    mo_buf_fini(&b);
}

static void write_all(struct mo_jw *w)
{
    mo_jw_obj(w);
    mo_jw_key(w, "a");
    mo_jw_arr(w);
    mo_jw_i64(w, INT64_MIN);
    mo_jw_u64(w, UINT64_MAX);
    mo_jw_bool(w, true);
    mo_jw_bool(w, false);
    mo_jw_null(w);
    mo_jw_cstr(w, NULL);
    mo_jw_cstr(w, "x");
    mo_jw_end(w);
    mo_jw_key_span(w, MO_SPAN("k\"\n"));
    mo_jw_obj(w);
    mo_jw_end(w);
    mo_jw_key(w, "raw");
    mo_jw_raw(w, MO_SPAN("[1.0]"));
    mo_jw_key(w, "e");
    mo_jw_arr(w);
    mo_jw_arr(w);
    mo_jw_end(w);
    mo_jw_obj(w);
    mo_jw_key(w, "");
    mo_jw_str(w, MO_SPAN(""));
    mo_jw_end(w);
    mo_jw_end(w);
    mo_jw_end(w);
}

static void write_scalar(struct mo_jw *w)
{
    mo_jw_str(w, MO_SPAN("alone"));
}

static void write_deep(struct mo_jw *w)
{
    for (int i = 0; i < MO_JW_DEPTH_MAX - 1; i++)
        mo_jw_arr(w);
    for (int i = 0; i < MO_JW_DEPTH_MAX - 1; i++)
        mo_jw_end(w);
}

static void test_writer(void **state)
{
    char deep[2 * MO_JW_DEPTH_MAX - 1];

    (void)state;
    check_written("{\"a\":[-9223372036854775808,18446744073709551615,true,"
                  "false,null,null,\"x\"],\"k\\\"\\n\":{},\"raw\":[1.0],"
                  "\"e\":[[],{\"\":\"\"}]}",
                  write_all);
    check_written("\"alone\"", write_scalar);
    memset(deep, '[', MO_JW_DEPTH_MAX - 1);
    memset(deep + MO_JW_DEPTH_MAX - 1, ']', MO_JW_DEPTH_MAX - 1);
    deep[sizeof(deep) - 1] = '\0';
    check_written(deep, write_deep);
}

/* --- misuse ends the process --------------------------------------------- */

static void two_tops(struct mo_jw *w)
{
    mo_jw_null(w);
    mo_jw_null(w);
}

static void value_without_key(struct mo_jw *w)
{
    mo_jw_obj(w);
    mo_jw_null(w);
}

static void key_in_array(struct mo_jw *w)
{
    mo_jw_arr(w);
    mo_jw_key(w, "a");
}

static void key_at_top(struct mo_jw *w)
{
    mo_jw_key(w, "a");
}

static void two_keys(struct mo_jw *w)
{
    mo_jw_obj(w);
    mo_jw_key(w, "a");
    mo_jw_key(w, "b");
}

static void end_after_key(struct mo_jw *w)
{
    mo_jw_obj(w);
    mo_jw_key(w, "a");
    mo_jw_end(w);
}

static void end_at_top(struct mo_jw *w)
{
    mo_jw_end(w);
}

static void too_deep(struct mo_jw *w)
{
    for (int i = 0; i < MO_JW_DEPTH_MAX; i++)
        mo_jw_arr(w);
}

static void empty_raw(struct mo_jw *w)
{
    mo_jw_raw(w, MO_SPAN(""));
}

static bool dies(void (*misuse)(struct mo_jw *w))
{
    pid_t pid = fork();
    int status = 0;

    assert_true(pid >= 0);
    if (pid == 0) {
        struct mo_buf b;
        struct mo_jw w;

        (void)signal(SIGABRT, SIG_DFL);
        (void)fclose(stderr);
        mo_buf_init(&b, MAX);
        mo_jw_init(&w, &b);
        misuse(&w);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void test_misuse(void **state)
{
    static const struct {
        const char *name;
        void (*misuse)(struct mo_jw *w);
    } rows[] = {
        {"two tops", two_tops},
        {"value without key", value_without_key},
        {"key in array", key_in_array},
        {"key at top", key_at_top},
        {"two keys", two_keys},
        {"end after key", end_after_key},
        {"end at top", end_at_top},
        {"too deep", too_deep},
        {"empty raw", empty_raw},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].name, dies(rows[i].misuse));
    check_row("right use lives", !dies(write_all));
}

/* --- literals ------------------------------------------------------------ */

static void test_quote(void **state)
{
    static const struct {
        const char *name;
        struct mo_span in;
        const char *want;
    } rows[] = {
        {"empty", MO_SPAN(""), "\"\""},
        {"plain", MO_SPAN("abc"), "\"abc\""},
        {"quote", MO_SPAN("a\"b\\c/d"), "\"a\\\"b\\\\c/d\""},
        {"named", MO_SPAN("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\""},
        {"nul", MO_SPAN("a\0b"), "\"a\\u0000b\""},
        {"controls", MO_SPAN("\x01\x1f\x7f"), "\"\\u0001\\u001f\x7f\""},
        {"foreign", MO_SPAN("\xc3\xa9\xf0\x9f\x98\x80"),
         "\"\xc3\xa9\xf0\x9f\x98\x80\""},
        {"bad byte",
         MO_SPAN("a\xff"
                 "b"),
         "\"a\xef\xbf\xbd"
         "b\""},
        {"bad bytes", MO_SPAN("\xff\xfe"), "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"lone tail", MO_SPAN("\x80"), "\"\xef\xbf\xbd\""},
        {"cut character is one", MO_SPAN("\xf0\x9f\x98"), "\"\xef\xbf\xbd\""},
        {"cut, then text", MO_SPAN("\xe2\x82z"), "\"\xef\xbf\xbdz\""},
        {"surrogate", MO_SPAN("\xed\xa0\x80"),
         "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"long", MO_SPAN("0123456789abcdef0123456789abcdef\n0123456789abcdef"),
         "\"0123456789abcdef0123456789abcdef\\n0123456789abcdef\""},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_buf_reset(&b);
        assert_int_equal(mo_json_quote(&b, rows[i].in), 0);
        check_row(rows[i].name, mo_span_is(mo_buf_view(&b), rows[i].want));
    }
    mo_buf_fini(&b);
}

/* Every code point, and every byte at every offset, survives. */
static void test_quote_back(void **state)
{
    struct mo_json_doc doc;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    for (size_t n = 1; n < 40; n++) {
        for (int c = 0; c < 0x80; c++) {
            char in[40];

            memset(in, 'x', sizeof(in));
            in[n - 1] = (char)c;
            mo_buf_reset(&b);
            assert_int_equal(mo_json_quote(&b, mo_span(in, n)), 0);
            assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL), 0);
            assert_true(mo_json_str_eq(doc.root, mo_span(in, n)));
        }
    }
    mo_buf_fini(&b);
}

static void test_doubles(void **state)
{
    static const struct {
        double v;
        const char *want;
    } rows[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {1e22, "1e+22"},
        {123456789012345678.0, "1.2345678901234568e+17"},
        {5e-324, "5e-324"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {(double)NAN, "null"},
        {(double)INFINITY, "null"},
        {-(double)INFINITY, "null"},
    };
    struct mo_json_doc doc;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_jw w;
        double back;

        mo_buf_reset(&b);
        mo_jw_init(&w, &b);
        mo_jw_f64(&w, rows[i].v);
        check_row(rows[i].want, mo_span_is(mo_buf_view(&b), rows[i].want));
        assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL), 0);
        if (isfinite(rows[i].v)) {
            assert_int_equal(mo_json_f64(doc.root, &back), 0);
            check_row(rows[i].want, back == rows[i].v);
        }
    }
    mo_buf_fini(&b);
}

/* --- compact and pretty -------------------------------------------------- */

static struct mo_json parse(struct mo_span text)
{
    struct mo_json_doc doc;

    assert_int_equal(mo_json_parse(text, 0, &doc, NULL), 0);
    return doc.root;
}

static void test_compact(void **state)
{
    static const struct {
        const char *in, *want;
    } rows[] = {
        {"1", "1"},
        {" [ ] ", "[]"},
        {"{ \"a b\" : [ 1.0 , -0e+1 ],\n\t\"\\u0061\" : \" x \" }",
         "{\"a b\":[1.0,-0e+1],\"\\u0061\":\" x \"}"},
        {"[\r\n                                   1,\r\n      true\r\n]",
         "[1,true]"},
        {"[\"\\\" \",  \"\\\\\" , \" \"]", "[\"\\\" \",\"\\\\\",\" \"]"},
        {"[9007199254740993 , 1.0, 1]", "[9007199254740993,1.0,1]"},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_buf_reset(&b);
        assert_int_equal(mo_json_compact(parse(mo_span_cstr(rows[i].in)), &b),
                         0);
        check_row(rows[i].in, mo_span_is(mo_buf_view(&b), rows[i].want));
    }
    mo_buf_fini(&b);
}

static void test_pretty(void **state)
{
    static const struct {
        const char *in, *want;
    } rows[] = {
        {"1", "1"},
        {"[ ]", "[]"},
        {"{ }", "{}"},
        {"[1,2]", "[\n  1,\n  2\n]"},
        {"{\"a\":{\"b\":[]},\"c\":[{}]}", "{\n  \"a\": {\n    \"b\": []\n  },\n"
                                          "  \"c\": [\n    {}\n  ]\n}"},
        {"{\"a:,[\" : \"]}\"}", "{\n  \"a:,[\": \"]}\"\n}"},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_buf_reset(&b);
        assert_int_equal(mo_json_pretty(parse(mo_span_cstr(rows[i].in)), &b),
                         0);
        check_row(rows[i].in, mo_span_is(mo_buf_view(&b), rows[i].want));
    }
    mo_buf_fini(&b);
}

/* compact is idempotent, has no newline, and undoes pretty. */
static void test_emit_rows(void **state)
{
    struct mo_buf one, two, pretty;

    (void)state;
    mo_buf_init(&one, MAX);
    mo_buf_init(&two, MAX);
    mo_buf_init(&pretty, MAX);
    for (size_t i = 0; i < MO_COUNT(json_rows); i++) {
        struct mo_json_doc doc;

        if (json_rows[i].bad_at != ROW_GOOD)
            continue;
        mo_buf_reset(&one);
        mo_buf_reset(&two);
        mo_buf_reset(&pretty);
        mo_json_compact(parse(json_rows[i].text), &one);
        assert_int_equal(mo_json_parse(mo_buf_view(&one), 0, &doc, NULL), 0);
        check_row(json_rows[i].name, !doc.has_nl);
        mo_json_pretty(doc.root, &pretty);
        mo_json_compact(parse(mo_buf_view(&pretty)), &two);
        check_row(json_rows[i].name,
                  mo_span_eq(mo_buf_view(&one), mo_buf_view(&two)));
    }
    mo_buf_fini(&one);
    mo_buf_fini(&two);
    mo_buf_fini(&pretty);
}

/* --- limits -------------------------------------------------------------- */

static void use_memory(void *ctx)
{
    struct mo_json v = parse(MO_SPAN("{\"a\" : [1, {\"b\" : \"\\n\"}]}"));
    struct mo_buf b;
    struct mo_jw w;

    (void)ctx;
    mo_buf_init(&b, MAX);
    mo_jw_init(&w, &b);
    write_all(&w);
    assert_int_equal(w.depth, 0);
    for (int i = 0; i < 20; i++)
        mo_json_pretty(v, &b);
    mo_json_compact(v, &b);
    mo_json_quote(&b, MO_SPAN("a \"quoted\" \xff text"));
    assert_true(mo_buf_err(&b) == 0 || mo_buf_err(&b) == MO_ENOMEM);
    mo_buf_fini(&b);
}

static void test_no_memory(void **state)
{
    (void)state;
    torture(use_memory, NULL);
}

/* The writer keeps its balance when the buffer is full. */
static void test_too_big(void **state)
{
    (void)state;
    for (size_t max = 0; max < 60; max++) {
        struct mo_buf b;
        struct mo_jw w;

        mo_buf_init(&b, max);
        mo_jw_init(&w, &b);
        write_all(&w);
        assert_int_equal(w.depth, 0);
        assert_int_equal(mo_buf_err(&b), MO_ETOOBIG);
        assert_true(b.len <= max);
        mo_buf_fini(&b);
    }
}

static void test_end_all(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 64};
    struct mo_jw w = mo_jw_object(&b);

    (void)state;
    mo_jw_member_arr(&w, "a");
    mo_jw_obj(&w);
    mo_jw_end_all(&w);
    assert_string_equal(mo_buf_cstr(&b), "{\"a\":[{}]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end_all),    cmocka_unit_test(test_writer),
        cmocka_unit_test(test_misuse),     cmocka_unit_test(test_quote),
        cmocka_unit_test(test_quote_back), cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_compact),    cmocka_unit_test(test_pretty),
        cmocka_unit_test(test_emit_rows),  cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_too_big),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
