#include "mcp/client/pages.h"

#include "base/map.h"

#define CURSOR_MAX ((size_t)64 * 1024)

struct mo_pages {
    struct mo_conn *c;
    struct mo_pages_opts o;
    struct mo_call *call;
    struct mo_buf items; /* "[item,item", closed at the end */
    struct mo_map seen;  /* cursors, as written */
    unsigned pages;
};

static void pages_free(struct mo_pages *p)
{
    mo_map_fini(&p->seen);
    mo_buf_fini(&p->items);
    mo_free(p);
}

static void finish_list(struct mo_pages *p, const struct mo_reply *r)
{
    struct mo_json items = {NULL, 0};

    if (r->result.p)
        items = (struct mo_json){p->items.p, p->items.len};
    p->o.done(p->o.ctx, items, r);
    pages_free(p);
}

static void fail_list(struct mo_pages *p, const struct mo_err *why)
{
    struct mo_reply r = {.err = why};

    finish_list(p, &r);
}

static bool add_items(struct mo_pages *p, struct mo_json page)
{
    struct mo_json all = mo_json_get(page, p->o.key);

    if (!mo_json_is(all, MO_JSON_ARRAY))
        return false;
    mo_json_each (m, all) {
        if (p->items.len > 1)
            mo_buf_putc(&p->items, ',');
        mo_buf_span(&p->items, mo_json_text(m.val));
    }
    return true;
}

static void on_page(void *ctx, const struct mo_reply *r);

static int request_page(struct mo_pages *p, struct mo_json cursor,
                        struct mo_err *e)
{
    struct mo_call_opts o = {
        .idle_ms = p->o.page_ms,
        .done = on_page,
        .ctx = p,
    };
    mo_autobuf struct mo_buf b = {.max = CURSOR_MAX + 64};

    if (cursor.p) {
        mo_buf_puts(&b, "{\"cursor\":");
        mo_buf_span(&b, mo_json_text(cursor));
        mo_buf_putc(&b, '}');
    }
    if (mo_buf_err(&b))
        return mo_fail(e, mo_buf_err(&b), "%s: cursor", p->o.method);
    p->call = mo_conn_request(p->c, p->o.method, mo_buf_view(&b), &o, e);
    return p->call ? 0 : e->code;
}

/* Why the next page must not be requested; NULL: request it. */
static const char *check_cursor(struct mo_pages *p, struct mo_json cursor)
{
    int rc;

    if (!mo_json_is(cursor, MO_JSON_STRING))
        return "the cursor is not a string";
    if (mo_map_get(&p->seen, mo_json_text(cursor)))
        return "the server repeats a cursor";
    if (p->pages >= p->o.max_pages)
        return "too many pages";
    rc = mo_map_put(&p->seen, mo_json_text(cursor), p, NULL);
    return rc < 0 ? "no memory for a cursor" : NULL;
}

static void handle_page(struct mo_pages *p, const struct mo_reply *r)
{
    struct mo_json cursor = mo_json_get(r->result, "nextCursor");
    bool last = !cursor.p || mo_json_is(cursor, MO_JSON_NULL);
    const char *why = NULL;
    int code = MO_EPROTO;
    struct mo_err e;

    p->pages++;
    if (!add_items(p, r->result))
        why = "the page has no list";
    else if (last)
        mo_buf_putc(&p->items, ']');
    if (!why && mo_buf_err(&p->items)) {
        code = mo_buf_err(&p->items);
        why = "the list is too big";
    } else if (!why && !last) {
        why = check_cursor(p, cursor);
    }
    if (why)
        fail_list(p, mo_error(code, "%s: %s", p->o.method, why));
    else if (last)
        finish_list(p, r);
    else if (request_page(p, cursor, &e) < 0)
        fail_list(p, &e);
}

static void on_page(void *ctx, const struct mo_reply *r)
{
    struct mo_pages *p = ctx;

    p->call = NULL;
    if (r->result.p)
        handle_page(p, r);
    else
        finish_list(p, r);
}

int mo_pages_start(struct mo_conn *c, const struct mo_pages_opts *o,
                   struct mo_pages **out, struct mo_err *e)
{
    struct mo_pages *p = mo_new(struct mo_pages);
    int rc;

    if (!p)
        return mo_fail(e, MO_ENOMEM, "%s", o->method);
    p->c = c;
    p->o = *o;
    if (!p->o.max_pages)
        p->o.max_pages = MO_PAGES_MAX;
    mo_buf_init(&p->items, o->max_bytes ? o->max_bytes : MO_PAGES_BYTES_MAX);
    mo_map_init(&p->seen, p->o.max_pages);
    mo_buf_putc(&p->items, '[');
    rc = request_page(p, (struct mo_json){NULL, 0}, e);
    if (rc < 0)
        pages_free(p);
    else
        *out = p;
    return rc;
}

void mo_pages_cancel(struct mo_pages *p)
{
    if (p->call)
        mo_call_cancel(p->call, NULL);
}
