#include "codec/inflate.h"

#include "base/mem.h"

#define BITS_MAX   15 /* of a code */
#define LITERALS   288
#define DISTANCES  30
#define LENGTHS    19 /* codes that describe the other codes */
#define END        256
#define BLOCK_COPY 0
#define BLOCK_FIX  1
#define BLOCK_DYN  2

/* A canonical Huffman code: how many codes have each length, and the symbols in
 * the order of their codes. */
struct code {
    uint16_t count[BITS_MAX + 1];
    uint16_t symbol[LITERALS];
};

struct state {
    struct mo_span in;
    uint32_t bits; /* taken from in, not used yet */
    unsigned nbits;
    unsigned char *window;
    size_t at;      /* next byte of the window */
    uint64_t total; /* bytes so far */
    uint64_t max;
    mo_inflate_put *put;
    void *ctx;
    struct mo_err *e;
    struct code lit, dist;
    uint8_t lengths[LITERALS + DISTANCES + 2]; /* of a block's codes */
};

static int bad(struct state *s)
{
    return mo_fail(s->e, MO_EPROTO, "the compressed data is damaged");
}

/* --- input ---------------------------------------------------------------- */

/* n <= 16 bits, the first one lowest; negative: there are no more. */
static int take_bits(struct state *s, unsigned n)
{
    uint32_t v;

    while (s->nbits < n) {
        if (!s->in.n)
            return bad(s);
        s->bits |= (uint32_t)(unsigned char)s->in.p[0] << s->nbits;
        s->nbits += 8;
        s->in = mo_span_skip(s->in, 1);
    }
    v = s->bits & ((1U << n) - 1);
    s->bits >>= n;
    s->nbits -= n;
    return (int)v;
}

/* The next symbol, bit by bit: codes of a length are consecutive numbers. */
static int take_symbol(struct state *s, const struct code *c)
{
    int code = 0, first = 0, index = 0;

    for (unsigned len = 1; len <= BITS_MAX; len++) {
        int bit = take_bits(s, 1), count = c->count[len];

        if (bit < 0)
            return bit;
        code |= bit;
        if (code - count < first)
            return c->symbol[index + (code - first)];
        index += count;
        first = (first + count) << 1;
        code <<= 1;
    }
    return bad(s);
}

/* --- output --------------------------------------------------------------- */

static int flush(struct state *s)
{
    int rc = s->at
                 ? s->put(s->ctx, mo_span((const char *)s->window, s->at), s->e)
                 : 0;

    s->at = 0;
    return rc;
}

static int put_byte(struct state *s, unsigned char byte)
{
    if (s->total == s->max)
        return mo_fail(s->e, MO_ETOOBIG, "the data is longer than it says");
    s->window[s->at++] = byte;
    s->total++;
    return s->at == MO_INFLATE_WINDOW ? flush(s) : 0;
}

/* The window is a ring: what was flushed is still there. */
static int put_match(struct state *s, size_t length, size_t distance)
{
    if (distance > s->total || distance > MO_INFLATE_WINDOW)
        return bad(s);
    while (length-- > 0) {
        size_t from =
            (s->at + MO_INFLATE_WINDOW - distance) % MO_INFLATE_WINDOW;
        int rc = put_byte(s, s->window[from]);

        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- codes ---------------------------------------------------------------- */

/* Refuses a code with too many members, and one with too few unless it has a
 * single one. */
static int make_code(struct state *s, struct code *c, const uint8_t *lengths,
                     unsigned n)
{
    uint16_t offset[BITS_MAX + 1] = {0};
    int left = 1;
    unsigned used = 0;

    *c = (struct code){.count = {0}};
    for (unsigned i = 0; i < n; i++)
        c->count[lengths[i]]++;
    used = n - c->count[0];
    c->count[0] = 0;
    for (unsigned len = 1; len <= BITS_MAX; len++) {
        left = 2 * left - c->count[len];
        if (left < 0)
            return bad(s);
        if (len < BITS_MAX)
            offset[len + 1] = (uint16_t)(offset[len] + c->count[len]);
    }
    if (left > 0 && used > 1)
        return bad(s);
    for (unsigned i = 0; i < n; i++) {
        if (lengths[i])
            c->symbol[offset[lengths[i]]++] = (uint16_t)i;
    }
    return 0;
}

static int fixed_codes(struct state *s)
{
    uint8_t *l = s->lengths;
    int rc;

    for (unsigned i = 0; i < LITERALS; i++)
        l[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    rc = make_code(s, &s->lit, l, LITERALS);
    for (unsigned i = 0; i < 32; i++)
        l[i] = 5;
    return rc < 0 ? rc : make_code(s, &s->dist, l, 32);
}

/* Lengths of both codes, packed by a third one. */
static int read_lengths(struct state *s, unsigned n)
{
    unsigned i = 0;

    while (i < n) {
        int symbol = take_symbol(s, &s->lit), extra;
        unsigned repeat;
        uint8_t value = 0;

        if (symbol < 0)
            return symbol;
        if (symbol < 16) {
            s->lengths[i++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 16 && i == 0)
            return bad(s);
        if (symbol == 16)
            value = s->lengths[i - 1];
        extra = take_bits(s, symbol == 16 ? 2 : symbol == 17 ? 3 : 7);
        if (extra < 0)
            return extra;
        repeat = (unsigned)extra + (symbol == 18 ? 11 : 3);
        if (repeat > n - i)
            return bad(s);
        while (repeat-- > 0)
            s->lengths[i++] = value;
    }
    return 0;
}

static int dynamic_codes(struct state *s)
{
    static const uint8_t order[LENGTHS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                           11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[LENGTHS] = {0};
    int nlit = take_bits(s, 5), ndist = take_bits(s, 5), n = take_bits(s, 4);
    int rc = nlit < 0 || ndist < 0 || n < 0 ? s->e->code : 0;

    if (rc < 0)
        return rc;
    nlit += 257;
    ndist += 1;
    if (nlit > 286 || ndist > DISTANCES)
        return bad(s);
    for (int i = 0; i < n + 4; i++) {
        int v = take_bits(s, 3);

        if (v < 0)
            return v;
        lengths[order[i]] = (uint8_t)v;
    }
    rc = make_code(s, &s->lit, lengths, LENGTHS);
    if (rc == 0)
        rc = read_lengths(s, (unsigned)(nlit + ndist));
    if (rc == 0 && s->lengths[END] == 0)
        rc = bad(s);
    if (rc == 0)
        rc = make_code(s, &s->lit, s->lengths, (unsigned)nlit);
    return rc < 0 ? rc
                  : make_code(s, &s->dist, s->lengths + nlit, (unsigned)ndist);
}

/* --- blocks --------------------------------------------------------------- */

static int copy_block(struct state *s)
{
    int len, complement;

    s->bits = 0; /* the rest of the byte */
    s->nbits = 0;
    len = take_bits(s, 16);
    complement = take_bits(s, 16);
    if (len < 0 || complement < 0 || len != (complement ^ 0xffff) ||
        s->in.n < (size_t)len)
        return bad(s);
    for (int i = 0; i < len; i++) {
        int rc = put_byte(s, (unsigned char)s->in.p[i]);

        if (rc < 0)
            return rc;
    }
    s->in = mo_span_skip(s->in, (size_t)len);
    return 0;
}

/* A length symbol: the bytes before it, from how far. */
static int read_match(struct state *s, int symbol)
{
    static const uint16_t lens[] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                    15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                    67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint16_t dists[] = {
        1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
        33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
        1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    unsigned i = (unsigned)symbol - END - 1;
    int extra, dist, more;

    if (i >= MO_COUNT(lens))
        return bad(s);
    extra = take_bits(s, i < 8 || i == 28 ? 0 : (i - 4) / 4);
    dist = extra < 0 ? extra : take_symbol(s, &s->dist);
    if (dist < 0)
        return dist;
    if ((unsigned)dist >= MO_COUNT(dists))
        return bad(s);
    more = take_bits(s, dist < 4 ? 0 : ((unsigned)dist - 2) / 2);
    if (more < 0)
        return more;
    return put_match(s, lens[i] + (size_t)extra, dists[dist] + (size_t)more);
}

static int coded_block(struct state *s)
{
    for (;;) {
        int symbol = take_symbol(s, &s->lit), rc;

        if (symbol < 0 || symbol == END)
            return symbol < 0 ? symbol : 0;
        rc = symbol < END ? put_byte(s, (unsigned char)symbol)
                          : read_match(s, symbol);
        if (rc < 0)
            return rc;
    }
}

static int read_blocks(struct state *s)
{
    int last = 0;

    while (!last) {
        int kind, rc = 0;

        last = take_bits(s, 1);
        kind = last < 0 ? last : take_bits(s, 2);
        if (kind < 0)
            return kind;
        if (kind == BLOCK_FIX)
            rc = fixed_codes(s);
        else if (kind == BLOCK_DYN)
            rc = dynamic_codes(s);
        else if (kind != BLOCK_COPY)
            rc = bad(s);
        if (rc == 0)
            rc = kind == BLOCK_COPY ? copy_block(s) : coded_block(s);
        if (rc < 0)
            return rc;
    }
    return s->in.n ? bad(s) : flush(s);
}

int mo_inflate(struct mo_span in, uint64_t max, mo_inflate_put *put, void *ctx,
               struct mo_err *e)
{
    struct mo_err own = {0};
    struct state *s = mo_alloc(sizeof(*s) + MO_INFLATE_WINDOW);
    int rc;

    if (!s)
        return mo_fail(e, MO_ENOMEM, "inflate");
    *s = (struct state){.in = in,
                        .max = max,
                        .window = (unsigned char *)(s + 1),
                        .put = put,
                        .ctx = ctx,
                        .e = e ? e : &own};
    rc = read_blocks(s);
    mo_free(s);
    return rc;
}
