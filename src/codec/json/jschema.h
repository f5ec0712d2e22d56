/* jschema.h - checks a JSON value against a JSON Schema. Used for tool
 * arguments and structured results; errors are worded for people and models.
 *
 * The subset of 2020-12 that MCP servers use, straight over json.h handles:
 * type, enum, const; the limits of numbers, strings, arrays and objects;
 * properties, patternProperties, additionalProperties, propertyNames,
 * required, dependentRequired, dependentSchemas; prefixItems, items,
 * contains, uniqueItems; allOf, anyOf, oneOf, not, if/then/else; $ref to
 * places and $anchors inside the same schema; boolean schemas. Keywords of
 * older drafts are supported: definitions, dependencies, items as a list,
 * additionalItems, exclusiveMinimum as a boolean; and where $schema names draft
 * 7 or older, a $ref hides its neighbours.
 *
 * No false errors: an unsupported keyword counts as fulfilled and sets a
 * note. A $ref to another document is never fetched and sets a note, too.
 *
 * Trust: schema and value may both be hostile. Depth and work are limited;
 * reaching a limit is MO_ETOOBIG and no verdict. Everything is
 * on the stack (about 200 KiB at the deepest), nothing is allocated. */
#ifndef MO_CODEC_JSON_JSCHEMA_H
#define MO_CODEC_JSON_JSCHEMA_H

#include "codec/json/json.h"

#define MO_JSCHEMA_DEPTH_MAX  96      /* schemas inside schemas, $ref too */
#define MO_JSCHEMA_STEPS_MAX  1000000 /* about a tenth of a second */
#define MO_JSCHEMA_ERRORS_MAX 8       /* kept; more are only counted */

enum {                                 /* notes: what was not looked at */
       MO_JSCHEMA_REMOTE_REF = 1 << 0, /* a $ref to another document */
       MO_JSCHEMA_LOST_REF = 1 << 1,   /* a local $ref without a target */
       MO_JSCHEMA_PATTERN = 1 << 2,    /* an unsupported regular expression */
       MO_JSCHEMA_KEYWORD = 1 << 3,    /* unevaluated*, $dynamicRef */
       MO_JSCHEMA_BAD_SCHEMA = 1 << 4, /* a keyword with an invalid value */
       MO_JSCHEMA_FORMAT = 1 << 5,     /* a text too long to check its format */
       MO_JSCHEMA_DIVISOR = 1 << 6,    /* multipleOf with too many digits */
};

struct mo_jschema_opts {
    const char *name; /* what paths begin with; NULL: "value" */
    bool formats;     /* check "format" too */
    uint64_t steps;   /* 0: MO_JSCHEMA_STEPS_MAX */
};

struct mo_jschema_error {
    char path[160]; /* "arguments.items[2].name"; cut ones end in "..." */
    char text[240]; /* "must be a string" */
};

struct mo_jschema_result {
    bool valid;
    unsigned notes;
    size_t nerrors; /* found; the first MO_JSCHEMA_ERRORS_MAX are kept */
    uint64_t steps; /* used */
    struct mo_jschema_error errors[MO_JSCHEMA_ERRORS_MAX];
};

/* Both are handles out of mo_json_parse(). 0: the verdict is in *out.
 * MO_ETOOBIG: too deep or too much work; *out then holds what was found. */
int mo_jschema_check(struct mo_json schema, struct mo_json value,
                     const struct mo_jschema_opts *o,
                     struct mo_jschema_result *out, struct mo_err *e);

/* The errors as lines "path: text". */
int mo_jschema_put(struct mo_buf *b, const struct mo_jschema_result *r);

/* Does the text have that format (jformat.c)? 1: yes, 0: no, -1: unknown. */
int mo_jformat(struct mo_span format, struct mo_span text);

#endif
