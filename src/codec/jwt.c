#include "codec/jwt.h"

#include "base/str.h"
#include "codec/text/base64.h"

#define DEPTH_MAX 16

bool mo_jwt_alg(struct mo_json name, enum mo_jwt_alg *out)
{
    static const char *const names[] = {[MO_JWT_RS256] = "RS256",
                                        [MO_JWT_ES256] = "ES256",
                                        [MO_JWT_EDDSA] = "EdDSA"};

    for (size_t i = 0; i < MO_COUNT(names); i++)
        if (mo_json_str_eq(name, mo_span_cstr(names[i]))) {
            *out = (enum mo_jwt_alg)i;
            return true;
        }
    return false;
}

bool mo_jwt_looks_like(struct mo_span text)
{
    unsigned dots = 0;

    if (!mo_span_starts(text, MO_SPAN("eyJ"))) /* {" in base64url */
        return false;
    for (size_t i = 0; i < text.n; i++)
        dots += text.p[i] == '.';
    return dots == 2;
}

/* Decodes base64url into the arena. */
static int decode(struct mo_span text, struct mo_arena *a, struct mo_span *out)
{
    mo_autobuf struct mo_buf b = {.max = MO_JWT_MAX};
    int rc = mo_base64url_decode(text, &b);

    return rc < 0 ? rc : mo_arena_span(a, mo_buf_view(&b), out);
}

static bool has_twice(struct mo_json object, const char *name)
{
    unsigned seen = 0;

    mo_json_each (it, object)
        seen += mo_json_str_eq(it.key, mo_span_cstr(name));
    return seen > 1;
}

/* An object in which none of the names occurs twice. */
static int decode_object(struct mo_span text, struct mo_arena *a,
                         const char *const *names, size_t n,
                         struct mo_json *out)
{
    struct mo_json_doc doc;
    struct mo_span json;
    int rc = decode(text, a, &json);

    if (rc < 0)
        return rc;
    if (mo_json_parse(json, DEPTH_MAX, &doc, NULL) < 0 ||
        !mo_json_is(doc.root, MO_JSON_OBJECT))
        return MO_EPROTO;
    for (size_t i = 0; i < n; i++)
        if (has_twice(doc.root, names[i]))
            return MO_EPROTO;
    *out = doc.root;
    return 0;
}

static int read_header(struct mo_json header, struct mo_arena *a,
                       struct mo_jwt *out, struct mo_err *e)
{
    struct mo_json kid = mo_json_get(header, "kid");

    if (mo_json_get(header, "crit").p || mo_json_get(header, "b64").p)
        return mo_fail(e, MO_EPOLICY,
                       "the token needs an extension that is not supported");
    if (!mo_jwt_alg(mo_json_get(header, "alg"), &out->alg))
        return mo_fail(e, MO_EPOLICY,
                       "the token's algorithm is not accepted; use RS256, "
                       "ES256 or EdDSA");
    if (!kid.p)
        return 0;
    if (!mo_json_is(kid, MO_JSON_STRING))
        return mo_fail(e, MO_EPROTO, "the token's kid is not a text");
    return mo_json_str(kid, a, &out->kid);
}

int mo_jwt_parse(struct mo_span token, struct mo_arena *a, struct mo_jwt *out,
                 struct mo_err *e)
{
    static const char *const in_header[] = {"alg", "kid", "crit",
                                            "b64", "typ", "jwk"};
    static const char *const in_claims[] = {"iss", "sub", "aud",   "exp", "nbf",
                                            "iat", "azp", "nonce", "cnf", "jti",
                                            "htm", "htu", "ath"};
    struct mo_span rest = token, header, claims;
    int rc;

    *out = (struct mo_jwt){.kid = {NULL, 0}};
    if (token.n > MO_JWT_MAX)
        return mo_fail(e, MO_ETOOBIG, "the token is too long");
    header = mo_span_cut(&rest, '.');
    claims = mo_span_cut(&rest, '.');
    if (!rest.p || mo_span_find(rest, '.') >= 0)
        return mo_fail(e, MO_EPROTO, "the token has not three parts");
    out->signed_part = mo_span(token.p, header.n + 1 + claims.n);
    rc = decode_object(header, a, in_header, MO_COUNT(in_header), &out->header);
    if (rc == 0)
        rc = decode_object(claims, a, in_claims, MO_COUNT(in_claims),
                           &out->claims);
    if (rc == 0)
        rc = decode(rest, a, &out->signature);
    if (rc == 0 && out->signature.n > MO_JWT_SIGNATURE_MAX)
        rc = MO_ETOOBIG;
    if (rc < 0)
        return mo_fail(e, rc, "the token is malformed");
    return read_header(out->header, a, out, e);
}

/* --- claims -------------------------------------------------------------- */

bool mo_jwt_claim_has(struct mo_json claim, struct mo_span text)
{
    if (mo_json_is(claim, MO_JSON_STRING))
        return mo_json_str_eq(claim, text);
    if (!mo_json_is(claim, MO_JSON_ARRAY))
        return false;
    mo_json_each (it, claim)
        if (mo_json_str_eq(it.val, text))
            return true;
    return false;
}

/* A date may have a fraction. False: no number, or not a date. */
static bool read_date(struct mo_json v, double *out)
{
    return mo_json_is(v, MO_JSON_NUMBER) && mo_json_f64(v, out) == 0 &&
           *out >= 0 && *out < 1e12;
}

/* A date that may be missing: not after now. */
static bool is_past(struct mo_json v, uint64_t now_s)
{
    double at = 0;

    return !v.p ||
           (read_date(v, &at) && at <= (double)(now_s + MO_JWT_LEEWAY_S));
}

static bool is_for_us(struct mo_json aud, const struct mo_jwt_want *want)
{
    for (size_t i = 0; i < want->naudiences; i++)
        if (mo_jwt_claim_has(aud, mo_span_cstr(want->audiences[i])))
            return true;
    return false;
}

int mo_jwt_check(const struct mo_jwt *t, const struct mo_jwt_want *want,
                 uint64_t *ends_s, struct mo_err *e)
{
    double ends = 0;

    if (want->issuer && !mo_json_str_eq(mo_json_get(t->claims, "iss"),
                                        mo_span_cstr(want->issuer)))
        return mo_fail(e, MO_EPOLICY, "the token is of another issuer");
    if (!is_for_us(mo_json_get(t->claims, "aud"), want))
        return mo_fail(e, MO_EPOLICY, "the token is for another audience");
    if (!read_date(mo_json_get(t->claims, "exp"), &ends))
        return mo_fail(e, MO_EPOLICY, "the token has no end");
    if (ends + MO_JWT_LEEWAY_S <= (double)want->now_s)
        return mo_fail(e, MO_EPOLICY, "the token has expired");
    if (!is_past(mo_json_get(t->claims, "nbf"), want->now_s) ||
        !is_past(mo_json_get(t->claims, "iat"), want->now_s))
        return mo_fail(e, MO_EPOLICY, "the token is not valid yet");
    *ends_s = (uint64_t)ends + MO_JWT_LEEWAY_S;
    return 0;
}
