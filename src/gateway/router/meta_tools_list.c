/* meta_tools_list.c - list_capabilities and explain_tool. */
#include <stdio.h>

#include "gateway/router/meta_tools_priv.h"

#define PAGE_SERVERS 20 /* of list_capabilities */
#define PAGE_TOOLS   20 /* per server, unless one server is asked for */

/* --- list_capabilities --------------------------------------------------- */

static const char *state_of(const struct mo_gateway *g, unsigned no)
{
    static const char *const words[] = {
        [MO_UPSTREAM_COLD] = "not started",
        [MO_UPSTREAM_STARTING] = "starting",
        [MO_UPSTREAM_OK] = "ok",
        [MO_UPSTREAM_FAILED] = "failed",
        [MO_UPSTREAM_BROKEN] = "out of order",
        [MO_UPSTREAM_SIGN_IN] = "needs a sign-in",
        [MO_UPSTREAM_INSTALLING] = "being installed",
    };
    struct mo_upstream_status s;

    mo_upstream_status(g->v[no]->up, &s);
    return words[s.state];
}

static bool contains_word(const char *text, struct mo_span word)
{
    struct mo_span t = mo_span_cstr(text);

    for (size_t i = 0; i + word.n <= t.n; i++)
        if (mo_span_ieq(mo_span(t.p + i, word.n), word))
            return true;
    return false;
}

/* True if `line` is one of the lines, ignoring case. */
static bool has_line(const char *lines, struct mo_span line)
{
    struct mo_span rest = mo_span_cstr(lines);

    while (rest.p && rest.n)
        if (mo_span_ieq(mo_span_cut(&rest, '\n'), line))
            return true;
    return false;
}

/* Matches a category or tag, or words in keywords and description. */
static bool is_in_category(const struct mo_cat_about *s,
                           struct mo_span category)
{
    return has_line(s->categories, category) ||
           contains_word(s->keywords, category) ||
           contains_word(s->description, category);
}

static void put_categories(const char *lines, struct mo_jw *w)
{
    struct mo_span rest = mo_span_cstr(lines);

    if (!rest.n)
        return;
    mo_jw_member_arr(w, "categories");
    while (rest.p && rest.n)
        mo_jw_str(w, mo_span_cut(&rest, '\n'));
    mo_jw_end(w);
}

static void put_tools(const struct mo_catalog *cat, unsigned no, size_t most,
                      struct mo_jw *w)
{
    size_t n = mo_catalog_count(cat, MO_CAT_TOOLS), count = 0;

    mo_jw_member_arr(w, "tools");
    for (size_t i = 0; i < n; i++) {
        const struct mo_cat_item *it = mo_catalog_at(cat, MO_CAT_TOOLS, i);

        if (it->server != no || it->app_only || count++ >= most)
            continue;
        mo_jw_obj(w);
        mo_jw_member(w, "name", it->given);
        mo_jw_copy(w, it->item, "description");
        mo_jw_end(w);
    }
    mo_jw_end(w);
    mo_jw_member_u64(w, "toolCount", count);
}

static void put_server(const struct mo_gw_view *v, unsigned no, size_t most,
                       struct mo_jw *w)
{
    const struct mo_catalog *cat = mo_gw_cat(v);
    const struct mo_cat_about s = mo_catalog_about(cat, no);
    const char *why = mo_catalog_why(cat, no);

    mo_jw_obj(w);
    mo_jw_member_cstr(w, "server", s.name);
    if (s.description)
        mo_jw_member_cstr(w, "description", s.description);
    put_categories(s.categories, w);
    mo_jw_member_cstr(w, "state", state_of(v->g, no));
    if (why)
        mo_jw_member_cstr(w, "why", why);
    put_tools(cat, no, most, w);
    mo_jw_end(w);
}

/* The number of the next server of the view from `no` on; g->n: no more. */
static unsigned next_shown(const struct mo_gw_view *v, unsigned no)
{
    while (no < v->g->n && !mo_gw_shows(v, v->g->v[no]))
        no++;
    return no;
}

void mo_meta_tools_run_list_capabilities(struct mo_gateway *g,
                                         struct mo_ep_call *c,
                                         struct mo_arena *a)
{
    const struct mo_gw_view *v = mo_gw_view_of(g, c);
    struct mo_span server = mo_meta_tools_arg(c, a, "server"),
                   cursor = mo_meta_tools_arg(c, a, "cursor");
    struct mo_span category = mo_meta_tools_arg(c, a, "category");
    uint64_t from = 0, at = 0; /* counts servers of the view */
    unsigned no = next_shown(v, 0), shown = 0;
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};
    struct mo_jw w;

    if (cursor.n && mo_span_u64(cursor, &from) < 0) {
        mo_ep_call_fail(c, "cursor is not valid; omit it for the first page");
        return;
    }
    w = mo_jw_object(&b);
    mo_jw_member_arr(&w, "servers");
    for (; no < g->n && shown < PAGE_SERVERS;
         no = next_shown(v, no + 1), at++) {
        const struct mo_cat_about s = mo_catalog_about(g->cat, no);

        if (at < from || (server.n && !mo_span_is(server, s.name)) ||
            (category.n && !is_in_category(&s, category)))
            continue;
        put_server(v, no, server.n ? SIZE_MAX : PAGE_TOOLS, &w);
        shown++;
    }
    mo_jw_end(&w);
    if (no < g->n) {
        char next[24];

        (void)snprintf(next, sizeof(next), "%llu", (unsigned long long)at);
        mo_jw_member_cstr(&w, "nextCursor", next);
    }
    mo_jw_end(&w);
    mo_meta_tools_answer(c, &b, false);
}

/* --- explain_tool -------------------------------------------------------- */

/* Writes an example value for a parameter. */
static void put_example_value(struct mo_jw *w, struct mo_json schema)
{
    static const struct {
        const char *type, *text;
    } rows[] = {
        {"string", "\"...\""}, {"integer", "1"}, {"number", "1"},
        {"boolean", "true"},   {"array", "[]"},  {"object", "{}"},
    };
    struct mo_json type = mo_json_get(schema, "type");
    struct mo_json v = mo_json_get(schema, "default");

    if (!v.p)
        v = mo_json_at(mo_json_get(schema, "examples"), 0);
    if (!v.p)
        v = mo_json_at(mo_json_get(schema, "enum"), 0);
    for (size_t i = 0; !v.p && i < MO_COUNT(rows); i++)
        if (mo_json_str_eq(type, mo_span_cstr(rows[i].type)))
            v = (struct mo_json){rows[i].text, strlen(rows[i].text)};
    mo_jw_raw(w, v.p ? mo_json_text(v) : MO_SPAN("null"));
}

static void put_example_call(struct mo_jw *w, const char *server,
                             const struct mo_cat_item *it, struct mo_arena *a)
{
    struct mo_json schema = mo_json_get(it->item, "inputSchema");
    struct mo_json all = mo_json_get(schema, "properties");

    mo_jw_member_obj(w, "example");
    mo_jw_member_cstr(w, "server", server);
    mo_jw_member(w, "tool", it->given);
    mo_jw_member_obj(w, "params");
    mo_json_each (walk, mo_json_get(schema, "required")) {
        struct mo_span text;
        char plain[128];

        if (!mo_json_is(walk.val, MO_JSON_STRING) ||
            mo_json_str(walk.val, a, &text) < 0 || text.n >= sizeof(plain))
            continue;
        (void)snprintf(plain, sizeof(plain), "%.*s", (int)text.n, text.p);
        mo_jw_key_span(w, text);
        put_example_value(w, mo_json_get(all, plain));
    }
    mo_jw_end(w);
    mo_jw_end(w);
}

static void put_health(struct mo_jw *w, const struct mo_gateway *g, unsigned no)
{
    struct mo_upstream_status s;

    mo_upstream_status(g->v[no]->up, &s);
    mo_jw_member_obj(w, "health");
    mo_jw_member_cstr(w, "state", state_of(g, no));
    if (s.why.code)
        mo_jw_member_cstr(w, "why", s.why.msg);
    mo_jw_member_u64(w, "callsUnderWay", s.calls);
    mo_jw_end(w);
}

static double as_ms(uint64_t us)
{
    return (double)us / 1000;
}

/* Writes durations of the tool's calls since the start. */
static void put_latency(struct mo_jw *w, const struct mo_gateway *g,
                        const struct mo_cat_item *it)
{
    struct mo_latency_stats s;

    if (!mo_latency_get(&g->latency, mo_catalog_about(g->cat, it->server).name,
                        it->own, &s))
        return;
    mo_jw_member_obj(w, "latency");
    mo_jw_member_u64(w, "calls", s.calls);
    mo_jw_member_u64(w, "failed", s.failed);
    mo_jw_member_f64(w, "p50Ms", as_ms(s.p50_us));
    mo_jw_member_f64(w, "p95Ms", as_ms(s.p95_us));
    mo_jw_end(w);
}

void mo_meta_tools_run_explain_tool(struct mo_gateway *g, struct mo_ep_call *c,
                                    struct mo_arena *a)
{
    static const char *const parts[] = {"title", "description", "inputSchema",
                                        "outputSchema", "annotations"};
    struct mo_span server = mo_meta_tools_arg(c, a, "server"),
                   tool = mo_meta_tools_arg(c, a, "tool");
    const struct mo_cat_item *it;
    struct unavailable_reason v;
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};
    struct mo_jw w;

    server = server.n ? server : mo_meta_tools_arg(c, a, "mcp_name");
    tool = tool.n ? tool : mo_meta_tools_arg(c, a, "tool_name");
    it = tool.n ? mo_meta_tools_find(mo_gw_cat_of(g, c), server, tool) : NULL;
    if (!it) {
        mo_ep_call_fail(c, NO_SUCH_TOOL);
        return;
    }
    mo_unavailable_tool(g, it, &v);
    if (mo_meta_tools_is_held_back(&v)) {
        mo_ep_call_fail(c, v.why);
        return;
    }
    w = mo_jw_object(&b);
    mo_jw_member_cstr(&w, "server", mo_catalog_about(g->cat, it->server).name);
    mo_jw_member(&w, "tool", it->given);
    for (size_t i = 0; i < MO_COUNT(parts); i++)
        mo_jw_copy(&w, it->item, parts[i]);
    g->script.declare(&w, mo_gw_view_of(g, c), it);
    put_example_call(&w, mo_catalog_about(g->cat, it->server).name, it, a);
    put_health(&w, g, it->server);
    put_latency(&w, g, it);
    mo_jw_end(&w);
    mo_meta_tools_answer(c, &b, false);
}
