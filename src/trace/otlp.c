#include "trace/otlp.h"

#include "codec/text/utf8.h"

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

#define VARINT_MAX 10

/* --- protobuf ------------------------------------------------------------ */

static size_t write_varint(uint64_t v, char out[VARINT_MAX])
{
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        out[n++] = (char)(0x80 | (v & 0x7f));
    out[n++] = (char)v;
    return n;
}

static void put_varint(struct mo_buf *b, uint64_t v)
{
    char room[VARINT_MAX];

    (void)mo_buf_put(b, room, write_varint(v, room));
}

static void put_tag(struct mo_otlp *o, unsigned field, enum wire wire)
{
    put_varint(o->b, (uint64_t)field << 3 | wire);
}

/* Least significant byte first, on every machine. */
static void put_fixed(struct mo_buf *b, uint64_t v, size_t n)
{
    char room[8];

    for (size_t i = 0; i < n; i++)
        room[i] = (char)(v >> (8 * i));
    (void)mo_buf_put(b, room, n);
}

static void put_bytes(struct mo_otlp *o, unsigned field, struct mo_span s)
{
    put_tag(o, field, BYTES);
    put_varint(o->b, s.n);
    (void)mo_buf_span(o->b, s);
}

/* The length stands before the bytes: one byte is kept free for it, and the
 * bytes move if it needs more. */
static void open_message(struct mo_otlp *o, unsigned field)
{
    MO_BUG_ON(o->depth >= MO_OTLP_DEPTH);
    put_tag(o, field, BYTES);
    (void)mo_buf_putc(o->b, '\0');
    o->at[o->depth++] = o->b->len;
}

static void close_message(struct mo_otlp *o)
{
    size_t at, n, len;
    char room[VARINT_MAX];

    MO_BUG_ON(o->depth == 0);
    at = o->at[--o->depth];
    if (mo_buf_err(o->b))
        return;
    n = o->b->len - at;
    len = write_varint(n, room);
    if (len > 1 && !mo_buf_room(o->b, len - 1))
        return;
    if (len > 1) {
        memmove(o->b->p + at + len - 1, o->b->p + at, n);
        mo_buf_add(o->b, len - 1);
    }
    memcpy(o->b->p + at - 1, room, len);
}

/* --- both ---------------------------------------------------------------- */

void mo_otlp_init(struct mo_otlp *o, struct mo_buf *b,
                  enum mo_otlp_encoding encoding)
{
    *o = (struct mo_otlp){.b = b, .json = encoding == MO_OTLP_JSON};
    if (o->json)
        o->w = mo_jw_object(b);
}

int mo_otlp_fini(struct mo_otlp *o)
{
    MO_BUG_ON(o->depth);
    if (o->json)
        mo_jw_end_all(&o->w);
    return mo_buf_err(o->b);
}

static void put_key(struct mo_otlp *o, const char *name)
{
    if (name)
        mo_jw_key(&o->w, name);
}

void mo_otlp_msg(struct mo_otlp *o, unsigned field, const char *name)
{
    if (o->json)
        mo_jw_member_obj(&o->w, name);
    else
        open_message(o, field);
}

void mo_otlp_list(struct mo_otlp *o, const char *name)
{
    if (o->json)
        mo_jw_member_arr(&o->w, name);
}

void mo_otlp_item(struct mo_otlp *o, unsigned field)
{
    if (o->json)
        mo_jw_obj(&o->w);
    else
        open_message(o, field);
}

void mo_otlp_end(struct mo_otlp *o)
{
    if (o->json)
        mo_jw_end(&o->w);
    else
        close_message(o);
}

void mo_otlp_list_end(struct mo_otlp *o)
{
    if (o->json)
        mo_jw_end(&o->w);
}

static void put_clean(struct mo_otlp *o, unsigned field, struct mo_span s)
{
    put_tag(o, field, BYTES);
    put_varint(o->b, s.n);
    for (size_t i = 0; i < s.n; i++)
        (void)mo_buf_putc(o->b, (unsigned char)s.p[i] < 0x80 ? s.p[i] : '?');
}

void mo_otlp_text(struct mo_otlp *o, unsigned field, const char *name,
                  struct mo_span s)
{
    if (o->json) {
        put_key(o, name);
        mo_jw_str(&o->w, s);
    } else if (mo_utf8_valid(s)) {
        put_bytes(o, field, s);
    } else {
        put_clean(o, field, s);
    }
}

void mo_otlp_id(struct mo_otlp *o, unsigned field, const char *name,
                const uint8_t *p, size_t n)
{
    char hex[65];

    MO_BUG_ON(n > sizeof(hex) / 2);
    if (!o->json) {
        put_bytes(o, field, mo_span((const char *)p, n));
        return;
    }
    mo_hex(p, n, hex);
    put_key(o, name);
    mo_jw_str(&o->w, mo_span(hex, 2 * n));
}

static void put_number_text(struct mo_otlp *o, const char *name, bool negative,
                            uint64_t v)
{
    char room[MO_U64_DIGITS + 1], digits[MO_U64_DIGITS];
    struct mo_span s = mo_u64_text(v, digits);

    room[0] = '-';
    memcpy(room + 1, s.p, s.n);
    put_key(o, name);
    mo_jw_str(&o->w, negative ? mo_span(room, s.n + 1) : s);
}

void mo_otlp_fixed64(struct mo_otlp *o, unsigned field, const char *name,
                     uint64_t v)
{
    if (o->json) {
        put_number_text(o, name, false, v);
        return;
    }
    put_tag(o, field, FIXED64);
    put_fixed(o->b, v, 8);
}

void mo_otlp_fixed32(struct mo_otlp *o, unsigned field, const char *name,
                     uint32_t v)
{
    if (o->json) {
        put_key(o, name);
        mo_jw_u64(&o->w, v);
        return;
    }
    put_tag(o, field, FIXED32);
    put_fixed(o->b, v, 4);
}

void mo_otlp_int64(struct mo_otlp *o, unsigned field, const char *name,
                   int64_t v)
{
    if (o->json) {
        put_number_text(o, name, v < 0, v < 0 ? -(uint64_t)v : (uint64_t)v);
        return;
    }
    put_tag(o, field, VARINT);
    put_varint(o->b, (uint64_t)v);
}

void mo_otlp_number(struct mo_otlp *o, unsigned field, const char *name,
                    uint32_t v)
{
    if (o->json) {
        put_key(o, name);
        mo_jw_u64(&o->w, v);
        return;
    }
    put_tag(o, field, VARINT);
    put_varint(o->b, v);
}

void mo_otlp_flag(struct mo_otlp *o, unsigned field, const char *name, bool v)
{
    if (o->json) {
        put_key(o, name);
        mo_jw_bool(&o->w, v);
        return;
    }
    put_tag(o, field, VARINT);
    put_varint(o->b, v);
}

static void put_double(struct mo_buf *b, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    put_fixed(b, bits, 8);
}

void mo_otlp_double(struct mo_otlp *o, unsigned field, const char *name,
                    double v)
{
    if (o->json) {
        put_key(o, name);
        mo_jw_f64(&o->w, v);
        return;
    }
    put_tag(o, field, FIXED64);
    put_double(o->b, v);
}

/* Numbers of 8 bytes stand behind each other (packed). */
static void open_numbers(struct mo_otlp *o, unsigned field, const char *name,
                         size_t n)
{
    mo_otlp_list(o, name);
    if (o->json)
        return;
    put_tag(o, field, BYTES);
    put_varint(o->b, 8 * n);
}

void mo_otlp_fixed64s(struct mo_otlp *o, unsigned field, const char *name,
                      const uint64_t *v, size_t n)
{
    open_numbers(o, field, name, n);
    for (size_t i = 0; i < n; i++) {
        if (o->json)
            put_number_text(o, NULL, false, v[i]);
        else
            put_fixed(o->b, v[i], 8);
    }
    mo_otlp_list_end(o);
}

void mo_otlp_doubles(struct mo_otlp *o, unsigned field, const char *name,
                     const double *v, size_t n)
{
    open_numbers(o, field, name, n);
    for (size_t i = 0; i < n; i++) {
        if (o->json)
            mo_jw_f64(&o->w, v[i]);
        else
            put_double(o->b, v[i]);
    }
    mo_otlp_list_end(o);
}

/* --- attributes: KeyValue{key=1, value=2} -------------------------------- */

static void open_attr(struct mo_otlp *o, unsigned field, const char *key)
{
    mo_otlp_item(o, field);
    mo_otlp_text(o, 1, "key", mo_span_cstr(key));
    mo_otlp_msg(o, 2, "value");
}

static void close_attr(struct mo_otlp *o)
{
    mo_otlp_end(o);
    mo_otlp_end(o);
}

void mo_otlp_attr(struct mo_otlp *o, unsigned field, const char *key,
                  struct mo_span value)
{
    open_attr(o, field, key);
    mo_otlp_text(o, 1, "stringValue", value);
    close_attr(o);
}

void mo_otlp_attr_int(struct mo_otlp *o, unsigned field, const char *key,
                      int64_t value)
{
    open_attr(o, field, key);
    mo_otlp_int64(o, 3, "intValue", value);
    close_attr(o);
}

void mo_otlp_attr_double(struct mo_otlp *o, unsigned field, const char *key,
                         double value)
{
    open_attr(o, field, key);
    mo_otlp_double(o, 4, "doubleValue", value);
    close_attr(o);
}

void mo_otlp_attr_one(struct mo_otlp *o, unsigned field, const char *key,
                      struct mo_span value)
{
    open_attr(o, field, key);
    mo_otlp_msg(o, 5, "arrayValue");
    mo_otlp_list(o, "values");
    mo_otlp_item(o, 1);
    mo_otlp_text(o, 1, "stringValue", value);
    mo_otlp_end(o);
    mo_otlp_list_end(o);
    mo_otlp_end(o);
    close_attr(o);
}
