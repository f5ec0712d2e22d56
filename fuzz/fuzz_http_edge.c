/* Requests with headers set. The first byte chooses the version. Pieces must
 * not matter, and the edge must read what it wrote in the same way: a second
 * pass changes nothing. */
#include <stdlib.h>

#include "egress/http_edge.h"

#define OUT_MAX ((size_t)16 * 1024 * 1024)

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static int pass(bool h2, struct mo_span in, size_t piece, struct mo_buf *out,
                uint64_t *count)
{
    static const struct mo_http_edge_header set[] = {
        {"Authorization", {"Bearer S", 8}},
    };
    struct mo_http_edge_opts o = {
        .host = "a.b", .port = 443, .h2 = h2, .headers = set, .n = 1};
    struct mo_http_edge *x = mo_http_edge_new(&o);
    struct mo_err e = {0};
    int rc = 0;

    expect(x != NULL);
    while (rc == 0 && in.n)
        rc = mo_http_edge_feed(
            x, mo_span_take(&in, piece < in.n ? piece : in.n), out, &e);
    *count = mo_http_edge_count(x);
    mo_http_edge_free(x);
    return rc;
}

static size_t find_all(struct mo_span s)
{
    ptrdiff_t at = mo_span_search(s, MO_SPAN("Bearer S"));
    size_t n = 0;

    for (; at >= 0; at = mo_span_search(s, MO_SPAN("Bearer S"))) {
        s = mo_span_skip(s, (size_t)at + 8);
        n++;
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    mo_autobuf struct mo_buf whole = {.max = OUT_MAX}, parts = {.max = OUT_MAX},
                             again = {.max = OUT_MAX};
    struct mo_span in = {(const char *)data + 1, n - 1};
    bool h2 = n && data[0] & 1;
    uint64_t count, count_parts, count_again;
    int rc;

    if (n < 2)
        return 0;
    rc = pass(h2, in, in.n, &whole, &count);
    expect((rc < 0) ==
           (pass(h2, in, (data[0] >> 1) % 16 + 1, &parts, &count_parts) < 0));
    expect(count == count_parts);
    if (rc < 0)
        return 0;
    expect(find_all(mo_buf_view(&whole)) >= count);
    if (h2)
        expect(mo_span_eq(mo_buf_view(&whole), mo_buf_view(&parts)));
    expect(pass(h2, mo_buf_view(&whole), whole.len + 1, &again, &count_again) ==
           0);
    expect(count == count_again &&
           mo_span_eq(mo_buf_view(&whole), mo_buf_view(&again)));
    return 0;
}
