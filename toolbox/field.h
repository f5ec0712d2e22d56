/* field.h - the members of an object, told once.
 *
 * A table of fields is a tool's list of arguments, or of what it answers. The
 * JSON Schema that clients see is written from it and arguments are read by
 * it, so the two cannot drift apart.
 *
 * Reading is strict and says what to do: an unknown name, a wrong type or a
 * number out of range is MO_EINVAL with the field's name. What is absent
 * leaves the caller's default alone. */
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
    TB_ITEMS,   /* answers only: an array of objects */
};

#define TB_CHOICES_MAX 4

struct tb_field {
    const char *name, *what;
    enum tb_type type;
    bool required;
    uint32_t at;      /* offset in the caller's struct */
    int64_t min, max; /* both 0: any */
    const char *choices[TB_CHOICES_MAX];
    const struct tb_field *items; /* ends, as every table, with name NULL */
};

/* {"type":"object","properties":...}; closed: nothing else may be there. */
void tb_fields_schema(struct mo_jw *w, const struct tb_field *f, bool closed);

/* args: an object or none. */
int tb_fields_read(struct mo_json args, const struct tb_field *f,
                   struct mo_arena *a, void *out, struct mo_err *e);

#endif
