#include "mo_test.h"

#include "codec/kept_files.h"

static const struct mo_kept samples[] = {
    {.kind = MO_KEPT_FOLDER, .name = {"a name", 6}, .mode = 0700, .time = 7},
    {.kind = MO_KEPT_FILE, .name = {"f", 1}, .mode = 0644, .size = 1 << 20},
    {.kind = MO_KEPT_DATA, .at = 4096, .size = 1},
    {.kind = MO_KEPT_SYMLINK, .name = {"s", 1}, .to = {"/etc", 4}, .time = 9},
    {.kind = MO_KEPT_LINK, .name = {"l", 1}, .to = {"a name/f", 8}},
    {.kind = MO_KEPT_PIPE, .name = {"p", 1}, .mode = 0600, .time = 1},
    {.kind = MO_KEPT_LEAVE},
    {.kind = MO_KEPT_END},
};

static void put_all(struct mo_buf *b)
{
    const struct mo_kept_head h = {.store = MO_SPAN("st"),
                                   .session = MO_SPAN("s"),
                                   .instance = MO_SPAN(""),
                                   .bytes = 4096,
                                   .inodes = 3};

    mo_buf_init(b, MO_KEPT_HEAD + MO_COUNT(samples) * MO_KEPT_RECORD);
    mo_kept_put_head(b, &h);
    for (size_t i = 0; i < MO_COUNT(samples); i++)
        mo_kept_put(b, &samples[i]);
    assert_int_equal(mo_buf_err(b), 0);
}

/* Number of heads and records that are complete in the first n bytes. */
static size_t take_all(struct mo_span in)
{
    struct mo_kept_head h;
    struct mo_kept k;
    size_t n = 0;
    int rc = mo_kept_take_head(&in, &h, NULL);

    for (; rc == 1; n++) {
        if (n > 0) {
            assert_int_equal(k.kind, samples[n - 1].kind);
            assert_true(mo_span_eq(k.name, samples[n - 1].name));
            assert_true(mo_span_eq(k.to, samples[n - 1].to));
            assert_int_equal(k.mode, samples[n - 1].mode);
            assert_int_equal(k.time, samples[n - 1].time);
            assert_int_equal(k.at, samples[n - 1].at);
            assert_int_equal(k.size, samples[n - 1].size);
        }
        rc = mo_kept_take(&in, &k, NULL);
    }
    assert_int_equal(rc, 0);
    return n;
}

static void test_round_trip(void **state)
{
    struct mo_buf b;
    size_t last = 0;

    (void)state;
    put_all(&b);
    for (size_t cut = 0; cut <= b.len; cut++) {
        size_t n = take_all(mo_span(b.p, cut));

        assert_true(n >= last);
        last = n;
    }
    assert_int_equal(last, MO_COUNT(samples) + 1);
    mo_buf_fini(&b);
}

static void test_refused(void **state)
{
    static const struct {
        const char *what;
        struct mo_kept k;
    } rows[] = {
        {"no name", {.kind = MO_KEPT_FILE}},
        {"here", {.kind = MO_KEPT_FOLDER, .name = {".", 1}}},
        {"above", {.kind = MO_KEPT_FOLDER, .name = {"..", 2}}},
        {"a path", {.kind = MO_KEPT_FILE, .name = {"a/b", 3}}},
        {"a NUL", {.kind = MO_KEPT_FILE, .name = {"a\0b", 3}}},
        {"setuid", {.kind = MO_KEPT_FILE, .name = {"a", 1}, .mode = 04755}},
        {"a link to nothing", {.kind = MO_KEPT_LINK, .name = {"a", 1}}},
        {"no data", {.kind = MO_KEPT_DATA}},
        {"much data", {.kind = MO_KEPT_DATA, .size = MO_KEPT_DATA_MAX + 1}},
        {"beyond the end", {.kind = MO_KEPT_DATA, .at = INT64_MAX, .size = 1}},
        {"size", {.kind = MO_KEPT_FILE, .name = {"a", 1}, .size = UINT64_MAX}},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf b;
        struct mo_span in;
        struct mo_kept k;

        mo_buf_init(&b, MO_KEPT_RECORD);
        mo_kept_put(&b, &rows[i].k);
        in = mo_buf_view(&b);
        if (mo_kept_take(&in, &k, NULL) != MO_EPROTO)
            fail_msg("%s was accepted", rows[i].what);
        mo_buf_fini(&b);
    }
}

static void test_other_bytes(void **state)
{
    struct mo_span in = MO_SPAN("MOFILES2 and more of it, long enough");
    struct mo_kept_head h;
    struct mo_kept k;

    (void)state;
    assert_int_equal(mo_kept_take_head(&in, &h, NULL), MO_EPROTO);
    in = MO_SPAN("\0");
    assert_int_equal(mo_kept_take(&in, &k, NULL), MO_EPROTO);
    in = MO_SPAN("\x09");
    assert_int_equal(mo_kept_take(&in, &k, NULL), MO_EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_other_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
