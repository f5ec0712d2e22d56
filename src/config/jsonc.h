/* jsonc.h - converts JSON with comments to plain JSON.
 *
 * Comments and trailing commas become blanks, so that lines and columns in
 * messages stay correct; a byte order mark is dropped. The text is not checked;
 * json.h does that. */
#ifndef MO_CONFIG_JSONC_H
#define MO_CONFIG_JSONC_H

#include "base/str.h"

/* Appends to out and returns mo_buf_err(out). */
int mo_jsonc_plain(struct mo_span text, struct mo_buf *out);

#endif
