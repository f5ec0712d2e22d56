/* jschema_priv.h - between the files of the schema room: jschema.c
 * walks, resolves references and reports, jschema_kw.c knows the keywords, and
 * jschema_in.c those about what stands inside objects and arrays. */
#ifndef MO_CODEC_JSON_JSCHEMA_PRIV_H
#define MO_CODEC_JSON_JSCHEMA_PRIV_H

#include "codec/json/jregex.h"
#include "codec/json/jschema.h"
#include "codec/text/utf8.h"

enum mo_jsk {
    K_TYPE,
    K_ENUM,
    K_CONST,
    K_MINIMUM,
    K_MAXIMUM,
    K_EXCL_MINIMUM,
    K_EXCL_MAXIMUM,
    K_MULTIPLE_OF,
    K_MIN_LENGTH,
    K_MAX_LENGTH,
    K_PATTERN,
    K_FORMAT,
    K_REQUIRED,
    K_MIN_PROPERTIES,
    K_MAX_PROPERTIES,
    K_PROPERTIES,
    K_PATTERN_PROPERTIES,
    K_ADDITIONAL_PROPERTIES,
    K_PROPERTY_NAMES,
    K_DEPENDENT_REQUIRED,
    K_DEPENDENT_SCHEMAS,
    K_DEPENDENCIES,
    K_MIN_ITEMS,
    K_MAX_ITEMS,
    K_PREFIX_ITEMS,
    K_ITEMS,
    K_ADDITIONAL_ITEMS,
    K_CONTAINS,
    K_MIN_CONTAINS,
    K_MAX_CONTAINS,
    K_UNIQUE_ITEMS,
    K_REF,
    K_ALL_OF,
    K_ANY_OF,
    K_ONE_OF,
    K_NOT,
    K_IF,
    K_THEN,
    K_ELSE,
    K_UNEVALUATED_PROPERTIES,
    K_UNEVALUATED_ITEMS,
    K_DYNAMIC_REF,
    K_RECURSIVE_REF,
    K_COUNT,
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
