/*
 * api_session.c - see api_session.h.
 */
#include "web/api_session.h"

#include "agent/chat/chat.h"
#include "web/api_owner.h"

#define BODY_MAX 4096

/* --- a name -------------------------------------------------------------- */

/* The last part of the path; on_one() in api.c has looked at it. */
static struct mo_span id_of(const struct mo_req *rq)
{
    struct mo_span rest = rq->path, last = rq->path;

    while (rest.p && rest.n > 0)
        last = mo_span_cut(&rest, '/');
    return last;
}

static void on_named(void *ctx, const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    if (why) {
        mo_api_error(j, why);
        return;
    }
    mo_buf_puts(&j->out, "{\"ok\":true}");
    mo_api_reply(j, "application/json");
}

static void rename_it(struct mo_api_job *j)
{
    struct mo_err e;

    if (mo_agent_title(j->api->agent, mo_span_cstr(j->id), mo_buf_view(&j->arg),
                       on_named, j, &e) < 0)
        mo_api_error(j, &e);
}

static void on_body(struct mo_req *rq, struct mo_span body)
{
    struct mo_api_job *j = mo_api_job(rq->data, rq);
    struct mo_span id = id_of(rq);
    struct mo_json_doc doc;

    if (j == NULL)
        return;
    if (mo_json_parse(body, 0, &doc, NULL) < 0 ||
        mo_json_str_buf(mo_json_get(doc.root, "title"), &j->arg) < 0) {
        mo_api_problem(j, 400, "bad_request", "the body is {title: string}");
        return;
    }
    memcpy(j->id, id.p, id.n);
    mo_api_if_mine(j, rename_it);
}

void mo_api_rename(struct mo_api *api, struct mo_req *rq)
{
    rq->data = api;
    mo_req_body(rq, BODY_MAX, on_body);
}

/* --- its calls ----------------------------------------------------------- */

static const char *const told[] = {"name", "server", "by",
                                   "who",  "reason", "ms"};

static void put_call(struct mo_jw *w, const struct mo_row *row)
{
    struct mo_json_doc doc;
    bool known = mo_json_parse(row->doc, 0, &doc, NULL) == 0;

    mo_jw_obj(w);
    mo_jw_member(w, "callId", row->id);
    mo_jw_member_u64(w, "seq", row->seq);
    mo_jw_member_u64(w, "at", row->at);
    mo_jw_member_cstr(w, "state", mo_call_state_name(row->state));
    for (size_t i = 0; known && i < MO_COUNT(told); i++) {
        struct mo_json v = mo_json_get(doc.root, told[i]);

        if (v.p == NULL)
            continue;
        mo_jw_member_raw(w, told[i], mo_json_text(v));
    }
    mo_jw_end(w);
}

static void on_calls(void *ctx, const struct mo_rows *rows,
                     const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_jw w;

    if (why) {
        mo_api_error(j, why);
        return;
    }
    w = mo_jw_object(&j->out);
    mo_jw_member_bool(&w, "more", rows->more);
    mo_jw_member_arr(&w, "calls");
    for (size_t i = 0; i < rows->n; i++)
        put_call(&w, &rows->v[i]);
    mo_jw_end(&w);
    mo_jw_end(&w);
    mo_api_reply(j, "application/json");
}

void mo_api_calls(struct mo_api_job *j, uint64_t after, unsigned limit)
{
    const struct mo_read r = {
        .kind = MO_READ_CALLS,
        .session = mo_span_cstr(j->id),
        .after = after,
        .limit = limit,
    };
    struct mo_err e;

    if (mo_store_read(j->api->store, &r, on_calls, j, &e) < 0)
        mo_api_error(j, &e);
}
