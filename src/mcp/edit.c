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

/* The text of a member, with the blanks around its colon. */
static struct mo_span member_text(struct mo_json key, struct mo_json val)
{
    return mo_span(key.p, (size_t)(val.p - key.p) + val.n);
}

static void put_member(struct mo_buf *b, bool *any, struct mo_span key,
                       struct mo_span value)
{
    put_comma(b, any);
    (void)mo_buf_span(b, key);
    (void)mo_buf_putc(b, ':');
    (void)mo_buf_span(b, value);
}

/* Append a member that obj does not have. */
static void add_missing(struct mo_buf *b, bool *any, const struct mo_edit *e)
{
    put_comma(b, any);
    (void)mo_json_quote(b, mo_span_cstr(e->key));
    (void)mo_buf_putc(b, ':');
    (void)mo_buf_span(b, e->to);
}

int mo_edit(struct mo_buf *b, struct mo_json obj, const struct mo_edit *v,
            size_t n)
{
    bool any = false, seen[EDITS_MAX] = {false};

    MO_BUG_ON(n > EDITS_MAX);
    (void)mo_buf_putc(b, '{');
    for (struct mo_json_walk m = mo_json_walk(obj); mo_json_step(&m);) {
        const struct mo_edit *e = find_edit(v, n, m.key);

        if (e)
            seen[e - v] = true;
        if (!e) {
            put_comma(b, &any);
            (void)mo_buf_span(b, member_text(m.key, m.val));
        } else if (e->to.p) {
            put_member(b, &any, mo_json_text(m.key), e->to);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (!seen[i] && v[i].to.p)
            add_missing(b, &any, &v[i]);
    }
    return mo_buf_putc(b, '}');
}
