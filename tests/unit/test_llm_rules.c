/* Tables of the providers: errors, waits, schemas, lists of models, and the
 * sentences the demo understands. */
#include "agent/llm/llm_priv.h"
#include "mo_test.h"

/* --- errors
 * ------------------------------------------------------------------ */

static void verdicts(void **state)
{
    static const struct {
        const char *name, *body;
        int status;
        const char *code;
        bool again;
        const char *says;
    } rows[] = {
        {"a type",
         "{\"type\":\"error\",\"error\":{\"type\":"
         "\"overloaded_error\",\"message\":\"Overloaded\"}}",
         529, "overloaded", true, "try again in a minute: Overloaded"},
        {"in a list",
         "[{\"error\":{\"code\":429,\"status\":"
         "\"RESOURCE_EXHAUSTED\",\"message\":\"m\"}}]",
         429, "rate_limit", true, NULL},
        {"no status, a number", "{\"error\":{\"code\":503,\"message\":\"m\"}}",
         0, "overloaded", true, NULL},
        {"a string", "{\"error\":\"model 'x' not found\"}", 404, "no_model",
         false, "model 'x' not found"},
        {"nothing", "", 500, "overloaded", true, "internal error"},
        {"a page", "<html>", 502, "overloaded", true, "<html>"},
        {"a phrase", "{\"error\":{\"message\":\"prompt is too long: 2 > 1\"}}",
         400, "too_long", false, "new conversation"},
        {"Google's bad key",
         "{\"error\":{\"code\":400,\"status\":"
         "\"INVALID_ARGUMENT\",\"message\":\"API key not "
         "valid. Please\"}}",
         400, "auth", false, "check it"},
        {"a permanent 429",
         "{\"error\":{\"code\":\"insufficient_quota\","
         "\"message\":\"m\"}}",
         429, "quota", false, "billing"},
        {"the key is blanked",
         "{\"error\":{\"message\":\"no TOPSECRETKEY, "
         "not TOPSECRETKEY\"}}",
         400, "bad_request", false, "no [key], not [key]"},
        {"half a character at the end",
         "{\"error\":{\"message\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaa\xc3\xa9\xc3\xa9\xc3\xa9\"}}",
         400, "bad_request", false, NULL},
        {"unknown", "{}", 418, "bad_request", false, NULL},
        {"loading", "{\"error\":{\"message\":\"Loading model\",\"code\":503}}",
         503, "overloaded", true, NULL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_llm_hint h = {rows[i].status, -1, -1};
        struct mo_llm_verdict v;

        mo_llm_judge("Them", &h, mo_span_cstr(rows[i].body),
                     MO_SPAN("TOPSECRETKEY"), &v);
        check_row(rows[i].name, strcmp(v.f.code, rows[i].code) == 0);
        check_row(rows[i].name, v.again == rows[i].again);
        check_row(rows[i].name, v.f.err.code < 0);
        check_row(rows[i].name, !strstr(v.f.err.msg, "TOPSECRET"));
        check_row(rows[i].name,
                  !rows[i].says || strstr(v.f.err.msg, rows[i].says));
        check_row(rows[i].name,
                  v.loading == (strcmp(rows[i].name, "loading") == 0));
    }
}

static void waits(void **state)
{
    static const struct {
        const char *name, *header, *value;
        int64_t ms;
    } rows[] = {
        {"ms", "Retry-After-Ms", "1500", 1500},
        {"ms with a dot", "retry-after-ms", "12.7", 12},
        {"seconds", "retry-after", "2", 2000},
        {"a part of one", "retry-after", "0.25", 250},
        {"a date", "retry-after", "Sun, 15 Nov 2026 05:00:30 GMT", 30000},
        {"leap day", "retry-after", "Tue, 29 Feb 2028 00:00:00 GMT",
         (int64_t)40676400 * 1000},
        {"over", "retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", 0},
        {"words", "retry-after", "soon", -1},
        {"negative", "retry-after", "-1", -1},
        {"no month", "retry-after", "Sun, 06 Nix 1994 08:49:37 GMT", -1},
        {"absurd", "retry-after", "1e300", -1},
    };
    const uint64_t now = (uint64_t)1794718800 * 1000; /* 15 Nov 05:00 */

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_http_header hd = {mo_span_cstr(rows[i].header),
                                    mo_span_cstr(rows[i].value)};
        struct mo_http_head head = {
            .status = 429, .headers = &hd, .nheaders = 1};
        struct mo_llm_hint h;

        mo_llm_hint_head(&h, &head, now);
        if (h.after_ms != rows[i].ms)
            fail_msg("row '%s': %lld", rows[i].name, (long long)h.after_ms);
        assert_int_equal(h.should, -1);
        assert_int_equal(h.status, 429);
    }
    assert_int_equal(mo_llm_wait_ms(-1, 1, 0), 500);
    assert_int_equal(mo_llm_wait_ms(-1, 1, UINT32_MAX), 375);
    assert_int_equal(mo_llm_wait_ms(-1, 2, 0), 1000);
    assert_int_equal(mo_llm_wait_ms(-1, 9, 0), 8000);
    assert_int_equal(mo_llm_wait_ms(70000, 1, 0), 0);
    assert_int_equal(mo_llm_wait_ms(0, 1, 0), 1);
}

/* --- schemas ------------------------------------------------------------- */

static void schemas(void **state)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"{}", "{\"type\":\"object\"}"},
        {"{\"type\":\"string\"}", "{\"type\":\"object\"}"},
        {"{\"properties\":{\"a\":{\"const\":1}}}",
         "{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":[1]}}}"},
        {"{\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"^x\","
         "\"description\":\"d\"}}}",
         "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\","
         "\"description\":\"d (pattern: \\\"^x\\\")\"}}}"},
        {"{\"$schema\":\"u\",\"definitions\":{\"x\":{}},\"properties\":{\"a\":"
         "{\"$ref\":\"#/definitions/x\",\"title\":\"t\"}}}",
         "{\"type\":\"object\",\"$defs\":{\"x\":{}},\"properties\":{\"a\":{"
         "\"$ref\":\"#/$defs/x\"}}}"},
        {"{\"properties\":{\"a-b\":{},\"c\":true},\"required\":[\"a-b\","
         "\"c\"]}",
         "{\"type\":\"object\",\"properties\":{\"c\":{}},\"required\":[\"c\"],"
         "\"description\":\"(a-b: {})\"}"},
        {"{\"additionalProperties\":false,\"allOf\":[{}],\"not\":{}}",
         "{\"type\":\"object\",\"additionalProperties\":false,\"anyOf\":[{}],"
         "\"description\":\"(not: {})\"}"},
        {"{\"allOf\":[{},{}]}",
         "{\"type\":\"object\",\"description\":\"(allOf: [{},{}])\"}"},
        {"{\"properties\":{\"a\":{\"\\u0074ype\":\"string\"}}}",
         "{\"type\":\"object\",\"properties\":{\"a\":{\"\\u0074ype\":"
         "\"string\"}}}"},
        {"{\"title\":\"a\",\"title\":\"b\"}",
         "{\"type\":\"object\",\"title\":\"b\"}"},
        {"{\"items\":[{}],\"properties\":[]}",
         "{\"type\":\"object\",\"items\":{},\"description\":"
         "\"(properties: [])\"}"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf out;
        struct mo_json_doc d;

        mo_buf_init(&out, 4096);
        assert_int_equal(mo_json_parse(mo_span_cstr(rows[i].in), 0, &d, NULL),
                         0);
        assert_int_equal(mo_llm_gschema(d.root, &out), 0);
        assert_string_equal(mo_buf_cstr(&out), rows[i].out);
        mo_buf_fini(&out);
    }
}

static void a_deep_schema_ends(void **state)
{
    struct mo_buf in, out;
    struct mo_json_doc d;

    (void)state;
    mo_buf_init(&in, 65536);
    mo_buf_init(&out, 65536);
    for (int i = 0; i < 200; i++)
        (void)mo_buf_puts(&in, "{\"properties\":{\"a\":");
    (void)mo_buf_puts(&in, "{}");
    for (int i = 0; i < 200; i++)
        (void)mo_buf_puts(&in, "}}");
    assert_int_equal(mo_json_parse(mo_buf_view(&in), 0, &d, NULL), 0);
    assert_int_equal(mo_llm_gschema(d.root, &out), 0);
    assert_int_equal(mo_json_parse(mo_buf_view(&out), 0, &d, NULL), 0);
    mo_buf_fini(&in);
    mo_buf_fini(&out);
}

static void schema_once(void *ctx)
{
    static const char schema[] =
        "{\"properties\":{\"a\":{\"pattern\":\"x\",\"description\":"
        "\"d\\n\"},\"b-c\":{}},\"definitions\":{\"x\":{\"$ref\":"
        "\"#/definitions/x\"}}}";
    struct mo_json_doc doc;
    struct mo_buf out;
    int rc;

    (void)ctx;
    assert_int_equal(mo_json_parse(mo_span_cstr(schema), 0, &doc, NULL), 0);
    mo_buf_init(&out, 4096);
    rc = mo_llm_gschema(doc.root, &out);
    assert_true(rc == MO_ENOMEM ||
                mo_span_search(mo_buf_view(&out), MO_SPAN("(b-c: {})")) > 0);
    mo_buf_fini(&out);
}

static void schemas_without_memory(void **state)
{
    (void)state;
    torture(schema_once, NULL);
}

/* --- lists of models ----------------------------------------------------- */

static int put_model(void *ctx, const struct mo_llm_model *m, double rank,
                     struct mo_err *e)
{
    (void)e;
    (void)mo_buf_printf(ctx, "%.*s|%.*s|%llu|%g ", (int)m->id.n, m->id.p,
                        (int)m->name.n, m->name.p,
                        (unsigned long long)m->context, rank);
    return 0;
}

static void pages(void **state)
{
    static const struct {
        const char *name;
        enum mo_llm_kind kind;
        const char *doc, *models, *next;
    } rows[] = {
        {"claude", MO_LLM_CLAUDE,
         "{\"data\":[{\"id\":\"c\",\"display_name\":\"C\","
         "\"max_input_tokens\":9},{\"id\":\"r\",\"lifecycle\":\"retired\"},"
         "{\"id\":7}],\"has_more\":true,\"last_id\":\"c\"}",
         "c|C|9|0 ", "c"},
        {"the last page", MO_LLM_CLAUDE,
         "{\"data\":[],\"has_more\":false,\"last_id\":\"c\"}", "", ""},
        {"gemini", MO_LLM_GEMINI,
         "{\"models\":[{\"name\":\"models/gemini-3.8-x\",\"displayName\":\"G\","
         "\"supportedGenerationMethods\":[\"generateContent\"]},{\"name\":"
         "\"models/e\"}],\"nextPageToken\":\"p\"}",
         "gemini-3.8-x|G|0|3.8 ", "p"},
        {"openai", MO_LLM_OPENAI,
         "{\"data\":[{\"id\":\"gpt-6.1-sol-max\",\"created\":5},{\"id\":"
         "\"o3\"},{\"id\":\"whisper\"},{\"id\":\"gpt-image\"}]}",
         "gpt-6.1-sol-max|GPT-6.1 Sol Max|0|5 o3|o3|0|0 ", ""},
        {"ollama", MO_LLM_COMPATIBLE,
         "{\"data\":[{\"id\":\"q\",\"max_model_len\":4}]}", "q|q|4|0 ", ""},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span next;
        struct mo_arena a;
        struct mo_buf b;
        struct mo_err e;

        mo_arena_init(&a, 65536);
        mo_buf_init(&b, 4096);
        check_row(rows[i].name,
                  mo_llm_page(rows[i].kind, mo_span_cstr(rows[i].doc), &a,
                              put_model, &b, &next, &e) == 0);
        assert_string_equal(mo_buf_cstr(&b), rows[i].models);
        check_row(rows[i].name, mo_span_is(next, rows[i].next));
        mo_arena_fini(&a);
        mo_buf_fini(&b);
    }
    for (size_t i = 0; i < 3; i++) {
        static const char *const bad[] = {"{", "[]", "{\"data\":{}}"};
        struct mo_span next;
        struct mo_arena a;
        struct mo_err e;

        mo_arena_init(&a, 65536);
        assert_int_equal(mo_llm_page(MO_LLM_CLAUDE, mo_span_cstr(bad[i]), &a,
                                     put_model, NULL, &next, &e),
                         MO_EPROTO);
        mo_arena_fini(&a);
    }
}

static void kinds(void **state)
{
    static const struct {
        const char *name;
        int kind;
    } rows[] = {
        {"Claude", MO_LLM_CLAUDE},
        {"anthropic", MO_LLM_CLAUDE},
        {"GEMINI", MO_LLM_GEMINI},
        {"google", MO_LLM_GEMINI},
        {"openai", MO_LLM_OPENAI},
        {"ChatGPT", MO_LLM_OPENAI},
        {"ollama", MO_LLM_COMPATIBLE},
        {"demo", MO_LLM_DEMO},
        {"claud", -1},
        {"", -1},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].name,
                  mo_llm_kind(mo_span_cstr(rows[i].name)) == rows[i].kind);
    for (int k = MO_LLM_DEMO; k <= MO_LLM_COMPATIBLE; k++)
        assert_int_equal(
            mo_llm_kind(mo_span_cstr(mo_llm_kind_name((enum mo_llm_kind)k))),
            k);
    assert_ptr_equal(mo_llm_wire(MO_LLM_OPENAI, "gpt-4o"), &mo_llm_chat);
    assert_ptr_equal(mo_llm_wire(MO_LLM_OPENAI, "gpt-5.4-mini"),
                     &mo_llm_responses);
}

/* --- the demo
 * ---------------------------------------------------------------- */

static void plain_words(void **state)
{
    static const char *const whats[] = {"list", "read", "write",  "edit",
                                        "find", "run",  "script", "?"};
    static const struct {
        const char *said, *steps;
    } rows[] = {
        {"list the files, then write hello to a.txt and show it",
         "list() write(a.txt,hello) read(a.txt) "},
        {"List files", "list() "},
        {"Please list all files in src.", "list(src) "},
        {"What files are here?", "list() "},
        {"show me the files", "list() "},
        {"show a.txt", "read(a.txt) "},
        {"read the contents of 'my notes.txt'", "? "},
        {"cat \"a.txt\"; ls", "read(a.txt) list() "},
        {"write \"a and then b\" to x.md", "write(x.md,a and then b) "},
        {"put 1 to 2 into n.txt", "write(n.txt,1 to 2) "},
        {"create a file called b.txt with hi there", "write(b.txt,hi there) "},
        {"create empty.txt", "write(empty.txt) "},
        {"run `ls -l | wc`", "run(ls -l | wc) "},
        {"Run echo hi and then run uname -a", "run(echo hi) run(uname -a) "},
        {"run a script that writes hi to a.txt, b.txt and c.txt",
         "script(a.txt, b.txt and c.txt,hi) "},
        {"$ make && make test", "run(make && make test) "},
        {"search for hello in src", "find(src,hello) "},
        {"grep needle", "find(needle) "},
        {"replace cat with dog in pets.txt and show it",
         "edit(pets.txt,cat,dog) read(pets.txt) "},
        {"hello", "? "},
        {"don't list files", "? "},
        {"write a poem", "? "},
        {"list files\nshow b", "list() read(b) "},
        {"", ""},
        {" \n ", ""},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_llm_step v[MO_LLM_STEPS_MAX];
        size_t n = mo_llm_demo_steps(mo_span_cstr(rows[i].said), v);
        struct mo_buf b;

        mo_buf_init(&b, 4096);
        for (size_t k = 0; k < n; k++) {
            struct mo_span parts[] = {v[k].path, v[k].text, v[k].more};
            const char *sep = "";

            (void)mo_buf_puts(&b, whats[v[k].what]);
            if (v[k].what != MO_DO_NOTHING)
                (void)mo_buf_putc(&b, '(');
            for (size_t p = 0; p < 3; p++) {
                if (!parts[p].n)
                    continue;
                (void)mo_buf_puts(&b, sep);
                (void)mo_buf_span(&b, parts[p]);
                sep = ",";
            }
            (void)mo_buf_puts(&b, v[k].what != MO_DO_NOTHING ? ") " : " ");
        }
        if (strcmp(mo_buf_cstr(&b), rows[i].steps) != 0)
            fail_msg("'%s': %s", rows[i].said, mo_buf_cstr(&b));
        mo_buf_fini(&b);
    }
}

static void plan_once(void *ctx)
{
    struct mo_span entry = MO_SPAN("{\"role\":\"user\",\"blocks\":[{\"type\":"
                                   "\"text\",\"text\":\"write \\u00e4 to "
                                   "b\"}]}");
    struct mo_llm_tool t = {MO_SPAN("x_write_file"), MO_SPAN(""),
                            MO_SPAN("{}")};
    struct mo_llm_request r = {.model = "demo",
                               .tools = &t,
                               .ntools = 1,
                               .entries = &entry,
                               .nentries = 1};
    struct mo_llm_ask q = {.kind = MO_LLM_DEMO, .url = "demo:", .r = &r};
    struct mo_llm_plan p;
    struct mo_arena a;
    struct mo_err e;

    (void)ctx;
    mo_arena_init(&a, 65536);
    mo_buf_init(&p.text, 4096);
    mo_buf_init(&p.tool, 64);
    mo_buf_init(&p.args, 4096);
    if (mo_llm_ask_init(&q, &a, &e) == 0 && mo_llm_demo_plan(&q, &p, &e) == 0) {
        assert_true(mo_span_is(mo_buf_view(&p.args),
                               "{\"path\":\"b\",\"content\":\"\xc3\xa4\"}"));
        assert_true(mo_span_is(mo_buf_view(&p.tool), "x_write_file"));
    }
    mo_llm_plan_fini(&p);
    mo_arena_fini(&a);
}

static void plans_without_memory(void **state)
{
    (void)state;
    torture(plan_once, NULL);
}

static void sight(void **state)
{
    static const struct {
        enum mo_llm_kind kind;
        const char *model;
        bool sees;
    } rows[] = {
        {MO_LLM_CLAUDE, "claude-sonnet-5-5", true},
        {MO_LLM_GEMINI, "gemini-4-argon", true},
        {MO_LLM_OPENAI, "gpt-6-sol", true},
        {MO_LLM_OPENAI, "o3-mini", false},
        {MO_LLM_COMPATIBLE, "Qwen2.5-VL:7b", true},
        {MO_LLM_COMPATIBLE, "llava:latest", true},
        {MO_LLM_COMPATIBLE, "qwen3:8b", false},
        {MO_LLM_DEMO, "demo", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        assert_int_equal(mo_llm_sees(rows[i].kind, mo_span_cstr(rows[i].model)),
                         rows[i].sees);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sight),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(waits),
        cmocka_unit_test(schemas),
        cmocka_unit_test(a_deep_schema_ends),
        cmocka_unit_test(schemas_without_memory),
        cmocka_unit_test(pages),
        cmocka_unit_test(kinds),
        cmocka_unit_test(plain_words),
        cmocka_unit_test(plans_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
