/*
 * owner.c - adds the owner's name to every audit row of a conversation.
 *
 * Without an owner (the server knows no users by name) writes are stored
 * unchanged.
 */
#include "agent/chat/owner.h"

#include "agent/chat/chat_priv.h"

/* {"a":1} becomes {"owner":"...","a":1}. */
static void put_owner(struct mo_buf *b, const char *owner, struct mo_span doc)
{
    mo_buf_puts(b, "{\"owner\":");
    mo_json_quote(b, mo_span_cstr(owner));
    if (doc.n > 2)
        mo_buf_putc(b, ',');
    mo_buf_span(b, mo_span_skip(doc, 1));
}

static bool is_audit_row(const struct mo_write *w)
{
    return w->kind == MO_WRITE_AUDIT && w->doc.n >= 2 && w->doc.p[0] == '{';
}

int mo_chat_owner_mark(const struct chat *c, const struct mo_write *v, size_t n,
                       struct mo_write *out, struct mo_buf *docs)
{
    struct mo_span name = mo_span_cstr(c->owner);
    size_t at = 0;

    for (size_t i = 0; i < n; i++)
        if (is_audit_row(&v[i]))
            put_owner(docs, c->owner, v[i].doc);
    if (mo_buf_err(docs))
        return mo_buf_err(docs);
    for (size_t i = 0; i < n; i++) {
        size_t len = name.n + sizeof("{\"owner\":\"\"") - 1;

        out[i] = v[i];
        if (!is_audit_row(&v[i]))
            continue;
        len += v[i].doc.n - 1 + (v[i].doc.n > 2);
        out[i].doc = mo_span(docs->p + at, len);
        at += len;
    }
    return 0;
}
