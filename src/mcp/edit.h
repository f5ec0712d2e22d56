/* edit.h - an object with a few members changed and every other byte kept.
 *
 * What crosses us is not rebuilt: a name, a token or a code is replaced where
 * it stands, and the rest is copied as it was written. Only blanks between
 * members may go. All members of that name are replaced, so that two readers
 * of a duplicate cannot disagree. */
#ifndef MO_MCP_EDIT_H
#define MO_MCP_EDIT_H

#include "codec/json/json.h"

struct mo_edit {
    const char *key;
    struct mo_span to; /* JSON text; p NULL: the member is taken out */
};

/* Append obj (an object, or none) with v[] done; a member that is not there
 * and has a value is added at the end. 0 or the buffer's error. */
int mo_edit(struct mo_buf *b, struct mo_json obj, const struct mo_edit *v,
            size_t n);

#endif
