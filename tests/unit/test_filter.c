/* Views: which servers and tools a filter takes, and the part of a catalogue
 * that is made with it. */
#include "catalog_kit.h"
#include "gateway/catalog/filter.h"

static void test_glob(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool fits;
    } rows[] = {
        {"read", "read", true},
        {"read", "reads", false},
        {"read", "Read", false},
        {"*", "", true},
        {"*", "a/b", true},
        {"", "", true},
        {"", "a", false},
        {"?", "a", true},
        {"?", "", false},
        {"?", "\xc3\xa9", true},
        {"??", "\xc3\xa9", false},
        {"a*", "a", true},
        {"*a", "ba", true},
        {"*a", "ab", false},
        {"*a*b*", "xaxb", true},
        {"*a*b*", "xbxa", false},
        {"delete_*", "delete_", true},
        {"a**b", "ab", true},
        {"a?c", "abc", true},
        {"a|b", "a", false},
        {"a\\*", "a*", false},
        {"*ab", "aab", true},
        {"*aab", "aaaab", true},
        {"a*a", "a", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        check_row(rows[i].pattern,
                  mo_filter_glob(mo_span_cstr(rows[i].pattern),
                                 mo_span_cstr(rows[i].text)) == rows[i].fits);
}

/* A pattern that would take forever by trying every length of every star. */
static void test_glob_is_fast(void **state)
{
    static char text[100000];

    (void)state;
    memset(text, 'a', sizeof(text));
    assert_false(mo_filter_glob(MO_SPAN("*a*a*a*a*a*a*a*a*a*a*a*ab"),
                                mo_span(text, sizeof(text))));
}

/* Lists with blanks between, as in the configuration. */
static size_t split(char *text, const char **v)
{
    size_t n = 0;

    for (char *p = text; *p; p++) {
        if (p == text || p[-1] == '\0')
            v[n++] = p;
        if (*p == ' ')
            *p = '\0';
    }
    return n;
}

struct choice {
    char servers[128], tools[256];
    const char *v[2][16];
    struct mo_config_view view;
};

static const struct mo_config_view *
choose(struct choice *c, const char *servers, const char *tools, bool read_only)
{
    *c = (struct choice){.view = {.name = "v", .read_only = read_only}};
    (void)snprintf(c->servers, sizeof(c->servers), "%s", servers);
    (void)snprintf(c->tools, sizeof(c->tools), "%s", tools);
    c->view.servers.n = split(c->servers, c->v[0]);
    c->view.servers.v = c->v[0];
    c->view.tools.n = split(c->tools, c->v[1]);
    c->view.tools.v = c->v[1];
    return &c->view;
}

#define READS ",\"annotations\":{\"readOnlyHint\":true}"

static const struct {
    const char *name, *servers, *tools;
    bool read_only;
    const char *out;   /* exposed names of the tools */
    const char *shown; /* servers */
} rows[] = {
    {"all", "", "", false, "get del f_read g_read open", "f g w"},
    {"one server", "f", "", false, "get del read", "f"},
    {"no prefix for a hidden collision", "g", "", false, "read", "g"},
    {"pattern", "", "f/*", false, "get del read", "f"},
    {"pattern and exclusion", "", "f/* !*/del", false, "get read", "f"},
    {"last match wins", "", "f/* !f/* f/get", false, "get", "f"},
    {"excluded again", "", "f/get f/del !*/del", false, "get", "f"},
    {"only an exclusion", "", "!*/read", false, "get del open", "f g w"},
    {"exclusion first, then back", "", "!*/* w/open", false, "open", "f g w"},
    {"nothing fits", "", "f/none", false, "", "f"},
    {"servers and tools", "f g", "*/read", false, "f_read g_read", "f g"},
    {"server of a pattern only", "f", "*/*", false, "get del read", "f"},
    {"question mark", "", "?/open", false, "open", "f g w"},
    {"case matters", "", "F/*", false, "", ""},
    {"own name, not the exposed one", "", "*/f_read", false, "", "f g w"},
    {"read-only", "", "", true, "get open", "f g w"},
    {"read-only of a server", "f", "", true, "get", "f"},
    {"read-only and excluded", "", "!f/get", true, "open", "f g w"},
    {"unknown server", "x", "", false, "", ""},
};

static struct mo_catalog *make_whole(void)
{
    return kit_new(COLLISION, NULL, MO_CAT_TOOLS,
                   "f - get" READS " del read;g - read;w - open" READS);
}

static void test_parts(void **state)
{
    struct mo_catalog *whole = make_whole();
    struct choice c;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_catalog *part = mo_catalog_part_new(
            whole, mo_filter_new(choose(&c, rows[i].servers, rows[i].tools,
                                        rows[i].read_only)));
        const struct mo_catalog *now = mo_catalog_part_now(part);
        char got[256] = "", shown[64] = "";

        for (size_t k = 0; k < mo_catalog_count(now, MO_CAT_TOOLS); k++) {
            const struct mo_cat_item *it = mo_catalog_at(now, MO_CAT_TOOLS, k);

            (void)snprintf(got + strlen(got), sizeof(got) - strlen(got),
                           "%s%.*s", got[0] ? " " : "", (int)it->name.n,
                           it->name.p);
            assert_ptr_equal(mo_catalog_find(now, MO_CAT_TOOLS, it->name), it);
        }
        for (unsigned k = 0; k < 3; k++)
            if (mo_catalog_shows(now, k))
                (void)snprintf(shown + strlen(shown),
                               sizeof(shown) - strlen(shown), "%s%s",
                               shown[0] ? " " : "", whole->v[k].name);
        if (strcmp(got, rows[i].out) || strcmp(shown, rows[i].shown))
            fail_msg("row '%s': %s; of %s", rows[i].name, got, shown);
        mo_catalog_free(part);
    }
    mo_catalog_free(whole);
}

/* A page of a part names no server and no tool outside of it. */
static void test_page(void **state)
{
    struct mo_catalog *whole = make_whole();
    struct choice c;
    struct mo_catalog *part = mo_catalog_part_new(
        whole, mo_filter_new(choose(&c, "f", "f/get f/read", false)));
    mo_autobuf struct mo_buf b = {.max = 1 << 16};
    struct mo_json_doc d;

    (void)state;
    mo_catalog_fail(whole, 1, "SECRET of g");
    mo_catalog_fail(whole, 0, "of f");
    assert_int_equal(mo_catalog_page(mo_catalog_part_now(part), MO_CAT_TOOLS,
                                     MO_SPAN(""), 1, &b),
                     0);
    assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &d, NULL), 0);
    assert_int_equal(mo_json_len(mo_json_get(d.root, "tools")), 1);
    assert_true(mo_json_get(d.root, "nextCursor").p != NULL);
    assert_non_null(strstr(mo_buf_cstr(&b), "of f"));
    assert_null(strstr(mo_buf_cstr(&b), "SECRET"));
    assert_null(strstr(mo_buf_cstr(&b), "\"g\""));
    assert_null(strstr(mo_buf_cstr(&b), "del"));
    mo_catalog_free(part);
    mo_catalog_free(whole);
}

/* A part follows the whole, and its checksum tells whether it has changed. */
static void test_follows(void **state)
{
    struct mo_catalog *whole = make_whole();
    struct choice c;
    struct mo_catalog *part =
        mo_catalog_part_new(whole, mo_filter_new(choose(&c, "f", "", false)));
    uint64_t sum = mo_catalog_part_sum(part, MO_CAT_TOOLS);
    unsigned changed = 0;

    (void)state;
    assert_int_equal(kit_put(whole, 2, MO_CAT_TOOLS, "other", &changed), 0);
    assert_true(changed);
    assert_true(mo_catalog_part_sum(part, MO_CAT_TOOLS) == sum);
    assert_int_equal(kit_put(whole, 0, MO_CAT_TOOLS, "get more", &changed), 0);
    assert_true(mo_catalog_part_sum(part, MO_CAT_TOOLS) != sum);
    assert_non_null(mo_catalog_find(mo_catalog_part_now(part), MO_CAT_TOOLS,
                                    MO_SPAN("more")));
    assert_null(mo_catalog_find(mo_catalog_part_now(part), MO_CAT_TOOLS,
                                MO_SPAN("other")));
    mo_catalog_part_filter(part, mo_filter_new(choose(&c, "w", "", false)));
    assert_non_null(mo_catalog_find(mo_catalog_part_now(part), MO_CAT_TOOLS,
                                    MO_SPAN("other")));
    assert_null(mo_catalog_find(mo_catalog_part_now(part), MO_CAT_TOOLS,
                                MO_SPAN("more")));
    mo_catalog_free(part);
    mo_catalog_free(whole);
}

/* Resources follow their server, also those that are not listed. */
static void test_resources(void **state)
{
    struct mo_catalog *whole =
        kit_new(COLLISION, NULL, MO_CAT_RESOURCES, "a - x:1 y:1;b - x:1 z:1");
    struct choice c;
    struct mo_catalog *part = mo_catalog_part_new(
        whole, mo_filter_new(choose(&c, "a", "a/none", false)));
    const struct mo_catalog *now = mo_catalog_part_now(part);
    mo_autobuf struct mo_buf b = {.max = 4096};
    struct mo_span own;
    unsigned no = 9;

    (void)state;
    assert_string_equal(kit_words(now, MO_CAT_RESOURCES, &b),
                        "x:1=0/x:1 y:1=0/y:1");
    assert_int_equal(mo_catalog_resource(now, MO_SPAN("b+x:1"), &no, &own),
                     MO_ENOTFOUND);
    assert_int_equal(mo_catalog_resource(now, MO_SPAN("b+x:9"), &no, &own),
                     MO_ENOTFOUND);
    assert_int_equal(mo_catalog_resource(now, MO_SPAN("a+x:9"), &no, &own), 0);
    assert_int_equal(no, 0);
    mo_catalog_free(part);
    mo_catalog_free(whole);
}

/* Without memory a part is empty, not half of itself, and recovers. */
static void one_life(void *ctx)
{
    struct mo_catalog *whole = ctx;
    struct choice c;
    const struct mo_config_view *v = choose(&c, "", "!*/del", false);
    struct mo_catalog *part = mo_catalog_part_new(whole, mo_filter_new(v));
    size_t n =
        part ? mo_catalog_count(mo_catalog_part_now(part), MO_CAT_TOOLS) : 0;

    if (n != 0 && n != 4)
        fail_msg("%zu tools", n);
    mo_catalog_free(part);
}

static void test_torture(void **state)
{
    struct mo_catalog *whole = make_whole();

    (void)state;
    torture(one_life, whole);
    mo_catalog_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_glob),    cmocka_unit_test(test_glob_is_fast),
        cmocka_unit_test(test_parts),   cmocka_unit_test(test_page),
        cmocka_unit_test(test_follows), cmocka_unit_test(test_resources),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
