/* Scripts: identifiers of tools, mentions, declarations, and the files beside a
 * script. it/script_stubs gives the declarations to Python and TypeScript. */
#include "mo_test.h"

#include "mcp/script/files.h"

static void identifiers(void **state)
{
    static const struct {
        const char *name, *id;
    } rows[] = {
        {"read_file", "read_file"},
        {"create-issue", "create_issue"},
        {"a.b/c", "a_b_c"},
        {"1st", "tool_1st"},
        {"_x", "tool__x"},
        {"", ""},
        {"import", "import_"},
        {"None", "None_"},
        {"call", "call_"},
        {"then", "then_"},
        {"\xc3\xbc"
         "ber",
         "tool__ber"},
        {"a\n\"\"\"*/b", "a______b"},
    };
    char id[MO_SCRIPT_ID_MAX], longest[2 * MO_SCRIPT_ID_MAX];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_script_identifier(mo_span_cstr(rows[i].name), id);
        check_row(rows[i].name, strcmp(id, rows[i].id) == 0);
    }
    memset(longest, 'a', sizeof(longest));
    for (size_t n = 1; n <= sizeof(longest); n++) {
        mo_script_identifier(mo_span(longest, n), id);
        assert_true(strlen(id) == 0 || strlen(id) == n);
    }
    assert_int_equal(strlen(id), 0);
}

static void mentions(void **state)
{
    static const struct {
        const char *code, *name;
        bool hit;
    } rows[] = {
        {"tools.read_file(path=1)", "read_file", true},
        {"tools.read_files()", "read_file", false},
        {"tools.my_read_file()", "read_file", false},
        {"tools.fs.read_file()", "fs_read_file", true},
        {"tools.fs.read_file()", "read_file", true},
        {"tools.call('create-issue')", "create-issue", true},
        {"tools.create_issue()", "create-issue", true},
        {"tools.github.create_issue()", "github_create-issue", true},
        {"read_file", "read_file", true},
        {"", "read_file", false},
        {"anything", "", false},
        {"tools.import_()", "import", true},
        {"import tools", "import", true}, /* a word is a word */
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].code, mo_script_mentions(
                                    mo_span_cstr(rows[i].code),
                                    mo_span_cstr(rows[i].name)) == rows[i].hit);
}

static struct mo_json json(const char *s)
{
    struct mo_json_doc doc;

    assert_int_equal(mo_json_parse(mo_span_cstr(s), 0, &doc, NULL), 0);
    return doc.root;
}

/* The schema of an argument "a", and its type in both languages. */
static void types(void **state)
{
    static const struct {
        const char *schema, *python, *other;
    } rows[] = {
        {"{\"type\":\"string\"}", "str", "string"},
        {"{\"type\":\"integer\"}", "int", "number"},
        {"{\"type\":\"number\"}", "float", "number"},
        {"{\"type\":\"boolean\"}", "bool", "boolean"},
        {"{\"type\":\"array\"}", "list[Any]", "Array<unknown>"},
        {"{\"type\":\"array\",\"items\":{\"type\":\"string\"}}", "list[str]",
         "Array<string>"},
        {"{\"type\":\"object\"}", "dict[str, Any]", "Record<string, unknown>"},
        {"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"null\"}}",
         "dict[str, None]", "Record<string, null>"},
        {"{\"type\":[\"string\",\"null\"]}", "Union[str, None]",
         "string | null"},
        {"{\"type\":\"string\",\"nullable\":true}", "Optional[str]",
         "string | null"},
        {"{\"anyOf\":[{\"type\":\"string\"},{\"const\":1}]}",
         "Union[str, Literal[1]]", "string | 1"},
        {"{\"enum\":[\"a\\\"\\n\",true,null]}",
         "Literal[\"a\\\"\\u000a\", True, None]",
         "\"a\\\"\\u000a\" | true | null"},
        {"{\"enum\":[1.5]}", "Any", "1.5"},
        {"{\"enum\":[[]]}", "Any", "unknown"},
        {"{\"enum\":[]}", "Any", "unknown"},
        {"{\"enum\":7}", "Any", "unknown"},
        {"{\"const\":{}}", "Any", "unknown"},
        {"{\"type\":\"strange\"}", "Any", "unknown"},
        {"{\"$ref\":\"#/x\"}", "Any", "unknown"},
        {"true", "Any", "unknown"},
        {"7", "Any", "unknown"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        char schema[512], want[512];
        struct mo_script_tool t = {.name = MO_SPAN("t")};
        struct mo_buf types_b, out;

        (void)snprintf(schema, sizeof(schema),
                       "{\"type\":\"object\",\"properties\":{\"a\":%s}}",
                       rows[i].schema);
        t.input = json(schema);
        mo_buf_init(&types_b, 65536);
        mo_buf_init(&out, 65536);
        mo_stub_put(&t, "t", MO_SCRIPT_PYTHON, &types_b, &out);
        (void)snprintf(want, sizeof(want), "def t(*, a: %s = ...) -> Any:\n",
                       rows[i].python);
        check_row(schema,
                  mo_span_starts(mo_buf_view(&out), mo_span_cstr(want)));
        mo_buf_reset(&out);
        mo_stub_put(&t, "t", MO_SCRIPT_JAVASCRIPT, NULL, &out);
        (void)snprintf(want, sizeof(want),
                       "  t(args?: { a?: %s; }): Promise<unknown>;\n",
                       rows[i].other);
        check_row(schema, mo_span_ends(mo_buf_view(&out), mo_span_cstr(want)));
        mo_buf_fini(&types_b);
        mo_buf_fini(&out);
    }
}

static void one_tool(void **state)
{
    struct mo_script_tool t = {
        .name = MO_SPAN("create-issue"),
        .description = MO_SPAN("Opens an \"\"\"issue\"\"\" \\ */ now.\nYes."),
        .input = json("{\"type\":\"object\",\"properties\":{\"title\":{"
                      "\"type\":\"string\",\"description\":\"Its title.\"},"
                      "\"labels\":{\"type\":\"array\",\"items\":{\"type\":"
                      "\"object\",\"properties\":{\"a b\":{\"type\":"
                      "\"string\"}},\"required\":[\"a b\"]}}},\"required\":["
                      "\"title\"]}"),
        .output = json("{\"type\":\"object\",\"properties\":{\"url\":{"
                       "\"type\":\"string\"}}}"),
    };
    struct mo_buf ty, out;

    (void)state;
    mo_buf_init(&ty, 65536);
    mo_buf_init(&out, 65536);
    mo_stub_put(&t, "create_issue", MO_SCRIPT_PYTHON, &ty, &out);
    assert_string_equal(mo_buf_cstr(&ty),
                        "create_issue_1 = TypedDict(\"create_issue_1\", {\n"
                        "    \"a b\": str,  # required\n"
                        "}, total=False)\n\n"
                        "create_issue_2 = TypedDict(\"create_issue_2\", {\n"
                        "    \"url\": str,\n"
                        "}, total=False)\n\n");
    assert_string_equal(
        mo_buf_cstr(&out),
        "def create_issue(*, title: str, labels: list[create_issue_1] = ...) "
        "-> create_issue_2:\n"
        "    \"\"\"Opens an \"\"\\\"issue\"\"\\\" \\\\ */ now.\n"
        "    Yes.\n"
        "    \n"
        "    title: Its title.\n"
        "    \"\"\"\n\n\n");
    mo_buf_reset(&out);
    mo_stub_put(&t, "", MO_SCRIPT_JAVASCRIPT, NULL, &out);
    assert_string_equal(
        mo_buf_cstr(&out),
        "  /**\n"
        "   * Opens an \"\"\"issue\"\"\" \\ *\\/ now.\n"
        "   * Yes.\n"
        "   * \n"
        "   * title: Its title.\n"
        "   */\n"
        "  call(name: \"create-issue\", args: { title: string; labels?: "
        "Array<{ \"a b\": string; }>; }, options?: { raw?: boolean }): "
        "Promise<{ url?: string; }>;\n");
    mo_buf_fini(&ty);
    mo_buf_fini(&out);
}

/* A schema that would need more than its room is declared without types. */
static void size_is_bounded(void **state)
{
    struct mo_buf schema, out, ty;
    struct mo_script_tool t = {.name = MO_SPAN("big")};

    (void)state;
    mo_buf_init(&schema, 1 << 20);
    mo_buf_init(&out, 1 << 20);
    mo_buf_init(&ty, 1 << 20);
    (void)mo_buf_puts(&schema, "{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < 60; i++)
        (void)mo_buf_printf(&schema,
                            "%s\"p%d\":{\"enum\":[\"%0180d\",\"%0181d\""
                            "]}",
                            i ? "," : "", i, i, i);
    (void)mo_buf_puts(&schema, "}}");
    t.input = json(mo_buf_cstr(&schema));
    mo_stub_put(&t, "big", MO_SCRIPT_PYTHON, &ty, &out);
    assert_int_equal(ty.len, 0);
    assert_true(mo_span_starts(
        mo_buf_view(&out),
        MO_SPAN("def big(arguments: dict[str, Any] = ..., /) -> Any:\n")));
    mo_buf_reset(&out);
    mo_stub_put(&t, "big", MO_SCRIPT_JAVASCRIPT, NULL, &out);
    assert_true(out.len < 200);
    mo_buf_fini(&schema);
    mo_buf_fini(&out);
    mo_buf_fini(&ty);
}

static const struct mo_script_tool some[] = {
    {.name = {"create-issue", 12}, .server = {"git hub", 7}},
    {.name = {"create.issue", 12}},
    {.name = {"send-mail", 9}, .server = {"post", 4}},
    {.name = {"post_read", 9}, .server = {"post", 4}},
};

static void put_all(struct mo_buf *b)
{
    struct mo_script_use u = {
        .language = MO_SCRIPT_PYTHON,
        .code = MO_SPAN("tools.create_issue() tools.post.send_mail() "
                        "tools.post.read()"),
        .tools = some,
        .n = MO_COUNT(some)};
    struct mo_jw w = mo_jw_object(b);

    mo_script_files(&w, &u);
    mo_jw_end(&w);
}

/* One identifier for two tools is of neither. */
static void files(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 1 << 20};
    mo_autoarena struct mo_arena a = {.cap = 1 << 20};
    struct mo_span names, stubs, library;
    struct mo_json root;

    (void)state;
    put_all(&b);
    root = json(mo_buf_cstr(&b));
    assert_int_equal(mo_json_len(root), 4);
    assert_int_equal(mo_json_str(mo_json_get(root, "names.json"), &a, &names),
                     0);
    assert_true(mo_span_is(
        names, "{\"git_hub_create_issue\":\"create-issue\",\"send_mail\":"
               "\"send-mail\",\"post_send_mail\":\"send-mail\"}"));
    assert_int_equal(mo_json_str(mo_json_get(root, "stubs.py"), &a, &stubs), 0);
    assert_true(mo_span_search(stubs, MO_SPAN("Literal[\"create.issue\"]")) >
                0);
    assert_true(mo_span_search(stubs, MO_SPAN("def send_mail(")) > 0);
    assert_true(mo_span_search(stubs, MO_SPAN("def post_read(")) > 0);
    assert_int_equal(mo_json_str(mo_json_get(root, "tools.py"), &a, &library),
                     0);
    assert_true(mo_span_eq(library, mo_script_library(MO_SCRIPT_PYTHON)));
    assert_int_equal(
        mo_json_str(mo_json_get(root, "tools_shared.py"), &a, &library), 0);
    assert_true(mo_span_search(library, MO_SPAN("class Shared")) > 0);
    assert_true(mo_span_search(mo_script_library(MO_SCRIPT_JAVASCRIPT),
                               MO_SPAN("export default")) > 0);
}

static void without_memory(void *ctx)
{
    mo_autobuf struct mo_buf b = {.max = 1 << 20};

    (void)ctx;
    put_all(&b);
}

static void survives_no_memory(void **state)
{
    (void)state;
    torture(without_memory, NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(identifiers),
        cmocka_unit_test(mentions),
        cmocka_unit_test(types),
        cmocka_unit_test(one_tool),
        cmocka_unit_test(size_is_bounded),
        cmocka_unit_test(files),
        cmocka_unit_test(survives_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
