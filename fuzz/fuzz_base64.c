/* fuzz_base64.c - what decodes, encodes back to the very same text; what was
 * encoded, decodes to the very same bytes. */
#include <stdlib.h>

#include "codec/text/base64.h"

#define MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct codec {
    int (*put)(struct mo_buf *b, struct mo_span in);
    int (*decode)(struct mo_span in, struct mo_buf *out);
};

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void check(const struct codec *c, struct mo_span in)
{
    struct mo_buf one, two;
    int rc;

    mo_buf_init(&one, MAX);
    mo_buf_init(&two, MAX);
    rc = c->decode(in, &one);
    must(rc == 0 || (rc == MO_EPROTO && one.len == 0));
    if (rc == 0) {
        must(c->put(&two, mo_buf_view(&one)) == 0);
        must(mo_span_eq(mo_buf_view(&two), in));
    }
    mo_buf_reset(&one);
    mo_buf_reset(&two);
    must(c->put(&one, in) == 0);
    must(c->decode(mo_buf_view(&one), &two) == 0);
    must(mo_span_eq(mo_buf_view(&two), in));
    mo_buf_fini(&one);
    mo_buf_fini(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct codec both[] = {
        {mo_base64_put, mo_base64_decode},
        {mo_base64url_put, mo_base64url_decode},
    };

    check(&both[0], mo_span((const char *)data, n));
    check(&both[1], mo_span((const char *)data, n));
    return 0;
}
