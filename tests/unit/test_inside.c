/* Clients of the gateway in the same program: an in-memory link, owners of
 * messages, lists read on demand, and the choice of execute. */
#include "gateway/inside.h"

#include "gw_kit.h"
#include "mcp/server/link_inside.h"

#define TOOL(name, schema)                                                     \
    "{\"name\":\"" name "\",\"description\":\"" name " it\",\"inputSchema\":"  \
    "{\"type\":\"object\"" schema "}}"
#define TURN_MS    30 /* for a call whose answer may be lost */
#define RES(id, r) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" r "}"
#define NOTE(method, params)                                                   \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/" method                  \
    "\",\"params\":" params "}"

static const struct rule plain[] = {
    INIT_OK("{\"tools\":{},\"logging\":{}}"),
    LIST("tools/list", "tools",
         TOOL("work", ",\"required\":[\"n\"]") "," TOOL("rest", "")),
    {NULL, NULL},
};

static const struct rule answers[] = {
    INIT_OK("{\"tools\":{},\"logging\":{}}"),
    LIST("tools/list", "tools", TOOL("work", "")),
    {"tools/call", NOTE("message", "{\"level\":\"info\",\"data\":1}") "\n" RES(
                       "$id", "{\"content\":[]}")},
    {NULL, NULL},
};

static const struct rule asks[] = {
    INIT_OK("{\"tools\":{}}"),
    LIST("tools/list", "tools", TOOL("work", "")),
    {"tools/call",
     "{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"elicitation/create\","
     "\"params\":{\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\","
     "\"properties\":{}}}}"},
    {NULL, NULL},
};

static const char *stand_ins[] = {"two", "three/other"};

static const struct mo_gw_server one[] = {
    {.name = "one",
     .digest = "1",
     .mode = MO_CONN_LEGACY,
     .fallback = {stand_ins, MO_COUNT(stand_ins)}},
};

/* --- a client inside ----------------------------------------------------- */

struct guest {
    struct mo_link *link;
    struct mo_conn *conn;
    bool open, closed;
    unsigned dones, notes, news;
    uint64_t note_of; /* the call a log line came with */
    struct mo_buf got;
    struct mo_ask *ask;
};

static int on_dial(void *ctx, struct mo_conn *c, struct mo_err *e)
{
    struct guest *u = ctx;

    (void)e;
    mo_conn_dialed(c, mo_take_ptr(&u->link), NULL);
    return 0;
}

static void on_open(void *ctx, struct mo_conn *c)
{
    (void)c;
    ((struct guest *)ctx)->open = true;
}

static void on_ask(void *ctx, struct mo_conn *c, struct mo_ask *a)
{
    (void)c;
    ((struct guest *)ctx)->ask = a;
}

static void on_notify(void *ctx, struct mo_conn *c, const struct mo_rpc *m,
                      uint64_t stream_of)
{
    struct guest *u = ctx;

    (void)c;
    if (mo_json_str_eq(m->method, MO_SPAN("notifications/message"))) {
        u->notes++;
        u->note_of = stream_of;
    } else {
        u->news++;
    }
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct guest *u = ctx;

    (void)why;
    u->conn = NULL;
    u->closed = true;
    if (u->link)
        mo_link_close(mo_take_ptr(&u->link), NULL);
}

static const struct mo_conn_cb conn_cb = {.on_open = on_open,
                                          .on_ask = on_ask,
                                          .on_notify = on_notify,
                                          .on_close = on_close};

static int guest_open(struct guest *u, struct world *w)
{
    struct mo_conn_opts o = {
        .mode = MO_CONN_LEGACY,
        .capabilities = MO_SPAN("{\"elicitation\":{}}"),
        .dial = on_dial,
        .cb = &conn_cb,
        .ctx = u,
    };
    int rc;

    memset(u, 0, sizeof(*u));
    mo_buf_init(&u->got, 1 << 20);
    rc = mo_link_inside(w->l, w->ep, MO_SPAN("talk-1"), mo_span(NULL, 0),
                        &u->link, NULL);
    if (rc < 0)
        return rc;
    rc = mo_conn_open(w->l, &o, &u->conn, NULL);
    if (rc < 0)
        mo_link_close(mo_take_ptr(&u->link), NULL);
    return rc;
}

static void guest_close(struct guest *u, struct world *w)
{
    if (u->conn) {
        mo_conn_close(u->conn, NULL);
        wait_for(w->l, flag_is_up, &u->closed);
    }
    mo_buf_fini(&u->got);
}

static void on_done(void *ctx, const struct mo_reply *r)
{
    struct guest *u = ctx;

    u->dones++;
    mo_buf_reset(&u->got);
    if (r->err)
        (void)mo_buf_printf(&u->got, "failed: %s", r->err->msg);
    else
        (void)mo_buf_span(&u->got,
                          mo_json_text(r->result.p ? r->result : r->error));
}

static struct mo_call *guest_call(struct guest *u, const char *params)
{
    const struct mo_call_opts o = {.done = on_done, .ctx = u};

    return mo_conn_request(u->conn, "tools/call", mo_span_cstr(params), &o,
                           NULL);
}

static bool was_told(void *ctx)
{
    return ((struct guest *)ctx)->dones > 0;
}

static bool has_news(void *ctx)
{
    return ((struct guest *)ctx)->news > 0;
}

static bool are_two(void *ctx)
{
    return ((struct guest *)ctx)->dones == 2;
}

static bool is_asked(void *ctx)
{
    return ((struct guest *)ctx)->ask != NULL;
}

/* --- set-up -------------------------------------------------------------- */

static char seen_inside[32];
static unsigned ndone;

static enum mo_gw_ruling on_rule(void *ctx, struct mo_gw_case *k,
                                 struct mo_buf *question)
{
    (void)ctx;
    (void)question;
    (void)snprintf(seen_inside, sizeof(seen_inside), "%.*s", (int)k->inside.n,
                   k->inside.p);
    return MO_GW_LET;
}

static void on_case_done(void *ctx, struct mo_gw_case *k)
{
    (void)ctx;
    assert_true(mo_span_is(k->inside, seen_inside));
    ndone++;
}

static void begin(struct world *w, const struct rule *rules)
{
    memset(w, 0, sizeof(*w));
    w->rules[0] = rules;
    w->judge =
        (struct mo_approval_hooks){.rule = on_rule, .done = on_case_done};
    ndone = 0;
    assert_int_equal(world_open(w, loop_new(), one, 1), 0);
}

static void end(struct world *w)
{
    struct mo_loop *l = w->l;

    world_close(w);
    mo_loop_free(l);
}

static void visit(struct world *w, struct guest *u, const struct rule *rules)
{
    begin(w, rules);
    assert_int_equal(guest_open(u, w), 0);
    assert_false(u->open); /* never from inside the call */
    wait_for(w->l, flag_is_up, &u->open);
}

/* --- calls --------------------------------------------------------------- */

static void test_call(void **state)
{
    struct world w;
    struct guest u;
    struct mo_call *k;
    uint64_t number;

    (void)state;
    visit(&w, &u, answers);
    assert_non_null(guest_call(&u, "{\"name\":\"nobody\"}"));
    k = guest_call(&u, "{\"name\":\"work\",\"arguments\":{}}");
    assert_non_null(k);
    number = mo_call_number(k);
    wait_for(w.l, are_two, &u);
    assert_int_equal(u.notes, 1);
    assert_int_equal(u.note_of, number); /* two were under way */
    assert_string_equal(seen_inside, "talk-1");
    assert_int_equal(ndone, 1);
    guest_close(&u, &w);
    end(&w);
}

static void test_ask(void **state)
{
    struct world w;
    struct guest u;
    struct mo_call *k;

    (void)state;
    visit(&w, &u, asks);
    k = guest_call(&u, "{\"name\":\"work\"}");
    assert_non_null(k);
    wait_for(w.l, is_asked, &u);
    assert_int_equal(u.ask->kind, MO_ASK_ELICIT);
    assert_int_equal(u.ask->call, mo_call_number(k));
    mo_ask_answer(u.ask, MO_SPAN("{\"action\":\"decline\"}"));
    arrives(&w, &w.peers[0], "\"id\":77,\"result\":{\"action\":\"decline\"}");
    mo_call_cancel(k, "enough");
    wait_for(w.l, was_told, &u);
    arrives(&w, &w.peers[0], "notifications/cancelled");
    guest_close(&u, &w);
    end(&w);
}

/* The client ends during a call, with a question open. */
static void test_leave(void **state)
{
    struct world w;
    struct guest u;

    (void)state;
    visit(&w, &u, asks);
    assert_non_null(guest_call(&u, "{\"name\":\"work\"}"));
    wait_for(w.l, is_asked, &u);
    guest_close(&u, &w);
    assert_int_equal(u.dones, 1);
    mo_ask_answer(u.ask, MO_SPAN("{\"action\":\"accept\"}")); /* nowhere */
    arrives(&w, &w.peers[0], "notifications/cancelled");
    end(&w);
}

/* --- lists --------------------------------------------------------------- */

struct reader {
    struct mo_gw_read r;
    bool done;
};

static void on_read(struct mo_gw_read *r)
{
    mo_container_of(r, struct reader, r)->done = true;
}

static void read_lists(struct world *w, struct reader *x, const char *server,
                       uint64_t ms)
{
    *x = (struct reader){.r = {.server = server,
                               .peer = 1,
                               .caps = MO_SPAN("{}"),
                               .ms = ms,
                               .done = on_read}};
    mo_gateway_read(w->g, &x->r);
    assert_false(x->done);
}

static void test_read(void **state)
{
    struct reader x;
    struct world w;
    struct guest u;

    (void)state;
    visit(&w, &u, plain);
    read_lists(&w, &x, NULL, WAIT_MS);
    wait_for(w.l, flag_is_up, &x.done);
    assert_false(x.r.late);
    assert_int_equal(w.npeers, 1);
    assert_int_equal(mo_catalog_count(mo_gateway_catalog(w.g), MO_CAT_TOOLS),
                     2);
    assert_non_null(mo_gateway_conn(w.g, 0));
    /* Known lists: no server is asked. By name: read again, and reported. */
    read_lists(&w, &x, NULL, WAIT_MS);
    wait_for(w.l, flag_is_up, &x.done);
    w.peers[0].rules = answers;
    read_lists(&w, &x, "one", WAIT_MS);
    wait_for(w.l, flag_is_up, &x.done);
    assert_int_equal(mo_catalog_count(mo_gateway_catalog(w.g), MO_CAT_TOOLS),
                     1);
    wait_for(w.l, has_news, &u);
    read_lists(&w, &x, "nobody", WAIT_MS);
    wait_for(w.l, flag_is_up, &x.done);
    /* A server that does not answer. */
    w.peers[0].rules = asks + 3;
    read_lists(&w, &x, "one", 30);
    wait_for(w.l, flag_is_up, &x.done);
    assert_true(x.r.late);
    read_lists(&w, &x, "one", WAIT_MS);
    mo_gateway_unread(&x.r);
    guest_close(&u, &w);
    end(&w);
    assert_false(x.done);
}

/* --- tools of our own ---------------------------------------------------- */

static const struct {
    const char *args;
    int rc;
    const char *tool;
} choices[] = {
    {"{\"server\":\"one\",\"tool\":\"work\",\"params\":{\"n\":1}}", 0, "work"},
    {"{\"tool\":\"rest\"}", 0, "rest"},
    {"{\"request\":\"rest\"}", 0, "rest"},
    {"{\"server\":\"two\",\"tool\":\"rest\"}", MO_ENOTFOUND, NULL},
    {"{\"tool\":\"work\",\"params\":{}}", MO_EINVAL, NULL},
    {"{\"tool\":\"rest\",\"params\":[]}", MO_EINVAL, NULL},
    {"{\"request\":\"buy the moon\"}", MO_EBUSY, NULL},
    {"{}", MO_EINVAL, NULL},
};

static void check_choices(struct world *w)
{
    for (size_t i = 0; i < MO_COUNT(choices); i++) {
        struct mo_json args = {choices[i].args, strlen(choices[i].args)};
        struct mo_gw_choice ch;
        struct mo_arena a;
        int rc;

        mo_arena_init(&a, 1 << 20);
        rc = mo_gateway_choose(w->g, 1, args, &a, &ch);
        check_row(choices[i].args, rc == choices[i].rc);
        if (rc == 0) {
            check_row(choices[i].args, mo_span_is(ch.server, "one"));
            check_row(choices[i].args, mo_span_is(ch.tool, choices[i].tool));
        }
        mo_arena_fini(&a);
    }
}

static void check_stand_ins(struct world *w)
{
    static const struct {
        const char *server;
        unsigned i;
        const char *to, *own; /* NULL: there are no more */
    } rows[] = {
        {"one", 0, "two", "work"},
        {"one", 1, "three", "other"},
        {"one", 2, NULL, NULL},
        {"nobody", 0, NULL, NULL},
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span to = {NULL, 0}, own = {NULL, 0};
        bool is = mo_gateway_stand_in(w->g, mo_span_cstr(rows[i].server),
                                      MO_SPAN("work"), rows[i].i, &to, &own);

        assert_int_equal(is, rows[i].to != NULL);
        if (!is)
            continue;
        assert_true(mo_span_is(to, rows[i].to));
        assert_true(mo_span_is(own, rows[i].own));
    }
}

static void test_ours(void **state)
{
    struct reader x;
    struct world w;
    struct guest u;
    struct mo_buf b;

    (void)state;
    visit(&w, &u, plain);
    read_lists(&w, &x, NULL, WAIT_MS);
    wait_for(w.l, flag_is_up, &x.done);
    check_choices(&w);
    check_stand_ins(&w);
    assert_false(mo_gateway_is_large(w.g));
    assert_non_null(mo_gateway_tool(w.g, MO_SPAN("one"), MO_SPAN("rest")));
    assert_null(mo_gateway_tool(w.g, MO_SPAN("two"), MO_SPAN("rest")));
    assert_null(mo_gateway_tool(w.g, MO_SPAN("one"), MO_SPAN("none")));
    mo_buf_init(&b, 1 << 20);
    assert_int_equal(mo_gateway_ours(w.g, false, &b), 0);
    assert_string_equal(mo_buf_cstr(&b), "{\"tools\":[]}");
    mo_buf_reset(&b);
    assert_int_equal(mo_gateway_ours(w.g, true, &b), 0);
    assert_true(mo_span_search(mo_buf_view(&b), MO_SPAN("find_tool")) > 0);
    mo_buf_fini(&b);
    /* Inside clients have the meta-tools, whatever other clients are shown. */
    assert_non_null(guest_call(&u, "{\"name\":\"" MO_GW_OURS
                                   "find_tool\",\"arguments\":{\"query\":"
                                   "\"rest\"}}"));
    wait_for(w.l, was_told, &u);
    assert_true(mo_span_search(mo_buf_view(&u.got), MO_SPAN("rest it")) > 0);
    u.dones = 0;
    assert_non_null(guest_call(&u, "{\"name\":\"find_tool\"}"));
    wait_for(w.l, was_told, &u);
    assert_true(mo_span_search(mo_buf_view(&u.got), MO_SPAN("no such")) > 0);
    guest_close(&u, &w);
    end(&w);
}

/* --- no memory ----------------------------------------------------------- */

struct tortured {
    struct mo_loop *l;
    bool got;
};

static bool is_through(void *ctx)
{
    const struct guest *u = ctx;

    return u->closed || u->dones;
}

static bool is_here(void *ctx)
{
    const struct guest *u = ctx;

    return u->closed || u->open;
}

static void torture_body(void *ctx)
{
    struct tortured *t = ctx;
    struct world w;
    struct guest u;

    memset(&w, 0, sizeof(w));
    w.rules[0] = answers;
    w.l = t->l;
    if (world_open(&w, t->l, one, 1) == 0 && guest_open(&u, &w) == 0) {
        (void)mo_loop_until(t->l, is_here, &u, TURN_MS);
        if (u.open && guest_call(&u, "{\"name\":\"work\"}"))
            (void)mo_loop_until(t->l, is_through, &u, TURN_MS);
        t->got =
            u.dones == 1 && mo_span_is(mo_buf_view(&u.got), "{\"content\":[]}");
        guest_close(&u, &w);
    }
    world_close(&w);
}

static void test_torture(void **state)
{
    struct tortured t = {.l = loop_new()};

    (void)state;
    torture_body(&t);
    assert_true(t.got);
    torture(torture_body, &t);
    mo_loop_free(t.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call),  cmocka_unit_test(test_ask),
        cmocka_unit_test(test_leave), cmocka_unit_test(test_read),
        cmocka_unit_test(test_ours),  cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
