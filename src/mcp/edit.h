/* edit.h - change a few members of an object and keep every other byte.
 *
 * Forwarded messages are not rebuilt: a name, a token or a code is replaced in
 * place, and the rest is copied unchanged. Only blanks between members may be
 * dropped. All members of a name are replaced, so that two readers of a
 * duplicate cannot disagree. */
#ifndef MO_MCP_EDIT_H
#define MO_MCP_EDIT_H

#include "codec/json/json.h"

struct mo_edit {
    const char *key;
    struct mo_span to; /* JSON text; p NULL: remove the member */
};

/* Append obj (an object, or none) with the changes v[]; a member that is absent
 * and has a value is added at the end. 0 or the buffer's error. */
int mo_edit(struct mo_buf *b, struct mo_json obj, const struct mo_edit *v,
            size_t n);

#endif
