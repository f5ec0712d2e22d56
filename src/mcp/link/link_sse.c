/* link_sse.c - the HTTP+SSE transport: one stream in, one POST a message out.
 *
 * Invariants
 *  1. Only free_post() frees a post, when the HTTP client owes it no on_done.
 *  2. One post at a time, in order: servers of this revision have no other
 *     way to tell which message was first, and 202 comes at once.
 *  3. Once the link is closing or failing single posts are not reported.
 *  4. on_later() frees the link, when the stream and all posts are gone. */
#include "mcp/link/link_sse.h"

#include "codec/http/url.h"
#include "mcp/link/link_http_priv.h"
#include "mcp/link/overlong.h"

#define NOTE_MS 30000u

struct sse {
    struct mo_link k;
    struct mo_loop *loop;
    struct mo_arena a; /* texts of o */
    struct mo_link_http_opts o;
    struct mo_http_header *headers; /* those of o, and space for more */
    unsigned nposts;
    struct mo_httpc_x *stream;
    int status;
    bool events; /* the stream is an event stream */
    struct mo_sse in;
    struct mo_overlong overlong; /* set: in skips an event */
    struct mo_buf endpoint;
    struct mo_list posts;
    struct mo_timer timer;
    struct mo_later later;
    struct mo_budget budget;
    bool held; /* the stream is not read until the timer fires */
    bool posting;
};

struct post {
    struct mo_list node;
    struct sse *s;
    struct mo_httpc_x *call; /* NULL: waits, or ended */
    uint64_t id;
    int status;
    bool quiet;
    struct mo_buf text; /* the body to send; then the body of a refusal */
    char version[16];
};

/* --- the address --------------------------------------------------------- */

/* Number of bytes of base in front of the part that the text replaces. */
static size_t kept_length(const struct mo_url *base, const char *start,
                          bool rooted)
{
    size_t n = base->path.p ? (size_t)(base->path.p - start) : strlen(start);

    if (rooted || !base->path.p)
        return n;
    for (size_t i = base->path.n; i > 0; i--) {
        if (base->path.p[i - 1] == '/')
            return n + i;
    }
    return n;
}

int mo_link_sse_endpoint(struct mo_buf *b, const char *base,
                         struct mo_span text, struct mo_err *e)
{
    struct mo_url here, there;
    size_t from = b->len;

    if (mo_url_parse(mo_span_cstr(base), &here, e) < 0)
        return mo_wrap(e, "stream");
    if (text.n == 0 || mo_span_starts(text, MO_SPAN("//")))
        return mo_fail(e, MO_EPROTO, "the server sends no address to post to");
    if (mo_span_search(text, MO_SPAN("://")) < 0) {
        bool rooted = text.p[0] == '/';

        mo_buf_put(b, base, kept_length(&here, base, rooted));
        if (!rooted && (b->len == from || b->p[b->len - 1] != '/'))
            mo_buf_putc(b, '/');
    }
    mo_buf_span(b, text);
    if (mo_buf_err(b))
        return mo_fail(e, mo_buf_err(b), "the address to post to is too long");
    if (mo_url_parse(mo_span(b->p + from, b->len - from), &there, NULL) < 0)
        return mo_fail(e, MO_EPROTO, "the server sends no address to post to");
    if (!mo_origin_eq(&here, &there) || there.userinfo.p)
        return mo_fail(e, MO_EPROTO,
                       "the address to post to has another origin");
    return 0;
}

/* --- the end ------------------------------------------------------------- */

static void free_post(struct post *p)
{
    struct sse *s = p->s;

    mo_list_del(&p->node);
    s->nposts--;
    mo_buf_fini(&p->text);
    mo_free(p);
    if (mo_link_dead(&s->k))
        mo_loop_defer(s->loop, &s->later);
}

static void stop_post(struct post *p)
{
    p->quiet = true;
    if (p->call)
        mo_httpc_cancel(p->call);
    else
        free_post(p);
}

static void stop_all(struct sse *s)
{
    mo_timer_stop(s->loop, &s->timer);
    mo_list_each_safe (n, &s->posts)
        stop_post(mo_container_of(n, struct post, node));
    if (s->stream)
        mo_httpc_cancel(s->stream);
    mo_loop_defer(s->loop, &s->later);
}

static void fail_link(struct sse *s, const struct mo_err *why)
{
    if (mo_link_fail(&s->k, why))
        stop_all(s);
}

static void on_later(struct mo_later *d)
{
    struct sse *s = mo_container_of(d, struct sse, later);

    if (!mo_link_dead(&s->k) || s->stream || !mo_list_empty(&s->posts))
        return;
    mo_timer_stop(s->loop, &s->timer);
    mo_sse_fini(&s->in);
    mo_buf_fini(&s->endpoint);
    mo_arena_fini(&s->a);
    mo_link_gone(&s->k);
}

/* --- posting ------------------------------------------------------------- */

static void post_head(void *ctx, const struct mo_http_head *h)
{
    struct post *p = ctx;

    p->status = h->status;
    mo_buf_reset(&p->text);
}

static void post_data(void *ctx, struct mo_span data)
{
    struct post *p = ctx;

    if (p->text.len < MO_LINK_HTTP_BODY_MAX)
        mo_buf_span(&p->text,
                    mo_span_head(data, MO_LINK_HTTP_BODY_MAX - p->text.len));
}

/* The server refused the post: its request fails. */
static void fail_post(struct post *p, const struct mo_err *why)
{
    struct sse *s = p->s;
    struct mo_err e =
        why ? *why : *mo_error(MO_EPROTO, "the server answers %d", p->status);

    p->quiet = true;
    if (p->id)
        s->k.cb->on_failed(s->k.ctx, p->id, p->status,
                           p->status ? mo_buf_view(&p->text) : mo_span(NULL, 0),
                           &e);
}

static void send_next_post(struct sse *s);

static void post_done(void *ctx, const struct mo_err *why)
{
    struct post *p = ctx;
    struct sse *s = p->s;
    bool taken = !why && p->status >= 200 && p->status < 300;

    p->call = NULL;
    s->posting = false;
    mo_list_del(&p->node); /* ended, whatever the owner does in the callback */
    if (!p->quiet && !taken && !mo_link_dead(&s->k))
        fail_post(p, why);
    free_post(p);
    send_next_post(s);
}

static const struct mo_http_cb post_cb = {post_head, post_data, post_done};

static int post_now(struct post *p, struct mo_err *e)
{
    struct sse *s = p->s;
    struct mo_http_call c = {
        .method = "POST",
        .url = mo_buf_cstr(&s->endpoint),
        .headers = s->headers,
        .nheaders = s->o.nheaders,
        .body = mo_buf_view(&p->text),
        .total_ms = NOTE_MS,
    };

    s->headers[c.nheaders++] = (struct mo_http_header){
        MO_SPAN("Content-Type"), MO_SPAN("application/json")};
    if (p->version[0])
        s->headers[c.nheaders++] = (struct mo_http_header){
            MO_SPAN("MCP-Protocol-Version"), mo_span_cstr(p->version)};
    return mo_httpc_start(s->o.http, &c, &post_cb, p, &p->call, e);
}

/* Send the next post, if the address is known and none is in flight. */
static void send_next_post(struct sse *s)
{
    struct post *p = mo_list_first(&s->posts, struct post, node);
    struct mo_err e;

    if (!p || s->posting || !s->endpoint.len || mo_link_dead(&s->k))
        return;
    if (post_now(p, &e) < 0)
        fail_link(s, &e);
    else
        s->posting = true;
}

/* --- the stream ---------------------------------------------------------- */

static void on_endpoint(struct sse *s, struct mo_span text)
{
    struct mo_err e;

    if (s->endpoint.len)
        return; /* the first address counts */
    if (mo_link_sse_endpoint(&s->endpoint, s->o.url, text, &e) < 0) {
        fail_link(s, &e);
        return;
    }
    mo_timer_stop(s->loop, &s->timer);
    send_next_post(s);
}

static void on_text(struct sse *s, struct mo_span text)
{
    struct mo_rpc m;

    if (mo_rpc_parse(text, &m, NULL) == 0) {
        if (m.kind != MO_RPC_RESULT && m.kind != MO_RPC_ERROR)
            mo_budget_take(&s->budget, mo_loop_now(s->loop));
        s->k.cb->on_message(s->k.ctx, &m, 0);
        return;
    }
    mo_budget_take(&s->budget, mo_loop_now(s->loop));
    if (s->k.cb->on_noise)
        s->k.cb->on_noise(s->k.ctx, text);
}

/* Scan a piece of an event that is too long. */
static bool on_skip(void *ctx, struct mo_span data)
{
    struct sse *s = ctx;

    if (!s->overlong.on)
        mo_overlong_start(&s->overlong);
    return mo_overlong_feed(&s->overlong, data, s->o.message_max);
}

/* Such an event has ended: fail its call, or the link (see overlong.h). */
static void on_skipped(struct sse *s, struct mo_span event)
{
    uint64_t id;
    bool ours = mo_overlong_end(&s->overlong, &id);

    if (ours && mo_span_is(event, "message"))
        s->k.cb->on_failed(s->k.ctx, id, 0, mo_span(NULL, 0),
                           MO_OVERLONG_ERROR(s->o.message_max));
    else
        fail_link(s, mo_error(MO_ETOOBIG,
                              "event stream: event too long: over %zu bytes",
                              s->o.message_max));
}

/* Too many messages: stop reading the stream for a while. */
static void pause_reading(struct sse *s)
{
    if (!mo_budget_spent(&s->budget) || mo_link_dead(&s->k) || !s->stream)
        return;
    if (!s->endpoint.len || !mo_budget_pause(&s->budget)) {
        fail_link(s, MO_BUDGET_FLOOD);
        return;
    }
    s->held = true;
    mo_httpc_pause(s->stream);
    mo_timer_start(s->loop, &s->timer, MO_LINK_BREATH_MS);
}

static void resume_reading(struct sse *s)
{
    s->held = false;
    mo_budget_fill(&s->budget, mo_loop_now(s->loop));
    pause_reading(s);
    if (!s->held && s->stream && !mo_link_dead(&s->k))
        mo_httpc_resume(s->stream);
}

static void stream_head(void *ctx, const struct mo_http_head *h)
{
    struct sse *s = ctx;

    s->status = h->status;
    s->events = h->status == 200 && mo_http_is_type(h, "text/event-stream");
}

static void stream_data(void *ctx, struct mo_span in)
{
    struct sse *s = ctx;
    enum mo_sse_result r = MO_SSE_MORE;
    struct mo_sse_event ev;
    struct mo_err e;

    while (s->events && !mo_link_dead(&s->k)) {
        r = mo_sse_next(&s->in, &in, &ev, &e);
        if (r < MO_SSE_EVENT)
            break;
        if (r == MO_SSE_SKIPPED)
            on_skipped(s, ev.event);
        else if (mo_span_is(ev.event, "endpoint"))
            on_endpoint(s, ev.data);
        else if (mo_span_is(ev.event, "message") && ev.data.n)
            on_text(s, ev.data);
    }
    if (r == MO_SSE_ERROR)
        fail_link(s, &e);
    pause_reading(s);
}

static void stream_done(void *ctx, const struct mo_err *why)
{
    struct sse *s = ctx;

    s->stream = NULL;
    if (why)
        fail_link(s, why);
    else if (s->events)
        fail_link(s, mo_error(MO_ECLOSED, "the server ended its stream"));
    else
        fail_link(s, mo_error(MO_EPROTO,
                              "the server answers %d without an event stream",
                              s->status));
    mo_loop_defer(s->loop, &s->later);
}

static const struct mo_http_cb stream_cb = {stream_head, stream_data,
                                            stream_done};

static void on_timer(struct mo_timer *t)
{
    struct sse *s = mo_container_of(t, struct sse, timer);

    if (s->held)
        resume_reading(s);
    else
        fail_link(
            s, mo_error(MO_ETIMEOUT, "the server sends no address to post to"));
}

/* --- the link's side ----------------------------------------------------- */

static int sse_send(struct mo_link *k, const struct mo_link_msg *m)
{
    struct sse *s = mo_container_of(k, struct sse, k);
    struct post *p;
    int rc;

    if (k->failing)
        return MO_ECLOSED;
    if (s->nposts >= s->o.streams + (m->id ? 0 : MO_LINK_HTTP_EXTRA))
        return MO_EBUSY;
    p = mo_new(struct post);
    if (!p)
        return MO_ENOMEM;
    p->s = s;
    p->id = m->id;
    mo_buf_init(&p->text, s->o.message_max);
    mo_list_push(&s->posts, &p->node);
    s->nposts++;
    for (size_t i = 0; m->version && m->version[i]; i++) {
        if (i < sizeof(p->version) - 1)
            p->version[i] = m->version[i];
    }
    rc = mo_buf_span(&p->text, m->text);
    if (rc < 0)
        free_post(p);
    else
        send_next_post(s);
    return rc;
}

static void sse_forget(struct mo_link *k, uint64_t id)
{
    struct sse *s = mo_container_of(k, struct sse, k);

    mo_list_each_entry (p, &s->posts, struct post, node) {
        if (!id || p->id != id || p->quiet)
            continue;
        p->quiet = true; /* a post in flight may still arrive */
        if (!p->call)
            free_post(p);
        return;
    }
}

static void sse_start(struct mo_link *k)
{
    struct sse *s = mo_container_of(k, struct sse, k);
    struct mo_http_call c = {
        .url = s->o.url,
        .headers = s->headers,
        .nheaders = s->o.nheaders,
        .idle_ms = MO_HTTP_FOREVER,
        .max_bytes = UINT64_MAX,
    };
    struct mo_err e;

    s->headers[c.nheaders++] = (struct mo_http_header){
        MO_SPAN("Accept"), MO_SPAN("text/event-stream")};
    if (mo_httpc_start(s->o.http, &c, &stream_cb, s, &s->stream, &e) < 0)
        fail_link(s, &e);
    else
        mo_timer_start(s->loop, &s->timer, MO_LINK_SSE_OPEN_MS);
}

static void sse_close(struct mo_link *k)
{
    stop_all(mo_container_of(k, struct sse, k));
}

/* Not marked as HTTP: one stream carries all answers, and a message cancels a
 * request, not the end of its connection. */
static const struct mo_link_ops sse_ops = {
    .send = sse_send,
    .forget = sse_forget,
    .start = sse_start,
    .close = sse_close,
    .http = true,
};

int mo_link_sse(struct mo_loop *l, const struct mo_link_http_opts *o,
                struct mo_link **out, struct mo_err *e)
{
    struct sse *s = mo_new(struct sse);

    if (!s)
        return mo_fail(e, MO_ENOMEM, "link");
    mo_arena_init(&s->a, 8 * MO_HTTP_HEAD_MAX);
    s->headers = mo_link_http_copy_opts(o, &s->a, &s->o);
    if (!s->headers) {
        mo_arena_fini(&s->a);
        mo_free(s);
        return mo_fail(e, MO_ENOMEM, "link to an HTTP server");
    }
    s->k.ops = &sse_ops;
    s->loop = l;
    mo_budget_init(&s->budget, mo_loop_now(l));
    mo_list_init(&s->posts);
    mo_later_init(&s->later, on_later);
    mo_timer_init(&s->timer, on_timer);
    mo_buf_init(&s->endpoint, MO_URL_MAX);
    mo_sse_init(&s->in, s->o.message_max);
    mo_sse_skip(&s->in, on_skip, s);
    *out = &s->k;
    return 0;
}
