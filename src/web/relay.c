#include "web/relay.h"

#include <errno.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#include "codec/text/base64.h"
#include "loop/httpu.h"
#include "peer/others.h"
#include "web/access_log.h"

#define CONNS_MAX  4096
#define HEADER     "Mo-Relay"
#define FORM       "1" /* of the facts */
#define FACTS_MAX  ((size_t)6 * 1024)
#define GROUPS_MAX ((size_t)4096)
#define QUEUE_HIGH ((size_t)256 * 1024)
#define BIG        (256 * 1024) /* bytes of an answer that is passed in parts */
#define WHOLE_MAX  ((size_t)64 * 1024 * 1024) /* bytes of an answer in one */

struct mo_relay {
    struct mo_loop *loop;
    struct mo_relay_opts o;
    struct mo_httpd *httpd; /* NULL: closed */
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    struct mo_list passes;
    unsigned passing; /* in that list */
    bool stopped, closing;
    struct mo_gone drained, gone;
    struct mo_later later; /* the end */
};

/* A request that is passed on, or asked. */
struct pass {
    struct mo_list node;
    struct mo_relay *r;
    struct mo_req *rq; /* NULL: the client has gone, or it is asked */
    struct mo_httpu *u;
    struct mo_httpu_x *x;
    bool streaming; /* the client's answer has begun */
    bool sized;     /* and has an end that is known */
    bool far;       /* to another machine */
    bool unsent;    /* known at the end */
    char to[MO_INSTANCE_MAX];
    int status;
    char ctype[96];
    struct mo_buf whole; /* an answer in one piece */
    mo_relay_done *done;
    void (*asked)(void *ctx, int status, struct mo_span body);
    void *ctx;
};

static void settle(struct mo_relay *r)
{
    if (r->closing && !r->httpd && r->passing == 0)
        mo_loop_defer(r->loop, &r->later);
}

/* --- facts about the sender ----------------------------------------------- */

static void put_text(struct mo_buf *b, const char *s)
{
    (void)mo_buf_put(b, s, strlen(s) + 1);
}

int mo_relay_facts(const struct mo_relay *r, const struct mo_req *rq,
                   struct mo_buf *out)
{
    mo_autobuf struct mo_buf b = {.max = FACTS_MAX};
    mo_autobuf struct mo_buf groups = {.max = GROUPS_MAX};
    char role[16];

    (void)snprintf(role, sizeof(role), "%d", rq->role);
    if (rq->who[0] && r->o.people && *r->o.people)
        mo_people_groups(*r->o.people, rq->who, &groups);
    put_text(&b, FORM);
    put_text(&b, rq->who);
    put_text(&b, rq->caller);
    put_text(&b, role);
    put_text(&b, rq->grant);
    put_text(&b, rq->door);
    put_text(&b, mo_req_peer(rq));
    put_text(&b, mo_buf_err(&groups) ? "" : mo_buf_cstr(&groups));
    return mo_buf_err(&b) ? mo_buf_err(&b)
                          : mo_base64url_put(out, mo_buf_view(&b));
}

int mo_relay_own_facts(struct mo_buf *out)
{
    static const char facts[] = FORM "\0\0\0"
                                     "0\0\0"
                                     "socket\0\0";

    return mo_base64url_put(out, mo_span(facts, sizeof(facts)));
}

static struct mo_span cut(struct mo_span *s)
{
    return mo_span_cut(s, '\0');
}

static bool copy(char *out, size_t max, struct mo_span s)
{
    if (!s.p || s.n >= max)
        return false;
    memcpy(out, s.p, s.n);
    out[s.n] = '\0';
    return true;
}

static const char *door_of(struct mo_span name)
{
    static const char *const doors[] = {"token", "page", "socket", "open"};

    for (size_t i = 0; i < MO_COUNT(doors); i++)
        if (mo_span_is(name, doors[i]))
            return doors[i];
    return NULL;
}

/* Every text of the facts ends with a NUL. */
static bool read_facts(struct mo_req *rq)
{
    mo_autobuf struct mo_buf b = {.max = FACTS_MAX};
    struct mo_span s;
    uint64_t role = 0;
    bool ok;

    if (mo_base64url_decode(mo_http_get(rq->head, HEADER), &b) < 0 || !b.len ||
        b.p[b.len - 1] != '\0')
        return false;
    rq->facts = mo_alloc(b.len);
    if (!rq->facts)
        return false;
    memcpy(rq->facts, b.p, b.len);
    s = mo_span(rq->facts, b.len);
    ok = mo_span_is(cut(&s), FORM) && copy(rq->who, sizeof(rq->who), cut(&s)) &&
         copy(rq->caller, sizeof(rq->caller), cut(&s)) &&
         mo_span_u64(cut(&s), &role) == 0 && role <= MO_ROLE_OPERATOR &&
         copy(rq->grant, sizeof(rq->grant), cut(&s));
    rq->role = (int)role;
    rq->door = door_of(cut(&s));
    rq->from = cut(&s).p;
    rq->groups = cut(&s).p;
    return ok && rq->door && rq->from && rq->groups;
}

/* --- requests of others --------------------------------------------------- */

static void on_request(void *ctx, struct mo_req *rq)
{
    struct mo_relay *r = ctx;

    rq->tag = "relay";
    if (read_facts(rq)) {
        r->o.handler(r->o.ctx, rq);
        return;
    }
    rq->from = NULL;
    mo_req_problem(rq, 400, "bad_relay", "the sender is not stated");
}

static void on_answered(void *ctx, const struct mo_req *rq, int status,
                        uint64_t ns)
{
    mo_access_log(mo_loop_log(((struct mo_relay *)ctx)->loop), rq, status, ns);
}

/* --- passing a request on ------------------------------------------------- */

/* Set anew for each connection, or meant for this process only. */
static bool is_passed(struct mo_span name)
{
    static const char *const not [] = {
        "Connection",
        "Keep-Alive",
        "Proxy-Connection",
        "TE",
        "Transfer-Encoding",
        "Content-Length",
        "Host",
        "Upgrade",
        "Expect",
        "Cookie",
        HEADER,
    };

    for (size_t i = 0; i < MO_COUNT(not ); i++)
        if (mo_span_ieq(name, mo_span_cstr(not [i])))
            return false;
    return name.n < 100;
}

static void pass_free(void *ctx)
{
    struct pass *p = ctx;
    struct mo_relay *r = p->r;

    mo_list_del(&p->node);
    mo_buf_fini(&p->whole);
    mo_free(p);
    r->passing--;
    settle(r);
}

static void on_client_gone(struct mo_req *rq)
{
    struct pass *p = rq->data;

    p->rq = NULL;
    if (p->x)
        mo_httpu_cancel(p->x);
}

static void on_client_drain(struct mo_req *rq)
{
    struct pass *p = rq->data;

    if (p && p->x)
        mo_httpu_pause(p->x, false);
}

static void pass_header(struct pass *p, const struct mo_http_head *h,
                        const char *name)
{
    struct mo_span v = mo_http_get(h, name);

    if (v.p)
        mo_req_header(p->rq, name, v);
}

static void pass_head(struct pass *p, const struct mo_http_head *h)
{
    static const char *const names[] = {
        "Mcp-Session-Id", "Cache-Control", "X-Accel-Buffering",
        "Allow",          "Retry-After",
    };

    for (size_t i = 0; i < MO_COUNT(names); i++)
        pass_header(p, h, names[i]);
}

static void on_head(void *ctx, const struct mo_http_head *h)
{
    struct pass *p = ctx;
    struct mo_span type = mo_http_get(h, "Content-Type");

    p->status = h->status;
    (void)snprintf(p->ctype, sizeof(p->ctype), "%.*s", (int)type.n,
                   type.n ? type.p : "");
    if (!p->rq)
        return;
    pass_head(p, h);
    if (!h->chunked && h->content_length < BIG)
        return;
    p->streaming = true;
    p->sized = !h->chunked;
    mo_req_on_drain(p->rq, on_client_drain);
    if (h->chunked)
        mo_req_start(p->rq, p->status, p->ctype);
    else
        mo_req_start_sized(p->rq, p->status, p->ctype,
                           (uint64_t)h->content_length);
}

static void on_data(void *ctx, struct mo_span data)
{
    struct pass *p = ctx;

    if (!p->streaming) {
        (void)mo_buf_span(&p->whole, data);
        return;
    }
    if (!p->rq)
        return;
    if (mo_req_write(p->rq, data) < 0)
        mo_req_abort(p->rq);
    else if (mo_req_queued(p->rq) > QUEUE_HIGH)
        mo_httpu_pause(p->x, true);
}

static void answer_whole(struct pass *p, struct mo_req *rq)
{
    if (mo_buf_err(&p->whole))
        mo_req_problem(rq, 503, "out_of_memory", "try again later");
    else
        mo_req_reply(rq, p->status, p->ctype[0] ? p->ctype : NULL,
                     mo_buf_view(&p->whole));
}

/* Nobody listens there. Any other failure to connect may pass. */
static bool is_dead(const struct mo_err *why)
{
    return why->code == MO_EUNAVAIL &&
           (why->sys == ECONNREFUSED || why->sys == ENOENT);
}

/* The client's answer is complete, or done() has to complete it. */
static void end_pass(struct pass *p, const struct mo_err *why)
{
    struct mo_req *rq = mo_take_ptr(&p->rq);
    enum mo_relay_end end = MO_RELAY_DONE;

    if (rq) {
        rq->data = NULL;
        rq->gone = NULL;
    }
    if (why)
        end = p->streaming              ? MO_RELAY_BEGUN
              : !p->far && is_dead(why) ? MO_RELAY_UNSENT
              : p->far && p->unsent     ? MO_RELAY_UNMET
                                        : MO_RELAY_SENT;
    else if (rq && p->streaming)
        mo_req_end(rq);
    else if (rq)
        answer_whole(p, rq);
    p->done(p->ctx, rq, end, why);
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct pass *p = ctx;

    p->unsent = mo_httpu_is_unsent(p->x);
    p->x = NULL;
    if (p->far && why && p->unsent && why->code != MO_ECANCELED)
        mo_cluster_failed(p->r->o.cluster, p->to, why);
    if (p->asked)
        p->asked(p->ctx, why || mo_buf_err(&p->whole) ? 0 : p->status,
                 mo_buf_view(&p->whole));
    else
        end_pass(p, why);
    mo_httpu_close(mo_take_ptr(&p->u), pass_free, p);
}

static const struct mo_http_cb pass_cb = {on_head, on_data, on_done};

/* A client for the process at that path. */
static struct mo_httpu *client_for(struct pass *p, const char *path,
                                   struct mo_err *e)
{
    struct mo_relay *r = p->r;
    char addr[sizeof(((struct mo_other *)NULL)->path) + 8];
    struct mo_httpu_opts o = {.addr = addr, .own_user = true};
    struct mo_span at = mo_span_cstr(path), name = mo_span_cut(&at, '@');

    (void)snprintf(addr, sizeof(addr), "unix:%s", path);
    p->far = path[0] != '/';
    if (!p->far)
        return mo_httpu_new(r->loop, &o, e);
    if (!r->o.cluster || name.n >= sizeof(p->to) || !at.n)
        return mo_null(mo_fail(e, MO_EUNAVAIL, "it is on another machine"));
    (void)snprintf(p->to, sizeof(p->to), "%.*s", (int)name.n, name.p);
    o = (struct mo_httpu_opts){
        .addr = at.p,
        .tls = mo_cluster_tls(r->o.cluster, MO_CLUSTER_HTTP),
        .sni = p->to,
        .loss_ms = MO_CLUSTER_LOSS_MS,
    };
    return mo_httpu_new(r->loop, &o, e);
}

static int start_pass(struct mo_relay *r, const char *path,
                      const struct mo_http_call *c, const struct pass *how,
                      struct pass **out, struct mo_err *e)
{
    struct pass *p = mo_new(struct pass);

    if (!p)
        return mo_fail(e, MO_ENOMEM, "relay");
    *p = *how;
    p->r = r;
    mo_buf_init(&p->whole, WHOLE_MAX);
    p->u = client_for(p, path, e);
    if (!p->u) {
        mo_free(p);
        return e->code;
    }
    r->passing++;
    mo_list_push(&r->passes, &p->node);
    if (mo_httpu_start(p->u, c, &pass_cb, p, &p->x, e) < 0) {
        mo_httpu_close(p->u, pass_free, p);
        return e->code;
    }
    *out = p;
    return 0;
}

int mo_relay_pass(struct mo_relay *r, const char *path, struct mo_req *rq,
                  struct mo_span body, mo_relay_done *done, void *ctx,
                  struct mo_err *e)
{
    mo_autobuf struct mo_buf facts = {.max = 2 * FACTS_MAX},
                             url = {.max = MO_HTTP_HEAD_MAX};
    struct mo_http_header headers[MO_HTTP_HEADERS_MAX + 1];
    const struct pass how = {.rq = rq, .done = done, .ctx = ctx};
    struct mo_http_call c = {
        .method = mo_http_method_name(rq->head->method),
        .headers = headers,
        .body = body,
        .connect_ms = path[0] == '/' ? 0 : MO_CLUSTER_DIAL_MS,
        .idle_ms = MO_HTTP_FOREVER,
        .max_bytes = UINT64_MAX,
    };
    struct pass *p = NULL;
    int rc = mo_relay_facts(r, rq, &facts);

    (void)mo_buf_span(&url, rq->head->target);
    c.url = mo_buf_cstr(&url);
    if (rc < 0 || mo_buf_err(&url))
        return mo_fail(e, MO_ENOMEM, "relay");
    for (size_t i = 0; i < rq->head->nheaders; i++)
        if (is_passed(rq->head->headers[i].name))
            headers[c.nheaders++] = rq->head->headers[i];
    headers[c.nheaders++] =
        (struct mo_http_header){MO_SPAN(HEADER), mo_buf_view(&facts)};
    rc = start_pass(r, path, &c, &how, &p, e);
    if (rc < 0)
        return rc;
    rq->data = p;
    rq->gone = on_client_gone;
    return 0;
}

int mo_relay_ask(struct mo_relay *r, const struct mo_relay_ask *q,
                 void (*done)(void *ctx, int status, struct mo_span body),
                 void *ctx, struct mo_err *e)
{
    const struct mo_http_header headers[] = {
        {MO_SPAN(HEADER), q->facts},
        {MO_SPAN("Content-Type"), MO_SPAN("application/json")},
    };
    const struct pass how = {.asked = done, .ctx = ctx};
    const struct mo_http_call c = {
        .method = q->method,
        .url = q->url,
        .headers = headers,
        .nheaders = MO_COUNT(headers),
        .body = q->body,
        .total_ms = q->ms ? q->ms : MO_RELAY_ASK_MS,
    };
    struct pass *p = NULL;

    return start_pass(r, q->path, &c, &how, &p, e);
}

/* --- life ----------------------------------------------------------------- */

static void on_over(struct mo_later *d)
{
    struct mo_relay *r = mo_container_of(d, struct mo_relay, later);
    struct mo_gone gone = r->gone;

    mo_free(r);
    mo_gone_fire(gone);
}

static void on_httpd_gone(void *ctx)
{
    struct mo_relay *r = ctx;

    r->httpd = NULL;
    mo_gone_fire(r->drained);
    settle(r);
}

static bool is_listening(const struct mo_req *rq)
{
    return rq->head->method == MO_HTTP_GET ||
           mo_span_is(mo_span_trim(mo_http_get(rq->head, "Mcp-Method")),
                      "subscriptions/listen");
}

/* A Socket.IO client waits for events. */
static bool is_poll(const struct mo_req *rq)
{
    return rq->head->method == MO_HTTP_GET &&
           mo_span_starts(rq->path, MO_SPAN("/socket.io/"));
}

/* A stream that carries only notifications would delay the end, and so would a
 * poll: its client connects to another server. */
static void end_listening(struct mo_relay *r)
{
    mo_list_each_entry (p, &r->passes, struct pass, node) {
        struct mo_req *rq = p->rq;

        if (!rq || p->sized || !(p->streaming ? is_listening(rq) : is_poll(rq)))
            continue;
        p->rq = NULL;
        rq->data = NULL;
        rq->gone = NULL;
        if (p->streaming)
            mo_req_end(rq);
        else
            mo_req_abort(rq);
        mo_httpu_cancel(p->x);
    }
}

static void on_far(void *ctx, struct mo_stream *s)
{
    mo_httpd_take(((struct mo_relay *)ctx)->httpd, s);
}

void mo_relay_stop(struct mo_relay *r, uint64_t grace_ms,
                   void (*drained)(void *ctx), void *ctx)
{
    MO_BUG_ON(r->stopped);
    r->stopped = true;
    r->drained = (struct mo_gone){drained, ctx};
    if (r->o.cluster)
        mo_cluster_take(r->o.cluster, MO_CLUSTER_HTTP, NULL, NULL);
    (void)unlink(r->path);
    end_listening(r);
    mo_httpd_close(r->httpd, grace_ms, on_httpd_gone, r);
}

void mo_relay_close(struct mo_relay *r, void (*gone)(void *ctx), void *ctx)
{
    MO_BUG_ON(!r->stopped);
    r->closing = true;
    r->gone = (struct mo_gone){gone, ctx};
    settle(r);
}

static int listen_at(struct mo_relay *r, struct mo_err *e)
{
    char addr[sizeof(r->path) + 8];
    const struct mo_listen_opts at = {.addr = addr};
    int n = snprintf(r->path, sizeof(r->path), "%s/%s" MO_OTHER_SUFFIX,
                     r->o.dir, r->o.instance);

    if (n < 0 || (size_t)n >= sizeof(r->path))
        return mo_fail(e, MO_ETOOBIG, "%s is too long for a socket in it",
                       r->o.dir);
    (void)snprintf(addr, sizeof(addr), "unix:%s", r->path);
    return mo_httpd_listen(r->httpd, &at, e);
}

int mo_relay_open(struct mo_loop *l, const struct mo_relay_opts *o,
                  struct mo_relay **out, struct mo_err *e)
{
    struct mo_relay *r = mo_new(struct mo_relay);
    struct mo_httpd_opts h = {
        .limits = o->limits,
        .handler = on_request,
        .done = on_answered,
        .own_user = true,
    };
    int rc;

    if (!r)
        return mo_fail(e, MO_ENOMEM, "relay");
    r->loop = l;
    r->o = *o;
    mo_list_init(&r->passes);
    mo_later_init(&r->later, on_over);
    h.limits.connections = h.limits.per_peer = CONNS_MAX;
    h.ctx = r;
    r->httpd = mo_httpd_new(l, &h, e);
    if (!r->httpd) {
        mo_free(r);
        return e->code;
    }
    rc = listen_at(r, e);
    if (rc < 0) {
        mo_relay_stop(r, 0, NULL, NULL);
        mo_relay_close(r, NULL, NULL);
        return rc;
    }
    if (o->cluster)
        mo_cluster_take(o->cluster, MO_CLUSTER_HTTP, on_far, r);
    *out = r;
    return 0;
}
