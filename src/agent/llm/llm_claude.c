/* llm_claude.c - Anthropic Messages, version 2026-10-21: the request.
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
 * `thinking` is not sent either: the model's default is used. */
#include "agent/llm/llm_priv.h"

#define MAX_TOKENS 16384u /* default; the API requires a number */
#define MARK       ",\"cache_control\":{\"type\":\"ephemeral\"}}"

struct out {
    const struct mo_llm_ask *q;
    struct mo_jw w;
    const char *role; /* role of the open message, or NULL */
    struct mo_buf
        block; /* the newest block, not written yet: it may get a cache mark */
    size_t mark[2]; /* entries whose last block gets a cache mark */
    size_t knot;    /* entry of the next knot */
};

/* --- blocks -------------------------------------------------------------- */

static void flush_block(struct out *o, bool mark)
{
    struct mo_buf *b = &o->block;

    if (b->err && !o->w.b->err)
        o->w.b->err = b->err;
    if (b->len == 0 || b->err)
        return;
    if (mark && b->p[b->len - 1] == '}') {
        b->len--;
        (void)mo_buf_puts(b, MARK);
    }
    if (b->err)
        o->w.b->err = b->err;
    else
        mo_jw_raw(&o->w, mo_buf_view(b));
    mo_buf_reset(b);
}

static void begin_message(struct out *o, const char *role, struct mo_jw *block)
{
    flush_block(o, false);
    if (o->role != role) {
        if (o->role) {
            mo_jw_end(&o->w);
            mo_jw_end(&o->w);
        }
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
    mo_jw_key(w, "text");
    mo_llm_piece_text(w, p);
    mo_jw_end(w);
}

/* --- messages ------------------------------------------------------------ */

static void put_user(struct out *o, size_t i)
{
    struct mo_llm_piece p;
    struct mo_json_iter it;
    struct mo_json k, b;
    struct mo_jw w;

    mo_json_iter(&it, mo_json_first(o->q->entries[i], "blocks"));
    while (mo_json_next(&it, &k, &b)) {
        if (!mo_llm_piece(b, &p))
            continue;
        begin_message(o, user, &w);
        put_piece(&w, &p);
    }
}

static void put_call(struct out *o, size_t i, struct mo_json call)
{
    struct mo_jw w;

    begin_message(o, assistant, &w);
    mo_jw_obj(&w);
    mo_jw_member(&w, "type", MO_SPAN("tool_use"));
    mo_jw_member_raw(&w, "id", mo_json_text(mo_llm_wire_id(o->q, i, call)));
    mo_jw_key(&w, "name");
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
    struct mo_json_iter it;
    struct mo_json k, b, raw;
    struct mo_jw w;

    mo_json_iter(&it, mo_json_first(o->q->entries[i], "blocks"));
    while (mo_json_next(&it, &k, &b)) {
        raw = mo_json_first(b, "raw");
        if (o->q->own[i] && mo_json_is(raw, MO_JSON_OBJECT)) {
            put_own(o, raw, o->q->bound[i]);
        } else if (mo_llm_is_type(b, "call")) {
            put_call(o, i, b);
        } else if (mo_llm_is_type(b, "text") && mo_llm_piece(b, &p)) {
            begin_message(o, assistant, &w);
            put_piece(&w, &p);
        }
    }
}

/* Writes no content for an empty result. */
static void put_content(struct mo_jw *w, const struct mo_llm_pair *p)
{
    struct mo_llm_piece piece;
    struct mo_json_iter it;
    struct mo_json k, v;
    bool open = false;

    if (!p->result.p) {
        mo_jw_member_cstr(w, "content", MO_LLM_UNKNOWN);
        return;
    }
    mo_json_iter(&it, mo_json_get(p->result, "content"));
    while (mo_json_next(&it, &k, &v)) {
        if (!mo_llm_piece(v, &piece))
            continue;
        if (!open)
            mo_jw_member_arr(w, "content");
        open = true;
        put_piece(w, &piece);
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
        mo_jw_member_raw(&w, "tool_use_id",
                         mo_json_text(mo_llm_wire_id(o->q, i, v[c].call)));
        put_content(&w, &v[c]);
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

static void tie_knot(struct out *o, size_t i)
{
    flush_block(o, false);
    mo_llm_knot(o->q, i, &o->w, o->role);
}

static void put_messages(struct out *o)
{
    for (size_t i = o->q->from.entry; i < o->q->n; i++) {
        if (i == o->knot)
            tie_knot(o, i);
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
    if (o->role) {
        mo_jw_end(&o->w);
        mo_jw_end(&o->w);
    }
    mo_jw_end(&o->w);
}

/* --- the request body
 * -------------------------------------------------------- */

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

static int put_claude_path(const struct mo_llm_ask *q, struct mo_buf *path)
{
    (void)q;
    return mo_buf_puts(path, "/v1/messages");
}

const struct mo_llm_wire mo_llm_claude = {
    .put = put_claude_body,
    .put_path = put_claude_path,
    .event = mo_llm_claude_event,
    .finish = mo_llm_claude_finish,
    .put_raw = mo_llm_claude_raw,
};
