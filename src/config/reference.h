/* reference.h - references to secrets inside configuration texts.
 *
 * ${secret:NAME}   from the secret store
 * ${env:NAME}      from the environment (or .env)
 * ${file:PATH}     the content of a file
 * $${              a literal "${"
 *
 * This room handles the syntax only. A text is a sequence of parts, literal or
 * reference. The user of a value resolves the parts when it is needed
 * (secrets/resolve.h), so that configurations never contain resolved secrets.
 */
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

/* Cuts the next part off *rest. 1: *out is set; 0: the end; MO_EINVAL: e has a
 * sentence without its subject ("has ..."). */
int mo_reference_next(struct mo_span *rest, struct mo_reference_part *out,
                      struct mo_err *e);

/* Checks the syntax of the whole text. */
int mo_reference_check(struct mo_span text, struct mo_err *e);

/* True if the text has a reference or a syntax error. */
bool mo_reference_any(struct mo_span text);

/* True for 1 to max letters, digits, '_', '-' and '.'. */
bool mo_reference_is_name(struct mo_span s, size_t max);

/* Appends the text with every literal part replaced by "***". */
int mo_reference_mask(struct mo_span text, struct mo_buf *b);

#endif
