/* Marks in schemas, and the headers they make. ' is written for ". */
#include "mcp/client/mirror.h"
#include "mo_test.h"

#define STR(mark) "{'type':'string','x-mcp-header':" mark "}"
#define ONE(prop) "{'type':'object','properties':{'a':" prop "}}"
#define LONG_100                                                               \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"                       \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define TEN(c)                                                                 \
    "'" c "0':" STR("'" c "0'") ",'" c "1':" STR("'" c "1'") ",'" c "2':" STR( \
        "'" c                                                                  \
        "2'") ",'" c                                                           \
              "3':" STR("'" c "3'") ",'" c "4':" STR(                          \
                  "'" c                                                        \
                  "4'") ",'" c                                                 \
                        "5':" STR("'" c "5'") ",'" c "6':" STR(                \
                            "'" c                                              \
                            "6'") ",'" c                                       \
                                  "7':" STR("'" c "7'") ",'" c "8':" STR(      \
                                      "'" c "8'") ",'" c "9':" STR("'" c "9'")

static const struct {
    const char *name, *schema, *args;
    const char *want; /* "Name=value;" each; NULL: the mark is bad */
} rows[] = {
    {"no schema", "", "{'a':1}", ""},
    {"no marks", "{'properties':{'a':{'type':'string'}}}", "{'a':'x'}", ""},
    {"a string", ONE(STR("'Region'")), "{'a':'us'}", "Region=us;"},
    {"an empty string", ONE(STR("'R'")), "{'a':''}", "R=;"},
    {"escapes in the value", ONE(STR("'R'")), "{'a':'\\u0041\\n'}", "R=A\n;"},
    {"escapes in the mark", ONE(STR("'\\u0052'")), "{'a':'x'}", "R=x;"},
    {"escapes in the keyword",
     ONE("{'type':'string','x-mcp\\u002dheader':'R'}"), "{'a':'x'}", "R=x;"},
    {"escapes in the name of the argument", ONE(STR("'R'")), "{'\\u0061':'x'}",
     "R=x;"},
    {"true", ONE("{'type':'boolean','x-mcp-header':'B'}"), "{'a':true}",
     "B=true;"},
    {"false", ONE("{'type':'boolean','x-mcp-header':'B'}"), "{'a':false}",
     "B=false;"},
    {"an integer", ONE("{'type':'integer','x-mcp-header':'N'}"), "{'a':-42}",
     "N=-42;"},
    {"the same integer", ONE("{'type':'integer','x-mcp-header':'N'}"),
     "{'a':4.2e1}", "N=42;"},
    {"the greatest", ONE("{'type':'integer','x-mcp-header':'N'}"),
     "{'a':9007199254740991}", "N=9007199254740991;"},
    {"one more", ONE("{'type':'integer','x-mcp-header':'N'}"),
     "{'a':9007199254740993}", ""},
    {"far too great", ONE("{'type':'integer','x-mcp-header':'N'}"),
     "{'a':1e300}", ""},
    {"a fraction", ONE("{'type':'integer','x-mcp-header':'N'}"), "{'a':1.5}",
     ""},
    {"null", ONE(STR("'R'")), "{'a':null}", ""},
    {"absent", ONE(STR("'R'")), "{'b':'x'}", ""},
    {"an object instead", ONE(STR("'R'")), "{'a':{}}", ""},
    {"the last of two", ONE(STR("'R'")), "{'a':'x','a':'y'}", "R=y;"},
    {"arguments are no object", ONE(STR("'R'")), "['a']", ""},
    {"no arguments", ONE(STR("'R'")), "", ""},
    {"nested", ONE("{'type':'object','properties':{'b':" STR("'R'") "}}"),
     "{'a':{'b':'x'},'b':'y'}", "R=x;"},
    {"two", "{'properties':{'a':" STR("'A'") ",'b':" STR("'B'") "}}",
     "{'b':'2','a':'1'}", "A=1;B=2;"},
    {"a property called properties",
     "{'properties':{'properties':" STR("'P'") "}}", "{'properties':'x'}",
     "P=x;"},
    {"a property called x-mcp-header",
     "{'properties':{'x-mcp-header':{'type':'array'}}}", "{}", ""},
    {"in a default it is data", ONE("{'default':{'x-mcp-header':''}}"), "{}",
     ""},
    {"in an enum it is data", ONE("{'enum':[{'x-mcp-header':''}]}"), "{}", ""},
    {"100 bytes", ONE(STR("'" LONG_100 "'")), "{'a':'x'}", LONG_100 "=x;"},
    {"30 marks", "{'properties':{" TEN("a") "," TEN("b") "," TEN("c") "}}",
     "{'c9':'x'}", "c9=x;"},

    {"empty mark", ONE(STR("''")), "{}", NULL},
    {"mark is a number", ONE(STR("1")), "{}", NULL},
    {"mark is null", ONE(STR("null")), "{}", NULL},
    {"space", ONE(STR("'My Region'")), "{}", NULL},
    {"colon", ONE(STR("'Region:x'")), "{}", NULL},
    {"newline", ONE(STR("'R\\r\\nX: y'")), "{}", NULL},
    {"tab", ONE(STR("'R\\t1'")), "{}", NULL},
    {"NUL", ONE(STR("'R\\u0000'")), "{}", NULL},
    {"not ASCII", ONE(STR("'R\xc3\xa9gion'")), "{}", NULL},
    {"101 bytes", ONE(STR("'" LONG_100 "b'")), "{}", NULL},
    {"on an object", ONE("{'type':'object','x-mcp-header':'R'}"), "{}", NULL},
    {"on an array", ONE("{'type':'array','x-mcp-header':'R'}"), "{}", NULL},
    {"on null", ONE("{'type':'null','x-mcp-header':'R'}"), "{}", NULL},
    {"on a number", ONE("{'type':'number','x-mcp-header':'R'}"), "{}", NULL},
    {"on any type", ONE("{'x-mcp-header':'R'}"), "{}", NULL},
    {"on several types", ONE("{'type':['string'],'x-mcp-header':'R'}"), "{}",
     NULL},
    {"twice", "{'properties':{'a':" STR("'R'") ",'b':" STR("'R'") "}}", "{}",
     NULL},
    {"twice but for case",
     "{'properties':{'a':" STR("'My'") ",'b':" STR("'mY'") "}}", "{}", NULL},
    {"twice, at different depths",
     "{'properties':{'a':" STR("'R'") ",'b':{'properties':{'c':" STR(
         "'R'") "}}}}",
     "{}", NULL},
    {"at the root", "{'type':'string','x-mcp-header':'R'}", "{}", NULL},
    {"in items", ONE("{'type':'array','items':" STR("'R'") "}"), "{}", NULL},
    {"in allOf", "{'allOf':[{'properties':{'a':" STR("'R'") "}}]}", "{}", NULL},
    {"in $defs", "{'$defs':{'d':" STR("'R'") "}}", "{}", NULL},
    {"in additionalProperties", "{'additionalProperties':" STR("'R'") "}", "{}",
     NULL},
    {"33 marks",
     "{'properties':{" TEN("a") "," TEN("b") "," TEN("c") ",'x':" STR(
         "'x'") ",'y':" STR("'y'") ",'z':" STR("'z'") "}}",
     "{}", NULL},
};

static struct mo_json parse(struct mo_buf *b, const char *text)
{
    struct mo_json_doc doc = {.root = {NULL, 0}};

    mo_buf_reset(b);
    for (; *text; text++)
        mo_buf_putc(b, *text == '\'' ? '"' : *text);
    if (b->len)
        assert_int_equal(mo_json_parse(mo_buf_view(b), 0, &doc, NULL), 0);
    return doc.root;
}

static void show(const struct mo_mirror *m, struct mo_buf *b)
{
    for (size_t i = 0; i < m->n; i++) {
        mo_buf_span(b, m->v[i].name);
        mo_buf_putc(b, '=');
        mo_buf_span(b, m->v[i].value);
        mo_buf_putc(b, ';');
    }
}

static void test_rows(void **state)
{
    struct mo_buf s, a, got;

    (void)state;
    mo_buf_init(&s, 1 << 20);
    mo_buf_init(&a, 1 << 20);
    mo_buf_init(&got, 1 << 20);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_json schema = parse(&s, rows[i].schema);
        struct mo_json args = parse(&a, rows[i].args);
        struct mo_mirror m;
        struct mo_err e = {0};
        int rc = mo_mirror_init(&m, schema, args, &e);

        mo_buf_reset(&got);
        show(&m, &got);
        check_row(rows[i].name, rc == (rows[i].want ? 0 : MO_EPROTO));
        check_row(rows[i].name, rc == 0 || e.code == MO_EPROTO);
        if (rows[i].want)
            check_row(rows[i].name,
                      mo_span_is(mo_buf_view(&got), rows[i].want));
        mo_mirror_fini(&m);
    }
    mo_buf_fini(&s);
    mo_buf_fini(&a);
    mo_buf_fini(&got);
}

/* {"properties":{"a":{...}}}, so deep, with a mark at the bottom; or so many
 * members that may have one. */
static void put_deep(struct mo_buf *b, unsigned levels)
{
    mo_buf_reset(b);
    for (unsigned i = 0; i < levels; i++)
        mo_buf_puts(b, "{\"properties\":{\"a\":");
    mo_buf_puts(b, "{\"type\":\"string\",\"x-mcp-header\":\"R\"}");
    for (unsigned i = 0; i < levels; i++)
        mo_buf_puts(b, "}}");
}

static void put_wide(struct mo_buf *b, unsigned members, const char *first)
{
    mo_buf_reset(b);
    mo_buf_printf(b, "{\"properties\":{\"z\":{\"type\":\"string\"%s}", first);
    for (unsigned i = 0; i < members; i++)
        mo_buf_printf(b, ",\"a%u\":{\"title\":\"\\u0041\"}", i);
    mo_buf_puts(b, "}}");
}

static int mirror(const struct mo_buf *schema, struct mo_span args)
{
    struct mo_json s = {schema->p, schema->len}, a = {args.p, args.n};
    struct mo_mirror m;
    int rc = mo_mirror_init(&m, s, a, NULL);

    mo_mirror_fini(&m);
    return rc;
}

static void test_limits(void **state)
{
    static const struct mo_span args = {"{}", 2};
    static const char mark[] = ",\"x-mcp-header\":\"R\"";
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1 << 20);
    put_deep(&b, 31);
    assert_int_equal(mirror(&b, args), 0);
    put_deep(&b, 32);
    assert_int_equal(mirror(&b, args), MO_EPROTO);
    put_wide(&b, 255, mark);
    assert_int_equal(mirror(&b, args), 0);
    put_wide(&b, 256, mark);
    assert_int_equal(mirror(&b, args), MO_EPROTO);
    assert_int_equal(mirror(&b, mo_span(NULL, 0)), 0);
    put_wide(&b, 1000, ""); /* no mark: nothing is looked up */
    assert_int_equal(mirror(&b, args), 0);
    mo_buf_fini(&b);
}

static void test_keep(void **state)
{
    static const struct {
        const char *tool;
        bool keep;
    } tools[] = {
        {"{'name':'a','inputSchema':" ONE(STR("'R'")) "}", true},
        {"{'name':'a','inputSchema':" ONE(STR("''")) "}", false},
        {"{'name':'a','inputSchema':{'type':'object'}}", true},
        {"{'name':'a'}", true},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1 << 20);
    for (size_t i = 0; i < MO_COUNT(tools); i++)
        check_row(tools[i].tool,
                  mo_mirror_keep(parse(&b, tools[i].tool)) == tools[i].keep);
    mo_buf_fini(&b);
}

struct texts {
    struct mo_json schema, args;
};

static void mirror_once(void *ctx)
{
    const struct texts *t = ctx;
    struct mo_mirror m;
    struct mo_err e;
    int rc = mo_mirror_init(&m, t->schema, t->args, &e);

    assert_true(rc == 0 ? m.n == 3 : rc == MO_ENOMEM);
    mo_mirror_fini(&m);
}

static void test_memory(void **state)
{
    struct mo_buf s, a;
    struct texts t;

    (void)state;
    mo_buf_init(&s, 1 << 20);
    mo_buf_init(&a, 1 << 20);
    t.schema =
        parse(&s, "{'properties':{'a':" STR("'\\u0041'") ",'\\u0062':" STR(
                      "'B'") ",'c':"
                             "{'type':'integer','x-mcp-header':'C'}}}");
    t.args = parse(&a, "{'a':'\\u0041','b':'x','c':7}");
    torture(mirror_once, &t);
    mo_buf_fini(&s);
    mo_buf_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
