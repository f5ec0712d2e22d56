#include "codec/rpc_scan.h"
#include "mo_test.h"

#define V "\"jsonrpc\":\"2.0\""

#define TEN   "xxxxxxxxxx"
#define SIXTY TEN TEN TEN TEN TEN TEN
#define BLANKS                                                                 \
    "                                                                "
#define ESC_ID  "\\u0069\\u0064"
#define ESC_ALL "\\u006a\\u0073\\u006f\\u006e\\u0072\\u0070\\u0063"

/* id: NULL = none. */
static const struct {
    const char *name, *in;
    enum mo_rpc_kind kind;
    const char *id;
} rows[] = {
    {"result", "{" V ",\"id\":12,\"result\":{}}", MO_RPC_RESULT, "12"},
    {"id behind the result",
     "{\"result\":{\"a\":[1,{\"b\":\"c\"}]}," V ",\"id\":12}", MO_RPC_RESULT,
     "12"},
    {"blanks", "\t { " V " , \"id\" : 7 , \"result\" : [ ] } \r", MO_RPC_RESULT,
     "7"},
    {"scalar result", "{" V ",\"id\":7,\"result\":null}", MO_RPC_RESULT, "7"},
    {"id ends the object", "{" V ",\"result\":1,\"id\":7}", MO_RPC_RESULT, "7"},
    {"string id", "{" V ",\"id\":\"a\\\"b\",\"result\":{}}", MO_RPC_RESULT,
     "\"a\\\"b\""},
    {"error", "{" V ",\"id\":1,\"error\":{\"code\":1}}", MO_RPC_ERROR, "1"},
    {"error for null", "{" V ",\"id\":null,\"error\":{}}", MO_RPC_ERROR, NULL},
    {"error for nobody", "{" V ",\"error\":{}}", MO_RPC_ERROR, NULL},
    {"request", "{" V ",\"id\":1,\"method\":\"m\",\"params\":{}}",
     MO_RPC_REQUEST, "1"},
    {"notification", "{" V ",\"method\":\"m\",\"params\":[]}",
     MO_RPC_NOTIFICATION, NULL},
    {"unknown members", "{\"x\":-1.5e3," V ",\"id\":1,\"y\":[{}],\"result\":0}",
     MO_RPC_RESULT, "1"},
    {"escaped keys", "{\"" ESC_ALL "\":\"2.0\",\"" ESC_ID "\":1,\"result\":0}",
     MO_RPC_RESULT, "1"},
    {"a key too long to be ours",
     "{\"" SIXTY TEN "\":2," V ",\"id\":1,\"result\":0}", MO_RPC_RESULT, "1"},
    {"longest id", "{" V ",\"id\":\"" SIXTY "xx\",\"result\":0}", MO_RPC_RESULT,
     "\"" SIXTY "xx\""},

    /* Only the top level counts, and text is text. */
    {"nested id only", "{" V ",\"result\":{\"id\":5}}", MO_RPC_INVALID, NULL},
    {"nested id in an array", "{" V ",\"result\":[{\"id\":5}]}", MO_RPC_INVALID,
     NULL},
    {"nested id before ours",
     "{\"result\":{\"id\":5,\"x\":{\"id\":6}}," V ",\"id\":1}", MO_RPC_RESULT,
     "1"},
    {"an envelope in a string",
     "{" V ",\"result\":\"\\\"},\\\"id\\\":5,\",\"id\":1}", MO_RPC_RESULT, "1"},
    {"backslashes before the quote", "{" V ",\"result\":\"\\\\\\\\\",\"id\":1}",
     MO_RPC_RESULT, "1"},
    {"brackets in a string", "{" V ",\"result\":\"]}}{[\",\"id\":1}",
     MO_RPC_RESULT, "1"},
    {"id as a value", "{" V ",\"result\":\"id\",\"x\":\"id\"}", MO_RPC_INVALID,
     NULL},
    {"another case", "{" V ",\"ID\":1,\"result\":0}", MO_RPC_INVALID, NULL},

    {"64 blanks in front", BLANKS "{" V ",\"id\":1,\"result\":0}",
     MO_RPC_RESULT, "1"},

    /* Refused. */
    {"65 blanks in front", BLANKS " {" V ",\"id\":1,\"result\":0}",
     MO_RPC_INVALID, NULL},
    {"nothing", "", MO_RPC_INVALID, NULL},
    {"cut", "{" V ",\"id\":1,\"result\":{}", MO_RPC_INVALID, NULL},
    {"cut in a string", "{" V ",\"id\":1,\"result\":\"", MO_RPC_INVALID, NULL},
    {"batch", "[{" V ",\"id\":1,\"result\":{}}]", MO_RPC_INVALID, NULL},
    {"no JSON", "xxxx", MO_RPC_INVALID, NULL},
    {"id twice", "{" V ",\"id\":1,\"id\":1,\"result\":0}", MO_RPC_INVALID,
     NULL},
    {"id twice, one escaped", "{" V ",\"id\":1,\"" ESC_ID "\":2,\"result\":0}",
     MO_RPC_INVALID, NULL},
    {"result twice", "{" V ",\"id\":1,\"result\":0,\"result\":0}",
     MO_RPC_INVALID, NULL},
    {"result and error", "{" V ",\"id\":1,\"result\":0,\"error\":{}}",
     MO_RPC_INVALID, NULL},
    {"result and method", "{" V ",\"id\":1,\"result\":0,\"method\":\"m\"}",
     MO_RPC_INVALID, NULL},
    {"params in a response", "{" V ",\"id\":1,\"result\":0,\"params\":{}}",
     MO_RPC_INVALID, NULL},
    {"no version", "{\"id\":1,\"result\":0}", MO_RPC_INVALID, NULL},
    {"another version", "{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":0}",
     MO_RPC_INVALID, NULL},
    {"null id of a result", "{" V ",\"id\":null,\"result\":0}", MO_RPC_INVALID,
     NULL},
    {"null id of a request", "{" V ",\"id\":null,\"method\":\"m\"}",
     MO_RPC_INVALID, NULL},
    {"object id", "{" V ",\"id\":{},\"result\":0}", MO_RPC_INVALID, NULL},
    {"bool id", "{" V ",\"id\":true,\"result\":0}", MO_RPC_INVALID, NULL},
    {"malformed id", "{" V ",\"id\":01,\"result\":0}", MO_RPC_INVALID, NULL},
    {"id too long", "{" V ",\"id\":\"" SIXTY "xxx\",\"result\":0}",
     MO_RPC_INVALID, NULL},
    {"more behind it", "{" V ",\"id\":1,\"result\":0}}", MO_RPC_INVALID, NULL},
    {"two messages", "{" V ",\"id\":1,\"result\":0}{}", MO_RPC_INVALID, NULL},
    {"wrong bracket", "{" V ",\"id\":1,\"result\":[}", MO_RPC_INVALID, NULL},
    {"brackets that cross", "{" V ",\"result\":{\"a\":[}],\"id\":1}",
     MO_RPC_INVALID, NULL},
    {"no comma", "{" V " \"id\":1,\"result\":0}", MO_RPC_INVALID, NULL},
    {"no colon", "{" V ",\"id\" 1,\"result\":0}", MO_RPC_INVALID, NULL},
    {"trailing comma", "{" V ",\"id\":1,\"result\":0,}", MO_RPC_INVALID, NULL},
    {"bad key", "{" V ",\"id\":1,\"\\x\":1,\"result\":0}", MO_RPC_INVALID,
     NULL},
};

static bool is_id(struct mo_json id, const char *want)
{
    return want ? mo_span_is(mo_json_text(id), want) : !id.p;
}

static void check(size_t i, const struct mo_rpc_scan *s)
{
    struct mo_json id;

    check_row(rows[i].name, mo_rpc_scan_end(s, &id) == rows[i].kind);
    check_row(rows[i].name, is_id(id, rows[i].id));
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span in = mo_span_cstr(rows[i].in);
        struct mo_rpc_scan s;

        for (size_t cut = 0; cut <= in.n; cut++) {
            mo_rpc_scan_init(&s);
            (void)mo_rpc_scan_feed(&s, mo_span_head(in, cut));
            (void)mo_rpc_scan_feed(&s, mo_span_skip(in, cut));
            check(i, &s);
        }
        mo_rpc_scan_init(&s);
        for (size_t at = 0; at < in.n; at++)
            (void)mo_rpc_scan_feed(&s, mo_span(in.p + at, 1));
        check(i, &s);
    }
}

/* Whatever it accepts, mo_rpc_parse() reads the same way. */
static void test_same_as_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_rpc m = {0};
        int rc = mo_rpc_parse(mo_span_cstr(rows[i].in), &m, NULL);
        bool no_id = mo_json_type(m.id) <= MO_JSON_NULL;

        if (rows[i].kind == MO_RPC_INVALID || rows[i].kind == MO_RPC_ERROR)
            continue; /* an error's code and message are not looked at */
        check_row(rows[i].name, rc == 0 && m.kind == rows[i].kind);
        check_row(rows[i].name, rows[i].id ? is_id(m.id, rows[i].id) : no_id);
    }
}

/* Malformed text is noticed at the first wrong byte, not at the end. */
static void test_says_at_once(void **state)
{
    struct mo_rpc_scan s;

    (void)state;
    mo_rpc_scan_init(&s);
    assert_true(mo_rpc_scan_feed(&s, MO_SPAN("{" V)));
    assert_true(mo_rpc_scan_feed(&s, mo_span(NULL, 0)));
    assert_false(mo_rpc_scan_feed(&s, MO_SPAN("x")));
    assert_false(mo_rpc_scan_feed(&s, MO_SPAN(",\"id\":1}")));
}

static enum mo_rpc_kind nested(unsigned levels)
{
    struct mo_rpc_scan s;
    struct mo_json id;

    mo_rpc_scan_init(&s);
    (void)mo_rpc_scan_feed(&s, MO_SPAN("{" V ",\"id\":1,\"result\":"));
    for (unsigned i = 1; i < levels; i++)
        (void)mo_rpc_scan_feed(&s, i % 3 ? MO_SPAN("[") : MO_SPAN("{\"id\":"));
    (void)mo_rpc_scan_feed(&s, MO_SPAN("0"));
    for (unsigned i = levels - 1; i > 0; i--)
        (void)mo_rpc_scan_feed(&s, i % 3 ? MO_SPAN("]") : MO_SPAN("}"));
    (void)mo_rpc_scan_feed(&s, MO_SPAN("}"));
    return mo_rpc_scan_end(&s, &id);
}

static void test_depth(void **state)
{
    (void)state;
    assert_int_equal(nested(1), MO_RPC_RESULT);
    assert_int_equal(nested(64), MO_RPC_RESULT);
    assert_int_equal(nested(65), MO_RPC_RESULT);
    assert_int_equal(nested(MO_JSON_DEPTH_MAX), MO_RPC_RESULT);
    assert_int_equal(nested(MO_JSON_DEPTH_MAX + 1), MO_RPC_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_same_as_parse),
        cmocka_unit_test(test_says_at_once),
        cmocka_unit_test(test_depth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
