/* llm_chat_in.c - OpenAI Chat Completions and compatible servers: the stream.
 *
 * Servers differ most in how a call arrives: with an index, without one, or
 * with another call's index; in one piece or many; with a name in every piece
 * or only in the first; with arguments as text or as an object; with or without
 * an id. find_call() handles all of these.
 *
 * Some servers leave reasoning in the text, between <think> and </think> at its
 * beginning. It is treated as thinking, wherever the tags are split. */
#include "agent/llm/llm_priv.h"

enum think { AT_START, IN_THINK, IN_TEXT };

static bool has_member(struct mo_json v)
{
    return mo_json_is(v, MO_JSON_STRING) && v.n > 2;
}

/* --- text and thinking --------------------------------------------------- */

static int grow_last(struct mo_llm_in *in, enum mo_llm_block_kind kind,
                     struct mo_span s, struct mo_err *e)
{
    struct mo_llm_block *b = mo_llm_last(in);

    if (s.n == 0)
        return 0;
    if (!b || b->kind != kind || !b->plain)
        b = mo_llm_open(in, kind, -1, e);
    if (!b)
        return e->code;
    b->plain = true;
    return mo_llm_grow_text(in, b, s, e);
}

/* Length of the end of s that may be the beginning of tag. */
static size_t partial_tag_len(struct mo_span s, struct mo_span tag)
{
    size_t n = s.n < tag.n - 1 ? s.n : tag.n - 1;

    while (n && memcmp(s.p + s.n - n, tag.p, n) != 0)
        n--;
    return n;
}

static int take_think(struct mo_llm_in *in, struct mo_span *s, struct mo_err *e)
{
    static const struct mo_span tag = {"</think>", 8};
    ptrdiff_t at = mo_span_search(*s, tag);
    size_t half = at < 0 ? partial_tag_len(*s, tag) : 0;
    size_t n = at < 0 ? s->n - half : (size_t)at;
    int rc = grow_last(in, MO_LB_THINKING, mo_span_head(*s, n), e);

    *s = mo_span_skip(*s, at < 0 ? n : n + tag.n);
    if (at >= 0)
        in->think = IN_TEXT;
    return rc;
}

/* Skips whitespace before the tag. Returns false if more input is needed. */
static bool skip_to_think(struct mo_llm_in *in, struct mo_span *s)
{
    static const struct mo_span tag = {"<think>", 7};
    struct mo_span t = *s;

    while (t.n && (t.p[0] == ' ' || t.p[0] == '\n' || t.p[0] == '\r'))
        t = mo_span_skip(t, 1);
    if (mo_span_starts(t, tag)) {
        in->think = IN_THINK;
        *s = mo_span_skip(t, tag.n);
        return true;
    }
    if (s->n < 32 && (t.n == 0 || mo_span_starts(tag, t)))
        return false;
    in->think = IN_TEXT;
    return true;
}

/* `hold` keeps bytes that cannot be classified yet; they precede the next
 * piece. */
static int take_content(struct mo_llm_in *in, struct mo_span piece, bool last,
                        struct mo_err *e)
{
    mo_autobuf struct mo_buf all = {.max = MO_LLM_REPLY_MAX};
    struct mo_span s;
    int rc = 0;

    (void)mo_buf_span(&all, mo_buf_view(&in->hold));
    if (mo_buf_span(&all, piece) < 0)
        rc = mo_fail(e, mo_buf_err(&all), "reply");
    mo_buf_reset(&in->hold);
    s = mo_buf_view(&all);
    if (rc == 0 && in->think == AT_START && !skip_to_think(in, &s) && last)
        in->think = IN_TEXT;
    if (rc == 0 && in->think == IN_THINK)
        rc = take_think(in, &s, e);
    if (rc == 0 && (in->think == IN_TEXT || last)) {
        rc = grow_last(in, in->think == IN_TEXT ? MO_LB_TEXT : MO_LB_THINKING,
                       s, e);
        s.n = 0;
    }
    if (rc == 0 && mo_buf_span(&in->hold, s) < 0)
        rc = mo_fail(e, mo_buf_err(&in->hold), "reply");
    return rc;
}

/* The common case: no tag is possible, the bytes are kept unchanged. */
static int take_plain(struct mo_llm_in *in, struct mo_json v, struct mo_err *e)
{
    struct mo_llm_block *b = mo_llm_last(in);

    if (!b || b->kind != MO_LB_TEXT)
        b = mo_llm_open(in, MO_LB_TEXT, -1, e);
    if (!b)
        return e->code;
    b->plain = true;
    return mo_llm_grow(in, b, v, e);
}

static int take_text(struct mo_llm_in *in, struct mo_json v, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_LLM_REPLY_MAX};

    if (!has_member(v))
        return 0;
    if (!in->compatible || in->think == IN_TEXT)
        return take_plain(in, v, e);
    return mo_json_str_buf(v, &b) < 0
               ? mo_fail(e, mo_buf_err(&b), "reply")
               : take_content(in, mo_buf_view(&b), false, e);
}

/* Content as a list of parts instead of a string. */
static int take_parts(struct mo_llm_in *in, struct mo_json v, struct mo_err *e)
{
    int rc = 0;

    if (!mo_json_is(v, MO_JSON_ARRAY))
        return take_text(in, v, e);
    mo_json_each_while (at, v, rc == 0)
        rc = take_text(in, mo_json_get(at.val, "text"), e);
    return rc;
}

/* `start` holds the name of the member it came in, as JSON. */
static int take_reasoning(struct mo_llm_in *in, struct mo_json delta,
                          const char *member, struct mo_err *e)
{
    struct mo_json v = mo_json_get(delta, member);
    struct mo_llm_block *b = mo_llm_last(in);

    if (!has_member(v))
        return 0;
    if (!b || b->kind != MO_LB_THINKING || !b->start.len) {
        b = mo_llm_open(in, MO_LB_THINKING, -1, e);
        if (!b || mo_llm_add(in, &b->start, mo_span_cstr(member), e) < 0)
            return e->code;
    }
    return mo_llm_grow(in, b, v, e);
}

/* --- OpenRouter's reasoning_details -------------------------------------- */

/* A list of opaque items that is sent back as one list. Text arrives in pieces,
 * each a complete item; items with the same index are joined. In the block:
 * `more` holds the finished items, `start` the open item's first piece, `body`
 * its text, `args` its signature. */

/* Returns the member whose pieces are joined, or NULL. */
static const char *joined_member(struct mo_json item)
{
    if (mo_llm_is_type(item, "reasoning.text"))
        return "text";
    return mo_llm_is_type(item, "reasoning.summary") ? "summary" : NULL;
}

static bool continues_detail(const struct mo_llm_block *b, struct mo_json item)
{
    struct mo_json open = {b->start.p, b->start.len};
    const char *member = joined_member(item);

    return b->start.len && member && joined_member(open) &&
           strcmp(joined_member(open), member) == 0 &&
           mo_span_eq(mo_json_text(mo_json_get(open, "index")),
                      mo_json_text(mo_json_get(item, "index")));
}

static int close_detail(struct mo_llm_block *b, struct mo_err *e)
{
    struct mo_json open = {b->start.p, b->start.len};
    const char *but[] = {b->start.len ? joined_member(open) : NULL, "signature",
                         NULL};
    struct mo_jw w;

    if (!but[0])
        return 0;
    if (b->more.len)
        (void)mo_buf_putc(&b->more, ',');
    w = mo_jw_object(&b->more);
    mo_llm_put_but(&w, open, but);
    mo_llm_put_literal(&w, but[0], &b->body);
    if (b->args.len)
        mo_llm_put_json(&w, "signature", &b->args);
    mo_jw_end(&w);
    mo_buf_reset(&b->start);
    mo_buf_reset(&b->body);
    mo_buf_reset(&b->args);
    return mo_buf_err(&b->more) ? mo_fail(e, mo_buf_err(&b->more), "reply") : 0;
}

static int take_detail(struct mo_llm_in *in, struct mo_llm_block *b,
                       struct mo_json item, struct mo_err *e)
{
    struct mo_json sign = mo_json_get(item, "signature");
    const char *member = joined_member(item);

    if (!continues_detail(b, item) && close_detail(b, e) < 0)
        return e->code;
    if (!member) {
        if (b->more.len && mo_llm_add(in, &b->more, MO_SPAN(","), e) < 0)
            return e->code;
        return mo_llm_add(in, &b->more, mo_json_text(item), e);
    }
    if (!b->start.len && mo_llm_add(in, &b->start, mo_json_text(item), e) < 0)
        return e->code;
    if (mo_json_is(sign, MO_JSON_STRING)) {
        mo_buf_reset(&b->args);
        if (mo_llm_add(in, &b->args, mo_json_text(sign), e) < 0)
            return e->code;
    }
    return mo_llm_add_str(in, &b->body, mo_json_get(item, member), e);
}

static struct mo_llm_block *details_block(const struct mo_llm_in *in)
{
    for (size_t i = 0; i < in->n; i++) {
        if (in->v[i]->kind == MO_LB_OTHER)
            return in->v[i];
    }
    return NULL;
}

static int take_details(struct mo_llm_in *in, struct mo_json list,
                        struct mo_err *e)
{
    struct mo_llm_block *b = details_block(in);
    int rc = 0;

    if (!mo_json_is(list, MO_JSON_ARRAY) || mo_json_len(list) == 0)
        return 0;
    b = b ? b : mo_llm_open(in, MO_LB_OTHER, -1, e);
    if (!b)
        return e->code;
    mo_json_each_while (at, list, rc == 0) {
        if (mo_json_is(at.val, MO_JSON_OBJECT))
            rc = take_detail(in, b, at.val, e);
    }
    return rc;
}

/* --- calls --------------------------------------------------------------- */

/* The last call with that id (none: any) and that index (negative: any). */
static struct mo_llm_block *last_call(const struct mo_llm_in *in,
                                      struct mo_json id, int64_t index)
{
    for (size_t i = in->n; i > 0; i--) {
        struct mo_llm_block *b = in->v[i - 1];

        if (b->kind == MO_LB_CALL && (index < 0 || b->index == index) &&
            (!id.p || mo_json_str_eq(id, mo_buf_view(&b->id))))
            return b;
    }
    return NULL;
}

/* True if the arguments so far are a complete object. */
static bool has_whole_args(const struct mo_llm_block *b)
{
    struct mo_json_doc doc;
    mo_autobuf struct mo_buf text = {.max = MO_LLM_REPLY_MAX};

    return mo_llm_body_text(&b->body, &text) == 0 &&
           mo_json_parse(mo_buf_view(&text), 0, &doc, NULL) == 0;
}

/* A piece has a name but no id: true if it starts the next call, false if it
 * repeats the name of this one. */
static bool opens_call(const struct mo_llm_block *b, struct mo_json name,
                       int64_t index)
{
    if (!mo_json_str_eq(name, mo_buf_view(&b->name)))
        return true;
    return index < 0 && has_whole_args(b);
}

static struct mo_llm_block *find_call(const struct mo_llm_in *in,
                                      struct mo_json id, struct mo_json name,
                                      int64_t index)
{
    static const struct mo_json any = {NULL, 0};
    struct mo_llm_block *b = last_call(in, any, index);

    if (!b || (index < 0 && has_member(id)))
        return has_member(id) ? last_call(in, id, -1) : NULL;
    if (has_member(id) && b->id.len && !mo_json_str_eq(id, mo_buf_view(&b->id)))
        return NULL;
    if (!has_member(id) && has_member(name) && opens_call(b, name, index))
        return NULL;
    return b;
}

static const char *const call_known[] = {"index", "id", "type", "function",
                                         NULL};

static struct mo_llm_block *open_call(struct mo_llm_in *in, struct mo_json tc,
                                      struct mo_json name, int64_t index,
                                      struct mo_err *e)
{
    struct mo_llm_block *b = mo_llm_open(in, MO_LB_CALL, index, e);
    struct mo_jw w;

    if (!b || mo_llm_name(b, name, mo_json_get(tc, "id"), e) < 0)
        return NULL;
    w = mo_jw_object(&b->start); /* keep its other members */
    mo_llm_put_but(&w, tc, call_known);
    mo_jw_end(&w);
    if (mo_buf_err(&b->start))
        return mo_null(mo_fail(e, mo_buf_err(&b->start), "reply"));
    in->held += b->start.len;
    return b;
}

static int take_call(struct mo_llm_in *in, struct mo_json tc, struct mo_err *e)
{
    struct mo_json f = mo_json_get(tc, "function"), id = mo_json_get(tc, "id");
    struct mo_json name = mo_json_get(f, "name");
    struct mo_json args = mo_json_get(f, "arguments");
    struct mo_llm_block *b;
    int64_t index = -1;

    (void)mo_json_i64(mo_json_get(tc, "index"), &index);
    b = find_call(in, id, name, index);
    if (b && b->id.len == 0 && has_member(id) &&
        mo_json_str_buf(id, &b->id) < 0)
        return mo_fail(e, mo_buf_err(&b->id), "id of a call");
    if (!b)
        b = open_call(in, tc, name, index, e);
    if (!b)
        return e->code;
    if (mo_json_is(args, MO_JSON_OBJECT))
        return mo_llm_grow_text(in, b, mo_json_text(args), e);
    return mo_llm_grow(in, b, args, e);
}

static int take_calls(struct mo_llm_in *in, struct mo_json list,
                      struct mo_err *e)
{
    int rc = 0;

    mo_json_each_while (at, list, rc == 0) {
        if (mo_json_is(at.val, MO_JSON_OBJECT))
            rc = take_call(in, at.val, e);
    }
    return rc;
}

/* --- the end ------------------------------------------------------------- */

static const struct mo_llm_stop_word stops[] = {
    {"stop", MO_LLM_END},
    {"length", MO_LLM_LENGTH},
    {"tool_calls", MO_LLM_CALLS},
    {"function_call", MO_LLM_CALLS},
    {"content_filter", MO_LLM_REFUSED},
};

static int take_delta(struct mo_llm_in *in, struct mo_json d, struct mo_err *e)
{
    struct mo_json refusal = mo_json_get(d, "refusal");

    if (take_details(in, mo_json_get(d, "reasoning_details"), e) < 0 ||
        take_reasoning(in, d, "reasoning_content", e) < 0 ||
        take_reasoning(in, d, "reasoning", e) < 0 ||
        take_parts(in, mo_json_get(d, "content"), e) < 0 ||
        take_text(in, refusal, e) < 0)
        return e->code;
    if (has_member(refusal))
        in->refused = true;
    return take_calls(in, mo_json_get(d, "tool_calls"), e);
}

int mo_llm_chat_event(struct mo_llm_in *in, struct mo_json v, struct mo_err *e)
{
    struct mo_json error = mo_json_get(v, "error");
    struct mo_json c = mo_json_at(mo_json_get(v, "choices"), 0);
    struct mo_json stop = mo_json_get(c, "finish_reason"), d;
    int rc;

    if (error.p && !mo_json_is(error, MO_JSON_NULL))
        return mo_llm_event_error(in, v, e);
    mo_llm_usage(in, mo_json_get(v, "usage"), "prompt_tokens",
                 "completion_tokens", "prompt_tokens_details");
    if (!c.p)
        return 0;
    d = mo_json_get(c, "delta");
    rc = take_delta(in, d.p ? d : mo_json_get(c, "message"), e);
    if (has_member(stop)) {
        mo_llm_stop(in, stop, stops, MO_COUNT(stops));
        in->ended = true;
    }
    return rc;
}

int mo_llm_chat_finish(struct mo_llm_in *in, struct mo_err *e)
{
    struct mo_llm_block *last, *details = details_block(in);

    if (details && close_detail(details, e) < 0)
        return e->code;
    if (in->compatible && in->think != IN_TEXT &&
        take_content(in, MO_SPAN(""), true, e) < 0)
        return e->code;
    if (mo_llm_close_calls(in, e) < 0)
        return e->code;
    last = mo_llm_last(in);
    if (last && last->kind == MO_LB_CALL && in->stop == MO_LLM_LENGTH)
        last->drop = true;
    if (in->refused && in->stop == MO_LLM_END)
        in->stop = MO_LLM_REFUSED;
    return 0;
}

/* --- raw blocks ---------------------------------------------------------- */

static void put_call(struct mo_jw *w, const struct mo_llm_block *b)
{
    mo_jw_member_opt(w, "id", mo_buf_view(&b->id));
    mo_jw_member(w, "type", MO_SPAN("function"));
    mo_jw_member_obj(w, "function");
    mo_jw_member(w, "name", mo_buf_view(&b->name));
    if (b->bad.len || !b->body.len)
        mo_jw_member(w, "arguments", MO_SPAN("{}"));
    else
        mo_llm_put_literal(w, "arguments", &b->body);
    mo_jw_end(w);
    mo_llm_put_but(w, (struct mo_json){b->start.p, b->start.len}, NULL);
}

void mo_llm_chat_raw(const struct mo_llm_block *b, struct mo_buf *out)
{
    bool plain = mo_span_is(mo_buf_view(&b->start), "reasoning");
    struct mo_jw w;

    if (b->kind == MO_LB_TEXT || (b->kind == MO_LB_THINKING && !b->start.len))
        return;
    w = mo_jw_object(out);
    if (b->kind == MO_LB_CALL) {
        put_call(&w, b);
    } else if (b->kind == MO_LB_THINKING) {
        mo_llm_put_literal(&w, plain ? "reasoning" : "reasoning_content",
                           &b->body);
    } else {
        mo_llm_put_items(&w, "reasoning_details", &b->more);
    }
    mo_jw_end(&w);
}
