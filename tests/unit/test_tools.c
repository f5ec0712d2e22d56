/* The tools of a conversation: of the gateway's servers, of a given list, and a
 * single tool. */
#include "servers/tools.h"

#include "gateway/inside.h"
#include "gw_kit.h"

#define TOOL(name)                                                             \
    "{\"name\":\"" name "\",\"title\":\"T\",\"description\":\"" name           \
    " it\",\"inputSchema\":{\"type\":\"object\"},\"annotations\":"             \
    "{\"readOnlyHint\":true}}"

static const struct rule plain[] = {
    INIT_OK("{\"tools\":{}}"),
    LIST("tools/list", "tools", TOOL("work") "," TOOL("a b")),
    {NULL, NULL},
};

static const struct mo_config_tool renamed[] = {
    {.name = "work", .rename = "toil", .retries = -1, .result_bytes = -1},
};

static const struct mo_gw_server two[] = {
    {.name = "one", .digest = "1", .mode = MO_CONN_LEGACY},
    {.name = "two",
     .digest = "2",
     .mode = MO_CONN_LEGACY,
     .tools = renamed,
     .ntools = 1},
};

struct reader {
    struct mo_gw_read r;
    bool done;
};

static void on_read(struct mo_gw_read *r)
{
    mo_container_of(r, struct reader, r)->done = true;
}

struct loaded {
    bool done;
    int code;
};

static void on_loaded(void *ctx, const struct mo_err *why)
{
    struct loaded *x = ctx;

    x->done = true;
    x->code = why ? why->code : 0;
}

static void begin(struct world *w)
{
    struct reader x = {
        .r = {.caps = MO_SPAN("{}"), .ms = WAIT_MS, .done = on_read}};

    memset(w, 0, sizeof(*w));
    w->rules[0] = plain;
    assert_int_equal(world_open(w, loop_new(), two, 2), 0);
    mo_gateway_read(w->g, &x.r);
    wait_for(w->l, flag_is_up, &x.done);
}

static int load(struct world *w, struct mo_tools *t, struct mo_span only,
                const char *list)
{
    const struct mo_tool_source v[] = {
        {.name = MO_SPAN("ours"), .list = {list, strlen(list)}, .bare = true},
        {.name = only, .gateway = w->g},
    };
    struct loaded x = {.done = false};
    int rc = mo_tools_load(t, v, 2, on_loaded, &x, NULL);

    if (rc < 0)
        return rc;
    wait_for(w->l, flag_is_up, &x.done);
    return x.code;
}

static const struct {
    const char *name, *server, *own;
    unsigned source;
} want[] = {
    {"find", "ours", "find", 0},
    {"one_work", "one", "work", 1},
    {"two_toil", "two", "work", 1}, /* renamed, the same tool */
};

static void test_sources(void **state)
{
    struct world w;
    struct mo_tools *t;
    char digest[MO_EXACT_DIGEST];

    (void)state;
    begin(&w);
    t = mo_tools_new(w.l);
    assert_int_equal(load(&w, t, mo_span(NULL, 0), "[" TOOL("find") "]"), 0);
    assert_int_equal(mo_tools_count(t), 5);
    for (size_t i = 0; i < MO_COUNT(want); i++) {
        const struct mo_tool *x = mo_tools_find(t, mo_span_cstr(want[i].name));

        check_row(want[i].name, x && mo_span_is(x->def.server, want[i].server));
        check_row(want[i].name, mo_span_is(x->def.name, want[i].own));
        check_row(want[i].name, x->source == want[i].source);
        mo_exact_tool(&x->def, digest);
        check_row(want[i].name, strcmp(digest, x->digest) == 0);
    }
    /* The loaded tools do not change when the gateway's do. */
    assert_int_equal(mo_gateway_servers(w.g, two, 0, NULL), 0);
    assert_int_equal(mo_tools_count(t), 5);
    assert_true(
        mo_span_is(mo_tools_find(t, MO_SPAN("one_work"))->def.server, "one"));
    mo_tools_free(t);
    world_close(&w);
    mo_loop_free(w.l);
}

static void test_only(void **state)
{
    struct world w;
    struct mo_tools *t;

    (void)state;
    begin(&w);
    t = mo_tools_new(w.l);
    assert_int_equal(load(&w, t, MO_SPAN("two"), "[]"), 0);
    assert_int_equal(mo_tools_count(t), 2);
    assert_int_equal(load(&w, t, MO_SPAN("three"), "[]"), 0);
    assert_int_equal(mo_tools_count(t), 0);
    mo_tools_free(t);
    world_close(&w);
    mo_loop_free(w.l);
}

static void torture_body(void *ctx)
{
    struct world *w = ctx;
    struct mo_tools *t = mo_tools_new(w->l);

    if (!t)
        return;
    if (load(w, t, mo_span(NULL, 0), "[" TOOL("find") "]") == 0)
        assert_in_range(mo_tools_count(t), 4,
                        5); /* a list may be left out for lack of memory */
    mo_tools_free(t);
}

static void test_torture(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    torture(torture_body, &w);
    world_close(&w);
    mo_loop_free(w.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_only),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
