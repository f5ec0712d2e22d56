/*
 * api_servers.c - see api_servers.h.
 */
#include "web/api_servers.h"

#include "codec/http/url.h"
#include "web/api_job.h"

#define API      "/api/"
#define SERVERS  "/api/servers/"
#define WORD_MAX 1024 /* of a server or tool, decoded */

/* --- answers ------------------------------------------------------------- */

static void on_json(void *arg, struct mo_span json, const struct mo_err *why)
{
    struct mo_api_job *j = arg;

    if (why) {
        mo_api_error(j, why);
        return;
    }
    mo_buf_span(&j->out, json);
    mo_api_reply(j, "application/json");
}

/* A job, if there is somebody who knows the servers. */
static struct mo_api_job *begin(struct mo_api *api, struct mo_req *rq)
{
    if (api->try_tool)
        return mo_api_job(api, rq);
    mo_req_problem(rq, 503, "not_ready", "the servers are not known yet");
    return NULL;
}

static void get_servers(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    struct mo_api_job *j = begin(api, rq);
    int rc = 0;

    if (j == NULL)
        return;
    rc = mo_try_tool_list(api->try_tool, &j->out);
    if (rc < 0)
        mo_api_problem(j, 503, "no_memory", "out of memory");
    else
        mo_api_reply(j, "application/json");
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

/* --- what is asked ------------------------------------------------------- */

enum verb { NOTHING, TEST, TOOLS, CALL, ACCEPT };

struct what {
    enum verb verb;
    struct mo_buf server, tool;
};

static enum verb verb_of(struct mo_span rest, struct mo_buf *tool)
{
    struct mo_span first = mo_span_cut(&rest, '/');
    struct mo_span name;

    if (rest.p == NULL && mo_span_is(first, "test"))
        return TEST;
    if (!mo_span_is(first, "tools"))
        return NOTHING;
    if (rest.p == NULL)
        return TOOLS;
    name = mo_span_cut(&rest, '/');
    if (name.n == 0 || mo_pct_decode(tool, name, false) < 0)
        return NOTHING;
    if (mo_span_is(rest, "call"))
        return CALL;
    return mo_span_is(rest, "accept") ? ACCEPT : NOTHING;
}

/* /api/WORD/NAME/...: the same below either word. */
static void what_init(struct what *x, const struct mo_req *rq)
{
    struct mo_span rest = mo_span_skip(rq->path, sizeof(API) - 1);
    struct mo_span name;

    (void)mo_span_cut(&rest, '/');
    name = mo_span_cut(&rest, '/');

    mo_buf_init(&x->server, WORD_MAX);
    mo_buf_init(&x->tool, WORD_MAX);
    x->verb = rest.p ? verb_of(rest, &x->tool) : NOTHING;
    if (name.n == 0 || mo_pct_decode(&x->server, name, false) < 0)
        x->verb = NOTHING;
}

static void what_fini(struct what *x)
{
    mo_buf_fini(&x->server);
    mo_buf_fini(&x->tool);
}

static void run(struct mo_api_job *j, const struct what *x,
                const struct mo_try_tool_ask *t)
{
    struct mo_try_tool *s = j->api->try_tool;
    struct mo_span server = mo_buf_view(&x->server);
    struct mo_err e = {0};
    int rc = 0;

    j->began = mo_now_ns();
    switch (x->verb) {
    case TEST:
        rc = mo_try_tool_tools(s, server, true, on_tested, j, &e);
        break;
    case CALL:
        rc = mo_try_tool_call(s, t, on_json, j, &e);
        break;
    case ACCEPT:
        rc = mo_try_tool_accept(s, t, on_json, j, &e);
        break;
    default:
        rc = mo_try_tool_tools(s, server, false, on_json, j, &e);
    }
    if (rc < 0)
        mo_api_error(j, &e);
}

/* --- bodies -------------------------------------------------------------- */

static bool read_try(struct mo_span body, struct mo_arena *a,
                     struct mo_try_tool_ask *t)
{
    struct mo_json_doc doc;
    struct mo_json args, digest;

    if (body.n == 0)
        return true;
    if (mo_json_parse(body, 0, &doc, NULL) < 0 ||
        !mo_json_is(doc.root, MO_JSON_OBJECT))
        return false;
    args = mo_json_get(doc.root, "args");
    digest = mo_json_get(doc.root, "digest");
    if (args.p && !mo_json_is(args, MO_JSON_OBJECT))
        return false;
    if (args.p)
        t->args = mo_json_text(args);
    return digest.p == NULL || mo_json_str(digest, a, &t->digest) == 0;
}

static void on_body(struct mo_req *rq, struct mo_span body)
{
    struct mo_api *api = rq->data;
    struct mo_api_job *j = begin(api, rq);
    struct mo_try_tool_ask t = {.who = mo_span_cstr(mo_req_peer(rq))};
    mo_autoarena struct mo_arena a = {.cap = MO_TRY_TOOL_ARGS_MAX};
    struct what x;

    if (j == NULL)
        return;
    what_init(&x, rq);
    t.server = mo_buf_view(&x.server);
    t.tool = mo_buf_view(&x.tool);
    if (read_try(body, &a, &t))
        run(j, &x, &t);
    else
        mo_api_problem(j, 400, "bad_request",
                       "the body is {args: object, digest?: string}");
    what_fini(&x);
}

void mo_api_servers_one(void *ctx, struct mo_req *rq)
{
    struct what x;
    enum verb verb = NOTHING;
    bool get =
        rq->head->method == MO_HTTP_GET || rq->head->method == MO_HTTP_HEAD;

    what_init(&x, rq);
    verb = x.verb;
    what_fini(&x);
    if (verb == NOTHING) {
        mo_req_problem(rq, 404, "not_found", "there is nothing here");
        return;
    }
    if (get != (verb == TOOLS) || (!get && rq->head->method != MO_HTTP_POST)) {
        mo_req_header(rq, "Allow",
                      verb == TOOLS ? MO_SPAN("GET, HEAD") : MO_SPAN("POST"));
        mo_req_problem(rq, 405, "method_not_allowed",
                       "that cannot be done with it");
        return;
    }
    rq->data = ctx;
    mo_req_body(rq, MO_TRY_TOOL_ARGS_MAX, on_body);
}

int mo_api_servers_routes(struct mo_site *s, struct mo_api *api)
{
    const struct mo_route routes[] = {
        {MO_HTTP_GET, "/api/servers", 0, get_servers, api},
        {MO_HTTP_OTHER, SERVERS, MO_ROUTE_PREFIX, mo_api_servers_one, api},
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < MO_COUNT(routes); i++)
        rc = mo_site_route(s, &routes[i]);
    return rc;
}
