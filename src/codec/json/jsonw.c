/* jsonw.c - the writer of json.h: literals, values, compact and pretty output.
 *
 * The output is valid JSON by construction; a misplaced call is a bug of the
 * caller and ends the process. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/json/jscan.h"
#include "codec/json/json.h"
#include "codec/text/utf8.h"
#include "codec/text/vec.h"

#define PRETTY_INDENT 2

/* --- string literals ----------------------------------------------------- */

/* Skip text that needs no escape: valid UTF-8 without quote, backslash and
 * control characters. */
static const char *clean_run(const char *p, const char *end)
{
    while (end - p >= MO_VEC_WIDTH) {
        mo_vec v = mo_vec_load(p);
        mo_vec quote = mo_vec_or(mo_vec_eq(v, '"'), mo_vec_eq(v, '\\'));

        if (mo_vec_mask(mo_vec_or(quote, mo_vec_odd(v))))
            break;
        p += MO_VEC_WIDTH;
    }
    while (p < end) {
        unsigned char c = (unsigned char)*p;
        size_t n = c < 0x80 ? 1 : mo_utf8_len(p, end);

        if (n == 0 || c < 0x20 || c == '"' || c == '\\')
            break;
        p += n;
    }
    return p;
}

static void put_control(struct mo_buf *b, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char named[0x20] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    char esc[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

    if (!named[c]) {
        mo_buf_put(b, esc, sizeof(esc));
        return;
    }
    esc[1] = named[c];
    mo_buf_put(b, esc, 2);
}

/* Write the byte that ended a plain run; returns the bytes taken. The bytes of
 * one broken character become one U+FFFD. */
static size_t put_special(struct mo_buf *b, struct mo_span s)
{
    unsigned char c = (unsigned char)s.p[0];
    size_t n = 1;

    if (c < 0x20) {
        put_control(b, c);
    } else if (c < 0x80) {
        char esc[2] = {'\\', s.p[0]};

        mo_buf_put(b, esc, 2);
    } else {
        n = mo_utf8_good(mo_span_head(s, 4));
        mo_buf_puts(b, "\xEF\xBF\xBD");
    }
    return n ? n : 1;
}

int mo_json_quote(struct mo_buf *b, struct mo_span s)
{
    const char *p = s.n ? s.p : "", *end = p + s.n;

    mo_buf_putc(b, '"');
    while (p < end && !mo_buf_err(b)) {
        const char *stop = clean_run(p, end);

        mo_buf_put(b, p, (size_t)(stop - p));
        p = stop;
        if (p < end)
            p += put_special(b, mo_span(p, (size_t)(end - p)));
    }
    return mo_buf_putc(b, '"');
}

/* --- writer -------------------------------------------------------------- */

static uint64_t level_bit(const struct mo_jw *w)
{
    return (uint64_t)1 << w->depth;
}

void mo_jw_init(struct mo_jw *w, struct mo_buf *b)
{
    *w = (struct mo_jw){.b = b};
}

static void put_comma(struct mo_jw *w)
{
    if (w->has_item & level_bit(w))
        mo_buf_putc(w->b, ',');
    w->has_item |= level_bit(w);
}

/* Called before every value. Level 0 holds exactly one. */
static void begin_value(struct mo_jw *w)
{
    if (w->is_obj & level_bit(w)) {
        MO_BUG_ON(!w->after_key);
        w->after_key = false;
        return;
    }
    MO_BUG_ON(w->depth == 0 && (w->has_item & 1));
    put_comma(w);
}

static void open_level(struct mo_jw *w, bool object)
{
    begin_value(w);
    MO_BUG_ON(w->depth + 1 >= MO_JW_DEPTH_MAX);
    w->depth++;
    w->has_item &= ~level_bit(w);
    w->is_obj &= ~level_bit(w);
    if (object)
        w->is_obj |= level_bit(w);
    mo_buf_putc(w->b, object ? '{' : '[');
}

void mo_jw_obj(struct mo_jw *w)
{
    open_level(w, true);
}

void mo_jw_arr(struct mo_jw *w)
{
    open_level(w, false);
}

struct mo_jw mo_jw_object(struct mo_buf *b)
{
    struct mo_jw w = {.b = b};

    open_level(&w, true);
    return w;
}

struct mo_jw mo_jw_array(struct mo_buf *b)
{
    struct mo_jw w = {.b = b};

    open_level(&w, false);
    return w;
}

void mo_jw_end(struct mo_jw *w)
{
    MO_BUG_ON(w->depth == 0 || w->after_key);
    mo_buf_putc(w->b, w->is_obj & level_bit(w) ? '}' : ']');
    w->depth--;
}

void mo_jw_end_all(struct mo_jw *w)
{
    while (w->depth)
        mo_jw_end(w);
}

void mo_jw_key_span(struct mo_jw *w, struct mo_span key)
{
    MO_BUG_ON(!(w->is_obj & level_bit(w)) || w->after_key);
    put_comma(w);
    mo_json_quote(w->b, key);
    mo_buf_putc(w->b, ':');
    w->after_key = true;
}

void mo_jw_key_raw(struct mo_jw *w, struct mo_json key)
{
    MO_BUG_ON(!(w->is_obj & level_bit(w)) || w->after_key);
    put_comma(w);
    mo_buf_span(w->b, mo_json_text(key));
    mo_buf_putc(w->b, ':');
    w->after_key = true;
}

void mo_jw_str(struct mo_jw *w, struct mo_span s)
{
    begin_value(w);
    mo_json_quote(w->b, s);
}

void mo_jw_cstr(struct mo_jw *w, const char *s)
{
    if (s)
        mo_jw_str(w, mo_span_cstr(s));
    else
        mo_jw_null(w);
}

void mo_jw_i64(struct mo_jw *w, int64_t v)
{
    begin_value(w);
    mo_buf_i64(w->b, v);
}

void mo_jw_u64(struct mo_jw *w, uint64_t v)
{
    begin_value(w);
    mo_buf_u64(w->b, v);
}

/* 15 digits identify most doubles that people write, 17 identify every one;
 * below the normal range fewer than 15 may do. NaN and infinity become null, as
 * in JavaScript. */
void mo_jw_f64(struct mo_jw *w, double v)
{
    char tmp[40];
    int n = 0;

    if (!isfinite(v)) {
        mo_jw_null(w);
        return;
    }
    begin_value(w);
    for (int prec = fabs(v) < DBL_MIN ? 1 : 15; prec <= 17; prec++) {
        n = snprintf(tmp, sizeof(tmp), "%.*g", prec, v);
        if (strtod(tmp, NULL) == v)
            break;
    }
    mo_buf_put(w->b, tmp, (size_t)n);
}

void mo_jw_bool(struct mo_jw *w, bool v)
{
    begin_value(w);
    mo_buf_puts(w->b, v ? "true" : "false");
}

void mo_jw_null(struct mo_jw *w)
{
    begin_value(w);
    mo_buf_puts(w->b, "null");
}

void mo_jw_raw(struct mo_jw *w, struct mo_span json)
{
    MO_BUG_ON(json.n == 0);
    begin_value(w);
    mo_buf_span(w->b, json);
}

/* --- the same value, other blanks ---------------------------------------- */

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ';
}

static const char *skip_blank(const char *p, const char *end)
{
    while (p < end && is_blank(*p))
        p++;
    return p;
}

/* Find the next string or blank of trusted text. */
static const char *quote_or_blank(const char *p, const char *end)
{
    while (end - p >= MO_VEC_WIDTH) {
        mo_vec v = mo_vec_load(p);
        uint64_t m =
            mo_vec_mask(mo_vec_or(mo_vec_eq(v, '"'), mo_vec_below(v, 0x21)));

        if (m)
            return p + mo_vec_first(m);
        p += MO_VEC_WIDTH;
    }
    while (p < end && *p != '"' && !is_blank(*p))
        p++;
    return p;
}

int mo_json_compact(struct mo_json v, struct mo_buf *b)
{
    const char *p = v.p, *from = v.p, *end = v.n ? v.p + v.n : v.p;

    while (p < end) {
        p = quote_or_blank(p, end);
        if (p < end && *p == '"') {
            p = mo_json_skip_string(p, end);
            continue;
        }
        mo_buf_put(b, from, (size_t)(p - from));
        p = from = skip_blank(p, end);
    }
    return mo_buf_put(b, from, (size_t)(p - from));
}

static void new_line(struct mo_buf *b, size_t depth)
{
    mo_buf_putc(b, '\n');
    for (size_t i = 0; i < depth * PRETTY_INDENT && !mo_buf_err(b); i++)
        mo_buf_putc(b, ' ');
}

/* Write one token of trusted text with its line breaks. */
static const char *pretty_token(struct mo_buf *b, const char *p,
                                const char *end, size_t *depth)
{
    const char *next = *p == '"' ? mo_json_skip_string(p, end) : p + 1;
    bool closes = *p == '}' || *p == ']';

    if (closes)
        new_line(b, --*depth);
    mo_buf_put(b, p, (size_t)(next - p));
    if (*p == ':')
        mo_buf_putc(b, ' ');
    if (*p == ',')
        new_line(b, *depth);
    if (*p != '{' && *p != '[')
        return next;
    next = skip_blank(next, end);
    if (*next == '}' || *next == ']') { /* empty: stays on its line */
        mo_buf_putc(b, *next);
        return next + 1;
    }
    new_line(b, ++*depth);
    return next;
}

int mo_json_pretty(struct mo_json v, struct mo_buf *b)
{
    const char *p = v.p, *end = v.n ? v.p + v.n : v.p;
    size_t depth = 0;

    while (p < end && !mo_buf_err(b)) {
        p = pretty_token(b, p, end, &depth);
        p = skip_blank(p, end);
    }
    return mo_buf_err(b);
}
