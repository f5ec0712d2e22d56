#include <stdio.h>

#include "codec/http/url.h"
#include "mcp/server/ep_sess.h"

#define BODY_MAX ((size_t)4 * 1024 * 1024)

static const struct mo_json none = {NULL, 0};
static const struct mo_span nothing = {NULL, 0};

/* State of a request until its body has arrived. */
struct post {
    struct mo_list node;  /* in h->posts, or in no list */
    struct mo_ep_http *h; /* NULL: the endpoint was closed meanwhile */
    char caller[MO_EP_CALLER_MAX];
};

/* --- access -------------------------------------------------------------- */

static bool check_default_gate(struct mo_req *rq)
{
    struct mo_span origin = mo_http_get(rq->head, "Origin");
    bool tls = mo_req_is_tls(rq);
    struct mo_host host;
    struct mo_url page;

    if (mo_host_parse(mo_http_get(rq->head, "Host"), tls ? 443 : 80, &host) <
            0 ||
        !mo_host_is_loopback(&host)) {
        mo_req_problem(rq, 403, "host_refused", "only localhost is served");
        return false;
    }
    if (!origin.p)
        return true;
    if (mo_origin_parse(origin, &page) < 0 ||
        !mo_origin_is_host(&page, &host, tls)) {
        mo_req_problem(rq, 403, "origin_refused",
                       "this page may not use the server");
        return false;
    }
    return true;
}

/* The gate accepted this origin, so its page may read the answer. */
static void allow_page(const struct mo_ep_http *h, struct mo_req *rq)
{
    struct mo_span origin = mo_http_get(rq->head, "Origin");

    if (!origin.p || h->o.has_cors)
        return;
    mo_req_header(rq, "Access-Control-Allow-Origin", origin);
    mo_req_header(rq, "Access-Control-Expose-Headers",
                  MO_SPAN("Mcp-Session-Id"));
    mo_req_header(rq, "Vary", MO_SPAN("Origin"));
}

static void answer_preflight(struct mo_req *rq)
{
    mo_req_header(rq, "Access-Control-Allow-Methods",
                  MO_SPAN("GET, POST, DELETE"));
    mo_req_header(rq, "Access-Control-Allow-Headers",
                  MO_SPAN("Authorization, Content-Type, Last-Event-ID, "
                          "MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, "
                          "Mcp-Name, traceparent, tracestate, baggage"));
    mo_req_reply(rq, 204, NULL, nothing);
}

/* --- headers ------------------------------------------------------------- */

static bool type_is(struct mo_span one, struct mo_span type)
{
    struct mo_span t = mo_span_trim(mo_span_cut(&one, ';'));
    struct mo_span kind = type;
    struct mo_span major = mo_span_cut(&kind, '/');

    if (mo_span_ieq(t, type) || mo_span_is(t, "*/*"))
        return true;
    return t.n == major.n + 2 && mo_span_starts(t, major) &&
           mo_span_ends(t, MO_SPAN("/*"));
}

static bool accepts(const struct mo_http_head *h, struct mo_span type)
{
    for (size_t i = 0; i < h->nheaders; i++) {
        struct mo_span list = h->headers[i].value;

        if (!mo_span_ieq(h->headers[i].name, MO_SPAN("Accept")))
            continue;
        while (list.p) {
            if (type_is(mo_span_cut(&list, ','), type))
                return true;
        }
    }
    return false;
}

static struct mo_span version_header(const struct mo_http_head *h)
{
    return mo_span_trim(mo_http_get(h, "MCP-Protocol-Version"));
}

/* Refuse with a JSON-RPC error, which MCP clients read. */
static void send_refusal(struct mo_ep_http *h, struct mo_req *rq, int status,
                         struct mo_json id, int code, const char *why)
{
    struct mo_span idtext = id.p ? mo_json_text(id) : MO_SPAN("null");
    struct mo_buf *b = mo_ep_scratch(h->ep);

    (void)mo_rpc_put_error(b, idtext, code, mo_span_cstr(why), nothing);
    mo_req_reply(rq, status, "application/json", mo_buf_view(b));
    mo_ep_scratch_done(h->ep);
}

/* Find the session that a request names; NULL: the request was answered. A
 * session of another caller does not exist. */
static struct hsess *find_session(struct mo_ep_http *h, struct mo_req *rq,
                                  const char *caller, struct mo_json id,
                                  struct mo_span body)
{
    struct mo_span sid = mo_span_trim(mo_http_get(rq->head, "Mcp-Session-Id"));
    struct mo_span ver = version_header(rq->head);
    struct hsess *s = mo_hsess_find(h, sid);
    int status = 400, code = -32000;
    const char *why = NULL;

    if (sid.n && !s && h->o.elsewhere &&
        h->o.elsewhere(h->o.ctx, h->o.view, rq, sid, body))
        return NULL;
    if (!sid.n) {
        why = "Bad Request: Mcp-Session-Id header is required";
    } else if (!s || !mo_span_is(s->s.caller, caller)) {
        status = 404;
        code = -32001;
        why = "Session not found";
    } else if (ver.p && mo_mcp_version(ver) == MO_MCP_UNKNOWN) {
        why = "Bad Request: Unsupported protocol version";
    }
    if (why) {
        send_refusal(h, rq, status, id, code, why);
        return NULL;
    }
    mo_hsess_touch(s);
    return s;
}

/* --- POST ---------------------------------------------------------------- */

/* NULL: out of memory; the request was answered. */
static struct answer *new_answer(struct mo_ep_http *h, struct hsess *s,
                                 struct mo_req *rq)
{
    struct answer *a = mo_answer_new(h, s, rq);

    if (!a)
        mo_req_problem(rq, 503, "out_of_memory", "try again later");
    return a;
}

static void on_modern(struct mo_ep_http *h, struct mo_req *rq,
                      const char *caller, const struct mo_rpc *m)
{
    struct mo_ep_from from = {.caller = mo_span_cstr(caller),
                              .grant = mo_span_cstr(rq->grant),
                              .head = rq->head,
                              .request = rq->number};
    struct answer *a;

    if (m->kind != MO_RPC_REQUEST) {
        mo_req_reply(rq, 202, NULL, nothing);
        return;
    }
    if (h->o.home && h->o.home->instance[0]) {
        from.home = h->o.home;
        from.view = h->o.view;
    }
    a = new_answer(h, NULL, rq);
    if (!a)
        return;
    a->modern = true;
    from.way = &a->way;
    mo_ep_modern(h->ep, &from, m);
}

static void on_initialize(struct mo_ep_http *h, struct mo_req *rq,
                          const char *caller, const struct mo_rpc *m)
{
    struct mo_ep_from from = {.caller = mo_span_cstr(caller)};
    struct hsess *s = mo_hsess_new(h, caller);
    struct answer *a = s ? mo_answer_new(h, s, rq) : NULL;

    if (!a) {
        if (s)
            mo_hsess_free(s);
        mo_req_header(rq, "Retry-After", MO_SPAN("5"));
        mo_req_problem(rq, 503, "too_many_sessions", "try again later");
        return;
    }
    a->fresh = true;
    from.way = &a->way;
    mo_ep_legacy(&s->s, &from, m);
    if (s->s.version == MO_MCP_UNKNOWN)
        mo_hsess_free(s);
}

static void dispatch_one(struct hsess *s, struct answer *a,
                         const struct mo_req *rq, const struct mo_rpc *m)
{
    struct mo_ep_from from = {.way = &a->way,
                              .caller = s->s.caller,
                              .grant = mo_span_cstr(rq->grant),
                              .head = rq->head,
                              .request = rq->number};

    mo_ep_legacy(&s->s, &from, m);
}

static void on_request(struct hsess *s, struct mo_req *rq,
                       const struct mo_rpc *m)
{
    bool primed = s->s.version >= MO_MCP_2025_11_25;
    struct answer *a = new_answer(s->h, s, rq);

    if (!a)
        return;
    a->held = true;
    dispatch_one(s, a, rq, m);
    if (mo_answer_release(a) && primed)
        mo_answer_soon(a); /* with an event id to reconnect with */
}

static void on_batch(struct hsess *s, struct mo_req *rq, struct mo_json arr)
{
    struct answer *a;

    if (s->s.version != MO_MCP_2025_03_26) {
        send_refusal(s->h, rq, 400, none, MO_RPC_INVALID_REQUEST,
                     "batches are not spoken here");
        return;
    }
    a = new_answer(s->h, s, rq);
    if (!a)
        return;
    a->pending++; /* a batch is always answered as a stream */
    mo_json_each (at, arr) {
        struct mo_rpc m;

        if (mo_rpc_parse(mo_json_text(at.val), &m, NULL) < 0)
            continue;
        a->pending += m.kind == MO_RPC_REQUEST;
        dispatch_one(s, a, rq, &m);
    }
    a->pending--;
    mo_answer_done(a);
}

static void on_legacy(struct mo_ep_http *h, struct mo_req *rq,
                      const char *caller, const struct mo_rpc *m)
{
    bool init = m->kind == MO_RPC_REQUEST &&
                mo_json_str_eq(m->method, MO_SPAN("initialize"));
    bool modern = mo_mcp_text_is_modern(version_header(rq->head));
    struct hsess *s;

    if (modern && m->kind == MO_RPC_REQUEST) {
        send_refusal(
            h, rq, 400, m->id,
            init ? MO_MCP_HEADER_MISMATCH : MO_RPC_INVALID_PARAMS,
            init ? "initialize does not go with this MCP-Protocol-Version"
                 : "params._meta lacks the request's protocol version");
        return;
    }
    if (init) {
        on_initialize(h, rq, caller, m);
        return;
    }
    s = find_session(h, rq, caller, m->id, mo_json_text(m->root));
    if (!s)
        return;
    if (m->kind == MO_RPC_BATCH) {
        on_batch(s, rq, m->root);
    } else if (m->kind == MO_RPC_REQUEST) {
        on_request(s, rq, m);
    } else {
        struct mo_ep_from from = {.caller = s->s.caller};

        mo_req_reply(rq, 202, NULL, nothing);
        mo_ep_legacy(&s->s, &from, m);
    }
}

static void on_message(struct mo_ep_http *h, struct mo_req *rq,
                       const char *caller, struct mo_span body)
{
    struct mo_rpc m;
    struct mo_err e;

    if (mo_rpc_parse(body, &m, &e) < 0)
        send_refusal(h, rq, 400, none, MO_RPC_PARSE_ERROR, e.msg);
    else if (m.kind == MO_RPC_INVALID)
        send_refusal(h, rq, 400, m.id, MO_RPC_INVALID_REQUEST, e.msg);
    else if (mo_ep_is_modern(&m))
        on_modern(h, rq, caller, &m);
    else
        on_legacy(h, rq, caller, &m);
}

static void post_gone(struct mo_req *rq)
{
    mo_list_del(&((struct post *)rq->data)->node);
    mo_free(rq->data);
    rq->data = NULL;
}

static void on_body(struct mo_req *rq, struct mo_span body)
{
    mo_autofree struct post *p = rq->data;

    mo_list_del(&p->node);
    rq->data = NULL;
    rq->gone = NULL;
    if (!p->h) {
        mo_req_problem(rq, 404, "not_found", "nothing is served at this path");
        return;
    }
    allow_page(p->h, rq);
    on_message(p->h, rq, p->caller, body);
}

static void on_post(struct mo_ep_http *h, struct mo_req *rq, const char *caller)
{
    struct post *p;

    if (!mo_http_is_type(rq->head, "application/json")) {
        send_refusal(h, rq, 415, none, -32000,
                     "Unsupported Media Type: Content-Type must be "
                     "application/json");
        return;
    }
    if (!accepts(rq->head, MO_SPAN("application/json")) ||
        !accepts(rq->head, MO_SPAN("text/event-stream"))) {
        send_refusal(
            h, rq, 406, none, -32000,
            "Not Acceptable: Client must accept both application/json and "
            "text/event-stream");
        return;
    }
    p = mo_new(struct post);
    if (!p) {
        mo_req_problem(rq, 503, "out_of_memory", "try again later");
        return;
    }
    p->h = h;
    mo_list_push(&h->posts, &p->node);
    (void)snprintf(p->caller, sizeof(p->caller), "%s", caller);
    rq->data = p;
    rq->gone = post_gone;
    mo_req_body(rq, h->o.body, on_body);
}

/* --- GET and DELETE ------------------------------------------------------ */

static bool require_legacy(struct mo_req *rq)
{
    if (!mo_mcp_text_is_modern(version_header(rq->head)))
        return true;
    mo_req_header(rq, "Allow", MO_SPAN("POST"));
    mo_req_problem(rq, 405, "method_not_allowed", "this revision uses POST");
    return false;
}

static void on_get(struct mo_ep_http *h, struct mo_req *rq, const char *caller)
{
    struct mo_span last;
    struct hsess *s;

    if (!accepts(rq->head, MO_SPAN("text/event-stream"))) {
        send_refusal(h, rq, 406, none, -32000,
                     "Not Acceptable: Client must accept text/event-stream");
        return;
    }
    s = find_session(h, rq, caller, none, nothing);
    if (!s)
        return;
    last = mo_span_trim(mo_http_get(rq->head, "Last-Event-ID"));
    if (last.n)
        mo_hsess_resume(s, rq, last);
    else
        mo_hsess_listen(s, rq);
}

static void on_delete(struct mo_ep_http *h, struct mo_req *rq,
                      const char *caller)
{
    struct mo_span sid = mo_span_trim(mo_http_get(rq->head, "Mcp-Session-Id"));
    struct hsess *s = find_session(h, rq, caller, none, nothing);

    if (!s)
        return;
    mo_hsess_free(s);
    if (h->o.ended && mo_ep_id_is(sid))
        h->o.ended(h->o.ctx, rq, sid);
    else
        mo_req_reply(rq, 204, NULL, nothing);
}

void mo_ep_http_handle(struct mo_ep_http *h, struct mo_req *rq)
{
    char caller[MO_EP_CALLER_MAX];

    caller[0] = '\0';
    if (!(h->o.gate ? h->o.gate(h->o.ctx, rq, caller) : check_default_gate(rq)))
        return;
    switch (rq->head->method) {
    case MO_HTTP_POST:
        on_post(h, rq, caller);
        break;
    case MO_HTTP_GET:
    case MO_HTTP_DELETE:
        allow_page(h, rq);
        if (require_legacy(rq))
            (rq->head->method == MO_HTTP_GET ? on_get : on_delete)(h, rq,
                                                                   caller);
        break;
    case MO_HTTP_OPTIONS:
        allow_page(h, rq);
        answer_preflight(rq);
        break;
    default:
        mo_req_header(rq, "Allow", MO_SPAN("GET, POST, DELETE"));
        mo_req_problem(rq, 405, "method_not_allowed",
                       "use POST, GET or DELETE");
    }
}

/* --- sessions of other processes ----------------------------------------- */

bool mo_ep_http_has(const struct mo_ep_http *h, struct mo_span id)
{
    return mo_hsess_find(h, id) != NULL;
}

int mo_ep_http_revive(struct mo_ep_http *h, const struct mo_ep_id *was,
                      struct mo_span id)
{
    struct hsess *s = mo_hsess_new(h, was->caller);
    uint64_t now = mo_wall_ms();
    int rc = s ? mo_hsess_rename(s, id) : MO_EBUSY;

    if (rc == 0)
        rc = mo_ep_sess_revive(&s->s, was->version, was->caps, was->client);
    if (rc < 0) {
        if (s)
            mo_hsess_free(s);
        return rc;
    }
    /* Above every number that the client knows: an event id of the old process
     * names no event of this one, and the GET stream goes on after it. */
    s->next_stream = now;
    s->get->seq = now;
    return 0;
}

void mo_ep_http_again(struct mo_ep_http *h, struct mo_req *rq,
                      struct mo_span body)
{
    char caller[MO_EP_CALLER_MAX];

    caller[0] = '\0';
    if (!(h->o.gate ? h->o.gate(h->o.ctx, rq, caller) : check_default_gate(rq)))
        return;
    if (rq->head->method == MO_HTTP_POST)
        on_message(h, rq, caller, body);
    else if (rq->head->method == MO_HTTP_GET)
        on_get(h, rq, caller);
    else
        on_delete(h, rq, caller);
}

/* --- life ---------------------------------------------------------------- */

static void on_sweep(struct mo_timer *t)
{
    struct mo_ep_http *h = mo_container_of(t, struct mo_ep_http, sweep);
    const struct mo_endpoint_limits *l = &h->ep->o.limits;
    uint64_t now = mo_loop_now(h->ep->loop);

    mo_list_each_safe (n, &h->answers)
        mo_answer_keepalive(mo_container_of(n, struct answer, node));
    mo_list_each_entry_safe (s, &h->sessions, struct hsess, node) {
        if (mo_hsess_idle(s) && s->used + l->session_ms * MO_MS <= now)
            mo_hsess_free(s);
    }
    mo_timer_start(h->ep->loop, &h->sweep, l->keepalive_ms);
}

struct mo_ep_http *mo_ep_http_new(struct mo_endpoint *ep,
                                  const struct mo_ep_http_opts *o,
                                  struct mo_err *e)
{
    struct mo_ep_http *h = mo_new(struct mo_ep_http);

    if (!h)
        return mo_null(mo_fail(e, MO_ENOMEM, "endpoint over HTTP"));
    h->ep = ep;
    h->o = *o;
    if (!h->o.body)
        h->o.body = BODY_MAX;
    /* One more: an id that replaces another is added first. */
    mo_map_init(&h->by_id, ep->o.limits.sessions + 1);
    mo_list_init(&h->sessions);
    mo_list_init(&h->answers);
    mo_list_init(&h->young);
    mo_list_init(&h->posts);
    mo_timer_init(&h->soon, mo_answer_on_soon);
    mo_buf_init(&h->sse, ep->o.limits.message + EP_SCRATCH_KEEP);
    mo_timer_init(&h->sweep, on_sweep);
    mo_timer_start(ep->loop, &h->sweep, ep->o.limits.keepalive_ms);
    return h;
}

/* End a modern answer that is still pending, listens included. */
static void end_answer(struct answer *a)
{
    struct mo_ep_call *c = a->way.call;

    if (c)
        mo_ep_listen_end(call_of(c), false);
    else if (a->pending)
        mo_answer_done(a);
    else
        mo_answer_cut(a);
}

void mo_ep_http_drain(struct mo_ep_http *h)
{
    mo_list_each_entry_safe (a, &h->answers, struct answer, node) {
        struct mo_ep_call *c = a->way.call;

        if (a->sess && a->sess->get == a)
            mo_answer_stop(a);
        else if (a->modern && c && call_of(c)->filter)
            mo_ep_listen_end(call_of(c), false);
    }
}

void mo_ep_http_free(struct mo_ep_http *h)
{
    if (!h)
        return;
    while (!mo_list_empty(&h->sessions))
        mo_hsess_free(mo_container_of(h->sessions.next, struct hsess, node));
    while (!mo_list_empty(&h->answers))
        end_answer(mo_container_of(h->answers.next, struct answer, node));
    mo_list_each_entry_safe (p, &h->posts, struct post, node) {
        mo_list_del(&p->node);
        p->h = NULL;
    }
    mo_timer_stop(h->ep->loop, &h->sweep);
    mo_timer_stop(h->ep->loop, &h->soon);
    mo_map_fini(&h->by_id);
    mo_buf_fini(&h->sse);
    mo_free(h);
}
