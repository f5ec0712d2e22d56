/* jschema_priv.h - between the files of the schema room: jschema.c
 * walks, resolves references and reports, jschema_kw.c knows the keywords, and
 * jschema_in.c those about what stands inside objects and arrays. */
#ifndef MO_CODEC_JSON_JSCHEMA_PRIV_H
#define MO_CODEC_JSON_JSCHEMA_PRIV_H

#include "codec/json/jregex.h"
#include "codec/json/jschema.h"
#include "codec/text/utf8.h"

/* Every keyword: name, values it has a say about, check (NULL: read by its
 * neighbours). Errors are reported in this order. */
/* clang-format off */
#define MO_JSV_KEYWORDS(X)                                                     \
    X(TYPE, "type", ANY, check_type)                                           \
    X(ENUM, "enum", ANY, check_enum)                                           \
    X(CONST, "const", ANY, check_const)                                        \
    X(MINIMUM, "minimum", NUM, check_limit)                                    \
    X(MAXIMUM, "maximum", NUM, check_limit)                                    \
    X(EXCL_MINIMUM, "exclusiveMinimum", NUM, check_limit)                      \
    X(EXCL_MAXIMUM, "exclusiveMaximum", NUM, check_limit)                      \
    X(MULTIPLE_OF, "multipleOf", NUM, check_multiple_of)                       \
    X(MIN_LENGTH, "minLength", STR, check_count)                               \
    X(MAX_LENGTH, "maxLength", STR, check_count)                               \
    X(PATTERN, "pattern", STR, check_pattern)                                  \
    X(FORMAT, "format", STR, check_format)                                     \
    X(REQUIRED, "required", OBJ, mo_jsv_required)                              \
    X(MIN_PROPERTIES, "minProperties", OBJ, check_count)                       \
    X(MAX_PROPERTIES, "maxProperties", OBJ, check_count)                       \
    X(PROPERTIES, "properties", OBJ, mo_jsv_properties)                        \
    X(PATTERN_PROPERTIES, "patternProperties", OBJ,                            \
      mo_jsv_pattern_properties)                                               \
    X(ADDITIONAL_PROPERTIES, "additionalProperties", OBJ,                      \
      mo_jsv_additional_properties)                                            \
    X(PROPERTY_NAMES, "propertyNames", OBJ, mo_jsv_property_names)             \
    X(DEPENDENT_REQUIRED, "dependentRequired", OBJ, mo_jsv_dependencies)       \
    X(DEPENDENT_SCHEMAS, "dependentSchemas", OBJ, mo_jsv_dependencies)         \
    X(DEPENDENCIES, "dependencies", OBJ, mo_jsv_dependencies)                  \
    X(MIN_ITEMS, "minItems", ARR, check_count)                                 \
    X(MAX_ITEMS, "maxItems", ARR, check_count)                                 \
    X(PREFIX_ITEMS, "prefixItems", ARR, mo_jsv_prefix_items)                   \
    X(ITEMS, "items", ARR, mo_jsv_items)                                       \
    X(ADDITIONAL_ITEMS, "additionalItems", ARR, mo_jsv_additional_items)       \
    X(CONTAINS, "contains", ARR, mo_jsv_contains)                              \
    X(MIN_CONTAINS, "minContains", ARR, NULL)                                  \
    X(MAX_CONTAINS, "maxContains", ARR, NULL)                                  \
    X(UNIQUE_ITEMS, "uniqueItems", ARR, mo_jsv_unique_items)                   \
    X(REF, "$ref", ANY, check_ref)                                             \
    X(ALL_OF, "allOf", ANY, check_all_of)                                      \
    X(ANY_OF, "anyOf", ANY, check_any_of)                                      \
    X(ONE_OF, "oneOf", ANY, check_any_of)                                      \
    X(NOT, "not", ANY, check_not)                                              \
    X(IF, "if", ANY, check_if)                                                 \
    X(THEN, "then", ANY, NULL)                                                 \
    X(ELSE, "else", ANY, NULL)                                                 \
    X(UNEVALUATED_PROPERTIES, "unevaluatedProperties", OBJ, note_unsupported)  \
    X(UNEVALUATED_ITEMS, "unevaluatedItems", ARR, note_unsupported)            \
    X(DYNAMIC_REF, "$dynamicRef", ANY, note_unsupported)                       \
    X(RECURSIVE_REF, "$recursiveRef", ANY, note_unsupported)
/* clang-format on */

enum mo_jsk {
#define MO_JSV_ID(id, name, types, check) K_##id,
    MO_JSV_KEYWORDS(MO_JSV_ID)
#undef MO_JSV_ID
        K_COUNT
};

/* Where in the value we are: a chain on the stack, newest first. */
struct mo_jsv_path {
    const struct mo_jsv_path *up;
    struct mo_json key; /* none: an index */
    size_t index;
};

struct mo_jsv {
    struct mo_json root; /* of the schema */
    const struct mo_jschema_opts *o;
    struct mo_jschema_result *out;
    int rc; /* MO_ETOOBIG once a limit is reached: unwind */
    const char *why;
    bool ref_alone; /* up to draft 7 a $ref hides what stands beside it */
    unsigned depth;
    unsigned quiet; /* > 0: only the verdict counts, nothing is reported */
    uint64_t steps; /* left */
};

struct mo_jsv_schema {
    struct mo_json kw[K_COUNT];
};

/* k: the keyword that the check was called for. */
typedef bool mo_jsv_check(struct mo_jsv *c, const struct mo_jsv_schema *s,
                          enum mo_jsk k, struct mo_json v,
                          const struct mo_jsv_path *at);

struct mo_jsv_keyword {
    const char *name;
    unsigned types;      /* bits 1 << MO_JSON_*: values it has a say about */
    mo_jsv_check *check; /* NULL: read by its neighbours */
};

extern const struct mo_jsv_keyword mo_jsv_keywords[K_COUNT];

/* true: it fits, or we could not tell (then rc or a note says so). */
bool mo_jsv_walk(struct mo_jsv *c, struct mo_json schema, struct mo_json v,
                 const struct mo_jsv_path *at);
/* The same, reporting nothing. */
bool mo_jsv_holds(struct mo_jsv *c, struct mo_json schema, struct mo_json v,
                  const struct mo_jsv_path *at);
/* The target of a $ref, or none with a note. */
struct mo_json mo_jsv_resolve(struct mo_jsv *c, struct mo_json ref);

/* Report; always false, so that a check can end with it. */
bool mo_jsv_say(struct mo_jsv *c, const struct mo_jsv_path *at, const char *fmt,
                ...) __attribute__((format(printf, 3, 4)));
/* false and rc set when fewer steps are left. */
bool mo_jsv_spend(struct mo_jsv *c, size_t steps);
/* Always true: an unsupported keyword counts as fulfilled. */
bool mo_jsv_note(struct mo_jsv *c, unsigned note);
/* Characters of a string as NUL-terminated UTF-8; false when it does not fit
 * or holds NUL. */
bool mo_jsv_text(struct mo_json v, char *out, size_t room);

/* --- shared by the keywords ---------------------------------------------- */

#define ARGS                                                                   \
    struct mo_jsv *c, const struct mo_jsv_schema *s, enum mo_jsk k,            \
        struct mo_json v, const struct mo_jsv_path *at

#define SHOWN_MAX 40 /* bytes of a value quoted in a message */

/* For "%.*s": the beginning of a value's own text, whole characters. */
#define SHOW(j) (int)mo_utf8_cut(mo_json_text(j), SHOWN_MAX), (j).p

static inline const char *mo_jsv_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* A limit that counts: 3, or 3.0; else false and a note. */
bool mo_jsv_count(struct mo_jsv *c, struct mo_json limit, uint64_t *out);
/* 1, 0, or below 0 when the pattern is not ours (noted) or a limit reached. */
int mo_jsv_matches(struct mo_jsv *c, struct mo_json pattern, struct mo_json v);
/* A limit reached counts as equal, rc tells. */
bool mo_jsv_equal(struct mo_jsv *c, struct mo_json a, struct mo_json b);

mo_jsv_check mo_jsv_required, mo_jsv_properties, mo_jsv_pattern_properties,
    mo_jsv_additional_properties, mo_jsv_property_names, mo_jsv_dependencies,
    mo_jsv_prefix_items, mo_jsv_items, mo_jsv_additional_items, mo_jsv_contains,
    mo_jsv_unique_items;

#endif
