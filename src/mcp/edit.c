#include "mcp/edit.h"

#define EDITS_MAX 8

static const struct mo_edit *find(const struct mo_edit *v, size_t n,
                                  struct mo_json key)
{
    for (size_t i = 0; i < n; i++) {
        if (mo_json_str_eq(key, mo_span_cstr(v[i].key)))
            return &v[i];
    }
    return NULL;
}

static void put(struct mo_buf *b, bool *any, struct mo_span key,
                struct mo_span value)
{
    if (*any)
        (void)mo_buf_putc(b, ',');
    *any = true;
    (void)mo_buf_span(b, key);
    (void)mo_buf_putc(b, ':');
    (void)mo_buf_span(b, value);
}

int mo_edit(struct mo_buf *b, struct mo_json obj, const struct mo_edit *v,
            size_t n)
{
    bool any = false, seen[EDITS_MAX] = {false};
    struct mo_json_iter it;
    struct mo_json key, val;

    MO_BUG_ON(n > EDITS_MAX);
    (void)mo_buf_putc(b, '{');
    mo_json_iter(&it, obj);
    while (mo_json_next(&it, &key, &val)) {
        const struct mo_edit *e = find(v, n, key);

        if (e)
            seen[e - v] = true;
        if (!e)
            put(b, &any, mo_json_text(key), mo_json_text(val));
        else if (e->to.p)
            put(b, &any, mo_json_text(key), e->to);
    }
    for (size_t i = 0; i < n; i++) {
        if (seen[i] || !v[i].to.p)
            continue;
        if (any)
            (void)mo_buf_putc(b, ',');
        any = true;
        (void)mo_json_quote(b, mo_span_cstr(v[i].key));
        (void)mo_buf_putc(b, ':');
        (void)mo_buf_span(b, v[i].to);
    }
    return mo_buf_putc(b, '}');
}
