/* route.c - the servers and tools of the index.
 *
 * Documents of the index and r->tools have the same numbers: both are added at
 * the end and compacted in the same order after servers were dropped. */
#include "base/mem.h"
#include "route/request.h"
#include "route/route_priv.h"
#include "route/verbs.h"

#define SERVER_SHARE 0.25f /* weight of the server's vector in a tool's */

#define ABOUT_MAX        400 /* bytes of a description used for vectors */
#define SERVER_ABOUT_MAX 300
#define NAME_WORDS       2  /* words of a tool's name searched for a verb */
#define SERVER_TOOLS     15 /* tool names used for a server's vector */

_Static_assert(MO_ROUTE_TOOLS_MAX <= MO_INDEX_DOCS_MAX, "a tool, a document");

struct mo_route *mo_route_new(const struct mo_vectors *vectors)
{
    struct mo_route *r = mo_new(struct mo_route);

    if (!r)
        return NULL;
    r->vectors = vectors;
    if (mo_index_init(&r->index) < 0) {
        mo_route_free(r);
        return NULL;
    }
    return r;
}

static void free_arrays(struct mo_route *r)
{
    void *const arrays[] = {
        r->tools,   r->abouts, r->kinds,  r->name_slots, r->next_named,
        r->servers, r->words,  r->scores, r->top_scores, r->server_scores};

    for (size_t i = 0; i < MO_COUNT(arrays); i++)
        mo_free(arrays[i]);
}

void mo_route_free(struct mo_route *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->ntools; i++)
        mo_free(r->tools[i].name);
    for (size_t i = 0; i < r->nservers; i++)
        mo_free(r->servers[i].name);
    mo_index_fini(&r->index);
    free_arrays(r);
    mo_free(r);
}

/* --- put and drop -------------------------------------------------------- */

void mo_route_add_text(const struct mo_route *r, struct mo_span text,
                       struct mo_vector_sum *sum)
{
    if (r->vectors)
        mo_vector_add(r->vectors, text, sum);
}

/* Add a name, split into words. */
static void add_name(const struct mo_route *r, struct mo_span name,
                     const char *after, struct mo_vector_sum *sum)
{
    mo_autobuf struct mo_buf b = {.max = MO_ROUTE_TEXT_MAX};

    mo_words_split(name, &b);
    mo_buf_puts(&b, after);
    mo_route_add_text(r, mo_buf_view(&b), sum);
}

static void server_vector(const struct mo_route *r,
                          const struct mo_route_server *s,
                          struct mo_vector_sum *sum)
{
    size_t n = s->ntools < SERVER_TOOLS ? s->ntools : SERVER_TOOLS;

    add_name(r, s->name, ".", sum);
    mo_route_add_text(r, mo_span_head(s->description, SERVER_ABOUT_MAX), sum);
    mo_route_add_text(r, s->keywords, sum);
    mo_route_add_text(r, MO_SPAN("Tools:"), sum);
    for (size_t i = 0; i < n; i++)
        add_name(r, s->tools[i].name, i + 1 < n ? "," : "", sum);
    mo_vector_norm(sum);
}

static void tool_vectors(const struct mo_route *r,
                         const struct mo_route_server *s,
                         const struct mo_route_tool *t, const float *server,
                         struct mo_vector8 *own, struct mo_vector8 *both)
{
    struct mo_vector_sum sum = {.n = 0};

    add_name(r, s->name, ":", &sum);
    add_name(r, t->name, ".", &sum);
    mo_route_add_text(r, mo_span_head(t->description, ABOUT_MAX), &sum);
    mo_vector_norm(&sum);
    mo_vector_pack(sum.v, own);
    for (size_t i = 0; i < MO_VECTOR_DIM; i++)
        sum.v[i] += SERVER_SHARE * server[i];
    mo_vector_pack(sum.v, both);
}

static int index_tool(struct mo_route *r, const struct mo_route_server *s,
                      const struct mo_route_tool *t)
{
    const struct {
        enum mo_index_field field;
        struct mo_span text;
    } texts[] = {
        {MO_FIELD_TOOL, t->name},
        {MO_FIELD_ABOUT, mo_span_head(t->description, MO_ROUTE_TEXT_MAX)},
        {MO_FIELD_SERVER, s->name},
        {MO_FIELD_SERVER_ABOUT,
         mo_span_head(s->description, MO_ROUTE_TEXT_MAX)},
        {MO_FIELD_SERVER_ABOUT, s->keywords},
    };
    struct mo_index *x = &r->index;
    uint32_t doc = 0;
    int rc = mo_index_begin(x, &doc);

    for (size_t i = 0; i < MO_COUNT(texts) && rc == 0; i++)
        rc = mo_index_text(x, doc, texts[i].field, texts[i].text);
    for (size_t i = 0; i < t->nparams && i < MO_ROUTE_PARAMS_MAX && rc == 0;
         i++)
        rc = mo_index_text(x, doc, MO_FIELD_PARAMS, t->params[i]);
    return rc;
}

static int grow_tools(struct mo_route *r)
{
    const struct mo_index_array all[] = {MO_INDEX_ARRAY(r->tools),
                                         MO_INDEX_ARRAY(r->abouts),
                                         MO_INDEX_ARRAY(r->kinds)};
    size_t cap = r->cap_tools ? r->cap_tools * 2 : 64;

    if (mo_index_resize(all, MO_COUNT(all), cap) < 0)
        return MO_ENOMEM;
    r->cap_tools = cap;
    return 0;
}

/* The words of a tool's name that follow its server's: asana_create_task. A
 * verb is the first of them, or the second. */
static struct mo_span verb_part(struct mo_span server, struct mo_span name)
{
    size_t n = server.n;

    if (name.n > n + 1 && mo_span_ieq(mo_span_head(name, n), server) &&
        !mo_is_alpha(name.p[n]))
        return mo_span_skip(name, n);
    return name;
}

static uint32_t kinds_of(const struct mo_route_server *s,
                         const struct mo_route_tool *t)
{
    struct mo_span name = verb_part(s->name, t->name);
    uint32_t kinds = mo_verbs(name, 1);

    if (!kinds)
        kinds = mo_verbs(name, NAME_WORDS);
    for (size_t i = 0; i < t->nparams && i < MO_ROUTE_PARAMS_MAX; i++) {
        kinds |= mo_request_is_address_param(t->params[i]) ? TAKES_ADDRESS : 0;
        kinds |= mo_request_is_file_param(t->params[i]) ? TAKES_FILE : 0;
    }
    return kinds;
}

static int add_tool(struct mo_route *r, const struct mo_route_server *s,
                    const struct mo_route_tool *t, const float *server)
{
    struct tool *to;
    int rc = r->ntools == r->cap_tools ? grow_tools(r) : 0;

    if (rc < 0)
        return rc;
    to = &r->tools[r->ntools];
    *to = (struct tool){.n = t->name.n, .server = (uint32_t)r->nservers};
    to->name = mo_strndup(t->name.p, t->name.n);
    if (!to->name)
        return MO_ENOMEM;
    r->kinds[r->ntools] = kinds_of(s, t);
    r->ntools++;
    rc = index_tool(r, s, t);
    if (rc == 0)
        tool_vectors(r, s, t, server, &to->own, &r->abouts[r->ntools - 1]);
    return rc;
}

static void forget_tools(struct mo_route *r, size_t from, size_t nfresh)
{
    while (r->ntools > from)
        mo_free(r->tools[--r->ntools].name);
    mo_index_undo(&r->index, (uint32_t)from, nfresh);
}

static size_t find_server(const struct mo_route *r, struct mo_span name)
{
    size_t i = 0;

    while (i < r->nservers && (r->servers[i].dead ||
                               !mo_span_eq(server_name(r, (uint32_t)i), name)))
        i++;
    return i;
}

int mo_route_put(struct mo_route *r, const struct mo_route_server *s)
{
    struct mo_vector_sum sum = {.n = 0};
    size_t from = r->ntools, nfresh = r->index.nfresh;
    struct server *v;
    int rc = 0;

    if (r->nservers == MO_ROUTE_SERVERS_MAX ||
        s->ntools > MO_ROUTE_TOOLS_MAX - r->ntools)
        return MO_EBUSY;
    v = mo_realloc(r->servers, (r->nservers + 1) * sizeof(*v));
    if (!v)
        return MO_ENOMEM;
    r->servers = v;
    v += r->nservers;
    *v = (struct server){
        .n = s->name.n, .first = (uint32_t)from, .ntools = (uint32_t)s->ntools};
    v->name = mo_strndup(s->name.p, s->name.n);
    if (!v->name)
        return MO_ENOMEM;
    server_vector(r, s, &sum);
    mo_vector_pack(sum.v, &v->vector);
    for (size_t i = 0; i < s->ntools && rc == 0; i++)
        rc = add_tool(r, s, &s->tools[i], sum.v);
    if (rc < 0) {
        forget_tools(r, from, nfresh);
        mo_free(v->name);
        return rc;
    }
    mo_route_drop(r, s->name); /* replaces the old one */
    r->nservers++;
    r->index.dirty = true; /* it may have no tools */
    return 0;
}

void mo_route_drop(struct mo_route *r, struct mo_span server)
{
    size_t s = find_server(r, server);

    if (s == r->nservers)
        return;
    r->servers[s].dead = true;
    for (uint32_t i = 0; i < r->servers[s].ntools; i++)
        mo_index_kill(&r->index, r->servers[s].first + i);
    r->index.dirty = true;
}

/* --- settle -------------------------------------------------------------- */

/* Move tool i to position m, with server number s. */
static void move_tool(struct mo_route *r, size_t i, size_t m, uint32_t s)
{
    r->tools[m] = r->tools[i];
    r->tools[m].server = s;
    r->abouts[m] = r->abouts[i];
    r->kinds[m] = r->kinds[i];
}

static void compact_tools(struct mo_route *r)
{
    size_t n = 0, m = 0;

    for (size_t s = 0; s < r->nservers; s++) {
        struct server v = r->servers[s];
        size_t first = m;

        for (size_t i = v.first; i < v.first + v.ntools; i++) {
            if (v.dead)
                mo_free(r->tools[i].name);
            else
                move_tool(r, i, m++, (uint32_t)n);
        }
        v.first = (uint32_t)first;
        if (v.dead)
            mo_free(v.name);
        else
            r->servers[n++] = v;
    }
    r->ntools = m;
    r->nservers = n;
}

/* Everything that can fail comes before the first change. */
int mo_route_settle(struct mo_route *r)
{
    const struct mo_index_array of_tools[] = {MO_INDEX_ARRAY(r->words),
                                              MO_INDEX_ARRAY(r->scores),
                                              MO_INDEX_ARRAY(r->next_named)};
    const struct mo_index_array of_servers[] = {
        MO_INDEX_ARRAY(r->top_scores), MO_INDEX_ARRAY(r->server_scores)};
    struct mo_index_array slots = MO_INDEX_ARRAY(r->name_slots);
    int rc;

    if (!r->index.dirty)
        return 0;
    if (mo_index_resize(of_tools, MO_COUNT(of_tools), r->ntools + 1) < 0 ||
        mo_index_resize(of_servers, MO_COUNT(of_servers), r->nservers + 1) <
            0 ||
        mo_index_resize(&slots, 1, mo_route_name_slots(r->ntools)) < 0)
        return MO_ENOMEM;
    rc = mo_index_settle(&r->index);
    if (rc < 0)
        return rc;
    compact_tools(r);
    mo_route_list_names(r);
    return 0;
}

/* --- statistics ---------------------------------------------------------- */

struct mo_route_stats mo_route_stats(const struct mo_route *r)
{
    return (struct mo_route_stats){
        .servers = r->nservers,
        .tools = r->ntools,
        .terms = r->index.nterms,
        .postings = r->index.npostings,
        .bytes = sizeof(*r) + mo_index_bytes(&r->index) +
                 r->cap_tools * (sizeof(*r->tools) + sizeof(*r->abouts) +
                                 sizeof(*r->kinds)) +
                 r->nname_slots * sizeof(*r->name_slots) +
                 r->ntools * (sizeof(*r->next_named) + 2 * sizeof(float)) +
                 r->nservers * (sizeof(*r->servers) + 2 * sizeof(float)),
    };
}
