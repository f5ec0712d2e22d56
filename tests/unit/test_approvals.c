/* Approvals of calls that come from conversations: approved calls run; calls
 * that the operator denies and changed tools do not; a fallback server needs a
 * rule; no call is in the audit log twice. */
#include "policy/approvals.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "loop/loop.h"
#include "mo_test.h"

static const char config[] =
    "{\"approvals\":{\"default\":\"%s\",\"rules\":["
    "{\"tool\":\"bad\",\"action\":\"deny\",\"reason\":\"no\"},"
    "{\"tool\":\"good\",\"action\":\"allow\"},"
    "{\"tool\":\"some\",\"args\":{\"path\":\"etc/**\"},\"action\":\"deny\"}]},"
    "\"gateway\":{\"approvals\":\"ask\"}}";

static const char *text_now; /* instead of config; NULL: config */
static char dir[] = "/tmp/mo-approvals-XXXXXX";

static void on_gone(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_true(void *ctx)
{
    return *(bool *)ctx;
}

static const struct {
    const char *name, *tool, *args;
    bool inside, stand_in, routed;
    enum mo_gw_ruling want;
} rows[] = {
    {"a client is asked", "rest", "{}", false, false, false, MO_GW_ASK},
    {"a client is denied", "bad", "{}", false, false, false, MO_GW_REFUSE},
    {"was asked about", "rest", "{}", true, false, false, MO_GW_LET},
    {"allowed", "good", "{}", true, false, false, MO_GW_LET},
    {"denied all the same", "bad", "{}", true, false, false, MO_GW_REFUSE},
    {"by arguments", "some", "{\"path\":\"etc/x\"}", true, false, false,
     MO_GW_REFUSE},
    {"by others not", "some", "{\"path\":\"a\"}", true, false, false,
     MO_GW_LET},
    {"nobody was asked about that one", "rest", "{}", true, true, false,
     MO_GW_ASK},
    {"which may", "good", "{}", true, true, false, MO_GW_LET},
    {"which may not", "bad", "{}", true, true, false, MO_GW_REFUSE},
    {"by words", "good", "{}", true, false, true, MO_GW_REFUSE},
};

static enum mo_gw_ruling ask(struct mo_approvals *d, size_t i, const char *item)
{
    struct mo_approval_hooks j = mo_approvals_hooks(d);
    struct mo_gw_case k = {
        .server = MO_SPAN("s"),
        .tool = mo_span_cstr(rows[i].tool),
        .inside = rows[i].inside ? MO_SPAN("talk") : mo_span(NULL, 0),
        .stand_in = rows[i].stand_in,
        .routed = rows[i].routed,
        .item = {item, strlen(item)},
        .arguments = {rows[i].args, strlen(rows[i].args)},
    };
    enum mo_gw_ruling got;
    struct mo_buf question;

    mo_buf_init(&question, 65536);
    got = j.rule(j.ctx, &k, &question);
    j.done(j.ctx, &k);
    mo_buf_fini(&question);
    return got;
}

static size_t log_lines(void)
{
    struct mo_buf b;
    char file[64];
    size_t n = 0;

    (void)snprintf(file, sizeof(file), "%s/audit.jsonl", dir);
    mo_buf_init(&b, 1 << 20);
    if (mo_file_read(file, 1 << 20, &b, NULL, NULL) == 0)
        for (size_t i = 0; i < b.len; i++)
            n += b.p[i] == '\n';
    mo_buf_fini(&b);
    return n;
}

static int load(struct mo_config_holder *h, const char *rest, struct mo_err *e)
{
    static char state[64], file[64];
    static char *environ[] = {state, NULL};
    struct mo_config_input in = {.file = file, .environ = environ};
    struct mo_config_report rep;
    FILE *f;

    (void)snprintf(state, sizeof(state), "MCP_ORCHESTRATOR_STATE_DIR=%s", dir);
    (void)snprintf(file, sizeof(file), "%s/config.json", dir);
    f = fopen(file, "w");
    assert_non_null(f);
    if (text_now)
        (void)fputs(text_now, f);
    else
        (void)fprintf(f, config, rest);
    (void)fclose(f);
    return mo_config_open(h, &in, &rep, e);
}

static struct mo_approvals *open_approvals(struct mo_loop *l,
                                           const struct mo_config *c)
{
    struct mo_approvals *d = NULL;
    struct mo_err e;

    assert_int_equal(mo_approvals_open(l, c, &d, &e), 0);
    return d;
}

static void close_approvals(struct mo_loop *l, struct mo_approvals *d)
{
    bool gone = false;

    mo_approvals_close(d, on_gone, &gone);
    assert_false(gone); /* never from inside the call */
    assert_true(mo_loop_until(l, is_true, &gone, 10000));
}

static void test_rows(void **state)
{
    static const char item[] = "{\"name\":\"t\",\"description\":\"d\"}";
    struct mo_config_holder h;
    struct mo_err e;
    struct mo_loop *l = mo_loop_new(NULL, &e);
    struct mo_approvals *d;
    size_t outside = 0;

    (void)state;
    assert_int_equal(load(&h, "ask", &e), 0);
    d = open_approvals(l, h.now);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        check_row(rows[i].name, ask(d, i, item) == rows[i].want);
        outside += !rows[i].inside;
    }
    /* Changed since it was first seen. */
    check_row("changed",
              ask(d, 2, "{\"name\":\"t\",\"description\":\"other\"}") ==
                  MO_GW_REFUSE);
    close_approvals(l, d);
    assert_int_equal(log_lines(), outside);
    mo_config_close(&h);
    mo_loop_free(l);
}

/* What a person said yes to in a conversation is not the default's to deny. */
static void test_default_deny(void **state)
{
    static const char item[] = "{\"name\":\"t\",\"description\":\"d\"}";
    struct mo_config_holder h;
    struct mo_err e;
    struct mo_loop *l = mo_loop_new(NULL, &e);
    struct mo_approvals *d;

    (void)state;
    assert_int_equal(load(&h, "deny", &e), 0);
    d = open_approvals(l, h.now);
    assert_int_equal(ask(d, 2, item), MO_GW_LET);
    assert_int_equal(ask(d, 4, item), MO_GW_REFUSE);
    assert_int_equal(ask(d, 7, item), MO_GW_REFUSE); /* it stands in */
    close_approvals(l, d);
    mo_config_close(&h);
    mo_loop_free(l);
}

/* --- judged again, and by whom it is decided ----------------------------- */

#define ITEM "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}"

static bool decided, said_yes;

static bool on_decide(struct mo_gw_case *k, bool yes, const char *by)
{
    (void)k;
    (void)by;
    decided = true;
    said_yes = yes;
    return true;
}

static int on_edit(struct mo_gw_case *k, struct mo_span args, struct mo_err *e)
{
    (void)k;
    (void)args;
    (void)e;
    return 0;
}

static const struct mo_gw_case_ops ops = {.decide = on_decide, .edit = on_edit};

static struct mo_gw_case make_case(const char *tool, const char *owner)
{
    return (struct mo_gw_case){.server = MO_SPAN("other"),
                               .tool = mo_span_cstr(tool),
                               .owner = mo_span_cstr(owner),
                               .item = {ITEM, sizeof(ITEM) - 1},
                               .arguments = {"{}", 2},
                               .id = "call-1",
                               .ops = &ops};
}

/* Rules: tool "op" is the operator's, "own" its owner's, "form" its client's,
 * "rest" is asked about by default. */
static const char approver_rules[] =
    "{\"approvals\":{\"rules\":["
    "{\"tool\":\"op\",\"action\":\"ask\",\"approver\":\"operator\"},"
    "{\"tool\":\"own\",\"action\":\"ask\",\"approver\":\"owner\"},"
    "{\"tool\":\"form\",\"action\":\"ask\",\"approver\":\"client\"}]},"
    "\"gateway\":{\"approvals\":\"ask\"}}";
static const char all_denied[] =
    "{\"approvals\":{\"rules\":["
    "{\"server\":\"*\",\"action\":\"deny\",\"reason\":\"now\"}]}}";

static const struct {
    const char *tool, *owner, *caller, *door;
    bool asks_client, sees, may, self;
} doors[] = {
    {"rest", "", "", "page", false, true, true, false},
    {"rest", "", "", "socket", false, true, true, false},
    {"rest", "", "", "open", false, true, true, true},
    {"rest", "", "", "token", false, true, false, true},
    {"rest", "alice", "", "token", false, true, true, false},
    {"rest", "alice", "alice", "page", false, false, false, false},
    {"op", "alice", "alice", "page", false, false, false, false},
    {"op", "", "", "token", false, true, false, true},
    {"own", "alice", "alice", "page", false, true, true, false},
    {"own", "alice", "alice", "token", false, true, false, true},
    {"own", "alice", "bob", "page", false, false, false, false},
    {"own", "alice", "", "page", false, true, true, false},
    {"form", "", "", "token", true, true, true, true},
    {"form", "alice", "alice", "token", true, true, true, true},
};

static void check_door(struct mo_approvals *d, size_t i)
{
    struct mo_approval_hooks j = mo_approvals_hooks(d);
    struct mo_gw_case k = make_case(doors[i].tool, doors[i].owner);
    struct mo_span empty = MO_SPAN(""), wrong = MO_SPAN("0");
    struct mo_approval_decision x = {.id = MO_SPAN("call-1"),
                                     .approved = true,
                                     .who = "me",
                                     .caller = doors[i].caller,
                                     .name = doors[i].caller,
                                     .door = doors[i].door};
    mo_autobuf struct mo_buf b = {.max = 65536};
    struct mo_err e;
    int want = !doors[i].sees ? MO_ENOTFOUND : doors[i].may ? 0 : MO_EPOLICY;

    decided = false;
    assert_int_equal(j.rule(j.ctx, &k, &b), MO_GW_ASK);
    check_row(doors[i].tool, (b.len > 0) == doors[i].asks_client);
    j.held(j.ctx, &k);
    mo_buf_reset(&b);
    assert_int_equal(
        mo_approvals_list(d,
                          &(struct mo_identity){.name = doors[i].caller,
                                                .role = *doors[i].caller
                                                            ? MO_ROLE_USER
                                                            : MO_ROLE_OPERATOR},
                          &b),
        0);
    check_row(doors[i].tool,
              (strstr(mo_buf_cstr(&b), "call-1") != NULL) == doors[i].sees);
    x.digest = &empty;
    check_row("empty", mo_approvals_decide(d, &x, &e) ==
                           (doors[i].sees ? MO_EINVAL : MO_ENOTFOUND));
    x.digest = &wrong;
    check_row("wrong", mo_approvals_decide(d, &x, &e) ==
                           (doors[i].sees ? MO_EPOLICY : MO_ENOTFOUND));
    x.digest = NULL;
    if (mo_approvals_decide(d, &x, &e) != want)
        fail_msg("row %zu: %s", i, e.msg);
    assert_int_equal(decided, doors[i].may);
    if (doors[i].may) {
        /* it is being recorded: a later answer changes nothing */
        k.decided = true;
        x.door = "later";
        assert_int_equal(mo_approvals_decide(d, &x, &e), MO_ENOTFOUND);
        assert_string_equal(k.door.name, doors[i].door);
        assert_int_equal(k.door.is_requester, doors[i].self);
        k.item = (struct mo_json){ITEM, sizeof(ITEM) - 1};
        k.arguments = (struct mo_json){"{}", 2};
        assert_true(j.again(j.ctx, &k));
    }
    j.done(j.ctx, &k);
}

static int load_text(struct mo_config_holder *h, const char *text,
                     struct mo_err *e)
{
    int rc;

    text_now = text;
    rc = load(h, "ask", e);
    text_now = NULL;
    return rc;
}

static void test_doors(void **state)
{
    struct mo_config_holder h;
    struct mo_err e;
    struct mo_loop *l = mo_loop_new(NULL, &e);
    struct mo_gw_case unlisted = make_case("unlisted", "");
    mo_autobuf struct mo_buf b = {.max = 65536};
    struct mo_approval_hooks j;
    struct mo_approvals *d;

    (void)state;
    assert_int_equal(load_text(&h, approver_rules, &e), 0);
    d = open_approvals(l, h.now);
    for (size_t i = 0; i < MO_COUNT(doors); i++)
        check_door(d, i);
    unlisted.item = (struct mo_json){NULL, 0}; /* never seen, so never pinned */
    j = mo_approvals_hooks(d);
    assert_int_equal(j.rule(j.ctx, &unlisted, &b), MO_GW_REFUSE);
    j.done(j.ctx, &unlisted);
    close_approvals(l, d);
    mo_config_close(&h);
    mo_loop_free(l);
}

/* Other rules: a pending call is refused, an approved one does not run. */
static void test_reload(void **state)
{
    struct mo_config_holder h, denied;
    struct mo_err e;
    struct mo_loop *l = mo_loop_new(NULL, &e);
    struct mo_gw_case waits = make_case("rest", ""), runs = waits, talk = waits;
    mo_autobuf struct mo_buf b = {.max = 65536};
    struct mo_approval_hooks j;
    struct mo_approvals *d;

    (void)state;
    assert_int_equal(load_text(&h, approver_rules, &e), 0);
    assert_int_equal(load_text(&denied, all_denied, &e), 0);
    d = open_approvals(l, h.now);
    j = mo_approvals_hooks(d);
    talk.inside = MO_SPAN("talk");
    assert_int_equal(j.rule(j.ctx, &waits, &b), MO_GW_ASK);
    j.held(j.ctx, &waits);
    assert_int_equal(j.rule(j.ctx, &runs, &b), MO_GW_ASK);
    assert_int_equal(j.rule(j.ctx, &talk, &b), MO_GW_LET);
    runs.answered = MO_ANSWERED_OPERATOR;
    assert_true(j.again(j.ctx, &runs));
    assert_int_equal(mo_approvals_reload(d, h.now, &e), 0); /* no change */
    assert_true(j.again(j.ctx, &talk));
    decided = said_yes = false;
    assert_int_equal(mo_approvals_reload(d, denied.now, &e), 0);
    assert_true(decided && !said_yes);
    assert_string_equal(waits.reason, "now");
    assert_false(j.again(j.ctx, &runs));
    assert_string_equal(runs.reason, "now");
    assert_false(j.again(j.ctx, &talk));
    assert_int_equal(mo_approvals_reload(d, h.now, &e), 0);
    assert_true(j.again(j.ctx, &runs)); /* the operator said yes to it */
    runs.answered = MO_ANSWERED_CLIENT;
    assert_false(j.again(j.ctx, &runs)); /* its client may not */
    assert_false(j.again(j.ctx, &talk)); /* and of that nothing is known */
    j.done(j.ctx, &waits);
    j.done(j.ctx, &runs);
    j.done(j.ctx, &talk);
    close_approvals(l, d);
    mo_config_close(&denied);
    mo_config_close(&h);
    mo_loop_free(l);
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    static const char *const files[] = {"config.json",
                                        "audit.jsonl",
                                        "audit.head",
                                        "audit.lock",
                                        "pins.json",
                                        "rules.json",
                                        ""};
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
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_default_deny),
        cmocka_unit_test(test_doors),
        cmocka_unit_test(test_reload),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
