/* edit.h - replace an exact text. No I/O; the tool is in edit.c. */
#ifndef TB_EDIT_H
#define TB_EDIT_H

#include "base/str.h"

/* Write `text` with `old` replaced by `new` to out. Returns the number of
 * replacements, or MO_ENOTFOUND, MO_EEXISTS (several and !all), or the buffer's
 * error; each with a message for the model. */
int tb_edit(struct mo_span text, struct mo_span old, struct mo_span new,
            bool all, struct mo_buf *out, struct mo_err *e);

#endif
