/* llm_chat.c - OpenAI Chat Completions and compatible servers: the request.
 *
 * OpenAI gets max_completion_tokens, the others max_tokens, which is the only
 * name local servers read, until one refuses it. Without a configured limit
 * none is sent: some servers add it to the prompt and reject the sum. Reasoning
 * is sent back in the member it came in, and only until the person's question
 * is answered: some servers require that, others reject more. OpenAI itself
 * never gets any.
 *
 * Tool messages cannot contain images: a model that takes images gets them in a
 * user message after it, and in any case a line that describes them. */
#include "agent/llm/llm_priv.h"

static void put_role(struct mo_jw *w, const char *role)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "role", role);
}

static void put_piece(struct mo_jw *w, const struct mo_llm_piece *p)
{
    bool image = p->kind == MO_PIECE_IMAGE;

    mo_jw_obj(w);
    mo_jw_member_cstr(w, "type", image ? "image_url" : "text");
    if (image) {
        mo_jw_member_obj(w, "image_url");
        mo_llm_data_url(w, "url", p);
        mo_jw_end(w);
    } else if (p->kind == MO_PIECE_TEXT) {
        mo_llm_piece_text(w, "text", p);
    } else {
        mo_jw_member_cstr(w, "text", "[a PDF document: not shown]");
    }
    mo_jw_end(w);
}

/* --- assistant messages -------------------------------------------------- */

static void put_text(struct mo_jw *w, struct mo_json entry)
{
    mo_autobuf struct mo_buf all = {.max = MO_LLM_REQUEST_MAX};

    mo_llm_entry_text(entry, &all);
    mo_buf_pass_err(w->b, &all);
    if (all.len)
        mo_jw_str(w, mo_buf_view(&all));
    else
        mo_jw_null(w);
}

/* Writes the members that only this server understands: reasoning. */
static void put_own_members(struct mo_jw *w, struct mo_json blocks)
{
    mo_json_each (at, blocks) {
        if (!mo_llm_is_type(at.val, "call"))
            mo_llm_put_but(w, mo_json_get(at.val, "raw"), NULL);
    }
}

static void put_call(const struct mo_llm_ask *q, size_t i, struct mo_jw *w,
                     struct mo_json call)
{
    static const char *const but[] = {"id", NULL};
    struct mo_json raw = mo_json_get(call, "raw");

    mo_jw_obj(w);
    mo_llm_put_id(w, "id", q, i, call);
    if (q->own[i] && mo_json_is(raw, MO_JSON_OBJECT) &&
        mo_llm_good_name(mo_json_get(call, "name"))) {
        mo_llm_put_but(w, raw, but);
    } else {
        mo_jw_member_cstr(w, "type", "function");
        mo_jw_member_obj(w, "function");
        mo_llm_put_name(w, call);
        mo_jw_member(w, "arguments", mo_json_text(mo_json_get(call, "args")));
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static bool says_something(struct mo_json blocks)
{
    struct mo_llm_piece p;

    mo_json_each (at, blocks) {
        if (mo_llm_is_type(at.val, "text") && mo_llm_piece(at.val, &p))
            return true;
    }
    return false;
}

static void put_assistant(const struct mo_llm_ask *q, size_t i, struct mo_jw *w,
                          const struct mo_llm_pair *v, size_t n)
{
    struct mo_json blocks = mo_json_get(q->entries[i], "blocks");

    if (n == 0 && !says_something(blocks))
        return;
    put_role(w, "assistant");
    mo_jw_key(w, "content");
    put_text(w, q->entries[i]);
    if (q->kind == MO_LLM_COMPATIBLE && q->own[i] && i > mo_llm_last_user(q))
        put_own_members(w, blocks);
    if (n) {
        mo_jw_member_arr(w, "tool_calls");
        for (size_t c = 0; c < n; c++)
            put_call(q, i, w, v[c].call);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

/* --- tool and user messages ---------------------------------------------- */

static void put_result(const struct mo_llm_ask *q, size_t i, struct mo_jw *w,
                       const struct mo_llm_pair *p)
{
    put_role(w, "tool");
    mo_llm_put_id(w, "tool_call_id", q, i, p->call);
    mo_llm_put_result(w, "content", p);
    mo_jw_end(w);
}

static void put_images(const struct mo_llm_ask *q, struct mo_jw *w,
                       const struct mo_llm_pair *p, bool *open)
{
    for (struct mo_llm_pieces s = mo_llm_result_pieces(q, p);
         mo_llm_next_piece(&s);) {
        if (s.p.kind != MO_PIECE_IMAGE)
            continue;
        if (!*open) {
            put_role(w, "user");
            mo_jw_member_arr(w, "content");
        }
        *open = true;
        put_piece(w, &s.p);
    }
}

static void put_turn(const struct mo_llm_ask *q, size_t i, struct mo_jw *w)
{
    struct mo_llm_pair v[MO_LLM_CALLS_MAX];
    size_t n = mo_llm_pairs(q, i, v);
    bool open = false;

    put_assistant(q, i, w, v, n);
    for (size_t c = 0; c < n; c++)
        put_result(q, i, w, &v[c]);
    for (size_t c = 0; c < n; c++)
        put_images(q, w, &v[c], &open);
    if (open) {
        mo_jw_end(w);
        mo_jw_end(w);
    }
}

/* True if the entry is one text for this model. */
static bool is_plain(const struct mo_llm_ask *q, struct mo_json entry,
                     struct mo_llm_piece *p)
{
    struct mo_llm_pieces s = mo_llm_entry_pieces(q, entry);

    if (!mo_llm_next_piece(&s))
        return false;
    *p = s.p;
    return p->kind == MO_PIECE_TEXT && p->text.p && !mo_llm_next_piece(&s);
}

static void put_pieces(const struct mo_llm_ask *q, struct mo_jw *w,
                       struct mo_json entry)
{
    for (struct mo_llm_pieces s = mo_llm_entry_pieces(q, entry);
         mo_llm_next_piece(&s);)
        put_piece(w, &s.p);
}

static void put_joined(const struct mo_llm_ask *q, size_t i, size_t end,
                       struct mo_jw *w)
{
    struct mo_llm_piece p;
    mo_autobuf struct mo_buf all = {.max = MO_LLM_REQUEST_MAX};

    for (; i < end; i++) {
        if (all.len)
            (void)mo_buf_puts(&all, "\n\n");
        if (is_plain(q, q->entries[i], &p))
            (void)mo_json_str_buf(p.text, &all);
    }
    mo_jw_key(w, "content");
    mo_jw_buf(w, &all);
}

/* Joins consecutive user entries into one message: the templates of many local
 * models require alternating roles. A single text stays a string, because some
 * servers accept nothing else. Returns the index of the next entry. */
static size_t put_user(const struct mo_llm_ask *q, size_t i, struct mo_jw *w)
{
    struct mo_llm_piece p;
    bool plain = true;
    size_t end = i;

    while (end < q->n && mo_llm_is_role(q->entries[end], "user"))
        plain = is_plain(q, q->entries[end++], &p) && plain;
    put_role(w, "user");
    if (plain && end == i + 1) {
        mo_llm_piece_text(w, "content", &p);
    } else if (plain) {
        put_joined(q, i, end, w);
    } else {
        mo_jw_member_arr(w, "content");
        for (; i < end; i++)
            put_pieces(q, w, q->entries[i]);
        mo_jw_end(w);
    }
    mo_jw_end(w);
    return end;
}

static void put_head(struct mo_jw *w, const struct mo_llm_request *r)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "model", r->model);
    mo_jw_member_arr(w, "messages");
    if (r->system.n) {
        put_role(w, "system");
        mo_jw_member(w, "content", r->system);
        mo_jw_end(w);
    }
}

static void put_messages(const struct mo_llm_ask *q, struct mo_jw *w)
{
    size_t knot = mo_llm_last_said(q);

    for (size_t i = q->from.entry; i < q->n;) {
        if (i == knot)
            mo_llm_knot(q, i, w, NULL);
        if (mo_llm_is_role(q->entries[i], "user")) {
            i = put_user(q, i, w);
            continue;
        }
        if (mo_llm_is_role(q->entries[i], "assistant"))
            put_turn(q, i, w);
        i++;
    }
    mo_jw_end(w);
}

/* --- the request body ---------------------------------------------------- */

static void put_tools(struct mo_jw *w, const struct mo_llm_request *r)
{
    mo_jw_member_arr(w, "tools");
    for (size_t i = 0; i < r->ntools; i++) {
        mo_jw_obj(w);
        mo_jw_member_cstr(w, "type", "function");
        mo_jw_member_obj(w, "function");
        mo_jw_member(w, "name", r->tools[i].name);
        mo_jw_member(w, "description", r->tools[i].description);
        mo_jw_member_raw(w, "parameters", r->tools[i].schema);
        mo_jw_end(w);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

/* How every request ends. */
static void put_tail(struct mo_buf *b, bool new_limit, unsigned max_output)
{
    if (max_output)
        mo_buf_printf(b, ",\"%s\":%u",
                      new_limit ? "max_completion_tokens" : "max_tokens",
                      max_output);
    mo_buf_puts(b, ",\"stream\":true,"
                   "\"stream_options\":{\"include_usage\":true}}");
}

bool mo_llm_chat_new_limit(struct mo_buf *body, unsigned max_output)
{
    mo_autobuf struct mo_buf tail = {.max = 256};

    put_tail(&tail, false, max_output);
    if (!max_output || !mo_span_ends(mo_buf_view(body), mo_buf_view(&tail)))
        return false;
    body->len -= tail.len;
    put_tail(body, true, max_output);
    return mo_buf_err(body) == 0;
}

static int put_chat_body(const struct mo_llm_ask *q, struct mo_buf *body,
                         struct mo_err *e)
{
    struct mo_jw w;

    if (!mo_llm_go_on(q, body, &w))
        put_head(&w, q->r);
    put_messages(q, &w);
    if (q->r->ntools)
        put_tools(&w, q->r);
    if (q->r->ntools && q->r->quiet)
        mo_jw_member_cstr(&w, "tool_choice", "none");
    put_tail(body, q->kind == MO_LLM_OPENAI || q->new_limit, q->max_output);
    return mo_llm_ask_end(body, e);
}

const struct mo_llm_wire mo_llm_chat = {
    .put = put_chat_body,
    .path = "/chat/completions",
    .event = mo_llm_chat_event,
    .finish = mo_llm_chat_finish,
    .put_raw = mo_llm_chat_raw,
};
