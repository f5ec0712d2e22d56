/* test_install_plan.c - names, look-alikes and plans of servers to install. */
#include "install/npm.h"
#include "install/pip.h"
#include "install/plan.h"
#include "install/squat.h"
#include "mo_test.h"

static void test_npm_names(void **state)
{
    static const struct {
        const char *name;
        bool good;
    } rows[] = {
        {"a", true},
        {"mcp-remote", true},
        {"@a/b", true},
        {"@a-b/c.d_e", true},
        {"", false},
        {"@a", false},
        {"@/b", false},
        {"@a/", false},
        {"a/b", false},
        {"@a/b/c", false},
        {"A", false},
        {".a", false},
        {"_a", false},
        {"-a", false},
        {"--prefix=x", false},
        {"a b", false},
        {"a\n", false},
        {"../a", false},
        {"@../a", false},
        {"@a/..", false},
        {"node_modules", false},
        {"a@1", false},
        {"git+ssh://x", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (mo_npm_is_name(mo_span_cstr(rows[i].name)) != rows[i].good)
            fail_msg("%s", rows[i].name);
    }
    assert_true(mo_npm_is_version(MO_SPAN("1.2.3-rc.1+5")));
    assert_true(mo_npm_is_version(MO_SPAN("latest")));
    assert_false(mo_npm_is_version(MO_SPAN("^1.0.0")));
    assert_false(mo_npm_is_version(MO_SPAN("1.x || 2")));
    assert_false(mo_npm_is_version(MO_SPAN("-1")));
    assert_false(mo_npm_is_version(MO_SPAN("../1")));
    assert_false(mo_npm_is_version(MO_SPAN("")));
}

static void test_look_alikes(void **state)
{
    static const struct {
        const char *name, *like;
    } rows[] = {
        {"@modelcontextprotocol/server-memory", NULL},
        {"@modelcontextprotocol/server-gitlab", NULL}, /* not server-github */
        {"@evil/server-memory", "@modelcontextprotocol/server-memory"},
        {"server-memory", "@modelcontextprotocol/server-memory"},
        {"@modelcontextprotocol/server-memoryy",
         "@modelcontextprotocol/server-memory"},
        {"@modelcontextprotocoI/server-memory",
         "@modelcontextprotocol/server-memory"},
        {"@playwrigth/mcp", "@playwright/mcp"},
        {"playwright-mcp", "@playwright/mcp"},
        {"mcp-remot", "mcp-remote"},
        {"tavily-mpc", "tavily-mcp"},
        {"@other/mcp", NULL}, /* a short last part says nothing */
        {"weather-of-ada", NULL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const char *like =
            mo_squat_resembles(mo_span_cstr(rows[i].name), false);

        if ((like != NULL) != (rows[i].like != NULL))
            fail_msg("%s: %s", rows[i].name, like ? like : "nothing");
        if (like)
            assert_string_equal(like, rows[i].like);
    }
}

static void test_owners(void **state)
{
    static const struct {
        const char *name, *repository;
        bool good;
    } rows[] = {
        {"io.github.ada/x", "https://github.com/ada/x", true},
        {"io.github.Ada/x", "git+https://github.com/ada/x.git", true},
        {"io.github.ada/x", "https://github.com/adam/x", false},
        {"io.github.ada/x", "https://github.com.evil.com/ada/x", false},
        {"io.github.ada/x", "https://gitlab.com/ada/x", false},
        {"io.github.ada/x", NULL, false},
        {"com.example/x", "https://gitlab.com/any/x", true},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (mo_squat_is_owner(mo_span_cstr(rows[i].name),
                              mo_span_cstr(rows[i].repository)) != rows[i].good)
            fail_msg("row %zu", i);
    }
}

#define DIGEST                                                                 \
    "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_words(void **state)
{
    static const struct {
        const char *word, *name, *source;
        int rc;
    } rows[] = {
        {"npm:@a/b", "b", "npm:@a/b", 0},
        {"npm:@a/b@1.0.0", "b", "npm:@a/b", 0},
        {"npm:b@next", "b", "npm:b", 0},
        {"oci:ghcr.io/a/b@" DIGEST, "b", "oci:ghcr.io/a/b@" DIGEST, 0},
        {"oci:host:5000/b:1@" DIGEST, "b", "oci:host:5000/b:1@" DIGEST, 0},
        {"https://a.example.com/mcp", "a.example.com",
         "https://a.example.com/mcp", 0},
        {"npm:", NULL, NULL, MO_EINVAL},
        {"npm:@a/b@", NULL, NULL, MO_EINVAL},
        {"npm:@a/b@>=1", NULL, NULL, MO_EINVAL},
        {"oci:a:latest", NULL, NULL, MO_EINVAL},
        {"oci:a@sha256:12", NULL, NULL, MO_EINVAL},
        {"oci:a b@" DIGEST, NULL, NULL, MO_EINVAL},
        {"http://a.example.com/", NULL, NULL, MO_EINVAL},
        {"https://u:p@a.example.com/", NULL, NULL, MO_EINVAL},
        {"pypi:A_b.-c", "a-b-c", "pypi:a-b-c", 0},
        {"pypi:a@1.0.post1", "a", "pypi:a", 0},
        {"pypi:", NULL, NULL, MO_EINVAL},
        {"pypi:-r", NULL, NULL, MO_EINVAL},
        {"pypi:a/b", NULL, NULL, MO_EINVAL},
        {"pypi:a[extra]", NULL, NULL, MO_EINVAL},
        {"pypi:a@latest", NULL, NULL, MO_EINVAL},
        {"pypi:a@1.0 --pre", NULL, NULL, MO_EINVAL},
        {"nuget:a", NULL, NULL, MO_EINVAL},
        {"mcpb:https://a.example/x/b.mcpb", NULL, NULL, MO_EINVAL},
        {"mcpb:https://a.example/b.mcpb@sha256:12", NULL, NULL, MO_EINVAL},
        {"mcpb:http://a.example/b.mcpb@" DIGEST, NULL, NULL, MO_EINVAL},
        {"mcpb:https://a.example/x/b.mcpb@" DIGEST, "b",
         "mcpb:https://a.example/x/b.mcpb", 0},
        {"a", NULL, NULL, MO_EINVAL},
        {"a/b/c", NULL, NULL, MO_EINVAL},
        {"/etc/passwd", NULL, NULL, MO_EINVAL},
        {"", NULL, NULL, MO_EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autoplan struct mo_install_plan p = {.kind = MO_INSTALL_NPM};
        mo_autobuf struct mo_buf b = {.max = 1000};
        struct mo_err e = {0};
        int rc = mo_install_plan_word(&p, mo_span_cstr(rows[i].word), NULL, &e);

        if (rc != rows[i].rc)
            fail_msg("%s: %d %s", rows[i].word, rc, e.msg);
        if (rc < 0)
            continue;
        mo_install_plan_source(&p, &b);
        assert_string_equal(p.name, rows[i].name);
        assert_string_equal(mo_buf_cstr(&b), rows[i].source);
    }
}

/* A whole server.json, with each allocation failing once. */
static int plan_all(struct mo_buf *entry, struct mo_err *e)
{
    static const char server[] =
        "{\"name\":\"io.github.a/b\",\"version\":\"1\",\"packages\":[{"
        "\"registryType\":\"npm\",\"identifier\":\"@a/b\",\"version\":\"1.0.0\""
        ",\"transport\":{\"type\":\"stdio\"},\"packageArguments\":[{\"type\":"
        "\"positional\",\"value\":\"{x}-{y}\",\"variables\":{\"x\":{\"value\":"
        "\"1\"}}}],\"environmentVariables\":[{\"name\":\"K\",\"isSecret\":true,"
        "\"isRequired\":true}]}]}";
    static const char view[] =
        "{\"name\":\"@a/b\",\"version\":\"1.0.0\",\"dist.integrity\":"
        "\"sha512-x\",\"bin\":{\"b\":\"./dist/b.js\"}}";
    mo_autoplan struct mo_install_plan p = {.kind = MO_INSTALL_NPM};
    int rc = mo_install_plan_word(&p, MO_SPAN("io.github.a/b"), NULL, e);

    if (rc == 0)
        rc = mo_install_plan_server(
            &p, (struct mo_json){server, sizeof(server) - 1}, NULL, e);
    if (rc == 0)
        rc = mo_install_plan_npm(&p, (struct mo_json){view, sizeof(view) - 1},
                                 NULL, e);
    if (rc == 0)
        rc = mo_install_plan_check(&p, e);
    if (rc < 0)
        return rc;
    mo_install_plan_judge(&p);
    mo_install_plan_entry(&p, "/n", "/d", entry);
    return mo_buf_err(entry);
}

static void test_plan(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 4096};
    struct mo_err e = {0};

    (void)state;
    assert_int_equal(plan_all(&b, &e), 0);
    assert_string_equal(
        mo_buf_cstr(&b),
        "{\"command\":\"/n\",\"args\":[\"/d/node_modules/@a/b/"
        "dist/b.js\",\"1-{y}\"],\"sandbox\":\"native\","
        "\"workspace\":true,\"env\":{\"K\":\"${secret:b.K}\"}}");
    for (uint64_t i = 1; i < 60; i++) {
        mo_autobuf struct mo_buf again = {.max = 4096};

        mo_mem_fail_at(i, true);
        (void)plan_all(&again, &e);
        mo_mem_fail_at(0, false);
    }
}

#define H64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ITEM(name, more)                                                       \
    "{\"download_info\":{\"url\":\"http://x/" name ".whl\",\"archive_info\":{" \
    "\"hashes\":{\"sha256\":\"" H64 "\"}}},\"metadata\":{\"name\":\"" name     \
    "\",\"version\":\"1.0\"}" more "}"

static void test_reports(void **state)
{
    static const struct {
        const char *items;
        int rc;
    } rows[] = {
        {ITEM("A_b", ",\"requested\":true"), 0},
        {ITEM("A_b", ",\"requested\":true") "," ITEM("c", ""), 0},
        {ITEM("c", "") "," ITEM("a.B", ",\"requested\":true"), 0},
        {"", MO_EPROTO},
        {ITEM("a-b", ""), MO_EPROTO}, /* nobody asked for it */
        {ITEM("c", ",\"requested\":true"), MO_EPROTO},
        {ITEM("a-b", ",\"requested\":true,\"is_yanked\":true"), MO_EPOLICY},
        {ITEM("a-b", ",\"requested\":true,\"is_direct\":true"), MO_EPOLICY},
        {ITEM("a-b", ",\"requested\":true") ",{\"metadata\":{\"name\":\"c\","
                                            "\"version\":\"1\"}}",
         MO_EPOLICY}, /* no wheel */
        {ITEM("a-b", ",\"requested\":true") "," ITEM("--x", ""), MO_EPROTO},
        {"{\"requested\":true,\"download_info\":{\"url\":\"x.whl\","
         "\"archive_info\":{\"hash\":\"sha256=12\"}},\"metadata\":{\"name\":"
         "\"a-b\",\"version\":\"1\"}}",
         MO_EPOLICY}, /* a short hash */
        {"7", MO_EPROTO},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autoplan struct mo_install_plan p = {.kind = MO_INSTALL_NPM};
        mo_autobuf struct mo_buf b = {.max = 8192};
        struct mo_err e = {0};
        int rc = mo_install_plan_word(&p, MO_SPAN("pypi:a-b"), NULL, &e);

        assert_int_equal(rc, 0);
        mo_buf_printf(&b, "{\"install\":[%s]}", rows[i].items);
        rc = mo_install_plan_pypi(&p, (struct mo_json){b.p, b.len}, NULL, &e);
        if (rc != rows[i].rc)
            fail_msg("row %zu: %d %s", i, rc, e.msg);
        if (rc == 0)
            assert_string_equal(p.integrity, "sha256:" H64);
    }
}

/* A manifest, with each allocation failing once. */
static int plan_bundle(struct mo_buf *entry, struct mo_err *e)
{
    static const char manifest[] =
        "{\"version\":\"1.0.0\",\"author\":{\"name\":\"A\"},\"server\":{"
        "\"type\":"
        "\"node\",\"entry_point\":\"s/i.js\",\"mcp_config\":{\"command\":"
        "\"node\",\"args\":[\"${__dirname}/s/i.js\",\"${user_config.n}\"],"
        "\"env\":{\"K\":\"b ${user_config.k}\",\"D\":\"${__dirname}:"
        "${__dirname}${/}d\"}}},\"user_config\":{\"n\":{\"default\":5},\"k\":{"
        "\"sensitive\":true,\"required\":true}}}";
    mo_autoplan struct mo_install_plan p = {.kind = MO_INSTALL_NPM};
    int rc = mo_install_plan_word(
        &p, MO_SPAN("mcpb:https://a.example/b.mcpb@sha256:" H64), NULL, e);

    if (rc == 0)
        rc = mo_install_plan_mcpb(
            &p, (struct mo_json){manifest, sizeof(manifest) - 1}, e);
    if (rc < 0)
        return rc;
    mo_install_plan_judge(&p);
    mo_install_plan_entry(&p, "/n", "/d", entry);
    return mo_buf_err(entry);
}

static void test_bundles(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 4096};
    struct mo_err e = {0};

    (void)state;
    assert_int_equal(plan_bundle(&b, &e), 0);
    assert_string_equal(
        mo_buf_cstr(&b),
        "{\"command\":\"/n\",\"args\":[\"/d/s/i.js\",\"5\"],\"sandbox\":"
        "\"native\",\"workspace\":true,\"env\":{\"K\":\"b ${secret:b.k}\","
        "\"D\":\"/d:/d/d\"}}");
    for (uint64_t i = 1; i < 80; i++) {
        mo_autobuf struct mo_buf again = {.max = 4096};

        mo_mem_fail_at(i, true);
        (void)plan_bundle(&again, &e);
        mo_mem_fail_at(0, false);
    }
}

static void test_bins(void **state)
{
    static const struct {
        const char *bin, *choice, *got;
    } rows[] = {
        {"\"a.js\"", NULL, "a.js"},
        {"{\"x\":\"./a.js\"}", NULL, "a.js"},
        {"{\"x\":\"a.js\",\"b\":\"b.js\"}", NULL, "b.js"},
        {"{\"x\":\"a.js\",\"y\":\"b.js\"}", NULL, NULL},
        {"{\"x\":\"a.js\",\"y\":\"b.js\"}", "y", "b.js"},
        {"{\"x\":\"a.js\"}", "z", NULL},
        {"{\"x\":\"../a.js\"}", NULL, NULL},
        {"{\"x\":\"/bin/sh\"}", NULL, NULL},
        {"{\"x\":\"a\\u0000\"}", NULL, NULL},
        {"{}", NULL, NULL},
        {"7", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autoplan struct mo_install_plan p = {.kind = MO_INSTALL_NPM};
        mo_autobuf struct mo_buf b = {.max = 1000};
        struct mo_err e = {0};
        int rc = mo_install_plan_word(&p, MO_SPAN("npm:@a/b"), NULL, &e);

        assert_int_equal(rc, 0);
        mo_buf_printf(&b,
                      "{\"version\":\"1.0.0\",\"dist.integrity\":\"sha512-x\","
                      "\"bin\":%s}",
                      rows[i].bin);
        rc = mo_install_plan_npm(&p, (struct mo_json){b.p, b.len},
                                 rows[i].choice, &e);
        if ((rc == 0) != (rows[i].got != NULL))
            fail_msg("%s: %d %s", rows[i].bin, rc, e.msg);
        if (rc == 0)
            assert_string_equal(p.bin, rows[i].got);
    }
}

static void test_hosts(void **state)
{
    static const struct {
        const char *arg, *host; /* NULL: none is proposed */
    } proposed[] = {
        {"https://api.example.com/v1", "api.example.com:443"},
        {"http://api.example.com:8080", "api.example.com:8080"},
        {"postgres://db.example.com:5432/x", "db.example.com:5432"},
        {"https://127.0.0.1/", NULL},
        {"http://169.254.169.254/latest", NULL},
        {"http://[::1]:80/", NULL},
        {"https://exa mple.com/", NULL},
        {"api.example.com", NULL},
        {"--url", NULL},
        {"", NULL},
    };
    static const char *const bad[] = {"",    "a b", "https://a.example",
                                      "a:0", "*",   "a.example:70000"};
    struct mo_err e;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(proposed); i++) {
        mo_autoplan struct mo_install_plan p = {.kind = MO_INSTALL_NPM};

        p.a.cap = MO_INSTALL_BYTES_MAX;
        assert_int_equal(mo_install_plan_arg(&p, proposed[i].arg, &e), 0);
        mo_install_plan_propose(&p);
        if (p.nhosts != (proposed[i].host != NULL))
            fail_msg("%s", proposed[i].arg);
        if (p.nhosts)
            assert_string_equal(p.hosts[0], proposed[i].host);
    }
    for (size_t i = 0; i < MO_COUNT(bad); i++) {
        mo_autoplan struct mo_install_plan p = {.kind = MO_INSTALL_NPM};

        if (mo_install_plan_host(&p, bad[i], &e) == 0)
            fail_msg("%s", bad[i]);
    }
}

static void test_given_hosts(void **state)
{
    mo_autoplan struct mo_install_plan p = {
        .kind = MO_INSTALL_NPM, .package = "a", .bin = "b"};
    mo_autobuf struct mo_buf b = {.max = 4096};
    struct mo_err e;

    (void)state;
    p.a.cap = MO_INSTALL_BYTES_MAX;
    assert_int_equal(mo_install_plan_arg(&p, "https://no.example/", &e), 0);
    assert_int_equal(mo_install_plan_host(&p, "*.example.org:443", &e), 0);
    assert_int_equal(mo_install_plan_host(&p, "*.example.org:443", &e), 0);
    assert_int_equal(mo_install_plan_host(&p, "10.0.0.5:5432", &e), 0);
    mo_install_plan_propose(&p); /* the person's are all */
    mo_install_plan_entry(&p, "/n", "/d", &b);
    assert_non_null(strstr(mo_buf_cstr(&b),
                           "\"workspace\":true,\"network\":{\"allow\":"
                           "[\"*.example.org:443\",\"10.0.0.5:5432\"]}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npm_names), cmocka_unit_test(test_look_alikes),
        cmocka_unit_test(test_owners),    cmocka_unit_test(test_words),
        cmocka_unit_test(test_plan),      cmocka_unit_test(test_bins),
        cmocka_unit_test(test_bundles),   cmocka_unit_test(test_reports),
        cmocka_unit_test(test_hosts),     cmocka_unit_test(test_given_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
