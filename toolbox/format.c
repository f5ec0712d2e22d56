#include "toolbox/format.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct sink {
    char *out;
    size_t room, len; /* len counts what did not fit, too */
};

/* Passed on by address, as the array a va_list may be cannot. */
struct source {
    va_list ap;
};

struct spec {
    bool zero, longer;
    size_t width;
    int precision; /* -1: none */
};

static void put(struct sink *s, char c)
{
    if (s->len + 1 < s->room)
        s->out[s->len] = c;
    s->len++;
}

static void put_text(struct sink *s, const char *p, size_t n,
                     const struct spec *sp)
{
    for (size_t i = n; i < sp->width; i++)
        put(s, sp->zero ? '0' : ' ');
    for (size_t i = 0; i < n; i++)
        put(s, p[i]);
}

static void put_number(struct sink *s, uint64_t v, bool minus, unsigned base,
                       struct spec *sp)
{
    char digits[24];
    size_t at = sizeof(digits);

    do {
        digits[--at] = "0123456789abcdef"[v % base];
        v /= base;
    } while (v);
    if (minus && sp->zero) { /* the sign stands before the zeros */
        put(s, '-');
        sp->width -= sp->width ? 1 : 0;
    } else if (minus) {
        digits[--at] = '-';
    }
    put_text(s, digits + at, sizeof(digits) - at, sp);
}

static size_t text_len(const char *p, int precision)
{
    return precision < 0 ? strlen(p) : strnlen(p, (size_t)precision);
}

/* '*' or digits. */
static int read_count(const char **f, struct source *from)
{
    int n = 0;

    if (**f == '*') {
        (*f)++;
        return va_arg(from->ap, int);
    }
    for (; **f >= '0' && **f <= '9' && n < INT_MAX / 16; (*f)++)
        n = n * 10 + (**f - '0');
    return n;
}

static void read_spec(const char **f, struct source *from, struct spec *sp)
{
    *sp = (struct spec){.precision = -1};
    sp->zero = **f == '0';
    sp->width = (size_t)read_count(f, from);
    if (**f == '.') {
        (*f)++;
        sp->precision = read_count(f, from);
    }
    for (; **f == 'l' || **f == 'z'; (*f)++)
        sp->longer = true;
}

static bool put_one(struct sink *s, char kind, struct spec *sp,
                    struct source *from)
{
    char c = '%';
    const char *text;
    int64_t v;

    switch (kind) {
    case 'd': /* long is 64 bits wide wherever a box runs */
        v = sp->longer ? va_arg(from->ap, long) : va_arg(from->ap, int);
        put_number(s, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0, 10, sp);
        return true;
    case 'u':
    case 'x':
        put_number(s,
                   sp->longer ? va_arg(from->ap, unsigned long)
                              : va_arg(from->ap, unsigned),
                   false, kind == 'u' ? 10 : 16, sp);
        return true;
    case 's':
        text = va_arg(from->ap, const char *);
        put_text(s, text, text_len(text, sp->precision), sp);
        return true;
    case 'c':
        c = (char)va_arg(from->ap, int);
        put_text(s, &c, 1, sp);
        return true;
    case '%':
        put(s, c);
        return true;
    default:
        return false;
    }
}

int tb_vsnprintf(char *out, size_t n, const char *fmt, va_list ap)
{
    struct sink s = {out, n, 0};
    struct source from;

    va_copy(from.ap, ap);
    for (const char *f = fmt; *f; f++) {
        struct spec sp;

        if (*f != '%') {
            put(&s, *f);
            continue;
        }
        f++;
        read_spec(&f, &from, &sp);
        if (!put_one(&s, *f, &sp, &from))
            break;
    }
    va_end(from.ap);
    if (n)
        out[s.len < n ? s.len : n - 1] = '\0';
    return s.len > INT_MAX ? -1 : (int)s.len;
}

int tb_snprintf(char *out, size_t n, const char *fmt, ...)
{
    va_list ap;
    int len;

    va_start(ap, fmt);
    len = tb_vsnprintf(out, n, fmt, ap);
    va_end(ap);
    return len;
}
