#include "mcp/oauth/dpop.h"

#include "base/clock.h"
#include "base/rand.h"
#include "codec/http/url.h"
#include "codec/json/json.h"
#include "codec/sha256.h"
#include "codec/text/base64.h"

#define PEM_MAX ((size_t)4096)

void mo_dpop_fini(struct mo_dpop *d)
{
    mo_jws_key_free(d->key);
    *d = (struct mo_dpop){.key = NULL};
}

int mo_dpop_make(struct mo_dpop *d, struct mo_err *e)
{
    mo_jws_key_free(mo_take_ptr(&d->key));
    return mo_jws_key_new(&d->key, e);
}

static bool is_in_use(const struct mo_dpop *d, const char *pem)
{
    mo_autowipe struct mo_buf now = {.max = PEM_MAX};

    return d->key && mo_jws_key_pem(d->key, &now) == 0 &&
           mo_span_is(mo_buf_view(&now), pem);
}

int mo_dpop_read(struct mo_dpop *d, const char *pem, struct mo_err *e)
{
    if (pem && is_in_use(d, pem))
        return 0;
    mo_jws_key_free(mo_take_ptr(&d->key));
    return pem ? mo_jws_key_read(mo_span_cstr(pem), &d->key, e) : 0;
}

void mo_dpop_nonce(struct mo_dpop *d, struct mo_span nonce)
{
    if (nonce.n == 0 || nonce.n > MO_DPOP_NONCE_MAX ||
        !mo_span_between(nonce, '!', '~'))
        return;
    memcpy(d->nonce, nonce.p, nonce.n);
    d->nonce[nonce.n] = '\0';
}

void mo_dpop_digest(struct mo_span text, char out[MO_DPOP_JKT + 1])
{
    mo_autobuf struct mo_buf b = {.max = MO_DPOP_JKT};
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 h;

    mo_sha256_init(&h);
    mo_sha256_put(&h, text.p, text.n);
    mo_sha256_end(&h, sum);
    out[0] = '\0';
    if (mo_base64url_put(&b, mo_span((const char *)sum, sizeof(sum))) == 0)
        memcpy(out, mo_buf_cstr(&b), MO_DPOP_JKT + 1);
}

void mo_dpop_thumbprint(const struct mo_dpop *d, char out[MO_DPOP_JKT + 1])
{
    mo_dpop_digest(mo_span_cstr(mo_jws_key_jwk(d->key)), out);
}

/* The address as the server sees it: without user, query and fragment. */
static int put_htu(const char *url, struct mo_buf *b)
{
    struct mo_url u;

    if (mo_url_parse(mo_span_cstr(url), &u, NULL) < 0)
        return MO_EINVAL;
    (void)mo_buf_span(b, u.scheme);
    (void)mo_buf_puts(b, u.ipv6 ? "://[" : "://");
    (void)mo_buf_span(b, u.host);
    (void)mo_buf_puts(b, u.ipv6 ? "]" : "");
    if (u.has_port)
        (void)mo_buf_printf(b, ":%u", u.port);
    return mo_buf_span(b, u.path.n ? u.path : MO_SPAN("/"));
}

int mo_dpop_proof(const struct mo_dpop *d, const struct mo_dpop_request *r,
                  struct mo_buf *out, struct mo_err *e)
{
    mo_autobuf struct mo_buf htu = {.max = MO_URL_MAX},
                             claims = {.max = MO_DPOP_PROOF_MAX};
    char id[MO_TOKEN_LEN(18) + 1], ath[MO_DPOP_JKT + 1];
    struct mo_jw w = mo_jw_object(&claims);

    if (put_htu(r->url, &htu) < 0)
        return mo_fail(e, MO_EINVAL, "no proof for this address");
    mo_random_token(id, 18);
    mo_jw_member_cstr(&w, "jti", id);
    mo_jw_member_cstr(&w, "htm", r->method);
    mo_jw_member_cstr(&w, "htu", mo_buf_cstr(&htu));
    mo_jw_member_u64(&w, "iat", mo_wall_ms() / 1000);
    if (r->access.n) {
        mo_dpop_digest(r->access, ath);
        mo_jw_member_cstr(&w, "ath", ath);
    }
    if (d->nonce[0])
        mo_jw_member_cstr(&w, "nonce", d->nonce);
    mo_jw_end(&w);
    if (mo_buf_err(&claims))
        return mo_fail(e, mo_buf_err(&claims), "the proof is too long");
    return mo_jws_key_sign(d->key, "dpop+jwt", mo_buf_view(&claims), out, e);
}
