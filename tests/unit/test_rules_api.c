/* The rules API: which rule decides, and why the others do not match. */
#include "policy/rules_api.h"

#include <stdio.h>
#include <unistd.h>

#include "mo_test.h"

static char dir[] = "/tmp/mo-rules-api-XXXXXX";
static char path[64];

static const char config[] =
    "{\"approvals\":{\"default\":\"ask\",\"rules\":["
    "{\"tool\":\"rm\",\"action\":\"deny\",\"reason\":\"never\"},"
    "{\"tool\":\"read\",\"args\":{\"path\":\"docs/**\"},"
    "\"action\":\"allow\"},"
    "{\"server\":\"git\",\"annotations\":[\"readOnlyHint\"],"
    "\"action\":\"allow\"},"
    "{\"tool\":\"pay\",\"action\":\"ask\",\"remember\":false}]},"
    "\"views\":{\"v\":{\"rules\":["
    "{\"server\":\"s\",\"tool\":\"open|rm\",\"action\":\"allow\"},"
    "{\"server\":\"git\",\"action\":\"ask\",\"approver\":\"owner\"},"
    "{\"tool\":\"pay\",\"action\":\"ask\",\"approver\":\"owner\"},"
    "{\"tool\":\"*\",\"action\":\"deny\",\"reason\":\"not here\"}]},"
    "\"plain\":{}}}";

static struct mo_loop *loop;
static struct mo_config_holder holder;

struct fixture {
    struct mo_policy *p;
    struct mo_buf out;
    struct mo_err e;
};

static void open_fixture(struct fixture *k)
{
    *k = (struct fixture){.p = NULL};
    if (mo_policy_open(loop, holder.now, &k->p, &k->e) < 0)
        fail_msg("%s", k->e.msg);
    mo_buf_init(&k->out, 65536);
}

static void close_fixture(struct fixture *k)
{
    mo_policy_close(k->p);
    mo_buf_fini(&k->out);
    (void)unlink(path);
}

static int try_it(struct fixture *k, const char *body)
{
    mo_buf_reset(&k->out);
    return mo_rules_api_try(k->p, mo_span_cstr(body), &k->out, &k->e);
}

static int add(struct fixture *k, const char *body)
{
    mo_buf_reset(&k->out);
    return mo_rules_api_add(k->p, mo_span_cstr(body), "me", &k->out, &k->e);
}

#define DRAFT ",\"draft\":{\"server\":\"s\",\"tool\":\"t\",\"action\":\"allow\""

static void test_try(void **state)
{
    static const struct {
        const char *name, *body, *says;
    } rows[] = {
        {"the default", "{\"server\":\"s\",\"tool\":\"x\"}",
         "{\"action\":\"ask\",\"by\":\"default\","},
        {"an operator's no, with its reason",
         "{\"server\":\"s\",\"tool\":\"rm\",\"args\":{}}",
         "{\"action\":\"deny\",\"by\":\"operator\",\"reason\":\"never\","},
        {"such arguments",
         "{\"server\":\"s\",\"tool\":\"read\",\"args\":{\"path\":\"docs/x\"}}",
         "{\"by\":\"operator\",\"index\":1,\"fits\":true,\"decides\":true}"},
        {"other arguments, and which",
         "{\"server\":\"s\",\"tool\":\"read\",\"args\":{\"path\":\"src/x\"}}",
         "\"index\":1,\"fits\":false,\"misses\":\"args\",\"path\":\"path\","},
        {"a claim",
         "{\"server\":\"git\",\"tool\":\"log\",\"annotations\":"
         "{\"readOnlyHint\":true}}",
         "{\"action\":\"allow\",\"by\":\"operator\""},
        {"no claim", "{\"server\":\"git\",\"tool\":\"log\"}",
         "\"index\":2,\"fits\":false,\"misses\":\"annotations\","},
        {"the person's", "{\"server\":\"s\",\"tool\":\"mine\"}",
         "{\"by\":\"person\",\"index\":0,\"fits\":true,\"decides\":true}"},
        {"not where the operator wants to ask",
         "{\"server\":\"s\",\"tool\":\"pay\"}",
         "{\"action\":\"ask\",\"by\":\"operator\""},
        {"a draft decides", "{\"server\":\"s\",\"tool\":\"t\"" DRAFT "}}",
         "{\"action\":\"allow\",\"by\":\"draft\""},
        {"a draft with a condition",
         "{\"server\":\"s\",\"tool\":\"t\",\"args\":{\"n\":7}" DRAFT
         ",\"args\":{\"n\":\"< 5\"}}}",
         "{\"by\":\"draft\",\"index\":2,\"fits\":false,\"misses\":\"args\""},
        {"a draft's names are names",
         "{\"server\":\"s\",\"tool\":\"tt\",\"draft\":{\"server\":\"*\","
         "\"tool\":\"*\",\"action\":\"deny\"}}",
         "{\"by\":\"draft\",\"index\":2,\"fits\":false,\"misses\":\"server\""},
    };
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"server\":1,\"tool\":\"t\"}",
        "{\"server\":\"s\",\"tool\":\"t\",\"args\":[]}",
        "{\"server\":\"s\",\"tool\":\"t\",\"draft\":{}}",
        "{\"server\":\"s\",\"tool\":\"t\"" DRAFT ",\"args\":{\"n\":\"< x\"}}}",
    };
    struct mo_json_doc doc;
    struct fixture k;

    (void)state;
    open_fixture(&k);
    assert_int_equal(add(&k, "{\"server\":\"s\",\"tool\":\"mine\","
                             "\"action\":\"allow\"}"),
                     0);
    assert_int_equal(add(&k, "{\"server\":\"s\",\"tool\":\"pay\","
                             "\"action\":\"allow\"}"),
                     0);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        check_row(rows[i].name, try_it(&k, rows[i].body) == 0);
        check_row(rows[i].name,
                  mo_json_parse(mo_buf_view(&k.out), 0, &doc, NULL) == 0);
        if (strstr(mo_buf_cstr(&k.out), rows[i].says) == NULL)
            fail_msg("%s: %s", rows[i].name, mo_buf_cstr(&k.out));
    }
    for (size_t i = 0; i < MO_COUNT(wrong); i++)
        check_row(wrong[i], try_it(&k, wrong[i]) < 0 && k.e.msg[0] != '\0');
    assert_int_equal(mo_remembered_rules_all(mo_policy_remembered(k.p))->n, 2);
    close_fixture(&k);
}

static void keep_code(void *ctx, const struct mo_err *why)
{
    *(int *)ctx = why ? why->code : 0;
}

static void test_add(void **state)
{
    static const char *const wrong[] = {
        "x",
        "{\"server\":\"s\",\"tool\":\"t\"}",
        "{\"server\":\"s\",\"tool\":\"t\",\"action\":\"ask\"}",
        "{\"server\":\"\",\"tool\":\"t\",\"action\":\"allow\"}",
        "{\"tool\":\"t\",\"action\":\"allow\"}",
        "{\"server\":\"s\",\"tool\":\"t\",\"action\":\"deny\",\"args\":[]}",
        "{\"server\":\"s\",\"tool\":\"t\",\"action\":\"deny\",\"args\":1}",
    };
    struct fixture k;
    int code = 0;

    (void)state;
    open_fixture(&k);
    for (size_t i = 0; i < MO_COUNT(wrong); i++)
        check_row(wrong[i], add(&k, wrong[i]) < 0);
    assert_int_equal(add(&k, "{\"server\":\"a*\",\"tool\":\"t\",\"action\":"
                             "\"deny\",\"args\":{\"p\":\"= x\"},\"id\":\"i\"}"),
                     0);
    mo_buf_reset(&k.out);
    assert_int_equal(mo_rules_api_list(k.p, &k.out), 0);
    assert_non_null(strstr(mo_buf_cstr(&k.out), "\"args\":{\"p\":\"= x\"}"));
    assert_null(strstr(mo_buf_cstr(&k.out), "\"id\":\"i\""));
    assert_non_null(
        strstr(mo_buf_cstr(&k.out),
               "{\"server\":\"git\",\"tool\":\"\",\"action\":\"allow\","
               "\"annotations\":[\"readOnlyHint\"],\"remember\":true,"
               "\"approver\":\"auto\"}"));
    assert_non_null(strstr(mo_buf_cstr(&k.out), "],\"default\":\"ask\"}"));
    mo_policy_remove_rule(k.p, MO_SPAN("nobody"), keep_code, &code);
    assert_int_equal(code, MO_ENOTFOUND);
    close_fixture(&k);
}

/* The rules of a view tighten the general ones and never relax them. */
static void test_view(void **state)
{
    static const struct {
        const char *name, *server, *tool, *args, *view;
        enum mo_action action;
        bool of_view;
        enum mo_approver approver;
    } rows[] = {
        {"no view", "s", "any", "{}", "", MO_ACTION_ALLOW, false,
         MO_APPROVER_OPERATOR},
        {"view without rules", "s", "any", "{}", "plain", MO_ACTION_ALLOW,
         false, MO_APPROVER_OPERATOR},
        {"unknown view", "s", "any", "{}", "other", MO_ACTION_ALLOW, false,
         MO_APPROVER_OPERATOR},
        {"denied by the view", "s", "any", "{}", "v", MO_ACTION_DENY, true,
         MO_APPROVER_OPERATOR},
        {"allow ends the list", "s", "open", "{}", "v", MO_ACTION_ALLOW, false,
         MO_APPROVER_OPERATOR},
        {"allow does not overrule a general deny", "s", "rm", "{}", "v",
         MO_ACTION_DENY, false, MO_APPROVER_OPERATOR},
        {"the view asks, the rest allows", "git", "x", "{}", "v", MO_ACTION_ASK,
         true, MO_APPROVER_OWNER},
        {"both ask: fewer may answer", "s", "pay", "{}", "v", MO_ACTION_ASK,
         false, MO_APPROVER_OPERATOR},
    };
    struct fixture k;

    (void)state;
    open_fixture(&k);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_verdict v =
            mo_policy_judge(k.p, &(struct mo_policy_call){
                                     .from = MO_POLICY_CLIENT,
                                     .server = mo_span_cstr(rows[i].server),
                                     .tool = mo_span_cstr(rows[i].tool),
                                     .view = mo_span_cstr(rows[i].view),
                                     .args_text = mo_span_cstr(rows[i].args),
                                 });

        check_row(rows[i].name, v.action == rows[i].action);
        check_row(rows[i].name, v.of_view == rows[i].of_view);
        check_row(rows[i].name, v.approver == rows[i].approver);
    }
    assert_true(mo_policy_has_rules(k.p, MO_SPAN("v")));
    close_fixture(&k);
}

static void some_of_it(void *ctx)
{
    struct fixture k = {.p = NULL};

    (void)ctx;
    (void)unlink(path);
    if (mo_policy_open(loop, holder.now, &k.p, &k.e) < 0)
        return;
    mo_buf_init(&k.out, 65536);
    (void)add(&k, "{\"server\":\"s\",\"tool\":\"t\",\"action\":\"deny\"}");
    (void)try_it(&k, "{\"server\":\"\\u0073\",\"tool\":\"t\"" DRAFT "}}");
    (void)mo_rules_api_list(k.p, &k.out);
    mo_policy_close(k.p);
    mo_buf_fini(&k.out);
}

static void test_memory(void **state)
{
    (void)state;
    torture(some_of_it, NULL);
    (void)unlink(path);
}

static int set_up(void **state)
{
    static char where[64], file[64];
    static char *vars[] = {where, NULL};
    const struct mo_config_input in = {.file = file, .environ = vars};
    struct mo_config_report rep;
    struct mo_err e;
    FILE *f;

    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/%s", dir, MO_REMEMBERED_RULES_FILE);
    (void)snprintf(where, sizeof(where), "MCP_ORCHESTRATOR_STATE_DIR=%s", dir);
    (void)snprintf(file, sizeof(file), "%s/config.json", dir);
    f = fopen(file, "w");
    if (f == NULL)
        return -1;
    (void)fputs(config, f);
    (void)fclose(f);
    if (mo_config_open(&holder, &in, &rep, &e) < 0)
        return -1;
    (void)unlink(file);
    loop = mo_loop_new(NULL, &e);
    return loop ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    mo_loop_free(loop);
    mo_config_close(&holder);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_try),
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_view),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
