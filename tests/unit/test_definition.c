/* Definitions that strict clients refuse: mended, or left out with a reason.
 * ' is written for ". */
#include "mcp/definition.h"
#include "mo_test.h"

#define FIFTY "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define IN    "'inputSchema':{'type':'object'}"

static void quote(const char *in, struct mo_buf *b)
{
    mo_buf_reset(b);
    for (; *in; in++)
        mo_buf_putc(b, *in == '\'' ? '"' : *in);
}

static const struct {
    const char *name;
    enum mo_definition_kind kind;
    const char *in, *out; /* out NULL: as it was; "": left out */
    const char *note;
} rows[] = {
    {"a good tool", MO_DEFINITION_TOOL, "{'name':'a'," IN "}", NULL, ""},
    {"no schema", MO_DEFINITION_TOOL, "{'name':'a'}", "{'name':'a'," IN "}",
     "tool a (it has no inputSchema)"},
    {"a schema without a type", MO_DEFINITION_TOOL,
     "{'name':'a','inputSchema':{'properties':{}}}",
     "{'name':'a','inputSchema':{'properties':{},'type':'object'}}",
     "tool a (its inputSchema has no type)"},
    {"a type that may be object", MO_DEFINITION_TOOL,
     "{'name':'a','inputSchema':{'type':['null','object']}}",
     "{'name':'a'," IN "}", "tool a (its inputSchema is not of type object)"},
    {"another type", MO_DEFINITION_TOOL,
     "{'name':'a','inputSchema':{'type':'string'}}", "",
     "tool a (its inputSchema is not of type object)"},
    {"no object", MO_DEFINITION_TOOL, "{'name':'a','inputSchema':[]}", "",
     "tool a (its inputSchema is not an object)"},
    {"repeated members that would grow", MO_DEFINITION_TOOL,
     "{'name':'a'," IN ",'outputSchema':1,'outputSchema':1,'outputSchema':1,"
     "'outputSchema':{'properties':{},'title':'" FIFTY FIFTY FIFTY FIFTY "'}}",
     "", "tool a (it repeats members)"},
    {"the last of two counts", MO_DEFINITION_TOOL,
     "{'name':'a','inputSchema':3," IN "}", NULL, ""},
    {"properties as a list", MO_DEFINITION_TOOL,
     "{'name':'a','inputSchema':{'type':'object','properties':[]}}",
     "{'name':'a'," IN "}", "tool a (inputSchema is not valid)"},
    {"boolean properties", MO_DEFINITION_TOOL,
     "{'name':'a','inputSchema':{'type':'object','properties':{'x':true,"
     "'y':false,'z':{'a':1},'n':null}}}",
     "{'name':'a','inputSchema':{'type':'object','properties':{'x':{},"
     "'y':{'not':{}},'z':{'a':1},'n':{}}}}",
     "tool a (inputSchema is not valid)"},
    {"required is no list", MO_DEFINITION_TOOL,
     "{'name':'a','inputSchema':{'type':'object','required':true}}",
     "{'name':'a'," IN "}", "tool a (inputSchema is not valid)"},
    {"nulls", MO_DEFINITION_TOOL,
     "{'name':'a','title':null,'description':null," IN
     ",'annotations':null,'icons':null,'_meta':null}",
     "{'name':'a'," IN "}", "tool a (title is not valid)"},
    {"one bad hint", MO_DEFINITION_TOOL,
     "{'name':'a'," IN ",'annotations':{'readOnlyHint':true,'title':1}}",
     "{'name':'a'," IN ",'annotations':{'readOnlyHint':true}}",
     "tool a (annotations is not valid)"},
    {"an output schema", MO_DEFINITION_TOOL,
     "{'name':'a'," IN ",'outputSchema':{'type':'array','items':{'$ref':"
     "'#/$defs/x'},'$defs':{'x':{'type':'string','pattern':'^(a|b)$'}}}}",
     NULL, ""},
    {"an output schema without a type", MO_DEFINITION_TOOL,
     "{'name':'a'," IN ",'outputSchema':{'properties':{}}}",
     "{'name':'a'," IN ",'outputSchema':{'properties':{},'type':'object'}}",
     "tool a (outputSchema is not valid)"},
    {"a lost reference", MO_DEFINITION_TOOL,
     "{'name':'a'," IN ",'outputSchema':{'type':'object','properties':{"
     "'x':{'$ref':'#/$defs/nobody'}}}}",
     "{'name':'a'," IN "}", "tool a (outputSchema is not valid)"},
    {"a reference elsewhere", MO_DEFINITION_TOOL,
     "{'name':'a'," IN ",'outputSchema':{'$ref':'http://x/y'}}",
     "{'name':'a'," IN "}", "tool a (outputSchema is not valid)"},
    {"an unknown type", MO_DEFINITION_TOOL,
     "{'name':'a'," IN ",'outputSchema':{'type':'object','properties':{"
     "'x':{'type':'any'}}}}",
     "{'name':'a'," IN "}", "tool a (outputSchema is not valid)"},
    {"a pattern of another language", MO_DEFINITION_TOOL,
     "{'name':'a'," IN ",'outputSchema':{'type':'object','properties':{"
     "'x':{'pattern':'(?i)a'}}}}",
     "{'name':'a'," IN "}", "tool a (outputSchema is not valid)"},
    {"execution", MO_DEFINITION_TOOL,
     "{'name':'a'," IN ",'execution':{'taskSupport':'maybe'}}",
     "{'name':'a'," IN "}", "tool a (execution is not valid)"},
    {"no name: not ours", MO_DEFINITION_TOOL, "{'title':3}", NULL, ""},
    {"no object: not ours", MO_DEFINITION_TOOL, "3", NULL, ""},
    {"a good resource", MO_DEFINITION_RESOURCE,
     "{'uri':'u:1','name':'n','size':3,'annotations':{'priority':0.5,"
     "'audience':['user'],'lastModified':'2025-01-12T15:00:58Z'}}",
     NULL, ""},
    {"a resource without a name", MO_DEFINITION_RESOURCE, "{'uri':'u:1'}",
     "{'uri':'u:1','name':'u:1'}", "resource u:1 (it has no name)"},
    {"and a bad size", MO_DEFINITION_RESOURCE, "{'uri':'u:1','size':'3'}",
     "{'uri':'u:1','name':'u:1'}", "resource u:1 (it has no name)"},
    {"annotations of a resource", MO_DEFINITION_RESOURCE,
     "{'uri':'u','name':'n','annotations':{'priority':2,'audience':['me'],"
     "'lastModified':'yesterday'}}",
     "{'uri':'u','name':'n','annotations':{}}",
     "resource u (annotations is not valid)"},
    {"a template", MO_DEFINITION_TEMPLATE,
     "{'uriTemplate':'u:{x}','name':'n','mimeType':null}",
     "{'uriTemplate':'u:{x}','name':'n'}",
     "template u:{x} (mimeType is not valid)"},
    {"a good prompt", MO_DEFINITION_PROMPT,
     "{'name':'p','arguments':[{'name':'x','required':true}]}", NULL, ""},
    {"arguments of a prompt", MO_DEFINITION_PROMPT,
     "{'name':'p','arguments':[{'name':'x','required':1},{'title':'y'},3]}",
     "{'name':'p','arguments':[{'name':'x'}]}",
     "prompt p (arguments is not valid)"},
    {"no list of arguments", MO_DEFINITION_PROMPT,
     "{'name':'p','arguments':{}}", "{'name':'p'}",
     "prompt p (arguments is not valid)"},
    {"icons", MO_DEFINITION_PROMPT, "{'name':'p','icons':[{'src':3}]}",
     "{'name':'p'}", "prompt p (icons is not valid)"},
};

/* Each item between two good ones, which keep their bytes. */
static void check_item(size_t i, struct mo_buf *in, struct mo_buf *want)
{
    static const char *const good[] = {
        "{'name':'g' , 'uri':'g','uriTemplate':'g'," IN "}",
        "{'name':'h','uri':'h','uriTemplate':'h'," IN "}"};
    struct mo_definition_notes notes = {.nmended = 0};
    mo_autobuf struct mo_buf text = {.max = 4096}, b = {.max = 4096};
    const char *out = rows[i].out ? rows[i].out : rows[i].in;
    struct mo_json_doc doc;
    struct mo_json got;

    mo_buf_printf(&text, "[%s,%s,%s]", good[0], rows[i].in, good[1]);
    quote(mo_buf_cstr(&text), in);
    mo_buf_reset(&text);
    mo_buf_printf(&text, "[%s,%s%s%s]", good[0], out, *out ? "," : "", good[1]);
    quote(mo_buf_cstr(&text), want);
    assert_int_equal(mo_json_parse(mo_buf_view(in), 0, &doc, NULL), 0);
    got = mo_definition_mend(rows[i].kind, doc.root, &b, &notes);
    check_row(rows[i].name, mo_span_eq(mo_json_text(got), mo_buf_view(want)));
    check_row(rows[i].name, (got.p == doc.root.p) == !rows[i].out);
    check_row(rows[i].name, notes.nleft_out == !*out);
    check_row(rows[i].name, notes.nmended == (rows[i].out && *out));
    check_row(rows[i].name,
              strcmp(*out ? notes.mended : notes.left_out, rows[i].note) == 0);
}

static void test_items(void **state)
{
    mo_autobuf struct mo_buf in = {.max = 4096}, want = {.max = 4096};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_item(i, &in, &want);
}

static void test_many(void **state)
{
    struct mo_definition_notes notes = {.nmended = 0};
    mo_autobuf struct mo_buf in = {.max = 1 << 20}, b = {.max = 1 << 20};
    struct mo_json_doc doc;

    (void)state;
    mo_buf_putc(&in, '[');
    for (int i = 0; i < 1000; i++)
        mo_buf_printf(&in, "%s{\"name\":\"tool%d\"}", i ? "," : "", i);
    mo_buf_putc(&in, ']');
    assert_int_equal(mo_json_parse(mo_buf_view(&in), 0, &doc, NULL), 0);
    doc.root = mo_definition_mend(MO_DEFINITION_TOOL, doc.root, &b, &notes);
    assert_int_equal(mo_json_len(doc.root), 1000);
    assert_int_equal(notes.nmended, 1000);
    assert_true(strlen(notes.mended) > MO_DEFINITION_TEXT_MAX / 2);
}

static void test_depth(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 1 << 20};
    struct mo_json_doc doc;

    (void)state;
    for (int i = 0; i < 200; i++)
        mo_buf_puts(&b, "{\"not\":");
    mo_buf_puts(&b, "{}");
    for (int i = 0; i < 200; i++)
        mo_buf_putc(&b, '}');
    assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL), 0);
    assert_false(mo_definition_schema_compiles(doc.root));
}

/* Without memory there is no list, never one that lacks an item. */
static void mend_without_memory(void *ctx)
{
    const struct mo_json_doc *doc = ctx;
    struct mo_definition_notes notes = {.nmended = 0};
    mo_autobuf struct mo_buf b = {.max = 4096};
    struct mo_json got =
        mo_definition_mend(MO_DEFINITION_TOOL, doc->root, &b, &notes);

    assert_true(!got.p || mo_json_len(got) == 2);
}

static void test_memory(void **state)
{
    struct mo_json_doc doc;

    (void)state;
    assert_int_equal(
        mo_json_parse(
            MO_SPAN("[{\"name\":\"a\",\"inputSchema\":{\"properties\":{"
                    "\"x\":true}}},{\"name\":\"b\"}]"),
            0, &doc, NULL),
        0);
    torture(mend_without_memory, &doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
