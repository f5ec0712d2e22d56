/* llm_ask.c - parses the entries of a request for the wires: which entries this
 * model wrote, which result belongs to which call, and tool results (MCP
 * content) reduced to what a model accepts. */
#include <stdio.h>

#include "agent/llm/llm_priv.h"
#include "codec/picture.h"
#include "codec/sha256.h"
#include "codec/text/base64.h"

#define MAGIC_TEXT 16 /* characters of base64 */

static const struct mo_json none = {NULL, 0};

bool mo_llm_is_role(struct mo_json entry, const char *role)
{
    return mo_json_str_eq(mo_json_first(entry, "role"), mo_span_cstr(role));
}

bool mo_llm_is_type(struct mo_json block, const char *type)
{
    return mo_json_str_eq(mo_json_first(block, "type"), mo_span_cstr(type));
}

void mo_llm_entry_text(struct mo_json entry, struct mo_buf *out)
{
    mo_json_each (at, mo_json_get(entry, "blocks")) {
        if (mo_llm_is_type(at.val, "text"))
            (void)mo_json_str_buf(mo_json_get(at.val, "text"), out);
    }
}

/* --- reading ------------------------------------------------------------- */

static bool is_own(const struct mo_llm_ask *q, struct mo_json entry)
{
    struct mo_json by = mo_json_first(entry, "by");
    struct mo_span kind = mo_span_cstr(mo_llm_kind_name(q->kind));

    return mo_json_str_eq(mo_json_first(by, "provider"), kind) &&
           mo_json_str_eq(mo_json_first(by, "model"),
                          mo_span_cstr(q->r->model)) &&
           mo_json_str_eq(mo_json_first(by, "url"), mo_span_cstr(q->url));
}

static bool is_bound(const struct mo_llm_ask *q, struct mo_json entry)
{
    struct mo_json base = mo_json_get(mo_json_get(entry, "by"), "base");

    return mo_json_str_eq(base, mo_span_cstr(q->base));
}

static void hash_text(struct mo_sha256 *s, struct mo_span text)
{
    mo_sha256_put(s, &text.n, sizeof(text.n)); /* separates the texts */
    mo_sha256_put(s, text.p, text.n);
}

/* Hashes instructions, tools and the first entry. That identifies the beginning
 * of a conversation, because the rest only grows. */
static void name_base(struct mo_llm_ask *q)
{
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 s;

    mo_sha256_init(&s);
    hash_text(&s, q->r->system);
    for (size_t i = 0; i < q->r->ntools; i++) {
        hash_text(&s, q->r->tools[i].name);
        hash_text(&s, q->r->tools[i].description);
        hash_text(&s, q->r->tools[i].schema);
    }
    if (q->r->nentries)
        hash_text(&s, q->r->entries[0]);
    mo_sha256_end(&s, sum);
    mo_hex(sum, (sizeof(q->base) - 1) / 2, q->base);
}

static bool is_good_call(struct mo_json b)
{
    struct mo_json key = mo_json_first(b, "key"),
                   name = mo_json_first(b, "name");

    return mo_json_is(key, MO_JSON_STRING) && key.n > 2 &&
           mo_json_is(name, MO_JSON_STRING) && name.n > 2 &&
           mo_json_is(mo_json_first(b, "args"), MO_JSON_OBJECT);
}

/* Checks what all wires rely on. */
static bool has_good_blocks(struct mo_json blocks)
{
    mo_json_each (at, blocks) {
        if (mo_llm_is_type(at.val, "call") && !is_good_call(at.val))
            return false;
    }
    return true;
}

static int read_entry(struct mo_llm_ask *q, size_t i, struct mo_err *e)
{
    struct mo_json_doc doc;

    if (mo_json_parse(q->r->entries[i], 0, &doc, e) < 0)
        return mo_wrap(e, "entry %zu of the conversation", i);
    if (!mo_llm_is_role(doc.root, "user") &&
        !mo_llm_is_role(doc.root, "assistant") &&
        !mo_llm_is_role(doc.root, "tool"))
        return mo_fail(e, MO_EINVAL,
                       "entry %zu of the conversation has no role", i);
    if (!has_good_blocks(mo_json_first(doc.root, "blocks")))
        return mo_fail(e, MO_EINVAL,
                       "entry %zu of the conversation has an invalid call", i);
    q->entries[i] = doc.root;
    q->own[i] = mo_llm_is_role(doc.root, "assistant") && is_own(q, doc.root);
    q->bound[i] = q->own[i] && is_bound(q, doc.root);
    return 0;
}

#define NAME_CHARS MO_ALNUM "_-"

static bool is_good_name(struct mo_span s)
{
    return s.n > 0 && s.n <= MO_LLM_NAME_MAX && mo_span_only(s, NAME_CHARS);
}

bool mo_llm_good_name(struct mo_json name)
{
    return mo_json_is(name, MO_JSON_STRING) &&
           is_good_name(mo_span(name.p + 1, name.n - 2));
}

void mo_llm_put_name(struct mo_jw *w, struct mo_json call)
{
    struct mo_json name = mo_json_get(call, "name");
    char out[MO_LLM_NAME_MAX];
    size_t n = name.n - 2;

    n = n < sizeof(out) ? n : sizeof(out);
    for (size_t i = 0; i < n; i++)
        out[i] = strchr(NAME_CHARS, name.p[1 + i]) ? name.p[1 + i] : '_';
    mo_jw_member(w, "name", mo_span(out, n));
}

static bool is_good_tool(const struct mo_llm_tool *t)
{
    struct mo_json_doc doc;

    return is_good_name(t->name) &&
           mo_json_parse(t->schema, MO_LLM_DEPTH_MAX, &doc, NULL) == 0 &&
           mo_json_is(doc.root, MO_JSON_OBJECT);
}

static bool is_duplicate_name(const struct mo_llm_request *r, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (mo_span_eq(r->tools[k].name, r->tools[i].name))
            return true;
    }
    return false;
}

static int check_tools(const struct mo_llm_request *r, struct mo_err *e)
{
    for (size_t i = 0; i < r->ntools; i++) {
        const struct mo_llm_tool *t = &r->tools[i];

        if (!is_good_tool(t) || is_duplicate_name(r, i))
            return mo_fail(e, MO_EINVAL,
                           "tool %.*s: duplicate name, or invalid name or "
                           "schema",
                           (int)(t->name.n < 80 ? t->name.n : 80), t->name.p);
    }
    return 0;
}

int mo_llm_ask_init(struct mo_llm_ask *q, struct mo_arena *a, struct mo_err *e)
{
    size_t n = q->r->nentries;
    bool user = q->from.entry > 0; /* earlier entries were checked before */

    q->n = n;
    q->entries = mo_arena_zalloc(a, (n + 1) * sizeof(*q->entries));
    q->own = mo_arena_zalloc(a, n + 1);
    q->bound = mo_arena_zalloc(a, n + 1);
    if (!q->entries || !q->own || !q->bound)
        return mo_fail(e, MO_ENOMEM, "conversation");
    if (q->from.len == 0 && check_tools(q->r, e) < 0)
        return e->code;
    if (q->kind == MO_LLM_CLAUDE && q->from.len == 0)
        name_base(q);
    for (size_t i = q->from.entry; i < n; i++) {
        if (read_entry(q, i, e) < 0)
            return e->code;
        user = user || mo_llm_is_role(q->entries[i], "user");
        if (!user)
            return mo_fail(e, MO_EINVAL,
                           "a conversation must begin with a user entry");
    }
    return user ? 0
                : mo_fail(e, MO_EINVAL, "the conversation has no user entry");
}

static struct mo_json find_result(struct mo_json results, struct mo_json key)
{
    mo_json_each (at, results) {
        if (mo_span_eq(mo_json_text(mo_json_first(at.val, "key")),
                       mo_json_text(key)))
            return at.val;
    }
    return none;
}

size_t mo_llm_pairs(const struct mo_llm_ask *q, size_t i,
                    struct mo_llm_pair v[MO_LLM_CALLS_MAX])
{
    struct mo_json results = none;
    size_t n = 0;

    if (i + 1 < q->n && mo_llm_is_role(q->entries[i + 1], "tool"))
        results = mo_json_first(q->entries[i + 1], "results");
    mo_json_each_while (at, mo_json_first(q->entries[i], "blocks"),
                        n < MO_LLM_CALLS_MAX) {
        if (!mo_llm_is_type(at.val, "call"))
            continue;
        v[n].call = at.val;
        v[n++].result = find_result(results, mo_json_first(at.val, "key"));
    }
    return n;
}

void mo_llm_put_id(struct mo_jw *w, const char *key, const struct mo_llm_ask *q,
                   size_t i, struct mo_json call)
{
    struct mo_json id = mo_json_first(call, "id");

    if (!q->own[i] || !mo_json_is(id, MO_JSON_STRING) || id.n <= 2)
        id = mo_json_first(call, "key");
    mo_jw_member_raw(w, key, mo_json_text(id));
}

size_t mo_llm_last_user(const struct mo_llm_ask *q)
{
    size_t i = q->n;

    while (i > 0 && !mo_llm_is_role(q->entries[i - 1], "user"))
        i--;
    return i ? i - 1 : 0;
}

int mo_llm_ask_end(const struct mo_buf *body, struct mo_err *e)
{
    if (mo_buf_err(body) == MO_ETOOBIG)
        return mo_fail(e, MO_ETOOBIG,
                       "the conversation is too long to send (over %zu MiB): "
                       "start a new one",
                       MO_LLM_REQUEST_MAX >> 20);
    return mo_buf_err(body) ? mo_fail(e, mo_buf_err(body), "request") : 0;
}

/* --- content ------------------------------------------------------------- */

bool mo_llm_blank(struct mo_json str)
{
    mo_autoarena struct mo_arena a = {.cap = str.n + 4096};
    struct mo_span s = {NULL, 0};
    size_t i = 0;

    if (!mo_json_is(str, MO_JSON_STRING))
        return true;
    if (mo_json_str(str, &a, &s) < 0)
        return false;
    while (i < s.n && (unsigned char)s.p[i] <= ' ')
        i++;
    return i == s.n;
}

/* Describes content a model cannot be sent, so that it does not guess. */
static bool note_piece(struct mo_llm_piece *p, const char *what,
                       struct mo_json mime, struct mo_json data)
{
    struct mo_span m = MO_SPAN("unknown type");

    if (mo_json_is(mime, MO_JSON_STRING) && mime.n < 64)
        m = mo_span(mime.p + 1, mime.n - 2);
    p->kind = MO_PIECE_TEXT;
    (void)snprintf(p->note, sizeof(p->note),
                   "[%s, %.*s, %zu bytes of base64: not shown]", what, (int)m.n,
                   m.p, data.n > 2 ? data.n - 2 : 0);
    return true;
}

/* The type of an image by its first bytes, as JSON; p NULL: it is none of those
 * that providers take. They refuse a request that declares another type. */
static struct mo_json image_type(struct mo_json data)
{
    static const struct {
        const char *type, *json;
    } rows[] = {
        {"image/png", "\"image/png\""},
        {"image/jpeg", "\"image/jpeg\""},
        {"image/gif", "\"image/gif\""},
        {"image/webp", "\"image/webp\""},
    };
    mo_autobuf struct mo_buf text = {.max = 64}, head = {.max = 64};
    struct mo_picture image;

    for (size_t i = 1; i + 1 < data.n && text.len < MAGIC_TEXT; i++)
        if (data.p[i] != '\\') /* some escape the slash */
            mo_buf_putc(&text, data.p[i]);
    if (mo_base64_decode(mo_buf_view(&text), &head) < 0 ||
        mo_picture_read(mo_buf_view(&head), &image) < 0)
        return none;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        if (strcmp(rows[i].type, image.type) == 0)
            return (struct mo_json){rows[i].json, strlen(rows[i].json)};
    return none;
}

static bool read_media(struct mo_llm_piece *p, const char *what,
                       struct mo_json mime, struct mo_json data)
{
    static const char *const images[] = {"image/png", "image/jpeg", "image/gif",
                                         "image/webp", NULL};
    static const char *const docs[] = {"application/pdf", NULL};
    struct mo_json type = none;

    if (!mo_json_is(data, MO_JSON_STRING) || data.n <= 2)
        return false;
    if (mo_json_str_in(mime, images))
        type = image_type(data);
    if (type.p)
        mime = type;
    else if (!mo_json_str_in(mime, docs))
        return note_piece(p, what, mime, data);
    p->kind = mo_json_str_in(mime, docs) ? MO_PIECE_PDF : MO_PIECE_IMAGE;
    p->mime = mime;
    p->data = data;
    return true;
}

static bool read_resource(struct mo_llm_piece *p, struct mo_json r)
{
    p->text = mo_json_get(r, "text");
    if (mo_json_is(p->text, MO_JSON_STRING))
        return !mo_llm_blank(p->text);
    p->text = none;
    return read_media(p, "resource", mo_json_get(r, "mimeType"),
                      mo_json_get(r, "blob"));
}

bool mo_llm_piece(struct mo_json block, struct mo_llm_piece *p)
{
    *p = (struct mo_llm_piece){.kind = MO_PIECE_TEXT};
    if (mo_llm_is_type(block, "image") || mo_llm_is_type(block, "audio"))
        return read_media(
            p, block.p && mo_llm_is_type(block, "image") ? "image" : "audio",
            mo_json_get(block, "mimeType"), mo_json_get(block, "data"));
    if (mo_llm_is_type(block, "resource"))
        return read_resource(p, mo_json_get(block, "resource"));
    p->text = mo_json_get(
        block, mo_llm_is_type(block, "resource_link") ? "uri" : "text");
    return !mo_llm_blank(p->text);
}

/* True if the model takes this piece. Gemini takes no GIF. */
static bool is_taken(const struct mo_llm_ask *q, const struct mo_llm_piece *p)
{
    return q == NULL || p->kind != MO_PIECE_IMAGE ||
           (!q->r->blind && (q->kind != MO_LLM_GEMINI ||
                             !mo_json_str_eq(p->mime, MO_SPAN("image/gif"))));
}

bool mo_llm_next_piece(struct mo_llm_pieces *s)
{
    while (mo_json_step(&s->at)) {
        if (!mo_llm_piece(s->at.val, &s->p))
            continue;
        if (is_taken(s->q, &s->p))
            return true;
        if (!mo_json_get(s->at.val, "path").p)
            return note_piece(&s->p, "image", s->p.mime, s->p.data);
    }
    return false;
}

struct mo_llm_pieces mo_llm_entry_pieces(const struct mo_llm_ask *q,
                                         struct mo_json entry)
{
    return mo_llm_pieces(q, mo_json_get(entry, "blocks"));
}

struct mo_llm_pieces mo_llm_result_pieces(const struct mo_llm_ask *q,
                                          const struct mo_llm_pair *pair)
{
    return mo_llm_pieces(q, mo_json_get(pair->result, "content"));
}

/* Re-encodes a string with escapes: some providers reject half a surrogate
 * pair. */
static void put_str(struct mo_jw *w, struct mo_json v)
{
    mo_autobuf struct mo_buf b = {.max = v.n};

    if (mo_span_search(mo_json_text(v), MO_SPAN("\\u")) < 0) {
        mo_jw_raw(w, mo_json_text(v));
        return;
    }
    (void)mo_json_str_buf(v, &b);
    mo_jw_buf(w, &b);
}

void mo_llm_piece_text(struct mo_jw *w, const char *key,
                       const struct mo_llm_piece *p)
{
    mo_jw_key(w, key);
    if (p->text.p)
        put_str(w, p->text);
    else
        mo_jw_cstr(w, p->note);
}

/* Both parts are normally plain ASCII; other characters are re-encoded. */
void mo_llm_data_url(struct mo_jw *w, const char *key,
                     const struct mo_llm_piece *p)
{
    mo_autobuf struct mo_buf b = {.max = p->data.n + 128};

    (void)mo_buf_puts(&b, "data:");
    (void)mo_json_str_buf(p->mime, &b);
    (void)mo_buf_puts(&b, ";base64,");
    (void)mo_json_str_buf(p->data, &b);
    mo_jw_key(w, key);
    mo_jw_buf(w, &b);
}

bool mo_llm_failed(const struct mo_llm_pair *p)
{
    return !p->result.p || mo_json_flag(p->result, "isError");
}

static void add_piece(struct mo_buf *b, const struct mo_llm_piece *p)
{
    struct mo_llm_piece named = *p;

    if (b->len)
        (void)mo_buf_putc(b, '\n');
    if (p->kind != MO_PIECE_TEXT)
        (void)note_piece(&named, p->kind == MO_PIECE_PDF ? "document" : "image",
                         p->mime, p->data);
    if (named.text.p)
        (void)mo_json_str_buf(named.text, b);
    else
        (void)mo_buf_puts(b, named.note);
}

void mo_llm_result_text(const struct mo_llm_pair *p, struct mo_buf *out)
{
    if (!p->result.p)
        (void)mo_buf_puts(out, MO_LLM_UNKNOWN);
    for (struct mo_llm_pieces s = mo_llm_result_pieces(NULL, p);
         mo_llm_next_piece(&s);)
        add_piece(out, &s.p);
}

void mo_llm_put_result(struct mo_jw *w, const char *key,
                       const struct mo_llm_pair *p)
{
    mo_autobuf struct mo_buf b = {.max = MO_LLM_REQUEST_MAX};

    mo_llm_result_text(p, &b);
    mo_jw_key(w, key);
    mo_jw_buf(w, &b);
}
