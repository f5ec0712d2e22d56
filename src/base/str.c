#include "base/str.h"

#include <stdio.h>

#define BUF_MIN ((size_t)64)

struct mo_span mo_span_skip(struct mo_span s, size_t n)
{
    if (n > s.n)
        n = s.n;
    return mo_span(n ? s.p + n : s.p, s.n - n);
}

struct mo_span mo_span_head(struct mo_span s, size_t n)
{
    return mo_span(s.p, n < s.n ? n : s.n);
}

struct mo_span mo_span_take(struct mo_span *s, size_t n)
{
    struct mo_span head = mo_span_head(*s, n);

    *s = mo_span_skip(*s, n);
    return head;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct mo_span mo_span_trim(struct mo_span s)
{
    while (s.n && is_blank(s.p[0]))
        s = mo_span_skip(s, 1);
    while (s.n && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

bool mo_span_ieq(struct mo_span a, struct mo_span b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++) {
        if (a.p[i] != b.p[i] && mo_lower(a.p[i]) != mo_lower(b.p[i]))
            return false;
    }
    return true;
}

bool mo_span_starts(struct mo_span s, struct mo_span prefix)
{
    return s.n >= prefix.n && mo_span_eq(mo_span_head(s, prefix.n), prefix);
}

bool mo_span_ends(struct mo_span s, struct mo_span suffix)
{
    return s.n >= suffix.n &&
           mo_span_eq(mo_span_skip(s, s.n - suffix.n), suffix);
}

bool mo_span_strip(struct mo_span *s, struct mo_span prefix)
{
    bool starts = mo_span_starts(*s, prefix);

    if (starts)
        *s = mo_span_skip(*s, prefix.n);
    return starts;
}

bool mo_span_eq_ct(struct mo_span a, struct mo_span b)
{
    unsigned char diff = 0;

    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        diff |= (unsigned char)(a.p[i] ^ b.p[i]);
    return diff == 0;
}

ptrdiff_t mo_span_find(struct mo_span s, char c)
{
    const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

    return at ? at - s.p : -1;
}

bool mo_span_between(struct mo_span s, char lo, char hi)
{
    size_t i = 0;

    while (i < s.n && s.p[i] >= lo && s.p[i] <= hi)
        i++;
    return i == s.n;
}

bool mo_span_only(struct mo_span s, const char *set)
{
    for (size_t i = 0; i < s.n; i++)
        if (!s.p[i] || !strchr(set, s.p[i]))
            return false;
    return true;
}

ptrdiff_t mo_span_search(struct mo_span s, struct mo_span what)
{
    const char *at;

    if (what.n == 0)
        return 0;
    at = s.n ? memmem(s.p, s.n, what.p, what.n) : NULL;
    return at ? at - s.p : -1;
}

struct mo_span mo_span_cut(struct mo_span *s, char c)
{
    ptrdiff_t at = mo_span_find(*s, c);
    struct mo_span head = *s;

    if (at < 0) {
        *s = mo_span(NULL, 0);
        return head;
    }
    head.n = (size_t)at;
    *s = mo_span_skip(*s, head.n + 1);
    return head;
}

int mo_span_u64(struct mo_span s, uint64_t *out)
{
    uint64_t v = 0;

    if (s.n == 0)
        return MO_EINVAL;
    for (size_t i = 0; i < s.n; i++) {
        unsigned d = (unsigned)(unsigned char)s.p[i] - '0';

        if (d > 9 || v > (UINT64_MAX - d) / 10)
            return MO_EINVAL;
        v = v * 10 + d;
    }
    *out = v;
    return 0;
}

bool mo_span_is_ip4(struct mo_span s)
{
    for (int i = 0; i < 4; i++) {
        struct mo_span part = mo_span_cut(&s, '.');
        uint64_t v;

        if (part.n > 3 || (part.n > 1 && part.p[0] == '0') ||
            mo_span_u64(part, &v) < 0 || v > 255)
            return false;
    }
    return !s.p;
}

int mo_span_i64(struct mo_span s, int64_t *out)
{
    bool neg = s.n && s.p[0] == '-';
    uint64_t v;

    if (mo_span_u64(neg ? mo_span_skip(s, 1) : s, &v) < 0)
        return MO_EINVAL;
    if (v > (uint64_t)INT64_MAX + neg)
        return MO_EINVAL;
    *out = neg ? (int64_t)(0 - v) : (int64_t)v;
    return 0;
}

struct mo_span mo_u64_text(uint64_t v, char room[MO_U64_DIGITS])
{
    size_t i = MO_U64_DIGITS;

    do {
        room[--i] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    return mo_span(room + i, MO_U64_DIGITS - i);
}

void mo_hex(const void *p, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *b = p;

    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[b[i] >> 4];
        out[2 * i + 1] = digits[b[i] & 15];
    }
    out[2 * n] = '\0';
}

size_t mo_tail_add(char *tail, size_t len, size_t max, struct mo_span more)
{
    size_t keep;

    if (more.n > max)
        more = mo_span_skip(more, more.n - max);
    keep = max - more.n < len ? max - more.n : len;
    memmove(tail, tail + len - keep, keep);
    if (more.n)
        memcpy(tail + keep, more.p, more.n);
    return keep + more.n;
}

int mo_arena_span(struct mo_arena *a, struct mo_span from, struct mo_span *to)
{
    char *p = mo_arena_strndup(a, from.p, from.n);

    *to = mo_span(p, p ? from.n : 0);
    return p ? 0 : MO_ENOMEM;
}

void mo_buf_init(struct mo_buf *b, size_t max)
{
    *b = (struct mo_buf){.max = max};
}

void mo_buf_fini(struct mo_buf *b)
{
    mo_free(b->p);
    *b = (struct mo_buf){.max = b->max};
}

void mo_buf_wipe(struct mo_buf *b)
{
    if (b->p)
        explicit_bzero(b->p, b->cap);
    mo_buf_fini(b);
}

int mo_buf_fail(struct mo_buf *b, int code)
{
    if (!b->err)
        b->err = code;
    return b->err;
}

void mo_buf_reset(struct mo_buf *b)
{
    b->len = 0;
    b->err = 0;
}

void mo_buf_shrink(struct mo_buf *b, size_t keep)
{
    if (b->cap > keep)
        mo_buf_fini(b);
    else
        mo_buf_reset(b);
}

/* Make room for n more bytes and a NUL. Capacity doubles up to max + 1, so n
 * puts cost O(n). */
static int reserve_bytes(struct mo_buf *b, size_t n)
{
    size_t want = b->cap ? b->cap : BUF_MIN;
    char *p;

    if (b->err)
        return b->err;
    if (n > b->max - b->len || n > SIZE_MAX / 4 - b->len)
        return b->err = MO_ETOOBIG;
    if (b->len + n < b->cap)
        return 0;
    while (want <= b->len + n)
        want *= 2;
    if (want > b->max)
        want = b->max + 1;
    p = mo_realloc(b->p, want);
    if (!p)
        return b->err = MO_ENOMEM;
    b->p = p;
    b->cap = want;
    return 0;
}

char *mo_buf_room(struct mo_buf *b, size_t n)
{
    return reserve_bytes(b, n) < 0 ? NULL : b->p + b->len;
}

void mo_buf_add(struct mo_buf *b, size_t n)
{
    MO_BUG_ON(n > b->cap - b->len || n > b->max - b->len);
    b->len += n;
}

void mo_buf_drop(struct mo_buf *b, size_t n)
{
    if (n >= b->len) {
        b->len = 0;
        return;
    }
    memmove(b->p, b->p + n, b->len - n);
    b->len -= n;
}

/* The common case: no error and enough capacity. */
static inline bool has_room(const struct mo_buf *b, size_t n)
{
    return !b->err && b->len + n < b->cap && n <= b->max - b->len;
}

int mo_buf_put(struct mo_buf *b, const void *p, size_t n)
{
    int rc = n < b->cap && has_room(b, n) ? 0 : reserve_bytes(b, n);

    if (rc < 0)
        return rc;
    if (n)
        memcpy(b->p + b->len, p, n);
    b->len += n;
    return 0;
}

int mo_buf_putc(struct mo_buf *b, char c)
{
    if (!has_room(b, 1))
        return mo_buf_put(b, &c, 1);
    b->p[b->len++] = c;
    return 0;
}

int mo_buf_vprintf(struct mo_buf *b, const char *fmt, va_list ap)
{
    va_list again;
    char *at;
    int n;

    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        return mo_buf_fail(b, MO_EINVAL);
    at = mo_buf_room(b, (size_t)n); /* plus one for the NUL */
    if (!at)
        return b->err;
    (void)vsnprintf(at, (size_t)n + 1, fmt, ap);
    b->len += (size_t)n;
    return 0;
}

int mo_buf_printf(struct mo_buf *b, const char *fmt, ...)
{
    va_list ap;
    int rc;

    va_start(ap, fmt);
    rc = mo_buf_vprintf(b, fmt, ap);
    va_end(ap);
    return rc;
}

int mo_buf_u64(struct mo_buf *b, uint64_t v)
{
    char tmp[MO_U64_DIGITS];

    return mo_buf_span(b, mo_u64_text(v, tmp));
}

int mo_buf_i64(struct mo_buf *b, int64_t v)
{
    if (v < 0) {
        mo_buf_putc(b, '-');
        return mo_buf_u64(b, 0 - (uint64_t)v);
    }
    return mo_buf_u64(b, (uint64_t)v);
}

const char *mo_buf_cstr(struct mo_buf *b)
{
    if (b->err)
        return "";
    if (b->len == b->cap && reserve_bytes(b, 0) < 0)
        return "";
    b->p[b->len] = '\0';
    return b->p;
}
