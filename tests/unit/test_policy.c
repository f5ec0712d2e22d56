/* policy: patterns, conditions, rules and digests. */
#include "mo_test.h"

#include "policy/exact.h"
#include "policy/rule.h"

static struct mo_json parse(const char *text)
{
    struct mo_json_doc doc;
    struct mo_err e;

    if (mo_json_parse(mo_span_cstr(text), 0, &doc, &e) < 0)
        fail_msg("%s: %s", text, e.msg);
    return doc.root;
}

static void test_text(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool fits;
    } rows[] = {
        {"read_file", "read_file", true},
        {"read_file", "read_files", false},
        {"read_*", "read_file", true},
        {"read_*", "read_", true},
        {"*_file", "read_file", true},
        {"*", "", true},
        {"", "", true},
        {"", "a", false},
        {"*", "a/b", false},
        {"**", "a/b", true},
        {"a/*/c", "a/b/c", true},
        {"a/*/c", "a/b/b/c", false},
        {"a/**/c", "a/b/b/c", true},
        {"a/**/c", "a/c", false},
        {"?", "a", true},
        {"?", "", false},
        {"?", "/", false},
        {"?", "\xc3\xa9", true},
        {"??", "\xc3\xa9", false},
        {"a|b", "b", true},
        {"a|b", "a|b", false},
        {"a\\|b", "a|b", true},
        {"a|", "", true},
        {"\\*", "*", true},
        {"\\*", "x", false},
        {"*a*b*", "xxaxxbxx", true},
        {"*a*b*", "xxbxxaxx", false},
        {"A", "a", false},
        {"docs/**", "docs/../x", true},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].pattern, mo_match_text(mo_span_cstr(rows[i].pattern),
                                                 mo_span_cstr(rows[i].text),
                                                 MO_MATCH_ANY) == rows[i].fits);
}

static void test_conditions(void **state)
{
    enum { E = 1, A = 2, EA = 3 }; /* fits when every, any is wanted */
    static const struct {
        const char *args, *path, *cond;
        unsigned fits;
    } rows[] = {
        {"{\"path\":\"docs/a\"}", "path", "docs/*", EA},
        {"{\"path\":\"docs\\/a\"}", "path", "docs/*", EA},
        {"{\"path\":\"\\u0064ocs/a\"}", "path", "docs/*", EA},
        {"{\"path\":\"docs/a/b\"}", "path", "docs/*", 0},
        {"{\"path\":\"docs/a/b\"}", "path", "docs/**", EA},
        {"{\"path\":\"docs/../x\"}", "path", "docs/**", A},
        {"{\"path\":\"docs/..\"}", "path", "docs/*", A},
        {"{\"path\":\"..\"}", "path", "*", A},
        {"{\"path\":\"a/..b\"}", "path", "a/*", EA},
        {"{\"path\":\"a\\\\..\\\\b\"}", "path", "a**", A},
        {"{\"path\":\"docs/../x\"}", "path", "docs/../*", EA},
        {"{\"path\":\"x/../s/y\"}", "path", "! s/**", A},
        {"{\"path\":\"x\"}", "path", "! s/**", EA},
        {"{\"path\":\"s/x\"}", "path", "! s/**", 0},
        {"{\"n\":30}", "n", "<= 30", EA},
        {"{\"n\":30.0}", "n", "<=30", EA},
        {"{\"n\":3e1}", "n", "= 30", EA},
        {"{\"n\":31}", "n", "<= 30", 0},
        {"{\"n\":31}", "n", "> 30", EA},
        {"{\"n\":30}", "n", ">= 30.5", 0},
        {"{\"n\":\"31\"}", "n", "> 30", A}, /* cannot be compared */
        {"{\"n\":\"29\"}", "n", "> 30", A},
        {"{\"n\":\"31\"}", "n", "! > 30", A},
        {"{\"n\":true}", "n", "< 30", A},
        {"{\"n\":null}", "n", "> 30", A},
        {"{\"n\":{\"x\":1}}", "n", "> 30", A},
        {"{\"n\":[31]}", "n", "> 30", A},
        {"{\"n\":[29]}", "n", "> 30", 0},
        {"{}", "n", "> 30", A},
        {"{}", "n", "! > 30", A},
        {"{\"n\":1e2}", "n", "100", EA},
        {"{\"n\":100.0}", "n", "100", EA},
        {"{\"n\":1e2}", "n", "10*", A},
        {"{\"n\":100}", "n", "10*", EA},
        {"{\"n\":200}", "n", "10*", 0},
        {"{\"n\":9007199254740993}", "n", "> 9007199254740992", EA},
        {"{\"b\":true}", "b", "true", EA},
        {"{\"b\":true}", "b", "= true", EA},
        {"{\"b\":null}", "b", "= null", EA},
        {"{\"b\":\"a*\"}", "b", "= a*", EA},
        {"{\"b\":\"ab\"}", "b", "= a*", 0},
        {"{}", "b", "absent", EA},
        {"{\"b\":1}", "b", "absent", 0},
        {"{\"b\":null}", "b", "absent", A}, /* null may mean either */
        {"{\"b\":null}", "b", "! absent", A},
        {"{\"b\":1}", "b", "! absent", EA},
        {"{}", "b", "! absent", 0},
        {"{\"b\":null}", "b", "x*", A},
        {"{\"b\":null}", "b", "! x*", A},
        {"{\"b\":null}", "b", "! null", 0},
        {"{}", "b", "*", A},
        {"{}", "b", "! x", A},
        {"{}", "b", "x", A},
        {"{\"a\":{\"b\":\"x\"}}", "a.b", "x", EA},
        {"{\"a.b\":\"x\"}", "a\\.b", "x", EA},
        {"{\"a.b\":\"x\"}", "a.b", "x", A},
        {"{\"a\":\"x\"}", "a.b", "y", A},
        {"{\"a\":[\"x\"]}", "a.b", "y", A},
        {"{\"a\":{\"b\":\"x\"}}", "a.b", "y", 0},
        {"{\"v\":[\"x\",\"y\"]}", "v.*", "x", A},
        {"{\"v\":[\"x\",\"x\"]}", "v.*", "x", EA},
        {"{\"v\":[]}", "v.*", "x", 0},
        {"{\"v\":[{\"p\":\"x\"},{\"p\":\"y\"}]}", "v.*.p", "y", A},
        {"{\"v\":\"x\"}", "v.*", "y", A},
        {"{\"v\":[\"x\"]}", "v", "*", A}, /* every value in it counts */
        {"{\"v\":[\"x\"]}", "v", "! a", A},
        {"{\"v\":[\"secret.txt\"]}", "v", "secret*", A},
        {"{\"v\":[\"a\",[{\"p\":\"secret.txt\"}]]}", "v", "secret*", A},
        {"{\"v\":{\"secret.txt\":1}}", "v", "secret*", A},
        {"{\"v\":[\"ok.txt\"]}", "v", "secret*", 0},
        {"{\"v\":{\"p\":\"ok.txt\"}}", "v", "secret*", 0},
        {"{\"v\":[]}", "v", "secret*", A},
        {"{\"p\":\"a\",\"p\":\"b\"}", "p", "b", EA},
        {"{\"p\":\"a\",\"p\":\"b\"}", "p", "a", 0},
        {"[1]", "p", "a", A},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_json args = parse(rows[i].args);
        struct mo_span path = mo_span_cstr(rows[i].path);
        struct mo_span cond = mo_span_cstr(rows[i].cond);
        unsigned fits = 0;

        check_row(rows[i].cond, mo_match_check(path, cond, NULL) == 0);
        fits |= mo_match_args(args, path, cond, MO_MATCH_EVERY) ? E : 0;
        fits |= mo_match_args(args, path, cond, MO_MATCH_ANY) ? A : 0;
        if (fits != rows[i].fits)
            fail_msg("%s %s %s: %u", rows[i].args, rows[i].path, rows[i].cond,
                     fits);
    }
}

static void test_written_wrong(void **state)
{
    static const struct {
        const char *path, *cond;
    } rows[] = {
        {"", "x"},  {"a..b", "x"}, {"a.", "x"},  {"a\\", "x"}, {"a", ""},
        {"a", "<"}, {"a", "> x"},  {"a", "x\\"}, {"a", "! "},  {"a", "!<= z"},
    };
    struct mo_err e;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].cond,
                  mo_match_check(mo_span_cstr(rows[i].path),
                                 mo_span_cstr(rows[i].cond), &e) == MO_EINVAL);
}

/* Stars that would take for ever: given up, and then on the safe side. */
static void test_work_is_bounded(void **state)
{
    static const char pattern[] = "**a**a**a**a**a**a**a**a**a**b";
    char text[4096], args[4200];

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_false(mo_match_text(mo_span_cstr(pattern), mo_span_cstr(text),
                               MO_MATCH_EVERY));
    assert_true(
        mo_match_text(mo_span_cstr(pattern), mo_span_cstr(text), MO_MATCH_ANY));
    snprintf(args, sizeof(args), "{\"p\":\"%s\"}", text);
    assert_false(mo_match_args(parse(args), MO_SPAN("p"), mo_span_cstr(pattern),
                               MO_MATCH_EVERY));
    assert_true(mo_match_args(parse(args), MO_SPAN("p"), mo_span_cstr(pattern),
                              MO_MATCH_ANY));
}

/* --- rules --------------------------------------------------------------- */

static const struct mo_rule_arg in_docs = {MO_SPAN("path"), MO_SPAN("docs/**")};
static const struct mo_rule_arg in_home = {MO_SPAN("path"), MO_SPAN("home/**")};

#define TOOL(name) .tool = {name, sizeof(name) - 1}

static const struct mo_rule operator_rules[] = {
    {TOOL("rm_*"), .action = MO_ACTION_DENY},
    {TOOL("write"), .args = &in_home, .nargs = 1, .action = MO_ACTION_DENY},
    {TOOL("read"), .args = &in_docs, .nargs = 1, .action = MO_ACTION_ALLOW},
    {TOOL("run"), .action = MO_ACTION_ASK, .final = true},
    {TOOL("write"), .action = MO_ACTION_ASK},
    {TOOL("look"), .claims = MO_CLAIM_READ_ONLY, .action = MO_ACTION_ALLOW},
    {.server = {"far", 3},
     .denials = MO_CLAIM_DESTRUCTIVE,
     .action = MO_ACTION_ALLOW},
};
static const struct mo_rule person_rules[] = {
    {TOOL("rm_all"), .action = MO_ACTION_ALLOW},
    {TOOL("run"), .action = MO_ACTION_ALLOW},
    {TOOL("write"), .action = MO_ACTION_ALLOW},
    {TOOL("mine"), .action = MO_ACTION_DENY},
};

static void test_rules(void **state)
{
    static const struct {
        const char *server, *tool, *args;
        unsigned claims;
        enum mo_action fallback, action;
        bool remembered;
    } rows[] = {
        {"s", "rm_all", "{}", 0, MO_ACTION_ASK, MO_ACTION_DENY, false},
        {"s", "read", "{\"path\":\"docs/a\"}", 0, MO_ACTION_ASK,
         MO_ACTION_ALLOW, false},
        {"s", "read", "{\"path\":\"docs/../a\"}", 0, MO_ACTION_ASK,
         MO_ACTION_ASK, false},
        {"s", "read", "{}", 0, MO_ACTION_ASK, MO_ACTION_ASK, false},
        {"s", "run", "{}", 0, MO_ACTION_ALLOW, MO_ACTION_ASK, false},
        {"s", "write", "{\"path\":\"x\"}", 0, MO_ACTION_ASK, MO_ACTION_ALLOW,
         true},
        {"s", "write", "{\"path\":\"home/x\"}", 0, MO_ACTION_ASK,
         MO_ACTION_DENY, false},
        {"s", "write", "{\"path\":\"home/../x\"}", 0, MO_ACTION_ASK,
         MO_ACTION_DENY, false},
        {"s", "look", "{}", MO_CLAIM_READ_ONLY, MO_ACTION_ASK, MO_ACTION_ALLOW,
         false},
        {"s", "look", "{}", 0, MO_ACTION_ASK, MO_ACTION_ASK, false},
        {"far", "x", "{}", 0, MO_ACTION_ASK, MO_ACTION_ALLOW, false},
        {"far", "x", "{}", MO_CLAIM_DESTRUCTIVE, MO_ACTION_ASK, MO_ACTION_ASK,
         false},
        {"s", "mine", "{}", 0, MO_ACTION_ALLOW, MO_ACTION_DENY, true},
        {"s", "mine", "{}", 0, MO_ACTION_DENY, MO_ACTION_DENY, false},
        {"s", "other", "{}", 0, MO_ACTION_ALLOW, MO_ACTION_ALLOW, false},
        {"s", "other", "{}", 0, MO_ACTION_DENY, MO_ACTION_DENY, false},
    };
    const struct mo_rules ops = {operator_rules, MO_COUNT(operator_rules)};
    const struct mo_rules people = {person_rules, MO_COUNT(person_rules)};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_subject s = {.server = mo_span_cstr(rows[i].server),
                               .tool = mo_span_cstr(rows[i].tool),
                               .args = parse(rows[i].args),
                               .claims = rows[i].claims};
        const struct mo_rules *persons[] = {NULL, &people};
        struct mo_verdict v = mo_rules_judge(&ops, persons, MO_COUNT(persons),
                                             rows[i].fallback, &s);

        if (v.action != rows[i].action || v.remembered != rows[i].remembered)
            fail_msg("row %zu (%s): %d", i, rows[i].tool, (int)v.action);
    }
}

/* A missing argument cannot be read, unless the tool has no such argument. */
static void test_missing(void **state)
{
    static const struct mo_rule_arg limit = {MO_SPAN("limit"), MO_SPAN("> 50")};
    static const struct mo_rule_arg none = {MO_SPAN("limit"),
                                            MO_SPAN("absent")};
    static const struct {
        const struct mo_rule_arg *arg;
        const char *schema;
        bool deny, allow; /* fits */
    } rows[] = {
        {&limit, NULL, true, false},
        {&limit, "{}", true, false},
        {&limit, "{\"properties\":{\"limit\":{}}}", true, false},
        {&limit, "{\"properties\":{\"path\":{}}}", false, false},
        {&limit, "{\"properties\":{\"path\":{}},\"allOf\":[]}", true, false},
        {&none, "{\"properties\":{\"path\":{}}}", true, true},
        {&none, "{\"properties\":{\"limit\":{}}}", true, true},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_rule r = {
            .args = rows[i].arg, .nargs = 1, .action = MO_ACTION_DENY};
        struct mo_subject s = {.args = parse("{}")};

        if (rows[i].schema)
            s.schema = parse(rows[i].schema);
        check_row("deny", (mo_rule_misses(&r, &s, NULL) == MO_RULE_FITS) ==
                              rows[i].deny);
        r.action = MO_ACTION_ALLOW;
        check_row("allow", (mo_rule_misses(&r, &s, NULL) == MO_RULE_FITS) ==
                               rows[i].allow);
    }
}

/* Who may answer where a rule asks. */
static void test_approver(void **state)
{
    static const struct mo_rule asks = {TOOL("run"), .action = MO_ACTION_ASK,
                                        .approver = MO_APPROVER_OPERATOR};
    static const struct mo_rule allows = {TOOL("run"),
                                          .action = MO_ACTION_ALLOW};
    const struct mo_rules ops = {&asks, 1, false};
    struct mo_rules people = {&allows, 1, true};
    const struct mo_rules *persons[] = {&people};
    struct mo_subject s = {.tool = MO_SPAN("run"), .args = parse("{}")};
    struct mo_verdict v = mo_rules_judge(&ops, persons, 1, MO_ACTION_ALLOW, &s);

    (void)state;
    assert_int_equal(v.action, MO_ACTION_ASK); /* a session's rule is not his */
    assert_int_equal(v.approver, MO_APPROVER_OPERATOR);
    assert_false(mo_verdict_may_run(&v, MO_ANSWERED_NOT, 0));
    assert_false(mo_verdict_may_run(&v, MO_ANSWERED_CLIENT, 0));
    assert_false(mo_verdict_may_run(&v, MO_ANSWERED_OWNER, 0));
    assert_true(mo_verdict_may_run(&v, MO_ANSWERED_OPERATOR, 0));
    v.approver = MO_APPROVER_OWNER;
    assert_false(mo_verdict_may_run(&v, MO_ANSWERED_CLIENT, 0));
    assert_true(mo_verdict_may_run(&v, MO_ANSWERED_OWNER, 0));
    v.approver = MO_APPROVER_CLIENT;
    assert_true(mo_verdict_may_run(&v, MO_ANSWERED_CLIENT, 0));
    v.action = MO_ACTION_DENY;
    assert_false(mo_verdict_may_run(&v, MO_ANSWERED_OPERATOR, 0));
    people.of_session = false; /* a remembered rule is the operator's */
    v = mo_rules_judge(&ops, persons, 1, MO_ACTION_ALLOW, &s);
    assert_int_equal(v.action, MO_ACTION_ALLOW);
}

static void test_claims(void **state)
{
    const unsigned unsaid = MO_CLAIM_DESTRUCTIVE | MO_CLAIM_OPEN_WORLD;

    (void)state;
    assert_int_equal(mo_claims_of((struct mo_json){NULL, 0}), unsaid);
    assert_int_equal(mo_claims_of(parse("{}")), unsaid);
    assert_int_equal(mo_claims_of(parse("{\"readOnlyHint\":\"yes\"}")), unsaid);
    assert_int_equal(
        mo_claims_of(parse("{\"readOnlyHint\":true,\"openWorldHint\":false}")),
        MO_CLAIM_READ_ONLY);
}

static void test_rule_check(void **state)
{
    static const struct mo_rule_arg bad = {MO_SPAN("a..b"), MO_SPAN("x")};
    struct mo_rule r = {.args = &bad, .nargs = 1};
    struct mo_err e;

    (void)state;
    assert_int_equal(mo_rule_check(&r, &e), MO_EINVAL);
    assert_non_null(strstr(e.msg, "args.a..b"));
    r = (struct mo_rule){.claims = 1, .denials = 1};
    assert_int_equal(mo_rule_check(&r, &e), MO_EINVAL);
    r.denials = 2;
    assert_int_equal(mo_rule_check(&r, &e), 0);
}

/* --- exact bytes --------------------------------------------------------- */

static void test_args(void **state)
{
    static const struct {
        const char *in, *out;
        int rc;
    } rows[] = {
        {"{ \"b\" : 1.0 , \"a\":[ ] }", "{\"b\":1.0,\"a\":[]}", 0},
        {"null", "{}", 0},
        {"{}", "{}", 0},
        {"[]", NULL, MO_EPROTO},
        {"\"x\"", NULL, MO_EPROTO},
        {"{\"a\":1,\"a\":2}", NULL, MO_EPROTO},
        {"{\"a\":1,\"\\u0061\":2}", NULL, MO_EPROTO},
        {"{\"a\":\"\\ud83d\\ude00\"}", "{\"a\":\"\\ud83d\\ude00\"}", 0},
        {"{\"a\":\"\\ud800\"}", NULL, MO_EPROTO},
        {"{\"a\":\"\\udc00\\ud800\"}", NULL, MO_EPROTO},
        {"{\"a\":\"\\ud800\\ud800\\udc00\"}", NULL, MO_EPROTO},
        {"{\"a\":\"\\uDBFFx\"}", NULL, MO_EPROTO},
        {"{\"\\udfff\":1}", NULL, MO_EPROTO},
        {"{\"a\":\"\\\\ud800\"}", "{\"a\":\"\\\\ud800\"}", 0},
        {"{\"a\":[[\"\\ud800\"]]}", NULL, MO_EPROTO},
        {"{\"x\":[{\"a\":1,\"b\":0,\"a\":1}]}", NULL, MO_EPROTO},
        {"{\"a\":{\"a\":1},\"b\":{\"a\":1}}",
         "{\"a\":{\"a\":1},\"b\":{\"a\":1}}", 0},
    };
    struct mo_buf b;
    struct mo_err e;

    (void)state;
    mo_buf_init(&b, MO_EXACT_MAX);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_buf_reset(&b);
        check_row(rows[i].in,
                  mo_exact_args(parse(rows[i].in), &b, &e) == rows[i].rc);
        if (rows[i].out)
            assert_string_equal(mo_buf_cstr(&b), rows[i].out);
    }
    mo_buf_reset(&b);
    assert_int_equal(mo_exact_args((struct mo_json){NULL, 0}, &b, &e), 0);
    assert_string_equal(mo_buf_cstr(&b), "{}");
    mo_buf_fini(&b);
}

static void write_args(void *ctx)
{
    struct mo_buf b;

    (void)ctx;
    mo_buf_init(&b, MO_EXACT_MAX);
    (void)mo_exact_args(parse("{\"a\":[1,2,3]}"), &b, NULL);
    mo_buf_fini(&b);
}

/* Every part counts, and none can lend bytes to its neighbour. */
static void test_digests(void **state)
{
    struct mo_exact_call c[8];
    char sum[8][MO_EXACT_DIGEST];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(c); i++)
        c[i] = (struct mo_exact_call){MO_SPAN("s"), MO_SPAN("c"),  MO_SPAN("v"),
                                      MO_SPAN("t"), MO_SPAN("{}"), "d"};
    c[1].session = MO_SPAN("s2");
    c[2].call = MO_SPAN("c2");
    c[3].server = MO_SPAN("v2");
    c[4].tool = MO_SPAN("t2");
    c[5].args = MO_SPAN("{\"a\":1}");
    c[6].tool_digest = "d2";
    c[7].session = MO_SPAN("sc");
    c[7].call = MO_SPAN("");
    for (size_t i = 0; i < MO_COUNT(c); i++) {
        mo_exact_call(&c[i], sum[i]);
        assert_int_equal(strlen(sum[i]), 64);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(sum[i], sum[j]);
    }
    torture(write_args, NULL);
}

static void test_tool_digest(void **state)
{
    struct mo_tool_def a = {MO_SPAN("s"), MO_SPAN("n"), MO_SPAN("d"),
                            MO_SPAN("{}"), MO_SPAN("")};
    struct mo_tool_def b = a;
    char x[MO_EXACT_DIGEST], y[MO_EXACT_DIGEST];

    (void)state;
    mo_exact_tool(&a, x);
    mo_exact_tool(&b, y);
    assert_string_equal(x, y);
    b.description = MO_SPAN("d ");
    mo_exact_tool(&b, y);
    assert_string_not_equal(x, y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_written_wrong),
        cmocka_unit_test(test_work_is_bounded),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_approver),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_rule_check),
        cmocka_unit_test(test_args),
        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_tool_digest),
    };

    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
