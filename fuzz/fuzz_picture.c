/* fuzz_picture.c - a shorter beginning never gives another type. */
#include <stdlib.h>
#include <string.h>

#include "codec/picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span all = mo_span((const char *)data, n);
    struct mo_picture one, two;

    if (mo_picture_read(all, &one) < 0 || n < MO_PICTURE_MAGIC)
        return 0;
    if (mo_picture_read(mo_span_head(all, MO_PICTURE_MAGIC), &two) < 0 ||
        strcmp(one.type, two.type) != 0)
        abort();
    return 0;
}
