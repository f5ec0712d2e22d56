/* The values behind references: where they come from, what is an error, and
 * that no error tells a value. */
#include "secrets/resolve.h"

#include <unistd.h>

#include "mo_test.h"

static char dir[] = "/tmp/mo-resolve-XXXXXX";

static void put(const char *name, const char *text, size_t n)
{
    char path[128];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
    static char big[70000];

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    memset(big, 'x', sizeof(big));
    put("plain", "from-file", 9);
    put("line", "from-file\n", 10);
    put("lines", "a\nb\n\n", 5);
    put("crlf", "from-file\r\n", 11);
    put("empty", "", 0);
    put("big", big, sizeof(big));
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"plain", "line",  "lines",
                                        "crlf",  "empty", "big"};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(names); i++)
        (void)unlink(names[i]);
    assert_int_equal(chdir("/"), 0);
    return rmdir(dir);
}

static const struct {
    const char *text, *value; /* NULL: an error ... */
    const char *says;         /* ... with this in it */
} rows[] = {
    {"", "", NULL},
    {"literal", "literal", NULL},
    {"$${env:A}", "${env:A}", NULL},
    {"${env:A}", "value-of-a", NULL},
    {"Bearer ${env:A}!", "Bearer value-of-a!", NULL},
    {"${env:A}${env:A}", "value-of-avalue-of-a", NULL},
    {"${file:plain}", "from-file", NULL},
    {"${file:line}", "from-file", NULL},
    {"${file:lines}", "a\nb\n", NULL}, /* one newline is the editor's */
    {"${file:crlf}", "from-file", NULL},
    {"${file:empty}", "", NULL},
    {"<${file:line}|${env:A}>", "<from-file|value-of-a>", NULL},
    {"${env:NONE}", NULL, "${env:NONE}"},
    {"${env:EMPTY}", NULL, "${env:EMPTY}"},
    {"${file:none}", NULL, "none"},
    {"${file:.}", NULL, "."},
    {"${file:big}", NULL, "big"},
    {"${secret:x}", NULL, "${secret:x}"},
    {"${env:A", NULL, ""},
    {"${other:A}", NULL, ""},
    {"${env:A}${env:NONE}", NULL, "NONE"},
};

static char a[] = "A=value-of-a", empty[] = "EMPTY=";
static char *const environment[] = {a, empty, NULL};
static const struct mo_config config = {.environ = environment};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_err e = {0};
        struct mo_buf b;
        int rc;

        mo_buf_init(&b, 4096);
        rc = mo_reference_resolve(&config, rows[i].text, &b, &e);
        if (rows[i].value) {
            check_row(rows[i].text, rc == 0);
            check_row(rows[i].text,
                      strcmp(mo_buf_cstr(&b), rows[i].value) == 0);
        } else {
            check_row(rows[i].text, rc < 0 && e.code == rc && e.msg[0]);
            check_row(rows[i].text, strstr(e.msg, rows[i].says));
            check_row(rows[i].text, !strstr(e.msg, "value-of-a"));
        }
        mo_buf_fini(&b);
    }
}

static void test_appends_and_ends(void **state)
{
    struct mo_err e = {0};
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 16);
    assert_int_equal(mo_buf_puts(&b, "key="), 0);
    assert_int_equal(mo_reference_resolve(&config, "${env:A}", &b, &e), 0);
    assert_string_equal(mo_buf_cstr(&b), "key=value-of-a");
    assert_int_equal(mo_reference_resolve(&config, "${env:A}", &b, &e),
                     MO_ETOOBIG);
    assert_int_equal(e.code, MO_ETOOBIG);
    assert_null(strstr(e.msg, "value-of-a"));
    mo_buf_fini(&b);
}

static void resolve_all(void *ctx)
{
    (void)ctx;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_err e = {0};
        struct mo_buf b;
        int rc;

        mo_buf_init(&b, 4096);
        rc = mo_reference_resolve(&config, rows[i].text, &b, &e);
        check_row(rows[i].text, rc == 0 || e.code == rc);
        check_row(rows[i].text, rc < 0 || !mo_buf_err(&b));
        mo_buf_fini(&b);
    }
}

static void test_torture(void **state)
{
    (void)state;
    torture(resolve_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_appends_and_ends),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
