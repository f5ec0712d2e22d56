/* A parsed URL, put together again, is the same; encoded text decodes. */
#include <stdlib.h>

#include "codec/http/url.h"

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static void part(struct mo_buf *b, char before, struct mo_span s)
{
    if (!s.p)
        return;
    mo_buf_putc(b, before);
    mo_buf_span(b, s);
}

/* Put a URL together; with its port, so that the result is explicit. */
static void join(struct mo_buf *b, const struct mo_url *u)
{
    mo_buf_span(b, u->scheme);
    mo_buf_puts(b, "://");
    if (u->userinfo.p) {
        mo_buf_span(b, u->userinfo);
        mo_buf_putc(b, '@');
    }
    mo_buf_puts(b, u->ipv6 ? "[" : "");
    mo_buf_span(b, u->host);
    mo_buf_puts(b, u->ipv6 ? "]" : "");
    if (u->has_port)
        mo_buf_printf(b, ":%u", u->port);
    mo_buf_span(b, u->path);
    part(b, '?', u->query);
    part(b, '#', u->fragment);
}

static void fuzz_url(struct mo_span in)
{
    struct mo_url u, v;
    struct mo_buf b;

    if (mo_url_parse(in, &u, NULL) < 0)
        return;
    mo_buf_init(&b, 2 * MO_URL_MAX);
    join(&b, &u);
    expect(mo_url_parse(mo_buf_view(&b), &v, NULL) == 0);
    expect(mo_origin_eq(&u, &v));
    expect(mo_span_eq(u.path, v.path) && mo_span_eq(u.query, v.query));
    expect(mo_span_eq(u.fragment, v.fragment));
    expect(u.path.n == 0 || u.path.p[0] == '/');
    /* leading zeros of a port are all that may be lost */
    expect(b.len <= in.n);
    mo_buf_fini(&b);
}

static void fuzz_host(struct mo_span in)
{
    struct mo_host h;
    struct mo_url u;
    struct mo_buf b;

    if (mo_host_parse(in, 80, &h) < 0)
        return;
    mo_buf_init(&b, 1 << 16);
    mo_buf_puts(&b, "http://");
    mo_buf_span(&b, in);
    expect(mo_origin_parse(mo_buf_view(&b), &u) == 0);
    expect(mo_origin_is_host(&u, &h, false));
    expect(!mo_origin_is_host(&u, &h, true));
    mo_buf_fini(&b);
}

static void fuzz_escapes(struct mo_span in)
{
    struct mo_buf a, b;

    mo_buf_init(&a, 1 << 20);
    mo_buf_init(&b, 1 << 20);
    expect(mo_pct_encode(&a, in) == 0);
    if (mo_span_find(in, '\0') < 0) {
        expect(mo_pct_decode(&b, mo_buf_view(&a), true) == 0);
        expect(mo_span_eq(mo_buf_view(&b), in));
    } else {
        expect(mo_pct_decode(&b, mo_buf_view(&a), true) == MO_EINVAL);
    }
    mo_buf_fini(&a);
    mo_buf_fini(&b);
}

static void fuzz_query(struct mo_span in)
{
    struct mo_span rest = in, k, v;
    struct mo_buf b;
    size_t n = 0;

    while (mo_query_next(&rest, &k, &v)) {
        expect(k.n + v.n <= in.n);
        n++;
    }
    expect(n <= in.n);
    mo_buf_init(&b, 1 << 20);
    (void)mo_query_get(in, "a", &b);
    expect(b.len <= in.n);
    mo_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span in = mo_span((const char *)data, n);

    fuzz_url(in);
    fuzz_host(in);
    fuzz_escapes(in);
    fuzz_query(in);
    return 0;
}
