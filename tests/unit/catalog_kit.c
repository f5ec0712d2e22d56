/* catalog_kit.c - parses the specs of catalog_kit.h and fills catalogues. */
#include "catalog_kit.h"

#include <ftw.h>
#include <unistd.h>

const struct mo_json nothing = {NULL, 0};

struct mo_json js(const char *text)
{
    struct mo_json_doc d;

    assert_int_equal(mo_json_parse(mo_span_cstr(text), 0, &d, NULL), 0);
    return d.root;
}

void kit_spec(struct kit_servers *k, const char *spec)
{
    char *p = k->text;

    memset(k, 0, sizeof(*k));
    snprintf(k->text, sizeof(k->text), "%s", spec);
    while (p && *p) {
        char *end = strchr(p, ';'), *word = strchr(p, ' ');
        struct mo_gw_server *s = &k->v[k->n];

        if (end)
            *end++ = '\0';
        assert_non_null(word);
        *word++ = '\0';
        s->name = p;
        s->prefix =
            strcmp(word, "-") == 0 || strncmp(word, "- ", 2) == 0 ? NULL : word;
        k->items[k->n] = strchr(word, ' ');
        if (k->items[k->n])
            *k->items[k->n]++ = '\0';
        if (s->prefix && strcmp(s->prefix, "''") == 0)
            s->prefix = "";
        snprintf(s->digest, sizeof(s->digest), "digest of %.40s", p);
        k->n++;
        p = end;
    }
}

/* An array of items with these names; by ',' a name may be followed by more
 * members ("read,\"x\":1"). */
static void kit_items(struct mo_buf *b, enum mo_cat_kind kind,
                      const char *words)
{
    struct mo_span rest = mo_span_cstr(words);
    bool any = false;

    mo_buf_putc(b, '[');
    while (rest.n) {
        struct mo_span word = mo_span_cut(&rest, ' ');
        struct mo_span name = mo_span_cut(&word, ',');

        mo_buf_printf(b, "%s{\"%s\":\"%.*s\"%s%.*s}", any ? "," : "",
                      mo_catalog_kinds[kind].id, (int)name.n, name.p,
                      word.p ? "," : "", (int)word.n, word.p ? word.p : "");
        any = true;
    }
    mo_buf_putc(b, ']');
}

int kit_put(struct mo_catalog *c, unsigned server, enum mo_cat_kind kind,
            const char *words, unsigned *changed)
{
    struct mo_buf b;
    int rc = 0;

    mo_buf_init(&b, 1 << 20);
    kit_items(&b, kind, words ? words : "");
    rc = mo_buf_err(&b);
    if (rc == 0)
        rc = mo_catalog_put(c, server, kind, js(mo_buf_cstr(&b)), changed);
    mo_buf_fini(&b);
    return rc;
}

struct mo_catalog *kit_new(enum mo_gw_prefix mode, const char *cache,
                           enum mo_cat_kind kind, const char *spec)
{
    struct mo_catalog *c = mo_catalog_new(mode, cache, NULL);
    struct kit_servers k;
    unsigned changed = 0;

    assert_non_null(c);
    kit_spec(&k, spec);
    assert_int_equal(mo_catalog_servers(c, k.v, k.n, NULL), 0);
    for (size_t i = 0; i < k.n; i++)
        if (k.items[i])
            assert_int_equal(
                kit_put(c, (unsigned)i, kind, k.items[i], &changed), 0);
    return c;
}

const char *kit_words(const struct mo_catalog *c, enum mo_cat_kind kind,
                      struct mo_buf *b)
{
    mo_buf_reset(b);
    for (size_t i = 0; i < mo_catalog_count(c, kind); i++) {
        const struct mo_cat_item *it = mo_catalog_at(c, kind, i);

        assert_ptr_equal(mo_catalog_find(c, kind, it->name), it);
        mo_buf_printf(b, "%s%.*s=%u/%.*s", i ? " " : "", (int)it->name.n,
                      it->name.p, it->server, (int)it->own.n, it->own.p);
    }
    return mo_buf_cstr(b);
}

void kit_dir(char dir[64])
{
    (void)snprintf(dir, 64, "/tmp/mo-catalog-XXXXXX");
    assert_non_null(mkdtemp(dir));
}

static int kit_remove(const char *path, const struct stat *st, int type,
                      struct FTW *f)
{
    (void)st;
    (void)type;
    (void)f;
    return remove(path);
}

void kit_undir(const char *dir)
{
    (void)nftw(dir, kit_remove, 8, FTW_DEPTH | FTW_PHYS);
}
