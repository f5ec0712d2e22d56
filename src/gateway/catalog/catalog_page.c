/* catalog_page.c - pages of a merged list, and the cursors between them.
 *
 * A cursor is the base64url of a checksum, the kind, the index and the
 * exposed name of the last item given out. If an item still has that name,
 * the next page begins after it; otherwise it begins at that index, where
 * the next item has moved up. The checksum rejects cursors that were never
 * given out. It is not secret: a forged cursor only gets another page. */
#include <stdio.h>

#include "codec/sha256.h"
#include "codec/text/base64.h"
#include "gateway/catalog/catalog_priv.h"

#define SUM_LEN   6
#define PLACE_MAX 20 /* digits of an index */
#define CURSOR_MAX                                                             \
    (SUM_LEN + 1 + PLACE_MAX + 1 + MO_CAT_NAME_MAX + MO_GW_LABEL_MAX)

/* --- cursors ------------------------------------------------------------- */

static const char kind_letter[MO_CAT_KINDS] = {'t', 'r', 'u', 'p', 's'};

static void cursor_sum(struct mo_span body, char out[SUM_LEN])
{
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 h;

    mo_sha256_init(&h);
    mo_sha256_put(&h, "mo-cursor-1", 11);
    mo_sha256_put(&h, body.p, body.n);
    mo_sha256_end(&h, sum);
    memcpy(out, sum, SUM_LEN);
}

static int put_cursor(struct mo_buf *out, enum mo_cat_kind kind, size_t place,
                      struct mo_span name)
{
    char sum[SUM_LEN] = {0};
    mo_autobuf struct mo_buf b = {.max = CURSOR_MAX};
    int rc = 0;

    mo_buf_put(&b, sum, SUM_LEN);
    mo_buf_putc(&b, kind_letter[kind]);
    mo_buf_u64(&b, place);
    mo_buf_putc(&b, ':');
    rc = mo_buf_span(&b, name);
    if (rc == 0) {
        cursor_sum(mo_span_skip(mo_buf_view(&b), SUM_LEN), b.p);
        rc = mo_base64url_put(out, mo_buf_view(&b));
    }
    return rc;
}

/* Index of an entry. The array is sorted by `end`. */
static size_t entry_index(const struct cat_view *w, const struct cat_entry *en)
{
    size_t lo = 0, hi = w->n;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;

        if (w->at[mid]->end <= en->end)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static int read_cursor(const struct cat_view *w, enum mo_cat_kind kind,
                       struct mo_span text, size_t *from)
{
    struct mo_span body = mo_span_skip(text, SUM_LEN), number;
    const struct cat_entry *en = NULL;
    char sum[SUM_LEN];
    uint64_t place = 0;

    cursor_sum(body, sum);
    if (!mo_span_eq(mo_span_head(text, SUM_LEN), mo_span(sum, SUM_LEN)) ||
        body.n < 2 || body.p[0] != kind_letter[kind])
        return MO_EINVAL;
    body = mo_span_skip(body, 1);
    number = mo_span_cut(&body, ':');
    if (body.p == NULL || mo_span_u64(number, &place) < 0)
        return MO_EINVAL;
    en = mo_map_get(&w->names, body);
    *from = en ? entry_index(w, en) + 1 : place < w->n ? (size_t)place : w->n;
    return 0;
}

static int page_start(const struct cat_view *w, enum mo_cat_kind kind,
                      struct mo_span cursor, size_t *from)
{
    mo_autobuf struct mo_buf b = {.max = CURSOR_MAX};
    int rc = 0;

    *from = 0;
    if (cursor.n == 0)
        return 0;
    if (cursor.n > CURSOR_MAX * 4 / 3 + 4)
        return MO_EINVAL;
    rc = mo_base64url_decode(cursor, &b);
    if (rc == 0)
        rc = read_cursor(w, kind, mo_buf_view(&b), from);
    return rc == 0 || rc == MO_ENOMEM ? rc : MO_EINVAL;
}

/* --- pages --------------------------------------------------------------- */

static char *put_piece(char *to, struct mo_span s)
{
    if (s.n)
        memcpy(to, s.p, s.n);
    return to + s.n;
}

/* At least one item, then as many as the limits of items and bytes allow. */
static size_t page_end(const struct cat_view *w, size_t from, size_t limit)
{
    size_t start = from ? w->at[from - 1]->end : 0;
    size_t to = from;

    while (to < w->n && to - from < limit &&
           (to == from || w->at[to]->end - start <= MO_CAT_PAGE_BYTES))
        to++;
    return to;
}

static int put_items(const struct cat_view *w, size_t from, size_t to,
                     bool for_model, struct mo_buf *out)
{
    size_t start = from ? w->at[from - 1]->end : 0;
    char *begin = NULL, *p = NULL;

    if (from == to)
        return 0;
    begin = mo_buf_room(out, w->at[to - 1]->end - start);
    if (begin == NULL)
        return mo_buf_err(out);
    p = begin;
    for (size_t i = from; i < to; i++) {
        const struct cat_entry *en = w->at[i];

        if (for_model && en->pub.app_only)
            continue;
        p = put_piece(p, en->piece[0]);
        p = put_piece(p, en->piece[1]);
        p = put_piece(p, en->piece[2]);
        *p++ = ',';
    }
    if (p > begin)
        mo_buf_add(out, (size_t)(p - begin) - 1); /* without the last comma */
    return 0;
}

static void put_missing(const struct mo_catalog *c, enum mo_cat_kind kind,
                        struct mo_buf *out)
{
    char why[CAT_WHY_MAX];
    struct mo_jw w;
    bool any = false;

    mo_jw_init(&w, out);
    for (size_t i = 0; i < c->n; i++) {
        if (!is_shown(c, i))
            continue;
        mo_catalog_describe_missing(c, i, kind, why);
        if (why[0] == '\0' && !c->v[i].lists->known && !c->v[i].off)
            snprintf(why, sizeof(why), "the server's lists were not read yet");
        if (why[0] == '\0')
            continue;
        if (!any) {
            mo_buf_puts(out, ",\"_meta\":{\"" MO_CAT_META_MISSING "\":");
            mo_jw_obj(&w);
        }
        any = true;
        mo_jw_key_span(&w, mo_span_cstr(c->v[i].name));
        mo_jw_cstr(&w, why);
    }
    if (!any)
        return;
    mo_jw_end(&w);
    mo_buf_putc(out, '}');
}

static int put_page(const struct mo_catalog *c, enum mo_cat_kind kind,
                    struct mo_span cursor, size_t limit, bool for_model,
                    struct mo_buf *out)
{
    const struct cat_view *w = c->view[kind];
    size_t from = 0, to = 0;
    int rc = page_start(w, kind, cursor, &from);

    if (rc < 0)
        return rc;
    to = page_end(w, from, limit ? limit : MO_CAT_PAGE);
    mo_buf_printf(out, "{\"%s\":[", mo_catalog_kinds[kind].list);
    put_items(w, from, to, for_model, out);
    mo_buf_putc(out, ']');
    if (to < w->n) {
        mo_buf_puts(out, ",\"nextCursor\":\"");
        rc = put_cursor(out, kind, to - 1, w->at[to - 1]->pub.name);
        mo_buf_putc(out, '"');
    }
    put_missing(c, kind, out);
    mo_buf_putc(out, '}');
    return rc < 0 ? rc : mo_buf_err(out);
}

int mo_catalog_page(const struct mo_catalog *c, enum mo_cat_kind kind,
                    struct mo_span cursor, size_t limit, struct mo_buf *out)
{
    return put_page(c, kind, cursor, limit, false, out);
}

int mo_catalog_page_for_model(const struct mo_catalog *c, enum mo_cat_kind kind,
                              struct mo_span cursor, size_t limit,
                              struct mo_buf *out)
{
    return put_page(c, kind, cursor, limit, true, out);
}
