/* api.c - the API of a Kubernetes cluster; see api.h.
 *
 * Invariants:
 *  1. A call is in one state: it waits for a token, it is sent (x), or it waits
 *     for its next try (timer).
 *  2. Only finish_call() calls done() and frees. */
#include "kube/api.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rand.h"
#include "codec/attach_frame.h"
#include "codec/http/url.h"
#include "codec/text/base64.h"
#include "kube/access.h"
#include "kube/token.h"
#include "loop/httpu.h"

#define ANSWER_MS    30000u
#define REPLY_MAX    ((size_t)16 * 1024 * 1024)
#define CONNS        64
#define WAITING      1024
#define IDLE         8
#define PAUSE_MS     250u
#define PAUSE_MAX_MS 10000u /* of a Retry-After too */
#define HOST_MAX     256
#define HEADERS_MAX  8

struct mo_kube {
    struct mo_loop *loop;
    struct mo_httpu *http;
    struct mo_tls_ctx *tls;
    struct mo_kube_access a;
    struct mo_kube_token *token;
    struct mo_list calls;
    bool closing;
    struct mo_gone gone;
};

struct mo_kube_call {
    struct mo_kube *k;
    struct mo_list node;
    struct mo_httpu_x *x;           /* sent */
    struct mo_timer timer;          /* next try; or an error to report */
    struct mo_kube_token_wait wait; /* for a token */
    bool waiting;
    char method[8], path[MO_KUBE_PATH_MAX];
    struct mo_buf sent; /* the body */
    bool has_body, repeatable, once, canceled, told, streams;
    unsigned total_ms, idle_ms, tries, retry_after_ms;
    mo_kube_done *done;
    mo_kube_attached *attached; /* an attach: this instead of done */
    void (*on_head)(void *ctx);
    void (*on_data)(void *ctx, struct mo_span data);
    void *ctx;
    char key[MO_WS_KEY_LEN + 1]; /* of an attach */
    struct mo_buf body;
    int status;
    bool renewed;         /* a new token was asked for after a 401 */
    struct mo_err failed; /* to report by the timer; code 0: none */
};

/* --- the end of a request ------------------------------------------------ */

static int code_of(int status)
{
    static const struct {
        int status, code;
    } rows[] = {
        {400, MO_EINVAL},    {401, MO_EPOLICY}, {403, MO_EPOLICY},
        {404, MO_ENOTFOUND}, {409, MO_EEXISTS}, {410, MO_ECLOSED},
        {422, MO_EINVAL},
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++)
        if (rows[i].status == status)
            return rows[i].code;
    return MO_EUNAVAIL;
}

/* A Status: {"message": "..."}; an attach may fail with plain text. */
static void status_error(const struct mo_kube_reply *r, struct mo_err *e)
{
    mo_autobuf struct mo_buf words = {.max = 4096};

    if (mo_json_str_buf(mo_json_get(r->json, "message"), &words) < 0) {
        mo_buf_reset(&words);
        if (!r->json.n && mo_span_between(r->body, ' ', '~'))
            (void)mo_buf_span(&words, mo_span_head(r->body, 400));
    }
    (void)mo_fail(e, code_of(r->status), "the cluster answered %d%s%.190s",
                  r->status, words.len ? ": " : "", mo_buf_cstr(&words));
}

static void finish_call(struct mo_kube_call *c, const struct mo_err *transport)
{
    struct mo_err e = transport ? *transport : (struct mo_err){.code = 0};
    struct mo_kube_reply r = {.status = c->status,
                              .body = mo_buf_view(&c->body)};
    struct mo_json_doc doc;

    if (r.body.n && mo_json_parse(r.body, 0, &doc, NULL) == 0)
        r.json = doc.root;
    if (!e.code && mo_buf_err(&c->body))
        (void)mo_fail(&e, mo_buf_err(&c->body), "the cluster's answer");
    else if (!e.code && (c->status >= 400 || (c->attached && !c->told)))
        status_error(&r, &e);
    mo_list_del(&c->node);
    mo_list_del(&c->wait.node);
    mo_timer_stop(c->k->loop, &c->timer);
    if (!c->attached)
        c->done(c->ctx, &r, e.code ? &e : NULL);
    else if (!c->told)
        c->attached(c->ctx, NULL, MO_SPAN(""), MO_SPLIT_KUBE_V4,
                    e.code ? &e : NULL);
    mo_buf_fini(&c->body);
    mo_buf_wipe(&c->sent);
    mo_free(c);
}

/* --- another try --------------------------------------------------------- */

static void send_call(struct mo_kube_call *c);

static bool may_repeat(const struct mo_kube_call *c, const struct mo_err *why)
{
    bool refused = c->status == 429 || c->status == 503;
    bool broken = c->status == 500 || c->status == 502 || c->status == 504 ||
                  (why && c->status == 0);

    if (c->canceled || c->once || c->k->closing || c->tries >= MO_KUBE_TRIES)
        return false;
    if (why && (why->code == MO_EPOLICY || why->code == MO_ETLS ||
                why->code == MO_EINVAL || why->code == MO_ENOMEM))
        return false;
    return refused || (broken && c->repeatable && !c->attached);
}

/* From the loop: the next try, or an error that was found at once. */
static void on_timer(struct mo_timer *t)
{
    struct mo_kube_call *c = mo_container_of(t, struct mo_kube_call, timer);

    if (c->failed.code)
        finish_call(c, &c->failed);
    else
        send_call(c);
}

static void repeat_call(struct mo_kube_call *c, unsigned ms)
{
    mo_buf_reset(&c->body);
    c->status = 0;
    c->retry_after_ms = 0;
    mo_timer_start(c->k->loop, &c->timer, ms);
}

static unsigned pause_of(const struct mo_kube_call *c)
{
    unsigned ms = PAUSE_MS << (c->tries - 1);

    if (c->retry_after_ms)
        return c->retry_after_ms;
    return ms / 2 + (unsigned)(mo_random_u64() % ms);
}

/* --- what httpu tells ---------------------------------------------------- */

static bool is_accepted(const struct mo_kube_call *c,
                        const struct mo_http_head *h)
{
    char accept[MO_WS_ACCEPT_LEN + 1];

    mo_ws_accept(mo_span_cstr(c->key), accept);
    return mo_span_is(mo_http_get(h, "Sec-WebSocket-Accept"), accept);
}

static void take_over(struct mo_kube_call *c, const struct mo_http_head *h)
{
    struct mo_span proto = mo_http_get(h, "Sec-WebSocket-Protocol");
    bool v5 = mo_span_is(proto, MO_ATTACH_V5);
    struct mo_stream *s;
    struct mo_span early;

    if (!is_accepted(c, h) || (!v5 && !mo_span_is(proto, MO_ATTACH_V4))) {
        (void)mo_fail(&c->failed, MO_EPROTO,
                      "attach: the cluster's answer is not what was asked");
        return;
    }
    if (mo_httpu_hijack(c->x, &s, &early, &c->failed) < 0)
        return;
    c->told = true;
    c->attached(c->ctx, s, early, v5 ? MO_SPLIT_KUBE_V5 : MO_SPLIT_KUBE_V4,
                NULL);
}

static void on_head(void *ctx, const struct mo_http_head *h)
{
    struct mo_kube_call *c = ctx;
    uint64_t s;

    c->status = h->status;
    if (mo_span_u64(mo_http_get(h, "Retry-After"), &s) == 0)
        c->retry_after_ms =
            s < PAUSE_MAX_MS / 1000 ? (unsigned)s * 1000 + 1 : PAUSE_MAX_MS;
    if (c->attached && h->status == 101)
        take_over(c, h);
    else if (c->on_head && h->status < 300)
        c->on_head(c->ctx);
}

static void on_data(void *ctx, struct mo_span data)
{
    struct mo_kube_call *c = ctx;

    if (c->on_data && c->status < 300)
        c->on_data(c->ctx, data);
    else
        (void)mo_buf_span(&c->body, data); /* an error is seen in finish() */
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct mo_kube_call *c = ctx;
    struct mo_err e = why ? *why : c->failed;

    c->x = NULL;
    if (e.code == MO_EIO || e.code == MO_ECLOSED || e.code == MO_ETIMEOUT)
        e.code = MO_EUNAVAIL;
    if (!c->told && may_repeat(c, e.code ? &e : NULL)) {
        repeat_call(c, pause_of(c));
        return;
    }
    if (c->status == 401 && !c->renewed && !c->canceled && !c->k->closing &&
        mo_kube_token_drop(c->k->token)) {
        c->renewed = true;
        repeat_call(c, 1);
        return;
    }
    if (e.code && !c->canceled)
        (void)mo_wrap(&e, "cluster at %s", c->k->a.server);
    finish_call(c, e.code ? &e : NULL);
}

static const struct mo_http_cb http_cb = {on_head, on_data, on_done};

/* --- sending ------------------------------------------------------------- */

struct headers {
    struct mo_http_header v[HEADERS_MAX];
    size_t n;
};

static void add_header(struct headers *h, const char *name, struct mo_span v)
{
    MO_BUG_ON(h->n >= HEADERS_MAX);
    h->v[h->n++] = (struct mo_http_header){mo_span_cstr(name), v};
}

static void fill_headers(const struct mo_kube_call *c, struct mo_span token,
                         struct mo_buf *bearer, struct headers *h)
{
    if (token.n) {
        (void)mo_buf_puts(bearer, "Bearer ");
        (void)mo_buf_span(bearer, token);
        add_header(h, "Authorization", mo_buf_view(bearer));
    }
    if (c->attached) {
        add_header(h, "Connection", MO_SPAN("Upgrade"));
        add_header(h, "Upgrade", MO_SPAN("websocket"));
        add_header(h, "Sec-WebSocket-Version", MO_SPAN("13"));
        add_header(h, "Sec-WebSocket-Key", mo_span_cstr(c->key));
        add_header(h, "Sec-WebSocket-Protocol",
                   MO_SPAN(MO_ATTACH_V5 ", " MO_ATTACH_V4));
        return;
    }
    add_header(h, "Accept", MO_SPAN("application/json"));
    if (c->has_body)
        add_header(h, "Content-Type",
                   strcmp(c->method, "PATCH") == 0
                       ? MO_SPAN("application/merge-patch+json")
                       : MO_SPAN("application/json"));
}

static int start_call(struct mo_kube_call *c, struct mo_span token,
                      struct mo_err *e)
{
    mo_autowipe struct mo_buf bearer = {.max = MO_KUBE_TOKEN_MAX + 16};
    struct headers h = {.n = 0};
    struct mo_http_call call = {
        .method = c->method,
        .url = c->path,
        .headers = h.v,
        .idle_ms = c->idle_ms,
        .total_ms = c->total_ms,
        .max_bytes = c->streams ? UINT64_MAX : REPLY_MAX,
    };

    fill_headers(c, token, &bearer, &h);
    if (mo_buf_err(&bearer))
        return mo_fail(e, mo_buf_err(&bearer), "token");
    call.nheaders = h.n;
    if (c->has_body)
        call.body = mo_span(c->sent.p ? c->sent.p : "", c->sent.len);
    c->tries++;
    return mo_httpu_start(c->k->http, &call, &http_cb, c, &c->x, e);
}

static void fail_later(struct mo_kube_call *c, const struct mo_err *e)
{
    c->failed = *e;
    mo_timer_start(c->k->loop, &c->timer, 0);
}

static void on_token(struct mo_kube_token_wait *w, const struct mo_err *why)
{
    struct mo_kube_call *c = mo_container_of(w, struct mo_kube_call, wait);

    c->waiting = false;
    if (why)
        fail_later(c, why);
    else
        send_call(c);
}

static void send_call(struct mo_kube_call *c)
{
    struct mo_span token;
    struct mo_err e;
    int rc = mo_kube_token_get(c->k->token, &token, &c->wait, &e);

    if (rc == MO_EBUSY) {
        c->waiting = true;
        return;
    }
    if (rc == 0)
        rc = start_call(c, token, &e);
    if (rc < 0)
        fail_later(c, &e);
}

static void make_key(struct mo_kube_call *c)
{
    uint64_t r[2] = {mo_random_u64(), mo_random_u64()};
    mo_autobuf struct mo_buf b = {.max = MO_WS_KEY_LEN};

    (void)mo_base64_put(&b, mo_span((const char *)r, sizeof(r)));
    (void)snprintf(c->key, sizeof(c->key), "%s", mo_buf_cstr(&b));
}

static struct mo_kube_call *
new_call(struct mo_kube *k, const struct mo_kube_req *req, struct mo_err *e)
{
    const char *method = req->method ? req->method : "GET";
    struct mo_kube_call *c = mo_new(struct mo_kube_call);

    if (!c)
        return mo_null(mo_fail(e, MO_ENOMEM, "request to the cluster"));
    c->k = k;
    mo_list_init(&c->node);
    mo_list_init(&c->wait.node);
    c->wait.go = on_token;
    mo_timer_init(&c->timer, on_timer);
    mo_buf_init(&c->body, REPLY_MAX);
    mo_buf_init(&c->sent, REPLY_MAX);
    (void)snprintf(c->method, sizeof(c->method), "%s", method);
    c->repeatable = strcmp(method, "GET") == 0 || strcmp(method, "DELETE") == 0;
    c->once = req->once;
    c->streams = req->on_data != NULL;
    c->on_data = req->on_data;
    c->on_head = req->on_head;
    c->total_ms = req->total_ms ? req->total_ms : c->streams ? 0 : ANSWER_MS;
    c->idle_ms = !c->streams    ? ANSWER_MS
                 : req->idle_ms ? req->idle_ms
                                : MO_HTTP_FOREVER;
    c->has_body = req->body.p != NULL;
    if ((size_t)snprintf(c->path, sizeof(c->path), "%s", req->path) >=
            sizeof(c->path) ||
        mo_buf_span(&c->sent, req->body) < 0) {
        mo_buf_fini(&c->sent);
        mo_free(c);
        return mo_null(mo_fail(e, MO_ETOOBIG, "request to the cluster"));
    }
    return c;
}

static void launch_call(struct mo_kube_call *c, struct mo_kube_call **out)
{
    mo_list_push(&c->k->calls, &c->node);
    if (out)
        *out = c;
    send_call(c);
}

int mo_kube_ask(struct mo_kube *k, const struct mo_kube_req *req,
                mo_kube_done *done, void *ctx, struct mo_kube_call **out,
                struct mo_err *e)
{
    struct mo_kube_call *c = new_call(k, req, e);

    if (!c)
        return MO_ENOMEM;
    c->done = done;
    c->ctx = ctx;
    launch_call(c, out);
    return 0;
}

int mo_kube_attach(struct mo_kube *k, const char *path, mo_kube_attached *done,
                   void *ctx, struct mo_kube_call **out, struct mo_err *e)
{
    struct mo_kube_req req = {.path = path};
    struct mo_kube_call *c = new_call(k, &req, e);

    if (!c)
        return MO_ENOMEM;
    c->attached = done;
    c->ctx = ctx;
    make_key(c);
    launch_call(c, out);
    return 0;
}

void mo_kube_cancel(struct mo_kube_call *c)
{
    if (c->canceled || c->told)
        return;
    c->canceled = true;
    if (c->x) {
        mo_httpu_cancel(c->x);
        return;
    }
    if (c->waiting)
        mo_list_del(&c->wait.node);
    c->waiting = false;
    fail_later(c, mo_error(MO_ECANCELED, "canceled"));
}

/* --- opening ------------------------------------------------------------- */

/* A text as a file in memory, which the TLS library reads by its path. */
static int memory_file(const char *text, const char *file, int *fd,
                       char path[HOST_MAX], const char **out, struct mo_err *e)
{
    *out = file;
    if (!text)
        return 0;
    *fd = memfd_create("kubeconfig", MFD_CLOEXEC);
    if (*fd < 0)
        return mo_fail_sys(e, "kubeconfig: memory");
    (void)snprintf(path, HOST_MAX, "/proc/self/fd/%d", *fd);
    *out = path;
    return mo_file_write_all(*fd, mo_span_cstr(text), e);
}

static int open_tls(struct mo_kube *k, struct mo_err *e)
{
    const struct mo_kube_access *a = &k->a;
    mo_autofd int ca = -1, cert = -1, key = -1;
    char ca_path[HOST_MAX], cert_path[HOST_MAX], key_path[HOST_MAX];
    struct mo_tls_client_opts o = {.ca = NULL};

    if (memory_file(a->ca, a->ca_file, &ca, ca_path, &o.ca, e) < 0 ||
        memory_file(a->cert, a->cert_file, &cert, cert_path, &o.cert, e) < 0 ||
        memory_file(a->key, a->key_file, &key, key_path, &o.key, e) < 0)
        return e->code;
    k->tls = mo_tls_client_new(&o, e);
    return k->tls ? 0 : mo_wrap(e, "%s", a->what);
}

static int open_http(struct mo_kube *k, struct mo_err *e)
{
    char host[HOST_MAX], dial[HOST_MAX + 16];
    struct mo_httpu_opts h = {.addr = dial,
                              .host = host,
                              .tls = k->tls,
                              .conns = CONNS,
                              .waiting = WAITING,
                              .idle = IDLE};
    struct mo_url u;
    int n, m;

    if (mo_url_parse(mo_span_cstr(k->a.server), &u, e) < 0)
        return MO_EINVAL;
    n = snprintf(host, sizeof(host), "%.*s", (int)u.host.n, u.host.p);
    m = snprintf(dial, sizeof(dial), "%s%s%s:%u", u.ipv6 ? "[" : "", host,
                 u.ipv6 ? "]" : "", u.port ? u.port : 443u);
    if ((size_t)n >= sizeof(host) || (size_t)m >= sizeof(dial))
        return mo_fail(e, MO_ETOOBIG, "address of the cluster");
    h.sni = k->a.server_name ? k->a.server_name : host;
    k->http = mo_httpu_new(k->loop, &h, e);
    return k->http ? 0 : MO_ENOMEM;
}

static void free_kube(struct mo_kube *k)
{
    if (k->token)
        mo_kube_token_free(k->token);
    mo_tls_free(k->tls);
    mo_kube_access_fini(&k->a);
    mo_free(k);
}

struct mo_kube *mo_kube_new(struct mo_loop *l, struct mo_kube_access *a,
                            struct mo_err *e)
{
    struct mo_kube *k = mo_new(struct mo_kube);

    if (!k) {
        mo_kube_access_fini(a);
        return mo_null(mo_fail(e, MO_ENOMEM, "cluster"));
    }
    k->loop = l;
    k->a = *a;
    *a = (struct mo_kube_access){.server = NULL};
    mo_list_init(&k->calls);
    k->token = mo_kube_token_new(l, &k->a, e);
    if (k->token && open_tls(k, e) == 0 && open_http(k, e) == 0)
        return k;
    free_kube(k);
    return NULL;
}

static void on_http_gone(void *ctx)
{
    struct mo_kube *k = ctx;
    struct mo_gone gone = k->gone;

    while (!mo_list_empty(&k->calls))
        finish_call(mo_container_of(k->calls.next, struct mo_kube_call, node),
                    mo_error(MO_ECANCELED, "closing"));
    free_kube(k);
    mo_gone_fire(gone);
}

void mo_kube_close(struct mo_kube *k, void (*gone)(void *ctx), void *ctx)
{
    k->closing = true;
    k->gone = (struct mo_gone){gone, ctx};
    mo_httpu_close(k->http, on_http_gone, k);
}

const char *mo_kube_server(const struct mo_kube *k)
{
    return k->a.server;
}

const char *mo_kube_what(const struct mo_kube *k)
{
    return k->a.what;
}
