#include "people/proof.h"

#include "people/proofs_shared.h"

#include "codec/http/url.h"
#include "loop/jwk.h"

#define ARENA_MAX ((size_t)64 * 1024)
#define JWK_MAX   ((size_t)4096)

void mo_proofs_init(struct mo_proofs *p)
{
    *p = (struct mo_proofs){.since_s = 0};
    mo_map_init(&p->now, MO_PROOFS_MAX);
    mo_map_init(&p->before, MO_PROOFS_MAX);
}

void mo_proofs_fini(struct mo_proofs *p)
{
    mo_map_fini(&p->now);
    mo_map_fini(&p->before);
}

/* --- the binding --------------------------------------------------------- */

int mo_proof_binding(struct mo_json claims, char jkt[MO_PROOF_JKT + 1],
                     struct mo_err *e)
{
    struct mo_json cnf = mo_json_get(claims, "cnf");
    bool other = !mo_json_is(cnf, MO_JSON_OBJECT);

    jkt[0] = '\0';
    if (!cnf.p)
        return 0;
    mo_json_each_while (m, cnf, !other)
        other = !mo_json_str_eq(m.key, MO_SPAN("jkt")) || jkt[0] ||
                mo_json_str_copy(m.val, jkt, MO_PROOF_JKT + 1) < 0 ||
                strlen(jkt) != MO_PROOF_JKT;
    if (other || !jkt[0])
        return mo_fail(e, MO_EPOLICY,
                       "the token is bound to something that is not checked "
                       "here; only cnf.jkt is");
    return 0;
}

/* --- one proof ----------------------------------------------------------- */

/* RFC 7638: the members of the key in the order of their names. */
static int put_thumbprint(struct mo_json jwk, char out[MO_PROOF_JKT + 1])
{
    static const char *const names[] = {"crv", "e", "kty", "n", "x", "y"};
    mo_autobuf struct mo_buf b = {.max = JWK_MAX}, value = {.max = JWK_MAX};
    struct mo_jw w = mo_jw_object(&b);

    for (size_t i = 0; i < MO_COUNT(names); i++) {
        struct mo_json v = mo_json_get(jwk, names[i]);

        mo_buf_reset(&value);
        if (!v.p)
            continue;
        if (!mo_json_is(v, MO_JSON_STRING) || mo_json_str_buf(v, &value) < 0)
            return MO_EINVAL;
        mo_jw_member_cstr(&w, names[i], mo_buf_cstr(&value));
    }
    mo_jw_end(&w);
    mo_dpop_digest(mo_buf_view(&b), out);
    return mo_buf_err(&b);
}

static bool is_text(struct mo_json claims, const char *name, const char *text)
{
    return mo_json_str_eq(mo_json_get(claims, name), mo_span_cstr(text));
}

/* Query and fragment do not matter. */
static bool is_address(struct mo_json htu, const struct mo_proof *in)
{
    mo_autobuf struct mo_buf text = {.max = MO_URL_MAX};
    struct mo_span path, prefix;
    struct mo_url said, ours;

    if (!mo_json_is(htu, MO_JSON_STRING) || mo_json_str_buf(htu, &text) < 0 ||
        mo_url_parse(mo_buf_view(&text), &said, NULL) < 0 ||
        mo_url_parse(mo_span_cstr(in->url), &ours, NULL) < 0 ||
        said.userinfo.p || !mo_origin_eq(&said, &ours))
        return false;
    path = said.path.n ? said.path : MO_SPAN("/");
    prefix = ours.path;
    return mo_span_strip(&path, prefix) && mo_span_eq(path, in->path);
}

static bool is_recent(struct mo_json iat, uint64_t now_s)
{
    double at = 0;

    return mo_json_is(iat, MO_JSON_NUMBER) && mo_json_f64(iat, &at) == 0 &&
           at + MO_PROOF_WINDOW_S >= (double)now_s &&
           at <= (double)(now_s + MO_PROOF_WINDOW_S);
}

/* Everything but the signature. */
static int check_claims(const struct mo_proof *in, const struct mo_jwt *t,
                        struct mo_err *e)
{
    char ath[MO_PROOF_JKT + 1];

    if (!mo_json_str_eq(mo_json_get(t->claims, "htm"), in->method))
        return mo_fail(e, MO_EPOLICY, "the proof is for another method");
    if (!is_address(mo_json_get(t->claims, "htu"), in))
        return mo_fail(e, MO_EPOLICY, "the proof is for another address");
    if (!is_recent(mo_json_get(t->claims, "iat"), in->now_s))
        return mo_fail(e, MO_EPOLICY, "the proof is too old, or of the future");
    mo_dpop_digest(in->token, ath);
    if (!is_text(t->claims, "ath", ath))
        return mo_fail(e, MO_EPOLICY, "the proof is for another token");
    return 0;
}

static int check_signature(const struct mo_jwt *t, const char *jkt,
                           struct mo_err *e)
{
    struct mo_json jwk = mo_json_get(t->header, "jwk");
    char print[MO_PROOF_JKT + 1] = "";
    struct mo_jwk *key = NULL;
    bool ok;

    if (!is_text(t->header, "typ", "dpop+jwt"))
        return mo_fail(e, MO_EPOLICY, "the header DPoP is no proof");
    if (!mo_json_is(jwk, MO_JSON_OBJECT) || put_thumbprint(jwk, print) < 0 ||
        strcmp(print, jkt) != 0)
        return mo_fail(e, MO_EPOLICY, "the proof is of another key");
    if (mo_jwk_new(jwk, &key, e) < 0)
        return mo_wrap(e, "the key of the proof");
    ok = mo_jwk_alg(key) == t->alg &&
         mo_jwk_verify(key, t->signed_part, t->signature);
    mo_jwk_free(key);
    return ok ? 0
              : mo_fail(e, MO_EPOLICY, "the proof is not signed by its key");
}

/* --- ids ----------------------------------------------------------------- */

/* The older ones are forgotten when none of them can be valid. */
static void turn(struct mo_proofs *p, uint64_t now_s)
{
    struct mo_map old = p->before;

    if (now_s < p->since_s + 2 * MO_PROOF_WINDOW_S)
        return;
    mo_map_clear(&old);
    p->before = p->now;
    p->now = old;
    p->since_s = now_s;
}

/* Two keys may choose the same id. */
static int use_once(struct mo_proofs *p, const struct mo_proof *in,
                    struct mo_json id, const char *jkt, struct mo_err *e)
{
    mo_autobuf struct mo_buf key = {.max = MO_PROOF_JKT + MO_PROOF_ID_MAX};
    int rc;

    (void)mo_buf_puts(&key, jkt);
    if (!mo_json_is(id, MO_JSON_STRING) || mo_json_str_buf(id, &key) < 0 ||
        key.len == MO_PROOF_JKT)
        return mo_fail(e, MO_EPOLICY, "the proof has no usable jti");
    if (in->passed_on)
        return 0;
    turn(p, in->now_s);
    if (p->shared)
        rc = mo_proofs_shared_add(p->shared, mo_buf_view(&key), in->now_s);
    else if (mo_map_get(&p->before, mo_buf_view(&key)))
        rc = MO_EEXISTS;
    else
        rc = mo_map_add(&p->now, mo_buf_view(&key), p);
    if (rc == MO_EEXISTS)
        return mo_fail(e, MO_EPOLICY, "the proof was used before");
    return rc < 0 ? mo_fail(e, MO_EBUSY, "too many proofs at once") : 0;
}

int mo_proof_check(struct mo_proofs *p, const struct mo_proof *in,
                   const char *jkt, struct mo_err *e)
{
    mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};
    struct mo_jwt t;
    int rc;

    if (!jkt[0])
        return in->sent ? mo_fail(e, MO_EPOLICY,
                                  "the token is not bound to a key: send it "
                                  "as Bearer")
                        : 0;
    if (!in->sent)
        return mo_fail(e, MO_EPOLICY,
                       "the token is bound to a key: send it as DPoP, with a "
                       "proof");
    if (mo_jwt_parse(in->text, &a, &t, e) < 0)
        return mo_fail(e, MO_EPOLICY, "the proof is missing or malformed");
    rc = check_claims(in, &t, e);
    if (rc == 0)
        rc = check_signature(&t, jkt, e);
    if (rc == 0)
        rc = use_once(p, in, mo_json_get(t.claims, "jti"), jkt, e);
    return rc == MO_EBUSY ? rc : rc < 0 ? MO_EPOLICY : 0;
}
