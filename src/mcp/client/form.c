#include "mcp/client/form.h"

/* Returns 1, 0 or MO_ENOMEM. Keys may be written with different escapes. */
static int has_member(struct mo_json obj, struct mo_json key)
{
    struct mo_buf name;
    int rc;

    mo_buf_init(&name, key.n);
    rc = mo_json_str_buf(key, &name);
    for (struct mo_json_walk m = mo_json_walk(obj);
         rc == 0 && mo_json_step(&m);)
        rc = mo_json_str_eq(m.key, mo_buf_view(&name));
    mo_buf_fini(&name);
    return rc;
}

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
    struct mo_json key, val;
    struct mo_json_iter it;
    bool any = false;
    int rc = 0;

    mo_buf_puts(b, "{\"action\":\"accept\",\"content\":{");
    mo_json_iter(&it, content);
    while (mo_json_next(&it, &key, &val))
        put_member(b, &any, key, val);
    mo_json_iter(&it, mo_json_get(schema, "properties"));
    while (rc >= 0 && mo_json_next(&it, &key, &val)) {
        struct mo_json usual = mo_json_get(val, "default");

        rc = has_member(content, key);
        if (rc == 0 && is_usable(usual))
            put_member(b, &any, key, usual);
    }
    mo_buf_puts(b, "}}");
    return rc < 0 ? rc : mo_buf_err(b);
}
