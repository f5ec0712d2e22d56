/* Items are given out byte for byte as received, except for the name. */
#include "catalog_kit.h"

static uint32_t rnd(uint32_t *s)
{
    *s = *s * 1664525u + 1013904223u;
    return *s >> 8;
}

static const char *pick(uint32_t *s, const char *const *v, size_t n)
{
    return v[rnd(s) % n];
}

static void blanks(struct mo_buf *b, uint32_t *s)
{
    static const char *const v[] = {"", "", "", " ", "\t", "  \t "};

    mo_buf_puts(b, pick(s, v, MO_COUNT(v)));
}

static void any_value(struct mo_buf *b, uint32_t *s)
{
    static const char *const v[] = {
        "1e400",
        "0.10",
        "-0",
        "12345678901234567890123",
        "\"\\u0041\\/ \xc3\xa9\"",
        "\"\"",
        "null",
        "{ \"name\" : \"x\" , \"name\":1 }",
        "[ 1 ,2,\t[]]",
        "{\"type\":\"object\",\"properties\":{\"uri\":{}}}",
        "true",
    };

    mo_buf_puts(b, pick(s, v, MO_COUNT(v)));
}

static void other_member(struct mo_buf *b, uint32_t *s)
{
    static const char *const v[] = {"\"a\"",     "\"inputSchema\"", "\"nam\"",
                                    "\"names\"", "\"\\u006eame2\"", "\"\"",
                                    "\"Name\""};

    blanks(b, s);
    mo_buf_puts(b, pick(s, v, MO_COUNT(v)));
    blanks(b, s);
    mo_buf_putc(b, ':');
    blanks(b, s);
    any_value(b, s);
    blanks(b, s);
}

/* The same object as received and as expected in the output. */
struct twins {
    struct mo_buf in, out;
};

static void both(struct twins *t, const struct mo_buf *b)
{
    mo_buf_span(&t->in, mo_buf_view(b));
    mo_buf_span(&t->out, mo_buf_view(b));
}

static void name_member(struct twins *t, const char *id, const char *own,
                        const char *exposed, uint32_t *s)
{
    struct mo_buf b;

    mo_buf_init(&b, 4096);
    blanks(&b, s);
    if (rnd(s) % 4)
        mo_buf_printf(&b, "\"%s\"", id);
    else
        mo_buf_printf(&b, "\"\\u%04x%s\"", (unsigned)id[0], id + 1);
    blanks(&b, s);
    mo_buf_putc(&b, ':');
    blanks(&b, s);
    both(t, &b);
    if (rnd(s) % 4)
        mo_buf_printf(&t->in, "\"%s\"", own);
    else
        mo_buf_printf(&t->in, "\"\\u%04x%s\"", (unsigned)own[0], own + 1);
    mo_buf_printf(&t->out, "\"%s\"", exposed);
    mo_buf_reset(&b);
    blanks(&b, s);
    both(t, &b);
    mo_buf_fini(&b);
}

static void make_twins(struct twins *t, enum mo_cat_kind kind, uint32_t seed,
                       const char *own, const char *exposed)
{
    uint32_t s = seed;
    size_t n = 1 + rnd(&s) % 6, at = rnd(&s) % n;
    bool again = rnd(&s) % 5 == 0;
    struct mo_buf b;

    mo_buf_init(&b, 4096);
    mo_buf_putc(&b, '{');
    for (size_t i = 0; i < n; i++) {
        if (i)
            mo_buf_putc(&b, ',');
        if (i != at && !(again && i > at)) {
            other_member(&b, &s);
            continue;
        }
        both(t, &b);
        mo_buf_reset(&b);
        name_member(t, mo_catalog_kinds[kind].id, own, exposed, &s);
    }
    mo_buf_putc(&b, '}');
    both(t, &b);
    mo_buf_fini(&b);
}

/* Only the name changes, whatever an item contains. */
static void test_bytes(void **state)
{
    static const struct {
        enum mo_gw_prefix mode;
        enum mo_cat_kind kind;
        const char *own, *exposed; /* exposed NULL: it stays */
    } rows[] = {
        {ALWAYS, MO_CAT_TOOLS, "read", "srv_read"},
        {ALWAYS, MO_CAT_PROMPTS, "read", "srv_read"},
        {ALWAYS, MO_CAT_RESOURCES, "x://a?b=1", "srv+x://a?b=1"},
        {ALWAYS, MO_CAT_TEMPLATES, "x://{a}", "srv+x://{a}"},
        {NEVER, MO_CAT_TOOLS, "read", NULL},
        {COLLISION, MO_CAT_RESOURCES, "x://a?b=1", NULL},
    };
    struct twins t;
    struct mo_buf items, page, want;

    (void)state;
    mo_buf_init(&t.in, 1 << 16);
    mo_buf_init(&t.out, 1 << 16);
    mo_buf_init(&items, 1 << 16);
    mo_buf_init(&page, 1 << 16);
    mo_buf_init(&want, 1 << 16);
    for (uint32_t i = 0; i < 3000; i++) {
        size_t r = i % MO_COUNT(rows);
        enum mo_cat_kind kind = rows[r].kind;
        struct mo_catalog *c = kit_new(rows[r].mode, NULL, kind, "srv -");
        unsigned changed = 0;

        mo_buf_reset(&t.in);
        mo_buf_reset(&t.out);
        mo_buf_reset(&items);
        mo_buf_reset(&page);
        mo_buf_reset(&want);
        make_twins(&t, kind, i, rows[r].own,
                   rows[r].exposed ? rows[r].exposed : rows[r].own);
        mo_buf_printf(&items, " [ %s\t,\n7 ] ", mo_buf_cstr(&t.in));
        mo_catalog_done(c, 0, nothing, nothing);
        assert_int_equal(
            mo_catalog_put(c, 0, kind, js(mo_buf_cstr(&items)), &changed), 0);
        assert_true(changed);
        assert_int_equal(mo_catalog_page(c, kind, MO_SPAN(""), 0, &page), 0);
        mo_buf_printf(&want,
                      "{\"%s\":[%s],\"_meta\":{\"%s\":{\"srv\":\"1 %s without "
                      "a usable name\"}}}",
                      mo_catalog_kinds[kind].list,
                      mo_buf_cstr(rows[r].exposed ? &t.out : &t.in),
                      MO_CAT_META_MISSING, mo_catalog_kinds[kind].what);
        assert_string_equal(mo_buf_cstr(&page), mo_buf_cstr(&want));
        assert_true(mo_span_eq(mo_json_text(mo_catalog_at(c, kind, 0)->item),
                               mo_buf_view(&t.in)));
        mo_catalog_free(c);
    }
    mo_buf_fini(&t.in);
    mo_buf_fini(&t.out);
    mo_buf_fini(&items);
    mo_buf_fini(&page);
    mo_buf_fini(&want);
}

static void test_items(void **state)
{
    static const struct {
        const char *name, *in, *out; /* the array */
        const char *why;
    } rows[] = {
        {"no schema is no fault", "[{\"name\":\"a\"}]", "[{\"name\":\"a\"}]",
         NULL},
        {"newlines go", "[{\"name\":\r\n \"a\",\n\"x\": [1, 2]}]",
         "[{\"name\":\"a\",\"x\":[1,2]}]", NULL},
        {"an escaped newline stays", "[{\"name\": \"a\",\"x\":\"\\n\"}]",
         "[{\"name\": \"a\",\"x\":\"\\n\"}]", NULL},
        {"odd ones",
         "[1,{},{\"name\":1},{\"name\":\"\"},[],{\"name\":\"a\"},null]",
         "[{\"name\":\"a\"}]", "6 tools without a usable name"},
        {"the last name counts", "[{\"name\":\"a\",\"name\":3}]", "[]",
         "1 tools without a usable name"},
        {"an escaped key", "[{\"n\\u0061me\":\"a\"}]",
         "[{\"n\\u0061me\":\"a\"}]", NULL},
        {"empty", "[]", "[]", NULL},
        {"no array", "{\"name\":\"a\"}", "[]", NULL},
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1 << 16);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_catalog *c = kit_new(NEVER, NULL, MO_CAT_TOOLS, "s -");
        const char *why = NULL;
        struct mo_json_doc d;
        unsigned changed = 0;

        assert_int_equal(
            mo_catalog_put(c, 0, MO_CAT_TOOLS, js(rows[i].in), &changed), 0);
        mo_buf_reset(&b);
        assert_int_equal(mo_catalog_page(c, MO_CAT_TOOLS, MO_SPAN(""), 0, &b),
                         0);
        assert_int_equal(mo_json_parse(mo_buf_view(&b), 0, &d, NULL), 0);
        check_row(rows[i].name,
                  mo_span_is(mo_json_text(mo_json_get(d.root, "tools")),
                             rows[i].out));
        check_row(rows[i].name, !d.has_nl);
        why = mo_catalog_why(c, 0);
        check_row(rows[i].name, (why == NULL) == (rows[i].why == NULL));
        check_row(rows[i].name, !why || strcmp(why, rows[i].why) == 0);
        mo_catalog_free(c);
    }
    mo_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_items),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
