/* The record of a state's version: what it may look like, and who may use the
 * state that carries it. */
#include "codec/state_version.h"

#include "base/mem.h"
#include "mo_test.h"

#define LONG_NAME "0123456789abcdef0123456789abcdef0123456789"

static void test_read(void **state)
{
    static const struct {
        const char *text;
        int rc;
        unsigned format, reads;
        const char *program;
    } rows[] = {
        {"{\"format\":5,\"reads\":4,\"program\":\"0.2.0\"}", 0, 5, 4, "0.2.0"},
        {" {\"program\":\"1-rc+1\",\"reads\":1,\"format\":1,\"x\":[]}\n", 0, 1,
         1, "1-rc+1"},
        {"{\"format\":5,\"reads\":5}", 0, 5, 5, "unknown"},
        {"{\"format\":5,\"reads\":5,\"program\":\"a\\u001b[0m\"}", 0, 5, 5,
         "unknown"},
        {"{\"format\":5,\"reads\":5,\"program\":\"" LONG_NAME "\"}", 0, 5, 5,
         "unknown"},
        {"", MO_EINVAL, 0, 0, ""},
        {"5", MO_EINVAL, 0, 0, ""},
        {"{\"format\":5}", MO_EINVAL, 0, 0, ""},
        {"{\"format\":\"5\",\"reads\":5}", MO_EINVAL, 0, 0, ""},
        {"{\"format\":5,\"reads\":6}", MO_EINVAL, 0, 0, ""},
        {"{\"format\":0,\"reads\":0}", MO_EINVAL, 0, 0, ""},
        {"{\"format\":-1,\"reads\":-1}", MO_EINVAL, 0, 0, ""},
        {"{\"format\":99999999999,\"reads\":1}", MO_EINVAL, 0, 0, ""},
        {"{\"format\":5,\"reads\":5", MO_EINVAL, 0, 0, ""},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_state_version v;

        assert_int_equal(
            mo_state_version_read(mo_span_cstr(rows[i].text), &v, NULL),
            rows[i].rc);
        if (rows[i].rc < 0)
            continue;
        assert_int_equal(v.format, rows[i].format);
        assert_int_equal(v.reads, rows[i].reads);
        assert_string_equal(v.program, rows[i].program);
    }
}

static void test_judge(void **state)
{
    static const struct {
        unsigned format, reads, ours;
        int rc;
    } rows[] = {
        {5, 5, 5, 0},         {4, 4, 5, 0}, /* is migrated */
        {1, 1, 5, 0},         {6, 5, 5, 0}, /* one newer, and allows us */
        {6, 1, 5, 0},         {6, 6, 5, MO_EINVAL},
        {7, 5, 5, MO_EINVAL}, {7, 7, 5, MO_EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const struct mo_state_version v = {rows[i].format, rows[i].reads,
                                           "0.9.0"};
        struct mo_err e = {0};

        assert_int_equal(
            mo_state_version_judge(&v, rows[i].ours, "the store", &e),
            rows[i].rc);
        if (rows[i].rc == 0)
            continue;
        assert_non_null(strstr(e.msg, "the store: written by version 0.9.0"));
        assert_non_null(strstr(e.msg, "(docs/upgrade.md)"));
    }
}

/* A written version is read again, and fits into the room for it. */
static void test_put(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MO_STATE_RECORD_MAX};
    struct mo_state_version v;

    (void)state;
    mo_state_version_put(&b, 999999, 12);
    assert_int_equal(mo_buf_err(&b), 0);
    assert_int_equal(mo_state_version_read(mo_buf_view(&b), &v, NULL), 0);
    assert_int_equal(v.format, 999999);
    assert_int_equal(v.reads, 12);
    assert_string_equal(v.program, MO_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_judge),
        cmocka_unit_test(test_put),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
