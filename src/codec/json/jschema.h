/* jschema.h - does a JSON value fit a JSON Schema? For tool arguments and
 * structured results, with an answer a person or a model can act on.
 *
 * The subset of 2020-12 that MCP servers use, straight over json.h handles:
 * type, enum, const; the limits of numbers, strings, arrays and objects;
 * properties, patternProperties, additionalProperties, propertyNames,
 * required, dependentRequired, dependentSchemas; prefixItems, items,
 * contains, uniqueItems; allOf, anyOf, oneOf, not, if/then/else; $ref to
 * places and $anchors inside the same schema; boolean schemas. What older
 * drafts wrote is understood: definitions, dependencies, items as a list,
 * additionalItems, exclusiveMinimum as a boolean; and where $schema names draft
 * 7 or older, a $ref hides its neighbours.
 *
 * Never a false alarm: what is not understood counts as fulfilled and leaves
 * a note. Never fetched: a $ref to another document is such a note.
 *
 * Trust: schema and value may both come from an enemy. Depth and work are
 * limited; who reaches a limit gets MO_ETOOBIG, not a verdict. Everything is
 * on the stack (about 200 KiB at the deepest), nothing is allocated. */
#ifndef MO_CODEC_JSON_JSCHEMA_H
#define MO_CODEC_JSON_JSCHEMA_H

#include "codec/json/json.h"

#define MO_JSCHEMA_DEPTH_MAX  96      /* schemas inside schemas, $ref too */
#define MO_JSCHEMA_STEPS_MAX  1000000 /* about a tenth of a second */
#define MO_JSCHEMA_ERRORS_MAX 8       /* kept; more are only counted */

enum {                                 /* notes: what was not looked at */
       MO_JSCHEMA_REMOTE_REF = 1 << 0, /* a $ref to another document */
       MO_JSCHEMA_LOST_REF = 1 << 1,   /* a local $ref that leads nowhere */
       MO_JSCHEMA_PATTERN = 1 << 2,    /* a regular expression we do not take */
       MO_JSCHEMA_KEYWORD = 1 << 3,    /* unevaluated*, $dynamicRef */
       MO_JSCHEMA_BAD_SCHEMA = 1 << 4, /* a keyword with a value of no sense */
       MO_JSCHEMA_FORMAT = 1 << 5,  /* a text too long to look at its format */
       MO_JSCHEMA_DIVISOR = 1 << 6, /* multipleOf with too many digits */
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

#endif
