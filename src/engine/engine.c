/* engine.c - a container engine: its address, its requests, what it is. */
#include "engine/engine.h"

#include <stdio.h>

#include "codec/http/url.h"
#include "loop/httpu.h"

#define ANSWER_MS      60000u /* of a request that should be quick */
#define STREAM_IDLE_MS 60000u
#define REPLY_MAX      ((size_t)8 * 1024 * 1024)
#define CONNS          64
#define WAITING        1024
#define IDLE           8

struct mo_engine {
    struct mo_loop *loop;
    struct mo_httpu *http;
    struct mo_tls_ctx *tls;
    unsigned api; /* 0: not agreed yet, paths have no version */
    struct mo_engine_facts facts;
    char host[MO_ENGINE_HOST_MAX];
    struct mo_gone gone;
};

struct mo_engine_call {
    struct mo_httpu_x *x;
    mo_engine_done *done;
    mo_engine_attached *attached; /* an attach: this instead of done */
    void (*on_head)(void *ctx);
    void (*on_data)(void *ctx, struct mo_span data);
    void *ctx;
    struct mo_buf body;
    int status;
    bool told; /* attached() has been called */
};

/* --- the end of a request ------------------------------------------------ */

static int code_of(int status)
{
    static const struct {
        int status, code;
    } rows[] = {
        {400, MO_EINVAL},    {401, MO_EPOLICY}, {403, MO_EPOLICY},
        {404, MO_ENOTFOUND}, {409, MO_EEXISTS},
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++)
        if (rows[i].status == status)
            return rows[i].code;
    return MO_EUNAVAIL;
}

/* The engine's message: {"message": "..."}. */
static void status_error(const struct mo_engine_reply *r, struct mo_err *e)
{
    mo_autobuf struct mo_buf words = {.max = 640};

    if (mo_json_str_buf(mo_json_get(r->json, "message"), &words) < 0)
        mo_buf_reset(&words);
    (void)mo_fail(e, code_of(r->status), "the engine answered %d%s%.159s",
                  r->status, words.len ? ": " : "", mo_buf_cstr(&words));
}

static void call_free(struct mo_engine_call *c)
{
    mo_buf_fini(&c->body);
    mo_free(c);
}

/* e: of the transport; code 0: none. */
static void finish_call(struct mo_engine_call *c, struct mo_err e)
{
    struct mo_engine_reply r = {.status = c->status,
                                .body = mo_buf_view(&c->body)};
    struct mo_json_doc doc;

    if (r.body.n && mo_json_parse(r.body, 0, &doc, NULL) == 0)
        r.json = doc.root;
    if (!e.code && mo_buf_err(&c->body))
        (void)mo_fail(&e, mo_buf_err(&c->body), "engine's answer");
    else if (!e.code && (c->status >= 400 || (c->attached && !c->told)))
        status_error(&r, &e);
    if (!c->attached)
        c->done(c->ctx, &r, e.code ? &e : NULL);
    else if (!c->told) /* else take_over() has answered already */
        c->attached(c->ctx, NULL, MO_SPAN(""), e.code ? &e : NULL);
    call_free(c);
}

/* --- what httpu tells ---------------------------------------------------- */

static void take_over(struct mo_engine_call *c)
{
    struct mo_stream *s;
    struct mo_span early;

    if (mo_httpu_hijack(c->x, &s, &early, NULL) < 0)
        return;
    c->told = true;
    c->attached(c->ctx, s, early, NULL);
}

static void on_head(void *ctx, const struct mo_http_head *h)
{
    struct mo_engine_call *c = ctx;

    c->status = h->status;
    if (c->attached && (h->status == 101 || h->status == 200))
        take_over(c);
    else if (c->on_head && h->status < 300)
        c->on_head(c->ctx);
}

static void on_data(void *ctx, struct mo_span data)
{
    struct mo_engine_call *c = ctx;

    if (c->on_data && c->status < 300)
        c->on_data(c->ctx, data);
    else
        (void)mo_buf_span(&c->body, data); /* an error is seen in finish() */
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct mo_engine_call *c = ctx;
    struct mo_err e = why ? *why : (struct mo_err){0};

    c->x = NULL;
    if (e.code == MO_EIO || e.code == MO_ECLOSED)
        e.code = MO_EUNAVAIL;
    finish_call(c, e);
}

static const struct mo_http_cb http_cb = {on_head, on_data, on_done};

/* --- asking -------------------------------------------------------------- */

static int begin_call(struct mo_engine *en, struct mo_engine_call *c,
                      const struct mo_engine_req *req, struct mo_err *e)
{
    static const struct mo_http_header attach_headers[] = {
        {MO_SPAN("Connection"), MO_SPAN("Upgrade")},
        {MO_SPAN("Upgrade"), MO_SPAN("tcp")},
    };
    struct mo_http_header type = {
        MO_SPAN("Content-Type"),
        mo_span_cstr(req->type ? req->type : "application/json")};
    char url[MO_ENGINE_PATH_MAX];
    unsigned total = req->total_ms ? req->total_ms : ANSWER_MS;
    struct mo_http_call call = {
        .method = req->method,
        .url = url,
        .headers = c->attached ? attach_headers : &type,
        .nheaders = c->attached   ? 2
                    : req->body.p ? 1
                                  : 0,
        .body = req->body,
        .idle_ms = req->stream ? MO_HTTP_FOREVER : STREAM_IDLE_MS,
        .total_ms = req->stream ? req->total_ms : total,
        .max_bytes = req->stream
                         ? (req->max_bytes ? req->max_bytes : UINT64_MAX)
                         : REPLY_MAX,
    };
    int n = en->api ? snprintf(url, sizeof(url), "/v1.%u%s", en->api, req->path)
                    : snprintf(url, sizeof(url), "%s", req->path);

    if (n < 0 || (size_t)n >= sizeof(url))
        return mo_fail(e, MO_ETOOBIG, "request to the engine");
    return mo_httpu_start(en->http, &call, &http_cb, c, &c->x, e);
}

/* Starts the call, which it takes. */
static int launch_call(struct mo_engine *en, struct mo_engine_call call,
                       const struct mo_engine_req *req,
                       struct mo_engine_call **out, struct mo_err *e)
{
    struct mo_engine_call *c = mo_new(struct mo_engine_call);
    int rc;

    if (!c)
        return mo_fail(e, MO_ENOMEM, "request to the engine");
    *c = call;
    mo_buf_init(&c->body, REPLY_MAX);
    rc = begin_call(en, c, req, e);
    if (rc < 0)
        call_free(c);
    else if (out)
        *out = c;
    return rc;
}

int mo_engine_ask(struct mo_engine *en, const struct mo_engine_req *req,
                  mo_engine_done *done, void *ctx, struct mo_engine_call **out,
                  struct mo_err *e)
{
    struct mo_engine_call call = {.done = done,
                                  .ctx = ctx,
                                  .on_head = req->on_head,
                                  .on_data = req->on_data};

    return launch_call(en, call, req, out, e);
}

int mo_engine_attach(struct mo_engine *en, const char *id,
                     mo_engine_attached *done, void *ctx,
                     struct mo_engine_call **out, struct mo_err *e)
{
    char path[MO_ENGINE_PATH_MAX];
    struct mo_engine_req req = {.method = "POST", .path = path};
    struct mo_engine_call call = {.attached = done, .ctx = ctx};

    if (!mo_engine_is_name(mo_span_cstr(id)))
        return mo_fail(e, MO_EINVAL, "container id");
    (void)snprintf(path, sizeof(path),
                   "/containers/%s/attach"
                   "?stream=1&stdin=1&stdout=1&stderr=1",
                   id);
    return launch_call(en, call, &req, out, e);
}

void mo_engine_cancel(struct mo_engine_call *c)
{
    if (c->x)
        mo_httpu_cancel(c->x);
}

bool mo_engine_is_name(struct mo_span s)
{
    return s.n > 0 && s.n <= 128 && !strchr(".-:", s.p[0]) &&
           mo_span_only(s, MO_ALNUM "_.-:");
}

int mo_engine_put_filter(struct mo_buf *b, const char *path, const char *type,
                         const char *label)
{
    mo_autobuf struct mo_buf json = {.max = 1024};
    struct mo_jw w = mo_jw_object(&json);

    mo_jw_member_raw(&w, "type", mo_span_cstr(type));
    mo_jw_member_arr(&w, "label");
    mo_jw_cstr(&w, label);
    mo_jw_end_all(&w);
    (void)mo_buf_puts(b, path);
    (void)mo_pct_encode(b, mo_buf_view(&json));
    mo_buf_pass_err(b, &json);
    return mo_buf_err(b);
}

/* --- its address --------------------------------------------------------- */

struct address {
    char dial[MO_ENGINE_HOST_MAX]; /* as mo_dial() takes it */
    char host[MO_ENGINE_HOST_MAX]; /* Host header and certificate's name */
    bool tcp;
};

static int read_tcp(const struct mo_url *u, bool tls, struct address *a)
{
    bool v6 = u->ipv6;
    unsigned port = u->port ? u->port : tls ? 2376u : 2375u;

    a->tcp = true;
    (void)snprintf(a->host, sizeof(a->host), "%.*s", (int)u->host.n, u->host.p);
    return snprintf(a->dial, sizeof(a->dial), "%s%.*s%s:%u", v6 ? "[" : "",
                    (int)u->host.n, u->host.p, v6 ? "]" : "", port);
}

static int read_host(const char *text, bool tls, struct address *a,
                     struct mo_err *e)
{
    struct mo_url u;
    struct mo_err why;
    int n;

    if (mo_url_parse(mo_span_cstr(text), &u, &why) < 0)
        return mo_fail(e, MO_EINVAL, "engine address '%s': %s", text, why.msg);
    if (mo_span_is(u.scheme, "unix")) {
        n = snprintf(a->dial, sizeof(a->dial), "unix:%.*s", (int)u.path.n,
                     u.path.p);
        (void)snprintf(a->host, sizeof(a->host), "localhost");
    } else if (mo_span_is(u.scheme, "tcp")) {
        n = read_tcp(&u, tls, a);
    } else {
        return mo_fail(e, MO_EINVAL,
                       "engine address '%s': must begin with unix:// or tcp://",
                       text);
    }
    if (n < 0 || (size_t)n >= sizeof(a->dial))
        return mo_fail(e, MO_ETOOBIG, "engine address");
    return 0;
}

static int load_certs(struct mo_engine *en, const char *dir, struct mo_err *e)
{
    char ca[512], cert[512], key[512];
    struct mo_tls_client_opts o = {.ca = ca, .cert = cert, .key = key};

    (void)snprintf(ca, sizeof(ca), "%s/ca.pem", dir);
    (void)snprintf(cert, sizeof(cert), "%s/cert.pem", dir);
    (void)snprintf(key, sizeof(key), "%s/key.pem", dir);
    en->tls = mo_tls_client_new(&o, e);
    return en->tls ? 0 : MO_ETLS;
}

static void engine_free(struct mo_engine *en)
{
    mo_tls_free(en->tls);
    mo_free(en);
}

static int open_http(struct mo_engine *en, const struct mo_engine_opts *o,
                     struct mo_err *e)
{
    struct address a = {.tcp = false};
    struct mo_httpu_opts h = {.addr = a.dial,
                              .host = a.host,
                              .conns = CONNS,
                              .waiting = WAITING,
                              .idle = IDLE};

    if (read_host(o->host, o->certs != NULL, &a, e) < 0)
        return MO_EINVAL;
    if (a.tcp && o->certs && load_certs(en, o->certs, e) < 0)
        return MO_ETLS;
    h.tls = en->tls;
    h.sni = en->tls ? a.host : NULL;
    en->http = mo_httpu_new(en->loop, &h, e);
    return en->http ? 0 : MO_ENOMEM;
}

struct mo_engine *mo_engine_new(struct mo_loop *l,
                                const struct mo_engine_opts *o,
                                struct mo_err *e)
{
    struct mo_engine *en = mo_new(struct mo_engine);

    if (!en)
        return mo_null(mo_fail(e, MO_ENOMEM, "engine"));
    en->loop = l;
    (void)snprintf(en->host, sizeof(en->host), "%s", o->host);
    if (open_http(en, o, e) < 0) {
        engine_free(en);
        return NULL;
    }
    return en;
}

static void on_http_gone(void *ctx)
{
    struct mo_engine *en = ctx;
    struct mo_gone gone = en->gone;

    engine_free(en);
    mo_gone_fire(gone);
}

void mo_engine_close(struct mo_engine *en, void (*gone)(void *ctx), void *ctx)
{
    en->gone = (struct mo_gone){gone, ctx};
    mo_httpu_close(en->http, on_http_gone, en);
}

const char *mo_engine_host(const struct mo_engine *en)
{
    return en->host;
}

/* --- what it is ---------------------------------------------------------- */

struct hello {
    struct mo_engine *en;
    struct mo_engine_facts f;
    mo_engine_greeted *done;
    void *ctx;
};

static void finish_hello(struct hello *h, const struct mo_err *why)
{
    struct mo_err e;

    if (why) {
        e = *why;
        (void)mo_wrap(&e, "engine at %s", h->en->host);
    } else {
        h->en->facts = h->f;
    }
    h->done(h->ctx, why ? NULL : &h->en->facts, why ? &e : NULL);
    mo_free(h);
}

/* "1.41" -> 41; 0 if it is malformed. */
static unsigned minor_of(struct mo_json v)
{
    char s[16];
    uint64_t n;

    (void)mo_json_str_copy(v, s, sizeof(s));
    if (strncmp(s, "1.", 2) != 0 || mo_span_u64(mo_span_cstr(s + 2), &n) < 0 ||
        n > 999)
        return 0;
    return (unsigned)n;
}

/* SecurityOptions: ["name=seccomp,profile=default", "name=userns"]. */
static bool has_security(struct mo_json info, const char *name)
{
    char s[64];

    mo_json_each (at, mo_json_get(info, "SecurityOptions")) {
        struct mo_span rest, word;

        (void)mo_json_str_copy(at.val, s, sizeof(s));
        rest = mo_span_cstr(s);
        word = mo_span_cut(&rest, ',');
        if (mo_span_starts(word, MO_SPAN("name=")) &&
            mo_span_is(mo_span_skip(word, 5), name))
            return true;
    }
    return false;
}

static void on_info(void *ctx, const struct mo_engine_reply *r,
                    const struct mo_err *why)
{
    struct hello *h = ctx;

    if (why || !mo_json_is(r->json, MO_JSON_OBJECT)) {
        finish_hello(
            h, why ? why : mo_error(MO_EPROTO, "its /info is not an object"));
        return;
    }
    h->f.seccomp = has_security(r->json, "seccomp");
    h->f.userns = has_security(r->json, "userns");
    h->f.memory_limit = mo_json_flag(r->json, "MemoryLimit");
    h->f.swap_limit = mo_json_flag(r->json, "SwapLimit");
    h->f.pids_limit = mo_json_flag(r->json, "PidsLimit");
    h->f.cpu_quota = mo_json_flag(r->json, "CpuCfsQuota");
    finish_hello(h, NULL);
}

static bool is_podman(struct mo_json version)
{
    mo_json_each (at, mo_json_get(version, "Components"))
        if (mo_json_str_eq(mo_json_get(at.val, "Name"),
                           MO_SPAN("Podman Engine")))
            return true;
    return false;
}

static int agree_version(struct hello *h, struct mo_json version,
                         struct mo_err *e)
{
    unsigned newest = minor_of(mo_json_get(version, "ApiVersion"));
    unsigned oldest = minor_of(mo_json_get(version, "MinAPIVersion"));

    if (newest < MO_ENGINE_API_MIN || oldest > MO_ENGINE_API_MAX)
        return mo_fail(
            e, MO_EUNAVAIL,
            "it supports API 1.%u to 1.%u; this program 1.%u to 1.%u", oldest,
            newest, MO_ENGINE_API_MIN, MO_ENGINE_API_MAX);
    h->f.api = newest < MO_ENGINE_API_MAX ? newest : MO_ENGINE_API_MAX;
    h->f.podman = is_podman(version);
    (void)mo_json_str_copy(mo_json_get(version, "Version"), h->f.version,
                           sizeof(h->f.version));
    (void)mo_json_str_copy(mo_json_get(version, "Arch"), h->f.arch,
                           sizeof(h->f.arch));
    return 0;
}

static void on_version(void *ctx, const struct mo_engine_reply *r,
                       const struct mo_err *why)
{
    static const struct mo_engine_req info = {.path = "/info"};
    struct hello *h = ctx;
    struct mo_err e;
    int rc = why ? why->code : agree_version(h, r->json, &e);

    if (rc == 0) {
        h->en->api = h->f.api;
        rc = mo_engine_ask(h->en, &info, on_info, h, NULL, &e);
    }
    if (rc < 0)
        finish_hello(h, why ? why : &e);
}

/* /version needs no version in its path, so it is asked first. */
int mo_engine_hello(struct mo_engine *en, mo_engine_greeted *done, void *ctx,
                    struct mo_err *e)
{
    static const struct mo_engine_req version = {.path = "/version"};
    struct hello *h = mo_new(struct hello);
    int rc;

    if (!h)
        return mo_fail(e, MO_ENOMEM, "engine");
    *h = (struct hello){.en = en, .done = done, .ctx = ctx};
    en->api = 0;
    rc = mo_engine_ask(en, &version, on_version, h, NULL, e);
    if (rc < 0)
        mo_free(h);
    return rc;
}
