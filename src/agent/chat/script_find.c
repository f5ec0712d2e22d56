/* script_find.c - the search of a script: tools of the box and of servers; see
 * script_tools.h.
 *
 * The tools of servers are ranked by the router of the gateway, the few tools
 * of the box by an index that is made for the search. Both confidences mean the
 * same, so the two rankings are merged by them. */
#include "agent/chat/calls.h"
#include "agent/chat/load_tools.h"
#include "agent/chat/script_calls.h"
#include "agent/chat/script_tools.h"
#include "agent/chat/tools_off.h"
#include "gateway/inside.h"
#include "route/route.h"

#define FIND_MAX    50
#define FIND_USUAL  10
#define WORDS_MAX   ((size_t)4096)
#define NAMES_BYTES ((size_t)64 * 1024)
#define BOX_MAX     64 /* tools of a box */

struct search {
    struct chat *chat;
    struct mo_buf words;
    size_t limit;
    struct mo_route *route; /* of the tools of the box; borrowed by `box` */
    struct mo_route_answer *box;
    struct mo_buf servers; /* the answer of the gateway */
};

/* --- the tools of the box --------------------------------------------------
 */

static bool is_offered(const struct chat *c, const struct mo_tool *t)
{
    return t->source == SOURCE_BOX && !mo_script_is(t) &&
           !mo_tools_off_has(c, t);
}

/* Names of the arguments; nobody searches for more than the first ones. */
static size_t list_params(struct mo_json schema, struct mo_arena *a,
                          struct mo_span *out)
{
    size_t n = 0;

    mo_json_each (m, mo_json_get(schema, "properties")) {
        if (n < MO_ROUTE_PARAMS_MAX && mo_json_str(m.key, a, &out[n]) == 0)
            n++;
    }
    return n;
}

static int search_box(struct search *s)
{
    struct mo_gateway *g = s->chat->agent->o.servers.gateway;
    mo_autoarena struct mo_arena a = {.cap = NAMES_BYTES * 2};
    struct mo_route_tool v[BOX_MAX];
    struct mo_route_server box = {.name = MO_SPAN("box"), .tools = v};
    size_t n = mo_tools_count(s->chat->tools);

    s->route = mo_route_new(g ? mo_gateway_vectors(g) : NULL);
    s->box = mo_new(struct mo_route_answer);
    if (!s->route || !s->box)
        return MO_ENOMEM;
    for (size_t i = 0; i < n && box.ntools < BOX_MAX; i++) {
        const struct mo_tool *t = mo_tools_at(s->chat->tools, i);
        struct mo_span *params =
            mo_arena_alloc(&a, MO_ROUTE_PARAMS_MAX * sizeof(*params));

        if (!is_offered(s->chat, t))
            continue;
        v[box.ntools++] = (struct mo_route_tool){
            .name = t->def.name,
            .description = t->def.description,
            .params = params,
            .nparams = params ? list_params((struct mo_json){t->def.schema.p,
                                                             t->def.schema.n},
                                            &a, params)
                              : 0,
        };
    }
    if (box.ntools > 0 && mo_route_put(s->route, &box) < 0)
        return MO_ENOMEM;
    return mo_route_find(s->route, mo_buf_view(&s->words), s->limit, s->box);
}

static void put_box_tool(struct mo_jw *w, const struct chat *c,
                         const struct mo_route_hit *h)
{
    for (size_t i = 0; i < mo_tools_count(c->tools); i++) {
        const struct mo_tool *t = mo_tools_at(c->tools, i);

        if (!is_offered(c, t) || !mo_span_eq(t->def.name, h->tool))
            continue;
        mo_jw_obj(w);
        mo_jw_member(w, "name", t->name);
        mo_jw_member(w, "server", t->def.server);
        mo_jw_member(w, "tool", t->def.name);
        mo_jw_member(w, "description", t->def.description);
        mo_jw_member_f64(w, "confidence",
                         (double)(int)(h->confidence * 100 + 0.5f) / 100);
        mo_jw_end(w);
        return;
    }
}

/* --- the tools of servers --------------------------------------------------
 */

static int search_servers(struct search *s)
{
    struct mo_gateway *g = s->chat->agent->o.servers.gateway;
    const struct mo_gw_find f = {.words = mo_buf_view(&s->words),
                                 .limit = s->limit};

    return g ? mo_gateway_find(g, &f, &s->servers)
             : mo_buf_puts(&s->servers, "{}");
}

/* False: the person has switched it off. */
static bool put_server_tool(struct mo_jw *w, const struct chat *c,
                            struct mo_json hit)
{
    mo_autoarena struct mo_arena a = {.cap = NAMES_BYTES};
    char name[MO_TOOLS_NAME_MAX];
    struct mo_span server, tool;

    if (mo_json_str(mo_json_get(hit, "server"), &a, &server) < 0 ||
        mo_json_str(mo_json_get(hit, "tool"), &a, &tool) < 0)
        return false;
    mo_tools_name(server, tool, false, false, name);
    if (mo_script_tool_is_off(c, server, name))
        return false;
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "name", name);
    mo_jw_copy(w, hit, "server");
    mo_jw_copy(w, hit, "tool");
    mo_jw_copy(w, hit, "description");
    mo_jw_copy(w, hit, "confidence");
    mo_jw_end(w);
    return true;
}

/* --- both ------------------------------------------------------------------
 */

static void put_merged(struct mo_jw *w, const struct search *s,
                       struct mo_json results)
{
    const struct mo_route_answer *box = s->box;
    size_t at = 0, n = 0;

    mo_json_each (it, results) {
        double sure = 0;

        (void)mo_json_f64(mo_json_get(it.val, "confidence"), &sure);
        while (at < box->n && n < s->limit &&
               (double)box->hits[at].confidence >= sure) {
            put_box_tool(w, s->chat, &box->hits[at++]);
            n++;
        }
        if (n < s->limit && put_server_tool(w, s->chat, it.val))
            n++;
    }
    for (; at < box->n && n < s->limit; n++)
        put_box_tool(w, s->chat, &box->hits[at++]);
}

static int search_all(struct search *s, struct mo_json params,
                      struct mo_json_doc *doc)
{
    uint64_t limit = 0;

    if (mo_json_u64(mo_json_get(params, "limit"), &limit) == 0 && limit > 0)
        s->limit = limit < FIND_MAX ? (size_t)limit : FIND_MAX;
    if (mo_json_str_buf(mo_json_get(params, "find"), &s->words) < 0)
        mo_buf_reset(&s->words);
    if (search_servers(s) < 0 || search_box(s) < 0)
        return MO_ENOMEM;
    return mo_json_parse(mo_buf_view(&s->servers), 0, doc, NULL);
}

int mo_script_find(struct chat *c, struct mo_json params, struct mo_buf *out)
{
    struct search s = {.chat = c,
                       .words = {.max = WORDS_MAX},
                       .limit = FIND_USUAL,
                       .servers = {.max = MO_SCRIPT_RESULT_MAX}};
    struct mo_json_doc doc;
    int rc = search_all(&s, params, &doc);

    if (rc == 0) {
        struct mo_jw w = mo_jw_object(out);

        mo_jw_member_raw(&w, "content", MO_SPAN("[]"));
        mo_jw_member_obj(&w, "structuredContent");
        mo_jw_member_arr(&w, "tools");
        put_merged(&w, &s, mo_json_get(doc.root, "results"));
        mo_jw_end_all(&w);
        rc = mo_buf_err(out);
    }
    mo_free(s.box);
    mo_route_free(s.route);
    mo_buf_fini(&s.words);
    mo_buf_fini(&s.servers);
    return rc < 0 ? MO_ENOMEM : 0;
}
