/* Result limits, and removal of secrets from servers' messages. */
#include "mo_test.h"

#include "base/log.h"
#include "gateway/call/result_limit.h"
#include "secrets/redact.h"

static struct mo_json json(const char *text)
{
    return (struct mo_json){text, strlen(text)};
}

/* --- long results -------------------------------------------------------- */

#define LONG_TEXT 1000

/* n times two bytes. */
static void put_long(struct mo_buf *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)mo_buf_puts(b, "\xc3\xa9");
}

static void test_short(void **state)
{
    struct mo_loop *l = mo_loop_new(NULL, NULL);
    struct result_store *s = mo_result_limit_new(l);
    struct result_limit how = {.who = "me", .max = 300};
    struct mo_buf out;

    (void)state;
    mo_buf_init(&out, 1 << 20);
    assert_false(mo_result_limit_cut(s, &how, json("{\"content\":[]}"), &out));
    mo_buf_fini(&out);
    mo_result_limit_free(s);
    mo_loop_free(l);
}

/* The text is cut after a whole character; images and short items stay. */
static void test_cut(void **state)
{
    struct mo_loop *l = mo_loop_new(NULL, NULL);
    struct result_store *s = mo_result_limit_new(l);
    struct result_limit how = {.who = "me", .max = 301};
    struct mo_buf in, out;
    struct mo_json v, content, meta;
    struct mo_json_doc d;
    uint64_t n = 0;

    (void)state;
    mo_buf_init(&in, 1 << 20);
    mo_buf_init(&out, 1 << 20);
    (void)mo_buf_puts(&in, "{\"x\":1,\"content\":[{\"type\":\"text\",\"text\":"
                           "\"ab\"},{\"type\":\"image\",\"data\":\"AAAA\"},"
                           "{\"type\":\"text\",\"text\":\"");
    put_long(&in, LONG_TEXT);
    (void)mo_buf_puts(&in, "\"}],\"structuredContent\":{\"a\":\"");
    put_long(&in, LONG_TEXT);
    (void)mo_buf_puts(&in, "\"},\"_meta\":{\"y\":2}}");
    assert_true(mo_result_limit_cut(s, &how, json(mo_buf_cstr(&in)), &out));
    assert_int_equal(mo_json_parse(mo_buf_view(&out), 0, &d, NULL), 0);
    content = mo_json_get(d.root, "content");
    assert_true(mo_json_str_eq(mo_json_get(mo_json_at(content, 0), "text"),
                               MO_SPAN("ab")));
    assert_true(mo_json_get(mo_json_at(content, 1), "data").p);
    v = mo_json_get(mo_json_at(content, 2), "text");
    assert_true(mo_span_search(mo_json_text(v), MO_SPAN("[cut: 296 of 2000 "
                                                        "bytes")) > 0);
    assert_false(mo_json_get(d.root, "structuredContent").p);
    meta = mo_json_get(d.root, "_meta");
    assert_true(mo_span_is(mo_json_text(mo_json_get(meta, "y")), "2"));
    meta = mo_json_get(meta, RESULT_META);
    assert_int_equal(mo_json_len(meta), 2);
    assert_int_equal(mo_json_u64(mo_json_get(mo_json_at(meta, 1), "bytes"), &n),
                     0);
    assert_int_equal(n, 2000);
    /* structured content with a schema stays */
    mo_buf_reset(&out);
    how.has_output_schema = true;
    assert_true(mo_result_limit_cut(s, &how, json(mo_buf_cstr(&in)), &out));
    assert_int_equal(mo_json_parse(mo_buf_view(&out), 0, &d, NULL), 0);
    assert_true(mo_json_get(d.root, "structuredContent").p);
    mo_buf_fini(&in);
    mo_buf_fini(&out);
    mo_result_limit_free(s);
    mo_loop_free(l);
}

/* More than the limit: the oldest goes, and memory stays bounded. */
static void test_bounded(void **state)
{
    struct mo_loop *l = mo_loop_new(NULL, NULL);
    struct result_store *s = mo_result_limit_new(l);
    struct result_limit how = {.who = "me", .max = 300};
    struct mo_buf in, out;

    (void)state;
    mo_buf_init(&in, 1 << 20);
    mo_buf_init(&out, 1 << 20);
    (void)mo_buf_puts(&in, "{\"content\":[{\"type\":\"text\",\"text\":\"");
    put_long(&in, LONG_TEXT);
    (void)mo_buf_puts(&in, "\"}]}");
    for (int i = 0; i < RESULT_ROWS_MAX + 10; i++) {
        mo_buf_reset(&out);
        assert_true(mo_result_limit_cut(s, &how, json(mo_buf_cstr(&in)), &out));
    }
    mo_buf_fini(&in);
    mo_buf_fini(&out);
    mo_result_limit_free(s);
    mo_loop_free(l);
}

struct tortured {
    struct mo_loop *l;
    struct mo_buf *in;
};

static void torture_body(void *arg)
{
    struct tortured *t = arg;
    struct result_store *s = mo_result_limit_new(t->l);
    struct result_limit how = {.who = "me", .max = 300};
    struct mo_json_doc d;
    struct mo_buf out;

    if (!s)
        return;
    mo_buf_init(&out, 1 << 20);
    if (mo_result_limit_cut(s, &how, json(mo_buf_cstr(t->in)), &out))
        assert_int_equal(mo_json_parse(mo_buf_view(&out), 0, &d, NULL), 0);
    mo_buf_fini(&out);
    mo_result_limit_free(s);
}

static void test_torture(void **state)
{
    struct tortured t = {.l = mo_loop_new(NULL, NULL)};
    struct mo_buf in;

    (void)state;
    mo_buf_init(&in, 1 << 20);
    (void)mo_buf_puts(&in, "{\"content\":[{\"type\":\"text\",\"text\":\"\\n");
    put_long(&in, LONG_TEXT);
    (void)mo_buf_puts(&in, "\"}]}");
    t.in = &in;
    torture(torture_body, &t);
    mo_buf_fini(&in);
    mo_loop_free(t.l);
}

/* --- secrets ------------------------------------------------------------- */

static const struct {
    const char *name, *in, *out;
} rows[] = {
    {"none", "{\"message\":\"all is well\"}", "{\"message\":\"all is well\"}"},
    {"one", "{\"message\":\"bad key sk-planted-1!\"}",
     "{\"message\":\"bad key [secret]!\"}"},
    {"twice, and both", "{\"m\":\"sk-planted-1 sk-planted-1 a\\\"b\\\\c-d\"}",
     "{\"m\":\"[secret] [secret] [secret]\"}"},
};

static void test_hush(void **state)
{
    struct mo_log log;
    struct mo_loop *l;

    (void)state;
    mo_log_init(&log, -1);
    l = mo_loop_new(&log, NULL);
    assert_int_equal(mo_loop_secret(l, MO_SPAN("sk-planted-1")), 0);
    assert_int_equal(mo_loop_secret(l, MO_SPAN("a\"b\\c-d")), 0);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf b;
        struct mo_json got;

        mo_buf_init(&b, 1 << 16);
        got = mo_redact(l, json(rows[i].in), &b);
        check_row(rows[i].name, mo_span_is(mo_json_text(got), rows[i].out));
        mo_buf_fini(&b);
    }
    mo_loop_free(l);
    mo_log_fini(&log);
}

/* Errors and failed results only; successful results are unchanged. */
static void test_hush_reply(void **state)
{
    struct mo_reply error = {.error = json("{\"message\":\"sk-planted-1\"}")};
    struct mo_reply bad = {
        .result = json("{\"isError\":true,\"x\":\"sk-planted-1\"}")};
    struct mo_reply good = {.result = json("{\"x\":\"sk-planted-1\"}")};
    struct mo_log log;
    struct mo_loop *l;
    struct mo_buf b;

    (void)state;
    mo_log_init(&log, -1);
    l = mo_loop_new(&log, NULL);
    assert_int_equal(mo_loop_secret(l, MO_SPAN("sk-planted-1")), 0);
    mo_buf_init(&b, 1 << 16);
    assert_true(mo_span_is(mo_json_text(mo_redact_reply(l, &error, &b)),
                           "{\"message\":\"[secret]\"}"));
    assert_true(mo_span_is(mo_json_text(mo_redact_reply(l, &bad, &b)),
                           "{\"isError\":true,\"x\":\"[secret]\"}"));
    assert_ptr_equal(mo_redact_reply(l, &good, &b).p, good.result.p);
    mo_buf_fini(&b);
    mo_loop_free(l);
    mo_log_fini(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short),   cmocka_unit_test(test_cut),
        cmocka_unit_test(test_bounded), cmocka_unit_test(test_torture),
        cmocka_unit_test(test_hush),    cmocka_unit_test(test_hush_reply),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
