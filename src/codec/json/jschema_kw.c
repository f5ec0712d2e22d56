#include <math.h>
#include <stdio.h>

#include "codec/json/jschema_priv.h"

#define FORMAT_MAX 2048 /* longest text whose format is checked */

/* --- helpers ------------------------------------------------------------- */

bool mo_jsv_count(struct mo_jsv *c, struct mo_json limit, uint64_t *out)
{
    double d;

    if (mo_json_u64(limit, out) == 0)
        return true;
    if (mo_json_is(limit, MO_JSON_NUMBER) && mo_json_f64(limit, &d) == 0 &&
        d >= 0 && d < 0x1p53 && floor(d) == d) {
        *out = (uint64_t)d;
        return true;
    }
    mo_jsv_note(c, MO_JSCHEMA_BAD_SCHEMA);
    return false;
}

static bool is_number(struct mo_jsv *c, struct mo_json limit)
{
    if (mo_json_is(limit, MO_JSON_NUMBER))
        return true;
    mo_jsv_note(c, MO_JSCHEMA_BAD_SCHEMA);
    return false;
}

int mo_jsv_matches(struct mo_jsv *c, struct mo_json pattern, struct mo_json v)
{
    struct mo_jregex r; /* big, but this is a leaf */
    int rc;

    if (!mo_jsv_spend(c, 1 + pattern.n))
        return -1;
    if (!mo_json_is(pattern, MO_JSON_STRING) ||
        mo_jregex_compile(&r, pattern) < 0) {
        mo_jsv_note(c, MO_JSCHEMA_PATTERN);
        return -1;
    }
    if (!mo_jsv_spend(c, r.nops / 4))
        return -1;
    rc = mo_jregex_search(&r, v, &c->steps);
    if (rc == MO_ETOOBIG)
        mo_jsv_spend(c, c->steps + 1);
    return rc;
}

/* --- any value ----------------------------------------------------------- */

static const struct {
    const char *name, *article;
    enum mo_json_type type;
} types[] = {
    {"string", "a string", MO_JSON_STRING},
    {"integer", "an integer", MO_JSON_NUMBER},
    {"number", "a number", MO_JSON_NUMBER},
    {"boolean", "true or false", MO_JSON_BOOL},
    {"array", "an array", MO_JSON_ARRAY},
    {"object", "an object", MO_JSON_OBJECT},
    {"null", "null", MO_JSON_NULL},
};

/* Index into types, or -1. */
static int type_of_name(struct mo_json name)
{
    for (size_t i = 0; i < MO_COUNT(types); i++) {
        if (mo_json_str_eq(name, mo_span_cstr(types[i].name)))
            return (int)i;
    }
    return -1;
}

static const char *type_name(struct mo_json v)
{
    for (size_t i = 0; i < MO_COUNT(types); i++) {
        if (i != 1 && types[i].type == mo_json_type(v))
            return i == 3 ? "a boolean" : types[i].article;
    }
    return "nothing";
}

static bool is_type(struct mo_json v, int t)
{
    return types[t].type == mo_json_type(v) && (t != 1 || mo_jvalue_is_int(v));
}

/* "a string", or "a string, an integer or null". */
struct names {
    char text[160];
    size_t len;
    int last;
};

static void add_name(struct names *n, const char *sep, int t)
{
    int k = snprintf(n->text + n->len, sizeof(n->text) - n->len, "%s%s",
                     n->len ? sep : "", types[t].article);

    if (k > 0 && (size_t)k < sizeof(n->text) - n->len)
        n->len += (size_t)k;
}

static bool check_type(ARGS)
{
    struct names names = {.last = -1};
    int t = type_of_name(s->kw[k]);

    if (t >= 0)
        return is_type(v, t) || mo_jsv_say(c, at, "must be %s, not %s",
                                           types[t].article, type_name(v));
    if (!mo_json_is(s->kw[k], MO_JSON_ARRAY))
        return mo_jsv_note(c, MO_JSCHEMA_BAD_SCHEMA);
    mo_json_each (it, s->kw[k]) {
        t = type_of_name(it.val);
        if (t < 0)
            return mo_jsv_note(c, MO_JSCHEMA_BAD_SCHEMA);
        if (is_type(v, t))
            return true;
        if (names.last >= 0)
            add_name(&names, ", ", names.last);
        names.last = t;
    }
    if (names.last < 0)
        return mo_jsv_note(c, MO_JSCHEMA_BAD_SCHEMA);
    add_name(&names, " or ", names.last);
    return mo_jsv_say(c, at, "must be %s, not %s", names.text, type_name(v));
}

bool mo_jsv_equal(struct mo_jsv *c, struct mo_json a, struct mo_json b)
{
    int rc = mo_jvalue_equal(a, b, &c->steps);

    if (rc == MO_ETOOBIG)
        mo_jsv_spend(c, c->steps + 1);
    return rc != 0;
}

static bool check_const(ARGS)
{
    return mo_jsv_equal(c, v, s->kw[k]) ||
           mo_jsv_say(c, at, "must be %.*s", SHOW(s->kw[k]));
}

static bool check_enum(ARGS)
{
    char list[220] = "";
    size_t len = 0;

    if (!mo_json_is(s->kw[k], MO_JSON_ARRAY))
        return mo_jsv_note(c, MO_JSCHEMA_BAD_SCHEMA);
    mo_json_each (it, s->kw[k]) {
        int n;

        if (mo_jsv_equal(c, v, it.val))
            return true;
        if (c->quiet || len + SHOWN_MAX + 8 > sizeof(list))
            continue;
        n = snprintf(list + len, sizeof(list) - len, "%s%.*s", len ? ", " : "",
                     SHOW(it.val));
        len += n > 0 ? (size_t)n : 0;
    }
    return mo_jsv_say(c, at, "must be one of %s", list);
}

/* --- numbers ------------------------------------------------------------- */

/* minimum, maximum and their exclusive forms; those were booleans beside the
 * limit in draft 4. */
static bool check_limit(ARGS)
{
    bool low = k == K_MINIMUM || k == K_EXCL_MINIMUM;
    bool open = k == K_EXCL_MINIMUM || k == K_EXCL_MAXIMUM;
    struct mo_json m = s->kw[k];
    int cmp;

    if ((open && mo_json_is(m, MO_JSON_BOOL)) || !is_number(c, m))
        return true;
    if (!open)
        mo_json_bool(s->kw[low ? K_EXCL_MINIMUM : K_EXCL_MAXIMUM], &open);
    cmp = low ? mo_jvalue_cmp(v, m) : mo_jvalue_cmp(m, v);
    if (open ? cmp > 0 : cmp >= 0)
        return true;
    return mo_jsv_say(c, at, "must be %s %.*s",
                      low ? (open ? "more than" : "at least")
                          : (open ? "less than" : "at most"),
                      SHOW(m));
}

/* The number of characters, items or members. */
static bool check_count(ARGS)
{
    bool least = k == K_MIN_LENGTH || k == K_MIN_ITEMS || k == K_MIN_PROPERTIES;
    bool text = mo_json_is(v, MO_JSON_STRING);
    uint64_t have, n;

    if (text && !mo_jsv_spend(c, v.n / 64))
        return true;
    have = text ? mo_jvalue_chars(v) : mo_json_len(v);
    if (!mo_jsv_count(c, s->kw[k], &n) || (least ? have >= n : have <= n))
        return true;
    return mo_jsv_say(c, at, "must have at %s %llu %s%s, has %llu",
                      least ? "least" : "most", (unsigned long long)n,
                      text                           ? "character"
                      : mo_json_is(v, MO_JSON_ARRAY) ? "item"
                                                     : "member",
                      mo_jsv_plural(n), (unsigned long long)have);
}

static bool check_multiple_of(ARGS)
{
    struct mo_json m = s->kw[k];
    int rc;

    if (!is_number(c, m))
        return true;
    rc = mo_jvalue_multiple(v, m);
    if (rc < 0)
        return mo_jsv_note(c, MO_JSCHEMA_DIVISOR);
    return rc || mo_jsv_say(c, at, "must be a multiple of %.*s", SHOW(m));
}

/* --- strings ------------------------------------------------------------- */

static bool check_pattern(ARGS)
{
    return mo_jsv_matches(c, s->kw[k], v) != 0 ||
           mo_jsv_say(c, at, "must match the pattern %.*s", SHOW(s->kw[k]));
}

static bool check_format(ARGS)
{
    char name[64], text[FORMAT_MAX];
    struct mo_json f = s->kw[k];

    if (!c->o->formats || !mo_json_is(f, MO_JSON_STRING))
        return true;
    if (!mo_jsv_text(f, name, sizeof(name)))
        return true;
    if (!mo_jsv_text(v, text, sizeof(text)))
        return mo_jsv_note(c, MO_JSCHEMA_FORMAT);
    if (mo_jformat(mo_span_cstr(name), mo_span_cstr(text)) != 0)
        return true;
    return mo_jsv_say(c, at, "must be written as %s", name);
}

/* --- combinations -------------------------------------------------------- */

static bool check_ref(ARGS)
{
    struct mo_json target = mo_jsv_resolve(c, s->kw[k]);

    return !target.p || mo_jsv_walk(c, target, v, at);
}

static bool check_all_of(ARGS)
{
    bool ok = true;

    mo_json_each (it, s->kw[k]) {
        if (!mo_jsv_walk(c, it.val, v, at))
            ok = false;
    }
    return ok;
}

/* Like mo_jsv_holds(). *unsure: a keyword inside is not supported, so true may
 * be wrong; the caller reports no error that rests on it. */
static bool holds(struct mo_jsv *c, struct mo_json sub, struct mo_json v,
                  const struct mo_jsv_path *at, bool *unsure)
{
    unsigned before = c->out->notes;
    bool ok;

    c->out->notes = 0;
    ok = mo_jsv_holds(c, sub, v, at);
    *unsure = c->out->notes || c->rc;
    c->out->notes |= before;
    return ok;
}

/* Count the schemas that hold; stops after `enough`. */
static size_t count_holding(struct mo_jsv *c, struct mo_json list,
                            struct mo_json v, const struct mo_jsv_path *at,
                            size_t enough, bool *unsure)
{
    bool maybe;
    size_t n = 0;

    *unsure = false;
    mo_json_each (it, list) {
        if (!holds(c, it.val, v, at, &maybe))
            continue;
        *unsure = *unsure || maybe;
        if (++n == enough)
            break;
    }
    return n;
}

/* No alternative holds. If only one of them is for values of this type, report
 * its errors; if all are plain types, name them. */
static bool report_none(struct mo_jsv *c, struct mo_json list, struct mo_json v,
                        const struct mo_jsv_path *at)
{
    struct mo_json likely = {NULL, 0};
    struct names names = {.last = -1};
    size_t fit = 0, untyped = 0;

    if (c->quiet)
        return false;
    mo_json_each (it, list) {
        int t = type_of_name(mo_json_get(it.val, "type"));

        if (t < 0) {
            untyped++;
            continue;
        }
        if (is_type(v, t)) {
            fit++;
            likely = it.val;
        }
        if (names.last >= 0)
            add_name(&names, ", ", names.last);
        names.last = t;
    }
    if (fit == 1 && untyped == 0)
        return mo_jsv_walk(c, likely, v, at);
    if (fit > 0 || untyped > 0)
        return mo_jsv_say(c, at, "fits none of the allowed forms");
    add_name(&names, " or ", names.last);
    return mo_jsv_say(c, at, "must be %s, not %s", names.text, type_name(v));
}

/* anyOf stops at the first that holds, so it never finds two. */
static bool check_any_of(ARGS)
{
    struct mo_json list = s->kw[k];
    bool unsure;
    size_t n;

    if (mo_json_len(list) == 0)
        return mo_jsv_note(c, MO_JSCHEMA_BAD_SCHEMA);
    n = count_holding(c, list, v, at, k == K_ONE_OF ? 2 : 1, &unsure);
    if (n == 1 || (n > 1 && unsure))
        return true;
    if (n == 0)
        return report_none(c, list, v, at);
    return mo_jsv_say(c, at, "fits several forms, must fit exactly one");
}

static bool check_not(ARGS)
{
    bool unsure, ok = holds(c, s->kw[k], v, at, &unsure);

    return !ok || unsure ||
           mo_jsv_say(c, at, "has a form that is forbidden here");
}

static bool check_if(ARGS)
{
    bool unsure, ok = holds(c, s->kw[k], v, at, &unsure);
    struct mo_json then = s->kw[ok ? K_THEN : K_ELSE];

    if (!then.p || (ok && unsure))
        return true;
    return mo_jsv_walk(c, then, v, at);
}

static bool note_unsupported(ARGS)
{
    (void)s;
    (void)k;
    (void)v;
    (void)at;
    return mo_jsv_note(c, MO_JSCHEMA_KEYWORD);
}

#define STR (1u << MO_JSON_STRING)
#define NUM (1u << MO_JSON_NUMBER)
#define ARR (1u << MO_JSON_ARRAY)
#define OBJ (1u << MO_JSON_OBJECT)
#define ANY 0xffu

const struct mo_jsv_keyword mo_jsv_keywords[K_COUNT] = {
#define ROW(id, name, types, check) [K_##id] = {name, types, check},
    MO_JSV_KEYWORDS(ROW)
#undef ROW
};
