/* panel: who must approve a call, and who has. */
#include "mo_test.h"

#include "policy/rule.h"

#define PERSON(n, r)                                                           \
    {                                                                          \
        .name = (n), .role = (r)                                               \
    }

static const char *team[] = {"zoe", "corp:bob", "corp/leads", "shop:*"};
static const char *others[] = {"corp:bob", "corp:carl"};
static const struct mo_config_list team_list = {.v = team, .n = 4};
static const struct mo_config_list other_list = {.v = others, .n = 2};

static void test_identity(void **state)
{
    static const struct {
        const char *text, *name;
        enum mo_role role;
        bool is;
    } rows[] = {
        {"zoe", "zoe", MO_ROLE_USER, true},
        {"zoe", "zoe2", MO_ROLE_USER, false},
        {"zoe", "corp:zoe", MO_ROLE_USER, false},
        {"corp:bob", "corp:bob", MO_ROLE_USER, true},
        {"corp:*", "corp:bob", MO_ROLE_USER, true},
        {"corp:*", "corp2:bob", MO_ROLE_USER, false},
        {"corp:*", "corp", MO_ROLE_USER, false},
        {":*", ":x", MO_ROLE_USER, false},
        {"corp/leads", "corp:bob", MO_ROLE_USER, false}, /* no people */
        {"corp/leads", "corp/leads", MO_ROLE_NONE, false},
        {"*", "anybody", MO_ROLE_VIEWER, true},
        {"*", "anybody", MO_ROLE_NONE, false},
        {"*", "", MO_ROLE_OPERATOR, true},
        {"", "", MO_ROLE_OPERATOR, false},
        {"@user", "ann", MO_ROLE_USER, true},
        {"@user", "ann", MO_ROLE_VIEWER, false},
        {"@user", "", MO_ROLE_OPERATOR, true},
        {"@none", "ann", MO_ROLE_USER, false},
        {"@", "ann", MO_ROLE_USER, false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_identity who = PERSON(rows[i].name, rows[i].role);

        check_row(rows[i].text,
                  mo_identity_is(&who, mo_span_cstr(rows[i].text)) ==
                      rows[i].is);
    }
    assert_int_equal(mo_identity_check(MO_SPAN(""), NULL), MO_EINVAL);
    assert_int_equal(mo_identity_check(MO_SPAN("a\nb"), NULL), MO_EINVAL);
    assert_int_equal(mo_identity_check(MO_SPAN("@boss"), NULL), MO_EINVAL);
    assert_int_equal(mo_identity_check(MO_SPAN("@viewer"), NULL), 0);
    assert_int_equal(mo_identity_check(MO_SPAN("corp/a b"), NULL), 0);
}

static void test_who_counts(void **state)
{
    static const struct mo_panel listed = {{&team_list}, 1, 2, true},
                                 anyone = {{NULL}, 0, 1, true},
                                 own = {{&team_list}, 1, 1, false};
    static const struct {
        const struct mo_panel *panel;
        struct mo_identity who;
        const char *asker;
        bool counts;
    } rows[] = {
        {&listed, PERSON("zoe", MO_ROLE_USER), "ann", true},
        {&listed, PERSON("zoe", MO_ROLE_USER), "zoe", false},
        {&own, PERSON("zoe", MO_ROLE_USER), "zoe", true},
        {&listed, PERSON("ann", MO_ROLE_APPROVER), "bea", false},
        {&listed, PERSON("shop:x", MO_ROLE_USER), "bea", true},
        {&listed, PERSON("", MO_ROLE_OPERATOR), "bea", true},
        {&listed, PERSON("", MO_ROLE_OPERATOR), "", false},
        {&listed, PERSON("olga", MO_ROLE_OPERATOR), "", true},
        {&anyone, PERSON("ann", MO_ROLE_USER), "bea", false},
        {&anyone, PERSON("ann", MO_ROLE_APPROVER), "bea", true},
        {&anyone, PERSON("ann", MO_ROLE_APPROVER), "ann", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span asker = mo_span_cstr(rows[i].asker);
        struct mo_said nobody = {.n = 0};

        check_row(rows[i].who.name,
                  (mo_panel_refuses(rows[i].panel, &nobody, &rows[i].who,
                                    &asker, 1) == NULL) == rows[i].counts);
    }
}

static void test_said(void **state)
{
    const struct mo_panel two = {{&team_list}, 1, 2, true},
                          three = {{&team_list}, 1, 3, true};
    const struct mo_identity zoe = PERSON("zoe", MO_ROLE_USER);
    struct mo_said s = {.n = 0}, back;
    mo_autobuf struct mo_buf b = {.max = 4096};
    struct mo_json_doc doc;
    struct mo_jw w;

    (void)state;
    assert_int_equal(mo_said_missing(&s, &two), 2);
    assert_false(mo_said_add(&s, &two, "zoe"));
    assert_false(mo_said_add(&s, &two, "zoe"));
    assert_int_equal(mo_said_missing(&s, &two), 1);
    assert_non_null(mo_panel_refuses(&two, &s, &zoe, NULL, 0));
    assert_null(mo_panel_refuses(&three, &s, &zoe, NULL, 0));
    w = mo_jw_object(&b);
    mo_said_put(&w, &s);
    mo_jw_end(&w);
    assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL), 0);
    mo_said_read(&back, doc.root);
    assert_memory_equal(&back, &s, sizeof(s));
    assert_true(mo_said_add(&back, &two, "")); /* the operator */
    assert_int_equal(mo_said_missing(&back, &two), 0);
    assert_false(mo_said_add(&back, &three, "carl")); /* another panel */
    assert_int_equal(back.n, 1);
}

static void test_damaged(void **state)
{
    static const char *const docs[] = {
        "{}",
        "{\"approvedBy\":[\"a\"]}",
        "{\"approvedBy\":[\"a\"],\"panel\":7}",
        "{\"approvedBy\":[7],\"panel\":\"7\"}",
        "{\"approvedBy\":\"a\",\"panel\":\"7\"}",
        ("{\"approvedBy\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\"],"
         "\"panel\":\"7\"}"),
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(docs); i++) {
        struct mo_said s = {.n = 3};
        struct mo_json_doc doc;

        assert_int_equal(mo_json_parse(mo_span_cstr(docs[i]), 0, &doc, NULL),
                         0);
        mo_said_read(&s, doc.root);
        check_row(docs[i], s.n == 0);
    }
}

static void test_verdict(void **state)
{
    const struct mo_panel a = {{&team_list}, 1, 1, false},
                          b = {{&other_list}, 1, 2, true};
    struct mo_verdict v = {
        .action = MO_ACTION_ASK, .approver = MO_APPROVER_CLIENT, .panel = a};
    uint64_t digest = mo_panel_digest(&a);
    const struct mo_identity bob = PERSON("corp:bob", MO_ROLE_USER),
                             zoe = PERSON("zoe", MO_ROLE_USER);
    struct mo_panel both = mo_panel_join(&a, &b);

    (void)state;
    for (int by = MO_ANSWERED_NOT; by < MO_ANSWERED_PANEL; by++)
        assert_false(mo_verdict_may_run(&v, (enum mo_answered)by, digest));
    assert_true(mo_verdict_may_run(&v, MO_ANSWERED_PANEL, digest));
    assert_false(mo_verdict_may_run(&v, MO_ANSWERED_PANEL, digest + 1));
    v.panel = (struct mo_panel){.need = 0};
    assert_false(mo_verdict_may_run(&v, MO_ANSWERED_PANEL, digest));
    assert_int_equal(both.need, 2);
    assert_true(both.four_eyes);
    assert_true(mo_panel_has(&both, &bob)); /* in both lists */
    assert_false(mo_panel_has(&both, &zoe));
    assert_true(mo_panel_digest(&both) != mo_panel_digest(&b));
    assert_int_equal(mo_panel_digest(&v.panel), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity), cmocka_unit_test(test_who_counts),
        cmocka_unit_test(test_said),     cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_verdict),
    };

    return cmocka_run_group_tests_name("panel", tests, NULL, NULL);
}
