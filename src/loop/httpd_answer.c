/* httpd_answer.c - the answer side of httpd.h: functions that handlers call.
 *
 * Everything here writes to the connection's stream at once; bytes that the
 * kernel does not take are queued. httpd.c continues with the next request
 * (invariant 2 of httpd_priv.h). */
#include <stdio.h>

#include "codec/json/json.h"
#include "loop/httpd_priv.h"

#define PROBLEM_MAX ((size_t)1024)        /* body of a problem answer, bytes */
#define CROWD_MAX   16u                   /* see crowd_max() */
#define PART        ((size_t)1024 * 1024) /* of a long answer */

static void put_date(struct mo_httpd *h)
{
    uint64_t wall = mo_wall_ms();
    char text[MO_HTTPDATE_MAX];

    mo_wall_httpdate(wall, text);
    (void)mo_http1_put_header(&h->scratch, "Date", mo_span_cstr(text));
    h->lead.until = mo_loop_now(h->loop) + (1000 - wall % 1000) * MO_MS;
}

/* The lines of every answer, but the policy. */
static void put_without_policy(struct mo_buf *b, struct mo_span lines)
{
    while (lines.n) {
        struct mo_span line = mo_span_cut(&lines, '\n');

        if (mo_span_starts(line, MO_SPAN("Content-Security-Policy:")))
            continue;
        mo_buf_span(b, line);
        mo_buf_putc(b, '\n');
    }
}

/* The lines that do not depend on the request; ctype "" = none. own: the answer
 * has its own policy. */
static void put_first_lines(struct mo_httpd *h, int status, const char *ctype,
                            bool own)
{
    struct mo_buf *b = &h->scratch;

    if (h->lead.len && !own && !b->err && status == h->lead.status &&
        mo_loop_now(h->loop) < h->lead.until &&
        strcmp(ctype, h->lead.ctype) == 0) {
        b->len = h->lead.len; /* reuse the lines of the previous answer */
        return;
    }
    mo_buf_reset(b);
    (void)mo_http1_put_status(b, status);
    put_date(h);
    if (own)
        put_without_policy(b, h->o.headers);
    else
        mo_buf_span(b, h->o.headers);
    if (ctype[0])
        (void)mo_http1_put_header(b, "Content-Type", mo_span_cstr(ctype));
    h->lead.len = 0;
    if (own || b->err || strlen(ctype) >= sizeof(h->lead.ctype))
        return;
    h->lead.len = b->len;
    h->lead.status = status;
    (void)snprintf(h->lead.ctype, sizeof(h->lead.ctype), "%s", ctype);
}

/* Write the status line and all headers to h->scratch. length < 0: streamed. */
static void put_head(struct conn *c, int status, const char *ctype,
                     int64_t length)
{
    struct mo_buf *b = &c->h->scratch;

    c->status = status;
    put_first_lines(c->h, status, ctype ? ctype : "", c->own_policy);
    mo_buf_span(b, mo_buf_view(&c->headers));
    if (!c->cached)
        mo_buf_span(b, MO_SPAN("Cache-Control: no-store\r\n"));
    if (length >= 0 && status != 204 && status != 304) {
        mo_buf_span(b, MO_SPAN("Content-Length: "));
        mo_buf_u64(b, (uint64_t)length);
        mo_buf_span(b, MO_SPAN("\r\n"));
    } else if (c->chunked) {
        mo_buf_span(b, MO_SPAN("Transfer-Encoding: chunked\r\n"));
    }
    if (!c->keep)
        mo_buf_span(b, MO_SPAN("Connection: close\r\n"));
    else if (c->rq.head && c->rq.head->minor == 0)
        mo_buf_span(b, MO_SPAN("Connection: keep-alive\r\n"));
    (void)mo_http1_put_end(b);
}

static int send_out(struct conn *c, const struct mo_span *v, size_t n)
{
    int rc = mo_stream_writev(c->s, v, n);

    for (size_t i = 0; rc == 0 && i < n; i++)
        c->h->stats.bytes_out += v[i].n;
    return rc;
}

/* Send the head in h->scratch and the body behind it. */
static void send_head(struct conn *c, struct mo_span body)
{
    struct mo_span v[2] = {mo_buf_view(&c->h->scratch), body};

    if (mo_buf_err(&c->h->scratch) || mo_buf_err(&c->headers) ||
        send_out(c, v, body.n ? 2 : 1) < 0)
        mo_stream_close(c->s, NULL);
}

static void finished_answer(struct conn *c)
{
    c->answered = true;
    c->streaming = false;
    mo_httpd_conn_kick(c);
}

static bool is_head(const struct conn *c)
{
    return c->rq.head && c->rq.head->method == MO_HTTP_HEAD;
}

void mo_req_reply(struct mo_req *rq, int status, const char *ctype,
                  struct mo_span body)
{
    struct conn *c = conn_of(rq);

    MO_BUG_ON(c->started);
    c->started = true;
    if (!c->whole)
        c->keep = false; /* the rest of the request will not be read */
    put_head(c, status, ctype, (int64_t)body.n);
    send_head(c, is_head(c) ? mo_span(NULL, 0) : body);
    finished_answer(c);
}

void mo_req_problem(struct mo_req *rq, int status, const char *code,
                    const char *detail)
{
    mo_autobuf struct mo_buf b = {.max = PROBLEM_MAX};
    struct mo_jw w = mo_jw_object(&b);

    mo_jw_member_cstr(&w, "type", "about:blank");
    mo_jw_member_cstr(&w, "title", mo_http_reason(status));
    mo_jw_member_i64(&w, "status", status);
    mo_jw_member_cstr(&w, "code", code);
    mo_jw_member_cstr(&w, "detail", detail);
    mo_jw_end(&w);
    mo_req_reply(rq, status, "application/problem+json", mo_buf_view(&b));
}

void mo_req_header(struct mo_req *rq, const char *name, struct mo_span value)
{
    struct conn *c = conn_of(rq);

    MO_BUG_ON(c->started);
    MO_BUG_ON(mo_http1_put_header(&c->headers, name, value) == MO_EINVAL);
    if (strcmp(name, "Cache-Control") == 0)
        c->cached = true;
    if (strcmp(name, "Content-Security-Policy") == 0)
        c->own_policy = true;
}

void mo_req_start(struct mo_req *rq, int status, const char *ctype)
{
    struct conn *c = conn_of(rq);

    MO_BUG_ON(c->started);
    c->started = true;
    c->streaming = true;
    c->chunked = rq->head->minor >= 1;
    if (!c->chunked || !c->whole)
        c->keep = false;
    put_head(c, status, ctype, -1);
    send_head(c, mo_span(NULL, 0));
    mo_httpd_conn_touch(c);
}

void mo_req_start_sized(struct mo_req *rq, int status, const char *ctype,
                        uint64_t length)
{
    struct conn *c = conn_of(rq);

    MO_BUG_ON(c->started || length > INT64_MAX);
    c->started = c->streaming = c->sized = true;
    c->left = length;
    if (!c->whole)
        c->keep = false;
    put_head(c, status, ctype, (int64_t)length);
    send_head(c, mo_span(NULL, 0));
    mo_httpd_conn_touch(c);
}

int mo_req_write(struct mo_req *rq, struct mo_span data)
{
    struct conn *c = conn_of(rq);
    struct mo_span v[3] = {{NULL, 0}, data, MO_SPAN("\r\n")};
    char size[24];
    int rc;

    MO_BUG_ON(!c->streaming);
    if (!data.n || is_head(c))
        return 0;
    MO_BUG_ON(c->sized && data.n > c->left);
    c->left -= c->sized ? data.n : 0;
    if (!c->chunked) {
        rc = send_out(c, &data, 1);
    } else {
        v[0].p = size;
        v[0].n = (size_t)snprintf(size, sizeof(size), "%zx\r\n", data.n);
        rc = send_out(c, v, 3);
    }
    if (mo_stream_queued(c->s))
        mo_httpd_conn_touch(c);
    return rc;
}

size_t mo_req_queued(const struct mo_req *rq)
{
    const struct conn *c = conn_of(rq);

    return c->s ? mo_stream_queued(c->s) : 0;
}

void mo_req_on_drain(struct mo_req *rq, void (*drain)(struct mo_req *rq))
{
    conn_of(rq)->drain = drain;
}

void mo_req_end(struct mo_req *rq)
{
    struct conn *c = conn_of(rq);
    struct mo_span last = MO_SPAN("0\r\n\r\n");

    MO_BUG_ON(!c->streaming);
    if ((c->chunked && !is_head(c) && send_out(c, &last, 1) < 0) ||
        (c->sized && !is_head(c) && c->left))
        mo_stream_close(c->s, NULL);
    finished_answer(c);
}

/* Sends the next parts of a long answer, until the kernel takes no more. */
static void send_parts(struct mo_req *rq)
{
    struct conn *c = conn_of(rq);

    while (c->rest.n && mo_req_queued(rq) == 0) {
        struct mo_span part =
            mo_span_take(&c->rest, c->rest.n < PART ? c->rest.n : PART);

        if (mo_req_write(rq, part) < 0) {
            mo_req_abort(rq);
            return;
        }
    }
    if (c->rest.n == 0 && c->streaming)
        mo_req_end(rq);
}

void mo_req_reply_long(struct mo_req *rq, int status, const char *ctype,
                       struct mo_span body)
{
    struct conn *c = conn_of(rq);

    if (body.n <= PART || is_head(c)) {
        mo_req_reply(rq, status, ctype, body);
        return;
    }
    mo_req_start_sized(rq, status, ctype, body.n);
    c->rest = body;
    mo_req_on_drain(rq, send_parts);
    send_parts(rq);
}

void mo_req_abort(struct mo_req *rq)
{
    struct conn *c = conn_of(rq);

    if (c->s)
        mo_stream_close(c->s, NULL);
}

void mo_httpd_conn_refuse(struct conn *c, int status, const char *code,
                          const char *detail)
{
    c->h->stats.bad++;
    c->keep = false;
    c->whole = false;
    c->body_done = NULL;
    c->body_part = NULL;
    if (c->started) { /* the answer has begun: too late for another */
        mo_stream_close(c->s, NULL);
        return;
    }
    c->phase = HANDLED;
    c->live = true;
    if (!c->rq.head)
        c->rq.gone = NULL;
    mo_req_problem(&c->rq, status, code, detail);
}

/* Connections at a time that are told "too many": a part of those that the
 * peer leaves to others, in all processes. */
static unsigned crowd_max(const struct mo_httpd *h)
{
    const struct mo_httpd_limits *m = &h->o.limits;
    unsigned parts = 2 * (h->o.crowd.all ? h->o.crowd.count : 1);
    unsigned rest =
        m->connections > m->per_peer ? m->connections - m->per_peer : 0;

    return rest / parts < CROWD_MAX ? rest / parts : CROWD_MAX;
}

void mo_httpd_conn_crowd(struct conn *c)
{
    struct mo_httpd *h = c->h;

    h->stats.crowded++;
    mo_log_about(h->loop->log, MO_DEBUG, "httpd",
                 &(struct mo_log_facts){.from = mo_stream_peer(c->s)},
                 "connection refused: the peer has %u, "
                 "server.limits.connectionsPerPeer is %u",
                 mo_peers_count(c->s->counted) - 1, h->o.limits.per_peer);
    if (h->crowded >= crowd_max(h)) {
        mo_stream_close(c->s, NULL);
        return;
    }
    h->crowded++;
    c->crowded = true;
    mo_httpd_conn_refuse(c, 503, "too_many_connections",
                         "too many connections from your address");
}

/* --- upgrade and end ----------------------------------------------------- */

static void await_body(struct conn *c)
{
    struct mo_span go = MO_SPAN("HTTP/1.1 100 Continue\r\n\r\n");

    c->phase = BODY;
    c->body_since = mo_loop_now(c->h->loop);
    if (c->rq.head->expect_continue && !c->whole)
        (void)send_out(c, &go, 1);
    mo_httpd_conn_touch(c);
    mo_httpd_conn_kick(c);
}

void mo_req_body(struct mo_req *rq, size_t max,
                 void (*done)(struct mo_req *rq, struct mo_span body))
{
    struct conn *c = conn_of(rq);
    size_t most = c->h->o.limits.body;

    MO_BUG_ON(c->started || c->body_done);
    c->body_max = max && max < most ? max : most;
    c->body_done = done;
    c->body.max = c->body_max;
    if (rq->head->content_length > (int64_t)c->body_max) {
        mo_httpd_conn_refuse(c, 413, "body_too_big",
                             "the request body is too big");
        return;
    }
    await_body(c);
}

void mo_req_body_parts(struct mo_req *rq, uint64_t max,
                       void (*part)(struct mo_req *rq, struct mo_span part,
                                    bool last))
{
    struct conn *c = conn_of(rq);

    MO_BUG_ON(c->started || c->body_done || c->body_part);
    c->parts_max = max;
    c->body_part = part;
    if (rq->head->content_length > 0 &&
        (uint64_t)rq->head->content_length > max) {
        mo_httpd_conn_refuse(c, 413, "body_too_big",
                             "the request body is too big");
        return;
    }
    await_body(c);
}

void mo_req_body_pause(struct mo_req *rq, bool paused)
{
    struct conn *c = conn_of(rq);
    uint64_t now = mo_loop_now(c->h->loop);

    if (paused == (c->body_paused != 0) || !c->s)
        return;
    if (!paused) {
        c->body_since += now - c->body_paused;
        c->body_paused = 0;
        mo_httpd_conn_touch(c);
        mo_httpd_conn_kick(c);
    } else {
        c->body_paused = now ? now : 1;
    }
}

static void hand_over(struct conn *c, struct mo_stream **out,
                      struct mo_span *early)
{
    mo_stream_pause(c->s);
    *out = c->s;
    *early = c->cur ? *c->cur : mo_buf_view(&c->in);
    c->s = NULL;
    c->started = true;
    mo_timer_stop(c->h->loop, &c->timer);
    finished_answer(c);
}

int mo_req_upgrade(struct mo_req *rq, const char *protocol,
                   struct mo_stream **out, struct mo_span *early,
                   struct mo_err *e)
{
    struct conn *c = conn_of(rq);
    struct mo_buf *b = &c->h->scratch;
    struct mo_span head;

    MO_BUG_ON(c->started);
    c->h->lead.len = 0;
    mo_buf_reset(b);
    (void)mo_http1_put_status(b, 101);
    mo_buf_puts(b, "Connection: Upgrade\r\n");
    (void)mo_http1_put_header(b, "Upgrade", mo_span_cstr(protocol));
    mo_buf_span(b, mo_buf_view(&c->headers));
    (void)mo_http1_put_end(b);
    if (mo_buf_err(b) || mo_buf_err(&c->headers))
        return mo_fail(e, MO_ENOMEM, "upgrade");
    head = mo_buf_view(b);
    if (!c->s || send_out(c, &head, 1) < 0)
        return mo_fail(e, MO_ECLOSED,
                       "upgrade: the client closed the connection");
    c->status = 101;
    hand_over(c, out, early);
    return 0;
}

int mo_req_take(struct mo_req *rq, struct mo_stream **out,
                struct mo_span *early, struct mo_err *e)
{
    struct conn *c = conn_of(rq);

    MO_BUG_ON(c->started);
    if (!c->s)
        return mo_fail(e, MO_ECLOSED, "the client closed the connection");
    hand_over(c, out, early);
    return 0;
}

const char *mo_req_peer(const struct mo_req *rq)
{
    const struct conn *c = conn_of(rq);

    if (rq->from)
        return rq->from;
    return c->s ? mo_stream_peer(c->s) : "gone";
}

bool mo_req_is_own_user(const struct mo_req *rq)
{
    const struct conn *c = conn_of(rq);

    return c->s && mo_stream_is_own_user(c->s);
}

bool mo_req_is_inner(const struct mo_req *rq)
{
    return conn_of(rq)->inner;
}

bool mo_req_is_tls(const struct mo_req *rq)
{
    const struct conn *c = conn_of(rq);

    return c->inner ? c->h->o.tls != NULL : c->s && mo_stream_is_tls(c->s);
}
