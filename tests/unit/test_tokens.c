/* The store of tokens: in memory, in its file, and after a bad day. */
#include "mcp/oauth/tokens.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mo_test.h"

static const struct mo_token one = {
    .issuer = "https://as",
    .server = "https://mcp/a",
    .client = "c",
    .secret = "s\"\n",
    .access = "t1",
    .refresh = "r1",
    .scope = "x y",
    .expires_ms = 1234567890123,
};

static char *scratch(char dir[64], char path[96])
{
    (void)snprintf(dir, 64, "/tmp/mo-tokens-XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, 96, "%s/tokens.json", dir);
    return path;
}

static void check_one(const struct mo_tokens *t)
{
    const struct mo_token *k = mo_tokens_get(t, one.issuer, one.server);

    assert_non_null(k);
    assert_string_equal(k->access, one.access);
    assert_string_equal(k->secret, one.secret);
    assert_string_equal(k->scope, one.scope);
    assert_null(k->redirect);
    assert_true(k->expires_ms == one.expires_ms);
}

static void test_file(void **state)
{
    char dir[64], path[96];
    struct mo_tokens *t;
    struct stat st;

    (void)state;
    scratch(dir, path);
    assert_int_equal(mo_tokens_open(path, &t, NULL), 0);
    assert_null(mo_tokens_get(t, NULL, one.server));
    assert_int_equal(mo_tokens_put(t, &one, NULL), 0);
    mo_tokens_close(t);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(mo_tokens_open(path, &t, NULL), 0);
    check_one(t);
    assert_int_equal(mo_tokens_drop(t, NULL, one.server, NULL), 0);
    mo_tokens_close(t);
    assert_int_equal(mo_tokens_open(path, &t, NULL), 0);
    assert_null(mo_tokens_get(t, NULL, one.server));
    mo_tokens_close(t);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0); /* nothing else was left there */
}

/* Two processes, one file: neither loses what the other wrote. */
static void test_shared(void **state)
{
    struct mo_token two = {.issuer = "https://as", .server = "https://mcp/b"};
    char dir[64], path[96];
    struct mo_tokens *a, *b;

    (void)state;
    scratch(dir, path);
    two.access = "of b";
    two.local = true;
    assert_int_equal(mo_tokens_open(path, &a, NULL), 0);
    assert_int_equal(mo_tokens_open(path, &b, NULL), 0);
    assert_int_equal(mo_tokens_put(a, &one, NULL), 0);
    assert_null(mo_tokens_get(b, NULL, one.server));
    assert_int_equal(mo_tokens_put(b, &two, NULL), 0);
    check_one(b);
    assert_null(mo_tokens_get(a, NULL, two.server));
    mo_tokens_sync(a);
    assert_string_equal(mo_tokens_get(a, NULL, two.server)->access, "of b");
    assert_true(mo_tokens_get(a, NULL, two.server)->local);
    /* the entry that is replaced may be the one the texts are of */
    assert_int_equal(mo_tokens_put(b, mo_tokens_get(b, NULL, one.server), NULL),
                     0);
    mo_tokens_sync(a);
    check_one(a);
    assert_int_equal(mo_tokens_drop(a, NULL, two.server, NULL), 0);
    mo_tokens_sync(b);
    assert_null(mo_tokens_get(b, NULL, two.server));
    mo_tokens_close(a);
    mo_tokens_close(b);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

static void test_refused_files(void **state)
{
    static const struct {
        const char *name, *text;
        mode_t mode;
        int rc;
    } rows[] = {
        {"others may read", "{\"tokens\":[]}", 0644, MO_EPOLICY},
        {"group may write", "{\"tokens\":[]}", 0620, MO_EPOLICY},
        {"no JSON", "tokens", 0600, MO_EPROTO},
        {"entry of nobody", "{\"tokens\":[{}]}", 0600, MO_EPROTO},
        {"empty", "", 0600, 0},
        {"no tokens", "{}", 0600, 0},
    };
    char dir[64], path[96];

    (void)state;
    scratch(dir, path);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_tokens *t = NULL;
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        ssize_t n = (ssize_t)strlen(rows[i].text);

        assert_int_equal(write(fd, rows[i].text, (size_t)n), n);
        assert_int_equal(fchmod(fd, rows[i].mode), 0);
        (void)close(fd);
        check_row(rows[i].name, mo_tokens_open(path, &t, NULL) == rows[i].rc);
        mo_tokens_close(t);
        (void)unlink(path);
    }
    (void)rmdir(dir);
}

static void test_pairs(void **state)
{
    struct mo_token k = one;
    struct mo_tokens *t;

    (void)state;
    assert_int_equal(mo_tokens_open(NULL, &t, NULL), 0);
    assert_int_equal(mo_tokens_put(t, &one, NULL), 0);
    k.issuer = "https://as2";
    k.access = "t2";
    assert_int_equal(mo_tokens_put(t, &k, NULL), 0);
    check_one(t);
    assert_string_equal(mo_tokens_get(t, NULL, one.server)->access, "t2");
    assert_null(mo_tokens_get(t, NULL, "https://mcp/b"));
    assert_null(mo_tokens_get(t, "https://as3", one.server));
    /* replaced by its own texts */
    k = *mo_tokens_get(t, "https://as2", one.server);
    k.scope = "z";
    assert_int_equal(mo_tokens_put(t, &k, NULL), 0);
    k = *mo_tokens_get(t, "https://as2", one.server);
    assert_string_equal(k.access, "t2");
    assert_string_equal(k.scope, "z");
    mo_tokens_close(t);
}

static void test_full(void **state)
{
    struct mo_token k = one;
    struct mo_tokens *t;
    char server[32];

    (void)state;
    assert_int_equal(mo_tokens_open(NULL, &t, NULL), 0);
    k.server = server;
    for (int i = 0; i <= MO_TOKENS_MAX; i++) {
        (void)snprintf(server, sizeof(server), "https://s/%d", i);
        assert_int_equal(mo_tokens_put(t, &k, NULL), 0);
    }
    assert_null(mo_tokens_get(t, NULL, "https://s/0"));
    assert_non_null(mo_tokens_get(t, NULL, "https://s/1"));
    mo_tokens_close(t);
}

static void save_and_load(void *ctx)
{
    struct mo_tokens *t = NULL;

    if (mo_tokens_open(ctx, &t, NULL) < 0)
        return;
    (void)mo_tokens_put(t, &one, NULL);
    mo_tokens_close(t);
}

static void test_memory(void **state)
{
    char dir[64], path[96];

    (void)state;
    torture(save_and_load, scratch(dir, path));
    (void)unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),          cmocka_unit_test(test_shared),
        cmocka_unit_test(test_refused_files), cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_full),          cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
