/* Foreign configurations: which placeholder becomes what, what is refused,
 * and that running out of memory loses nothing but the import. The clients'
 * own files are in tests/it/mcp_edit.test.mjs. */
#include "servers/import.h"

#include "mo_test.h"

static const struct {
    const char *name, *server; /* JSON of one in mcpServers */
    const char *want;          /* ours, or NULL: */
    const char *cannot;        /* ... this is in the reason */
} rows[] = {
    {"plain", "{\"command\":\"x\"}", "{\"command\":\"x\"}", NULL},
    {"variables", "{\"command\":\"x\",\"env\":{\"A\":\"${B}-${env:C}\"}}",
     "{\"command\":\"x\",\"env\":{\"A\":\"${env:B}-${env:C}\"}}", NULL},
    {"an input", "{\"url\":\"https://x/${input:i}\"}",
     "{\"url\":\"https://x/${secret:i}\"}", NULL},
    {"home", "{\"command\":\"${userHome}/x\",\"args\":[\"a${/}b\"]}",
     "{\"command\":\"/home/me/x\",\"args\":[\"a/b\"]}", NULL},
    {"a text that looks like one",
     "{\"command\":\"x\",\"env\":{\"A\":\"${a b} ${\"}}",
     "{\"command\":\"x\",\"env\":{\"A\":\"$${a b} $${\"}}", NULL},
    {"the same on a command line", "{\"command\":\"x\",\"args\":[\"${a b}\"]}",
     "{\"command\":\"x\",\"args\":[\"${a b}\"]}", NULL},
    {"numbers are texts here",
     "{\"command\":\"x\",\"args\":[1,true],\"env\":{\"P\":8080,\"Q\":null}}",
     "{\"command\":\"x\",\"args\":[\"1\",\"true\"],\"env\":{\"P\":\"8080\"}}",
     NULL},
    {"a key", "{\"command\":\"x\",\"env\":{\"MY_TOKEN\":\"0123456789\"}}",
     "{\"command\":\"x\",\"env\":{\"MY_TOKEN\":\"${secret:s.MY_TOKEN}\"}}",
     NULL},
    {"a key by its face",
     "{\"command\":\"x\",\"env\":{\"A\":"
     "\"sk-0123456789abcdef\"}}",
     "{\"command\":\"x\",\"env\":{\"A\":\"${secret:s.A}\"}}", NULL},
    {"too short for a key", "{\"command\":\"x\",\"env\":{\"TOKEN\":\"abc\"}}",
     "{\"command\":\"x\",\"env\":{\"TOKEN\":\"abc\"}}", NULL},
    {"of two the last",
     "{\"command\":\"x\",\"env\":{\"A\":\"1\",\"\\u0041\":\"2\","
     "\"T_TOKEN\":\"0123456789\",\"B\":\"3\",\"T_TOKEN\":\"short\"}}",
     "{\"command\":\"x\",\"env\":{\"A\":\"2\",\"B\":\"3\","
     "\"T_TOKEN\":\"short\"}}",
     NULL},
    {"two keys of one name",
     "{\"command\":\"x\",\"env\":{\"A/TOKEN\":\"0123456789\","
     "\"A+TOKEN\":\"9876543210\"}}",
     "{\"command\":\"x\",\"env\":{\"A/TOKEN\":\"${secret:s.A_TOKEN}\","
     "\"A+TOKEN\":\"${secret:s.A_TOKEN-2}\"}}",
     NULL},
    {"on and off", "{\"command\":\"x\",\"disabled\":false,\"enabled\":false}",
     "{\"command\":\"x\"}", NULL},
    {"disabled", "{\"command\":\"x\",\"disabled\":true}",
     "{\"command\":\"x\",\"enabled\":false}", NULL},
    {"both addresses", "{\"url\":\"http://a\",\"serverUrl\":\"http://b\"}",
     "{\"url\":\"http://a\"}", NULL},
    {"streamable", "{\"type\":\"streamableHttp\",\"url\":\"http://a/sse\"}",
     "{\"url\":\"http://a/sse\"}", NULL},
    {"only in the editor", "{\"command\":\"${workspaceFolder}/x\"}", NULL,
     "only inside the editor"},
    {"a secret on a command line",
     "{\"command\":\"x\",\"args\":[\"${input:i}\"]}", NULL, "other users"},
    {"a default", "{\"url\":\"${A:-http://x}\"}", NULL, "default"},
    {"a name that is none", "{\"url\":\"${input:a b}\"}", NULL, "name"},
    {"no server", "[]", NULL, "not an object"},
    {"nothing to start", "{\"env\":{}}", NULL, "neither"},
    {"too much to start", "{\"command\":\"x\",\"url\":\"http://x\"}", NULL,
     "more than one"},
    {"a wrong form", "{\"command\":\"x\",\"args\":\"y\"}", NULL, "'args'"},
    {"a text that is none", "{\"command\":[\"x\"]}", NULL, "not a text"},
};

static const struct mo_import_opts opts = {.home = "/home/me", .store = true};

static int read_row(size_t i, struct mo_arena *a, struct mo_import *im)
{
    char text[512];

    (void)snprintf(text, sizeof(text), "{\"mcpServers\":{\"s\":%s}}",
                   rows[i].server);
    return mo_import_read(a, mo_span_cstr(text), &opts, im, NULL);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_import im;
        struct mo_arena a;

        mo_arena_init(&a, MO_IMPORT_ARENA_MAX);
        check_row(rows[i].name, read_row(i, &a, &im) == 0 && im.n == 1);
        if (rows[i].want)
            check_row(rows[i].name,
                      im.v[0].cannot[0] == '\0' &&
                          mo_span_is(mo_json_text(im.v[0].json), rows[i].want));
        else
            check_row(rows[i].name, strstr(im.v[0].cannot, rows[i].cannot));
        mo_import_wipe(&im);
        mo_arena_fini(&a);
    }
}

static void test_names(void **state)
{
    static const char text[] = "{\"mcpServers\":{"
                               "\"a b\":{\"command\":\"x\"},"
                               "\"a-b\":{\"command\":\"y\"},"
                               "\"\":{\"command\":\"z\"},"
                               "\"\\u00e4\":{\"command\":\"z\"}}}";
    struct mo_import im;
    struct mo_arena a;

    (void)state;
    mo_arena_init(&a, MO_IMPORT_ARENA_MAX);
    assert_int_equal(mo_import_read(&a, mo_span_cstr(text), &opts, &im, NULL),
                     0);
    assert_int_equal(im.n, 4);
    assert_string_equal(im.v[0].name, "a-b");
    assert_string_equal(im.v[0].was, "a b");
    assert_non_null(strstr(im.v[1].cannot, "this name"));
    assert_string_equal(im.v[2].name, "server");
    assert_string_equal(im.v[3].name, "--");
    mo_import_wipe(&im);
    mo_arena_fini(&a);
}

static void test_same(void **state)
{
    static const struct {
        const char *ours, *theirs;
        bool same;
    } pairs[] = {
        {"{\"command\":\"x\",\"args\":[]}", "{\"command\":\"x\"}", true},
        {"{\"command\":\"x\",\"args\":[1]}", "{\"command\":\"x\"}", false},
        {"{\"command\":\"x\",\"cwd\":\"/\"}", "{\"command\":\"x\"}", false},
        {"{\"url\":\"u\",\"type\":\"sse\"}",
         "{\"url\":\"u\",\"transport\":\"sse\"}", true},
        {"{\"url\":\"u\"}", "{\"url\":\"u\",\"transport\":\"sse\"}", false},
        {"{\"command\":\"x\",\"env\":{\"A\":\"${secret:q}\"}}",
         "{\"command\":\"x\",\"env\":{\"A\":\"key\"}}", true},
        {"{\"command\":\"x\",\"env\":{\"A\":\"other\"}}",
         "{\"command\":\"x\",\"env\":{\"A\":\"key\"}}", false},
        {"{\"command\":\"x\",\"env\":{\"A\":\"1\",\"B\":\"2\"}}",
         "{\"command\":\"x\",\"env\":{\"A\":\"1\"}}", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(pairs); i++) {
        struct mo_json_doc a, b;

        assert_int_equal(
            mo_json_parse(mo_span_cstr(pairs[i].ours), 0, &a, NULL), 0);
        assert_int_equal(
            mo_json_parse(mo_span_cstr(pairs[i].theirs), 0, &b, NULL), 0);
        check_row(pairs[i].ours,
                  mo_import_same(a.root, b.root) == pairs[i].same);
    }
}

static void torture_body(void *ctx)
{
    (void)ctx;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_import im;
        struct mo_arena a;

        mo_arena_init(&a, MO_IMPORT_ARENA_MAX);
        if (read_row(i, &a, &im) == 0)
            mo_import_wipe(&im);
        mo_arena_fini(&a);
    }
}

static void test_torture(void **state)
{
    (void)state;
    torture(torture_body, NULL);
}

static void test_key_in_args(void **state)
{
    static const struct {
        const char *before, *arg;
        bool is;
    } args[] = {
        {"", "sk-0123456789abcdef", true},
        {"--api-key", "0123456789abcdef", true},
        {"-y", "0123456789abcdef", false},
        {"--token", "--verbose-output", false},
        {"", "--api-key=0123456789abcdef", true},
        {"", "API_TOKEN=0123456789abcdef", true},
        {"", "--name=0123456789abcdef", false},
        {"--header", "Authorization: Bearer 0123456789", true},
        {"--header", "Accept: application/json", false},
        {"--key", "/home/me/private-key.pem", false},
        {"--api-key", "${input:key}", false},
        {"--api-key", "short", false},
        {"", "https://example.org/mcp", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(args); i++)
        check_row(args[i].arg, mo_import_is_key_arg(
                                   mo_span_cstr(args[i].before),
                                   mo_span_cstr(args[i].arg)) == args[i].is);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_in_args), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_same),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
