/* Wires: streams split at any byte become the same entry; the old bytes of
 * requests never change; failing allocations are handled. */
#include "llm_rows.h"

#include "mo_test.h"

static const struct mo_llm_by by = {"p", "m", "u"};

static bool has(struct mo_span s, const char *what)
{
    return mo_span_search(s, mo_span_cstr(what)) >= 0;
}

/* --- streams ------------------------------------------------------------- */

static void check_reply(const struct llm_row *row, const struct mo_llm_reply *r)
{
    struct mo_json_doc doc;

    check_row(row->name, mo_span_is(r->text, row->text));
    check_row(row->name, r->stop == MO_LLM_CALLS && r->ncalls == 2);
    check_row(row->name, mo_span_is(r->calls[0].name, row->call[0]));
    check_row(row->name, mo_span_is(r->calls[0].args, row->call[1]));
    check_row(row->name, mo_span_is(r->calls[0].key, "key-0"));
    check_row(row->name, mo_span_is(r->calls[1].name, "v"));
    check_row(row->name, mo_span_is(r->calls[1].args, "{}"));
    check_row(row->name, mo_json_parse(r->entry, 0, &doc, NULL) == 0);
    for (size_t i = 0; i < MO_COUNT(row->has) && row->has[i]; i++) {
        if (!has(r->entry, row->has[i]))
            fail_msg("row '%s': no %s in %.*s", row->name, row->has[i],
                     (int)r->entry.n, r->entry.p);
    }
}

static void streams_in_two_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(llm_rows); i++) {
        const struct llm_row *row = &llm_rows[i];
        struct mo_span all = mo_span_cstr(row->stream);

        for (size_t cut = 0; cut <= all.n; cut++) {
            struct mo_llm_reply r;
            struct llm_read rd;

            llm_read_init(&rd, row->kind, row->model, NULL, NULL);
            llm_read_feed(&rd, mo_span_head(all, cut));
            llm_read_feed(&rd, mo_span_skip(all, cut));
            check_row(row->name, !rd.failed);
            check_row(row->name, mo_llm_in_reply(&rd.in, &by, &r, &rd.e) == 0);
            check_reply(row, &r);
            llm_read_fini(&rd);
        }
    }
}

/* A stream cut short anywhere is not a reply: no partial reply is kept. */
static void no_prefix_is_a_reply(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(llm_rows); i++) {
        const struct llm_row *row = &llm_rows[i];
        struct mo_span all = mo_span_cstr(row->stream);
        size_t end = all.n - 2; /* without the last event's empty line */

        if (row->kind == MO_LLM_COMPATIBLE) /* usage and [DONE] are optional */
            end = (size_t)mo_span_search(all, MO_SPAN("{},\"finish"));
        for (size_t n = 0; n < end; n++) {
            struct mo_llm_reply r;
            struct llm_read rd;

            llm_read_init(&rd, row->kind, row->model, NULL, NULL);
            llm_read_feed(&rd, mo_span_head(all, n));
            check_row(row->name, !rd.failed && !rd.in.whole);
            check_row(row->name, mo_llm_in_reply(&rd.in, &by, &r, &rd.e) < 0);
            llm_read_fini(&rd);
        }
    }
}

struct shown {
    struct mo_buf text, thinking;
};

static void on_text(void *ctx, struct mo_span s)
{
    (void)mo_buf_span(&((struct shown *)ctx)->text, s);
}

static void on_thinking(void *ctx, struct mo_span s)
{
    (void)mo_buf_span(&((struct shown *)ctx)->thinking, s);
}

static const struct mo_llm_cb show_cb = {on_text, on_thinking, NULL, NULL};

static void deltas_are_shown_as_they_come(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(llm_rows); i++) {
        const struct llm_row *row = &llm_rows[i];
        struct mo_span rest = mo_span_cstr(row->stream);
        struct shown s;
        struct llm_read rd;

        mo_buf_init(&s.text, 4096);
        mo_buf_init(&s.thinking, 4096);
        llm_read_init(&rd, row->kind, row->model, &show_cb, &s);
        for (; rest.n; rest = mo_span_skip(rest, 1))
            llm_read_feed(&rd, mo_span_head(rest, 1));
        check_row(row->name, mo_span_is(mo_buf_view(&s.text), row->text));
        check_row(row->name, has(mo_buf_view(&s.thinking), "hm "));
        llm_read_fini(&rd);
        mo_buf_fini(&s.text);
        mo_buf_fini(&s.thinking);
    }
}

static void bad_streams_are_errors(void **state)
{
    static const struct {
        const char *name, *stream;
        enum mo_llm_kind kind;
    } rows[] = {
        {"no JSON", "data: {\n\n", MO_LLM_CLAUDE},
        {"no JSON", "data: nope\n\n", MO_LLM_GEMINI},
        {"no JSON", "data: [DONE\n\n", MO_LLM_COMPATIBLE},
        {"no JSON", "data: \xff\n\n", MO_LLM_OPENAI},
        {"delta of nothing",
         "data: {\"type\":\"content_block_delta\",\"index\":0}\n\n",
         MO_LLM_CLAUDE},
        {"a block that is none",
         "data: {\"type\":\"content_block_start\",\"index\":0}\n\n",
         MO_LLM_CLAUDE},
        {"stop of nothing",
         "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
         MO_LLM_CLAUDE},
        {"the end without a reason", "data: {\"type\":\"message_stop\"}\n\n",
         MO_LLM_CLAUDE},
        {"a call without a name",
         "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":"
         "{\"args\":{}}}]}}]}\n\n",
         MO_LLM_GEMINI},
        {"a call without a name",
         "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,"
         "\"function\":{\"arguments\":\"{}\"}}]}}]}\n\n",
         MO_LLM_COMPATIBLE},
        {"a call without an id",
         "data: {\"type\":\"response.output_item.done\",\"output_index\":0,"
         "\"item\":{\"type\":\"function_call\",\"name\":\"w\"}}\n\n",
         MO_LLM_OPENAI},
        {"an error", "data: {\"error\":\"model not found\"}\n\n",
         MO_LLM_COMPATIBLE},
        {"an error", "data: [{\"error\":{\"code\":500}}]\n\n", MO_LLM_GEMINI},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct llm_read rd;

        llm_read_init(&rd, rows[i].kind, "gpt-6", NULL, NULL);
        llm_read_feed(&rd, mo_span_cstr(rows[i].stream));
        check_row(rows[i].name, rd.failed);
        check_row(rows[i].name, rd.e.code < 0 && rd.e.msg[0]);
        llm_read_fini(&rd);
    }
}

/* A reply with too many calls or too much text is refused. */
static void limits(void **state)
{
    static const char call[] =
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":"
        "{\"name\":\"w\"}}]}}]}\n\n";
    struct llm_read rd;
    struct mo_buf b;

    (void)state;
    llm_read_init(&rd, MO_LLM_GEMINI, "g", NULL, NULL);
    for (size_t i = 0; i < MO_LLM_CALLS_MAX; i++)
        llm_read_feed(&rd, mo_span_cstr(call));
    assert_false(rd.failed);
    llm_read_feed(&rd, mo_span_cstr(call));
    assert_true(rd.failed && rd.e.code == MO_ETOOBIG);
    llm_read_fini(&rd);

    mo_buf_init(&b, (size_t)1024 * 1024);
    (void)mo_buf_puts(&b, "data: {\"candidates\":[{\"content\":{\"parts\":[{"
                          "\"text\":\"");
    for (size_t i = 0; i < 900 * 1024; i++)
        (void)mo_buf_putc(&b, 'x');
    (void)mo_buf_puts(&b, "\"}]}}]}\n\n");
    assert_int_equal(mo_buf_err(&b), 0);
    llm_read_init(&rd, MO_LLM_GEMINI, "g", NULL, NULL);
    for (size_t i = 0; i < 9; i++)
        llm_read_feed(&rd, mo_buf_view(&b));
    assert_false(rd.failed);
    llm_read_feed(&rd, mo_buf_view(&b));
    assert_true(rd.failed && rd.e.code == MO_ETOOBIG);
    llm_read_fini(&rd);
    mo_buf_fini(&b);
}

static void read_once(void *ctx)
{
    const struct llm_row *row = ctx;
    struct mo_llm_reply r;
    struct llm_read rd;

    llm_read_init(&rd, row->kind, row->model, NULL, NULL);
    llm_read_feed(&rd, mo_span_cstr(row->stream));
    if (!rd.failed && mo_llm_in_reply(&rd.in, &by, &r, &rd.e) == 0)
        check_reply(row, &r);
    llm_read_fini(&rd);
}

static void streams_without_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(llm_rows); i++) {
        struct llm_row row = llm_rows[i];

        torture(read_once, &row);
    }
}

/* --- requests ------------------------------------------------------------ */

#define USER                                                                   \
    "{\"role\":\"user\",\"blocks\":[{\"type\":\"text\",\"text\":\"a\"}]}"
#define CALLED                                                                 \
    "{\"role\":\"assistant\",\"by\":{\"provider\":\"x\",\"model\":\"y\","      \
    "\"url\":\"z\"},\"blocks\":[{\"type\":\"thinking\",\"text\":\"t\","        \
    "\"raw\":{\"type\":\"thinking\"}},{\"type\":\"text\",\"text\":\"b\"},"     \
    "{\"type\":\"call\",\"key\":\"k-0\",\"name\":\"w\",\"args\":{\"a\":1}}]}"
#define RESULT                                                                 \
    "{\"role\":\"tool\",\"results\":[{\"key\":\"k-0\",\"name\":\"w\","         \
    "\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"c\"}]}]}"
#define CACHE ",\"cache_control\":{\"type\":\"ephemeral\"}"

static const struct mo_llm_tool tool = {MO_SPAN("w"), MO_SPAN("d"),
                                        MO_SPAN("{\"type\":\"object\"}")};

static const struct {
    const char *name;
    enum mo_llm_kind kind;
    const char *model, *path, *body;
} asks[] = {
    {"claude", MO_LLM_CLAUDE, "m", "/v1/messages",
     "{\"model\":\"m\",\"max_tokens\":16384,\"stream\":true,\"tools\":[{"
     "\"name\":\"w\",\"description\":\"d\",\"input_schema\":{\"type\":"
     "\"object\"}" CACHE
     "}],\"system\":[{\"type\":\"text\",\"text\":\"s\"" CACHE
     "}],\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\","
     "\"text\":\"a\"" CACHE "}]},{\"role\":\"assistant\",\"content\":[{"
     "\"type\":\"text\",\"text\":\"b\"},{\"type\":\"tool_use\",\"id\":\"k-0\","
     "\"name\":\"w\",\"input\":{\"a\":1}}]},{\"role\":\"user\",\"content\":[{"
     "\"type\":\"tool_result\",\"tool_use_id\":\"k-0\",\"content\":[{\"type\":"
     "\"text\",\"text\":\"c\"}],\"is_error\":true},{\"type\":\"text\","
     "\"text\":\"a\"" CACHE "}]}]}"},
    {"gemini", MO_LLM_GEMINI, "models/g m",
     "/models/g%20m:streamGenerateContent?alt=sse",
     "{\"systemInstruction\":{\"parts\":[{\"text\":\"s\"}]},\"tools\":[{"
     "\"functionDeclarations\":[{\"name\":\"w\",\"description\":\"d\","
     "\"parametersJsonSchema\":{\"type\":\"object\"}}]}],\"contents\":[{"
     "\"role\":\"user\",\"parts\":[{\"text\":\"a\"}]},{\"role\":\"model\","
     "\"parts\":[{\"text\":\"b\"},{\"functionCall\":{\"id\":\"k-0\",\"name\":"
     "\"w\",\"args\":{\"a\":1}}}]},{\"role\":\"user\",\"parts\":[{"
     "\"functionResponse\":{\"id\":\"k-0\",\"name\":\"w\",\"response\":{"
     "\"error\":\"c\"}}}]},{\"role\":\"user\",\"parts\":[{\"text\":\"a\"}]}]}"},
    {"chat", MO_LLM_COMPATIBLE, "m", "/chat/completions",
     "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{"
     "\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":"
     "\"b\",\"tool_calls\":[{\"id\":\"k-0\",\"type\":\"function\",\"function\":"
     "{\"name\":\"w\",\"arguments\":\"{\\\"a\\\":1}\"}}]},{\"role\":\"tool\","
     "\"tool_call_id\":\"k-0\",\"content\":\"c\"},{\"role\":\"user\","
     "\"content\":\"a\"}],\"tools\":[{\"type\":\"function\",\"function\":{"
     "\"name\":\"w\",\"description\":\"d\",\"parameters\":{\"type\":\"object\""
     "}}}],\"stream\":true,\"stream_options\":{\"include_usage\":true}}"},
    {"responses", MO_LLM_OPENAI, "gpt-6", "/responses",
     "{\"model\":\"gpt-6\",\"instructions\":\"s\",\"tools\":[{\"type\":"
     "\"function\",\"name\":\"w\",\"description\":\"d\",\"parameters\":{"
     "\"type\":\"object\"},\"strict\":false}],\"input\":[{\"role\":\"user\","
     "\"content\":[{\"type\":\"input_text\",\"text\":\"a\"}]},{\"role\":"
     "\"assistant\",\"content\":\"b\"},{\"type\":\"function_call\",\"call_id\":"
     "\"k-0\",\"name\":\"w\",\"arguments\":\"{\\\"a\\\":1}\"},{\"type\":"
     "\"function_call_output\",\"call_id\":\"k-0\",\"output\":\"c\"},{\"role\":"
     "\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"a\"}]}],"
     "\"store\":false,\"include\":[\"reasoning.encrypted_content\"],"
     "\"stream\":true}"},
};

/* Returns 0 or an error; fills body and path. */
static int ask(enum mo_llm_kind k, const struct mo_llm_request *r,
               struct mo_buf *body, struct mo_buf *path, struct mo_err *e)
{
    struct mo_llm_ask q = {.kind = k, .url = "u", .r = r};
    const struct mo_llm_wire *w = mo_llm_wire(k, r->model);
    struct mo_arena a;
    int rc;

    mo_arena_init(&a, 65536);
    rc = mo_llm_ask_init(&q, &a, e);
    if (rc == 0)
        rc = w->put(&q, body, e);
    if (rc == 0 && mo_llm_put_path(w, r->model, path) < 0)
        rc = mo_fail(e, mo_buf_err(path), "path");
    mo_arena_fini(&a);
    return rc;
}

static void ask_once(void *ctx)
{
    size_t i = *(size_t *)ctx;
    struct mo_span entries[] = {MO_SPAN(USER), MO_SPAN(CALLED), MO_SPAN(RESULT),
                                MO_SPAN(USER)};
    struct mo_llm_request r = {.model = asks[i].model,
                               .system = MO_SPAN("s"),
                               .tools = &tool,
                               .ntools = 1,
                               .entries = entries,
                               .nentries = MO_COUNT(entries)};
    struct mo_buf body, path;
    struct mo_err e;

    mo_buf_init(&body, 65536);
    mo_buf_init(&path, 1024);
    if (ask(asks[i].kind, &r, &body, &path, &e) == 0) {
        if (!mo_span_is(mo_buf_view(&body), asks[i].body))
            fail_msg("row '%s': %s", asks[i].name, mo_buf_cstr(&body));
        check_row(asks[i].name, mo_span_is(mo_buf_view(&path), asks[i].path));
    } else {
        check_row(asks[i].name, e.code == MO_ENOMEM);
    }
    mo_buf_fini(&body);
    mo_buf_fini(&path);
}

static void requests_by_the_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(asks); i++) {
        ask_once(&i);
        torture(ask_once, &i);
    }
}

/* --- Claude's thinking
 * ------------------------------------------------------- */

#define THOUGHT                                                                \
    "{\"role\":\"assistant\",\"by\":{\"provider\":\"claude\",\"model\":\"m\"," \
    "\"url\":\"u\",\"base\":\"%s\"},\"blocks\":[{\"type\":\"thinking\","       \
    "\"text\""                                                                 \
    ":\"t\",\"raw\":{\"type\":\"thinking\",\"signature\":\"THOUGHT\"}},{"      \
    "\"type\":\"other\",\"raw\":{\"type\":\"redacted_thinking\",\"data\":"     \
    "\"HIDDEN\"}},{\"type\":\"text\",\"text\":\"b\",\"raw\":{\"type\":"        \
    "\"text\","                                                                \
    "\"text\":\"b\",\"own\":1}}]}"

static const struct mo_llm_tool other_tool = {MO_SPAN("x"), MO_SPAN("d"),
                                              MO_SPAN("{\"type\":\"object\"}")};

static void base_of(const struct mo_llm_request *r, char out[MO_LLM_BASE_MAX])
{
    struct mo_llm_ask q = {.kind = MO_LLM_CLAUDE, .url = "u", .r = r};
    struct mo_arena a;
    struct mo_err e;

    mo_arena_init(&a, 65536);
    assert_int_equal(mo_llm_ask_init(&q, &a, &e), 0);
    memcpy(out, q.base, MO_LLM_BASE_MAX);
    mo_arena_fini(&a);
}

/* Thinking is sent back only after the same beginning. */
static void thinking_stays_with_its_beginning(void **state)
{
    static const char elsewhere[] =
        "{\"role\":\"user\",\"blocks\":[{\"type\":\"text\",\"text\":"
        "\"[summary]\"}]}";
    static const struct {
        const char *name, *system, *first;
        const struct mo_llm_tool *tool;
        bool back;
    } rows[] = {
        {"as it was", "s", USER, &tool, true},
        {"other instructions", "S", USER, &tool, false},
        {"other tools", "s", USER, &other_tool, false},
        {"a summary first", "s", elsewhere, &tool, false},
    };
    struct mo_span then[] = {MO_SPAN(USER)};
    struct mo_llm_request was = {.model = "m",
                                 .system = MO_SPAN("s"),
                                 .tools = &tool,
                                 .ntools = 1,
                                 .entries = then,
                                 .nentries = 1};
    char base[MO_LLM_BASE_MAX], thought[1024];

    (void)state;
    base_of(&was, base);
    assert_int_equal(strlen(base), MO_LLM_BASE_MAX - 1);
    (void)snprintf(thought, sizeof(thought), THOUGHT, base);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span now[] = {mo_span_cstr(rows[i].first),
                                mo_span_cstr(thought), MO_SPAN(USER)};
        struct mo_llm_request r = {.model = "m",
                                   .system = mo_span_cstr(rows[i].system),
                                   .tools = rows[i].tool,
                                   .ntools = 1,
                                   .entries = now,
                                   .nentries = MO_COUNT(now)};
        struct mo_buf body, path;
        struct mo_err e;

        mo_buf_init(&body, 65536);
        mo_buf_init(&path, 1024);
        assert_int_equal(ask(MO_LLM_CLAUDE, &r, &body, &path, &e), 0);
        check_row(rows[i].name,
                  !strstr(mo_buf_cstr(&body), "THOUGHT") == !rows[i].back);
        check_row(rows[i].name,
                  !strstr(mo_buf_cstr(&body), "HIDDEN") == !rows[i].back);
        check_row(rows[i].name, strstr(mo_buf_cstr(&body), "\"own\":1"));
        mo_buf_fini(&body);
        mo_buf_fini(&path);
    }
}

/* Quiet requests still list the tools. */
static void quiet_requests(void **state)
{
    static const struct {
        enum mo_llm_kind kind;
        const char *model, *says;
    } rows[] = {
        {MO_LLM_CLAUDE, "m", "\"tool_choice\":{\"type\":\"none\"}"},
        {MO_LLM_GEMINI, "m",
         "\"toolConfig\":{\"functionCallingConfig\":{\"mode\":\"NONE\"}}"},
        {MO_LLM_COMPATIBLE, "m", "\"tool_choice\":\"none\""},
        {MO_LLM_OPENAI, "gpt-6", "\"tool_choice\":\"none\""},
    };
    struct mo_span entry = MO_SPAN(USER);

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows) * 2; i++) {
        size_t at = i / 2;
        bool tools = i % 2;
        struct mo_llm_request r = {.model = rows[at].model,
                                   .tools = &tool,
                                   .ntools = tools,
                                   .entries = &entry,
                                   .nentries = 1,
                                   .quiet = true};
        struct mo_buf body, path;
        struct mo_err e;

        mo_buf_init(&body, 65536);
        mo_buf_init(&path, 1024);
        assert_int_equal(ask(rows[at].kind, &r, &body, &path, &e), 0);
        check_row(rows[at].says,
                  !!strstr(mo_buf_cstr(&body), rows[at].says) == tools);
        mo_buf_fini(&body);
        mo_buf_fini(&path);
    }
}

/* Consecutive user entries become one Chat message. */
static void one_after_the_other(void **state)
{
    struct mo_span entries[] = {MO_SPAN(USER), MO_SPAN(USER)};
    struct mo_llm_request r = {
        .model = "m", .entries = entries, .nentries = MO_COUNT(entries)};
    struct mo_buf body, path;
    struct mo_err e;

    (void)state;
    mo_buf_init(&body, 65536);
    mo_buf_init(&path, 1024);
    assert_int_equal(ask(MO_LLM_COMPATIBLE, &r, &body, &path, &e), 0);
    assert_non_null(strstr(mo_buf_cstr(&body),
                           "\"messages\":[{\"role\":\"user\",\"content\":"
                           "\"a\\n\\na\"}]"));
    mo_buf_fini(&body);
    mo_buf_fini(&path);
}

static void bad_requests(void **state)
{
    static const struct {
        const char *name, *entry, *tool, *schema;
    } rows[] = {
        {"no JSON", "{", "w", "{}"},
        {"no role", "{\"blocks\":[]}", "w", "{}"},
        {"nobody asked", CALLED, "w", "{}"},
        {"a tool's name", USER, "a b", "{}"},
        {"a long name", USER,
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "{}"},
        {"no name", USER, "", "{}"},
        {"a schema that is none", USER, "w", "[]"},
        {"half a schema", USER, "w", "{"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span entry = mo_span_cstr(rows[i].entry);
        struct mo_llm_tool t = {mo_span_cstr(rows[i].tool), MO_SPAN(""),
                                mo_span_cstr(rows[i].schema)};
        struct mo_llm_request r = {.model = "m",
                                   .tools = &t,
                                   .ntools = 1,
                                   .entries = &entry,
                                   .nentries = 1};
        struct mo_buf body, path;
        struct mo_err e;

        mo_buf_init(&body, 65536);
        mo_buf_init(&path, 1024);
        check_row(rows[i].name,
                  ask(MO_LLM_CLAUDE, &r, &body, &path, &e) < 0 && e.msg[0]);
        mo_buf_fini(&body);
        mo_buf_fini(&path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_in_two_pieces),
        cmocka_unit_test(no_prefix_is_a_reply),
        cmocka_unit_test(deltas_are_shown_as_they_come),
        cmocka_unit_test(bad_streams_are_errors),
        cmocka_unit_test(limits),
        cmocka_unit_test(streams_without_memory),
        cmocka_unit_test(requests_by_the_byte),
        cmocka_unit_test(thinking_stays_with_its_beginning),
        cmocka_unit_test(quiet_requests),
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(bad_requests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
