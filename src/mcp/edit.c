#include "mcp/edit.h"

#define EDITS_MAX 8

static const struct mo_edit *find_edit(const struct mo_edit *v, size_t n,
                                       struct mo_json key)
{
    for (size_t i = 0; i < n; i++) {
        if (mo_json_str_eq(key, mo_span_cstr(v[i].key)))
            return &v[i];
    }
    return NULL;
}

static void put_comma(struct mo_buf *b, bool *any)
{
    if (*any)
        (void)mo_buf_putc(b, ',');
    *any = true;
}

static void put_value(struct mo_buf *b, struct mo_span value)
{
    (void)mo_buf_putc(b, ':');
    (void)mo_buf_span(b, value);
}

int mo_edit(struct mo_buf *b, struct mo_json obj, const struct mo_edit *v,
            size_t n)
{
    bool any = false, seen[EDITS_MAX] = {false};

    MO_BUG_ON(n > EDITS_MAX);
    (void)mo_buf_putc(b, '{');
    mo_json_each (m, obj) {
        const struct mo_edit *e = find_edit(v, n, m.key);

        if (e)
            seen[e - v] = true;
        if (e && !e->to.p)
            continue;
        put_comma(b, &any);
        if (e) {
            (void)mo_buf_span(b, mo_json_text(m.key));
            put_value(b, e->to);
        } else { /* with the blanks around its colon */
            (void)mo_buf_put(b, m.key.p, (size_t)(m.val.p - m.key.p) + m.val.n);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (seen[i] || !v[i].to.p)
            continue;
        put_comma(b, &any);
        (void)mo_json_quote(b, mo_span_cstr(v[i].key));
        put_value(b, v[i].to);
    }
    return mo_buf_putc(b, '}');
}
