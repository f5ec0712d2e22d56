/* entry.h: the documents of a conversation; and the names of tools. */
#include "mo_test.h"

#include "agent/chat/about.h"
#include "agent/chat/entry.h"
#include "agent/chat/images.h"
#include "agent/chat/sampling.h"
#include "agent/chat/titles.h"
#include "servers/tools.h"

static struct mo_json parse(struct mo_span text, struct mo_json_doc *doc)
{
    struct mo_err e;

    if (mo_json_parse(text, 0, doc, &e) < 0)
        fail_msg("%.*s: %s", (int)text.n, text.p, e.msg);
    return doc->root;
}

static void is_text(struct mo_buf *b, const char *want)
{
    assert_int_equal(mo_buf_err(b), 0);
    assert_string_equal(mo_buf_cstr(b), want);
    mo_buf_reset(b);
}

static void test_ours(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MO_ENTRY_MAX);
    mo_entry_message(&b, "user", MO_SPAN("m1"), MO_SPAN(""),
                     MO_SPAN("say \"hi\""));
    is_text(&b, "{\"role\":\"user\",\"id\":\"m1\",\"blocks\":[{\"type\":"
                "\"text\",\"text\":\"say \\\"hi\\\"\"}]}");
    mo_entry_stopped(&b, MO_SPAN("half a"));
    is_text(&b, "{\"role\":\"assistant\",\"blocks\":[{\"type\":\"text\","
                "\"text\":\"half a\"}],\"stop\":\"canceled\"}");
    mo_entry_stopped(&b, MO_SPAN(""));
    is_text(&b, "{\"role\":\"assistant\",\"blocks\":[{\"type\":\"text\","
                "\"text\":\"(stopped by the person)\"}],\"stop\":\"canceled\","
                "\"placeholder\":true}");
    mo_entry_note(&b, "auth", MO_SPAN("no key"));
    is_text(&b, "{\"role\":\"note\",\"code\":\"auth\",\"text\":\"no key\"}");
    mo_buf_fini(&b);
}

static void test_roles(void **state)
{
    static const struct {
        const char *text;
        enum mo_entry_role role;
        bool model;
    } rows[] = {
        {"{\"role\":\"user\"}", MO_ENTRY_USER, true},
        {"{\"role\":\"assistant\"}", MO_ENTRY_ASSISTANT, true},
        {"{\"role\":\"tool\"}", MO_ENTRY_TOOL, true},
        {"{\"role\":\"note\"}", MO_ENTRY_NOTE, false},
        {"{\"role\":\"summary\"}", MO_ENTRY_SUMMARY, false},
        {"{\"role\":\"new\"}", MO_ENTRY_OTHER, false},
        {"{}", MO_ENTRY_OTHER, false},
        {"[]", MO_ENTRY_OTHER, false},
    };
    struct mo_json_doc doc;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_json v = parse(mo_span_cstr(rows[i].text), &doc);

        check_row(rows[i].text, mo_entry_role(v) == rows[i].role);
        check_row(rows[i].text,
                  mo_entry_for_model(rows[i].role) == rows[i].model);
    }
}

static const char reply[] =
    "{\"role\":\"assistant\",\"by\":{\"model\":\"m\"},\"blocks\":["
    "{\"type\":\"thinking\",\"text\":\"hm\",\"raw\":{\"signature\":\"s\"}},"
    "{\"type\":\"text\",\"text\":\"ok\",\"raw\":{\"x\":1}},"
    "{\"type\":\"other\",\"raw\":{}},"
    "{\"type\":\"call\",\"key\":\"k1\",\"id\":\"t\",\"name\":\"n\",\"args\":{"
    "\"raw\":1},\"raw\":{}},"
    "{\"type\":\"call\",\"key\":\"k2\",\"name\":\"n2\",\"args\":{}}],"
    "\"stop\":\"calls\",\"stopRaw\":\"tool_use\",\"usage\":{\"input\":1,"
    "\"raw\":{\"y\":2}}}";

/* The public form has no raw blocks, but keeps a "raw" among arguments. */
static void test_public(void **state)
{
    struct mo_json_doc doc;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MO_ENTRY_MAX);
    mo_entry_public(&b, parse(mo_span_cstr(reply), &doc), 7, 99);
    is_text(&b,
            "{\"seq\":7,\"at\":99,\"role\":\"assistant\",\"by\":{\"model\":"
            "\"m\"},\"blocks\":[{\"type\":\"thinking\",\"text\":\"hm\"},"
            "{\"type\":\"text\",\"text\":\"ok\"},{\"type\":\"call\",\"key\":"
            "\"k1\",\"id\":\"t\",\"name\":\"n\",\"args\":{\"raw\":1}},"
            "{\"type\":\"call\",\"key\":\"k2\",\"name\":\"n2\",\"args\":{}}],"
            "\"stop\":\"calls\",\"usage\":{\"input\":1}}");
    mo_entry_words(&b, doc.root);
    is_text(&b, "hm\nok\n");
    mo_entry_public(&b, parse(MO_SPAN("{\"a\\\"b\":{\"c\\\\d\":1}}"), &doc), 1,
                    2);
    is_text(&b, "{\"seq\":1,\"at\":2,\"a\\\"b\":{\"c\\\\d\":1}}");
    mo_buf_fini(&b);
}

static void test_calls(void **state)
{
    struct mo_entry_call k;
    struct mo_json_iter it;
    struct mo_json_doc doc;

    (void)state;
    mo_entry_calls(&it, parse(mo_span_cstr(reply), &doc));
    assert_true(mo_entry_next_call(&it, &k));
    assert_true(mo_json_str_eq(k.key, MO_SPAN("k1")));
    assert_true(mo_json_str_eq(k.id, MO_SPAN("t")));
    assert_true(mo_entry_next_call(&it, &k));
    assert_true(mo_json_str_eq(k.name, MO_SPAN("n2")));
    assert_null(k.id.p);
    assert_false(mo_entry_next_call(&it, &k));
}

/* --- results ------------------------------------------------------------- */

static void test_result_small(void **state)
{
    const struct mo_entry_result v[] = {
        {MO_SPAN("k1"), MO_SPAN("t1"), MO_SPAN("n"),
         MO_SPAN("[{\"type\":\"text\",\"text\":\"a\"}]"), false, "done"},
        {MO_SPAN("k2"), MO_SPAN(""), MO_SPAN("n"), MO_SPAN("no json"), true,
         "rejected"},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, MO_ENTRY_MAX);
    mo_entry_tool(&b, v, 2);
    is_text(&b, "{\"role\":\"tool\",\"results\":[{\"key\":\"k1\",\"id\":\"t1\","
                "\"name\":\"n\",\"isError\":false,\"state\":\"done\","
                "\"content\":[{\"type\":\"text\",\"text\":\"a\"}]},"
                "{\"key\":\"k2\",\"name\":\"n\",\"isError\":true,"
                "\"state\":\"rejected\",\"content\":[]}]}");
    mo_buf_fini(&b);
}

static void put_big(struct mo_buf *b, const char *type, size_t n)
{
    mo_buf_printf(b, "{\"type\":\"%s\",\"text\":\"", type);
    for (size_t i = 0; i < n; i++)
        mo_buf_puts(b, "\xc3\xa9");
    mo_buf_puts(b, "\"}");
}

/* A long text is cut between characters and says so; later blocks are listed
 * but left out; the result is valid JSON of bounded size. */
static void test_result_cut(void **state)
{
    struct mo_entry_result r = {MO_SPAN("k1"), MO_SPAN(""), MO_SPAN("n"),
                                MO_SPAN(""),   false,       "done"};
    struct mo_json_doc doc;
    struct mo_buf in, out;
    struct mo_json content;

    (void)state;
    mo_buf_init(&in, MO_ENTRY_MAX);
    mo_buf_init(&out, MO_ENTRY_MAX);
    mo_buf_puts(&in, "[{\"type\":\"text\",\"text\":\"first\"},");
    put_big(&in, "text", 100000);
    mo_buf_putc(&in, ',');
    put_big(&in, "image", 1000);
    mo_buf_putc(&in, ']');
    r.content = mo_buf_view(&in);
    mo_entry_tool(&out, &r, 1);
    assert_int_equal(mo_buf_err(&out), 0);
    assert_true(out.len < MO_ENTRY_RESULT_MAX + 1024);
    content = mo_json_get(
        mo_json_at(mo_json_get(parse(mo_buf_view(&out), &doc), "results"), 0),
        "content");
    assert_int_equal(mo_json_len(content), 3);
    mo_buf_reset(&in);
    mo_json_str_buf(mo_json_get(mo_json_at(content, 1), "text"), &in);
    assert_non_null(strstr(mo_buf_cstr(&in), "of 200000 bytes left out here; "
                                             "call k1 keeps all of it]"));
    mo_buf_reset(&in);
    mo_json_str_buf(mo_json_get(mo_json_at(content, 2), "text"), &in);
    assert_non_null(strstr(mo_buf_cstr(&in), "bytes of content left out"));
    mo_buf_fini(&in);
    mo_buf_fini(&out);
}

static void write_all(void *ctx)
{
    struct mo_entry_result r = {MO_SPAN("k1"), MO_SPAN(""), MO_SPAN("n"),
                                MO_SPAN(""),   false,       "done"};
    struct mo_buf *in = ctx;
    struct mo_json_doc doc;
    struct mo_buf b;

    mo_buf_init(&b, MO_ENTRY_MAX);
    r.content = mo_buf_view(in);
    mo_entry_tool(&b, &r, 1);
    mo_buf_reset(&b);
    if (mo_json_parse(mo_span_cstr(reply), 0, &doc, NULL) == 0)
        mo_entry_public(&b, doc.root, 1, 1);
    mo_buf_fini(&b);
}

static void test_torture(void **state)
{
    struct mo_buf in;

    (void)state;
    mo_buf_init(&in, MO_ENTRY_MAX);
    mo_buf_putc(&in, '[');
    put_big(&in, "text", 50000);
    mo_buf_putc(&in, ']');
    torture(write_all, &in);
    mo_buf_fini(&in);
}

/* --- names --------------------------------------------------------------- */

static void test_names(void **state)
{
    static const struct {
        const char *server, *tool;
        bool bare, taken, hashed;
        const char *begins;
    } rows[] = {
        {"box", "read_file", true, false, false, "read_file"},
        {"git", "log", false, false, false, "git_log"},
        {"git", "log", false, true, true, "git_log_"},
        {"git", "log.all", false, false, true, "git_log_all_"},
        {"git", "", false, false, true, "git__"},
        {"s", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         false, false, false,
         "s_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
        {"s", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         false, false, true,
         "s_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_"},
        {"\xc3\xa9", "x", false, false, true, "___x_"},
    };
    char name[MO_TOOLS_NAME_MAX], again[MO_TOOLS_NAME_MAX];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        size_t n = strlen(rows[i].begins);

        mo_tools_name(mo_span_cstr(rows[i].server), mo_span_cstr(rows[i].tool),
                      rows[i].bare, rows[i].taken, name);
        check_row(name, strncmp(name, rows[i].begins, n) == 0);
        check_row(name, strlen(name) == n + (rows[i].hashed ? 6 : 0));
        mo_tools_name(mo_span_cstr(rows[i].server), mo_span_cstr(rows[i].tool),
                      rows[i].bare, rows[i].taken, again);
        assert_string_equal(name, again);
    }
}

static void test_title(void **state)
{
    static const struct {
        const char *message, *title;
    } rows[] = {
        {"hello", "hello"},
        {"", ""},
        {" \n\t\n", ""},
        {"\n\n  first  line \r\nsecond", "first line"},
        {"# A heading", "A heading"},
        {"> - `ls`", "ls"},
        {"***\nreal words", "real words"},
        {"a\x01\x7f"
         "b",
         "a b"},
        {"-5 degrees", "5 degrees"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf b = {.max = 256};

        mo_about_title(mo_span_cstr(rows[i].message), &b);
        assert_true(mo_span_is(mo_buf_view(&b), rows[i].title));
    }
}

/* --- images -------------------------------------------------------------- */

static void test_image_public(void **state)
{
    static const char blocks[] =
        "{\"type\":\"image\",\"path\":\"uploads/a.png\",\"size\":3,"
        "\"mimeType\":\"image/png\",\"data\":\"AAAA\"}";
    mo_autobuf struct mo_buf b = {.max = MO_ENTRY_MAX},
                             out = {.max = MO_ENTRY_MAX};
    struct mo_json_doc doc;

    (void)state;
    mo_entry_said(&b, MO_SPAN("m"), MO_SPAN("ann"), MO_SPAN("see"),
                  mo_span_cstr(blocks));
    mo_entry_public(&out, parse(mo_buf_view(&b), &doc), 1, 2);
    is_text(&out, "{\"seq\":1,\"at\":2,\"role\":\"user\",\"id\":\"m\",\"by\":"
                  "\"ann\",\"blocks\":[{\"type\":\"text\",\"text\":\"see\"},"
                  "{\"type\":\"image\",\"path\":\"uploads/a.png\",\"size\":3,"
                  "\"mimeType\":\"image/png\"}]}");
    mo_entry_words(&out, doc.root);
    is_text(&out, "see\n");
}

static void put_image(struct mo_buf *b, size_t n)
{
    mo_buf_puts(b,
                "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"");
    for (size_t i = 0; i < n; i++)
        mo_buf_putc(b, 'A');
    mo_buf_puts(b, "\"}");
}

/* A large image of a tool is kept for the model and not shown to members; one
 * that does not fit into the entry is left out. */
static void test_image_result(void **state)
{
    mo_autobuf struct mo_buf content = {.max = MO_ENTRY_MAX},
                             b = {.max = MO_ENTRY_MAX},
                             out = {.max = MO_ENTRY_MAX};
    struct mo_entry_result v = {.key = MO_SPAN("k"),
                                .name = MO_SPAN("n"),
                                .state = "done",
                                .times = {.began = 5, .ended = 9}};
    struct mo_json_doc doc;
    struct mo_json list;

    (void)state;
    mo_buf_putc(&content, '[');
    put_image(&content, (size_t)1024 * 1024);
    mo_buf_putc(&content, ',');
    put_image(&content, MO_ENTRY_STORED);
    mo_buf_putc(&content, ']');
    v.content = mo_buf_view(&content);
    mo_entry_tool(&b, &v, 1);
    assert_in_range(b.len, 1024 * 1024, MO_ENTRY_STORED);
    list = mo_json_get(
        mo_json_at(mo_json_get(parse(mo_buf_view(&b), &doc), "results"), 0),
        "content");
    assert_true(mo_entry_is_image(mo_json_at(list, 0)));
    assert_false(mo_entry_is_image(mo_json_at(list, 1)));
    mo_entry_public(&out, doc.root, 1, 2);
    assert_true(mo_span_search(mo_buf_view(&out),
                               MO_SPAN("\"times\":{\"began\":5,\"ended\":9}")) >
                0);
    assert_true(mo_span_search(mo_buf_view(&out),
                               MO_SPAN("left out here; call k keeps")) > 0);
    assert_in_range(out.len, 10, 1024);
}

static void test_image_list(void **state)
{
    static const struct {
        const char *text, *paths;
    } rows[] = {
        {"hi\n\nAttached files:\n- uploads/a b.png\n- uploads/c", "a b.png|c|"},
        {"Attached files:\n- uploads/a", "a|"},
        {"hi", ""},
        {"", ""},
        {"Attached files:\n", ""},
        {"Attached files:\n- uploads/a\nmore", ""},
        {"Attached files:\n- /etc/passwd", ""},
        {"not Attached files:\n- uploads/a", ""},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf b = {.max = 256};
        struct mo_span list = mo_chat_images_list(mo_span_cstr(rows[i].text)),
                       path;

        for (path = mo_chat_images_next(&list); path.p;
             path = mo_chat_images_next(&list)) {
            mo_buf_span(&b, mo_span_skip(path, sizeof("uploads/") - 1));
            mo_buf_putc(&b, '|');
        }
        is_text(&b, rows[i].paths);
    }
}

static void test_sampling(void **state)
{
    static const struct {
        const char *messages;
        int n;
    } rows[] = {
        {"[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"a\"}}]",
         1},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}"
         ","
         "{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":"
         "\"b\"}},"
         "{\"role\":\"user\",\"content\":{\"type\":\"image\",\"data\":\"\"}}]",
         3},
        {"[]", MO_EINVAL},
        {"{}", MO_EINVAL},
        {"[{\"role\":\"system\",\"content\":{\"type\":\"text\"}}]", MO_EINVAL},
        {"[{\"role\":\"assistant\",\"content\":{\"type\":\"text\"}}]",
         MO_EINVAL},
        {"[{\"role\":\"user\",\"content\":{\"type\":\"tool_use\"}}]",
         MO_EINVAL},
        {"[{\"role\":\"user\",\"content\":\"a\"}]", MO_EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf b = {.max = 4096};
        size_t ends[MO_SAMPLE_MESSAGES], from = 0;
        struct mo_json_doc doc, one;
        struct mo_err e;
        int n = mo_sampling_entries(parse(mo_span_cstr(rows[i].messages), &doc),
                                    &b, ends, &e);

        assert_int_equal(n, rows[i].n);
        for (int k = 0; k < n; k++) {
            parse(mo_span(b.p + from, ends[k] - from), &one);
            from = ends[k];
        }
    }
}

static void test_sampling_edit(void **state)
{
#define TEXT(t) "{\"type\":\"text\",\"text\":\"" t "\"}"
#define IMAGE   "{\"type\":\"image\",\"data\":\"AA\"}"
#define ASKED(s, a, b)                                                         \
    "{\"messages\":[{\"role\":\"user\",\"content\":[" IMAGE "," TEXT(          \
        a) "]},{\"role\":\"assistant\",\"content\":" TEXT(b) "}]," s           \
                                                             "\"maxTokens\":"
#define SYSTEM(s) "\"systemPrompt\":\"" s "\","
    static const char asked[] = ASKED(SYSTEM("be"), "a", "b") "9}";
    static const struct {
        const char *edit, *sent; /* sent NULL: refused */
    } rows[] = {
        {"", ASKED(SYSTEM("be"), "a", "b") "9}"},
        {"{}", ASKED(SYSTEM("be"), "a", "b") "9}"},
        {"{\"texts\":[\"x\",\"y\"]}", ASKED(SYSTEM("be"), "x", "y") "9}"},
        {"{\"systemPrompt\":\"no\",\"maxTokens\":20}",
         ASKED(SYSTEM("no"), "a", "b") "20}"},
        {"{\"systemPrompt\":\" \"}", ASKED("", "a", "b") "9}"},
        {"{\"texts\":[\"x\"]}", NULL},
        {"{\"texts\":[\"x\",\"y\",\"z\"]}", NULL},
        {"{\"texts\":[\"x\",\" \\n\"]}", NULL},
        {"{\"texts\":[\"x\",1]}", NULL},
        {"{\"texts\":\"x\"}", NULL},
        {"{\"systemPrompt\":1}", NULL},
        {"{\"maxTokens\":0}", NULL},
        {"{\"maxTokens\":21}", NULL},
        {"{\"maxTokens\":\"5\"}", NULL},
        {"{\"tools\":[]}", NULL},
        {"[]", NULL},
        {"{", NULL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf b = {.max = 4096};
        struct mo_json_doc doc;
        struct mo_err e;
        unsigned n = 9;
        int rc = mo_sampling_edit(parse(mo_span_cstr(asked), &doc),
                                  mo_span_cstr(rows[i].edit), 20, &n, &b, &e);

        check_row(rows[i].edit, (rc == 0) == (rows[i].sent != NULL));
        if (rc == 0)
            is_text(&b, rows[i].sent);
    }
#undef TEXT
#undef IMAGE
#undef ASKED
#undef SYSTEM
}

static void test_model_title(void **state)
{
    static const struct {
        const char *answer, *title;
    } rows[] = {
        {"Rust for beginners", "Rust for beginners"},
        {"\"Rust for beginners\"\n", "Rust for beginners"},
        {"\n\n**Rust for beginners.**", "Rust for beginners."},
        {"Title: \"Rust.\"", "Rust"},
        {"'\"Two\"'.", "Two"},
        {"\xe2\x80\x9eZwei W\xc3\xb6rter\xe2\x80\x9c", "Zwei W\xc3\xb6rter"},
        {"\xe3\x80\x8a\xe6\xa0\x87\xe9\xa2\x98\xe3\x80\x8b\xe3\x80\x82",
         "\xe6\xa0\x87\xe9\xa2\x98"},
        {"To be continued...", "To be continued..."},
        {"first\nsecond", "first"},
        {"a\tb  c", "a b c"},
        {"", ""},
        {"\"\"", "\"\""},
        {" \n ", ""},
        {"left \xe2\x80\xae right", ""}, /* U+202E */
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf b = {.max = 256};

        mo_title_clean(mo_span_cstr(rows[i].answer), &b);
        check_row(rows[i].answer, mo_span_is(mo_buf_view(&b), rows[i].title));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_title),
        cmocka_unit_test(test_ours),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_public),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_result_small),
        cmocka_unit_test(test_result_cut),
        cmocka_unit_test(test_torture),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_image_public),
        cmocka_unit_test(test_image_list),
        cmocka_unit_test(test_image_result),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_sampling_edit),
        cmocka_unit_test(test_model_title),
    };

    return cmocka_run_group_tests_name("entry", tests, NULL, NULL);
}
