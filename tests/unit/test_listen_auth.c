/* Which addresses need a token, which tokens will do, and when one is made. */
#include "app/listen_auth.h"

#include <sys/stat.h>
#include <unistd.h>

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
        struct mo_listen_auth d = {.token = "the old one"};
        struct mo_err e = {0};
        int rc = mo_listen_auth_token(&d, &c, "127.0.0.1", &log, &e);

        check_row(rows[i].token, rc == rows[i].rc);
        check_row(rows[i].token,
                  strcmp(d.token, rc ? "the old one" : rows[i].token) == 0);
        check_row(rows[i].token, rc == 0 || strstr(e.msg, "server.token"));
        check_row(rows[i].token,
                  rows[i].token[0] == '$' || !strstr(e.msg, rows[i].token));
    }
    mo_log_fini(&log);
}

/* Without server.token there is one in the state directory, always the same,
 * which nobody else may read. */
static void test_kept(void **state)
{
    char dir[] = "/tmp/mo-token-XXXXXX", path[64];
    struct mo_config none = {.store = {.dir = dir}};
    struct mo_config own = {.store = {.dir = dir},
                            .server = {.token = "a-token-of-my-own"}};
    struct mo_listen_auth d = {.npeople = 0};
    struct mo_log log = {.fd = -1};
    struct mo_err e = {0};
    char first[sizeof(d.token)];
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/token", dir);
    assert_int_equal(mo_listen_auth_token(&d, &none, "127.0.0.1", &log, &e), 0);
    assert_int_equal(strlen(d.token), 32);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    (void)snprintf(first, sizeof(first), "%s", d.token);
    assert_int_equal(mo_listen_auth_token(&d, &own, "127.0.0.1", &log, &e), 0);
    assert_string_equal(d.token, "a-token-of-my-own");
    assert_int_equal(mo_listen_auth_token(&d, &none, "127.0.0.1", &log, &e), 0);
    assert_string_equal(d.token, first);
    /* whatever was used cannot be logged */
    assert_int_equal(log.nsecrets, 2);

    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(mo_listen_auth_token(&d, &none, "127.0.0.1", &log, &e),
                     MO_EPOLICY);
    assert_non_null(strstr(e.msg, "chmod 600"));
    assert_string_equal(d.token, first);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
    assert_int_equal(mo_listen_auth_token(&d, &none, "127.0.0.1", &log, &e),
                     MO_EPOLICY);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(chown(path, 0, (gid_t)-1), 0);
    assert_int_equal(mo_listen_auth_token(&d, &none, "127.0.0.1", &log, &e),
                     MO_EINVAL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    mo_log_fini(&log);
}

/* --no-auth creates no token, but ends none that was configured. */
static void test_no_auth(void **state)
{
    struct mo_config none = {.store = {.dir = "/none"}};
    struct mo_config own = {.server = {.token = "a-token-of-my-own"}};
    struct mo_listen_auth d = {.no_auth = true};
    struct mo_log log = {.fd = -1};
    struct mo_err e = {0};

    (void)state;
    assert_int_equal(mo_listen_auth_token(&d, &none, "127.0.0.1", &log, &e), 0);
    assert_true(mo_listen_auth_is_open(&d));
    assert_int_equal(mo_listen_auth_token(&d, &none, "0.0.0.0", &log, &e),
                     MO_EINVAL);
    assert_int_equal(mo_listen_auth_token(&d, &own, "127.0.0.1", &log, &e), 0);
    assert_string_equal(d.token, "a-token-of-my-own");
    assert_false(mo_listen_auth_is_open(&d));
    mo_log_fini(&log);
}

/* Tokens by name: each good, each one person's. */
static void test_people(void **state)
{
    static const struct {
        const char *what, *name[2], *token[2];
        int rc;
    } rows[] = {
        {"two",
         {"alice", "b.o_b@x-1"},
         {"alice-0123456789", "bob-0123456789"},
         MO_EINVAL}, /* the second is too short */
        {"two good ones",
         {"alice", "b.o_b@x-1"},
         {"alice-0123456789", "bobby-0123456789"},
         0},
        {"the same",
         {"alice", "bob"},
         {"alice-0123456789", "alice-0123456789"},
         MO_EINVAL},
        {"the operator's",
         {"alice", "bob"},
         {"alice-0123456789", "the-operator-0123"},
         MO_EINVAL},
        {"a bad name",
         {"alice", "b b"},
         {"alice-0123456789", "bobby-0123456789"},
         MO_EINVAL},
        {"no name",
         {"alice", ""},
         {"alice-0123456789", "bobby-0123456789"},
         MO_EINVAL},
        {"a long name",
         {"alice", "a-name-of-more-than-32-characters"},
         {"alice-0123456789", "bobby-0123456789"},
         MO_EINVAL},
    };
    struct mo_log log = {.fd = -1};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_config_pair v[] = {{rows[i].name[0], rows[i].token[0]},
                                     {rows[i].name[1], rows[i].token[1]}};
        struct mo_config c = {
            .server = {.token = "the-operator-0123", .tokens = {v, 2}}};
        struct mo_listen_auth d = {.token = "the old one"};
        struct mo_err e = {0};
        int rc = mo_listen_auth_token(&d, &c, "127.0.0.1", &log, &e);

        check_row(rows[i].what, rc == rows[i].rc);
        check_row(rows[i].what, d.npeople == (rc == 0 ? 2 : 0));
        check_row(rows[i].what, rc == 0 || strstr(e.msg, "server.tokens"));
        check_row(rows[i].what, rc == 0 || !strcmp(d.token, "the old one"));
        if (rc < 0)
            continue;
        assert_string_equal(d.people[1].name, rows[i].name[1]);
        assert_string_equal(d.people[1].token, rows[i].token[1]);
    }
    mo_log_fini(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_local),  cmocka_unit_test(test_chosen),
        cmocka_unit_test(test_kept),   cmocka_unit_test(test_no_auth),
        cmocka_unit_test(test_people),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
