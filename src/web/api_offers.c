/* api_offers.c - what the servers offer to the person in a conversation:
 * prompts, resources, completion of arguments, and which tools are on.
 *
 * Everything goes to the process that has the conversation open. Of a body only
 * the members that the request of MCP has are passed on. */
#include "agent/chat/chat.h"
#include "web/api_holder.h"
#include "web/api_job.h"

#define BODY_MAX ((size_t)64 * 1024)

enum { PROMPT, RESOURCE, COMPLETE, KINDS };

struct member {
    const char *name;
    enum mo_json_type type;
    bool needed;
};

#define MEMBERS 3

static const struct {
    const char *method, *shape;
    struct member of[MEMBERS];
} kinds[KINDS] = {
    [PROMPT] = {"prompts/get",
                "the body is {name: string, arguments?: object}",
                {{"name", MO_JSON_STRING, true},
                 {"arguments", MO_JSON_OBJECT, false}}},
    [RESOURCE] = {"resources/read",
                  "the body is {uri: string, subscribe?: boolean}",
                  {{"uri", MO_JSON_STRING, true}}},
    [COMPLETE] = {"completion/complete",
                  "the body is {ref: object, argument: object, context?: "
                  "object}",
                  {{"ref", MO_JSON_OBJECT, true},
                   {"argument", MO_JSON_OBJECT, true},
                   {"context", MO_JSON_OBJECT, false}}},
};

/* --- answers ------------------------------------------------------------- */

static void on_answer(void *arg, struct mo_span json, const struct mo_err *why)
{
    if (why && why->code == MO_EPROTO)
        mo_api_problem(arg, 502, "server_refused", why->msg);
    else
        mo_api_json(arg, json, why);
}

static void send_request(struct mo_api_job *j)
{
    struct mo_err e;

    if (mo_agent_ask_server(j->api->agent, mo_span_cstr(j->id),
                            kinds[j->share].method, mo_buf_view(&j->arg),
                            on_answer, j, &e) < 0)
        mo_api_error(j, &e);
}

static void on_subscribed(void *arg, struct mo_span json,
                          const struct mo_err *why)
{
    struct mo_api_job *j = arg;

    (void)json;
    (void)why; /* a server need not know subscriptions */
    send_request(j);
}

static void subscribe_first(struct mo_api_job *j)
{
    struct mo_err e;

    if (mo_agent_ask_server(j->api->agent, mo_span_cstr(j->id),
                            "resources/subscribe", mo_buf_view(&j->arg),
                            on_subscribed, j, &e) < 0)
        mo_api_error(j, &e);
}

/* --- requests ------------------------------------------------------------ */

/* Copies the members of the request; false: one is missing or of another
 * type. */
static bool copy_members(struct mo_buf *to, struct mo_json body, int kind)
{
    struct mo_jw w = mo_jw_object(to);

    for (size_t i = 0; i < MEMBERS && kinds[kind].of[i].name; i++) {
        const struct member *m = &kinds[kind].of[i];
        struct mo_json v = mo_json_get(body, m->name);

        if (v.p ? !mo_json_is(v, m->type) : m->needed)
            return false;
        if (v.p)
            mo_jw_member_raw(&w, m->name, mo_json_text(v));
    }
    mo_jw_end(&w);
    return mo_buf_err(to) == 0;
}

static void request_here(struct mo_req *rq, struct mo_span body)
{
    struct mo_api_job *j = mo_api_session_job(rq->data, rq);
    struct mo_json_doc doc;
    bool subscribe = false;

    if (j == NULL)
        return;
    j->share = rq->arg;
    if (mo_json_parse(body, 0, &doc, NULL) < 0 ||
        !mo_json_is(doc.root, MO_JSON_OBJECT) ||
        !copy_members(&j->arg, doc.root, rq->arg)) {
        mo_api_problem(j, 400, "bad_request", kinds[rq->arg].shape);
        return;
    }
    if (rq->arg == RESOURCE)
        (void)mo_json_bool(mo_json_get(doc.root, "subscribe"), &subscribe);
    mo_api_if_mine(j, subscribe ? subscribe_first : send_request);
}

static void post_request(struct mo_req *rq, struct mo_span body)
{
    mo_api_at_holder(rq->data, rq, body, request_here);
}

static void list_offers(struct mo_api_job *j)
{
    if (mo_agent_put_offers(j->api->agent, &j->out) < 0)
        mo_api_problem(j, 503, "no_memory", "out of memory");
    else
        mo_api_reply(j, "application/json");
}

static void offers_here(struct mo_req *rq, struct mo_span body)
{
    struct mo_api_job *j = mo_api_session_job(rq->data, rq);

    (void)body;
    if (j)
        mo_api_if_mine(j, list_offers);
}

static void get_offers(void *ctx, struct mo_req *rq)
{
    mo_api_at_holder(ctx, rq, mo_span(NULL, 0), offers_here);
}

static void switch_tools(struct mo_api_job *j)
{
    struct mo_json_doc doc;
    struct mo_err e;

    if (mo_json_parse(mo_buf_view(&j->arg), 0, &doc, &e) < 0 ||
        mo_agent_tools_off(j->api->agent, mo_span_cstr(j->id), doc.root, &e) <
            0)
        mo_api_error(j, &e);
    else
        mo_api_done(j, NULL);
}

static void tools_here(struct mo_req *rq, struct mo_span body)
{
    struct mo_api_job *j = mo_api_session_job(rq->data, rq);
    struct mo_json_doc doc;
    struct mo_json off;

    if (j == NULL)
        return;
    off = mo_json_parse(body, 0, &doc, NULL) == 0 ? mo_json_get(doc.root, "off")
                                                  : (struct mo_json){NULL, 0};
    if (!mo_json_is(off, MO_JSON_ARRAY) ||
        mo_buf_span(&j->arg, mo_json_text(off)) < 0)
        mo_api_problem(j, 400, "bad_request",
                       "the body is {off: [{server: string, tool?: string}]}");
    else
        mo_api_if_mine(j, switch_tools);
}

static void put_tools(struct mo_req *rq, struct mo_span body)
{
    mo_api_at_holder(rq->data, rq, body, tools_here);
}

int mo_api_offers_routes(struct mo_site *s, struct mo_api *api)
{
    static const struct mo_route routes[] = {
        {MO_HTTP_GET, "/api/sessions/{id}/offers", MO_ROUTE_WORKERS,
         get_offers},
        {MO_HTTP_POST, "/api/sessions/{id}/prompt", MO_ROUTE_WORKERS,
         .body = post_request, .max = BODY_MAX, .arg = PROMPT},
        {MO_HTTP_POST, "/api/sessions/{id}/resource", MO_ROUTE_WORKERS,
         .body = post_request, .max = BODY_MAX, .arg = RESOURCE},
        {MO_HTTP_POST, "/api/sessions/{id}/complete", MO_ROUTE_WORKERS,
         .body = post_request, .max = BODY_MAX, .arg = COMPLETE},
        {MO_HTTP_PUT, "/api/sessions/{id}/tools", MO_ROUTE_WORKERS,
         .body = put_tools, .max = BODY_MAX},
    };

    return mo_site_add(s, routes, MO_COUNT(routes), api);
}
