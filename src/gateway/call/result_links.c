#include "gateway/call/result_links.h"

#define URI_MAX ((size_t)64 * 1024)

struct links {
    const struct mo_catalog *cat;
    unsigned server;
    const char *from; /* end of what was copied */
    struct mo_buf *out;
    bool any;
};

static void replace_uri(struct links *k, struct mo_json uri)
{
    mo_autobuf struct mo_buf own = {.max = URI_MAX};
    mo_autobuf struct mo_buf to = {.max = URI_MAX};

    if (!mo_json_is(uri, MO_JSON_STRING) || mo_json_str_buf(uri, &own) < 0 ||
        mo_catalog_link(k->cat, k->server, mo_buf_view(&own), &to) < 0)
        return;
    (void)mo_buf_put(k->out, k->from, (size_t)(uri.p - k->from));
    (void)mo_json_quote(k->out, mo_buf_view(&to));
    k->from = uri.p + uri.n;
    k->any = true;
}

/* All members of that name, so that two readers cannot disagree. */
static void replace_in(struct links *k, struct mo_json obj)
{
    if (!mo_json_is(obj, MO_JSON_OBJECT))
        return;
    mo_json_each (m, obj) {
        if (mo_json_str_eq(m.key, MO_SPAN("uri")))
            replace_uri(k, m.val);
    }
}

static void read_block(struct links *k, struct mo_json block)
{
    struct mo_json type = mo_json_get(block, "type");

    if (mo_json_str_eq(type, MO_SPAN("resource_link")))
        replace_in(k, block);
    if (!mo_json_str_eq(type, MO_SPAN("resource")))
        return;
    mo_json_each (m, block) {
        if (mo_json_str_eq(m.key, MO_SPAN("resource")))
            replace_in(k, m.val);
    }
}

/* One block, as in prompts, or a list of them. */
static void read_content(struct links *k, struct mo_json content)
{
    if (mo_json_is(content, MO_JSON_OBJECT))
        read_block(k, content);
    if (!mo_json_is(content, MO_JSON_ARRAY))
        return;
    mo_json_each (m, content)
        if (mo_json_is(m.val, MO_JSON_OBJECT))
            read_block(k, m.val);
}

static void read_messages(struct links *k, struct mo_json messages)
{
    if (!mo_json_is(messages, MO_JSON_ARRAY))
        return;
    mo_json_each (at, messages) {
        if (!mo_json_is(at.val, MO_JSON_OBJECT))
            continue;
        mo_json_each (m, at.val)
            if (mo_json_str_eq(m.key, MO_SPAN("content")))
                read_content(k, m.val);
    }
}

/* of_task: a task, with the result in its member. */
static void read_result(struct links *k, struct mo_json result, bool of_task)
{
    if (!mo_json_is(result, MO_JSON_OBJECT))
        return;
    mo_json_each (m, result) {
        if (mo_json_str_eq(m.key, MO_SPAN("content")))
            read_content(k, m.val);
        else if (mo_json_str_eq(m.key, MO_SPAN("messages")))
            read_messages(k, m.val);
        else if (!of_task && mo_json_str_eq(m.key, MO_SPAN("result")))
            read_result(k, m.val, true);
    }
}

static bool find_server(const struct mo_catalog *cat, const char *name,
                        unsigned *out)
{
    for (size_t i = 0; i < mo_catalog_server_count(cat); i++) {
        if (strcmp(mo_catalog_about(cat, (unsigned)i).name, name) != 0)
            continue;
        *out = (unsigned)i;
        return true;
    }
    return false;
}

bool mo_result_links(const struct mo_catalog *cat, const char *server,
                     struct mo_json result, struct mo_buf *out)
{
    struct links k = {.cat = cat, .from = result.p, .out = out};

    if (mo_catalog_server_count(cat) < 2 || !result.p ||
        mo_span_search(mo_json_text(result), MO_SPAN("resource")) < 0 ||
        !find_server(cat, server, &k.server))
        return false;
    read_result(&k, result, false);
    if (!k.any)
        return false;
    (void)mo_buf_put(out, k.from, (size_t)(result.p + result.n - k.from));
    return mo_buf_err(out) == 0;
}
