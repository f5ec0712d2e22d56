#include "codec/chain.h"

#include <stdio.h>

#define HEAD     "{\"seq\":"
#define PREV     ",\"prev\":\""
#define HASH     ",\"hash\":\""
#define MAC      ",\"mac\":\""
#define TAIL     "\"}"
#define TAIL_LEN (MO_CHAIN_HEX + sizeof(TAIL) - 1)

struct line {
    uint64_t seq;
    bool keyed;
    struct mo_span prev, body, hash;
};

void mo_chain_init(struct mo_chain *c, const struct mo_hmac *key)
{
    *c = (struct mo_chain){.key = key};
    memset(c->hash, '0', MO_CHAIN_HEX);
}

void mo_chain_mac(const struct mo_hmac *key, struct mo_span text,
                  char out[MO_CHAIN_HEX + 1])
{
    unsigned char sum[MO_SHA256_LEN];
    struct mo_hmac m = *key;

    mo_hmac_put(&m, text.p, text.n);
    mo_hmac_end(&m, sum);
    mo_hex(sum, sizeof(sum), out);
}

static void hash_body(const struct mo_hmac *key, struct mo_span body,
                      char out[MO_CHAIN_HEX + 1])
{
    if (key)
        mo_chain_mac(key, body, out);
    else
        mo_sha256_hex(body, out);
}

/* --- reading ------------------------------------------------------------- */

/* Numbers as we write them: a leading zero would be another spelling. */
static bool take_seq(struct mo_span *s, uint64_t *out)
{
    size_t n = 0;

    while (n < s->n && mo_is_digit(s->p[n]))
        n++;
    return n && s->p[0] != '0' && mo_span_u64(mo_span_take(s, n), out) == 0;
}

static bool take_hex(struct mo_span *s, struct mo_span *out)
{
    static const char digits[] = "0123456789abcdef";

    *out = mo_span_take(s, MO_CHAIN_HEX);
    for (size_t i = 0; i < out->n; i++)
        if (!memchr(digits, out->p[i], sizeof(digits) - 1))
            return false;
    return out->n == MO_CHAIN_HEX;
}

/* Splits off the mac or the hash at the end. */
static bool take_hash(struct mo_span *s, struct line *out)
{
    struct mo_span end, word;

    if (s->n <= sizeof(HASH) - 1 + TAIL_LEN)
        return false;
    end = mo_span_skip(*s, s->n - TAIL_LEN);
    word = mo_span_head(*s, s->n - TAIL_LEN);
    out->keyed = mo_span_ends(word, MO_SPAN(MAC));
    if (!out->keyed && !mo_span_ends(word, MO_SPAN(HASH)))
        return false;
    word.n -= (out->keyed ? sizeof(MAC) : sizeof(HASH)) - 1;
    *s = word;
    return take_hex(&end, &out->hash) && mo_span_is(end, TAIL);
}

static bool read_line(struct mo_span text, struct line *out)
{
    struct mo_span s = text;

    if (!take_hash(&s, out))
        return false;
    out->body = s;
    if (!mo_span_strip(&s, MO_SPAN(HEAD)) || !take_seq(&s, &out->seq) ||
        !mo_span_strip(&s, MO_SPAN(PREV)) || !take_hex(&s, &out->prev) ||
        !mo_span_strip(&s, MO_SPAN("\",")))
        return false;
    return s.n > 0;
}

/* Checks one line alone: its form and its own mac or hash. */
static int read_own(const struct mo_chain *c, struct mo_span text,
                    struct line *out, struct mo_err *e)
{
    char hash[MO_CHAIN_HEX + 1];

    if (!read_line(text, out))
        return mo_fail(e, MO_EPROTO, "it is no row of this log");
    if (out->keyed && !c->key)
        return mo_fail(e, MO_EPROTO,
                       "row %llu has a MAC, which cannot be checked without "
                       "the key",
                       (unsigned long long)out->seq);
    hash_body(out->keyed ? c->key : NULL, out->body, hash);
    if (!mo_span_eq_ct(out->hash, mo_span_cstr(hash)))
        return mo_fail(e, MO_EPROTO,
                       out->keyed ? "row %llu was changed, or written with "
                                    "another key"
                                  : "row %llu was changed",
                       (unsigned long long)out->seq);
    return 0;
}

static void stand_at(struct mo_chain *c, const struct line *l)
{
    c->seq = l->seq;
    (void)snprintf(c->hash, sizeof(c->hash), "%.*s", (int)l->hash.n, l->hash.p);
    c->open = false;
    c->keyed = l->keyed;
}

int mo_chain_resume(struct mo_chain *c, struct mo_span line, struct mo_err *e)
{
    struct line l = {.seq = 0};
    int rc = read_own(c, line, &l, e);

    if (rc == 0)
        stand_at(c, &l);
    return rc;
}

int mo_chain_check(struct mo_chain *c, struct mo_span line, struct mo_err *e)
{
    struct line l = {.seq = 0};
    int rc = read_own(c, line, &l, e);

    if (rc < 0)
        return rc;
    if (c->keyed && !l.keyed)
        return mo_fail(e, MO_EPROTO,
                       "row %llu has no MAC, but a row before it has one",
                       (unsigned long long)l.seq);
    if (!c->open && l.seq != c->seq + 1)
        return mo_fail(e, MO_EPROTO, "row %llu stands where row %llu should",
                       (unsigned long long)l.seq,
                       (unsigned long long)c->seq + 1);
    if (!c->open && !mo_span_is(l.prev, c->hash))
        return mo_fail(e, MO_EPROTO,
                       "row %llu does not belong to the row before it",
                       (unsigned long long)l.seq);
    stand_at(c, &l);
    return 0;
}

/* --- writing ------------------------------------------------------------- */

int mo_chain_put(struct mo_chain *c, struct mo_span members, struct mo_buf *out,
                 struct mo_err *e)
{
    size_t at = out->len;
    char hash[MO_CHAIN_HEX + 1];

    if (members.n == 0 || mo_span_find(members, '\n') >= 0)
        return mo_fail(e, MO_EINVAL, "a row is one line");
    mo_buf_span(out, MO_SPAN(HEAD));
    mo_buf_u64(out, c->seq + 1);
    mo_buf_span(out, MO_SPAN(PREV));
    mo_buf_put(out, c->hash, MO_CHAIN_HEX);
    mo_buf_span(out, MO_SPAN("\","));
    if (mo_buf_span(out, members) < 0)
        return mo_fail(e, mo_buf_err(out), "a row is too big");
    hash_body(c->key, mo_span(out->p + at, out->len - at), hash);
    mo_buf_span(out, c->key ? MO_SPAN(MAC) : MO_SPAN(HASH));
    mo_buf_put(out, hash, MO_CHAIN_HEX);
    if (mo_buf_span(out, MO_SPAN(TAIL "\n")) < 0)
        return mo_fail(e, mo_buf_err(out), "a row is too big");
    c->seq++;
    memcpy(c->hash, hash, sizeof(hash));
    c->open = false;
    c->keyed = c->key != NULL;
    return 0;
}
