/* http1w.c - the writer of http1.h, and its tables. */
#include "codec/http/http1.h"

#include "base/mem.h"
#include "codec/http/http1h.h"

static const char *const reasons[] = {
    [100] = "Continue",
    [101] = "Switching Protocols",
    [200] = "OK",
    [201] = "Created",
    [202] = "Accepted",
    [204] = "No Content",
    [206] = "Partial Content",
    [301] = "Moved Permanently",
    [302] = "Found",
    [303] = "See Other",
    [304] = "Not Modified",
    [307] = "Temporary Redirect",
    [308] = "Permanent Redirect",
    [400] = "Bad Request",
    [401] = "Unauthorized",
    [403] = "Forbidden",
    [404] = "Not Found",
    [405] = "Method Not Allowed",
    [406] = "Not Acceptable",
    [408] = "Request Timeout",
    [409] = "Conflict",
    [410] = "Gone",
    [411] = "Length Required",
    [412] = "Precondition Failed",
    [413] = "Content Too Large",
    [414] = "URI Too Long",
    [415] = "Unsupported Media Type",
    [416] = "Range Not Satisfiable",
    [417] = "Expectation Failed",
    [421] = "Misdirected Request",
    [422] = "Unprocessable Content",
    [426] = "Upgrade Required",
    [428] = "Precondition Required",
    [429] = "Too Many Requests",
    [431] = "Request Header Fields Too Large",
    [500] = "Internal Server Error",
    [501] = "Not Implemented",
    [502] = "Bad Gateway",
    [503] = "Service Unavailable",
    [504] = "Gateway Timeout",
    [505] = "HTTP Version Not Supported",
    [507] = "Insufficient Storage",
};

const char *mo_http_reason(int status)
{
    if (status < 0 || (size_t)status >= MO_COUNT(reasons) || !reasons[status])
        return "Unknown";
    return reasons[status];
}

/* Letters, digits and !#$%&'*+-.^_`|~ */
const struct mo_http1_set mo_http1_token = {
    {['a' ... 'z'] = true,
     ['A' ... 'Z'] = true,
     ['0' ... '9'] = true,
     ['!'] = true,
     ['#' ... '\''] = true,
     ['*' ... '+'] = true,
     ['-' ... '.'] = true,
     ['^' ... '`'] = true,
     ['|'] = true,
     ['~'] = true},
};

bool mo_http_is_token(struct mo_span s)
{
    return s.n && mo_http1_run(&mo_http1_token, s) == s.n;
}

struct mo_span mo_http_get(const struct mo_http_head *h, const char *name)
{
    struct mo_span want = mo_span_cstr(name);

    for (size_t i = 0; i < h->nheaders; i++) {
        struct mo_span has = h->headers[i].name;

        /* the first letter before the call: many names are equally long */
        if (has.n == want.n && mo_lower(has.p[0]) == mo_lower(want.p[0]) &&
            mo_span_ieq(has, want))
            return h->headers[i].value;
    }
    return mo_span(NULL, 0);
}

static bool list_has(struct mo_span list, struct mo_span token)
{
    while (list.p) {
        if (mo_span_ieq(mo_span_trim(mo_span_cut(&list, ',')), token))
            return true;
    }
    return false;
}

bool mo_http_has_token(const struct mo_http_head *h, const char *name,
                       const char *token)
{
    struct mo_span want = mo_span_cstr(name);

    for (size_t i = 0; i < h->nheaders; i++) {
        if (mo_span_ieq(h->headers[i].name, want) &&
            list_has(h->headers[i].value, mo_span_cstr(token)))
            return true;
    }
    return false;
}

bool mo_http_is_type(const struct mo_http_head *h, const char *type)
{
    struct mo_span v = mo_http_get(h, "content-type");

    return mo_span_ieq(mo_span_trim(mo_span_cut(&v, ';')), mo_span_cstr(type));
}

/* --- writers ------------------------------------------------------------- */

static char *append_span(char *at, struct mo_span s)
{
    if (s.n)
        memcpy(at, s.p, s.n);
    return at + s.n;
}

int mo_http1_put_request(struct mo_buf *b, const char *method,
                         struct mo_span target)
{
    if (!mo_http_is_token(mo_span_cstr(method)) || target.n == 0)
        return mo_buf_fail(b, MO_EINVAL);
    for (size_t i = 0; i < target.n; i++) {
        if (target.p[i] <= ' ' || target.p[i] >= 0x7f)
            return mo_buf_fail(b, MO_EINVAL);
    }
    mo_buf_puts(b, method);
    mo_buf_putc(b, ' ');
    mo_buf_span(b, target);
    return mo_buf_span(b, MO_SPAN(" HTTP/1.1\r\n"));
}

int mo_http1_put_status(struct mo_buf *b, int status)
{
    struct mo_span reason = mo_span_cstr(mo_http_reason(status));
    size_t n = sizeof("HTTP/1.1 200 \r\n") - 1 + reason.n;
    char *at;

    if (status < 100 || status > 599)
        return mo_buf_fail(b, MO_EINVAL);
    at = mo_buf_room(b, n);
    if (!at)
        return mo_buf_err(b);
    at = append_span(at, MO_SPAN("HTTP/1.1 "));
    *at++ = (char)('0' + status / 100);
    *at++ = (char)('0' + status / 10 % 10);
    *at++ = (char)('0' + status % 10);
    *at++ = ' ';
    at = append_span(at, reason);
    (void)append_span(at, MO_SPAN("\r\n"));
    mo_buf_add(b, n);
    return 0;
}

bool mo_http1_is_text(struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

int mo_http1_put_header(struct mo_buf *b, const char *name,
                        struct mo_span value)
{
    struct mo_span nm = mo_span_cstr(name);
    char *at;

    if (!mo_http_is_token(nm) || !mo_http1_is_text(value))
        return mo_buf_fail(b, MO_EINVAL);
    at = mo_buf_room(b, nm.n + value.n + 4);
    if (!at)
        return mo_buf_err(b);
    at = append_span(at, nm);
    at = append_span(at, MO_SPAN(": "));
    at = append_span(at, value);
    (void)append_span(at, MO_SPAN("\r\n"));
    mo_buf_add(b, nm.n + value.n + 4);
    return 0;
}

int mo_http1_put_end(struct mo_buf *b)
{
    return mo_buf_span(b, MO_SPAN("\r\n"));
}
