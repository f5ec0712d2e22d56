/* A line can follow one that is taken; ours, with any of its
 * bytes changed by the input, is not. */
#include <stdlib.h>

#include "codec/chain.h"

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static void check(struct mo_span line)
{
    struct mo_chain c, again;
    struct mo_err e;
    struct mo_buf b;

    mo_chain_init(&c, NULL);
    c.open = true;
    if (mo_chain_check(&c, line, &e) < 0)
        return;
    mo_chain_init(&again, NULL);
    expect(mo_chain_resume(&again, line, &e) == 0 && again.seq == c.seq);
    mo_buf_init(&b, 1 << 20);
    expect(mo_chain_put(&again, MO_SPAN("\"a\":1"), &b, &e) == 0);
    expect(mo_chain_check(&c, mo_span(b.p, b.len - 1), &e) == 0);
    mo_buf_fini(&b);
}

static void change(const uint8_t *p, size_t n)
{
    struct mo_chain c;
    struct mo_err e;
    struct mo_buf b;
    size_t at;

    mo_chain_init(&c, NULL);
    mo_buf_init(&b, 1 << 20);
    expect(mo_chain_put(&c, MO_SPAN("\"a\":[1,\"x\"]"), &b, &e) == 0);
    at = ((size_t)p[0] << 8 | p[1]) % b.len;
    mo_chain_init(&c, NULL);
    b.p[at] = (char)(b.p[at] ^ p[2]);
    if (p[2] && n > 2)
        expect(mo_chain_check(&c, mo_span(b.p, b.len - 1), &e) < 0 ||
               at == b.len - 1);
    mo_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    check(mo_span((const char *)p, n));
    if (n > 2)
        change(p, n);
    return 0;
}
