/* reference.c - parses references in texts; see reference.h. */
#include "config/reference.h"

#include "base/mem.h"

#define NAME_MAX_BYTES ((size_t)128)
#define PATH_MAX_BYTES ((size_t)4096)

static const struct {
    struct mo_span word;
    enum mo_reference_kind kind;
} kinds[] = {
    {{"secret:", 7}, MO_REFERENCE_SECRET},
    {{"env:", 4}, MO_REFERENCE_ENV},
    {{"file:", 5}, MO_REFERENCE_FILE},
};

bool mo_reference_is_name(struct mo_span s, size_t max)
{
    return s.n > 0 && s.n <= max && mo_span_only(s, MO_ALNUM "_-.");
}

static bool is_valid_path(struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] < 0x20)
            return false;
    }
    return s.n > 0 && s.n <= PATH_MAX_BYTES;
}

/* inside: the text between the braces. */
static int parse_inside(struct mo_span inside, struct mo_reference_part *out,
                        struct mo_err *e)
{
    for (size_t i = 0; i < MO_COUNT(kinds); i++) {
        struct mo_span arg = mo_span_skip(inside, kinds[i].word.n);

        if (!mo_span_starts(inside, kinds[i].word))
            continue;
        if (kinds[i].kind == MO_REFERENCE_FILE
                ? !is_valid_path(arg)
                : !mo_reference_is_name(arg, NAME_MAX_BYTES))
            return mo_fail(e, MO_EINVAL,
                           "has a '${%s...}' whose name is empty, too long or "
                           "not allowed",
                           kinds[i].word.p);
        *out = (struct mo_reference_part){kinds[i].kind, arg};
        return 1;
    }
    if (mo_reference_is_name(inside, NAME_MAX_BYTES))
        return mo_fail(e, MO_EINVAL,
                       "has an unknown reference '${%.*s}'; did you mean "
                       "'${env:%.*s}'? (a literal '${' is written '$${')",
                       (int)inside.n, inside.p, (int)inside.n, inside.p);
    return mo_fail(
        e, MO_EINVAL,
        "has an unknown reference; use ${secret:NAME}, ${env:NAME} or "
        "${file:PATH} (a literal '${' is written '$${')");
}

static int take_text_part(struct mo_span *rest, size_t n, size_t drop,
                          struct mo_reference_part *out)
{
    *out =
        (struct mo_reference_part){MO_REFERENCE_TEXT, mo_span_head(*rest, n)};
    *rest = mo_span_skip(*rest, n + drop);
    return 1;
}

int mo_reference_next(struct mo_span *rest, struct mo_reference_part *out,
                      struct mo_err *e)
{
    ptrdiff_t at = mo_span_search(*rest, MO_SPAN("${"));
    ptrdiff_t end;
    int rc;

    if (rest->n == 0)
        return 0;
    if (at < 0)
        return take_text_part(rest, rest->n, 0, out);
    if (at > 0 && rest->p[at - 1] == '$') /* "$${": drop the second $ */
        return take_text_part(rest, (size_t)at, 1, out);
    if (at > 0)
        return take_text_part(rest, (size_t)at, 0, out);
    end = mo_span_find(*rest, '}');
    if (end < 0)
        return mo_fail(e, MO_EINVAL, "has '${' without a closing '}'");
    rc = parse_inside(mo_span(rest->p + 2, (size_t)end - 2), out, e);
    *rest = mo_span_skip(*rest, (size_t)end + 1);
    return rc;
}

int mo_reference_check(struct mo_span text, struct mo_err *e)
{
    struct mo_reference_part part;
    int rc;

    do
        rc = mo_reference_next(&text, &part, e);
    while (rc > 0);
    return rc;
}

bool mo_reference_any(struct mo_span text)
{
    struct mo_reference_part part;
    int rc;

    for (rc = mo_reference_next(&text, &part, NULL); rc > 0;
         rc = mo_reference_next(&text, &part, NULL)) {
        if (part.kind != MO_REFERENCE_TEXT)
            return true;
    }
    return rc < 0;
}

static void put_reference(struct mo_buf *b,
                          const struct mo_reference_part *part)
{
    for (size_t i = 0; i < MO_COUNT(kinds); i++) {
        if (kinds[i].kind != part->kind)
            continue;
        mo_buf_puts(b, "${");
        mo_buf_span(b, kinds[i].word);
        mo_buf_span(b, part->text);
        mo_buf_putc(b, '}');
    }
}

int mo_reference_mask(struct mo_span text, struct mo_buf *b)
{
    struct mo_reference_part part = {MO_REFERENCE_TEXT, text};
    bool masked = false; /* adjacent literals become one mask */
    int rc;

    for (rc = mo_reference_next(&text, &part, NULL); rc > 0;
         rc = mo_reference_next(&text, &part, NULL)) {
        if (part.kind != MO_REFERENCE_TEXT)
            put_reference(b, &part);
        else if (!masked)
            mo_buf_puts(b, "***");
        masked = part.kind == MO_REFERENCE_TEXT;
    }
    if (rc < 0 && !masked)
        mo_buf_puts(b, "***");
    return mo_buf_err(b);
}
