#include "web/api_approvals.h"

#include "base/mem.h"
#include "codec/json/json.h"
#include "policy/exact.h"

#define ALL      "/api/approvals"
#define ONE      ALL "/"
#define VERIFY   "/api/audit/verify"
#define LIST_MAX ((size_t)64 * 1024 * 1024)
#define BODY_MAX (MO_EXACT_MAX + TEXT_MAX) /* with a call's arguments */
#define TEXT_MAX ((size_t)64 * 1024)

static bool is_there(const struct mo_api_approvals *a, struct mo_req *rq)
{
    if (a->approvals == NULL)
        mo_req_problem(rq, 503, "not_ready", "the gateway is not there yet");
    return a->approvals != NULL;
}

static void problem(struct mo_req *rq, const struct mo_err *e)
{
    static const struct {
        int rc, status;
        const char *code;
    } rows[] = {
        {MO_ENOTFOUND, 404, "not_found"},
        {MO_EPOLICY, 409, "changed"},
        {MO_EINVAL, 400, "bad_request"},
        {MO_EBUSY, 503, "busy"},
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (rows[i].rc != e->code)
            continue;
        mo_req_problem(rq, rows[i].status, rows[i].code, e->msg);
        return;
    }
    mo_req_problem(rq, 503, "unavailable", e->msg);
}

static void on_list(void *ctx, struct mo_req *rq)
{
    struct mo_api_approvals *a = ctx;
    mo_autobuf struct mo_buf b = {.max = LIST_MAX};

    if (!is_there(a, rq))
        return;
    if (mo_approvals_list(a->approvals, &b) < 0)
        mo_req_problem(rq, 503, "no_memory", "out of memory");
    else
        mo_req_reply(rq, 200, "application/json", mo_buf_view(&b));
}

/* --- decisions ----------------------------------------------------------- */

static int text(struct mo_json from, const char *key, struct mo_arena *a,
                struct mo_span *out)
{
    struct mo_json v = mo_json_get(from, key);

    *out = (struct mo_span){NULL, 0};
    if (!v.p)
        return 0;
    return mo_json_is(v, MO_JSON_STRING) ? mo_json_str(v, a, out) : MO_EINVAL;
}

static int decide(struct mo_api_approvals *a, struct mo_req *rq,
                  struct mo_json body, struct mo_arena *mem, struct mo_err *e)
{
    struct mo_approval_decision d = {
        .id = mo_span_skip(rq->path, sizeof(ONE) - 1),
        .args = mo_json_get(body, "args"),
        .who = mo_req_peer(rq),
    };

    if (mo_json_bool(mo_json_get(body, "approved"), &d.approved) < 0 ||
        text(body, "digest", mem, &d.digest) < 0 ||
        text(body, "reason", mem, &d.reason) < 0 ||
        (d.args.p && !mo_json_is(d.args, MO_JSON_OBJECT)))
        return mo_fail(e, MO_EINVAL,
                       "the body is {approved: boolean, digest: string, "
                       "reason?: string, args?: object}");
    if (d.approved && d.digest.n == 0)
        return mo_fail(e, MO_EINVAL,
                       "a yes needs the digest of what was shown");
    if (d.args.p && !d.approved)
        return mo_fail(e, MO_EINVAL, "a no needs no other arguments");
    return mo_approvals_decide(a->approvals, &d, e);
}

static int accept_tool(struct mo_api_approvals *a, struct mo_req *rq,
                       struct mo_json body, struct mo_arena *mem,
                       struct mo_err *e)
{
    struct mo_approval_accept x = {.who = mo_req_peer(rq)};

    if (text(body, "server", mem, &x.server) < 0 ||
        text(body, "tool", mem, &x.tool) < 0 ||
        text(body, "digest", mem, &x.digest) < 0 || x.server.n == 0 ||
        x.tool.n == 0 || x.digest.n == 0)
        return mo_fail(e, MO_EINVAL,
                       "the body is {server: string, tool: string, digest: "
                       "string}");
    return mo_approvals_accept(a->approvals, &x, e);
}

static void on_body(struct mo_req *rq, struct mo_span body)
{
    struct mo_api_approvals *a = rq->data;
    struct mo_json_doc doc;
    mo_autoarena struct mo_arena mem = {.cap = TEXT_MAX};
    struct mo_err e;
    int rc;

    if (mo_json_parse(body, 0, &doc, NULL) < 0 ||
        !mo_json_is(doc.root, MO_JSON_OBJECT))
        rc = mo_fail(&e, MO_EINVAL, "the body must be a JSON object");
    else if (mo_span_is(rq->path, ONE "tools"))
        rc = accept_tool(a, rq, doc.root, &mem, &e);
    else
        rc = decide(a, rq, doc.root, &mem, &e);
    if (rc < 0)
        problem(rq, &e);
    else
        mo_req_reply(rq, 200, "application/json", MO_SPAN("{\"ok\":true}"));
}

static void on_one(void *ctx, struct mo_req *rq)
{
    struct mo_api_approvals *a = ctx;

    if (rq->head->method != MO_HTTP_POST) {
        mo_req_header(rq, "Allow", MO_SPAN("POST"));
        mo_req_problem(rq, 405, "method_not_allowed",
                       "a call is decided with POST");
        return;
    }
    if (!is_there(a, rq))
        return;
    rq->data = a;
    mo_req_body(rq, BODY_MAX, on_body);
}

/* --- the audit log ------------------------------------------------------- */

struct job { /* freed when it is answered and the request is gone */
    struct mo_req *rq;
    bool answered;
};

static void job_check(struct job *j)
{
    if (j->answered && !j->rq)
        mo_free(j);
}

static void on_gone(struct mo_req *rq)
{
    struct job *j = rq->data;

    j->rq = NULL;
    job_check(j);
}

static void on_verified(void *arg, struct mo_span json,
                        const struct mo_err *why)
{
    struct job *j = arg;

    j->answered = true;
    if (j->rq && why)
        problem(j->rq, why);
    else if (j->rq)
        mo_req_reply(j->rq, 200, "application/json", json);
    job_check(j);
}

static void on_verify(void *ctx, struct mo_req *rq)
{
    struct mo_api_approvals *a = ctx;
    struct mo_err e;
    struct job *j;

    if (!is_there(a, rq))
        return;
    j = mo_new(struct job);
    if (!j) {
        mo_req_problem(rq, 503, "no_memory", "out of memory");
        return;
    }
    j->rq = rq;
    rq->data = j;
    rq->gone = on_gone;
    if (mo_audit_verify(mo_approvals_audit(a->approvals), on_verified, j, &e) ==
        0)
        return;
    j->answered = true;
    problem(rq, &e);
}

/* --- which --------------------------------------------------------------- */

static const struct mo_route routes[] = {
    {MO_HTTP_GET, ALL, 0, on_list, NULL},
    {MO_HTTP_OTHER, ONE, MO_ROUTE_PREFIX, on_one, NULL},
    {MO_HTTP_GET, VERIFY, 0, on_verify, NULL},
};

int mo_api_approvals_routes(struct mo_site *s, struct mo_api_approvals *a)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < MO_COUNT(routes); i++) {
        struct mo_route r = routes[i];

        r.ctx = a;
        rc = mo_site_route(s, &r);
    }
    return rc;
}

void mo_api_approvals_handle(struct mo_api_approvals *a, struct mo_req *rq)
{
    for (size_t i = 0; i < MO_COUNT(routes); i++) {
        const struct mo_route *r = &routes[i];
        bool fits = r->flags & MO_ROUTE_PREFIX
                        ? mo_span_starts(rq->path, mo_span_cstr(r->path))
                        : mo_span_is(rq->path, r->path);

        if (!fits ||
            (r->method != MO_HTTP_OTHER && r->method != rq->head->method))
            continue;
        r->handle(a, rq);
        return;
    }
    mo_req_problem(rq, 404, "not_found", "there is nothing here");
}
