/* Answers to a server's form: exactly the fields that were asked for. */
#include "agent/chat/chat.h"

#include "mo_test.h"

#define ANSWER_MAX ((size_t)1024 * 1024)
#define FORM                                                                   \
    "{\"type\":\"object\",\"required\":[\"name\"],\"properties\":{"            \
    "\"name\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":5},"          \
    "\"age\":{\"type\":\"integer\",\"minimum\":0,\"default\":7},"              \
    "\"mail\":{\"type\":\"string\",\"format\":\"email\"},"                     \
    "\"sure\":{\"type\":\"boolean\"},"                                         \
    "\"one\":{\"type\":\"string\",\"enum\":[\"a\",\"b\"]},"                    \
    "\"some\":{\"type\":\"array\",\"maxItems\":1,\"items\":{\"type\":"         \
    "\"string\",\"enum\":[\"a\",\"b\"]}}}}"

static int accept(struct mo_buf *b, const char *content, struct mo_err *e)
{
    struct mo_json_doc doc;

    assert_int_equal(mo_json_parse(mo_span_cstr(FORM), 0, &doc, NULL), 0);
    return mo_elicit_accept(b, doc.root, mo_span_cstr(content), e);
}

static void test_rows(void **state)
{
    static const struct {
        const char *name, *content, *says; /* NULL: accepted */
    } rows[] = {
        {"enough", "{\"name\":\"Ada\"}", NULL},
        {"everything",
         "{\"name\":\"Ada\",\"age\":3,\"mail\":\"a@b.org\",\"sure\":true,"
         "\"one\":\"a\",\"some\":[\"b\"]}",
         NULL},
        {"nothing", "", "name"},
        {"not what is needed", "{\"age\":1}", "name"},
        {"too short", "{\"name\":\"A\"}", "name"},
        {"too long", "{\"name\":\"Adaaaaaa\"}", "name"},
        {"another type", "{\"name\":1}", "name"},
        {"not whole", "{\"name\":\"Ada\",\"age\":1.5}", "age"},
        {"too small", "{\"name\":\"Ada\",\"age\":-1}", "age"},
        {"no address", "{\"name\":\"Ada\",\"mail\":\"x\"}", "mail"},
        {"not of the list", "{\"name\":\"Ada\",\"one\":\"c\"}", "one"},
        {"too many", "{\"name\":\"Ada\",\"some\":[\"a\",\"b\"]}", "some"},
        {"deep", "{\"name\":\"Ada\",\"some\":[{}]}", "some"},
        {"more than was asked for", "{\"name\":\"Ada\",\"card\":\"1\"}",
         "card"},
        {"twice", "{\"name\":\"Ada\",\"n\\u0061me\":\"Bob\"}", "twice"},
        {"half a character", "{\"name\":\"A\\ud800\"}", "surrogate"},
        {"a list", "[]", "object"},
        {"no JSON", "{", ""},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf b;
        struct mo_err e = {0};
        int rc = 0;

        mo_buf_init(&b, ANSWER_MAX);
        rc = accept(&b, rows[i].content, &e);
        check_row(rows[i].name, (rc == 0) == (rows[i].says == NULL));
        if (rows[i].says)
            check_row(rows[i].name, strstr(e.msg, rows[i].says) != NULL);
        mo_buf_fini(&b);
    }
}

static void test_defaults(void **state)
{
    struct mo_buf b;
    struct mo_err e;

    (void)state;
    mo_buf_init(&b, ANSWER_MAX);
    assert_int_equal(accept(&b, "{ \"name\" : \"Ada\" }", &e), 0);
    assert_string_equal(
        mo_buf_cstr(&b),
        "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\",\"age\":7}}");
    mo_buf_fini(&b);
}

static void once(void *ctx)
{
    struct mo_buf b;
    struct mo_err e;

    (void)ctx;
    mo_buf_init(&b, ANSWER_MAX);
    (void)accept(&b, "{\"name\":\"Ada\",\"age\":3}", &e);
    mo_buf_fini(&b);
}

static void test_memory(void **state)
{
    (void)state;
    torture(once, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
