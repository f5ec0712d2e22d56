/* Which addresses need a token, which tokens will do, and when one is made. */
#include "app/door.h"

#include "mo_test.h"

static void test_local(void **state)
{
    static const struct {
        const char *listen;
        bool local;
    } rows[] = {
        {"127.0.0.1", true},
        {"127.8.8.8", true},
        {"::1", true},
        {"[::1]", true},
        {"localhost", true},
        {"a.localhost", true},
        {"unix:/run/x", true},
        {"unix:x", true},
        {"0.0.0.0", false},
        {"::", false},
        {"[::]", false},
        {"10.0.0.1", false},
        {"fe80::1", false},
        {"example.org", false},
        {"127.0.0.1.org", false},
        {"localhost.org", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].listen,
                  mo_listen_is_local(rows[i].listen) == rows[i].local);
}

static void test_chosen(void **state)
{
    static const struct {
        const char *token;
        int rc;
    } rows[] = {
        {"0123456789abcdef", 0},
        {"0123456789abcdef-._~+/=", 0},
        {"0123456789abcde", MO_EINVAL},
        {"0123456789 abcdef", MO_EINVAL},
        {"0123456789;abcdef", MO_EINVAL},
        {"0123456789,abcdef", MO_EINVAL},
        {"0123456789\"abcdef", MO_EINVAL},
        {"0123456789\\abcdef", MO_EINVAL},
        {"0123456789\r\nabcdef", MO_EINVAL},
        {"0123456789\xc3\xa9"
         "abcdef",
         MO_EINVAL},
        {"0123456789\x7f"
         "abcdef",
         MO_EINVAL},
        {"${env:NONE}", MO_EINVAL},
        {"${file:/none}", MO_EINVAL},
    };
    struct mo_log log = {.fd = -1};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_config c = {.server = {.token = rows[i].token}};
        struct mo_door d = {.token = "the old one"};
        struct mo_err e = {0};
        int rc = mo_door_token(&d, &c, "127.0.0.1", &log, &e);

        check_row(rows[i].token, rc == rows[i].rc);
        check_row(rows[i].token,
                  strcmp(d.token, rc ? "the old one" : rows[i].token) == 0);
        check_row(rows[i].token, rc == 0 || strstr(e.msg, "server.token"));
        check_row(rows[i].token,
                  rows[i].token[0] == '$' || !strstr(e.msg, rows[i].token));
        check_row(rows[i].token, !d.made);
    }
    mo_log_fini(&log);
}

static void test_made(void **state)
{
    struct mo_config none = {.server = {.port = 1}};
    struct mo_config own = {.server = {.token = "a-token-of-my-own"}};
    struct mo_log log = {.fd = -1};
    struct mo_door d = {.made = false};
    struct mo_err e = {0};
    char first[64];

    (void)state;
    assert_int_equal(mo_door_token(&d, &none, "127.0.0.1", &log, &e), 0);
    assert_string_equal(d.token, "");
    assert_int_equal(mo_door_token(&d, &none, "0.0.0.0", &log, &e), 0);
    assert_true(d.made && !d.told && strlen(d.token) == 32);
    (void)snprintf(first, sizeof(first), "%s", d.token);
    /* a reload keeps it */
    assert_int_equal(mo_door_token(&d, &none, "0.0.0.0", &log, &e), 0);
    assert_string_equal(d.token, first);
    /* until there is a chosen one */
    assert_int_equal(mo_door_token(&d, &own, "0.0.0.0", &log, &e), 0);
    assert_string_equal(d.token, "a-token-of-my-own");
    assert_true(!d.made && d.told);
    /* and one is never left out where one is needed */
    assert_int_equal(mo_door_token(&d, &none, "0.0.0.0", &log, &e), 0);
    assert_true(d.made && !d.told && strcmp(d.token, first) != 0);
    /* whatever was used cannot be logged */
    assert_int_equal(log.nsecrets, 3);
    mo_log_fini(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_local),
        cmocka_unit_test(test_chosen),
        cmocka_unit_test(test_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
