#include "codec/json/jvalue.h"

#include "codec/text/utf8.h"

#define EXP_MAX    ((int64_t)1000000000000000)
#define DIGITS_MAX 18 /* a remainder times ten still fits 64 bits */

/* --- characters ---------------------------------------------------------- */

void mo_jchars(struct mo_jchars *c, struct mo_json v)
{
    c->p = v.p + 1;
    c->end = v.p + v.n - 1;
}

static uint32_t hex4(const char *p)
{
    uint32_t v = 0;

    for (int i = 0; i < 4; i++) {
        uint32_t c = (unsigned char)p[i];

        v = v << 4 | (c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return v;
}

static bool is_high(uint32_t u)
{
    return u >= 0xD800 && u < 0xDC00;
}

static bool is_low(uint32_t u)
{
    return u >= 0xDC00 && u < 0xE000;
}

/* c->p is after "\u". */
static uint32_t unicode_escape(struct mo_jchars *c)
{
    uint32_t hi = hex4(c->p), lo;

    c->p += 4;
    if (is_low(hi))
        return MO_UTF8_REPLACEMENT;
    if (!is_high(hi))
        return hi;
    if (c->end - c->p < 6 || c->p[0] != '\\' || c->p[1] != 'u')
        return MO_UTF8_REPLACEMENT;
    lo = hex4(c->p + 2);
    if (!is_low(lo))
        return MO_UTF8_REPLACEMENT;
    c->p += 6;
    return 0x10000 + ((hi - 0xD800) << 10) + (lo - 0xDC00);
}

static uint32_t read_escape(struct mo_jchars *c)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    char which = *c->p++;
    const char *at;

    if (which == 'u')
        return unicode_escape(c);
    at = strchr(from, which);
    return (unsigned char)(at ? to[at - from] : which);
}

bool mo_jchars_next(struct mo_jchars *c, uint32_t *cp)
{
    int n;

    if (c->p >= c->end)
        return false;
    if (*c->p == '\\') {
        c->p++;
        *cp = read_escape(c);
        return true;
    }
    if ((unsigned char)*c->p < 0x80) {
        *cp = (unsigned char)*c->p++;
        return true;
    }
    n = mo_utf8_get(mo_span(c->p, (size_t)(c->end - c->p)), cp);
    MO_BUG_ON(n < 1);
    c->p += n;
    return true;
}

size_t mo_jvalue_chars(struct mo_json v)
{
    struct mo_jchars c;
    uint32_t cp;
    size_t n = 0;

    mo_jchars(&c, v);
    while (mo_jchars_next(&c, &cp))
        n++;
    return n;
}

bool mo_jvalue_str_same(struct mo_json a, struct mo_json b)
{
    struct mo_jchars ca, cb;
    uint32_t x = 0, y = 0;
    bool more_a, more_b;

    if (mo_span_eq(mo_json_text(a), mo_json_text(b)))
        return true;
    mo_jchars(&ca, a);
    mo_jchars(&cb, b);
    do {
        more_a = mo_jchars_next(&ca, &x);
        more_b = mo_jchars_next(&cb, &y);
    } while (more_a && more_b && x == y);
    return !more_a && !more_b;
}

/* --- numbers ------------------------------------------------------------- */

/* The significant digits of a number: from the first to the last that is not
 * zero, a point possibly among them. */
struct dec {
    const char *p, *end; /* p == end: zero */
    int64_t top, low;    /* powers of ten of the first and the last digit */
    bool neg;
};

static int64_t read_exp(const char *p, const char *end)
{
    bool neg = p < end && *p == '-';
    int64_t v = 0;

    if (p < end && (*p == '-' || *p == '+'))
        p++;
    for (; p < end && v < EXP_MAX; p++)
        v = v * 10 + (*p - '0');
    v = v < EXP_MAX ? v : EXP_MAX;
    return neg ? -v : v;
}

static void read_dec(struct dec *d, struct mo_json v)
{
    const char *p = v.p, *end = v.p + v.n;
    int64_t power = -1, exp = 0;
    const char *q;

    *d = (struct dec){.neg = *p == '-'};
    p += d->neg;
    for (q = p; q < end && *q >= '0' && *q <= '9'; q++)
        power++;
    for (q = p; q < end && (*q | 32) != 'e'; q++) {
        if (*q == '.')
            continue;
        if (*q != '0') {
            if (!d->p) {
                d->p = q;
                d->top = power;
            }
            d->end = q + 1;
            d->low = power;
        }
        power--;
    }
    if (q < end)
        exp = read_exp(q + 1, end);
    d->top += exp;
    d->low += exp;
}

/* The next digit; zeros after the last one. */
static int next_digit(struct dec *d)
{
    if (d->p < d->end && *d->p == '.')
        d->p++;
    return d->p < d->end ? *d->p++ - '0' : 0;
}

static int cmp_magnitude(struct dec *a, struct dec *b)
{
    if (a->top != b->top)
        return a->top < b->top ? -1 : 1;
    while (a->p < a->end || b->p < b->end) {
        int x = next_digit(a), y = next_digit(b);

        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

static int sign_of(const struct dec *d)
{
    if (d->p == d->end)
        return 0;
    return d->neg ? -1 : 1;
}

int mo_jvalue_cmp(struct mo_json a, struct mo_json b)
{
    struct dec x, y;
    int sx, sy;

    read_dec(&x, a);
    read_dec(&y, b);
    sx = sign_of(&x);
    sy = sign_of(&y);
    if (sx != sy || sx == 0)
        return sx - sy;
    return sx * cmp_magnitude(&x, &y);
}

bool mo_jvalue_is_int(struct mo_json v)
{
    struct dec d;

    read_dec(&d, v);
    return d.p == d.end || d.low >= 0;
}

/* Both numbers are integers without final zeros times a power of ten: V*10^a
 * and M*10^b. For a < b the answer is no, since V would have to end in zero.
 * Else V*10^(a-b) mod M: ten brings only the factors 2 and 5, of which M has
 * fewer than 64, so more than 64 tens change nothing. */
int mo_jvalue_multiple(struct mo_json v, struct mo_json m)
{
    uint64_t mod = 0, rest = 0;
    struct dec x, y;
    int64_t tens;

    read_dec(&x, v);
    read_dec(&y, m);
    if (y.top - y.low >= DIGITS_MAX)
        return -1;
    while (y.p < y.end)
        mod = mod * 10 + (uint64_t)next_digit(&y);
    if (mod == 0)
        return -1;
    if (x.p == x.end)
        return 1;
    if (x.low < y.low)
        return 0;
    while (x.p < x.end)
        rest = (rest * 10 + (uint64_t)next_digit(&x)) % mod;
    tens = x.low - y.low < 64 ? x.low - y.low : 64;
    for (; tens > 0; tens--)
        rest = rest * 10 % mod;
    return rest == 0;
}

/* --- equality ------------------------------------------------------------ */

static bool spend_steps(uint64_t *steps, size_t n)
{
    if (*steps < n) {
        *steps = 0;
        return false;
    }
    *steps -= n;
    return true;
}

static int equal_arrays(struct mo_json a, struct mo_json b, uint64_t *steps)
{
    struct mo_json_iter ia, ib;
    struct mo_json k, x, y;

    mo_json_iter(&ia, a);
    mo_json_iter(&ib, b);
    while (mo_json_next(&ia, &k, &x)) {
        int rc;

        if (!mo_json_next(&ib, &k, &y))
            return 0;
        rc = mo_jvalue_equal(x, y, steps);
        if (rc != 1)
            return rc;
    }
    return !mo_json_next(&ib, &k, &y);
}

struct mo_json mo_jvalue_find(struct mo_json obj, struct mo_json key)
{
    struct mo_json k, v, found = {NULL, 0};
    struct mo_json_iter it;

    if (!mo_json_is(obj, MO_JSON_OBJECT))
        return found;
    mo_json_iter(&it, obj);
    while (mo_json_next(&it, &k, &v)) {
        if (mo_jvalue_str_same(k, key))
            found = v;
    }
    return found;
}

static int equal_objects(struct mo_json a, struct mo_json b, uint64_t *steps)
{
    size_t cost = 1 + (a.n + b.n) / 64;
    struct mo_json_iter it;
    struct mo_json k, v;

    if (mo_json_len(a) != mo_json_len(b))
        return 0;
    mo_json_iter(&it, a);
    while (mo_json_next(&it, &k, &v)) {
        struct mo_json other;
        int rc;

        if (!spend_steps(steps, cost))
            return MO_ETOOBIG;
        other = mo_jvalue_find(b, k);
        if (!other.p)
            return 0;
        rc = mo_jvalue_equal(mo_jvalue_find(a, k), other, steps);
        if (rc != 1)
            return rc;
    }
    return 1;
}

int mo_jvalue_equal(struct mo_json a, struct mo_json b, uint64_t *steps)
{
    enum mo_json_type t = mo_json_type(a);

    if (t != mo_json_type(b))
        return 0;
    if (!spend_steps(steps, 1 + (a.n + b.n) / 64))
        return MO_ETOOBIG;
    switch (t) {
    case MO_JSON_NUMBER:
        return mo_jvalue_cmp(a, b) == 0;
    case MO_JSON_STRING:
        return mo_jvalue_str_same(a, b);
    case MO_JSON_ARRAY:
        return equal_arrays(a, b, steps);
    case MO_JSON_OBJECT:
        return equal_objects(a, b, steps);
    default:
        return mo_span_eq(mo_json_text(a), mo_json_text(b));
    }
}
