/* Connections of boxes that a person decides about: the rules, who decides,
 * answers that last, limits, and every way in which a question ends. The relay
 * is played by the test. */
#include "policy/connections.h"

#include <stdio.h>
#include <stdlib.h>

#include "codec/json/json.h"
#include "mo_test.h"

#define ASKS_MAX 64

static char dir[] = "/tmp/mo-connections-XXXXXX";

/* --- the relay ----------------------------------------------------------- */

struct mo_egress_ask {
    void *data;
    int answer; /* -1: none yet */
    char reason[120];
};

void mo_egress_ask_set(struct mo_egress_ask *a, void *data)
{
    a->data = data;
}

void *mo_egress_ask_data(const struct mo_egress_ask *a)
{
    return a->data;
}

void mo_egress_answer_ask(struct mo_egress_ask *a, bool allowed,
                          const char *reason)
{
    assert_int_equal(a->answer, -1);
    a->answer = allowed;
    (void)snprintf(a->reason, sizeof(a->reason), "%s", reason);
}

/* --- a place ------------------------------------------------------------- */

struct place {
    struct mo_loop *l;
    struct mo_config_holder h;
    struct mo_approvals *d;
    char id[64], digest[80]; /* of the last question */
    unsigned asked, resolved;
    char by[16];
};

static void load(struct place *p, const char *text)
{
    static char state[64], file[64];
    static char *environ[] = {state, NULL};
    struct mo_config_input in = {.file = file, .environ = environ};
    struct mo_config_report rep;
    struct mo_err e;
    FILE *f;

    (void)snprintf(state, sizeof(state), "MCP_ORCHESTRATOR_STATE_DIR=%s", dir);
    (void)snprintf(file, sizeof(file), "%s/config.json", dir);
    f = fopen(file, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
    if (mo_config_open(&p->h, &in, &rep, &e) < 0)
        fail_msg("%s", e.msg);
}

static void on_asked(void *ctx, const char *session, struct mo_span json)
{
    struct place *p = ctx;
    struct mo_json v = {json.p, json.n};

    assert_string_equal(session, "s1");
    p->asked++;
    assert_int_equal(
        mo_json_str_copy(mo_json_get(v, "id"), p->id, sizeof(p->id)), 0);
    assert_int_equal(mo_json_str_copy(mo_json_get(v, "digest"), p->digest,
                                      sizeof(p->digest)),
                     0);
}

static void on_resolved(void *ctx, const char *session, const char *id,
                        bool approved, const char *by)
{
    struct place *p = ctx;

    (void)session;
    (void)id;
    (void)approved;
    p->resolved++;
    (void)snprintf(p->by, sizeof(p->by), "%s", by);
}

static void enter(struct place *p, const char *config)
{
    struct mo_err e;

    *p = (struct place){.l = mo_loop_new(NULL, &e)};
    load(p, config);
    if (mo_approvals_open(p->l, p->h.now, &p->d, &e) < 0)
        fail_msg("%s", e.msg);
    mo_connections_watch(
        p->d, &(struct mo_connections_watch){on_asked, on_resolved, p});
}

static void on_gone(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_true(void *ctx)
{
    return *(bool *)ctx;
}

static void leave(struct place *p)
{
    bool gone = false;

    mo_approvals_close(p->d, on_gone, &gone);
    assert_true(mo_loop_until(p->l, is_true, &gone, 10000));
    mo_config_close(&p->h);
    mo_loop_run(p->l);
    mo_loop_free(p->l);
}

static const struct mo_connection_from session = {
    .session = "s1", .owner = "ann", .box = "b1"};
static const struct mo_connection_from server = {.server = "web", .box = "b2"};

static struct mo_egress_question to(const char *host)
{
    return (struct mo_egress_question){
        .host = host, .port = 443, .request = ""};
}

static enum mo_egress_say
judge(struct place *p, const struct mo_connection_from *from, const char *host)
{
    struct mo_egress_question q = to(host);

    return mo_connections_judge(p->d, from, &q);
}

static void ask(struct place *p, const struct mo_connection_from *from,
                struct mo_egress_ask *a, const char *host)
{
    struct mo_egress_question q = to(host);

    *a = (struct mo_egress_ask){.answer = -1};
    mo_connections_ask(p->d, from, a, &q);
}

static bool is_answered(void *ctx)
{
    return ((struct mo_egress_ask *)ctx)->answer >= 0;
}

static int answer(struct place *p, struct mo_egress_ask *a)
{
    assert_true(mo_loop_until(p->l, is_answered, a, 10000));
    return a->answer;
}

/* A decision about the last question. */
static int decide(struct place *p, bool yes, const char *caller,
                  enum mo_remember remember)
{
    struct mo_span digest = mo_span_cstr(p->digest);
    struct mo_approval_decision x = {.id = mo_span_cstr(p->id),
                                     .digest = &digest,
                                     .approved = yes,
                                     .remember = remember,
                                     .who = "test",
                                     .caller = caller,
                                     .door = "page"};
    struct mo_err e;

    return mo_approvals_decide(p->d, &x, &e);
}

/* The only pending one becomes the last question. */
static void find_pending(struct place *p)
{
    struct mo_buf b = {.max = 65536};
    struct mo_json_doc doc;
    struct mo_json v;

    assert_int_equal(
        mo_approvals_list(
            p->d, &(struct mo_identity){.name = "", .role = MO_ROLE_OPERATOR},
            &b),
        0);
    assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL), 0);
    v = mo_json_at(mo_json_get(doc.root, "approvals"), 0);
    assert_int_equal(
        mo_json_str_copy(mo_json_get(v, "id"), p->id, sizeof(p->id)), 0);
    assert_int_equal(mo_json_str_copy(mo_json_get(v, "digest"), p->digest,
                                      sizeof(p->digest)),
                     0);
    mo_buf_fini(&b);
}

/* --- cases --------------------------------------------------------------- */

/* A rule that allows all tools of the box allows no connection. */
static const char rules[] =
    "{\"approvals\":{\"default\":\"allow\",\"rules\":["
    "{\"tool\":\"network:connect\",\"args\":{\"host\":\"ok.test\"},"
    "\"action\":\"allow\"},"
    "{\"tool\":\"network:connect\",\"args\":{\"host\":\"bad.test\"},"
    "\"action\":\"deny\"},"
    "{\"tool\":\"network:connect\",\"args\":{\"host\":\"op.test\"},"
    "\"action\":\"ask\",\"approver\":\"operator\"},"
    "{\"tool\":\"network:connect\",\"args\":{\"host\":\"each.test\"},"
    "\"action\":\"ask\",\"remember\":false},"
    "{\"tool\":\"**\",\"args\":{\"path\":\"secret*\"},\"action\":\"deny\"},"
    "{\"server\":\"box|web\",\"action\":\"allow\"}]}}";

static void test_rules(void **state)
{
    struct place p;
    struct mo_verdict v;

    (void)state;
    enter(&p, rules);
    assert_int_equal(judge(&p, &session, "ok.test"), MO_EGRESS_YES);
    assert_int_equal(judge(&p, &server, "ok.test"), MO_EGRESS_YES);
    assert_int_equal(judge(&p, &session, "bad.test"), MO_EGRESS_NO);
    assert_int_equal(judge(&p, &session, "other.test"), MO_EGRESS_ASK);
    assert_int_equal(judge(&p, &server, "other.test"), MO_EGRESS_ASK);
    /* a server's tool of that name never runs */
    v = mo_policy_judge(mo_approvals_policy(p.d),
                        &(struct mo_policy_call){
                            .from = MO_POLICY_CHAT,
                            .server = MO_SPAN("web"),
                            .tool = MO_SPAN(MO_RULE_CONNECT),
                            .args_text = MO_SPAN("{\"host\":\"ok.test\"}")});
    assert_int_equal(v.action, MO_ACTION_DENY);
    assert_int_equal(mo_connections_judge(NULL, &session, NULL), MO_EGRESS_NO);
    leave(&p);
}

static void test_who(void **state)
{
    struct mo_egress_ask a;
    struct place p;

    (void)state;
    enter(&p, rules);
    ask(&p, &session, &a, "x.test");
    assert_int_equal(p.asked, 1);
    assert_int_equal(decide(&p, true, "bob", MO_REMEMBER_NO), MO_ENOTFOUND);
    assert_int_equal(decide(&p, true, "ann", MO_REMEMBER_ALWAYS), MO_EPOLICY);
    assert_int_equal(decide(&p, false, "ann", MO_REMEMBER_ALWAYS), MO_EPOLICY);
    assert_int_equal(a.answer, -1);
    assert_int_equal(decide(&p, true, "ann", MO_REMEMBER_NO), 0);
    assert_int_equal(a.answer, -1); /* not from inside the call */
    assert_int_equal(decide(&p, true, "ann", MO_REMEMBER_NO), MO_ENOTFOUND);
    assert_int_equal(answer(&p, &a), 1);
    assert_string_equal(a.reason, "ask: once");
    assert_string_equal(p.by, "person");
    /* only the operator, and not remembered */
    ask(&p, &session, &a, "op.test");
    assert_int_equal(decide(&p, true, "ann", MO_REMEMBER_NO), MO_ENOTFOUND);
    assert_int_equal(decide(&p, true, "", MO_REMEMBER_SESSION), MO_EINVAL);
    assert_int_equal(decide(&p, true, "", MO_REMEMBER_NO), 0);
    assert_int_equal(answer(&p, &a), 1);
    ask(&p, &session, &a, "each.test");
    assert_int_equal(decide(&p, true, "", MO_REMEMBER_ALWAYS), MO_EINVAL);
    assert_int_equal(decide(&p, true, "", MO_REMEMBER_SESSION), MO_EINVAL);
    assert_int_equal(decide(&p, false, "", MO_REMEMBER_NO), 0);
    assert_int_equal(answer(&p, &a), 0);
    leave(&p);
}

static void test_memory(void **state)
{
    struct mo_connection_from other = session;
    struct mo_egress_ask a;
    struct place p;

    (void)state;
    other.box = "b3";
    enter(&p, rules);
    ask(&p, &session, &a, "once.test");
    assert_int_equal(decide(&p, true, "", MO_REMEMBER_NO), 0);
    (void)answer(&p, &a);
    assert_int_equal(judge(&p, &session, "once.test"), MO_EGRESS_ASK);
    ask(&p, &session, &a, "no.test");
    assert_int_equal(decide(&p, false, "", MO_REMEMBER_NO), 0);
    (void)answer(&p, &a);
    assert_int_equal(judge(&p, &session, "no.test"), MO_EGRESS_NO);
    assert_int_equal(judge(&p, &other, "no.test"), MO_EGRESS_ASK);
    ask(&p, &session, &a, "stay.test");
    assert_int_equal(decide(&p, true, "ann", MO_REMEMBER_SESSION), 0);
    (void)answer(&p, &a);
    assert_int_equal(judge(&p, &session, "stay.test"), MO_EGRESS_YES);
    assert_int_equal(judge(&p, &other, "stay.test"), MO_EGRESS_ASK);
    ask(&p, &session, &a, "ever.test");
    assert_int_equal(decide(&p, true, "", MO_REMEMBER_ALWAYS), 0);
    (void)answer(&p, &a);
    ask(&p, &session, &a, "never.test");
    assert_int_equal(decide(&p, false, "", MO_REMEMBER_ALWAYS), 0);
    (void)answer(&p, &a);
    assert_int_equal(judge(&p, &other, "ever.test"), MO_EGRESS_YES);
    assert_int_equal(judge(&p, &other, "xever.test"), MO_EGRESS_ASK);
    assert_int_equal(judge(&p, &server, "ever.test"), MO_EGRESS_ASK);
    mo_connections_box_gone(p.d, "b1");
    assert_int_equal(judge(&p, &session, "stay.test"), MO_EGRESS_ASK);
    leave(&p);
    enter(&p, rules); /* the rules are there again */
    assert_int_equal(judge(&p, &session, "ever.test"), MO_EGRESS_YES);
    assert_int_equal(judge(&p, &session, "never.test"), MO_EGRESS_NO);
    leave(&p);
}

static void test_limits(void **state)
{
    struct mo_egress_ask a[ASKS_MAX];
    char host[32];
    struct place p;
    int listed = 0, n = 0;

    (void)state;
    enter(&p, "{}");
    for (; n < ASKS_MAX; n++) {
        (void)snprintf(host, sizeof(host), "h%d.test", n);
        ask(&p, &session, &a[n], host);
        listed += a[n].answer < 0;
        if (n >= 8)
            assert_string_equal(a[n].reason,
                                "too many hosts wait for a person");
    }
    assert_int_equal(listed, 8);
    assert_int_equal(mo_approvals_waiting(p.d), 8);
    ask(&p, &server, &a[8], "x.test"); /* another box has its own limit */
    assert_int_equal(a[8].answer, -1);
    for (n = 0; n < 8; n++)
        mo_connections_gone(p.d, &a[n]);
    assert_int_equal(p.resolved, 8);
    assert_string_equal(p.by, "gone");
    for (n = 0, listed = 0; n < ASKS_MAX; n++) { /* asks and withdraws */
        ask(&p, &session, &a[n], "h.test");
        listed += a[n].answer < 0;
        if (a[n].answer < 0)
            mo_connections_gone(p.d, &a[n]);
        else
            assert_string_equal(a[n].reason, "this box asks too often");
    }
    assert_int_equal(listed, 12);
    leave(&p); /* the other one is still pending */
    assert_int_equal(mo_egress_ask_data(&a[8]) == NULL, false);
}

static void test_ends(void **state)
{
    struct mo_egress_ask a, b, c;
    struct place p;
    struct mo_err e;

    (void)state;
    enter(&p, "{\"approvals\":{\"timeoutSeconds\":1}}");
    ask(&p, &session, &a, "late.test");
    assert_int_equal(answer(&p, &a), 0);
    assert_string_equal(a.reason, "nobody decided in time");
    /* the program gives up after the decision: nothing is answered */
    ask(&p, &session, &a, "x.test");
    assert_int_equal(decide(&p, true, "", MO_REMEMBER_NO), 0);
    mo_connections_gone(p.d, &a);
    /* the box ends while one waits and one is being written */
    ask(&p, &session, &b, "y.test");
    assert_int_equal(decide(&p, true, "", MO_REMEMBER_NO), 0);
    ask(&p, &session, &c, "z.test");
    mo_connections_box_gone(p.d, "b1");
    mo_connections_gone(p.d, &c);
    assert_int_equal(answer(&p, &b), 1);
    assert_int_equal(a.answer, -1);
    assert_int_equal(mo_approvals_waiting(p.d), 0);
    /* a rule of a new configuration denies it */
    ask(&p, &session, &a, "bad.test");
    mo_config_close(&p.h);
    load(&p, rules);
    assert_int_equal(mo_approvals_reload(p.d, p.h.now, &e), 0);
    assert_int_equal(answer(&p, &a), 0);
    assert_string_equal(a.reason, "denied by a rule");
    /* or after a yes that is not written yet */
    mo_config_close(&p.h);
    load(&p, "{}");
    assert_int_equal(mo_approvals_reload(p.d, p.h.now, &e), 0);
    ask(&p, &server, &a, "bad.test");
    find_pending(&p);
    assert_int_equal(decide(&p, true, "", MO_REMEMBER_NO), 0);
    mo_config_close(&p.h);
    load(&p, rules);
    assert_int_equal(mo_approvals_reload(p.d, p.h.now, &e), 0);
    assert_int_equal(answer(&p, &a), 0);
    assert_string_equal(a.reason, "denied by a rule");
    /* the end of the program, in the middle of both states */
    ask(&p, &session, &a, "v.test");
    assert_int_equal(decide(&p, true, "", MO_REMEMBER_NO), 0);
    ask(&p, &session, &b, "w.test");
    leave(&p);
    assert_int_equal(a.answer, 0);
    assert_int_equal(b.answer, 0);
}

static void test_list(void **state)
{
    struct mo_egress_question q = {
        .host = "x.test", .port = 80, .request = "GET /a\"b"};
    struct mo_egress_ask a = {.answer = -1};
    struct mo_json_doc doc;
    struct mo_buf b;
    struct place p;

    (void)state;
    enter(&p, "{}");
    mo_connections_ask(p.d, &session, &a, &q);
    mo_buf_init(&b, 65536);
    assert_int_equal(
        mo_approvals_list(
            p.d, &(struct mo_identity){.name = "bob", .role = MO_ROLE_USER},
            &b),
        0);
    assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL), 0);
    assert_int_equal(mo_json_len(mo_json_get(doc.root, "approvals")), 0);
    mo_buf_reset(&b);
    assert_int_equal(
        mo_approvals_list(
            p.d, &(struct mo_identity){.name = "ann", .role = MO_ROLE_USER},
            &b),
        0);
    assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL), 0);
    assert_non_null(strstr(mo_buf_cstr(&b), "\"request\":\"GET /a\\\"b\""));
    assert_non_null(strstr(mo_buf_cstr(&b), "\"session\":\"s1\""));
    mo_buf_fini(&b);
    mo_connections_gone(p.d, &a);
    leave(&p);
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    static const char *const files[] = {
        "config.json",   "audit.jsonl", "audit.head", "audit.key", "audit.lock",
        "audit.journal", "pins.json",   "rules.json", ""};
    char path[96];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(files); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        (void)remove(path);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),  cmocka_unit_test(test_who),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_ends),   cmocka_unit_test(test_list),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
