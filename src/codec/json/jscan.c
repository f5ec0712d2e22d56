#include "codec/json/jscan.h"

#include "codec/text/utf8.h"
#include "codec/text/vec.h"

/* Every step takes a position and returns the position after the text it read,
 * or NULL after refuse(). Steps are inlined into one loop, so the position
 * lives in a register. */

static const char *refuse(struct mo_jscan *s, const char *p, const char *why)
    __attribute__((cold, noinline));

static const char *refuse(struct mo_jscan *s, const char *p, const char *why)
{
    s->p = p;
    s->why = p == s->end ? "the text ends too early" : why;
    return NULL;
}

static unsigned char at(const char *p)
{
    return (unsigned char)*p;
}

/* --- blanks -------------------------------------------------------------- */

/* Indentation is long runs of spaces. */
static const char *spaces(const char *p, const char *end)
{
    static const char eight[] = "        ";

    while (end - p >= 8 && memcmp(p, eight, 8) == 0)
        p += 8;
    while (p < end && *p == ' ')
        p++;
    return p;
}

static const char *blanks(struct mo_jscan *s, const char *p)
{
    while (p < s->end) {
        char c = *p;

        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            break;
        s->has_nl |= c == '\n' || c == '\r';
        p = spaces(p + 1, s->end);
    }
    return p;
}

static inline const char *skip_whitespace(struct mo_jscan *s, const char *p)
{
    if (p < s->end && at(p) > ' ')
        return p;
    return blanks(s, p);
}

/* --- strings ------------------------------------------------------------- */

/* p: on the backslash. */
static const char *escape(struct mo_jscan *s, const char *p)
{
    p++;
    if (p == s->end)
        return refuse(s, p, NULL);
    switch (*p) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return p + 1;
    case 'u':
        break;
    default:
        return refuse(s, p, "no such escape");
    }
    p++;
    for (int i = 0; i < 4; i++, p++) {
        if (p == s->end || mo_hex_digit(*p) < 0)
            return refuse(s, p, "\\u needs four hex digits");
    }
    return p;
}

/* p: on a byte >= 0x80. Such characters usually come in runs. */
static const char *foreign(struct mo_jscan *s, const char *p)
{
    while (p < s->end && at(p) >= 0x80) {
        size_t n = mo_utf8_len(p, s->end);

        if (n == 0) {
            p += mo_utf8_good(mo_span(p, (size_t)(s->end - p)));
            return refuse(s, p, "not UTF-8");
        }
        p += n;
    }
    return p;
}

static inline bool is_special(unsigned char c)
{
    return c < 0x20 || c == '"' || c == '\\' || c >= 0x80;
}

/* Find the next byte of a string that is not plain text. */
static inline const char *special(const char *p, const char *end)
{
    while (end - p >= MO_VEC_WIDTH) {
        mo_vec v = mo_vec_load(p);
        mo_vec quote = mo_vec_or(mo_vec_eq(v, '"'), mo_vec_eq(v, '\\'));
        uint64_t m = mo_vec_mask(mo_vec_or(quote, mo_vec_odd(v)));

        if (m)
            return p + mo_vec_first(m);
        p += MO_VEC_WIDTH;
    }
    while (p < end && !is_special(at(p)))
        p++;
    return p;
}

/* Read past the escape or non-ASCII character that stopped the text. */
static const char *odd_byte(struct mo_jscan *s, const char *p)
{
    if (p == s->end)
        return refuse(s, p, NULL);
    if (*p == '\\')
        return escape(s, p);
    if (at(p) >= 0x80)
        return foreign(s, p);
    return refuse(s, p, "raw control character in a string");
}

/* Read a string from any position in it to after its closing quote. */
static const char *long_string(struct mo_jscan *s, const char *p)
{
    for (;;) {
        p = special(p, s->end);
        if (p < s->end && *p == '"')
            return p + 1;
        p = odd_byte(s, p);
        if (!p)
            return NULL;
    }
}

/* p: after the opening quote. Most strings are short, and then the latency of
 * finding the end dominates: a plain word is faster than a vector. Borrows run
 * upwards only, so the lowest mark is exact. */
static inline const char *string(struct mo_jscan *s, const char *p)
{
    uint64_t w, m;

    if (s->end - p < 8)
        return long_string(s, p);
    w = mo_word_load(p);
    m = (((w ^ mo_word_splat('"')) - MO_WORD_ONES) |
         ((w ^ mo_word_splat('\\')) - MO_WORD_ONES) |
         (w - mo_word_splat(0x20)) | w) &
        MO_WORD_TOPS;
    if (!m)
        return long_string(s, p + 8);
    p += __builtin_ctzll(m) / 8;
    return *p == '"' ? p + 1 : long_string(s, p);
}

/* --- numbers and words --------------------------------------------------- */

static inline bool is_digit(const char *p, const char *end)
{
    return p < end && (unsigned)at(p) - '0' <= 9;
}

static inline const char *digits(struct mo_jscan *s, const char *p)
{
    if (!is_digit(p, s->end))
        return refuse(s, p, "a digit was expected");
    do
        p++;
    while (is_digit(p, s->end));
    return p;
}

static const char *exponent(struct mo_jscan *s, const char *p)
{
    p++;
    if (p < s->end && (*p == '+' || *p == '-'))
        p++;
    return digits(s, p);
}

static inline const char *number(struct mo_jscan *s, const char *p)
{
    if (*p == '-')
        p++;
    if (p < s->end && *p == '0')
        p++; /* the next step refuses a digit after it */
    else
        p = digits(s, p);
    if (p && p < s->end && *p == '.')
        p = digits(s, p + 1);
    if (p && p < s->end && (*p == 'e' || *p == 'E'))
        p = exponent(s, p);
    return p;
}

static const char *word(struct mo_jscan *s, const char *p, const char *w)
{
    for (; *w; w++, p++) {
        if (p == s->end || *p != *w)
            return refuse(s, p, "not a JSON value");
    }
    return p;
}

static inline const char *scalar(struct mo_jscan *s, const char *p)
{
    switch (*p) {
    case 't':
        return word(s, p, "true");
    case 'f':
        return word(s, p, "false");
    case 'n':
        return word(s, p, "null");
    case '-':
        return number(s, p);
    default:
        if (is_digit(p, s->end))
            return number(s, p);
        return refuse(s, p, "a value was expected");
    }
}

/* --- structure ----------------------------------------------------------- */

/* The innermost open level; requires depth > 0. */
static inline bool in_object(const struct mo_jscan *s)
{
    unsigned level = s->depth - 1;

    return s->obj[level / 64] >> level % 64 & 1;
}

static inline bool open_level(struct mo_jscan *s, bool object)
{
    unsigned level = s->depth;
    uint64_t bit = (uint64_t)1 << level % 64;

    if (level == s->max)
        return false;
    if (object)
        s->obj[level / 64] |= bit;
    else
        s->obj[level / 64] &= ~bit;
    s->depth++;
    return true;
}

static inline const char *key_string(struct mo_jscan *s, const char *p)
{
    if (p == s->end || *p != '"')
        return refuse(s, p, "a key was expected");
    return string(s, p + 1);
}

static inline const char *colon(struct mo_jscan *s, const char *p)
{
    p = skip_whitespace(s, p);
    if (p == s->end || *p != ':')
        return refuse(s, p, "':' was expected");
    return p + 1;
}

/* Read a member's key and its colon, with blanks around both. */
static inline const char *member_key(struct mo_jscan *s, const char *p)
{
    p = key_string(s, skip_whitespace(s, p));
    return p ? colon(s, p) : NULL;
}

/* p: on '{' or '['. An empty container is read whole; otherwise the depth grows
 * and p is before the first value inside. */
static inline const char *container(struct mo_jscan *s, const char *p)
{
    bool object = *p == '{';

    if (!open_level(s, object))
        return refuse(s, p, "nested too deeply");
    p = skip_whitespace(s, p + 1);
    if (p == s->end)
        return refuse(s, p, NULL);
    if (*p == (object ? '}' : ']')) {
        s->depth--;
        return p + 1;
    }
    return object ? member_key(s, p) : p;
}

static inline const char *begin(struct mo_jscan *s, const char *p)
{
    p = skip_whitespace(s, p);
    if (p == s->end)
        return refuse(s, p, NULL);
    if (*p == '"')
        return string(s, p + 1);
    if (*p == '{' || *p == '[')
        return container(s, p);
    return scalar(s, p);
}

/* A value has ended: close ended containers, down to base, or continue to the
 * next value of the innermost level (depth is still above base then). */
static inline const char *proceed(struct mo_jscan *s, const char *p,
                                  unsigned base)
{
    while (s->depth > base) {
        bool object = in_object(s);

        p = skip_whitespace(s, p);
        if (p == s->end)
            return refuse(s, p, NULL);
        if (*p == ',')
            return object ? member_key(s, p + 1) : p + 1;
        if (*p != (object ? '}' : ']'))
            return refuse(s, p,
                          object ? "',' or '}' was expected"
                                 : "',' or ']' was expected");
        s->depth--;
        p++;
    }
    return p;
}

bool mo_jscan_value(struct mo_jscan *s, struct mo_json *out)
{
    const unsigned base = s->depth;
    const char *p = skip_whitespace(s, s->p), *from = p;

    do {
        unsigned before = s->depth;

        p = begin(s, p);
        if (p && s->depth == before)
            p = proceed(s, p, base);
        if (!p)
            return false;
    } while (s->depth > base);
    s->p = p;
    *out = (struct mo_json){from, (size_t)(p - from)};
    return true;
}

/* --- the top object, member by member ------------------------------------ */

void mo_jscan_enter(struct mo_jscan *s)
{
    MO_BUG_ON(s->p == s->end || *s->p != '{' || s->depth != 0);
    s->any = false;
    (void)open_level(s, true); /* max is at least 1 */
    s->p++;
}

/* Returns 1: a member follows; 0: the object has ended. */
static int separator(struct mo_jscan *s)
{
    const char *p = skip_whitespace(s, s->p);

    if (p < s->end && *p == '}') {
        s->depth--;
        s->p = p + 1;
        return 0;
    }
    if (s->any && (p == s->end || *p != ',')) {
        refuse(s, p, "',' or '}' was expected");
        return -1;
    }
    s->p = s->any ? p + 1 : p;
    s->any = true;
    return 1;
}

int mo_jscan_member(struct mo_jscan *s, struct mo_json *key,
                    struct mo_json *val)
{
    int more = separator(s);
    const char *from, *p;

    if (more <= 0)
        return more;
    from = skip_whitespace(s, s->p);
    p = key_string(s, from);
    if (!p)
        return -1;
    *key = (struct mo_json){from, (size_t)(p - from)};
    p = colon(s, p);
    if (!p)
        return -1;
    s->p = p;
    return mo_jscan_value(s, val) ? 1 : -1;
}

/* --- ends ---------------------------------------------------------------- */

void mo_jscan_init(struct mo_jscan *s, struct mo_span text, int depth)
{
    const char *start = text.n ? text.p : "";

    if (depth <= 0 || depth > MO_JSON_DEPTH_MAX)
        depth = MO_JSON_DEPTH_MAX;
    *s = (struct mo_jscan){.p = start,
                           .start = start,
                           .end = start + text.n,
                           .max = (unsigned)depth};
    s->p = skip_whitespace(s, start);
    s->has_nl = false; /* outside of the value, so never forwarded */
}

bool mo_jscan_end(struct mo_jscan *s)
{
    bool inside = s->has_nl;
    const char *p = skip_whitespace(s, s->p);

    s->has_nl = inside;
    if (p == s->end)
        return true;
    refuse(s, p, "more after the value");
    return false;
}

int mo_jscan_fail(const struct mo_jscan *s, struct mo_err *e)
{
    unsigned line, col;

    if (!e)
        return MO_EPROTO;
    mo_json_where(mo_span(s->start, (size_t)(s->end - s->start)),
                  (size_t)(s->p - s->start), &line, &col);
    return mo_fail(e, MO_EPROTO, "bad JSON at line %u column %u: %s", line, col,
                   s->why);
}
