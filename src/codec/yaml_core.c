#include "codec/yaml_core.h"

#include "codec/yaml.h"

#define DIGITS     "0123456789"
#define QUOTED_MAX ((size_t)64 * 1024)

/* --- plain scalars ------------------------------------------------------- */

static bool is_one_of(struct mo_span s, const char *const v[3])
{
    return mo_span_is(s, v[0]) || mo_span_is(s, v[1]) || mo_span_is(s, v[2]);
}

static struct mo_span cut_digits(struct mo_span *s)
{
    size_t n = 0;
    struct mo_span out;

    while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9')
        n++;
    out = mo_span_head(*s, n);
    *s = mo_span_skip(*s, n);
    return out;
}

static bool cut_char(struct mo_span *s, const char *any)
{
    if (!s->n || s->p[0] == '\0' || !strchr(any, s->p[0]))
        return false;
    *s = mo_span_skip(*s, 1);
    return true;
}

/* "e5", "E-05"; the digits are empty without one. False: something else. */
static bool cut_exponent(struct mo_span *s, struct mo_span *digits,
                         bool *negative)
{
    *digits = MO_SPAN("");
    if (!cut_char(s, "eE"))
        return s->n == 0;
    *negative = s->n && s->p[0] == '-';
    (void)cut_char(s, "+-");
    *digits = cut_digits(s);
    return digits->n > 0 && s->n == 0;
}

/* Writes a decimal number as JSON spells it. */
static int write_decimal(struct mo_jw *w, struct mo_span s, bool *is_number)
{
    mo_autobuf struct mo_buf b = {.max = QUOTED_MAX};
    struct mo_span whole, part = MO_SPAN(""), power = MO_SPAN("");
    bool minus = s.n && s.p[0] == '-', negative = false;

    (void)cut_char(&s, "+-");
    whole = cut_digits(&s);
    if (cut_char(&s, "."))
        part = cut_digits(&s);
    *is_number = (whole.n || part.n) && cut_exponent(&s, &power, &negative);
    if (!*is_number)
        return 0;
    while (whole.n > 1 && whole.p[0] == '0')
        whole = mo_span_skip(whole, 1);
    (void)mo_buf_puts(&b, minus ? "-" : "");
    (void)mo_buf_span(&b, whole.n ? whole : MO_SPAN("0"));
    if (part.n)
        (void)mo_buf_printf(&b, ".%.*s", (int)part.n, part.p);
    if (power.n)
        (void)mo_buf_printf(&b, "e%s%.*s", negative ? "-" : "", (int)power.n,
                            power.p);
    if (mo_buf_err(&b))
        return mo_buf_err(&b);
    mo_jw_raw(w, mo_buf_view(&b));
    return 0;
}

/* "0x1f", "0o17". */
static int write_based(struct mo_jw *w, struct mo_span s, bool *is_number)
{
    unsigned base = mo_span_starts(s, MO_SPAN("0x"))   ? 16
                    : mo_span_starts(s, MO_SPAN("0o")) ? 8
                                                       : 0;
    struct mo_span digits = mo_span_skip(s, 2);
    uint64_t v = 0;

    *is_number =
        base && digits.n &&
        mo_span_only(digits, base == 8 ? "01234567" : DIGITS "abcdefABCDEF");
    if (!*is_number)
        return 0;
    for (size_t i = 0; i < digits.n; i++) {
        char c = digits.p[i];

        if (v >> 48) /* JSON's readers are exact up to 2^53 */
            return MO_EINVAL;
        v = v * base + (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    mo_jw_u64(w, v);
    return 0;
}

static bool is_special_float(struct mo_span s)
{
    static const char *const nans[] = {".nan", ".NaN", ".NAN"};
    static const char *const infs[] = {".inf", ".Inf", ".INF"};

    if (is_one_of(s, nans))
        return true;
    (void)cut_char(&s, "+-");
    return is_one_of(s, infs);
}

int mo_yaml_core_plain(struct mo_jw *w, struct mo_span s)
{
    static const char *const nulls[] = {"null", "Null", "NULL"};
    static const char *const trues[] = {"true", "True", "TRUE"};
    static const char *const falses[] = {"false", "False", "FALSE"};
    bool is_number = false;
    int rc = 0;

    if (is_special_float(s))
        return MO_EINVAL;
    if (mo_span_is(s, "~") || is_one_of(s, nulls)) {
        mo_jw_null(w);
        return 0;
    }
    if (is_one_of(s, trues) || is_one_of(s, falses)) {
        mo_jw_bool(w, is_one_of(s, trues));
        return 0;
    }
    rc = write_based(w, s, &is_number);
    if (rc == 0 && !is_number)
        rc = write_decimal(w, s, &is_number);
    if (rc == 0 && !is_number)
        mo_jw_str(w, s);
    return rc;
}

/* --- flow collections ---------------------------------------------------- */

struct flow {
    struct mo_span rest;
    unsigned depth;
    struct mo_jw *w;
};

static int read_value(struct flow *f);

static void skip_blanks(struct flow *f)
{
    while (cut_char(&f->rest, " \t"))
        continue;
}

/* A text in quotes, appended as JSON. */
static int cut_quoted(struct flow *f, struct mo_buf *out)
{
    char quote = f->rest.p[0];
    mo_autobuf struct mo_buf b = {.max = QUOTED_MAX};
    struct mo_json_doc doc;
    size_t i = 1;

    for (; i < f->rest.n && f->rest.p[i] != quote; i++) {
        if (quote == '"' && f->rest.p[i] == '\\')
            i++;
        else if (quote == '\'')
            (void)mo_buf_putc(&b, f->rest.p[i]);
    }
    if (i >= f->rest.n)
        return MO_EINVAL;
    if (quote == '\'') {
        f->rest = mo_span_skip(f->rest, i + 1);
        if (f->rest.n && f->rest.p[0] == '\'') /* a doubled quote: rare */
            return MO_EINVAL;
        return mo_buf_err(&b) ? mo_buf_err(&b)
                              : mo_json_quote(out, mo_buf_view(&b));
    }
    if (mo_json_parse(mo_span_head(f->rest, i + 1), 1, &doc, NULL) < 0)
        return MO_EINVAL;
    f->rest = mo_span_skip(f->rest, i + 1);
    return mo_buf_span(out, mo_json_text(doc.root));
}

/* Up to a separator; a colon is one before a blank, a bracket or the end. */
static struct mo_span cut_plain(struct flow *f)
{
    struct mo_span s = f->rest;
    size_t n = 0;

    for (; n < s.n && !strchr(",[]{}", s.p[n]); n++) {
        if (s.p[n] == ':' && (n + 1 == s.n || strchr(" \t,[]{}", s.p[n + 1])))
            break;
        if (s.p[n] == '#' && n && strchr(" \t", s.p[n - 1]))
            break;
    }
    f->rest = mo_span_skip(s, n);
    return mo_span_trim(mo_span_head(s, n));
}

static bool is_plain_start(struct mo_span s)
{
    return s.n && !strchr("&*!|>%@`#\"',", s.p[0]) &&
           !(strchr("-?:", s.p[0]) && (s.n == 1 || strchr(" \t", s.p[1])));
}

static int read_key(struct flow *f)
{
    mo_autobuf struct mo_buf b = {.max = QUOTED_MAX};
    struct mo_span plain;
    int rc = 0;

    skip_blanks(f);
    if (f->rest.n && strchr("\"'", f->rest.p[0])) {
        rc = cut_quoted(f, &b);
    } else {
        plain = cut_plain(f);
        rc = is_plain_start(plain) ? mo_json_quote(&b, plain) : MO_EINVAL;
    }
    skip_blanks(f);
    if (rc < 0 || !cut_char(&f->rest, ":"))
        return rc < 0 ? rc : MO_EINVAL;
    mo_jw_key_raw(f->w, (struct mo_json){b.p, b.len});
    return 0;
}

static int read_members(struct flow *f, bool is_map)
{
    const char *end = is_map ? "}" : "]";
    int rc = 0;

    skip_blanks(f);
    while (rc == 0 && !cut_char(&f->rest, end)) {
        if (is_map)
            rc = read_key(f);
        if (rc == 0)
            rc = read_value(f);
        skip_blanks(f);
        if (rc == 0 && !cut_char(&f->rest, ",") &&
            !(f->rest.n && f->rest.p[0] == end[0]))
            rc = MO_EINVAL;
        skip_blanks(f);
    }
    if (rc == 0) /* a member may lack its value */
        mo_jw_end(f->w);
    return rc;
}

static int read_collection(struct flow *f)
{
    bool is_map = f->rest.p[0] == '{';
    int rc;

    if (++f->depth > MO_YAML_DEPTH)
        return MO_EINVAL;
    f->rest = mo_span_skip(f->rest, 1);
    if (is_map)
        mo_jw_obj(f->w);
    else
        mo_jw_arr(f->w);
    rc = read_members(f, is_map);
    f->depth--;
    return rc;
}

static int read_value(struct flow *f)
{
    mo_autobuf struct mo_buf b = {.max = QUOTED_MAX};
    struct mo_span plain;
    int rc;

    skip_blanks(f);
    if (f->rest.n && strchr("[{", f->rest.p[0]))
        return read_collection(f);
    if (f->rest.n && strchr("\"'", f->rest.p[0])) {
        rc = cut_quoted(f, &b);
        if (rc == 0)
            mo_jw_raw(f->w, mo_buf_view(&b));
        return rc;
    }
    plain = cut_plain(f);
    return is_plain_start(plain) ? mo_yaml_core_plain(f->w, plain) : MO_EINVAL;
}

int mo_yaml_core_flow(struct mo_jw *w, struct mo_span s)
{
    struct flow f = {.rest = s, .w = w};
    int rc;

    if (!s.n || !strchr("[{", s.p[0]))
        return MO_EINVAL;
    rc = read_collection(&f);
    return rc == 0 && f.rest.n ? MO_EINVAL : rc;
}
