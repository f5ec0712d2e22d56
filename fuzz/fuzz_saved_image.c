/* An archive of `docker save` in two pieces is judged as in one. Sums of tar
 * headers are put right first: no mutation would get past them. */
#include <stdio.h>
#include <stdlib.h>

#include "codec/tar.h"
#include "engine/saved_image.h"

#define SUM_AT   148
#define MAGIC_AT 257

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fix_sums(unsigned char *p, size_t n)
{
    for (; n >= MO_TAR_BLOCK; p += MO_TAR_BLOCK, n -= MO_TAR_BLOCK) {
        unsigned sum = 0;
        char text[8];

        if (memcmp(p + MAGIC_AT, "ustar", 5) != 0)
            continue;
        memset(p + SUM_AT, ' ', 8);
        for (size_t i = 0; i < MO_TAR_BLOCK; i++)
            sum += p[i];
        (void)snprintf(text, sizeof(text), "%06o", sum);
        memcpy(p + SUM_AT, text, 7);
    }
}

static int judge(struct mo_span all, size_t cut, struct mo_err *e)
{
    static const char *const volumes[] = {"/data", NULL};
    const struct mo_image im = {.workdir = "/app", .volumes = volumes};
    struct mo_saved_image *s = mo_saved_image_new(&im);
    int rc = s ? 0 : MO_ENOMEM;

    *e = (struct mo_err){0};
    if (rc == 0)
        rc = mo_saved_image_feed(s, mo_span_head(all, cut), e);
    if (rc == 0)
        rc = mo_saved_image_feed(s, mo_span_skip(all, cut), e);
    if (rc == 0)
        rc = mo_saved_image_end(s, e);
    mo_saved_image_free(s);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mo_span all;
    struct mo_err a, b;
    struct mo_buf copy;

    mo_buf_init(&copy, 1 << 20);
    if (size == 0 || mo_buf_put(&copy, data, size) < 0) {
        mo_buf_fini(&copy);
        return 0;
    }
    fix_sums((unsigned char *)copy.p, copy.len);
    all = mo_buf_view(&copy);
    if (judge(all, size, &a) != judge(all, data[0] * size / 256, &b) ||
        strcmp(a.msg, b.msg) != 0)
        abort();
    mo_buf_fini(&copy);
    return 0;
}
