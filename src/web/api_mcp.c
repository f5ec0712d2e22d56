/*
 * api_mcp.c - see api_mcp.h.
 */
#include "web/api_mcp.h"

#include "codec/http/url.h"
#include "web/api_job.h"

#define MCP      "/api/mcp/"
#define WORD_MAX 1024 /* of a server's name, decoded */

/* --- what is asked ------------------------------------------------------- */

enum what { ALL, ADD, HEALTH, SNIPPETS, IMPORT, ONE, TEST, BELOW, NOTHING };

struct asked {
    enum what what;
    struct mo_buf server;
};

static const struct {
    const char *word;
    enum what what;
} words[] = {
    {"add", ADD},
    {"health", HEALTH},
    {"import", IMPORT},
    {"snippets", SNIPPETS},
};

/* The methods that each of them knows, for Allow. */
static const struct {
    const char *text;
    bool get, post, patch, del;
} methods[] = {
    [ALL] = {"GET, HEAD, POST", true, true, false, false},
    [ADD] = {"POST", false, true, false, false},
    [HEALTH] = {"GET, HEAD", true, false, false, false},
    [SNIPPETS] = {"GET, HEAD", true, false, false, false},
    [IMPORT] = {"POST", false, true, false, false},
    [ONE] = {"GET, HEAD, PATCH, DELETE", true, false, true, true},
    [TEST] = {"POST", false, true, false, false},
};

static bool may(enum what w, enum mo_http_method m)
{
    switch (m) {
    case MO_HTTP_GET:
    case MO_HTTP_HEAD:
        return methods[w].get;
    case MO_HTTP_POST:
        return methods[w].post;
    case MO_HTTP_PATCH:
        return methods[w].patch;
    case MO_HTTP_DELETE:
        return methods[w].del;
    default:
        return false;
    }
}

static enum what fixed(struct mo_span word)
{
    for (size_t i = 0; i < MO_COUNT(words); i++) {
        if (mo_span_is(word, words[i].word))
            return words[i].what;
    }
    return ONE;
}

static void asked_init(struct asked *x, const struct mo_req *rq)
{
    struct mo_span rest = mo_span_skip(rq->path, sizeof(MCP) - 1);
    struct mo_span name = mo_span_cut(&rest, '/');

    mo_buf_init(&x->server, WORD_MAX);
    x->what = ALL;
    if (rq->path.n < sizeof(MCP) - 1)
        return;
    if (rest.p == NULL)
        x->what = fixed(name);
    else
        x->what = mo_span_is(rest, "test") ? TEST : BELOW;
    if (name.n == 0 || mo_pct_decode(&x->server, name, false) < 0)
        x->what = NOTHING;
}

static void asked_fini(struct asked *x)
{
    mo_buf_fini(&x->server);
}

/* --- answers ------------------------------------------------------------- */

static const struct {
    int code, status;
    const char *name;
} statuses[] = {
    {MO_EPOLICY, 403, "manage_off"},   {MO_EEXISTS, 409, "exists"},
    {MO_EUNAVAIL, 422, "test_failed"}, {MO_EPROTO, 400, "bad_request"},
    {MO_ETOOBIG, 400, "bad_request"},  {MO_ECLOSED, 503, "closing"},
};

static void refuse(struct mo_api_job *j, const struct mo_err *why)
{
    for (size_t i = 0; i < MO_COUNT(statuses); i++) {
        if (statuses[i].code == why->code) {
            mo_api_problem(j, statuses[i].status, statuses[i].name, why->msg);
            return;
        }
    }
    mo_api_error(j, why);
}

static void on_json(void *arg, struct mo_span json, const struct mo_err *why)
{
    struct mo_api_job *j = arg;

    if (why) {
        refuse(j, why);
        return;
    }
    mo_buf_span(&j->out, json);
    mo_api_reply(j, "application/json");
}

static struct mo_api_job *begin(struct mo_api *api, struct mo_req *rq)
{
    if (api->manage)
        return mo_api_job(api, rq);
    mo_req_problem(rq, 503, "not_ready", "the servers are not known yet");
    return NULL;
}

static int put_snippets(struct mo_api_job *j)
{
    const struct mo_manage_where w = {
        .host = mo_http_get(j->rq->head, "host"),
        .tls = mo_req_is_tls(j->rq),
    };

    return mo_manage_snippets(j->api->manage, &w, &j->out);
}

static void look(struct mo_api *api, struct mo_req *rq, const struct asked *x)
{
    struct mo_api_job *j = begin(api, rq);
    struct mo_manage *m = api->manage;
    struct mo_err e = {0};
    int rc = 0;

    if (j == NULL)
        return;
    if (x->what == ONE)
        rc = mo_manage_one(m, mo_buf_view(&x->server), &j->out, &e);
    else if (x->what == HEALTH)
        rc = mo_manage_health(m, &j->out);
    else if (x->what == SNIPPETS)
        rc = put_snippets(j);
    else
        rc = mo_manage_list(m, &j->out);
    if (rc == MO_ENOTFOUND)
        mo_api_error(j, &e);
    else if (rc < 0)
        mo_api_problem(j, 503, "no_memory", "out of memory");
    else
        mo_api_reply(j, "application/json");
}

/* --- changes ------------------------------------------------------------- */

static bool says(const struct mo_req *rq, const char *key, const char *word)
{
    mo_autobuf struct mo_buf b = {.max = 64};

    return mo_query_get(rq->query, key, &b) == 0 &&
           mo_span_is(mo_buf_view(&b), word);
}

static enum mo_manage_verb verb_of(enum what w, enum mo_http_method m)
{
    if (w == IMPORT)
        return MO_MANAGE_IMPORT;
    if (w == TEST)
        return MO_MANAGE_TEST;
    if (w != ONE)
        return MO_MANAGE_ADD;
    return m == MO_HTTP_DELETE ? MO_MANAGE_REMOVE : MO_MANAGE_PATCH;
}

static void on_body(struct mo_req *rq, struct mo_span body)
{
    struct mo_api *api = rq->data;
    struct mo_api_job *j = begin(api, rq);
    struct mo_manage_ask c = {
        .body = body,
        .who = mo_span_cstr(mo_req_peer(rq)),
        .test = says(rq, "test", "true"),
        .dry = says(rq, "dryRun", "true"),
        .replace = says(rq, "replace", "true"),
        .clear = says(rq, "secrets", "false"),
    };
    struct mo_err e = {0};
    struct asked x;

    if (j == NULL)
        return;
    asked_init(&x, rq);
    c.verb = verb_of(x.what, rq->head->method);
    if (x.what == ADD && !c.dry)
        j->status = 201; /* older clients look for it */
    if (x.what == ONE || x.what == TEST)
        c.server = mo_buf_view(&x.server);
    if (mo_manage_change(api->manage, &c, on_json, j, &e) < 0)
        refuse(j, &e);
    asked_fini(&x);
}

static void serve(struct mo_api *api, struct mo_req *rq, const struct asked *x)
{
    enum mo_http_method m = rq->head->method;

    if (!may(x->what, m)) {
        mo_req_header(rq, "Allow", mo_span_cstr(methods[x->what].text));
        mo_req_problem(rq, 405, "method_not_allowed",
                       "that cannot be done with it");
        return;
    }
    if (m == MO_HTTP_GET || m == MO_HTTP_HEAD) {
        look(api, rq, x);
        return;
    }
    rq->data = api;
    mo_req_body(rq, MO_MANAGE_BODY_MAX, on_body);
}

static void on_any(void *ctx, struct mo_req *rq)
{
    struct asked x;

    asked_init(&x, rq);
    if (x.what == BELOW)
        mo_api_servers_one(ctx, rq);
    else if (x.what == NOTHING)
        mo_req_problem(rq, 404, "not_found", "there is nothing here");
    else
        serve(ctx, rq, &x);
    asked_fini(&x);
}

int mo_api_mcp_routes(struct mo_site *s, struct mo_api *api)
{
    const struct mo_route routes[] = {
        {MO_HTTP_OTHER, "/api/mcp", 0, on_any, api},
        {MO_HTTP_OTHER, MCP, MO_ROUTE_PREFIX, on_any, api},
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < MO_COUNT(routes); i++)
        rc = mo_site_route(s, &routes[i]);
    return rc;
}
