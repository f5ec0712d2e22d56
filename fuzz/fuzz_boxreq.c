/* Any bytes as frames to a keeper: what is accepted is put back together as
 * the very same bytes, and no text reaches beyond its frame. */
#include <string.h>

#include "base/mem.h"
#include "codec/boxreq.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct mo_span in = mo_span((const char *)p, n), before = in;
    struct mo_boxmsg m;
    struct mo_buf b;

    mo_buf_init(&b, MO_BOXMSG_HEAD + MO_BOXMSG_MAX);
    while (mo_boxmsg_next(&in, &m, NULL) == 1) {
        size_t len = before.n - in.n;

        mo_buf_reset(&b);
        MO_BUG_ON(mo_boxmsg_put(&b, &m, NULL) < 0);
        MO_BUG_ON(!mo_span_eq(mo_buf_view(&b), mo_span_head(before, len)));
        before = in;
    }
    mo_buf_fini(&b);
    return 0;
}
