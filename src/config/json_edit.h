/* json_edit.h - changes one value in a JSON text and keeps all other bytes.
 *
 * The new value is spliced into the text and formatted like its neighbours:
 * the same indentation, line ends and blanks after the colon, or all on one
 * line.
 *
 * Pure: no I/O. The text must be valid JSON (MO_EPROTO) and an object. Of
 * duplicate keys the last one is used, as in json.h. */
#ifndef MO_CONFIG_JSON_EDIT_H
#define MO_CONFIG_JSON_EDIT_H

#include "codec/json/json.h"

#define MO_JSON_EDIT_INDENT 64 /* bytes of indentation that are copied */

/* path: keys from the outermost, NULL-terminated. Missing objects on the path
 * are created; MO_EINVAL: a value on the path is not an object. value: JSON.
 * The new text is appended to out. */
int mo_json_edit_set(struct mo_span text, const char *const *path,
                     struct mo_span value, struct mo_buf *out,
                     struct mo_err *e);

/* MO_ENOTFOUND: there is no such key. */
int mo_json_edit_del(struct mo_span text, const char *const *path,
                     struct mo_buf *out, struct mo_err *e);

#endif
