#include "mcp/oauth/oauth_revoke.h"

#include "base/mem.h"
#include "mcp/oauth/oauth_addr.h"
#include "mcp/oauth/oauth_ask.h"
#include "mcp/oauth/oauth_req.h"

#define FORM_MAX  ((size_t)64 * 1024)
#define ARENA_MAX ((size_t)256 * 1024)

struct mo_oauth_revoke {
    struct mo_oauth_revoke_opts o;
    struct mo_arena a;
    struct mo_oauth_ask q;
};

static void revoke_free(struct mo_oauth_revoke *r)
{
    mo_oauth_ask_fini(&r->q);
    mo_arena_fini(&r->a);
    mo_free(r);
}

static void on_answer(struct mo_oauth_ask *q, const struct mo_err *why)
{
    struct mo_oauth_revoke *r = mo_container_of(q, struct mo_oauth_revoke, q);
    struct mo_oauth_revoke_opts o = r->o;
    struct mo_err e = {.code = 0};

    if (why)
        e = *why;
    else if (q->status != 200)
        (void)mo_fail(&e, MO_EUNAVAIL, "the issuer answers %d", q->status);
    revoke_free(r);
    if (o.done)
        o.done(o.ctx, e.code ? &e : NULL);
}

static int send_request(struct mo_oauth_revoke *r, struct mo_err *e)
{
    const struct mo_token *k = r->o.token;
    struct mo_oauth_client c = {
        .id = k->client,
        .secret = r->o.secret ? r->o.secret : k->secret,
        .method = mo_oauth_auth_method(mo_span_cstr(k->method)),
    };
    mo_autowipe struct mo_buf form = {.max = FORM_MAX},
                              basic = {.max = FORM_MAX};
    const char *url = NULL;
    int rc = mo_oauth_revoke_body(&form, &c, k);

    if (rc == 0 && c.method == MO_OAUTH_BASIC)
        rc = mo_oauth_basic(&basic, &c);
    if (rc == 0)
        rc = mo_oauth_copy(&r->a, k->server, &r->q.server);
    if (rc == 0)
        rc = mo_oauth_copy(&r->a, k->revocation, &url);
    if (rc < 0)
        return mo_fail(e, rc, "revocation");
    return mo_oauth_ask(&r->q, url, "application/x-www-form-urlencoded",
                        mo_buf_view(&form), mo_buf_view(&basic), e);
}

int mo_oauth_revoke(const struct mo_oauth_revoke_opts *o,
                    struct mo_oauth_revoke **out, struct mo_err *e)
{
    const struct mo_token *k = o->token;
    struct mo_oauth_revoke *r = NULL;
    int rc;

    if (!k || !k->revocation || !k->client || !k->method ||
        (!k->access && !k->refresh))
        return mo_fail(e, MO_ENOTFOUND, "the issuer does not take tokens back");
    r = mo_new(struct mo_oauth_revoke);
    if (!r)
        return mo_fail(e, MO_ENOMEM, "revocation");
    r->o = *o;
    mo_arena_init(&r->a, ARENA_MAX);
    r->q.http = o->http;
    r->q.local = k->local;
    r->q.done = on_answer;
    mo_oauth_ask_init(&r->q);
    rc = send_request(r, e);
    r->o.token = NULL;
    if (rc < 0)
        revoke_free(r);
    else
        *out = r;
    return rc;
}

void mo_oauth_revoke_cancel(struct mo_oauth_revoke *r)
{
    (void)mo_oauth_ask_cancel(&r->q);
}
