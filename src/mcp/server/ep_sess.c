#include "mcp/server/ep_sess.h"

#include <stdio.h>

#include "codec/http/sse.h"

/* --- events that are kept ------------------------------------------------ */

static void drop_event(struct hsess *s, struct kept *k)
{
    mo_list_del(&k->node);
    s->kept_bytes -= k->n;
    s->h->ep->replay -= k->n;
    mo_free(k);
}

/* Drop the oldest event of the longest idle session. */
static bool drop_oldest_event(struct mo_ep_http *h)
{
    mo_list_each_entry (s, &h->sessions, struct hsess, node) {
        if (mo_list_empty(&s->kept))
            continue;
        drop_event(s, mo_container_of(s->kept.next, struct kept, node));
        return true;
    }
    return false;
}

static bool make_space(struct hsess *s, size_t n)
{
    const struct mo_endpoint_limits *l = &s->h->ep->o.limits;

    if (n > l->replay || n > l->replay_all)
        return false;
    while (s->kept_bytes + n > l->replay)
        drop_event(s, mo_container_of(s->kept.next, struct kept, node));
    while (s->h->ep->replay + n > l->replay_all) {
        if (!drop_oldest_event(s->h))
            return false;
    }
    return true;
}

/* A message that does not fit, or finds no memory, is not kept: only a client
 * that lost it on its stream can notice the gap. */
static void keep_event(struct hsess *s, const struct answer *a,
                       struct mo_span msg)
{
    struct kept *k;

    if (!make_space(s, msg.n))
        return;
    k = mo_alloc(sizeof(*k) + msg.n);
    if (!k)
        return;
    k->stream = a->no;
    k->seq = a->seq;
    k->n = msg.n;
    memcpy(k->text, msg.p, msg.n);
    mo_list_push(&s->kept, &k->node);
    s->kept_bytes += msg.n;
    s->h->ep->replay += msg.n;
}

/* --- writing to the connection ------------------------------------------- */

static void put_event(struct mo_buf *b, bool with_id, uint64_t stream,
                      uint64_t seq, struct mo_span msg, int64_t retry)
{
    char id[48];
    int n = snprintf(id, sizeof(id), "%llu-%llu", (unsigned long long)stream,
                     (unsigned long long)seq);
    struct mo_sse_event ev = {.data = msg, .retry_ms = retry};

    if (msg.n)
        ev.event = MO_SPAN("message");
    if (with_id)
        ev.id = mo_span(id, (size_t)n);
    mo_buf_reset(b);
    (void)mo_sse_put(b, &ev);
}

static void drop_out(struct answer *a)
{
    mo_buf_fini(&a->out);
    a->sent = 0;
}

static void free_answer(struct answer *a)
{
    mo_list_del(&a->node);
    mo_list_del(&a->snode);
    mo_list_del(&a->ynode);
    mo_buf_fini(&a->out);
    mo_free(a);
}

static void maybe_free(struct answer *a)
{
    if (!a->pending && !a->rq && !a->held)
        free_answer(a);
}

static void detach(struct answer *a)
{
    a->rq->data = NULL;
    a->rq = NULL;
    a->streaming = false;
    a->ending = false;
    drop_out(a);
}

/* Returns the rest of msg when the connection takes no more without waiting. */
static struct mo_span give_pieces(struct answer *a, struct mo_span msg)
{
    while (msg.n && !mo_req_queued(a->rq)) {
        struct mo_span piece = mo_span_head(msg, SESS_PIECE);

        if (mo_req_write(a->rq, piece) < 0) {
            mo_req_abort(a->rq);
            return mo_span(NULL, 0);
        }
        msg = mo_span_skip(msg, piece.n);
    }
    return msg;
}

/* Pass on as much as the connection takes; the end follows the last byte.
 * maybe_free() may free a afterwards. */
static void send_pieces(struct answer *a)
{
    struct mo_span rest = mo_span_skip(mo_buf_view(&a->out), a->sent);

    a->sent = a->out.len - give_pieces(a, rest).n;
    if (a->sent < a->out.len)
        return;
    drop_out(a);
    if (!a->ending)
        return;
    mo_req_end(a->rq);
    detach(a);
}

static void on_drain(struct mo_req *rq)
{
    struct answer *a = rq->data;

    if (!a)
        return;
    send_pieces(a);
    maybe_free(a);
}

/* Send b after the bytes that wait already. A client that does not read loses
 * its connection, not its place in the stream. */
static void send_out(struct answer *a, struct mo_buf *b)
{
    bool direct = !a->out.len && b->len <= SESS_PIECE;
    struct mo_span msg = mo_buf_view(b);
    int rc = mo_buf_err(b);

    if (rc == 0 && !direct && !a->out.len)
        msg = give_pieces(a, msg);
    if (rc == 0)
        rc = direct ? mo_req_write(a->rq, msg) : mo_buf_span(&a->out, msg);
    if (rc < 0) {
        mo_req_abort(a->rq);
        drop_out(a);
    } else if (!direct) {
        send_pieces(a);
    }
    mo_buf_shrink(b, EP_SCRATCH_KEEP);
}

static bool has_priming_event(const struct answer *a)
{
    return a->sess && a->sess->s.version >= MO_MCP_2025_11_25;
}

static void start_stream(struct mo_req *rq)
{
    mo_req_header(rq, "Cache-Control", MO_SPAN("no-cache, no-transform"));
    mo_req_header(rq, "X-Accel-Buffering", MO_SPAN("no"));
    mo_req_start(rq, 200, "text/event-stream");
}

/* Start its event stream, with a priming event if the peer knows them. */
static void start_answer(struct answer *a)
{
    if (a->streaming || !a->rq)
        return;
    a->streaming = true;
    start_stream(a->rq);
    if (!has_priming_event(a))
        return;
    put_event(&a->h->sse, true, a->no, a->seq, MO_SPAN(""), SESS_RETRY_MS);
    send_out(a, &a->h->sse);
}

/* The timer stays running when there are no young answers: calls come far more
 * often than it fires. */
void mo_answer_on_soon(struct mo_timer *t)
{
    struct mo_ep_http *h = mo_container_of(t, struct mo_ep_http, soon);
    uint64_t now = mo_now_ns(), soon = h->ep->o.limits.soon_ms;

    while (!mo_list_empty(&h->young)) {
        struct answer *a = mo_container_of(h->young.next, struct answer, ynode);
        uint64_t due = a->since + soon * MO_MS;

        if (due > now) {
            mo_timer_start(h->ep->loop, t, (due - now) / MO_MS + 1);
            return;
        }
        mo_list_del(&a->ynode);
        start_answer(a);
    }
}

void mo_answer_soon(struct answer *a)
{
    struct mo_ep_http *h = a->h;

    a->since = mo_loop_now(h->ep->loop);
    mo_list_push(&h->young, &a->ynode);
    if (!mo_timer_on(&h->soon))
        mo_timer_start(h->ep->loop, &h->soon, h->ep->o.limits.soon_ms);
}

/* No keep-alive goes into an answer with waiting bytes: it is active anyway,
 * and it may be plain JSON. */
void mo_answer_keepalive(struct answer *a)
{
    if (!a->rq || !a->streaming || a->ending || a->out.len)
        return;
    mo_buf_reset(&a->h->sse);
    (void)mo_sse_put_comment(&a->h->sse, MO_SPAN("keep-alive"));
    send_out(a, &a->h->sse);
}

static void send_event(struct answer *a, struct mo_span msg)
{
    a->seq++;
    if (a->sess)
        keep_event(a->sess, a, msg);
    if (!a->rq)
        return;
    start_answer(a);
    put_event(&a->h->sse, a->sess != NULL, a->no, a->seq, msg, 0);
    send_out(a, &a->h->sse);
}

/* --- one answer ---------------------------------------------------------- */

bool mo_answer_release(struct answer *a)
{
    bool open = a->pending > 0;

    a->held = false;
    maybe_free(a);
    return open;
}

static void on_gone(struct mo_req *rq)
{
    struct answer *a = rq->data;

    if (!a)
        return;
    detach(a);
    if (a->sess)
        mo_hsess_touch(a->sess);
    if (a->modern && a->way.call) {
        a->pending = 0;
        mo_ep_call_lost(a->way.call);
    }
    maybe_free(a);
}

/* Modern: closing the connection cancels, also before the answer has begun. */
static void on_hangup(struct mo_req *rq)
{
    struct answer *a = rq->data;

    if (a && a->modern && a->pending)
        mo_req_abort(rq);
}

/* Also after the last request was answered; sends the empty answer if there was
 * none. */
void mo_answer_stop(struct answer *a)
{
    if (!a->rq)
        return;
    start_answer(a);
    a->ending = true;
    send_pieces(a);
}

void mo_answer_cut(struct answer *a)
{
    mo_req_abort(a->rq);
    detach(a);
    maybe_free(a);
}

void mo_answer_done(struct answer *a)
{
    a->pending--;
    if (a->pending == 0)
        mo_answer_stop(a);
    maybe_free(a);
}

static void on_note(struct mo_ep_way *w, struct mo_span msg)
{
    send_event(mo_container_of(w, struct answer, way), msg);
}

static void on_drop(struct mo_ep_way *w)
{
    struct answer *a = mo_container_of(w, struct answer, way);

    if (a->pending)
        mo_answer_done(a);
}

/* Its id says from now on where it is. Without memory it stays as it is: such a
 * session is found here only. */
static void give_home(struct hsess *s)
{
    const struct mo_ep_http_opts *o = &s->h->o;
    mo_autobuf struct mo_buf b = {.max = MO_EP_ID_MAX};
    struct mo_ep_id id = {
        .view = o->view,
        .caller = s->caller,
        .version = s->s.version,
        .began = mo_wall_ms(),
        .caps = mo_span_cstr(s->s.caps ? s->s.caps : ""),
        .client = mo_span_cstr(s->s.client ? s->s.client : ""),
    };

    if (o->home && o->home->instance[0] && mo_ep_id_put(o->home, &id, &b) == 0)
        (void)mo_hsess_rename(s, mo_buf_view(&b));
}

static void reply_json(struct answer *a, int status, struct mo_span msg)
{
    struct hsess *s = a->sess;

    if (a->fresh && s && s->s.version != MO_MCP_UNKNOWN) {
        give_home(s);
        mo_req_header(a->rq, "Mcp-Session-Id", mo_span_cstr(s->id));
    }
    if (msg.n <= SESS_PIECE) {
        mo_req_reply(a->rq, status, "application/json", msg);
        detach(a);
        return;
    }
    mo_req_start(a->rq, status, "application/json");
    a->streaming = true;
    a->ending = true;
    if (mo_buf_span(&a->out, give_pieces(a, msg)) < 0)
        mo_answer_cut(a);
    else
        send_pieces(a);
}

static void on_answer(struct mo_ep_way *w, int status, struct mo_span msg)
{
    struct answer *a = mo_container_of(w, struct answer, way);

    if (a->rq && !a->streaming && a->pending == 1) {
        reply_json(a, status, msg);
        a->pending = 0;
        maybe_free(a);
        return;
    }
    if (!a->modern || a->rq)
        send_event(a, msg);
    mo_answer_done(a);
}

static void on_pause(struct mo_ep_way *w)
{
    struct answer *a = mo_container_of(w, struct answer, way);

    if (!a->rq || !has_priming_event(a) || a->out.len)
        return;
    start_answer(a);
    mo_req_end(a->rq);
    detach(a);
}

static bool is_open(const struct mo_ep_way *w)
{
    return mo_container_of(w, const struct answer, way)->rq;
}

static void attach_answer(struct answer *a, struct mo_req *rq)
{
    if (a->rq && a->streaming)
        mo_req_end(a->rq);
    else if (a->rq)
        mo_req_abort(a->rq);
    if (a->rq)
        detach(a);
    a->rq = rq;
    rq->data = a;
    rq->gone = on_gone;
    rq->hangup = on_hangup;
    mo_req_on_drain(rq, on_drain);
}

/* Only of a modern request that is not answered yet. */
static bool on_pass(struct mo_ep_way *w, const struct mo_ep_away *to)
{
    struct answer *a = mo_container_of(w, struct answer, way);
    const struct mo_ep_http_opts *o = &a->h->o;
    struct mo_req *rq = a->rq;

    if (!o->pass || !rq || a->streaming)
        return false;
    detach(a);
    rq->gone = NULL;
    rq->hangup = mo_req_abort; /* cancels it there, too */
    mo_req_on_drain(rq, NULL);
    if (!o->pass(o->ctx, rq, to)) {
        attach_answer(a, rq);
        return false;
    }
    a->pending = 0;
    maybe_free(a);
    return true;
}

struct answer *mo_answer_new(struct mo_ep_http *h, struct hsess *s,
                             struct mo_req *rq)
{
    struct answer *a = mo_new(struct answer);

    if (!a)
        return NULL;
    a->way = (struct mo_ep_way){on_note, on_answer, on_drop, on_pause,
                                is_open, on_pass,   NULL};
    a->h = h;
    a->sess = s;
    a->pending = 1;
    mo_buf_init(&a->out, h->ep->o.limits.message + SESS_OUT_MORE);
    mo_list_init(&a->snode);
    mo_list_init(&a->ynode);
    mo_list_push(&h->answers, &a->node);
    if (s) {
        a->no = s->next_stream++;
        mo_list_push(&s->answers, &a->snode);
    }
    if (rq)
        attach_answer(a, rq);
    return a;
}

/* --- sessions ------------------------------------------------------------ */

static bool make_room(struct mo_ep_http *h)
{
    if (h->by_id.len < h->ep->o.limits.sessions)
        return true;
    mo_list_each_entry (s, &h->sessions, struct hsess, node) {
        if (mo_hsess_idle(s)) {
            mo_hsess_free(s);
            return true;
        }
    }
    return false;
}

static struct mo_span key_of(struct mo_span id)
{
    return mo_span_head(id, SESS_KEY);
}

struct hsess *mo_hsess_find(const struct mo_ep_http *h, struct mo_span id)
{
    struct hsess *s = id.n ? mo_map_get(&h->by_id, key_of(id)) : NULL;

    return s && mo_span_is(id, s->id) ? s : NULL;
}

static void leave_map(struct hsess *s)
{
    struct mo_span key = s->id ? key_of(mo_span_cstr(s->id)) : mo_span(NULL, 0);

    if (key.n && mo_map_get(&s->h->by_id, key) == s)
        (void)mo_map_del(&s->h->by_id, key);
}

int mo_hsess_rename(struct hsess *s, struct mo_span id)
{
    char *copy = mo_strndup(id.p, id.n);
    int rc = copy ? mo_map_add(&s->h->by_id, key_of(id), s) : MO_ENOMEM;

    if (rc < 0) {
        mo_free(copy);
        return rc;
    }
    leave_map(s);
    mo_free(s->id);
    s->id = copy;
    s->s.id = copy;
    return 0;
}

struct hsess *mo_hsess_new(struct mo_ep_http *h, const char *caller)
{
    char id[MO_TOKEN_LEN(SESS_TOKEN) + 1];
    struct hsess *s;

    if (!make_room(h))
        return NULL;
    s = mo_new(struct hsess);
    if (!s)
        return NULL;
    s->h = h;
    mo_list_init(&s->answers);
    mo_list_init(&s->kept);
    mo_list_push(&h->sessions, &s->node);
    mo_random_token(id, SESS_TOKEN);
    (void)snprintf(s->caller, sizeof(s->caller), "%s", caller);
    mo_ep_sess_init(&s->s, h->ep);
    s->s.caller = mo_span_cstr(s->caller);
    s->get = mo_answer_new(h, s, NULL); /* number 0 */
    if (!s->get || mo_hsess_rename(s, mo_span_cstr(id)) < 0) {
        mo_hsess_free(s);
        return NULL;
    }
    mo_hsess_touch(s);
    return s;
}

static void detach_session(struct answer *a)
{
    mo_list_del(&a->snode);
    a->sess = NULL;
    if (!a->pending)
        return; /* held: the holder frees it */
    a->pending = 1;
    mo_answer_done(a);
}

void mo_hsess_free(struct hsess *s)
{
    s->s.push = NULL;
    mo_ep_sess_fini(&s->s);
    mo_list_drain (a, &s->answers, struct answer, snode)
        detach_session(a);
    mo_list_drain (k, &s->kept, struct kept, node)
        drop_event(s, k);
    leave_map(s);
    mo_list_del(&s->node);
    mo_free(s->id);
    mo_free(s);
}

void mo_hsess_touch(struct hsess *s)
{
    s->used = mo_loop_now(s->h->ep->loop);
    mo_list_del(&s->node);
    mo_list_push(&s->h->sessions, &s->node);
}

bool mo_hsess_idle(const struct hsess *s)
{
    mo_list_each (n, &s->answers) {
        if (mo_container_of(n, struct answer, snode)->rq)
            return false;
    }
    return true;
}

void mo_hsess_listen(struct hsess *s, struct mo_req *rq)
{
    s->s.push = &s->get->way;
    attach_answer(s->get, rq);
    start_answer(s->get);
    mo_ep_push_open(&s->s);
}

static int parse_event_id(struct mo_span last, uint64_t *stream, uint64_t *seq)
{
    struct mo_span first = mo_span_cut(&last, '-');

    if (!last.p || mo_span_u64(first, stream) < 0)
        return MO_EINVAL;
    return mo_span_u64(last, seq);
}

static struct answer *find_answer(struct hsess *s, uint64_t no)
{
    mo_list_each_entry (a, &s->answers, struct answer, snode) {
        if (a->no == no && a->pending)
            return a;
    }
    return NULL;
}

static void replay_events(struct hsess *s, struct mo_req *rq, uint64_t stream,
                          uint64_t seq)
{
    mo_list_each_entry (k, &s->kept, struct kept, node) {
        if (k->stream != stream || k->seq <= seq)
            continue;
        put_event(&s->h->sse, true, k->stream, k->seq, mo_span(k->text, k->n),
                  0);
        if (mo_buf_err(&s->h->sse) ||
            mo_req_write(rq, mo_buf_view(&s->h->sse)) < 0)
            mo_req_abort(rq);
        mo_buf_shrink(&s->h->sse, EP_SCRATCH_KEEP);
    }
}

void mo_hsess_resume(struct hsess *s, struct mo_req *rq, struct mo_span last)
{
    uint64_t stream, seq;
    struct answer *a;

    if (parse_event_id(last, &stream, &seq) < 0) {
        mo_req_problem(rq, 400, "bad_event_id", "no such Last-Event-ID");
        return;
    }
    a = find_answer(s, stream);
    if (a && a->no == 0)
        s->s.push = &a->way;
    if (a) {
        attach_answer(a, rq);
        a->streaming = true;
    }
    start_stream(rq);
    replay_events(s, rq, stream, seq);
    if (!a)
        mo_req_end(rq);
    else if (a == s->get)
        mo_ep_push_open(&s->s);
}
