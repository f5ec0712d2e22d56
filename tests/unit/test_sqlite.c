/* test_sqlite.c - what only a store in a file can do wrong: somebody else's
 * file, a damaged one, a newer one, one that others may read or keep busy. */
#include "store_kit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/sql.h"

static const struct backend sqlite_backend = {"sqlite", false};

#define S(x) MO_SPAN(x)

static const struct mo_write session_w = {.kind = MO_WRITE_SESSION,
                                          .doc = {"{}", 2}};
static const struct mo_write entry_w = {
    .kind = MO_WRITE_ENTRY, .doc = {"{}", 2}, .text = {"some words", 10}};

static const struct mo_write forget_w = {.kind = MO_WRITE_FORGET};

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
    must_refuse(&f, MO_EINVAL, "written by version unknown (format 99)");
    run_sql(&f, "PRAGMA user_version = -1");
    must_refuse(&f, MO_EIO, "is damaged");
    run_sql(&f, "PRAGMA user_version = 5");
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

#define MANY                                                                   \
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"          \
    " WHERE i < 2000) INSERT INTO audit (session, at, doc)"                    \
    " SELECT '', i, printf('{\"a\":\"%01000d\"}', i) FROM n"

static bool is_down(void *ctx)
{
    return !mo_store_health(((struct fix *)ctx)->s).up;
}

/* Opening does not read a large file: damage in the middle of it goes
 * unnoticed. After an unclean end it is found beside serving. */
static void test_large(void **state)
{
    static const char noise[4096] = "this is no page of a database";
    char wal[200];
    struct stat st;
    struct fix f;

    (void)state;
    fix_init(&f, &sqlite_backend);
    assert_int_equal(put(&f, "a", 0, &session_w, 1), 0);
    fix_close(&f);
    run_sql(&f, MANY);
    assert_int_equal(stat(path_of(&f), &st), 0);
    assert_true(st.st_size > 400 * 4096);
    for (off_t page = 300; page < 310; page++)
        file_bytes(path_of(&f), page * 4096, noise, sizeof(noise));
    fix_open(&f);
    assert_int_equal(put(&f, "a", 0, &entry_w, 1), 0);
    fix_close(&f);

    (void)snprintf(wal, sizeof(wal), "%s-wal", path_of(&f));
    file_bytes(wal, 0, "left", 4);
    fix_open(&f);
    assert_int_equal(put(&f, "a", 0, &entry_w, 1), 0);
    assert_true(mo_loop_until(f.l, is_down, &f, LONG));
    assert_non_null(strstr(mo_store_health(f.s).why, "is damaged"));
    assert_int_equal(put(&f, "a", 0, &entry_w, 1), MO_EUNAVAIL);
    assert_int_equal(GET(&f, .kind = MO_READ_SESSIONS), MO_EUNAVAIL);
    assert_false(mo_store_health(f.s).up);
    fix_fini(&f);
}

/* A change of version rewrites the file: it is checked first. */
static void test_large_and_old(void **state)
{
    static const char noise[4096] = "this is no page of a database";
    uint64_t before;
    struct fix f;

    (void)state;
    fix_init(&f, &sqlite_backend);
    fix_close(&f);
    run_sql(&f, MANY "; PRAGMA user_version = 1");
    file_bytes(path_of(&f), 300 * 4096, noise, sizeof(noise));
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

/* --- full text, indexed behind the append ----------------------------------
 */

static struct mo_write said(const char *text)
{
    return (struct mo_write){
        .kind = MO_WRITE_ENTRY, .doc = S("{}"), .text = mo_span_cstr(text)};
}

static size_t hits(struct fix *f, const char *text)
{
    assert_int_equal(GET(f, .kind = MO_READ_SEARCH, .limit = 1000,
                         .text = mo_span_cstr(text)),
                     0);
    return f->n;
}

/* Fails if the index is damaged or does not say what the entries say. */
#define CHECK_INDEX                                                            \
    "INSERT INTO entry_text (entry_text, rank) VALUES ('integrity-check', 1)"

/* Before and after the index has come to them entries go again, and new ones
 * get their numbers; the index must know which of them it knows. */
static void test_index_and_deletion(void **state)
{
    static const struct {
        const char *name;
        bool first, second; /* search before the one and the other goes? */
    } rows[] = {
        {"neither was indexed", false, false},
        {"both were", true, true},
        {"the older one was", true, false},
        {"both were, by the second search", false, true},
    };
    struct fix f;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        fix_init(&f, &sqlite_backend);
        assert_int_equal(PUT(&f, "a", session_w, said("apple one")), 0);
        assert_int_equal(PUT(&f, "stays", session_w, said("apple stays")), 0);
        if (rows[i].first)
            check_row(rows[i].name, hits(&f, "apple") == 2);
        assert_int_equal(PUT(&f, "b", session_w, said("apple two")), 0);
        if (rows[i].second)
            check_row(rows[i].name, hits(&f, "apple") == 3);
        assert_int_equal(PUT(&f, "b", forget_w), 0);
        assert_int_equal(PUT(&f, "a", forget_w), 0);
        /* these get the numbers of those that went */
        assert_int_equal(PUT(&f, "c", session_w, said("pear"), said("pear")),
                         0);
        check_row(rows[i].name, hits(&f, "apple") == 1);
        check_row(rows[i].name, hits(&f, "pear") == 2);
        assert_int_equal(PUT(&f, "stays", forget_w), 0);
        assert_int_equal(PUT(&f, "c", forget_w), 0);
        assert_int_equal(PUT(&f, "d", session_w, said("plum")), 0);
        check_row(rows[i].name, hits(&f, "pear") + hits(&f, "apple") == 0);
        check_row(rows[i].name, hits(&f, "plum") == 1);
        fix_close(&f);
        run_sql(&f, CHECK_INDEX);
        fix_fini(&f);
    }
}

/* More than a chunk of rows, and one whose text is a chunk by itself. */
static void test_index_in_chunks(void **state)
{
    size_t n = (size_t)1024 * 1024;
    mo_autofree char *large = mo_alloc(n + 1);
    struct mo_write w[MO_STORE_BATCH_MAX];
    struct fix f;

    (void)state;
    fix_init(&f, &sqlite_backend);
    assert_non_null(large);
    for (size_t i = 0; i < n; i++)
        large[i] = "large "[i % 6];
    large[n] = '\0';
    for (size_t i = 0; i < MO_COUNT(w); i++)
        w[i] = said("many");
    assert_int_equal(PUT(&f, "a", session_w, said(large), said("behind it")),
                     0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(put(&f, "a", 0, w, MO_COUNT(w)), 0);
    assert_int_equal(PUT(&f, "a", said("the last")), 0);
    assert_int_equal(hits(&f, "last"), 1);
    assert_int_equal(hits(&f, "large"), 1);
    assert_int_equal(hits(&f, "behind"), 1);
    assert_int_equal(hits(&f, "many"), 1000);
    assert_true(f.more);
    fix_fini(&f);
}

static bool index_is_complete(struct fix *f)
{
    struct mo_sqlite_lib lib;
    struct mo_sql q;
    int64_t n = -1;

    with_sql(f, &lib, &q);
    assert_int_equal(mo_sql_number(&q, MO_SQL_INDEX_STATE, &n, NULL, ""), 1);
    mo_sql_close(&q);
    return n == 3;
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

/* Nobody searches, and it is indexed all the same. */
static void test_index_when_quiet(void **state)
{
    uint64_t until = mo_now_ns() + LONG * MO_MS;
    struct fix f;

    (void)state;
    fix_init(&f, &sqlite_backend);
    assert_int_equal(PUT(&f, "a", session_w, said("1"), said("2"), said("")),
                     0);
    while (!index_is_complete(&f) && mo_now_ns() < until)
        (void)mo_loop_until(f.l, never, NULL, 20);
    assert_true(index_is_complete(&f));
    fix_fini(&f);
}

/* What version 1 has indexed is found and goes as before. */
static void test_index_of_version_1(void **state)
{
    struct fix f;

    (void)state;
    fix_init(&f, &sqlite_backend);
    assert_int_equal(PUT(&f, "a", session_w, said("apple"), said("pear")), 0);
    assert_int_equal(PUT(&f, "b", session_w, said("apple")), 0);
    assert_int_equal(hits(&f, "apple"), 2);
    fix_close(&f);
    run_sql(&f,
            "ALTER TABLE session DROP COLUMN shares; DROP TABLE daily;"
            "DROP TABLE mark; DROP TRIGGER entry_out; DROP TABLE indexed; DROP "
            "TABLE place;"
            "CREATE UNIQUE INDEX entry_place"
            " ON entry (session, conversation, seq);"
            "CREATE INDEX conversation_at ON conversation (at) WHERE at > 0;"
            "CREATE TRIGGER entry_in AFTER INSERT ON entry WHEN new.text <> ''"
            " BEGIN INSERT INTO entry_text (rowid, text)"
            " VALUES (new.n, new.text); END;"
            "CREATE TRIGGER entry_out AFTER DELETE ON entry"
            " WHEN old.text <> '' BEGIN INSERT INTO entry_text"
            " (entry_text, rowid, text) VALUES ('delete', old.n, old.text);"
            " END; PRAGMA user_version = 1");
    fix_open(&f);
    assert_int_equal(hits(&f, "apple"), 2);
    assert_int_equal(PUT(&f, "b", forget_w), 0);
    assert_int_equal(PUT(&f, "a", said("apple")), 0);
    assert_int_equal(hits(&f, "apple"), 2);
    fix_close(&f);
    run_sql(&f, CHECK_INDEX);
    fix_fini(&f);
}

/* --- a write that cannot be done, among those that can ---------------------
 */

static unsigned refused, written;

static void on_each(void *ctx, const struct mo_written *w,
                    const struct mo_err *why)
{
    bool poison = ctx != NULL;

    (void)w;
    assert_int_equal(why ? why->code : 0, poison ? MO_EUNAVAIL : 0);
    refused += poison;
    written += !poison;
}

static bool all_told(void *ctx)
{
    (void)ctx;
    return refused + written == 9;
}

static void test_fails_alone(void **state)
{
    static char poison[] = "poison";
    struct mo_err e;
    struct fix f;

    (void)state;
    fix_init(&f, &sqlite_backend);
    assert_int_equal(PUT(&f, "a", session_w), 0);
    run_sql(&f, "CREATE TRIGGER poison BEFORE INSERT ON entry"
                " WHEN new.doc = 'poison' BEGIN"
                " SELECT raise(ABORT, 'poison'); END");
    for (int i = 0; i < 9; i++) {
        bool bad = i % 4 == 3;
        struct mo_write w = entry_w;
        struct mo_store_batch b = {S("a"), 0, &w, 1};

        if (bad)
            w.doc = mo_span_cstr(poison);
        assert_int_equal(
            mo_store_write(f.s, &b, on_each, bad ? poison : NULL, &e), 0);
    }
    assert_true(mo_loop_until(f.l, all_told, NULL, LONG));
    assert_int_equal(refused, 2);
    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("a")), 0);
    assert_int_equal(f.n, 7);
    assert_int_equal(f.rows[6].seq, 7); /* no gap where they would be */
    fix_fini(&f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newer),
        cmocka_unit_test(test_not_ours),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_large_and_old),
        cmocka_unit_test(test_private),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_group_commit),
        cmocka_unit_test(test_fence_after_loss),
        cmocka_unit_test(test_after_reboot),
        cmocka_unit_test(test_index_and_deletion),
        cmocka_unit_test(test_index_in_chunks),
        cmocka_unit_test(test_index_when_quiet),
        cmocka_unit_test(test_index_of_version_1),
        cmocka_unit_test(test_fails_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
