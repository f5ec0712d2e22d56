#include "codec/http/hpack.h"

#include "base/mem.h"

#define SYMBOLS     257 /* of the Huffman code; the last one ends a text */
#define CODE_MAX    30  /* bits */
#define OVERHEAD    32  /* of an entry, in the sizes that peers agree on */
#define TABLE_START 4096
#define ENTRIES_MAX (MO_HPACK_TABLE_MAX / OVERHEAD)
#define NUMBER_MAX  ((size_t)1 << 24)

struct entry {
    size_t name_len, value_len;
    char text[]; /* the name, then the value */
};

struct mo_hpack {
    struct entry *ring[ENTRIES_MAX]; /* the newest is at `newest` */
    size_t newest, n, size, max;
    size_t listed; /* bytes of the block's fields so far */
    struct mo_buf name, value;
    /* The Huffman code, by length: it is canonical. */
    uint32_t first[CODE_MAX + 1];
    uint16_t count[CODE_MAX + 1], start[CODE_MAX + 1], symbols[SYMBOLS];
};

/* --- constants of RFC 7541 ----------------------------------------------- */

static const struct {
    const char *name, *value;
} fixed[] = {
    {":authority", ""},
    {":method", "GET"},
    {":method", "POST"},
    {":path", "/"},
    {":path", "/index.html"},
    {":scheme", "http"},
    {":scheme", "https"},
    {":status", "200"},
    {":status", "204"},
    {":status", "206"},
    {":status", "304"},
    {":status", "400"},
    {":status", "404"},
    {":status", "500"},
    {"accept-charset", ""},
    {"accept-encoding", "gzip, deflate"},
    {"accept-language", ""},
    {"accept-ranges", ""},
    {"accept", ""},
    {"access-control-allow-origin", ""},
    {"age", ""},
    {"allow", ""},
    {"authorization", ""},
    {"cache-control", ""},
    {"content-disposition", ""},
    {"content-encoding", ""},
    {"content-language", ""},
    {"content-length", ""},
    {"content-location", ""},
    {"content-range", ""},
    {"content-type", ""},
    {"cookie", ""},
    {"date", ""},
    {"etag", ""},
    {"expect", ""},
    {"expires", ""},
    {"from", ""},
    {"host", ""},
    {"if-match", ""},
    {"if-modified-since", ""},
    {"if-none-match", ""},
    {"if-range", ""},
    {"if-unmodified-since", ""},
    {"last-modified", ""},
    {"link", ""},
    {"location", ""},
    {"max-forwards", ""},
    {"proxy-authenticate", ""},
    {"proxy-authorization", ""},
    {"range", ""},
    {"referer", ""},
    {"refresh", ""},
    {"retry-after", ""},
    {"server", ""},
    {"set-cookie", ""},
    {"strict-transport-security", ""},
    {"transfer-encoding", ""},
    {"user-agent", ""},
    {"vary", ""},
    {"via", ""},
    {"www-authenticate", ""},
};

/* Bits of each symbol's code, by symbol. The codes follow from the lengths:
 * they ascend with the length and then with the symbol. */
/* clang-format off */
static const unsigned char bits[SYMBOLS] = {
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
     6, 10, 10, 12, 13,  6,  8, 11, 10, 10,  8, 11,  8,  6,  6,  6,
     5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8, 15,  6, 12, 10,
    13,  6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,
     7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8, 13, 19, 13, 14,  6,
    15,  5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,
     6,  7,  6,  5,  5,  6,  7,  7,  7,  7,  7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
};
/* clang-format on */

/* --- Huffman ------------------------------------------------------------- */

static void make_code(struct mo_hpack *h)
{
    uint32_t code = 0;
    uint16_t at = 0;

    for (unsigned len = 1; len <= CODE_MAX; len++) {
        code <<= 1;
        h->first[len] = code;
        h->start[len] = at;
        for (unsigned s = 0; s < SYMBOLS; s++)
            if (bits[s] == len)
                h->symbols[at++] = (uint16_t)s;
        h->count[len] = (uint16_t)(at - h->start[len]);
        code += h->count[len];
    }
}

/* The rest of the last byte is the start of a code of ones only. */
static int read_huffman(const struct mo_hpack *h, struct mo_span in,
                        struct mo_buf *out)
{
    uint32_t code = 0;
    unsigned len = 0;

    for (size_t i = 0; i < in.n * 8; i++) {
        unsigned bit = (unsigned char)in.p[i / 8] >> (7 - i % 8) & 1;
        uint32_t off;

        code = code << 1 | bit;
        len++;
        off = code - h->first[len];
        if (code < h->first[len] || off >= h->count[len])
            continue;
        if (h->symbols[h->start[len] + off] == SYMBOLS - 1)
            return MO_EPROTO;
        mo_buf_putc(out, (char)h->symbols[h->start[len] + off]);
        code = 0;
        len = 0;
    }
    if (len > 7 || code != (1u << len) - 1)
        return MO_EPROTO;
    return mo_buf_err(out);
}

/* --- the table ----------------------------------------------------------- */

static size_t size_of(const struct entry *e)
{
    return e->name_len + e->value_len + OVERHEAD;
}

static void shrink_to(struct mo_hpack *h, size_t max)
{
    while (h->size > max) {
        size_t oldest = (h->newest + ENTRIES_MAX - (h->n - 1)) % ENTRIES_MAX;

        h->size -= size_of(h->ring[oldest]);
        h->n--;
        mo_free(mo_take_ptr(&h->ring[oldest]));
    }
}

static int add_entry(struct mo_hpack *h, struct mo_span name,
                     struct mo_span value)
{
    size_t size = name.n + value.n + OVERHEAD;
    struct entry *e = NULL;

    /* copied first: name may be of an entry that goes */
    if (size <= h->max) {
        e = mo_alloc(sizeof(*e) + name.n + value.n);
        if (!e)
            return MO_ENOMEM;
        e->name_len = name.n;
        e->value_len = value.n;
        if (name.n)
            memcpy(e->text, name.p, name.n);
        if (value.n)
            memcpy(e->text + name.n, value.p, value.n);
    }
    shrink_to(h, e ? h->max - size : 0);
    if (!e)
        return 0; /* larger than the table: it is empty now */
    h->newest = (h->newest + 1) % ENTRIES_MAX;
    h->ring[h->newest] = e;
    h->size += size;
    h->n++;
    return 0;
}

static int find_entry(const struct mo_hpack *h, size_t i, struct mo_span *name,
                      struct mo_span *value)
{
    const struct entry *e;

    if (i == 0 || i > MO_COUNT(fixed) + h->n)
        return MO_EPROTO;
    if (i <= MO_COUNT(fixed)) {
        *name = mo_span_cstr(fixed[i - 1].name);
        *value = mo_span_cstr(fixed[i - 1].value);
        return 0;
    }
    i -= MO_COUNT(fixed) + 1;
    e = h->ring[(h->newest + ENTRIES_MAX - i) % ENTRIES_MAX];
    *name = mo_span(e->text, e->name_len);
    *value = mo_span(e->text + e->name_len, e->value_len);
    return 0;
}

/* --- reading ------------------------------------------------------------- */

/* A number whose first bits are the last ones of the first byte. */
static int read_number(struct mo_span *in, unsigned prefix, size_t *out)
{
    size_t mask = (1u << prefix) - 1, v;

    if (in->n == 0)
        return MO_EPROTO;
    v = (unsigned char)in->p[0] & mask;
    *in = mo_span_skip(*in, 1);
    for (unsigned shift = 0; v >= mask; shift += 7) {
        unsigned char c;

        if (in->n == 0 || shift > 21)
            return MO_EPROTO;
        c = (unsigned char)in->p[0];
        *in = mo_span_skip(*in, 1);
        v += (size_t)(c & 127) << shift;
        if (v > NUMBER_MAX)
            return MO_EPROTO;
        if (c < 128)
            break;
    }
    *out = v;
    return 0;
}

static int read_text(const struct mo_hpack *h, struct mo_span *in,
                     struct mo_buf *room, struct mo_span *out)
{
    bool huffman = in->n && (unsigned char)in->p[0] & 128;
    size_t n;
    int rc = read_number(in, 7, &n);

    if (rc < 0 || n > in->n)
        return MO_EPROTO;
    *out = mo_span_take(in, n);
    if (!huffman)
        return 0;
    mo_buf_reset(room);
    rc = read_huffman(h, *out, room);
    *out = mo_buf_view(room);
    return rc;
}

/* A field that is not in a table, but its name may be. */
static int read_literal(struct mo_hpack *h, struct mo_span *in, unsigned prefix,
                        struct mo_span *name, struct mo_span *value)
{
    size_t i;
    int rc = read_number(in, prefix, &i);

    if (rc == 0 && i)
        rc = find_entry(h, i, name, value);
    else if (rc == 0)
        rc = read_text(h, in, &h->name, name);
    return rc ? rc : read_text(h, in, &h->value, value);
}

static int read_field(struct mo_hpack *h, struct mo_span *in, mo_hpack_fn *fn,
                      void *ctx, struct mo_err *e)
{
    unsigned char c = (unsigned char)in->p[0];
    struct mo_span name = {NULL, 0}, value = {NULL, 0};
    size_t i;
    int rc;

    if (c & 128) {
        rc = read_number(in, 7, &i);
        if (rc == 0)
            rc = find_entry(h, i, &name, &value);
    } else {
        rc = read_literal(h, in, c & 64 ? 6 : 4, &name, &value);
    }
    if (rc == 0) {
        h->listed += name.n + value.n + OVERHEAD;
        rc = h->listed > MO_HPACK_LIST_MAX ? MO_ETOOBIG : 0;
    }
    if (rc < 0)
        return mo_fail(e, rc, "a header block that cannot be read");
    rc = fn(ctx, name, value, e);
    if (rc == 0 && (c & 192) == 64 && add_entry(h, name, value) < 0)
        rc = mo_fail(e, MO_ENOMEM, "a header block");
    return rc;
}

/* New sizes of the table; only at the start. */
static int read_sizes(struct mo_hpack *h, struct mo_span *in)
{
    while (in->n && ((unsigned char)in->p[0] & 224) == 32) {
        size_t max;

        if (read_number(in, 5, &max) < 0 || max > MO_HPACK_TABLE_MAX)
            return MO_EPROTO;
        h->max = max;
        shrink_to(h, max);
    }
    return 0;
}

int mo_hpack_read(struct mo_hpack *h, struct mo_span block, mo_hpack_fn *fn,
                  void *ctx, struct mo_err *e)
{
    int rc = read_sizes(h, &block);

    h->listed = 0;
    if (rc < 0)
        return mo_fail(e, rc, "a header block that cannot be read");
    while (rc == 0 && block.n)
        rc = ((unsigned char)block.p[0] & 224) == 32
                 ? mo_fail(e, MO_EPROTO, "a header block that cannot be read")
                 : read_field(h, &block, fn, ctx, e);
    return rc;
}

struct mo_hpack *mo_hpack_new(void)
{
    struct mo_hpack *h = mo_new(struct mo_hpack);

    if (!h)
        return NULL;
    h->max = TABLE_START;
    mo_buf_init(&h->name, MO_HPACK_LIST_MAX);
    mo_buf_init(&h->value, MO_HPACK_LIST_MAX);
    make_code(h);
    return h;
}

void mo_hpack_free(struct mo_hpack *h)
{
    if (!h)
        return;
    shrink_to(h, 0);
    mo_buf_fini(&h->name);
    mo_buf_fini(&h->value);
    mo_free(h);
}

/* --- writing ------------------------------------------------------------- */

static void put_number(struct mo_buf *b, unsigned char head, unsigned prefix,
                       size_t v)
{
    size_t mask = (1u << prefix) - 1;

    if (v < mask) {
        mo_buf_putc(b, (char)(head | v));
        return;
    }
    mo_buf_putc(b, (char)(head | mask));
    for (v -= mask; v >= 128; v >>= 7)
        mo_buf_putc(b, (char)(v | 128));
    mo_buf_putc(b, (char)v);
}

void mo_hpack_put_start(struct mo_buf *b)
{
    put_number(b, 32, 5, 0);
}

void mo_hpack_put(struct mo_buf *b, struct mo_span name, struct mo_span value,
                  bool secret)
{
    put_number(b, secret ? 16 : 0, 4, 0);
    put_number(b, 0, 7, name.n);
    mo_buf_span(b, name);
    put_number(b, 0, 7, value.n);
    mo_buf_span(b, value);
}
