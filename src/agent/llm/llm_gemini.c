/* llm_gemini.c - Google generateContent, streamed: the request.
 *
 * Parts are sent back exactly as they came, one by one: a thought signature
 * belongs to its part, and a call's id to the call and its response. History of
 * another model has no signatures; Google documents a placeholder for the steps
 * it checks, those since the last user message.
 *
 * llm_gschema.c translates schemas. Tool names must not begin with a digit or
 * '-': such names get a '_' in front, which is removed when they come back. */
#include "agent/llm/llm_priv.h"
#include "codec/http/url.h"

#define STAND_IN "skip_thought_signature_validator"

struct out {
    const struct mo_llm_ask *q;
    struct mo_jw w;
    bool open;    /* a content and its parts are open */
    bool modern;  /* Gemini 3 and later */
    size_t since; /* the first entry whose steps are checked */
};

/* --- names --------------------------------------------------------------- */

static bool needs_prefix(struct mo_span name)
{
    size_t i = 0;

    while (i < name.n && name.p[i] == '_')
        i++;
    return i < name.n &&
           ((name.p[i] >= '0' && name.p[i] <= '9') || name.p[i] == '-');
}

static void put_name(struct mo_jw *w, struct mo_span name)
{
    char odd[MO_LLM_NAME_MAX + 2] = "_";

    if (!needs_prefix(name) || name.n > MO_LLM_NAME_MAX) {
        mo_jw_str(w, name);
        return;
    }
    memcpy(odd + 1, name.p, name.n);
    mo_jw_str(w, mo_span(odd, name.n + 1));
}

struct mo_span mo_llm_gemini_name(struct mo_span name)
{
    return name.n && name.p[0] == '_' && needs_prefix(name)
               ? mo_span_skip(name, 1)
               : name;
}

/* In a response the name must equal the call's, byte for byte. */
static void put_call_name(struct mo_jw *w, struct mo_json call, bool own)
{
    struct mo_json raw = mo_json_get(mo_json_get(call, "raw"), "functionCall");
    struct mo_json name = mo_json_get(call, "name");

    raw = mo_json_get(raw, "name");
    if (own && mo_json_is(raw, MO_JSON_STRING))
        mo_jw_raw(w, mo_json_text(raw));
    else if (mo_llm_good_name(name))
        put_name(w, mo_span(name.p + 1, name.n - 2));
    else
        mo_llm_put_name(w, call);
}

/* --- contents ------------------------------------------------------------ */

static void begin_content(struct out *o, const char *role)
{
    if (o->open)
        return;
    mo_jw_obj(&o->w);
    mo_jw_member_cstr(&o->w, "role", role);
    mo_jw_member_arr(&o->w, "parts");
    o->open = true;
}

static void end_content(struct out *o)
{
    if (!o->open)
        return;
    mo_jw_end(&o->w);
    mo_jw_end(&o->w);
    o->open = false;
}

static void put_piece(struct mo_jw *w, const struct mo_llm_piece *p)
{
    mo_jw_obj(w);
    if (p->kind == MO_PIECE_TEXT) {
        mo_jw_key(w, "text");
        mo_llm_piece_text(w, p);
    } else {
        mo_jw_member_obj(w, "inlineData");
        mo_jw_member_raw(w, "mimeType", mo_json_text(p->mime));
        mo_jw_member_raw(w, "data", mo_json_text(p->data));
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void put_user(struct out *o, size_t i)
{
    struct mo_llm_piece p;
    struct mo_json_iter it;
    struct mo_json k, b;

    mo_json_iter(&it, mo_json_get(o->q->entries[i], "blocks"));
    while (mo_json_next(&it, &k, &b)) {
        if (!mo_llm_piece(b, &p))
            continue;
        begin_content(o, "user");
        put_piece(&o->w, &p);
    }
    end_content(o);
}

static void put_call(struct out *o, size_t i, struct mo_json call, bool first)
{
    struct mo_jw *w = &o->w;

    mo_jw_obj(w);
    mo_jw_member_obj(w, "functionCall");
    mo_jw_member_raw(w, "id", mo_json_text(mo_llm_wire_id(o->q, i, call)));
    mo_jw_key(w, "name");
    put_call_name(w, call, false);
    mo_jw_member_raw(w, "args", mo_json_text(mo_json_get(call, "args")));
    mo_jw_end(w);
    if (first && o->modern && i > o->since)
        mo_jw_member_cstr(w, "thoughtSignature", STAND_IN);
    mo_jw_end(w);
}

static void put_model(struct out *o, size_t i)
{
    bool first = true, own = o->q->own[i];
    struct mo_llm_piece p;
    struct mo_json_iter it;
    struct mo_json k, b, raw;

    mo_json_iter(&it, mo_json_get(o->q->entries[i], "blocks"));
    while (mo_json_next(&it, &k, &b)) {
        raw = mo_json_get(b, "raw");
        if (own && mo_json_is(raw, MO_JSON_OBJECT)) {
            begin_content(o, "model");
            mo_jw_raw(&o->w, mo_json_text(raw));
        } else if (mo_llm_is_type(b, "call")) {
            begin_content(o, "model");
            put_call(o, i, b, first);
            first = false;
        } else if (mo_llm_is_type(b, "text") && mo_llm_piece(b, &p)) {
            begin_content(o, "model");
            put_piece(&o->w, &p);
        }
    }
    end_content(o);
}

/* Images of a result; inside the response if the model accepts them there. */
static void put_media(struct out *o, const struct mo_llm_pair *pair)
{
    struct mo_llm_piece p;
    struct mo_json_iter it;
    struct mo_json k, v;

    mo_json_iter(&it, mo_json_get(pair->result, "content"));
    while (mo_json_next(&it, &k, &v)) {
        if (mo_llm_piece(v, &p) && p.kind != MO_PIECE_TEXT)
            put_piece(&o->w, &p);
    }
}

static bool has_media(const struct mo_llm_pair *pair)
{
    struct mo_llm_piece p;
    struct mo_json_iter it;
    struct mo_json k, v;

    mo_json_iter(&it, mo_json_get(pair->result, "content"));
    while (mo_json_next(&it, &k, &v)) {
        if (mo_llm_piece(v, &p) && p.kind != MO_PIECE_TEXT)
            return true;
    }
    return false;
}

static void put_response(struct out *o, size_t i,
                         const struct mo_llm_pair *pair)
{
    struct mo_json id = mo_json_get(pair->call, "id");
    struct mo_jw *w = &o->w;

    mo_jw_obj(w);
    mo_jw_member_obj(w, "functionResponse");
    if (!o->q->own[i] || (mo_json_is(id, MO_JSON_STRING) && id.n > 2))
        mo_jw_member_raw(w, "id",
                         mo_json_text(mo_llm_wire_id(o->q, i, pair->call)));
    mo_jw_key(w, "name");
    put_call_name(w, pair->call, o->q->own[i]);
    mo_jw_member_obj(w, "response");
    mo_jw_key(w, mo_llm_failed(pair) ? "error" : "output");
    mo_llm_result_text(w, pair);
    mo_jw_end(w);
    if (o->modern && has_media(pair)) {
        mo_jw_member_arr(w, "parts");
        put_media(o, pair);
        mo_jw_end(w);
    }
    mo_jw_end(w);
    mo_jw_end(w);
}

static void put_responses(struct out *o, size_t i)
{
    struct mo_llm_pair v[MO_LLM_CALLS_MAX];
    size_t n = mo_llm_pairs(o->q, i, v);

    if (n == 0)
        return;
    begin_content(o, "user");
    for (size_t c = 0; c < n; c++)
        put_response(o, i, &v[c]);
    for (size_t c = 0; c < n && !o->modern; c++)
        put_media(o, &v[c]);
    end_content(o);
}

/* Refused entries are left out: sent again, they are refused again. */
static bool is_refused(struct mo_json entry)
{
    return mo_json_str_eq(mo_json_get(entry, "stop"), MO_SPAN("refused"));
}

static void put_contents(struct out *o)
{
    size_t knot = mo_llm_last_said(o->q);

    for (size_t i = o->q->from.entry; i < o->q->n; i++) {
        struct mo_json entry = o->q->entries[i];

        if (i == knot)
            mo_llm_knot(o->q, i, &o->w, NULL);
        if (mo_llm_is_role(entry, "user")) {
            put_user(o, i);
        } else if (mo_llm_is_role(entry, "assistant") && !is_refused(entry)) {
            put_model(o, i);
            put_responses(o, i);
        }
    }
    mo_jw_end(&o->w);
}

/* --- the request body
 * -------------------------------------------------------- */

static void put_schema(struct mo_jw *w, struct mo_span schema)
{
    struct mo_json_doc doc;
    mo_autobuf struct mo_buf b = {.max = MO_LLM_REQUEST_MAX};

    if (mo_json_parse(schema, 0, &doc, NULL) < 0 ||
        mo_llm_gschema(doc.root, &b, NULL) < 0) {
        if (!w->b->err)
            w->b->err = mo_buf_err(&b) ? mo_buf_err(&b) : MO_EINVAL;
        mo_jw_null(w);
    } else {
        mo_jw_raw(w, mo_buf_view(&b));
    }
}

static void put_tools(struct mo_jw *w, const struct mo_llm_request *r)
{
    mo_jw_member_arr(w, "tools");
    mo_jw_obj(w);
    mo_jw_member_arr(w, "functionDeclarations");
    for (size_t i = 0; i < r->ntools; i++) {
        mo_jw_obj(w);
        mo_jw_key(w, "name");
        put_name(w, r->tools[i].name);
        mo_jw_member(w, "description", r->tools[i].description);
        mo_jw_key(w, "parametersJsonSchema");
        put_schema(w, r->tools[i].schema);
        mo_jw_end(w);
    }
    mo_jw_end(w);
    mo_jw_end(w);
    mo_jw_end(w);
}

static void put_system(struct mo_jw *w, struct mo_span text)
{
    mo_jw_member_obj(w, "systemInstruction");
    mo_jw_member_arr(w, "parts");
    mo_jw_obj(w);
    mo_jw_member(w, "text", text);
    mo_jw_end(w);
    mo_jw_end(w);
    mo_jw_end(w);
}

static bool is_modern(const char *model)
{
    struct mo_span m = mo_span_cstr(model);

    m = mo_span_starts(m, MO_SPAN("gemini-")) ? mo_span_skip(m, 7) : m;
    return m.n == 0 || m.p[0] < '1' || m.p[0] > '2';
}

static void put_head(struct mo_jw *w, const struct mo_llm_request *r)
{
    mo_jw_obj(w);
    if (r->system.n)
        put_system(w, r->system);
    if (r->ntools)
        put_tools(w, r);
    if (r->ntools && r->quiet)
        mo_jw_member_raw(
            w, "toolConfig",
            MO_SPAN("{\"functionCallingConfig\":{\"mode\":\"NONE\"}}"));
    mo_jw_member_arr(w, "contents");
}

static int put_gemini_body(const struct mo_llm_ask *q, struct mo_buf *body,
                           struct mo_err *e)
{
    struct out o = {
        .q = q, .modern = is_modern(q->r->model), .since = mo_llm_last_user(q)};

    if (!mo_llm_go_on(q, body, &o.w))
        put_head(&o.w, q->r);
    put_contents(&o);
    if (q->max_output) {
        mo_jw_member_obj(&o.w, "generationConfig");
        mo_jw_member_u64(&o.w, "maxOutputTokens", q->max_output);
        mo_jw_end(&o.w);
    }
    mo_jw_end(&o.w);
    return mo_llm_ask_end(body, e);
}

static int put_gemini_path(const struct mo_llm_ask *q, struct mo_buf *path)
{
    struct mo_span m = mo_span_cstr(q->r->model);

    m = mo_span_starts(m, MO_SPAN("models/")) ? mo_span_skip(m, 7) : m;
    (void)mo_buf_puts(path, "/models/");
    (void)mo_pct_encode(path, m);
    return mo_buf_puts(path, ":streamGenerateContent?alt=sse");
}

const struct mo_llm_wire mo_llm_gemini = {
    .put = put_gemini_body,
    .put_path = put_gemini_path,
    .event = mo_llm_gemini_event,
    .finish = mo_llm_gemini_finish,
    .put_raw = mo_llm_gemini_raw,
};
