#include "toolbox/glob.h"

#define BUDGET    20000
#define DEPTH_MAX 64

/* The rest of the pattern. Each alternative in braces is tried with the rest
 * behind it, so a pattern is a short chain of parts. */
struct chain {
    struct mo_span s;
    const struct chain *next;
};

struct match {
    unsigned steps, depth;
};

static bool match_bounded(struct match *m, const struct chain *pat,
                          struct mo_span text);

/* Index of the brace that closes the one at 0, or -1. */
static ptrdiff_t find_closing(struct mo_span p)
{
    unsigned depth = 0;

    for (size_t i = 0; i < p.n; i++) {
        if (p.p[i] == '{')
            depth++;
        else if (p.p[i] == '}' && --depth == 0)
            return (ptrdiff_t)i;
    }
    return -1;
}

/* Up to the next comma outside inner braces. */
static struct mo_span next_alternative(struct mo_span *list)
{
    unsigned depth = 0;
    struct mo_span all = *list;

    for (size_t i = 0; i < all.n; i++) {
        depth += all.p[i] == '{';
        depth -= all.p[i] == '}';
        if (all.p[i] == ',' && depth == 0) {
            *list = mo_span_skip(all, i + 1);
            return mo_span_head(all, i);
        }
    }
    list->p = NULL;
    list->n = 0;
    return all;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static bool match_braces(struct match *m, struct mo_span p, size_t end,
                         const struct chain *next, struct mo_span text)
{
    struct chain after = {mo_span_skip(p, end + 1), next};
    struct mo_span list = mo_span(p.p + 1, end - 1);

    while (list.p) {
        struct chain one = {next_alternative(&list), &after};

        if (match_bounded(m, &one, text))
            return true;
    }
    return false;
}

/* Length of the class at p[0] == '[', 0 if it is not closed. */
static size_t class_len(struct mo_span p)
{
    for (size_t i = 2; i < p.n; i++) {
        if (p.p[i] == ']' && !(i == 2 && (p.p[1] == '!' || p.p[1] == '^')))
            return i + 1;
    }
    return 0;
}

static bool in_class(struct mo_span cls, char c)
{
    size_t i = 1, end = cls.n - 1;
    bool not = cls.p[1] == '!' || cls.p[1] == '^', hit = false;

    for (i += not ; i < end; i++) {
        unsigned char lo = (unsigned char)cls.p[i], hi = lo;

        if (i + 2 < end && cls.p[i + 1] == '-') {
            hi = (unsigned char)cls.p[i + 2];
            i += 2;
        }
        hit |= (unsigned char)c >= lo && (unsigned char)c <= hi;
    }
    return hit != not &&c != '/';
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static bool match_stars(struct match *m, struct mo_span p,
                        const struct chain *next, struct mo_span text)
{
    bool deep = p.n > 1 && p.p[1] == '*';
    struct chain rest = {mo_span_skip(p, deep ? 2 : 1), next};

    /* "**" and the slash after it also match nothing at all */
    if (deep && rest.s.n && rest.s.p[0] == '/') {
        struct chain bare = {mo_span_skip(rest.s, 1), next};

        if (match_bounded(m, &bare, text))
            return true;
    }
    for (;;) {
        if (match_bounded(m, &rest, text))
            return true;
        if (text.n == 0 || (!deep && text.p[0] == '/'))
            return false;
        text = mo_span_skip(text, 1);
    }
}

/* One ordinary step: pattern bytes consumed, 0 if it does not match. */
static size_t match_plain(struct mo_span p, char c)
{
    size_t n = p.p[0] == '[' ? class_len(p) : 0;

    if (n)
        return in_class(mo_span_head(p, n), c) ? n : 0;
    if (p.p[0] == '?')
        return c != '/';
    if (p.p[0] == '\\' && p.n > 1)
        return p.p[1] == c ? 2 : 0;
    return p.p[0] == c;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static bool match_chain(struct match *m, const struct chain *pat,
                        struct mo_span text)
{
    struct mo_span p = pat->s;
    const struct chain *next = pat->next;

    for (;;) {
        ptrdiff_t end;
        size_t n;

        if (++m->steps > BUDGET)
            return false;
        while (p.n == 0 && next) {
            p = next->s;
            next = next->next;
        }
        if (p.n == 0)
            return text.n == 0;
        if (p.p[0] == '*')
            return match_stars(m, p, next, text);
        end = p.p[0] == '{' ? find_closing(p) : -1;
        if (end > 0)
            return match_braces(m, p, (size_t)end, next, text);
        n = text.n ? match_plain(p, text.p[0]) : 0;
        if (n == 0)
            return false;
        p = mo_span_skip(p, n);
        text = mo_span_skip(text, 1);
    }
}

/* Limits the depth; match_chain() limits the work. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static bool match_bounded(struct match *m, const struct chain *pat,
                          struct mo_span text)
{
    bool hit;

    if (m->depth == DEPTH_MAX)
        return false;
    m->depth++;
    hit = match_chain(m, pat, text);
    m->depth--;
    return hit;
}

static struct mo_span base_name(struct mo_span path)
{
    for (size_t i = path.n; i; i--) {
        if (path.p[i - 1] == '/')
            return mo_span_skip(path, i);
    }
    return path;
}

bool tb_glob(struct mo_span pattern, struct mo_span path)
{
    struct chain all = {pattern, NULL};
    struct match m = {0};
    bool whole = mo_span_find(pattern, '/') >= 0;

    return match_bounded(&m, &all, whole ? path : base_name(path));
}
