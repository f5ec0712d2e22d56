/* jformat.c - is this text a date, an address, an identifier?
 *
 * The formats of JSON Schema that tools use, each as its RFC writes it but
 * never stricter: a text that some reader of that RFC accepts should pass
 * here. Pure, no allocation; knows no DNS and no time zones. */
#include "codec/json/jschema.h"

#include "base/mem.h"

/* Read exactly n digits from the front, between lo and hi. */
static bool take_number(struct mo_span *s, size_t n, unsigned lo, unsigned hi,
                        unsigned *out)
{
    unsigned v = 0;

    if (s->n < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!mo_is_digit(s->p[i]))
            return false;
        v = v * 10 + (unsigned)(s->p[i] - '0');
    }
    *s = mo_span_skip(*s, n);
    *out = v;
    return v >= lo && v <= hi;
}

static bool take_char(struct mo_span *s, char c)
{
    if (s->n == 0 || s->p[0] != c)
        return false;
    *s = mo_span_skip(*s, 1);
    return true;
}

static bool take_date(struct mo_span *s)
{
    static const uint8_t days[] = {31, 29, 31, 30, 31, 30,
                                   31, 31, 30, 31, 30, 31};
    unsigned y, m, d;

    if (!take_number(s, 4, 0, 9999, &y) || !take_char(s, '-') ||
        !take_number(s, 2, 1, 12, &m) || !take_char(s, '-') ||
        !take_number(s, 2, 1, days[m - 1], &d))
        return false;
    return m != 2 || d < 29 || (y % 4 == 0 && (y % 100 != 0 || y % 400 == 0));
}

/* RFC 3339: hh:mm:ss[.fraction](Z|+hh:mm); second 60 is a leap second. */
static bool take_time(struct mo_span *s)
{
    unsigned v;

    if (!take_number(s, 2, 0, 23, &v) || !take_char(s, ':') ||
        !take_number(s, 2, 0, 59, &v) || !take_char(s, ':') ||
        !take_number(s, 2, 0, 60, &v))
        return false;
    if (take_char(s, '.')) {
        size_t n = 0;

        while (n < s->n && mo_is_digit(s->p[n]))
            n++;
        if (n == 0)
            return false;
        *s = mo_span_skip(*s, n);
    }
    if (take_char(s, 'Z') || take_char(s, 'z'))
        return true;
    if (!take_char(s, '+') && !take_char(s, '-'))
        return false;
    return take_number(s, 2, 0, 23, &v) && take_char(s, ':') &&
           take_number(s, 2, 0, 59, &v);
}

static bool is_date(struct mo_span s)
{
    return take_date(&s) && s.n == 0;
}

static bool is_time(struct mo_span s)
{
    return take_time(&s) && s.n == 0;
}

static bool is_date_time(struct mo_span s)
{
    if (!take_date(&s))
        return false;
    if (!take_char(&s, 'T') && !take_char(&s, 't') && !take_char(&s, ' '))
        return false;
    return take_time(&s) && s.n == 0;
}

/* Text, one '@', a host name or literal; no blanks, no dot at either end. A
 * quoted name may hold anything but still needs a host after it. */
static bool is_email(struct mo_span s)
{
    struct mo_span name = s, host = s;
    bool quoted = s.n > 0 && s.p[0] == '"';

    while (mo_span_find(host, '@') >= 0)
        mo_span_cut(&host, '@');
    if (host.n == s.n || host.n == 0)
        return false;
    name.n = s.n - host.n - 1;
    if (name.n == 0 || host.p[0] == '.' || mo_span_find(host, ' ') >= 0)
        return false;
    return quoted ||
           (mo_span_find(name, '@') < 0 && mo_span_find(name, ' ') < 0 &&
            name.p[0] != '.' && name.p[name.n - 1] != '.');
}

/* Bytes allowed in a URI; '%' must begin an escape. */
static bool uri_chars(struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c <= ' ' || c >= 127 || strchr("<>\"{}|\\^`", c))
            return false;
        if (c == '%' && (s.n - i < 3 || mo_hex_digit(s.p[i + 1]) < 0 ||
                         mo_hex_digit(s.p[i + 2]) < 0))
            return false;
    }
    return true;
}

static bool is_uri(struct mo_span s)
{
    size_t i = 0;

    while (i < s.n && (mo_is_alpha(s.p[i]) || mo_is_digit(s.p[i]) ||
                       s.p[i] == '+' || s.p[i] == '-' || s.p[i] == '.'))
        i++;
    return i > 0 && i < s.n && s.p[i] == ':' && mo_is_alpha(s.p[0]) &&
           uri_chars(s);
}

static bool is_uuid(struct mo_span s)
{
    if (s.n != 36)
        return false;
    for (size_t i = 0; i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? s.p[i] != '-' : mo_hex_digit(s.p[i]) < 0)
            return false;
    }
    return true;
}

int mo_jformat(struct mo_span format, struct mo_span text)
{
    static const struct {
        const char *name;
        bool (*is)(struct mo_span);
    } known[] = {
        {"date", is_date},
        {"time", is_time},
        {"date-time", is_date_time},
        {"email", is_email},
        {"uri", is_uri},
        {"uri-reference", uri_chars},
        {"uuid", is_uuid},
        {"ipv4", mo_span_is_ip4},
    };

    for (size_t i = 0; i < MO_COUNT(known); i++) {
        if (mo_span_is(format, known[i].name))
            return known[i].is(text);
    }
    return -1;
}
