#include "mcp/client/form.h"

static void put_member(struct mo_buf *b, bool *any, struct mo_json key,
                       struct mo_json val)
{
    if (*any)
        mo_buf_putc(b, ',');
    *any = true;
    mo_buf_span(b, mo_json_text(key));
    mo_buf_putc(b, ':');
    (void)mo_json_compact(val, b);
}

/* True for values an answer may hold: plain values and lists of strings. */
static bool is_usable(struct mo_json v)
{
    enum mo_json_type t = mo_json_type(v);

    return t == MO_JSON_STRING || t == MO_JSON_NUMBER || t == MO_JSON_BOOL ||
           t == MO_JSON_ARRAY;
}

int mo_form_accept(struct mo_buf *b, struct mo_json schema,
                   struct mo_json content)
{
    struct mo_json all = mo_json_get(schema, "properties");
    bool any = false;

    mo_buf_puts(b, "{\"action\":\"accept\",\"content\":{");
    mo_json_each (m, content)
        put_member(b, &any, m.key, m.val);
    mo_json_each (m, all) {
        /* keys may be written with different escapes */
        mo_autobuf struct mo_buf name = {.max = m.key.n};
        struct mo_json usual = mo_json_get(m.val, "default");
        int rc = mo_json_str_buf(m.key, &name);

        if (rc < 0)
            return rc;
        if (!mo_json_find(content, mo_buf_view(&name)).p && is_usable(usual))
            put_member(b, &any, m.key, usual);
    }
    return mo_buf_puts(b, "}}");
}
