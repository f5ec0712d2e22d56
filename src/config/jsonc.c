/* jsonc.c - blanks out comments and trailing commas; see jsonc.h. */
#include "config/jsonc.h"

static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++) {
        if (*p == '\\' && p + 1 < end)
            p++;
    }
    return p < end ? p + 1 : end;
}

/* The end of the comment that begins at p; p itself if there is none. */
static const char *skip_comment(const char *p, const char *end)
{
    struct mo_span rest = mo_span(p, (size_t)(end - p));
    ptrdiff_t stop;

    if (mo_span_starts(rest, MO_SPAN("//"))) {
        stop = mo_span_find(rest, '\n');
        return stop < 0 ? end : p + stop;
    }
    if (!mo_span_starts(rest, MO_SPAN("/*")))
        return p;
    stop = mo_span_search(mo_span_skip(rest, 2), MO_SPAN("*/"));
    return stop < 0 ? end : p + stop + 4;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* True if a closing bracket follows the comma at p. */
static bool is_last_comma(const char *p, const char *end)
{
    const char *q = p + 1;

    while (q < end) {
        const char *next = skip_comment(q, end);

        if (next == q && !is_blank(*q))
            return *q == '}' || *q == ']';
        q = next == q ? q + 1 : next;
    }
    return false;
}

static void put_blanks(struct mo_buf *b, const char *p, const char *end)
{
    for (; p < end; p++)
        mo_buf_putc(b, is_blank(*p) ? *p : ' ');
}

int mo_jsonc_plain(struct mo_span text, struct mo_buf *out)
{
    const char *p, *end, *next;

    if (mo_span_starts(text, MO_SPAN("\xef\xbb\xbf")))
        text = mo_span_skip(text, 3);
    end = text.p + text.n;
    for (p = text.p; p < end; p = next) {
        next = *p == '"' ? skip_string(p, end) : skip_comment(p, end);
        if (*p == '"')
            mo_buf_put(out, p, (size_t)(next - p));
        else if (next > p)
            put_blanks(out, p, next);
        else
            mo_buf_putc(out, *p == ',' && is_last_comma(p, end) ? ' ' : *p);
        if (next == p)
            next++;
    }
    return mo_buf_err(out);
}
