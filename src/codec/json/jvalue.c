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

    for (int i = 0; i < 4; i++)
        v = v << 4 | (uint32_t)mo_hex_digit(p[i]);
    return v;
}

/* A pair of surrogates is one character; half a pair is none. */
const char *mo_jchars_escape(const char *p, const char *end, uint32_t *cp)
{
    static const char named[128] = {
        ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
    uint32_t lo = 0;

    if (p[1] != 'u') {
        char c = named[p[1] & 127];

        *cp = (unsigned char)(c ? c : p[1]);
        return p + 2;
    }
    *cp = hex4(p + 2);
    p += 6;
    if (*cp < 0xD800 || *cp > 0xDFFF)
        return p;
    if (*cp < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u')
        lo = hex4(p + 2);
    if (lo < 0xDC00 || lo > 0xDFFF) {
        *cp = MO_UTF8_REPLACEMENT;
        return p;
    }
    *cp = 0x10000 + ((*cp - 0xD800) << 10) + (lo - 0xDC00);
    return p + 6;
}

bool mo_jchars_next(struct mo_jchars *c, uint32_t *cp)
{
    int n;

    if (c->p >= c->end)
        return false;
    if (*c->p == '\\') {
        c->p = mo_jchars_escape(c->p, c->end, cp);
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
    struct mo_json_iter ib;
    struct mo_json k, y;

    mo_json_iter(&ib, b);
    mo_json_each (it, a) {
        int rc =
            mo_json_next(&ib, &k, &y) ? mo_jvalue_equal(it.val, y, steps) : 0;

        if (rc != 1)
            return rc;
    }
    return !mo_json_next(&ib, &k, &y);
}

struct mo_json mo_jvalue_find(struct mo_json obj, struct mo_json key)
{
    struct mo_json found = {NULL, 0};

    if (!mo_json_is(obj, MO_JSON_OBJECT))
        return found;
    mo_json_each (it, obj) {
        if (mo_jvalue_str_same(it.key, key))
            found = it.val;
    }
    return found;
}

static int equal_objects(struct mo_json a, struct mo_json b, uint64_t *steps)
{
    size_t cost = 1 + (a.n + b.n) / 64;

    if (mo_json_len(a) != mo_json_len(b))
        return 0;
    mo_json_each (it, a) {
        struct mo_json other;
        int rc;

        if (!spend_steps(steps, cost))
            return MO_ETOOBIG;
        other = mo_jvalue_find(b, it.key);
        if (!other.p)
            return 0;
        rc = mo_jvalue_equal(mo_jvalue_find(a, it.key), other, steps);
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
