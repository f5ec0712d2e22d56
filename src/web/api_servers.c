/*
 * api_servers.c - the configured MCP servers; see api.h.
 *
 * Knows paths, queries and bodies only.
 */
#include "codec/http/url.h"
#include "connect/server_link.h"
#include "policy/connections.h"
#include "web/api_workers.h"

#define WORD_MAX 1024 /* of a server or tool, decoded */

#define RUN_MAX ((size_t)64) /* bytes of the name of a running call */

enum { LIST, HEALTH, SNIPPETS, VIEWS, ONE }; /* rq->arg of what is shown */

/* A job, if the part that it needs is there; NULL: answered. */
static struct mo_api_job *begin(struct mo_api *api, struct mo_req *rq,
                                const void *part)
{
    if (!mo_api_has(rq, part, "the servers are not known yet"))
        return NULL;
    return mo_api_job(api, rq);
}

/* Decodes the i-th segment of the path; false: the job was answered. */
static bool take_name(struct mo_api_job *j, unsigned i, struct mo_buf *out)
{
    if (mo_pct_decode(out, mo_req_segment(j->rq, i), false) == 0)
        return true;
    mo_api_problem(j, 404, "not_found", "there is nothing here");
    return false;
}

/* --- of all workers ------------------------------------------------------ */

static const struct mo_merge_rule gateway_rules[] = {
    {"children", MO_MERGE_SUM}, {"calls", MO_MERGE_SUM},
    {"waiting", MO_MERGE_SUM},  {"starts", MO_MERGE_SUM},
    {"fails", MO_MERGE_SUM},    {NULL, MO_MERGE_SUM},
};
static const struct mo_merge_rule server_rules[] = {
    {"calls", MO_MERGE_SUM},
    {"gateway", MO_MERGE_IN, .in = gateway_rules},
    {NULL, MO_MERGE_SUM},
};

/* The word of a server as all workers together see it. */
static struct mo_json word_of(const struct mo_json *v, size_t n,
                              struct mo_json name)
{
    struct mo_json same[MO_MERGE_MAX];
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        mo_json_each (it, mo_json_get(v[i], "mcps"))
            if (k < MO_MERGE_MAX &&
                mo_span_eq(mo_json_text(mo_json_get(it.val, "name")),
                           mo_json_text(name)))
                same[k++] = it.val;
    return mo_json_get(mo_merge_base(same, k), "status");
}

static void put_summary(struct mo_jw *w, const struct mo_json *v, size_t n)
{
    struct mo_json mcps = mo_json_get(v[0], "mcps");

    mo_jw_obj(w);
    mo_json_each (word, mo_json_get(v[0], "summary")) {
        bool all = mo_json_str_eq(word.key, MO_SPAN("total"));
        uint64_t sum = 0;

        mo_json_each (it, mcps)
            sum += all ||
                   mo_span_eq(
                       mo_json_text(word_of(v, n, mo_json_get(it.val, "name"))),
                       mo_json_text(word.key));
        mo_jw_key_raw(w, word.key);
        mo_jw_u64(w, sum);
    }
    mo_jw_end(w);
}

static const struct mo_merge_rule list_rules[] = {
    {"summary", MO_MERGE_PUT, .put = put_summary},
    {"mcps", MO_MERGE_BY, .by = "name", .in = server_rules},
    {"servers", MO_MERGE_BY, .by = "name", .in = server_rules},
    {NULL, MO_MERGE_SUM},
};

static const struct mo_merge_rule line_rules[] = {
    {"count", MO_MERGE_SUM},    {"sent", MO_MERGE_SUM},
    {"received", MO_MERGE_SUM}, {"first", MO_MERGE_FIRST},
    {"last", MO_MERGE_LATEST},  {NULL, MO_MERGE_SUM},
};
static const struct mo_merge_rule connection_rules[] = {
    {"connections", MO_MERGE_BY, .by = "host", .and = "port", .also = "allowed",
     .in = line_rules, .order = "last"},
    {"more", MO_MERGE_SUM},
    {NULL, MO_MERGE_SUM},
};

static void reply(struct mo_api_job *j, int rc)
{
    if (rc == MO_ENOTFOUND)
        mo_api_problem(j, 404, "not_found", "there is nothing here");
    else if (rc < 0)
        mo_api_problem(j, 503, "no_memory", "out of memory");
    else if (j->rq->arg == SNIPPETS || j->rq->arg == VIEWS)
        mo_api_reply(j, "application/json");
    else
        mo_api_of_all_workers(j, j->rq->arg == ONE ? server_rules : list_rules);
}

static void get_servers(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    struct mo_api_job *j = begin(api, rq, api->try_tool);

    if (j)
        reply(j, mo_try_tool_list(api->try_tool, &j->out));
}

/* --- a test: the tools, and how long it took ----------------------------- */

static void on_tested(void *arg, struct mo_span json, const struct mo_err *why)
{
    struct mo_api_job *j = arg;
    struct mo_json_doc doc;
    struct mo_jw w;

    if (why && why->code == MO_ENOTFOUND) {
        mo_api_error(j, why);
        return;
    }
    w = mo_jw_object(&j->out);
    mo_jw_member_bool(&w, "ok", why == NULL);
    mo_jw_member_u64(&w, "ms", (mo_now_ns() - j->began) / MO_MS);
    if (why) {
        mo_jw_member_cstr(&w, "error", why->msg);
    } else if (mo_json_parse(json, 0, &doc, NULL) == 0) {
        mo_jw_member_u64(&w, "tools",
                         mo_json_len(mo_json_get(doc.root, "tools")));
    }
    mo_jw_end(&w);
    mo_api_reply(j, "application/json");
}

/* --- tools of a server, below /api/servers/NAME and /api/mcp/NAME --------- */

enum { SHOW, TEST };

static void list_tools(struct mo_req *rq, struct mo_span body)
{
    struct mo_api *api = rq->data;
    struct mo_api_job *j = begin(api, rq, api->try_tool);
    bool test = rq->arg == TEST;
    enum mo_try_tool_read how = test ? MO_TRY_TOOL_NOW
                                : mo_api_says(rq, "known", "true")
                                    ? MO_TRY_TOOL_KNOWN
                                    : MO_TRY_TOOL_READ;
    mo_autobuf struct mo_buf server = {.max = WORD_MAX};
    struct mo_err e;

    (void)body;
    if (!j || !take_name(j, 2, &server))
        return;
    j->began = mo_now_ns();
    if (mo_try_tool_tools(api->try_tool, mo_buf_view(&server), how,
                          test ? on_tested : mo_api_json, j, &e) < 0)
        mo_api_error(j, &e);
}

static bool read_try(struct mo_span body, struct mo_arena *a,
                     struct mo_try_tool_ask *t)
{
    struct mo_json_doc doc;
    struct mo_json args, digest, run;

    if (body.n == 0)
        return true;
    if (mo_json_parse(body, 0, &doc, NULL) < 0 ||
        !mo_json_is(doc.root, MO_JSON_OBJECT))
        return false;
    args = mo_json_get(doc.root, "args");
    digest = mo_json_get(doc.root, "digest");
    run = mo_json_get(doc.root, "run");
    if (run.p && (mo_json_str(run, a, &t->run) < 0 || t->run.n > RUN_MAX))
        return false;
    if (args.p && !mo_json_is(args, MO_JSON_OBJECT))
        return false;
    if (args.p)
        t->args = mo_json_text(args);
    return digest.p == NULL ||
           (mo_json_str(digest, a, &t->digest) == 0 && t->digest.n > 0);
}

enum { CALL, ACCEPT };

/* The answer to a question goes to the worker that has asked. */
static void on_tried(void *arg, struct mo_span json, const struct mo_err *why)
{
    struct mo_api_job *j = arg;
    char digest[WORD_MAX];
    struct mo_json_doc doc;

    if (!why && j->api->here && mo_json_parse(json, 0, &doc, NULL) == 0 &&
        mo_json_str_copy(mo_json_get(doc.root, "digest"), digest,
                         sizeof(digest)) == 0)
        j->api->here(j->api->elsewhere_ctx, mo_span_cstr(digest));
    mo_api_json(arg, json, why);
}

static bool is_elsewhere(struct mo_api *api, struct mo_req *rq,
                         struct mo_span body)
{
    mo_autoarena struct mo_arena a = {.cap = MO_TRY_TOOL_ARGS_MAX};
    struct mo_try_tool_ask t = {.door = rq->door};

    return api->elsewhere && rq->arg == CALL && !mo_req_is_inner(rq) &&
           read_try(body, &a, &t) && t.digest.n > 0 &&
           api->elsewhere(api->elsewhere_ctx, rq, t.digest, body);
}

static void run_try(struct mo_api_job *j, struct mo_span body)
{
    struct mo_try_tool *try = j->api->try_tool;
    struct mo_try_tool_ask t = {.who = mo_span_cstr(mo_req_peer(j->rq)),
                                .door = j->rq->door};
    mo_autoarena struct mo_arena a = {.cap = MO_TRY_TOOL_ARGS_MAX};
    mo_autobuf struct mo_buf server = {.max = WORD_MAX};
    mo_autobuf struct mo_buf tool = {.max = WORD_MAX};
    struct mo_err e;
    int rc;

    if (!take_name(j, 2, &server) || !take_name(j, 4, &tool))
        return;
    t.server = mo_buf_view(&server);
    t.tool = mo_buf_view(&tool);
    if (!read_try(body, &a, &t)) {
        mo_api_problem(j, 400, "bad_request",
                       "the body is {args: object, digest?: string, run?: "
                       "string}");
        return;
    }
    if (t.run.n && j->api->here)
        j->api->here(j->api->elsewhere_ctx, t.run);
    rc = j->rq->arg == CALL ? mo_try_tool_call(try, &t, on_tried, j, &e)
                            : mo_try_tool_accept(try, &t, mo_api_json, j, &e);
    if (rc < 0)
        mo_api_error(j, &e);
}

static void on_counted(struct mo_budget_ask *a, const struct mo_budget_no *no)
{
    struct mo_api_job *j = mo_container_of(a, struct mo_api_job, budget);

    if (no)
        mo_api_over_budget(j, no);
    else if (!j->rq || !j->api->try_tool)
        mo_api_problem(j, 503, "closing", "the server is shutting down");
    else
        run_try(j, mo_buf_view(&j->text));
}

/* A call counts for the person who tries it; the gateway counts it for its
 * server. */
static void try_tool(struct mo_req *rq, struct mo_span body)
{
    struct mo_api *api = rq->data;
    struct mo_api_job *j =
        is_elsewhere(api, rq, body) ? NULL : begin(api, rq, api->try_tool);
    const struct mo_budget_who who = {.person = mo_span_cstr(rq->who),
                                      .token = mo_span_cstr(rq->grant)};
    const struct mo_budget_call call = {.who = &who};
    enum mo_budget_answer yes = MO_BUDGET_YES;
    struct mo_budget_no no;

    if (!j)
        return;
    j->text.max = MO_TRY_TOOL_ARGS_MAX;
    j->budget.done = on_counted;
    if (mo_buf_span(&j->text, body) < 0)
        mo_api_problem(j, 503, "no_memory", "out of memory");
    else if (rq->arg == CALL && api->gateway)
        yes = mo_budget_call(mo_gateway_setup_budget(api->gateway), &call,
                             &j->budget, &no);
    if (j->answered || yes == MO_BUDGET_LATER)
        return;
    if (yes == MO_BUDGET_NO)
        mo_api_over_budget(j, &no);
    else
        run_try(j, body);
}

/* --- a call that runs ----------------------------------------------------- */

static bool is_run_elsewhere(struct mo_api *api, struct mo_req *rq,
                             struct mo_span body)
{
    return api->elsewhere && !mo_req_is_inner(rq) &&
           api->elsewhere(api->elsewhere_ctx, rq, mo_req_segment(rq, 2), body);
}

static void get_run(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    struct mo_api_job *j = is_run_elsewhere(api, rq, mo_span(NULL, 0))
                               ? NULL
                               : begin(api, rq, api->try_tool);
    int rc;

    if (!j)
        return;
    rc = mo_try_tool_look(api->try_tool, mo_req_segment(rq, 2), &j->out);
    if (rc == MO_ENOTFOUND)
        mo_api_problem(j, 404, "not_found", "the call has ended");
    else if (rc < 0)
        mo_api_problem(j, 503, "no_memory", "out of memory");
    else
        mo_api_reply(j, "application/json");
}

static void tell_run(struct mo_req *rq, struct mo_span body)
{
    struct mo_api *api = rq->data;
    struct mo_api_job *j =
        is_run_elsewhere(api, rq, body) ? NULL : begin(api, rq, api->try_tool);
    mo_autoarena struct mo_arena a = {.cap = MO_TRY_TOOL_ARGS_MAX};
    struct mo_try_tool_word w = {.content = {NULL, 0}};
    struct mo_json_doc doc;
    struct mo_err e;

    if (!j)
        return;
    if (mo_json_parse(body, 0, &doc, NULL) < 0 ||
        !mo_json_is(doc.root, MO_JSON_OBJECT) ||
        mo_api_text(doc.root, "question", &a, &w.question) < 0 ||
        mo_api_text(doc.root, "action", &a, &w.action) < 0) {
        mo_api_problem(j, 400, "bad_request",
                       "the body is {question?, action, content?}");
        return;
    }
    w.content = mo_json_get(doc.root, "content");
    if (mo_try_tool_tell(api->try_tool, mo_req_segment(rq, 2), &w, &e) < 0)
        mo_api_error(j, &e);
    else
        mo_api_done(j, NULL);
}

/* --- managing the servers: looking --------------------------------------- */

static void get_all(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    struct mo_api_job *j = begin(api, rq, api->manage);
    mo_autobuf struct mo_buf view = {.max = WORD_MAX};
    struct mo_manage_where w = {
        .host = mo_http_get(rq->head, "host"),
        .tls = mo_req_is_tls(rq),
        .token = mo_span_cstr(api->token),
    };

    if (!j)
        return;
    (void)mo_query_get(rq->query, "view", &view);
    w.view = mo_buf_view(&view);
    if (rq->arg == LIST)
        reply(j, mo_manage_list(api->manage, &j->out));
    else if (rq->arg == HEALTH)
        reply(j, mo_manage_health(api->manage, &j->out));
    else if (rq->arg == VIEWS)
        reply(j, mo_manage_views(api->manage, &j->out));
    else
        reply(j, mo_manage_snippets(api->manage, &w, &j->out));
}

static void get_one(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    struct mo_api_job *j = begin(api, rq, api->manage);
    mo_autobuf struct mo_buf server = {.max = WORD_MAX};
    struct mo_err e;
    int rc;

    if (!j || !take_name(j, 2, &server))
        return;
    rc = (rq->arg == VIEWS ? mo_manage_one_view : mo_manage_one)(
        api->manage, mo_buf_view(&server), &j->out, &e);
    if (rc == MO_ENOTFOUND)
        mo_api_error(j, &e);
    else
        reply(j, rc);
}

static void get_connections(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    struct mo_api_job *j = begin(api, rq, api->approvals);
    mo_autobuf struct mo_buf server = {.max = WORD_MAX};
    struct mo_connection_from from = {.server = NULL};
    struct mo_err e;

    if (!j || !take_name(j, 2, &server))
        return;
    from.server = mo_buf_cstr(&server);
    if (!mo_server_link_find(api->config->now, mo_buf_view(&server))) {
        (void)mo_fail(&e, MO_ENOTFOUND, "there is no such server");
        mo_api_error(j, &e);
        return;
    }
    mo_jw_init(&j->w, &j->out);
    mo_connections_log(api->approvals, &from, &j->w);
    mo_api_of_all_workers(j, connection_rules);
}

/* --- managing the servers: changes --------------------------------------- */

static void on_changed(void *arg, struct mo_span json, const struct mo_err *why)
{
    static const struct mo_api_status rows[] = {
        {MO_EPOLICY, 403, "manage_off"},
        {MO_EEXISTS, 409, "exists"},
        {MO_EUNAVAIL, 422, "test_failed"},
        {MO_EPROTO, 400, "bad_request"},
        {MO_ETOOBIG, 400, "bad_request"},
        {MO_ECLOSED, 503, "closing"},
        {0, 0, NULL},
    };

    mo_api_answer(arg, json, why, rows);
}

static void change(struct mo_req *rq, struct mo_span body)
{
    enum mo_manage_verb verb = (enum mo_manage_verb)rq->arg;
    struct mo_api *api = rq->data;
    struct mo_api_job *j = begin(api, rq, api->manage);
    bool named = verb != MO_MANAGE_ADD && verb != MO_MANAGE_IMPORT;
    mo_autobuf struct mo_buf server = {.max = WORD_MAX};
    struct mo_manage_ask c = {
        .verb = verb,
        .body = body,
        .who = mo_span_cstr(mo_req_peer(rq)),
        .test = mo_api_says(rq, "test", "true"),
        .dry = mo_api_says(rq, "dryRun", "true"),
        .replace = mo_api_says(rq, "replace", "true"),
        .clear = mo_api_says(rq, "secrets", "false"),
    };
    struct mo_err e = {0};

    if (!j || (named && !take_name(j, 2, &server)))
        return;
    c.server = mo_buf_view(&server);
    if (mo_span_is(rq->path, "/api/mcp/add") && !c.dry)
        j->status = 201; /* older clients look for it */
    if (mo_manage_change(api->manage, &c, on_changed, j, &e) < 0)
        on_changed(j, mo_span(NULL, 0), &e);
}

/* --- servers by name ------------------------------------------------------ */

static void on_by_name(void *arg, struct mo_span json, const struct mo_err *why)
{
    static const struct mo_api_status rows[] = {
        {MO_EPOLICY, 403, "manage_off"},
        {MO_EINVAL, 400, "bad_request"},
        {MO_EUNAVAIL, 502, "unavailable"},
        {MO_EIO, 422, "refused"},
        {MO_EBUSY, 503, "busy"},
        {MO_ECLOSED, 503, "closing"},
        {0, 0, NULL},
    };

    mo_api_answer(arg, json, why, rows);
}

static void ask_by_name(struct mo_req *rq, enum mo_by_name_verb verb,
                        struct mo_span text)
{
    struct mo_api *api = rq->data;
    struct mo_api_job *j = begin(api, rq, api->by_name);
    struct mo_err e = {0};

    if (j &&
        mo_by_name_ask(api->by_name, verb, text, mo_span_cstr(mo_req_peer(rq)),
                       on_by_name, j, &e) < 0)
        on_by_name(j, mo_span(NULL, 0), &e);
}

static void search(void *ctx, struct mo_req *rq)
{
    mo_autobuf struct mo_buf words = {.max = WORD_MAX};

    rq->data = ctx;
    (void)mo_query_get(rq->query, "q", &words);
    ask_by_name(rq, MO_BY_NAME_SEARCH, mo_buf_view(&words));
}

static void install(struct mo_req *rq, struct mo_span body)
{
    ask_by_name(rq, (enum mo_by_name_verb)rq->arg, body);
}

#define TOOLS(what)                                                            \
    .body = list_tools, .max = MO_TRY_TOOL_ARGS_MAX, .arg = (what)
#define TRY(what)     .body = try_tool, .max = MO_TRY_TOOL_ARGS_MAX, .arg = (what)
#define CHANGE(verb)  .body = change, .max = MO_MANAGE_BODY_MAX, .arg = (verb)
#define BY_NAME(verb) .body = install, .max = MO_BY_NAME_BODY_MAX, .arg = (verb)

int mo_api_servers_routes(struct mo_site *s, struct mo_api *api)
{
    static const struct mo_route routes[] = {
        {MO_HTTP_GET, "/api/servers", MO_ROUTE_WORKERS, get_servers},
        {MO_HTTP_POST, "/api/servers/{name}/test", TOOLS(TEST)},
        {MO_HTTP_GET, "/api/servers/{name}/tools", TOOLS(SHOW)},
        {MO_HTTP_POST, "/api/servers/{name}/tools/{tool}/call", TRY(CALL)},
        {MO_HTTP_POST, "/api/servers/{name}/tools/{tool}/accept", TRY(ACCEPT)},
        {MO_HTTP_GET, "/api/tries/{run}", 0, get_run},
        {MO_HTTP_POST, "/api/tries/{run}", .body = tell_run,
         .max = MO_TRY_TOOL_ARGS_MAX},
        {MO_HTTP_GET, "/api/registry", 0, search},
        {MO_HTTP_POST, "/api/registry/plan", BY_NAME(MO_BY_NAME_PLAN)},
        {MO_HTTP_POST, "/api/registry/install", BY_NAME(MO_BY_NAME_INSTALL)},
        {MO_HTTP_GET, "/api/mcp", MO_ROUTE_WORKERS, get_all, .arg = LIST},
        {MO_HTTP_POST, "/api/mcp", CHANGE(MO_MANAGE_ADD)},
        {MO_HTTP_POST, "/api/mcp/add", CHANGE(MO_MANAGE_ADD)},
        {MO_HTTP_GET, "/api/mcp/health", MO_ROUTE_WORKERS, get_all,
         .arg = HEALTH},
        {MO_HTTP_GET, "/api/mcp/snippets", 0, get_all, .arg = SNIPPETS},
        {MO_HTTP_POST, "/api/mcp/import", CHANGE(MO_MANAGE_IMPORT)},
        {MO_HTTP_GET, "/api/mcp/{name}", MO_ROUTE_WORKERS, get_one, .arg = ONE},
        {MO_HTTP_GET, "/api/mcp/{name}/connections", MO_ROUTE_WORKERS,
         get_connections},
        {MO_HTTP_PATCH, "/api/mcp/{name}", CHANGE(MO_MANAGE_PATCH)},
        {MO_HTTP_DELETE, "/api/mcp/{name}", CHANGE(MO_MANAGE_REMOVE)},
        {MO_HTTP_POST, "/api/mcp/{name}/test", CHANGE(MO_MANAGE_TEST)},
        {MO_HTTP_GET, "/api/mcp/{name}/tools", TOOLS(SHOW)},
        {MO_HTTP_POST, "/api/mcp/{name}/tools/{tool}/call", TRY(CALL)},
        {MO_HTTP_POST, "/api/mcp/{name}/tools/{tool}/accept", TRY(ACCEPT)},
        {MO_HTTP_GET, "/api/views", 0, get_all, .arg = VIEWS},
        {MO_HTTP_GET, "/api/views/{name}", 0, get_one, .arg = VIEWS},
        {MO_HTTP_PUT, "/api/views/{name}", CHANGE(MO_MANAGE_SET_VIEW)},
        {MO_HTTP_DELETE, "/api/views/{name}", CHANGE(MO_MANAGE_REMOVE_VIEW)},
    };

    return mo_site_add(s, routes, MO_COUNT(routes), api);
}
