/* server.c - our rooms behind the smallest program, to be measured.
 *
 *   server       (listens on any port of 127.0.0.1 and prints it)
 *
 *   POST /echo         the body comes back
 *   GET  /ws           a plain websocket, messages come back
 *   /socket.io/        a Socket.IO server, events come back
 *   anything else      "ok"
 *
 * It ends when its standard input does, so that it cannot outlive the
 * benchmark. */
#include <stdio.h>

#include "codec/http/ws.h"
#include "loop/httpd.h"
#include "meter.h"
#include "web/siod.h"

#define WS_MESSAGE_MAX ((size_t)1 << 20)
#define CONNECTIONS    20000

struct server {
    struct mo_loop *loop;
    struct mo_httpd *httpd;
    struct mo_siod *siod;
    struct mo_stream *in; /* standard input */
};

/* --- a plain websocket --------------------------------------------------- */

struct wsc {
    struct mo_stream *s;
    struct mo_ws ws;
};

static void ws_echo(struct wsc *w, struct mo_span text)
{
    unsigned char head[10];
    struct mo_span v[2] = {{NULL, 0}, text};

    v[0] =
        mo_span((char *)head, mo_ws_server_head(head, MO_WS_OP_TEXT, text.n));
    if (mo_stream_writev(w->s, v, 2) < 0)
        mo_stream_close(w->s, NULL);
}

static void ws_read(void *ctx, char *p, size_t n)
{
    struct wsc *w = ctx;
    struct mo_ws_in in = {p, n};
    enum mo_ws_event ev;

    do {
        struct mo_span data;
        struct mo_err e;

        ev = mo_ws_next(&w->ws, &in, &data, &e);
        if (ev == MO_WS_TEXT)
            ws_echo(w, data);
    } while (ev > MO_WS_MORE && ev != MO_WS_CLOSE);
    if (ev != MO_WS_MORE)
        mo_stream_close(w->s, NULL);
}

static void ws_closed(void *ctx, const struct mo_err *why)
{
    struct wsc *w = ctx;

    (void)why;
    mo_ws_fini(&w->ws);
    mo_free(w);
}

static const struct mo_stream_cb ws_cb = {ws_read, NULL, NULL, ws_closed};

static void on_ws(struct mo_req *rq)
{
    struct mo_span key = mo_http_get(rq->head, "Sec-WebSocket-Key");
    struct wsc *w = mo_ws_key_ok(key) ? mo_new(struct wsc) : NULL;
    char accept[MO_WS_ACCEPT_LEN + 1];
    struct mo_span early;
    struct mo_err e;

    if (!w) {
        mo_req_problem(rq, 400, "bad_request", "not a websocket handshake");
        return;
    }
    mo_ws_accept(key, accept);
    mo_req_header(rq, "Sec-WebSocket-Accept", mo_span_cstr(accept));
    if (mo_req_upgrade(rq, "websocket", &w->s, &early, &e) < 0) {
        mo_free(w);
        mo_req_abort(rq);
        return;
    }
    mo_ws_init(&w->ws, MO_WS_SERVER, WS_MESSAGE_MAX);
    mo_stream_attach(w->s, &ws_cb, w);
}

/* --- Socket.IO ----------------------------------------------------------- */

static bool sio_connect(void *ctx, struct mo_sock *k, struct mo_json auth,
                        struct mo_err *e)
{
    (void)ctx, (void)k, (void)auth, (void)e;
    return true;
}

static void sio_ready(void *ctx, struct mo_sock *k)
{
    (void)ctx, (void)k;
}

static void sio_event(void *ctx, struct mo_sock *k, struct mo_json name,
                      struct mo_json args, int64_t ack)
{
    (void)ctx, (void)name, (void)args;
    (void)mo_sock_ack(k, ack, mo_span(NULL, 0));
}

static void sio_disconnect(void *ctx, struct mo_sock *k, const char *reason)
{
    (void)ctx, (void)k, (void)reason;
}

/* --- HTTP ---------------------------------------------------------------- */

static void on_body(struct mo_req *rq, struct mo_span body)
{
    mo_req_reply(rq, 200, "application/json", body);
}

static void handler(void *ctx, struct mo_req *rq)
{
    struct server *s = ctx;

    if (mo_span_is(rq->path, "/echo"))
        mo_req_body(rq, 0, on_body);
    else if (mo_span_is(rq->path, "/ws"))
        on_ws(rq);
    else if (mo_span_is(rq->path, "/socket.io/"))
        mo_siod_handle(s->siod, rq);
    else
        mo_req_reply(rq, 200, "text/plain", MO_SPAN("ok"));
}

static void in_read(void *ctx, char *p, size_t n)
{
    (void)ctx, (void)p, (void)n;
}

/* Whoever started us has gone: nothing is worth an orderly end. */
static void in_closed(void *ctx, const struct mo_err *why)
{
    (void)why;
    mo_loop_stop(((struct server *)ctx)->loop);
}

static const struct mo_stream_cb in_cb = {in_read, NULL, NULL, in_closed};

static int start(struct server *s, struct mo_err *e)
{
    struct mo_httpd_opts ho = {
        .handler = handler,
        .ctx = s,
        .limits = {.connections = CONNECTIONS, .requests = 1u << 31}};
    struct mo_siod_opts so = {.on_connect = sio_connect,
                              .on_ready = sio_ready,
                              .on_event = sio_event,
                              .on_disconnect = sio_disconnect};
    struct mo_listen_opts lo = {.addr = "127.0.0.1:0"};

    s->loop = mo_loop_new(NULL, e);
    if (!s->loop)
        return -1;
    s->siod = mo_siod_new(s->loop, &so, e);
    s->httpd = mo_httpd_new(s->loop, &ho, e);
    if (!s->siod || !s->httpd || mo_httpd_listen(s->httpd, &lo, e) < 0 ||
        mo_stream_from_fds(s->loop, 0, -1, &s->in, e) < 0)
        return -1;
    mo_stream_attach(s->in, &in_cb, s);
    return 0;
}

int main(void)
{
    struct server s = {NULL};
    struct mo_err e;

    if (start(&s, &e) < 0)
        meter_die("server: %s", e.msg);
    printf("%u\n", mo_httpd_port(s.httpd));
    (void)fflush(stdout);
    mo_loop_run(s.loop);
    return 0;
}
