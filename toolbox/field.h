/* field.h - a table of object members: schema and parser in one.
 *
 * A table of fields describes a tool's arguments or its result. The JSON Schema
 * that clients see is written from it and arguments are parsed by it, so the
 * two cannot differ.
 *
 * Parsing is strict and explains errors: an unknown name, a wrong type or a
 * number out of range is MO_EINVAL with the field's name. An absent member
 * leaves the caller's default. */
#ifndef TB_FIELD_H
#define TB_FIELD_H

#include "codec/json/json.h"

enum tb_type {
    TB_TEXT,    /* struct mo_span, in the arena or borrowed */
    TB_INT,     /* int64_t within min..max */
    TB_SECONDS, /* uint64_t: nanoseconds; a number of min..max seconds */
    TB_BOOL,    /* bool */
    TB_CHOICE,  /* unsigned: index into choices */
    TB_TEXTS,   /* struct mo_json: an array of strings */
    TB_MAP,     /* struct mo_json: an object of strings */
    TB_ITEMS,   /* results only: an array of objects */
};

struct tb_field {
    const char *name, *what;
    enum tb_type type;
    bool required;
    uint32_t at;                  /* offset in the caller's struct */
    int64_t min, max;             /* both 0: no limit */
    const char *const *choices;   /* ends with NULL */
    const struct tb_field *items; /* ends with name NULL, like every table */
};

/* Write {"type":"object","properties":...}; closed: no additional
 * properties. */
void tb_fields_schema(struct mo_jw *w, const struct tb_field *f, bool closed);

/* args: an object or absent. */
int tb_fields_read(struct mo_json args, const struct tb_field *f,
                   struct mo_arena *a, void *out, struct mo_err *e);

#endif
