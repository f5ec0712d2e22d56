/* script_tools.c - see script_tools.h. */
#include "agent/chat/script_tools.h"

#include "agent/chat/calls.h"
#include "agent/chat/entries.h"
#include "agent/chat/load_tools.h"
#include "agent/chat/script_calls.h"
#include "agent/chat/tools_off.h"
#include "gateway/inside.h"
#include "mcp/script/files.h"

#define LIST_BYTES ((size_t)16 * 1024 * 1024)
#define HINTS      6                  /* tools that are declared */
#define HINTS_MAX  ((size_t)8 * 1024) /* bytes of them, about */
#define SAID_MAX   ((size_t)2048)     /* bytes of a message that are searched */

/* --- offers ----------------------------------------------------------------
 */

enum mo_gw_expose mo_script_offer(const struct chat *c)
{
    static const char *const names[] = {[MO_GW_ALL] = "all",
                                        [MO_GW_SEARCH] = "search",
                                        [MO_GW_AUTO] = "auto",
                                        [MO_GW_CODE] = "code"};
    struct mo_json_doc labels;
    struct mo_json offer;

    if (mo_json_parse(mo_buf_view(&c->labels), 0, &labels, NULL) < 0)
        return c->agent->o.servers.offer;
    offer = mo_json_get(labels.root, "offer");
    for (size_t i = 0; i < MO_COUNT(names); i++)
        if (mo_json_str_eq(offer, mo_span_cstr(names[i])))
            return (enum mo_gw_expose)i;
    return c->agent->o.servers.offer;
}

static const struct mo_tool *find_runner(const struct chat *c)
{
    const struct mo_tool *t = mo_tools_find(c->tools, MO_SPAN(MO_SCRIPT_TOOL));

    return mo_script_is(t) && !mo_tools_off_has(c, t) ? t : NULL;
}

static bool is_large(const struct chat *c)
{
    const struct mo_gateway *g = c->agent->o.servers.gateway;

    return g && mo_gateway_is_large(g);
}

/* With few tools their definitions are shorter than the words about scripts,
 * and a model calls a tool that it sees with fewer mistakes. */
bool mo_script_is_offered(const struct chat *c)
{
    enum mo_gw_expose offer = mo_script_offer(c);

    return (offer == MO_GW_CODE || (offer == MO_GW_AUTO && is_large(c))) &&
           find_runner(c);
}

const char *mo_script_offered(const struct chat *c)
{
    enum mo_gw_expose offer = mo_script_offer(c);

    if (mo_script_is_offered(c))
        return "code";
    return offer == MO_GW_ALL || (offer == MO_GW_AUTO && !is_large(c))
               ? "all"
               : "search";
}

/* A tool that the person has switched off cannot be used. */
bool mo_script_tool_is_off(const struct chat *c, struct mo_span server,
                           const char *name)
{
    const struct mo_tool t = {.name = mo_span_cstr(name),
                              .def = {.server = server}};

    return mo_tools_off_has(c, &t);
}

/* --- all tools that a script may call --------------------------------------
 */

struct tool_list {
    struct mo_arena arena;
    struct mo_script_tool *v;
    size_t n, max;
};

static void add_tool(struct tool_list *l, const struct mo_script_tool *t)
{
    if (l->n < l->max)
        l->v[l->n++] = *t;
}

/* Tools of the box, but run_script. */
static void add_box(struct tool_list *l, const struct chat *c)
{
    for (size_t i = 0; i < mo_tools_count(c->tools); i++) {
        const struct mo_tool *t = mo_tools_at(c->tools, i);

        if (t->source == SOURCE_BOX && !mo_script_is(t) &&
            !mo_tools_off_has(c, t))
            add_tool(l, &(struct mo_script_tool){
                            .name = t->name,
                            .server = t->def.server,
                            .description = t->def.description,
                            .input = {t->def.schema.p, t->def.schema.n},
                            .output = {t->output_schema.p, t->output_schema.n},
                        });
    }
}

static void add_item(struct tool_list *l, const struct chat *c,
                     struct mo_span server, const struct mo_cat_item *it)
{
    struct mo_script_tool t = {
        .server = server,
        .input = mo_json_get(it->item, "inputSchema"),
        .output = mo_json_get(it->item, "outputSchema"),
    };
    char name[MO_TOOLS_NAME_MAX];

    mo_tools_name(server, it->given, false, false, name);
    if (mo_script_tool_is_off(c, server, name))
        return;
    t.name = mo_span_dup(&l->arena, mo_span_cstr(name));
    (void)mo_json_str(mo_json_get(it->item, "description"), &l->arena,
                      &t.description);
    if (t.name.p)
        add_tool(l, &t);
}

static void add_servers(struct tool_list *l, const struct chat *c,
                        const struct mo_catalog *cat)
{
    size_t n = cat ? mo_catalog_count(cat, MO_CAT_TOOLS) : 0;

    for (size_t i = 0; i < n; i++) {
        const struct mo_cat_item *it = mo_catalog_at(cat, MO_CAT_TOOLS, i);

        add_item(l, c, mo_span_cstr(mo_catalog_about(cat, it->server).name),
                 it);
    }
}

/* Texts are borrowed until the tools change. */
static int open_list(struct tool_list *l, const struct chat *c)
{
    const struct mo_gateway *g = c->agent->o.servers.gateway;
    const struct mo_catalog *cat = g ? mo_gateway_catalog(g) : NULL;

    *l = (struct tool_list){.max = mo_tools_count(c->tools)};
    mo_arena_init(&l->arena, LIST_BYTES);
    if (cat)
        l->max += mo_catalog_count(cat, MO_CAT_TOOLS);
    l->v = mo_arena_alloc(&l->arena, (l->max + 1) * sizeof(*l->v));
    if (l->v == NULL)
        return MO_ENOMEM;
    add_box(l, c);
    add_servers(l, c, cat);
    return 0;
}

static void close_list(struct tool_list *l)
{
    mo_arena_fini(&l->arena);
}

/* --- words for the model ----------------------------------------------------
 */

static const char how_to[] =
    "\n\nFor more than two calls of tools, or results that you only need in "
    "part, write one script for run_script instead: it runs in the box, calls "
    "tools, and you get what it prints. Python: `import tools`, then "
    "`tools.NAME(argument=...)`, or `await tools.aio.NAME(...)` with "
    "asyncio.gather for calls at the same time. JavaScript: `import tools "
    "from \"./tools.mjs\"`, then `await tools.NAME({argument: ...})`. "
    "`tools.find(\"plain words\")` lists more tools by name. Calls need the "
    "same approval as yours; one that is refused raises tools.Rejected or "
    "tools.Denied. Print only what you need.";

/* The last message of the person. */
static void put_last_message(const struct chat *c, struct mo_buf *out)
{
    struct entry *en = mo_chat_entry_before(c, NULL);

    while (en && en->role != MO_ENTRY_USER)
        en = mo_chat_entry_before(c, en);
    if (en == NULL || mo_entry_text(en->doc, out) < 0)
        mo_buf_reset(out);
}

/* False: it is none, or one of the box, whose definition the model has. */
static bool put_hint(struct mo_buf *types, struct mo_buf *out,
                     const struct mo_script_use *u, struct mo_json hit)
{
    mo_autobuf struct mo_buf name = {.max = 256};
    char id[MO_SCRIPT_ID_MAX];

    (void)mo_json_str_buf(mo_json_get(hit, "name"), &name);
    for (size_t i = 0; i < u->n && out->len + types->len < HINTS_MAX; i++) {
        if (!mo_span_eq(u->tools[i].name, mo_buf_view(&name)) ||
            mo_span_is(u->tools[i].server, "box"))
            continue;
        if (!mo_script_own_identifier(u, i, id))
            id[0] = '\0';
        mo_stub_put(&u->tools[i], id, MO_SCRIPT_PYTHON, types, out);
        return true;
    }
    return false;
}

/* Declares the tools that the router finds for the message. */
static void put_hints(struct chat *c, struct mo_buf *out)
{
    mo_autobuf struct mo_buf params = {.max = MO_CHAT_TEXT_MAX * 8};
    mo_autobuf struct mo_buf said = {.max = MO_CHAT_TEXT_MAX};
    mo_autobuf struct mo_buf found = {.max = MO_SCRIPT_RESULT_MAX};
    mo_autobuf struct mo_buf types = {.max = HINTS_MAX * 2};
    mo_autobuf struct mo_buf stubs = {.max = HINTS_MAX * 2};
    struct mo_script_use u = {.language = MO_SCRIPT_PYTHON};
    unsigned left = HINTS;
    struct tool_list list;
    struct mo_json_doc ask, answer;
    struct mo_jw w = mo_jw_object(&params);

    put_last_message(c, &said);
    mo_jw_member(&w, "find", mo_span_head(mo_buf_view(&said), SAID_MAX));
    mo_jw_member_u64(&w, "limit", HINTS + mo_tools_count(c->tools));
    mo_jw_end(&w);
    if (said.len == 0 || open_list(&list, c) < 0)
        return;
    u.tools = list.v;
    u.n = list.n;
    if (mo_json_parse(mo_buf_view(&params), 0, &ask, NULL) == 0 &&
        mo_script_find(c, ask.root, &found) == 0 &&
        mo_json_parse(mo_buf_view(&found), 0, &answer, NULL) == 0)
        mo_json_each (
            at,
            mo_json_get(mo_json_get(answer.root, "structuredContent"), "tools"))
            if (left > 0 && put_hint(&types, &stubs, &u, at.val))
                left--;
    close_list(&list);
    if (stubs.len == 0 || mo_buf_err(&stubs) || mo_buf_err(&types))
        return;
    mo_buf_puts(out, "\n\nTools that may fit, as Python sees them:\n```\n");
    mo_buf_span(out, mo_buf_view(&types));
    mo_buf_span(out, mo_buf_view(&stubs));
    mo_buf_puts(out, "```");
}

void mo_script_put_words(struct chat *c, struct mo_buf *out)
{
    if (!mo_script_is_offered(c))
        return;
    if (strcmp(c->hints_of, c->turn.id) != 0 || c->turn.id[0] == '\0') {
        mo_buf_reset(&c->hints);
        put_hints(c, &c->hints);
        memcpy(c->hints_of, c->turn.id, sizeof(c->hints_of));
    }
    mo_buf_puts(out, how_to);
    if (!mo_buf_err(&c->hints))
        mo_buf_span(out, mo_buf_view(&c->hints));
}

uint64_t mo_script_words_bytes(const struct chat *c)
{
    return mo_script_is_offered(c) ? sizeof(how_to) - 1 + c->hints.len : 0;
}

uint64_t mo_script_tools_bytes(const struct chat *c)
{
    struct tool_list list;
    uint64_t n = 0;

    if (open_list(&list, c) == 0)
        for (size_t i = 0; i < list.n; i++)
            n += list.v[i].name.n + list.v[i].description.n + list.v[i].input.n;
    close_list(&list);
    return n;
}

/* --- libraries -------------------------------------------------------------
 */

void mo_script_put_files(struct mo_jw *w, const struct chat *c,
                         struct mo_json args)
{
    struct tool_list list;
    int rc = open_list(&list, c);

    mo_script_put_files_of(
        w, args, MO_EXACT_MAX,
        (struct mo_script_use){.tools = list.v, .n = rc == 0 ? list.n : 0});
    close_list(&list);
}
