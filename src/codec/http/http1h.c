#include "codec/http/http1h.h"

#include <llhttp.h>

#include "base/mem.h"

/* The head being parsed. */
struct reader {
    struct mo_http_head *hd;
    struct mo_http_header *headers;
    struct mo_http1_refusal *no;
    unsigned hosts, lengths, codings;
    bool close, keep_alive, conn_upgrade, has_upgrade;
};

/* Visible ASCII except '#': a fragment is never sent. */
static const struct mo_http1_set target_bytes = {
    {['!' ... '"'] = true, ['$' ... '~'] = true},
};

/* Letters, digits and -._~:[]%!$&'()*+;= */
static const struct mo_http1_set host_bytes = {
    {['a' ... 'z'] = true,
     ['A' ... 'Z'] = true,
     ['0' ... ';'] = true,
     ['!'] = true,
     ['$' ... '+'] = true,
     ['-' ... '.'] = true,
     ['='] = true,
     ['['] = true,
     [']'] = true,
     ['_'] = true,
     ['~'] = true},
};

static int refuse(struct reader *r, int status, const char *why)
{
    r->no->status = status;
    r->no->why = why;
    return -1;
}

/* --- first line ---------------------------------------------------------- */

static const struct mo_span methods[] = {
    [MO_HTTP_GET] = {"GET", 3},         [MO_HTTP_HEAD] = {"HEAD", 4},
    [MO_HTTP_POST] = {"POST", 4},       [MO_HTTP_PUT] = {"PUT", 3},
    [MO_HTTP_PATCH] = {"PATCH", 5},     [MO_HTTP_DELETE] = {"DELETE", 6},
    [MO_HTTP_OPTIONS] = {"OPTIONS", 7}, [MO_HTTP_OTHER] = {"OTHER", 5},
};

static enum mo_http_method method_of(struct mo_span s)
{
    for (size_t i = MO_HTTP_OTHER + 1; i < MO_COUNT(methods); i++) {
        if (mo_span_eq(s, methods[i]))
            return (enum mo_http_method)i;
    }
    return MO_HTTP_OTHER;
}

const char *mo_http_method_name(enum mo_http_method m)
{
    return methods[(size_t)m < MO_COUNT(methods) ? m : MO_HTTP_OTHER].p;
}

/* Read "HTTP/d.d"; only 1.0 and 1.1 are accepted. */
static int read_version(struct reader *r, struct mo_span v)
{
    if (v.n != 8 || memcmp(v.p, "HTTP/", 5) != 0 || v.p[6] != '.')
        return refuse(r, 400, "bad protocol name");
    if (!mo_is_digit(v.p[5]) || !mo_is_digit(v.p[7]))
        return refuse(r, 400, "bad protocol version");
    if (v.p[5] != '1' || v.p[7] > '1')
        return refuse(r, 505, "HTTP version is not 1.0 or 1.1");
    r->hd->minor = v.p[7] - '0';
    return 0;
}

/* Origin-form, or "*" for OPTIONS. */
static int check_target(struct reader *r)
{
    struct mo_span t = r->hd->target;

    if (t.n > MO_HTTP_TARGET_MAX)
        return refuse(r, 414, "target too long");
    if (mo_span_is(t, "*") && r->hd->method == MO_HTTP_OPTIONS)
        return 0;
    if (t.n == 0 || t.p[0] != '/')
        return refuse(r, 400, "target is not a path");
    if (mo_http1_run(&target_bytes, t) != t.n)
        return refuse(r, 400, "bad byte in target");
    return 0;
}

static int read_request_line(struct reader *r, struct mo_span line)
{
    struct mo_http_head *hd = r->hd;

    hd->method_text = mo_span_cut(&line, ' ');
    hd->target = mo_span_cut(&line, ' ');
    if (!line.p || !mo_http_is_token(hd->method_text))
        return refuse(r, 400, "bad request line");
    if (read_version(r, line) < 0)
        return -1;
    if (mo_span_is(hd->method_text, "CONNECT"))
        return refuse(r, 501, "CONNECT is not offered");
    hd->method = method_of(hd->method_text);
    return check_target(r);
}

/* Some servers omit the blank after the code together with the reason. */
static int read_status_line(struct reader *r, struct mo_span line)
{
    struct mo_http_head *hd = r->hd;
    struct mo_span version = mo_span_cut(&line, ' ');
    struct mo_span code = mo_span_cut(&line, ' ');
    uint64_t v = 0;

    if (read_version(r, version) < 0)
        return -1;
    if (code.n != 3 || mo_span_u64(code, &v) < 0 || v < 100 || v > 599)
        return refuse(r, 400, "bad status code");
    hd->status = (int)v;
    hd->reason = line.p ? line : mo_span(code.p + code.n, 0);
    return mo_http1_is_text(hd->reason) ? 0
                                        : refuse(r, 400, "bad byte in reason");
}

/* --- header lines -------------------------------------------------------- */

/* Check the bytes of a reg-name, an IP literal and a port. The server decides
 * which hosts it serves. */
static int on_host(struct reader *r, struct mo_span v)
{
    if (r->hosts++)
        return refuse(r, 400, "two Host headers");
    if (mo_http1_run(&host_bytes, v) != v.n)
        return refuse(r, 400, "bad byte in Host");
    return 0;
}

static int on_length(struct reader *r, struct mo_span v)
{
    uint64_t n;

    if (r->lengths++)
        return refuse(r, 400, "two Content-Length headers");
    if (mo_span_u64(v, &n) < 0 || n > INT64_MAX)
        return refuse(r, 400, "bad Content-Length");
    r->hd->content_length = (int64_t)n;
    return 0;
}

static int on_coding(struct reader *r, struct mo_span v)
{
    if (r->codings++ || v.n == 0)
        return refuse(r, 400, "bad Transfer-Encoding");
    if (!mo_span_ieq(v, MO_SPAN("chunked")))
        return refuse(r, 501, "transfer coding is not chunked");
    r->hd->chunked = true;
    return 0;
}

static int on_connection(struct reader *r, struct mo_span v)
{
    while (v.p) {
        struct mo_span t = mo_span_trim(mo_span_cut(&v, ','));

        r->close |= mo_span_ieq(t, MO_SPAN("close"));
        r->keep_alive |= mo_span_ieq(t, MO_SPAN("keep-alive"));
        r->conn_upgrade |= mo_span_ieq(t, MO_SPAN("upgrade"));
    }
    return 0;
}

static int on_upgrade(struct reader *r, struct mo_span v)
{
    r->has_upgrade |= v.n > 0;
    return 0;
}

static int on_expect(struct reader *r, struct mo_span v)
{
    r->hd->expect_continue |= mo_span_ieq(v, MO_SPAN("100-continue"));
    return 0;
}

/* Headers that the parser handles, by length: no two are equally long. Lower
 * case. */
static const struct {
    const char *name;
    int (*on)(struct reader *r, struct mo_span value);
} known[] = {
    [4] = {"host", on_host},
    [6] = {"expect", on_expect},
    [7] = {"upgrade", on_upgrade},
    [10] = {"connection", on_connection},
    [14] = {"content-length", on_length},
    [17] = {"transfer-encoding", on_coding},
};

/* A token's byte with bit 5 set equals a lower-case letter or '-' only if the
 * byte is that letter in either case, or '-'. */
static bool same_name(const char *token, const char *small, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((token[i] | 0x20) != small[i])
            return false;
    }
    return true;
}

static int on_header(struct reader *r, const struct mo_http_header *x)
{
    size_t n = x->name.n;

    if (n >= MO_COUNT(known) || !known[n].on ||
        !same_name(x->name.p, known[n].name, n))
        return 0;
    return known[n].on(r, x->value);
}

/* llhttp checks the bytes of values. */
static int read_header(struct reader *r, struct mo_span line)
{
    struct mo_http_header *x = &r->headers[r->hd->nheaders++];
    size_t n = mo_http1_run(&mo_http1_token, line);

    if (n == 0 || n == line.n || line.p[n] != ':')
        return refuse(r, 400, "bad header name");
    x->name = mo_span(line.p, n);
    n += n + 1 < line.n && line.p[n + 1] == ' ' ? 2 : 1; /* the usual blank */
    x->value = mo_span_trim(mo_span(line.p + n, line.n - n));
    return on_header(r, x);
}

/* --- the head as a whole ------------------------------------------------- */

bool mo_http1_bodiless(int status)
{
    return status < 200 || status == 204 || status == 304;
}

static int check_request(struct reader *r)
{
    struct mo_http_head *hd = r->hd;

    if (hd->minor == 1 && r->hosts == 0)
        return refuse(r, 400, "no Host header");
    hd->upgrade = r->conn_upgrade && r->has_upgrade && hd->minor == 1;
    hd->expect_continue = hd->expect_continue && hd->minor == 1;
    return 0;
}

/* 304 may carry the length of the cached body; 1xx and 204 may not. */
static int check_response(struct reader *r)
{
    struct mo_http_head *hd = r->hd;
    bool framed = hd->chunked || hd->content_length > 0;

    if (framed && (hd->status < 200 || hd->status == 204))
        return refuse(r, 400, "a body where none may be");
    hd->upgrade = r->conn_upgrade && r->has_upgrade && hd->status == 101;
    hd->expect_continue = false;
    if (hd->status == 101)
        hd->keep_alive = false;
    return 0;
}

static int check_framing(struct reader *r)
{
    struct mo_http_head *hd = r->hd;

    if (hd->chunked && r->lengths)
        return refuse(r, 400, "Content-Length and Transfer-Encoding");
    if (hd->chunked && hd->minor == 0)
        return refuse(r, 400, "Transfer-Encoding in HTTP/1.0");
    hd->keep_alive = !r->close && (hd->minor == 1 || r->keep_alive);
    return hd->status ? check_response(r) : check_request(r);
}

/* guard() made sure that every LF follows a CR; checking that an LF follows
 * every CR makes lines unambiguous. */
static int cut_line(struct reader *r, struct mo_span *s, struct mo_span *line)
{
    const char *cr = memchr(s->p, '\r', s->n);
    size_t n = cr ? (size_t)(cr - s->p) : s->n;

    if (!cr || n + 1 >= s->n || cr[1] != '\n')
        return refuse(r, 400, "CR without LF");
    *line = mo_span(s->p, n);
    *s = mo_span(cr + 2, s->n - n - 2);
    return 0;
}

static int read_lines(struct reader *r, enum mo_http1_kind kind,
                      struct mo_span s)
{
    struct mo_span line;
    int rc = cut_line(r, &s, &line);

    if (rc == 0)
        rc = kind == MO_HTTP1_REQUEST ? read_request_line(r, line)
                                      : read_status_line(r, line);
    while (rc == 0 && s.n > 2) {
        rc = cut_line(r, &s, &line);
        if (rc == 0)
            rc = read_header(r, line);
    }
    return rc < 0 ? rc : check_framing(r);
}

/* --- llhttp's opinion ---------------------------------------------------- */

/* Stops before the body, which http1.c counts. */
static int on_complete(llhttp_t *p)
{
    *(bool *)p->data = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {.on_headers_complete = on_complete};

static bool same_framing(const struct mo_http_head *hd, const llhttp_t *p)
{
    bool length = (p->flags & F_CONTENT_LENGTH) != 0;

    if (hd->chunked != ((p->flags & F_CHUNKED) != 0))
        return false;
    if ((hd->content_length >= 0) != length)
        return false;
    return !length || p->content_length == (uint64_t)hd->content_length;
}

static bool same_head(const struct mo_http_head *hd, const llhttp_t *p)
{
    if (p->http_major != 1 || p->http_minor != hd->minor)
        return false;
    if (hd->status)
        return p->status_code == hd->status;
    return mo_span_is(hd->method_text,
                      llhttp_method_name((llhttp_method_t)p->method));
}

static int confirm(struct reader *r, enum mo_http1_kind kind, struct mo_span s)
{
    bool complete = false;
    llhttp_errno_t rc;
    llhttp_t p;

    llhttp_init(&p, kind == MO_HTTP1_REQUEST ? HTTP_REQUEST : HTTP_RESPONSE,
                &settings);
    p.data = &complete;
    rc = llhttp_execute(&p, s.p, s.n);
    if (rc == HPE_INVALID_METHOD)
        return refuse(r, 501, "unknown method");
    if (rc != HPE_PAUSED || !complete)
        return refuse(r, 400, llhttp_errno_name(rc));
    if (!same_head(r->hd, &p) || !same_framing(r->hd, &p))
        return refuse(r, 400, "ambiguous head");
    return 0;
}

int mo_http1_read_head(enum mo_http1_kind kind, struct mo_span s,
                       struct mo_http_head *hd, struct mo_http_header *headers,
                       struct mo_http1_refusal *no)
{
    struct reader r = {.hd = hd, .headers = headers, .no = no};

    *hd = (struct mo_http_head){.headers = headers, .content_length = -1};
    if (read_lines(&r, kind, s) < 0)
        return -1;
    return confirm(&r, kind, s);
}
