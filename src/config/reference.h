/* reference.h - references to secrets inside configuration texts.
 *
 * ${secret:NAME}   from the secret store
 * ${env:NAME}      from the environment (or .env)
 * ${file:PATH}     the content of a file
 * $${              a literal "${"
 *
 * This room knows the syntax only. A text is a row of parts, literal or
 * reference; whoever needs the value walks the parts and resolves them at
 * that moment, so a resolved secret is never stored next to its name. */
#ifndef MO_CONFIG_REFERENCE_H
#define MO_CONFIG_REFERENCE_H

#include "base/str.h"

enum mo_reference_kind {
    MO_REFERENCE_TEXT,
    MO_REFERENCE_SECRET,
    MO_REFERENCE_ENV,
    MO_REFERENCE_FILE
};

struct mo_reference_part {
    enum mo_reference_kind kind;
    struct mo_span text; /* the literal text, or NAME / PATH */
};

/* Next part of *rest: 1 and *out, 0 at the end, MO_EINVAL and a sentence
 * without its subject ("has ..."). */
int mo_reference_next(struct mo_span *rest, struct mo_reference_part *out,
                      struct mo_err *e);

/* The whole text has good syntax. */
int mo_reference_check(struct mo_span text, struct mo_err *e);

/* Is there a reference in it at all? Bad syntax counts as yes. */
bool mo_reference_any(struct mo_span text);

/* The text with every literal part replaced by "***": safe to show. */
int mo_reference_mask(struct mo_span text, struct mo_buf *b);

#endif
