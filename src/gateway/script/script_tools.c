/* script_tools.c - the tools of a view as a script sees them; see script.h. */
#include "gateway/router/meta_tools_priv.h"
#include "gateway/router/router_index.h"
#include "gateway/script/script.h"
#include "mcp/script/files.h"

#define FIND_MAX   50
#define FIND_USUAL 10
#define FIND_WORDS ((size_t)4096)
#define LIST_BYTES ((size_t)16 * 1024 * 1024)
#define STUB_BYTES ((size_t)64 * 1024)

struct tool_list {
    struct mo_arena arena;
    struct mo_script_tool *v;
    size_t n;
};

static struct mo_script_tool tool_of(const struct mo_catalog *cat,
                                     const struct mo_cat_item *it,
                                     struct mo_arena *a)
{
    struct mo_script_tool t = {
        .name = it->name,
        .server = mo_span_cstr(mo_catalog_about(cat, it->server).name),
        .input = mo_json_get(it->item, "inputSchema"),
        .output = mo_json_get(it->item, "outputSchema"),
    };

    (void)mo_json_str(mo_json_get(it->item, "description"), a, &t.description);
    return t;
}

/* Texts are borrowed until the catalogue changes. */
static int open_list(struct tool_list *l, const struct mo_gw_view *v)
{
    const struct mo_catalog *cat = mo_gw_cat(v);
    size_t n = mo_catalog_count(cat, MO_CAT_TOOLS);

    *l = (struct tool_list){.n = 0};
    mo_arena_init(&l->arena, LIST_BYTES);
    l->v = mo_arena_alloc(&l->arena, (n + 1) * sizeof(*l->v));
    if (!l->v)
        return MO_ENOMEM;
    for (; l->n < n; l->n++)
        l->v[l->n] =
            tool_of(cat, mo_catalog_at(cat, MO_CAT_TOOLS, l->n), &l->arena);
    return 0;
}

void mo_gw_script_put_files(struct mo_jw *w, const struct mo_gw_view *v,
                            struct mo_json arguments)
{
    struct tool_list list;
    int rc = open_list(&list, v);

    mo_script_put_files_of(
        w, arguments, MO_GW_SCRIPT_CODE,
        (struct mo_script_use){.tools = list.v, .n = rc == 0 ? list.n : 0});
    mo_arena_fini(&list.arena);
}

/* --- searches --------------------------------------------------------------
 */

static void put_hit(struct mo_jw *w, const struct mo_gw_view *v,
                    const struct mo_route_hit *h)
{
    const struct mo_cat_item *it =
        mo_meta_tools_find(mo_gw_cat(v), h->server, h->tool);
    struct unavailable_reason why = {.code = NULL};

    if (!it)
        return;
    mo_unavailable_tool(v->g, it, &why);
    if (mo_meta_tools_is_held_back(&why))
        return;
    mo_jw_obj(w);
    mo_jw_member(w, "name", it->name);
    mo_jw_member(w, "server", h->server);
    mo_jw_member(w, "tool", h->tool);
    mo_jw_copy(w, it->item, "description");
    mo_jw_member_f64(w, "confidence",
                     (double)(int)(h->confidence * 100 + 0.5f) / 100);
    mo_jw_end(w);
}

int mo_gw_script_find(struct mo_gw_view *v, struct mo_json params,
                      struct mo_buf *out)
{
    mo_autofree struct mo_route_answer *found = mo_new(struct mo_route_answer);
    mo_autobuf struct mo_buf words = {.max = FIND_WORDS};
    uint64_t limit = FIND_USUAL;
    struct mo_jw w;

    (void)mo_json_u64(mo_json_get(params, "limit"), &limit);
    limit = limit < 1 ? 1 : limit > FIND_MAX ? FIND_MAX : limit;
    if (!found)
        return MO_ENOMEM;
    if (mo_json_str_buf(mo_json_get(params, "find"), &words) == 0 &&
        mo_router_view_find(v, mo_buf_view(&words), (size_t)limit, found) < 0)
        return MO_ENOMEM;
    w = mo_jw_object(out);
    mo_jw_member_raw(&w, "content", MO_SPAN("[]"));
    mo_jw_member_obj(&w, "structuredContent");
    mo_jw_member_arr(&w, "tools");
    for (size_t i = 0; i < found->n; i++)
        put_hit(&w, v, &found->hits[i]);
    mo_jw_end_all(&w);
    return mo_buf_err(out);
}

/* --- declarations ----------------------------------------------------------
 */

void mo_gw_script_put_declaration(struct mo_jw *w, const struct mo_gw_view *v,
                                  const struct mo_cat_item *it)
{
    mo_autoarena struct mo_arena a = {.cap = STUB_BYTES};
    mo_autobuf struct mo_buf types = {.max = STUB_BYTES};
    mo_autobuf struct mo_buf text = {.max = STUB_BYTES};
    char id[MO_SCRIPT_ID_MAX];
    struct mo_script_tool t;

    if (!mo_meta_tools_is_code(v))
        return;
    t = tool_of(mo_gw_cat(v), it, &a);
    mo_script_identifier(t.name, id);
    mo_stub_put(&t, mo_span_is(t.name, id) ? id : "", MO_SCRIPT_PYTHON, &types,
                &text);
    mo_buf_span(&types, mo_buf_view(&text));
    if (mo_buf_err(&types) == 0 && mo_buf_err(&text) == 0)
        mo_jw_member(w, "declaration", mo_buf_view(&types));
}
