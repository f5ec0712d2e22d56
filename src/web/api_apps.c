/* api_apps.c - apps of servers (MCP Apps) for the page: calls and resources
 * that an app asks for (agent/chat/apps.h), and the frame that shows it.
 *
 * Requests go to the process that has the conversation open.
 *
 * /app-frame is the outer one of two frames. It holds nothing but a script that
 * passes messages on (ui/public/app.html), so it needs no token; a frame
 * without an origin has none. Its policy is inherited by the inner frame, which
 * holds the app: no origin, and only domains that the query asks for and
 * `apps.domains` grants. An app cannot change it. With `apps.origin` the page
 * is at another origin, whose name this server may not know; any page may then
 * hold the frame, in which there is nothing of ours. */
#include "agent/chat/chat.h"
#include "codec/http/url.h"
#include "mcp/app.h"
#include "web/api_holder.h"
#include "web/api_job.h"
#include "web/page.h"

#define BODY_MAX  ((size_t)120 * 1024)
#define QUERY_MAX ((size_t)16 * 1024)

enum { CALL, READ };

/* --- calls and resources ------------------------------------------------- */

static void on_answer(void *arg, struct mo_span json, const struct mo_err *why)
{
    if (why && why->code == MO_EPROTO)
        mo_api_problem(arg, 502, "server_refused", why->msg);
    else
        mo_api_json(arg, json, why);
}

/* False: a member is missing or no text. */
static bool read_ask(struct mo_json body, int what, struct mo_arena *a,
                     struct mo_app_ask *q)
{
    struct mo_json args = mo_json_get(body, "arguments");

    if (!mo_json_is(body, MO_JSON_OBJECT) ||
        mo_api_text(body, "server", a, &q->server) < 0 ||
        mo_api_text(body, "app", a, &q->app) < 0 ||
        mo_api_text(body, "tool", a, &q->tool) < 0 ||
        mo_api_text(body, "uri", a, &q->uri) < 0 ||
        mo_api_text(body, "digest", a, &q->digest) < 0)
        return false;
    q->args = args;
    return q->server.n && q->app.n && (what == CALL ? q->tool.n : q->uri.n) &&
           (!args.p || mo_json_is(args, MO_JSON_OBJECT));
}

static void ask_agent(struct mo_api_job *j)
{
    struct mo_app_ask q = {
        .session = mo_span_cstr(j->id),
        .who = j->rq->who[0] ? j->rq->who : "operator",
        .door = j->rq->door,
        .is_operator = j->rq->role >= MO_ROLE_OPERATOR,
    };
    mo_autoarena struct mo_arena a = {.cap = BODY_MAX * 2};
    struct mo_json_doc doc;
    struct mo_err e;
    int rc = 0;

    if (mo_json_parse(mo_buf_view(&j->arg), 0, &doc, NULL) < 0 ||
        !read_ask(doc.root, j->share, &a, &q)) {
        mo_api_problem(j, 400, "bad_request",
                       j->share == CALL
                           ? "the body is {server: string, app: string, tool: "
                             "string, arguments?: object, digest?: string}"
                           : "the body is {server: string, app: string, uri: "
                             "string}");
        return;
    }
    rc = j->share == CALL
             ? mo_agent_app_call(j->api->agent, &q, on_answer, j, &e)
             : mo_agent_app_read(j->api->agent, &q, on_answer, j, &e);
    if (rc < 0)
        mo_api_error(j, &e);
}

static void request_here(struct mo_req *rq, struct mo_span body)
{
    struct mo_api_job *j = mo_api_session_job(rq->data, rq);

    if (j == NULL)
        return;
    j->share = rq->arg;
    if (mo_buf_span(&j->arg, body) < 0)
        mo_api_problem(j, 503, "no_memory", "out of memory");
    else
        mo_api_if_mine(j, ask_agent);
}

static void post_request(struct mo_req *rq, struct mo_span body)
{
    mo_api_at_holder(rq->data, rq, body, request_here);
}

/* --- the frame ----------------------------------------------------------- */

/* The policy decides which domains are reached. This is for WebRTC, also in
 * frames that the app makes inside itself, in browsers whose policies do not
 * know it; and for the rest of the network if no domain (SCHEME://...) is
 * granted. */
static struct mo_span connections_of(struct mo_span policy)
{
    return mo_span_search(policy, MO_SPAN("://")) >= 0
               ? MO_SPAN("(\"*://*:*/*\");webrtc=block")
               : MO_SPAN("();webrtc=block");
}

static void get_frame(void *ctx, struct mo_req *rq)
{
    const struct mo_api *api = ctx;
    const struct mo_config *cfg = api->config->now;
    const struct mo_asset *page = mo_page_asset("/app.html");
    mo_autobuf struct mo_buf asked = {.max = QUERY_MAX};
    mo_autobuf struct mo_buf policy = {.max = MO_APP_POLICY_MAX};
    struct mo_json_doc doc = {.root = {NULL, 0}};

    if (mo_query_get(rq->query, "csp", &asked) < 0 ||
        mo_json_parse(mo_buf_view(&asked), 0, &doc, NULL) < 0)
        doc.root = (struct mo_json){NULL, 0};
    mo_app_policy(doc.root, cfg->apps.domains.v, cfg->apps.domains.n, &policy,
                  NULL);
    if (page == NULL || !cfg->apps.enabled || mo_buf_err(&policy)) {
        mo_req_problem(rq, 404, "not_found", "no apps are shown here");
        return;
    }
    mo_buf_puts(&policy, cfg->apps.origin ? "; frame-ancestors *"
                                          : "; frame-ancestors 'self'");
    mo_req_header(rq, "Content-Security-Policy", mo_buf_view(&policy));
    mo_req_header(rq, "Connection-Allowlist",
                  connections_of(mo_buf_view(&policy)));
    mo_req_header(rq, "X-DNS-Prefetch-Control", MO_SPAN("off"));
    mo_req_header(rq, "Permissions-Policy",
                  MO_SPAN("camera=(), microphone=(), geolocation=(), "
                          "clipboard-read=(), clipboard-write=(), usb=(), "
                          "serial=(), hid=(), payment=()"));
    mo_page_send(rq, page);
}

int mo_api_apps_routes(struct mo_site *s, struct mo_api *api)
{
    static const struct mo_route routes[] = {
        {MO_HTTP_POST, "/api/sessions/{id}/apps/call", MO_ROUTE_WORKERS,
         .body = post_request, .max = BODY_MAX, .arg = CALL},
        {MO_HTTP_POST, "/api/sessions/{id}/apps/resource", MO_ROUTE_WORKERS,
         .body = post_request, .max = BODY_MAX, .arg = READ},
        {MO_HTTP_GET, "/app-frame", MO_ROUTE_OPEN, get_frame},
    };

    return mo_site_add(s, routes, MO_COUNT(routes), api);
}
