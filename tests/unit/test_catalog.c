/* The catalogue: colliding names, owners of resources, pages that survive
 * changes, limits, and failing allocations. */
#include "catalog_kit.h"

/* --- names --------------------------------------------------------------- */

static void test_merging(void **state)
{
    static const struct {
        const char *name;
        enum mo_gw_prefix mode;
        enum mo_cat_kind kind;
        const char *spec, *out;
        const char *why; /* of the last server */
    } rows[] = {
        {"alone", COLLISION, MO_CAT_TOOLS, "a - read write",
         "read=0/read write=0/write", NULL},
        {"apart", COLLISION, MO_CAT_TOOLS, "a - read;b - write",
         "read=0/read write=1/write", NULL},
        {"both have it", COLLISION, MO_CAT_TOOLS, "a - read x;b - read y",
         "a_read=0/read x=0/x b_read=1/read y=1/y", NULL},
        {"three have it", COLLISION, MO_CAT_TOOLS, "a - r;b - r;c - r",
         "a_r=0/r b_r=1/r c_r=2/r", NULL},
        {"their prefixes", COLLISION, MO_CAT_TOOLS, "a A r;b B r",
         "A_r=0/r B_r=1/r", NULL},
        {"same prefixes", COLLISION, MO_CAT_TOOLS, "a p r;b p r;c p r",
         "p_r=0/r p_r_376793=1/r", "1 tools hidden by others of that name"},
        {"one keeps it", COLLISION, MO_CAT_TOOLS, "a - r;b '' r",
         "a_r=0/r r=1/r", NULL},
        {"two would keep it", COLLISION, MO_CAT_TOOLS, "a '' r;b '' r s",
         "r=0/r s=1/s", "1 tools hidden by others of that name"},
        {"two would keep it, one between", COLLISION, MO_CAT_TOOLS,
         "a '' r;b - r;c '' r", "r=0/r b_r=1/r",
         "1 tools hidden by others of that name"},
        {"listed twice", COLLISION, MO_CAT_TOOLS, "a - r s r", "r=0/r s=0/s",
         "1 tools listed twice"},
        {"listed twice by the first", COLLISION, MO_CAT_TOOLS, "a - r r;b - r",
         "a_r=0/r b_r=1/r", NULL},
        {"listed twice by the second", COLLISION, MO_CAT_TOOLS,
         "a - r;b - r r s", "a_r=0/r b_r=1/r s=1/s", "1 tools listed twice"},
        {"a made name is another's own", COLLISION, MO_CAT_TOOLS,
         "a - r;b - r a_r", "a_r_d7e891=0/r b_r=1/r b_a_r=1/a_r", NULL},
        {"and with its hash", COLLISION, MO_CAT_TOOLS,
         "a - r;b - r a_r a_r_d7e891",
         "a_r_d7e891=0/r b_r=1/r b_a_r=1/a_r b_a_r_d7e891=1/a_r_d7e891", NULL},
        {"and listed twice", COLLISION, MO_CAT_TOOLS, "a - r;b - r a_r a_r",
         "a_r_d7e891=0/r b_r=1/r b_a_r=1/a_r", "1 tools listed twice"},
        {"a name that might be made", COLLISION, MO_CAT_TOOLS, "a - r;b - a_r",
         "r=0/r b_a_r=1/a_r", NULL},
        {"the same, the other way round", COLLISION, MO_CAT_TOOLS,
         "b - a_r;a - r", "b_a_r=0/a_r r=1/r", NULL},
        {"a name of no tool of another's", COLLISION, MO_CAT_TOOLS,
         "a - r a_t;b - a_s", "r=0/r a_t=0/a_t a_s=1/a_s", NULL},
        {"one keeps a made name", COLLISION, MO_CAT_TOOLS,
         "a - r;b - r;c '' a_r", "a_r_d7e891=0/r b_r=1/r a_r=2/a_r", NULL},
        {"two made names are the same", ALWAYS, MO_CAT_TOOLS, "a - b_c;a_b - c",
         "a_b_c=0/b_c a_b_c_0c1d18=1/c", NULL},
        {"always", ALWAYS, MO_CAT_TOOLS, "a - r;b x s;c '' t",
         "a_r=0/r x_s=1/s t=2/t", NULL},
        {"never", NEVER, MO_CAT_TOOLS, "a - r;b - s r", "r=0/r s=1/s",
         "1 tools hidden by others of that name"},
        {"never, odd names", NEVER, MO_CAT_TOOLS, "a - r.s;b - r.s",
         "r_s_8794f6=0/r.s", "1 tools hidden by others of that name"},
        {"prompts", COLLISION, MO_CAT_PROMPTS, "a - p;b - p", "a_p=0/p b_p=1/p",
         NULL},
        {"resources apart", COLLISION, MO_CAT_RESOURCES, "a - x:1;b - x:2",
         "x:1=0/x:1 x:2=1/x:2", NULL},
        {"resources", COLLISION, MO_CAT_RESOURCES, "a - x:1 x:2;B - x:1",
         "a+x:1=0/x:1 x:2=0/x:2 b-f6c6e5+x:1=1/x:1", NULL},
        {"resources always", ALWAYS, MO_CAT_RESOURCES, "a p x:1;b '' x:2",
         "a+x:1=0/x:1 x:2=1/x:2", NULL},
        {"resources never", NEVER, MO_CAT_RESOURCES, "a - x:1;b - x:1",
         "x:1=0/x:1", "1 resources hidden by others of that name"},
        {"own name like a made one", COLLISION, MO_CAT_RESOURCES,
         "a - x:1;b - x:1 a+x:1", "b+x:1=1/x:1 a+x:1=1/a+x:1", NULL},
        {"templates", COLLISION, MO_CAT_TEMPLATES, "a - x:{p};b - x:{p}",
         "a+x:{p}=0/x:{p} b+x:{p}=1/x:{p}", NULL},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1 << 16);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_catalog *c =
            kit_new(rows[i].mode, NULL, rows[i].kind, rows[i].spec);
        unsigned last = (unsigned)c->n - 1;
        const char *why = mo_catalog_why(c, last);

        if (strcmp(kit_words(c, rows[i].kind, &b), rows[i].out) != 0)
            fail_msg("row '%s': %s", rows[i].name, mo_buf_cstr(&b));
        check_row(rows[i].name, (why == NULL) == (rows[i].why == NULL));
        check_row(rows[i].name, !why || strcmp(why, rows[i].why) == 0);
        mo_catalog_free(c);
    }
    mo_buf_fini(&b);
}

/* --- changes ------------------------------------------------------------- */

static void test_changed(void **state)
{
    struct mo_catalog *c =
        kit_new(COLLISION, NULL, MO_CAT_TOOLS, "a - r s;b - t");
    unsigned changed = 1;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 4096);
    assert_int_equal(kit_put(c, 0, MO_CAT_TOOLS, "r s", &changed), 0);
    assert_false(changed);
    assert_int_equal(kit_put(c, 0, MO_CAT_TOOLS, "r s r", &changed), 0);
    assert_false(changed); /* the second one is hidden */
    assert_int_equal(kit_put(c, 0, MO_CAT_PROMPTS, "", &changed), 0);
    assert_false(changed);
    assert_int_equal(kit_put(c, 0, MO_CAT_TOOLS, "s r", &changed), 0);
    assert_true(changed);
    assert_int_equal(kit_put(c, 0, MO_CAT_TOOLS, "s r,\"x\":1", &changed), 0);
    assert_true(changed);
    assert_int_equal(kit_put(c, 1, MO_CAT_TOOLS, "r", &changed), 0);
    assert_true(changed);
    assert_string_equal(kit_words(c, MO_CAT_TOOLS, &b),
                        "s=0/s a_r=0/r b_r=1/r");
    assert_int_equal(mo_catalog_put(c, 1, MO_CAT_TOOLS, nothing, &changed), 0);
    assert_true(changed);
    assert_string_equal(kit_words(c, MO_CAT_TOOLS, &b), "s=0/s r=0/r");
    mo_buf_fini(&b);
    mo_catalog_free(c);
}

/* Servers are added, removed, moved and changed; lists of unchanged ones are
 * kept. */
static void test_reload(void **state)
{
    struct mo_catalog *c =
        kit_new(COLLISION, NULL, MO_CAT_TOOLS, "a - r;b - r;c - x");
    struct kit_servers k;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 4096);
    mo_catalog_done(c, 2, js("{\"tools\":{}}"), js("{\"name\":\"C\"}"));
    mo_catalog_fail(c, 1, "it broke");
    kit_spec(&k, "c '';new -;b B;a -");
    k.v[3].digest[0] = 'X'; /* not the same server any more */
    assert_int_equal(mo_catalog_servers(c, k.v, k.n, NULL), 0);
    assert_string_equal(kit_words(c, MO_CAT_TOOLS, &b), "x=0/x r=2/r");
    assert_true(mo_catalog_known(c, 0));
    assert_false(mo_catalog_known(c, 3));
    assert_true(
        mo_span_is(mo_buf_view(&c->v[0].lists->caps), "{\"tools\":{}}"));
    assert_true(
        mo_span_is(mo_json_text(mo_catalog_info(c, 0)), "{\"name\":\"C\"}"));
    assert_null(mo_catalog_info(c, 1).p);
    assert_string_equal(mo_catalog_why(c, 2), "it broke");
    kit_spec(&k, "b -;b -"); /* a caller's mistake is harmless */
    assert_int_equal(mo_catalog_servers(c, k.v, k.n, NULL), 0);
    assert_string_equal(kit_words(c, MO_CAT_TOOLS, &b), "r=0/r");
    assert_int_equal(mo_catalog_servers(c, NULL, 0, NULL), 0);
    assert_int_equal(mo_catalog_count(c, MO_CAT_TOOLS), 0);
    assert_null(mo_catalog_at(c, MO_CAT_TOOLS, 0));
    assert_int_equal(mo_catalog_servers(c, NULL, MO_GW_SERVERS_MAX + 1, NULL),
                     MO_ETOOBIG);
    mo_buf_fini(&b);
    mo_catalog_free(c);
}

/* Renamed, described anew, hidden; disabled servers. */
static void test_manners(void **state)
{
    static const struct mo_config_tool tools[] = {
        {.name = "r", .rename = "read"},
        {.name = "s", .describe = "other \"words\""},
        {.name = "t", .hide = true, .describe = "gone"},
    };
    struct mo_catalog *c = kit_new(COLLISION, NULL, MO_CAT_TOOLS,
                                   "a - r s,\"description\":\"old\" t u;"
                                   "b - read;o - x");
    struct kit_servers k;
    const struct mo_cat_item *it;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1 << 16);
    kit_spec(&k, "a -;b -;o -");
    k.v[0].tools = tools;
    k.v[0].ntools = MO_COUNT(tools);
    k.v[2].off = true;
    k.v[2].description = "what it was for";
    assert_int_equal(mo_catalog_servers(c, k.v, k.n, NULL), 0);
    assert_string_equal(kit_words(c, MO_CAT_TOOLS, &b),
                        "a_read=0/r s=0/s u=0/u b_read=1/read");
    it = mo_catalog_find(c, MO_CAT_TOOLS, MO_SPAN("a_read"));
    assert_true(mo_span_is(it->given, "read"));
    it = mo_catalog_find(c, MO_CAT_TOOLS, MO_SPAN("s"));
    assert_true(mo_span_is(mo_json_text(mo_json_get(it->item, "description")),
                           "\"other \\\"words\\\"\""));
    assert_null(mo_catalog_find(c, MO_CAT_TOOLS, MO_SPAN("t")));
    assert_null(mo_catalog_find(c, MO_CAT_TOOLS, MO_SPAN("x")));
    mo_buf_reset(&b);
    assert_int_equal(mo_catalog_page(c, MO_CAT_TOOLS, mo_span(NULL, 0), 0, &b),
                     0);
    assert_non_null(strstr(mo_buf_cstr(&b), "\"name\":\"a_read\""));
    assert_null(strstr(mo_buf_cstr(&b), "old"));
    /* unoffered tools are kept to explain why */
    it = mo_catalog_unoffered_tool(c, 0);
    assert_true(mo_span_is(it->given, "t"));
    assert_true(
        mo_json_str_eq(mo_json_get(it->item, "description"), MO_SPAN("gone")));
    assert_true(mo_span_is(mo_catalog_unoffered_tool(c, 1)->own, "x"));
    assert_null(mo_catalog_unoffered_tool(c, 2));
    assert_int_equal(mo_catalog_server_count(c), 3);
    assert_true(mo_catalog_about(c, 2).off);
    assert_string_equal(mo_catalog_about(c, 2).description, "what it was for");
    mo_buf_fini(&b);
    mo_catalog_free(c);
}

static void test_missing(void **state)
{
    struct mo_catalog *c =
        kit_new(NEVER, NULL, MO_CAT_TOOLS, "a - r;b - r;d\"q - t");
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 4096);
    mo_catalog_done(c, 0, nothing, nothing);
    mo_catalog_done(c, 1, nothing, nothing);
    mo_catalog_fail(c, 1, "no such \"program\"");
    assert_string_equal(
        mo_catalog_why(c, 1),
        "no such \"program\"; 1 tools hidden by others of that name");
    assert_int_equal(mo_catalog_page(c, MO_CAT_TOOLS, MO_SPAN(""), 0, &b), 0);
    assert_string_equal(
        mo_buf_cstr(&b),
        "{\"tools\":[{\"name\":\"r\"},{\"name\":\"t\"}],\"_meta\":{"
        "\"mcp-orchestrator/unavailable\":{\"b\":\"no such \\\"program\\\"; 1 "
        "tools hidden by others of that name\",\"d\\\"q\":\"the server's "
        "lists were not read yet\"}}}");
    mo_catalog_fail(c, 1, NULL);
    mo_catalog_done(c, 2, nothing, nothing);
    mo_buf_reset(&b);
    assert_int_equal(mo_catalog_page(c, MO_CAT_PROMPTS, MO_SPAN(""), 0, &b), 0);
    assert_string_equal(mo_buf_cstr(&b), "{\"prompts\":[]}");
    assert_null(mo_catalog_why(c, 2));
    assert_null(mo_catalog_why(c, 99));
    mo_buf_fini(&b);
    mo_catalog_free(c);
}

/* --- owners of resources ------------------------------------------------- */

static void test_resources(void **state)
{
    static const struct {
        enum mo_gw_prefix mode;
        const char *uri;
        int server; /* -1: nobody's */
        const char *own;
    } rows[] = {
        {COLLISION, "x:1", 0, "x:1"},
        {COLLISION, "a+both:1", 0, "both:1"},
        {COLLISION, "b+both:1", 1, "both:1"},
        {COLLISION, "both:1", -1, NULL},
        {COLLISION, "t:7", 1, "t:7"},
        {COLLISION, "a+same:7", 0, "same:7"},
        {COLLISION, "b+same:7", 1, "same:7"},
        {COLLISION, "same:7", -1, NULL},
        {COLLISION, "b+any:thing", 1, "any:thing"},
        {COLLISION, "z+any:thing", -1, NULL},
        {COLLISION, "bare+any:thing", -1, NULL},
        {COLLISION, "any:thing", -1, NULL},
        {ALWAYS, "a+x:1", 0, "x:1"},
        {ALWAYS, "x:1", -1, NULL},
        {ALWAYS, "b+t:7", 1, "t:7"},
        {NEVER, "both:1", 0, "both:1"},
        {NEVER, "same:7", 0, "same:7"},
        {NEVER, "b+both:1", -1, NULL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_catalog *c =
            kit_new(rows[i].mode, NULL, MO_CAT_RESOURCES,
                    "a - x:1 both:1;b - y:1 both:1;bare '' z:1");
        struct mo_span uri = mo_span_cstr(rows[i].uri), own;
        unsigned server = 99;
        unsigned changed = 0;
        int rc = 0;

        assert_int_equal(kit_put(c, 0, MO_CAT_TEMPLATES, "same:{v}", &changed),
                         0);
        assert_int_equal(
            kit_put(c, 1, MO_CAT_TEMPLATES, "t:{v} same:{v}", &changed), 0);
        rc = mo_catalog_resource(c, uri, &server, &own);
        check_row(rows[i].uri, rc == (rows[i].server < 0 ? MO_ENOTFOUND : 0));
        check_row(rows[i].uri, rc < 0 || (int)server == rows[i].server);
        check_row(rows[i].uri, rc < 0 || mo_span_is(own, rows[i].own));
        mo_catalog_free(c);
    }
}

static void test_expose(void **state)
{
    static const struct {
        enum mo_gw_prefix mode;
        unsigned server;
        const char *own, *out; /* NULL: not at all */
    } rows[] = {
        {COLLISION, 0, "x:1", "x:1"},
        {COLLISION, 0, "both:1", "a+both:1"},
        {COLLISION, 1, "both:1", "b+both:1"},
        {COLLISION, 0, "same:7", "a+same:7"},
        {COLLISION, 1, "t:7", "t:7"},
        {COLLISION, 0, "t:7", "a+t:7"}, /* without the prefix it would be b's */
        {COLLISION, 0, "any:thing", "a+any:thing"},
        {COLLISION, 2, "z:1", "z:1"},
        {COLLISION, 2, "any:thing", NULL},
        {ALWAYS, 0, "x:1", "a+x:1"},
        {ALWAYS, 1, "t:7", "b+t:7"},
        {ALWAYS, 1, "any:thing", "b+any:thing"},
        {ALWAYS, 2, "z:1", "z:1"},
        {NEVER, 0, "both:1", "both:1"},
        {NEVER, 1, "both:1", NULL},
        {NEVER, 9, "both:1", NULL},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 4096);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_catalog *c =
            kit_new(rows[i].mode, NULL, MO_CAT_RESOURCES,
                    "a - x:1 both:1;b - y:1 both:1;bare '' z:1");
        struct mo_span own = mo_span_cstr(rows[i].own);
        unsigned changed = 0;
        int rc = 0;

        assert_int_equal(kit_put(c, 0, MO_CAT_TEMPLATES, "same:{v}", &changed),
                         0);
        assert_int_equal(
            kit_put(c, 1, MO_CAT_TEMPLATES, "t:{v} same:{v}", &changed), 0);
        mo_buf_reset(&b);
        mo_buf_puts(&b, "before ");
        rc = mo_catalog_expose(c, rows[i].server, own, &b);
        check_row(rows[i].own, rc == (rows[i].out ? 0 : MO_ENOTFOUND));
        if (rows[i].out)
            check_row(rows[i].own,
                      strcmp(mo_buf_cstr(&b) + 7, rows[i].out) == 0);
        mo_catalog_free(c);
    }
    mo_buf_fini(&b);
}

/* The only server with resources is the owner only when all lists are known. */
static void test_only_one(void **state)
{
    struct mo_catalog *c =
        kit_new(COLLISION, NULL, MO_CAT_TOOLS, "a - x;b - y");
    struct mo_span own, uri = MO_SPAN("any:thing");
    const struct mo_cat_item *it = NULL;
    unsigned server = 9;
    unsigned changed = 0;

    (void)state;
    mo_catalog_done(c, 1, js("{\"resources\":{}}"), nothing);
    assert_int_equal(mo_catalog_resource(c, uri, &server, &own), MO_ENOTFOUND);
    mo_catalog_done(c, 0, js("{\"tools\":{}}"), nothing);
    assert_int_equal(mo_catalog_resource(c, uri, &server, &own), 0);
    assert_int_equal(server, 1);
    assert_true(mo_span_eq(own, uri));
    assert_int_equal(kit_put(c, 0, MO_CAT_TEMPLATES, "f:{x}", &changed), 0);
    assert_int_equal(mo_catalog_resource(c, uri, &server, &own), MO_ENOTFOUND);
    it = mo_catalog_find(c, MO_CAT_RESOURCES, MO_SPAN("f:1"));
    assert_non_null(it);
    assert_true(mo_span_is(it->own, "f:{x}"));
    assert_null(mo_catalog_find(c, MO_CAT_TOOLS, MO_SPAN("f:1")));
    mo_catalog_free(c);
}

/* --- pages --------------------------------------------------------------- */

/* The names on a page; *next: its cursor. */
static const char *page(const struct mo_catalog *c, const char *cursor,
                        size_t limit, struct mo_buf *names, char next[256])
{
    struct mo_json_iter it;
    struct mo_json_doc d;
    struct mo_json k, v, more;
    struct mo_buf b;

    mo_buf_init(&b, 1 << 20);
    assert_int_equal(
        mo_catalog_page(c, MO_CAT_TOOLS, mo_span_cstr(cursor), limit, &b), 0);
    assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &d, NULL), 0);
    mo_json_iter(&it, mo_json_get(d.root, "tools"));
    while (mo_json_next(&it, &k, &v)) {
        mo_json_str_buf(mo_json_get(v, "name"), names);
        mo_buf_putc(names, ' ');
    }
    more = mo_json_get(d.root, "nextCursor");
    next[0] = '\0';
    if (more.p)
        snprintf(next, 256, "%.*s", (int)more.n - 2, more.p + 1);
    mo_buf_fini(&b);
    return mo_buf_cstr(names);
}

static void test_pages(void **state)
{
    struct mo_catalog *c =
        kit_new(COLLISION, NULL, MO_CAT_TOOLS, "a - 1 2 3 4;b - 5 6 x.7");
    char cursor[256];
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 4096);
    for (size_t limit = 1; limit < 9; limit++) {
        size_t pages = 0;

        mo_buf_reset(&b);
        cursor[0] = '\0';
        do {
            char now[256];

            snprintf(now, sizeof(now), "%s", cursor);
            page(c, now, limit, &b, cursor);
            pages++;
        } while (cursor[0]);
        assert_string_equal(mo_buf_cstr(&b), "1 2 3 4 5 6 x_7_ef7e04 ");
        assert_int_equal(pages, (7 + limit - 1) / limit);
    }
    mo_buf_fini(&b);
    mo_catalog_free(c);
}

/* A cursor behind "3", then the lists change. */
static void test_pages_in_change(void **state)
{
    static const struct {
        const char *name, *a, *b, *rest;
    } rows[] = {
        {"nothing changed", "1 2 3 4", "5 6", "4 5 6 "},
        {"more in front", "0 1 2 3 4", "5 6", "4 5 6 "},
        {"fewer in front", "3 4", "5 6", "4 5 6 "},
        {"it is gone", "1 2 4", "5 6", "4 5 6 "},
        {"it is the last now", "1 2 4", "5 6 3", ""},
        {"all is gone", "", "", ""},
        {"it got a prefix", "1 2 3 4", "3 5 6", "a_3 4 b_3 5 6 "},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_catalog *c =
            kit_new(COLLISION, NULL, MO_CAT_TOOLS, "a - 1 2 3 4;b - 5 6");
        char cursor[256], none[256];
        unsigned changed = 0;
        struct mo_buf b;

        mo_buf_init(&b, 4096);
        assert_string_equal(page(c, NULL, 3, &b, cursor), "1 2 3 ");
        assert_int_equal(kit_put(c, 0, MO_CAT_TOOLS, rows[i].a, &changed), 0);
        assert_int_equal(kit_put(c, 1, MO_CAT_TOOLS, rows[i].b, &changed), 0);
        mo_buf_reset(&b);
        check_row(rows[i].name,
                  strcmp(page(c, cursor, 0, &b, none), rows[i].rest) == 0);
        assert_string_equal(none, "");
        mo_buf_fini(&b);
        mo_catalog_free(c);
    }
}

static void test_cursors(void **state)
{
    static const char *const bad[] = {
        "x", "AAAA", "AAAAAAAAAAAAAAAA", "=", "a b", "dDE6cg", "-", "\xc3\xa9",
    };
    struct mo_catalog *c =
        kit_new(COLLISION, NULL, MO_CAT_TOOLS, "a - 1 2 3 4");
    char cursor[256], text[256];
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 4096);
    page(c, NULL, 2, &b, cursor);
    for (size_t i = 0; i < MO_COUNT(bad); i++) {
        mo_buf_reset(&b);
        check_row(bad[i], mo_catalog_page(c, MO_CAT_TOOLS, mo_span_cstr(bad[i]),
                                          0, &b) == MO_EINVAL);
    }
    assert_int_equal(
        mo_catalog_page(c, MO_CAT_PROMPTS, mo_span_cstr(cursor), 0, &b),
        MO_EINVAL);
    for (size_t i = 0; i < strlen(cursor); i++) {
        snprintf(text, sizeof(text), "%s", cursor);
        text[i] = text[i] == 'Q' ? 'R' : 'Q';
        assert_int_equal(
            mo_catalog_page(c, MO_CAT_TOOLS, mo_span_cstr(text), 0, &b),
            MO_EINVAL);
        if (i)
            assert_int_equal(
                mo_catalog_page(c, MO_CAT_TOOLS, mo_span(cursor, i), 0, &b),
                MO_EINVAL);
    }
    mo_buf_fini(&b);
    mo_catalog_free(c);
}

/* --- limits -------------------------------------------------------------- */

static void put_many(struct mo_buf *b, size_t n, size_t pad)
{
    mo_buf_reset(b);
    mo_buf_putc(b, '[');
    for (size_t i = 0; i < n; i++) {
        mo_buf_printf(b, "%s{\"name\":\"tool%zu\",\"d\":\"", i ? "," : "", i);
        memset(mo_buf_room(b, pad), 'd', pad);
        mo_buf_add(b, pad);
        mo_buf_puts(b, "\"}");
    }
    mo_buf_putc(b, ']');
}

static void test_limits(void **state)
{
    struct mo_catalog *c = kit_new(COLLISION, NULL, MO_CAT_TOOLS, "s - x");
    size_t kept = 0;
    unsigned changed = 0;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, (size_t)64 << 20);
    put_many(&b, 100000, 0);
    assert_int_equal(
        mo_catalog_put(c, 0, MO_CAT_TOOLS, js(mo_buf_cstr(&b)), &changed), 0);
    assert_int_equal(mo_catalog_count(c, MO_CAT_TOOLS), MO_CAT_ITEMS_MAX);
    assert_string_equal(mo_catalog_why(c, 0), "90000 tools beyond the limit");
    assert_non_null(mo_catalog_find(c, MO_CAT_TOOLS, MO_SPAN("tool9999")));
    assert_int_equal(kit_put(c, 0, MO_CAT_PROMPTS, "p q", &changed), 0);
    assert_string_equal(
        mo_catalog_why(c, 0),
        "90000 tools beyond the limit; 2 prompts beyond the limit");

    put_many(&b, 20, 1 << 20);
    assert_int_equal(
        mo_catalog_put(c, 0, MO_CAT_TOOLS, js(mo_buf_cstr(&b)), &changed), 0);
    kept = mo_catalog_count(c, MO_CAT_TOOLS);
    assert_int_equal(kept, 15);
    mo_buf_reset(&b);
    assert_int_equal(mo_catalog_page(c, MO_CAT_TOOLS, MO_SPAN(""), 0, &b), 0);
    assert_true(b.len < MO_CAT_PAGE_BYTES + 1024 && b.len > 3 << 20);
    b.max = 4096; /* a smaller buffer fails */
    mo_buf_reset(&b);
    assert_int_equal(mo_catalog_page(c, MO_CAT_TOOLS, MO_SPAN(""), 0, &b),
                     MO_ETOOBIG);
    mo_buf_fini(&b);
    mo_catalog_free(c);
}

static void test_long_names(void **state)
{
    struct mo_catalog *c = kit_new(ALWAYS, NULL, MO_CAT_TOOLS, "s - x");
    char uri[MO_CAT_NAME_MAX + 2];
    char cursor[2 * MO_CAT_NAME_MAX];
    unsigned changed = 0;
    struct mo_json_doc d;
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1 << 20);
    memset(uri, 'u', sizeof(uri));
    mo_buf_printf(&b, "[{\"uri\":\"%.*s\"},{\"uri\":\"%.*s\"},{\"uri\":\"v\"}]",
                  MO_CAT_NAME_MAX, uri, MO_CAT_NAME_MAX + 1, uri);
    assert_int_equal(
        mo_catalog_put(c, 0, MO_CAT_RESOURCES, js(mo_buf_cstr(&b)), &changed),
        0);
    assert_int_equal(mo_catalog_count(c, MO_CAT_RESOURCES), 2);
    assert_string_equal(mo_catalog_why(c, 0),
                        "1 resources without a usable name");
    mo_buf_reset(&b);
    assert_int_equal(mo_catalog_page(c, MO_CAT_RESOURCES, MO_SPAN(""), 1, &b),
                     0);
    assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &d, NULL), 0);
    d.root = mo_json_get(d.root, "nextCursor");
    snprintf(cursor, sizeof(cursor), "%.*s", (int)d.root.n - 2, d.root.p + 1);
    mo_buf_reset(&b);
    assert_int_equal(
        mo_catalog_page(c, MO_CAT_RESOURCES, mo_span_cstr(cursor), 1, &b), 0);
    assert_true(mo_span_starts(
        mo_buf_view(&b), MO_SPAN("{\"resources\":[{\"uri\":\"s+v\"}],\"_m")));
    mo_buf_fini(&b);
    mo_catalog_free(c);
}

/* --- memory -------------------------------------------------------------- */

static void one_life(void *ctx)
{
    struct mo_catalog *c = mo_catalog_new(COLLISION, ctx, NULL);
    struct kit_servers k;
    struct mo_span own;
    unsigned server = 0;
    unsigned changed = 0;
    struct mo_buf b, was;
    int rc = 0;

    if (c == NULL)
        return;
    mo_buf_init(&b, 1 << 16);
    mo_buf_init(&was, 1 << 16);
    kit_spec(&k, "a -;b -");
    if (mo_catalog_servers(c, k.v, k.n, NULL) == 0) {
        (void)kit_put(c, 0, MO_CAT_TOOLS, "r \\u0072s", &changed);
        kit_words(c, MO_CAT_TOOLS, &was);
        rc = kit_put(c, 1, MO_CAT_TOOLS, "r,\"name\":\"r\" t.u", &changed);
        kit_words(c, MO_CAT_TOOLS, &b);
        if (rc < 0 && !mo_buf_err(&b) && !mo_buf_err(&was))
            assert_true(mo_span_eq(mo_buf_view(&b), mo_buf_view(&was)));
        (void)kit_put(c, 1, MO_CAT_TEMPLATES, "x:{a}", &changed);
        mo_catalog_done(c, 1, js("{\"tools\":{}}"), js("{\"name\":\"n\"}"));
        mo_buf_reset(&b);
        (void)mo_catalog_page(c, MO_CAT_TOOLS, MO_SPAN(""), 1, &b);
        (void)mo_catalog_resource(c, MO_SPAN("x:1"), &server, &own);
        mo_buf_reset(&b);
        (void)mo_catalog_expose(c, 1, MO_SPAN("x:1"), &b);
        k.v[0].digest[0] = '!';
        (void)mo_catalog_servers(c, k.v, k.n, NULL);
        (void)mo_catalog_count(c, MO_CAT_TOOLS);
    }
    mo_buf_fini(&was);
    mo_buf_fini(&b);
    mo_catalog_free(c);
}

static void test_torture(void **state)
{
    char dir[64];

    (void)state;
    kit_dir(dir);
    torture(one_life, dir);
    kit_undir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merging),
        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_reload),
        cmocka_unit_test(test_manners),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_resources),
        cmocka_unit_test(test_expose),
        cmocka_unit_test(test_only_one),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_pages_in_change),
        cmocka_unit_test(test_cursors),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
