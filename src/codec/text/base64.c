#include "codec/text/base64.h"

#define BAD 0xFF

struct alphabet {
    char c[64];
    bool pad;
};

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/* Exactly 64 characters each, without a NUL. */
static const struct alphabet standard = {LETTERS "+/", true};
static const struct alphabet url = {LETTERS "-_", false};

static size_t encoded_len(const struct alphabet *a, size_t n)
{
    size_t rest = n % 3;

    return n / 3 * 4 + (rest == 0 ? 0 : a->pad ? 4 : rest + 1);
}

/* Encode the last one or two bytes. */
static void encode_rest(const struct alphabet *a, char *out,
                        const unsigned char *in, size_t rest)
{
    unsigned v = (unsigned)in[0] << 16 | (rest == 2 ? (unsigned)in[1] << 8 : 0);

    out[0] = a->c[v >> 18];
    out[1] = a->c[v >> 12 & 63];
    if (rest == 2)
        out[2] = a->c[v >> 6 & 63];
    if (a->pad && rest == 1)
        out[2] = '=';
    if (a->pad)
        out[3] = '=';
}

static int encode(const struct alphabet *a, struct mo_buf *b, struct mo_span in)
{
    const unsigned char *p = (const unsigned char *)in.p;
    size_t n = in.n;
    char *out;

    if (n > SIZE_MAX / 4 * 3 - 4)
        return mo_buf_fail(b, MO_ETOOBIG);
    out = mo_buf_room(b, encoded_len(a, n));
    if (!out)
        return mo_buf_err(b);
    mo_buf_add(b, encoded_len(a, n));
    for (; n >= 3; n -= 3, p += 3, out += 4) {
        unsigned v = (unsigned)p[0] << 16 | (unsigned)p[1] << 8 | p[2];

        out[0] = a->c[v >> 18];
        out[1] = a->c[v >> 12 & 63];
        out[2] = a->c[v >> 6 & 63];
        out[3] = a->c[v & 63];
    }
    if (n)
        encode_rest(a, out, p, n);
    return 0;
}

static void invert_alphabet(const struct alphabet *a, uint8_t value[256])
{
    memset(value, BAD, 256);
    for (unsigned i = 0; i < 64; i++)
        value[(unsigned char)a->c[i]] = (uint8_t)i;
}

/* Remove the padding; false when it is wrong. */
static bool strip_padding(const struct alphabet *a, struct mo_span *in)
{
    if (!a->pad)
        return in->n % 4 != 1;
    if (in->n % 4 != 0)
        return false;
    for (int i = 0; i < 2 && in->n && in->p[in->n - 1] == '='; i++)
        in->n--;
    return true;
}

/* Decode the last two or three characters: their spare bits must be zero. */
static bool decode_rest(const uint8_t value[256], const unsigned char *p,
                        size_t rest, char *out)
{
    uint8_t x = value[p[0]], y = value[p[1]];
    uint8_t z = rest == 3 ? value[p[2]] : 0;

    if (x == BAD || y == BAD || z == BAD)
        return false;
    if (rest == 2 ? y & 15 : z & 3)
        return false;
    out[0] = (char)(x << 2 | y >> 4);
    if (rest == 3)
        out[1] = (char)(y << 4 | z >> 2);
    return true;
}

static int decode(const struct alphabet *a, struct mo_span in, struct mo_buf *b)
{
    const unsigned char *p = (const unsigned char *)in.p;
    uint8_t value[256];
    size_t n, rest;
    char *out;

    if (!strip_padding(a, &in))
        return MO_EPROTO;
    rest = in.n % 4;
    n = in.n / 4 * 3 + (rest ? rest - 1 : 0);
    out = mo_buf_room(b, n);
    if (!out)
        return mo_buf_err(b);
    invert_alphabet(a, value);
    for (size_t i = in.n / 4; i > 0; i--, p += 4, out += 3) {
        uint8_t w = value[p[0]], x = value[p[1]], y = value[p[2]],
                z = value[p[3]];

        if ((w | x | y | z) & 0xC0)
            return MO_EPROTO;
        out[0] = (char)(w << 2 | x >> 4);
        out[1] = (char)(x << 4 | y >> 2);
        out[2] = (char)(y << 6 | z);
    }
    if (rest && !decode_rest(value, p, rest, out))
        return MO_EPROTO;
    mo_buf_add(b, n);
    return 0;
}

int mo_base64_put(struct mo_buf *b, struct mo_span in)
{
    return encode(&standard, b, in);
}

int mo_base64_decode(struct mo_span in, struct mo_buf *out)
{
    return decode(&standard, in, out);
}

int mo_base64url_put(struct mo_buf *b, struct mo_span in)
{
    return encode(&url, b, in);
}

int mo_base64url_decode(struct mo_span in, struct mo_buf *out)
{
    return decode(&url, in, out);
}
