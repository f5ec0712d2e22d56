#include "toolbox/format.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct sink {
    char *out;
    size_t room, len; /* len also counts what did not fit */
};

struct spec {
    bool zero, longer;
    bool star; /* the precision is an argument */
    size_t width;
    int precision; /* -1: none */
};

static void put_bytes(struct sink *s, char c)
{
    if (s->len + 1 < s->room)
        s->out[s->len] = c;
    s->len++;
}

static void put_text(struct sink *s, const char *p, size_t n,
                     const struct spec *sp)
{
    for (size_t i = n; i < sp->width; i++)
        put_bytes(s, sp->zero ? '0' : ' ');
    for (size_t i = 0; i < n; i++)
        put_bytes(s, p[i]);
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
    if (minus && sp->zero) { /* the sign comes before the zeros */
        put_bytes(s, '-');
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

static int read_digits(const char **f)
{
    int n = 0;

    for (; **f >= '0' && **f <= '9' && n < INT_MAX / 16; (*f)++)
        n = n * 10 + (**f - '0');
    return n;
}

static void read_spec(const char **f, struct spec *sp)
{
    *sp = (struct spec){.precision = -1};
    sp->zero = **f == '0';
    sp->width = (size_t)read_digits(f);
    if (**f == '.') {
        (*f)++;
        sp->star = **f == '*';
        *f += sp->star;
        sp->precision = read_digits(f);
    }
    for (; **f == 'l' || **f == 'z'; (*f)++)
        sp->longer = true;
}

static void put_integer(struct sink *s, char kind, uint64_t v, struct spec *sp)
{
    bool minus = kind == 'd' && (int64_t)v < 0;
    char c = (char)v;

    if (kind == 'c')
        put_text(s, &c, 1, sp);
    else
        put_number(s, minus ? 0 - v : v, minus, kind == 'x' ? 16 : 10, sp);
}

/* All arguments are read here: a va_list cannot be passed on safely. long has
 * 64 bits on every supported machine, so it stands for long long and size_t
 * too. */
static void format_all(struct sink *s, const char *f, va_list ap)
{
    for (; *f; f++) {
        struct spec sp;

        if (*f != '%' || f[1] == '%') {
            put_bytes(s, *f);
            f += *f == '%';
            continue;
        }
        f++;
        read_spec(&f, &sp);
        if (sp.star)
            sp.precision = va_arg(ap, int);
        if (*f == 's') {
            const char *text = va_arg(ap, const char *);

            put_text(s, text, text_len(text, sp.precision), &sp);
        } else if (!*f || !strchr("duxc", *f)) {
            return;
        } else if (sp.longer) {
            put_integer(s, *f, va_arg(ap, unsigned long), &sp);
        } else if (*f == 'd') {
            put_integer(s, *f, (uint64_t)(int64_t)va_arg(ap, int), &sp);
        } else {
            put_integer(s, *f, va_arg(ap, unsigned), &sp);
        }
    }
}

int tb_vsnprintf(char *out, size_t n, const char *fmt, va_list ap)
{
    struct sink s = {out, n, 0};

    format_all(&s, fmt, ap);
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
