/* The secret store: values that it stores, and files that it must refuse. */
#include "secrets/secrets.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "mo_test.h"
#include "secrets/key.h"

static const unsigned char key[MO_SECRETS_KEY] =
    "0123456789abcdef0123456789abcde";
static const unsigned char other[MO_SECRETS_KEY] = "another key";

struct place {
    char dir[64], path[96];
};

static void set_up(struct place *p)
{
    (void)snprintf(p->dir, sizeof(p->dir), "/tmp/mo-secrets-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    (void)snprintf(p->path, sizeof(p->path), "%s/" MO_SECRETS_FILE, p->dir);
}

static void tear_down(const struct place *p)
{
    static const char *const names[] = {MO_SECRETS_FILE, MO_SECRET_KEY_FILE,
                                        "config.json", "own.key"};
    char path[128];

    for (size_t i = 0; i < MO_COUNT(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", p->dir, names[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(p->dir), 0); /* nothing else was left there */
}

static struct mo_secrets *opened(const struct place *p)
{
    struct mo_secrets *s = NULL;
    struct mo_err e = {0};

    if (mo_secrets_open(p->path, key, &s, &e) < 0)
        fail_msg("%s", e.msg);
    return s;
}

static void put(struct mo_secrets *s, const char *name, const char *value)
{
    struct mo_err e = {0};

    if (mo_secrets_put(s, mo_span_cstr(name), mo_span_cstr(value), &e) < 0)
        fail_msg("%s", e.msg);
}

static void check_value(const struct mo_secrets *s, const char *name,
                        const char *want)
{
    struct mo_buf b;

    mo_buf_init(&b, 2 * MO_SECRET_MAX);
    assert_int_equal(mo_secrets_get(s, mo_span_cstr(name), &b, NULL), 0);
    assert_string_equal(mo_buf_cstr(&b), want);
    mo_buf_fini(&b);
}

static void slurp(const char *path, struct mo_buf *b)
{
    mo_buf_init(b, MO_SECRETS_FILE_MAX);
    assert_int_equal(mo_file_read(path, MO_SECRETS_FILE_MAX, b, NULL, NULL), 0);
}

/* --- what it keeps ------------------------------------------------------- */

static void test_keeps(void **state)
{
    struct mo_secrets *s, *again;
    struct mo_err e = {0};
    struct mo_buf b;
    struct place p;
    struct stat st;

    (void)state;
    set_up(&p);
    s = opened(&p);
    assert_int_equal(mo_secrets_count(s), 0);
    assert_int_not_equal(stat(p.path, &st), 0); /* not before there is one */
    put(s, "b", "second");
    put(s, "a", "first");
    put(s, "c.d_e-f", "third\nline\n");
    assert_int_equal(stat(p.path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    again = opened(&p);
    assert_int_equal(mo_secrets_count(again), 3);
    assert_true(mo_span_is(mo_secrets_at(again, 0).name, "a"));
    assert_true(mo_span_is(mo_secrets_at(again, 2).name, "c.d_e-f"));
    assert_true(mo_secrets_at(again, 0).set_ms > 1000000000000u);
    check_value(again, "a", "first");
    check_value(again, "c.d_e-f", "third\nline\n");
    put(again, "a", "changed");
    put(s, "z", "from the one who has not seen it"); /* must not undo it */
    check_value(s, "a", "changed");
    assert_int_equal(mo_secrets_drop(s, MO_SPAN("b"), &e), 0);
    assert_int_equal(mo_secrets_drop(s, MO_SPAN("b"), &e), MO_ENOTFOUND);
    assert_int_equal(mo_secrets_count(s), 3);
    assert_false(mo_secrets_has(s, MO_SPAN("b")));
    mo_buf_init(&b, 100);
    assert_int_equal(mo_secrets_get(s, MO_SPAN("b"), &b, &e), MO_ENOTFOUND);
    assert_non_null(strstr(e.msg, "secrets set b"));
    assert_int_equal(mo_secrets_get(NULL, MO_SPAN("b"), &b, &e), MO_ENOTFOUND);
    mo_buf_fini(&b);
    slurp(p.path, &b); /* no value can be read in it */
    assert_true(mo_span_search(mo_buf_view(&b), MO_SPAN("changed")) < 0);
    assert_true(mo_span_search(mo_buf_view(&b), MO_SPAN("third")) < 0);
    mo_buf_fini(&b);
    mo_secrets_close(s);
    mo_secrets_close(again);
    mo_secrets_close(NULL);
    tear_down(&p);
}

static void test_limits(void **state)
{
    static char big[MO_SECRET_MAX + 1];
    static const struct {
        const char *name;
        int rc;
    } names[] = {
        {"", MO_EINVAL},  {"a b", MO_EINVAL},       {"a}", MO_EINVAL},
        {"ä", MO_EINVAL}, {"a/b", MO_EINVAL},       {"..", 0},
        {"A.b-c_0", 0},   {"a}${env:X", MO_EINVAL},
    };
    struct mo_secrets *s;
    struct mo_buf b;
    struct place p;

    (void)state;
    set_up(&p);
    s = opened(&p);
    memset(big, 'x', sizeof(big));
    for (size_t i = 0; i < MO_COUNT(names); i++)
        check_row(names[i].name,
                  mo_secrets_put(s, mo_span_cstr(names[i].name), MO_SPAN("v"),
                                 NULL) == names[i].rc);
    assert_true(mo_secret_name_ok(mo_span(big, MO_SECRET_NAME_MAX)));
    assert_false(mo_secret_name_ok(mo_span(big, MO_SECRET_NAME_MAX + 1)));
    assert_int_equal(mo_secrets_put(s, MO_SPAN("a"), MO_SPAN(""), NULL),
                     MO_EINVAL);
    assert_int_equal(mo_secrets_put(s, MO_SPAN("a"), MO_SPAN("x\0y"), NULL),
                     MO_EINVAL);
    assert_int_equal(
        mo_secrets_put(s, MO_SPAN("a"), mo_span(big, sizeof(big)), NULL),
        MO_EINVAL);
    assert_int_equal(
        mo_secrets_put(s, MO_SPAN("a"), mo_span(big, MO_SECRET_MAX), NULL), 0);
    mo_buf_init(&b, MO_SECRET_MAX * 2);
    assert_int_equal(mo_secrets_get(s, MO_SPAN("a"), &b, NULL), 0);
    assert_int_equal(b.len, MO_SECRET_MAX);
    assert_memory_equal(b.p, big, MO_SECRET_MAX);
    mo_buf_fini(&b);
    mo_secrets_close(s);
    tear_down(&p);
}

/* --- what it refuses ----------------------------------------------------- */

static int try_file(const struct place *p, struct mo_span text,
                    struct mo_err *e)
{
    struct mo_secrets *s = NULL;
    int rc;

    *e = (struct mo_err){0};
    assert_int_equal(mo_file_replace(p->path, text, NULL), 0);
    rc = mo_secrets_open(p->path, key, &s, e);
    mo_secrets_close(s);
    return rc;
}

/* Every byte turned, every length short, one byte more. */
static void test_tampering(void **state)
{
    struct mo_secrets *s;
    struct mo_buf good;
    struct mo_err e;
    struct place p;

    (void)state;
    set_up(&p);
    s = opened(&p);
    put(s, "one", "value of one");
    put(s, "two", "value of two");
    mo_secrets_close(s);
    slurp(p.path, &good);
    for (size_t i = 0; i < good.len; i++) {
        for (unsigned bit = 1; bit < 256; bit <<= 3) {
            good.p[i] = (char)(good.p[i] ^ (int)bit);
            if (try_file(&p, mo_buf_view(&good), &e) == 0)
                fail_msg("byte %zu turned by %u was taken", i, bit);
            assert_non_null(strstr(e.msg, p.path));
            good.p[i] = (char)(good.p[i] ^ (int)bit);
        }
    }
    for (size_t n = 0; n < good.len; n++) {
        if (try_file(&p, mo_span(good.p, n), &e) == 0)
            fail_msg("%zu of %zu bytes were taken", n, good.len);
    }
    assert_int_equal(try_file(&p, mo_buf_view(&good), &e), 0);
    mo_buf_putc(&good, '\0');
    assert_int_equal(try_file(&p, mo_buf_view(&good), &e), MO_EPROTO);
    mo_buf_fini(&good);
    tear_down(&p);
}

/* Two values of one length change places, names stay: the file's MAC sees it;
 * and were that not there, the name bound to each would. */
static void test_swapped(void **state)
{
    static const char *const says[] = {"damaged", "another key", "no file of",
                                       "version 2", "cut off"};
    char text[5][64] = {"", "", "{\"tokens\":[]}", "MOSECRET\2", "MOSECRET\1"};
    struct mo_secrets *s = NULL;
    struct mo_buf good;
    struct mo_err e;
    struct place p;
    char *a, *b;

    (void)state;
    set_up(&p);
    s = opened(&p);
    put(s, "a", "value 1");
    put(s, "b", "value 2");
    mo_secrets_close(s);
    slurp(p.path, &good);
    /* head 24; record: 1 + name 1 + 8 + 4 + nonce 24 + 7 + 16 */
    a = good.p + 24 + 14;
    b = a + 61;
    for (size_t i = 0; i < 24 + 7 + 16; i++) {
        char c = a[i];

        a[i] = b[i];
        b[i] = c;
    }
    assert_int_equal(try_file(&p, mo_buf_view(&good), &e), MO_EPROTO);
    assert_non_null(strstr(e.msg, says[0]));
    mo_buf_fini(&good);
    (void)unlink(p.path);
    s = opened(&p);
    put(s, "a", "value 1");
    mo_secrets_close(s);
    s = NULL;
    assert_int_equal(mo_secrets_open(p.path, other, &s, &e), MO_EPOLICY);
    assert_non_null(strstr(e.msg, says[1]));
    for (size_t i = 2; i < 5; i++) {
        size_t n = i == 2 ? strlen(text[i]) : i == 3 ? 64 : 20;

        assert_int_equal(try_file(&p, mo_span(text[i], n), &e), MO_EPROTO);
        check_row(says[i], strstr(e.msg, says[i]) != NULL);
    }
    tear_down(&p);
}

static void test_readable(void **state)
{
    struct mo_secrets *s;
    struct mo_err e = {0};
    struct place p;

    (void)state;
    set_up(&p);
    s = opened(&p);
    put(s, "a", "v");
    mo_secrets_close(s);
    s = NULL;
    assert_int_equal(chmod(p.path, 0640), 0);
    assert_int_equal(mo_secrets_open(p.path, key, &s, &e), MO_EPOLICY);
    assert_non_null(strstr(e.msg, "chmod 600"));
    tear_down(&p);
}

/* --- where the key is ---------------------------------------------------- */

static int open_with(const struct place *p, const char *where, bool make,
                     char *const *env, struct mo_secrets **s, struct mo_err *e)
{
    struct mo_config c = {.environ = env};

    c.store.dir = p->dir;
    c.secrets.key = where;
    *e = (struct mo_err){0};
    return mo_secrets_for(&c, make, s, e);
}

static void test_key_places(void **state)
{
    static char hex[] = "K=00112233445566778899aabbccddeeff"
                        "00112233445566778899AABBCCDDEEFF";
    static char own[] = MO_SECRET_KEY_ENV
        "=ff112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";
    static char bad[] = "K=00112233445566778899aabbccddeef";
    char *const env[] = {hex, NULL}, *const env_own[] = {own, NULL},
                *const env_bad[] = {bad, NULL};
    struct mo_secrets *s;
    struct mo_err e;
    char path[128];
    struct stat st;
    struct place p;

    (void)state;
    set_up(&p);
    (void)snprintf(path, sizeof(path), "%s/" MO_SECRET_KEY_FILE, p.dir);
    assert_int_equal(open_with(&p, NULL, false, NULL, &s, &e), 0);
    assert_null(s); /* nothing there, nothing made */
    assert_int_not_equal(stat(path, &st), 0);
    assert_int_equal(open_with(&p, NULL, true, NULL, &s, &e), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, 65);
    put(s, "a", "v");
    mo_secrets_close(s);
    assert_int_equal(open_with(&p, NULL, false, NULL, &s, &e), 0);
    check_value(s, "a", "v");
    mo_secrets_close(s);
    assert_int_equal(open_with(&p, NULL, false, env_own, &s, &e), MO_EPOLICY);
    assert_int_equal(open_with(&p, "env:K", false, env, &s, &e), MO_EPOLICY);
    assert_non_null(strstr(e.msg, "another key"));
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(open_with(&p, NULL, false, NULL, &s, &e), MO_EPOLICY);
    assert_non_null(strstr(e.msg, "chmod 600"));
    (void)unlink(path); /* never a new key for old secrets */
    assert_int_equal(open_with(&p, NULL, true, NULL, &s, &e), MO_EPOLICY);
    assert_non_null(strstr(e.msg, "gone"));
    assert_int_not_equal(stat(path, &st), 0);
    (void)unlink(p.path);
    assert_int_equal(open_with(&p, "env:K", true, env, &s, &e), 0);
    mo_secrets_close(s);
    assert_int_equal(open_with(&p, "env:K", true, env_bad, &s, &e), MO_EINVAL);
    assert_null(strstr(e.msg, "0011")); /* it may be nearly right */
    assert_int_equal(open_with(&p, "env:K", true, NULL, &s, &e), MO_EPOLICY);
    assert_int_equal(open_with(&p, "file:/no/such", true, NULL, &s, &e),
                     MO_EPOLICY);
    assert_int_equal(
        open_with(&p, "keyring:mo-test-no-such-key", true, NULL, &s, &e),
        MO_EPOLICY);
    assert_non_null(strstr(e.msg, "keyctl add user"));
    tear_down(&p);
}

/* --- without memory ------------------------------------------------------ */

static void torture_body(void *ctx)
{
    struct place *p = ctx;
    struct mo_secrets *s = NULL;
    struct mo_buf b;

    if (mo_secrets_open(p->path, key, &s, NULL) < 0)
        return;
    (void)mo_secrets_put(s, MO_SPAN("b"), MO_SPAN("new value"), NULL);
    mo_buf_init(&b, 1000);
    if (mo_secrets_has(s, MO_SPAN("a")) &&
        mo_secrets_get(s, MO_SPAN("a"), &b, NULL) == 0)
        assert_true(mo_span_is(mo_buf_view(&b), "kept"));
    mo_buf_fini(&b);
    (void)mo_secrets_drop(s, MO_SPAN("b"), NULL);
    mo_secrets_close(s);
}

static void test_torture(void **state)
{
    struct mo_secrets *s;
    struct place p;

    (void)state;
    set_up(&p);
    s = opened(&p);
    put(s, "a", "kept");
    mo_secrets_close(s);
    torture(torture_body, &p);
    s = opened(&p); /* whatever failed, the file is whole */
    check_value(s, "a", "kept");
    mo_secrets_close(s);
    tear_down(&p);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keeps),     cmocka_unit_test(test_limits),
        cmocka_unit_test(test_tampering), cmocka_unit_test(test_swapped),
        cmocka_unit_test(test_readable),  cmocka_unit_test(test_key_places),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
