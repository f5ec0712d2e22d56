/* oauth_flow_machine.c - the steps of a flow without a person
 * (oauth_machine.h).
 *
 *   ISSUER -> TOKEN -> ended
 *   ISSUER -> EXCHANGE -> TOKEN -> ended    with an identity provider */
#include "mcp/oauth/oauth_flow_priv.h"
#include "mcp/oauth/oauth_machine.h"

static const struct mo_oauth_machine *machine_of(const struct mo_flow *f)
{
    return &f->o.oauth->machine;
}

static int post_grant(struct mo_flow *f, struct mo_buf *form, struct mo_err *e)
{
    if (f->client.method != MO_OAUTH_KEY)
        mo_oauth_put_client(form, &f->client);
    mo_flow_set_state(f, TOKEN);
    return mo_flow_post(f, form, e);
}

static int post_bearer(struct mo_flow *f, const char *assertion,
                       struct mo_err *e)
{
    mo_autowipe struct mo_buf form = {.max = MO_FLOW_FORM_MAX};

    (void)mo_machine_bearer_body(&form, &f->attempt, assertion);
    return post_grant(f, &form, e);
}

/* The identity provider is configured, not named by the server: its address
 * may be private. */
static int ask_idp(struct mo_flow *f, const char *id_token, struct mo_err *e)
{
    const struct mo_oauth_machine *m = machine_of(f);
    const struct mo_oauth_client idp = {.id = m->idp_client,
                                        .secret = m->idp_secret};
    mo_autowipe struct mo_buf form = {.max = MO_FLOW_FORM_MAX},
                              basic = {.max = MO_FLOW_FORM_MAX};
    int rc = mo_machine_exchange_body(&form, m, &f->attempt, f->issuer.issuer,
                                      id_token);

    if (rc == 0 && m->idp_secret)
        rc = mo_oauth_basic(&basic, &idp);
    if (rc < 0)
        return mo_fail(e, rc, "token exchange");
    mo_flow_set_state(f, EXCHANGE);
    f->was_local = f->q.local;
    f->q.server = m->idp_token;
    f->q.local = true;
    return mo_oauth_ask(&f->q, m->idp_token,
                        "application/x-www-form-urlencoded", mo_buf_view(&form),
                        mo_buf_view(&basic), e);
}

int mo_flow_handle_exchange(struct mo_flow *f, struct mo_err *e)
{
    struct mo_span body = mo_buf_view(&f->q.body);
    const char *grant = NULL;
    int rc;

    f->q.server = f->o.oauth->server;
    f->q.local = f->was_local;
    if (f->q.status != 200)
        return mo_fail(e, f->q.status >= 500 ? MO_EUNAVAIL : MO_EPOLICY,
                       "the identity provider refused (%d): %.80s", f->q.status,
                       mo_oauth_error(&f->a, body));
    rc = mo_machine_exchange_parse(&f->a, body, &grant, e);
    return rc < 0 ? rc : post_bearer(f, grant, e);
}

/* The server is free to name an issuer; a workload's proof must not go there.
 */
static int check_issuer(const struct mo_flow *f, struct mo_err *e)
{
    const struct mo_oauth_opts *o = f->o.oauth;

    if (o->issuer || (mo_oauth_same_host(o->server, f->issuer.issuer) &&
                      mo_oauth_same_host(o->server, f->issuer.token)))
        return 0;
    return mo_fail(e, MO_EPOLICY,
                   "the assertion is not sent to another host than the "
                   "server's; if it is for that issuer, set oauth.issuer to "
                   "\"%.80s\"",
                   f->issuer.issuer);
}

int mo_flow_start_machine(struct mo_flow *f, struct mo_err *e)
{
    mo_autowipe struct mo_buf form = {.max = MO_FLOW_FORM_MAX},
                              text = {.max = MO_MACHINE_TEXT_MAX};
    const struct mo_oauth_machine *m = machine_of(f);
    int rc = 0;

    if (m->grant != MO_MACHINE_CLIENT)
        rc = mo_machine_assertion(m, &text, e);
    if (rc < 0)
        return rc;
    switch (m->grant) {
    case MO_MACHINE_CLIENT:
        (void)mo_machine_client_body(&form, &f->attempt);
        return post_grant(f, &form, e);
    case MO_MACHINE_WORKLOAD:
        rc = check_issuer(f, e);
        return rc < 0 ? rc : post_bearer(f, mo_buf_cstr(&text), e);
    case MO_MACHINE_ENTERPRISE:
        return ask_idp(f, mo_buf_cstr(&text), e);
    case MO_MACHINE_NONE:
        break;
    }
    return mo_fail(e, MO_EINVAL, "no such grant");
}
