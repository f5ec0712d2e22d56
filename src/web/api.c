/*
 * api.c - see api.h.
 */
#include "web/api.h"

#include "agent/chat/chat.h"
#include "agent/chat/entry.h"
#include "codec/http/url.h"
#include "policy/connections.h"
#include "web/api_export.h"
#include "web/api_holder.h"
#include "web/api_job.h"

#define LIMIT     100
#define HISTORY   1000
#define ABOUT_MAX MO_ABOUT_MAX /* bytes of a body */

/* --- the query ----------------------------------------------------------- */

static uint64_t number(const struct mo_req *rq, const char *key, uint64_t other)
{
    mo_autobuf struct mo_buf b = {.max = 32};
    uint64_t n;

    if (mo_query_get(rq->query, key, &b) < 0 ||
        mo_span_u64(mo_buf_view(&b), &n) < 0)
        return other;
    return n;
}

static unsigned limit(const struct mo_req *rq, unsigned usual)
{
    uint64_t n = number(rq, "limit", usual);

    return n > 0 && n <= MO_STORE_ROWS_MAX ? (unsigned)n : usual;
}

/* --- reading the store --------------------------------------------------- */

typedef void rows_fn(void *ctx, const struct mo_rows *rows,
                     const struct mo_err *why);

static void read_rows(struct mo_api_job *j, const struct mo_read *r,
                      rows_fn *done)
{
    struct mo_err e;

    if (mo_store_read(j->api->store, r, done, j, &e) < 0)
        mo_api_error(j, &e);
}

static void put_member(struct mo_jw *w, struct mo_json from, const char *key)
{
    struct mo_json v = mo_json_get(from, key);

    if (v.p == NULL)
        return;
    mo_jw_member_raw(w, key, mo_json_text(v));
}

static void put_members(struct mo_jw *w, struct mo_json from,
                        const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_member(w, from, keys[i]);
}

/* For its owner: whether it is shared; for others: what they may do. */
static void put_shared(struct mo_api_job *j, const struct mo_row *row)
{
    if (!mo_api_row_is_mine(j, row))
        mo_jw_member_cstr(&j->w, "shared",
                          mo_share_name(mo_api_row_share(j, row)));
    else if (row->shares.n > 2)
        mo_jw_member_bool(&j->w, "isShared", true);
}

/* Writes the members of the session's row and the agent's part of it. */
static void put_session(struct mo_api_job *j, const struct mo_row *row)
{
    static const char *const own[] = {"owner", "created", "box", "driver",
                                      "asleep"};
    static const char *const agents[] = {"title",  "model",    "lastMessage",
                                         "pinned", "archived", "tags"};
    static const char *const of_one[] = {"system", "offer"};
    struct mo_jw *w = &j->w;
    struct mo_json_doc doc;

    mo_jw_obj(w);
    mo_jw_member(w, "id", row->session);
    mo_jw_member_u64(w, "lastActive", row->at);
    if (mo_json_parse(row->doc, 0, &doc, NULL) == 0) {
        put_members(w, doc.root, own, MO_COUNT(own));
        put_members(w, mo_json_get(doc.root, "data"), agents, MO_COUNT(agents));
        if (j->is_one)
            put_members(w, mo_json_get(doc.root, "data"), of_one,
                        MO_COUNT(of_one));
    }
    put_shared(j, row);
    mo_jw_end(w);
}

static void begin_list(struct mo_api_job *j, const char *name)
{
    j->w = mo_jw_object(&j->out);
    mo_jw_member_arr(&j->w, name);
}

static void end_sessions(struct mo_api_job *j, bool more)
{
    (void)more;
    mo_jw_end(&j->w);
    mo_jw_end(&j->w);
    mo_api_reply(j, "application/json");
}

static bool is_readable(struct mo_api_job *j, const struct mo_row *row)
{
    return mo_api_row_is_mine(j, row) || mo_api_row_share(j, row);
}

static void get_sessions(void *ctx, struct mo_req *rq)
{
    static const struct mo_api_pages_cb cb = {is_readable, put_session,
                                              end_sessions};
    struct mo_api_job *j = mo_api_job(ctx, rq);
    struct mo_read r = {
        .kind = MO_READ_SESSIONS, .limit = MO_STORE_ROWS_MAX, .newest = true};

    if (j == NULL)
        return;
    begin_list(j, "sessions");
    mo_api_pages(j, &r, &cb);
}

static void on_session(void *ctx, const struct mo_rows *rows,
                       const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    if (why) {
        mo_api_error(j, why);
    } else if (rows->n == 0) {
        mo_api_problem(j, 404, "not_found", "there is no such session");
    } else {
        mo_jw_init(&j->w, &j->out);
        j->is_one = true;
        put_session(j, &rows->v[0]);
        mo_api_reply(j, "application/json");
    }
}

static void read_session(struct mo_api_job *j)
{
    struct mo_read r = {.kind = MO_READ_SESSION,
                        .session = mo_span_cstr(j->id)};

    read_rows(j, &r, on_session);
}

/* --- a conversation ------------------------------------------------------ */

static void put_entries(struct mo_api_job *j, const struct mo_rows *rows)
{
    mo_autobuf struct mo_buf one = {.max = MO_API_ANSWER_MAX};
    struct mo_jw w = mo_jw_object(&j->out);

    mo_jw_member(&w, "sessionId", mo_span_cstr(j->id));
    if (rows->n > 0)
        mo_jw_member_u64(&w, "conversation", rows->v[0].conversation);
    mo_jw_member_bool(&w, "more", rows->more);
    mo_jw_member_arr(&w, "messages");
    for (size_t i = 0; i < rows->n; i++) {
        struct mo_json_doc doc;

        mo_buf_reset(&one);
        if (mo_json_parse(rows->v[i].doc, 0, &doc, NULL) < 0 ||
            mo_entry_role(doc.root) == MO_ENTRY_QUEUED)
            continue;
        mo_entry_public(&one, doc.root, rows->v[i].seq, rows->v[i].at);
        if (mo_buf_err(&one))
            j->out.err = one.err;
        mo_jw_raw(&w, mo_buf_view(&one));
    }
    mo_jw_end(&w);
    mo_jw_end(&w);
}

static void put_history(struct mo_api_job *j, const struct mo_rows *rows)
{
    put_entries(j, rows);
    mo_api_reply(j, "application/json");
}

static void on_any_entry(void *ctx, const struct mo_rows *rows,
                         const struct mo_err *why)
{
    static const struct mo_rows none = {.n = 0};
    struct mo_api_job *j = ctx;

    if (why)
        mo_api_error(j, why);
    else if (rows->n == 0)
        mo_api_problem(j, 404, "not_found", "there is no such session");
    else
        j->found(j, &none);
}

/* A session that has ended has no row, but its history may still be kept. */
static void on_row_of(void *ctx, const struct mo_rows *rows,
                      const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_read r = {.kind = MO_READ_HISTORY,
                        .session = mo_span_cstr(j->id),
                        .limit = 1,
                        .newest = true};

    if (why || rows->n > 0)
        on_any_entry(j, rows, why);
    else
        read_rows(j, &r, on_any_entry);
}

/* Without rows: is there such a session? */
static void on_rows(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_read r = {.kind = MO_READ_SESSION,
                        .session = mo_span_cstr(j->id)};

    if (why)
        mo_api_error(j, why);
    else if (rows->n > 0)
        j->found(j, rows);
    else
        read_rows(j, &r, on_row_of);
}

static void read_history(struct mo_api_job *j)
{
    struct mo_read r = {
        .kind = MO_READ_HISTORY,
        .session = mo_span_cstr(j->id),
        .conversation = number(j->rq, "conversation", 0),
        .after = number(j->rq, "after", 0),
        .limit = limit(j->rq, HISTORY),
    };

    if (mo_api_export(j, r.conversation))
        return;
    j->found = put_history;
    read_rows(j, &r, on_rows);
}

/* --- its calls ----------------------------------------------------------- */

static void put_call(struct mo_jw *w, const struct mo_row *row)
{
    static const char *const told[] = {"name", "server", "by",
                                       "who",  "reason", "ms"};
    struct mo_json_doc doc;
    bool known = mo_json_parse(row->doc, 0, &doc, NULL) == 0;

    mo_jw_obj(w);
    mo_jw_member(w, "callId", row->id);
    mo_jw_member_u64(w, "seq", row->seq);
    mo_jw_member_u64(w, "at", row->at);
    mo_jw_member_cstr(w, "state", mo_call_state_name(row->state));
    if (known)
        put_members(w, doc.root, told, MO_COUNT(told));
    mo_jw_end(w);
}

static void put_calls(struct mo_api_job *j, const struct mo_rows *rows)
{
    struct mo_jw w;

    w = mo_jw_object(&j->out);
    mo_jw_member_bool(&w, "more", rows->more);
    mo_jw_member_arr(&w, "calls");
    for (size_t i = 0; i < rows->n; i++)
        put_call(&w, &rows->v[i]);
    mo_jw_end(&w);
    mo_jw_end(&w);
    mo_api_reply(j, "application/json");
}

static void read_calls(struct mo_api_job *j)
{
    const struct mo_read r = {
        .kind = MO_READ_CALLS,
        .session = mo_span_cstr(j->id),
        .after = number(j->rq, "after", 0),
        .limit = limit(j->rq, HISTORY),
    };

    j->found = put_calls;
    read_rows(j, &r, on_rows);
}

/* --- the hosts that its box talked to ------------------------------------- */

static void read_connections(struct mo_api_job *j)
{
    const struct mo_connection_from from = {.session = j->id};

    mo_jw_init(&j->w, &j->out);
    mo_connections_log(j->api->approvals, &from, &j->w);
    mo_api_reply(j, "application/json");
}

/* --- requests about one session ------------------------------------------ */

static void end_session(struct mo_api_job *j)
{
    struct mo_err e;

    if (mo_api_says(j->rq, "forget", "true"))
        mo_connections_forget(j->api->approvals, j->id);
    if (mo_session_end(j->api->sessions, mo_span_cstr(j->id),
                       mo_api_says(j->rq, "forget", "true"), mo_api_done, j,
                       &e) < 0)
        mo_api_error(j, &e);
}

/* --- what is said about it: about.h -------------------------------------- */

static int apply_change(void *ctx, struct mo_json data, struct mo_buf *out,
                        struct mo_err *e)
{
    struct mo_api_job *j = ctx;
    struct mo_json_doc change;
    int rc = mo_json_parse(mo_buf_view(&j->arg), 0, &change, e);

    if (rc == 0)
        mo_about_apply(data, change.root, out);
    return rc;
}

static void edit_session(struct mo_api_job *j)
{
    struct mo_span id = mo_span_cstr(j->id);
    struct mo_err e;
    int rc = 0;

    if (j->api->agent && mo_agent_is_open(j->api->agent, id))
        rc = mo_agent_about(j->api->agent, id, mo_buf_view(&j->arg),
                            mo_api_done, j, &e);
    else
        rc = mo_session_edit(j->api->sessions, id, apply_change, mo_api_done, j,
                             &e);
    if (rc < 0)
        mo_api_error(j, &e);
}

static void on_about_audited(void *ctx, const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    if (why)
        mo_api_error(j, why);
    else
        edit_session(j);
}

/* The members that change; of the instructions only their length: they may say
 * anything, as the arguments of calls do. */
static void put_change(struct mo_buf *b, struct mo_json change)
{
    struct mo_jw w = mo_jw_object(b);

    mo_json_each (at, change) {
        if (mo_json_str_eq(at.key, MO_SPAN("named")))
            continue;
        mo_jw_key_raw(&w, at.key);
        if (mo_json_str_eq(at.key, MO_SPAN("system")))
            mo_jw_u64(&w, at.val.n - 2);
        else
            mo_jw_raw(&w, mo_json_text(at.val));
    }
    mo_jw_end(&w);
}

/* The row of the audit log; then the change. */
static void audit_about(struct mo_api_job *j)
{
    mo_autobuf struct mo_buf entry = {.max = MO_ABOUT_MAX};
    struct mo_audit_row row = {
        .event = "kind",
        .subject = MO_SPAN("conversation"),
        .action = "changed",
        .session = mo_span_cstr(j->id),
        .decided_by = j->rq->who[0] ? j->rq->who : "operator",
        .via = j->rq->door,
    };
    struct mo_json_doc change;
    struct mo_err e;

    if (mo_json_parse(mo_buf_view(&j->arg), 0, &change, &e) == 0)
        put_change(&entry, change.root);
    row.entry = mo_buf_view(&entry);
    if (mo_buf_err(&entry))
        mo_api_problem(j, 503, "no_memory", "out of memory");
    else if (mo_audit_first(mo_approvals_audit(j->api->approvals), &row,
                            on_about_audited, j, &e) < 0)
        mo_api_error(j, &e);
}

enum { ROW, CALLS, CONVERSATION, CONNECTIONS, END };

/* Any process answers them. */
static void on_session_request(void *ctx, struct mo_req *rq)
{
    static mo_api_next *const next[] = {[ROW] = read_session,
                                        [CALLS] = read_calls,
                                        [CONVERSATION] = read_history};
    int what = rq->arg;
    struct mo_api_job *j = mo_api_session_job(ctx, rq);

    if (j)
        mo_api_if_shared(j, next[what]);
}

static void answer_here(struct mo_req *rq, struct mo_span body)
{
    int what = rq->arg;
    struct mo_api_job *j = mo_api_session_job(rq->data, rq);

    (void)body;
    if (j)
        mo_api_if_mine(j, what == END ? end_session : read_connections);
}

static void on_holder_request(void *ctx, struct mo_req *rq)
{
    mo_api_at_holder(ctx, rq, mo_span(NULL, 0), answer_here);
}

static void patch_here(struct mo_req *rq, struct mo_span body)
{
    struct mo_api_job *j = mo_api_session_job(rq->data, rq);
    struct mo_json_doc doc;
    struct mo_err e;

    if (j == NULL)
        return;
    if (mo_json_parse(body, 0, &doc, &e) < 0 ||
        mo_about_change(doc.root, &j->arg, &e) < 0)
        mo_api_problem(j, 400, "bad_request", e.msg);
    else
        mo_api_if_mine(j, audit_about);
}

static void patch_session(struct mo_req *rq, struct mo_span body)
{
    mo_api_at_holder(rq->data, rq, body, patch_here);
}

/* --- search and audit ---------------------------------------------------- */

static void put_row(struct mo_api_job *j, const struct mo_row *row)
{
    struct mo_jw *w = &j->w;

    mo_jw_obj(w);
    mo_jw_member_opt(w, "sessionId", row->session);
    if (row->seq > 0)
        mo_jw_member_u64(w, "seq", row->seq);
    mo_jw_member_u64(w, "at", row->at);
    mo_jw_member_raw(w, "what", row->doc.n > 0 ? row->doc : MO_SPAN("null"));
    mo_jw_end(w);
}

static void end_rows(struct mo_api_job *j, bool more)
{
    mo_jw_end(&j->w);
    mo_jw_member_bool(&j->w, "more", more);
    mo_jw_end(&j->w);
    mo_api_reply(j, "application/json");
}

/* The store finds a text: the person's rows begin with their name. Where the
 * request has a text of its own, mo_api_pages() sorts them out. */
static void put_owner(const struct mo_api_job *j, struct mo_buf *text)
{
    mo_buf_puts(text, "{\"owner\":");
    mo_json_quote(text, mo_span_cstr(j->caller));
}

static void ask(struct mo_api_job *j)
{
    static const struct mo_api_pages_cb search = {mo_api_among, put_row,
                                                  end_rows},
                                        audit = {mo_api_row_is_mine, put_row,
                                                 end_rows};
    struct mo_req *rq = j->rq;
    struct mo_read r = {.kind = j->is_search ? MO_READ_SEARCH : MO_READ_AUDIT};
    mo_autobuf struct mo_buf q = {.max = 1024};

    (void)mo_query_get(rq->query, "q", &q);
    if (q.len == 0 && !j->is_search && j->caller[0])
        put_owner(j, &q);
    r.limit = limit(rq, LIMIT);
    r.text = mo_buf_view(&q);
    if (j->is_search)
        r.among = mo_buf_view(&j->arg);
    if (!j->is_search) {
        r.before = number(rq, "before", 0);
        r.after = number(rq, "after", 0);
    }
    begin_list(j, "rows");
    if (j->is_search && r.text.n == 0)
        mo_api_problem(j, 400, "bad_request", "?q= says what to look for");
    else if (j->is_search && j->caller[0] && r.among.n == 0)
        end_rows(j, false); /* they have no session; empty would mean all */
    else
        mo_api_pages(j, &r, j->is_search ? &search : &audit);
}

static void get_audit(void *ctx, struct mo_req *rq)
{
    struct mo_api_job *j = mo_api_job(ctx, rq);

    if (j)
        ask(j);
}

static void get_search(void *ctx, struct mo_req *rq)
{
    struct mo_api_job *j = mo_api_job(ctx, rq);

    if (j == NULL)
        return;
    j->is_search = true;
    mo_api_find_mine(j, ask);
}

/* --- models -------------------------------------------------------------- */

/* Older clients want to know of each id. */
static void put_check(struct mo_jw *w, struct mo_json list)
{
    struct mo_json model = mo_json_get(list, "model");
    bool known = !mo_json_is(model, MO_JSON_STRING);

    mo_jw_obj(w);
    put_member(w, list, "provider");
    mo_jw_member_obj(w, "models");
    mo_json_each (it, mo_json_get(list, "models")) {
        struct mo_json id = mo_json_get(it.val, "id");

        if (!mo_json_is(id, MO_JSON_STRING))
            continue;
        known |= mo_span_eq(mo_json_text(id), mo_json_text(model));
        mo_jw_key_raw(w, id);
        mo_jw_cstr(w, "available");
    }
    if (!known) {
        mo_jw_key_raw(w, model);
        mo_jw_cstr(w, "not_found");
    }
    mo_jw_end(w);
    put_member(w, list, "providers");
    mo_jw_end(w);
}

static void on_check(void *arg, struct mo_span json, const struct mo_err *why)
{
    struct mo_api_job *j = arg;
    struct mo_json_doc doc;
    struct mo_err e;
    struct mo_jw w;

    if (why == NULL && mo_json_parse(json, 0, &doc, &e) < 0)
        why = &e;
    if (why) {
        mo_api_error(j, why);
        return;
    }
    mo_jw_init(&w, &j->out);
    put_check(&w, doc.root);
    mo_api_reply(j, "application/json");
}

enum { LIST, CHECK };

static void get_models(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    struct mo_api_job *j = mo_api_job(api, rq);
    struct mo_err e;

    if (j &&
        mo_models_list(api->models, rq->arg == CHECK ? on_check : mo_api_json,
                       j, &e) < 0)
        mo_api_error(j, &e);
}

/* --- who asks ------------------------------------------------------------ */

static void get_me(void *ctx, struct mo_req *rq)
{
    mo_autobuf struct mo_buf b = {.max = 1024};
    struct mo_jw w = mo_jw_object(&b);

    (void)ctx;
    mo_jw_member_cstr(&w, "name", rq->who);
    mo_jw_member_cstr(&w, "role", mo_role_name((enum mo_role)rq->role));
    mo_jw_end(&w);
    mo_api_send(rq, &b);
}

int mo_api_routes(struct mo_site *s, struct mo_api *api)
{
    static const struct mo_route routes[] = {
        {MO_HTTP_GET, "/api/me", 0, get_me},
        {MO_HTTP_GET, "/api/sessions", 0, get_sessions},
        {MO_HTTP_GET, "/api/sessions/{id}", 0, on_session_request, .arg = ROW},
        {MO_HTTP_DELETE, "/api/sessions/{id}", MO_ROUTE_WORKERS,
         on_holder_request, .arg = END},
        {MO_HTTP_PATCH, "/api/sessions/{id}", MO_ROUTE_WORKERS,
         .body = patch_session, .max = ABOUT_MAX},
        {MO_HTTP_GET, "/api/sessions/{id}/calls", 0, on_session_request,
         .arg = CALLS},
        {MO_HTTP_GET, "/api/sessions/{id}/history", 0, on_session_request,
         .arg = CONVERSATION},
        {MO_HTTP_GET, "/api/sessions/{id}/connections", MO_ROUTE_WORKERS,
         on_holder_request, .arg = CONNECTIONS},
        {MO_HTTP_GET, "/api/search", 0, get_search},
        {MO_HTTP_GET, "/api/audit", 0, get_audit},
        {MO_HTTP_GET, "/api/models/available", 0, get_models, .arg = LIST},
        {MO_HTTP_GET, "/api/models/check", 0, get_models, .arg = CHECK},
    };
    int rc = mo_openapi_route(s);

    if (rc == 0)
        rc = mo_site_add(s, routes, MO_COUNT(routes), api);
    if (rc == 0)
        rc = mo_api_shares_routes(s, api);
    if (rc == 0)
        rc = mo_api_presets_routes(s, api);
    if (rc == 0)
        rc = mo_api_links_routes(s, api);
    if (rc == 0)
        rc = mo_api_import_routes(s, api);
    if (rc == 0)
        rc = mo_api_offers_routes(s, api);
    if (rc == 0)
        rc = mo_api_apps_routes(s, api);
    if (rc == 0)
        rc = mo_api_files_routes(s, api);
    if (rc == 0)
        rc = mo_api_grants_routes(s, api);
    if (rc == 0)
        rc = mo_api_servers_routes(s, api);
    if (rc == 0)
        rc = mo_api_tokens_routes(s, api);
    if (rc == 0)
        rc = mo_api_spend_routes(s, api);
    if (rc == 0)
        rc = mo_api_providers_routes(s, api);
    return rc < 0 ? rc : mo_api_rules_routes(s, api);
}
