/* llm_gemini.c - Google generateContent, streamed.
 *
 * Parts are sent back exactly as they came, one by one: a thought signature
 * belongs to its part, and a call's id to the call and its response. History of
 * another model has no signatures; Google documents a placeholder for the steps
 * it checks, those since the last user message.
 *
 * llm_gschema.c translates schemas. Tool names must not begin with a digit or
 * '-': such names get a '_' in front, which is removed when they come back.
 *
 * Every event of the stream is a complete response with the next parts. Text
 * parts without a signature are joined; any other part is kept unchanged. The
 * stream ends with a finishReason. CONTINUATION does not end it: the request is
 * sent again with the token, and its response continues the same reply. */
#include "agent/llm/llm_priv.h"

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
    return i < name.n && (mo_is_digit(name.p[i]) || name.p[i] == '-');
}

static void put_name(struct mo_jw *w, struct mo_span name)
{
    char odd[MO_LLM_NAME_MAX + 2] = "_";

    if (needs_prefix(name) && name.n <= MO_LLM_NAME_MAX) {
        memcpy(odd + 1, name.p, name.n);
        name = mo_span(odd, name.n + 1);
    }
    mo_jw_member(w, "name", name);
}

/* Maps a name in a reply back to the name of the tool. */
static struct mo_span own_name(struct mo_span name)
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
        mo_jw_member_raw(w, "name", mo_json_text(raw));
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
        mo_llm_piece_text(w, "text", p);
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
    for (struct mo_llm_pieces s = mo_llm_entry_pieces(o->q, o->q->entries[i]);
         mo_llm_next_piece(&s);) {
        begin_content(o, "user");
        put_piece(&o->w, &s.p);
    }
    end_content(o);
}

static void put_call(struct out *o, size_t i, struct mo_json call, bool first)
{
    struct mo_jw *w = &o->w;

    mo_jw_obj(w);
    mo_jw_member_obj(w, "functionCall");
    mo_llm_put_id(w, "id", o->q, i, call);
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
    struct mo_json raw;

    mo_json_each (at, mo_json_get(o->q->entries[i], "blocks")) {
        raw = mo_json_get(at.val, "raw");
        if (own && mo_json_is(raw, MO_JSON_OBJECT)) {
            begin_content(o, "model");
            mo_jw_raw(&o->w, mo_json_text(raw));
        } else if (mo_llm_is_type(at.val, "call")) {
            begin_content(o, "model");
            put_call(o, i, at.val, first);
            first = false;
        } else if (mo_llm_is_type(at.val, "text") && mo_llm_piece(at.val, &p)) {
            begin_content(o, "model");
            put_piece(&o->w, &p);
        }
    }
    end_content(o);
}

/* Images of a result. */
static void put_media(struct out *o, const struct mo_llm_pair *pair)
{
    for (struct mo_llm_pieces s = mo_llm_result_pieces(o->q, pair);
         mo_llm_next_piece(&s);) {
        if (s.p.kind != MO_PIECE_TEXT)
            put_piece(&o->w, &s.p);
    }
}

static bool has_media(const struct out *o, const struct mo_llm_pair *pair)
{
    for (struct mo_llm_pieces s = mo_llm_result_pieces(o->q, pair);
         mo_llm_next_piece(&s);) {
        if (s.p.kind != MO_PIECE_TEXT)
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
        mo_llm_put_id(w, "id", o->q, i, pair->call);
    put_call_name(w, pair->call, o->q->own[i]);
    mo_jw_member_obj(w, "response");
    mo_llm_put_result(w, mo_llm_failed(pair) ? "error" : "output", pair);
    mo_jw_end(w);
    if (o->modern && has_media(o, pair)) {
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

/* --- the request body ---------------------------------------------------- */

static void put_schema(struct mo_jw *w, struct mo_span schema)
{
    struct mo_json_doc doc;
    mo_autobuf struct mo_buf b = {.max = MO_LLM_REQUEST_MAX};

    if (mo_json_parse(schema, 0, &doc, NULL) < 0)
        b.err = MO_EINVAL;
    else
        (void)mo_llm_gschema(doc.root, &b);
    mo_llm_put_json(w, "parametersJsonSchema", &b);
}

static void put_tools(struct mo_jw *w, const struct mo_llm_request *r)
{
    mo_jw_member_arr(w, "tools");
    mo_jw_obj(w);
    mo_jw_member_arr(w, "functionDeclarations");
    for (size_t i = 0; i < r->ntools; i++) {
        mo_jw_obj(w);
        put_name(w, r->tools[i].name);
        mo_jw_member(w, "description", r->tools[i].description);
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

/* --- the stream: parts --------------------------------------------------- */

/* True if the part has only text and a thought flag, so it may be joined. */
static bool is_plain(struct mo_json part)
{
    mo_json_each (at, part) {
        if (!mo_json_str_eq(at.key, MO_SPAN("text")) &&
            !mo_json_str_eq(at.key, MO_SPAN("thought")))
            return false;
    }
    return true;
}

static int take_text(struct mo_llm_in *in, struct mo_json part,
                     struct mo_err *e)
{
    enum mo_llm_block_kind kind =
        mo_json_flag(part, "thought") ? MO_LB_THINKING : MO_LB_TEXT;
    struct mo_json text = mo_json_get(part, "text");
    struct mo_llm_block *b = mo_llm_last(in);
    bool plain = is_plain(part);

    if (plain && text.n <= 2)
        return 0; /* an empty part would be rejected when sent back */
    if (!plain || !b || !b->plain || b->kind != kind) {
        b = mo_llm_open(in, kind, -1, e);
        if (!b)
            return e->code;
        b->plain = plain;
        if (!plain && mo_llm_add(in, &b->start, mo_json_text(part), e) < 0)
            return e->code;
    }
    return mo_llm_grow(in, b, text, e);
}

static int take_call(struct mo_llm_in *in, struct mo_json part,
                     struct mo_json call, struct mo_err *e)
{
    struct mo_json args = mo_json_get(call, "args");
    struct mo_llm_block *b = mo_llm_open(in, MO_LB_CALL, -1, e);
    struct mo_span name;
    int rc;

    if (!b || mo_llm_add(in, &b->start, mo_json_text(part), e) < 0)
        return e->code;
    if (mo_llm_name(b, mo_json_get(call, "name"), mo_json_get(call, "id"), e) <
        0)
        return e->code;
    name = own_name(mo_buf_view(&b->name));
    mo_buf_drop(&b->name, b->name.len - name.n);
    b->closed = true;
    rc = mo_llm_check_args(args);
    if (rc < 0 && rc != MO_EPROTO)
        return mo_fail(e, rc, "arguments of a call");
    if (rc < 0 && args.p && !mo_json_is(args, MO_JSON_NULL) &&
        mo_llm_add(in, &b->bad, mo_json_text(args), e) < 0)
        return e->code;
    if (rc < 0)
        args = (struct mo_json){"{}", 2};
    return mo_llm_add(in, &b->args, mo_json_text(args), e);
}

static int take_part(struct mo_llm_in *in, struct mo_json part,
                     struct mo_err *e)
{
    struct mo_json call = mo_json_get(part, "functionCall");
    struct mo_llm_block *b;

    if (mo_json_is(call, MO_JSON_OBJECT))
        return take_call(in, part, call, e);
    if (mo_json_is(mo_json_get(part, "text"), MO_JSON_STRING))
        return take_text(in, part, e);
    if (!mo_json_is(part, MO_JSON_OBJECT) || mo_json_len(part) == 0)
        return 0;
    b = mo_llm_open(in, MO_LB_OTHER, -1, e);
    return b ? mo_llm_add(in, &b->start, mo_json_text(part), e) : e->code;
}

/* --- the stream: its end ------------------------------------------------- */

static const struct mo_llm_stop_word stops[] = {
    {"STOP", MO_LLM_END},          {"MAX_TOKENS", MO_LLM_LENGTH},
    {"SAFETY", MO_LLM_REFUSED},    {"RECITATION", MO_LLM_REFUSED},
    {"BLOCKLIST", MO_LLM_REFUSED}, {"PROHIBITED_CONTENT", MO_LLM_REFUSED},
    {"SPII", MO_LLM_REFUSED},      {"LANGUAGE", MO_LLM_REFUSED},
};

static void take_stop(struct mo_llm_in *in, struct mo_json raw)
{
    if (!mo_json_is(raw, MO_JSON_STRING))
        return;
    mo_llm_stop(in, raw, stops, MO_COUNT(stops));
    in->again = mo_json_str_eq(raw, MO_SPAN("CONTINUATION"));
    if (in->again)
        return;
    in->ended = true;
    in->redo = mo_json_str_eq(raw, MO_SPAN("MALFORMED_FUNCTION_CALL")) ||
               mo_json_str_eq(raw, MO_SPAN("UNEXPECTED_TOOL_CALL"));
}

static void take_token(struct mo_llm_in *in, struct mo_json token)
{
    if (!mo_json_is(token, MO_JSON_STRING) || token.n <= 2)
        return;
    if (mo_span_eq(mo_buf_view(&in->token), mo_json_text(token)))
        return;
    mo_buf_reset(&in->token);
    in->token_new = mo_buf_span(&in->token, mo_json_text(token)) == 0;
}

static void take_usage(struct mo_llm_in *in, struct mo_json u)
{
    uint64_t said = 0, thought = 0;

    if (!mo_llm_usage_raw(in, u))
        return;
    mo_llm_count(mo_json_get(u, "promptTokenCount"), &in->usage.input);
    mo_llm_count(mo_json_get(u, "cachedContentTokenCount"),
                 &in->usage.cache_read);
    mo_llm_count(mo_json_get(u, "candidatesTokenCount"), &said);
    mo_llm_count(mo_json_get(u, "thoughtsTokenCount"), &thought);
    in->usage.output = said + thought;
}

static int take_candidate(struct mo_llm_in *in, struct mo_json c,
                          struct mo_err *e)
{
    int rc = 0;

    mo_json_each_while (at, mo_json_get(mo_json_get(c, "content"), "parts"),
                        rc == 0)
        rc = take_part(in, at.val, e);
    take_token(in, mo_json_get(c, "continuationToken"));
    take_stop(in, mo_json_get(c, "finishReason"));
    return rc;
}

static void take_feedback(struct mo_llm_in *in, struct mo_json f)
{
    struct mo_json why = mo_json_get(f, "blockReason");

    if (!mo_json_is(why, MO_JSON_STRING))
        return;
    mo_llm_stop(in, why, NULL, 0);
    in->stop = MO_LLM_REFUSED;
    in->ended = true;
}

static int take_event(struct mo_llm_in *in, struct mo_json v, struct mo_err *e)
{
    struct mo_json c;

    if (mo_json_is(v, MO_JSON_ARRAY))
        v = mo_json_at(v, 0);
    if (mo_json_get(v, "error").p)
        return mo_llm_event_error(in, v, e);
    take_usage(in, mo_json_get(v, "usageMetadata"));
    c = mo_json_at(mo_json_get(v, "candidates"), 0);
    if (!c.p)
        take_feedback(in, mo_json_get(v, "promptFeedback"));
    return c.p ? take_candidate(in, c, e) : 0;
}

static void put_raw(const struct mo_llm_block *b, struct mo_buf *out)
{
    struct mo_jw w;

    if (b->start.len) {
        (void)mo_buf_span(out, mo_buf_view(&b->start));
        return;
    }
    w = mo_jw_object(out);
    mo_llm_put_literal(&w, "text", &b->body);
    if (b->kind == MO_LB_THINKING)
        mo_jw_member_bool(&w, "thought", true);
    mo_jw_end(&w);
}

const struct mo_llm_wire mo_llm_gemini = {
    .put = put_gemini_body,
    .path = "/models/",
    .after = ":streamGenerateContent?alt=sse",
    .event = take_event,
    .put_raw = put_raw,
};
