/* llm_claude.c - Anthropic Messages, version 2026-10-21.
 *
 * The bytes of tools, system prompt and earlier messages never change between
 * requests: thinking blocks and the prompt cache are bound to exactly what
 * precedes them. Only the cache marks move; they do not count.
 *
 * Cache marks (four are allowed): the last tool, the system prompt, the last
 * block of the newest user message, and that of the user message before it, so
 * that a long step still finds what the previous step cached.
 *
 * If that beginning has changed (other tools, a summary in place of old turns),
 * thinking bound to the old one is left out, as the API requires. Everything
 * else is sent back unchanged.
 *
 * Sampling parameters are never sent, because this version rejects them.
 * `thinking` is not sent either: the model's default is used.
 *
 * A block of the stream is kept as its first event plus its deltas, so unknown
 * members are sent back unchanged. Thinking and its signature are opaque.
 * Unknown events, blocks and deltas are ignored. */
#include "agent/llm/llm_priv.h"

#define MAX_TOKENS 16384u /* default; the API requires a number */
#define MARK       ",\"cache_control\":{\"type\":\"ephemeral\"}}"

struct out {
    const struct mo_llm_ask *q;
    struct mo_jw w;
    const char *role;    /* role of the open message, or NULL */
    struct mo_buf block; /* the newest, not written yet: it may get a mark */
    size_t mark[2];      /* entries whose last block gets a cache mark */
    size_t knot;         /* entry of the next knot */
};

/* --- blocks -------------------------------------------------------------- */

static void flush_block(struct out *o, bool mark)
{
    struct mo_buf *b = &o->block;

    if (mark && b->len && b->p[b->len - 1] == '}') {
        b->len--;
        (void)mo_buf_puts(b, MARK);
    }
    mo_buf_pass_err(o->w.b, b);
    if (b->len == 0 || b->err)
        return;
    mo_jw_raw(&o->w, mo_buf_view(b));
    mo_buf_reset(b);
}

static void end_message(struct out *o)
{
    if (!o->role)
        return;
    mo_jw_end(&o->w);
    mo_jw_end(&o->w);
}

static void begin_message(struct out *o, const char *role, struct mo_jw *block)
{
    flush_block(o, false);
    if (o->role != role) {
        end_message(o);
        mo_jw_obj(&o->w);
        mo_jw_member_cstr(&o->w, "role", role);
        mo_jw_member_arr(&o->w, "content");
        o->role = role;
    }
    mo_jw_init(block, &o->block);
}

static const char user[] = "user", assistant[] = "assistant";

static void put_source(struct mo_jw *w, const struct mo_llm_piece *p)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "type",
                      p->kind == MO_PIECE_PDF ? "document" : "image");
    mo_jw_member_obj(w, "source");
    mo_jw_member(w, "type", MO_SPAN("base64"));
    mo_jw_member_raw(w, "media_type", mo_json_text(p->mime));
    mo_jw_member_raw(w, "data", mo_json_text(p->data));
    mo_jw_end(w);
    mo_jw_end(w);
}

static void put_piece(struct mo_jw *w, const struct mo_llm_piece *p)
{
    if (p->kind != MO_PIECE_TEXT) {
        put_source(w, p);
        return;
    }
    mo_jw_obj(w);
    mo_jw_member(w, "type", MO_SPAN("text"));
    mo_llm_piece_text(w, "text", p);
    mo_jw_end(w);
}

/* --- messages ------------------------------------------------------------ */

static void put_user(struct out *o, size_t i)
{
    struct mo_jw w;

    for (struct mo_llm_pieces s = mo_llm_entry_pieces(o->q, o->q->entries[i]);
         mo_llm_next_piece(&s);) {
        begin_message(o, user, &w);
        put_piece(&w, &s.p);
    }
}

static void put_call(struct out *o, size_t i, struct mo_json call)
{
    struct mo_jw w;

    begin_message(o, assistant, &w);
    mo_jw_obj(&w);
    mo_jw_member(&w, "type", MO_SPAN("tool_use"));
    mo_llm_put_id(&w, "id", o->q, i, call);
    mo_llm_put_name(&w, call);
    mo_jw_member_raw(&w, "input", mo_json_text(mo_json_get(call, "args")));
    mo_jw_end(&w);
}

static bool is_thinking(struct mo_json raw)
{
    return mo_llm_is_type(raw, "thinking") ||
           mo_llm_is_type(raw, "redacted_thinking");
}

/* Skips blank text, which the API rejects even if the model wrote it. */
static void put_own(struct out *o, struct mo_json raw, bool bound)
{
    struct mo_jw w;

    if (mo_llm_is_type(raw, "text") && mo_llm_blank(mo_json_get(raw, "text")))
        return;
    if (!bound && is_thinking(raw))
        return;
    begin_message(o, assistant, &w);
    mo_jw_raw(&w, mo_json_text(raw));
}

static void put_assistant(struct out *o, size_t i)
{
    struct mo_llm_piece p;
    struct mo_json raw;
    struct mo_jw w;

    mo_json_each (at, mo_json_first(o->q->entries[i], "blocks")) {
        raw = mo_json_first(at.val, "raw");
        if (o->q->own[i] && mo_json_is(raw, MO_JSON_OBJECT)) {
            put_own(o, raw, o->q->bound[i]);
        } else if (mo_llm_is_type(at.val, "call")) {
            put_call(o, i, at.val);
        } else if (mo_llm_is_type(at.val, "text") && mo_llm_piece(at.val, &p)) {
            begin_message(o, assistant, &w);
            put_piece(&w, &p);
        }
    }
}

/* Writes no content for an empty result. */
static void put_content(const struct mo_llm_ask *q, struct mo_jw *w,
                        const struct mo_llm_pair *p)
{
    bool open = false;

    if (!p->result.p) {
        mo_jw_member_cstr(w, "content", MO_LLM_UNKNOWN);
        return;
    }
    for (struct mo_llm_pieces s = mo_llm_result_pieces(q, p);
         mo_llm_next_piece(&s);) {
        if (!open)
            mo_jw_member_arr(w, "content");
        open = true;
        put_piece(w, &s.p);
    }
    if (open)
        mo_jw_end(w);
}

static void put_results(struct out *o, size_t i)
{
    struct mo_llm_pair v[MO_LLM_CALLS_MAX];
    size_t n = mo_llm_pairs(o->q, i, v);
    struct mo_jw w;

    for (size_t c = 0; c < n; c++) {
        begin_message(o, user, &w);
        mo_jw_obj(&w);
        mo_jw_member(&w, "type", MO_SPAN("tool_result"));
        mo_llm_put_id(&w, "tool_use_id", o->q, i, v[c].call);
        put_content(o->q, &w, &v[c]);
        if (mo_llm_failed(&v[c]))
            mo_jw_member_bool(&w, "is_error", true);
        mo_jw_end(&w);
    }
}

/* True for entries sent with the user role: user entries and results. */
static bool speaks_user(const struct mo_llm_ask *q, size_t i)
{
    return !mo_llm_is_role(q->entries[i], "assistant");
}

static void find_marks(struct out *o)
{
    size_t found = 0;

    o->mark[0] = o->mark[1] = o->q->n;
    for (size_t i = o->q->n; i > o->q->from.entry && found < 2; i--) {
        bool last = i == o->q->n || !speaks_user(o->q, i);

        if (speaks_user(o->q, i - 1) && last)
            o->mark[found++] = i - 1;
    }
}

/* Finds the entry for the knot. The older cache mark is absent from the next
 * request, so the knot is before the message that holds it and, if that message
 * is results, before their calls. */
static void find_knot(struct out *o)
{
    size_t i = o->mark[1], first = o->q->from.entry;

    if (i == o->q->n)
        i = first;
    while (i > first && speaks_user(o->q, i - 1))
        i--;
    if (i > first && mo_llm_is_role(o->q->entries[i], "tool"))
        i--;
    o->knot = i;
}

static void put_messages(struct out *o)
{
    for (size_t i = o->q->from.entry; i < o->q->n; i++) {
        if (i == o->knot) {
            flush_block(o, false);
            mo_llm_knot(o->q, i, &o->w, o->role);
        }
        if (mo_llm_is_role(o->q->entries[i], "user")) {
            put_user(o, i);
        } else if (mo_llm_is_role(o->q->entries[i], "assistant")) {
            put_assistant(o, i);
            put_results(o, i);
        }
        if (i == o->mark[0] || i == o->mark[1])
            flush_block(o, o->role == user);
    }
    flush_block(o, false);
    end_message(o);
    mo_jw_end(&o->w);
}

/* --- the request body ---------------------------------------------------- */

static void put_mark(struct mo_jw *w)
{
    mo_jw_member_raw(w, "cache_control", MO_SPAN("{\"type\":\"ephemeral\"}"));
}

static void put_system(struct mo_jw *w, struct mo_span text)
{
    mo_jw_member_arr(w, "system");
    mo_jw_obj(w);
    mo_jw_member(w, "type", MO_SPAN("text"));
    mo_jw_member(w, "text", text);
    put_mark(w);
    mo_jw_end(w);
    mo_jw_end(w);
}

/* Writes the schema; its root must have a type. */
static void put_schema(struct mo_jw *w, struct mo_span schema)
{
    static const char *const but[] = {"type", NULL};
    struct mo_json_doc doc;

    if (mo_json_parse(schema, 0, &doc, NULL) < 0 ||
        mo_llm_is_type(doc.root, "object")) {
        mo_jw_raw(w, schema);
        return;
    }
    mo_jw_obj(w);
    mo_jw_member(w, "type", MO_SPAN("object"));
    mo_llm_put_but(w, doc.root, but);
    mo_jw_end(w);
}

static void put_tools(struct mo_jw *w, const struct mo_llm_request *r)
{
    mo_jw_member_arr(w, "tools");
    for (size_t i = 0; i < r->ntools; i++) {
        mo_jw_obj(w);
        mo_jw_member(w, "name", r->tools[i].name);
        mo_jw_member(w, "description", r->tools[i].description);
        mo_jw_key(w, "input_schema");
        put_schema(w, r->tools[i].schema);
        if (i + 1 == r->ntools)
            put_mark(w);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void put_head(struct mo_jw *w, const struct mo_llm_ask *q)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "model", q->r->model);
    mo_jw_member_u64(w, "max_tokens",
                     q->max_output ? q->max_output : MAX_TOKENS);
    mo_jw_member_bool(w, "stream", true);
    if (q->r->ntools)
        put_tools(w, q->r);
    if (q->r->system.n)
        put_system(w, q->r->system);
    mo_jw_member_arr(w, "messages");
}

static int put_claude_body(const struct mo_llm_ask *q, struct mo_buf *body,
                           struct mo_err *e)
{
    struct out o = {.q = q, .role = q->from.role};

    mo_buf_init(&o.block, MO_LLM_REQUEST_MAX);
    if (!mo_llm_go_on(q, body, &o.w))
        put_head(&o.w, q);
    find_marks(&o);
    find_knot(&o);
    put_messages(&o);
    if (q->r->quiet && q->r->ntools)
        mo_jw_member_raw(&o.w, "tool_choice", MO_SPAN("{\"type\":\"none\"}"));
    mo_jw_end(&o.w);
    mo_buf_fini(&o.block);
    return mo_llm_ask_end(body, e);
}

/* --- the stream: usage (running totals) ---------------------------------- */

static void take_usage(struct mo_llm_in *in, struct mo_json u)
{
    uint64_t fresh =
        in->usage.input - in->usage.cache_read - in->usage.cache_write;

    if (!mo_llm_usage_raw(in, u))
        return;
    mo_llm_count(mo_json_get(u, "input_tokens"), &fresh);
    mo_llm_count(mo_json_get(u, "output_tokens"), &in->usage.output);
    mo_llm_count(mo_json_get(u, "cache_read_input_tokens"),
                 &in->usage.cache_read);
    mo_llm_count(mo_json_get(u, "cache_creation_input_tokens"),
                 &in->usage.cache_write);
    in->usage.input = fresh + in->usage.cache_read + in->usage.cache_write;
}

static int message_start(struct mo_llm_in *in, struct mo_json v,
                         struct mo_err *e)
{
    (void)e;
    take_usage(in, mo_json_get(mo_json_get(v, "message"), "usage"));
    return 0;
}

/* --- the stream: blocks -------------------------------------------------- */

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
        mo_llm_name(b, mo_json_get(c, "name"), mo_json_get(c, "id"), e) < 0)
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

/* The block that an event is about. */
static struct mo_llm_block *block_of(struct mo_llm_in *in, struct mo_json v)
{
    int64_t index = -1;

    (void)mo_json_i64(mo_json_get(v, "index"), &index);
    return mo_llm_find(in, index);
}

static int block_delta(struct mo_llm_in *in, struct mo_json v, struct mo_err *e)
{
    struct mo_json d = mo_json_get(v, "delta"), text;
    struct mo_llm_block *b = block_of(in, v);

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
    struct mo_llm_block *b = block_of(in, v);

    if (!b)
        return mo_fail(e, MO_EPROTO, "Claude ended a block that was not open");
    if (b->kind == MO_LB_CALL || (b->kind == MO_LB_OTHER && b->body.len))
        return mo_llm_close_args(in, b, e);
    b->closed = true;
    return 0;
}

/* --- the stream: its end ------------------------------------------------- */

static const struct mo_llm_stop_word stops[] = {
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
    if (mo_json_is(raw, MO_JSON_STRING))
        mo_llm_stop(in, raw, stops, MO_COUNT(stops));
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

static int take_event(struct mo_llm_in *in, struct mo_json v, struct mo_err *e)
{
    static const struct mo_llm_event_type types[] = {
        {"content_block_delta", block_delta},
        {"content_block_start", block_start},
        {"content_block_stop", block_stop},
        {"message_start", message_start},
        {"message_delta", message_delta},
        {"message_stop", message_stop},
        {"error", mo_llm_event_error},
    };

    return mo_llm_dispatch(types, MO_COUNT(types), in, v, e);
}

/* A reply that reached its length limit may end inside its last call. */
static int finish_reply(struct mo_llm_in *in, struct mo_err *e)
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

/* --- the stream: raw blocks ---------------------------------------------- */

static void put_text_raw(struct mo_jw *w, const struct mo_llm_block *b,
                         struct mo_json start)
{
    static const char *const but[] = {"text", "citations", NULL};

    mo_llm_put_but(w, start, but);
    mo_llm_put_literal(w, "text", &b->body);
    if (b->more.len)
        mo_llm_put_items(w, "citations", &b->more);
}

static void put_thinking_raw(struct mo_jw *w, const struct mo_llm_block *b,
                             struct mo_json start)
{
    static const char *const but[] = {"thinking", "signature", NULL};
    struct mo_json sign = mo_json_get(start, "signature");

    mo_llm_put_but(w, start, but);
    mo_llm_put_literal(w, "thinking", &b->body);
    if (b->more.len)
        mo_llm_put_json(w, "signature", &b->more);
    else
        mo_jw_member_raw(w, "signature", mo_json_text(sign));
}

static void put_input_raw(struct mo_jw *w, const struct mo_llm_block *b,
                          struct mo_json start)
{
    static const char *const but[] = {"input", NULL};

    mo_llm_put_but(w, start, but);
    mo_llm_put_json(w, "input", &b->args);
}

static void put_raw(const struct mo_llm_block *b, struct mo_buf *out)
{
    static void (*const put[])(struct mo_jw *, const struct mo_llm_block *,
                               struct mo_json) = {
        [MO_LB_TEXT] = put_text_raw,
        [MO_LB_THINKING] = put_thinking_raw,
        [MO_LB_CALL] = put_input_raw,
        [MO_LB_OTHER] = put_input_raw,
    };
    struct mo_json start = {b->start.p, b->start.len};
    struct mo_jw w;

    if (b->kind == MO_LB_OTHER && !b->args.len) {
        (void)mo_buf_span(out, mo_buf_view(&b->start));
        return;
    }
    w = mo_jw_object(out);
    put[b->kind](&w, b, start);
    mo_jw_end(&w);
}

const struct mo_llm_wire mo_llm_claude = {
    .put = put_claude_body,
    .path = "/v1/messages",
    .event = take_event,
    .finish = finish_reply,
    .put_raw = put_raw,
};
