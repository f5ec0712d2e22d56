/* link_http_req.c - headers of a request.
 *
 * The owner's headers, the protocol version, the session, and in the modern era
 * a copy of method, name and marked arguments, so that a proxy need not read
 * the body. */
#include <stdio.h>

#include "codec/text/base64.h"
#include "mcp/link/link_http_priv.h"

#define HEADERS_MAX MO_HTTP_HEADERS_MAX

/* --- header values ------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_plain(struct mo_span v)
{
    if (v.n && (is_blank(v.p[0]) || is_blank(v.p[v.n - 1])))
        return false;
    for (size_t i = 0; i < v.n; i++) {
        if ((v.p[i] < 0x20 || v.p[i] > 0x7E) && v.p[i] != '\t')
            return false;
    }
    return !(mo_span_starts(v, MO_SPAN("=?base64?")) &&
             mo_span_ends(v, MO_SPAN("?=")));
}

int mo_link_http_value(struct mo_buf *b, struct mo_span value)
{
    if (is_plain(value))
        return mo_buf_span(b, value);
    mo_buf_puts(b, "=?base64?");
    mo_base64_put(b, value);
    return mo_buf_puts(b, "?=");
}

/* --- the owner's headers ------------------------------------------------- */

static const struct mo_http_header *find_header(const struct mo_http_header *v,
                                                size_t n, struct mo_span name)
{
    while (n && !mo_span_ieq(v[n - 1].name, name))
        n--;
    return n ? &v[n - 1] : NULL;
}

struct mo_http_header *mo_link_http_copy_opts(const struct mo_link_http_opts *o,
                                              struct mo_arena *a,
                                              struct mo_link_http_opts *to)
{
    struct mo_http_header *v =
        mo_arena_zalloc(a, (o->nheaders + MO_LINK_HTTP_MORE) * sizeof(*v));

    *to = *o;
    to->nheaders = 0;
    to->headers = v;
    to->url = mo_arena_strndup(a, o->url, strlen(o->url));
    to->message_max = o->message_max ? o->message_max : MO_LINK_LINE_MAX;
    to->streams = o->streams ? o->streams : MO_LINK_HTTP_STREAMS;
    if (!to->url || !v)
        return NULL;
    for (size_t i = 0; i < o->nheaders; i++) {
        struct mo_http_header h = o->headers[i];
        const struct mo_http_header *old = find_header(v, to->nheaders, h.name);

        if (mo_arena_span(a, h.name, &h.name) < 0 ||
            mo_arena_span(a, h.value, &h.value) < 0)
            return NULL;
        v[old ? (size_t)(old - v) : to->nheaders++] = h;
    }
    return v;
}

/* --- building a request -------------------------------------------------- */

/* The first error stays in x->bad. */
static void add_header(struct xchg *x, const char *name, struct mo_span value)
{
    char *n = mo_arena_strndup(&x->a, name, strlen(name));
    char *v = mo_arena_strndup(&x->a, value.p, value.n);

    if (!x->bad && (!n || !v))
        x->bad = MO_ENOMEM;
    else if (!x->bad && x->nheaders == HEADERS_MAX)
        x->bad = MO_ETOOBIG;
    if (!x->bad)
        x->headers[x->nheaders++] =
            (struct mo_http_header){mo_span_cstr(n), mo_span(v, value.n)};
}

static void add_encoded_header(struct xchg *x, const char *name,
                               struct mo_span value)
{
    mo_autobuf struct mo_buf b = {.max = MO_HTTP_HEAD_MAX};
    int rc = mo_link_http_value(&b, value);

    if (!x->bad)
        x->bad = rc;
    add_header(x, name, mo_buf_view(&b));
}

int mo_link_http_build_bare(struct xchg *x, const char *version)
{
    struct http *h = x->h;

    mo_arena_reset(&x->a);
    x->text = mo_span(NULL, 0);
    x->headers =
        mo_arena_zalloc(&x->a, HEADERS_MAX * sizeof(struct mo_http_header));
    x->bad = x->headers ? 0 : MO_ENOMEM;
    if (x->bad)
        return x->bad;
    memcpy(x->headers, h->o.headers, h->o.nheaders * sizeof(*x->headers));
    x->nheaders = h->o.nheaders;
    if (version && version[0])
        add_header(x, "MCP-Protocol-Version", mo_span_cstr(version));
    if (h->session[0] && !x->modern)
        add_header(x, "Mcp-Session-Id", mo_span_cstr(h->session));
    return x->bad;
}

static void add_params(struct xchg *x, const struct mo_link_msg *m)
{
    char name[128];

    if (m->nparams > MO_LINK_HTTP_PARAMS)
        x->bad = MO_ETOOBIG;
    for (size_t i = 0; i < m->nparams && !x->bad; i++) {
        if (m->params[i].name.n > 100)
            x->bad = MO_ETOOBIG;
        (void)snprintf(name, sizeof(name), "Mcp-Param-%.*s",
                       (int)m->params[i].name.n, m->params[i].name.p);
        add_encoded_header(x, name, m->params[i].value);
    }
}

static void add_trace(struct xchg *x, const struct mo_trace *t)
{
    for (size_t i = 0; i < MO_TRACE_KEYS; i++) {
        const char *name = mo_trace_name((enum mo_trace_key)i);

        /* a header set by the operator is not replaced */
        if (t->v[i].n &&
            !find_header(x->h->o.headers, x->h->o.nheaders, mo_span_cstr(name)))
            add_header(x, name, t->v[i]);
    }
}

int mo_link_http_build_post(struct xchg *x, const struct mo_link_msg *m)
{
    if (mo_link_http_build_bare(x, m->version) < 0)
        return x->bad;
    add_header(x, "Content-Type", MO_SPAN("application/json"));
    add_header(x, "Accept", MO_SPAN("application/json, text/event-stream"));
    if (m->modern && m->method)
        add_header(x, "Mcp-Method", mo_span_cstr(m->method));
    if (m->modern && m->name.n)
        add_encoded_header(x, "Mcp-Name", m->name);
    if (m->modern)
        add_params(x, m);
    add_trace(x, &m->trace);
    return x->bad ? x->bad : mo_arena_span(&x->a, m->text, &x->text);
}

/* A GET: opens the server's stream, or resumes one. */
int mo_link_http_build_get(struct xchg *x)
{
    struct mo_span last = mo_buf_view(&x->sse.last_id);

    if (mo_link_http_build_bare(x, x->h->version) < 0)
        return x->bad;
    add_header(x, "Accept", MO_SPAN("text/event-stream"));
    if (last.n)
        add_header(x, "Last-Event-ID", last);
    return x->bad;
}

/* --- errors -------------------------------------------------------------- */

void mo_link_http_describe(const struct xchg *x, struct mo_err *e)
{
    struct mo_span c = mo_buf_view(&x->h->challenge);

    if (x->broken)
        *e = x->why;
    else if (x->status == 401 || x->status == 403)
        (void)mo_fail(e, MO_EPOLICY, "the server answers %d%s%.*s", x->status,
                      c.n ? ": " : "", (int)(c.n < 160 ? c.n : 160),
                      c.n ? c.p : "");
    else if (!http_is_good(x->status))
        (void)mo_fail(e, x->status >= 500 ? MO_EUNAVAIL : MO_EPROTO,
                      "the server answers %d", x->status);
    else if (x->kind == OTHER)
        (void)mo_fail(e, MO_EPROTO,
                      "the server answers %d with neither JSON nor events",
                      x->status);
    else
        (void)mo_fail(e, MO_EPROTO, "the answer is missing on its stream");
}
