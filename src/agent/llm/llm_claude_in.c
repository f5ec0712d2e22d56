/* llm_claude_in.c - Anthropic Messages: the stream.
 *
 * A block is kept as its first event plus its deltas, so unknown members are
 * sent back unchanged. Thinking and its signature are opaque. Unknown events,
 * blocks and deltas are ignored. */
#include "agent/llm/llm_priv.h"

typedef int on_event(struct mo_llm_in *in, struct mo_json v, struct mo_err *e);

/* --- usage (running totals)
 * -------------------------------------------------- */

static void take_usage(struct mo_llm_in *in, struct mo_json u)
{
    uint64_t fresh =
        in->usage.input - in->usage.cache_read - in->usage.cache_write;

    if (!mo_json_is(u, MO_JSON_OBJECT))
        return;
    mo_llm_count(mo_json_get(u, "input_tokens"), &fresh);
    mo_llm_count(mo_json_get(u, "output_tokens"), &in->usage.output);
    mo_llm_count(mo_json_get(u, "cache_read_input_tokens"),
                 &in->usage.cache_read);
    mo_llm_count(mo_json_get(u, "cache_creation_input_tokens"),
                 &in->usage.cache_write);
    in->usage.input = fresh + in->usage.cache_read + in->usage.cache_write;
    mo_buf_reset(&in->usage_raw);
    (void)mo_buf_span(&in->usage_raw, mo_json_text(u));
}

static int message_start(struct mo_llm_in *in, struct mo_json v,
                         struct mo_err *e)
{
    (void)e;
    take_usage(in, mo_json_get(mo_json_get(v, "message"), "usage"));
    return 0;
}

/* --- blocks -------------------------------------------------------------- */

static const struct {
    const char *type;
    enum mo_llm_block_kind kind;
    const char *text; /* the member that deltas append to */
} kinds[] = {
    {"text", MO_LB_TEXT, "text"},
    {"thinking", MO_LB_THINKING, "thinking"},
    {"tool_use", MO_LB_CALL, NULL},
};

static int block_start(struct mo_llm_in *in, struct mo_json v, struct mo_err *e)
{
    struct mo_json c = mo_json_get(v, "content_block");
    enum mo_llm_block_kind kind = MO_LB_OTHER;
    struct mo_json text = {NULL, 0};
    struct mo_llm_block *b;
    int64_t index = -1;

    if (!mo_json_is(c, MO_JSON_OBJECT) ||
        mo_json_i64(mo_json_get(v, "index"), &index) < 0)
        return mo_fail(e, MO_EPROTO, "Claude started an invalid block");
    for (size_t i = 0; i < MO_COUNT(kinds); i++) {
        if (!mo_llm_is_type(c, kinds[i].type))
            continue;
        kind = kinds[i].kind;
        if (kinds[i].text)
            text = mo_json_get(c, kinds[i].text);
    }
    b = mo_llm_open(in, kind, index, e);
    if (!b || mo_llm_add(in, &b->start, mo_json_text(c), e) < 0)
        return e->code;
    if (kind == MO_LB_CALL &&
        mo_llm_name(in, b, mo_json_get(c, "name"), mo_json_get(c, "id"), e) < 0)
        return e->code;
    return text.p ? mo_llm_grow(in, b, text, e) : 0;
}

/* Replaces the signature; the newest one is valid. */
static int set_signature(struct mo_llm_in *in, struct mo_llm_block *b,
                         struct mo_json v, struct mo_err *e)
{
    mo_buf_reset(&b->more);
    return mo_llm_add(in, &b->more, mo_json_text(v), e);
}

static int add_citation(struct mo_llm_in *in, struct mo_llm_block *b,
                        struct mo_json v, struct mo_err *e)
{
    if (b->more.len && mo_llm_add(in, &b->more, MO_SPAN(","), e) < 0)
        return e->code;
    return mo_llm_add(in, &b->more, mo_json_text(v), e);
}

static const struct {
    const char *type, *member;
    int (*take)(struct mo_llm_in *in, struct mo_llm_block *b, struct mo_json v,
                struct mo_err *e);
} deltas[] = {
    {"text_delta", "text", mo_llm_grow},
    {"thinking_delta", "thinking", mo_llm_grow},
    {"input_json_delta", "partial_json", mo_llm_grow},
    {"signature_delta", "signature", set_signature},
    {"citations_delta", "citation", add_citation},
};

static int block_delta(struct mo_llm_in *in, struct mo_json v, struct mo_err *e)
{
    struct mo_json d = mo_json_get(v, "delta"), text;
    struct mo_llm_block *b;
    int64_t index = -1;

    (void)mo_json_i64(mo_json_get(v, "index"), &index);
    b = mo_llm_find(in, index);
    if (!b || b->closed)
        return mo_fail(e, MO_EPROTO,
                       "Claude sent a delta without an open block");
    for (size_t i = 0; i < MO_COUNT(deltas); i++) {
        if (!mo_llm_is_type(d, deltas[i].type))
            continue;
        text = mo_json_get(d, deltas[i].member);
        return text.p ? deltas[i].take(in, b, text, e) : 0;
    }
    return 0;
}

static int block_stop(struct mo_llm_in *in, struct mo_json v, struct mo_err *e)
{
    struct mo_llm_block *b;
    int64_t index = -1;

    (void)mo_json_i64(mo_json_get(v, "index"), &index);
    b = mo_llm_find(in, index);
    if (!b)
        return mo_fail(e, MO_EPROTO, "Claude ended a block that was not open");
    if (b->kind == MO_LB_CALL || (b->kind == MO_LB_OTHER && b->body.len))
        return mo_llm_close_args(in, b, e);
    b->closed = true;
    return 0;
}

/* --- the end ------------------------------------------------------------- */

static const struct {
    const char *raw;
    enum mo_llm_stop stop;
} stops[] = {
    {"end_turn", MO_LLM_END},
    {"stop_sequence", MO_LLM_END},
    {"tool_use", MO_LLM_CALLS},
    {"max_tokens", MO_LLM_LENGTH},
    {"model_context_window_exceeded", MO_LLM_LENGTH},
    {"pause_turn", MO_LLM_PAUSED},
    {"compaction", MO_LLM_PAUSED},
    {"refusal", MO_LLM_REFUSED},
};

static int message_delta(struct mo_llm_in *in, struct mo_json v,
                         struct mo_err *e)
{
    struct mo_json raw = mo_json_get(mo_json_get(v, "delta"), "stop_reason");

    (void)e;
    take_usage(in, mo_json_get(v, "usage"));
    if (!mo_json_is(raw, MO_JSON_STRING))
        return 0;
    mo_llm_stop_raw(in, raw);
    in->stop = MO_LLM_OTHER;
    for (size_t i = 0; i < MO_COUNT(stops); i++) {
        if (mo_json_str_eq(raw, mo_span_cstr(stops[i].raw)))
            in->stop = stops[i].stop;
    }
    return 0;
}

static int message_stop(struct mo_llm_in *in, struct mo_json v,
                        struct mo_err *e)
{
    (void)v;
    if (!in->stop_raw[0])
        return mo_fail(e, MO_EPROTO, "Claude ended without a stop reason");
    in->ended = in->whole = true;
    return 0;
}

int mo_llm_claude_event(struct mo_llm_in *in, const struct mo_sse_event *ev,
                        struct mo_err *e)
{
    static const struct {
        const char *type;
        on_event *on;
    } rows[] = {
        {"content_block_delta", block_delta},
        {"content_block_start", block_start},
        {"content_block_stop", block_stop},
        {"message_start", message_start},
        {"message_delta", message_delta},
        {"message_stop", message_stop},
        {"error", mo_llm_event_error},
    };
    struct mo_json v;

    if (mo_llm_event_json(in, ev, &v, e) < 0)
        return e->code;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (mo_llm_is_type(v, rows[i].type))
            return rows[i].on(in, v, e);
    }
    return 0;
}

/* A reply that reached its length limit may end inside its last call. */
int mo_llm_claude_finish(struct mo_llm_in *in, struct mo_err *e)
{
    struct mo_llm_block *last = mo_llm_last(in);

    for (size_t i = 0; i < in->n; i++) {
        if (!in->v[i]->closed && in->stop != MO_LLM_LENGTH)
            return mo_fail(e, MO_EPROTO, "Claude left a block open");
        in->v[i]->drop = !in->v[i]->closed;
    }
    if (last && last->kind == MO_LB_CALL && in->stop == MO_LLM_LENGTH)
        last->drop = true;
    return 0;
}

/* --- raw blocks
 * -------------------------------------------------------------- */

static void put_text(struct mo_jw *w, const struct mo_llm_block *b,
                     struct mo_json start)
{
    static const char *const but[] = {"text", "citations", NULL};

    mo_llm_put_but(w, start, but);
    mo_llm_put_literal(w, "text", &b->body);
    if (!b->more.len)
        return;
    mo_jw_member_raw(w, "citations", MO_SPAN("["));
    (void)mo_buf_span(w->b, mo_buf_view(&b->more));
    (void)mo_buf_putc(w->b, ']');
}

static void put_thinking(struct mo_jw *w, const struct mo_llm_block *b,
                         struct mo_json start)
{
    static const char *const but[] = {"thinking", "signature", NULL};
    struct mo_json sign = mo_json_get(start, "signature");

    mo_llm_put_but(w, start, but);
    mo_llm_put_literal(w, "thinking", &b->body);
    if (b->more.len) {
        mo_jw_key(w, "signature");
        mo_llm_put_json(w, &b->more);
    } else if (sign.p) {
        mo_jw_member_raw(w, "signature", mo_json_text(sign));
    }
}

static void put_input(struct mo_jw *w, const struct mo_llm_block *b,
                      struct mo_json start)
{
    static const char *const but[] = {"input", NULL};

    mo_llm_put_but(w, start, but);
    mo_jw_key(w, "input");
    mo_llm_put_json(w, &b->args);
}

void mo_llm_claude_raw(const struct mo_llm_in *in, const struct mo_llm_block *b,
                       struct mo_buf *out)
{
    static void (*const put[])(struct mo_jw *, const struct mo_llm_block *,
                               struct mo_json) = {
        [MO_LB_TEXT] = put_text,
        [MO_LB_THINKING] = put_thinking,
        [MO_LB_CALL] = put_input,
        [MO_LB_OTHER] = put_input,
    };
    struct mo_json start = {b->start.p, b->start.len};
    struct mo_jw w;

    (void)in;
    if (b->kind == MO_LB_OTHER && !b->args.len) {
        (void)mo_buf_span(out, mo_buf_view(&b->start));
        return;
    }
    w = mo_jw_object(out);
    put[b->kind](&w, b, start);
    mo_jw_end(&w);
}
