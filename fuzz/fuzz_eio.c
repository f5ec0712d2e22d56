/* Any bytes as a polling body. Text packets that are taken must come out of
 * our own writer the same, and be taken again. */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/http/eio.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* 0 at the end, or the error; what was read is written to out. */
static int rewrite(struct mo_span body, struct mo_buf *out)
{
    struct mo_eio p;
    unsigned n = 0;
    int rc;

    do {
        rc = mo_eio_next(&body, &n, &p, NULL);
        MO_BUG_ON(n > MO_EIO_PACKETS_MAX);
        if (rc == 1 && !p.binary)
            mo_eio_put_polling(out, p.type, p.data);
    } while (rc == 1);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct mo_span in = mo_span((const char *)p, n);
    struct mo_buf once, twice;
    struct mo_eio packet;
    int rc;

    mo_buf_init(&once, SIZE_MAX / 4);
    mo_buf_init(&twice, SIZE_MAX / 4);
    rc = rewrite(in, &once);
    if (rc == 0 && once.len) {
        MO_BUG_ON(rewrite(mo_buf_view(&once), &twice) != 0);
        MO_BUG_ON(!mo_span_eq(mo_buf_view(&once), mo_buf_view(&twice)));
    }
    if (mo_eio_decode(in, &packet, NULL) == 0)
        MO_BUG_ON(packet.data.n != n - 1 || packet.binary);
    mo_buf_fini(&twice);
    mo_buf_fini(&once);
    return 0;
}
