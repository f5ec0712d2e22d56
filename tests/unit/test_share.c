/* share: who may read a conversation. */
#include "mo_test.h"

#include "people/share.h"

#define DOC                                                                    \
    "[{\"with\":\"ann\",\"may\":\"read\"},"                                    \
    "{\"with\":\"@approver\",\"may\":\"approve\"},"                            \
    "{\"with\":\"corp:*\",\"may\":\"read\"}]"

static void test_who(void **state)
{
    static const struct {
        const char *doc, *name;
        enum mo_role role;
        enum mo_share may;
    } rows[] = {
        {DOC, "ann", MO_ROLE_VIEWER, MO_SHARE_READ},
        {DOC, "ann", MO_ROLE_APPROVER, MO_SHARE_APPROVE},
        {DOC, "corp:x", MO_ROLE_USER, MO_SHARE_READ},
        {DOC, "bob", MO_ROLE_USER, MO_SHARE_NONE},
        {DOC, "ann", MO_ROLE_NONE, MO_SHARE_NONE},
        {"", "ann", MO_ROLE_USER, MO_SHARE_NONE},
        {"[", "ann", MO_ROLE_USER, MO_SHARE_NONE},
        {"{}", "ann", MO_ROLE_USER, MO_SHARE_NONE},
        {"[1,null,{}]", "ann", MO_ROLE_USER, MO_SHARE_NONE},
        {"[{\"with\":\"*\",\"may\":\"write\"}]", "ann", MO_ROLE_USER,
         MO_SHARE_NONE},
        {"[{\"with\":7,\"may\":\"read\"}]", "ann", MO_ROLE_USER, MO_SHARE_NONE},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_identity who = {.name = rows[i].name, .role = rows[i].role};

        check_row(rows[i].doc,
                  mo_share_of(mo_span_cstr(rows[i].doc), &who) == rows[i].may);
    }
}

static void test_change(void **state)
{
    struct mo_share_change c = {
        .with = MO_SPAN("ann"), .may = MO_SHARE_APPROVE, .by = "me", .at = 5};
    mo_autobuf struct mo_buf a = {.max = MO_SHARES_BYTES_MAX};
    mo_autobuf struct mo_buf b = {.max = MO_SHARES_BYTES_MAX};
    struct mo_err e;
    char name[16];

    (void)state;
    assert_int_equal(mo_shares_change(MO_SPAN(""), &c, &a, &e), 0);
    assert_string_equal(mo_buf_cstr(&a),
                        "[{\"with\":\"ann\",\"may\":\"approve\",\"at\":5,"
                        "\"by\":\"me\"}]");
    c.may = MO_SHARE_READ; /* changed, not added */
    assert_int_equal(mo_shares_change(mo_buf_view(&a), &c, &b, &e), 0);
    assert_null(strstr(mo_buf_cstr(&b), "approve"));
    c.may = MO_SHARE_NONE;
    mo_buf_reset(&a);
    assert_int_equal(mo_shares_change(mo_buf_view(&b), &c, &a, &e), 0);
    assert_string_equal(mo_buf_cstr(&a), "[]");
    mo_buf_reset(&b);
    assert_int_equal(mo_shares_change(mo_buf_view(&a), &c, &b, &e),
                     MO_ENOTFOUND);
    c.may = MO_SHARE_READ;
    for (int i = 0; i <= MO_SHARES_MAX; i++) {
        (void)snprintf(name, sizeof(name), "p%d", i);
        c.with = mo_span_cstr(name);
        mo_buf_reset(&b);
        assert_int_equal(mo_shares_change(mo_buf_view(&a), &c, &b, &e),
                         i < MO_SHARES_MAX ? 0 : MO_EBUSY);
        mo_buf_reset(&a);
        mo_buf_span(&a, mo_buf_view(&b));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who),
        cmocka_unit_test(test_change),
    };

    return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
