/* httpc_request.c - one HTTPS request: options, answer, errors. */
#include <stdio.h>

#include "loop/httpc_priv.h"

#define HEAD_MAX ((size_t)64 * 1024)
#define HEADER_MAX                                                             \
    ((size_t)16 * 1024) /* one request header, name and value                  \
                         */
#define PROTOCOLS  "http,https"
#define USER_AGENT "mcp-orchestrator/" MO_VERSION

void mo_httpc_x_move(struct mo_httpc_x *x, enum httpc_state to)
{
    static const unsigned legal[] = {
        [HX_WAITING] = MO_TO(HX_RUNNING) | MO_TO(HX_ENDED),
        [HX_RUNNING] = MO_TO(HX_ENDED),
        [HX_ENDED] = 0,
    };

    MO_MOVE(x->state, to, legal);
}

/* --- end of the request -------------------------------------------------- */

void mo_httpc_x_end(struct mo_httpc_x *x, const struct mo_err *why)
{
    if (x->state == HX_ENDED)
        return;
    if (x->state == HX_WAITING) {
        x->c->nwaiting--;
        mo_list_del(&x->node);
        mo_list_push(&x->c->busy, &x->node);
    }
    mo_httpc_x_move(x, HX_ENDED);
    if (why)
        x->err = *why;
    mo_timer_stop(x->c->loop, &x->total);
    mo_timer_stop(x->c->loop, &x->idle);
    mo_later_cancel(&x->wake);
    mo_loop_defer(x->c->loop, &x->later);
}

void mo_httpc_cancel(struct mo_httpc_x *x)
{
    mo_httpc_x_end(
        x, mo_error(MO_ECANCELED, "request to %s: canceled", x->origin));
}

static void on_total(struct mo_timer *t)
{
    struct mo_httpc_x *x = mo_container_of(t, struct mo_httpc_x, total);

    mo_httpc_x_end(x, mo_error(MO_ETIMEOUT,
                               "%s did not answer within the time limit",
                               x->origin));
}

void mo_httpc_x_idle_start(struct mo_httpc_x *x)
{
    if (x->idle_ms != MO_HTTP_FOREVER && !x->paused && x->state == HX_RUNNING)
        mo_timer_start(x->c->loop, &x->idle, x->idle_ms);
}

/* Not idle while the peer is still taking the request. */
static void on_idle(struct mo_timer *t)
{
    struct mo_httpc_x *x = mo_container_of(t, struct mo_httpc_x, idle);
    curl_off_t sent = 0;

    (void)x->c->f.curl_easy_getinfo(x->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    if (sent > x->sent) {
        x->sent = sent;
        mo_httpc_x_idle_start(x);
        return;
    }
    mo_httpc_x_end(x, mo_error(MO_ETIMEOUT, "%s sent nothing for %u ms",
                               x->origin, x->idle_ms));
}

static void end_with(struct mo_httpc_x *x, int code, const char *what)
{
    mo_httpc_x_end(x, mo_error(code, "%s: %s", x->origin, what));
}

void mo_httpc_x_bar(struct mo_httpc_x *x)
{
    end_with(x, MO_EPOLICY, "is at a private address");
}

/* Message: "before ORIGIN after: detail". */
static const struct verdict {
    CURLcode rc;
    int code;
    const char *before, *after;
    bool detail; /* append libcurl's text */
} verdicts[] = {
    {CURLE_URL_MALFORMAT, MO_EINVAL, "not a URL: ", "", false},
    {CURLE_UNSUPPORTED_PROTOCOL, MO_EPROTO, "", " does not speak HTTP", true},
    {CURLE_WEIRD_SERVER_REPLY, MO_EPROTO, "", " does not speak HTTP", true},
    {CURLE_COULDNT_RESOLVE_PROXY, MO_EUNAVAIL, "cannot reach ",
     ": the proxy's name is unknown; check HTTPS_PROXY", false},
    {CURLE_PROXY, MO_EUNAVAIL, "cannot reach ", ": the proxy refused", true},
    {CURLE_COULDNT_RESOLVE_HOST, MO_EUNAVAIL, "cannot connect to ",
     ": the name is unknown; check the URL and DNS", false},
    {CURLE_COULDNT_CONNECT, MO_EUNAVAIL, "cannot connect to ", "", true},
    {CURLE_OPERATION_TIMEDOUT, MO_ETIMEOUT, "cannot connect to ", " in time",
     false},
    {CURLE_PEER_FAILED_VERIFICATION, MO_ETLS, "certificate of ", " refused",
     true},
    {CURLE_SSL_CACERT_BADFILE, MO_ETLS, "cannot check ", "", true},
    {CURLE_SSL_CONNECT_ERROR, MO_ETLS, "TLS handshake with ", "", true},
    {CURLE_PARTIAL_FILE, MO_ECLOSED, "", " closed in the middle of its answer",
     false},
    {CURLE_GOT_NOTHING, MO_ECLOSED, "", " closed without an answer", false},
    {CURLE_SEND_ERROR, MO_ECLOSED, "",
     " closed the connection during the request", true},
    {CURLE_RECV_ERROR, MO_ECLOSED, "",
     " closed the connection during its answer", true},
    {CURLE_FILESIZE_EXCEEDED, MO_ETOOBIG, "answer of ", " is too big", false},
    {CURLE_OUT_OF_MEMORY, MO_ENOMEM, "request to ", ": no memory", false},
    {CURLE_HTTP2, MO_EPROTO, "HTTP/2 with ", "", true},
    {CURLE_HTTP2_STREAM, MO_EPROTO, "HTTP/2 with ", "", true},
    {CURLE_BAD_CONTENT_ENCODING, MO_EPROTO, "answer of ",
     " is badly compressed", true},
};

/* libcurl's text, or the kernel's if a system call failed. */
static const char *verdict_detail(struct mo_httpc_x *x, CURLcode rc, long sys)
{
    if (rc == CURLE_COULDNT_CONNECT && sys)
        return strerror((int)sys);
    return x->curl_err[0] ? x->curl_err : x->c->f.curl_easy_strerror(rc);
}

void mo_httpc_x_verdict(struct mo_httpc_x *x, CURLcode rc)
{
    static const struct verdict other = {0, MO_EIO, "request to ", "", true};
    const struct verdict *v = &other;
    struct mo_err e;
    long sys = 0;

    if (rc == CURLE_OK) {
        mo_httpc_x_end(x, NULL);
        return;
    }
    for (size_t i = 0; i < MO_COUNT(verdicts); i++)
        if (verdicts[i].rc == rc)
            v = &verdicts[i];
    if (x->barred && rc == CURLE_COULDNT_CONNECT) {
        mo_httpc_x_bar(x);
        return;
    }
    (void)x->c->f.curl_easy_getinfo(x->easy, CURLINFO_OS_ERRNO, &sys);
    (void)mo_fail(&e, v->code, "%s%s%s%s%.100s", v->before, x->origin, v->after,
                  v->detail ? ": " : "",
                  v->detail ? verdict_detail(x, rc, sys) : "");
    e.sys = (int)sys;
    mo_httpc_x_end(x, &e);
}

/* --- the answer ---------------------------------------------------------- */

/* Split the collected lines into headers; false if there are too many. */
static bool split_head(struct mo_span lines, struct mo_http_header *h,
                       size_t *n)
{
    while (lines.p) {
        struct mo_span line = mo_span_cut(&lines, '\n');
        ptrdiff_t colon = mo_span_find(line, ':');

        if (colon <= 0)
            continue; /* the empty line */
        if (*n == MO_HTTP_HEADERS_MAX)
            return false;
        if (line.p[line.n - 1] == '\r')
            line.n--;
        h[*n].name = mo_span_head(line, (size_t)colon);
        h[*n].value = mo_span_trim(mo_span_skip(line, (size_t)colon + 1));
        (*n)++;
    }
    return true;
}

static void call_on_head(struct mo_httpc_x *x, int status)
{
    struct mo_http_header h[MO_HTTP_HEADERS_MAX];
    struct mo_http_head head = {
        .status = status, .minor = 1, .headers = h, .content_length = -1};
    struct mo_span len;
    uint64_t v;

    x->head_done = true;
    if (!split_head(mo_buf_view(&x->head), h, &head.nheaders)) {
        end_with(x, MO_ETOOBIG, "too many headers");
        return;
    }
    len = mo_http_get(&head, "content-length");
    if (len.p && mo_span_u64(len, &v) == 0 && v <= INT64_MAX)
        head.content_length = (int64_t)v;
    head.chunked = mo_http_has_token(&head, "transfer-encoding", "chunked");
    if (x->cb->on_head)
        x->cb->on_head(x->ctx, &head);
    mo_buf_fini(&x->head);
}

/* libcurl passes one header line per call; the empty line ends the head.
 * Interim answers (1xx) have heads of their own, and trailers come after the
 * body: both are dropped. */
static size_t on_header(char *p, size_t one, size_t n, void *ctx)
{
    struct mo_httpc_x *x = ctx;
    struct mo_span line = mo_span(p, one * n);
    long status = 0;

    if (x->state == HX_ENDED)
        return 0;
    mo_httpc_x_idle_start(x);
    if (x->head_done)
        return line.n;
    if (mo_span_starts(line, MO_SPAN("HTTP/")))
        mo_buf_reset(&x->head);
    if (mo_buf_span(&x->head, line) < 0) {
        end_with(x, mo_buf_err(&x->head), "head of the answer is too big");
        return 0;
    }
    if (!mo_span_is(line, "\r\n") && !mo_span_is(line, "\n"))
        return line.n;
    (void)x->c->f.curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200)
        call_on_head(x, (int)status);
    return x->state == HX_ENDED ? 0 : line.n;
}

static size_t on_body(char *p, size_t one, size_t n, void *ctx)
{
    struct mo_httpc_x *x = ctx;
    struct mo_span data = mo_span(p, one * n);

    if (x->state == HX_ENDED)
        return 0;
    if (x->paused)
        return CURL_WRITEFUNC_PAUSE; /* delivered again on resume */
    mo_httpc_x_idle_start(x);
    x->got += data.n;
    if (x->got > x->max_bytes) {
        end_with(x, MO_ETOOBIG, "answer is too big");
        return 0;
    }
    if (data.n && x->cb->on_data)
        x->cb->on_data(x->ctx, data);
    return x->state == HX_ENDED ? 0 : data.n;
}

void mo_httpc_pause(struct mo_httpc_x *x)
{
    x->paused = true;
    mo_timer_stop(x->c->loop, &x->idle);
    mo_later_cancel(&x->wake);
}

void mo_httpc_resume(struct mo_httpc_x *x)
{
    if (!x->paused)
        return;
    x->paused = false;
    mo_httpc_x_idle_start(x);
    if (x->state == HX_RUNNING)
        mo_loop_defer(x->c->loop, &x->wake);
}

/* libcurl may deliver data from inside this call. */
static void on_wake(struct mo_later *d)
{
    struct mo_httpc_x *x = mo_container_of(d, struct mo_httpc_x, wake);

    (void)x->c->f.curl_easy_pause(x->easy, CURLPAUSE_CONT);
}

/* --- the request --------------------------------------------------------- */

/* Typed setters, because the variadic call is not type-checked. Every failure
 * means: no memory, or a libcurl without the option. */
static void set_long(struct mo_httpc_x *x, CURLoption o, long v, bool *ok)
{
    *ok &= x->c->f.curl_easy_setopt(x->easy, o, v) == CURLE_OK;
}

static void set_size(struct mo_httpc_x *x, CURLoption o, curl_off_t v, bool *ok)
{
    *ok &= x->c->f.curl_easy_setopt(x->easy, o, v) == CURLE_OK;
}

static void set_text(struct mo_httpc_x *x, CURLoption o, const char *v,
                     bool *ok)
{
    *ok &= x->c->f.curl_easy_setopt(x->easy, o, v) == CURLE_OK;
}

static void set_data(struct mo_httpc_x *x, CURLoption o, void *v, bool *ok)
{
    *ok &= x->c->f.curl_easy_setopt(x->easy, o, v) == CURLE_OK;
}

static void set_sink(struct mo_httpc_x *x, CURLoption o,
                     size_t (*fn)(char *, size_t, size_t, void *), bool *ok)
{
    *ok &= x->c->f.curl_easy_setopt(x->easy, o, fn) == CURLE_OK;
}

static bool set_rules(struct mo_httpc_x *x)
{
    bool ok = true;

    set_text(x, CURLOPT_PROTOCOLS_STR, PROTOCOLS, &ok);
    set_text(x, CURLOPT_REDIR_PROTOCOLS_STR, PROTOCOLS, &ok);
    set_long(x, CURLOPT_FOLLOWLOCATION, 0, &ok);
    set_long(x, CURLOPT_NETRC, CURL_NETRC_IGNORED, &ok);
    set_long(x, CURLOPT_SSL_VERIFYPEER, 1, &ok);
    set_long(x, CURLOPT_SSL_VERIFYHOST, 2, &ok);
    set_long(x, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2, &ok);
    set_long(x, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS, &ok);
    set_long(x, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1, &ok);
    set_long(x, CURLOPT_NOSIGNAL, 1, &ok);
    set_long(x, CURLOPT_TCP_KEEPALIVE, 1, &ok);
    /* without it, ending a request blocks the loop on its DNS thread */
    set_long(x, CURLOPT_QUICK_EXIT, 1, &ok);
    set_text(x, CURLOPT_USERAGENT, USER_AGENT, &ok);
    if (x->c->ca)
        set_text(x, CURLOPT_CAINFO, x->c->ca, &ok);
    if (x->c->gzip)
        set_text(x, CURLOPT_ACCEPT_ENCODING, "gzip, deflate", &ok);
    set_data(x, CURLOPT_PRIVATE, x, &ok);
    set_data(x, CURLOPT_ERRORBUFFER, x->curl_err, &ok);
    set_sink(x, CURLOPT_HEADERFUNCTION, on_header, &ok);
    set_data(x, CURLOPT_HEADERDATA, x, &ok);
    set_sink(x, CURLOPT_WRITEFUNCTION, on_body, &ok);
    set_data(x, CURLOPT_WRITEDATA, x, &ok);
    return ok;
}

static bool set_call(struct mo_httpc_x *x, const struct mo_http_call *c)
{
    const char *method = c->method ? c->method : "GET";
    bool ok = true;

    set_text(x, CURLOPT_URL, c->url, &ok);
    set_long(x, CURLOPT_CONNECTTIMEOUT_MS,
             (long)(c->connect_ms ? c->connect_ms : MO_HTTP_CONNECT_MS), &ok);
    if (c->body.p || strcmp(method, "POST") == 0) {
        set_size(x, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body.n, &ok);
        set_text(x, CURLOPT_COPYPOSTFIELDS, c->body.n ? c->body.p : "", &ok);
    } else if (strcmp(method, "HEAD") == 0) {
        set_long(x, CURLOPT_NOBODY, 1, &ok);
    }
    set_text(x, CURLOPT_CUSTOMREQUEST, method, &ok);
    return ok && mo_httpc_x_route(x, c->url, c->public_only);
}

static bool add_line(struct mo_httpc_x *x, const char *line)
{
    struct curl_slist *l = x->c->f.curl_slist_append(x->headers, line);

    if (l)
        x->headers = l;
    return l != NULL;
}

/* 0, MO_EINVAL or MO_ENOMEM. libcurl sends "Name:" for "Name;". */
static int add_header(struct mo_httpc_x *x, const struct mo_http_header *h)
{
    mo_autowipe struct mo_buf line = {.max = HEADER_MAX}; /* may be a key */

    if (!mo_http_is_token(h->name))
        return MO_EINVAL;
    for (size_t i = 0; i < h->value.n; i++)
        if ((unsigned char)h->value.p[i] < ' ' && h->value.p[i] != '\t')
            return MO_EINVAL;
    mo_buf_span(&line, h->name);
    mo_buf_puts(&line, h->value.n ? ": " : ";");
    mo_buf_span(&line, h->value);
    if (mo_buf_err(&line))
        return mo_buf_err(&line);
    return add_line(x, mo_buf_cstr(&line)) ? 0 : MO_ENOMEM;
}

static int set_headers(struct mo_httpc_x *x, const struct mo_http_call *c)
{
    bool typed = false, ok = true;
    int rc;

    for (size_t i = 0; i < c->nheaders; i++) {
        rc = add_header(x, &c->headers[i]);
        if (rc < 0)
            return rc;
        typed |= mo_span_ieq(c->headers[i].name, MO_SPAN("content-type"));
    }
    /* No form type unless the caller sets one, and no wait for 100. */
    if ((!typed && !add_line(x, "Content-Type:")) || !add_line(x, "Expect:"))
        return MO_ENOMEM;
    set_data(x, CURLOPT_HTTPHEADER, x->headers, &ok);
    return ok ? 0 : MO_ENOMEM;
}

/* scheme://host:port without user, path and query. */
static void put_origin(struct mo_httpc_x *x, const char *url)
{
    struct mo_span s = mo_span_cstr(url);
    ptrdiff_t at = mo_span_search(s, MO_SPAN("://"));
    size_t scheme = at < 0 ? 0 : (size_t)at + 3;
    struct mo_span host = mo_span_skip(s, scheme);

    host.n = strcspn(host.p, "/?#\\");
    at = mo_span_find(host, '@');
    while (at >= 0) {
        host = mo_span_skip(host, (size_t)at + 1);
        at = mo_span_find(host, '@');
    }
    (void)snprintf(x->origin, sizeof(x->origin), "%.*s%.*s",
                   (int)(scheme < 16 ? scheme : 0), url, (int)host.n, host.p);
}

static int prepare_request(struct mo_httpc_x *x,
                           const struct mo_http_call *call, struct mo_err *e)
{
    int rc;

    x->easy = x->c->f.curl_easy_init();
    if (!x->easy || !set_rules(x) || !set_call(x, call))
        return mo_fail(e, MO_ENOMEM, "request to %s", x->origin);
    rc = set_headers(x, call);
    if (rc == MO_EINVAL)
        return mo_fail(e, rc, "request to %s: bad header", x->origin);
    return rc < 0 ? mo_fail(e, rc, "request to %s", x->origin) : 0;
}

static int check_call(const struct mo_http_call *c, struct mo_err *e)
{
    struct mo_span url = mo_span_cstr(c->url);
    ptrdiff_t end = mo_span_search(url, MO_SPAN("://"));
    struct mo_span scheme = mo_span_head(url, end < 0 ? 0 : (size_t)end);

    if (c->method && !mo_http_is_token(mo_span_cstr(c->method)))
        return mo_fail(e, MO_EINVAL, "not an HTTP method");
    if (!mo_span_ieq(scheme, MO_SPAN("https")) &&
        !mo_span_ieq(scheme, MO_SPAN("http")))
        return mo_fail(e, MO_EINVAL, "a URL starts with https:// or http://");
    return 0;
}

struct mo_httpc_x *mo_httpc_x_new(struct mo_httpc *c,
                                  const struct mo_http_call *call,
                                  struct mo_err *e)
{
    struct mo_httpc_x *x;

    if (check_call(call, e) < 0)
        return NULL;
    x = mo_new(struct mo_httpc_x);
    if (!x)
        return mo_null(mo_fail(e, MO_ENOMEM, "request"));
    x->c = c;
    mo_buf_init(&x->head, HEAD_MAX);
    put_origin(x, call->url);
    if (prepare_request(x, call, e) < 0) {
        mo_httpc_x_free(x);
        return NULL;
    }
    x->idle_ms = call->idle_ms ? call->idle_ms : MO_HTTP_IDLE_MS;
    x->max_bytes = call->max_bytes ? call->max_bytes : MO_HTTP_BYTES_MAX;
    mo_timer_init(&x->total, on_total);
    mo_timer_init(&x->idle, on_idle);
    mo_later_init(&x->wake, on_wake);
    return x;
}

void mo_httpc_x_free(struct mo_httpc_x *x)
{
    x->c->f.curl_easy_cleanup(x->easy);
    for (struct curl_slist *h = x->headers; h; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    x->c->f.curl_slist_free_all(x->headers);
    mo_buf_fini(&x->head);
    mo_free(x);
}
