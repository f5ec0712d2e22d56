/* fuzz_catalog.c - any bytes as a cache file, and as the cursor, name and URI
 * of those who ask. The input is the server's name, the file and a question,
 * with NULs between. What is promised: a file is read or refused as a
 * whole; every item that is listed is found by its name; the pages are JSON,
 * give each item once, and end. */
#include <stdlib.h>

#include "gateway/catalog/catalog_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void check_names(const struct mo_catalog *c, enum mo_cat_kind kind)
{
    size_t n = mo_catalog_count(c, kind);

    for (size_t i = 0; i < n; i++) {
        const struct mo_cat_item *it = mo_catalog_at(c, kind, i);

        must(mo_catalog_find(c, kind, it->name) == it);
        must(mo_json_is(it->item, MO_JSON_OBJECT));
        must(mo_json_str_eq(mo_json_get(it->item, mo_catalog_kinds[kind].id),
                            it->own));
        if (mo_catalog_kinds[kind].uri)
            continue;
        must(it->name.n > 0 && it->name.n < MO_GW_NAME_MAX);
        for (size_t j = 0; j < it->name.n; j++)
            must(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                        "0123456789_-",
                        it->name.p[j]) != NULL);
    }
}

/* The page behind *at; *at moves on. Returns the items it has. */
static size_t check_page(const struct mo_catalog *c, enum mo_cat_kind kind,
                         size_t limit, struct mo_buf *at, size_t place)
{
    struct mo_json_doc d;
    struct mo_json_iter it;
    struct mo_json k, v;
    struct mo_buf b;
    size_t n = 0;

    mo_buf_init(&b, (size_t)64 << 20);
    must(mo_catalog_page(c, kind, mo_buf_view(at), limit, &b) == 0);
    must(mo_json_parse(mo_buf_view(&b), 0, &d, NULL) == 0 && !d.has_nl);
    mo_json_iter(&it, mo_json_get(d.root, mo_catalog_kinds[kind].list));
    for (; mo_json_next(&it, &k, &v); n++)
        must(mo_json_str_eq(mo_json_get(v, mo_catalog_kinds[kind].id),
                            mo_catalog_at(c, kind, place + n)->name));
    mo_buf_reset(at);
    v = mo_json_get(d.root, "nextCursor");
    if (v.p)
        must(mo_json_str_buf(v, at) == 0 && n == limit);
    mo_buf_fini(&b);
    return n;
}

static void check_pages(const struct mo_catalog *c, enum mo_cat_kind kind)
{
    size_t n = mo_catalog_count(c, kind), place = 0;
    size_t limit = n / 5 + 1;
    struct mo_buf at;

    mo_buf_init(&at, 65536);
    do {
        place += check_page(c, kind, limit, &at, place);
    } while (at.len);
    must(place == n);
    mo_buf_fini(&at);
}

static void ask(const struct mo_catalog *c, struct mo_span q)
{
    struct mo_span own;
    unsigned server = 0;
    struct mo_buf b;
    int rc = 0;

    mo_buf_init(&b, (size_t)64 << 20);
    rc = mo_catalog_page(c, MO_CAT_TOOLS, q, 3, &b);
    must(rc == 0 || rc == MO_EINVAL);
    if (mo_catalog_resource(c, q, &server, &own) == 0)
        must(server < c->n && own.n <= q.n + MO_CAT_NAME_MAX);
    mo_buf_reset(&b);
    rc = mo_catalog_expose(c, 0, q, &b);
    must(rc == 0 || rc == MO_ENOTFOUND);
    if (rc == 0 && q.n &&
        mo_catalog_resource(c, mo_buf_view(&b), &server, &own) == 0)
        must(server != 0 || mo_span_eq(own, q));
    mo_buf_fini(&b);
}

static struct mo_catalog *two(enum mo_gw_prefix mode, const char *name,
                              struct server_lists *a, struct server_lists *b)
{
    struct mo_gw_server v[2] = {{.name = name}, {.name = "b", .prefix = "p"}};
    struct mo_catalog *c = mo_catalog_new(mode, NULL, NULL);

    must(c && mo_catalog_servers(c, v, 2, NULL) == 0);
    mo_catalog_lists_free(c->v[0].lists);
    mo_catalog_lists_free(c->v[1].lists);
    c->v[0].lists = a;
    c->v[1].lists = b;
    mo_catalog_unbuild(c);
    must(mo_catalog_build(c) == 0);
    return c;
}

/* A part has items of its server only, and is as consistent as the whole. */
static void check_part(const struct mo_catalog *c, struct mo_span q)
{
    const char *servers[] = {"b"};
    struct mo_config_view v = {
        .name = "v", .servers = {servers, 1}, .read_only = q.n % 2};
    struct mo_catalog *part = mo_catalog_part_new(c, mo_filter_new(&v));
    const struct mo_catalog *now = NULL;
    struct mo_span own;
    unsigned server = 1;

    must(part != NULL);
    now = mo_catalog_part_now(part);
    for (size_t k = 0; k < MO_CAT_KINDS; k++) {
        size_t n = mo_catalog_count(now, (enum mo_cat_kind)k);

        check_names(now, (enum mo_cat_kind)k);
        check_pages(now, (enum mo_cat_kind)k);
        for (size_t i = 0; i < n; i++)
            must(mo_catalog_at(now, (enum mo_cat_kind)k, i)->server == 1);
    }
    if (mo_catalog_resource(now, q, &server, &own) == 0)
        must(server == 1);
    (void)mo_filter_glob(q, mo_span_head(q, 64));
    mo_catalog_free(part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span q = mo_span((const char *)data, n);
    struct mo_span name = mo_span_cut(&q, '\0');
    struct mo_span file = mo_span_cut(&q, '\0');
    struct server_lists *a = mo_catalog_lists_new(),
                        *b = mo_catalog_lists_new();
    struct mo_catalog *c = NULL;
    char *cname = mo_strndup(name.p, name.n);
    int rc = mo_catalog_cache_parse(file, cname, "d", a);

    must(rc == 0 || rc == MO_EPROTO);
    must(a->known == (rc == 0));
    must(mo_catalog_cache_parse(file, cname, "d", b) == rc); /* all collide */
    c = two((enum mo_gw_prefix)(n % 3), cname, a, b);
    for (size_t k = 0; k < MO_CAT_KINDS; k++) {
        check_names(c, (enum mo_cat_kind)k);
        check_pages(c, (enum mo_cat_kind)k);
    }
    ask(c, q.p ? q : file);
    if (strcmp(cname, "b") != 0)
        check_part(c, q.p ? q : file);
    mo_catalog_free(c);
    mo_free(cname);
    return 0;
}
