/* Edits of JSON texts: a new value is formatted like its neighbours, and all
 * other bytes stay the same. */
#include "config/json_edit.h"

#include "config/jsonc.h"
#include "mo_test.h"

#define MAX ((size_t)1 << 16)

static const struct {
    const char *name, *in;
    const char *path[4];
    const char *value; /* NULL: delete */
    const char *want;  /* NULL: rc */
    int rc;
} rows[] = {
    {"an empty file's object",
     "{}\n",
     {"a", "b"},
     "1",
     "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n",
     0},
    {"compact stays compact",
     "{\"a\":1}",
     {"b"},
     "[1, 2]",
     "{\"a\":1,\"b\":[1,2]}",
     0},
    {"blanks behind commas and colons",
     "{\"a\": 1, \"c\": 2}",
     {"b"},
     "2",
     "{\"a\": 1, \"c\": 2, \"b\": 2}",
     0},
    {"blanks inside the braces",
     "{ \"a\": 1 }",
     {"b"},
     "2",
     "{ \"a\": 1, \"b\": 2 }",
     0},
    {"tabs",
     "{\n\t\"a\": {}\n}",
     {"a", "b"},
     "{\"c\":1}",
     "{\n\t\"a\": {\n\t\t\"b\": {\n\t\t\t\"c\": 1\n\t\t}\n\t}\n}",
     0},
    {"four blanks",
     "{\n    \"a\": 1\n}",
     {"b"},
     "{\"c\":[true]}",
     "{\n    \"a\": 1,\n    \"b\": {\n        \"c\": [\n            true\n"
     "        ]\n    }\n}",
     0},
    {"line ends",
     "{\r\n  \"a\": 1\r\n}\r\n",
     {"b"},
     "2",
     "{\r\n  \"a\": 1,\r\n  \"b\": 2\r\n}\r\n",
     0},
    {"a value exchanged",
     "{\"a\": {\"b\" :  1.0e0 , \"c\": \"\\u0041\"}}",
     {"a", "b"},
     "false",
     "{\"a\": {\"b\" :  false , \"c\": \"\\u0041\"}}",
     0},
    {"a key written with escapes",
     "{\"\\u0061\":1}",
     {"a"},
     "2",
     "{\"\\u0061\":2}",
     0},
    {"a key that needs escapes",
     "{\"a\":1}",
     {"x\"y"},
     "2",
     "{\"a\":1,\"x\\\"y\":2}",
     0},
    {"no object on the way", "{\"a\": 1}", {"a", "b"}, "2", NULL, MO_EINVAL},
    {"no object at all", "[1]", {"a"}, "2", NULL, MO_EINVAL},
    {"no JSON", "{\"a\":}", {"a"}, "2", NULL, MO_EPROTO},
    {"a bad value", "{\"a\":1}", {"b"}, "2,", NULL, MO_EPROTO},
    {"the first out",
     "{\n  \"a\": 1,\n  \"b\": 2\n}",
     {"a"},
     NULL,
     "{\n  \"b\": 2\n}",
     0},
    {"the last out",
     "{\n  \"a\": 1,\n  \"b\": 2\n}",
     {"b"},
     NULL,
     "{\n  \"a\": 1\n}",
     0},
    {"the middle out",
     "{\"a\":1, \"b\":{\"x\":[1]}, \"c\":3}",
     {"b"},
     NULL,
     "{\"a\":1, \"c\":3}",
     0},
    {"the only one out", "{\n  \"a\": 1\n}", {"a"}, NULL, "{}", 0},
    {"an inner one out",
     "{\"a\": {\"b\": 1, \"c\": 2}}",
     {"a", "b"},
     NULL,
     "{\"a\": {\"c\": 2}}",
     0},
    {"nobody there", "{\"a\":1}", {"b"}, NULL, NULL, MO_ENOTFOUND},
    {"nobody there, further in",
     "{\"a\":{}}",
     {"a", "b"},
     NULL,
     NULL,
     MO_ENOTFOUND},
    {"not even the way", "{}", {"a", "b"}, NULL, NULL, MO_ENOTFOUND},
};

static int edit(size_t i, struct mo_buf *out)
{
    struct mo_span text = mo_span_cstr(rows[i].in);

    return rows[i].value
               ? mo_json_edit_set(text, rows[i].path,
                                  mo_span_cstr(rows[i].value), out, NULL)
               : mo_json_edit_del(text, rows[i].path, out, NULL);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_json_doc doc;
        struct mo_buf b;

        mo_buf_init(&b, MAX);
        check_row(rows[i].name, edit(i, &b) == rows[i].rc);
        if (rows[i].want) {
            check_row(rows[i].name, strcmp(mo_buf_cstr(&b), rows[i].want) == 0);
            check_row(rows[i].name,
                      mo_json_parse(mo_buf_view(&b), 0, &doc, NULL) == 0);
        }
        mo_buf_fini(&b);
    }
}

/* Put in and taken out again: the same bytes. */
static void test_there_and_back(void **state)
{
    static const char *const texts[] = {
        "{\"a\":1}",
        "{\n\t\"a\": [1,\n2]\n}\n",
        "{ \"a\" : {} , \"b\":0 }",
        "{\r\n    \"a\": 1\r\n}",
    };
    static const char *const path[] = {"new", NULL};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(texts); i++) {
        struct mo_buf b, back;

        mo_buf_init(&b, MAX);
        mo_buf_init(&back, MAX);
        check_row(texts[i],
                  mo_json_edit_set(mo_span_cstr(texts[i]), path,
                                   MO_SPAN("{\"x\":[1,{}]}"), &b, NULL) == 0);
        check_row(texts[i],
                  mo_json_edit_del(mo_buf_view(&b), path, &back, NULL) == 0);
        check_row(texts[i], strcmp(mo_buf_cstr(&back), texts[i]) == 0);
        mo_buf_fini(&b);
        mo_buf_fini(&back);
    }
}

static void torture_body(void *ctx)
{
    struct mo_buf b;

    (void)ctx;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_buf_init(&b, MAX);
        if (edit(i, &b) == 0 && !mo_buf_err(&b))
            check_row(rows[i].name, mo_span_is(mo_buf_view(&b), rows[i].want));
        mo_buf_fini(&b);
    }
}

static void test_torture(void **state)
{
    (void)state;
    torture(torture_body, NULL);
}

/* --- comments and commas ------------------------------------------------- */

static void test_jsonc(void **state)
{
    static const struct {
        const char *in, *want;
    } texts[] = {
        {"{\"a\":1}", "{\"a\":1}"},
        {"{\"a\":1,}", "{\"a\":1 }"},
        {"[1, 2 , /* x */ // y\n ]", "[1, 2               \n ]"},
        {"// \xc3\xa4\n{}", "     \n{}"},
        {"{\"u\":\"http://x/*y*/,]\"}", "{\"u\":\"http://x/*y*/,]\"}"},
        {"{\"a\":\"\\\",}\"}", "{\"a\":\"\\\",}\"}"},
        {"{/* never closed", "{               "},
        {"\xef\xbb\xbf{}", "{}"},
        {"{\"open", "{\"open"},
        {"{\"open\\", "{\"open\\"},
        {"/", "/"},
        {"[1,,]", "[1, ]"},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(texts); i++) {
        struct mo_buf b;

        mo_buf_init(&b, 1000);
        check_row(texts[i].in,
                  mo_jsonc_plain(mo_span_cstr(texts[i].in), &b) == 0);
        check_row(texts[i].in, strcmp(mo_buf_cstr(&b), texts[i].want) == 0);
        mo_buf_fini(&b);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_torture),
        cmocka_unit_test(test_jsonc),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
