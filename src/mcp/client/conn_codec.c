/* conn_codec.c - write the envelope around a caller's params.
 *
 * A legacy request without progress sends the params unchanged. Every other
 * request gets a _meta: the caller's members except the keys that the
 * connection sets, then the connection's own. Members are copied as raw text,
 * never re-encoded. */
#include "mcp/client/conn_priv.h"

#define OPENED_MAX ((size_t)1024 * 1024) /* of a server's own description */

/* --- capabilities -------------------------------------------------------- */

static unsigned can_elicit(struct mo_json v)
{
    bool form = mo_json_get(v, "form").p, url = mo_json_get(v, "url").p;

    if (!mo_json_is(v, MO_JSON_OBJECT))
        return 0;
    return (form || !url ? CAN_FORM : 0) | (url ? CAN_URL : 0);
}

unsigned mo_conn_codec_can(struct mo_json capabilities)
{
    struct mo_json ext = mo_json_get(capabilities, "extensions");

    return (mo_json_get(capabilities, "sampling").p ? CAN_SAMPLING : 0) |
           (mo_json_get(capabilities, "roots").p ? CAN_ROOTS : 0) |
           can_elicit(mo_json_get(capabilities, "elicitation")) |
           (mo_json_get(ext, MO_MCP_EXT_TASKS).p ? CAN_TASKS : 0);
}

/* --- requests ------------------------------------------------------------ */

struct members {
    struct mo_buf *b;
    bool any;
};

static void put_text(struct members *m, struct mo_span key, struct mo_span val)
{
    if (m->any)
        mo_buf_putc(m->b, ',');
    m->any = true;
    mo_buf_span(m->b, key);
    mo_buf_putc(m->b, ':');
    mo_buf_span(m->b, val);
}

static void put_str(struct members *m, const char *key, const char *val)
{
    put_text(m, mo_span_cstr(key), MO_SPAN(""));
    mo_json_quote(m->b, mo_span_cstr(val));
}

static void put_others(struct members *m, struct mo_json obj,
                       const char *const *without)
{
    mo_json_each (at, obj) {
        if (!mo_json_str_in(at.key, without))
            put_text(m, mo_json_text(at.key), mo_json_text(at.val));
    }
}

static void put_client(struct members *m, const struct mo_conn *c,
                       const char *key)
{
    struct members in = {.b = m->b};

    put_text(m, mo_span_cstr(key), MO_SPAN("{"));
    put_str(&in, "\"name\"", c->o.name);
    put_str(&in, "\"version\"", c->o.version);
    mo_buf_putc(m->b, '}');
}

static void put_envelope(struct members *m, const struct mo_conn *c,
                         const struct mo_call *k)
{
    const char *level = k->o.log_level ? k->o.log_level : c->o.log_level;

    put_str(m, "\"" MO_MCP_P_VERSION "\"", mo_mcp_version_text(c->speak));
    put_text(m, MO_SPAN("\"" MO_MCP_P_CAPS "\""),
             k->o.capabilities.n ? k->o.capabilities : c->o.capabilities);
    put_client(m, c, "\"" MO_MCP_P_CLIENT "\"");
    if (level)
        put_str(m, "\"" MO_MCP_P_LOG "\"", level);
}

/* traceparent and tracestate belong together: keep both of the caller or add
 * both of ours. own: they were left out before. */
static void put_trace(struct members *m, const struct mo_trace *t, bool own,
                      struct mo_json theirs)
{
    bool has[MO_TRACE_KEYS];

    for (size_t i = 0; i < MO_TRACE_KEYS; i++)
        has[i] = mo_json_get(theirs, mo_trace_name((enum mo_trace_key)i)).p;
    has[MO_TRACE_PARENT] =
        !own && (has[MO_TRACE_PARENT] || has[MO_TRACE_STATE]);
    has[MO_TRACE_STATE] = has[MO_TRACE_PARENT];
    for (size_t i = 0; i < MO_TRACE_KEYS; i++) {
        const char *name = mo_trace_name((enum mo_trace_key)i);

        if (has[i] || !t->v[i].n)
            continue;
        mo_buf_puts(m->b, m->any ? ",\"" : "\"");
        m->any = true;
        mo_buf_puts(m->b, name);
        mo_buf_puts(m->b, "\":");
        mo_json_quote(m->b, t->v[i]);
    }
}

static void put_meta(struct members *m, const struct mo_conn *c,
                     const struct mo_call *k, struct mo_json theirs)
{
    static const char *const ours[] = {"progressToken", MO_MCP_P_VERSION,
                                       MO_MCP_P_CAPS,   MO_MCP_P_CLIENT,
                                       MO_MCP_P_LOG,    NULL};
    static const char *const traced[] = {
        "progressToken", MO_MCP_P_VERSION, MO_MCP_P_CAPS, MO_MCP_P_CLIENT,
        MO_MCP_P_LOG,    "traceparent",    "tracestate",  NULL};
    struct members in = {.b = m->b};

    put_text(m, MO_SPAN("\"_meta\""), MO_SPAN("{"));
    put_others(&in, theirs, k->o.own_trace ? traced : ours);
    if (mo_trace_any(&k->o.trace))
        put_trace(&in, &k->o.trace, k->o.own_trace, theirs);
    if (c->modern)
        put_envelope(&in, c, k);
    if (k->o.on_progress) {
        put_text(&in, MO_SPAN("\"progressToken\""), MO_SPAN(""));
        mo_buf_u64(m->b, k->id);
    }
    mo_buf_putc(m->b, '}');
}

static void put_inputs(struct members *m, const struct mo_call *k)
{
    if (k->input.len) {
        put_text(m, MO_SPAN("\"inputResponses\""), MO_SPAN("{"));
        mo_buf_span(m->b, mo_buf_view(&k->input));
        mo_buf_putc(m->b, '}');
    }
    if (k->state.len)
        put_text(m, MO_SPAN("\"requestState\""), mo_buf_view(&k->state));
}

static void put_params(struct mo_conn *c, const struct mo_call *k,
                       struct mo_json params)
{
    static const char *const fresh[] = {"_meta", NULL};
    static const char *const again[] = {"_meta", "inputResponses",
                                        "requestState", NULL};
    struct members m = {.b = &c->out};
    struct mo_json meta = mo_json_get(params, "_meta");

    mo_buf_putc(m.b, '{');
    put_others(&m, params, k->rounds ? again : fresh);
    if (c->modern || k->o.on_progress || mo_trace_any(&k->o.trace) ||
        mo_json_len(meta))
        put_meta(&m, c, k, meta);
    if (k->rounds)
        put_inputs(&m, k);
    mo_buf_putc(m.b, '}');
}

/* A line is one message, so newlines between tokens are removed. */
struct mo_span mo_conn_codec_one_line(struct mo_conn *c, struct mo_span text)
{
    struct mo_json v = {text.p, text.n};

    if (mo_span_find(text, '\n') < 0 && mo_span_find(text, '\r') < 0)
        return text;
    mo_buf_reset(&c->compact);
    (void)mo_json_compact(v, &c->compact);
    return mo_buf_view(&c->compact);
}

int mo_conn_codec_request(struct mo_conn *c, const struct mo_call *k,
                          struct mo_span params)
{
    struct mo_json v = {params.p, params.n};
    bool plain = !c->modern && !k->o.on_progress &&
                 !mo_trace_any(&k->o.trace) && !mo_json_get(v, "_meta").p;

    mo_buf_reset(&c->out);
    mo_buf_puts(&c->out, "{\"jsonrpc\":\"2.0\",\"id\":");
    mo_buf_u64(&c->out, k->id);
    mo_buf_puts(&c->out, ",\"method\":");
    mo_json_quote(&c->out, mo_span_cstr(k->method));
    if (!plain || params.n)
        mo_buf_puts(&c->out, ",\"params\":");
    if (plain)
        mo_buf_span(&c->out, params);
    else
        put_params(c, k, v);
    return mo_buf_putc(&c->out, '}');
}

/* Other extensions are of the modern era; this one is negotiated in both. */
static void put_legacy_extensions(struct members *m, struct mo_json caps)
{
    struct mo_json apps =
        mo_json_get(mo_json_get(caps, "extensions"), MO_MCP_EXT_APPS);

    if (!apps.p)
        return;
    put_text(m, MO_SPAN("\"extensions\""), MO_SPAN("{"));
    mo_buf_puts(m->b, "\"" MO_MCP_EXT_APPS "\":");
    mo_buf_span(m->b, mo_json_text(apps));
    mo_buf_putc(m->b, '}');
}

int mo_conn_codec_initialize(struct mo_conn *c, struct mo_buf *b,
                             enum mo_mcp_version v)
{
    static const char *const newer[] = {"extensions", NULL};
    struct mo_json caps = {c->o.capabilities.p, c->o.capabilities.n};
    struct members m = {.b = b}, in = {.b = b};

    mo_buf_putc(b, '{');
    put_str(&m, "\"protocolVersion\"", mo_mcp_version_text(v));
    put_text(&m, MO_SPAN("\"capabilities\""), MO_SPAN("{"));
    put_others(&in, caps, newer);
    put_legacy_extensions(&in, caps);
    mo_buf_putc(b, '}');
    put_client(&m, c, "\"clientInfo\"");
    return mo_buf_putc(b, '}');
}

/* --- the server's description of itself ---------------------------------- */

static struct mo_json require_type(struct mo_json v, enum mo_json_type t)
{
    return mo_json_is(v, t) ? v : (struct mo_json){NULL, 0};
}

int mo_conn_codec_keep_opened(struct mo_conn *c, struct mo_json result)
{
    struct mo_conn_info *i = &c->info;
    struct mo_json all, server;

    mo_buf_fini(&c->opened);
    mo_buf_init(&c->opened, OPENED_MAX);
    if (mo_buf_span(&c->opened, mo_json_text(result)) < 0)
        return mo_buf_err(&c->opened);
    all = (struct mo_json){c->opened.p, c->opened.len};
    server = c->modern ? mo_json_get(mo_json_get(all, "_meta"), MO_MCP_P_SERVER)
                       : mo_json_get(all, "serverInfo");
    i->opened = all;
    i->modern = c->modern;
    i->version = c->speak;
    i->server = require_type(server, MO_JSON_OBJECT);
    i->capabilities =
        require_type(mo_json_get(all, "capabilities"), MO_JSON_OBJECT);
    i->instructions =
        require_type(mo_json_get(all, "instructions"), MO_JSON_STRING);
    return 0;
}
