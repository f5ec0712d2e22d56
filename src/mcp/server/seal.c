#include "mcp/server/seal.h"

#include "base/rand.h"
#include "codec/sha256.h"
#include "codec/text/base64.h"

enum { NONCE = 16, EXPIRY = 8, HEAD = NONCE + EXPIRY, TAG = MO_SHA256_LEN };

static void store_u64(unsigned char *p, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++)
        p[i] = (unsigned char)(v >> (56 - 8 * i));
}

static uint64_t load_u64(const unsigned char *p)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < 8; i++)
        v = v << 8 | p[i];
    return v;
}

static void put_u64(struct mo_hmac *m, uint64_t v)
{
    unsigned char b[8];

    store_u64(b, v);
    mo_hmac_put(m, b, sizeof(b));
}

void mo_seal_init(struct mo_seal *s)
{
    mo_random(s->k1, sizeof(s->k1));
    mo_random(s->k2, sizeof(s->k2));
}

static void derive(struct mo_span secret, const char *use, char which,
                   unsigned char out[MO_SHA256_LEN])
{
    struct mo_hmac m;

    mo_hmac_init(&m, secret);
    mo_hmac_put(&m, &which, 1);
    mo_hmac_put(&m, use, strlen(use));
    mo_hmac_end(&m, out);
    explicit_bzero(&m, sizeof(m));
}

void mo_seal_share(struct mo_seal *s, struct mo_span secret, const char *use)
{
    derive(secret, use, '1', s->k1);
    derive(secret, use, '2', s->k2);
}

static void crypt_bytes(const struct mo_seal *s, const unsigned char *nonce,
                        unsigned char *p, size_t n)
{
    unsigned char block[MO_SHA256_LEN];

    for (size_t i = 0; i < n; i++) {
        if (i % sizeof(block) == 0) {
            struct mo_hmac m;

            mo_hmac_init(&m, mo_span((const char *)s->k1, sizeof(s->k1)));
            mo_hmac_put(&m, nonce, NONCE);
            put_u64(&m, i / sizeof(block));
            mo_hmac_end(&m, block);
        }
        p[i] ^= block[i % sizeof(block)];
    }
}

/* Sign everything before the tag, and bind. */
static void compute_tag(const struct mo_seal *s, struct mo_span bind,
                        struct mo_span body, unsigned char tag[TAG])
{
    struct mo_hmac m;

    mo_hmac_init(&m, mo_span((const char *)s->k2, sizeof(s->k2)));
    put_u64(&m, bind.n);
    put_u64(&m, body.n);
    mo_hmac_put(&m, bind.p, bind.n);
    mo_hmac_put(&m, body.p, body.n);
    mo_hmac_end(&m, tag);
}

/* head: the nonce, and space for the time. */
static int put_seal(const struct mo_seal *s, struct mo_span bind,
                    uint64_t expires, struct mo_span plain,
                    unsigned char head[HEAD], struct mo_buf *out)
{
    unsigned char tag[TAG];
    mo_autobuf struct mo_buf raw = {.max = MO_SEAL_MAX};
    int rc;

    store_u64(head + NONCE, expires);
    (void)mo_buf_put(&raw, head, HEAD);
    (void)mo_buf_span(&raw, plain);
    rc = mo_buf_err(&raw);
    if (rc == 0) {
        crypt_bytes(s, head, (unsigned char *)raw.p + HEAD, plain.n);
        compute_tag(s, bind, mo_buf_view(&raw), tag);
        rc = mo_buf_put(&raw, tag, sizeof(tag));
    }
    if (rc == 0)
        rc = mo_base64url_put(out, mo_buf_view(&raw));
    return rc;
}

int mo_seal_put(const struct mo_seal *s, struct mo_span bind, uint64_t expires,
                struct mo_span plain, struct mo_buf *out)
{
    unsigned char head[HEAD];

    mo_random(head, NONCE);
    return put_seal(s, bind, expires, plain, head, out);
}

/* The first number keeps these apart from the inputs of compute_tag(). */
int mo_seal_put_same(const struct mo_seal *s, struct mo_span bind,
                     struct mo_span plain, struct mo_buf *out)
{
    unsigned char head[HEAD], digest[MO_SHA256_LEN];
    struct mo_hmac m;

    mo_hmac_init(&m, mo_span((const char *)s->k2, sizeof(s->k2)));
    put_u64(&m, UINT64_MAX);
    put_u64(&m, bind.n);
    mo_hmac_put(&m, bind.p, bind.n);
    mo_hmac_put(&m, plain.p, plain.n);
    mo_hmac_end(&m, digest);
    memcpy(head, digest, NONCE);
    return put_seal(s, bind, UINT64_MAX, plain, head, out);
}

static int open_raw(const struct mo_seal *s, struct mo_span bind, uint64_t now,
                    struct mo_buf *raw, struct mo_buf *plain)
{
    const unsigned char *p = (const unsigned char *)raw->p;
    unsigned char tag[TAG];
    size_t body;

    if (raw->len < HEAD + TAG)
        return MO_EPROTO;
    body = raw->len - TAG;
    compute_tag(s, bind, mo_span(raw->p, body), tag);
    if (!mo_span_eq_ct(mo_span((const char *)tag, TAG),
                       mo_span(raw->p + body, TAG)))
        return MO_EPROTO;
    if (load_u64(p + NONCE) < now)
        return MO_ETIMEOUT;
    crypt_bytes(s, p, (unsigned char *)raw->p + HEAD, body - HEAD);
    return mo_buf_put(plain, raw->p + HEAD, body - HEAD);
}

int mo_seal_open(const struct mo_seal *s, struct mo_span bind, uint64_t now,
                 struct mo_span text, struct mo_buf *plain)
{
    mo_autobuf struct mo_buf raw = {.max = MO_SEAL_MAX};
    int rc;

    if (text.n > MO_SEAL_MAX * 4 / 3 + 4)
        return MO_EPROTO;
    rc = mo_base64url_decode(text, &raw);
    if (rc == 0)
        rc = open_raw(s, bind, now, &raw, plain);
    return rc == MO_ETOOBIG ? MO_EPROTO : rc;
}
