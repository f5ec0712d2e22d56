/* llm_in.c - a reply while it is streamed, and the entry it becomes. */
#include <stdio.h>

#include "agent/llm/llm_priv.h"
#include "budget/price.h"
#include "policy/exact.h"

void mo_llm_in_init(struct mo_llm_in *in, const struct mo_llm_wire *w,
                    enum mo_llm_kind k, const struct mo_llm_cb *cb, void *ctx)
{
    *in = (struct mo_llm_in){.wire = w,
                             .label = mo_llm_label(k),
                             .compatible = k == MO_LLM_COMPATIBLE,
                             .cb = cb,
                             .ctx = ctx,
                             .stop = MO_LLM_OTHER};
    mo_buf_init(&in->usage_raw, MO_LLM_REPLY_MAX);
    mo_buf_init(&in->token, MO_LLM_REPLY_MAX);
    mo_buf_init(&in->hold, 64);
    mo_buf_init(&in->entry, 4 * MO_LLM_REPLY_MAX);
    mo_buf_init(&in->text, MO_LLM_REPLY_MAX);
}

static void block_free(struct mo_llm_block *b)
{
    mo_buf_fini(&b->body);
    mo_buf_fini(&b->start);
    mo_buf_fini(&b->more);
    mo_buf_fini(&b->id);
    mo_buf_fini(&b->name);
    mo_buf_fini(&b->args);
    mo_buf_fini(&b->bad);
    mo_free(b);
}

void mo_llm_in_fini(struct mo_llm_in *in)
{
    for (size_t i = 0; i < in->n; i++)
        block_free(in->v[i]);
    mo_free(in->v);
    in->v = NULL;
    in->n = 0;
    mo_buf_fini(&in->usage_raw);
    mo_buf_fini(&in->token);
    mo_buf_fini(&in->hold);
    mo_buf_fini(&in->entry);
    mo_buf_fini(&in->text);
}

/* --- blocks -------------------------------------------------------------- */

static int grow_blocks(struct mo_llm_in *in)
{
    size_t cap = in->cap ? 2 * in->cap : 8;
    struct mo_llm_block **v;

    if (in->n < in->cap)
        return 0;
    v = mo_realloc(in->v, cap * sizeof(void *));
    if (!v)
        return MO_ENOMEM;
    in->v = v;
    in->cap = cap;
    return 0;
}

static struct mo_llm_block *block_new(enum mo_llm_block_kind kind,
                                      int64_t index)
{
    struct mo_llm_block *b = mo_new(struct mo_llm_block);

    if (!b)
        return NULL;
    b->kind = kind;
    b->index = index;
    mo_buf_init(&b->body, MO_LLM_REPLY_MAX);
    mo_buf_init(&b->start, MO_LLM_REPLY_MAX);
    mo_buf_init(&b->more, MO_LLM_REPLY_MAX);
    mo_buf_init(&b->id, 4096);
    mo_buf_init(&b->name, 1024);
    mo_buf_init(&b->args, MO_LLM_REPLY_MAX);
    mo_buf_init(&b->bad, MO_LLM_REPLY_MAX);
    return b;
}

struct mo_llm_block *mo_llm_open(struct mo_llm_in *in,
                                 enum mo_llm_block_kind kind, int64_t index,
                                 struct mo_err *e)
{
    struct mo_llm_block *b;

    if (in->n == MO_LLM_BLOCKS_MAX ||
        (kind == MO_LB_CALL && in->ncalls == MO_LLM_CALLS_MAX))
        return mo_null(mo_fail(e, MO_ETOOBIG, "the reply has too many parts"));
    b = grow_blocks(in) == 0 ? block_new(kind, index) : NULL;
    if (!b)
        return mo_null(mo_fail(e, MO_ENOMEM, "reply"));
    in->v[in->n++] = b;
    in->ncalls += kind == MO_LB_CALL;
    in->token_new = false;
    return b;
}

struct mo_llm_block *mo_llm_last(const struct mo_llm_in *in)
{
    return in->n ? in->v[in->n - 1] : NULL;
}

struct mo_llm_block *mo_llm_find(const struct mo_llm_in *in, int64_t index)
{
    for (size_t i = in->n; i > 0; i--) {
        if (in->v[i - 1]->index == index)
            return in->v[i - 1];
    }
    return NULL;
}

int mo_llm_add(struct mo_llm_in *in, struct mo_buf *b, struct mo_span s,
               struct mo_err *e)
{
    if (s.n > MO_LLM_REPLY_MAX - in->held)
        return mo_fail(e, MO_ETOOBIG, "the reply is over %zu MiB",
                       MO_LLM_REPLY_MAX >> 20);
    in->held += s.n;
    in->token_new = false;
    if (mo_buf_span(b, s) < 0)
        return mo_fail(e, mo_buf_err(b), "reply");
    return 0;
}

int mo_llm_add_str(struct mo_llm_in *in, struct mo_buf *b, struct mo_json v,
                   struct mo_err *e)
{
    if (!mo_json_is(v, MO_JSON_STRING))
        return 0;
    return mo_llm_add(in, b, mo_span(v.p + 1, v.n - 2), e);
}

static void send_delta(struct mo_llm_in *in, enum mo_llm_block_kind kind,
                       struct mo_span s)
{
    if (s.n == 0 || !in->cb)
        return;
    if (kind == MO_LB_TEXT)
        in->cb->on_text(in->ctx, s);
    else if (kind == MO_LB_THINKING && in->cb->on_thinking)
        in->cb->on_thinking(in->ctx, s);
}

void mo_llm_show(struct mo_llm_in *in, enum mo_llm_block_kind kind,
                 struct mo_json v)
{
    mo_autoarena struct mo_arena a = {.cap = v.n + 4096};
    struct mo_span s;

    if (mo_json_str(v, &a, &s) == 0)
        send_delta(in, kind, s);
}

int mo_llm_grow(struct mo_llm_in *in, struct mo_llm_block *b, struct mo_json v,
                struct mo_err *e)
{
    if (mo_llm_add_str(in, &b->body, v, e) < 0)
        return e->code;
    if (b->kind == MO_LB_TEXT || b->kind == MO_LB_THINKING)
        mo_llm_show(in, b->kind, v);
    return 0;
}

int mo_llm_grow_text(struct mo_llm_in *in, struct mo_llm_block *b,
                     struct mo_span s, struct mo_err *e)
{
    mo_autobuf struct mo_buf q = {.max = MO_LLM_REPLY_MAX};
    int rc = mo_json_quote(&q, s);

    if (rc < 0)
        return mo_fail(e, rc, "reply");
    rc = mo_llm_add(in, &b->body, mo_span(q.p + 1, q.len - 2), e);
    if (rc == 0)
        send_delta(in, b->kind, s);
    return rc;
}

int mo_llm_name(struct mo_llm_block *b, struct mo_json name, struct mo_json id,
                struct mo_err *e)
{
    mo_buf_reset(&b->name);
    if (mo_json_str_buf(name, &b->name) < 0 || b->name.len == 0)
        return mo_fail(e,
                       mo_buf_err(&b->name) ? mo_buf_err(&b->name) : MO_EPROTO,
                       "a call without a tool name");
    mo_buf_reset(&b->id);
    if (mo_json_is(id, MO_JSON_STRING) && mo_json_str_buf(id, &b->id) < 0)
        return mo_fail(e, mo_buf_err(&b->id), "id of a call");
    return 0;
}

/* Checks for duplicate members: a provider would reject such arguments in every
 * later request. */
int mo_llm_check_args(struct mo_json v)
{
    mo_autobuf struct mo_buf exact = {.max = MO_EXACT_MAX};
    int rc = mo_json_is(v, MO_JSON_OBJECT) ? mo_exact_args(v, &exact, NULL)
                                           : MO_EPROTO;

    return rc == 0 || rc == MO_ENOMEM ? rc : MO_EPROTO;
}

int mo_llm_body_text(const struct mo_buf *body, struct mo_buf *out)
{
    mo_autobuf struct mo_buf lit = {.max = MO_LLM_REPLY_MAX + 2};

    (void)mo_buf_putc(&lit, '"');
    (void)mo_buf_span(&lit, mo_buf_view(body));
    (void)mo_buf_putc(&lit, '"');
    mo_buf_pass_err(out, &lit);
    return mo_buf_err(out)
               ? mo_buf_err(out)
               : mo_json_str_buf((struct mo_json){lit.p, lit.len}, out);
}

/* Parses the arguments of a call: an object is used, nothing becomes {},
 * anything else is kept as bad. */
int mo_llm_close_args(struct mo_llm_in *in, struct mo_llm_block *b,
                      struct mo_err *e)
{
    struct mo_json_doc doc;
    struct mo_span s;
    int rc;

    if (b->closed)
        return 0;
    b->closed = true;
    mo_buf_reset(&b->args);
    rc = mo_llm_body_text(&b->body, &b->args);
    s = mo_span_trim(mo_buf_view(&b->args));
    if (rc == 0 && s.n)
        rc = mo_json_parse(s, MO_LLM_DEPTH_MAX, &doc, NULL) < 0
                 ? MO_EPROTO
                 : mo_llm_check_args(doc.root);
    if (rc == MO_EPROTO)
        rc = mo_llm_add(in, &b->bad, s, e);
    if (rc == 0 && (s.n == 0 || b->bad.len)) {
        mo_buf_reset(&b->args);
        rc = mo_buf_puts(&b->args, "{}");
    }
    return rc < 0 ? mo_fail(e, rc, "arguments of a call") : 0;
}

int mo_llm_close_calls(struct mo_llm_in *in, struct mo_err *e)
{
    for (size_t i = 0; i < in->n; i++) {
        if (in->v[i]->kind == MO_LB_CALL &&
            mo_llm_close_args(in, in->v[i], e) < 0)
            return e->code;
    }
    return 0;
}

void mo_llm_put_but(struct mo_jw *w, struct mo_json obj,
                    const char *const *names)
{
    mo_json_each (at, obj) {
        if (names && mo_json_str_in(at.key, names))
            continue;
        mo_jw_key_raw(w, at.key);
        mo_jw_raw(w, mo_json_text(at.val));
    }
}

void mo_llm_stop(struct mo_llm_in *in, struct mo_json v,
                 const struct mo_llm_stop_word *words, size_t n)
{
    (void)mo_json_str_copy(v, in->stop_raw, sizeof(in->stop_raw));
    in->stop = MO_LLM_OTHER;
    for (size_t i = 0; i < n; i++) {
        if (mo_json_str_eq(v, mo_span_cstr(words[i].raw)))
            in->stop = words[i].stop;
    }
}

void mo_llm_count(struct mo_json v, uint64_t *out)
{
    uint64_t n;

    if (mo_json_u64(v, &n) == 0)
        *out = n < MO_USAGE_MAX ? n : MO_USAGE_MAX;
}

bool mo_llm_usage_raw(struct mo_llm_in *in, struct mo_json usage)
{
    if (!mo_json_is(usage, MO_JSON_OBJECT))
        return false;
    (void)mo_buf_set(&in->usage_raw, mo_json_text(usage));
    return true;
}

void mo_llm_usage(struct mo_llm_in *in, struct mo_json usage, const char *input,
                  const char *output, const char *details)
{
    if (!mo_llm_usage_raw(in, usage))
        return;
    mo_llm_count(mo_json_get(usage, input), &in->usage.input);
    mo_llm_count(mo_json_get(usage, output), &in->usage.output);
    mo_llm_count(mo_json_get(mo_json_get(usage, details), "cached_tokens"),
                 &in->usage.cache_read);
}

/* OpenAI's streams end with a mark that is not JSON. */
int mo_llm_event(struct mo_llm_in *in, struct mo_span data, struct mo_err *e)
{
    struct mo_json_doc doc;

    if ((in->wire == &mo_llm_chat || in->wire == &mo_llm_responses) &&
        mo_span_is(mo_span_trim(data), "[DONE]")) {
        in->whole = true;
        return 0;
    }
    if (mo_json_parse(data, MO_LLM_DEPTH_MAX, &doc, e) < 0)
        return mo_wrap(e, "%s sent an event that is not JSON", in->label);
    return in->wire->event(in, doc.root, e);
}

int mo_llm_dispatch(const struct mo_llm_event_type *types, size_t n,
                    struct mo_llm_in *in, struct mo_json v, struct mo_err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (mo_llm_is_type(v, types[i].type))
            return types[i].on(in, v, e);
    }
    return 0;
}

int mo_llm_event_error(struct mo_llm_in *in, struct mo_json v, struct mo_err *e)
{
    struct mo_llm_hint h = {.should = -1, .after_ms = -1};
    struct mo_llm_verdict j;

    mo_llm_judge(in->label, &h, mo_json_text(v), in->secret, &j);
    in->fail = j.f;
    *e = j.f.err;
    return e->code;
}

void mo_llm_put_json(struct mo_jw *w, const char *key, const struct mo_buf *b)
{
    mo_buf_pass_err(w->b, b);
    mo_jw_member_raw(w, key, b->len ? mo_buf_view(b) : MO_SPAN("null"));
}

void mo_llm_put_items(struct mo_jw *w, const char *key,
                      const struct mo_buf *items)
{
    mo_jw_member_raw(w, key, MO_SPAN("["));
    (void)mo_buf_span(w->b, mo_buf_view(items));
    (void)mo_buf_putc(w->b, ']');
}

void mo_llm_put_literal(struct mo_jw *w, const char *key,
                        const struct mo_buf *body)
{
    mo_jw_member_raw(
        w, key, MO_SPAN("\"")); /* the inside of a string literal follows */
    (void)mo_buf_span(w->b, mo_buf_view(body));
    (void)mo_buf_putc(w->b, '"');
}

void mo_llm_usage_add(struct mo_llm_usage *sum, const struct mo_llm_usage *u)
{
    sum->input += u->input;
    sum->output += u->output;
    sum->cache_read += u->cache_read;
    sum->cache_write += u->cache_write;
}

void mo_llm_usage_put(struct mo_jw *w, const struct mo_llm_usage *u)
{
    mo_jw_member_u64(w, "input", u->input);
    mo_jw_member_u64(w, "output", u->output);
    mo_jw_member_u64(w, "cacheRead", u->cache_read);
    mo_jw_member_u64(w, "cacheWrite", u->cache_write);
}

/* --- the entry ----------------------------------------------------------- */

const char *mo_llm_stop_name(enum mo_llm_stop s)
{
    static const char *const stops[] = {
        [MO_LLM_END] = "end",       [MO_LLM_CALLS] = "calls",
        [MO_LLM_LENGTH] = "length", [MO_LLM_REFUSED] = "refused",
        [MO_LLM_PAUSED] = "paused", [MO_LLM_OTHER] = "other",
    };

    return stops[s];
}

static void put_call(struct mo_jw *w, const struct mo_llm_block *b,
                     const char *key)
{
    mo_jw_member_cstr(w, "key", key);
    mo_jw_member_opt(w, "id", mo_buf_view(&b->id));
    mo_jw_member(w, "name", mo_buf_view(&b->name));
    mo_llm_put_json(w, "args", &b->args);
    mo_jw_member_opt(w, "bad", mo_buf_view(&b->bad));
}

static void put_block(struct mo_llm_in *in, struct mo_jw *w,
                      const struct mo_llm_block *b, const char *key)
{
    static const char *const types[] = {[MO_LB_TEXT] = "text",
                                        [MO_LB_THINKING] = "thinking",
                                        [MO_LB_CALL] = "call",
                                        [MO_LB_OTHER] = "other"};
    mo_autobuf struct mo_buf raw = {.max = 2 * MO_LLM_REPLY_MAX};

    if (in->wire->put_raw)
        in->wire->put_raw(b, &raw);
    mo_buf_pass_err(w->b, &raw);
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "type", types[b->kind]);
    if (b->kind == MO_LB_CALL)
        put_call(w, b, key);
    else if (b->kind != MO_LB_OTHER)
        mo_llm_put_literal(w, "text", &b->body);
    mo_jw_member_raw(w, "raw", mo_buf_view(&raw));
    mo_jw_end(w);
}

static void put_usage(const struct mo_llm_in *in, struct mo_jw *w)
{
    mo_jw_member_obj(w, "usage");
    mo_llm_usage_put(w, &in->usage);
    if (in->usage_raw.len)
        mo_llm_put_json(w, "raw", &in->usage_raw);
    mo_jw_end(w);
}

static void put_by(struct mo_jw *w, const struct mo_llm_by *by)
{
    mo_jw_member_obj(w, "by");
    mo_jw_member_cstr(w, "provider", by->provider);
    mo_jw_member_cstr(w, "model", by->model);
    mo_jw_member_cstr(w, "url", by->url);
    if (by->base && by->base[0])
        mo_jw_member_cstr(w, "base", by->base);
    mo_jw_end(w);
}

static void put_entry(struct mo_llm_in *in, const struct mo_llm_by *by)
{
    size_t call = 0;
    struct mo_jw w = mo_jw_object(&in->entry);

    mo_jw_member(&w, "role", MO_SPAN("assistant"));
    put_by(&w, by);
    mo_jw_member_arr(&w, "blocks");
    for (size_t i = 0; i < in->n; i++) {
        if (!in->v[i]->drop)
            put_block(in, &w, in->v[i], in->keys[call]);
        call += !in->v[i]->drop && in->v[i]->kind == MO_LB_CALL;
    }
    mo_jw_end(&w);
    mo_jw_member_cstr(&w, "stop", mo_llm_stop_name(in->stop));
    mo_jw_member_cstr(&w, "stopRaw", in->stop_raw);
    put_usage(in, &w);
    mo_jw_end(&w);
}

static void collect_calls(struct mo_llm_in *in, struct mo_llm_reply *r)
{
    for (size_t i = 0; i < in->n; i++) {
        const struct mo_llm_block *b = in->v[i];
        struct mo_llm_call *c = &in->calls[r->ncalls];

        if (b->drop || b->kind != MO_LB_CALL)
            continue;
        (void)snprintf(in->keys[r->ncalls], MO_LLM_KEY_MAX, "%s-%zu", in->key,
                       r->ncalls);
        c->key = mo_span_cstr(in->keys[r->ncalls]);
        c->name = mo_buf_view(&b->name);
        c->args = mo_buf_view(&b->args);
        c->bad = mo_buf_view(&b->bad);
        r->ncalls++;
    }
}

/* Collects all text, unescaped. */
static void put_text(struct mo_llm_in *in)
{
    for (size_t i = 0; i < in->n; i++) {
        if (in->v[i]->kind == MO_LB_TEXT && !in->v[i]->drop)
            (void)mo_llm_body_text(&in->v[i]->body, &in->text);
    }
}

int mo_llm_in_reply(struct mo_llm_in *in, const struct mo_llm_by *by,
                    struct mo_llm_reply *r, struct mo_err *e)
{
    *r = (struct mo_llm_reply){.ncalls = 0};
    if (!in->ended)
        return mo_fail(e, MO_ECLOSED,
                       "%s stopped in the middle of its reply; the reply was "
                       "not kept: try again",
                       in->label);
    if (in->wire->finish && in->wire->finish(in, e) < 0)
        return e->code;
    collect_calls(in, r);
    if (r->ncalls && (in->stop == MO_LLM_END || in->stop == MO_LLM_OTHER))
        in->stop = MO_LLM_CALLS;
    else if (!r->ncalls && in->stop == MO_LLM_CALLS)
        in->stop = MO_LLM_END;
    mo_llm_usage_add(&in->usage, &in->before);
    put_entry(in, by);
    put_text(in);
    mo_buf_pass_err(&in->entry, &in->text);
    if (mo_buf_err(&in->entry))
        return mo_fail(e, mo_buf_err(&in->entry), "reply");
    r->entry = mo_buf_view(&in->entry);
    r->text = mo_buf_view(&in->text);
    r->stop = in->stop;
    r->calls = in->calls;
    r->usage = in->usage;
    return 0;
}
