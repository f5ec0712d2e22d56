/* ep_down.c - convert a result of the newest shape for an older peer.
 *
 * Members that the peer's revision does not have are omitted where strict
 * readers are known to fail on them, unknown kinds of content become text, and
 * structured content that is not an object is wrapped as {"result": v},
 * together with its schema. All other bytes stay the same.
 *
 * Errors are the buffer's. The input is valid JSON of our own. */
#include "mcp/server/ep_priv.h"

struct down {
    const struct mo_endpoint *ep;
    struct mo_jw w;
    enum mo_mcp_version v;
};

struct since { /* a member and the first revision that has it */
    const char *name;
    enum mo_mcp_version v;
};

#define NEVER MO_MCP_2026_07_28

static const struct since tops[] = {
    {"resultType", NEVER},
    {"ttlMs", NEVER},
    {"cacheScope", NEVER},
    {"structuredContent", MO_MCP_2025_06_18},
};

static const struct since items[] = {
    {"title", MO_MCP_2025_06_18}, {"outputSchema", MO_MCP_2025_06_18},
    {"_meta", MO_MCP_2025_06_18}, {"annotations", MO_MCP_2025_03_26},
    {"icons", MO_MCP_2025_11_25}, {"execution", NEVER},
};

static const struct since kinds[] = {
    {"audio", MO_MCP_2025_03_26},
    {"resource_link", MO_MCP_2025_06_18},
};

static bool is_too_new(const struct down *d, const struct since *t, size_t n,
                       struct mo_json key)
{
    for (size_t i = 0; i < n; i++) {
        if (d->v < t[i].v && mo_json_str_eq(key, mo_span_cstr(t[i].name)))
            return true;
    }
    return false;
}

/* The text of a string: most need no decoding; others are decoded into b. */
static struct mo_span string_text(struct mo_json v, struct mo_buf *b)
{
    struct mo_span raw = mo_span(v.p + 1, v.n - 2);

    if (mo_span_find(raw, '\\') < 0)
        return raw;
    (void)mo_json_str_buf(v, b);
    return mo_buf_view(b);
}

static void put_raw(struct down *d, struct mo_json v)
{
    mo_jw_raw(&d->w, mo_json_text(v));
}

static bool is_schema_of_object(struct mo_json schema)
{
    return mo_json_str_eq(mo_json_get(schema, "type"), MO_SPAN("object"));
}

/* Inside another schema its local references would point elsewhere, and one
 * such schema costs the official SDK's client the whole list. */
static bool can_be_wrapped(struct mo_json schema)
{
    return is_schema_of_object(schema) ||
           mo_span_search(mo_json_text(schema), MO_SPAN("\"$ref\"")) < 0;
}

/* {"type":"object","properties":{"result":S},"required":["result"]} */
static void put_schema(struct down *d, struct mo_json schema)
{
    if (is_schema_of_object(schema)) {
        put_raw(d, schema);
        return;
    }
    mo_jw_raw(&d->w, MO_SPAN("{\"type\":\"object\",\"required\":[\"result\"],"
                             "\"properties\":{\"result\":"));
    (void)mo_buf_span(d->w.b, mo_json_text(schema));
    (void)mo_buf_puts(d->w.b, "}}");
}

static void put_known(struct down *d, struct mo_json item)
{
    mo_json_each (m, item) {
        bool output = mo_json_str_eq(m.key, MO_SPAN("outputSchema"));

        if (is_too_new(d, items, MO_COUNT(items), m.key) ||
            (output && !can_be_wrapped(m.val)))
            continue;
        mo_jw_key_raw(&d->w, m.key);
        if (output)
            put_schema(d, m.val);
        else
            put_raw(d, m.val);
    }
}

static void put_item(struct down *d, struct mo_json_iter *list)
{
    mo_jw_obj(&d->w);
    put_known(d, mo_json_value(list));
    mo_jw_end(&d->w);
}

/* The task support of a tool as text. */
static const char *task_support_text(const struct down *d, struct mo_json name)
{
    static const char *const texts[] = {
        "{\"taskSupport\":\"forbidden\"}",
        "{\"taskSupport\":\"optional\"}",
        "{\"taskSupport\":\"required\"}",
    };
    const struct mo_endpoint_opts *o = &d->ep->o;
    enum mo_ep_task_support can = MO_EP_TASK_OPTIONAL;
    mo_autobuf struct mo_buf b = {.max = EP_CALL_EXTRA};

    if (o->task && mo_json_is(name, MO_JSON_STRING))
        can = o->task(o->ctx, string_text(name, &b));
    return texts[can];
}

/* Properties of a tool, found in one walk. */
struct look {
    struct mo_json name;
    bool any;    /* the tool has members */
    bool change; /* some members must be omitted or changed */
};

static struct look inspect_tool(const struct down *d, struct mo_json_iter *tool)
{
    struct look l = {.any = false};
    struct mo_json key, val;

    while (mo_json_next(tool, &key, &val)) {
        l.any = true;
        if (mo_json_str_eq(key, MO_SPAN("name")))
            l.name = val;
        else if (is_too_new(d, items, MO_COUNT(items), key) ||
                 mo_json_str_eq(key, MO_SPAN("outputSchema")))
            l.change = true;
    }
    return l;
}

static void put_inspected(struct down *d, struct mo_json tool, struct look l)
{
    bool tasks =
        d->v == MO_MCP_2025_11_25 && (d->ep->o.caps & MO_EP_CALL_TASKS);

    if (l.change) {
        mo_jw_obj(&d->w);
        put_known(d, tool);
        if (tasks)
            mo_jw_member_raw(&d->w, "execution",
                             mo_span_cstr(task_support_text(d, l.name)));
        mo_jw_end(&d->w);
        return;
    }
    if (!tasks) {
        put_raw(d, tool);
        return;
    }
    /* its own bytes, and one more member before the brace */
    mo_jw_raw(&d->w, mo_span_head(mo_json_text(tool), tool.n - 1));
    (void)mo_buf_puts(d->w.b, l.any ? ",\"execution\":" : "\"execution\":");
    (void)mo_buf_puts(d->w.b, task_support_text(d, l.name));
    (void)mo_buf_putc(d->w.b, '}');
}

/* Lists of tools are long: each tool is walked only once. */
static void put_tool(struct down *d, struct mo_json_iter *tools)
{
    struct mo_json_iter tool;
    struct look l;

    if (!mo_json_enter(tools, &tool) || !tool.object) {
        put_raw(d, mo_json_value(tools));
        return;
    }
    l = inspect_tool(d, &tool);
    put_inspected(d, mo_json_leave(tools, &tool), l);
}

static void put_one_block(struct down *d, struct mo_json block)
{
    struct mo_json uri;

    if (!is_too_new(d, kinds, MO_COUNT(kinds), mo_json_get(block, "type"))) {
        put_raw(d, block);
        return;
    }
    uri = mo_json_get(block, "uri");
    mo_jw_obj(&d->w);
    mo_jw_member_cstr(&d->w, "type", "text");
    mo_jw_key(&d->w, "text");
    if (mo_json_is(uri, MO_JSON_STRING))
        put_raw(d, uri);
    else
        mo_jw_cstr(&d->w, "[audio]");
    mo_jw_end(&d->w);
}

static void put_block(struct down *d, struct mo_json_iter *blocks)
{
    put_one_block(d, mo_json_value(blocks));
}

static void put_message(struct down *d, struct mo_json_iter *messages)
{
    mo_jw_obj(&d->w);
    mo_json_each (m, mo_json_value(messages)) {
        mo_jw_key_raw(&d->w, m.key);
        if (mo_json_str_eq(m.key, MO_SPAN("content")))
            put_one_block(d, m.val);
        else
            put_raw(d, m.val);
    }
    mo_jw_end(&d->w);
}

static void put_structured(struct down *d, struct mo_json v)
{
    if (mo_json_is(v, MO_JSON_OBJECT)) {
        put_raw(d, v);
        return;
    }
    mo_jw_obj(&d->w);
    mo_jw_key(&d->w, "result");
    put_raw(d, v);
    mo_jw_end(&d->w);
}

/* Arrays of a result whose elements need conversion, and their writers. */
struct array {
    const char *member;
    void (*one)(struct down *d, struct mo_json_iter *it);
    enum mo_mcp_version until; /* from this revision on they stay unchanged */
};

static const struct array arrays[] = {
    {"content", put_block, MO_MCP_2025_06_18},
    {"tools", put_tool, NEVER},
    {"resources", put_item, MO_MCP_2025_11_25},
    {"resourceTemplates", put_item, MO_MCP_2025_11_25},
    {"prompts", put_item, MO_MCP_2025_11_25},
    {"messages", put_message, MO_MCP_2025_06_18},
};

/* The row for this key; NULL: none. */
static const struct array *find_array(const struct down *d, struct mo_json key)
{
    for (size_t i = 0; i < MO_COUNT(arrays); i++) {
        if (d->v < arrays[i].until &&
            mo_json_str_eq(key, mo_span_cstr(arrays[i].member)))
            return &arrays[i];
    }
    return NULL;
}

static void put_array(struct down *d, const struct array *a,
                      struct mo_json_iter *it)
{
    struct mo_json_iter inner;

    if (!mo_json_enter(it, &inner) || inner.object) {
        put_raw(d, mo_json_value(it));
        return;
    }
    mo_jw_arr(&d->w);
    while (mo_json_more(&inner))
        a->one(d, &inner);
    mo_jw_end(&d->w);
    (void)mo_json_leave(it, &inner);
}

/* Write a member; its value is the next one of it. */
static void put_member(struct down *d, struct mo_json key,
                       struct mo_json_iter *it)
{
    const struct array *a = find_array(d, key);

    if (a) {
        put_array(d, a, it);
    } else if (mo_json_str_eq(key, MO_SPAN("_meta"))) {
        mo_jw_obj(&d->w);
        mo_ep_put_members(&d->w, mo_json_value(it), EP_KEYS(MO_MCP_P_SERVER));
        mo_jw_end(&d->w);
    } else if (mo_json_str_eq(key, MO_SPAN("structuredContent"))) {
        put_structured(d, mo_json_value(it));
    } else {
        put_raw(d, mo_json_value(it));
    }
}

/* True if put_member() would change the bytes. The key is checked first: the
 * value may be long. */
static bool is_touched(const struct down *d, struct mo_json key,
                       struct mo_json_iter *it)
{
    struct mo_json val;

    if (is_too_new(d, tops, MO_COUNT(tops), key) || find_array(d, key))
        return true;
    val = mo_json_value(it);
    if (mo_json_str_eq(key, MO_SPAN("_meta")))
        return mo_json_get(val, MO_MCP_P_SERVER).p != NULL;
    return mo_json_str_eq(key, MO_SPAN("structuredContent")) &&
           !mo_json_is(val, MO_JSON_OBJECT);
}

static bool is_unchanged(const struct down *d, struct mo_json result)
{
    struct mo_json_iter it;

    mo_json_iter(&it, result);
    while (mo_json_more(&it)) {
        if (is_touched(d, mo_json_key(&it), &it))
            return false;
    }
    return true;
}

int mo_ep_downgrade(const struct mo_endpoint *ep, struct mo_buf *b,
                    enum mo_mcp_version v, struct mo_json result)
{
    struct down d = {.ep = ep, .v = v};
    struct mo_json_iter it;

    if (is_unchanged(&d, result))
        return mo_buf_span(b, mo_json_text(result));
    d.w = mo_jw_object(b);
    mo_json_iter(&it, result);
    while (mo_json_more(&it)) {
        struct mo_json key = mo_json_key(&it);

        if (is_too_new(&d, tops, MO_COUNT(tops), key)) {
            (void)mo_json_value(&it);
            continue;
        }
        mo_jw_key_raw(&d.w, key);
        put_member(&d, key, &it);
    }
    mo_jw_end(&d.w);
    return mo_buf_err(b);
}
