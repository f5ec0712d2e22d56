/* llm_gemini_in.c - Google generateContent: the stream.
 *
 * Every event is a complete response with the next parts. Text parts without a
 * signature are joined; any other part is kept unchanged. The stream ends with
 * a finishReason. CONTINUATION does not end it: the request is sent again with
 * the token, and its response continues the same reply. */
#include "agent/llm/llm_priv.h"

/* --- parts --------------------------------------------------------------- */

static bool is_thought(struct mo_json part)
{
    bool b = false;

    (void)mo_json_bool(mo_json_get(part, "thought"), &b);
    return b;
}

/* True if the part has only text and a thought flag, so it may be joined. */
static bool is_plain(struct mo_json part)
{
    struct mo_json_iter it;
    struct mo_json k, v;

    mo_json_iter(&it, part);
    while (mo_json_next(&it, &k, &v)) {
        if (!mo_json_str_eq(k, MO_SPAN("text")) &&
            !mo_json_str_eq(k, MO_SPAN("thought")))
            return false;
    }
    return true;
}

static int take_text(struct mo_llm_in *in, struct mo_json part,
                     struct mo_err *e)
{
    enum mo_llm_block_kind kind =
        is_thought(part) ? MO_LB_THINKING : MO_LB_TEXT;
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
    if (mo_llm_name(in, b, mo_json_get(call, "name"), mo_json_get(call, "id"),
                    e) < 0)
        return e->code;
    name = mo_llm_gemini_name(mo_buf_view(&b->name));
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

/* --- the end ------------------------------------------------------------- */

static const struct {
    const char *raw;
    enum mo_llm_stop stop;
} stops[] = {
    {"STOP", MO_LLM_END},          {"MAX_TOKENS", MO_LLM_LENGTH},
    {"SAFETY", MO_LLM_REFUSED},    {"RECITATION", MO_LLM_REFUSED},
    {"BLOCKLIST", MO_LLM_REFUSED}, {"PROHIBITED_CONTENT", MO_LLM_REFUSED},
    {"SPII", MO_LLM_REFUSED},      {"LANGUAGE", MO_LLM_REFUSED},
};

static void take_stop(struct mo_llm_in *in, struct mo_json raw)
{
    if (!mo_json_is(raw, MO_JSON_STRING))
        return;
    mo_llm_stop_raw(in, raw);
    if (mo_json_str_eq(raw, MO_SPAN("CONTINUATION"))) {
        in->again = true;
        return;
    }
    in->ended = true;
    in->again = false;
    in->redo = mo_json_str_eq(raw, MO_SPAN("MALFORMED_FUNCTION_CALL")) ||
               mo_json_str_eq(raw, MO_SPAN("UNEXPECTED_TOOL_CALL"));
    in->stop = MO_LLM_OTHER;
    for (size_t i = 0; i < MO_COUNT(stops); i++) {
        if (mo_json_str_eq(raw, mo_span_cstr(stops[i].raw)))
            in->stop = stops[i].stop;
    }
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

    if (!mo_json_is(u, MO_JSON_OBJECT))
        return;
    mo_llm_count(mo_json_get(u, "promptTokenCount"), &in->usage.input);
    mo_llm_count(mo_json_get(u, "cachedContentTokenCount"),
                 &in->usage.cache_read);
    mo_llm_count(mo_json_get(u, "candidatesTokenCount"), &said);
    mo_llm_count(mo_json_get(u, "thoughtsTokenCount"), &thought);
    in->usage.output = said + thought;
    mo_buf_reset(&in->usage_raw);
    (void)mo_buf_span(&in->usage_raw, mo_json_text(u));
}

static int take_candidate(struct mo_llm_in *in, struct mo_json c,
                          struct mo_err *e)
{
    struct mo_json_iter it;
    struct mo_json k, part;
    int rc = 0;

    mo_json_iter(&it, mo_json_get(mo_json_get(c, "content"), "parts"));
    while (rc == 0 && mo_json_next(&it, &k, &part))
        rc = take_part(in, part, e);
    take_token(in, mo_json_get(c, "continuationToken"));
    take_stop(in, mo_json_get(c, "finishReason"));
    return rc;
}

static void take_feedback(struct mo_llm_in *in, struct mo_json f)
{
    struct mo_json why = mo_json_get(f, "blockReason");

    if (!mo_json_is(why, MO_JSON_STRING))
        return;
    mo_llm_stop_raw(in, why);
    in->stop = MO_LLM_REFUSED;
    in->ended = true;
}

int mo_llm_gemini_event(struct mo_llm_in *in, const struct mo_sse_event *ev,
                        struct mo_err *e)
{
    struct mo_json v, c;

    if (mo_llm_event_json(in, ev, &v, e) < 0)
        return e->code;
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

int mo_llm_gemini_finish(struct mo_llm_in *in, struct mo_err *e)
{
    (void)in;
    (void)e;
    return 0;
}

void mo_llm_gemini_raw(const struct mo_llm_in *in, const struct mo_llm_block *b,
                       struct mo_buf *out)
{
    struct mo_jw w;

    (void)in;
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
