/*
 * api_tokens.c - personal tokens (people/grants.h); see api.h.
 *
 * A personal token cannot be used here, nor the access token of a provider:
 * whoever has stolen one cannot make another that outlives it. Each change is
 * in the audit log before it happens.
 */
#include "base/clock.h"
#include "web/api_job.h"

#define BODY_MAX ((size_t)8 * 1024)
#define DAY_MS   ((double)24 * 3600 * 1000)

/* A request that waits for the store or the audit log. */
struct token_job {
    struct mo_api_job *j;
    struct mo_provider_wait wait;
    struct mo_grant grant;
    enum mo_role seen; /* of the owner, if a provider knows them */
    char text[MO_GRANT_TEXT + 1];
};

static void free_job(struct token_job *t)
{
    explicit_bzero(t->text, sizeof(t->text));
    mo_free(t);
}

static struct mo_grants *grants_of(const struct mo_api *api)
{
    return api->grants ? *api->grants : NULL;
}

/* Names of providers' people have a ':', and no others. */
static bool is_access_token(const struct mo_req *rq)
{
    return strcmp(rq->door, "token") == 0 && strchr(rq->who, ':');
}

/* False: the request has been answered. */
static bool may_manage(const struct mo_api *api, struct mo_req *rq)
{
    if (!api->grants)
        mo_req_problem(rq, MO_API_NO_TOKENS, "no_tokens",
                       "this process has no personal tokens");
    else if (rq->grant[0] || is_access_token(rq))
        mo_req_problem(rq, 403, "sign_in_required",
                       "a personal token, or an access token of a provider, "
                       "cannot list, make or revoke tokens; sign in on the "
                       "page");
    else
        return mo_api_has(rq, grants_of(api), "the store is not open yet");
    return false;
}

/* NULL: answered. */
static struct token_job *new_job(struct mo_api *api, struct mo_req *rq)
{
    struct token_job *t = mo_new(struct token_job);

    if (!t) {
        mo_req_problem(rq, 503, "no_memory", "out of memory");
        return NULL;
    }
    t->j = mo_api_job_new(api, rq);
    if (t->j)
        return t;
    mo_free(t);
    return NULL;
}

static void fail_job(struct token_job *t, const struct mo_err *why)
{
    if (why->code == MO_EPOLICY)
        mo_api_problem(t->j, 403, "not_allowed", why->msg);
    else if (why->code == MO_EBUSY)
        mo_api_problem(t->j, 409, "too_many", why->msg);
    else
        mo_api_error(t->j, why);
    free_job(t);
}

/* --- the list ------------------------------------------------------------ */

static void show_one(void *ctx, const struct mo_grant *one)
{
    struct mo_api_job *j = ctx;

    if (j->caller[0] && strcmp(j->caller, one->owner) != 0)
        return;
    mo_jw_obj(&j->w);
    mo_grant_show(one, &j->w);
    mo_jw_end(&j->w);
}

static void on_read(struct mo_provider_wait *w, const struct mo_err *why)
{
    struct token_job *t = mo_container_of(w, struct token_job, wait);
    struct mo_api_job *j = t->j;

    if (why) {
        fail_job(t, why);
        return;
    }
    j->w = mo_jw_object(&j->out);
    mo_jw_member_arr(&j->w, "tokens");
    mo_grants_each(grants_of(j->api), show_one, j);
    mo_jw_end(&j->w);
    mo_jw_end(&j->w);
    mo_api_reply(j, "application/json");
    free_job(t);
}

static void get_tokens(void *ctx, struct mo_req *rq)
{
    struct token_job *t = may_manage(ctx, rq) ? new_job(ctx, rq) : NULL;

    if (!t)
        return;
    t->wait.done = on_read;
    mo_grants_read(grants_of(ctx), &t->wait);
}

/* --- the audit log ------------------------------------------------------- */

static int record(struct token_job *t, const char *action, mo_done_fn *done,
                  struct mo_err *e)
{
    const struct mo_req *rq = t->j->rq;
    mo_autobuf struct mo_buf entry = {.max = BODY_MAX};
    struct mo_jw w = mo_jw_object(&entry);
    struct mo_audit_row row = {
        .event = "kind",
        .subject = MO_SPAN("token"),
        .action = action,
        .who = mo_span_cstr(rq->who),
        .via = rq->door,
        .peer = mo_span_cstr(mo_req_peer(rq)),
    };

    mo_grant_show(&t->grant, &w);
    mo_jw_end(&w);
    row.entry = mo_buf_view(&entry);
    if (mo_buf_err(&entry))
        return mo_fail(e, MO_ENOMEM, "out of memory");
    return mo_audit_first(mo_approvals_audit(t->j->api->approvals), &row, done,
                          t, e);
}

/* --- a new one ----------------------------------------------------------- */

/* Who will own it, and the highest role it may have. */
static int choose_owner(struct token_job *t, const struct mo_req *rq,
                        struct mo_json body, enum mo_role *most,
                        struct mo_err *e)
{
    const struct mo_gate *gate = t->j->api->gate;
    struct mo_json person = mo_json_get(body, "person");
    char *owner = t->grant.owner;

    memcpy(owner, rq->who, sizeof(t->grant.owner));
    *most = t->seen = (enum mo_role)rq->role;
    if (!person.p || mo_json_str_eq(person, mo_span_cstr(rq->who)))
        return 0;
    if (rq->role < MO_ROLE_OPERATOR)
        return mo_fail(e, MO_EPOLICY,
                       "only the operator makes tokens for others");
    if (!mo_json_is(person, MO_JSON_STRING) ||
        mo_json_str_copy(person, owner, sizeof(t->grant.owner)) < 0)
        return mo_fail(e, MO_EINVAL, "person is a name");
    t->seen = mo_grants_seen(gate->grants, owner);
    *most = mo_gate_role_now(gate, owner);
    if (*most == MO_ROLE_NONE)
        return mo_fail(e, MO_EINVAL,
                       "%.64s is nobody in server.tokens, and nobody of a "
                       "provider who has tokens; they can make their first "
                       "token on the page",
                       owner);
    return 0;
}

static int choose_role(struct token_job *t, struct mo_json role,
                       enum mo_role most, struct mo_err *e)
{
    char name[16] = "";

    t->grant.role = most < MO_ROLE_USER ? most : MO_ROLE_USER;
    if (!role.p)
        return 0;
    if (!mo_json_is(role, MO_JSON_STRING) ||
        mo_json_str_copy(role, name, sizeof(name)) < 0)
        name[0] = '\0';
    t->grant.role = mo_role_named(mo_span_cstr(name));
    if (t->grant.role == MO_ROLE_NONE)
        return mo_fail(e, MO_EINVAL,
                       "role is viewer, user, approver or operator");
    if (t->grant.role > most)
        return mo_fail(e, MO_EPOLICY,
                       "a token has at most the role of its owner, %s",
                       mo_role_name(most));
    return 0;
}

static int choose_end(struct token_job *t, struct mo_json v, struct mo_err *e)
{
    double days = MO_GRANT_DAYS;

    if (v.p &&
        (mo_json_f64(v, &days) < 0 || !(days > 0) || days > MO_GRANT_DAYS_MAX))
        return mo_fail(e, MO_EINVAL, "days is a number above 0, and at most %d",
                       MO_GRANT_DAYS_MAX);
    t->grant.expires = mo_wall_ms() + (uint64_t)(days * DAY_MS);
    return 0;
}

static int read_new(struct token_job *t, const struct mo_req *rq,
                    struct mo_span text, struct mo_err *e)
{
    enum mo_role most = MO_ROLE_NONE;
    struct mo_json_doc d;
    int rc;

    if (!mo_gate_has_tokens(t->j->api->gate))
        return mo_fail(e, MO_EPOLICY,
                       "this server was started with --no-auth and checks no "
                       "tokens");
    if (mo_json_parse(text, 0, &d, NULL) < 0 ||
        !mo_json_is(d.root, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL,
                       "the body is {name, role?, views?, days?, person?}");
    rc = mo_grant_set_name(&t->grant, mo_json_get(d.root, "name"), e);
    if (rc == 0)
        rc = mo_grant_set_views(&t->grant, mo_json_get(d.root, "views"), e);
    if (rc == 0)
        rc = choose_end(t, mo_json_get(d.root, "days"), e);
    if (rc == 0)
        rc = choose_owner(t, rq, d.root, &most, e);
    return rc < 0 ? rc : choose_role(t, mo_json_get(d.root, "role"), most, e);
}

static void on_added(void *ctx, const struct mo_err *why)
{
    struct token_job *t = ctx;
    struct mo_api_job *j = t->j;

    if (why) {
        fail_job(t, why);
        return;
    }
    j->w = mo_jw_object(&j->out);
    mo_grant_show(&t->grant, &j->w);
    mo_jw_member_cstr(&j->w, "token", t->text);
    mo_jw_end(&j->w);
    j->status = 201;
    mo_api_reply(j, "application/json");
    free_job(t);
}

static void on_create_recorded(void *ctx, const struct mo_err *why)
{
    struct token_job *t = ctx;
    struct mo_grants *g = grants_of(t->j->api);
    struct mo_err e;

    if (!why && !g)
        why = mo_error(MO_EUNAVAIL, "the server is shutting down");
    if (why)
        fail_job(t, why);
    else if (mo_grants_add(g, &t->grant, t->seen, on_added, t, &e) < 0)
        fail_job(t, &e);
}

static void post_token(struct mo_req *rq, struct mo_span body)
{
    struct mo_api *api = rq->data;
    struct token_job *t = may_manage(api, rq) ? new_job(api, rq) : NULL;
    struct mo_err e;

    if (!t)
        return;
    if (read_new(t, rq, body, &e) < 0) {
        fail_job(t, &e);
        return;
    }
    mo_grant_make(&t->grant, t->text);
    if (record(t, "create", on_create_recorded, &e) < 0)
        fail_job(t, &e);
}

/* --- revoking ------------------------------------------------------------ */

static void on_revoked(void *ctx, const struct mo_err *why)
{
    struct token_job *t = ctx;

    mo_api_done(t->j, why);
    free_job(t);
}

static void on_revoke_recorded(void *ctx, const struct mo_err *why)
{
    struct token_job *t = ctx;
    struct mo_grants *g = grants_of(t->j->api);
    struct mo_err e;

    if (!why && !g)
        why = mo_error(MO_EUNAVAIL, "the server is shutting down");
    if (why)
        fail_job(t, why);
    else if (mo_grants_revoke(g, mo_span_cstr(t->grant.id), on_revoked, t, &e) <
             0)
        fail_job(t, &e);
}

/* Another process may have made it just now. */
static void on_found(struct mo_provider_wait *w, const struct mo_err *why)
{
    struct token_job *t = mo_container_of(w, struct token_job, wait);
    const struct mo_grant *one;
    struct mo_err e;

    if (why || !t->j->rq) {
        fail_job(t, why ? why : mo_error(MO_ECLOSED, "the client has gone"));
        return;
    }
    one = mo_grants_find(grants_of(t->j->api), mo_req_segment(t->j->rq, 2));
    if (!one || (t->j->caller[0] && strcmp(t->j->caller, one->owner) != 0)) {
        fail_job(t, mo_error(MO_ENOTFOUND, "there is no such token"));
        return;
    }
    t->grant = *one;
    if (record(t, "revoke", on_revoke_recorded, &e) < 0)
        fail_job(t, &e);
}

static void delete_token(void *ctx, struct mo_req *rq)
{
    struct token_job *t = may_manage(ctx, rq) ? new_job(ctx, rq) : NULL;

    if (!t)
        return;
    t->wait.done = on_found;
    mo_grants_read(grants_of(ctx), &t->wait);
}

/* --- routes -------------------------------------------------------------- */

static const struct mo_route routes[] = {
    {MO_HTTP_GET, "/api/tokens", 0, get_tokens},
    {MO_HTTP_POST, "/api/tokens", .body = post_token, .max = BODY_MAX},
    {MO_HTTP_DELETE, "/api/tokens/{id}", 0, delete_token},
};

int mo_api_tokens_routes(struct mo_site *s, struct mo_api *api)
{
    return mo_site_add(s, routes, MO_COUNT(routes), api);
}

bool mo_api_tokens_handle(struct mo_api *api, struct mo_req *rq)
{
    for (size_t i = 0; i < MO_COUNT(routes); i++)
        if (mo_route_fits(&routes[i], rq)) {
            mo_route_call(&routes[i], api, rq);
            return true;
        }
    return false;
}
