/* tools.c - loads the tools of several servers into one catalogue; see
 * tools.h. */
#include "servers/tools.h"

#include "base/map.h"
#include "gateway/catalog/catalog.h"
#include "gateway/catalog/name.h"
#include "gateway/gateway.h"
#include "mcp/client/pages.h"

struct catalogue {
    struct mo_arena arena;
    struct mo_tool *v;
    size_t n, nsources;
    struct mo_map names; /* name -> struct mo_tool * */
    const char *failed[MO_TOOLS_SOURCES_MAX];
};

struct load; /* one load of all sources */

struct page { /* one source of a load */
    struct load *load;
    struct mo_tool_source source;
    struct mo_pages *pages; /* NULL: it answered */
    struct mo_json items;   /* in the arena of the catalogue; may be empty */
};

struct load {
    struct mo_loop *loop;
    struct mo_tools *tools; /* NULL: cancelled */
    struct catalogue *next;
    size_t n, waiting;
    struct mo_later later; /* calls done() from the loop */
    mo_done_fn *done;
    void *ctx;
    struct page pages[];
};

struct mo_tools {
    struct mo_loop *loop;
    struct catalogue *now;
    struct load *load;
};

/* --- names --------------------------------------------------------------- */

void mo_tools_name(struct mo_span server, struct mo_span tool, bool bare,
                   bool taken, char out[MO_TOOLS_NAME_MAX])
{
    mo_gw_name_in(server, tool, !bare, taken, out, MO_TOOLS_NAME_MAX);
}

/* --- catalogue ------------------------------------------------------------ */

static void catalogue_free(struct catalogue *c)
{
    if (c == NULL)
        return;
    mo_map_fini(&c->names);
    mo_arena_fini(&c->arena);
    mo_free(c);
}

static struct catalogue *catalogue_new(size_t nsources)
{
    struct catalogue *c = mo_new(struct catalogue);

    if (c == NULL)
        return NULL;
    mo_arena_init(&c->arena, MO_TOOLS_BYTES_MAX);
    mo_map_init(&c->names, MO_TOOLS_MAX);
    c->nsources = nsources;
    return c;
}

static const char out_of_memory[] = "out of memory";

static void fail_source(struct catalogue *c, size_t i, const char *why)
{
    c->failed[i] = mo_arena_strndup(&c->arena, why, strlen(why));
    if (c->failed[i] == NULL)
        c->failed[i] = out_of_memory;
}

/* Adds the tool that was read into the next place. given: its own name or the
 * name to use instead. A tool without a name, or a duplicate, is left out. */
static int name_tool(struct catalogue *c, struct mo_span given, bool bare)
{
    struct mo_tool *t = &c->v[c->n];
    char name[MO_TOOLS_NAME_MAX];

    if (t->def.name.n == 0)
        return 0;
    mo_tools_name(t->def.server, given, bare, false, name);
    if (mo_map_get(&c->names, mo_span_cstr(name)))
        mo_tools_name(t->def.server, given, bare, true, name);
    if (mo_map_get(&c->names, mo_span_cstr(name)))
        return 0;
    t->name = mo_span_dup(&c->arena, mo_span_cstr(name));
    if (t->name.p == NULL || mo_map_put(&c->names, t->name, t, NULL) < 0)
        return MO_ENOMEM;
    c->n++;
    return 0;
}

static int add_tool(struct catalogue *c, const struct page *p, size_t source,
                    struct mo_json item)
{
    struct mo_tool *t = &c->v[c->n];

    t->source = (unsigned)source;
    if (mo_tool_read(&c->arena, p->source.name, (struct mo_span){NULL, 0}, item,
                     t) < 0)
        return MO_ENOMEM;
    return name_tool(c, t->def.name, p->source.bare);
}

static bool is_from_server(const struct page *p, const struct mo_cat_item *it)
{
    const struct mo_catalog *from = mo_gateway_catalog(p->source.gateway);

    return p->source.name.n == 0 ||
           mo_span_is(p->source.name, mo_catalog_about(from, it->server).name);
}

/* Copies the item: the catalogue of the gateway may change. */
static int add_item(struct catalogue *c, const struct page *p, size_t source,
                    const struct mo_cat_item *it)
{
    const struct mo_catalog *from = mo_gateway_catalog(p->source.gateway);
    struct mo_tool *t = &c->v[c->n];
    struct mo_span text = mo_span_dup(&c->arena, mo_json_text(it->item));
    struct mo_span own = mo_span_dup(&c->arena, it->own);
    struct mo_span server = mo_span_dup(
        &c->arena, mo_span_cstr(mo_catalog_about(from, it->server).name));

    t->source = (unsigned)source;
    if (!text.p || !server.p || !own.p ||
        mo_tool_read(&c->arena, server, own, (struct mo_json){text.p, text.n},
                     t) < 0)
        return MO_ENOMEM;
    return name_tool(c, it->given, p->source.bare);
}

static int add_gateway(struct catalogue *c, const struct page *p, size_t source)
{
    const struct mo_catalog *from = mo_gateway_catalog(p->source.gateway);
    size_t n = mo_catalog_count(from, MO_CAT_TOOLS);

    for (size_t i = 0; i < n && c->n < MO_TOOLS_MAX; i++) {
        const struct mo_cat_item *it = mo_catalog_at(from, MO_CAT_TOOLS, i);

        if (is_from_server(p, it) && add_item(c, p, source, it) < 0)
            return MO_ENOMEM;
    }
    return 0;
}

static int add_source(struct catalogue *c, const struct page *p, size_t i)
{
    if (p->source.gateway)
        return add_gateway(c, p, i);
    mo_json_each_while (at, p->items, c->n < MO_TOOLS_MAX)
        if (add_tool(c, p, i, at.val) < 0)
            return MO_ENOMEM;
    return 0;
}

/* All sources have answered, so the number of tools is known. */
static int build_catalogue(struct load *l)
{
    struct catalogue *c = l->next;
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++)
        n += l->pages[i].source.gateway
                 ? mo_catalog_count(
                       mo_gateway_catalog(l->pages[i].source.gateway),
                       MO_CAT_TOOLS)
                 : mo_json_len(l->pages[i].items);
    if (n > MO_TOOLS_MAX)
        n = MO_TOOLS_MAX;
    c->v = mo_arena_zalloc(&c->arena, (n + 1) * sizeof(*c->v));
    if (c->v == NULL)
        return MO_ENOMEM;
    for (size_t i = 0; i < l->n; i++)
        if (add_source(c, &l->pages[i], i) < 0)
            return MO_ENOMEM;
    return 0;
}

/* --- loading the sources -------------------------------------------------- */

static void on_end(struct mo_later *d)
{
    struct load *l = mo_container_of(d, struct load, later);
    struct mo_tools *t = l->tools;
    struct mo_err e = {0};
    int rc = 0;

    if (t == NULL)
        rc = mo_fail(&e, MO_ECANCELED, "a newer load of the tools began");
    else if (build_catalogue(l) < 0)
        rc = mo_fail(&e, MO_ENOMEM, "tools: out of memory");
    if (t && rc == 0) {
        catalogue_free(t->now);
        t->now = mo_take_ptr(&l->next);
    }
    if (t)
        t->load = NULL;
    catalogue_free(l->next);
    if (l->done)
        l->done(l->ctx, rc < 0 ? &e : NULL);
    mo_free(l);
}

static void source_answered(struct load *l)
{
    if (--l->waiting == 0)
        mo_loop_defer(l->loop, &l->later);
}

static void take_items(struct page *p, struct mo_json items)
{
    struct load *l = p->load;
    struct mo_span text = mo_span_dup(&l->next->arena, mo_json_text(items));

    p->items = (struct mo_json){text.p, text.n};
    if (text.p == NULL)
        fail_source(l->next, (size_t)(p - l->pages),
                    "the list of tools is too big");
}

static void on_page(void *ctx, struct mo_json items, const struct mo_reply *r)
{
    struct page *p = ctx;
    struct load *l = p->load;
    size_t i = (size_t)(p - l->pages);

    p->pages = NULL;
    if (items.p) {
        take_items(p, items);
    } else {
        fail_source(l->next, i,
                    r->err ? r->err->msg : "the server returned an error");
    }
    source_answered(l);
}

static void list_source(struct load *l, size_t i)
{
    struct page *p = &l->pages[i];
    struct mo_pages_opts o = {
        .method = "tools/list", .key = "tools", .done = on_page, .ctx = p};
    struct mo_err e;

    if (p->source.list.p)
        take_items(p, p->source.list);
    if (p->source.conn == NULL || !mo_conn_can(p->source.conn, "tools"))
        return;
    if (mo_pages_start(p->source.conn, &o, &p->pages, &e) == 0)
        l->waiting++;
    else
        fail_source(l->next, i, e.msg);
}

static void cancel_load(struct mo_tools *t)
{
    struct load *l = mo_take_ptr(&t->load);

    if (l == NULL)
        return;
    l->tools = NULL;
    for (size_t i = 0; i < l->n; i++)
        if (l->pages[i].pages)
            mo_pages_cancel(l->pages[i].pages);
}

static struct load *load_new(struct mo_tools *t, const struct mo_tool_source *v,
                             size_t n)
{
    struct load *l = mo_zalloc(sizeof(*l) + n * sizeof(l->pages[0]));

    if (l == NULL)
        return NULL;
    l->next = catalogue_new(n);
    if (l->next == NULL) {
        mo_free(l);
        return NULL;
    }
    l->tools = t;
    l->loop = t->loop;
    l->n = n;
    mo_later_init(&l->later, on_end);
    for (size_t i = 0; i < n; i++) {
        struct page *p = &l->pages[i];

        *p = (struct page){.load = l, .source = v[i]};
        p->source.name = mo_span_dup(&l->next->arena, v[i].name);
    }
    return l;
}

int mo_tools_load(struct mo_tools *t, const struct mo_tool_source *v, size_t n,
                  mo_done_fn *done, void *ctx, struct mo_err *e)
{
    struct load *l = NULL;

    if (n > MO_TOOLS_SOURCES_MAX)
        return mo_fail(e, MO_ETOOBIG, "tools: more than %d servers",
                       MO_TOOLS_SOURCES_MAX);
    l = load_new(t, v, n);
    if (l == NULL)
        return mo_fail(e, MO_ENOMEM, "tools: out of memory");
    cancel_load(t);
    t->load = l;
    l->done = done;
    l->ctx = ctx;
    l->waiting = 1; /* one for this function: no answer can end it early */
    for (size_t i = 0; i < n; i++)
        list_source(l, i);
    source_answered(l);
    return 0;
}

/* --- new, free and accessors ---------------------------------------------- */

struct mo_tools *mo_tools_new(struct mo_loop *l)
{
    struct mo_tools *t = mo_new(struct mo_tools);

    if (t)
        t->loop = l;
    return t;
}

void mo_tools_free(struct mo_tools *t)
{
    if (t == NULL)
        return;
    if (t->load)
        t->load->done = NULL;
    cancel_load(t);
    catalogue_free(t->now);
    mo_free(t);
}

size_t mo_tools_count(const struct mo_tools *t)
{
    return t->now ? t->now->n : 0;
}

const struct mo_tool *mo_tools_at(const struct mo_tools *t, size_t i)
{
    return &t->now->v[i];
}

const struct mo_tool *mo_tools_find(const struct mo_tools *t,
                                    struct mo_span name)
{
    return t->now ? mo_map_get(&t->now->names, name) : NULL;
}

const char *mo_tools_failed(const struct mo_tools *t, size_t i)
{
    return t->now && i < t->now->nsources ? t->now->failed[i] : NULL;
}
