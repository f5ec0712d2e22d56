/* entry.c - see entry.h. */
#include "agent/chat/entry.h"

#include "mcp/content.h"

#include <stdio.h>

#include "codec/text/utf8.h"

static const struct {
    const char *name;
    enum mo_entry_role role;
} roles[] = {
    {"user", MO_ENTRY_USER},       {"assistant", MO_ENTRY_ASSISTANT},
    {"tool", MO_ENTRY_TOOL},       {"note", MO_ENTRY_NOTE},
    {"summary", MO_ENTRY_SUMMARY}, {"queued", MO_ENTRY_QUEUED},
    {"branch", MO_ENTRY_BRANCH},
};

enum mo_entry_role mo_entry_role(struct mo_json entry)
{
    struct mo_json role = mo_json_first(entry, "role");

    for (size_t i = 0; i < MO_COUNT(roles); i++)
        if (mo_json_str_eq(role, mo_span_cstr(roles[i].name)))
            return roles[i].role;
    return MO_ENTRY_OTHER;
}

bool mo_entry_for_model(enum mo_entry_role r)
{
    return r == MO_ENTRY_USER || r == MO_ENTRY_ASSISTANT || r == MO_ENTRY_TOOL;
}

/* --- writing ------------------------------------------------------------- */

static void put_blocks(struct mo_jw *w, struct mo_span text,
                       struct mo_span more)
{
    mo_jw_member_arr(w, "blocks");
    if (text.n > 0)
        mo_content_put_block(w, text);
    if (more.n > 0)
        mo_jw_raw(w, more);
    mo_jw_end(w);
}

struct said {
    const char *role;
    bool is_auto;
    struct mo_span id, by, text, more;
};

static void put_message(struct mo_buf *b, const struct said *s)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member(&w, "role", mo_span_cstr(s->role));
    mo_jw_member_opt(&w, "id", s->id);
    mo_jw_member_opt(&w, "by", s->by);
    if (s->is_auto)
        mo_jw_member_bool(&w, "auto", true);
    put_blocks(&w, s->text, s->more);
    mo_jw_end(&w);
}

void mo_entry_message(struct mo_buf *b, const char *role, struct mo_span id,
                      struct mo_span by, struct mo_span text)
{
    put_message(b, &(const struct said){
                       .role = role, .id = id, .by = by, .text = text});
}

void mo_entry_said(struct mo_buf *b, struct mo_span id, struct mo_span by,
                   struct mo_span text, struct mo_span images)
{
    put_message(
        b,
        &(const struct said){
            .role = "user", .id = id, .by = by, .text = text, .more = images});
}

void mo_entry_auto(struct mo_buf *b, struct mo_span id, struct mo_span by,
                   struct mo_span text)
{
    put_message(
        b,
        &(const struct said){
            .role = "user", .is_auto = true, .id = id, .by = by, .text = text});
}

void mo_entry_stopped(struct mo_buf *b, struct mo_span text)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member(&w, "role", MO_SPAN("assistant"));
    put_blocks(&w, text.n > 0 ? text : MO_SPAN("(stopped by the person)"),
               mo_span(NULL, 0));
    mo_jw_member(&w, "stop", MO_SPAN("canceled"));
    if (text.n == 0)
        mo_jw_member_bool(&w, "placeholder", true);
    mo_jw_end(&w);
}

void mo_entry_note(struct mo_buf *b, const char *code, struct mo_span text)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member(&w, "role", MO_SPAN("note"));
    mo_jw_member_cstr(&w, "code", code);
    mo_jw_member(&w, "text", text);
    mo_jw_end(&w);
}

void mo_entry_model(struct mo_buf *b, struct mo_span model)
{
    mo_autobuf struct mo_buf text = {.max = 1024};
    struct mo_jw w = mo_jw_object(b);

    mo_buf_puts(&text, "Now: ");
    mo_buf_span(&text, model);
    mo_jw_member(&w, "role", MO_SPAN("note"));
    mo_jw_member_cstr(&w, "code", "model");
    mo_jw_member(&w, "text", mo_buf_view(&text));
    mo_jw_member(&w, "model", model);
    mo_jw_end(&w);
    mo_buf_pass_err(b, &text);
}

bool mo_entry_is_model(struct mo_json entry)
{
    return mo_entry_role(entry) == MO_ENTRY_NOTE &&
           mo_json_str_eq(mo_json_get(entry, "code"), MO_SPAN("model"));
}

/* --- tool results, cut to size ------------------------------------------- */

/* One text block, cut to `room` bytes: its beginning and, because a result
 * often stands at the end, the last quarter, with a note between them. */
static void put_cut(struct mo_jw *w, struct mo_json block, struct mo_span key,
                    size_t room)
{
    mo_autobuf struct mo_buf cut = {.max = MO_ENTRY_MAX};
    mo_autobuf struct mo_buf all = {.max = MO_ENTRY_MAX};
    size_t end = room / 4, to, from;

    if (mo_json_str_buf(mo_json_get(block, "text"), &all) < 0)
        w->b->err = all.err;
    to = mo_utf8_cut(mo_buf_view(&all), room - end);
    from = mo_utf8_cut(mo_buf_view(&all), all.len > end ? all.len - end : 0);
    from = from < to ? to : from;
    mo_buf_put(&cut, all.p, to);
    if (from > to)
        mo_buf_printf(&cut,
                      "\n[... %zu of %zu bytes left out here; call %.*s keeps "
                      "all of it]\n",
                      from - to, all.len, (int)key.n, key.p);
    mo_buf_span(&cut, mo_span_skip(mo_buf_view(&all), from));
    if (mo_buf_err(&cut))
        w->b->err = cut.err;
    mo_content_put_block(w, mo_buf_view(&cut));
}

static void put_left_out(struct mo_jw *w, struct mo_json block,
                         struct mo_span key)
{
    char text[160];
    int n = snprintf(text, sizeof(text),
                     "[%zu bytes of content left out here; call %.*s keeps "
                     "them]",
                     block.n, (int)(key.n > 64 ? 64 : key.n), key.p);

    mo_content_put_block(w, mo_span(text, (size_t)n));
}

bool mo_entry_is_image(struct mo_json block)
{
    return mo_json_str_eq(mo_json_get(block, "type"), MO_SPAN("image")) &&
           mo_json_is(mo_json_get(block, "data"), MO_JSON_STRING);
}

/* Copies whole blocks while they fit; the first text block that does not fit is
 * cut. Images are kept up to `end` bytes of the entry. */
static void put_content(struct mo_jw *w, struct mo_json content,
                        struct mo_span key, size_t end)
{
    size_t room = MO_ENTRY_RESULT_MAX;

    mo_jw_arr(w);
    mo_json_each (at, content) {
        bool text =
            mo_json_str_eq(mo_json_get(at.val, "type"), MO_SPAN("text"));

        if (mo_entry_is_image(at.val) && w->b->len + at.val.n <= end) {
            mo_jw_raw(w, mo_json_text(at.val));
        } else if (at.val.n <= room) {
            mo_jw_raw(w, mo_json_text(at.val));
            room -= at.val.n;
        } else if (text && room > 0) {
            put_cut(w, at.val, key, room);
            room = 0;
        } else {
            put_left_out(w, at.val, key);
        }
    }
    mo_jw_end(w);
}

static void put_times(struct mo_jw *w, const struct mo_entry_times *t)
{
    const struct {
        const char *name;
        uint64_t n;
    } all[] = {
        {"asked", t->asked}, {"decided", t->decided},  {"began", t->began},
        {"ended", t->ended}, {"routeUs", t->route_us}, {"boxMs", t->box_ms},
    };

    mo_jw_member_obj(w, "times");
    for (size_t i = 0; i < MO_COUNT(all); i++)
        if (all[i].n > 0)
            mo_jw_member_u64(w, all[i].name, all[i].n);
    mo_jw_end(w);
}

static void put_result(struct mo_jw *w, const struct mo_entry_result *r,
                       size_t end)
{
    struct mo_json_doc doc;

    mo_jw_obj(w);
    mo_jw_member(w, "key", r->key);
    mo_jw_member_opt(w, "id", r->id);
    mo_jw_member(w, "name", r->name);
    mo_jw_member_bool(w, "isError", r->is_error);
    mo_jw_member(w, "state", mo_span_cstr(r->state));
    mo_jw_member_raw(w, "app", r->app);
    if (r->times.asked > 0 || r->times.ended > 0)
        put_times(w, &r->times);
    mo_jw_key(w, "content");
    if (mo_json_parse(r->content, 0, &doc, NULL) == 0 &&
        mo_json_is(doc.root, MO_JSON_ARRAY))
        put_content(w, doc.root, r->key, end);
    else
        mo_jw_raw(w, MO_SPAN("[]"));
    mo_jw_end(w);
}

void mo_entry_tool(struct mo_buf *b, const struct mo_entry_result *v, size_t n)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member(&w, "role", MO_SPAN("tool"));
    mo_jw_member_arr(&w, "results");
    for (size_t i = 0; i < n; i++) {
        size_t others = (n - i) * MO_ENTRY_RESULT_MAX;

        put_result(&w, &v[i],
                   others < MO_ENTRY_STORED ? MO_ENTRY_STORED - others : 0);
    }
    mo_jw_end_all(&w);
}

/* --- the public form ----------------------------------------------------- */

/* A person's image without its bytes, which are in the workspace. */
static void put_open_image(struct mo_jw *w, struct mo_json block)
{
    mo_jw_obj(w);
    mo_json_each (at, block) {
        if (mo_json_str_eq(at.key, MO_SPAN("data")))
            continue;
        mo_jw_key_raw(w, at.key);
        mo_jw_raw(w, mo_json_text(at.val));
    }
    mo_jw_end(w);
}

static bool is_opaque(struct mo_json key)
{
    return mo_json_str_eq(key, MO_SPAN("raw")) ||
           mo_json_str_eq(key, MO_SPAN("stopRaw"));
}

/* Copies an object without its opaque members; any other value unchanged. */
static void put_open(struct mo_jw *w, struct mo_json v)
{
    if (!mo_json_is(v, MO_JSON_OBJECT)) {
        mo_jw_raw(w, mo_json_text(v));
        return;
    }
    mo_jw_obj(w);
    mo_json_each (at, v) {
        if (is_opaque(at.key))
            continue;
        mo_jw_key_raw(w, at.key);
        mo_jw_raw(w, mo_json_text(at.val));
    }
    mo_jw_end(w);
}

/* Blocks of type "other" hold only raw data and are skipped. */
static void put_open_blocks(struct mo_jw *w, struct mo_json blocks)
{
    mo_jw_arr(w);
    mo_json_each (at, blocks)
        if (mo_entry_is_image(at.val))
            put_open_image(w, at.val);
        else if (!mo_json_str_eq(mo_json_get(at.val, "type"), MO_SPAN("other")))
            put_open(w, at.val);
    mo_jw_end(w);
}

static bool has_large(struct mo_json result)
{
    mo_json_each (at, mo_json_get(result, "content"))
        if (at.val.n > MO_ENTRY_RESULT_MAX && mo_entry_is_image(at.val))
            return true;
    return false;
}

static void put_open_content(struct mo_jw *w, struct mo_json result)
{
    mo_autobuf struct mo_buf key = {.max = 256};

    (void)mo_json_str_buf(mo_json_get(result, "key"), &key);
    mo_jw_arr(w);
    mo_json_each (at, mo_json_get(result, "content"))
        if (at.val.n > MO_ENTRY_RESULT_MAX && mo_entry_is_image(at.val))
            put_left_out(w, at.val, mo_buf_view(&key));
        else
            mo_jw_raw(w, mo_json_text(at.val));
    mo_jw_end(w);
}

static void put_open_result(struct mo_jw *w, struct mo_json result)
{
    if (!has_large(result)) {
        mo_jw_raw(w, mo_json_text(result));
        return;
    }
    mo_jw_obj(w);
    mo_json_each (at, result) {
        mo_jw_key_raw(w, at.key);
        if (mo_json_str_eq(at.key, MO_SPAN("content")))
            put_open_content(w, result);
        else
            mo_jw_raw(w, mo_json_text(at.val));
    }
    mo_jw_end(w);
}

static void put_open_results(struct mo_jw *w, struct mo_json results)
{
    mo_jw_arr(w);
    mo_json_each (at, results)
        put_open_result(w, at.val);
    mo_jw_end(w);
}

void mo_entry_public(struct mo_buf *b, struct mo_json entry, uint64_t seq,
                     uint64_t at)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_u64(&w, "seq", seq);
    mo_jw_member_u64(&w, "at", at);
    mo_json_each (m, entry) {
        if (is_opaque(m.key))
            continue;
        mo_jw_key_raw(&w, m.key);
        if (mo_json_str_eq(m.key, MO_SPAN("blocks")))
            put_open_blocks(&w, m.val);
        else if (mo_json_str_eq(m.key, MO_SPAN("results")) &&
                 mo_json_is(m.val, MO_JSON_ARRAY))
            put_open_results(&w, m.val);
        else
            put_open(&w, m.val);
    }
    mo_jw_end(&w);
}

int mo_entry_text(struct mo_json entry, struct mo_buf *out)
{
    struct mo_json first = mo_json_at(mo_json_get(entry, "blocks"), 0);
    struct mo_json text = mo_json_get(first, "text");

    return mo_json_is(text, MO_JSON_STRING) ? mo_json_str_buf(text, out)
                                            : MO_EINVAL;
}

static void put_words_of(struct mo_buf *b, struct mo_json list)
{
    mo_json_each (at, list) {
        struct mo_json text = mo_json_get(at.val, "text");

        if (mo_json_is(text, MO_JSON_STRING) && mo_json_str_buf(text, b) == 0)
            mo_buf_putc(b, '\n');
        put_words_of(b, mo_json_get(at.val, "content"));
    }
}

void mo_entry_words(struct mo_buf *b, struct mo_json entry)
{
    put_words_of(b, mo_json_get(entry, "blocks"));
    put_words_of(b, mo_json_get(entry, "results"));
}

/* A queued message is found when it is sent: it is stored again then. */
void mo_entry_search_text(struct mo_span doc, struct mo_buf *b)
{
    struct mo_json_doc parsed;

    if (mo_json_parse(doc, 0, &parsed, NULL) == 0 &&
        mo_entry_role(parsed.root) != MO_ENTRY_QUEUED)
        mo_entry_words(b, parsed.root);
}

/* --- calls --------------------------------------------------------------- */

void mo_entry_calls(struct mo_json_iter *it, struct mo_json entry)
{
    mo_json_iter(it, mo_json_get(entry, "blocks"));
}

bool mo_entry_next_call(struct mo_json_iter *it, struct mo_entry_call *out)
{
    struct mo_json key, val;

    while (mo_json_next(it, &key, &val)) {
        if (!mo_json_str_eq(mo_json_get(val, "type"), MO_SPAN("call")))
            continue;
        *out = (struct mo_entry_call){
            mo_json_get(val, "key"), mo_json_get(val, "id"),
            mo_json_get(val, "name"), mo_json_get(val, "args")};
        return true;
    }
    return false;
}
