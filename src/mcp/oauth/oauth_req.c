#include "mcp/oauth/oauth_req.h"

#include "base/rand.h"
#include "codec/http/url.h"
#include "codec/json/json.h"
#include "codec/text/base64.h"

#define EXPIRES_MAX ((uint64_t)10 * 365 * 24 * 3600) /* s; more is cut */

void mo_oauth_put_pair(struct mo_buf *b, char sep, const char *key,
                       const char *value)
{
    if (!value)
        return;
    if (sep)
        mo_buf_putc(b, sep);
    mo_buf_puts(b, key);
    mo_buf_putc(b, '=');
    mo_pct_encode(b, mo_span_cstr(value));
}

unsigned mo_oauth_pick(unsigned offered, const char *secret)
{
    if (secret && (offered & MO_OAUTH_BASIC))
        return MO_OAUTH_BASIC;
    if (secret && (offered & MO_OAUTH_POST))
        return MO_OAUTH_POST;
    return MO_OAUTH_NONE;
}

/* --- signing in ---------------------------------------------------------- */

void mo_oauth_try_fresh(struct mo_oauth_try *t)
{
    _Static_assert(MO_TOKEN_LEN(48) == MO_OAUTH_VERIFIER, "verifier");
    _Static_assert(MO_TOKEN_LEN(24) == MO_OAUTH_STATE, "state");
    mo_random_token(t->verifier, 48);
    mo_random_token(t->state, 24);
}

static void put_challenge(struct mo_buf *b, const char *verifier)
{
    char sum[MO_DPOP_JKT + 1];

    mo_dpop_digest(mo_span_cstr(verifier), sum);
    mo_oauth_put_pair(b, '&', "code_challenge", sum);
    mo_buf_puts(b, "&code_challenge_method=S256");
}

int mo_oauth_authorize_url(struct mo_buf *b, const char *endpoint,
                           const char *client, const struct mo_oauth_try *t)
{
    mo_buf_puts(b, endpoint);
    mo_oauth_put_pair(b, strchr(endpoint, '?') ? '&' : '?', "response_type",
                      "code");
    mo_oauth_put_pair(b, '&', "client_id", client);
    mo_oauth_put_pair(b, '&', "redirect_uri", t->redirect);
    mo_oauth_put_pair(b, '&', "state", t->state);
    mo_oauth_put_pair(b, '&', "scope", t->scope);
    mo_oauth_put_pair(b, '&', "resource", t->resource);
    if (mo_oauth_scope_has(t->scope, MO_SPAN("offline_access")))
        mo_oauth_put_pair(b, '&', "prompt", "consent");
    mo_oauth_put_pair(b, '&', "dpop_jkt", t->jkt[0] ? t->jkt : NULL);
    put_challenge(b, t->verifier);
    return mo_buf_err(b);
}

/* Copy the value of a key; NULL when it is absent. A key given twice is
 * refused. *rc is the first error of several calls. */
static const char *query_text(struct mo_arena *a, struct mo_span query,
                              const char *key, int *rc)
{
    mo_autobuf struct mo_buf b = {.max = MO_OAUTH_TEXT_MAX};
    struct mo_span rest = query, k, v;
    const char *text = NULL;
    unsigned n = 0;

    while (mo_query_next(&rest, &k, &v))
        n += mo_span_is(k, key);
    if (n == 0 || *rc < 0)
        return NULL;
    *rc = n > 1 ? MO_EPROTO : mo_query_get(query, key, &b);
    if (*rc == 0)
        *rc = mo_oauth_keep(a, mo_buf_view(&b), &text);
    return text;
}

static int check_iss(const struct mo_oauth_server *s, const char *iss,
                     struct mo_err *e)
{
    if (iss && strcmp(iss, s->issuer) != 0)
        return mo_fail(e, MO_EPOLICY, "the answer is from another issuer");
    if (!iss && s->iss)
        return mo_fail(e, MO_EPOLICY, "the answer does not name its issuer");
    return 0;
}

int mo_oauth_redirect(struct mo_arena *a, struct mo_span query,
                      const char *state, const struct mo_oauth_server *s,
                      const char **code, struct mo_err *e)
{
    int rc = 0;
    const char *got = query_text(a, query, "state", &rc), *iss, *error;

    *code = NULL;
    if (rc < 0 || !got ||
        !mo_span_eq_ct(mo_span_cstr(got), mo_span_cstr(state)))
        return mo_fail(e, MO_EINVAL, "not an answer to this sign-in");
    iss = query_text(a, query, "iss", &rc);
    error = query_text(a, query, "error", &rc);
    *code = query_text(a, query, "code", &rc);
    if (rc < 0)
        return mo_fail(e, rc, "the answer to the sign-in is malformed");
    rc = check_iss(s, iss, e);
    if (rc < 0)
        return rc;
    if (error)
        return mo_fail(e, MO_EPOLICY, "sign-in refused: %.80s", error);
    if (!*code)
        return mo_fail(e, MO_EPROTO, "the answer has no code");
    return 0;
}

/* --- registration -------------------------------------------------------- */

static void put_one(struct mo_jw *w, const char *key, const char *x)
{
    mo_jw_member_arr(w, key);
    mo_jw_cstr(w, x);
    mo_jw_end(w);
}

int mo_oauth_register_body(struct mo_buf *b, const char *name,
                           const char *redirect, const char *scope,
                           unsigned method, bool device)
{
    bool web = mo_span_starts(mo_span_cstr(redirect), MO_SPAN("https:"));
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "client_name", name);
    put_one(&w, "redirect_uris", redirect);
    mo_jw_member_arr(&w, "grant_types");
    mo_jw_cstr(&w, "authorization_code");
    mo_jw_cstr(&w, "refresh_token");
    if (device)
        mo_jw_cstr(&w, MO_OAUTH_DEVICE_GRANT);
    mo_jw_end(&w);
    put_one(&w, "response_types", "code");
    mo_jw_member_cstr(&w, "token_endpoint_auth_method",
                      mo_oauth_auth_name(method));
    mo_jw_member_cstr(&w, "application_type", web ? "web" : "native");
    mo_jw_member_opt(&w, "scope", mo_span_cstr(scope));
    mo_jw_end(&w);
    return mo_buf_err(b);
}

/* Read a string member; NULL when there is none. *rc is the first error of
 * several calls. */
static const char *get_text(struct mo_arena *a, struct mo_json obj,
                            const char *key, int *rc)
{
    struct mo_json v = mo_json_get(obj, key);
    const char *text = NULL;
    struct mo_span s;

    if (!mo_json_is(v, MO_JSON_STRING) || *rc < 0)
        return NULL;
    *rc = v.n > MO_OAUTH_TEXT_MAX ? MO_ETOOBIG : mo_json_str(v, a, &s);
    for (size_t i = 0; *rc == 0 && i < s.n; i++) {
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7F)
            *rc = MO_EPROTO;
    }
    if (*rc == 0)
        *rc = mo_oauth_keep(a, s, &text);
    return text;
}

static int get_object(struct mo_span json, struct mo_json *out,
                      struct mo_err *e)
{
    struct mo_json_doc doc = {.bad_at = 0};

    if (json.n > MO_OAUTH_DOC_MAX || mo_json_parse(json, 0, &doc, NULL) < 0 ||
        !mo_json_is(doc.root, MO_JSON_OBJECT))
        return mo_fail(e, MO_EPROTO, "the answer is not a JSON object");
    *out = doc.root;
    return 0;
}

int mo_oauth_register_parse(struct mo_arena *a, struct mo_span json,
                            unsigned offered, struct mo_oauth_client *out,
                            struct mo_err *e)
{
    const char *method;
    struct mo_json root = {NULL, 0};
    int rc = get_object(json, &root, e);

    *out = (struct mo_oauth_client){.method = 0};
    if (rc < 0)
        return rc;
    out->id = get_text(a, root, "client_id", &rc);
    out->secret = get_text(a, root, "client_secret", &rc);
    method = get_text(a, root, "token_endpoint_auth_method", &rc);
    if (rc < 0 || !out->id || !out->id[0])
        return mo_fail(e, rc < 0 ? rc : MO_EPROTO,
                       "the registration has no usable client id");
    if (method)
        out->method = mo_oauth_auth_method(mo_span_cstr(method)) & offered &
                      ~(unsigned)MO_OAUTH_KEY;
    if (!out->method || (out->method != MO_OAUTH_NONE && !out->secret))
        out->method = mo_oauth_pick(offered, out->secret);
    return 0;
}

/* --- tokens -------------------------------------------------------------- */

void mo_oauth_put_client(struct mo_buf *b, const struct mo_oauth_client *c)
{
    if (c->method == MO_OAUTH_BASIC)
        return;
    mo_oauth_put_pair(b, '&', "client_id", c->id);
    if (c->method == MO_OAUTH_POST)
        mo_oauth_put_pair(b, '&', "client_secret", c->secret);
}

int mo_oauth_code_body(struct mo_buf *b, const struct mo_oauth_client *c,
                       const struct mo_oauth_try *t, const char *code)
{
    mo_oauth_put_pair(b, 0, "grant_type", "authorization_code");
    mo_oauth_put_pair(b, '&', "code", code);
    mo_oauth_put_pair(b, '&', "redirect_uri", t->redirect);
    mo_oauth_put_pair(b, '&', "code_verifier", t->verifier);
    mo_oauth_put_pair(b, '&', "resource", t->resource);
    mo_oauth_put_client(b, c);
    return mo_buf_err(b);
}

int mo_oauth_refresh_body(struct mo_buf *b, const struct mo_oauth_client *c,
                          const struct mo_token *k)
{
    mo_oauth_put_pair(b, 0, "grant_type", "refresh_token");
    mo_oauth_put_pair(b, '&', "refresh_token", k->refresh);
    mo_oauth_put_pair(b, '&', "resource", k->resource);
    mo_oauth_put_client(b, c);
    return mo_buf_err(b);
}

int mo_oauth_introspect_body(struct mo_buf *b, const struct mo_oauth_client *c)
{
    mo_oauth_put_pair(b, '&', "token_type_hint", "access_token");
    mo_oauth_put_client(b, c);
    return mo_buf_err(b);
}

int mo_oauth_revoke_body(struct mo_buf *b, const struct mo_oauth_client *c,
                         const struct mo_token *k)
{
    mo_oauth_put_pair(b, 0, "token", k->refresh ? k->refresh : k->access);
    mo_oauth_put_pair(b, '&', "token_type_hint",
                      k->refresh ? "refresh_token" : "access_token");
    mo_oauth_put_client(b, c);
    return mo_buf_err(b);
}

/* RFC 6749 2.3.1: form-escaped first. */
int mo_oauth_basic(struct mo_buf *b, const struct mo_oauth_client *c)
{
    mo_autowipe struct mo_buf pair = {.max = 8 * MO_OAUTH_TEXT_MAX};

    mo_pct_encode(&pair, mo_span_cstr(c->id));
    mo_buf_putc(&pair, ':');
    mo_pct_encode(&pair, mo_span_cstr(c->secret ? c->secret : ""));
    if (mo_buf_err(&pair))
        return mo_buf_err(&pair);
    mo_buf_puts(b, "Basic ");
    return mo_base64_put(b, mo_buf_view(&pair));
}

static uint64_t get_expiry(struct mo_json root, uint64_t now_ms)
{
    double s;

    if (mo_json_f64(mo_json_get(root, "expires_in"), &s) < 0 || !(s > 0))
        return 0;
    if (s > (double)EXPIRES_MAX)
        s = (double)EXPIRES_MAX;
    return now_ms + (uint64_t)(s * 1000);
}

int mo_oauth_token_parse(struct mo_arena *a, struct mo_span json,
                         uint64_t now_ms, struct mo_token *k, struct mo_err *e)
{
    const char *type, *access, *refresh, *scope;
    struct mo_json root = {NULL, 0};
    bool bound;
    int rc = get_object(json, &root, e);

    if (rc < 0)
        return rc;
    access = get_text(a, root, "access_token", &rc);
    type = get_text(a, root, "token_type", &rc);
    refresh = get_text(a, root, "refresh_token", &rc);
    scope = get_text(a, root, "scope", &rc);
    if (rc < 0)
        return mo_fail(e, rc, "the token is not usable in a header");
    /* it follows its type in a header */
    if (!access || !access[0] ||
        !mo_span_between(mo_span_cstr(access), '!', '~'))
        return mo_fail(e, MO_EPROTO, "the answer has no token");
    bound = k->dpop && type && mo_span_ieq(mo_span_cstr(type), MO_SPAN("DPoP"));
    if (type && !bound && !mo_span_ieq(mo_span_cstr(type), MO_SPAN("Bearer")))
        return mo_fail(e, MO_EPROTO, "the token is not of type Bearer");
    k->dpop = bound ? k->dpop : NULL;
    k->access = access;
    k->refresh = refresh ? refresh : k->refresh;
    k->scope = scope ? scope : k->scope;
    k->expires_ms = get_expiry(root, now_ms);
    return 0;
}

const char *mo_oauth_error(struct mo_arena *a, struct mo_span json)
{
    struct mo_json root = {NULL, 0};
    int rc = get_object(json, &root, NULL);
    const char *text = get_text(a, root, "error", &rc);

    return text ? text : "no reason given";
}
