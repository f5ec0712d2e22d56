/* ep_push.c - questions to a legacy client that belong to none of its calls:
 * requests on the session's push way. Servers ask so at their start (for roots)
 * or after a notification of a change.
 *
 * A client may not have connected that way yet, or just lost the connection: a
 * question then waits for the next one, PUSH_OPEN_MS at most.
 *
 * Ownership: an ask belongs to its session; it ends with the client's reply, by
 * timeout (limits.ask_ms), with the session, or when it is taken back. Limits:
 * PUSH_MAX open ones per session, each of PUSH_TEXT_MAX bytes if it has to
 * wait; then NULL. */
#include "mcp/server/ep_priv.h"

#define PUSH_MAX      16
#define PUSH_OPEN_MS  10000
#define PUSH_TEXT_MAX ((size_t)256 * 1024)

struct mo_ep_ask {
    struct mo_list node; /* in sess->asks */
    struct mo_ep_sess *sess;
    uint64_t id;
    struct mo_timer timer;
    struct mo_buf text; /* text that waits to be sent; else empty */
    mo_ep_ask_done *done;
    void *ctx;
};

static const struct mo_json none = {NULL, 0};

static void ask_free(struct mo_ep_ask *a)
{
    mo_timer_stop(a->sess->ep->loop, &a->timer);
    mo_list_del(&a->node);
    mo_buf_fini(&a->text);
    a->sess->nasks--;
    mo_free(a);
}

static void ask_end(struct mo_ep_ask *a, struct mo_json result,
                    struct mo_json error)
{
    mo_ep_ask_done *done = a->done;
    void *ctx = a->ctx;

    ask_free(a);
    done(ctx, result, error);
}

static bool is_connected(const struct mo_ep_sess *s)
{
    return s->push && (!s->push->open || s->push->open(s->push));
}

static void cancel_question(const struct mo_ep_ask *a)
{
    struct mo_ep_sess *s = a->sess;

    if (!a->text.len && s->push)
        mo_ep_send_cancelled(s->ep, s->push, a->id);
}

static void on_late(struct mo_timer *t)
{
    struct mo_ep_ask *a = mo_container_of(t, struct mo_ep_ask, timer);

    cancel_question(a);
    ask_end(a, none, none);
}

static void send_question(struct mo_ep_ask *a)
{
    struct mo_ep_sess *s = a->sess;

    mo_timer_start(s->ep->loop, &a->timer, s->ep->o.limits.ask_ms);
    s->push->note(s->push, mo_buf_view(&a->text));
    mo_buf_fini(&a->text);
}

static int put_question(struct mo_ep_ask *a, const char *method,
                        struct mo_span params)
{
    struct mo_buf *b = &a->text;

    (void)mo_buf_printf(b, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":",
                        (unsigned long long)a->id);
    (void)mo_json_quote(b, mo_span_cstr(method));
    (void)mo_buf_puts(b, ",\"params\":");
    (void)mo_buf_span(b, params.n ? params : MO_SPAN("{}"));
    return mo_buf_putc(b, '}');
}

struct mo_ep_ask *mo_endpoint_ask(struct mo_endpoint *ep, uint64_t peer,
                                  const char *method, struct mo_span params,
                                  mo_ep_ask_done *done, void *ctx)
{
    struct mo_ep_sess *s = mo_ep_find_peer(ep, peer);
    struct mo_json p = {params.p, params.n};
    struct mo_ep_ask *a = NULL;

    if (!s || s->nasks >= PUSH_MAX || !mo_ep_sess_takes(s, method, p))
        return NULL;
    a = mo_new(struct mo_ep_ask);
    if (!a)
        return NULL;
    *a = (struct mo_ep_ask){
        .sess = s, .id = ++s->next_ask, .done = done, .ctx = ctx};
    mo_timer_init(&a->timer, on_late);
    mo_buf_init(&a->text,
                is_connected(s) ? ep->o.limits.message : PUSH_TEXT_MAX);
    mo_list_push(&s->asks, &a->node);
    s->nasks++;
    if (put_question(a, method, params) < 0) {
        ask_free(a);
        return NULL;
    }
    if (is_connected(s))
        send_question(a);
    else
        mo_timer_start(ep->loop, &a->timer, PUSH_OPEN_MS);
    return a;
}

bool mo_endpoint_hears(struct mo_endpoint *ep, uint64_t peer)
{
    const struct mo_ep_sess *s = mo_ep_find_peer(ep, peer);

    return s && is_connected(s);
}

void mo_ep_push_open(struct mo_ep_sess *s)
{
    mo_ep_tell_missed(s);
    mo_list_each_entry_safe (a, &s->asks, struct mo_ep_ask, node) {
        if (a->text.len && is_connected(s))
            send_question(a);
    }
}

void mo_endpoint_unask(struct mo_ep_ask *a)
{
    cancel_question(a);
    ask_free(a);
}

void mo_ep_push_reply(struct mo_ep_sess *s, uint64_t id, const struct mo_rpc *m)
{
    mo_list_each_entry (a, &s->asks, struct mo_ep_ask, node) {
        if (a->id != id)
            continue;
        if (m->kind == MO_RPC_ERROR)
            ask_end(a, none, m->error);
        else
            ask_end(a, m->result, none);
        return;
    }
}

void mo_ep_push_end(struct mo_ep_sess *s)
{
    mo_list_drain (a, &s->asks, struct mo_ep_ask, node)
        ask_end(a, none, none);
}

uint64_t mo_endpoint_only(const struct mo_endpoint *ep)
{
    uint64_t peer = 0;

    mo_list_each_entry (s, &ep->sessions, struct mo_ep_sess, node) {
        if (!s->ready)
            continue;
        if (peer)
            return 0;
        peer = s->peer;
    }
    return peer;
}
