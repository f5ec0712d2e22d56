/* serve_pass_on.c - requests that come to another worker than they are for;
 * those of polling clients of another server: serve_polls.c.
 *
 * Each request of a polling Socket.IO client may come to another worker, and so
 * may a request about a conversation. The first letter of a socket's id names
 * its worker; shared memory says which worker opened a conversation. The others
 * pass the request on to it, over a unix socket of that worker's web server
 * (mode 0600):
 *
 *   store.dir/run/worker-PARENT-NUMBER.sock
 *
 * The worker checks the request as if it had come to the port: it has the same
 * head, and X-Forwarded-For says that it does not come from a process of this
 * user. The upgrade to websocket is passed on as a connection: the bytes of
 * both sides go through this worker until one of them ends it. A request is
 * passed on once. See serve_priv.h. */
#include <stdio.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/serve_priv.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "loop/httpu.h"
#include "loop/net.h"
#include "web/approvals_socket.h"

#define BODY_MAX   ((size_t)1000 * 1000) /* as max_payload of web/eiod.h */
#define ANSWER_MAX ((size_t)64 * 1024 * 1024)
#define LISTS      "L"
#define ADDR_MAX   (sizeof(((struct sockaddr_un *)NULL)->sun_path) + 8)

static const char letters[MO_WORKERS_MAX + 1] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

struct forward {
    struct server *s;
    struct mo_req *rq; /* NULL: it is gone */
    unsigned to;
    bool is_api; /* not of a socket */
    struct mo_httpu *client;
    int status;
    char type[64];
    struct mo_buf answer;
};

static int address_of(const struct server *s, unsigned number,
                      char out[ADDR_MAX], struct mo_err *e)
{
    int n = snprintf(out, ADDR_MAX,
                     "unix:%s/" MO_APPROVALS_SOCKET_DIR "/worker-%ld-%u.sock",
                     s->first->store.dir, (long)getppid(), number);

    return n < 0 || (size_t)n >= ADDR_MAX
               ? mo_fail(e, MO_ETOOBIG, "store.dir is too long for a socket")
               : 0;
}

/* --- one request ---------------------------------------------------------- */

static void on_closed(void *ctx)
{
    struct forward *f = ctx;

    mo_buf_fini(&f->answer);
    mo_free(f);
}

static void on_gone(struct mo_req *rq)
{
    struct forward *f = rq->data;

    f->rq = NULL;
    if (f->client)
        mo_httpu_close(f->client, on_closed, f);
    else
        on_closed(f);
}

static void on_head(void *ctx, const struct mo_http_head *h)
{
    struct forward *f = ctx;
    struct mo_span type = mo_http_get(h, "Content-Type");

    f->status = h->status;
    (void)snprintf(f->type, sizeof(f->type), "%.*s", (int)type.n,
                   type.p ? type.p : "");
}

static void on_data(void *ctx, struct mo_span data)
{
    (void)mo_buf_span(&((struct forward *)ctx)->answer, data);
}

/* Without its worker a socket's session is unknown; the client opens another.
 */
void mo_serve_unknown_sid(struct mo_req *rq)
{
    mo_req_reply(rq, 400, "application/json",
                 MO_SPAN("{\"code\":1,\"message\":\"Session ID unknown\"}"));
}

static void refuse_forward(struct forward *f)
{
    if (f->is_api)
        mo_req_problem(f->rq, 503, "unavailable",
                       "the conversation is open in a worker that does not "
                       "answer; try again");
    else
        mo_serve_unknown_sid(f->rq);
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct forward *f = ctx;

    if (!f->rq)
        return;
    if (why || mo_buf_err(&f->answer))
        refuse_forward(f);
    else
        mo_req_reply_long(f->rq, f->status, f->type[0] ? f->type : "text/plain",
                          mo_buf_view(&f->answer));
}

static bool is_header(struct mo_span name, const char *want)
{
    return name.n == strlen(want) && strncasecmp(name.p, want, name.n) == 0;
}

/* Headers of the connection are not the request's. */
static bool is_passed(struct mo_span name)
{
    static const char *const not [] = {
        "Connection", "Host",    "Content-Length", "Transfer-Encoding",
        "Expect",     "Upgrade", "Keep-Alive",     "X-Forwarded-For",
    };

    for (size_t i = 0; i < MO_COUNT(not ); i++)
        if (is_header(name, not [i]))
            return false;
    return true;
}

/* NULL: it is not passed on. */
static const char *method_of(enum mo_http_method m)
{
    return m == MO_HTTP_GET      ? "GET"
           : m == MO_HTTP_POST   ? "POST"
           : m == MO_HTTP_PUT    ? "PUT"
           : m == MO_HTTP_PATCH  ? "PATCH"
           : m == MO_HTTP_DELETE ? "DELETE"
                                 : NULL;
}

static int start(struct forward *f, struct mo_span body)
{
    static const struct mo_http_cb cb = {on_head, on_data, on_done};
    const struct mo_http_head *h = f->rq->head;
    struct mo_http_header headers[MO_HTTP_HEADERS_MAX + 1];
    mo_autobuf struct mo_buf host = {.max = 1024}, url = {.max = 16384};
    char addr[ADDR_MAX];
    struct mo_httpu_opts o = {.addr = addr, .conns = 1};
    struct mo_http_call c = {.headers = headers,
                             .idle_ms = MO_HTTP_FOREVER,
                             .max_bytes = ANSWER_MAX};
    struct mo_httpu_x *x = NULL;
    struct mo_err e;

    for (size_t i = 0; i < h->nheaders; i++)
        if (is_passed(h->headers[i].name))
            headers[c.nheaders++] = h->headers[i];
    headers[c.nheaders++] = (struct mo_http_header){
        MO_SPAN("X-Forwarded-For"), mo_span_cstr(mo_req_peer(f->rq))};
    if (address_of(f->s, f->to, addr, &e) < 0 ||
        mo_buf_span(&host, mo_http_get(h, "Host")) < 0 ||
        mo_buf_span(&url, h->target) < 0)
        return -1;
    o.host = mo_buf_cstr(&host);
    c.method = method_of(h->method);
    c.url = mo_buf_cstr(&url);
    if (body.p || h->method == MO_HTTP_POST)
        c.body = mo_span(body.p ? body.p : "", body.n);
    f->client = mo_httpu_new(f->s->loop, &o, &e);
    return f->client ? mo_httpu_start(f->client, &c, &cb, f, &x, &e) : -1;
}

static void on_body(struct mo_req *rq, struct mo_span body)
{
    struct forward *f = rq->data;

    if (start(f, body) < 0)
        refuse_forward(f);
}

/* --- a websocket ---------------------------------------------------------- */

#define DIAL_MS   5000
#define FINISH_MS 1000
#define HEAD_MAX  ((size_t)32 * 1024)
#define HIGH      ((size_t)64 * 1024) /* queued bytes that stop reading */

enum side { CLIENT, WORKER };

/* A websocket of a client, and the connection to the worker that has its
 * session. It is freed when both are closed. */
struct tunnel {
    struct mo_list node;
    struct server *s;
    struct mo_req *rq; /* until the stream is taken over */
    struct mo_dial *dial;
    struct mo_buf head;
    struct half {
        struct tunnel *t;
        enum side side;
        struct mo_stream *s;
    } half[2];
};

static void tunnel_check(struct tunnel *t)
{
    struct server *s = t->s;

    if (t->rq || t->dial || t->half[CLIENT].s || t->half[WORKER].s)
        return;
    mo_list_del(&t->node);
    mo_buf_fini(&t->head);
    mo_free(t);
    if (!s->closing || !mo_list_empty(&s->tunnels))
        return;
    mo_timer_stop(s->loop, &s->tunnels_end);
    mo_serve_end_clients(s);
}

static void on_half_read(void *ctx, char *p, size_t n)
{
    struct half *h = ctx;
    struct mo_stream *to = h->t->half[1 - h->side].s;

    if (!to)
        return;
    if (mo_stream_write(to, mo_span(p, n)) < 0)
        mo_stream_close(h->s, NULL);
    else if (mo_stream_queued(to) > HIGH)
        mo_stream_pause(h->s);
}

static void on_half_drain(void *ctx)
{
    struct half *h = ctx;
    struct mo_stream *from = h->t->half[1 - h->side].s;

    if (from)
        mo_stream_resume(from);
}

static void on_half_eof(void *ctx)
{
    struct half *h = ctx;
    struct mo_stream *to = h->t->half[1 - h->side].s;

    if (to)
        mo_stream_finish(to, FINISH_MS);
    mo_stream_finish(h->s, FINISH_MS);
}

static void on_half_close(void *ctx, const struct mo_err *why)
{
    struct half *h = ctx;
    struct mo_stream *other = h->t->half[1 - h->side].s;

    (void)why;
    h->s = NULL;
    if (other)
        mo_stream_finish(other, FINISH_MS);
    tunnel_check(h->t);
}

static void attach(struct tunnel *t, enum side side, struct mo_stream *s)
{
    static const struct mo_stream_cb cb = {on_half_read, on_half_eof,
                                           on_half_drain, on_half_close, NULL};
    struct half *h = &t->half[side];

    *h = (struct half){t, side, s};
    mo_stream_attach(s, &cb, h);
}

static void on_tunnel_gone(struct mo_req *rq)
{
    struct tunnel *t = rq->data;

    t->rq = NULL;
    if (t->dial)
        mo_dial_cancel(t->dial);
    tunnel_check(t);
}

/* The worker answers the request: it has the key of the handshake. */
static void on_dialled(void *ctx, struct mo_stream *s, const struct mo_err *why)
{
    struct tunnel *t = ctx;
    struct mo_req *rq = mo_take_ptr(&t->rq);
    struct mo_stream *client = NULL;
    struct mo_span parts[2];
    struct mo_err e;

    (void)why;
    t->dial = NULL;
    if (rq)
        rq->gone = NULL;
    if (rq && !s)
        mo_serve_unknown_sid(rq);
    else if (rq && mo_req_take(rq, &client, &parts[1], &e) < 0)
        mo_req_abort(rq);
    if (!client) {
        if (s)
            mo_stream_close(s, NULL);
        tunnel_check(t);
        return;
    }
    parts[0] = mo_buf_view(&t->head);
    (void)mo_stream_writev(s, parts, parts[1].n ? 2 : 1);
    attach(t, WORKER, s);
    attach(t, CLIENT, client);
}

/* The head as the client sent it, with its address. */
static int put_head(struct mo_buf *b, struct mo_req *rq)
{
    const struct mo_http_head *h = rq->head;

    (void)mo_buf_printf(b, "GET %.*s HTTP/1.1\r\n", (int)h->target.n,
                        h->target.p);
    for (size_t i = 0; i < h->nheaders; i++) {
        if (is_header(h->headers[i].name, "X-Forwarded-For"))
            continue;
        (void)mo_buf_span(b, h->headers[i].name);
        (void)mo_buf_puts(b, ": ");
        (void)mo_buf_span(b, h->headers[i].value);
        (void)mo_buf_puts(b, "\r\n");
    }
    (void)mo_buf_printf(b, "X-Forwarded-For: %s\r\n\r\n", mo_req_peer(rq));
    return mo_buf_err(b);
}

static bool tunnel_open(struct server *s, struct mo_req *rq, unsigned to)
{
    struct tunnel *t = mo_new(struct tunnel);
    char addr[ADDR_MAX];
    struct mo_err e;

    if (!t)
        return false;
    t->s = s;
    mo_list_push(&s->tunnels, &t->node);
    mo_buf_init(&t->head, HEAD_MAX);
    if (put_head(&t->head, rq) < 0 || address_of(s, to, addr, &e) < 0 ||
        mo_dial(s->loop, addr, DIAL_MS, on_dialled, t, &t->dial, &e) < 0) {
        tunnel_check(t);
        return false;
    }
    t->rq = rq;
    rq->data = t;
    rq->gone = on_tunnel_gone;
    return true;
}

static void on_tunnels_end(struct mo_timer *timer)
{
    struct server *s = mo_container_of(timer, struct server, tunnels_end);

    mo_list_each_entry (t, &s->tunnels, struct tunnel, node)
        for (size_t i = 0; i < MO_COUNT(t->half); i++)
            if (t->half[i].s)
                mo_stream_close(t->half[i].s, NULL);
}

void mo_serve_pass_on_stop(struct server *s, uint64_t grace_ms)
{
    mo_timer_init(&s->tunnels_end, on_tunnels_end);
    if (!mo_list_empty(&s->tunnels))
        mo_timer_start(s->loop, &s->tunnels_end, grace_ms);
}

bool mo_serve_pass_on_stopped(const struct server *s)
{
    return mo_list_empty(&s->tunnels);
}

/* --- which worker --------------------------------------------------------- */

static struct forward *forward_new(struct server *s, struct mo_req *rq,
                                   unsigned to)
{
    struct forward *f = mo_new(struct forward);

    if (!f)
        return NULL;
    f->s = s;
    f->rq = rq;
    f->to = to;
    mo_buf_init(&f->answer, ANSWER_MAX);
    rq->data = f;
    rq->gone = on_gone;
    return f;
}

/* The worker beside this one that has the session of that id; 0: none. It has
 * another name after a restart, and the session is lost then. */
static unsigned worker_of_sid(const struct server *s, struct mo_span sid,
                              struct mo_span home)
{
    const char *at = strchr(letters, sid.p[0]);
    unsigned to = at && sid.p[0] ? (unsigned)(at - letters) + 1 : 0;
    char name[MO_INSTANCE_MAX] = "";

    if (to == 0 || to > s->worker.count || to == s->worker.number)
        return 0;
    return home.n == 0 || (mo_worker_named(&s->worker, to, name) &&
                           mo_span_is(home, name))
               ? to
               : 0;
}

static bool elsewhere(void *ctx, struct mo_req *rq, struct mo_span sid)
{
    struct server *s = ctx;
    struct mo_span home = sid;
    unsigned to;

    (void)mo_span_cut(&home, '.');
    if (rq->from || mo_req_is_inner(rq) ||
        (rq->head->method != MO_HTTP_GET && rq->head->method != MO_HTTP_POST))
        return false;
    to = worker_of_sid(s, sid, home);
    if (to == 0)
        return mo_serve_poll_pass(s, rq, home);
    if (rq->head->upgrade)
        return tunnel_open(s, rq, to);
    if (!forward_new(s, rq, to))
        return false;
    mo_req_body(rq, BODY_MAX, on_body);
    return true;
}

/* Where it was opened last, else one that all workers agree on. */
static unsigned worker_of(const struct server *s, struct mo_span session)
{
    const struct mo_workers_common *c = s->worker.common;
    uint64_t h = mo_siphash(c->crowd.k0, c->crowd.k1, session);
    unsigned to = atomic_load(&c->homes[h % MO_WORKERS_HOMES]);

    return to ? to : (unsigned)(h % s->worker.count) + 1;
}

static atomic_uchar *home_of(const struct server *s, struct mo_span session)
{
    struct mo_workers_common *c = s->worker.common;
    uint64_t h = mo_siphash(c->crowd.k0, c->crowd.k1, session);

    return &c->homes[h % MO_WORKERS_HOMES];
}

static void keep_home(void *ctx, struct mo_span session)
{
    const struct server *s = ctx;

    atomic_store(home_of(s, session), (unsigned char)s->worker.number);
}

static bool api_elsewhere(void *ctx, struct mo_req *rq, struct mo_span session,
                          struct mo_span body)
{
    struct server *s = ctx;
    unsigned to = worker_of(s, session);
    struct forward *f = NULL;

    if (to == s->worker.number || to > s->worker.count ||
        !method_of(rq->head->method))
        return false;
    f = forward_new(s, rq, to);
    if (!f)
        return false;
    f->is_api = true;
    if (start(f, body) < 0)
        refuse_forward(f);
    return true;
}

/* "1SERVER NUL PERSON": has connected; "0...": is disconnected. "L": lists of
 * servers were read. */
static void tell_person(void *ctx, const char *server, const char *who, bool on)
{
    struct server *s = ctx;
    mo_autobuf struct mo_buf b = {.max = MO_WORKERS_TEXT};

    (void)mo_buf_putc(&b, on ? '1' : '0');
    (void)mo_buf_put(&b, server, strlen(server) + 1);
    (void)mo_buf_put(&b, who, strlen(who) + 1);
    if (mo_buf_err(&b) == 0)
        mo_worker_tell(&s->worker, mo_buf_view(&b));
}

static void on_told(void *ctx, struct mo_span text)
{
    struct server *s = ctx;
    size_t n = text.n > 2 ? strnlen(text.p + 1, text.n - 1) + 2 : text.n;

    if (!s->gateway || s->closing || mo_serve_subscriptions_told(s, text))
        return;
    if (mo_span_is(text, LISTS))
        mo_gateway_catch_up(mo_gateway_setup_gateway(s->gateway));
    if (n >= text.n || text.p[text.n - 1])
        return;
    mo_gateway_person(mo_gateway_setup_gateway(s->gateway), text.p + 1,
                      text.p + n, text.p[0] == '1');
    if (text.p[0] == '1')
        mo_gateway_learn(mo_gateway_setup_gateway(s->gateway), text.p + 1,
                         text.p + n);
}

static void tell_lists(void *ctx)
{
    mo_worker_tell(&((struct server *)ctx)->worker, MO_SPAN(LISTS));
}

/* A change that another worker has made may precede the request: its message
 * may still be on its way. */
void mo_serve_catch_up(void *ctx)
{
    struct server *s = ctx;

    if (!s->worker.number || s->closing)
        return;
    if (mo_worker_is_behind(&s->worker))
        mo_serve_reload(s, "api");
    else if (mo_worker_is_told(&s->worker) && mo_config_stale(s->config))
        mo_serve_reload(s, "file");
    if (s->gateway)
        mo_gateway_catch_up(mo_gateway_setup_gateway(s->gateway));
    mo_serve_subscriptions_catch_up(s);
}

void mo_serve_share_gateway(struct server *s)
{
    struct mo_workers_common *c = s->worker.common;
    struct mo_gateway *g = mo_gateway_setup_gateway(s->gateway);

    if (!c)
        return;
    mo_budget_share(mo_gateway_setup_budget(s->gateway), &c->budget,
                    s->worker.number);
    mo_gateway_share(g, &c->lists, tell_lists, s);
    mo_gateway_share_learning(g, &c->learnt);
    mo_worker_listen(&s->worker, on_told);
    mo_site_before(s->site, mo_serve_catch_up, s);
}

void mo_serve_pass_on_api(struct server *s)
{
    if (!s->worker.number)
        return;
    mo_agent_on_open(mo_agent_setup_agent(s->agent), keep_home, s);
    s->api.elsewhere = api_elsewhere;
    s->api.here = keep_home;
    s->api.tell = tell_person;
    s->api.elsewhere_ctx = s;
}

/* --- the worker ----------------------------------------------------------- */

void mo_serve_pass_on_opts(struct server *s, struct mo_eiod_opts *o)
{
    if (s->worker.number)
        o->mark = letters[s->worker.number - 1];
    o->home = mo_serve_poll_home;
    o->elsewhere = elsewhere;
    o->elsewhere_ctx = s;
}

void mo_serve_pass_on_listen(struct server *s)
{
    char addr[ADDR_MAX], dir[PATH_MAX];
    const struct mo_listen_opts o = {.addr = addr};
    struct mo_err e;
    int rc;

    if (!s->worker.number)
        return;
    (void)snprintf(dir, sizeof(dir), "%s/" MO_APPROVALS_SOCKET_DIR,
                   s->first->store.dir);
    rc = address_of(s, s->worker.number, addr, &e);
    if (rc == 0)
        rc = mo_file_mkdir(dir, &e);
    if (rc == 0)
        rc = mo_httpd_listen_inner(mo_site_httpd(s->site), &o, &e);
    if (rc < 0)
        mo_log_err(s->log, MO_WARN, "serve", &e,
                   "polling clients of this worker may lose their session");
}
