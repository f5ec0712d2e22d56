#include "config/dotenv.h"

#include "mo_test.h"

static const struct {
    const char *name, *in;
    const char *key, *value; /* NULL value: must not be there */
} good[] = {
    {"plain", "A=b", "A", "b"},
    {"empty value", "A=\n", "A", ""},
    {"empty file", "", "A", NULL},
    {"only comment", "# A=b\n", "A", NULL},
    {"indented comment", "   # A=b\n", "A", NULL},
    {"blanks around", "  A =  b c  \n", "A", "b c"},
    {"export", "export A=b\n", "A", "b"},
    {"export and tab", "export\tA=b\n", "A", "b"},
    {"a name that begins with export", "exported=1\n", "exported", "1"},
    {"crlf", "A=b\r\nB=c\r\n", "B", "c"},
    {"crlf keeps nothing", "A=b\r\n", "A", "b"},
    {"no newline at the end", "X=1\nA=b", "A", "b"},
    {"the last one counts", "A=1\nA=2\n", "A", "2"},
    {"value with equals", "A=b=c==\n", "A", "b=c=="},
    {"comment behind", "A=b # c\n", "A", "b"},
    {"hash inside a word stays", "A=b#c\n", "A", "b#c"},
    {"value is a comment", "A=# c\n", "A", ""},
    {"single quotes are raw", "A='$x \\n \"q\" # z'\n", "A",
     "$x \\n \"q\" # z"},
    {"double quotes", "A=\"b # c\"\n", "A", "b # c"},
    {"escapes", "A=\"\\n\\r\\t\\\"\\\\\\$\"\n", "A", "\n\r\t\"\\$"},
    {"comment behind quotes", "A='b' # c\n", "A", "b"},
    {"quotes in the middle are text", "A=b'c'\n", "A", "b'c'"},
    {"nothing is expanded", "A=${HOME}$(id)`id`\n", "A", "${HOME}$(id)`id`"},
    {"utf-8", "A=h\xc3\xa9\n", "A", "h\xc3\xa9"},
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(good); i++) {
        const struct mo_dotenv_var *var;
        struct mo_arena a;
        struct mo_dotenv env;
        struct mo_err e = {0};
        unsigned line;

        mo_arena_init(&a, 1 << 20);
        check_row(good[i].name, mo_dotenv_parse(&a, mo_span_cstr(good[i].in),
                                                &env, &line, &e) == 0);
        var = mo_dotenv_find(&env, good[i].key);
        if (good[i].value)
            check_row(good[i].name,
                      var && strcmp(var->value, good[i].value) == 0);
        else
            check_row(good[i].name, !var);
        mo_arena_fini(&a);
    }
}

static const struct {
    const char *name, *in;
    size_t n; /* 0: strlen */
    unsigned line;
} bad[] = {
    {"no equals", "A=1\nhello\n", 0, 2},
    {"export alone", "export\n", 0, 1},
    {"empty name", "=x\n", 0, 1},
    {"name with a digit first", "1A=x\n", 0, 1},
    {"name with a dash", "A-B=x\n", 0, 1},
    {"name with a blank", "A B=x\n", 0, 1},
    {"open single quote", "\n\nA='x\n", 0, 3},
    {"open double quote", "A=\"x\n", 0, 1},
    {"lone quote", "A='\n", 0, 1},
    {"backslash at the end", "A=\"x\\", 0, 1},
    {"escaped closing quote", "A=\"x\\\"\n", 0, 1},
    {"unknown escape", "A=\"\\q\"\n", 0, 1},
    {"text behind quotes", "A='x' y\n", 0, 1},
    {"text behind double quotes", "A=\"x\"y\n", 0, 1},
    {"nul", "A=x\0y\n", 6, 1},
};

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(bad); i++) {
        size_t n = bad[i].n ? bad[i].n : strlen(bad[i].in);
        struct mo_arena a;
        struct mo_dotenv env;
        struct mo_err e = {0};
        unsigned line = 0;

        mo_arena_init(&a, 1 << 20);
        check_row(bad[i].name, mo_dotenv_parse(&a, mo_span(bad[i].in, n), &env,
                                               &line, &e) == MO_EINVAL);
        check_row(bad[i].name, line == bad[i].line);
        check_row(bad[i].name, e.code == MO_EINVAL && e.msg[0]);
        mo_arena_fini(&a);
    }
}

/* n lines "Vi=1". */
static int parse_many(size_t n)
{
    struct mo_arena a;
    struct mo_buf text;
    struct mo_dotenv env;
    unsigned line;
    int rc;

    mo_arena_init(&a, 1 << 20);
    mo_buf_init(&text, 1 << 20);
    for (size_t i = 0; i < n; i++)
        mo_buf_printf(&text, "V%zu=1\n", i);
    rc = mo_dotenv_parse(&a, mo_buf_view(&text), &env, &line, NULL);
    mo_buf_fini(&text);
    mo_arena_fini(&a);
    return rc;
}

static void test_limits(void **state)
{
    static char big[MO_DOTENV_FILE_MAX + 1];
    struct mo_arena a;
    struct mo_dotenv env;
    unsigned line;

    (void)state;
    assert_int_equal(parse_many(MO_DOTENV_VARS_MAX), 0);
    assert_int_equal(parse_many(MO_DOTENV_VARS_MAX + 1), MO_ETOOBIG);
    memset(big, '#', sizeof(big));
    mo_arena_init(&a, 1 << 20);
    assert_int_equal(mo_dotenv_parse(&a, mo_span(big, MO_DOTENV_FILE_MAX), &env,
                                     &line, NULL),
                     0);
    assert_int_equal(
        mo_dotenv_parse(&a, mo_span(big, sizeof(big)), &env, &line, NULL),
        MO_ETOOBIG);
    mo_arena_fini(&a);
}

static void parse_any(void *ctx)
{
    struct mo_arena a;
    struct mo_dotenv env;
    struct mo_err e = {0};
    unsigned line;
    int rc;

    mo_arena_init(&a, 1 << 20);
    rc = mo_dotenv_parse(&a, mo_span_cstr(ctx), &env, &line, &e);
    assert_true(rc == 0 || rc == MO_ENOMEM);
    mo_arena_fini(&a);
}

static void test_torture(void **state)
{
    char text[] = "A=b\nexport C='d'\nE=\"f\\n\"\n";

    (void)state;
    torture(parse_any, text);
}

static void test_secret_names(void **state)
{
    (void)state;
    assert_true(mo_dotenv_secret_name("OPENAI_API_KEY"));
    assert_true(mo_dotenv_secret_name("github_token"));
    assert_true(mo_dotenv_secret_name("X_SECRET"));
    assert_true(mo_dotenv_secret_name("DB_PASSWORD"));
    assert_false(mo_dotenv_secret_name("PORT"));
    assert_false(mo_dotenv_secret_name("KEYBOARD"));
    assert_false(mo_dotenv_secret_name(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),         cmocka_unit_test(test_bad),
        cmocka_unit_test(test_limits),       cmocka_unit_test(test_torture),
        cmocka_unit_test(test_secret_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
