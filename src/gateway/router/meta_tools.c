#include "gateway/router/meta_tools_priv.h"

#include "codec/json/jschema.h"
#include "gateway/call/call_approval.h"
#include "gateway/call/forwarded_call.h"
#include "gateway/call/result_limit.h"
#include "gateway/call/rewrite.h"
#include "gateway/router/router.h"
#include "gateway/router/router_index.h"
#include "gateway/router/router_learning.h"
#include "gateway/router/second_opinion.h"
#include "mcp/edit.h"
#include "mcp/skill.h"

#define FIND_LIMIT    5
#define CANDIDATES    3
#define ARGS_ARENA    ((size_t)256 * 1024)
#define MESSAGE_BYTES 4096
#define TOKEN_BYTES   4 /* about, of English and JSON */

/* --- definitions --------------------------------------------------------- */

#define OBJECT_OF "{\"type\":\"object\",\"properties\":{"
#define TEXT_THAT "{\"type\":\"string\",\"description\":"
#define READS_ONLY                                                             \
    "\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}"

static const char meta_tools_json[] =
    "{\"tools\":["
    "{\"name\":\"find_tool\",\"title\":\"Find a tool\",\"description\":"
    "\"Find the tools that fit a request in plain words. Answers with servers, "
    "tools, how sure it is (0 to 1), descriptions and input schemas; run one "
    "with execute.\","
    "\"inputSchema\":" OBJECT_OF "\"query\":" TEXT_THAT
    "\"What is to be done, in plain words\"},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":50,"
    "\"default\":5},"
    "\"threshold\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1,"
    "\"description\":\"Leave out what is less sure\"}},"
    "\"required\":[\"query\"]},"
    "\"outputSchema\":" OBJECT_OF
    "\"results\":{\"type\":\"array\",\"items\":" OBJECT_OF
    "\"server\":{\"type\":\"string\"},\"tool\":{\"type\":\"string\"},"
    "\"confidence\":{\"type\":\"number\"},"
    "\"description\":{\"type\":\"string\"},"
    "\"inputSchema\":{\"type\":\"object\"},"
    "\"reason\":" TEXT_THAT "\"It cannot be used now: quarantined, "
    "circuit-open or sign-in\"},\"why\":{\"type\":\"string\"}},"
    "\"required\":[\"server\",\"tool\",\"confidence\"]}},"
    "\"skills\":{\"type\":\"array\",\"description\":\"Skills of servers: "
    "instructions for such a task\",\"items\":" OBJECT_OF
    "\"server\":{\"type\":\"string\"},\"skill\":{\"type\":\"string\"},"
    "\"confidence\":{\"type\":\"number\"},"
    "\"description\":{\"type\":\"string\"},\"uri\":{\"type\":\"string\"},"
    "\"read\":" TEXT_THAT "\"How to read it\"}},"
    "\"required\":[\"server\",\"skill\",\"uri\"]}}},"
    "\"required\":[\"results\"]}," READS_ONLY "},"

    "{\"name\":\"execute\",\"title\":\"Run a tool\",\"description\":"
    "\"Run a tool of any server and return its result. Name it by server and "
    "tool (see find_tool), or say in request what is to be done: then it is "
    "run "
    "only if it is clear which one is meant, otherwise the candidates are "
    "listed and nothing is done. params are the tool's own arguments.\","
    "\"inputSchema\":" OBJECT_OF "\"request\":" TEXT_THAT
    "\"What is to be done, in plain words\"},"
    "\"server\":{\"type\":\"string\"},\"tool\":{\"type\":\"string\"},"
    "\"params\":{\"type\":\"object\",\"description\":"
    "\"Arguments of the tool, as its inputSchema says\"}}}},"

    "{\"name\":\"list_capabilities\",\"title\":\"What there is\","
    "\"description\":\"List the servers and their tools, a page at a time.\","
    "\"inputSchema\":" OBJECT_OF "\"category\":" TEXT_THAT
    "\"Only servers of this category or tag, or with this word in their "
    "keywords or description\"},"
    "\"server\":" TEXT_THAT "\"Only this server, with all its tools\"},"
    "\"cursor\":" TEXT_THAT "\"nextCursor of the page before\"}}},"
    "\"outputSchema\":" OBJECT_OF
    "\"servers\":{\"type\":\"array\",\"items\":" OBJECT_OF
    "\"server\":{\"type\":\"string\"},\"description\":{\"type\":\"string\"},"
    "\"categories\":{\"type\":\"array\",\"items\":"
    "{\"type\":\"string\"}},"
    "\"state\":{\"type\":\"string\"},"
    "\"toolCount\":{\"type\":\"integer\"},"
    "\"tools\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}},"
    "\"required\":[\"server\",\"tools\"]}},"
    "\"nextCursor\":{\"type\":\"string\"}},"
    "\"required\":[\"servers\"]}," READS_ONLY "},"

    "{\"name\":\"explain_tool\",\"title\":\"All about a tool\","
    "\"description\":\"Describe one tool: schemas, an example call, hints, and "
    "how its server is.\","
    "\"inputSchema\":" OBJECT_OF "\"server\":{\"type\":\"string\"},"
    "\"tool\":{\"type\":\"string\"},"
    "\"mcp_name\":" TEXT_THAT "\"The same as server\"},"
    "\"tool_name\":" TEXT_THAT "\"The same as tool\"}}},"
    "\"outputSchema\":" OBJECT_OF "\"server\":{\"type\":\"string\"},"
    "\"tool\":{\"type\":\"string\"},\"description\":{\"type\":\"string\"},"
    "\"inputSchema\":{\"type\":\"object\"},\"example\":{\"type\":\"object\"},"
    "\"health\":{\"type\":\"object\"},"
    "\"latency\":{\"type\":\"object\"}},"
    "\"required\":[\"server\",\"tool\",\"inputSchema\"]}," READS_ONLY "}"
    "]}";

static bool is_large(const struct mo_gw_view *v)
{
    return mo_catalog_count(mo_gw_cat(v), MO_CAT_TOOLS) >
           (v->g->o.few ? v->g->o.few : META_TOOLS_FEW);
}

bool mo_gateway_is_large(const struct mo_gateway *g)
{
    return is_large(&g->whole);
}

bool mo_meta_tools_is_on(const struct mo_gw_view *v)
{
    enum mo_gw_expose expose = mo_gw_view_expose(v);

    return expose == MO_GW_SEARCH || expose == MO_GW_CODE ||
           (expose == MO_GW_AUTO && is_large(v));
}

bool mo_meta_tools_is_code(const struct mo_gw_view *v)
{
    return v->g->script.slot && mo_meta_tools_is_on(v) &&
           mo_gw_view_expose(v) != MO_GW_SEARCH;
}

uint64_t mo_gateway_saved(const struct mo_gateway *g)
{
    size_t n = mo_meta_tools_is_on(&g->whole)
                   ? mo_catalog_count(g->cat, MO_CAT_TOOLS)
                   : 0;
    uint64_t bytes = 0;

    for (size_t i = 0; i < n; i++)
        bytes += mo_catalog_at(g->cat, MO_CAT_TOOLS, i)->item.n;
    return bytes > sizeof(meta_tools_json)
               ? (bytes - sizeof(meta_tools_json)) / TOKEN_BYTES
               : 0;
}

struct mo_span mo_meta_tools_definitions(void)
{
    return mo_span(meta_tools_json, sizeof(meta_tools_json) - 1);
}

/* --- arguments and answers ----------------------------------------------- */

struct mo_span mo_meta_tools_arg(const struct mo_ep_call *c, struct mo_arena *a,
                                 const char *key)
{
    struct mo_json v = mo_json_get(c->arguments, key);
    struct mo_span s = {NULL, 0};

    if (mo_json_is(v, MO_JSON_STRING))
        (void)mo_json_str(v, a, &s);
    return s;
}

void mo_meta_tools_answer(struct mo_ep_call *c, struct mo_buf *made,
                          bool is_error)
{
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};
    struct mo_jw w = mo_jw_object(&b);

    mo_rewrite_put_text(&w, mo_buf_view(made));
    mo_jw_member_raw(&w, "structuredContent", mo_buf_view(made));
    if (is_error)
        mo_jw_member_bool(&w, "isError", true);
    mo_jw_end(&w);
    mo_buf_pass_err(&b, made);
    mo_rewrite_answer(c, &b);
}

/* --- lookup by name ------------------------------------------------------ */

const struct mo_cat_item *mo_meta_tools_find(const struct mo_catalog *cat,
                                             struct mo_span server,
                                             struct mo_span tool)
{
    size_t n = mo_catalog_count(cat, MO_CAT_TOOLS);
    const struct mo_cat_item *found = NULL;

    if (!server.n)
        found = mo_catalog_find(cat, MO_CAT_TOOLS, tool);
    if (found && found->app_only)
        found = NULL;
    for (size_t i = 0; !found && i < n; i++) {
        const struct mo_cat_item *it = mo_catalog_at(cat, MO_CAT_TOOLS, i);

        if (mo_span_eq(it->given, tool) && !it->app_only &&
            (!server.n ||
             mo_span_is(server, mo_catalog_about(cat, it->server).name)))
            found = it;
    }
    return found;
}

bool mo_meta_tools_is_held_back(const struct unavailable_reason *v)
{
    return v->code && strcmp(v->code, UNAVAILABLE_CHANGED) == 0;
}

static void put_hit(const struct mo_gw_view *view, const struct mo_route_hit *h,
                    struct mo_jw *w)
{
    const struct mo_gateway *g = view->g;
    const struct mo_cat_item *it =
        mo_meta_tools_find(mo_gw_cat(view), h->server, h->tool);
    struct unavailable_reason v = {.code = NULL};

    mo_jw_obj(w);
    mo_jw_member(w, "server", h->server);
    mo_jw_member(w, "tool", h->tool);
    mo_jw_member_f64(w, "confidence",
                     (double)(int)(h->confidence * 100 + 0.5f) / 100);
    if (it)
        mo_unavailable_tool(g, it, &v);
    if (it && !mo_meta_tools_is_held_back(&v)) {
        mo_jw_copy(w, it->item, "description");
        mo_jw_copy(w, it->item, "inputSchema");
        g->script.declare(w, view, it);
    }
    if (h->equal)
        mo_jw_member_bool(w, "equivalent", true);
    mo_unavailable_put(&v, w);
    mo_jw_end(w);
}

/* --- skills -------------------------------------------------------------- */

static const struct mo_cat_item *find_skill(const struct mo_catalog *c,
                                            const struct mo_route_hit *h)
{
    for (size_t i = 0; i < mo_catalog_count(c, MO_CAT_SKILLS); i++) {
        const struct mo_cat_item *it = mo_catalog_at(c, MO_CAT_SKILLS, i);
        struct mo_json front = mo_json_get(it->item, "frontmatter");

        if (mo_span_is(h->server, mo_catalog_about(c, it->server).name) &&
            mo_json_str_eq(mo_json_get(front, "name"), h->tool))
            return it;
    }
    return NULL;
}

/* True if a person has not accepted it as it is; it is pinned by its URI. */
static bool is_skill_held_back(const struct mo_gateway *g,
                               const struct mo_route_hit *h,
                               const struct mo_cat_item *it)
{
    const struct mo_approval_hooks *j = &g->o.judge;
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};

    if (!j->changed)
        return false;
    return mo_skill_put_definition(it->item, &b) < 0 ||
           j->changed(j->ctx, h->server, it->own, (struct mo_json){b.p, b.len});
}

static void put_skill(const struct mo_gw_view *view,
                      const struct mo_route_hit *h, struct mo_jw *w)
{
    const struct mo_cat_item *it = find_skill(mo_gw_cat(view), h);

    if (!it || is_skill_held_back(view->g, h, it))
        return;
    mo_jw_obj(w);
    mo_jw_member(w, "server", h->server);
    mo_jw_member(w, "skill", h->tool);
    mo_jw_member_f64(w, "confidence",
                     (double)(int)(h->confidence * 100 + 0.5f) / 100);
    mo_jw_copy(w, mo_json_get(it->item, "frontmatter"), "description");
    mo_jw_member(w, "uri", it->name);
    mo_jw_member_cstr(w, "read",
                      "with the tool read_skill if there is one, else by "
                      "resources/read of its uri");
    mo_jw_end(w);
}

/* Sure enough, or another server's skill of the same name as the best one. */
static bool is_meant(const struct mo_route_answer *a, size_t i, double least)
{
    return (double)a->hits[i].confidence >= least ||
           ((double)a->hits[0].confidence >= least &&
            mo_span_eq(a->hits[i].tool, a->hits[0].tool));
}

/* Writes the member "skills" if there are any. The tools are ranked without
 * them. */
static void put_skills(struct mo_gw_view *view, struct mo_span query,
                       size_t limit, double least, struct mo_arena *a,
                       struct mo_jw *w)
{
    struct mo_route_answer *found = NULL;

    if (mo_catalog_count(mo_gw_cat(view), MO_CAT_SKILLS) == 0)
        return;
    found = mo_arena_alloc(a, sizeof(*found));
    if (!found || mo_router_skills_find(view, query, limit, found) < 0)
        return;
    least = least > (double)MO_ROUTE_MAYBE ? least : (double)MO_ROUTE_MAYBE;
    mo_jw_member_arr(w, "skills");
    for (size_t i = 0; i < found->n; i++)
        if (is_meant(found, i, least))
            put_skill(view, &found->hits[i], w);
    mo_jw_end(w);
}

/* --- find_tool ----------------------------------------------------------- */

static void run_find_tool(struct mo_gateway *g, struct mo_ep_call *c,
                          struct mo_arena *a)
{
    struct mo_gw_view *view = mo_gw_view_of(g, c);
    struct mo_span query = mo_meta_tools_arg(c, a, "query");
    struct mo_route_answer *found = mo_arena_alloc(a, sizeof(*found));
    uint64_t limit = FIND_LIMIT;
    char who[MO_GW_WHO_MAX];
    double least = 0;
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};
    struct mo_jw w;

    (void)mo_json_u64(mo_json_get(c->arguments, "limit"), &limit);
    (void)mo_json_f64(mo_json_get(c->arguments, "threshold"), &least);
    if (!query.n) {
        mo_ep_call_fail(c, "query is missing: describe in plain words what "
                           "to do");
        return;
    }
    if (!found || mo_router_view_find(view, query, (size_t)limit, found) < 0) {
        mo_ep_call_error(c, MO_RPC_INTERNAL, "out of memory", mo_span(NULL, 0));
        return;
    }
    mo_rewrite_client(c, who);
    mo_router_learning_shown(g->learning, who, query, found);
    mo_call_approval_routed(g, c, "find_tool", query, found, false);
    w = mo_jw_object(&b);
    mo_jw_member_arr(&w, "results");
    for (size_t i = 0; i < found->n; i++)
        if ((double)found->hits[i].confidence >= least)
            put_hit(view, &found->hits[i], &w);
    mo_jw_end(&w);
    put_skills(view, query, (size_t)limit, least, a, &w);
    mo_jw_end_all(&w);
    mo_meta_tools_answer(c, &b, false);
}

/* --- execute ------------------------------------------------------------- */

struct choice {
    const struct mo_cat_item *item;
    struct mo_span server, tool, request;
    struct mo_json params;
    float sure; /* 1: it was named */
};

/* 0; MO_ENOTFOUND: no such tool; MO_EINVAL: neither tool nor request given;
 * MO_EBUSY: not sure, the candidates are in *found. */
static int choose_tool(struct mo_gateway *g, const struct mo_ep_call *c,
                       struct mo_arena *a, struct mo_route_answer *found,
                       struct choice *ch)
{
    struct mo_gw_view *view = mo_gw_view_of(g, c);

    *ch = (struct choice){.server = mo_meta_tools_arg(c, a, "server"),
                          .tool = mo_meta_tools_arg(c, a, "tool"),
                          .request = mo_meta_tools_arg(c, a, "request"),
                          .params = mo_json_get(c->arguments, "params"),
                          .sure = 1};
    if (ch->tool.n) {
        ch->item = mo_meta_tools_find(mo_gw_cat(view), ch->server, ch->tool);
        return ch->item ? 0 : MO_ENOTFOUND;
    }
    if (!ch->request.n)
        return MO_EINVAL;
    if (mo_router_view_find(view, ch->request, CANDIDATES, found) < 0)
        return MO_ENOMEM;
    if (found->n)
        ch->item = mo_meta_tools_find(mo_gw_cat(view), found->hits[0].server,
                                      found->hits[0].tool);
    if (!ch->item)
        return MO_EBUSY;
    ch->sure = found->hits[0].confidence;
    return found->named || ch->sure >= MO_ROUTE_SURE ? 0 : MO_EBUSY;
}

static void answer_candidates(struct mo_gateway *g, struct mo_ep_call *c,
                              const struct mo_route_answer *found)
{
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};
    struct mo_jw w = mo_jw_object(&b);

    mo_jw_member_cstr(&w, "error",
                      found->n
                          ? "It is not clear which tool is meant; nothing "
                            "was done. Call execute again with server, tool "
                            "and params of one of the candidates."
                          : "No tool fits the request; nothing was done. "
                            "Call list_capabilities for all tools.");
    mo_jw_member_arr(&w, "candidates");
    for (size_t i = 0; i < found->n; i++)
        put_hit(mo_gw_view_of(g, c), &found->hits[i], &w);
    mo_jw_end_all(&w);
    mo_meta_tools_answer(c, &b, true);
}

/* True if params are valid by the tool's schema. */
static bool params_fit(const struct choice *ch, struct mo_jschema_result *r)
{
    static const struct mo_jschema_opts o = {.name = "params"};
    struct mo_json schema = mo_json_get(ch->item->item, "inputSchema");
    struct mo_json params =
        ch->params.p ? ch->params : (struct mo_json){"{}", 2};

    /* a schema that we cannot evaluate is left to the server */
    return !schema.p || mo_jschema_check(schema, params, &o, r, NULL) < 0 ||
           r->valid;
}

/* Answers the call and returns false if params are not valid. */
static bool check_params(struct mo_ep_call *c, const struct choice *ch)
{
    struct mo_json schema = mo_json_get(ch->item->item, "inputSchema");
    struct mo_jschema_result r;
    mo_autobuf struct mo_buf why = {.max = MESSAGE_BYTES};
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};
    struct mo_jw w;

    if (params_fit(ch, &r))
        return true;
    (void)mo_jschema_put(&why, &r);
    w = mo_jw_object(&b);
    mo_jw_member(
        &w, "error",
        MO_SPAN("params do not fit the tool's schema; nothing was done"));
    mo_jw_member(&w, "problems", mo_buf_view(&why));
    mo_jw_member(&w, "tool", ch->item->given);
    mo_jw_member_raw(&w, "inputSchema", mo_json_text(schema));
    mo_jw_end(&w);
    mo_meta_tools_answer(c, &b, true);
    return false;
}

/* A tool was run by name: it may be a choice from an earlier find_tool. */
static void record_choice(struct mo_gateway *g, const struct mo_ep_call *c,
                          const struct mo_cat_item *it)
{
    char who[MO_GW_WHO_MAX];

    mo_rewrite_client(c, who);
    mo_router_learning_chose(
        g->learning, who,
        mo_span_cstr(mo_catalog_about(g->cat, it->server).name), it->given);
}

static int use_choice(struct mo_gateway *g, const struct choice *ch,
                      struct call_target *t)
{
    *t = (struct call_target){
        .slot = mo_gw_slot(g, ch->item->server),
        .arguments = ch->params.p ? ch->params : (struct mo_json){"{}", 2},
        .sure = ch->sure,
    };
    mo_rewrite_use_item(t, ch->item);
    return t->slot ? 0 : MO_ENOTFOUND;
}

static int find_execute_target(struct mo_gateway *g, const struct mo_ep_call *c,
                               struct call_target *t)
{
    mo_autofree struct mo_route_answer *found = mo_new(struct mo_route_answer);
    mo_autoarena struct mo_arena a = {.cap = ARGS_ARENA};
    struct choice ch;
    int rc = found ? choose_tool(g, c, &a, found, &ch) : MO_ENOMEM;

    return rc < 0 ? rc : use_choice(g, &ch, t);
}

static void run_execute(struct mo_gateway *g, struct mo_ep_call *c,
                        struct mo_arena *a)
{
    struct mo_route_answer *found = mo_arena_zalloc(a, sizeof(*found));
    uint64_t since = c->span ? mo_now_ns() : 0;
    struct choice ch;
    struct call_target t;
    int rc = found ? choose_tool(g, c, a, found, &ch) : MO_ENOMEM;

    if (found && (rc == 0 || rc == MO_EBUSY) && !ch.tool.n)
        mo_call_approval_routed(g, c, "execute", ch.request, found, rc == 0);
    if (rc == MO_EINVAL)
        mo_ep_call_fail(c, "say what is to be done: server and tool, or "
                           "request in plain words");
    else if (rc == MO_ENOTFOUND && !ch.server.n &&
             mo_span_is(ch.tool, RESULT_TOOL))
        mo_result_limit_call(g, c, ch.params);
    else if (rc == MO_ENOTFOUND)
        mo_ep_call_fail(c, NO_SUCH_TOOL);
    else if (rc == MO_EBUSY)
        answer_candidates(g, c, found);
    else if (rc < 0)
        mo_ep_call_error(c, MO_RPC_INTERNAL, "out of memory", mo_span(NULL, 0));
    else if (ch.params.p && !mo_json_is(ch.params, MO_JSON_OBJECT))
        mo_ep_call_fail(c, "params must be an object");
    else if (check_params(c, &ch) && use_choice(g, &ch, &t) == 0) {
        if (c->span)
            mo_call_trace_route(c, since, &t, 0);
        if (ch.tool.n)
            record_choice(g, c, ch.item);
        mo_forward_start(g, c, &t);
    }
}

int mo_gateway_choose(struct mo_gateway *g, uint64_t peer,
                      struct mo_json arguments, struct mo_arena *a,
                      struct mo_gw_choice *out)
{
    const struct mo_ep_call c = {.arguments = arguments, .peer = peer};
    struct mo_route_answer *found = mo_arena_zalloc(a, sizeof(*found));
    struct mo_jschema_result r;
    struct choice ch;
    int rc = found ? choose_tool(g, &c, a, found, &ch) : MO_ENOMEM;

    if (rc < 0)
        return rc;
    if ((ch.params.p && !mo_json_is(ch.params, MO_JSON_OBJECT)) ||
        !params_fit(&ch, &r))
        return MO_EINVAL;
    if (ch.tool.n)
        record_choice(g, &c, ch.item);
    else
        mo_call_approval_routed(g, &c, "execute", ch.request, found, true);
    out->params = ch.params;
    out->sure = ch.sure;
    out->server = mo_span_dup(
        a, mo_span_cstr(mo_catalog_about(g->cat, ch.item->server).name));
    out->tool = mo_span_dup(a, ch.item->own);
    return out->server.p && out->tool.p ? 0 : MO_ENOMEM;
}

/* --- dispatch ------------------------------------------------------------ */

static const struct meta_tool {
    const char *name;
    void (*run)(struct mo_gateway *g, struct mo_ep_call *c, struct mo_arena *a);
} meta_tools[] = {
    {"find_tool", run_find_tool},
    {"execute", run_execute},
    {"list_capabilities", mo_meta_tools_run_list_capabilities},
    {"explain_tool", mo_meta_tools_run_explain_tool},
};

static const struct meta_tool *find_meta_tool(struct mo_gateway *g,
                                              const struct mo_ep_call *c)
{
    struct mo_span name = c->name;

    if (!mo_span_is(c->method, "tools/call") ||
        !(c->inside.n ? mo_span_strip(&name, MO_SPAN(MO_GW_OURS))
                      : mo_meta_tools_is_on(mo_gw_view_of(g, c))))
        return NULL;
    for (size_t i = 0; i < MO_COUNT(meta_tools); i++)
        if (mo_span_is(name, meta_tools[i].name))
            return &meta_tools[i];
    return NULL;
}

bool mo_meta_tools_is_call(struct mo_gateway *g, const struct mo_ep_call *c)
{
    return find_meta_tool(g, c) != NULL;
}

bool mo_meta_tools_execute_target(struct mo_gateway *g,
                                  const struct mo_ep_call *c,
                                  struct call_target *t, int *rc)
{
    const struct meta_tool *r = find_meta_tool(g, c);

    if (!r || r->run != run_execute)
        return false;
    *rc = find_execute_target(g, c, t);
    return true;
}

static void run_meta_tool(struct mo_gateway *g, struct mo_ep_call *c)
{
    mo_autoarena struct mo_arena a = {.cap = ARGS_ARENA};
    const struct meta_tool *t = find_meta_tool(g, c);

    if (t)
        t->run(g, c, &a);
    else /* the view has changed while it waited */
        mo_ep_call_fail(c, NO_SUCH_TOOL);
}

void mo_meta_tools_call(struct mo_gateway *g, struct mo_ep_call *c)
{
    mo_autoarena struct mo_arena a = {.cap = ARGS_ARENA};
    const struct meta_tool *t = find_meta_tool(g, c);
    struct mo_span words = {NULL, 0};

    if (g->embeddings && t->run == run_find_tool)
        words = mo_meta_tools_arg(c, &a, "query");
    else if (g->embeddings && t->run == run_execute &&
             !mo_meta_tools_arg(c, &a, "tool").n)
        words = mo_meta_tools_arg(c, &a, "request");
    if (!mo_second_opinion_wait(g, c, words, run_meta_tool))
        run_meta_tool(g, c);
}
