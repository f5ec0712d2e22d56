/* llm_resp.c - OpenAI Responses: the request. Stateless: store is false, the
 * whole conversation is sent, and reasoning is exchanged encrypted.
 *
 * Items are sent back unchanged and in order. A reasoning item with nothing
 * after it is left out, because alone it would be rejected. */
#include "agent/llm/llm_priv.h"

/* --- items
 * ------------------------------------------------------------------- */

static void put_piece(struct mo_jw *w, const struct mo_llm_piece *p)
{
    mo_jw_obj(w);
    mo_jw_key(w, "type");
    if (p->kind == MO_PIECE_IMAGE) {
        mo_jw_cstr(w, "input_image");
        mo_jw_key(w, "image_url");
        mo_llm_data_url(w, p);
    } else if (p->kind == MO_PIECE_PDF) {
        mo_jw_cstr(w, "input_file");
        mo_jw_member(w, "filename", MO_SPAN("document.pdf"));
        mo_jw_key(w, "file_data");
        mo_llm_data_url(w, p);
    } else {
        mo_jw_cstr(w, "input_text");
        mo_jw_key(w, "text");
        mo_llm_piece_text(w, p);
    }
    mo_jw_end(w);
}

static void put_pieces(struct mo_jw *w, struct mo_json list)
{
    struct mo_llm_piece p;
    struct mo_json_iter it;
    struct mo_json k, b;

    mo_jw_arr(w);
    mo_json_iter(&it, list);
    while (mo_json_next(&it, &k, &b)) {
        if (mo_llm_piece(b, &p))
            put_piece(w, &p);
    }
    mo_jw_end(w);
}

static void put_user(struct mo_jw *w, struct mo_json entry)
{
    mo_jw_obj(w);
    mo_jw_member(w, "role", MO_SPAN("user"));
    mo_jw_key(w, "content");
    put_pieces(w, mo_json_get(entry, "blocks"));
    mo_jw_end(w);
}

static void put_call(const struct mo_llm_ask *q, size_t i, struct mo_jw *w,
                     struct mo_json call)
{
    mo_jw_obj(w);
    mo_jw_member(w, "type", MO_SPAN("function_call"));
    mo_jw_member_raw(w, "call_id", mo_json_text(mo_llm_wire_id(q, i, call)));
    mo_jw_key(w, "name");
    mo_llm_put_name(w, call);
    mo_jw_member(w, "arguments", mo_json_text(mo_json_get(call, "args")));
    mo_jw_end(w);
}

static void put_said(struct mo_jw *w, const struct mo_llm_piece *p)
{
    mo_jw_obj(w);
    mo_jw_member(w, "role", MO_SPAN("assistant"));
    mo_jw_key(w, "content");
    mo_llm_piece_text(w, p);
    mo_jw_end(w);
}

/* True if a block other than thinking follows block b. */
static bool is_followed(struct mo_json blocks, struct mo_json b)
{
    struct mo_json_iter it;
    struct mo_json k, v;

    mo_json_iter(&it, blocks);
    while (mo_json_next(&it, &k, &v)) {
        if (v.p > b.p && !mo_llm_is_type(v, "thinking"))
            return true;
    }
    return false;
}

static void put_assistant(const struct mo_llm_ask *q, size_t i, struct mo_jw *w)
{
    struct mo_json blocks = mo_json_get(q->entries[i], "blocks");
    struct mo_llm_piece p;
    struct mo_json_iter it;
    struct mo_json k, b, raw;

    mo_json_iter(&it, blocks);
    while (mo_json_next(&it, &k, &b)) {
        raw = mo_json_get(b, "raw");
        if (q->own[i] && mo_json_is(raw, MO_JSON_OBJECT)) {
            if (!mo_llm_is_type(b, "thinking") || is_followed(blocks, b))
                mo_jw_raw(w, mo_json_text(raw));
        } else if (mo_llm_is_type(b, "call")) {
            put_call(q, i, w, b);
        } else if (mo_llm_is_type(b, "text") && mo_llm_piece(b, &p)) {
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
        mo_jw_member_raw(w, "call_id",
                         mo_json_text(mo_llm_wire_id(q, i, v[c].call)));
        mo_jw_key(w, "output");
        if (plain)
            mo_llm_result_text(w, &v[c]);
        else
            put_pieces(w, content);
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
        mo_jw_key(w, "strict"); /* the default is true */
        mo_jw_bool(w, false);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void put_head(struct mo_jw *w, const struct mo_llm_request *r)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "model", r->model);
    if (r->system.n) {
        mo_jw_member(w, "instructions", r->system);
    }
    if (r->ntools)
        put_tools(w, r);
    if (r->ntools && r->quiet) {
        mo_jw_member(w, "tool_choice", MO_SPAN("none"));
    }
    mo_jw_member_arr(w, "input");
}

static void put_input(const struct mo_llm_ask *q, struct mo_jw *w)
{
    size_t knot = mo_llm_last_said(q);

    for (size_t i = q->from.entry; i < q->n; i++) {
        if (i == knot)
            mo_llm_knot(q, i, w, NULL);
        if (mo_llm_is_role(q->entries[i], "user")) {
            put_user(w, q->entries[i]);
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

static int put_responses_path(const struct mo_llm_ask *q, struct mo_buf *path)
{
    (void)q;
    return mo_buf_puts(path, "/responses");
}

const struct mo_llm_wire mo_llm_responses = {
    .put = put_responses_body,
    .put_path = put_responses_path,
    .event = mo_llm_responses_event,
    .finish = mo_llm_responses_finish,
    .put_raw = mo_llm_responses_raw,
};
