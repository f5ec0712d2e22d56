#include "codec/json/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/json/jscan.h"
#include "codec/json/jvalue.h"
#include "codec/text/utf8.h"
#include "codec/text/vec.h"

/* json.c - read validated JSON text. Below mo_json_parse() the text is known to
 * be valid: functions look for ends and check nothing. */

#define NUMBER_MAX 1024 /* longer number texts are refused by mo_json_f64() */

int mo_json_parse(struct mo_span text, int depth, struct mo_json_doc *out,
                  struct mo_err *e)
{
    struct mo_jscan s;

    *out = (struct mo_json_doc){{NULL, 0}, false, 0};
    mo_jscan_init(&s, text, depth);
    if (!mo_jscan_value(&s, &out->root) || !mo_jscan_end(&s)) {
        out->root = (struct mo_json){NULL, 0};
        out->bad_at = (size_t)(s.p - s.start);
        return mo_jscan_fail(&s, e);
    }
    out->has_nl = s.has_nl;
    return 0;
}

int mo_json_parse_members(struct mo_span text, const char *const *names,
                          size_t n, struct mo_json *out, struct mo_err *e)
{
    struct mo_json key, val;
    struct mo_jscan s;
    int more;

    memset(out, 0, n * sizeof(*out));
    mo_jscan_init(&s, text, 0);
    if (s.p == s.end || *s.p != '{')
        return mo_fail(e, MO_EPROTO, "no object");
    mo_jscan_enter(&s);
    for (more = mo_jscan_member(&s, &key, &val); more > 0;
         more = mo_jscan_member(&s, &key, &val)) {
        for (size_t i = 0; i < n; i++) {
            if (mo_json_str_eq(key, mo_span_cstr(names[i])))
                out[i] = val;
        }
    }
    return more < 0 || !mo_jscan_end(&s) ? mo_jscan_fail(&s, e) : 0;
}

enum mo_json_type mo_json_type(struct mo_json v)
{
    if (v.n == 0)
        return MO_JSON_NONE;
    switch (v.p[0]) {
    case '"':
        return MO_JSON_STRING;
    case '{':
        return MO_JSON_OBJECT;
    case '[':
        return MO_JSON_ARRAY;
    case 'n':
        return MO_JSON_NULL;
    case 't':
    case 'f':
        return MO_JSON_BOOL;
    default:
        return MO_JSON_NUMBER;
    }
}

/* --- where things end ---------------------------------------------------- */

static inline const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (unsigned char)*p <= ' ')
        p++;
    return p;
}

const char *mo_json_skip_string(const char *p, const char *end)
{
    p++;
    while (end - p >= MO_VEC_WIDTH) {
        mo_vec v = mo_vec_load(p);
        uint64_t m =
            mo_vec_mask(mo_vec_or(mo_vec_eq(v, '"'), mo_vec_eq(v, '\\')));

        if (!m) {
            p += MO_VEC_WIDTH;
            continue;
        }
        p += mo_vec_first(m);
        if (*p == '"')
            return p + 1;
        p += 2;
    }
    while (p < end && *p != '"')
        p += *p == '\\' ? 2 : 1;
    return p < end ? p + 1 : end;
}

static const char *skip_scalar(const char *p, const char *end)
{
    while (p < end && (unsigned char)*p > ' ' && *p != ',' && *p != ']' &&
           *p != '}')
        p++;
    return p;
}

/* Brackets outside of strings in 64 bytes, one bit per byte. */
struct block {
    uint64_t open, close;
};

/* The state carried from one block to the next. */
struct carry {
    uint64_t in_string; /* all ones inside a string */
    bool escaped;       /* the last byte was an unescaped backslash */
};

/* Bits after an unescaped backslash. Escapes are rare, so one by one. */
static uint64_t escaped_bits(uint64_t slash, struct carry *c)
{
    uint64_t out = c->escaped;

    slash &= ~out;
    c->escaped = false;
    while (slash) {
        int i = __builtin_ctzll(slash);

        if (i == 63) {
            c->escaped = true;
            break;
        }
        out |= (uint64_t)2 << i;
        slash &= ~((uint64_t)3 << i);
    }
    return out;
}

/* Bit i = parity of the bits 0..i. */
static uint64_t running_parity(uint64_t x)
{
#pragma GCC unroll 6
    for (int shift = 1; shift < 64; shift *= 2)
        x ^= x << shift;
    return x;
}

/* '[' and '{' differ from each other, as do ']' and '}', by bit 5 alone. */
static inline struct block read_block(const char *p, struct carry *c)
{
    mo_vec quote[MO_VEC_BLOCKS], slash[MO_VEC_BLOCKS];
    mo_vec open[MO_VEC_BLOCKS], close[MO_VEC_BLOCKS];
    uint64_t quotes, outside;

#pragma GCC unroll 8 /* these arrays live in registers */
    for (int i = 0; i < MO_VEC_BLOCKS; i++) {
        mo_vec v = mo_vec_load(p + i * MO_VEC_WIDTH);
        mo_vec folded = mo_vec_or(v, mo_vec_splat(0x20));

        quote[i] = mo_vec_eq(v, '"');
        slash[i] = mo_vec_eq(v, '\\');
        open[i] = mo_vec_eq(folded, '{');
        close[i] = mo_vec_eq(folded, '}');
    }
    quotes = mo_vec_bits64(quote) & ~escaped_bits(mo_vec_bits64(slash), c);
    outside = ~(running_parity(quotes) ^ c->in_string);
    c->in_string = (uint64_t)0 - (~outside >> 63);
    return (struct block){mo_vec_bits64(open) & outside,
                          mo_vec_bits64(close) & outside};
}

static struct block read_tail(const char *p, size_t n, struct carry *c)
{
    char tmp[MO_VEC_BLOCK] = {0};

    memcpy(tmp, p, n);
    return read_block(tmp, c);
}

/* Returns the bit that closes the last open level, or -1; updates *depth. */
static int find_close(struct block b, size_t *depth)
{
    size_t closed = 0, total = (size_t)__builtin_popcountll(b.close);

    if (total < *depth) {
        *depth += (size_t)__builtin_popcountll(b.open) - total;
        return -1;
    }
    for (uint64_t left = b.close; left; left &= left - 1) {
        uint64_t below = (left & (0 - left)) - 1;

        closed++;
        if (*depth + (size_t)__builtin_popcountll(b.open & below) == closed)
            return __builtin_ctzll(left);
    }
    *depth += (size_t)__builtin_popcountll(b.open) - total;
    return -1;
}

/* p: on '{' or '['; returns the position after the matching bracket. */
static const char *skip_container(const char *p, const char *end)
{
    struct carry c = {0, false};
    size_t depth = 0;

    while (p < end) {
        size_t n = (size_t)(end - p);
        struct block b =
            n >= MO_VEC_BLOCK ? read_block(p, &c) : read_tail(p, n, &c);
        int at = find_close(b, &depth);

        if (at >= 0)
            return p + at + 1;
        p += n < MO_VEC_BLOCK ? n : MO_VEC_BLOCK;
    }
    return end;
}

static const char *skip_value(const char *p, const char *end)
{
    if (*p == '"')
        return mo_json_skip_string(p, end);
    if (*p == '{' || *p == '[')
        return skip_container(p, end);
    return skip_scalar(p, end);
}

/* --- walking ------------------------------------------------------------- */

void mo_json_iter(struct mo_json_iter *it, struct mo_json v)
{
    bool object = mo_json_is(v, MO_JSON_OBJECT);

    *it = (struct mo_json_iter){NULL, NULL, object};
    if (!object && !mo_json_is(v, MO_JSON_ARRAY))
        return;
    it->p = v.p + 1;
    it->end = v.p + v.n - 1;
}

/* An entered container ends with its bracket, anything else at it->end. */
bool mo_json_more(struct mo_json_iter *it)
{
    it->p = skip_blanks(it->p, it->end);
    return it->p < it->end && *it->p != '}' && *it->p != ']';
}

struct mo_json mo_json_key(struct mo_json_iter *it)
{
    const char *p, *from = it->p;

    if (!it->object)
        return (struct mo_json){NULL, 0};
    p = mo_json_skip_string(from, it->end);
    it->p = skip_blanks(p, it->end) + 1; /* the colon */
    it->p = skip_blanks(it->p, it->end);
    return (struct mo_json){from, (size_t)(p - from)};
}

/* The value has ended: a comma may follow. */
static inline struct mo_json value_to(struct mo_json_iter *it, const char *end)
{
    const char *from = it->p, *p = skip_blanks(end, it->end);

    it->p = p < it->end && *p == ',' ? p + 1 : p;
    return (struct mo_json){from, (size_t)(end - from)};
}

struct mo_json mo_json_value(struct mo_json_iter *it)
{
    return value_to(it, skip_value(it->p, it->end));
}

bool mo_json_next(struct mo_json_iter *it, struct mo_json *key,
                  struct mo_json *val)
{
    if (!mo_json_more(it))
        return false;
    *key = mo_json_key(it);
    *val = mo_json_value(it);
    return true;
}

bool mo_json_enter(const struct mo_json_iter *it, struct mo_json_iter *inner)
{
    if (*it->p != '{' && *it->p != '[')
        return false;
    *inner = (struct mo_json_iter){it->p + 1, it->end, *it->p == '{'};
    return true;
}

struct mo_json mo_json_leave(struct mo_json_iter *it,
                             struct mo_json_iter *inner)
{
    while (mo_json_more(inner)) {
        (void)mo_json_key(inner);
        (void)mo_json_value(inner);
    }
    return value_to(it, inner->p + 1);
}

struct mo_json mo_json_find(struct mo_json v, struct mo_span key)
{
    struct mo_json found = {NULL, 0};

    if (!mo_json_is(v, MO_JSON_OBJECT))
        return found;
    mo_json_each (it, v) {
        if (mo_json_str_eq(it.key, key))
            found = it.val;
    }
    return found;
}

struct mo_json mo_json_first(struct mo_json v, const char *key)
{
    struct mo_span want = mo_span_cstr(key);

    if (!mo_json_is(v, MO_JSON_OBJECT))
        return (struct mo_json){NULL, 0};
    mo_json_each (it, v) {
        if (mo_json_str_eq(it.key, want))
            return it.val;
    }
    return (struct mo_json){NULL, 0};
}

struct mo_json mo_json_at(struct mo_json v, size_t index)
{
    mo_json_each (it, v) {
        if (index-- == 0)
            return it.val;
    }
    return (struct mo_json){NULL, 0};
}

size_t mo_json_len(struct mo_json v)
{
    size_t n = 0;

    mo_json_each (it, v)
        n++;
    return n;
}

/* --- strings ------------------------------------------------------------- */

static struct mo_span body(struct mo_json v)
{
    return mo_span(v.p + 1, v.n - 2);
}

/* The run of text before the next backslash. */
static struct mo_span plain_run(const char *p, const char *end)
{
    size_t n = (size_t)(end - p);
    const char *slash = n ? memchr(p, '\\', n) : NULL;

    return mo_span(p, slash ? (size_t)(slash - p) : n);
}

/* The next piece of a string: plain text, then the character of the escape that
 * ends it. Returns the position after both. */
struct piece {
    struct mo_span run;
    char c[4];
    size_t n;
};

static const char *next_piece(const char *p, const char *end, struct piece *out)
{
    uint32_t cp;

    out->run = plain_run(p, end);
    out->n = 0;
    p += out->run.n;
    if (p == end)
        return p;
    p = mo_jchars_escape(p, end, &cp);
    out->n = mo_utf8_put(out->c, cp);
    return p;
}

bool mo_json_str_same(struct mo_json v, struct mo_span s)
{
    struct mo_span raw;
    const char *p, *end;

    if (!mo_json_is(v, MO_JSON_STRING))
        return false;
    raw = body(v);
    if (raw.n <= s.n)
        return mo_span_eq(raw, s) && mo_span_find(raw, '\\') < 0;
    p = raw.p;
    end = raw.p + raw.n;
    while (p < end) {
        struct piece x;

        p = next_piece(p, end, &x);
        if (!mo_span_strip(&s, x.run) || !mo_span_strip(&s, mo_span(x.c, x.n)))
            return false;
    }
    return s.n == 0;
}

/* Write to out, which has space for raw.n bytes: no escape is shorter than its
 * character. */
static size_t unescape_all(struct mo_span raw, char *out)
{
    const char *p = raw.p, *end = raw.p + raw.n;
    char *to = out;

    while (p < end) {
        struct piece x;

        p = next_piece(p, end, &x);
        memcpy(to, x.run.p, x.run.n);
        to += x.run.n;
        memcpy(to, x.c, x.n);
        to += x.n;
    }
    return (size_t)(to - out);
}

int mo_json_str(struct mo_json v, struct mo_arena *a, struct mo_span *out)
{
    struct mo_span raw;
    char *to;

    if (!mo_json_is(v, MO_JSON_STRING))
        return MO_EINVAL;
    raw = body(v);
    if (plain_run(raw.p, raw.p + raw.n).n == raw.n) {
        *out = raw;
        return 0;
    }
    to = mo_arena_alloc(a, raw.n);
    if (!to)
        return MO_ENOMEM;
    *out = mo_span(to, unescape_all(raw, to));
    return 0;
}

bool mo_json_str_in(struct mo_json v, const char *const *names)
{
    while (*names && !mo_json_str_eq(v, mo_span_cstr(*names)))
        names++;
    return *names != NULL;
}

int mo_json_str_buf(struct mo_json v, struct mo_buf *b)
{
    struct mo_span raw;
    const char *p, *end;

    if (!mo_json_is(v, MO_JSON_STRING))
        return MO_EINVAL;
    raw = body(v);
    p = raw.p;
    end = raw.p + raw.n;
    while (p < end && !mo_buf_err(b)) {
        struct piece x;

        p = next_piece(p, end, &x);
        mo_buf_span(b, x.run);
        mo_buf_put(b, x.c, x.n);
    }
    return mo_buf_err(b);
}

int mo_json_str_copy(struct mo_json v, char *out, size_t size)
{
    mo_autobuf struct mo_buf b = {.max = size - 1};
    int rc = mo_json_str_buf(v, &b);

    (void)snprintf(out, size, "%s", mo_buf_cstr(&b)); /* "" after an error */
    return rc < 0 ? rc : mo_buf_err(&b);
}

/* Control characters are rare, and in strings there are none. */
bool mo_json_has_nl(struct mo_json v)
{
    const char *p = v.p, *end = v.p + v.n;

    for (; end - p >= MO_VEC_WIDTH; p += MO_VEC_WIDTH) {
        if (mo_vec_mask(mo_vec_below(mo_vec_load(p), ' ')))
            break;
    }
    return p < end && (memchr(p, '\n', (size_t)(end - p)) ||
                       memchr(p, '\r', (size_t)(end - p)));
}

/* --- scalars ------------------------------------------------------------- */

int mo_json_i64(struct mo_json v, int64_t *out)
{
    return mo_span_i64(mo_json_text(v), out);
}

int mo_json_u64(struct mo_json v, uint64_t *out)
{
    return mo_span_u64(mo_json_text(v), out);
}

/* strtod needs a NUL and follows LC_NUMERIC; the program never sets that, and
 * if it did, text would be left over at the '.'. */
int mo_json_f64(struct mo_json v, double *out)
{
    char tmp[NUMBER_MAX + 1];
    char *end;
    double d;

    if (!mo_json_is(v, MO_JSON_NUMBER) || v.n > NUMBER_MAX)
        return MO_EINVAL;
    memcpy(tmp, v.p, v.n);
    tmp[v.n] = '\0';
    d = strtod(tmp, &end);
    if (*end != '\0' || !isfinite(d))
        return MO_EINVAL;
    *out = d;
    return 0;
}

int mo_json_bool(struct mo_json v, bool *out)
{
    if (!mo_json_is(v, MO_JSON_BOOL))
        return MO_EINVAL;
    *out = v.p[0] == 't';
    return 0;
}

void mo_json_where(struct mo_span text, size_t at, unsigned *line,
                   unsigned *col)
{
    struct mo_span left = mo_span_head(text, at);
    ptrdiff_t nl = mo_span_find(left, '\n');

    *line = 1;
    while (nl >= 0) {
        left = mo_span_skip(left, (size_t)nl + 1);
        nl = mo_span_find(left, '\n');
        (*line)++;
    }
    *col = (unsigned)left.n + 1;
}
