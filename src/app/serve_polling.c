/* serve_polling.c - Socket.IO's polling transport with several workers.
 *
 * Each request of a polling client may come to another worker. The first letter
 * of a session's id names its worker, and the others pass the request on to it,
 * over a unix socket of that worker's web server (mode 0600):
 *
 *   store.dir/run/worker-PARENT-NUMBER.sock
 *
 * The worker checks the request as if it had come to the port: it has the same
 * head, and X-Forwarded-For says that it does not come from a process of this
 * user. The upgrade to websocket is not passed on: a client whose upgrade comes
 * to another worker stays with polling, as the protocol provides. With TLS
 * nothing is passed on. See serve_priv.h. */
#include <stdio.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/serve_priv.h"
#include "base/file.h"
#include "base/mem.h"
#include "loop/httpu.h"
#include "web/approvals_socket.h"

#define BODY_MAX   ((size_t)1000 * 1000) /* as max_payload of web/eiod.h */
#define ANSWER_MAX ((size_t)64 * 1024 * 1024)
#define ADDR_MAX   (sizeof(((struct sockaddr_un *)NULL)->sun_path) + 8)

static const char letters[MO_WORKERS_MAX + 1] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

struct forward {
    struct server *s;
    struct mo_req *rq; /* NULL: it is gone */
    unsigned to;
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

/* Without its worker the session is unknown; the client opens another. */
static void refuse(struct mo_req *rq)
{
    mo_req_reply(rq, 400, "application/json",
                 MO_SPAN("{\"code\":1,\"message\":\"Session ID unknown\"}"));
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct forward *f = ctx;

    if (!f->rq)
        return;
    if (why || mo_buf_err(&f->answer))
        refuse(f->rq);
    else
        mo_req_reply(f->rq, f->status, f->type[0] ? f->type : "text/plain",
                     mo_buf_view(&f->answer));
}

/* Headers of the connection are not the request's. */
static bool is_passed(struct mo_span name)
{
    static const char *const not [] = {
        "Connection", "Host",    "Content-Length", "Transfer-Encoding",
        "Expect",     "Upgrade", "Keep-Alive",     "X-Forwarded-For",
    };

    for (size_t i = 0; i < MO_COUNT(not ); i++)
        if (name.n == strlen(not [i]) &&
            strncasecmp(name.p, not [i], name.n) == 0)
            return false;
    return true;
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
    c.method = h->method == MO_HTTP_POST ? "POST" : "GET";
    c.url = mo_buf_cstr(&url);
    if (h->method == MO_HTTP_POST)
        c.body = mo_span(body.p ? body.p : "", body.n);
    f->client = mo_httpu_new(f->s->loop, &o, &e);
    return f->client ? mo_httpu_start(f->client, &c, &cb, f, &x, &e) : -1;
}

static void on_body(struct mo_req *rq, struct mo_span body)
{
    if (start(rq->data, body) < 0)
        refuse(rq);
}

static bool elsewhere(void *ctx, struct mo_req *rq, struct mo_span sid)
{
    struct server *s = ctx;
    const char *at = strchr(letters, sid.p[0]);
    unsigned to = at && sid.p[0] ? (unsigned)(at - letters) + 1 : 0;
    struct forward *f = NULL;

    if (to == 0 || to > s->worker.count || s->tls ||
        (rq->head->method != MO_HTTP_GET && rq->head->method != MO_HTTP_POST))
        return false;
    f = mo_new(struct forward);
    if (!f)
        return false;
    f->s = s;
    f->rq = rq;
    f->to = to;
    mo_buf_init(&f->answer, ANSWER_MAX);
    rq->data = f;
    rq->gone = on_gone;
    mo_req_body(rq, BODY_MAX, on_body);
    return true;
}

/* --- the worker ----------------------------------------------------------- */

void mo_serve_polling_opts(struct server *s, struct mo_eiod_opts *o)
{
    if (!s->worker.number)
        return;
    o->mark = letters[s->worker.number - 1];
    o->elsewhere = elsewhere;
    o->elsewhere_ctx = s;
}

void mo_serve_polling_listen(struct server *s)
{
    char addr[ADDR_MAX], dir[PATH_MAX];
    const struct mo_listen_opts o = {.addr = addr};
    struct mo_err e;
    int rc;

    if (!s->worker.number || s->tls)
        return;
    (void)snprintf(dir, sizeof(dir), "%s/" MO_APPROVALS_SOCKET_DIR,
                   s->first->store.dir);
    rc = address_of(s, s->worker.number, addr, &e);
    if (rc == 0)
        rc = mo_file_mkdir(dir, &e);
    if (rc == 0)
        rc = mo_httpd_listen(mo_site_httpd(s->site), &o, &e);
    if (rc < 0)
        mo_log_err(s->log, MO_WARN, "serve", &e,
                   "polling clients of this worker may lose their session");
}
