/* Pieces must not matter: a message that is complete needs no more bytes. */
#include <stdlib.h>

#include "codec/client_hello.h"

static void expect(bool ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span all = {(const char *)data, n};
    struct mo_hello whole, part;
    int rc = mo_hello_read(all, &whole);

    expect(whole.name_len <= MO_HELLO_NAME_MAX);
    if (rc == 1)
        expect(mo_hello_starts(all));
    for (size_t cut = 0; cut < n && n < 600; cut += n % 5 + 1) {
        int r = mo_hello_read(mo_span_head(all, cut), &part);

        expect(r == 0 || r == rc); /* it never changes its mind */
        if (r == 1)
            expect(part.name_len == whole.name_len &&
                   memcmp(part.name, whole.name, part.name_len) == 0);
    }
    return 0;
}
