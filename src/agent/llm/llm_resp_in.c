/* llm_resp_in.c - OpenAI Responses: the stream.
 *
 * Deltas are shown and dropped: the finished items are complete and kept
 * unchanged. The stream ends with response.completed or response.incomplete. */
#include "agent/llm/llm_priv.h"

typedef int on_event(struct mo_llm_in *in, struct mo_json v, struct mo_err *e);

/* --- deltas
 * ------------------------------------------------------------------ */

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

/* --- items
 * ------------------------------------------------------------------- */

/* Appends the texts of all parts. */
static int add_texts(struct mo_llm_in *in, struct mo_llm_block *b,
                     struct mo_json list, struct mo_err *e)
{
    struct mo_json_iter it;
    struct mo_json k, part, refusal;

    mo_json_iter(&it, list);
    while (mo_json_next(&it, &k, &part)) {
        refusal = mo_json_get(part, "refusal");
        if (mo_json_is(refusal, MO_JSON_STRING))
            in->refused = true;
        if (mo_llm_add_str(in, &b->body, refusal, e) < 0 ||
            mo_llm_add_str(in, &b->body, mo_json_get(part, "text"), e) < 0)
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
    if (mo_llm_name(in, b, mo_json_get(item, "name"),
                    mo_json_get(item, "call_id"), e) < 0)
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

/* --- the end ------------------------------------------------------------- */

static void take_usage(struct mo_llm_in *in, struct mo_json u)
{
    struct mo_json d = mo_json_get(u, "input_tokens_details");

    if (!mo_json_is(u, MO_JSON_OBJECT))
        return;
    mo_llm_count(mo_json_get(u, "input_tokens"), &in->usage.input);
    mo_llm_count(mo_json_get(u, "output_tokens"), &in->usage.output);
    mo_llm_count(mo_json_get(d, "cached_tokens"), &in->usage.cache_read);
    mo_buf_reset(&in->usage_raw);
    (void)mo_buf_span(&in->usage_raw, mo_json_text(u));
}

/* Some servers send no finished items, only this list of all. */
static int take_output(struct mo_llm_in *in, struct mo_json list,
                       struct mo_err *e)
{
    struct mo_json_iter it;
    struct mo_json k, item;
    int64_t index = 0;
    int rc = 0;

    if (in->n)
        return 0;
    mo_json_iter(&it, list);
    while (rc == 0 && mo_json_next(&it, &k, &item))
        rc = take_item(in, item, index++, e);
    return rc;
}

static int on_completed(struct mo_llm_in *in, struct mo_json v,
                        struct mo_err *e)
{
    struct mo_json r = mo_json_get(v, "response");

    take_usage(in, mo_json_get(r, "usage"));
    mo_llm_stop_raw(in, mo_json_get(r, "status"));
    in->stop = MO_LLM_END;
    in->ended = in->whole = true;
    return take_output(in, mo_json_get(r, "output"), e);
}

static int on_incomplete(struct mo_llm_in *in, struct mo_json v,
                         struct mo_err *e)
{
    struct mo_json r = mo_json_get(v, "response");
    struct mo_json why =
        mo_json_get(mo_json_get(r, "incomplete_details"), "reason");
    int rc = on_completed(in, v, e);

    mo_llm_stop_raw(in, why);
    in->stop = MO_LLM_OTHER;
    if (mo_json_str_eq(why, MO_SPAN("max_output_tokens")))
        in->stop = MO_LLM_LENGTH;
    else if (mo_json_str_eq(why, MO_SPAN("content_filter")))
        in->stop = MO_LLM_REFUSED;
    return rc;
}

static int on_failed(struct mo_llm_in *in, struct mo_json v, struct mo_err *e)
{
    return mo_llm_event_error(in, mo_json_get(v, "response"), e);
}

int mo_llm_responses_event(struct mo_llm_in *in, const struct mo_sse_event *ev,
                           struct mo_err *e)
{
    static const struct {
        const char *type;
        on_event *on;
    } rows[] = {
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
    struct mo_json v;

    if (mo_span_is(mo_span_trim(ev->data), "[DONE]"))
        return 0;
    if (mo_llm_event_json(in, ev, &v, e) < 0)
        return e->code;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (mo_llm_is_type(v, rows[i].type))
            return rows[i].on(in, v, e);
    }
    return 0;
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

int mo_llm_responses_finish(struct mo_llm_in *in, struct mo_err *e)
{
    sort_blocks(in);
    for (size_t i = 0; i < in->n; i++) {
        if (in->v[i]->kind == MO_LB_CALL &&
            mo_llm_close_args(in, in->v[i], e) < 0)
            return e->code;
    }
    if (in->refused && in->stop == MO_LLM_END)
        in->stop = MO_LLM_REFUSED;
    return 0;
}

void mo_llm_responses_raw(const struct mo_llm_in *in,
                          const struct mo_llm_block *b, struct mo_buf *out)
{
    (void)in;
    (void)mo_buf_span(out, mo_buf_view(&b->start));
}
