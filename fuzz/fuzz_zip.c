/* Zip archives. Beyond not crashing: an entry gives as many bytes as it says,
 * and its name stays below its folder. */
#include <stdlib.h>
#include <string.h>

#include "codec/zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX ((uint64_t)1 << 20)

static int count_piece(void *ctx, struct mo_span piece, struct mo_err *e)
{
    uint64_t *n = ctx;

    (void)e;
    *n += piece.n;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mo_span in = mo_span((const char *)data, size);
    struct mo_zip_entry x;
    struct mo_zip z;
    uint64_t plain = 0;

    if (size)
        (void)mo_inflate(mo_span_skip(in, 1), MAX, count_piece, &plain, NULL);
    if (plain > MAX)
        abort();
    if (mo_zip_open(&z, in, NULL) < 0)
        return 0;
    while (mo_zip_next(&z, &x, NULL) > 0) {
        uint64_t n = 0;

        if (!x.name.n || x.name.p[0] == '/' ||
            mo_span_search(x.name, MO_SPAN("/../")) >= 0)
            abort();
        if (x.size <= MAX && mo_zip_read(&x, count_piece, &n, NULL) == 0 &&
            n != x.size)
            abort();
    }
    return 0;
}
