/* link_http_x.c - one exchange: a request to the server and, for streams, the
 * requests that resume it.
 *
 *   WAITING --gate opens--> RUNNING --stream cut--> PAUSED --time--> RUNNING
 *   RUNNING --refused--> ASKING --a new token--> RUNNING
 *   RUNNING --answered or failed--> gone
 *
 * Invariants
 *  1. x->call is set exactly while the HTTP client owes us an on_done.
 *  2. Only mo_link_http_x_drop() frees an exchange, never while one of its
 *     callbacks is on the stack (x->busy) or x->call is set.
 *  3. After x->quiet is set nothing more is reported to the owner. */
#include "mcp/link/link_http_priv.h"
#include "mcp/link/overlong.h"

#define ROOM "mcp-http"

#define NOTE_MS     30000u /* for messages that expect no answer */
#define BYE_MS      2000u  /* DELETE */
#define LINGER_MS   2000u  /* a stream may stay open after its answer */
#define BACKOFF_MS  1000u
#define BACKOFF_MAX 30000u
#define SILENT_MAX  5 /* streams without an event before the pause grows */

/* --- the life of an exchange --------------------------------------------- */

static const struct mo_http_cb call_cb;

static void on_timer(struct mo_timer *t);
static void on_authorized(struct mo_auth_wait *w, const struct mo_err *why);

static unsigned *exchange_counter(struct xchg *x)
{
    return x->id ? &x->h->nstreams : &x->h->nextra;
}

struct xchg *mo_link_http_x_new(struct http *h, enum what what, uint64_t id)
{
    struct xchg *x = mo_new(struct xchg);

    if (!x)
        return NULL;
    x->h = h;
    x->what = what;
    x->id = id;
    mo_arena_init(&x->a, h->o.message_max + 4 * MO_HTTP_HEAD_MAX);
    mo_buf_init(&x->body, h->o.message_max);
    mo_sse_init(&x->sse, h->o.message_max);
    mo_timer_init(&x->timer, on_timer);
    mo_list_init(&x->wait.node);
    x->wait.done = on_authorized;
    mo_list_push(&h->xs, &x->node);
    ++*exchange_counter(x);
    return x;
}

void mo_link_http_x_drop(struct xchg *x)
{
    struct http *h = x->h;
    bool gate = h->gate == x;

    MO_BUG_ON(x->call);
    mo_list_del(&x->node);
    --*exchange_counter(x);
    if (x->what == LISTEN)
        h->listening = false;
    mo_timer_stop(h->loop, &x->timer);
    mo_list_del(&x->wait.node);
    mo_arena_fini(&x->a);
    mo_buf_fini(&x->body);
    mo_sse_fini(&x->sse);
    mo_free(x);
    if (gate)
        mo_link_http_open_gate(h);
    if (h->k.closing)
        mo_loop_defer(h->loop, &h->later);
}

void mo_link_http_x_stop(struct xchg *x)
{
    x->quiet = true;
    mo_timer_stop(x->h->loop, &x->timer);
    if (x->call)
        mo_httpc_cancel(x->call);
    else if (!x->busy)
        mo_link_http_x_drop(x);
}

/* Put the authorizer's headers after the others; returns their number. */
static size_t add_auth_headers(struct xchg *x, const char *method)
{
    struct mo_auth *auth = x->h->o.auth;
    size_t n = x->nheaders;
    struct mo_span v;

    x->proved = false;
    if (!auth || n + 2 > MO_HTTP_HEADERS_MAX)
        return n;
    v = auth->ops->header(auth, &x->wait.serial);
    if (v.n == 0)
        return n;
    x->headers[n++] = (struct mo_http_header){MO_SPAN("Authorization"), v};
    if (!auth->ops->proof)
        return n;
    v = auth->ops->proof(auth, method, x->h->o.url);
    if (v.n == 0)
        return n;
    x->proved = true;
    x->headers[n++] = (struct mo_http_header){MO_SPAN("DPoP"), v};
    return n;
}

int mo_link_http_x_run(struct xchg *x, struct mo_err *e)
{
    static const char *const methods[] = {"POST", "GET", "DELETE"};
    bool get = x->what == POST && !x->text.p;
    const char *method = get ? "GET" : methods[x->what];
    struct mo_http_call c = {
        .method = method,
        .url = x->h->o.url,
        .headers = x->headers,
        .nheaders = add_auth_headers(x, method),
        .body = x->text,
        .idle_ms = MO_HTTP_FOREVER,
        .max_bytes = UINT64_MAX,
    };
    int rc;

    if (x->what == BYE)
        c.total_ms = BYE_MS;
    else if (x->what == POST && !x->id)
        c.total_ms = NOTE_MS;
    x->kind = NO_HEAD;
    x->status = 0;
    mo_sse_restart(&x->sse);
    mo_buf_reset(&x->body);
    rc = mo_httpc_start(x->h->o.http, &c, &call_cb, x, &x->call, e);
    if (rc < 0)
        return rc;
    x->state = RUNNING;
    if (!x->h->o.auth)        /* kept otherwise: it may be sent again */
        mo_arena_fini(&x->a); /* the HTTP client has copies */
    return 0;
}

void mo_link_http_x_fail(struct xchg *x, const struct mo_err *why)
{
    struct http *h = x->h;
    struct mo_err e;

    if (why && !x->broken)
        e = *why;
    else
        mo_link_http_describe(x, &e);
    if (x->streamed && e.code == MO_EUNAVAIL)
        e.code = MO_ECLOSED; /* the server received the request */
    x->quiet = true; /* ended, whatever the owner does in the callback */
    x->busy = true;
    if (x->status == 404 && h->session[0]) {
        h->session[0] = '\0';
        h->open = false;
    }
    if (x->what == POST && x->id)
        h->k.cb->on_failed(
            h->k.ctx, x->id, x->status,
            x->kind == REFUSED ? mo_buf_view(&x->body) : mo_span(NULL, 0), &e);
    else if (x->what != LISTEN || x->status != 405)
        mo_log_err(mo_loop_log(h->loop), MO_DEBUG, ROOM, &e, "%s",
                   x->what == LISTEN ? "no stream of messages" : "not taken");
    x->busy = false;
    mo_link_http_x_drop(x);
}

/* --- flow control -------------------------------------------------------- */

/* The answer is unusable; ignore the rest of it. */
static void ignore_rest(struct xchg *x, const struct mo_err *why)
{
    x->broken = true;
    x->why = *why;
    if (x->call)
        mo_httpc_cancel(x->call);
}

/* Too many messages: stop reading this stream for a while. The rest of the
 * current piece was delivered all the same; a piece is small. */
static void pause_reading(struct xchg *x)
{
    struct http *h = x->h;

    if (!mo_budget_spent(&h->budget) || x->quiet || x->broken || x->answered)
        return;
    if (!mo_budget_pause(&h->budget)) {
        ignore_rest(x, MO_BUDGET_FLOOD);
        return;
    }
    x->held = true;
    mo_httpc_pause(x->call);
    mo_timer_start(h->loop, &x->timer, MO_LINK_BREATH_MS);
}

static void resume_reading(struct xchg *x)
{
    x->held = false;
    mo_budget_fill(&x->h->budget, mo_loop_now(x->h->loop));
    pause_reading(x);
    if (!x->held && !x->broken)
        mo_httpc_resume(x->call);
}

/* --- resuming a stream --------------------------------------------------- */

static bool may_resume(const struct xchg *x)
{
    bool refused = x->status && !http_is_good(x->status) && x->status < 500;

    if (x->modern || x->broken || refused || x->tries >= MO_LINK_HTTP_TRIES)
        return false;
    if (x->kind == OTHER || x->kind == JSON)
        return false;
    if (x->what == LISTEN)
        return true;
    return x->id && x->streamed && x->sse.last_id.len > 0;
}

/* The pause is what the server gave, except for a server that always hangs up
 * without an event: its pause grows. */
static uint64_t pause_ms(const struct xchg *x)
{
    uint64_t ms = BACKOFF_MS;

    for (unsigned i = 0; i < x->silent && ms < BACKOFF_MAX; i++)
        ms = ms * 3 / 2;
    if (x->sse.retry_ms >= 0)
        ms = (uint64_t)x->sse.retry_ms;
    if (x->silent > SILENT_MAX && ms < BACKOFF_MS)
        ms = BACKOFF_MS;
    return ms < MO_LINK_HTTP_RETRY_MAX ? ms : MO_LINK_HTTP_RETRY_MAX;
}

static void on_timer(struct mo_timer *t)
{
    struct xchg *x = mo_container_of(t, struct xchg, timer);
    struct mo_err e;
    int rc;

    if (x->held) {
        resume_reading(x);
        return;
    }
    if (x->state == RUNNING) { /* still open after its answer */
        mo_link_http_x_stop(x);
        return;
    }
    rc = mo_link_http_build_get(x);
    if (rc < 0)
        mo_link_http_x_fail(x, mo_error(rc, "cannot resume the stream"));
    else if (mo_link_http_x_run(x, &e) < 0)
        mo_link_http_x_fail(x, &e);
}

static void pause_stream(struct xchg *x)
{
    uint64_t ms = pause_ms(x);

    x->tries++;
    x->silent++;
    x->state = PAUSED;
    mo_timer_start(x->h->loop, &x->timer, ms);
}

/* --- answers ------------------------------------------------------------- */

static bool is_answer(const struct xchg *x, const struct mo_rpc *m)
{
    uint64_t id;

    return (m->kind == MO_RPC_RESULT || m->kind == MO_RPC_ERROR) && x->id &&
           mo_json_u64(m->id, &id) == 0 && id == x->id;
}

static void deliver_message(struct xchg *x, struct mo_span text)
{
    struct http *h = x->h;
    struct mo_err e;
    struct mo_rpc m;

    if (mo_rpc_parse(text, &m, &e) < 0) {
        x->noise++;
        if (h->k.cb->on_noise)
            h->k.cb->on_noise(h->k.ctx, text);
        if (x->kind == JSON || x->noise >= MO_LINK_NOISE_MAX)
            ignore_rest(x, &e);
        return;
    }
    if (is_answer(x, &m)) {
        x->answered = true;
        mo_budget_earn(&h->budget);
        if (x->call)
            mo_timer_start(h->loop, &x->timer, LINGER_MS);
    } else
        mo_budget_take(&h->budget, mo_loop_now(h->loop));
    h->k.cb->on_message(h->k.ctx, &m, x->id);
}

static void on_events(struct xchg *x, struct mo_span in)
{
    enum mo_sse_result r = MO_SSE_EVENT;
    struct mo_sse_event ev;
    struct mo_err e;

    while (!x->quiet && !x->broken) {
        r = mo_sse_next(&x->sse, &in, &ev, &e);
        if (r != MO_SSE_EVENT)
            break;
        x->silent = 0;
        if (ev.data.n && mo_span_is(ev.event, "message"))
            deliver_message(x, ev.data);
    }
    if (r == MO_SSE_ERROR)
        ignore_rest(x, &e);
    pause_reading(x);
}

/* Keep a session id of visible ASCII and limited length; ignore any other. */
static void keep_session(struct http *h, struct mo_span id)
{
    h->session[0] = '\0';
    if (id.n == 0 || id.n > MO_LINK_HTTP_SESSION ||
        !mo_span_between(id, '!', '~'))
        return;
    memcpy(h->session, id.p, id.n);
    h->session[id.n] = '\0';
}

/* Join all challenges in one line. */
static void keep_challenge(struct http *h, const struct mo_http_head *head)
{
    mo_buf_reset(&h->challenge);
    for (size_t i = 0; i < head->nheaders; i++) {
        if (!mo_span_ieq(head->headers[i].name, MO_SPAN("www-authenticate")))
            continue;
        if (h->challenge.len)
            mo_buf_puts(&h->challenge, ", ");
        mo_buf_span(&h->challenge, head->headers[i].value);
    }
}

static void on_head(void *ctx, const struct mo_http_head *head)
{
    struct xchg *x = ctx;
    struct http *h = x->h;
    struct mo_span id = mo_http_get(head, "mcp-session-id");

    x->status = head->status;
    if (!http_is_good(head->status)) {
        x->kind = REFUSED;
    } else if (mo_http_is_type(head, "text/event-stream")) {
        x->kind = EVENTS;
        x->streamed = true;
        x->tries = 0;
    } else {
        x->kind = mo_http_is_type(head, "application/json") ? JSON : OTHER;
    }
    if (x->kind != REFUSED && x->id && !h->open && !x->modern && id.p)
        keep_session(h, id);
    if (x->proved) {
        h->o.auth->ops->nonce(h->o.auth, mo_http_get(head, "DPoP-Nonce"));
        x->wait.nonced = x->wait.nonced && x->kind == REFUSED;
    }
    if (head->status != 401 && head->status != 403)
        return;
    keep_challenge(h, head);
    x->wait.local = mo_httpc_at_private(x->call);
}

/* --- authorization ------------------------------------------------------- */

static bool may_authorize(const struct xchg *x)
{
    return x->h->o.auth && !x->quiet && !x->broken && x->what != BYE &&
           (x->status == 401 || x->status == 403) &&
           x->refusals < MO_LINK_HTTP_REFUSALS;
}

/* Returns 0 if the exchange now waits for its ticket. */
static int request_auth(struct xchg *x, struct mo_err *e)
{
    struct mo_auth *auth = x->h->o.auth;

    x->refusals++;
    x->state = ASKING;
    return auth->ops->refused(auth, &x->wait, x->status,
                              mo_buf_view(&x->h->challenge), e);
}

static void on_authorized(struct mo_auth_wait *w, const struct mo_err *why)
{
    struct xchg *x = mo_container_of(w, struct xchg, wait);
    struct mo_err e;

    if (!why && mo_link_http_x_run(x, &e) < 0)
        why = &e;
    if (why)
        mo_link_http_x_fail(x, why);
}

static void on_data(void *ctx, struct mo_span data)
{
    struct xchg *x = ctx;

    if (x->quiet || x->broken)
        return;
    if (x->kind == EVENTS) {
        on_events(x, data);
    } else if (x->kind == REFUSED) {
        if (x->body.len < MO_LINK_HTTP_BODY_MAX)
            mo_buf_span(&x->body, mo_span_head(data, MO_LINK_HTTP_BODY_MAX -
                                                         x->body.len));
    } else if (x->kind == JSON && mo_buf_span(&x->body, data) < 0) {
        if (mo_buf_err(&x->body) == MO_ETOOBIG)
            ignore_rest(x, MO_OVERLONG_ERROR(x->h->o.message_max));
        else
            ignore_rest(
                x, mo_error(mo_buf_err(&x->body), "no memory for the answer"));
    }
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct xchg *x = ctx;
    struct mo_err e;
    bool text;

    x->call = NULL;
    x->held = false;
    mo_timer_stop(x->h->loop, &x->timer);
    text = x->kind == JSON && !why && !x->quiet && !x->broken && x->body.len;
    if (text) {
        x->busy = true;
        deliver_message(x, mo_buf_view(&x->body));
        x->busy = false;
    }
    if (!why && may_authorize(x)) {
        if (request_auth(x, &e) < 0)
            mo_link_http_x_fail(x, &e);
        return;
    }
    if (x->quiet || x->answered || x->what == BYE ||
        (x->what == POST && !x->id && http_is_good(x->status)))
        mo_link_http_x_drop(x);
    else if (may_resume(x))
        pause_stream(x);
    else
        mo_link_http_x_fail(x, why);
}

static const struct mo_http_cb call_cb = {
    .on_head = on_head,
    .on_data = on_data,
    .on_done = on_done,
};
