/* eiod_ws.c - one websocket connection of the Engine.IO server: frames to
 * packets and back, and closing. See eiod_priv.h. */
#include "web/eiod_priv.h"

#define WS_FINISH_MS 1000
#define GATHER_MAX   ((size_t)16 * 1024) /* larger frames are not copied */

static int flush(struct wsc *w)
{
    int rc = 0;

    mo_later_cancel(&w->flush);
    if (w->out.len)
        rc = mo_stream_write(w->s, mo_buf_view(&w->out));
    mo_buf_fini(&w->out);
    return rc;
}

static void on_flush(struct mo_later *d)
{
    struct wsc *w = mo_container_of(d, struct wsc, flush);

    if (flush(w) < 0 && w->g)
        mo_eiod_engine_close(w->g, MO_ENG_POLICY, "client too slow");
}

/* All frames of one loop iteration are sent in one write. */
int mo_wsc_send(struct wsc *w, enum mo_ws_op op, const struct mo_span *v,
                size_t n)
{
    unsigned char head[10];
    struct mo_span all[4];
    size_t total = 0;
    int rc = 0;

    MO_BUG_ON(n > MO_COUNT(all) - 1);
    for (size_t i = 0; i < n; i++) {
        all[i + 1] = v[i];
        total += v[i].n;
    }
    all[0] = mo_span((char *)head, mo_ws_server_head(head, op, total));
    if (w->out.len + total > GATHER_MAX) {
        rc = flush(w);
        if (rc < 0 || total > GATHER_MAX)
            return rc < 0 ? rc : mo_stream_writev(w->s, all, n + 1);
    }
    for (size_t i = 0; i <= n; i++)
        (void)mo_buf_span(&w->out, all[i]);
    mo_loop_soon(w->d->loop, &w->flush);
    return mo_buf_err(&w->out);
}

/* Send a close frame and finish the stream. */
static void ws_end(struct wsc *w, uint16_t code, const char *why)
{
    mo_autobuf struct mo_buf b = {.max = 256};

    if (w->ending)
        return;
    w->ending = true;
    (void)flush(w);
    (void)mo_ws_put_close(&b, MO_WS_SERVER, code, mo_span_cstr(why));
    (void)mo_stream_write(w->s, mo_buf_view(&b));
    mo_stream_finish(w->s, WS_FINISH_MS);
}

/* Unlink session and connection. Returns the session, if any, and whether this
 * connection was its transport. */
static struct engine *ws_detach(struct wsc *w, bool *spoke)
{
    struct engine *g = w->g;

    *spoke = g && g->ws == w;
    w->g = NULL;
    if (!g)
        return NULL;
    if (*spoke) {
        g->ws = NULL;
        g->d->stats.websockets--;
    } else {
        g->probe = NULL;
        g->probed = false;
        mo_timer_stop(g->d->loop, &g->upgrade);
    }
    return g;
}

void mo_wsc_drop(struct wsc *w, uint16_t code, const char *why)
{
    bool spoke;

    if (!w)
        return;
    (void)ws_detach(w, &spoke);
    ws_end(w, code, why);
}

/* The session ends with its transport; a lost probe leaves it on polling. */
static void ws_lost(struct wsc *w, const char *why)
{
    bool spoke;
    struct engine *g = ws_detach(w, &spoke);

    if (spoke)
        mo_eiod_engine_close(g, MO_ENG_NORMAL, why);
}

/* The peer violated the protocol: tell it and end its session. */
static void ws_fail(struct wsc *w, uint16_t code, const char *why)
{
    ws_end(w, code, why);
    ws_lost(w, "parse error");
}

static void ws_text(struct wsc *w, struct mo_span text)
{
    struct mo_eio p;
    struct mo_err e;

    if (mo_eio_decode(text, &p, &e) < 0) {
        ws_fail(w, 1002, e.msg);
        return;
    }
    if (w->g->probe == w)
        mo_eiod_engine_probe(w, &p);
    else
        mo_eiod_engine_packet(w->g, &p);
}

static void ws_event(struct wsc *w, enum mo_ws_event ev, struct mo_span data,
                     const struct mo_err *e)
{
    switch (ev) {
    case MO_WS_TEXT:
        ws_text(w, data);
        break;
    case MO_WS_BINARY:
        ws_fail(w, 1003, "binary messages are not accepted");
        break;
    case MO_WS_PING:
        if (mo_wsc_send(w, MO_WS_OP_PONG, &data, 1) < 0)
            mo_stream_close(w->s, NULL);
        break;
    case MO_WS_CLOSE:
        ws_end(w, w->ws.close_code, "");
        ws_lost(w, "transport close");
        break;
    case MO_WS_ERROR:
        ws_fail(w, w->ws.close_code, e->msg);
        break;
    case MO_WS_PONG:
    case MO_WS_MORE:
        break;
    }
}

void mo_wsc_read(void *ctx, char *p, size_t n)
{
    struct wsc *w = ctx;
    struct mo_ws_in in = {p, n};
    enum mo_ws_event ev = MO_WS_PONG;

    while (!w->ending && w->g && ev != MO_WS_MORE) {
        struct mo_span data = {NULL, 0};
        struct mo_err e;

        mo_err_clear(&e);
        ev = mo_ws_next(&w->ws, &in, &data, &e);
        ws_event(w, ev, data, &e);
    }
    if (mo_stream_queued(w->s) > MO_EIOD_HIGH(w->d))
        mo_stream_pause(w->s);
}

static void ws_drain(void *ctx)
{
    struct wsc *w = ctx;

    mo_stream_resume(w->s);
}

static void ws_eof(void *ctx)
{
    struct wsc *w = ctx;

    ws_lost(w, "transport close");
    mo_stream_close(w->s, NULL);
}

static void ws_closed(void *ctx, const struct mo_err *why)
{
    struct wsc *w = ctx;
    struct mo_eiod *d = w->d;

    ws_lost(w, why ? "transport error" : "transport close");
    mo_ws_fini(&w->ws);
    mo_later_cancel(&w->flush);
    mo_buf_fini(&w->out);
    mo_free(w);
    d->wscs--;
    mo_eiod_maybe_ended(d);
}

static const struct mo_stream_cb ws_cb = {mo_wsc_read, ws_eof, ws_drain,
                                          ws_closed};

struct wsc *mo_wsc_accept(struct mo_eiod *d, struct mo_req *rq,
                          struct mo_span *early)
{
    struct mo_span key = mo_http_get(rq->head, "Sec-WebSocket-Key");
    char accept[MO_WS_ACCEPT_LEN + 1];
    struct wsc *w = mo_new(struct wsc);
    struct mo_err e;

    if (!w) {
        mo_req_problem(rq, 503, "no_memory", "out of memory");
        return NULL;
    }
    mo_ws_accept(key, accept);
    mo_req_header(rq, "Sec-WebSocket-Accept", mo_span_cstr(accept));
    if (mo_req_upgrade(rq, "websocket", &w->s, early, &e) < 0) {
        mo_free(w);
        mo_req_abort(rq);
        return NULL;
    }
    w->d = d;
    mo_buf_init(&w->out, 2 * GATHER_MAX);
    mo_later_init(&w->flush, on_flush);
    d->wscs++;
    mo_ws_init(&w->ws, MO_WS_SERVER, d->o.max_payload);
    mo_stream_limit(w->s, d->o.max_queue);
    mo_stream_attach(w->s, &ws_cb, w);
    return w;
}
