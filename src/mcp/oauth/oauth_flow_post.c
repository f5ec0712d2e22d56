/* oauth_flow_post.c - forms for the token endpoint, and their proofs
 * (dpop.h).
 *
 * Invariant: f->form is what was posted last, until the flow ends. */
#include "mcp/oauth/oauth_flow_priv.h"

#define PEM_MAX ((size_t)4096)

int mo_flow_bind(struct mo_flow *f, struct mo_err *e)
{
    mo_autowipe struct mo_buf pem = {.max = PEM_MAX};
    int rc;

    if (!f->issuer.dpop || !(f->challenge.dpop || f->resource.dpop))
        return 0;
    rc = mo_dpop_make(&f->dpop, e);
    if (rc < 0)
        return rc;
    rc = mo_jws_key_pem(f->dpop.key, &pem);
    if (rc == 0)
        rc = mo_oauth_keep_buf(&f->a, &pem, &f->token.dpop);
    mo_dpop_thumbprint(&f->dpop, f->attempt.jkt);
    return rc < 0 ? mo_fail(e, rc, "the key of the token") : 0;
}

static int send_form(struct mo_flow *f, struct mo_err *e)
{
    mo_autowipe struct mo_buf form = {.max = MO_FLOW_FORM_MAX},
                              basic = {.max = MO_FLOW_FORM_MAX};
    int rc = mo_buf_span(&form, mo_buf_view(&f->form));

    if (rc == 0 && f->client.method == MO_OAUTH_BASIC)
        rc = mo_oauth_basic(&basic, &f->client);
    if (rc < 0)
        return mo_fail(e, rc, "token request");
    if (f->client.method == MO_OAUTH_KEY && f->state != REFRESH)
        rc = mo_machine_put_key_proof(&form, f->o.oauth->machine.private_key,
                                      f->client.id, f->issuer.issuer, e);
    if (rc < 0)
        return rc;
    f->q.dpop = f->dpop.key ? &f->dpop : NULL;
    return mo_oauth_ask(&f->q, f->token.endpoint,
                        "application/x-www-form-urlencoded", mo_buf_view(&form),
                        mo_buf_view(&basic), e);
}

int mo_flow_post(struct mo_flow *f, const struct mo_buf *form, struct mo_err *e)
{
    int rc = mo_buf_err(form);

    if (rc == 0)
        rc = mo_buf_set(&f->form, mo_buf_view(form));
    if (rc < 0)
        return mo_fail(e, rc, "token request");
    f->nonced = false;
    return send_form(f, e);
}

int mo_flow_post_again(struct mo_flow *f, struct mo_err *e)
{
    int rc;

    if (!f->q.dpop || f->nonced || f->q.status != 400 || !f->dpop.nonce[0] ||
        strcmp(mo_oauth_error(&f->a, mo_buf_view(&f->q.body)),
               "use_dpop_nonce") != 0)
        return 0;
    f->nonced = true;
    rc = send_form(f, e);
    return rc < 0 ? rc : 1;
}
