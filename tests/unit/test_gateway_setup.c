/* What makes a configured server what it is, and what of it the gateway is
 * told; and a hub that is opened, changed and closed without any memory. */
#include "servers/gateway_setup.h"

#include "gateway/catalog/catalog.h"
#include "loop/loop.h"
#include "mo_test.h"

static const char *one[] = {"x", "y"}, *joined[] = {"xy"};
static struct mo_config_pair key[] = {{"K", "v"}}, other_key[] = {{"K", "w"}};

#define OF(who, what, n, ms, start, idle)                                      \
    .name = (who), .command = (what), .instances = (n), .timeout_ms = (ms),    \
    .start_ms = (start), .idle_seconds = (idle), .enabled = true
#define BASE OF("a", "c", 1, 60000, 30000, 300)

static const char *const ro[] = {"/a:/a:ro", NULL}, *const rw[] = {"/a:/a:rw",
                                                                   NULL};

static const struct {
    const char *name;
    struct mo_config_mcp s;
} differ[] = {
    {"plain", {BASE}},
    {"another name", {OF("b", "c", 1, 60000, 30000, 300)}},
    {"another command", {OF("a", "d", 1, 60000, 30000, 300)}},
    {"a directory", {BASE, .cwd = "/"}},
    {"arguments", {BASE, .args = {one, 2}}},
    {"arguments joined", {BASE, .args = {joined, 1}}},
    {"environment", {BASE, .env = {key, 1}}},
    {"another environment", {BASE, .env = {other_key, 1}}},
    {"headers", {BASE, .headers = {key, 1}}},
    {"no prefix", {BASE, .tool_prefix = ""}},
    {"a prefix", {BASE, .tool_prefix = "p"}},
    {"of a session", {BASE, .scope = MO_SCOPE_SESSION}},
    {"two of it", {OF("a", "c", 2, 60000, 30000, 300)}},
    {"more time", {OF("a", "c", 1, 1, 30000, 300)}},
    {"more time to start", {OF("a", "c", 1, 60000, 1, 300)}},
    {"never idle", {OF("a", "c", 1, 60000, 30000, 0)}},
    {"in a box", {BASE, .sandbox = MO_DRIVER_NATIVE}},
    {"in another box", {BASE, .sandbox = MO_DRIVER_DOCKER}},
    {"memory", {BASE, .memory_mb = 64}},
    {"processors", {BASE, .cpus = 0.25}},
    {"a client", {BASE, .oauth = {.client_id = "i"}}},
    {"a client's scope", {BASE, .oauth = {.scope = "i"}}},
    {"its network",
     {BASE, .sandbox = MO_DRIVER_NATIVE, .network = {.json = "{}"}}},
    {"a mount", {BASE, .sandbox = MO_DRIVER_NATIVE, .mounts = {.v = ro}}},
    {"writable", {BASE, .sandbox = MO_DRIVER_NATIVE, .mounts = {.v = rw}}},
    {"a workspace", {BASE, .sandbox = MO_DRIVER_NATIVE, .workspace = true}},
};

static const struct mo_config no_config;

static void test_digests(void **state)
{
    struct mo_gw_server v[MO_COUNT(differ)], again;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(differ); i++) {
        mo_gateway_setup_server(&no_config, &differ[i].s, &v[i]);
        mo_gateway_setup_server(&no_config, &differ[i].s, &again);
        check_row(differ[i].name, strlen(v[i].digest) == 64);
        check_row(differ[i].name, strcmp(v[i].digest, again.digest) == 0);
        for (size_t j = 0; j < i; j++)
            check_row(differ[i].name, strcmp(v[i].digest, v[j].digest) != 0);
    }
}

/* What only people read does not restart a server; its box's size does. */
static void test_same(void **state)
{
    const struct mo_config_mcp plain = {BASE}, boxed = {BASE, .image = "i"},
                               told = {BASE, .description = "d",
                                       .keywords = {one, 2}};
    const struct mo_config big = {.sandbox = {.memory_mb = 4096}};
    struct mo_gw_server a, b;

    (void)state;
    mo_gateway_setup_server(&no_config, &plain, &a);
    mo_gateway_setup_server(&no_config, &told, &b);
    assert_string_equal(a.digest, b.digest);
    mo_gateway_setup_server(&big, &plain, &b);
    assert_string_equal(a.digest, b.digest);
    mo_gateway_setup_server(&no_config, &boxed, &a);
    mo_gateway_setup_server(&big, &boxed, &b);
    assert_string_not_equal(a.digest, b.digest);
}

static void test_fields(void **state)
{
    const struct mo_config_mcp s = {BASE, .tool_prefix = "",
                                    .scope = MO_SCOPE_SESSION};
    struct mo_gw_server v;

    (void)state;
    mo_gateway_setup_server(&no_config, &s, &v);
    assert_string_equal(v.name, "a");
    assert_string_equal(v.prefix, "");
    assert_true(v.per_session);
    assert_int_equal(v.instances, 1);
    assert_int_equal(v.call_ms, 60000);
    assert_int_equal(v.start_ms, 30000);
    assert_int_equal(v.stop_ms, 300000);
    assert_int_equal(v.mode, MO_CONN_AUTO);
}

/* --- opened and closed --------------------------------------------------- */

static char dir[] = "/tmp/mo-hub-XXXXXX";

static void on_gone(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_true(void *ctx)
{
    return *(bool *)ctx;
}

static int load(struct mo_config_holder *h, struct mo_err *e)
{
    static char state[64], file[64];
    static char *environ[] = {state, NULL};
    struct mo_config_input in = {.file = file, .environ = environ};
    struct mo_config_report rep;

    (void)snprintf(state, sizeof(state), "MCP_ORCHESTRATOR_STATE_DIR=%s", dir);
    (void)snprintf(file, sizeof(file), "%s/config.json", dir);
    return mo_config_open(h, &in, &rep, e);
}

/* Transports of views, as letters of the views that have one. */
struct doors {
    char open[8], all[64];
};

static void *open_door(void *ctx, const char *view, struct mo_endpoint *ep)
{
    struct doors *d = ctx;
    char *slot = &d->open[view[0] - 'u'];

    assert_non_null(ep);
    assert_int_equal(*slot, 0); /* one at a time */
    *slot = view[0];
    (void)snprintf(d->all + strlen(d->all), sizeof(d->all) - strlen(d->all),
                   "+%c", view[0]);
    return slot;
}

static bool close_door(void *ctx, void *door)
{
    struct doors *d = ctx;

    (void)snprintf(d->all + strlen(d->all), sizeof(d->all) - strlen(d->all),
                   "-%c", *(char *)door);
    *(char *)door = 0;
    return true;
}

/* A view is opened once, closed when it is removed, and closed and opened when
 * other people may use it. */
static void live_views(void *ctx)
{
    const struct mo_config *const *cfg = ctx;
    struct doors d = {.open = ""};
    const struct mo_view_doors doors = {
        .open = open_door, .close = close_door, .ctx = &d, .by_people = true};
    struct mo_gateway_setup *hub = NULL;
    struct mo_view_table *t = NULL;
    bool gone = false, made = true;
    struct mo_err e;
    struct mo_loop *l = mo_loop_new(NULL, &e);

    if (!l)
        return;
    if (mo_gateway_setup_open(l, cfg[0], NULL, NULL, &hub, &e) < 0) {
        mo_loop_run(l);
        mo_loop_free(l);
        return;
    }
    t = mo_gateway_setup_views(hub);
    mo_view_table_doors(t, &doors);
    for (size_t i = 1; cfg[i]; i++)
        made = mo_gateway_setup_reload(hub, cfg[i], &e) == 0 && made;
    if (made) {
        assert_string_equal(d.all, "+u+v-u-v+v+w");
        assert_null(mo_view_table_find(t, MO_SPAN("u")));
        assert_non_null(mo_view_table_find(t, MO_SPAN("v")));
        assert_int_equal(
            mo_catalog_count(
                mo_gateway_view_catalog(mo_view_table_find(t, MO_SPAN("w"))),
                MO_CAT_TOOLS),
            0);
    }
    mo_view_table_doors(t, NULL);
    mo_gateway_setup_close(hub, on_gone, &gone);
    assert_true(mo_loop_until(l, is_true, &gone, 10000));
    mo_loop_free(l);
}

static void live(void *ctx)
{
    const struct mo_config *cfg = ctx;
    struct mo_gateway_setup *hub = NULL;
    bool gone = false;
    struct mo_err e;
    struct mo_loop *l = mo_loop_new(NULL, &e);

    if (!l)
        return;
    if (mo_gateway_setup_open(l, cfg, NULL, NULL, &hub, &e) == 0) {
        assert_int_equal(mo_gateway_count(mo_gateway_setup_gateway(hub)), 2);
        (void)mo_gateway_setup_reload(hub, cfg, &e);
        mo_gateway_setup_close(hub, on_gone, &gone);
        assert_false(gone); /* never from inside the call */
        assert_true(mo_loop_until(l, is_true, &gone, 10000));
    } else {
        mo_loop_run(l); /* what is half made */
    }
    mo_loop_free(l);
}

static void test_life(void **state)
{
    static const char text[] =
        "{\"mcpServers\":{\"a\":{\"command\":\"true\"},"
        "\"b\":{\"url\":\"http://localhost:1/\"},"
        "\"c\":{\"command\":\"true\",\"enabled\":false}}}";
    struct mo_config_holder h;
    char file[64], cache[64];
    struct mo_err e;
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(file, sizeof(file), "%s/config.json", dir);
    (void)snprintf(cache, sizeof(cache), "%s/" MO_GATEWAY_SETUP_CACHE, dir);
    f = fopen(file, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
    assert_int_equal(load(&h, &e), 0);
    torture(live, (void *)(uintptr_t)h.now);
    mo_config_close(&h);
    (void)remove(file);
    (void)remove(cache);
    (void)remove(dir);
}

static void test_people(void **state)
{
    const char *names[] = {"ann"};
    const struct mo_config_view open = {.name = "v"},
                                closed = {.name = "v", .people = {names, 1}},
                                strict = {.name = "v",
                                          .role = MO_ROLE_APPROVER};

    (void)state;
    assert_true(mo_view_is_for(&open, "bob", MO_ROLE_USER));
    assert_true(mo_view_is_for(&closed, "ann", MO_ROLE_USER));
    assert_true(mo_view_is_for(&closed, "", MO_ROLE_USER)); /* the operator */
    assert_false(mo_view_is_for(&closed, "bob", MO_ROLE_USER));
    assert_false(mo_view_is_for(&closed, "an", MO_ROLE_USER));
    assert_true(mo_view_is_for(&strict, "ann", MO_ROLE_APPROVER));
    assert_false(mo_view_is_for(&strict, "ann", MO_ROLE_USER));
}

static void write_config(const char *text)
{
    char file[64];
    FILE *f;

    (void)snprintf(file, sizeof(file), "%s/config.json", dir);
    f = fopen(file, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
}

static void test_views(void **state)
{
#define WITH(views)                                                            \
    "{\"mcpServers\":{\"a\":{\"command\":\"true\"}},\"views\":{" views "}}"
    static const char *const texts[] = {
        WITH("\"u\":{},\"v\":{\"servers\":[\"a\"]}"),
        WITH("\"u\":{\"readOnly\":true},\"v\":{\"tools\":[\"a/x\"]}"),
        WITH("\"v\":{\"people\":[\"ann\"]},\"w\":{\"expose\":\"search\"}"),
    };
    struct mo_config_holder h[MO_COUNT(texts)];
    const struct mo_config *cfg[MO_COUNT(texts) + 1] = {NULL};
    char path[64];
    struct mo_err e;

    (void)state;
    (void)snprintf(dir, sizeof(dir), "/tmp/mo-hub-XXXXXX");
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < MO_COUNT(texts); i++) {
        write_config(texts[i]);
        assert_int_equal(load(&h[i], &e), 0);
        cfg[i] = h[i].now;
    }
    torture(live_views, cfg);
    for (size_t i = 0; i < MO_COUNT(texts); i++)
        mo_config_close(&h[i]);
    (void)snprintf(path, sizeof(path), "%s/config.json", dir);
    (void)remove(path);
    (void)snprintf(path, sizeof(path), "%s/" MO_GATEWAY_SETUP_CACHE, dir);
    (void)remove(path);
    (void)remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digests), cmocka_unit_test(test_same),
        cmocka_unit_test(test_fields),  cmocka_unit_test(test_life),
        cmocka_unit_test(test_people),  cmocka_unit_test(test_views),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
