#include "egress/http_edge_priv.h"

#include "egress/policy.h"

/* --- for both versions --------------------------------------------------- */

bool mo_http_edge_is_set(const struct mo_http_edge *x, struct mo_span name)
{
    for (size_t i = 0; i < x->o.n; i++)
        if (mo_span_ieq(name, mo_span_cstr(x->o.headers[i].name)))
            return true;
    return false;
}

/* "HOST" or "HOST:PORT" */
int mo_http_edge_check_host(const struct mo_http_edge *x, struct mo_span text,
                            struct mo_err *e)
{
    char host[MO_EGRESS_HOST_MAX + 1];
    struct mo_span port = text, name = mo_span_cut(&port, ':');
    uint64_t n = x->o.port;

    if (!mo_egress_host(name, host) || strcmp(host, x->o.host) != 0 ||
        (port.p && (mo_span_u64(port, &n) < 0 || n != x->o.port)))
        return mo_fail(e, MO_EPOLICY, "a request that names another host");
    return 0;
}

int mo_http_edge_check_method(struct mo_span method, struct mo_err *e)
{
    if (mo_span_ieq(method, MO_SPAN("TRACE"))) /* the answer repeats headers */
        return mo_fail(e, MO_EPOLICY, "a TRACE request");
    if (mo_span_ieq(method, MO_SPAN("CONNECT")))
        return mo_fail(e, MO_EPOLICY, "a CONNECT request");
    return 0;
}

/* --- HTTP/1.1 ------------------------------------------------------------ */

static int check_head(const struct mo_http_edge *x,
                      const struct mo_http_head *h, struct mo_err *e)
{
    size_t hosts = 0;
    int rc = mo_http_edge_check_method(h->method_text, e);

    for (size_t i = 0; rc == 0 && i < h->nheaders; i++) {
        if (!mo_span_ieq(h->headers[i].name, MO_SPAN("host")))
            continue;
        hosts++;
        rc = mo_http_edge_check_host(x, h->headers[i].value, e);
    }
    if (rc == 0 && hosts != 1)
        rc = mo_fail(e, MO_EPOLICY, "a request that names no host, or two");
    return rc;
}

static void put_line(struct mo_buf *b, struct mo_span name,
                     struct mo_span value)
{
    mo_buf_span(b, name);
    mo_buf_puts(b, ": ");
    mo_buf_span(b, value);
    mo_buf_puts(b, "\r\n");
}

static void put_head(struct mo_http_edge *x, const struct mo_http_head *h,
                     struct mo_buf *b)
{
    mo_buf_span(b, h->method_text);
    mo_buf_putc(b, ' ');
    mo_buf_span(b, h->target);
    mo_buf_printf(b, " HTTP/1.%d\r\n", h->minor);
    for (size_t i = 0; i < h->nheaders; i++)
        if (!mo_http_edge_is_set(x, h->headers[i].name))
            put_line(b, h->headers[i].name, h->headers[i].value);
    for (size_t i = 0; i < x->o.n; i++)
        put_line(b, mo_span_cstr(x->o.headers[i].name), x->o.headers[i].value);
    mo_buf_puts(b, "\r\n");
    x->count++;
}

static void put_body(const struct mo_http_head *h, struct mo_span body,
                     struct mo_buf *b)
{
    if (h->chunked)
        mo_buf_printf(b, "%zx\r\n", body.n);
    mo_buf_span(b, body);
    if (h->chunked)
        mo_buf_puts(b, "\r\n");
}

static void end_request(struct mo_http_edge *x, struct mo_buf *b)
{
    const struct mo_http_head *h = mo_http1_head(x->http1);

    if (h->chunked)
        mo_buf_puts(b, "0\r\n\r\n");
    /* also without "Connection: upgrade": some hosts do not look at it */
    x->raw = mo_http_get(h, "upgrade").p != NULL;
    mo_http1_reset(x->http1);
}

static int feed_http1(struct mo_http_edge *x, struct mo_span in,
                      struct mo_buf *b, struct mo_err *e)
{
    struct mo_span body;
    int rc = 0;

    while (rc == 0 && !x->raw) {
        switch (mo_http1_next(x->http1, &in, &body, e)) {
        case MO_HTTP1_HEAD:
            rc = check_head(x, mo_http1_head(x->http1), e);
            if (rc == 0)
                put_head(x, mo_http1_head(x->http1), b);
            break;
        case MO_HTTP1_BODY:
            put_body(mo_http1_head(x->http1), body, b);
            break;
        case MO_HTTP1_DONE:
            end_request(x, b);
            break;
        case MO_HTTP1_MORE:
            return 0;
        case MO_HTTP1_ERROR:
            return e->code;
        }
    }
    if (rc == 0)
        mo_buf_span(b, in);
    return rc;
}

/* --- both ---------------------------------------------------------------- */

struct mo_http_edge *mo_http_edge_new(const struct mo_http_edge_opts *o)
{
    struct mo_http_edge *x = mo_new(struct mo_http_edge);

    if (!x)
        return NULL;
    x->o = *o;
    if (o->h2)
        x->http2 = mo_http2_edge_new(x);
    else
        x->http1 = mo_http1_new(MO_HTTP1_REQUEST);
    if (x->http1 || x->http2)
        return x;
    mo_http_edge_free(x);
    return NULL;
}

void mo_http_edge_free(struct mo_http_edge *x)
{
    if (!x)
        return;
    if (x->http1)
        mo_http1_free(x->http1);
    mo_http2_edge_free(x->http2);
    mo_free(x);
}

int mo_http_edge_feed(struct mo_http_edge *x, struct mo_span in,
                      struct mo_buf *out, struct mo_err *e)
{
    int rc;

    if (x->failed)
        return mo_fail(e, MO_EPROTO, "a request that is not valid");
    rc = x->http2 ? mo_http2_edge_feed(x->http2, in, out, e)
                  : feed_http1(x, in, out, e);

    if (rc == 0 && mo_buf_err(out))
        rc = mo_fail(e, mo_buf_err(out), "a request");
    x->failed = rc < 0;
    return rc;
}

uint64_t mo_http_edge_count(const struct mo_http_edge *x)
{
    return x->count;
}
