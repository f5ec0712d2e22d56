/* ep_modern.c - translation for peers whose requests describe themselves
 * (2026-07-28): the envelope, server/discover, results with their hints.
 * ep_rounds.c has the questions to the client, ep_listen.c the listens,
 * ep_away.c requests for another process.
 *
 * The order of refusals is that of the official SDK, so that a client gets the
 * reason it can act on. */
#include "codec/text/base64.h"
#include "mcp/server/ep_priv.h"

#define VALUE_MAX ((size_t)16 * 1024) /* of a header */

struct envelope {
    struct mo_json meta, version, caps, client, level;
};

struct refusal {
    int status, code;
    const char *why;
};

/* --- headers that mirror the body ------------------------------------------
 *
 * A proxy may decide by Mcp-Method, Mcp-Name and Mcp-Param-*. If they could
 * differ from the body, the proxy would allow one request and we would run
 * another. So each must be present once and equal the body. Values that plain
 * text cannot carry come as =?base64?...?=, which is decoded strictly. */

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

static int check_headers(const struct mo_http_head *h, const struct mo_rpc *m,
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
    if (n == 0 && (em->flags & M_UNNAMED))
        return 0;
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

static int check_param_headers(const struct mo_endpoint *ep,
                               const struct mo_http_head *h,
                               const struct call *c, const char **why)
{
    struct mo_json schema;

    if (!ep->o.schema || !mo_span_is(c->pub.method, "tools/call"))
        return 0;
    schema = ep->o.schema(ep->o.ctx, c->pub.name);
    *why = "an Mcp-Param header is missing or does not equal the argument";
    return check_params(h, schema, c->pub.arguments, 8);
}

/* --- checks before a request runs ---------------------------------------- */

static const char *check_envelope(const struct mo_rpc *m, struct envelope *en)
{
    en->meta = mo_json_get(m->params, "_meta");
    en->version = mo_json_get(en->meta, MO_MCP_P_VERSION);
    en->caps = mo_json_get(en->meta, MO_MCP_P_CAPS);
    en->client = mo_json_get(en->meta, MO_MCP_P_CLIENT);
    en->level = mo_json_get(en->meta, MO_MCP_P_LOG);
    if (!mo_json_is(en->meta, MO_JSON_OBJECT))
        return "params._meta is missing";
    if (!mo_json_is(en->version, MO_JSON_STRING))
        return "_meta[\"" MO_MCP_P_VERSION "\"] must be a string";
    if (!mo_json_is(en->caps, MO_JSON_OBJECT))
        return "_meta[\"" MO_MCP_P_CAPS "\"] must be an object";
    if (en->client.p && !mo_json_is(en->client, MO_JSON_OBJECT))
        return "_meta[\"" MO_MCP_P_CLIENT "\"] must be an object";
    if (en->level.p && mo_ep_level(en->level) == MO_MCP_LEVELS)
        return "_meta[\"" MO_MCP_P_LOG "\"] is no level";
    return NULL;
}

static void put_supported(struct mo_buf *b, struct mo_json requested)
{
    (void)mo_buf_puts(b,
                      "{\"supported\":[\"" MO_MCP_NEWEST "\"],\"requested\":");
    (void)mo_buf_span(b, mo_json_text(requested));
    (void)mo_buf_putc(b, '}');
}

static struct refusal check_request(const struct mo_endpoint *ep,
                                    const struct mo_http_head *h,
                                    const struct mo_rpc *m, struct envelope *en,
                                    struct mo_buf *data)
{
    static const char *const ours[] = {"server/discover",
                                       "subscriptions/listen", NULL};
    struct refusal r = {400, MO_RPC_INVALID_PARAMS, check_envelope(m, en)};
    const struct ep_method *em = mo_ep_method(ep, m->method, true);
    struct mo_span version = {NULL, 0};

    if (r.why)
        return r;
    if (h)
        version = mo_http_get(h, "MCP-Protocol-Version");
    if (h &&
        (!version.p || !mo_json_str_eq(en->version, mo_span_trim(version)))) {
        r.code = MO_MCP_HEADER_MISMATCH;
        r.why = "MCP-Protocol-Version must be there and equal the body's";
        return r;
    }
    if (!mo_json_str_eq(en->version, MO_SPAN(MO_MCP_NEWEST))) {
        put_supported(data, en->version);
        return (struct refusal){400, MO_MCP_UNSUPPORTED_VERSION,
                                "this protocol version is not spoken here"};
    }
    r.code = MO_MCP_HEADER_MISMATCH;
    if (h && check_headers(h, m, em, &r.why) < 0)
        return r;
    if (!em && !mo_json_str_in(m->method, ours))
        return (struct refusal){404, MO_RPC_METHOD_NOT_FOUND, "no such method"};
    r.why = NULL;
    return r;
}

/* --- results ------------------------------------------------------------- */

void mo_ep_put_members(struct mo_jw *w, struct mo_json obj,
                       const char *const *without)
{
    mo_json_each (m, obj) {
        if (mo_json_str_in(m.key, without))
            continue;
        mo_jw_key_raw(w, m.key);
        mo_jw_raw(w, mo_json_text(m.val));
    }
}

static void put_member_or_default(struct mo_jw *w, struct mo_json result,
                                  const char *key, struct mo_span otherwise)
{
    struct mo_json v = mo_json_get(result, key);

    mo_jw_member_raw(w, key, v.p ? mo_json_text(v) : otherwise);
}

struct mo_jw mo_ep_begin_result(struct mo_endpoint *ep, struct mo_json id)
{
    struct mo_jw w = mo_jw_object(mo_ep_scratch(ep));

    mo_jw_member_cstr(&w, "jsonrpc", "2.0");
    mo_jw_member_raw(&w, "id", mo_json_text(id));
    mo_jw_member_obj(&w, "result");
    return w;
}

void mo_ep_end_result(struct mo_endpoint *ep, struct mo_jw *w,
                      struct mo_json meta)
{
    mo_jw_member_obj(w, "_meta");
    mo_ep_put_members(w, meta, EP_KEYS(MO_MCP_P_SERVER, MO_MCP_P_SUB));
    mo_jw_key(w, MO_MCP_P_SERVER);
    mo_ep_put_info(ep, w);
    mo_jw_end_all(w);
}

/* True if its taskId is to say which process has the task. */
static bool names_task(const struct call *c, struct mo_json type)
{
    return c->home && (c->m->cap == MO_EP_TASKS ||
                       (type.p && mo_json_str_eq(type, MO_SPAN("task"))));
}

void mo_ep_modern_result(struct call *c, struct mo_json result)
{
    static const char *const added[] = {"resultType", "_meta", NULL};
    static const char *const task[] = {"resultType", "_meta", "taskId", NULL};
    static const char *const hints[] = {"resultType", "_meta", "ttlMs",
                                        "cacheScope", NULL};
    struct mo_json type = mo_json_get(result, "resultType");
    bool is_task = names_task(c, type);
    struct mo_jw w = mo_ep_begin_result(c->ep, c->id);

    mo_jw_member_raw(&w, "resultType",
                     type.p ? mo_json_text(type) : MO_SPAN("\"complete\""));
    if (is_task)
        mo_ep_put_task_id(c, &w, mo_json_get(result, "taskId"));
    mo_ep_put_members(&w, result,
                      is_task                 ? task
                      : c->m->flags & M_CACHE ? hints
                                              : added);
    if (c->m->flags & M_CACHE) {
        put_member_or_default(&w, result, "ttlMs", MO_SPAN("0"));
        put_member_or_default(&w, result, "cacheScope", MO_SPAN("\"private\""));
    }
    mo_ep_end_result(c->ep, &w, mo_json_get(result, "_meta"));
    mo_ep_call_answer(c, 200);
}

static void answer_discover(struct mo_endpoint *ep,
                            const struct mo_ep_from *from,
                            const struct mo_rpc *m)
{
    struct mo_jw w = mo_ep_begin_result(ep, m->id);

    mo_jw_member_cstr(&w, "resultType", "complete");
    mo_jw_member_arr(&w, "supportedVersions");
    mo_jw_cstr(&w, MO_MCP_NEWEST);
    mo_jw_end(&w);
    mo_jw_key(&w, "capabilities");
    mo_ep_put_caps(ep, &w, MO_MCP_2026_07_28);
    if (ep->o.instructions)
        mo_jw_member_cstr(&w, "instructions", ep->o.instructions);
    mo_jw_member_u64(&w, "ttlMs", 0);
    mo_jw_member_cstr(&w, "cacheScope", "private");
    mo_ep_end_result(ep, &w, (struct mo_json){NULL, 0});
    mo_ep_answer_scratch(ep, from->way, 200);
}

/* --- a request ----------------------------------------------------------- */

static void start_call(struct mo_endpoint *ep, const struct mo_ep_from *from,
                       const struct mo_rpc *m)
{
    const struct ep_method *em = mo_ep_method(ep, m->method, true);
    struct call *c = mo_ep_call_new(ep, from, m, em);
    const char *bad, *header = NULL;

    if (!c)
        return;
    c->pub.version = MO_MCP_2026_07_28;
    c->pub.caps = mo_json_get(c->parts.meta, MO_MCP_P_CAPS);
    c->pub.client = mo_json_get(c->parts.meta, MO_MCP_P_CLIENT);
    c->pub.peer = from->sess ? from->sess->peer : 0;
    c->level = mo_ep_level(mo_json_get(c->parts.meta, MO_MCP_P_LOG));
    mo_ep_level_wanted(ep, c->level, true);
    if (!em) {
        mo_ep_listen(c);
        return;
    }
    /* methods of an extension are only for clients that declared it */
    if (em->cap == MO_EP_TASKS && mo_ep_call_lacks_tasks(c))
        return;
    bad = mo_ep_call_check(c);
    if (!bad && from->head &&
        check_param_headers(ep, from->head, c, &header) < 0) {
        mo_ep_call_refuse(c, 400, MO_MCP_HEADER_MISMATCH, header);
        return;
    }
    if (!bad && em->cap == MO_EP_TASKS && mo_ep_task_is_away(c))
        return;
    if (!bad && (em->flags & M_MRTR) && !mo_ep_take_answers(c, &bad))
        return;
    if (bad)
        mo_ep_call_refuse(c, 200, MO_RPC_INVALID_PARAMS, bad);
    else
        mo_ep_call_run(c);
}

static void on_request(struct mo_endpoint *ep, const struct mo_ep_from *from,
                       const struct mo_rpc *m)
{
    struct envelope en;
    struct refusal r;
    mo_autobuf struct mo_buf data = {.max = EP_CALL_EXTRA};

    r = check_request(ep, from->head, m, &en, &data);
    if (!r.why && from->sess &&
        (from->sess->ncalls >= ep->o.limits.calls ||
         mo_ep_call_find(&from->sess->calls, m->id)))
        r = (struct refusal){200, MO_RPC_INVALID_REQUEST,
                             "this id is in use, or too many are"};
    if (r.why) {
        (void)mo_rpc_put_error(mo_ep_scratch(ep), mo_json_text(m->id), r.code,
                               mo_span_cstr(r.why), mo_buf_view(&data));
        mo_ep_answer_scratch(ep, from->way, r.status);
    } else if (mo_json_str_eq(m->method, MO_SPAN("server/discover"))) {
        answer_discover(ep, from, m);
    } else {
        start_call(ep, from, m);
    }
}

void mo_ep_modern(struct mo_endpoint *ep, const struct mo_ep_from *from,
                  const struct mo_rpc *m)
{
    struct call *c;

    if (m->kind == MO_RPC_REQUEST) {
        on_request(ep, from, m);
        return;
    }
    if (m->kind != MO_RPC_NOTIFICATION || !from->sess ||
        !mo_json_str_eq(m->method, MO_SPAN("notifications/cancelled")))
        return;
    c = mo_ep_call_find(&from->sess->calls,
                        mo_json_get(m->params, "requestId"));
    if (c)
        mo_ep_call_cancel(c);
}
