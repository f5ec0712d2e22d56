/* What is remembered of servers: kept, forgotten, bounded, never in the way. */
#include "connect/era_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "mo_test.h"

static char dir[] = "/tmp/mo-eras-XXXXXX";

static struct mo_era_cache_key key_of(const char *word)
{
    const char *words[] = {word, NULL};
    struct mo_era_cache_key k;

    mo_era_cache_key("stdio", words, NULL, &k);
    return k;
}

static void test_keys(void **state)
{
    static const struct {
        const char *name, *kind, *words[3], *cwd;
    } rows[] = {
        {"plain", "stdio", {"a", "b", NULL}, NULL},
        {"another kind", "http", {"a", "b", NULL}, NULL},
        {"one word", "stdio", {"ab", NULL}, NULL},
        {"other order", "stdio", {"b", "a", NULL}, NULL},
        {"in a directory", "stdio", {"a", "b", NULL}, "/tmp"},
        {"the directory is no word", "stdio", {"/tmp", "a", NULL}, "b"},
    };
    struct mo_era_cache_key keys[MO_COUNT(rows)];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_era_cache_key(rows[i].kind, rows[i].words, rows[i].cwd, &keys[i]);
        check_row(rows[i].name, strlen(keys[i].text) == MO_ERA_CACHE_KEY_LEN);
        for (size_t j = 0; j < i; j++)
            check_row(rows[i].name, strcmp(keys[i].text, keys[j].text) != 0);
    }
}

static void test_keep(void **state)
{
    struct mo_era_cache_key a = key_of("a"), b = key_of("b");
    struct mo_conn_verdict v;

    (void)state;
    assert_int_equal(mo_era_cache_get(dir, &a).era, MO_ERA_UNKNOWN);
    mo_era_cache_put(dir, &a, (struct mo_conn_verdict){MO_ERA_LEGACY, 7});
    mo_era_cache_put(dir, &b, (struct mo_conn_verdict){MO_ERA_MODERN, 8});
    v = mo_era_cache_get(dir, &a);
    assert_int_equal(v.era, MO_ERA_LEGACY);
    assert_int_equal(v.at_ms, 7);
    mo_era_cache_put(dir, &a, (struct mo_conn_verdict){MO_ERA_MODERN, 9});
    assert_int_equal(mo_era_cache_get(dir, &a).at_ms, 9);
    mo_era_cache_put(dir, &a, (struct mo_conn_verdict){MO_ERA_UNKNOWN, 0});
    assert_int_equal(mo_era_cache_get(dir, &a).era, MO_ERA_UNKNOWN);
    assert_int_equal(mo_era_cache_get(dir, &b).era, MO_ERA_MODERN);
    mo_era_cache_put(dir, &a, (struct mo_conn_verdict){MO_ERA_UNKNOWN, 0});
}

/* The oldest makes room, and the file stays within its limit. */
static void test_full(void **state)
{
    struct mo_era_cache_key k;
    char word[16];

    (void)state;
    for (unsigned i = 0; i <= MO_ERA_CACHE_MAX; i++) {
        (void)snprintf(word, sizeof(word), "s%u", i);
        k = key_of(word);
        mo_era_cache_put(dir, &k,
                         (struct mo_conn_verdict){MO_ERA_LEGACY, 1000 + i});
    }
    k = key_of("s0"); /* "b" of the test before was older still */
    assert_int_equal(mo_era_cache_get(dir, &k).era, MO_ERA_UNKNOWN);
    k = key_of("s2");
    assert_int_equal(mo_era_cache_get(dir, &k).at_ms, 1002);
    k = key_of(word);
    assert_int_equal(mo_era_cache_get(dir, &k).at_ms, 1000 + MO_ERA_CACHE_MAX);
}

static void test_no_file(void **state)
{
    struct mo_era_cache_key k = key_of("a");

    (void)state;
    mo_era_cache_put("/dev/null/x", &k,
                     (struct mo_conn_verdict){MO_ERA_LEGACY, 1});
    assert_int_equal(mo_era_cache_get("/dev/null/x", &k).era, MO_ERA_UNKNOWN);
}

static void put_and_get(void *ctx)
{
    struct mo_era_cache_key k = key_of("a");

    (void)ctx;
    mo_era_cache_put(dir, &k, (struct mo_conn_verdict){MO_ERA_LEGACY, 1});
    (void)mo_era_cache_get(dir, &k);
}

static void test_memory(void **state)
{
    struct mo_era_cache_key k = key_of("a");

    (void)state;
    torture(put_and_get, NULL);
    put_and_get(NULL);
    assert_int_equal(mo_era_cache_get(dir, &k).era, MO_ERA_LEGACY);
}

/* --- the files below ----------------------------------------------------- */

static void test_files(void **state)
{
    char path[128], deep[128];
    struct mo_buf b;
    struct stat st;

    (void)state;
    (void)snprintf(deep, sizeof(deep), "%s/a//b/c/", dir);
    assert_int_equal(mo_file_mkdir(deep, NULL), 0);
    assert_int_equal(mo_file_mkdir(deep, NULL), 0);
    assert_int_equal(stat(deep, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(mo_file_mkdir("", NULL), MO_EINVAL);
    assert_int_equal(mo_file_mkdir("/dev/null/a", NULL), MO_EIO);
    (void)snprintf(path, sizeof(path), "%s/a/f", dir);
    assert_int_equal(mo_file_replace(path, MO_SPAN("one"), NULL), 0);
    assert_int_equal(mo_file_replace(path, MO_SPAN("2"), NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    mo_buf_init(&b, 16);
    assert_int_equal(mo_file_read(path, 16, &b, NULL, NULL), 0);
    assert_true(mo_span_is(mo_buf_view(&b), "2"));
    mo_buf_fini(&b);
    assert_int_equal(mo_file_replace("/dev/null/f", MO_SPAN("x"), NULL),
                     MO_EIO);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(deep), 0);
    (void)snprintf(deep, sizeof(deep), "%s/a/b", dir);
    assert_int_equal(rmdir(deep), 0);
    (void)snprintf(deep, sizeof(deep), "%s/a", dir);
    assert_int_equal(rmdir(deep), 0); /* nothing was left beside */
}

static int make_dir(void **state)
{
    (void)state;
    (void)umask(022);
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char path[64];

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/" MO_ERA_CACHE_FILE, dir);
    (void)unlink(path);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),   cmocka_unit_test(test_keep),
        cmocka_unit_test(test_full),   cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_files),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
