/* URIs that servers use without listing them: files of skills, apps of tools.
 * Whoever shares one is prefixed everywhere. */
#include "catalog_kit.h"

#define SKILL(name)    "skill://" name "/SKILL.md"
#define APP(tool, uri) tool ",\"_meta\":{\"ui\":{\"resourceUri\":\"" uri "\"}}"

struct claims_row {
    const char *name;
    enum mo_gw_prefix mode;
    const char *skills[2], *resources[2], *tools[2]; /* of a and b */
    /* Expected: exposed skills and resources, and where a URI leads. */
    const char *named_skills, *named_resources;
    const char *uri;
    int server; /* -1: nowhere */
};

static const struct claims_row rows[] = {
    {"one skill keeps its URI",
     COLLISION,
     {SKILL("x"), ""},
     {"", "m:1"},
     {"", ""},
     "skill://x/SKILL.md=0/skill://x/SKILL.md",
     "m:1=1/m:1",
     "skill://x/deep/er.md",
     0},
    {"two of the same are prefixed",
     COLLISION,
     {SKILL("x"), SKILL("x")},
     {"", ""},
     {"", ""},
     "a+skill://x/SKILL.md=0/skill://x/SKILL.md "
     "b+skill://x/SKILL.md=1/skill://x/SKILL.md",
     "",
     "b+skill://x/a.md",
     1},
    {"a shared URI leads nowhere",
     COLLISION,
     {SKILL("x"), SKILL("x")},
     {"", ""},
     {"", ""},
     "a+skill://x/SKILL.md=0/skill://x/SKILL.md "
     "b+skill://x/SKILL.md=1/skill://x/SKILL.md",
     "",
     "skill://x/a.md",
     -1},
    {"a resource inside another's skill",
     COLLISION,
     {SKILL("x"), ""},
     {"", "skill://x/a.md"},
     {"", ""},
     "a+skill://x/SKILL.md=0/skill://x/SKILL.md",
     "b+skill://x/a.md=1/skill://x/a.md",
     "a+skill://x/a.md",
     0},
    {"a server's own resource inside its skill",
     COLLISION,
     {SKILL("x"), ""},
     {SKILL("x"), ""},
     {"", ""},
     "skill://x/SKILL.md=0/skill://x/SKILL.md",
     "skill://x/SKILL.md=0/skill://x/SKILL.md",
     "skill://x",
     0},
    {"a skill inside another's skill",
     COLLISION,
     {SKILL("x"), SKILL("x/y")},
     {"", ""},
     {"", ""},
     "a+skill://x/SKILL.md=0/skill://x/SKILL.md "
     "b+skill://x/y/SKILL.md=1/skill://x/y/SKILL.md",
     "",
     "b+skill://x/y/z",
     1},
    {"a name that only begins alike",
     COLLISION,
     {SKILL("x"), SKILL("xy")},
     {"", ""},
     {"", ""},
     "skill://x/SKILL.md=0/skill://x/SKILL.md "
     "skill://xy/SKILL.md=1/skill://xy/SKILL.md",
     "",
     "skill://xy/a",
     1},
    {"always prefixed",
     ALWAYS,
     {SKILL("x"), ""},
     {"", ""},
     {"", ""},
     "a+skill://x/SKILL.md=0/skill://x/SKILL.md",
     "",
     "a+skill://x/f",
     0},
    {"an app that is not listed",
     COLLISION,
     {"", ""},
     {"m:1", "m:2"},
     {APP("t", "ui://v"), ""},
     "",
     "m:1=0/m:1 m:2=1/m:2",
     "ui://v",
     0},
    {"an app that another lists",
     COLLISION,
     {"", ""},
     {"", "ui://v"},
     {APP("t", "ui://v"), ""},
     "",
     "ui://b/+ui://v=1/ui://v",
     "ui://a/+ui://v",
     0},
    {"two tools of one server, one app",
     COLLISION,
     {"", ""},
     {"ui://v", ""},
     {APP("t", "ui://v") " " APP("u", "ui://v"), ""},
     "",
     "ui://v=0/ui://v",
     "ui://v",
     0},
};

static void put_all(struct mo_catalog *c, const struct claims_row *r)
{
    unsigned changed = 0;

    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(kit_put(c, i, MO_CAT_TOOLS, r->tools[i], &changed), 0);
        assert_int_equal(
            kit_put(c, i, MO_CAT_RESOURCES, r->resources[i], &changed), 0);
        assert_int_equal(kit_put(c, i, MO_CAT_SKILLS, r->skills[i], &changed),
                         0);
    }
}

static int lookup(const struct mo_catalog *c, const char *uri)
{
    unsigned server = 0;
    struct mo_span own;

    return mo_catalog_resource(c, mo_span_cstr(uri), &server, &own) == 0
               ? (int)server
               : -1;
}

static void test_rows(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1 << 16);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const struct claims_row *r = &rows[i];
        struct mo_catalog *c =
            kit_new(r->mode, NULL, MO_CAT_PROMPTS, "a -;b -");

        put_all(c, r);
        check_row(r->name, strcmp(kit_words(c, MO_CAT_SKILLS, &b),
                                  r->named_skills) == 0);
        check_row(r->name, strcmp(kit_words(c, MO_CAT_RESOURCES, &b),
                                  r->named_resources) == 0);
        check_row(r->name, lookup(c, r->uri) == r->server);
        mo_catalog_free(c);
    }
    mo_buf_fini(&b);
}

static void expect_tools(const struct mo_catalog *c, const char *want)
{
    struct mo_buf b;

    mo_buf_init(&b, 1 << 16);
    assert_int_equal(mo_catalog_page(c, MO_CAT_TOOLS, MO_SPAN(""), 0, &b), 0);
    assert_non_null(strstr(mo_buf_cstr(&b), want));
    mo_buf_fini(&b);
}

/* A tool names the app as it is exposed, and is listed anew when that changes;
 * the definition that people approve stays the server's. */
static void test_link_follows(void **state)
{
    struct mo_catalog *c = kit_new(COLLISION, NULL, MO_CAT_TOOLS,
                                   "a - " APP("t", "ui://v") ";b - other");
    const struct mo_cat_item *tool;
    unsigned changed = 0;

    (void)state;
    expect_tools(c, "{\"resourceUri\":\"ui://v\"}");
    assert_int_equal(kit_put(c, 1, MO_CAT_RESOURCES, "ui://v", &changed), 0);
    assert_true(changed & 1u << MO_CAT_TOOLS);
    assert_true(changed & 1u << MO_CAT_RESOURCES);
    expect_tools(c, "{\"resourceUri\":\"ui://a/+ui://v\"}");
    tool = mo_catalog_find(c, MO_CAT_TOOLS, MO_SPAN("t"));
    assert_non_null(tool);
    assert_true(mo_json_str_eq(
        mo_json_get(mo_json_get(mo_json_get(tool->item, "_meta"), "ui"),
                    "resourceUri"),
        MO_SPAN("ui://v")));
    assert_int_equal(kit_put(c, 1, MO_CAT_RESOURCES, "", &changed), 0);
    assert_true(changed & 1u << MO_CAT_TOOLS);
    expect_tools(c, "{\"resourceUri\":\"ui://v\"}");
    mo_catalog_free(c);
}

static void test_directory(void **state)
{
    static const char files[] =
        SKILL("x") ",\"resources\":[{\"uri\":\"skill://x/SKILL.md\","
                   "\"size\":1},{\"uri\":\"skill://x/d/a\",\"size\":2},"
                   "{\"uri\":\"skill://x/d/e/b\",\"size\":3}]";
    static const struct {
        const char *uri, *want; /* NULL: no such directory */
    } v[] = {
        {"skill://x",
         "{\"resources\":[{\"uri\":\"skill://x/"
         "SKILL.md\",\"name\":\"SKILL.md\","
         "\"size\":1},{\"uri\":\"skill://x/d\",\"name\":\"d\",\"mimeType\":"
         "\"inode/directory\"}]}"},
        {"skill://x/d/e", "{\"resources\":[{\"uri\":\"skill://x/d/e/b\","
                          "\"name\":\"b\",\"size\":3}]}"},
        {"skill://x/d/a", NULL},
        {"skill://x/none", NULL},
        {"skill://y", NULL},
    };
    struct mo_catalog *c = kit_new(COLLISION, NULL, MO_CAT_PROMPTS, "a -;b -");
    unsigned changed = 0;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1 << 16);
    assert_int_equal(kit_put(c, 0, MO_CAT_SKILLS, files, &changed), 0);
    for (size_t i = 0; i < MO_COUNT(v); i++) {
        int rc;

        mo_buf_reset(&b);
        rc = mo_catalog_skill_directory(c, mo_span_cstr(v[i].uri), &b);
        check_row(v[i].uri,
                  v[i].want ? rc == 0 && strcmp(mo_buf_cstr(&b), v[i].want) == 0
                            : rc == MO_ENOTFOUND);
    }
    mo_buf_fini(&b);
    mo_catalog_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_link_follows),
        cmocka_unit_test(test_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
