/* The sealed tokens of a person at a server: names that must not collide, files
 * that were moved, changed or planted, and the list of all. */
#include "connect/account_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "mo_test.h"

static char dir[] = "/tmp/mo-accounts-XXXXXX";
static const unsigned char key[MO_SECRETS_KEY] = {1, 2, 3};
static struct mo_secrets *vault;
static struct mo_config cfg;

static int set_up(void **state)
{
    char path[64];

    (void)state;
    assert_non_null(mkdtemp(dir));
    cfg.store.dir = dir;
    (void)snprintf(path, sizeof(path), "%s/secrets.bin", dir);
    return mo_secrets_open(path, key, &vault, NULL);
}

static int tear_down(void **state)
{
    char line[96];

    (void)state;
    mo_secrets_close(vault);
    (void)snprintf(line, sizeof(line), "%s/" MO_ACCOUNTS_DIR, dir);
    (void)rmdir(line);
    (void)rmdir(dir);
    return 0;
}

static void put(const char *server, struct mo_span person, const char *access)
{
    const struct mo_token k = {
        .issuer = "https://as", .server = "https://mcp", .access = access};
    struct mo_account_file f;
    struct mo_tokens *t = NULL;
    struct mo_err e;

    assert_int_equal(
        mo_account_file_init(&f, &cfg, vault, mo_span_cstr(server), person, &e),
        0);
    assert_int_equal(mo_account_file_open(&f, &t, &e), 0);
    if (access)
        assert_int_equal(mo_tokens_put(t, &k, &e), 0);
    else
        assert_int_equal(mo_tokens_drop(t, NULL, "https://mcp", &e), 0);
    mo_tokens_close(t);
    mo_account_file_fini(&f);
}

/* "": there is none. */
static void get(const char *server, struct mo_span person, char out[64])
{
    struct mo_account_file f;
    struct mo_tokens *t = NULL;
    const struct mo_token *k = NULL;
    struct mo_err e;

    assert_int_equal(
        mo_account_file_init(&f, &cfg, vault, mo_span_cstr(server), person, &e),
        0);
    if (mo_account_file_open(&f, &t, &e) == 0)
        k = mo_tokens_get(t, NULL, "https://mcp");
    (void)snprintf(out, 64, "%s", k ? k->access : "");
    mo_tokens_close(t);
    mo_account_file_fini(&f);
}

static const struct {
    const char *server;
    struct mo_span person;
} pairs[] = {
    {"a", {"", 0}},
    {"a", {"b", 1}},
    {"ab", {"", 0}},
    {"", {"ab", 2}},
    {"a", {"B", 1}},
    {"a", {"b\0", 2}},
    {"a", {"b\0c", 3}},
    {"a", {"b/../c", 6}},
    {"a", {"\xff\xfe", 2}},
    {"a", {"e\xcc\x81", 3}},
    {"a", {"\xc3\xa9", 2}},
    {"a\nb", {"c", 1}},
    {"a", {"corp:alice", 10}},
    {"a:corp", {"alice", 5}},
};

static int count(void *ctx, const struct mo_account_info *i)
{
    unsigned *n = ctx;
    char want[64] = "";

    for (size_t k = 0; k < MO_COUNT(pairs); k++)
        if (mo_span_is(i->server, pairs[k].server) &&
            mo_span_eq(i->person, pairs[k].person))
            (void)snprintf(want, sizeof(want), "token-%zu", k);
    assert_string_equal(mo_tokens_at(i->tokens, 0)->access, want);
    ++*n;
    return 0;
}

static void test_names(void **state)
{
    unsigned n = 0, bad = 0;
    char text[64], want[64];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(pairs); i++) {
        struct mo_span server = mo_span_cstr(pairs[i].server);

        assert_false(mo_account_exists(&cfg, server, pairs[i].person));
        (void)snprintf(text, sizeof(text), "token-%zu", i);
        put(pairs[i].server, pairs[i].person, text);
        assert_true(mo_account_exists(&cfg, server, pairs[i].person));
    }
    for (size_t i = 0; i < MO_COUNT(pairs); i++) {
        get(pairs[i].server, pairs[i].person, text);
        (void)snprintf(want, sizeof(want), "token-%zu", i);
        assert_string_equal(text, want);
    }
    assert_int_equal(mo_accounts_each(&cfg, vault, count, &n, &bad, NULL), 0);
    assert_int_equal(n, MO_COUNT(pairs));
    assert_int_equal(bad, 0);
    for (size_t i = 0; i < MO_COUNT(pairs); i++) {
        put(pairs[i].server, pairs[i].person, NULL);
        assert_false(mo_account_exists(&cfg, mo_span_cstr(pairs[i].server),
                                       pairs[i].person));
    }
}

static void path_of(const char *server, const char *person, char out[160])
{
    char name[MO_SHA256_HEX + 1];

    mo_account_key(mo_span_cstr(server), mo_span_cstr(person), name);
    (void)snprintf(out, 160, "%s/" MO_ACCOUNTS_DIR "/%s", dir, name);
}

/* Every byte counts; a file that does not open is as if it were not there. */
static void test_tampering(void **state)
{
    mo_autobuf struct mo_buf ann = {.max = 65536};
    char hers[160], his[160], text[64];
    struct stat st;

    (void)state;
    path_of("s", "ann", hers);
    path_of("s", "bob", his);
    put("s", MO_SPAN("ann"), "secret-of-ann");
    assert_int_equal(stat(hers, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(mo_file_read(hers, 65536, &ann, NULL, NULL), 0);
    assert_true(mo_span_search(mo_buf_view(&ann), MO_SPAN("secret")) < 0);
    assert_true(mo_span_search(mo_buf_view(&ann), MO_SPAN("ann")) < 0);
    assert_int_equal(mo_file_save(his, mo_buf_view(&ann), 0600, NULL), 0);
    get("s", MO_SPAN("bob"), text);
    assert_string_equal(text, "");
    for (size_t i = 0; i < ann.len; i++) {
        ann.p[i] ^= 1;
        assert_int_equal(mo_file_save(hers, mo_buf_view(&ann), 0600, NULL), 0);
        get("s", MO_SPAN("ann"), text);
        assert_string_equal(text, "");
        ann.p[i] ^= 1;
    }
    for (size_t n = 0; n < ann.len; n += 7) {
        assert_int_equal(mo_file_save(hers, mo_span(ann.p, n), 0600, NULL), 0);
        get("s", MO_SPAN("ann"), text);
        assert_string_equal(text, "");
    }
    assert_int_equal(mo_file_save(hers, mo_buf_view(&ann), 0600, NULL), 0);
    get("s", MO_SPAN("ann"), text);
    assert_string_equal(text, "secret-of-ann");
    put("s", MO_SPAN("ann"), NULL);
    (void)unlink(his);
}

/* Another process that removes the file takes the tokens away. */
static void test_removed(void **state)
{
    struct mo_account_file f;
    struct mo_tokens *t = NULL;
    struct mo_err e;

    (void)state;
    put("s", MO_SPAN("ann"), "one");
    assert_int_equal(
        mo_account_file_init(&f, &cfg, vault, MO_SPAN("s"), MO_SPAN("ann"), &e),
        0);
    assert_int_equal(mo_account_file_open(&f, &t, &e), 0);
    assert_non_null(mo_tokens_get(t, NULL, "https://mcp"));
    put("s", MO_SPAN("ann"), "two");
    mo_tokens_sync(t);
    assert_string_equal(mo_tokens_get(t, NULL, "https://mcp")->access, "two");
    put("s", MO_SPAN("ann"), NULL);
    mo_tokens_sync(t);
    assert_null(mo_tokens_get(t, NULL, "https://mcp"));
    mo_tokens_close(t);
    mo_account_file_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_tampering),
        cmocka_unit_test(test_removed),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
