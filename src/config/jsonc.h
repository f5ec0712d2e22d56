/* jsonc.h - JSON as editors allow it, made into JSON.
 *
 * Comments and commas behind a last entry become blanks, so every byte that
 * stays keeps its place (lines and columns in messages remain right); a byte
 * order mark is dropped. No more is judged here: json.h does that. */
#ifndef MO_CONFIG_JSONC_H
#define MO_CONFIG_JSONC_H

#include "base/str.h"

/* Appended to out; its error is the buffer's. */
int mo_jsonc_plain(struct mo_span text, struct mo_buf *out);

#endif
