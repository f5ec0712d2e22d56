/*
 * api_approvals.c - calls of the gateway that wait for approval, the approval
 * rules, and the check of the audit log; see api.h.
 */
#include <stdio.h>

#include "agent/chat/chat.h"
#include "policy/exact.h"
#include "policy/rules_api.h"
#include "web/api_everywhere.h"
#include "web/api_job.h"

#define LIST_MAX  ((size_t)64 * 1024 * 1024)
#define TEXT_MAX  ((size_t)64 * 1024)
#define BODY_MAX  (MO_EXACT_MAX + TEXT_MAX) /* with a call's arguments */
#define RULES_MAX ((size_t)4 * 1024 * 1024)
#define RULE_MAX  ((size_t)1024 * 1024)

static bool has_approvals(const struct mo_api *api, struct mo_req *rq)
{
    return mo_api_has(rq, api->approvals, "the gateway is not there yet");
}

static const struct mo_api_status problems[] = {
    {MO_ENOTFOUND, 404, "not_found"}, {MO_EPOLICY, 409, "changed"},
    {MO_EINVAL, 400, "bad_request"},  {MO_EBUSY, 503, "busy"},
    {0, 503, "unavailable"},
};

/* The conversations of this process; NULL: none. */
static struct mo_agent *agent_of(const struct mo_api *api)
{
    return api->talk && api->talk->peers ? mo_peers_agent(api->talk->peers)
                                         : NULL;
}

static void get_approvals(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    mo_autobuf struct mo_buf b = {.max = LIST_MAX};
    struct mo_identity who;
    struct mo_jw w;

    if (!has_approvals(api, rq))
        return;
    who = mo_api_identity(api, rq);
    w = mo_jw_object(&b);
    mo_jw_member_arr(&w, "approvals");
    mo_approvals_put_list(api->approvals, &who, &w);
    if (agent_of(api))
        mo_agent_put_panel_calls(agent_of(api), &who, &w);
    mo_jw_end(&w);
    mo_approvals_put_changed(api->approvals, &who, &w);
    mo_jw_end(&w);
    if (!mo_buf_err(&b) && mo_api_asks_others(api, rq))
        mo_api_list_everywhere(api, rq, mo_buf_view(&b));
    else
        mo_api_send(rq, &b);
}

/* --- decisions ----------------------------------------------------------- */

/* For the audit log. */
static const char *name_of(const struct mo_req *rq)
{
    return rq->who[0] ? rq->who : mo_req_peer(rq);
}

/* -1: it is something else. */
static int remember_of(struct mo_json v)
{
    if (!v.p)
        return MO_REMEMBER_NO;
    if (mo_json_str_eq(v, MO_SPAN("session")))
        return MO_REMEMBER_SESSION;
    return mo_json_str_eq(v, MO_SPAN("always")) ? MO_REMEMBER_ALWAYS : -1;
}

static int read_decision(struct mo_json body, struct mo_arena *mem,
                         struct mo_approval_decision *d, struct mo_span *digest,
                         struct mo_err *e)
{
    int remember = remember_of(mo_json_get(body, "remember"));

    if (remember < 0 ||
        mo_json_bool(mo_json_get(body, "approved"), &d->approved) < 0 ||
        mo_api_text(body, "digest", mem, digest) < 0 ||
        mo_api_text(body, "reason", mem, &d->reason) < 0 ||
        (d->args.p && !mo_json_is(d->args, MO_JSON_OBJECT)))
        return mo_fail(e, MO_EINVAL,
                       "the body is {approved: boolean, digest: string, "
                       "reason?: string, args?: object, remember?: "
                       "\"session\" or \"always\"}");
    d->remember = (enum mo_remember)remember;
    if (mo_json_get(body, "digest").p)
        d->digest = digest;
    if (d->approved && !d->digest)
        return mo_fail(e, MO_EINVAL,
                       "a yes needs the digest of what was shown");
    if (d->args.p && !d->approved)
        return mo_fail(e, MO_EINVAL, "a no needs no other arguments");
    return 0;
}

static void refuse_approver(struct mo_api *api, struct mo_req *rq,
                            const char *why)
{
    const struct mo_audit_row row = {
        .reason = "not_the_approver",
        .via = rq->door,
        .who = mo_span_cstr(rq->who),
        .peer = mo_span_cstr(mo_req_peer(rq)),
        .path = MO_SPAN("/api/approvals/{id}"),
    };

    mo_audit_attempt(mo_approvals_audit(api->approvals), &row);
    mo_req_problem(rq, 403, "not_the_approver", why);
}

/* missing: so many persons must still approve. */
static void send_decided(struct mo_req *rq, unsigned missing)
{
    mo_autobuf struct mo_buf b = {.max = 64};

    (void)mo_buf_printf(&b, "{\"ok\":true,\"missing\":%u}", missing);
    mo_api_send(rq, &b);
}

/* The answer of a conversation. */
static void on_decided(void *ctx, const struct mo_ack *a)
{
    static const struct {
        const char *code;
        int status;
    } rows[] = {
        {"unknown_call", 404},
        {"changed", 409},
        {"denied", 409},
        {"busy", 409},
        {"not_the_approver", 403},
        {"operator_only", 403},
        {"state_unavailable", 503},
        {"closed", 404},
    };
    struct mo_api_job *j = ctx;
    char text[512];
    size_t i = 0;

    if (a->ok) {
        (void)mo_buf_printf(&j->out, "{\"ok\":true%s%.*s}",
                            a->extra.n ? "," : "", (int)a->extra.n,
                            a->extra.n ? a->extra.p : "");
        mo_api_reply(j, "application/json");
        return;
    }
    while (i < MO_COUNT(rows) && strcmp(rows[i].code, a->code) != 0)
        i++;
    (void)snprintf(text, sizeof(text), "%.*s", (int)a->message.n, a->message.p);
    mo_api_problem(j, i < MO_COUNT(rows) ? rows[i].status : 400, a->code, text);
}

/* About a call of a conversation, whose id is "SESSION.CALL". False: there is
 * none for this person. */
static bool decide_in_chat(struct mo_api *api, struct mo_req *rq,
                           const struct mo_approval_decision *x)
{
    const struct mo_decider by = {
        .person = mo_api_identity(api, rq), .who = x->who, .door = x->door};
    const struct mo_decision d = {
        .call = x->id,
        .approved = x->approved,
        .digest = x->digest,
        .reason = x->reason,
        .args = x->args.p ? mo_json_text(x->args) : mo_span(NULL, 0),
    };
    struct mo_api_job *j;

    if (!agent_of(api) || mo_span_find(x->id, '.') < 0 ||
        !mo_agent_has_call(agent_of(api), &by.person, x->id))
        return false;
    j = mo_api_job_new(api, rq);
    if (j && !mo_agent_decide(agent_of(api), &by, &d, on_decided, j))
        mo_api_problem(j, 404, "not_found",
                       "no such call is waiting for a decision");
    return true;
}

static void decide(struct mo_api *api, struct mo_req *rq, struct mo_json body,
                   struct mo_arena *mem)
{
    unsigned missing = 0;
    struct mo_approval_decision d = {
        .id = mo_req_segment(rq, 2),
        .args = mo_json_get(body, "args"),
        .who = name_of(rq),
        .caller = rq->caller,
        .name = rq->who,
        .is_approver = rq->role >= MO_ROLE_APPROVER,
        .door = rq->door,
        .people = mo_api_identity(api, rq).people,
        .groups = rq->groups,
        .missing = &missing,
    };
    const char *forbidden = NULL;
    struct mo_span digest;
    struct mo_err e;
    int rc = read_decision(body, mem, &d, &digest, &e);

    if (rc == 0 && decide_in_chat(api, rq, &d))
        return;
    if (rc == 0)
        forbidden = mo_approvals_forbidden(api->approvals, &d);
    if (forbidden) {
        refuse_approver(api, rq, forbidden);
        return;
    }
    if (rc == 0)
        rc = mo_approvals_decide(api->approvals, &d, &e);
    if (rc == MO_ENOTFOUND && mo_api_asks_others(api, rq))
        mo_api_decide_everywhere(api, rq, mo_json_text(body),
                                 "no such call is waiting for a decision");
    else if (rc < 0)
        mo_api_refuse(rq, problems, &e);
    else
        send_decided(rq, missing);
}

static int accept_tool(struct mo_api *api, struct mo_req *rq,
                       struct mo_json body, struct mo_arena *mem,
                       struct mo_err *e)
{
    struct mo_approval_accept x = {.who = name_of(rq)};

    if (mo_api_text(body, "server", mem, &x.server) < 0 ||
        mo_api_text(body, "tool", mem, &x.tool) < 0 ||
        mo_api_text(body, "digest", mem, &x.digest) < 0 || x.server.n == 0 ||
        x.tool.n == 0 || x.digest.n == 0)
        return mo_fail(e, MO_EINVAL,
                       "the body is {server: string, tool: string, digest: "
                       "string}");
    return mo_approvals_accept(api->approvals, &x, e);
}

enum { DECIDE, ACCEPT };

static void post_decision(struct mo_req *rq, struct mo_span body)
{
    struct mo_api *api = rq->data;
    struct mo_json_doc doc;
    mo_autoarena struct mo_arena mem = {.cap = TEXT_MAX};
    struct mo_err e;
    int rc;

    if (!has_approvals(api, rq))
        return;
    if (mo_json_parse(body, 0, &doc, NULL) < 0 ||
        !mo_json_is(doc.root, MO_JSON_OBJECT)) {
        rc = mo_fail(&e, MO_EINVAL, "the body must be a JSON object");
    } else if (rq->arg == ACCEPT) {
        rc = accept_tool(api, rq, doc.root, &mem, &e);
    } else {
        decide(api, rq, doc.root, &mem);
        return;
    }
    if (rc == MO_ENOTFOUND && rq->arg == ACCEPT && mo_api_asks_others(api, rq))
        mo_api_decide_everywhere(api, rq, body,
                                 "no such tool is waiting to be accepted");
    else if (rc < 0)
        mo_api_refuse(rq, problems, &e);
    else
        mo_api_send_ok(rq);
}

/* --- the audit log ------------------------------------------------------- */

static void on_verified(void *arg, struct mo_span json,
                        const struct mo_err *why)
{
    const struct mo_api_status *s =
        why ? mo_api_status(problems, why->code) : NULL;

    if (s)
        mo_api_problem(arg, s->status, s->name, why->msg);
    else
        mo_api_json(arg, json, NULL);
}

static void get_verify(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    struct mo_api_job *j =
        has_approvals(api, rq) ? mo_api_job_new(api, rq) : NULL;
    struct mo_err e;

    if (j && mo_audit_verify(mo_approvals_audit(api->approvals), on_verified, j,
                             &e) < 0)
        on_verified(j, mo_span(NULL, 0), &e);
}

static const struct mo_route routes[] = {
    {MO_HTTP_GET, "/api/approvals", 0, get_approvals},
    {MO_HTTP_POST, "/api/approvals/tools", .body = post_decision,
     .max = BODY_MAX, .arg = ACCEPT},
    {MO_HTTP_POST, "/api/approvals/{id}", 0, .body = post_decision,
     .max = BODY_MAX, .arg = DECIDE},
    {MO_HTTP_GET, "/api/audit/verify", 0, get_verify},
};

int mo_api_gateway_routes(struct mo_site *s, struct mo_api *api)
{
    int rc = mo_site_add(s, routes, MO_COUNT(routes), api);

    if (rc == 0)
        rc = mo_api_connections_routes(s, api);
    return rc < 0 ? rc : mo_api_route_routes(s, api);
}

void mo_api_approvals_handle(struct mo_api *api, struct mo_req *rq)
{
    for (size_t i = 0; i < MO_COUNT(routes); i++)
        if (mo_route_fits(&routes[i], rq)) {
            mo_route_call(&routes[i], api, rq);
            return;
        }
    mo_req_problem(rq, 404, "not_found", "there is nothing here");
}

/* --- rules --------------------------------------------------------------- */

static bool has_rules(const struct mo_api *api, struct mo_req *rq)
{
    return mo_api_has(rq, api->policy, "the rules are not there yet");
}

static const struct mo_api_status rule_problems[] = {
    {MO_ENOTFOUND, 404, "not_found"}, {MO_EINVAL, 400, "bad_request"},
    {MO_EPROTO, 400, "bad_request"},  {MO_EBUSY, 409, "too_many"},
    {MO_ETOOBIG, 400, "too_big"},     {0, 503, "unavailable"},
};

static void get_rules(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    mo_autobuf struct mo_buf b = {.max = RULES_MAX};

    if (!has_rules(api, rq))
        return;
    if (mo_rules_api_list(api->policy, &b) < 0 && !b.err)
        b.err = MO_ENOMEM;
    mo_api_send(rq, &b);
}

enum { ADD, TRY };

static void post_rule(struct mo_req *rq, struct mo_span body)
{
    struct mo_api *api = rq->data;
    mo_autobuf struct mo_buf b = {.max = RULES_MAX};
    struct mo_err e;
    int rc;

    if (!has_rules(api, rq))
        return;
    if (rq->arg == TRY)
        rc = mo_rules_api_try(api->policy, body, &b, &e);
    else
        rc = mo_rules_api_add(api->policy, body, mo_req_peer(rq), &b, &e);
    if (rc < 0)
        mo_api_refuse(rq, rule_problems, &e);
    else
        mo_api_send(rq, &b);
}

static void on_rule_removed(void *ctx, const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    const struct mo_api_status *s =
        why ? mo_api_status(rule_problems, why->code) : NULL;

    (void)mo_buf_puts(&j->out, "{\"ok\":true}");
    if (s)
        mo_api_problem(j, s->status, s->name, why->msg);
    else
        mo_api_reply(j, "application/json");
}

static void delete_rule(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    struct mo_api_job *j = has_rules(api, rq) ? mo_api_job_new(api, rq) : NULL;

    if (j)
        mo_policy_remove_rule(api->policy, mo_req_segment(rq, 2),
                              on_rule_removed, j);
}

int mo_api_rules_routes(struct mo_site *s, struct mo_api *api)
{
    static const struct mo_route rules[] = {
        {MO_HTTP_GET, "/api/rules", 0, get_rules},
        {MO_HTTP_POST, "/api/rules", .body = post_rule, .max = RULE_MAX,
         .arg = ADD},
        {MO_HTTP_POST, "/api/rules/try", .body = post_rule, .max = RULE_MAX,
         .arg = TRY},
        {MO_HTTP_DELETE, "/api/rules/{id}", 0, delete_rule},
    };

    return mo_site_add(s, rules, MO_COUNT(rules), api);
}
