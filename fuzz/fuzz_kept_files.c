/* Any bytes as kept files: what is accepted is put back together as the very
 * same bytes, and no name can lead out of its folder. */
#include <string.h>

#include "base/mem.h"
#include "codec/kept_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct mo_span in = mo_span((const char *)p, n), before = in;
    struct mo_kept_head h;
    struct mo_kept k;
    struct mo_buf b;

    mo_buf_init(&b, MO_KEPT_RECORD + MO_KEPT_HEAD);
    if (mo_kept_take_head(&in, &h, NULL) == 1) {
        mo_kept_put_head(&b, &h);
        MO_BUG_ON(!mo_span_eq(mo_buf_view(&b),
                              mo_span_head(before, before.n - in.n)));
        before = in;
    }
    while (mo_kept_take(&in, &k, NULL) == 1) {
        mo_buf_reset(&b);
        mo_kept_put(&b, &k);
        MO_BUG_ON(!mo_span_eq(mo_buf_view(&b),
                              mo_span_head(before, before.n - in.n)));
        MO_BUG_ON(mo_span_find(k.name, '/') >= 0 || mo_span_is(k.name, ".."));
        before = in;
    }
    mo_buf_fini(&b);
    return 0;
}
