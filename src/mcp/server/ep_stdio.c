#include "mcp/server/ep_stdio.h"

#include "codec/frame.h"
#include "mcp/server/ep_priv.h"

#define FLUSH_MS 2000

struct mo_ep_stdio {
    struct mo_ep_sess sess;
    struct mo_ep_way way;
    struct mo_stream *s;
    struct mo_frame in;
    mo_done_fn *closed;
    void *ctx;
    bool ended;
};

/* --- out ----------------------------------------------------------------- */

/* The scratch buffer has space for the newline: one write is faster than two.
 */
static int write_message(struct mo_ep_stdio *x, struct mo_span msg)
{
    struct mo_buf *b = &x->sess.ep->scratch;
    struct mo_span v[2] = {msg, MO_SPAN("\n")};

    if (msg.p == b->p && msg.n == b->len && b->len < b->cap) {
        b->p[b->len] = '\n';
        return mo_stream_write(x->s, mo_span(b->p, b->len + 1));
    }
    return mo_stream_writev(x->s, v, 2);
}

static void write_line(struct mo_ep_stdio *x, struct mo_span msg)
{
    if (x->ended)
        return;
    if (write_message(x, msg) == 0) {
        if (mo_stream_queued(x->s) > MO_EP_STDIO_MARK)
            mo_stream_pause(x->s);
        return;
    }
    x->ended = true;
    mo_stream_close(x->s, mo_error(MO_EBUSY, "the client does not read"));
}

/* Remove newlines between tokens, which would break the framing. */
static void send_msg(struct mo_ep_stdio *x, struct mo_span msg)
{
    struct mo_json v = {msg.p, msg.n};
    mo_autobuf struct mo_buf b = {.max = msg.n};

    if (mo_span_find(msg, '\n') < 0 && mo_span_find(msg, '\r') < 0)
        write_line(x, msg);
    else if (mo_json_compact(v, &b) == 0)
        write_line(x, mo_buf_view(&b));
}

static void on_note(struct mo_ep_way *w, struct mo_span msg)
{
    send_msg(mo_container_of(w, struct mo_ep_stdio, way), msg);
}

static void on_answer(struct mo_ep_way *w, int status, struct mo_span msg)
{
    (void)status;
    send_msg(mo_container_of(w, struct mo_ep_stdio, way), msg);
}

static void on_drop(struct mo_ep_way *w)
{
    (void)w;
}

/* --- in ------------------------------------------------------------------ */

static void send_refusal(struct mo_ep_stdio *x, struct mo_json id, int code,
                         const char *why)
{
    mo_ep_refuse(x->sess.ep, &x->way, 400, id, code, why);
}

static void handle_message(struct mo_ep_stdio *x, const struct mo_rpc *m)
{
    struct mo_ep_from from = {.way = &x->way, .sess = &x->sess};

    if (mo_ep_is_modern(m))
        mo_ep_modern(x->sess.ep, &from, m);
    else
        mo_ep_legacy(&x->sess, &from, m);
}

static void handle_batch(struct mo_ep_stdio *x, struct mo_json arr)
{
    struct mo_json none = {NULL, 0};

    if (x->sess.version != MO_MCP_2025_03_26) {
        send_refusal(x, none, MO_RPC_INVALID_REQUEST,
                     "batches are not spoken here");
        return;
    }
    mo_json_each_while (at, arr, !x->ended) {
        struct mo_rpc m;

        if (mo_rpc_parse(mo_json_text(at.val), &m, NULL) == 0 &&
            m.kind != MO_RPC_INVALID && m.kind != MO_RPC_BATCH)
            handle_message(x, &m);
        else
            send_refusal(x, none, MO_RPC_INVALID_REQUEST,
                         "no JSON-RPC message");
    }
}

static void on_line(struct mo_ep_stdio *x, struct mo_span line)
{
    struct mo_json none = {NULL, 0};
    struct mo_rpc m;
    struct mo_err e;

    if (!mo_span_trim(line).n)
        return;
    if (mo_rpc_parse(line, &m, &e) < 0)
        send_refusal(x, none, MO_RPC_PARSE_ERROR, e.msg);
    else if (m.kind == MO_RPC_INVALID)
        send_refusal(x, m.id, MO_RPC_INVALID_REQUEST, e.msg);
    else if (m.kind == MO_RPC_BATCH)
        handle_batch(x, m.root);
    else
        handle_message(x, &m);
}

static void close_stream(struct mo_ep_stdio *x, const struct mo_err *why)
{
    if (x->ended)
        return;
    x->ended = true;
    if (why)
        mo_stream_close(x->s, why);
    else
        mo_stream_finish(x->s, FLUSH_MS);
}

static void on_read(void *ctx, char *p, size_t n)
{
    struct mo_ep_stdio *x = ctx;
    struct mo_span in = mo_span(p, n), line;
    int rc = 1;

    while (rc > 0 && !x->ended) {
        rc = mo_frame_next(&x->in, &in, &line);
        if (rc > 0)
            on_line(x, line);
    }
    if (rc < 0) {
        close_stream(x, mo_error(rc, "a line is too long"));
    }
}

static void on_eof(void *ctx)
{
    close_stream(ctx, NULL);
}

static void on_drain(void *ctx)
{
    mo_stream_resume(((struct mo_ep_stdio *)ctx)->s);
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct mo_ep_stdio *x = ctx;
    mo_done_fn *closed = x->closed;
    void *arg = x->ctx;

    x->ended = true;
    mo_ep_sess_fini(&x->sess);
    mo_frame_fini(&x->in);
    mo_free(x);
    if (closed)
        closed(arg, why);
}

static const struct mo_stream_cb stream_cb = {on_read, on_eof, on_drain,
                                              on_close};

int mo_ep_stdio_open(struct mo_endpoint *ep, struct mo_stream *s,
                     mo_done_fn *closed, void *ctx, struct mo_ep_stdio **out,
                     struct mo_err *e)
{
    struct mo_ep_stdio *x = mo_new(struct mo_ep_stdio);

    if (!x) {
        mo_stream_close(s, NULL);
        return mo_fail(e, MO_ENOMEM, "endpoint on a stream");
    }
    mo_ep_sess_init(&x->sess, ep);
    x->way =
        (struct mo_ep_way){on_note, on_answer, on_drop, NULL, NULL, NULL, NULL};
    x->sess.push = &x->way;
    x->s = s;
    x->closed = closed;
    x->ctx = ctx;
    mo_frame_init(&x->in, MO_EP_LINE_MAX);
    mo_stream_limit(s, ep->o.limits.message + MO_STREAM_QUEUE_MAX);
    mo_stream_attach(s, &stream_cb, x);
    *out = x;
    return 0;
}

void mo_ep_stdio_close(struct mo_ep_stdio *x)
{
    /* listens end with their answer, other calls with the session */
    mo_list_each_entry_safe (c, &x->sess.calls, struct call, snode) {
        if (c->filter && !x->ended)
            mo_ep_listen_end(c, true);
    }
    close_stream(x, NULL);
}
