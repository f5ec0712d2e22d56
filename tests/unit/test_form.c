/* Answers to forms. ' is written for ". */
#include "mcp/client/form.h"
#include "mo_test.h"

#define ACCEPT(content) "{'action':'accept','content':{" content "}}"

static const struct {
    const char *name, *schema, *content, *want;
} rows[] = {
    {"no schema", "", "", ACCEPT("")},
    {"no properties", "{'type':'object'}", "", ACCEPT("")},
    {"no defaults", "{'properties':{'a':{'type':'string'}}}", "", ACCEPT("")},
    {"every kind",
     "{'properties':{'s':{'default':'John Doe'},'i':{'default':30},"
     "'n':{'default':95.50},'b':{'default':false},'l':{'default':['x', 'y']}}}",
     "", ACCEPT("'s':'John Doe','i':30,'n':95.50,'b':false,'l':['x','y']")},
    {"what was answered stays", "{'properties':{'a':{'default':1}}}", "{'a':2}",
     ACCEPT("'a':2")},
    {"also when written otherwise", "{'properties':{'a':{'default':1}}}",
     "{'\\u0061':2}", ACCEPT("'\\u0061':2")},
    {"null is an answer", "{'properties':{'a':{'default':1}}}", "{'a':null}",
     ACCEPT("'a':null")},
    {"the rest is filled in",
     "{'properties':{'a':{'default':1},'b':{'default':2}}}", "{'a':3}",
     ACCEPT("'a':3,'b':2")},
    {"what the schema does not know stays", "{'properties':{}}", "{'z':1}",
     ACCEPT("'z':1")},
    {"a default that no answer may hold",
     "{'properties':{'a':{'default':null},'b':{'default':{}}}}", "",
     ACCEPT("")},
    {"newlines between tokens go", "{'properties':{'a':{'default':[\n'x'\n]}}}",
     "{'b':\n[\n]}", ACCEPT("'b':[],'a':['x']")},
};

static void quotes(struct mo_buf *b, const char *text)
{
    mo_buf_reset(b);
    for (; *text; text++)
        mo_buf_putc(b, *text == '\'' ? '"' : *text);
}

static struct mo_json parse(struct mo_buf *b, const char *text)
{
    struct mo_json_doc doc = {.root = {NULL, 0}};

    quotes(b, text);
    if (b->len)
        assert_int_equal(mo_json_parse(mo_buf_view(b), 0, &doc, NULL), 0);
    return doc.root;
}

static void test_rows(void **state)
{
    struct mo_buf s, c, want, got;

    (void)state;
    mo_buf_init(&s, 1 << 20);
    mo_buf_init(&c, 1 << 20);
    mo_buf_init(&want, 1 << 20);
    mo_buf_init(&got, 1 << 20);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_json schema = parse(&s, rows[i].schema);
        struct mo_json content = parse(&c, rows[i].content);

        quotes(&want, rows[i].want);
        mo_buf_reset(&got);
        check_row(rows[i].name, mo_form_accept(&got, schema, content) == 0);
        check_row(rows[i].name,
                  mo_span_eq(mo_buf_view(&got), mo_buf_view(&want)));
    }
    mo_buf_fini(&s);
    mo_buf_fini(&c);
    mo_buf_fini(&want);
    mo_buf_fini(&got);
}

static void test_limit(void **state)
{
    struct mo_buf s, got;
    struct mo_json schema, none = {NULL, 0};

    (void)state;
    mo_buf_init(&s, 1 << 20);
    mo_buf_init(&got, 40);
    schema = parse(&s, "{'properties':{'a':{'default':'0123456789012345'}}}");
    assert_int_equal(mo_form_accept(&got, schema, none), MO_ETOOBIG);
    mo_buf_fini(&s);
    mo_buf_fini(&got);
}

static void accept_once(void *ctx)
{
    const struct mo_json *two = ctx;
    struct mo_buf got;
    int rc;

    mo_buf_init(&got, 1 << 20);
    rc = mo_form_accept(&got, two[0], two[1]);
    assert_true(rc == 0 || rc == MO_ENOMEM);
    if (rc == 0)
        assert_true(mo_span_is(mo_buf_view(&got),
                               "{\"action\":\"accept\",\"content\":"
                               "{\"a\":2,\"b\":3}}"));
    mo_buf_fini(&got);
}

static void test_memory(void **state)
{
    struct mo_buf s, c;
    struct mo_json two[2];

    (void)state;
    mo_buf_init(&s, 1 << 20);
    mo_buf_init(&c, 1 << 20);
    two[0] = parse(&s, "{'properties':{'a':{'default':1},'b':{'default':3}}}");
    two[1] = parse(&c, "{'a':2}");
    torture(accept_once, two);
    mo_buf_fini(&s);
    mo_buf_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
