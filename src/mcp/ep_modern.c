/* ep_modern.c - the edge toward peers whose requests describe themselves
 * (2026-07-28): the envelope, server/discover, subscriptions/listen, results
 * with their hints, and questions as input_required with a sealed state.
 *
 * The order in which a request is refused is that of the official SDK, so
 * that a client finds the reason it can act on. */
#include "mcp/ep_priv.h"

#include "codec/sha256.h"

static const struct mo_span nothing = {NULL, 0};

struct envelope {
    struct mo_json meta, version, caps, client, level;
};

struct refusal {
    int status, code;
    const char *why;
    struct mo_buf *data; /* filled when it has any */
};

/* --- what must be right before anything runs
 * -------------------------------------- */

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

static bool header_is(const struct mo_http_head *h, const char *name,
                      struct mo_json v)
{
    struct mo_span got = mo_http_get(h, name);

    return got.p && mo_json_str_eq(v, mo_span_trim(got));
}

static bool is_known(const struct mo_endpoint *ep, const struct mo_rpc *m)
{
    return mo_json_str_eq(m->method, MO_SPAN("server/discover")) ||
           mo_json_str_eq(m->method, MO_SPAN("subscriptions/listen")) ||
           mo_ep_method(ep, m->method, true);
}

static struct refusal check(const struct mo_endpoint *ep,
                            const struct mo_http_head *h,
                            const struct mo_rpc *m, struct envelope *en,
                            struct mo_buf *data)
{
    struct refusal r = {400, MO_RPC_INVALID_PARAMS, check_envelope(m, en),
                        NULL};
    const struct ep_method *em = mo_ep_method(ep, m->method, true);

    if (r.why)
        return r;
    if (h && !header_is(h, "MCP-Protocol-Version", en->version)) {
        r.code = MO_MCP_HEADER_MISMATCH;
        r.why = "MCP-Protocol-Version must be there and equal the body's";
        return r;
    }
    if (!mo_json_str_eq(en->version, MO_SPAN(MO_MCP_NEWEST))) {
        put_supported(data, en->version);
        return (struct refusal){400, MO_MCP_UNSUPPORTED_VERSION,
                                "this protocol version is not spoken here",
                                data};
    }
    r.code = MO_MCP_HEADER_MISMATCH;
    if (h && mo_ep_headers(h, m, em, &r.why) < 0)
        return r;
    if (!is_known(ep, m))
        return (struct refusal){404, MO_RPC_METHOD_NOT_FOUND, "no such method",
                                NULL};
    r.why = NULL;
    return r;
}

/* --- results
 * ------------------------------------------------------------------------- */

static const char *const added[] = {"resultType", "ttlMs", "cacheScope",
                                    "_meta"};

static bool is_added(struct mo_json key)
{
    for (size_t i = 0; i < MO_COUNT(added); i++) {
        if (mo_json_str_eq(key, mo_span_cstr(added[i])))
            return true;
    }
    return false;
}

static void put_members(struct mo_jw *w, struct mo_json obj,
                        bool (*skip)(struct mo_json key))
{
    struct mo_json_iter it;
    struct mo_json key, val;

    mo_json_iter(&it, obj);
    while (mo_json_next(&it, &key, &val)) {
        struct mo_buf name;

        if (skip(key))
            continue;
        mo_buf_init(&name, EP_CALL_EXTRA);
        (void)mo_json_str_buf(key, &name);
        mo_jw_key_span(w, mo_buf_view(&name));
        mo_buf_fini(&name);
        mo_jw_raw(w, mo_json_text(val));
    }
}

static bool is_ours(struct mo_json key)
{
    return mo_json_str_eq(key, MO_SPAN(MO_MCP_P_SERVER)) ||
           mo_json_str_eq(key, MO_SPAN(MO_MCP_P_SUB));
}

static void put_or(struct mo_jw *w, struct mo_json result, const char *key,
                   struct mo_span otherwise)
{
    struct mo_json v = mo_json_get(result, key);

    mo_jw_key(w, key);
    mo_jw_raw(w, v.p ? mo_json_text(v) : otherwise);
}

static void begin_result(struct mo_endpoint *ep, struct mo_jw *w,
                         struct mo_json id)
{
    mo_jw_init(w, mo_ep_scratch(ep));
    mo_jw_obj(w);
    mo_jw_key(w, "jsonrpc");
    mo_jw_cstr(w, "2.0");
    mo_jw_key(w, "id");
    mo_jw_raw(w, mo_json_text(id));
    mo_jw_key(w, "result");
    mo_jw_obj(w);
}

static void end_result(struct mo_endpoint *ep, struct mo_jw *w,
                       struct mo_json meta)
{
    mo_jw_key(w, "_meta");
    mo_jw_obj(w);
    put_members(w, meta, is_ours);
    mo_jw_key(w, MO_MCP_P_SERVER);
    mo_ep_put_info(ep, w);
    mo_jw_end(w);
    mo_jw_end(w);
    mo_jw_end(w);
}

void mo_ep_modern_result(struct call *c, struct mo_json result)
{
    struct mo_jw w;

    begin_result(c->ep, &w, c->id);
    put_or(&w, result, "resultType", MO_SPAN("\"complete\""));
    put_members(&w, result, is_added);
    if (c->m->flags & M_CACHE) {
        put_or(&w, result, "ttlMs", MO_SPAN("0"));
        put_or(&w, result, "cacheScope", MO_SPAN("\"private\""));
    }
    end_result(c->ep, &w, mo_json_get(result, "_meta"));
    mo_call_answer(c, 200);
}

static void discover(struct mo_endpoint *ep, const struct mo_ep_from *from,
                     const struct mo_rpc *m)
{
    struct mo_jw w;

    begin_result(ep, &w, m->id);
    mo_jw_key(&w, "resultType");
    mo_jw_cstr(&w, "complete");
    mo_jw_key(&w, "supportedVersions");
    mo_jw_arr(&w);
    mo_jw_cstr(&w, MO_MCP_NEWEST);
    mo_jw_end(&w);
    mo_jw_key(&w, "capabilities");
    mo_ep_put_caps(ep, &w, true);
    if (ep->o.instructions) {
        mo_jw_key(&w, "instructions");
        mo_jw_cstr(&w, ep->o.instructions);
    }
    mo_jw_key(&w, "ttlMs");
    mo_jw_u64(&w, 0);
    mo_jw_key(&w, "cacheScope");
    mo_jw_cstr(&w, "private");
    end_result(ep, &w, (struct mo_json){NULL, 0});
    if (mo_buf_err(&ep->scratch))
        from->way->drop(from->way);
    else
        from->way->answer(from->way, 200, mo_buf_view(&ep->scratch));
    mo_ep_scratch_done(ep);
}

/* --- subscriptions/listen
 * --------------------------------------------------------------- */

static const struct {
    const char *key;
    unsigned cap;
} kinds[] = {
    [MO_EP_CH_TOOLS] = {"toolsListChanged", MO_EP_TOOLS},
    [MO_EP_CH_PROMPTS] = {"promptsListChanged", MO_EP_PROMPTS},
    [MO_EP_CH_RESOURCES] = {"resourcesListChanged", MO_EP_RESOURCES},
};

static int read_uris(struct mo_ep_filter *f, struct mo_json arr)
{
    struct mo_json_iter it;
    struct mo_json key, val;

    mo_json_iter(&it, arr);
    while (mo_json_next(&it, &key, &val)) {
        struct mo_buf b;
        int rc;

        mo_buf_init(&b, EP_CALL_EXTRA);
        rc = mo_json_is(val, MO_JSON_STRING) ? mo_json_str_buf(val, &b)
                                             : MO_EINVAL;
        if (rc == 0)
            rc = mo_map_put(&f->uris, mo_buf_view(&b), f, NULL);
        mo_buf_fini(&b);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_filter(struct call *c, struct mo_json wanted)
{
    unsigned caps = c->ep->o.caps;
    struct mo_ep_filter *f = mo_new(struct mo_ep_filter);

    if (!f)
        return MO_ENOMEM;
    mo_map_init(&f->uris, c->ep->o.limits.uris);
    c->filter = f;
    c->ep->nlistens++;
    for (size_t i = 0; i < MO_COUNT(kinds); i++) {
        bool on = false;

        (void)mo_json_bool(mo_json_get(wanted, kinds[i].key), &on);
        f->what[i] = on && (caps & kinds[i].cap) && (caps & MO_EP_LISTCHANGED);
    }
    if (!(caps & MO_EP_SUBSCRIBE))
        return 0;
    return read_uris(f, mo_json_get(wanted, "resourceSubscriptions"));
}

static void put_ack(struct call *c, struct mo_json wanted)
{
    struct mo_json uris = mo_json_get(wanted, "resourceSubscriptions");
    struct mo_jw w;

    mo_jw_init(&w, mo_ep_scratch(c->ep));
    mo_jw_obj(&w);
    mo_jw_key(&w, "jsonrpc");
    mo_jw_cstr(&w, "2.0");
    mo_jw_key(&w, "method");
    mo_jw_cstr(&w, "notifications/subscriptions/acknowledged");
    mo_jw_key(&w, "params");
    mo_jw_obj(&w);
    mo_jw_key(&w, "notifications");
    mo_jw_obj(&w);
    for (size_t i = 0; i < MO_COUNT(kinds); i++) {
        if (!c->filter->what[i])
            continue;
        mo_jw_key(&w, kinds[i].key);
        mo_jw_bool(&w, true);
    }
    if (c->filter->uris.len) {
        mo_jw_key(&w, "resourceSubscriptions");
        mo_jw_raw(&w, mo_json_text(uris));
    }
    mo_jw_end(&w);
    mo_jw_key(&w, "_meta");
    mo_jw_obj(&w);
    mo_jw_key(&w, MO_MCP_P_SUB);
    mo_jw_raw(&w, mo_json_text(c->id));
    mo_jw_end(&w);
    mo_jw_end(&w);
    mo_jw_end(&w);
}

static void start_listen(struct call *c)
{
    struct mo_json wanted = mo_json_get(c->pub.params, "notifications");

    if (!mo_json_is(wanted, MO_JSON_OBJECT)) {
        mo_call_refuse(c, 200, MO_RPC_INVALID_PARAMS,
                       "params.notifications must be an object", nothing);
        return;
    }
    if (c->ep->nlistens >= c->ep->o.limits.listens) {
        mo_call_refuse(c, 200, MO_RPC_INTERNAL, "too many listens", nothing);
        return;
    }
    if (read_filter(c, wanted) < 0) {
        mo_call_refuse(c, 200, MO_RPC_INVALID_PARAMS,
                       "params.notifications is malformed or too long",
                       nothing);
        return;
    }
    c->state = CALL_LISTENING;
    put_ack(c, wanted);
    if (!mo_buf_err(&c->ep->scratch))
        c->way->note(c->way, mo_buf_view(&c->ep->scratch));
    mo_ep_scratch_done(c->ep);
}

/* --- rounds of questions
 * ------------------------------------------------------------------ */

/* Who asks what: the caller, the method and the parameters that make it the
 * same call. Numbers and order are taken as written. */
static void digest(const struct call *c, unsigned char out[MO_SHA256_LEN])
{
    static const char *const parts[] = {"name", "uri", "arguments"};
    struct mo_sha256 h;
    struct mo_buf b;

    mo_buf_init(&b, c->pub.params.n + 64);
    mo_sha256_init(&h);
    mo_sha256_put(&h, c->pub.caller.p, c->pub.caller.n);
    mo_sha256_put(&h, "\0", 1);
    mo_sha256_put(&h, c->pub.method.p, c->pub.method.n);
    for (size_t i = 0; i < MO_COUNT(parts); i++) {
        struct mo_json v = mo_json_get(c->pub.params, parts[i]);

        mo_sha256_put(&h, "\0", 1);
        mo_buf_reset(&b);
        if (v.p && mo_json_compact(v, &b) == 0)
            mo_sha256_put(&h, b.p, b.len);
    }
    mo_buf_fini(&b);
    mo_sha256_end(&h, out);
}

static struct mo_span digest_span(const unsigned char *d)
{
    return mo_span((const char *)d, MO_SHA256_LEN);
}

/* {"r":rounds,"s":"state","i":{key:answer}} */
static void put_plain(const struct call *c, struct mo_buf *b)
{
    struct mo_jw w;

    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    mo_jw_key(&w, "r");
    mo_jw_u64(&w, c->rounds);
    mo_jw_key(&w, "s");
    mo_jw_str(&w, c->state_bytes);
    mo_jw_key(&w, "i");
    mo_jw_obj(&w);
    mo_list_each (n, &c->inputs) {
        struct ep_input *in = mo_container_of(n, struct ep_input, node);

        mo_jw_key_span(&w, in->key);
        mo_jw_raw(&w, mo_json_text(in->value));
    }
    mo_jw_end(&w);
    mo_jw_end(&w);
}

static int put_sealed(const struct call *c, struct mo_buf *out)
{
    uint64_t until = mo_now_ns() + c->ep->o.limits.state_ms * (uint64_t)MO_MS;
    unsigned char d[MO_SHA256_LEN];
    struct mo_buf plain;
    int rc;

    mo_buf_init(&plain, MO_SEAL_MAX);
    put_plain(c, &plain);
    digest(c, d);
    rc = mo_buf_err(&plain);
    if (rc == 0)
        rc = mo_seal_put(&c->ep->seal, digest_span(d), until,
                         mo_buf_view(&plain), out);
    mo_buf_fini(&plain);
    return rc;
}

static int take_inputs(struct call *c, struct mo_json obj)
{
    struct mo_json_iter it;
    struct mo_json key, val;

    mo_json_iter(&it, obj);
    while (mo_json_next(&it, &key, &val)) {
        struct mo_span name;
        int rc = mo_json_str(key, &c->arena, &name);

        if (rc == 0)
            rc = mo_call_add_input(c, name, val);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int take_plain(struct call *c, struct mo_span plain)
{
    struct mo_json_doc doc;
    uint64_t rounds = 0;
    int rc = mo_json_parse(plain, 0, &doc, NULL);

    if (rc == 0)
        rc = mo_json_u64(mo_json_get(doc.root, "r"), &rounds);
    if (rc < 0)
        return rc;
    c->rounds = (unsigned)rounds;
    rc = mo_json_str(mo_json_get(doc.root, "s"), &c->arena, &c->state_bytes);
    if (rc == 0)
        mo_call_set_state(&c->pub, c->state_bytes);
    if (rc == 0)
        rc = take_inputs(c, mo_json_get(doc.root, "i"));
    return rc;
}

/* NULL: the state is ours, or there is none. */
static const char *take_state(struct call *c)
{
    struct mo_json st = mo_json_get(c->pub.params, "requestState");
    unsigned char d[MO_SHA256_LEN];
    struct mo_span text;
    struct mo_buf plain;
    int rc;

    if (!st.p)
        return NULL;
    if (!mo_json_is(st, MO_JSON_STRING) ||
        mo_json_str(st, &c->arena, &text) < 0)
        return "params.requestState must be the string we gave";
    mo_buf_init(&plain, MO_SEAL_MAX);
    digest(c, d);
    rc = mo_seal_open(&c->ep->seal, digest_span(d), mo_now_ns(), text, &plain);
    if (rc == 0)
        rc = take_plain(c, mo_buf_view(&plain));
    mo_buf_fini(&plain);
    if (rc == MO_ETIMEOUT)
        return "params.requestState has expired; begin again";
    return rc < 0 ? "params.requestState is not one we gave for this call"
                  : NULL;
}

static const char *take_answers(struct call *c)
{
    struct mo_json in = mo_json_get(c->pub.params, "inputResponses");
    const char *bad = take_state(c);

    if (bad || !in.p)
        return bad;
    if (!mo_json_is(in, MO_JSON_OBJECT))
        return "params.inputResponses must be an object";
    return take_inputs(c, in) < 0 ? "params.inputResponses is too big" : NULL;
}

/* The capabilities that the questions need and the client did not declare,
 * as an object; false when there are none. */
static bool put_missing(const struct call *c, struct mo_buf *b)
{
    struct mo_buf seen;
    struct mo_jw w;
    bool any = false;

    mo_buf_init(&seen, EP_CALL_EXTRA);
    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    mo_jw_key(&w, "requiredCapabilities");
    mo_jw_obj(&w);
    mo_list_each (n, &c->needs) {
        struct ep_need *q = mo_container_of(n, struct ep_need, node);
        const char *cap = mo_ep_ask_cap(q->method);

        MO_BUG_ON(!cap);
        if (mo_call_can(&c->pub, cap) ||
            mo_span_search(mo_buf_view(&seen), mo_span_cstr(cap)) >= 0)
            continue;
        (void)mo_buf_puts(&seen, cap);
        mo_jw_key(&w, cap);
        mo_jw_obj(&w);
        mo_jw_end(&w);
        any = true;
    }
    mo_jw_end(&w);
    mo_jw_end(&w);
    mo_buf_fini(&seen);
    return any;
}

static void put_questions(struct call *c, struct mo_span sealed)
{
    struct mo_jw w;

    begin_result(c->ep, &w, c->id);
    mo_jw_key(&w, "resultType");
    mo_jw_cstr(&w, "input_required");
    mo_jw_key(&w, "inputRequests");
    mo_jw_obj(&w);
    mo_list_each (n, &c->needs) {
        struct ep_need *q = mo_container_of(n, struct ep_need, node);

        mo_jw_key_span(&w, q->key);
        mo_jw_obj(&w);
        mo_jw_key(&w, "method");
        mo_jw_str(&w, q->method);
        mo_jw_key(&w, "params");
        mo_jw_raw(&w, q->params);
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
    mo_jw_key(&w, "requestState");
    mo_jw_str(&w, sealed);
    end_result(c->ep, &w, (struct mo_json){NULL, 0});
}

void mo_ep_modern_wait(struct call *c)
{
    struct mo_buf b;

    MO_BUG_ON(!(c->m->flags & M_MRTR));
    mo_buf_init(&b, 2 * MO_SEAL_MAX);
    if (put_missing(c, &b)) {
        mo_call_refuse(c, 400, MO_MCP_MISSING_CAPABILITY,
                       "the client lacks a capability that this call needs",
                       mo_buf_view(&b));
        mo_buf_fini(&b);
        return;
    }
    mo_buf_reset(&b);
    if (put_sealed(c, &b) < 0) {
        mo_call_refuse(c, 200, MO_RPC_INTERNAL, "the state is too big",
                       nothing);
    } else {
        put_questions(c, mo_buf_view(&b));
        mo_call_answer(c, 200);
    }
    mo_buf_fini(&b);
}

/* --- a request
 * ------------------------------------------------------------------------------
 */

static void start_call(struct mo_endpoint *ep, const struct mo_ep_from *from,
                       const struct mo_rpc *m)
{
    const struct ep_method *em = mo_ep_method(ep, m->method, true);
    struct call *c = mo_call_new(ep, from, m, em);
    struct envelope en;
    const char *bad, *header = NULL;

    if (!c) {
        mo_ep_refuse(ep, from->way, 200, m->id, MO_RPC_INTERNAL,
                     "out of memory", nothing);
        return;
    }
    en.meta = mo_json_get(c->pub.params, "_meta");
    c->pub.version = MO_MCP_2026_07_28;
    c->pub.caps = mo_json_get(en.meta, MO_MCP_P_CAPS);
    c->pub.client = mo_json_get(en.meta, MO_MCP_P_CLIENT);
    c->level = mo_ep_level(mo_json_get(en.meta, MO_MCP_P_LOG));
    if (!em) {
        start_listen(c);
        return;
    }
    bad = mo_call_check(c);
    if (!bad && from->head && mo_ep_params(ep, from->head, c, &header) < 0) {
        mo_call_refuse(c, 400, MO_MCP_HEADER_MISMATCH, header, nothing);
        return;
    }
    if (!bad && (em->flags & M_MRTR))
        bad = take_answers(c);
    if (bad)
        mo_call_refuse(c, 200, MO_RPC_INVALID_PARAMS, bad, nothing);
    else
        mo_call_run(c);
}

static void on_request(struct mo_endpoint *ep, const struct mo_ep_from *from,
                       const struct mo_rpc *m)
{
    struct envelope en;
    struct refusal r;
    struct mo_buf data;

    mo_buf_init(&data, EP_CALL_EXTRA);
    r = check(ep, from->head, m, &en, &data);
    if (!r.why && from->sess &&
        (from->sess->ncalls >= ep->o.limits.calls ||
         mo_call_find(&from->sess->calls, m->id)))
        r = (struct refusal){200, MO_RPC_INVALID_REQUEST,
                             "this id is in use, or too many are", NULL};
    if (r.why)
        mo_ep_refuse(ep, from->way, r.status, m->id, r.code, r.why,
                     r.data ? mo_buf_view(r.data) : nothing);
    else if (mo_json_str_eq(m->method, MO_SPAN("server/discover")))
        discover(ep, from, m);
    else
        start_call(ep, from, m);
    mo_buf_fini(&data);
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
    c = mo_call_find(&from->sess->calls, mo_json_get(m->params, "requestId"));
    if (c)
        mo_call_cancel(c);
}
