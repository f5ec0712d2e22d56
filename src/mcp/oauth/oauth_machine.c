#include "mcp/oauth/oauth_machine.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/rand.h"
#include "codec/json/json.h"
#include "loop/jws.h"
#include "mcp/oauth/oauth_req.h"

#define URN     "urn:ietf:params:oauth:"
#define JAG     URN "token-type:id-jag"
#define PROOF_S 60

int mo_machine_assertion(const struct mo_oauth_machine *m, struct mo_buf *out,
                         struct mo_err *e)
{
    int rc = 0;

    if (m->assertion)
        rc = mo_buf_puts(out, m->assertion);
    else if (m->assertion_file)
        rc = mo_file_read(m->assertion_file, MO_MACHINE_TEXT_MAX, out, NULL, e);
    else
        rc = mo_fail(e, MO_ENOTFOUND, "there is no assertion to send");
    if (rc < 0)
        return rc;
    while (out->len && strchr(" \r\n", out->p[out->len - 1]))
        out->len--;
    if (out->len == 0 || !mo_span_between(mo_buf_view(out), '!', '~'))
        return mo_fail(e, MO_EINVAL, "the assertion is not a token");
    return 0;
}

static void put_claims(struct mo_buf *b, const char *client, const char *issuer)
{
    uint64_t now = mo_wall_ms() / 1000;
    char id[MO_TOKEN_LEN(18) + 1];
    struct mo_jw w = mo_jw_object(b);

    mo_random_token(id, 18);
    mo_jw_member_cstr(&w, "iss", client);
    mo_jw_member_cstr(&w, "sub", client);
    mo_jw_member_cstr(&w, "aud", issuer);
    mo_jw_member_cstr(&w, "jti", id);
    mo_jw_member_u64(&w, "iat", now);
    mo_jw_member_u64(&w, "exp", now + PROOF_S);
    mo_jw_end(&w);
}

int mo_machine_put_key_proof(struct mo_buf *b, const char *private_key,
                             const char *client, const char *issuer,
                             struct mo_err *e)
{
    mo_autobuf struct mo_buf claims = {.max = MO_MACHINE_TEXT_MAX};
    mo_autowipe struct mo_buf proof = {.max = 2 * MO_MACHINE_TEXT_MAX};
    int rc;

    put_claims(&claims, client, issuer);
    rc = mo_buf_err(&claims);
    if (rc < 0)
        return mo_fail(e, rc, "the client's id is too long");
    rc = mo_jws_sign(mo_span_cstr(private_key), "JWT", mo_buf_view(&claims),
                     &proof, e);
    if (rc < 0)
        return mo_wrap(e, "oauth.privateKey");
    mo_oauth_put_pair(b, '&', "client_id", client);
    mo_oauth_put_pair(b, '&', "client_assertion_type",
                      URN "client-assertion-type:jwt-bearer");
    mo_oauth_put_pair(b, '&', "client_assertion", mo_buf_cstr(&proof));
    return mo_buf_err(b) ? mo_fail(e, mo_buf_err(b), "token request") : 0;
}

int mo_machine_client_body(struct mo_buf *b, const struct mo_oauth_try *t)
{
    mo_oauth_put_pair(b, 0, "grant_type", "client_credentials");
    mo_oauth_put_pair(b, '&', "scope", t->scope);
    mo_oauth_put_pair(b, '&', "resource", t->resource);
    return mo_buf_err(b);
}

int mo_machine_bearer_body(struct mo_buf *b, const struct mo_oauth_try *t,
                           const char *assertion)
{
    mo_oauth_put_pair(b, 0, "grant_type", URN "grant-type:jwt-bearer");
    mo_oauth_put_pair(b, '&', "assertion", assertion);
    mo_oauth_put_pair(b, '&', "scope", t->scope);
    mo_oauth_put_pair(b, '&', "resource", t->resource);
    return mo_buf_err(b);
}

int mo_machine_exchange_body(struct mo_buf *b, const struct mo_oauth_machine *m,
                             const struct mo_oauth_try *t, const char *issuer,
                             const char *id_token)
{
    mo_oauth_put_pair(b, 0, "grant_type", URN "grant-type:token-exchange");
    mo_oauth_put_pair(b, '&', "requested_token_type", JAG);
    mo_oauth_put_pair(b, '&', "subject_token", id_token);
    mo_oauth_put_pair(b, '&', "subject_token_type", URN "token-type:id_token");
    mo_oauth_put_pair(b, '&', "audience", issuer);
    mo_oauth_put_pair(b, '&', "resource", t->resource);
    mo_oauth_put_pair(b, '&', "scope", t->scope);
    if (!m->idp_secret)
        mo_oauth_put_pair(b, '&', "client_id", m->idp_client);
    return mo_buf_err(b);
}

int mo_machine_exchange_parse(struct mo_arena *a, struct mo_span json,
                              const char **grant, struct mo_err *e)
{
    struct mo_json_doc d = {.bad_at = 0};
    struct mo_json token;
    struct mo_span s;

    if (mo_json_parse(json, 0, &d, NULL) < 0)
        return mo_fail(e, MO_EPROTO, "the answer is not JSON");
    token = mo_json_get(d.root, "access_token");
    if (!mo_json_str_eq(mo_json_get(d.root, "issued_token_type"), MO_SPAN(JAG)))
        return mo_fail(e, MO_EPROTO,
                       "the identity provider sent another kind of token");
    if (!mo_json_is(token, MO_JSON_STRING) || token.n > MO_MACHINE_TEXT_MAX ||
        mo_json_str(token, a, &s) < 0 || s.n == 0 ||
        !mo_span_between(s, '!', '~') || mo_oauth_keep(a, s, grant) < 0)
        return mo_fail(e, MO_EPROTO, "the identity provider sent no token");
    return 0;
}
