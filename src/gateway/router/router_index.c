#include "gateway/router/router_index.h"

#include "base/rand.h"
#include "gateway/router/router_learning.h"
#include "gateway/router/second_opinion.h"
#include "mcp/app.h"

#define ARENA_MAX ((size_t)64 * 1024 * 1024)

struct indexed_server { /* a server in the index */
    uint64_t sum;
    bool present; /* it is still configured */
};

struct router_index {
    struct mo_span table, pieces;
    struct mo_vectors *vectors;
    struct router_index *of; /* owner of the vectors; NULL: this one */
    bool all;                /* includes tools that are not offered */
    bool skills;             /* of skills, not of tools */
    struct mo_route *route;  /* NULL: no query yet */
    struct mo_map servers;   /* name -> struct seen */
    uint64_t key0, key1;
    bool stale;
    /* The last query and its answer: an execute by words is looked up when
     * it arrives, when it starts and when its server is ready. */
    struct mo_buf last_query; /* empty: none */
    struct mo_route_answer last_answer;
};

struct router_index *mo_router_index_new(struct mo_span table,
                                         struct mo_span pieces)
{
    struct router_index *d = mo_new(struct router_index);

    if (!d)
        return NULL;
    d->table = table;
    d->pieces = pieces;
    mo_map_init(&d->servers, MO_GW_SERVERS_MAX);
    mo_buf_init(&d->last_query, MO_ROUTE_TEXT_MAX);
    d->key0 = mo_random_u64();
    d->key1 = mo_random_u64();
    d->stale = true;
    return d;
}

void mo_router_index_free(struct router_index *d)
{
    if (!d)
        return;
    mo_map_each (en, &d->servers)
        mo_free(en->value);
    mo_map_fini(&d->servers);
    mo_buf_fini(&d->last_query);
    mo_route_free(d->route);
    if (!d->of)
        mo_vectors_free(d->vectors);
    mo_free(d);
}

struct router_index *mo_router_index_new_like(struct router_index *of, bool all)
{
    struct router_index *d = mo_router_index_new(of->table, of->pieces);

    if (!d)
        return NULL;
    d->of = of;
    d->all = all;
    return d;
}

struct router_index *mo_router_index_new_skills(struct router_index *of)
{
    struct router_index *d = mo_router_index_new_like(of, false);

    if (d)
        d->skills = true;
    return d;
}

static int open_route(struct router_index *d)
{
    if (d->route)
        return 0;
    if (d->of) {
        if (open_route(d->of) < 0)
            return MO_ENOMEM;
        d->vectors = d->of->vectors;
    } else if (d->table.n && !d->vectors) {
        d->vectors = mo_vectors_new(d->table, d->pieces, NULL);
    }
    if (d->table.n && !d->vectors)
        return MO_ENOMEM;
    d->route = mo_route_new(d->vectors);
    return d->route ? 0 : MO_ENOMEM;
}

const struct mo_vectors *mo_router_index_vectors(struct router_index *d)
{
    return open_route(d) == 0 ? d->vectors : NULL;
}

void mo_router_index_stale(struct router_index *d)
{
    if (d)
        d->stale = true;
}

/* --- one server ---------------------------------------------------------- */

static uint64_t mix_sum(const struct router_index *d, uint64_t sum,
                        struct mo_span s)
{
    return mo_siphash(d->key0 ^ sum, d->key1, s);
}

static enum mo_cat_kind kind_of(const struct router_index *d)
{
    return d->skills ? MO_CAT_SKILLS : MO_CAT_TOOLS;
}

/* The i-th tool to be indexed; NULL: no more. */
static const struct mo_cat_item *tool_at(const struct router_index *d,
                                         const struct mo_catalog *c, size_t i)
{
    size_t n = mo_catalog_count(c, kind_of(d));

    if (i < n)
        return mo_catalog_at(c, kind_of(d), i);
    return d->all ? mo_catalog_unoffered_tool(c, i - n) : NULL;
}

/* Checksum of all texts of a server that are indexed. */
static uint64_t server_sum(const struct router_index *d,
                           const struct mo_catalog *c, unsigned no)
{
    struct mo_cat_about s = mo_catalog_about(c, no);
    const struct mo_cat_item *it = tool_at(d, c, 0);
    uint64_t sum = mix_sum(d, 1, mo_span_cstr(s.description));

    sum = mix_sum(d, sum, mo_span_cstr(s.keywords));
    for (size_t i = 0; it; it = tool_at(d, c, ++i)) {
        if (it->server != no)
            continue;
        sum = mix_sum(d, sum, it->given);
        sum = mix_sum(d, sum, mo_json_text(it->item));
    }
    return sum;
}

static struct mo_span text_of(struct mo_arena *a, struct mo_json v)
{
    struct mo_span s = {"", 0};

    if (mo_json_is(v, MO_JSON_STRING))
        (void)mo_json_str(v, a, &s);
    return s;
}

static void read_skill(struct mo_arena *a, const struct mo_cat_item *it,
                       struct mo_route_tool *t)
{
    struct mo_json front = mo_json_get(it->item, "frontmatter");

    *t = (struct mo_route_tool){
        .name = text_of(a, mo_json_get(front, "name")),
        .description = text_of(a, mo_json_get(front, "description"))};
}

static int read_tool(struct mo_arena *a, const struct mo_cat_item *it,
                     struct mo_route_tool *t)
{
    struct mo_json all =
        mo_json_get(mo_json_get(it->item, "inputSchema"), "properties");
    struct mo_span *names =
        mo_arena_alloc(a, MO_ROUTE_PARAMS_MAX * sizeof(*names));

    if (!names)
        return MO_ENOMEM;
    *t = (struct mo_route_tool){
        .name = it->given,
        .description = text_of(a, mo_json_get(it->item, "description")),
        .params = names};
    mo_json_each_while (at, all,
                        mo_json_is(all, MO_JSON_OBJECT) &&
                            t->nparams < MO_ROUTE_PARAMS_MAX)
        names[t->nparams++] = text_of(a, at.key);
    return 0;
}

static size_t count_tools(const struct router_index *d,
                          const struct mo_catalog *c)
{
    size_t n = mo_catalog_count(c, kind_of(d));

    while (tool_at(d, c, n))
        n++;
    return n;
}

/* m: gets the texts of the tools; or NULL. */
static int put_server(struct router_index *d, struct embeddings *m,
                      const struct mo_catalog *c, unsigned no)
{
    struct mo_cat_about s = mo_catalog_about(c, no);
    size_t n = count_tools(d, c);
    struct mo_route_server r = {
        .name = mo_span_cstr(s.name),
        .description = mo_span_cstr(s.description),
        .keywords = mo_span_cstr(s.keywords),
    };
    struct mo_route_tool *tools;
    mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};
    int rc = 0;

    tools = mo_arena_alloc(&a, (n + 1) * sizeof(*tools));
    for (size_t i = 0; tools && i < n && rc == 0; i++) {
        const struct mo_cat_item *it = tool_at(d, c, i);

        if (it->server != no || (!d->skills && mo_app_is_only(it->item)))
            continue;
        if (d->skills)
            read_skill(&a, it, &tools[r.ntools++]);
        else
            rc = read_tool(&a, it, &tools[r.ntools++]);
        if (rc == 0 && !d->skills)
            mo_second_opinion_want(m, r.name, &tools[r.ntools - 1]);
    }
    if (tools && d->all && r.ntools == 0 && !mo_catalog_known(c, no))
        tools[r.ntools++] = (struct mo_route_tool){
            .name = r.name, .description = r.description};
    r.tools = tools;
    if (rc == 0)
        rc = tools ? mo_route_put(d->route, &r) : MO_ENOMEM;
    return rc;
}

/* --- all servers --------------------------------------------------------- */

static int update_server(struct router_index *d, struct embeddings *m,
                         const struct mo_catalog *c, unsigned no)
{
    struct mo_span name = mo_span_cstr(mo_catalog_about(c, no).name);
    struct indexed_server *s = mo_map_get(&d->servers, name);
    uint64_t sum = server_sum(d, c, no);
    int rc = 0;

    if (!s) {
        s = mo_new(struct indexed_server);
        rc = s ? mo_map_put(&d->servers, name, s, NULL) : MO_ENOMEM;
        if (rc < 0) {
            mo_free(s);
            return rc;
        }
        s->sum = ~sum;
    }
    s->present = true;
    if (s->sum == sum)
        return 0;
    rc = put_server(d, m, c, no);
    if (rc == 0)
        s->sum = sum;
    return rc;
}

/* Removes one server that is no longer configured; false: there is none. */
static bool drop_removed_server(struct router_index *d)
{
    mo_map_each (en, &d->servers) {
        struct indexed_server *s = en->value;

        if (s->present)
            continue;
        mo_route_drop(d->route, mo_map_key(en));
        mo_free(mo_map_del(&d->servers, mo_map_key(en)));
        return true;
    }
    return false;
}

static int update_index(struct router_index *d, const struct mo_gateway *g,
                        const struct mo_catalog *cat)
{
    size_t n = d->all ? mo_catalog_server_count(cat) : g->n;
    int rc = open_route(d);

    if (rc < 0 || !d->stale)
        return rc;
    mo_map_each (en, &d->servers)
        ((struct indexed_server *)en->value)->present = false;
    for (unsigned i = 0; i < n && rc == 0; i++)
        if (mo_catalog_shows(cat, i))
            rc = update_server(d, d->of ? NULL : g->embeddings, cat, i);
    while (rc == 0 && drop_removed_server(d))
        ;
    d->stale = rc < 0;
    return rc;
}

static bool is_last_query(const struct router_index *d, struct mo_span words)
{
    return !d->stale && d->last_query.len &&
           mo_span_eq(words, mo_buf_view(&d->last_query));
}

/* Computes last_answer, unless it is already the answer to this query. */
static int answer_query(struct router_index *d, const struct mo_gateway *g,
                        const struct mo_catalog *cat, struct mo_span words)
{
    int rc;

    if (is_last_query(d, words))
        return 0;
    mo_buf_reset(&d->last_query);
    rc = update_index(d, g, cat);
    if (rc == 0)
        rc = mo_route_find(d->route, words, MO_ROUTE_HITS_MAX, &d->last_answer);
    if (rc < 0)
        return rc;
    if (mo_buf_span(&d->last_query, words) < 0)
        mo_buf_reset(&d->last_query);
    return 0;
}

/* None is more likely than one before it, whatever has changed the order. */
static void sort_confidence(struct mo_route_answer *a)
{
    for (size_t i = 1; i < a->n; i++)
        if (a->hits[i].confidence > a->hits[i - 1].confidence)
            a->hits[i].confidence = a->hits[i - 1].confidence;
}

int mo_router_index_find(struct router_index *d, const struct mo_gateway *g,
                         const struct mo_catalog *cat, struct mo_span words,
                         size_t limit, struct mo_route_answer *out)
{
    int rc;

    words = mo_span_head(words, MO_ROUTE_TEXT_MAX);
    /* More than asked for: one below the limit may be taught. */
    rc = answer_query(d, g, cat, words);
    if (rc < 0)
        return rc;
    *out = d->last_answer;
    if (!d->skills) {
        mo_second_opinion_apply(g->embeddings, cat, words, out);
        mo_router_learning_apply(g->learning, words, out);
    }
    sort_confidence(out);
    out->n = out->n < limit ? out->n : limit;
    return 0;
}

int mo_router_view_find(struct mo_gw_view *v, struct mo_span words,
                        size_t limit, struct mo_route_answer *out)
{
    struct mo_gateway *g = v->g;

    if (!v->part)
        return mo_router_index_find(g->router_index, g, g->cat, words, limit,
                                    out);
    if (!v->router_index)
        v->router_index = mo_router_index_new_like(g->router_index, false);
    return v->router_index
               ? mo_router_index_find(v->router_index, g, mo_gw_cat(v), words,
                                      limit, out)
               : MO_ENOMEM;
}

int mo_router_skills_find(struct mo_gw_view *v, struct mo_span words,
                          size_t limit, struct mo_route_answer *out)
{
    if (!v->skill_index)
        v->skill_index = mo_router_index_new_skills(v->g->router_index);
    return v->skill_index
               ? mo_router_index_find(v->skill_index, v->g, mo_gw_cat(v), words,
                                      limit, out)
               : MO_ENOMEM;
}
