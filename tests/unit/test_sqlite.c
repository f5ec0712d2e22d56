/* test_sqlite.c - what only a store in a file can do wrong: somebody else's
 * file, a damaged one, a newer one, one that others may read or keep busy. */
#include "store_kit.h"

#include <sys/resource.h>

#include "store/sql.h"

static const struct backend sqlite_backend = {"sqlite", false};

#define S(x) MO_SPAN(x)

static const struct mo_write session_w = {.kind = MO_WRITE_SESSION,
                                          .doc = {"{}", 2}};
static const struct mo_write entry_w = {
    .kind = MO_WRITE_ENTRY, .doc = {"{}", 2}, .text = {"some words", 10}};

static const char *path_of(const struct fix *f)
{
    return f->url + strlen("sqlite:");
}

/* A connection of our own, to do what no store does. */
static void with_sql(const struct fix *f, struct mo_sqlite_lib *lib,
                     struct mo_sql *q)
{
    struct mo_err e;

    assert_int_equal(mo_sqlite_load(lib, &e), 0);
    assert_int_equal(mo_sql_open(q, lib, path_of(f), 1000, &e), 0);
}

static void run_sql(struct fix *f, const char *sql)
{
    struct mo_sqlite_lib lib;
    struct mo_sql q;

    with_sql(f, &lib, &q);
    assert_int_equal(lib.sqlite3_exec(q.db, sql, NULL, NULL, NULL), SQLITE_OK);
    mo_sql_close(&q);
}

/* Opening must fail with that code and say that. */
static void must_refuse(struct fix *f, int code, const char *says)
{
    struct mo_err e;

    f->l = mo_loop_new(NULL, &e);
    assert_non_null(f->l);
    mo_err_clear(&e);
    assert_int_equal(mo_store_open(f->l, &f->o, &f->s, &e), code);
    if (!strstr(e.msg, says))
        fail_msg("'%s' does not say '%s'", e.msg, says);
    f->s = NULL;
    mo_loop_free(f->l);
    f->l = NULL;
}

/* --- whose file ---------------------------------------------------------- */

static void test_newer(void **state)
{
    struct fix f;

    (void)state;
    fix_init(&f, &sqlite_backend);
    fix_close(&f);
    run_sql(&f, "PRAGMA user_version = 99");
    must_refuse(&f, MO_EINVAL, "newer version (its format is 99");
    run_sql(&f, "PRAGMA user_version = 1");
    fix_open(&f);
    fix_fini(&f);
}

static void test_not_ours(void **state)
{
    struct fix f;

    (void)state;
    fix_prepare(&f, &sqlite_backend);
    run_sql(&f, "CREATE TABLE music (title)");
    must_refuse(&f, MO_EINVAL, "another program");
    fix_fini(&f);

    fix_prepare(&f, &sqlite_backend);
    run_sql(&f, "PRAGMA application_id = 7");
    must_refuse(&f, MO_EINVAL, "another program");
    fix_fini(&f);

    fix_prepare(&f, &sqlite_backend);
    (void)snprintf(f.url, sizeof(f.url), "sqlite:%s", f.dir);
    must_refuse(&f, MO_EINVAL, f.dir);
    (void)snprintf(f.url, sizeof(f.url), "sqlite:/nowhere/at/all.db");
    must_refuse(&f, MO_EIO, "/nowhere/at/all.db");
    (void)snprintf(f.url, sizeof(f.url), "sqlite:");
    must_refuse(&f, MO_EINVAL, "needs a file");
    (void)snprintf(f.url, sizeof(f.url), "mysql://x");
    must_refuse(&f, MO_EINVAL, "sqlite:, redis://");
    fix_fini(&f);
}

/* --- damage -------------------------------------------------------------- */

static void file_bytes(const char *path, off_t at, const char *bytes, size_t n)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, at), n);
    (void)close(fd);
}

static uint64_t digest(const char *path)
{
    char buf[65536];
    uint64_t sum = 1469598103934665603u;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    assert_true(fd >= 0);
    for (n = read(fd, buf, sizeof(buf)); n > 0;
         n = read(fd, buf, sizeof(buf))) {
        for (ssize_t i = 0; i < n; i++)
            sum = (sum ^ (unsigned char)buf[i]) * 1099511628211u;
    }
    (void)close(fd);
    return sum;
}

/* A damaged file is refused with a clear word, and left as it is. */
static void test_damaged(void **state)
{
    static const char noise[4096] = "this is no page of a database";
    uint64_t before;
    struct fix f;

    (void)state;
    fix_prepare(&f, &sqlite_backend);
    file_bytes(path_of(&f), 0, noise, sizeof(noise));
    must_refuse(&f, MO_EIO, "is damaged");
    before = digest(path_of(&f));
    must_refuse(&f, MO_EIO, "nothing was changed");
    assert_true(digest(path_of(&f)) == before);
    fix_fini(&f);

    fix_init(&f, &sqlite_backend);
    assert_int_equal(put(&f, "a", 0, &session_w, 1), 0);
    for (int i = 0; i < 200; i++)
        assert_int_equal(put(&f, "a", 0, &entry_w, 1), 0);
    fix_close(&f);
    for (off_t page = 2; page < 14; page++)
        file_bytes(path_of(&f), page * 4096 + 8, noise, 512);
    before = digest(path_of(&f));
    must_refuse(&f, MO_EIO, "is damaged");
    assert_true(digest(path_of(&f)) == before);
    fix_fini(&f);
}

static void test_private(void **state)
{
    static const char *const names[] = {"", "-wal", "-shm"};
    char path[200];
    struct stat st;
    struct fix f;

    (void)state;
    fix_prepare(&f, &sqlite_backend);
    file_bytes(path_of(&f), 0, "", 0);
    assert_int_equal(chmod(path_of(&f), 0644), 0); /* an older file */
    fix_open(&f);
    assert_int_equal(put(&f, "a", 0, &session_w, 1), 0);
    for (size_t i = 0; i < MO_COUNT(names); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", path_of(&f), names[i]);
        assert_int_equal(stat(path, &st), 0);
        check_row(names[i], (st.st_mode & 0777) == 0600);
    }
    (void)snprintf(path, sizeof(path), "%s-notice", path_of(&f));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    fix_fini(&f);
}

/* --- busy ---------------------------------------------------------------- */

/* Another process keeps the lock: told in time, and then it goes on. */
static void test_busy(void **state)
{
    struct mo_sqlite_lib lib;
    struct mo_sql q;
    struct fix f;

    (void)state;
    fix_prepare(&f, &sqlite_backend);
    f.o.deadline_ms = 2000;
    fix_open(&f);
    assert_int_equal(put(&f, "a", 0, &session_w, 1), 0);
    with_sql(&f, &lib, &q);
    assert_int_equal(
        lib.sqlite3_exec(q.db, "BEGIN IMMEDIATE", NULL, NULL, NULL), 0);
    assert_int_equal(put(&f, "a", 0, &entry_w, 1), MO_EUNAVAIL);
    /* readers are not disturbed */
    assert_int_equal(GET(&f, .kind = MO_READ_SESSIONS), 0);
    assert_int_equal(f.n, 1);
    assert_int_equal(lib.sqlite3_exec(q.db, "COMMIT", NULL, NULL, NULL), 0);
    mo_sql_close(&q);
    for (int i = 0; i < 100 && put(&f, "a", 0, &entry_w, 1); i++)
        continue;
    assert_int_equal(f.code, 0);
    assert_true(mo_store_health(f.s).up);
    assert_true(mo_store_health(f.s).failed > 0);
    fix_fini(&f);
}

/* Nothing more fits on the disk: told so, and then it goes on. */
static void test_full(void **state)
{
    struct rlimit old, little = {0};
    void (*was)(int) = signal(SIGXFSZ, SIG_IGN);
    unsigned wrote = 0;
    struct fix f;

    (void)state;
    fix_init(&f, &sqlite_backend);
    assert_int_equal(put(&f, "a", 0, &session_w, 1), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    little = (struct rlimit){256 * 1024, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    for (int i = 0; i < 1000 && put(&f, "a", 0, &entry_w, 1) == 0; i++)
        wrote++;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(f.code, MO_EUNAVAIL);
    assert_false(mo_store_health(f.s).up);
    assert_int_equal(put(&f, "a", 0, &entry_w, 1), 0);
    assert_true(mo_store_health(f.s).up);
    fix_close(&f);
    fix_open(&f); /* which checks the file */
    assert_int_equal(
        GET(&f, .kind = MO_READ_HISTORY, .session = S("a"), .limit = 1000), 0);
    assert_int_equal(f.n, wrote + 1);
    fix_fini(&f);
    (void)signal(SIGXFSZ, was);
}

static unsigned count;

static void on_counted(void *ctx, const struct mo_written *w,
                       const struct mo_err *why)
{
    (void)ctx;
    (void)w;
    assert_null(why);
    count++;
}

static bool counted(void *ctx)
{
    return count == *(unsigned *)ctx;
}

/* Whoever waits while a commit is under way shares the next one. */
static void test_group_commit(void **state)
{
    struct mo_store_batch b = {S("a"), 0, &entry_w, 1};
    unsigned n = 1000;
    uint64_t before;
    struct mo_err e;
    struct fix f;

    (void)state;
    fix_init(&f, &sqlite_backend);
    assert_int_equal(put(&f, "a", 0, &session_w, 1), 0);
    before = mo_store_health(f.s).group_commits;
    count = 0;
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(mo_store_write(f.s, &b, on_counted, NULL, &e), 0);
    assert_true(mo_loop_until(f.l, counted, &n, LONG));
    assert_true(mo_store_health(f.s).group_commits - before <= 8);
    fix_fini(&f);
}

/* A file that was lost gives out larger fences than ever before. */
static void test_fence_after_loss(void **state)
{
    struct held h;
    uint64_t fence;
    struct fix f;

    (void)state;
    fix_init(&f, &sqlite_backend);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(take_wait(&f, &h, "x", "me", LONG), 0);
        mo_lease_drop(h.lease);
    }
    fence = h.fence;
    fix_close(&f);
    assert_int_equal(unlink(path_of(&f)), 0);
    fix_open(&f);
    assert_int_equal(take_wait(&f, &h, "x", "me", LONG), 0);
    assert_true(h.fence > fence);
    mo_lease_drop(h.lease);
    fix_fini(&f);
}

/* A lease of an earlier run of the machine is nobody's. */
static void test_after_reboot(void **state)
{
    struct held h;
    struct fix f;

    (void)state;
    fix_prepare(&f, &sqlite_backend);
    f.o.lease_ttl_ms = 3600000;
    fix_open(&f);
    fix_close(&f);
    run_sql(&f, "INSERT INTO lease VALUES ('x', 5, 'token', 'ghost', "
                "'another-boot', 9000000000000000000, 0)");
    fix_open(&f);
    assert_int_equal(who(&f, "x"), 0);
    assert_string_equal(f.owner, "");
    assert_int_equal(take_wait(&f, &h, "x", "me", 0), 0);
    assert_true(h.fence > 5);
    mo_lease_drop(h.lease);
    fix_fini(&f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newer),
        cmocka_unit_test(test_not_ours),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_private),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_group_commit),
        cmocka_unit_test(test_fence_after_loss),
        cmocka_unit_test(test_after_reboot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
