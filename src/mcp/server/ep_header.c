/* ep_header.c - check the headers that mirror the body of a modern request.
 *
 * A proxy may decide by Mcp-Method, Mcp-Name and Mcp-Param-*. If they could
 * differ from the body, the proxy would allow one request and we would run
 * another. So each must be present once and equal the body. Values that plain
 * text cannot carry come as =?base64?...?=, which is decoded strictly. */
#include "codec/text/base64.h"
#include "mcp/server/ep_priv.h"

#define VALUE_MAX ((size_t)16 * 1024)

static struct mo_span find_only(const struct mo_http_head *h,
                                struct mo_span name, unsigned *count)
{
    struct mo_span v = {NULL, 0};

    *count = 0;
    for (size_t i = 0; i < h->nheaders; i++) {
        if (!mo_span_ieq(h->headers[i].name, name))
            continue;
        v = mo_span_trim(h->headers[i].value);
        ++*count;
    }
    return v;
}

/* Append the header's value, decoded. */
static int decode_value(struct mo_span v, struct mo_buf *out)
{
    const struct mo_span pre = MO_SPAN("=?base64?"), post = MO_SPAN("?=");

    if (!mo_span_starts(v, pre) || !mo_span_ends(v, post) ||
        v.n < pre.n + post.n)
        return mo_buf_span(out, v);
    v = mo_span(v.p + pre.n, v.n - pre.n - post.n);
    return mo_base64_decode(v, out);
}

static bool equals_text(struct mo_span header, struct mo_json v)
{
    mo_autobuf struct mo_buf b = {.max = VALUE_MAX};

    return decode_value(header, &b) == 0 && mo_json_str_eq(v, mo_buf_view(&b));
}

static bool equals_value(struct mo_span header, struct mo_json v)
{
    int64_t a, b;

    switch (mo_json_type(v)) {
    case MO_JSON_STRING:
        return equals_text(header, v);
    case MO_JSON_NUMBER:
        return mo_span_i64(header, &a) == 0 && mo_json_i64(v, &b) == 0 &&
               a == b;
    case MO_JSON_BOOL:
        return mo_span_eq(header, mo_json_text(v));
    default:
        return false;
    }
}

int mo_ep_headers(const struct mo_http_head *h, const struct mo_rpc *m,
                  const struct ep_method *em, const char **why)
{
    struct mo_json name;
    unsigned n;
    struct mo_span v = find_only(h, MO_SPAN("Mcp-Method"), &n);

    *why = "Mcp-Method must be there, once, and equal the body's method";
    if (n != 1 || !mo_json_str_eq(m->method, v))
        return MO_EPROTO;
    if (!em || !em->key)
        return 0;
    name = mo_json_get(m->params, em->key);
    if (!mo_json_is(name, MO_JSON_STRING))
        return 0; /* the check of the parameters has a better error */
    *why = "Mcp-Name must be there, once, and equal the body's name";
    v = find_only(h, MO_SPAN("Mcp-Name"), &n);
    return n == 1 && equals_text(v, name) ? 0 : MO_EPROTO;
}

static int check_param(const struct mo_http_head *h, struct mo_json label,
                       struct mo_json value)
{
    mo_autobuf struct mo_buf name = {.max = VALUE_MAX};
    struct mo_span v;
    unsigned n;

    (void)mo_buf_puts(&name, "Mcp-Param-");
    (void)mo_json_str_buf(label, &name);
    v = find_only(h, mo_buf_view(&name), &n);
    if (!value.p || mo_json_is(value, MO_JSON_NULL))
        return n == 0 ? 0 : MO_EPROTO;
    return n == 1 && equals_value(v, value) ? 0 : MO_EPROTO;
}

/* Only members reached by `properties` may be annotated; the depth is bounded
 * by the schema, which we wrote or checked. */
static int check_params(const struct mo_http_head *h, struct mo_json schema,
                        struct mo_json args, unsigned depth)
{
    if (depth == 0)
        return 0;
    mo_json_each (m, mo_json_get(schema, "properties")) {
        struct mo_json label = mo_json_get(m.val, "x-mcp-header");
        struct mo_json value = {NULL, 0};
        mo_autobuf struct mo_buf name = {.max = VALUE_MAX};
        int rc;

        if (mo_json_str_buf(m.key, &name) == 0)
            value = mo_json_get(args, mo_buf_cstr(&name));
        rc = mo_json_is(label, MO_JSON_STRING)
                 ? check_param(h, label, value)
                 : check_params(h, m.val, value, depth - 1);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int mo_ep_params(const struct mo_endpoint *ep, const struct mo_http_head *h,
                 const struct call *c, const char **why)
{
    struct mo_json schema;

    if (!ep->o.schema || !mo_span_is(c->pub.method, "tools/call"))
        return 0;
    schema = ep->o.schema(ep->o.ctx, c->pub.name);
    *why = "an Mcp-Param header is missing or does not equal the argument";
    return check_params(h, schema, c->pub.arguments, 8);
}
