#include "gateway/call/result_limit.h"

#include <stdio.h>

#include "base/rand.h"
#include "codec/text/utf8.h"
#include "gateway/call/rewrite.h"
#include "gateway/upstream/server_overrides.h"
#include "mcp/edit.h"

#define HANDLE_BYTES 12
#define HANDLE_MAX   (MO_TOKEN_LEN(HANDLE_BYTES) + 1 + MO_EP_INSTANCE_MAX)
#define MARK_MAX     320
#define NONE_KEPT                                                              \
    "no result is kept under that handle; it may have expired: run the tool "  \
    "again"
#define HOME_GONE                                                              \
    "the server that kept that result has ended: run the tool again"

static const char tool_text[] =
    "{\"name\":\"" RESULT_TOOL "\",\"title\":\"Read a long result\","
    "\"description\":\"Read more of a result that was too long. Such a result "
    "names its handle; offset and limit are bytes.\","
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"handle\":{\"type\":\"string\"},"
    "\"offset\":{\"type\":\"integer\",\"minimum\":0,\"default\":0},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1048576,"
    "\"default\":65536}},\"required\":[\"handle\"]},"
    "\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}}";

struct kept_result {
    struct mo_list node; /* in results->kept, oldest first */
    uint64_t until;
    char handle[HANDLE_MAX + 1];
    char who[MO_GW_WHO_MAX];
    size_t n;
    char text[];
};

struct result_store {
    struct mo_loop *loop;
    const struct mo_ep_home *home; /* NULL: no other process asks for them */
    struct mo_list kept;
    struct mo_map rows; /* handle -> struct kept */
    size_t bytes;
    struct mo_timer timer; /* expiry of the oldest one */
};

/* --- kept results -------------------------------------------------------- */

static uint64_t now_ms(void)
{
    return mo_now_ns() / MO_MS;
}

static void drop_result(struct result_store *s, struct kept_result *k)
{
    (void)mo_map_del(&s->rows, mo_span_cstr(k->handle));
    mo_list_del(&k->node);
    s->bytes -= k->n;
    mo_free(k);
}

static struct kept_result *oldest_result(const struct result_store *s)
{
    return mo_list_first(&s->kept, struct kept_result, node);
}

static void on_keep_timeout(struct mo_timer *t)
{
    struct result_store *s = mo_container_of(t, struct result_store, timer);
    uint64_t now = now_ms();
    struct kept_result *k = oldest_result(s);

    while (k && k->until <= now) {
        drop_result(s, k);
        k = oldest_result(s);
    }
    if (k)
        mo_timer_start(s->loop, t, k->until - now);
}

struct result_store *mo_result_limit_new(struct mo_loop *l)
{
    struct result_store *s = mo_new(struct result_store);

    if (!s)
        return NULL;
    s->loop = l;
    mo_list_init(&s->kept);
    mo_map_init(&s->rows, RESULT_ROWS_MAX);
    mo_timer_init(&s->timer, on_keep_timeout);
    return s;
}

void mo_result_limit_free(struct result_store *s)
{
    if (!s)
        return;
    mo_timer_stop(s->loop, &s->timer);
    while (!mo_list_empty(&s->kept))
        drop_result(s, oldest_result(s));
    mo_map_fini(&s->rows);
    mo_free(s);
}

void mo_result_limit_home(struct result_store *s, const struct mo_ep_home *h)
{
    s->home = h;
}

static void make_handle(const struct result_store *s, char out[HANDLE_MAX + 1])
{
    char random[MO_TOKEN_LEN(HANDLE_BYTES) + 1];
    bool named = s->home && mo_ep_home_has_key(s->home);

    mo_random_token(random, HANDLE_BYTES);
    (void)snprintf(out, HANDLE_MAX + 1, "%s%s%s", random, named ? "." : "",
                   named ? s->home->instance : "");
}

/* Keeps a copy. NULL: too long, or out of memory. */
static const struct kept_result *
keep_result(struct result_store *s, const char *who, struct mo_span text)
{
    struct kept_result *k;

    if (text.n > RESULT_ONE_MAX)
        return NULL;
    while (!mo_list_empty(&s->kept) && (s->bytes + text.n > RESULT_BYTES_MAX ||
                                        s->rows.len >= RESULT_ROWS_MAX))
        drop_result(s, oldest_result(s));
    k = mo_alloc(sizeof(*k) + text.n);
    if (!k)
        return NULL;
    make_handle(s, k->handle);
    (void)snprintf(k->who, sizeof(k->who), "%s", who);
    k->until = now_ms() + RESULT_KEEP_MS;
    k->n = text.n;
    memcpy(k->text, text.p, text.n);
    mo_list_init(&k->node);
    if (mo_map_put(&s->rows, mo_span_cstr(k->handle), k, NULL) < 0) {
        mo_free(k);
        return NULL;
    }
    mo_list_push(&s->kept, &k->node);
    s->bytes += text.n;
    if (!mo_timer_on(&s->timer))
        mo_timer_start(s->loop, &s->timer, RESULT_KEEP_MS);
    return k;
}

/* --- cutting ------------------------------------------------------------- */

struct cutter {
    struct result_store *s;
    const struct result_limit *how;
    size_t left; /* bytes of text left */
    struct mo_jw *meta;
    struct mo_arena a;
};

static void put_cut_meta(struct mo_jw *w, const struct kept_result *k,
                         size_t all, size_t shown, const char *what)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "what", what);
    if (k)
        mo_jw_member_cstr(w, "handle", k->handle);
    mo_jw_member_u64(w, "bytes", all);
    mo_jw_member_u64(w, "shown", shown);
    mo_jw_end(w);
}

static void make_cut_mark(const struct cutter *c, const struct kept_result *k,
                          size_t shown, size_t all, char out[MARK_MAX])
{
    bool run = c->how->by_execute;

    if (k)
        (void)snprintf(out, MARK_MAX,
                       "\n[cut: %zu of %zu bytes; the rest by %s"
                       "{\"handle\":\"%s\",\"offset\":%zu}%s]",
                       shown, all,
                       run ? "execute {\"tool\":\"" RESULT_TOOL "\",\"params\":"
                           : RESULT_TOOL " ",
                       k->handle, shown, run ? "}" : "");
    else
        (void)snprintf(out, MARK_MAX,
                       "\n[cut: %zu of %zu bytes; the rest could not be kept]",
                       shown, all);
}

/* Writes one text item, cut. */
static int cut_text(struct cutter *c, struct mo_json item, struct mo_span text,
                    struct mo_buf *out)
{
    size_t shown = mo_utf8_cut(text, c->left);
    const struct kept_result *k = keep_result(c->s, c->how->who, text);
    struct mo_edit ed = {"text", {NULL, 0}};
    mo_autobuf struct mo_buf quoted = {.max = GW_TEXT_MAX};
    mo_autobuf struct mo_buf plain = {.max = GW_TEXT_MAX};
    char said[MARK_MAX];
    int rc;

    c->left = 0;
    make_cut_mark(c, k, shown, text.n, said);
    put_cut_meta(c->meta, k, text.n, shown, "text");
    (void)mo_buf_put(&plain, text.p, shown);
    rc = mo_buf_puts(&plain, said);
    if (rc == 0)
        rc = mo_json_quote(&quoted, mo_buf_view(&plain));
    ed.to = mo_buf_view(&quoted);
    if (rc == 0)
        rc = mo_edit(out, item, &ed, 1);
    return rc;
}

static int cut_item(struct cutter *c, struct mo_json item, struct mo_buf *out)
{
    struct mo_json v = mo_json_get(item, "text");
    struct mo_span text;

    if (!mo_json_str_eq(mo_json_get(item, "type"), MO_SPAN("text")) ||
        !mo_json_is(v, MO_JSON_STRING) || v.n <= c->left) {
        c->left -= mo_json_is(v, MO_JSON_STRING) && v.n <= c->left ? v.n : 0;
        return mo_buf_span(out, mo_json_text(item));
    }
    mo_arena_reset(&c->a);
    if (mo_json_str(v, &c->a, &text) < 0)
        return MO_ENOMEM;
    if (text.n > c->left)
        return cut_text(c, item, text, out);
    c->left -= text.n;
    return mo_buf_span(out, mo_json_text(item));
}

static int cut_content(struct cutter *c, struct mo_json content,
                       struct mo_buf *out)
{
    bool first = true;
    int rc = mo_buf_putc(out, '[');

    mo_json_each_while (at, content, rc == 0) {
        if (!first)
            (void)mo_buf_putc(out, ',');
        first = false;
        rc = cut_item(c, at.val, out);
    }
    return rc < 0 ? rc : mo_buf_putc(out, ']');
}

/* Writes the result with shortened members and the note in _meta. */
static int cut_members(struct cutter *c, struct mo_json result,
                       struct mo_buf *out)
{
    struct mo_json data = mo_json_get(result, "structuredContent");
    struct mo_json content = mo_json_get(result, "content");
    struct mo_edit v[3], in = {RESULT_META, {NULL, 0}};
    mo_autobuf struct mo_buf meta = {.max = GW_TEXT_MAX};
    mo_autobuf struct mo_buf told = {.max = GW_TEXT_MAX};
    mo_autobuf struct mo_buf list = {.max = GW_TEXT_MAX};
    struct mo_jw w;
    size_t n = 0;
    int rc = 0;

    mo_jw_init(&w, &told);
    c->meta = &w;
    mo_jw_arr(&w);
    if (data.p && data.n > c->left && !c->how->has_output_schema) {
        put_cut_meta(&w, keep_result(c->s, c->how->who, mo_json_text(data)),
                     data.n, 0, "structuredContent");
        v[n++] = (struct mo_edit){"structuredContent", {NULL, 0}};
    }
    if (mo_json_is(content, MO_JSON_ARRAY)) {
        rc = cut_content(c, content, &list);
        v[n++] = (struct mo_edit){"content", mo_buf_view(&list)};
    }
    mo_jw_end(&w);
    rc = rc < 0 ? rc : mo_buf_err(&told);
    in.to = mo_buf_view(&told);
    if (rc == 0)
        rc = mo_edit(&meta, mo_json_get(result, "_meta"), &in, 1);
    v[n++] = (struct mo_edit){"_meta", mo_buf_view(&meta)};
    if (rc == 0 && told.len > 2)
        rc = mo_edit(out, result, v, n);
    c->meta = NULL;
    return rc;
}

bool mo_result_limit_cut(struct result_store *s, const struct result_limit *how,
                         struct mo_json result, struct mo_buf *out)
{
    struct cutter c = {
        .s = s,
        .how = how,
        .left = how->max < RESULT_LIMIT_MIN ? RESULT_LIMIT_MIN : how->max,
        .a = {.cap = 2 * GW_TEXT_MAX},
    };
    int rc;

    if (result.n <= c.left || !mo_json_is(result, MO_JSON_OBJECT))
        return false;
    rc = cut_members(&c, result, out);
    mo_arena_fini(&c.a);
    return rc == 0 && out->len > 0 && !mo_buf_err(out);
}

bool mo_result_limit_task(struct result_store *s,
                          const struct result_limit *how, struct mo_json task,
                          struct mo_buf *out)
{
    struct mo_json result = mo_json_get(task, "result");
    struct mo_edit ed = {"result", {NULL, 0}};
    mo_autobuf struct mo_buf cut = {.max = GW_TEXT_MAX};

    if (!how->max || result.n <= how->max ||
        !mo_result_limit_cut(s, how, result, &cut))
        return false;
    ed.to = mo_buf_view(&cut);
    return mo_edit(out, task, &ed, 1) == 0;
}

/* --- read_result --------------------------------------------------------- */

bool mo_result_limit_is_on(const struct mo_gw_view *v)
{
    const struct mo_gateway *g = v->g;

    for (size_t i = 0; i < g->n; i++)
        if (mo_overrides_has_limit(g->v[i]->overrides) &&
            mo_gw_shows(v, g->v[i]))
            return true;
    return false;
}

bool mo_result_limit_is_call(struct mo_gateway *g, const struct mo_ep_call *c)
{
    struct mo_span name = c->name;

    if (c->inside.n && !mo_span_strip(&name, MO_SPAN(MO_GW_OURS)))
        return false;
    return mo_span_is(c->method, "tools/call") &&
           mo_span_is(name, RESULT_TOOL) &&
           !mo_catalog_find(mo_gw_cat_of(g, c), MO_CAT_TOOLS, c->name);
}

int mo_result_limit_list(struct mo_span page, struct mo_buf *out)
{
    static const char head[] = "{\"tools\":[";
    struct mo_span rest = mo_span_skip(page, sizeof(head) - 1);

    (void)mo_buf_puts(out, head);
    (void)mo_buf_puts(out, tool_text);
    if (rest.n && rest.p[0] != ']')
        (void)mo_buf_putc(out, ',');
    return mo_buf_span(out, rest);
}

/* The kept result of a handle; NULL: none, expired, or of another client. */
static const struct kept_result *find_kept_result(const struct mo_gateway *g,
                                                  const struct mo_ep_call *c,
                                                  struct mo_json v)
{
    char who[MO_GW_WHO_MAX], handle[HANDLE_MAX + 1];
    const struct kept_result *k;

    if (mo_json_str_copy(v, handle, sizeof(handle)) < 0)
        return NULL;
    k = mo_map_get(&g->results->rows, mo_span_cstr(handle));
    mo_rewrite_client(c, who);
    return k && strcmp(k->who, who) == 0 && k->until > now_ms() ? k : NULL;
}

static void send_piece(struct mo_ep_call *c, const struct kept_result *k,
                       size_t from, size_t limit)
{
    struct mo_span rest = mo_span_skip(mo_span(k->text, k->n), from);
    size_t n = mo_utf8_cut(rest, limit);
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};
    struct mo_jw w = mo_jw_object(&b);

    mo_rewrite_put_text(&w, mo_span_head(rest, n));
    mo_jw_member_obj(&w, "_meta");
    mo_jw_member_obj(&w, RESULT_META);
    mo_jw_member_cstr(&w, "handle", k->handle);
    mo_jw_member_u64(&w, "bytes", k->n);
    mo_jw_member_u64(&w, "offset", from);
    mo_jw_key(&w, "next");
    if (from + n < k->n)
        mo_jw_u64(&w, from + n);
    else
        mo_jw_null(&w);
    mo_jw_end_all(&w);
    mo_rewrite_answer(c, &b);
}

/* Passes the call to the process that the handle names, if it is another. */
static bool pass_to_home(const struct mo_gateway *g, struct mo_ep_call *c,
                         struct mo_json v)
{
    const struct mo_ep_home *home = g->results->home;
    char handle[HANDLE_MAX + 1], name[MO_EP_INSTANCE_MAX];
    struct mo_span rest;

    if (!home || mo_json_str_copy(v, handle, sizeof(handle)) < 0)
        return false;
    rest = mo_span_cstr(handle);
    (void)mo_span_cut(&rest, '.');
    if (rest.n == 0 || rest.n >= sizeof(name) ||
        mo_span_is(rest, home->instance) || !mo_span_only(rest, MO_ALNUM "-_"))
        return false;
    (void)snprintf(name, sizeof(name), "%.*s", (int)rest.n, rest.p);
    return mo_ep_call_elsewhere(c, name, HOME_GONE);
}

void mo_result_limit_call(struct mo_gateway *g, struct mo_ep_call *c,
                          struct mo_json arguments)
{
    struct mo_json handle = mo_json_get(arguments, "handle");
    const struct kept_result *k = find_kept_result(g, c, handle);
    uint64_t from = 0, limit = RESULT_PAGE;

    (void)mo_json_u64(mo_json_get(arguments, "offset"), &from);
    (void)mo_json_u64(mo_json_get(arguments, "limit"), &limit);
    if (!k) {
        if (!pass_to_home(g, c, handle))
            mo_ep_call_fail(c, NONE_KEPT);
        return;
    }
    if (limit < 4 || limit > RESULT_PAGE_MAX)
        limit = limit < 4 ? 4 : RESULT_PAGE_MAX;
    /* back to the start of a character */
    from = mo_utf8_cut(mo_span(k->text, k->n), (size_t)from);
    send_piece(c, k, (size_t)from, (size_t)limit);
}
