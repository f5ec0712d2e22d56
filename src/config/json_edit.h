/* json_edit.h - one change in a JSON text that people wrote; the rest keeps its
 * bytes.
 *
 * The text is not written anew: the place is found by the spans of json.h and
 * spliced. What is put in looks like its neighbours: their indentation, their
 * line ends, their blanks behind the colon; on one line where they are.
 *
 * Pure: a text in, a text out. The text must be good JSON (MO_EPROTO) and an
 * object. Of a key that is there twice the last counts, as in json.h. */
#ifndef MO_CONFIG_JSON_EDIT_H
#define MO_CONFIG_JSON_EDIT_H

#include "codec/json/json.h"

#define MO_JSON_EDIT_DEPTH_MAX 4  /* words of a path */
#define MO_JSON_EDIT_INDENT    64 /* bytes of indentation that are understood */

/* path: keys from the outermost, NULL-terminated. Objects on the way that are
 * missing are made; MO_EINVAL: something on the way is no object. value is
 * JSON. Appended to out. */
int mo_json_edit_set(struct mo_span text, const char *const *path,
                     struct mo_span value, struct mo_buf *out,
                     struct mo_err *e);

/* MO_ENOTFOUND: there is none. */
int mo_json_edit_del(struct mo_span text, const char *const *path,
                     struct mo_buf *out, struct mo_err *e);

#endif
