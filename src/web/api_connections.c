/* api_connections.c - a person's own sign-ins at servers with
 * `credentials: user` (connect/accounts.h).
 *
 *   GET    /api/connections        which servers, and where one is connected
 *   POST   /api/connections/NAME   {"url"}: the address to open in the browser
 *   DELETE /api/connections/NAME   {"ok", "revoked"}: forget the tokens
 *   GET    /connections/callback   the browser comes back from the issuer
 *   GET    /connections/finish     the same browser, with its cookie
 *
 * Everything is about the person who sent the request (rq->who). The issuer's
 * redirect comes from another site, so it carries no cookie: the callback only
 * sends the browser on to a page of our own site, and that request says who it
 * is. The sign-in is looked for among those of this person alone, in every
 * process of the store: the browser may come back to another server. */
#include "codec/http/url.h"
#include "connect/accounts.h"
#include "servers/gateway_setup.h"
#include "web/api_everywhere.h"
#include "web/api_job.h"

#define NAME_MAX_ ((size_t)1024)
#define QUERY_MAX ((size_t)16384)
#define FINISH_MS 30000 /* for the issuer's answer, in another process */

static struct mo_accounts *all_of(const struct mo_api *api)
{
    return mo_server_link_accounts(mo_gateway_setup_link(api->gateway), NULL);
}

static struct mo_accounts *accounts_of(struct mo_api *api, struct mo_req *rq)
{
    struct mo_accounts *all = NULL;

    if (!mo_api_has(rq, api->gateway, "the servers are not known yet"))
        return NULL;
    all = all_of(api);
    if (!all)
        mo_req_problem(rq, 503, "no_memory", "out of memory");
    return all;
}

/* Errors that a person can do something about. */
static void refuse(struct mo_api_job *j, const struct mo_err *why)
{
    static const struct mo_api_status rows[] = {
        {MO_ENOTFOUND, 404, "not_found"},
        {MO_EINVAL, 403, "sign_in_refused"},
        {MO_EPOLICY, 403, "sign_in_refused"},
        {MO_EBUSY, 409, "busy"},
        {0, 502, "server_unavailable"},
    };
    const struct mo_api_status *s = mo_api_status(rows, why->code);

    mo_api_problem(j, s->status, s->name, why->msg);
}

static void get_connections(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    struct mo_accounts *all = accounts_of(api, rq);
    mo_autobuf struct mo_buf b = {.max = MO_API_ANSWER_MAX};
    struct mo_jw w;

    if (!all)
        return;
    w = mo_jw_object(&b);
    mo_jw_member_cstr(&w, "who", rq->who);
    mo_jw_member_arr(&w, "connections");
    mo_accounts_put(all, rq->who, &w);
    mo_jw_end_all(&w);
    mo_api_send(rq, &b);
}

/* --- connect and disconnect ----------------------------------------------- */

/* The value of `state`, by which a sign-in is known. */
static struct mo_span state_of(struct mo_span query)
{
    while (query.n) {
        struct mo_span value = mo_span_cut(&query, '&');
        struct mo_span key = mo_span_cut(&value, '=');

        if (mo_span_is(key, "state"))
            return value;
    }
    return mo_span(NULL, 0);
}

/* The browser may come back to another worker. */
static void keep_home(const struct mo_api *api, const char *url)
{
    struct mo_span query = mo_span_cstr(url), state;

    (void)mo_span_cut(&query, '?');
    state = state_of(query);
    if (api->here && state.n)
        api->here(api->elsewhere_ctx, state);
}

void mo_api_connected(struct mo_api *api, const char *server, const char *who,
                      bool on)
{
    mo_gateway_person(mo_gateway_setup_gateway(api->gateway), server, who, on);
    if (!api->tell)
        return;
    api->tell(api->elsewhere_ctx, server, who, on);
    if (on) /* their next request may come to any worker */
        mo_gateway_learn(mo_gateway_setup_gateway(api->gateway), server, who);
}

static void on_begun(void *ctx, const char *url, const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_jw w;

    if (why) {
        refuse(j, why);
        return;
    }
    keep_home(j->api, url);
    w = mo_jw_object(&j->out);
    mo_jw_member_cstr(&w, "url", url);
    mo_jw_end(&w);
    mo_api_reply(j, "application/json");
}

static void on_removed(void *ctx, const char *text, const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_jw w = mo_jw_object(&j->out);

    (void)text;
    mo_jw_member_bool(&w, "ok", true);
    mo_jw_member_bool(&w, "revoked", !why);
    if (why)
        mo_jw_member_cstr(&w, "reason", why->msg);
    mo_jw_end(&w);
    mo_api_reply(j, "application/json");
}

enum { CONNECT, DISCONNECT };

/* The name of the server is in j->arg, the person in j->owner. */
static void connect_now(struct mo_api_job *j)
{
    struct mo_err e;

    if (mo_accounts_begin(all_of(j->api), mo_buf_cstr(&j->arg),
                          mo_buf_cstr(&j->owner), on_begun, j, &e) < 0)
        refuse(j, &e);
}

static void disconnect_now(struct mo_api_job *j)
{
    const char *server = mo_buf_cstr(&j->arg), *who = mo_buf_cstr(&j->owner);
    struct mo_err e;

    mo_api_connected(j->api, server, who, false);
    if (mo_accounts_remove(all_of(j->api), server, who, on_removed, j, &e) < 0)
        refuse(j, &e);
}

static void on_recorded(void *ctx, const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    if (why)
        mo_api_error(j, why);
    else
        j->next(j);
}

static void record(struct mo_api_job *j, const char *action)
{
    const struct mo_audit_row row = {
        .event = "kind",
        .subject = MO_SPAN("account"),
        .server = mo_buf_view(&j->arg),
        .action = action,
        .who = mo_buf_view(&j->owner),
        .via = j->rq->door,
        .peer = mo_span_cstr(mo_req_peer(j->rq)),
    };
    struct mo_err e;

    if (mo_audit_first(mo_approvals_audit(j->api->approvals), &row, on_recorded,
                       j, &e) < 0)
        mo_api_error(j, &e);
}

/* Nonsense gets no row. */
static bool is_possible(struct mo_accounts *all, struct mo_api_job *j, int what)
{
    const char *server = mo_buf_cstr(&j->arg);

    if (strlen(server) != j->arg.len)
        return false;
    return what == CONNECT
               ? mo_accounts_serves(all, server)
               : mo_accounts_has(all, server, mo_buf_view(&j->owner));
}

static void change(struct mo_req *rq, struct mo_span body)
{
    struct mo_api *api = rq->data;
    struct mo_accounts *all = accounts_of(api, rq);
    struct mo_api_job *j = all ? mo_api_job_new(api, rq) : NULL;

    (void)body;
    if (!j)
        return;
    if (mo_buf_puts(&j->owner, rq->who) < 0 ||
        mo_pct_decode(&j->arg, mo_req_segment(rq, 2), false) < 0 ||
        !is_possible(all, j, rq->arg)) {
        mo_api_problem(j, 404, "not_found",
                       rq->arg == CONNECT ? "no such server" : "not connected");
        return;
    }
    j->next = rq->arg == CONNECT ? connect_now : disconnect_now;
    record(j, rq->arg == CONNECT ? "connect" : "disconnect");
}

/* --- come back ------------------------------------------------------------ */

/* Characters of a query that are also plain text in an HTML attribute. */
static bool is_plain_query(struct mo_span q)
{
    return q.n && q.n <= QUERY_MAX &&
           mo_span_only(q, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxy"
                           "z0123456789-._~%&=+:/?@!*,;$()");
}

static void on_callback(void *ctx, struct mo_req *rq)
{
    mo_autobuf struct mo_buf b = {.max = 8 * QUERY_MAX};

    (void)ctx;
    if (!is_plain_query(rq->query)) {
        mo_req_problem(rq, 400, "bad_request", "no answer of an issuer");
        return;
    }
    (void)mo_buf_puts(&b, "<!doctype html><title>Connecting</title>"
                          "<meta http-equiv=\"refresh\" content=\"0;url="
                          "/connections/finish?");
    for (size_t i = 0; i < rq->query.n; i++) {
        if (rq->query.p[i] == '&')
            (void)mo_buf_puts(&b, "&amp;");
        else
            (void)mo_buf_putc(&b, rq->query.p[i]);
    }
    (void)mo_buf_puts(&b, "\">\n");
    if (mo_buf_err(&b))
        mo_req_problem(rq, 503, "no_memory", "out of memory");
    else
        mo_req_reply(rq, 200, "text/html; charset=utf-8", mo_buf_view(&b));
}

static void on_finished(void *ctx, const char *server, const struct mo_err *why)
{
    struct mo_api_job *j = ctx;

    if (why) {
        refuse(j, why);
        return;
    }
    mo_api_connected(j->api, server, mo_buf_cstr(&j->arg), true);
    (void)mo_buf_puts(&j->out, "<!doctype html><title>Connected</title>"
                               "<meta http-equiv=\"refresh\" content=\"0;url="
                               "/connections?connected=");
    (void)mo_pct_encode(&j->out, mo_span_cstr(server));
    (void)mo_buf_puts(&j->out, "\">Connected. You can close this window.\n");
    mo_api_reply(j, "text/html; charset=utf-8");
}

/* No sign-in waits here for this answer. Another process may have begun it. */
static void finish_elsewhere(struct mo_api *api, struct mo_req *rq)
{
    static const struct mo_api_question q = {
        .absent = MO_API_NOT_OPEN,
        .is_only = true,
        .ms = FINISH_MS,
        .ctype = "text/html; charset=utf-8",
        .status = 403,
        .code = "sign_in_refused",
        .none = "no sign-in of yours waits for this answer; begin again",
    };

    if (mo_api_asks_others(api, rq))
        mo_api_ask_everywhere(api, rq, mo_span(NULL, 0), &q);
    else
        mo_req_problem(rq, rq->from ? MO_API_NOT_OPEN : q.status, q.code,
                       q.none);
}

static void on_finish(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    struct mo_accounts *all = NULL;
    struct mo_span state = state_of(rq->query);
    struct mo_api_job *j;
    struct mo_err e;

    if (mo_gate_is_foreign(rq)) {
        mo_req_problem(rq, 403, "origin_refused",
                       "another site cannot finish a sign-in");
        return;
    }
    if (api->elsewhere && state.n && !mo_req_is_inner(rq) && !rq->from &&
        api->elsewhere(api->elsewhere_ctx, rq, state, mo_span(NULL, 0)))
        return;
    all = accounts_of(api, rq);
    j = all ? mo_api_job_new(api, rq) : NULL;
    if (!j)
        return;
    (void)mo_buf_puts(&j->arg, rq->who);
    if (mo_accounts_finish(all, rq->who, rq->query, on_finished, j, &e) < 0)
        finish_elsewhere(api, mo_api_take(j));
}

int mo_api_connections_routes(struct mo_site *s, struct mo_api *api)
{
    static const struct mo_route routes[] = {
        {MO_HTTP_GET, "/api/connections", 0, get_connections},
        {MO_HTTP_POST, "/api/connections/{name}", .body = change,
         .max = NAME_MAX_, .arg = CONNECT},
        {MO_HTTP_DELETE, "/api/connections/{name}", .body = change,
         .max = NAME_MAX_, .arg = DISCONNECT},
        {MO_HTTP_GET, "/connections/callback", 0, on_callback},
        {MO_HTTP_GET, "/connections/finish", MO_ROUTE_WORKERS, on_finish},
    };

    return mo_site_add(s, routes, MO_COUNT(routes), api);
}
