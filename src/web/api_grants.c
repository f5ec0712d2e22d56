/*
 * api_grants.c - what runs in a conversation without asking: its mode and its
 * grants (agent/chat/chat_mode.h); see api.h.
 *
 * The list is read from the session's row. A change is made by the process that
 * has the conversation open, wherever that is (api_everywhere.h); a change is
 * answered when the row has it. Nobody's conversation runs calls while it is
 * not open, so it need not be changed then.
 */
#include <stdio.h>

#include "agent/chat/chat.h"
#include "web/api_everywhere.h"
#include "web/api_job.h"

#define BODY_MAX ((size_t)64 * 1024)

static const char not_open[] =
    "there is no such session, or it is not open: open it first";

/* --- the list ------------------------------------------------------------ */

/* An id of older rows is the place (session_memory.c). */
static void put_grant(struct mo_jw *w, struct mo_json rule, size_t i)
{
    char old[32];

    (void)snprintf(old, sizeof(old), "old-%zu", i);
    mo_jw_obj(w);
    if (mo_json_get(rule, "id").p)
        mo_jw_copy(w, rule, "id");
    else
        mo_jw_member_cstr(w, "id", old);
    mo_jw_copy(w, rule, "server");
    mo_jw_copy(w, rule, "tool");
    mo_jw_copy(w, rule, "action");
    mo_jw_copy(w, rule, "who");
    mo_jw_copy(w, rule, "at");
    mo_jw_member_raw(w, "until", MO_SPAN("null"));
    mo_jw_end(w);
}

static void put_grants(struct mo_jw *w, struct mo_json data)
{
    struct mo_json mode = mo_json_get(data, "mode");
    size_t i = 0;

    mo_jw_obj(w);
    mo_jw_member_obj(w, "mode");
    if (mode.p) {
        mo_jw_copy(w, mode, "name");
        mo_jw_copy(w, mode, "who");
        mo_jw_copy(w, mode, "at");
    } else {
        mo_jw_member_cstr(w, "name", mo_chat_mode_name(MO_CHAT_ASK));
    }
    mo_jw_end(w);
    mo_jw_member_arr(w, "grants");
    mo_json_each (at, mo_json_get(data, "rules"))
        put_grant(w, at.val, i++);
    mo_jw_end(w);
    mo_jw_end(w);
}

static void on_listed(void *ctx, const struct mo_rows *rows,
                      const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_json_doc doc;

    if (why) {
        mo_api_error(j, why);
    } else if (rows->n == 0 ||
               mo_json_parse(rows->v[0].doc, 0, &doc, NULL) < 0) {
        mo_api_problem(j, 404, "not_found", "there is no such session");
    } else {
        mo_jw_init(&j->w, &j->out);
        put_grants(&j->w, mo_json_get(doc.root, "data"));
        mo_api_reply(j, "application/json");
    }
}

static void list_grants(struct mo_api_job *j)
{
    const struct mo_read r = {.kind = MO_READ_SESSION,
                              .session = mo_span_cstr(j->id)};
    struct mo_err e;

    if (mo_store_read(j->api->store, &r, on_listed, j, &e) < 0)
        mo_api_error(j, &e);
}

/* --- changes ------------------------------------------------------------- */

static void make_change(struct mo_api_job *j)
{
    struct mo_approval_change by = {
        .session = mo_span_cstr(j->id),
        .grant = mo_buf_view(&j->arg),
        .mode = j->arg.len ? MO_CHAT_ASK : (enum mo_chat_mode)j->mode,
        .who = j->rq->who[0] ? j->rq->who : "operator",
        .door = j->rq->door,
    };
    struct mo_json_doc doc;
    struct mo_err e;

    if (j->text.len && mo_json_parse(mo_buf_view(&j->text), 0, &doc, NULL) == 0)
        by.tools = doc.root;
    if (mo_agent_change_approvals(j->api->agent, &by, mo_api_done, j, &e) < 0)
        mo_api_error(j, &e);
}

/* False: another process answers, or it is not open anywhere. */
static bool is_here(struct mo_api *api, struct mo_req *rq, struct mo_span body)
{
    if (!mo_api_has(rq, api->agent, mo_talk_why(api->talk)))
        return false;
    if (mo_agent_is_open(api->agent, mo_req_segment(rq, 2)))
        return true;
    if (mo_api_asks_others(api, rq))
        mo_api_ask_holder(api, rq, body, not_open);
    else
        mo_req_problem(rq, rq->from ? MO_API_NOT_OPEN : 404, "not_found",
                       not_open);
    return false;
}

enum { LIST, REVOKE };

static void on_request(void *ctx, struct mo_req *rq)
{
    struct mo_span grant = mo_req_segment(rq, 4);
    int what = rq->arg;
    struct mo_api_job *j = NULL;

    if (what == REVOKE && !is_here(ctx, rq, mo_span(NULL, 0)))
        return;
    j = mo_api_session_job(ctx, rq);
    if (j && what == REVOKE)
        mo_buf_span(&j->arg, grant);
    if (j)
        mo_api_if_approver(j, what == LIST ? list_grants : make_change);
}

static void put_mode(struct mo_req *rq, struct mo_span body)
{
    struct mo_api_job *j = NULL;
    struct mo_json_doc doc;
    struct mo_json tools = {NULL, 0};

    if (!is_here(rq->data, rq, body))
        return;
    j = mo_api_session_job(rq->data, rq);
    if (j == NULL)
        return;
    j->mode = mo_json_parse(body, 0, &doc, NULL) == 0
                  ? mo_chat_mode_named(mo_json_get(doc.root, "mode"))
                  : -1;
    if (j->mode >= 0)
        tools = mo_json_get(doc.root, "tools");
    if (j->mode < 0 || (tools.p && !mo_json_is(tools, MO_JSON_ARRAY)) ||
        (tools.p && mo_buf_span(&j->text, mo_json_text(tools)) < 0))
        mo_api_problem(j, 400, "bad_request",
                       "the body is {mode: \"ask\", \"reads\" or \"box\", "
                       "tools?: [names]}");
    else
        mo_api_if_mine(j, make_change);
}

int mo_api_grants_routes(struct mo_site *s, struct mo_api *api)
{
    static const struct mo_route routes[] = {
        {MO_HTTP_GET, "/api/sessions/{id}/grants", 0, on_request, .arg = LIST},
        {MO_HTTP_DELETE, "/api/sessions/{id}/grants/{grant}", MO_ROUTE_WORKERS,
         on_request, .arg = REVOKE},
        {MO_HTTP_PUT, "/api/sessions/{id}/mode", MO_ROUTE_WORKERS,
         .body = put_mode, .max = BODY_MAX},
    };

    return mo_site_add(s, routes, MO_COUNT(routes), api);
}
