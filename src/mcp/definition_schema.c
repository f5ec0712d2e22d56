/* definition_schema.c - does a validator compile this JSON Schema?
 *
 * The SDKs compile every outputSchema with Ajv, which throws on an unknown
 * type, on a $ref without a target, on a keyword whose value has a wrong type
 * and on a regular expression that JavaScript does not know. Syntax of regular
 * expressions is checked for balance and for constructs of other languages
 * only. Limits: SCHEMA_DEPTH schemas inside each other, then false. */
#include "mcp/definition.h"

#define SCHEMA_DEPTH 64

#define IS(t)          (1u << (t))
#define SCHEMA_OR_BOOL (IS(MO_JSON_OBJECT) | IS(MO_JSON_BOOL))

enum inside { /* schemas in the value of a keyword */
              IN_NOTHING,
              IN_VALUE,   /* the value itself, or its elements */
              IN_MEMBERS, /* the values of its members */
};

struct keyword {
    const char *name;
    unsigned types; /* of its value */
    enum inside inside;
};

static const struct keyword keywords[] = {
    {"properties", IS(MO_JSON_OBJECT), IN_MEMBERS},
    {"patternProperties", IS(MO_JSON_OBJECT), IN_MEMBERS},
    {"$defs", IS(MO_JSON_OBJECT), IN_MEMBERS},
    {"definitions", IS(MO_JSON_OBJECT), IN_MEMBERS},
    {"dependentSchemas", IS(MO_JSON_OBJECT), IN_MEMBERS},
    {"items", SCHEMA_OR_BOOL | IS(MO_JSON_ARRAY), IN_VALUE},
    {"prefixItems", IS(MO_JSON_ARRAY), IN_VALUE},
    {"additionalItems", SCHEMA_OR_BOOL, IN_VALUE},
    {"additionalProperties", SCHEMA_OR_BOOL, IN_VALUE},
    {"propertyNames", SCHEMA_OR_BOOL, IN_VALUE},
    {"contains", SCHEMA_OR_BOOL, IN_VALUE},
    {"not", SCHEMA_OR_BOOL, IN_VALUE},
    {"if", SCHEMA_OR_BOOL, IN_VALUE},
    {"then", SCHEMA_OR_BOOL, IN_VALUE},
    {"else", SCHEMA_OR_BOOL, IN_VALUE},
    {"allOf", IS(MO_JSON_ARRAY), IN_VALUE},
    {"anyOf", IS(MO_JSON_ARRAY), IN_VALUE},
    {"oneOf", IS(MO_JSON_ARRAY), IN_VALUE},
    {"enum", IS(MO_JSON_ARRAY), IN_NOTHING},
    {"required", IS(MO_JSON_ARRAY), IN_NOTHING},
    {"dependencies", IS(MO_JSON_OBJECT), IN_NOTHING},
    {"uniqueItems", IS(MO_JSON_BOOL), IN_NOTHING},
    {"pattern", IS(MO_JSON_STRING), IN_NOTHING},
    {"format", IS(MO_JSON_STRING), IN_NOTHING},
    {"$id", IS(MO_JSON_STRING), IN_NOTHING},
    {"$schema", IS(MO_JSON_STRING), IN_NOTHING},
    {"minimum", IS(MO_JSON_NUMBER), IN_NOTHING},
    {"maximum", IS(MO_JSON_NUMBER), IN_NOTHING},
    {"exclusiveMinimum", IS(MO_JSON_NUMBER), IN_NOTHING},
    {"exclusiveMaximum", IS(MO_JSON_NUMBER), IN_NOTHING},
    {"multipleOf", IS(MO_JSON_NUMBER), IN_NOTHING},
    {"minLength", IS(MO_JSON_NUMBER), IN_NOTHING},
    {"maxLength", IS(MO_JSON_NUMBER), IN_NOTHING},
    {"minItems", IS(MO_JSON_NUMBER), IN_NOTHING},
    {"maxItems", IS(MO_JSON_NUMBER), IN_NOTHING},
    {"minProperties", IS(MO_JSON_NUMBER), IN_NOTHING},
    {"maxProperties", IS(MO_JSON_NUMBER), IN_NOTHING},
};

/* --- keywords with rules of their own ------------------------------------ */

static bool is_type_name(struct mo_json v)
{
    static const char *const names[] = {"object", "array",   "string",
                                        "number", "integer", "boolean",
                                        "null",   NULL};

    return mo_json_str_in(v, names);
}

static bool is_type(struct mo_json v)
{
    if (!mo_json_is(v, MO_JSON_ARRAY))
        return is_type_name(v);
    mo_json_each (m, v) {
        if (!is_type_name(m.val))
            return false;
    }
    return true;
}

/* The next step of a JSON pointer; none: there is no such place. */
static struct mo_json step_into(struct mo_json at, struct mo_span token)
{
    uint64_t i = 0;

    if (mo_json_is(at, MO_JSON_OBJECT))
        return mo_json_find(at, token);
    if (mo_json_is(at, MO_JSON_ARRAY) && mo_span_u64(token, &i) == 0)
        return mo_json_at(at, (size_t)i);
    return (struct mo_json){NULL, 0};
}

/* Escaped tokens (~0, %20) and anchors are rare and believed. */
static bool has_target(struct mo_json root, struct mo_json ref)
{
    struct mo_span rest = mo_span(ref.p + 1, ref.n - 2);

    if (!mo_json_is(ref, MO_JSON_STRING) || !mo_span_strip(&rest, MO_SPAN("#")))
        return false;
    if (!mo_span_strip(&rest, MO_SPAN("/")) || mo_span_find(rest, '~') >= 0 ||
        mo_span_find(rest, '%') >= 0 || mo_span_find(rest, '\\') >= 0)
        return true;
    while (root.p && rest.p)
        root = step_into(root, mo_span_cut(&rest, '/'));
    return root.p != NULL;
}

/* Skips a character class; false: it does not end. */
static bool skip_class(struct mo_span *s)
{
    for (size_t i = 1; i < s->n; i++) {
        if (s->p[i] == '\\')
            i++;
        else if (s->p[i] == '[' && i + 1 < s->n && s->p[i + 1] == ':')
            return false;
        else if (s->p[i] == ']') {
            *s = mo_span_skip(*s, i + 1);
            return true;
        }
    }
    return false;
}

static bool is_foreign_group(struct mo_span s)
{
    return mo_span_starts(s, MO_SPAN("(?")) && s.n > 2 &&
           !memchr(":=!<", s.p[2], 4);
}

static bool is_pattern_text(struct mo_span s)
{
    size_t open = 0;

    while (s.n) {
        char ch = s.p[0];

        if (ch == '[') {
            if (!skip_class(&s))
                return false;
            continue;
        }
        if (ch == '\\' && (s.n < 2 || memchr("AZzQEGCX", s.p[1], 8)))
            return false;
        if (is_foreign_group(s) || (ch == ')' && open == 0))
            return false;
        open += ch == '(';
        open -= ch == ')';
        s = mo_span_skip(s, ch == '\\' ? 2 : 1);
    }
    return open == 0;
}

static bool is_pattern(struct mo_json v)
{
    mo_autobuf struct mo_buf b = {.max = v.n};

    return mo_json_str_buf(v, &b) == 0 && is_pattern_text(mo_buf_view(&b));
}

/* --- a schema ------------------------------------------------------------ */

static bool compiles(struct mo_json root, struct mo_json s, unsigned depth);

static bool all_compile(struct mo_json root, struct mo_json v, unsigned depth)
{
    mo_json_each (m, v) {
        if (!compiles(root, m.val, depth))
            return false;
    }
    return true;
}

static bool is_keyword_good(struct mo_json root, const struct keyword *k,
                            struct mo_json v, unsigned depth)
{
    if (!(IS(mo_json_type(v)) & k->types))
        return false;
    if (k->inside == IN_MEMBERS || mo_json_is(v, MO_JSON_ARRAY))
        return k->inside == IN_NOTHING || all_compile(root, v, depth);
    return k->inside == IN_NOTHING || compiles(root, v, depth);
}

static bool is_member_good(struct mo_json root, struct mo_json key,
                           struct mo_json v, unsigned depth)
{
    if (mo_json_str_eq(key, MO_SPAN("type")))
        return is_type(v);
    if (mo_json_str_eq(key, MO_SPAN("$ref")))
        return has_target(root, v);
    if (mo_json_str_eq(key, MO_SPAN("enum")) && mo_json_len(v) == 0)
        return false;
    if (mo_json_str_eq(key, MO_SPAN("pattern")) && !is_pattern(v))
        return false;
    for (size_t i = 0; i < MO_COUNT(keywords); i++) {
        if (mo_json_str_eq(key, mo_span_cstr(keywords[i].name)))
            return is_keyword_good(root, &keywords[i], v, depth);
    }
    return true;
}

static bool compiles(struct mo_json root, struct mo_json s, unsigned depth)
{
    if (mo_json_is(s, MO_JSON_BOOL))
        return true;
    if (!mo_json_is(s, MO_JSON_OBJECT) || depth == SCHEMA_DEPTH)
        return false;
    mo_json_each (m, s) {
        if (!is_member_good(root, m.key, m.val, depth + 1))
            return false;
    }
    return true;
}

bool mo_definition_schema_compiles(struct mo_json schema)
{
    return mo_json_is(schema, MO_JSON_OBJECT) && compiles(schema, schema, 0);
}
