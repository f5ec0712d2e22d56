/* What a person sees in a terminal: nothing repaints it, and what is typed
 * means one thing. */
#include "cli/chat/terminal.h"

#include "mo_test.h"

#define TEXT_MAX ((size_t)1024 * 1024)

static struct mo_json parse(const char *text)
{
    struct mo_json_doc doc;
    struct mo_err e;

    if (mo_json_parse(mo_span_cstr(text), 0, &doc, &e) < 0)
        fail_msg("%s: %s", text, e.msg);
    return doc.root;
}

static void test_text(void **state)
{
    static const struct {
        const char *name, *in, *out;
    } rows[] = {
        {"plain", "hello\tthere\n", "hello\tthere\n"},
        {"beyond ascii", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80",
         "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"},
        {"an escape", "\x1b[2Jx", "<1b>[2Jx"},
        {"carriage return", "yes\rno ", "yes<0d>no "},
        {"backspace and bell", "a\b\a", "a<08><07>"},
        {"delete", "\x7f", "<7f>"},
        {"C1",
         "\xc2\x9b"
         "31m",
         "<U+009B>31m"},
        {"turned around",
         "a\xe2\x80\xae"
         "b",
         "a<U+202E>b"},
        {"isolates", "\xe2\x81\xa6", "<U+2066>"},
        {"no width",
         "a\xe2\x80\x8b"
         "b",
         "a<U+200B>b"},
        {"a mark of bytes", "\xef\xbb\xbf", "<U+FEFF>"},
        {"tags", "\xf3\xa0\x80\x81", "<U+E0001>"},
        {"broken UTF-8", "a\xff\xc3", "a<ff><c3>"},
        {"overlong", "\xc0\x9b", "<c0><9b>"},
        {"nothing", "", ""},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf b;

        mo_buf_init(&b, TEXT_MAX);
        mo_term_text(&b, mo_span_cstr(rows[i].in), true);
        check_row(rows[i].name, strcmp(mo_buf_cstr(&b), rows[i].out) == 0);
        mo_buf_reset(&b);
        mo_term_text(&b, mo_span_cstr(rows[i].in), false); /* a pipe */
        check_row(rows[i].name, strcmp(mo_buf_cstr(&b), rows[i].in) == 0);
        mo_buf_fini(&b);
    }
}

static void test_card(void **state)
{
    struct mo_json card =
        parse("{\"server\":\"box\",\"name\":\"edit\\u001b_file\","
              "\"queuePosition\":1,\"totalInQueue\":2,\"route\":{"
              "\"server\":\"box\",\"insteadOf\":\"o\u202eld\",\"why\":"
              "\"it died\"},\"args\":{"
              "\"path\":\"a\\u202eb\",\"old_string\":\"x\\ny\","
              "\"new_string\":\"z\\n\",\"deep\":{\"k\":[1]}}}");
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, TEXT_MAX);
    mo_term_card(&b, card, true, false);
    assert_string_equal(mo_buf_cstr(&b),
                        "\nbox wants to run edit<1b>_file (1 of 2)\n"
                        "  stands in for o<U+202E>ld, which is down: it died\n"
                        "  path: \"a\\u202eb\"\n"
                        "  old_string:\n  - x\n  - y\n"
                        "  new_string:\n  + z\n"
                        "  deep: {\"k\":[1]}\n");
    mo_buf_fini(&b);
}

/* Long ones are cut, and say so; all of it can be had. */
static void test_long(void **state)
{
    struct mo_buf json, b;

    (void)state;
    mo_buf_init(&json, TEXT_MAX);
    mo_buf_init(&b, TEXT_MAX);
    mo_buf_puts(&json, "{\"server\":\"s\",\"name\":\"n\",\"queuePosition\":1,"
                       "\"totalInQueue\":1,\"args\":{\"content\":\"");
    for (int i = 0; i < MO_TERM_LINES + 5; i++)
        mo_buf_printf(&json, "line%d\\n", i);
    mo_buf_puts(&json, "\"}}");
    mo_term_card(&b, parse(mo_buf_cstr(&json)), true, false);
    assert_non_null(strstr(mo_buf_cstr(&b), "  ... 5 more lines\n"));
    assert_null(strstr(mo_buf_cstr(&b), "line44"));
    mo_buf_reset(&b);
    mo_term_card(&b, parse(mo_buf_cstr(&json)), true, true);
    assert_non_null(strstr(mo_buf_cstr(&b), "  + line44\n"));
    assert_null(strstr(mo_buf_cstr(&b), "more lines"));
    mo_buf_fini(&json);
    mo_buf_fini(&b);
}

static void test_output(void **state)
{
    static const struct {
        const char *name, *args, *out;
    } rows[] = {
        {"text",
         "[\"[{\\\"type\\\":\\\"text\\\",\\\"text\\\":\\\"a\\\\nb\\\"}]\","
         "{\"name\":\"run\",\"isError\":false,\"durationMs\":5}]",
         "  run done, 5 ms\n  | a\n  | b\n"},
        {"an error, an image",
         "[\"[{\\\"type\\\":\\\"image\\\"}]\","
         "{\"name\":\"run\",\"isError\":true,\"durationMs\":0}]",
         "  run failed, 0 ms\n  | [image]\n"},
        {"no JSON inside", "[\"x\",{\"name\":\"run\",\"durationMs\":1}]",
         "  run done, 1 ms\n"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf b;

        mo_buf_init(&b, TEXT_MAX);
        mo_term_output(&b, parse(rows[i].args), true);
        check_row(rows[i].name, strcmp(mo_buf_cstr(&b), rows[i].out) == 0);
        mo_buf_fini(&b);
    }
}

static void test_message(void **state)
{
    static const struct {
        const char *name, *in, *out;
    } rows[] = {
        {"said",
         "{\"role\":\"user\",\"blocks\":[{\"type\":\"text\",\"text\":\"hi\"}]}",
         "user:\n  hi\n"},
        {"called",
         "{\"role\":\"assistant\",\"blocks\":[{\"type\":\"call\",\"name\":"
         "\"run\"}]}",
         "assistant:\n  calls run\n"},
        {"came back",
         "{\"role\":\"tool\",\"results\":[{\"content\":[{\"type\":\"text\","
         "\"text\":\"\\u001bx\"}]}]}",
         "tool:\n  | <1b>x\n"},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf b;

        mo_buf_init(&b, TEXT_MAX);
        mo_term_message(&b, parse(rows[i].in), true);
        check_row(rows[i].name, strcmp(mo_buf_cstr(&b), rows[i].out) == 0);
        mo_buf_fini(&b);
    }
}

/* --- forms --------------------------------------------------------------- */

#define COLOURS "\"enum\":[\"red\",\"green\",\"7\"]"
#define TITLED                                                                 \
    "[{\"const\":\"r\",\"title\":\"Red\"},{\"const\":\"g\",\"title\":"         \
    "\"Green\"}]"

static void test_value(void **state)
{
    static const struct {
        const char *name, *field, *typed, *json; /* NULL: it cannot be that */
    } rows[] = {
        {"text", "{\"type\":\"string\"}", "a \"b\"", "\"a \\\"b\\\"\""},
        {"text that looks like a number", "{\"type\":\"string\"}", "1",
         "\"1\""},
        {"number", "{\"type\":\"number\"}", "1.5e3", "1.5e3"},
        {"whole", "{\"type\":\"integer\"}", "-3", "-3"},
        {"not whole", "{\"type\":\"integer\"}", "3.5", NULL},
        {"no number", "{\"type\":\"number\"}", "three", NULL},
        {"an object is no number", "{\"type\":\"number\"}", "{}", NULL},
        {"half a number", "{\"type\":\"number\"}", "1,2", NULL},
        {"yes", "{\"type\":\"boolean\"}", "Y", "true"},
        {"no", "{\"type\":\"boolean\"}", "no", "false"},
        {"neither", "{\"type\":\"boolean\"}", "1", NULL},
        {"by value", "{\"type\":\"string\"," COLOURS "}", "green", "\"green\""},
        {"by number", "{\"type\":\"string\"," COLOURS "}", "1", "\"red\""},
        {"by a value that is a number", "{\"type\":\"string\"," COLOURS "}",
         "7", "\"7\""},
        {"beyond the list", "{\"type\":\"string\"," COLOURS "}", "4", NULL},
        {"zero", "{\"type\":\"string\"," COLOURS "}", "0", NULL},
        {"by title", "{\"type\":\"string\",\"oneOf\":" TITLED "}", "Green",
         "\"g\""},
        {"several", "{\"type\":\"array\",\"items\":{\"anyOf\":" TITLED "}}",
         "1, Green,", "[\"r\",\"g\"]"},
        {"several, one wrong", "{\"type\":\"array\",\"items\":{" COLOURS "}}",
         "red,blue", NULL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf b;
        struct mo_err e = {0};
        int rc = 0;

        mo_buf_init(&b, TEXT_MAX);
        rc = mo_term_value(&b, parse(rows[i].field),
                           mo_span_cstr(rows[i].typed), &e);
        check_row(rows[i].name, rc == (rows[i].json ? 0 : MO_EINVAL));
        if (rows[i].json)
            check_row(rows[i].name, strcmp(mo_buf_cstr(&b), rows[i].json) == 0);
        else
            check_row(rows[i].name, e.msg[0] != '\0');
        mo_buf_fini(&b);
    }
}

static void test_field(void **state)
{
    static const struct {
        const char *name, *field, *out;
        bool needed;
    } rows[] = {
        {"text", "{\"type\":\"string\"}", "  key (text): ", false},
        {"needed", "{\"type\":\"integer\",\"description\":\"years\"}",
         "  key, years (whole number, needed): ", true},
        {"with a default",
         "{\"type\":\"boolean\",\"title\":\"Sure\",\"default\":true}",
         "  Sure (yes or no, else true): ", true},
        {"a list", "{\"type\":\"string\",\"oneOf\":" TITLED "}",
         "    1  Red\n    2  Green\n  key (one of these): ", false},
        {"sly words", "{\"type\":\"string\",\"title\":\"\\u001b[2J\"}",
         "  <1b>[2J (text): ", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf b;

        mo_buf_init(&b, TEXT_MAX);
        mo_term_field(&b, parse("\"key\""), parse(rows[i].field),
                      rows[i].needed, true);
        check_row(rows[i].name, strcmp(mo_buf_cstr(&b), rows[i].out) == 0);
        mo_buf_fini(&b);
    }
    assert_true(
        mo_term_needed(parse("{\"required\":[\"a\",\"b\"]}"), parse("\"b\"")));
    assert_true(
        mo_term_needed(parse("{\"required\":[\"\\u0061\"]}"), parse("\"a\"")));
    assert_false(mo_term_needed(parse("{}"), parse("\"b\"")));
}

static void test_question(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, TEXT_MAX);
    mo_term_question(&b,
                     parse("{\"server\":\"s\",\"message\":\"Who\\u202e?\","
                           "\"url\":\"https://x.example/\\u001b\"}"),
                     true);
    assert_non_null(strstr(mo_buf_cstr(&b), "s asks: Who<U+202E>?\n"));
    assert_non_null(strstr(mo_buf_cstr(&b), "  https://x.example/<1b>\n"));
    mo_buf_fini(&b);
}

static void all_of_it(void *ctx)
{
    struct mo_buf b;
    struct mo_err e;

    (void)ctx;
    mo_buf_init(&b, TEXT_MAX);
    mo_term_question(&b, parse("{\"server\":\"s\",\"message\":\"m\"}"), true);
    mo_term_field(&b, parse("\"key\""),
                  parse("{\"type\":\"string\"," COLOURS "}"), true, true);
    (void)mo_term_value(&b, parse("{\"type\":\"string\"}"), MO_SPAN("x"), &e);
    mo_term_card(&b, parse("{\"server\":\"s\",\"args\":{\"content\":\"x\"}}"),
                 true, false);
    mo_buf_fini(&b);
}

static void test_memory(void **state)
{
    (void)state;
    torture(all_of_it, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),    cmocka_unit_test(test_card),
        cmocka_unit_test(test_long),    cmocka_unit_test(test_output),
        cmocka_unit_test(test_message), cmocka_unit_test(test_value),
        cmocka_unit_test(test_field),   cmocka_unit_test(test_question),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
