#include "codec/rpc.h"
#include "json_rows.h"
#include "mo_test.h"

#define MAX ((size_t)1 << 20)
#define V   "\"jsonrpc\":\"2.0\""

/* Expected spans; NULL = none. payload: params, result or error by kind. */
static const struct row {
    const char *name, *text;
    enum mo_rpc_kind kind;
    const char *id, *method, *payload;
} rows[] = {
    {"request", "{" V ",\"id\":1,\"method\":\"a\"}", MO_RPC_REQUEST, "1",
     "\"a\"", NULL},
    {"request with params", "{" V ",\"id\":1,\"method\":\"a\",\"params\":{}}",
     MO_RPC_REQUEST, "1", "\"a\"", "{}"},
    {"request with array",
     "{" V ",\"id\":\"x\",\"method\":\"a\",\"params\":[1, 2]}", MO_RPC_REQUEST,
     "\"x\"", "\"a\"", "[1, 2]"},
    {"members in any order",
     "{\"params\":{\"a\":[]},\"method\":\"m\",\"id\":7," V "}", MO_RPC_REQUEST,
     "7", "\"m\"", "{\"a\":[]}"},
    {"blanks everywhere",
     " { \"jsonrpc\" : \"2.0\" , \"id\" : 1 , \"method\" : \"a\" } ",
     MO_RPC_REQUEST, "1", "\"a\"", NULL},
    {"unknown members", "{" V ",\"id\":1,\"x\":{\"id\":2},\"method\":\"a\"}",
     MO_RPC_REQUEST, "1", "\"a\"", NULL},
    {"unknown twice", "{" V ",\"id\":1,\"x\":1,\"x\":2,\"method\":\"a\"}",
     MO_RPC_REQUEST, "1", "\"a\"", NULL},
    {"inner duplicates are not ours",
     "{" V ",\"id\":1,\"method\":\"a\",\"params\":{\"id\":1,\"id\":2}}",
     MO_RPC_REQUEST, "1", "\"a\"", "{\"id\":1,\"id\":2}"},
    {"escaped member", "{" V ",\"\\u0069d\":3,\"m\\u0065thod\":\"a\"}",
     MO_RPC_REQUEST, "3", "\"a\"", NULL},
    {"escaped version", "{\"jsonrpc\":\"2\\u002e0\",\"id\":3,\"method\":\"a\"}",
     MO_RPC_REQUEST, "3", "\"a\"", NULL},
    {"escaped method keeps its text", "{" V ",\"id\":3,\"method\":\"\\u0061\"}",
     MO_RPC_REQUEST, "3", "\"\\u0061\"", NULL},
    {"empty method", "{" V ",\"id\":3,\"method\":\"\"}", MO_RPC_REQUEST, "3",
     "\"\"", NULL},
    {"other case is another name", "{" V ",\"id\":1,\"ID\":2,\"method\":\"a\"}",
     MO_RPC_REQUEST, "1", "\"a\"", NULL},
    {"notification", "{" V ",\"method\":\"a\"}", MO_RPC_NOTIFICATION, NULL,
     "\"a\"", NULL},
    {"notification with params", "{" V ",\"method\":\"a\",\"params\":[]}",
     MO_RPC_NOTIFICATION, NULL, "\"a\"", "[]"},
    {"result", "{" V ",\"id\":1,\"result\":{\"a\":1}}", MO_RPC_RESULT, "1",
     NULL, "{\"a\":1}"},
    {"result null", "{" V ",\"id\":1,\"result\":null}", MO_RPC_RESULT, "1",
     NULL, "null"},
    {"result scalar", "{" V ",\"id\":\"a\",\"result\":1.0}", MO_RPC_RESULT,
     "\"a\"", NULL, "1.0"},
    {"error", "{" V ",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"no\"}}",
     MO_RPC_ERROR, "1", NULL, "{\"code\":-32601,\"message\":\"no\"}"},
    {"error with data",
     "{" V ",\"id\":1,\"error\":{\"data\":[],\"message\":\"\",\"code\":0}}",
     MO_RPC_ERROR, "1", NULL, "{\"data\":[],\"message\":\"\",\"code\":0}"},
    {"error for null",
     "{" V ",\"id\":null,\"error\":{\"code\":1,"
     "\"message\":\"x\"}}",
     MO_RPC_ERROR, "null", NULL, "{\"code\":1,\"message\":\"x\"}"},
    {"error without id", "{" V ",\"error\":{\"code\":1,\"message\":\"x\"}}",
     MO_RPC_ERROR, NULL, NULL, "{\"code\":1,\"message\":\"x\"}"},
    {"batch", "[1,{}]", MO_RPC_BATCH, NULL, NULL, NULL},

    /* ids keep their bytes */
    {"id above 2^53", "{" V ",\"id\":9007199254740993,\"result\":0}",
     MO_RPC_RESULT, "9007199254740993", NULL, "0"},
    {"id 1.0", "{" V ",\"id\":1.0,\"result\":0}", MO_RPC_RESULT, "1.0", NULL,
     "0"},
    {"id 1e0", "{" V ",\"id\":1e0,\"result\":0}", MO_RPC_RESULT, "1e0", NULL,
     "0"},
    {"id fraction", "{" V ",\"id\":-0.25,\"result\":0}", MO_RPC_RESULT, "-0.25",
     NULL, "0"},
    {"id beyond uint64", "{" V ",\"id\":18446744073709551616,\"result\":0}",
     MO_RPC_RESULT, "18446744073709551616", NULL, "0"},
    {"id empty string", "{" V ",\"id\":\"\",\"result\":0}", MO_RPC_RESULT,
     "\"\"", NULL, "0"},
    {"id string of a number", "{" V ",\"id\":\"1\",\"result\":0}",
     MO_RPC_RESULT, "\"1\"", NULL, "0"},
    {"id escaped", "{" V ",\"id\":\"\\u0031\",\"result\":0}", MO_RPC_RESULT,
     "\"\\u0031\"", NULL, "0"},

    /* JSON, but no message; the id is there when it could be used */
    {"empty object", "{}", MO_RPC_INVALID, NULL, NULL, NULL},
    {"scalar", "1", MO_RPC_INVALID, NULL, NULL, NULL},
    {"string", "\"jsonrpc\"", MO_RPC_INVALID, NULL, NULL, NULL},
    {"null", "null", MO_RPC_INVALID, NULL, NULL, NULL},
    {"empty batch", "[ ]", MO_RPC_INVALID, NULL, NULL, NULL},
    {"no version", "{\"id\":1,\"method\":\"a\"}", MO_RPC_INVALID, "1", NULL,
     NULL},
    {"version 1.0", "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"a\"}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"version number", "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"a\"}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"version null", "{\"jsonrpc\":null,\"id\":1,\"method\":\"a\"}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"nothing but id", "{" V ",\"id\":1}", MO_RPC_INVALID, "1", NULL, NULL},
    {"nothing but params", "{" V ",\"id\":1,\"params\":{}}", MO_RPC_INVALID,
     "1", NULL, NULL},
    {"method number", "{" V ",\"id\":1,\"method\":1}", MO_RPC_INVALID, "1",
     NULL, NULL},
    {"method null", "{" V ",\"id\":1,\"method\":null}", MO_RPC_INVALID, "1",
     NULL, NULL},
    {"method object", "{" V ",\"method\":{}}", MO_RPC_INVALID, NULL, NULL,
     NULL},
    {"params string", "{" V ",\"id\":1,\"method\":\"a\",\"params\":\"x\"}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"params number", "{" V ",\"id\":1,\"method\":\"a\",\"params\":1}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"params null", "{" V ",\"id\":1,\"method\":\"a\",\"params\":null}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"params true", "{" V ",\"method\":\"a\",\"params\":true}", MO_RPC_INVALID,
     NULL, NULL, NULL},
    {"params in a result", "{" V ",\"id\":1,\"result\":1,\"params\":{}}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"params in an error",
     "{" V ",\"id\":1,\"error\":{\"code\":1,\"message\":\"\"},\"params\":{}}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"result and error",
     "{" V ",\"id\":1,\"result\":1,\"error\":{\"code\":1,"
     "\"message\":\"x\"}}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"result and null error", "{" V ",\"id\":1,\"result\":1,\"error\":null}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"method and result", "{" V ",\"id\":1,\"method\":\"a\",\"result\":1}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"method and error",
     "{" V ",\"id\":1,\"method\":\"a\",\"error\":{"
     "\"code\":1,\"message\":\"x\"}}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"result without id", "{" V ",\"result\":1}", MO_RPC_INVALID, NULL, NULL,
     NULL},
    {"result for null", "{" V ",\"id\":null,\"result\":1}", MO_RPC_INVALID,
     NULL, NULL, NULL},
    {"request for null", "{" V ",\"id\":null,\"method\":\"a\"}", MO_RPC_INVALID,
     NULL, NULL, NULL},
    {"id true", "{" V ",\"id\":true,\"method\":\"a\"}", MO_RPC_INVALID, NULL,
     NULL, NULL},
    {"id array", "{" V ",\"id\":[1],\"method\":\"a\"}", MO_RPC_INVALID, NULL,
     NULL, NULL},
    {"id object", "{" V ",\"id\":{},\"result\":1}", MO_RPC_INVALID, NULL, NULL,
     NULL},
    {"error string", "{" V ",\"id\":1,\"error\":\"x\"}", MO_RPC_INVALID, "1",
     NULL, NULL},
    {"error null", "{" V ",\"id\":1,\"error\":null}", MO_RPC_INVALID, "1", NULL,
     NULL},
    {"error empty", "{" V ",\"id\":1,\"error\":{}}", MO_RPC_INVALID, "1", NULL,
     NULL},
    {"error without code", "{" V ",\"id\":1,\"error\":{\"message\":\"x\"}}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"error without message", "{" V ",\"id\":1,\"error\":{\"code\":1}}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"error code string",
     "{" V ",\"id\":1,\"error\":{\"code\":\"1\",\"message\":\"x\"}}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"error code fraction",
     "{" V ",\"id\":1,\"error\":{\"code\":1.5,\"message\":\"x\"}}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"error message number",
     "{" V ",\"id\":1,\"error\":{\"code\":1,\"message\":2}}", MO_RPC_INVALID,
     "1", NULL, NULL},

    /* two readers would see two messages */
    {"id twice", "{" V ",\"id\":1,\"method\":\"a\",\"id\":2}", MO_RPC_INVALID,
     NULL, NULL, NULL},
    {"id twice, the same", "{" V ",\"id\":1,\"method\":\"a\",\"id\":1}",
     MO_RPC_INVALID, NULL, NULL, NULL},
    {"id twice, escaped", "{" V ",\"id\":1,\"method\":\"a\",\"i\\u0064\":2}",
     MO_RPC_INVALID, NULL, NULL, NULL},
    {"id twice, both escaped",
     "{" V ",\"\\u0069d\":1,\"method\":\"a\",\"i\\u0064\":2}", MO_RPC_INVALID,
     NULL, NULL, NULL},
    {"id twice, one null", "{" V ",\"id\":null,\"id\":1,\"method\":\"a\"}",
     MO_RPC_INVALID, NULL, NULL, NULL},
    {"method twice", "{" V ",\"id\":1,\"method\":\"a\",\"method\":\"b\"}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"method twice, escaped",
     "{" V ",\"id\":1,\"method\":\"a\",\"\\u006dethod\":\"b\"}", MO_RPC_INVALID,
     "1", NULL, NULL},
    {"params twice",
     "{" V ",\"id\":1,\"method\":\"a\",\"params\":{},\"params\":[]}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"params twice, escaped",
     "{" V ",\"id\":1,\"method\":\"a\",\"par\\u0061ms\":{},\"params\":[]}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"result twice", "{" V ",\"id\":1,\"result\":1,\"result\":1}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"result twice, escaped",
     "{" V ",\"id\":1,\"result\":1,\"resul\\u0074\":1}", MO_RPC_INVALID, "1",
     NULL, NULL},
    {"error twice",
     "{" V ",\"id\":1,\"error\":{\"code\":1,\"message\":\"\"},"
     "\"error\":{\"code\":1,\"message\":\"\"}}",
     MO_RPC_INVALID, "1", NULL, NULL},
    {"version twice", "{" V "," V ",\"id\":1,\"method\":\"a\"}", MO_RPC_INVALID,
     "1", NULL, NULL},
    {"version twice, escaped",
     "{" V ",\"\\u006asonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}",
     MO_RPC_INVALID, "1", NULL, NULL},
};

static bool same(struct mo_json v, const char *want)
{
    if (!want)
        return v.p == NULL;
    return v.p && mo_span_is(mo_json_text(v), want);
}

static struct mo_json payload(const struct mo_rpc *m)
{
    if (m->kind == MO_RPC_RESULT)
        return m->result;
    return m->kind == MO_RPC_ERROR ? m->error : m->params;
}

static int count_payloads(const struct mo_rpc *m)
{
    return (m->params.p != NULL) + (m->result.p != NULL) + (m->error.p != NULL);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const struct row *r = &rows[i];
        struct mo_span text = mo_span_cstr(r->text);
        struct mo_err e = {0};
        struct mo_rpc m;

        check_row(r->name, mo_rpc_parse(text, &m, &e) == 0);
        check_row(r->name, m.kind == r->kind);
        check_row(r->name, same(m.id, r->id));
        check_row(r->name, same(m.method, r->method));
        check_row(r->name, same(payload(&m), r->payload));
        check_row(r->name, count_payloads(&m) == (r->payload != NULL));
        check_row(r->name, mo_span_search(text, mo_json_text(m.root)) >= 0);
        check_row(r->name, (e.msg[0] != '\0') == (m.kind == MO_RPC_INVALID));
        check_row(r->name, mo_rpc_parse(text, &m, NULL) == 0);
    }
}

/* Cut anywhere, a message is no JSON, and says so. */
static void test_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span text = mo_span_trim(mo_span_cstr(rows[i].text));

        for (size_t n = 0; n < text.n; n++) {
            struct mo_err e = {0};
            struct mo_rpc m;

            check_row(rows[i].name,
                      mo_rpc_parse(mo_span_head(text, n), &m, &e) == MO_EPROTO);
            check_row(rows[i].name, e.code == MO_EPROTO);
            check_row(rows[i].name, m.kind == MO_RPC_INVALID && !m.root.p);
        }
    }
}

/* The envelope's scan agrees with the plain parser on what is JSON: each row
 * alone, and as the params of a request. */
static void test_json_rows(void **state)
{
    static const char head[] = "{" V ",\"id\":1,\"method\":\"a\",\"x\":";
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    for (size_t i = 0; i < MO_COUNT(json_rows); i++) {
        const struct json_row *r = &json_rows[i];
        struct mo_json_doc doc;
        struct mo_err e1 = {0}, e2 = {0};
        struct mo_rpc m;
        int rc = mo_rpc_parse(r->text, &m, &e1);

        check_row(r->name, rc == (r->bad_at == ROW_GOOD ? 0 : MO_EPROTO));
        check_row(r->name, mo_json_parse(r->text, 0, &doc, &e2) == rc);
        if (rc < 0)
            assert_string_equal(e1.msg, e2.msg);
        mo_buf_reset(&b);
        mo_buf_puts(&b, head);
        mo_buf_span(&b, r->text);
        mo_buf_putc(&b, '}');
        rc = mo_rpc_parse(mo_buf_view(&b), &m, &e1);
        check_row(r->name, rc == mo_json_parse(mo_buf_view(&b), 0, &doc, &e2));
        if (rc < 0)
            assert_string_equal(e1.msg, e2.msg);
        check_row(r->name, rc < 0 || m.kind == MO_RPC_REQUEST);
        check_row(r->name, rc < 0 || m.has_nl == doc.has_nl);
    }
    mo_buf_fini(&b);
}

static void test_depth(void **state)
{
    struct mo_buf b;
    struct mo_rpc m;

    (void)state;
    mo_buf_init(&b, MAX);
    for (int levels = 511; levels <= 512; levels++) {
        mo_buf_reset(&b);
        mo_buf_puts(&b, "{" V ",\"id\":1,\"result\":");
        for (int i = 0; i < levels; i++)
            mo_buf_putc(&b, '[');
        for (int i = 0; i < levels; i++)
            mo_buf_putc(&b, ']');
        mo_buf_putc(&b, '}');
        assert_int_equal(mo_rpc_parse(mo_buf_view(&b), &m, NULL),
                         levels == 511 ? 0 : MO_EPROTO);
    }
    mo_buf_fini(&b);
}

static void test_batch(void **state)
{
    struct mo_json k, v;
    struct mo_json_iter it;
    struct mo_rpc m, one;

    (void)state;
    assert_int_equal(mo_rpc_parse(MO_SPAN("[{" V ",\"id\":1,\"method\":\"a\"},"
                                          "\n{" V ",\"method\":\"b\"}]"),
                                  &m, NULL),
                     0);
    assert_int_equal(m.kind, MO_RPC_BATCH);
    assert_true(m.has_nl);
    mo_json_iter(&it, m.root);
    assert_true(mo_json_next(&it, &k, &v));
    assert_int_equal(mo_rpc_parse(mo_json_text(v), &one, NULL), 0);
    assert_int_equal(one.kind, MO_RPC_REQUEST);
    assert_false(one.has_nl);
    assert_true(mo_json_next(&it, &k, &v));
    assert_int_equal(mo_rpc_parse(mo_json_text(v), &one, NULL), 0);
    assert_int_equal(one.kind, MO_RPC_NOTIFICATION);
    assert_false(mo_json_next(&it, &k, &v));
}

/* --- writing ------------------------------------------------------------- */

static void test_put(void **state)
{
    static const struct mo_span none = {NULL, 0};
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MAX);
    mo_rpc_put_notification(&b, "a\"b", MO_SPAN("[]"));
    assert_string_equal(mo_buf_cstr(&b),
                        "{" V ",\"method\":\"a\\\"b\",\"params\":[]}");
    mo_buf_reset(&b);
    mo_rpc_put_result(&b, MO_SPAN("1.0"), none);
    assert_string_equal(mo_buf_cstr(&b), "{" V ",\"id\":1.0,\"result\":{}}");
    mo_buf_reset(&b);
    mo_rpc_put_error(&b, none, MO_RPC_PARSE_ERROR, MO_SPAN("bad\n"), none);
    assert_string_equal(mo_buf_cstr(&b),
                        "{" V ",\"id\":null,\"error\":{\"code\":-32700,"
                        "\"message\":\"bad\\n\"}}");
    mo_buf_reset(&b);
    mo_rpc_put_error(&b, MO_SPAN("2"), 7, MO_SPAN("x"), MO_SPAN("[1]"));
    assert_string_equal(mo_buf_cstr(&b),
                        "{" V ",\"id\":2,\"error\":{\"code\":7,\"message\":"
                        "\"x\",\"data\":[1]}}");
    mo_buf_fini(&b);
}

/* Forwarding: every id goes through a rewritten envelope byte for byte. */
static void test_round_trip(void **state)
{
    static const char *const ids[] = {
        "1",         "1.0",
        "1e0",       "-0",
        "0",         "9007199254740993",
        "\"1\"",     "18446744073709551616",
        "1E+2",      "\"\\u0031\"",
        "\"a\\/b\"", "123456789012345678901234567890.5"};
    struct mo_buf b, c;

    (void)state;
    mo_buf_init(&b, MAX);
    mo_buf_init(&c, MAX);
    for (size_t i = 0; i < MO_COUNT(ids); i++) {
        struct mo_rpc m;

        mo_buf_reset(&b);
        mo_buf_reset(&c);
        mo_buf_printf(&b,
                      "{" V ",\"id\":%s,\"method\":\"m\",\"params\":[ 1.0 ]}",
                      ids[i]);
        assert_int_equal(mo_rpc_parse(mo_buf_view(&b), &m, NULL), 0);
        assert_int_equal(m.kind, MO_RPC_REQUEST);
        check_row(ids[i], same(m.id, ids[i]));
        mo_rpc_put_result(&c, mo_json_text(m.id), mo_json_text(m.params));
        assert_int_equal(mo_rpc_parse(mo_buf_view(&c), &m, NULL), 0);
        check_row(ids[i], same(m.id, ids[i]) && same(m.result, "[ 1.0 ]"));
    }
    mo_buf_fini(&b);
    mo_buf_fini(&c);
}

static void use_memory(void *ctx)
{
    static const struct mo_span none = {NULL, 0};
    struct mo_buf b;
    int rc;

    (void)ctx;
    mo_buf_init(&b, MAX);
    mo_rpc_put_notification(&b, "notifications/progress", none);
    mo_rpc_put_result(&b, MO_SPAN("1"), none);
    rc = mo_rpc_put_error(&b, MO_SPAN("1"), MO_RPC_INTERNAL,
                          MO_SPAN("something went wrong"), MO_SPAN("{}"));
    assert_true(rc == 0 || rc == MO_ENOMEM);
    mo_buf_fini(&b);
}

static void test_no_memory(void **state)
{
    struct mo_buf b;

    (void)state;
    torture(use_memory, NULL);
    mo_buf_init(&b, 20);
    assert_int_equal(mo_rpc_put_result(&b, MO_SPAN("1"), MO_SPAN("{}")),
                     MO_ETOOBIG);
    mo_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),       cmocka_unit_test(test_cut),
        cmocka_unit_test(test_json_rows),  cmocka_unit_test(test_depth),
        cmocka_unit_test(test_batch),      cmocka_unit_test(test_put),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
