/* The rules as a person works with them: which decides, and why not the
 * others. */
#include "policy/rules_api.h"

#include <stdio.h>
#include <unistd.h>

#include "mo_test.h"

static char dir[] = "/tmp/mo-desk-XXXXXX";
static char path[64];

static const struct mo_rule_arg under_docs = {{"path", 4}, {"docs/**", 7}};

static const struct mo_rule operators[] = {
    {.tool = {"rm", 2}, .action = MO_ACTION_DENY, .reason = {"never", 5}},
    {.tool = {"read", 4},
     .args = &under_docs,
     .nargs = 1,
     .action = MO_ACTION_ALLOW},
    {.server = {"git", 3},
     .claims = MO_CLAIM_READ_ONLY,
     .action = MO_ACTION_ALLOW},
    {.tool = {"pay", 3}, .action = MO_ACTION_ASK, .final = true},
};
static const struct mo_rules all = {operators, MO_COUNT(operators)};

struct desk {
    struct mo_rules_api d;
    struct mo_api_rules api;
    struct mo_buf out;
    struct mo_err e;
};

static void open_desk(struct desk *k)
{
    *k = (struct desk){
        .d = {.operators = &all, .fallback = MO_ACTION_ASK, .always = NULL}};
    if (mo_remembered_rules_open(dir, &k->d.always, &k->e) < 0)
        fail_msg("%s", k->e.msg);
    k->api = mo_rules_api_api(&k->d);
    mo_buf_init(&k->out, 65536);
}

static void close_desk(struct desk *k)
{
    mo_remembered_rules_close(k->d.always);
    mo_buf_fini(&k->out);
    (void)unlink(path);
}

static int try_it(struct desk *k, const char *body)
{
    mo_buf_reset(&k->out);
    return k->api.try(k->api.ctx, mo_span_cstr(body), &k->out, &k->e);
}

static int add(struct desk *k, const char *body)
{
    mo_buf_reset(&k->out);
    return k->api.add(k->api.ctx, mo_span_cstr(body), "me", &k->out, &k->e);
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
    struct desk k;

    (void)state;
    open_desk(&k);
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
    assert_int_equal(mo_remembered_rules_all(k.d.always)->n, 2);
    close_desk(&k);
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
    struct desk k;

    (void)state;
    open_desk(&k);
    for (size_t i = 0; i < MO_COUNT(wrong); i++)
        check_row(wrong[i], add(&k, wrong[i]) < 0);
    assert_int_equal(add(&k, "{\"server\":\"a*\",\"tool\":\"t\",\"action\":"
                             "\"deny\",\"args\":{\"p\":\"= x\"},\"id\":\"i\"}"),
                     0);
    mo_buf_reset(&k.out);
    assert_int_equal(k.api.list(k.api.ctx, &k.out), 0);
    assert_non_null(strstr(mo_buf_cstr(&k.out), "\"args\":{\"p\":\"= x\"}"));
    assert_null(strstr(mo_buf_cstr(&k.out), "\"id\":\"i\""));
    assert_non_null(
        strstr(mo_buf_cstr(&k.out),
               "{\"server\":\"git\",\"tool\":\"\",\"action\":\"allow\","
               "\"annotations\":[\"readOnlyHint\"],\"remember\":true}"));
    assert_non_null(strstr(mo_buf_cstr(&k.out), "],\"default\":\"ask\"}"));
    assert_int_equal(k.api.remove(k.api.ctx, MO_SPAN("nobody"), &k.e),
                     MO_ENOTFOUND);
    close_desk(&k);
}

static void some_of_it(void *ctx)
{
    struct desk k = {.d = {.operators = &all}};

    (void)ctx;
    (void)unlink(path);
    if (mo_remembered_rules_open(dir, &k.d.always, &k.e) < 0)
        return;
    k.api = mo_rules_api_api(&k.d);
    mo_buf_init(&k.out, 65536);
    (void)add(&k, "{\"server\":\"s\",\"tool\":\"t\",\"action\":\"deny\"}");
    (void)try_it(&k, "{\"server\":\"\\u0073\",\"tool\":\"t\"" DRAFT "}}");
    (void)k.api.list(k.api.ctx, &k.out);
    mo_remembered_rules_close(k.d.always);
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
    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/%s", dir, MO_REMEMBERED_RULES_FILE);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_try),
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
