/* A store that another version has written: one version ahead, two ahead, one
 * behind. For SQLite and a real Redis. */
#include "store_kit.h"

#include "codec/state_version.h"
#include "store/redis_priv.h"
#include "store/sql.h"

static struct backend sqlite_backend = {"sqlite", false};
static struct backend redis_backend = {"redis", true};

static const struct mo_write session_w = {.kind = MO_WRITE_SESSION,
                                          .doc = {"{\"kept\":1}", 10}};
static const struct mo_write entry_w = {
    .kind = MO_WRITE_ENTRY, .doc = {"a|apple", 7}, .text = {"apple", 5}};

static unsigned our_format(const struct fix *f)
{
    return f->b->redis ? MO_REDIS_VERSION : MO_SQL_VERSION;
}

/* The record as the store has it now. */
static struct mo_state_version record(struct fix *f)
{
    struct mo_state_version v = {.format = 0};

    assert_int_equal(GET(f, .kind = MO_READ_MARK, .id = MO_SPAN(MO_STATE_MARK)),
                     0);
    if (f->n == 1)
        assert_int_equal(mo_state_version_read(f->rows[0].doc, &v, NULL), 0);
    return v;
}

static void run_sql(struct fix *f, const char *sql)
{
    struct mo_sqlite_lib lib;
    struct mo_sql q;
    struct mo_err e;

    assert_int_equal(mo_sqlite_load(&lib, &e), 0);
    assert_int_equal(
        mo_sql_open(&q, &lib, f->url + strlen("sqlite:"), 1000, &e), 0);
    assert_int_equal(lib.sqlite3_exec(q.db, sql, NULL, NULL, NULL), SQLITE_OK);
    mo_sql_close(&q);
}

/* As a program of that format leaves the store; reads 0: without a record. */
static void pretend(struct fix *f, unsigned format, unsigned reads)
{
    char text[160];

    (void)snprintf(text, sizeof(text),
                   "{\"format\":%u,\"reads\":%u,\"program\":\"9.8.7\"}", format,
                   reads);
    if (reads == 0)
        text[0] = '\0';
    assert_int_equal(PUT(f, "",
                         {.kind = MO_WRITE_MARK,
                          .id = MO_SPAN(MO_STATE_MARK),
                          .doc = mo_span_cstr(text)}),
                     0);
    fix_close(f);
    if (f->b->redis)
        return;
    (void)snprintf(text, sizeof(text), "PRAGMA user_version = %u", format);
    run_sql(f, text);
}

static void fill(struct fix *f, const struct backend *b)
{
    fix_init(f, b);
    assert_int_equal(PUT(f, "s", session_w, entry_w), 0);
    assert_int_equal(record(f).format, our_format(f));
}

static void check_data(struct fix *f)
{
    assert_int_equal(GET(f, .kind = MO_READ_SESSION, .session = MO_SPAN("s")),
                     0);
    assert_true(row_is(f, 0, "{\"kept\":1}"));
    assert_int_equal(GET(f, .kind = MO_READ_HISTORY, .session = MO_SPAN("s")),
                     0);
    assert_true(row_is(f, 0, "a|apple"));
}

/* One ahead that allows us: used, written to, and its record is kept. */
static void test_one_ahead(void **state)
{
    struct fix f;

    fill(&f, *state);
    pretend(&f, our_format(&f) + 1, our_format(&f));
    fix_open(&f);
    check_data(&f);
    assert_int_equal(PUT(&f, "s", entry_w), 0);
    assert_int_equal(record(&f).format, our_format(&f) + 1);
    assert_string_equal(record(&f).program, "9.8.7");
    fix_fini(&f);
}

static void must_refuse(struct fix *f)
{
    struct mo_err e = {0};

    if (f->b->redis) {
        fix_open(f);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(
                GET(f, .kind = MO_READ_SESSION, .session = MO_SPAN("s")),
                MO_EUNAVAIL);
            assert_non_null(strstr(f->msg, "written by version"));
            assert_non_null(strstr(f->msg, "docs/upgrade.md"));
        }
        assert_int_equal(PUT(f, "s", entry_w), MO_EUNAVAIL);
        assert_false(mo_store_health(f->s).up);
        assert_non_null(
            strstr(mo_store_health(f->s).why, "written by version"));
        return;
    }
    f->l = mo_loop_new(NULL, &e);
    assert_int_equal(mo_store_open(f->l, &f->o, &f->s, &e), MO_EINVAL);
    assert_non_null(strstr(e.msg, "written by version"));
    assert_non_null(strstr(e.msg, "docs/upgrade.md"));
    f->s = NULL;
    mo_loop_free(f->l);
    f->l = NULL;
}

static void refused_at(const struct backend *b, unsigned ahead, int reads)
{
    struct fix f;

    fill(&f, b);
    pretend(&f, our_format(&f) + ahead,
            (unsigned)((int)our_format(&f) + reads));
    must_refuse(&f);
    fix_fini(&f);
}

static void test_refused(void **state)
{
    refused_at(*state, 1, 1); /* one ahead, not for us */
    refused_at(*state, 2, 0); /* two ahead, whatever it says */
    refused_at(*state, 2, 2);
}

/* One behind: brought to our version, with its data. */
static void test_one_behind(void **state)
{
    struct fix f;

    fill(&f, *state);
    pretend(&f, our_format(&f) - 1, 0);
    if (!f.b->redis)
        run_sql(&f, "ALTER TABLE session DROP COLUMN shares");
    fix_open(&f);
    check_data(&f);
    assert_int_equal(record(&f).format, our_format(&f));
    assert_string_equal(record(&f).program, MO_VERSION);
    assert_int_equal(PUT(&f, "s", entry_w), 0);
    fix_fini(&f);
}

/* A file of our format without a record gets one: those of 0.1 have none. */
static void test_without_record(void **state)
{
    struct fix f;

    fill(&f, *state);
    pretend(&f, f.b->redis ? 1 : our_format(&f), 0);
    fix_open(&f);
    check_data(&f);
    assert_int_equal(record(&f).format, our_format(&f));
    fix_fini(&f);
}

/* SQLite: a newer format whose record is missing, is that of another format, or
 * is damaged, is refused. */
static void test_bad_records(void **state)
{
    static const char *const sql[] = {
        "PRAGMA user_version = 6; DELETE FROM mark",
        "PRAGMA user_version = 6",
        "PRAGMA user_version = 6; UPDATE mark SET doc = '{'",
        "PRAGMA user_version = 6; DROP TABLE mark",
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(sql); i++) {
        struct fix f;

        fill(&f, &sqlite_backend);
        fix_close(&f);
        run_sql(&f, sql[i]);
        must_refuse(&f);
        fix_fini(&f);
    }
}

#define BOTH(fn)                                                               \
    {#fn " sqlite", fn, NULL, NULL, &sqlite_backend},                          \
    {                                                                          \
#        fn " redis", fn, NULL, NULL, &redis_backend                           \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_one_ahead),
        BOTH(test_refused),
        BOTH(test_one_behind),
        BOTH(test_without_record),
        cmocka_unit_test(test_bad_records),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
