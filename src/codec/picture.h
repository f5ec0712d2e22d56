/* picture.h - the type and the size of an image, by its bytes.
 *
 * A name or a declared type proves nothing: providers of models compare the
 * bytes, and refuse the whole conversation if they differ. Known are the types
 * that all of them take. Pure; reads only the headers. */
#ifndef MO_CODEC_PICTURE_H
#define MO_CODEC_PICTURE_H

#include "base/str.h"

#define MO_PICTURE_MAGIC 12 /* bytes that show the type */

struct mo_picture {
    const char *type;       /* "image/png", ...: a constant */
    uint32_t width, height; /* 0: the bytes do not say */
};

/* bytes: of the whole file, or its beginning. MO_EINVAL: it is no PNG, JPEG,
 * GIF or WebP. */
int mo_picture_read(struct mo_span bytes, struct mo_picture *out);

#endif
