#include <math.h>
#include <stdio.h>

#include "codec/json/jformat.h"
#include "codec/json/jschema_priv.h"

#define FORMAT_MAX 2048 /* longest text whose format is checked */

/* --- helpers ------------------------------------------------------------- */

/* Read an integer limit: 3, or 3.0. */
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

/* Returns 1, 0, or -1 when the pattern is not supported (noted). */
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
    struct mo_json want = s->kw[K_TYPE], k, one;
    struct names names = {.last = -1};
    struct mo_json_iter it;
    int t = type_of_name(want);

    if (t >= 0)
        return is_type(v, t) || mo_jsv_say(c, at, "must be %s, not %s",
                                           types[t].article, type_name(v));
    mo_json_iter(&it, want);
    while (mo_json_is(want, MO_JSON_ARRAY) && mo_json_next(&it, &k, &one)) {
        t = type_of_name(one);
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

/* Returns 1 or 0; a limit reached counts as equal, rc tells. */
bool mo_jsv_equal(struct mo_jsv *c, struct mo_json a, struct mo_json b)
{
    int rc = mo_jvalue_equal(a, b, &c->steps);

    if (rc == MO_ETOOBIG)
        mo_jsv_spend(c, c->steps + 1);
    return rc != 0;
}

static bool check_const(ARGS)
{
    struct mo_json want = s->kw[K_CONST];

    return mo_jsv_equal(c, v, want) ||
           mo_jsv_say(c, at, "must be %.*s", SHOW(want));
}

static bool check_enum(ARGS)
{
    struct mo_json want = s->kw[K_ENUM], k, one;
    struct mo_json_iter it;
    char list[220] = "";
    size_t len = 0;

    if (!mo_json_is(want, MO_JSON_ARRAY))
        return mo_jsv_note(c, MO_JSCHEMA_BAD_SCHEMA);
    mo_json_iter(&it, want);
    while (mo_json_next(&it, &k, &one)) {
        int n;

        if (mo_jsv_equal(c, v, one))
            return true;
        if (c->quiet || len + SHOWN_MAX + 8 > sizeof(list))
            continue;
        n = snprintf(list + len, sizeof(list) - len, "%s%.*s", len ? ", " : "",
                     SHOW(one));
        len += n > 0 ? (size_t)n : 0;
    }
    return mo_jsv_say(c, at, "must be one of %s", list);
}

/* --- numbers ------------------------------------------------------------- */

static bool check_minimum(ARGS)
{
    struct mo_json m = s->kw[K_MINIMUM];
    bool open = false;
    int cmp;

    if (!is_number(c, m))
        return true;
    mo_json_bool(s->kw[K_EXCL_MINIMUM], &open); /* the form of draft 4 */
    cmp = mo_jvalue_cmp(v, m);
    if (open ? cmp > 0 : cmp >= 0)
        return true;
    return mo_jsv_say(c, at, "must be %s %.*s", open ? "more than" : "at least",
                      SHOW(m));
}

static bool check_maximum(ARGS)
{
    struct mo_json m = s->kw[K_MAXIMUM];
    bool open = false;
    int cmp;

    if (!is_number(c, m))
        return true;
    mo_json_bool(s->kw[K_EXCL_MAXIMUM], &open);
    cmp = mo_jvalue_cmp(v, m);
    if (open ? cmp < 0 : cmp <= 0)
        return true;
    return mo_jsv_say(c, at, "must be %s %.*s", open ? "less than" : "at most",
                      SHOW(m));
}

static bool check_excl_minimum(ARGS)
{
    struct mo_json m = s->kw[K_EXCL_MINIMUM];

    if (mo_json_is(m, MO_JSON_BOOL) || !is_number(c, m))
        return true;
    return mo_jvalue_cmp(v, m) > 0 ||
           mo_jsv_say(c, at, "must be more than %.*s", SHOW(m));
}

static bool check_excl_maximum(ARGS)
{
    struct mo_json m = s->kw[K_EXCL_MAXIMUM];

    if (mo_json_is(m, MO_JSON_BOOL) || !is_number(c, m))
        return true;
    return mo_jvalue_cmp(v, m) < 0 ||
           mo_jsv_say(c, at, "must be less than %.*s", SHOW(m));
}

static bool check_multiple_of(ARGS)
{
    struct mo_json m = s->kw[K_MULTIPLE_OF];
    int rc;

    if (!is_number(c, m))
        return true;
    rc = mo_jvalue_multiple(v, m);
    if (rc < 0)
        return mo_jsv_note(c, MO_JSCHEMA_DIVISOR);
    return rc || mo_jsv_say(c, at, "must be a multiple of %.*s", SHOW(m));
}

/* --- strings ------------------------------------------------------------- */

/* The four pairs of min and max differ in the count they check. */
bool mo_jsv_at_least(struct mo_jsv *c, const struct mo_jsv_path *at,
                     struct mo_json limit, uint64_t have, const char *what)
{
    uint64_t n;

    if (!mo_jsv_count(c, limit, &n) || have >= n)
        return true;
    return mo_jsv_say(c, at, "must have at least %llu %s%s, has %llu",
                      (unsigned long long)n, what, mo_jsv_plural(n),
                      (unsigned long long)have);
}

bool mo_jsv_at_most(struct mo_jsv *c, const struct mo_jsv_path *at,
                    struct mo_json limit, uint64_t have, const char *what)
{
    uint64_t n;

    if (!mo_jsv_count(c, limit, &n) || have <= n)
        return true;
    return mo_jsv_say(c, at, "must have at most %llu %s%s, has %llu",
                      (unsigned long long)n, what, mo_jsv_plural(n),
                      (unsigned long long)have);
}

static bool check_min_length(ARGS)
{
    return !mo_jsv_spend(c, v.n / 64) ||
           mo_jsv_at_least(c, at, s->kw[K_MIN_LENGTH], mo_jvalue_chars(v),
                           "character");
}

static bool check_max_length(ARGS)
{
    return !mo_jsv_spend(c, v.n / 64) ||
           mo_jsv_at_most(c, at, s->kw[K_MAX_LENGTH], mo_jvalue_chars(v),
                          "character");
}

static bool check_pattern(ARGS)
{
    struct mo_json p = s->kw[K_PATTERN];

    return mo_jsv_matches(c, p, v) != 0 ||
           mo_jsv_say(c, at, "must match the pattern %.*s", SHOW(p));
}

static bool check_format(ARGS)
{
    char name[64], text[FORMAT_MAX];
    struct mo_json f = s->kw[K_FORMAT];

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
    struct mo_json target = mo_jsv_resolve(c, s->kw[K_REF]);

    return !target.p || mo_jsv_walk(c, target, v, at);
}

static bool check_all_of(ARGS)
{
    struct mo_json_iter it;
    struct mo_json k, sub;
    bool ok = true;

    mo_json_iter(&it, s->kw[K_ALL_OF]);
    while (mo_json_next(&it, &k, &sub)) {
        if (!mo_jsv_walk(c, sub, v, at))
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
    struct mo_json_iter it;
    struct mo_json k, sub;
    bool maybe;
    size_t n = 0;

    *unsure = false;
    mo_json_iter(&it, list);
    while (n < enough && mo_json_next(&it, &k, &sub)) {
        if (!holds(c, sub, v, at, &maybe))
            continue;
        *unsure = *unsure || maybe;
        n++;
    }
    return n;
}

/* No alternative holds. If only one of them is for values of this type, report
 * its errors; if all are plain types, name them. */
static bool report_none(struct mo_jsv *c, struct mo_json list, struct mo_json v,
                        const struct mo_jsv_path *at)
{
    struct mo_json k, sub, likely = {NULL, 0};
    struct names names = {.last = -1};
    size_t fit = 0, untyped = 0;
    struct mo_json_iter it;

    if (c->quiet)
        return false;
    mo_json_iter(&it, list);
    while (mo_json_next(&it, &k, &sub)) {
        int t = type_of_name(mo_json_get(sub, "type"));

        if (t < 0) {
            untyped++;
            continue;
        }
        if (is_type(v, t)) {
            fit++;
            likely = sub;
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

static bool check_any_of(ARGS)
{
    struct mo_json list = s->kw[K_ANY_OF];
    bool unsure;

    if (mo_json_len(list) == 0)
        return mo_jsv_note(c, MO_JSCHEMA_BAD_SCHEMA);
    return count_holding(c, list, v, at, 1, &unsure) == 1 ||
           report_none(c, list, v, at);
}

static bool check_one_of(ARGS)
{
    struct mo_json list = s->kw[K_ONE_OF];
    bool unsure;
    size_t n;

    if (mo_json_len(list) == 0)
        return mo_jsv_note(c, MO_JSCHEMA_BAD_SCHEMA);
    n = count_holding(c, list, v, at, 2, &unsure);
    if (n == 1 || (n > 1 && unsure))
        return true;
    if (n == 0)
        return report_none(c, list, v, at);
    return mo_jsv_say(c, at, "fits several forms, must fit exactly one");
}

static bool check_not(ARGS)
{
    bool unsure, ok = holds(c, s->kw[K_NOT], v, at, &unsure);

    return !ok || unsure ||
           mo_jsv_say(c, at, "has a form that is forbidden here");
}

static bool check_if(ARGS)
{
    bool unsure, ok = holds(c, s->kw[K_IF], v, at, &unsure);
    struct mo_json then = s->kw[ok ? K_THEN : K_ELSE];

    if (!then.p || (ok && unsure))
        return true;
    return mo_jsv_walk(c, then, v, at);
}

static bool note_unsupported(ARGS)
{
    (void)s;
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
    [K_TYPE] = {"type", ANY, check_type},
    [K_ENUM] = {"enum", ANY, check_enum},
    [K_CONST] = {"const", ANY, check_const},
    [K_MINIMUM] = {"minimum", NUM, check_minimum},
    [K_MAXIMUM] = {"maximum", NUM, check_maximum},
    [K_EXCL_MINIMUM] = {"exclusiveMinimum", NUM, check_excl_minimum},
    [K_EXCL_MAXIMUM] = {"exclusiveMaximum", NUM, check_excl_maximum},
    [K_MULTIPLE_OF] = {"multipleOf", NUM, check_multiple_of},
    [K_MIN_LENGTH] = {"minLength", STR, check_min_length},
    [K_MAX_LENGTH] = {"maxLength", STR, check_max_length},
    [K_PATTERN] = {"pattern", STR, check_pattern},
    [K_FORMAT] = {"format", STR, check_format},
    [K_REQUIRED] = {"required", OBJ, mo_jsv_required},
    [K_MIN_PROPERTIES] = {"minProperties", OBJ, mo_jsv_min_properties},
    [K_MAX_PROPERTIES] = {"maxProperties", OBJ, mo_jsv_max_properties},
    [K_PROPERTIES] = {"properties", OBJ, mo_jsv_properties},
    [K_PATTERN_PROPERTIES] = {"patternProperties", OBJ,
                              mo_jsv_pattern_properties},
    [K_ADDITIONAL_PROPERTIES] = {"additionalProperties", OBJ,
                                 mo_jsv_additional_properties},
    [K_PROPERTY_NAMES] = {"propertyNames", OBJ, mo_jsv_property_names},
    [K_DEPENDENT_REQUIRED] = {"dependentRequired", OBJ,
                              mo_jsv_dependent_required},
    [K_DEPENDENT_SCHEMAS] = {"dependentSchemas", OBJ, mo_jsv_dependent_schemas},
    [K_DEPENDENCIES] = {"dependencies", OBJ, mo_jsv_dependencies},
    [K_MIN_ITEMS] = {"minItems", ARR, mo_jsv_min_items},
    [K_MAX_ITEMS] = {"maxItems", ARR, mo_jsv_max_items},
    [K_PREFIX_ITEMS] = {"prefixItems", ARR, mo_jsv_prefix_items},
    [K_ITEMS] = {"items", ARR, mo_jsv_items},
    [K_ADDITIONAL_ITEMS] = {"additionalItems", ARR, mo_jsv_additional_items},
    [K_CONTAINS] = {"contains", ARR, mo_jsv_contains},
    [K_MIN_CONTAINS] = {"minContains", ARR, NULL},
    [K_MAX_CONTAINS] = {"maxContains", ARR, NULL},
    [K_UNIQUE_ITEMS] = {"uniqueItems", ARR, mo_jsv_unique_items},
    [K_REF] = {"$ref", ANY, check_ref},
    [K_ALL_OF] = {"allOf", ANY, check_all_of},
    [K_ANY_OF] = {"anyOf", ANY, check_any_of},
    [K_ONE_OF] = {"oneOf", ANY, check_one_of},
    [K_NOT] = {"not", ANY, check_not},
    [K_IF] = {"if", ANY, check_if},
    [K_THEN] = {"then", ANY, NULL},
    [K_ELSE] = {"else", ANY, NULL},
    [K_UNEVALUATED_PROPERTIES] = {"unevaluatedProperties", OBJ,
                                  note_unsupported},
    [K_UNEVALUATED_ITEMS] = {"unevaluatedItems", ARR, note_unsupported},
    [K_DYNAMIC_REF] = {"$dynamicRef", ANY, note_unsupported},
    [K_RECURSIVE_REF] = {"$recursiveRef", ANY, note_unsupported},
};
