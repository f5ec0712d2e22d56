/* match.c - patterns, conditions and paths of rules.
 *
 * The matcher backtracks, so its steps are counted: a pattern of many stars
 * against a long text could otherwise run for ever. A JSON string is read
 * character by character through its escapes; nothing is copied. */
#include "codec/match.h"

#include "codec/json/jvalue.h"
#include "codec/text/utf8.h"

#define PATH_DEPTH_MAX 32

/* --- text as characters -------------------------------------------------- */

struct chars {
    struct mo_jchars json;
    struct mo_span plain;
    bool is_json;
};

static struct chars chars_plain(struct mo_span s)
{
    return (struct chars){.plain = s};
}

/* Reads the characters of a string, or the JSON text of any other value. */
static struct chars chars_of(struct mo_json v)
{
    struct chars c = {.plain = mo_json_text(v)};

    if (!mo_json_is(v, MO_JSON_STRING))
        return c;
    c.is_json = true;
    mo_jchars(&c.json, v);
    return c;
}

/* A byte that is not UTF-8 counts as a character that no pattern can hold. */
static bool next_char(struct chars *c, uint32_t *cp)
{
    int n = 0;

    if (c->is_json)
        return mo_jchars_next(&c->json, cp);
    if (c->plain.n == 0)
        return false;
    n = mo_utf8_get(c->plain, cp);
    if (n <= 0) {
        *cp = UINT32_MAX;
        n = 1;
    }
    c->plain = mo_span_skip(c->plain, (size_t)n);
    return true;
}

/* --- patterns ------------------------------------------------------------ */

static bool glob(unsigned *steps, struct chars pat, struct chars in);

/* Match the rest of the pattern at some place after the star. */
static bool star(unsigned *steps, struct chars rest, struct chars in)
{
    struct chars after = rest;
    uint32_t c = 0;
    bool deep = next_char(&after, &c) && c == '*';

    if (deep)
        rest = after;
    for (;;) {
        if (glob(steps, rest, in))
            return true;
        if (*steps == 0 || !next_char(&in, &c) || (c == '/' && !deep))
            return false;
    }
}

/* Match one alternative against the whole text. */
static bool glob(unsigned *steps, struct chars pat, struct chars in)
{
    uint32_t want = 0, have = 0;

    while (next_char(&pat, &want)) {
        if (*steps == 0)
            return false;
        --*steps;
        if (want == '*')
            return star(steps, pat, in);
        if (!next_char(&in, &have))
            return false;
        if (want == '?' && have != '/')
            continue;
        if (want == '?' || (want == '\\' && !next_char(&pat, &want)))
            return false;
        if (want != have)
            return false;
    }
    return !next_char(&in, &have);
}

/* Cut *s at the next c that no backslash escapes, as mo_span_cut() does. */
static struct mo_span cut_plain(struct mo_span *s, char c)
{
    struct mo_span all = *s;

    for (size_t i = 0; i < all.n; i++) {
        if (all.p[i] == '\\')
            i++;
        else if (all.p[i] == c) {
            *s = mo_span_skip(all, i + 1);
            return mo_span_head(all, i);
        }
    }
    *s = (struct mo_span){NULL, 0};
    return all;
}

static bool fits(unsigned *steps, struct mo_span pat, struct chars in)
{
    do {
        if (glob(steps, chars_plain(cut_plain(&pat, '|')), in))
            return true;
    } while (pat.p != NULL);
    return false;
}

bool mo_match_text(struct mo_span pattern, struct mo_span text,
                   enum mo_match_want want)
{
    unsigned steps = MO_MATCH_STEPS;
    bool ok = fits(&steps, pattern, chars_plain(text));

    return steps == 0 ? want == MO_MATCH_ANY : ok;
}

/* ".." between slashes, or between a slash and an end. */
static bool climbs(struct chars in)
{
    unsigned dots = 0, others = 0;
    uint32_t c = 0;

    while (next_char(&in, &c)) {
        if (c == '/' || c == '\\') {
            if (dots == 2 && others == 0)
                return true;
            dots = others = 0;
        } else if (c == '.')
            dots++;
        else
            others++;
    }
    return dots == 2 && others == 0;
}

/* --- conditions ---------------------------------------------------------- */

enum sign {
    SIGN_PATTERN,
    SIGN_IS,
    SIGN_NOT,
    SIGN_LT,
    SIGN_LE,
    SIGN_GT,
    SIGN_GE
};

static const struct {
    const char *text;
    enum sign sign;
} signs[] = {
    {"<=", SIGN_LE}, {">=", SIGN_GE}, {"<", SIGN_LT},
    {">", SIGN_GT},  {"=", SIGN_IS},  {"!", SIGN_NOT},
};

static enum sign take_sign(struct mo_span *cond)
{
    for (size_t i = 0; i < MO_COUNT(signs); i++) {
        struct mo_span t = mo_span_cstr(signs[i].text);

        if (!mo_span_starts(*cond, t))
            continue;
        *cond = mo_span_trim(mo_span_skip(*cond, t.n));
        return signs[i].sign;
    }
    return SIGN_PATTERN;
}

/* The number of a comparison; none when it is not a number. */
static struct mo_json number(struct mo_span text)
{
    struct mo_json_doc doc;

    if (mo_json_parse(text, 1, &doc, NULL) < 0 ||
        !mo_json_is(doc.root, MO_JSON_NUMBER))
        return (struct mo_json){NULL, 0};
    return doc.root;
}

/* A value of another type than the condition is about cannot be read. */
enum finding { NO, YES, UNREADABLE };

static enum finding finding_of(bool yes)
{
    return yes ? YES : NO;
}

static enum finding compare(enum sign sign, struct mo_json v,
                            struct mo_span with)
{
    int cmp;

    if (!mo_json_is(v, MO_JSON_NUMBER))
        return UNREADABLE;
    cmp = mo_jvalue_cmp(v, number(with));
    if (cmp == 0)
        return finding_of(sign == SIGN_LE || sign == SIGN_GE);
    return finding_of((cmp < 0) == (sign == SIGN_LT || sign == SIGN_LE));
}

static bool is_exactly(struct mo_json v, struct mo_span text)
{
    struct mo_json n = number(text);

    if (mo_json_is(v, MO_JSON_STRING))
        return mo_json_str_eq(v, text);
    if (n.p && mo_json_is(v, MO_JSON_NUMBER))
        return mo_jvalue_cmp(v, n) == 0;
    return mo_span_eq(mo_json_text(v), text);
}

struct test {
    struct mo_span cond;
    enum mo_match_want want;
    unsigned steps;
    bool any, every;
    bool unread; /* a value is missing, null or of another type */
};

/* A number has several spellings: 100, 1e2, 100.0. A pattern reads only the
 * plain one, unless it is a number itself. */
static enum finding match_number(struct test *t, struct mo_json v,
                                 struct mo_span cond)
{
    struct mo_span text = mo_json_text(v);

    if (number(cond).p)
        return finding_of(is_exactly(v, cond));
    if (mo_span_find(text, 'e') >= 0 || mo_span_find(text, 'E') >= 0)
        return UNREADABLE;
    return finding_of(fits(&t->steps, cond, chars_of(v)));
}

static enum finding test_value(struct test *t, struct mo_json v,
                               struct mo_span cond)
{
    enum sign sign = take_sign(&cond);
    enum finding f;

    if (sign == SIGN_NOT) {
        f = test_value(t, v, cond);
        return f == UNREADABLE ? f : finding_of(f == NO);
    }
    if (sign == SIGN_IS)
        f = finding_of(is_exactly(v, cond));
    else if (sign != SIGN_PATTERN)
        f = compare(sign, v, cond);
    else if (mo_json_is(v, MO_JSON_NUMBER))
        f = match_number(t, v, cond);
    else
        f = finding_of(fits(&t->steps, cond, chars_of(v)));
    return f == NO && mo_json_is(v, MO_JSON_NULL) ? UNREADABLE : f;
}

/* Check one string, number, true, false or null. */
static void look_at_plain(struct test *t, struct mo_json v)
{
    enum finding f = test_value(t, v, t->cond);

    if (t->want == MO_MATCH_EVERY && climbs(chars_of(v)) &&
        mo_span_search(t->cond, MO_SPAN("..")) < 0)
        f = NO;
    if (t->steps == 0)
        f = UNREADABLE;
    t->any |= f == YES;
    t->every &= f == YES;
    t->unread |= f == UNREADABLE;
}

/* Check everything in an array or object, the names of members too. The parser
 * limits the depth. */
static void look_inside(struct test *t, struct mo_json v)
{
    bool empty = true;

    mo_json_each (it, v) {
        enum mo_json_type type = mo_json_type(it.val);

        empty = false;
        if (mo_json_is(v, MO_JSON_OBJECT))
            look_at_plain(t, it.key);
        if (type == MO_JSON_ARRAY || type == MO_JSON_OBJECT)
            look_inside(t, it.val);
        else
            look_at_plain(t, it.val);
    }
    t->unread |= empty;
}

/* Check one of the values that the path selects. */
static void look_at(struct test *t, struct mo_json v)
{
    enum mo_json_type type = mo_json_type(v);

    if (type != MO_JSON_ARRAY && type != MO_JSON_OBJECT) {
        look_at_plain(t, v);
    } else {
        t->every = false;
        if (t->want == MO_MATCH_ANY)
            look_inside(t, v);
    }
}

/* --- paths --------------------------------------------------------------- */

/* True if the name in the path, unescaped, equals the member's name. */
static bool same_name(struct mo_span name, struct mo_json key)
{
    struct chars a = chars_plain(name), b = chars_of(key);
    uint32_t x = 0, y = 0;

    while (next_char(&a, &x)) {
        if (x == '\\' && !next_char(&a, &x))
            return false;
        if (!next_char(&b, &y) || x != y)
            return false;
    }
    return !next_char(&b, &y);
}

/* The last of several members with one name counts, as everywhere. */
static struct mo_json member(struct mo_json obj, struct mo_span name)
{
    struct mo_json found = {NULL, 0};

    if (!mo_json_is(obj, MO_JSON_OBJECT))
        return found;
    mo_json_each (it, obj)
        if (same_name(name, it.key))
            found = it.val;
    return found;
}

/* Looks at the values of the path and returns their number. */
static unsigned walk_path(struct test *t, struct mo_json v, struct mo_span path,
                          int depth)
{
    bool object = mo_json_is(v, MO_JSON_OBJECT);
    struct mo_json val;
    struct mo_span name;
    unsigned found = 0;

    if (path.p == NULL) {
        look_at(t, v);
        return 1;
    }
    if (depth == 0 || (!object && !mo_json_is(v, MO_JSON_ARRAY))) {
        t->unread = true;
        return 0;
    }
    name = cut_plain(&path, '.');
    if (!mo_span_is(name, "*")) {
        val = member(v, name);
        t->unread |= !val.p;
        return val.p ? walk_path(t, val, path, depth - 1) : 0;
    }
    mo_json_each (it, v)
        found += walk_path(t, it.val, path, depth - 1);
    return found;
}

bool mo_match_args(struct mo_json args, struct mo_span path,
                   struct mo_span cond, enum mo_match_want want)
{
    struct mo_span rest = cond;
    bool present = take_sign(&rest) == SIGN_NOT && mo_span_is(rest, "absent");
    bool absent = mo_span_is(cond, "absent");
    struct test t = {.cond = absent || present ? MO_SPAN("= null") : cond,
                     .want = want,
                     .steps = MO_MATCH_STEPS,
                     .every = true};
    unsigned found = walk_path(&t, args, path, PATH_DEPTH_MAX);

    if (absent) /* null may mean either */
        return found == 0 || (want == MO_MATCH_ANY && t.any);
    if (present)
        return found > 0 && (want == MO_MATCH_ANY || !t.any);
    return want == MO_MATCH_ANY ? t.any || t.unread : found > 0 && t.every;
}

bool mo_match_has(struct mo_json args, struct mo_span path)
{
    struct mo_span name = cut_plain(&path, '.');

    return mo_span_is(name, "*") || member(args, name).p;
}

/* --- what a person wrote ------------------------------------------------- */

static bool ends_in_escape(struct mo_span s)
{
    bool open = false;

    for (size_t i = 0; i < s.n; i++)
        open = s.p[i] == '\\' && !open;
    return open;
}

static int check_path(struct mo_span path, struct mo_err *e)
{
    int depth = 0;

    if (ends_in_escape(path))
        return mo_fail(e, MO_EINVAL, "a path must not end in a backslash");
    do {
        if (cut_plain(&path, '.').n == 0)
            return mo_fail(e, MO_EINVAL, "a name is missing in the path");
        if (++depth > PATH_DEPTH_MAX)
            return mo_fail(e, MO_EINVAL, "a path has at most %d names",
                           PATH_DEPTH_MAX);
    } while (path.p != NULL);
    return 0;
}

static int check_cond(struct mo_span cond, struct mo_err *e)
{
    enum sign sign = take_sign(&cond);

    while (sign == SIGN_NOT)
        sign = take_sign(&cond);
    if (sign == SIGN_IS)
        return 0;
    if (sign != SIGN_PATTERN && number(cond).p == NULL)
        return mo_fail(e, MO_EINVAL, "a number must follow the comparison");
    if (sign == SIGN_PATTERN && cond.n == 0)
        return mo_fail(e, MO_EINVAL, "the condition is empty");
    if (ends_in_escape(cond))
        return mo_fail(e, MO_EINVAL, "a pattern must not end in a backslash");
    return 0;
}

int mo_match_check(struct mo_span path, struct mo_span cond, struct mo_err *e)
{
    int rc = check_path(path, e);

    return rc < 0 ? rc : check_cond(cond, e);
}

int mo_match_literal(struct mo_buf *b, struct mo_span text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (memchr("*?|\\", text.p[i], 4))
            mo_buf_putc(b, '\\');
        mo_buf_putc(b, text.p[i]);
    }
    return mo_buf_err(b);
}
