/* base64.h - RFC 4648, strictly.
 *
 * Exactly one text stands for a sequence of bytes: padding is required in the
 * standard alphabet and forbidden in the URL one, blanks are refused, and the
 * unused bits of the last character must be zero. So a decoded value that is
 * compared, hashed or signed cannot be written in two ways.
 *
 * Everything appends to the caller's buffer. Decoding gives MO_EPROTO for bad
 * text and then leaves the buffer's length as it was; MO_ETOOBIG and
 * MO_ENOMEM are the buffer's own. */
#ifndef MO_CODEC_TEXT_BASE64_H
#define MO_CODEC_TEXT_BASE64_H

#include "base/str.h"

int mo_base64_put(struct mo_buf *b, struct mo_span in);
int mo_base64_decode(struct mo_span in, struct mo_buf *out);

/* '-' and '_' for '+' and '/', no padding. */
int mo_base64url_put(struct mo_buf *b, struct mo_span in);
int mo_base64url_decode(struct mo_span in, struct mo_buf *out);

#endif
