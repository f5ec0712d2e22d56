/* llm_resp.c - OpenAI Responses. Stateless: store is false, the whole
 * conversation is sent, and reasoning is exchanged encrypted.
 *
 * Items are sent back unchanged and in order. A reasoning item with nothing
 * after it is left out, because alone it would be rejected.
 *
 * Deltas of the stream are shown and dropped: the finished items are complete
 * and kept unchanged. The stream ends with response.completed or
 * response.incomplete. */
#include "agent/llm/llm_priv.h"

/* --- items --------------------------------------------------------------- */

static void put_piece(struct mo_jw *w, const struct mo_llm_piece *p)
{
    mo_jw_obj(w);
    if (p->kind == MO_PIECE_IMAGE) {
        mo_jw_member_cstr(w, "type", "input_image");
        mo_llm_data_url(w, "image_url", p);
    } else if (p->kind == MO_PIECE_PDF) {
        mo_jw_member_cstr(w, "type", "input_file");
        mo_jw_member_cstr(w, "filename", "document.pdf");
        mo_llm_data_url(w, "file_data", p);
    } else {
        mo_jw_member_cstr(w, "type", "input_text");
        mo_llm_piece_text(w, "text", p);
    }
    mo_jw_end(w);
}

static void put_pieces(struct mo_jw *w, const char *key, struct mo_llm_pieces s)
{
    mo_jw_member_arr(w, key);
    while (mo_llm_next_piece(&s))
        put_piece(w, &s.p);
    mo_jw_end(w);
}

static void put_user(const struct mo_llm_ask *q, struct mo_jw *w,
                     struct mo_json entry)
{
    mo_jw_obj(w);
    mo_jw_member(w, "role", MO_SPAN("user"));
    put_pieces(w, "content", mo_llm_entry_pieces(q, entry));
    mo_jw_end(w);
}

static void put_call(const struct mo_llm_ask *q, size_t i, struct mo_jw *w,
                     struct mo_json call)
{
    mo_jw_obj(w);
    mo_jw_member(w, "type", MO_SPAN("function_call"));
    mo_llm_put_id(w, "call_id", q, i, call);
    mo_llm_put_name(w, call);
    mo_jw_member(w, "arguments", mo_json_text(mo_json_get(call, "args")));
    mo_jw_end(w);
}

static void put_said(struct mo_jw *w, const struct mo_llm_piece *p)
{
    mo_jw_obj(w);
    mo_jw_member(w, "role", MO_SPAN("assistant"));
    mo_llm_piece_text(w, "content", p);
    mo_jw_end(w);
}

/* True if a block other than thinking follows block b. */
static bool is_followed(struct mo_json blocks, struct mo_json b)
{
    mo_json_each (at, blocks) {
        if (at.val.p > b.p && !mo_llm_is_type(at.val, "thinking"))
            return true;
    }
    return false;
}

static void put_assistant(const struct mo_llm_ask *q, size_t i, struct mo_jw *w)
{
    struct mo_json blocks = mo_json_get(q->entries[i], "blocks");
    struct mo_llm_piece p;
    struct mo_json raw;

    mo_json_each (at, blocks) {
        raw = mo_json_get(at.val, "raw");
        if (q->own[i] && mo_json_is(raw, MO_JSON_OBJECT)) {
            if (!mo_llm_is_type(at.val, "thinking") ||
                is_followed(blocks, at.val))
                mo_jw_raw(w, mo_json_text(raw));
        } else if (mo_llm_is_type(at.val, "call")) {
            put_call(q, i, w, at.val);
        } else if (mo_llm_is_type(at.val, "text") && mo_llm_piece(at.val, &p)) {
            put_said(w, &p);
        }
    }
}

static void put_results(const struct mo_llm_ask *q, size_t i, struct mo_jw *w)
{
    struct mo_llm_pair v[MO_LLM_CALLS_MAX];
    size_t n = mo_llm_pairs(q, i, v);

    for (size_t c = 0; c < n; c++) {
        struct mo_json content = mo_json_get(v[c].result, "content");
        struct mo_llm_piece p;
        bool plain = mo_json_len(content) <= 1 &&
                     (!mo_llm_piece(mo_json_at(content, 0), &p) ||
                      p.kind == MO_PIECE_TEXT);

        mo_jw_obj(w);
        mo_jw_member(w, "type", MO_SPAN("function_call_output"));
        mo_llm_put_id(w, "call_id", q, i, v[c].call);
        if (plain)
            mo_llm_put_result(w, "output", &v[c]);
        else
            put_pieces(w, "output", mo_llm_pieces(q, content));
        mo_jw_end(w);
    }
}

static void put_tools(struct mo_jw *w, const struct mo_llm_request *r)
{
    mo_jw_member_arr(w, "tools");
    for (size_t i = 0; i < r->ntools; i++) {
        mo_jw_obj(w);
        mo_jw_member(w, "type", MO_SPAN("function"));
        mo_jw_member(w, "name", r->tools[i].name);
        mo_jw_member(w, "description", r->tools[i].description);
        mo_jw_member_raw(w, "parameters", r->tools[i].schema);
        mo_jw_member_bool(w, "strict", false); /* the default is true */
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void put_head(struct mo_jw *w, const struct mo_llm_request *r)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "model", r->model);
    mo_jw_member_opt(w, "instructions", r->system);
    if (r->ntools)
        put_tools(w, r);
    if (r->ntools && r->quiet)
        mo_jw_member(w, "tool_choice", MO_SPAN("none"));
    mo_jw_member_arr(w, "input");
}

static void put_input(const struct mo_llm_ask *q, struct mo_jw *w)
{
    size_t knot = mo_llm_last_said(q);

    for (size_t i = q->from.entry; i < q->n; i++) {
        if (i == knot)
            mo_llm_knot(q, i, w, NULL);
        if (mo_llm_is_role(q->entries[i], "user")) {
            put_user(q, w, q->entries[i]);
        } else if (mo_llm_is_role(q->entries[i], "assistant")) {
            put_assistant(q, i, w);
            put_results(q, i, w);
        }
    }
    mo_jw_end(w);
}

static int put_responses_body(const struct mo_llm_ask *q, struct mo_buf *body,
                              struct mo_err *e)
{
    struct mo_jw w;

    if (!mo_llm_go_on(q, body, &w))
        put_head(&w, q->r);
    put_input(q, &w);
    if (q->max_output)
        mo_jw_member_u64(&w, "max_output_tokens", q->max_output);
    mo_jw_member_bool(&w, "store", false);
    mo_jw_member_raw(&w, "include",
                     MO_SPAN("[\"reasoning.encrypted_content\"]"));
    mo_jw_member_bool(&w, "stream", true);
    mo_jw_end(&w);
    return mo_llm_ask_end(body, e);
}

/* --- the stream: deltas -------------------------------------------------- */

static int on_text_delta(struct mo_llm_in *in, struct mo_json v,
                         struct mo_err *e)
{
    (void)e;
    mo_llm_show(in, MO_LB_TEXT, mo_json_get(v, "delta"));
    return 0;
}

static int on_thinking_delta(struct mo_llm_in *in, struct mo_json v,
                             struct mo_err *e)
{
    (void)e;
    mo_llm_show(in, MO_LB_THINKING, mo_json_get(v, "delta"));
    return 0;
}

/* --- the stream: items --------------------------------------------------- */

/* Appends the texts of all parts. */
static int add_texts(struct mo_llm_in *in, struct mo_llm_block *b,
                     struct mo_json list, struct mo_err *e)
{
    struct mo_json refusal;

    mo_json_each (at, list) {
        refusal = mo_json_get(at.val, "refusal");
        if (mo_json_is(refusal, MO_JSON_STRING))
            in->refused = true;
        if (mo_llm_add_str(in, &b->body, refusal, e) < 0 ||
            mo_llm_add_str(in, &b->body, mo_json_get(at.val, "text"), e) < 0)
            return e->code;
    }
    return 0;
}

static bool is_unfinished(struct mo_json item)
{
    struct mo_json s = mo_json_get(item, "status");

    return mo_json_str_eq(s, MO_SPAN("incomplete")) ||
           mo_json_str_eq(s, MO_SPAN("in_progress"));
}

static int take_call(struct mo_llm_in *in, struct mo_llm_block *b,
                     struct mo_json item, struct mo_err *e)
{
    if (mo_llm_name(b, mo_json_get(item, "name"), mo_json_get(item, "call_id"),
                    e) < 0)
        return e->code;
    if (b->id.len == 0)
        return mo_fail(e, MO_EPROTO, "OpenAI sent a call without an id");
    b->drop = is_unfinished(item);
    return mo_llm_grow(in, b, mo_json_get(item, "arguments"), e);
}

static int take_item(struct mo_llm_in *in, struct mo_json item, int64_t index,
                     struct mo_err *e)
{
    static const struct {
        const char *type;
        enum mo_llm_block_kind kind;
    } kinds[] = {{"message", MO_LB_TEXT},
                 {"reasoning", MO_LB_THINKING},
                 {"function_call", MO_LB_CALL}};
    enum mo_llm_block_kind kind = MO_LB_OTHER;
    struct mo_llm_block *b;

    if (!mo_json_is(item, MO_JSON_OBJECT) || mo_llm_find(in, index))
        return 0;
    for (size_t i = 0; i < MO_COUNT(kinds); i++) {
        if (mo_llm_is_type(item, kinds[i].type))
            kind = kinds[i].kind;
    }
    b = mo_llm_open(in, kind, index, e);
    if (!b || mo_llm_add(in, &b->start, mo_json_text(item), e) < 0)
        return e->code;
    if (kind == MO_LB_CALL)
        return take_call(in, b, item, e);
    if (kind == MO_LB_TEXT)
        return add_texts(in, b, mo_json_get(item, "content"), e);
    if (kind == MO_LB_THINKING)
        return add_texts(in, b, mo_json_get(item, "summary"), e);
    return 0;
}

static int on_item_done(struct mo_llm_in *in, struct mo_json v,
                        struct mo_err *e)
{
    int64_t index = (int64_t)in->n;

    (void)mo_json_i64(mo_json_get(v, "output_index"), &index);
    return take_item(in, mo_json_get(v, "item"), index, e);
}

/* --- the stream: its end ------------------------------------------------- */

/* Some servers send no finished items, only this list of all. */
static int take_output(struct mo_llm_in *in, struct mo_json list,
                       struct mo_err *e)
{
    int64_t index = 0;
    int rc = 0;

    if (in->n)
        return 0;
    mo_json_each_while (at, list, rc == 0)
        rc = take_item(in, at.val, index++, e);
    return rc;
}

static int take_end(struct mo_llm_in *in, struct mo_json r, struct mo_err *e)
{
    mo_llm_usage(in, mo_json_get(r, "usage"), "input_tokens", "output_tokens",
                 "input_tokens_details");
    in->ended = in->whole = true;
    return take_output(in, mo_json_get(r, "output"), e);
}

static int on_completed(struct mo_llm_in *in, struct mo_json v,
                        struct mo_err *e)
{
    struct mo_json r = mo_json_get(v, "response");

    mo_llm_stop(in, mo_json_get(r, "status"), NULL, 0);
    in->stop = MO_LLM_END;
    return take_end(in, r, e);
}

static int on_incomplete(struct mo_llm_in *in, struct mo_json v,
                         struct mo_err *e)
{
    static const struct mo_llm_stop_word stops[] = {
        {"max_output_tokens", MO_LLM_LENGTH},
        {"content_filter", MO_LLM_REFUSED},
    };
    struct mo_json r = mo_json_get(v, "response");
    struct mo_json why =
        mo_json_get(mo_json_get(r, "incomplete_details"), "reason");

    mo_llm_stop(
        in, mo_json_is(why, MO_JSON_STRING) ? why : mo_json_get(r, "status"),
        stops, MO_COUNT(stops));
    return take_end(in, r, e);
}

static int on_failed(struct mo_llm_in *in, struct mo_json v, struct mo_err *e)
{
    return mo_llm_event_error(in, mo_json_get(v, "response"), e);
}

static int take_event(struct mo_llm_in *in, struct mo_json v, struct mo_err *e)
{
    static const struct mo_llm_event_type types[] = {
        {"response.output_text.delta", on_text_delta},
        {"response.refusal.delta", on_text_delta},
        {"response.reasoning_summary_text.delta", on_thinking_delta},
        {"response.reasoning_text.delta", on_thinking_delta},
        {"response.output_item.done", on_item_done},
        {"response.completed", on_completed},
        {"response.incomplete", on_incomplete},
        {"response.failed", on_failed},
        {"error", mo_llm_event_error},
    };

    return mo_llm_dispatch(types, MO_COUNT(types), in, v, e);
}

/* Items may finish out of order. */
static void sort_blocks(struct mo_llm_in *in)
{
    for (size_t i = 1; i < in->n; i++) {
        struct mo_llm_block *b = in->v[i];
        size_t j = i;

        for (; j > 0 && in->v[j - 1]->index > b->index; j--)
            in->v[j] = in->v[j - 1];
        in->v[j] = b;
    }
}

static int finish_reply(struct mo_llm_in *in, struct mo_err *e)
{
    sort_blocks(in);
    if (in->refused && in->stop == MO_LLM_END)
        in->stop = MO_LLM_REFUSED;
    return mo_llm_close_calls(in, e);
}

static void put_raw(const struct mo_llm_block *b, struct mo_buf *out)
{
    (void)mo_buf_span(out, mo_buf_view(&b->start));
}

const struct mo_llm_wire mo_llm_responses = {
    .put = put_responses_body,
    .path = "/responses",
    .event = take_event,
    .finish = finish_reply,
    .put_raw = put_raw,
};
