/* llm_x.c - one request: sends it, reads its stream, and retries if safe.
 *
 * Invariants
 *   1. x is freed only in x_free(), when it has neither an HTTP request nor a
 *      timer; the caller's on_done was called before.
 *   2. A try is repeated only while no byte of a stream has come in it. In a
 *      reply of several requests (Gemini's CONTINUATION) each counts
 *      separately; output of the earlier ones is kept.
 *   3. After on_done nothing of the caller is used. A server that sent its end
 *      but holds the connection gets a short time to close it (so it can be
 *      reused); then it is cut off. */
#include <stdio.h>

#include "agent/llm/llm_priv.h"
#include "base/rand.h"

#define EVENT_MAX   ((size_t)16 * 1024 * 1024) /* one event of a stream */
#define ERROR_MAX   ((size_t)256 * 1024) /* an answer that is not a stream */
#define STREAM_MAX  ((uint64_t)256 * 1024 * 1024)
#define DRAIN_MS    2000u
#define LOADING_MS  1000u
#define LOADING_MAX 120u /* answers "still loading" before giving up */
#define RESUMES_MAX 3u
#define WORD_MS     12u /* time per word of the demo */

enum x_state { X_RUNNING, X_WAITING, X_DEMO, X_ENDING, X_TOLD };

struct mo_llm_x {
    struct mo_llm *m; /* NULL after on_done */
    struct mo_loop *loop;
    const struct mo_llm_wire *wire;
    struct mo_llm_cb cb;
    void *ctx;
    enum x_state state;
    struct mo_httpc_x *http;
    struct mo_buf url, body, hop; /* hop: the body with a continuation token */
    char *model;
    unsigned max_output; /* tokens; 0: the provider's default */
    char base[MO_LLM_BASE_MAX];
    struct mo_sse sse;
    struct mo_llm_in in;
    struct mo_llm_hint hint;
    struct mo_buf doc; /* an answer that is not a stream */
    struct mo_timer timer;
    struct mo_later later;
    struct mo_llm_failure fail; /* code set: the request failed */
    unsigned tries, loads, hops, resumes;
    bool redone;             /* was repeated once already */
    bool renamed;            /* likewise, with max_completion_tokens */
    bool begun;              /* this try has received stream data */
    bool stream;             /* the answer is a stream */
    struct mo_llm_plan plan; /* the demo's reply */
    size_t said;
    struct mo_trace_span *span; /* NULL: it is not recorded */
};

static void post_request(struct mo_llm_x *x);

static void x_move(struct mo_llm_x *x, enum x_state to)
{
    static const unsigned legal[] = {
        [X_RUNNING] = MO_TO(X_WAITING) | MO_TO(X_ENDING) | MO_TO(X_RUNNING) |
                      MO_TO(X_TOLD),
        [X_WAITING] = MO_TO(X_RUNNING) | MO_TO(X_ENDING),
        [X_DEMO] = MO_TO(X_ENDING) | MO_TO(X_TOLD),
        [X_ENDING] = MO_TO(X_TOLD),
        [X_TOLD] = 0,
    };

    MO_MOVE(x->state, to, legal);
}

/* --- its span ------------------------------------------------------------ */

/* Names of the semantic conventions of OpenTelemetry. */
static const char *provider_name(enum mo_llm_kind k)
{
    return k == MO_LLM_CLAUDE   ? "anthropic"
           : k == MO_LLM_GEMINI ? "gcp.gemini"
           : k == MO_LLM_OPENAI ? "openai"
                                : mo_llm_kind_name(k);
}

static void begin_span(struct mo_llm_x *x, const struct mo_llm_request *r)
{
    struct mo_trace_span *s = mo_trace_child(r->parent, MO_TRACE_CLIENT, "");
    struct mo_span model = mo_span_cstr(r->model);

    if (!s)
        return;
    x->span = s;
    mo_trace_rename(s, MO_SPAN("chat"), model);
    mo_trace_text(s, "gen_ai.operation.name", MO_SPAN("chat"));
    mo_trace_text(s, "gen_ai.provider.name",
                  mo_span_cstr(provider_name(x->m->kind)));
    mo_trace_text(s, "gen_ai.request.model", model);
    mo_trace_text(s, "gen_ai.conversation.id", r->conversation);
}

static void end_span(struct mo_llm_x *x, const struct mo_llm_reply *r)
{
    struct mo_trace_span *s = mo_take_ptr(&x->span);

    if (!s)
        return;
    if (r) {
        const struct mo_llm_usage *u = &r->usage;

        mo_trace_one(s, "gen_ai.response.finish_reasons",
                     mo_span_cstr(mo_llm_stop_name(r->stop)));
        mo_trace_int(s, "gen_ai.usage.input_tokens", (int64_t)u->input);
        mo_trace_int(s, "gen_ai.usage.output_tokens", (int64_t)u->output);
        if (u->cache_read)
            mo_trace_int(s, "gen_ai.usage.cache_read.input_tokens",
                         (int64_t)u->cache_read);
        if (u->cache_write)
            mo_trace_int(s, "gen_ai.usage.cache_creation.input_tokens",
                         (int64_t)u->cache_write);
    } else {
        mo_trace_fail(s, x->fail.code ? x->fail.code : "failed");
    }
    if (x->hint.status > 0)
        mo_trace_int(s, "http.response.status_code", x->hint.status);
    mo_trace_end(s);
}

/* --- the end ------------------------------------------------------------- */

static void x_free(struct mo_llm_x *x)
{
    end_span(x, NULL); /* it never started */
    mo_timer_stop(x->loop, &x->timer);
    mo_later_cancel(&x->later);
    mo_buf_fini(&x->url);
    mo_buf_fini(&x->body);
    mo_buf_fini(&x->hop);
    mo_buf_fini(&x->doc);
    mo_sse_fini(&x->sse);
    mo_llm_in_fini(&x->in);
    mo_llm_plan_fini(&x->plan);
    mo_free(x->model);
    mo_free(x);
}

static void call_on_done(struct mo_llm_x *x, const struct mo_llm_reply *r)
{
    bool idle = !x->http;

    x_move(x, X_TOLD);
    end_span(x, r);
    x->m->active--;
    x->m = NULL;
    x->in.cb = NULL;
    mo_timer_stop(x->loop, &x->timer);
    x->cb.on_done(x->ctx, r, r ? NULL : &x->fail);
    if (idle)
        x_free(x);
    else if (x->http)
        mo_timer_start(x->loop, &x->timer, DRAIN_MS);
}

static void fail_with(struct mo_llm_x *x, const struct mo_err *e,
                      const char *code)
{
    if (x->fail.code)
        return;
    x->fail = x->in.fail;
    if (x->fail.code)
        return;
    x->fail.err = *e;
    x->fail.code = code;
}

/* Called from the loop only, never from inside a caller's function. */
static void end_request(struct mo_llm_x *x)
{
    struct mo_llm_by by = {mo_llm_kind_name(x->m->kind), x->model, x->m->url,
                           x->base};
    struct mo_llm_reply r;
    struct mo_err e;
    bool good = !x->fail.code;

    if (good && mo_llm_in_reply(&x->in, &by, &r, &e) < 0) {
        good = false;
        fail_with(x, &e, e.code == MO_ECLOSED ? "network" : "protocol");
    }
    call_on_done(x, good ? &r : NULL);
}

static void on_later(struct mo_later *d)
{
    end_request(mo_container_of(d, struct mo_llm_x, later));
}

void mo_llm_cancel(struct mo_llm_x *x)
{
    if (x->state == X_ENDING || x->state == X_TOLD)
        return;
    x->fail = (struct mo_llm_failure){.code = "canceled"};
    (void)mo_fail(&x->fail.err, MO_ECANCELED, "canceled");
    mo_timer_stop(x->loop, &x->timer);
    x->in.cb = NULL;
    if (x->http) {
        mo_httpc_cancel(x->http); /* on_done follows */
        return;
    }
    x_move(x, X_ENDING);
    mo_loop_defer(x->loop, &x->later);
}

/* --- retries ------------------------------------------------------------- */

static void retry_wait_ms(struct mo_llm_x *x, unsigned ms,
                          const struct mo_llm_failure *f)
{
    x_move(x, X_WAITING);
    mo_timer_start(x->loop, &x->timer, ms);
    if (x->cb.on_wait)
        x->cb.on_wait(x->ctx, x->tries, ms, f);
}

/* Schedules another try if the failure allows it. */
static bool schedule_retry(struct mo_llm_x *x, const struct mo_llm_verdict *v)
{
    unsigned ms;

    if (x->begun || (!v->again && !v->loading))
        return false;
    if (v->loading && ++x->loads <= LOADING_MAX) {
        x->tries = 1;
        retry_wait_ms(x, LOADING_MS, &v->f);
        return true;
    }
    if (x->tries >= MO_LLM_TRIES)
        return false;
    ms = mo_llm_wait_ms(v->after_ms, x->tries, (uint32_t)mo_random_u64());
    if (ms)
        retry_wait_ms(x, ms, &v->f);
    return ms != 0;
}

/* Adds up the usage of several requests. */
static void keep_usage(struct mo_llm_in *in)
{
    mo_llm_usage_add(&in->before, &in->usage);
    in->usage = (struct mo_llm_usage){.input = 0};
}

static void send_again(struct mo_llm_x *x)
{
    keep_usage(&x->in);
    mo_buf_reset(&x->hop);
    (void)mo_buf_puts(&x->hop, "{\"continuationToken\":");
    (void)mo_buf_span(&x->hop, mo_buf_view(&x->in.token));
    (void)mo_buf_putc(&x->hop, ',');
    (void)mo_buf_put(&x->hop, x->body.p + 1, x->body.len - 1);
    x->in.again = x->in.token_new = false;
    x->tries = 0;
    post_request(x);
}

/* Gemini only failed to form its call: repeat once from the start. */
static bool redo_call(struct mo_llm_x *x)
{
    if (!x->in.redo || x->in.n || x->redone || x->fail.code)
        return false;
    x->redone = true;
    x->in.redo = x->in.ended = false;
    x->in.stop_raw[0] = '\0';
    keep_usage(&x->in);
    x->tries = 0;
    post_request(x);
    return true;
}

/* The stream has ended; continues the reply with another request if needed. */
static bool next_hop(struct mo_llm_x *x, bool broken)
{
    bool fresh = x->in.token_new && x->in.token.len;

    if (x->in.ended || x->fail.code || !fresh || x->hops >= MO_LLM_HOPS_MAX)
        return false;
    if (broken && x->resumes++ >= RESUMES_MAX)
        return false;
    if (!broken && !x->in.again)
        return false;
    if (!broken)
        x->resumes = 0;
    x->hops++;
    send_again(x);
    return true;
}

/* --- the answer ---------------------------------------------------------- */

static void is_broken(struct mo_llm_x *x, const struct mo_err *e)
{
    fail_with(x, e, "protocol");
    if (x->http)
        mo_httpc_cancel(x->http);
}

static void feed_stream(struct mo_llm_x *x, struct mo_span data)
{
    struct mo_sse_event ev;
    struct mo_err e;

    while (x->state == X_RUNNING && !x->fail.code && !x->in.whole) {
        enum mo_sse_result r = mo_sse_next(&x->sse, &data, &ev, &e);

        if (r == MO_SSE_MORE)
            return;
        if (r == MO_SSE_ERROR || mo_llm_event(&x->in, ev.data, &e) < 0)
            is_broken(x, &e);
    }
}

static bool is_stream(const struct mo_http_head *h)
{
    struct mo_span t = mo_http_get(h, "content-type");

    return h->status >= 200 && h->status < 300 &&
           !mo_span_starts(t, MO_SPAN("application/json"));
}

static void on_head(void *ctx, const struct mo_http_head *h)
{
    struct mo_llm_x *x = ctx;

    mo_llm_hint_head(&x->hint, h, mo_wall_ms());
    x->stream = is_stream(h);
    if (x->m && x->renamed && h->status >= 200 && h->status < 300)
        *x->m->new_limit = true;
}

static void on_data(void *ctx, struct mo_span data)
{
    struct mo_llm_x *x = ctx;

    if (x->state != X_RUNNING || x->fail.code)
        return;
    if (!x->stream) {
        size_t left = ERROR_MAX - x->doc.len;

        (void)mo_buf_span(&x->doc, mo_span_head(data, left));
        return;
    }
    x->begun = true;
    feed_stream(x, data);
    if (x->state == X_RUNNING && !x->fail.code && x->in.whole)
        end_request(x);
}

/* A compatible server that wants the limit under its newer name, as it says:
 * once more, from the start. */
static bool rename_limit(struct mo_llm_x *x, const struct mo_llm_verdict *v)
{
    if (x->m->kind != MO_LLM_COMPATIBLE || x->renamed || *x->m->new_limit ||
        strcmp(v->f.code, "bad_request") != 0 ||
        mo_span_search(mo_buf_view(&x->doc), MO_SPAN("max_tokens")) < 0 ||
        !mo_llm_chat_new_limit(&x->body, x->max_output))
        return false;
    x->renamed = true;
    x->tries = 0;
    post_request(x);
    return true;
}

static void take_refusal(struct mo_llm_x *x)
{
    struct mo_llm_verdict v;

    mo_llm_judge(x->in.label, &x->hint, mo_buf_view(&x->doc), x->in.secret, &v);
    if (schedule_retry(x, &v) || rename_limit(x, &v))
        return;
    x->fail = v.f;
    end_request(x);
}

static void take_lost_connection(struct mo_llm_x *x, const struct mo_err *why)
{
    struct mo_llm_verdict v = {.after_ms = -1};

    mo_llm_network(x->in.label, why, &v.f);
    v.again = why->code == MO_ECLOSED || why->code == MO_EUNAVAIL;
    if (x->begun && next_hop(x, true))
        return;
    if (schedule_retry(x, &v))
        return;
    x->fail = v.f;
    end_request(x);
}

static void end_stream(struct mo_llm_x *x)
{
    struct mo_err e;

    if (!x->stream) { /* although asked to: treated as one event */
        if (mo_llm_event(&x->in, mo_buf_view(&x->doc), &e) < 0)
            fail_with(x, &e, "protocol");
    } else {
        feed_stream(
            x, MO_SPAN("\n\n")); /* the last event may lack its empty line */
        if (x->state != X_RUNNING)
            return;
        if (redo_call(x) || next_hop(x, !x->in.again))
            return;
    }
    end_request(x);
}

static void on_http_done(void *ctx, const struct mo_err *why)
{
    struct mo_llm_x *x = ctx;
    struct mo_err e;

    x->http = NULL;
    if (!why && x->hint.status == 0) { /* closed inside the response head */
        (void)mo_fail(&e, MO_ECLOSED, "closed without an answer");
        why = &e;
    }
    if (x->state == X_TOLD)
        x_free(x);
    else if (x->fail.code)
        end_request(x);
    else if (why)
        take_lost_connection(x, why);
    else if (x->hint.status < 200 || x->hint.status > 299)
        take_refusal(x);
    else
        end_stream(x);
}

/* --- the request --------------------------------------------------------- */

static int send_out(struct mo_llm_x *x, struct mo_err *e)
{
    static const struct mo_http_cb cb = {on_head, on_data, on_http_done};
    char traceparent[MO_TRACE_PARENT_LEN + 1];
    struct mo_trace out = {0};
    struct mo_llm_headers h;
    struct mo_http_call c = {
        .method = "POST",
        .url = mo_buf_cstr(&x->url),
        .body = mo_buf_view(x->hop.len ? &x->hop : &x->body),
        .idle_ms = x->m->idle_ms,
        .total_ms = x->m->total_ms,
        .max_bytes = STREAM_MAX,
    };
    int rc = mo_llm_headers(x->m, &h, e);

    mo_trace_send(x->span, &out, traceparent);
    if (x->span)
        h.v[h.n++] = (struct mo_http_header){MO_SPAN("traceparent"),
                                             out.v[MO_TRACE_PARENT]};
    c.headers = h.v;
    c.nheaders = h.n;
    if (rc == 0 && mo_buf_err(&x->hop))
        rc = mo_fail(e, mo_buf_err(&x->hop), "request");
    if (rc == 0)
        rc = mo_httpc_start(x->m->hc, &c, &cb, x, &x->http, e);
    mo_buf_wipe(&h.auth);
    return rc;
}

static int try_once(struct mo_llm_x *x, struct mo_err *e)
{
    x->tries++;
    x->begun = x->stream = false;
    x->hint = (struct mo_llm_hint){0, -1, -1};
    mo_buf_reset(&x->doc);
    mo_sse_fini(&x->sse);
    mo_sse_init(&x->sse, EVENT_MAX);
    return send_out(x, e);
}

static void post_request(struct mo_llm_x *x)
{
    struct mo_err e;

    x_move(x, X_RUNNING);
    if (try_once(x, &e) == 0)
        return;
    fail_with(x, &e, "network");
    x_move(x, X_ENDING);
    mo_loop_defer(x->loop, &x->later);
}

/* --- the demo: no request at all ----------------------------------------- */

static size_t next_word(struct mo_span s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] != ' ' && s.p[n] != '\n')
        n++;
    while (n < s.n && (s.p[n] == ' ' || s.p[n] == '\n'))
        n++;
    return n;
}

static int demo_say(struct mo_llm_x *x, struct mo_err *e)
{
    struct mo_span rest = mo_span_skip(mo_buf_view(&x->plan.text), x->said);
    struct mo_llm_block *b = mo_llm_last(&x->in);

    rest = mo_span_head(rest, next_word(rest));
    x->said += rest.n;
    if (!b)
        b = mo_llm_open(&x->in, MO_LB_TEXT, -1, e);
    return b ? mo_llm_grow_text(&x->in, b, rest, e) : e->code;
}

static int demo_call(struct mo_llm_x *x, struct mo_err *e)
{
    struct mo_llm_block *b = NULL;

    if (x->plan.tool.len)
        b = mo_llm_open(&x->in, MO_LB_CALL, -1, e);
    if (x->plan.tool.len &&
        (!b ||
         mo_llm_add(&x->in, &b->name, mo_buf_view(&x->plan.tool), e) < 0 ||
         mo_llm_add(&x->in, &b->args, mo_buf_view(&x->plan.args), e) < 0))
        return e->code;
    x->in.ended = true;
    x->in.stop = MO_LLM_END;
    (void)snprintf(x->in.stop_raw, sizeof(x->in.stop_raw), "end");
    return 0;
}

static void demo_tick(struct mo_llm_x *x)
{
    struct mo_err e;

    if (x->said < x->plan.text.len) {
        if (demo_say(x, &e) == 0) {
            if (x->state == X_DEMO)
                mo_timer_start(x->loop, &x->timer, WORD_MS);
            return;
        }
        fail_with(x, &e, "protocol");
    } else if (demo_call(x, &e) < 0) {
        fail_with(x, &e, "protocol");
    }
    end_request(x);
}

static void on_timer(struct mo_timer *t)
{
    struct mo_llm_x *x = mo_container_of(t, struct mo_llm_x, timer);

    if (x->state == X_DEMO)
        demo_tick(x);
    else if (x->state == X_WAITING)
        post_request(x);
    else if (x->state == X_TOLD && x->http)
        mo_httpc_cancel(x->http);
}

/* --- start --------------------------------------------------------------- */

static struct mo_llm_x *x_new(struct mo_llm *m, const struct mo_llm_request *r,
                              const struct mo_llm_cb *cb, void *ctx)
{
    struct mo_llm_x *x = mo_new(struct mo_llm_x);

    if (!x)
        return NULL;
    x->m = m;
    x->loop = m->loop;
    x->wire = mo_llm_wire(m->kind, r->model);
    x->cb = *cb;
    x->ctx = ctx;
    x->state = m->kind == MO_LLM_DEMO ? X_DEMO : X_RUNNING;
    mo_buf_init(&x->url, MO_LLM_REQUEST_MAX);
    mo_buf_init(&x->body, MO_LLM_REQUEST_MAX);
    mo_buf_init(&x->hop, MO_LLM_REQUEST_MAX + MO_LLM_REPLY_MAX);
    mo_buf_init(&x->doc, ERROR_MAX);
    mo_buf_init(&x->plan.text, MO_LLM_REPLY_MAX);
    mo_buf_init(&x->plan.tool, MO_LLM_NAME_MAX + 1);
    mo_buf_init(&x->plan.args, MO_LLM_REPLY_MAX);
    mo_sse_init(&x->sse, EVENT_MAX);
    mo_timer_init(&x->timer, on_timer);
    mo_later_init(&x->later, on_later);
    mo_llm_in_init(&x->in, x->wire, m->kind, &x->cb, ctx);
    x->in.secret = mo_buf_view(&m->key);
    x->in.key[0] = 'c';
    mo_random_token(x->in.key + 1, 9);
    x->model = mo_strndup(r->model, strlen(r->model));
    x->max_output = r->max_output ? r->max_output : m->max_output;
    return x;
}

static int write_request(struct mo_llm_x *x, const struct mo_llm_request *r,
                         struct mo_err *e)
{
    struct mo_llm_ask q = {.kind = x->m->kind,
                           .url = x->m->url,
                           .max_output = x->max_output,
                           .new_limit = *x->m->new_limit,
                           .r = r};
    mo_autoarena struct mo_arena a = {.cap = 4096 + (r->nentries + 1) * 64};
    int rc;

    if (x->state != X_DEMO)
        mo_llm_memo_find(&x->m->memo, &q, &x->body);
    rc = mo_llm_ask_init(&q, &a, e);
    memcpy(x->base, q.base, sizeof(x->base));
    if (rc == 0 && x->state == X_DEMO)
        return mo_llm_demo_plan(&q, &x->plan, e);
    if (rc == 0)
        rc = x->wire->put(&q, &x->body, e);
    if (rc < 0)
        return rc;
    mo_llm_memo_keep(&x->m->memo, &q, &x->body);
    (void)mo_buf_puts(&x->url, x->m->url);
    rc = mo_llm_put_path(x->wire, r->model, &x->url);
    return rc < 0 ? mo_fail(e, rc, "request") : 0;
}

int mo_llm_start(struct mo_llm *m, const struct mo_llm_request *r,
                 const struct mo_llm_cb *cb, void *ctx, struct mo_llm_x **out,
                 struct mo_err *e)
{
    struct mo_llm_x *x;
    struct mo_err mine;
    int rc;

    e = e ? e : &mine;
    if (!r->model || !r->model[0])
        return mo_fail(e, MO_EINVAL, "no model was chosen");
    x = x_new(m, r, cb, ctx);
    if (!x)
        return mo_fail(e, MO_ENOMEM, "reply");
    begin_span(x, r);
    rc = x->model ? write_request(x, r, e) : mo_fail(e, MO_ENOMEM, "reply");
    if (rc == 0 && x->state == X_DEMO)
        mo_timer_start(x->loop, &x->timer, WORD_MS);
    else if (rc == 0)
        rc = try_once(x, e);
    if (rc < 0) {
        x_free(x);
        return rc;
    }
    m->active++;
    *out = x;
    return 0;
}
