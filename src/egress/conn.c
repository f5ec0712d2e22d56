/* conn.c - one connection of a box. See relay.h.
 *
 * Resolve, connect to an address that the rule permits, compare the host of a
 * ClientHello, copy. `in` is the program's side, `out` the host's; `in` is not
 * read before `out` is connected, so the kernel holds what the program sends.
 * For a host with `inject` both become TLS streams then (edge.h).
 *
 * A connection without a rule waits for the asker's decision first. Its first
 * bytes are read for the question, and kept, and its program is looked for. If
 * the program ends its output meanwhile, the connection ends: nobody is asked
 * for a program that has gone.
 *
 * A connection ends once (end_conn) and is freed when its streams and its
 * attempt to connect are gone. */
#include <stdio.h>

#include "codec/client_hello.h"
#include "egress/relay_priv.h"

#define CONNECT_MS       10000 /* for each address */
#define QUEUE_HIGH       ((size_t)256 * 1024)
#define MOVE_AFTER       ((uint64_t)256 * 1024) /* bytes, then without copying */
#define FINISH_MS        30000 /* to send the rest after both sides have ended */
#define LOOK_MS          200 /* for the first bytes, before a person is asked */
#define SEARCH_MS        3000 /* and after that, for its program */
/* A search costs the box's keeper a few ms at most. */
#define SEARCHES_PER_S   2.0
#define SEARCHES_AT_ONCE 20.0

struct conn {
    struct mo_list node;    /* in x->conns */
    struct mo_list waiting; /* in name->waiting */
    struct mo_list asking;  /* in the list of a question */
    struct mo_egress *x;
    const struct mo_egress_rule *rule; /* NULL: not decided, or refused */
    struct mo_egress_rule *own;        /* the asker's; or NULL */
    struct mo_egress_name *name;       /* NULL: an address */
    struct mo_ip to[MO_EGRESS_CACHE];
    size_t nto, next; /* addresses; the next to try */
    struct mo_ip ip;  /* the last that was tried */
    unsigned port;
    struct mo_dial *dial;
    int in_fd; /* of `in`, which owns it; or -1 */
    struct mo_stream *in, *out;
    bool in_eof, out_eof;
    bool undecided;  /* the asker has not decided */
    bool looked;     /* for the first bytes, long enough */
    uint64_t search; /* for its program: the number, or 0: none runs */
    char *program;   /* the box's word, or NULL: not known */
    bool checked;    /* what it begins with */
    struct mo_buf hello;
    const struct mo_egress_inject *inject; /* NULL: bytes are only copied */
    struct mo_edge *edge;
    bool cut; /* the host has closed without an end of TLS */
    uint64_t sent, received, began_ns, last_ns;
    struct mo_timer timer;
    struct mo_timer look; /* for the first bytes */
    bool ended, refused;
    char reason[120];
};

/* --- the end ------------------------------------------------------------- */

static void conn_maybe_free(struct conn *c)
{
    struct mo_egress *x = c->x;
    char text[MO_IP_TEXT];
    struct mo_egress_row row = {
        .name = c->name ? c->name->text : "",
        .address = text,
        .port = c->port,
        .allowed = c->rule && !c->refused,
        .rule = c->rule ? c->rule->text : "",
        .program = c->program,
        .reason = c->reason,
        .sent = c->sent,
        .received = c->received,
        .ms = (mo_loop_now(x->loop) - c->began_ns) / MO_MS,
        .injected = mo_edge_injected(c->edge),
    };

    if (!c->ended || c->in || c->out || c->dial)
        return;
    mo_ip_text(&c->ip, text);
    mo_list_del(&c->node);
    x->nconns--;
    mo_egress_report(x, &row);
    mo_buf_fini(&c->hello);
    mo_free(c->own);
    mo_free(c->program);
    mo_edge_free(c->edge);
    mo_free(c);
    mo_egress_maybe_free(x);
}

static void begin_end(struct conn *c, const char *reason)
{
    c->ended = true;
    (void)snprintf(c->reason, sizeof(c->reason), "%s", reason);
    mo_timer_stop(c->x->loop, &c->timer);
    mo_timer_stop(c->x->loop, &c->look);
    mo_list_del(&c->waiting);
    if (!mo_list_empty(&c->asking)) {
        mo_list_del(&c->asking);
        mo_egress_ask_left(c->x);
    }
}

/* Resets the program's side. The caller does not touch c any more. */
static void end_conn(struct conn *c, const char *reason)
{
    struct mo_err why = {.code = MO_ECLOSED}; /* no good end of TLS, either */

    if (c->ended)
        return;
    begin_end(c, reason);
    if (c->dial)
        mo_dial_cancel(c->dial);
    if (c->in) {
        mo_socket_drop_unsent(c->in_fd);
        mo_stream_close(c->in, &why);
    }
    if (c->out)
        mo_stream_close(c->out, &why);
    conn_maybe_free(c);
}

static void refuse_conn(struct conn *c, const char *reason)
{
    if (!c->ended)
        c->refused = true;
    end_conn(c, reason);
}

/* Both sides have ended: the rest is sent, then it is closed. */
static void finish_conn(struct conn *c)
{
    if (!c->in_eof || !c->out_eof || c->ended)
        return;
    begin_end(c, "closed");
    mo_stream_finish(c->in, FINISH_MS);
    mo_stream_finish(c->out, FINISH_MS);
}

/* The program gets the rest of the answer, and then an end that it can tell
 * from a good one, too. */
static void finish_cut(struct conn *c)
{
    struct mo_err why = {.code = MO_ETLS};

    if (mo_stream_queued(c->in))
        return; /* on_in_drain */
    begin_end(c, "closed by the host");
    mo_stream_close(c->in, &why);
}

static void on_timer(struct mo_timer *t)
{
    struct conn *c = mo_container_of(t, struct conn, timer);
    const struct mo_egress_limits *l = &c->x->policy->limits;
    uint64_t now = mo_loop_now(c->x->loop);
    uint64_t old = (now - c->began_ns) / MO_MS,
             idle = (now - c->last_ns) / MO_MS;
    uint64_t left;

    if (old >= l->life_ms) {
        end_conn(c, "open for too long");
        return;
    }
    if (idle >= l->idle_ms) {
        end_conn(c, "idle for too long");
        return;
    }
    left = l->life_ms - old;
    if (l->idle_ms - idle < left)
        left = l->idle_ms - idle;
    mo_timer_start(c->x->loop, t, left);
}

/* --- copying ------------------------------------------------------------- */

/* Returns false if the connection has ended. */
static bool count_bytes(struct conn *c, uint64_t *of, size_t n)
{
    struct mo_egress *x = c->x;

    *of += n;
    x->bytes += n;
    c->last_ns = mo_loop_now(x->loop);
    if (x->bytes <= x->policy->limits.bytes)
        return true;
    end_conn(c, "too many bytes");
    return false;
}

static void copy(struct conn *c, struct mo_stream *from, struct mo_stream *to,
                 struct mo_span data)
{
    int rc = mo_stream_write(to, data);

    if (rc == MO_EBUSY || rc == MO_ENOMEM)
        end_conn(c, "out of memory");
    else if (rc == 0 && mo_stream_queued(to) > QUEUE_HIGH)
        mo_stream_pause(from); /* on_drain resumes it */
}

static bool names_host(const struct conn *c, const struct mo_hello *h)
{
    char host[MO_EGRESS_HOST_MAX + 1];

    return mo_egress_host(mo_span(h->name, h->name_len), host) &&
           strcmp(host, c->name->text) == 0;
}

/* --- hosts with secrets -------------------------------------------------- */

static const struct mo_stream_cb in_cb, out_cb;

static void on_edge_failed(void *ctx, const struct mo_err *why)
{
    end_conn(ctx, why->msg);
}

static void start_edge(struct conn *c, const struct mo_hello *h)
{
    struct mo_edge_start s = {.inject = c->inject,
                              .hello = h,
                              .first = mo_buf_view(&c->hello),
                              .port = c->port,
                              .in = &c->in,
                              .out = &c->out,
                              .in_cb = &in_cb,
                              .out_cb = &out_cb,
                              .ctx = c,
                              .failed = on_edge_failed};
    struct mo_err e = {0};

    mo_stream_pause(c->in);
    if (mo_edge_start(&c->x->edges, &s, &c->edge, &e) < 0)
        refuse_conn(c, e.msg);
}

static void send_request(struct conn *c, struct mo_span data)
{
    struct mo_span out;
    struct mo_err e = {0};

    if (mo_edge_request(c->edge, data, &out, &e) < 0) {
        refuse_conn(c, e.msg);
        return;
    }
    if (out.n)
        copy(c, c->in, c->out, out);
    if (!c->ended)
        mo_edge_sent(c->edge);
}

/* --- the first bytes ----------------------------------------------------- */

/* TLS to a name must be for this name. False: it was refused, or more bytes
 * must come. h is set if it is TLS. */
static bool check_hello(struct conn *c, struct mo_hello *h)
{
    int rc = mo_buf_err(&c->hello);

    if (rc == 0 && mo_hello_starts(mo_buf_view(&c->hello))) {
        rc = mo_hello_read(mo_buf_view(&c->hello), h);
        if (rc == 0)
            return false;
        if (rc == 1 && h->name_len == 0) {
            refuse_conn(c, "TLS that names no host");
            return false;
        }
        if (rc == 1 && !names_host(c, h)) {
            refuse_conn(c, "TLS that names another host");
            return false;
        }
    } else if (rc == 0 && c->inject) {
        refuse_conn(c, "not TLS, and a secret goes over TLS only");
        return false;
    }
    if (rc < 0)
        refuse_conn(c, "TLS that cannot be read");
    return rc >= 0;
}

/* Sends what the program began with, as soon as it may be sent. */
static void send_first_bytes(struct conn *c)
{
    struct mo_hello h = {0};

    if (!c->checked && !check_hello(c, &h))
        return;
    c->checked = true;
    if (c->inject)
        start_edge(c, &h);
    else
        copy(c, c->in, c->out, mo_buf_view(&c->hello));
    if (!c->ended)
        mo_buf_fini(&c->hello);
}

/* A long transfer between sockets: from now on on_ready is called in place of
 * on_read. */
static void maybe_move(struct conn *c, struct mo_stream *from, uint64_t bytes)
{
    if (!c->ended && c->checked && !c->inject && c->in_fd >= 0 &&
        bytes > MOVE_AFTER)
        (void)mo_stream_raw(from);
}

static void move(struct conn *c, struct mo_stream *from, struct mo_stream *to,
                 uint64_t *of)
{
    uint64_t max = c->x->policy->limits.bytes, had = c->x->bytes;
    size_t n = 0;

    if (mo_stream_queued(to) == 0)
        n = mo_stream_move(from, to, had < max ? (size_t)(max - had) : 0);
    if (n && !count_bytes(c, of, n))
        return;
    if (mo_stream_queued(to))
        mo_stream_pause(from); /* on_drain resumes it */
}

static void on_in_ready(void *ctx)
{
    struct conn *c = ctx;

    move(c, c->in, c->out, &c->sent);
}

static void on_out_ready(void *ctx)
{
    struct conn *c = ctx;

    move(c, c->out, c->in, &c->received);
}

/* --- asking -------------------------------------------------------------- */

static void put_host(const struct conn *c, char host[MO_EGRESS_HOST_MAX + 1])
{
    if (c->name)
        (void)snprintf(host, MO_EGRESS_HOST_MAX + 1, "%s", c->name->text);
    else
        mo_ip_text(&c->ip, host);
}

static void ask_person(struct conn *c, const char *request, bool tls)
{
    char host[MO_EGRESS_HOST_MAX + 1];
    const struct mo_egress_question q = {
        .host = host,
        .port = c->port,
        .request = request,
        .program = c->program ? c->program : "",
        .tls = tls,
    };

    mo_timer_stop(c->x->loop, &c->look);
    c->search = 0;
    put_host(c, host);
    if (!mo_egress_ask_join(c->x, &q, &c->asking))
        refuse_conn(c, "too many hosts wait for a person");
}

/* Asks as soon as the first bytes are there and its program was looked for. */
static void maybe_ask(struct conn *c)
{
    struct mo_span in = mo_buf_view(&c->hello);
    char request[MO_EGRESS_REQUEST_MAX];
    bool tls = mo_hello_starts(in);
    struct mo_hello h;

    if (c->search || (tls && c->name && !check_hello(c, &h)))
        return;
    if (tls || mo_egress_read_request(in, request))
        ask_person(c, tls ? "" : request, tls);
}

/* Bytes of a connection that nobody has decided about. */
static void read_undecided(struct conn *c, struct mo_span data)
{
    (void)mo_buf_span(&c->hello, data);
    if (c->hello.len >= MO_HELLO_MAX)
        mo_stream_pause(c->in);
    if (mo_list_empty(&c->asking))
        maybe_ask(c);
}

/* It has waited long enough for its first bytes: asks with what is known. */
static void ask_now(struct conn *c)
{
    c->search = 0;
    maybe_ask(c);
    if (!c->ended && mo_list_empty(&c->asking))
        ask_person(c, "", false);
}

static void on_look(struct mo_timer *t)
{
    struct conn *c = mo_container_of(t, struct conn, look);

    if (!c->search || c->looked) {
        ask_now(c);
        return;
    }
    c->looked = true;
    mo_timer_start(c->x->loop, &c->look, SEARCH_MS);
}

static struct conn *find_searching(const struct mo_egress *x, uint64_t number)
{
    mo_list_each_entry (c, &x->conns, struct conn, node)
        if (c->search == number && !c->ended)
            return c;
    return NULL;
}

void mo_egress_name_caller(struct mo_egress *x, uint64_t number,
                           struct mo_span program)
{
    struct conn *c = number ? find_searching(x, number) : NULL;
    char text[MO_EGRESS_PROGRAM_MAX];

    if (!c)
        return;
    c->search = 0;
    mo_egress_put_program(program, text);
    if (*text)
        c->program = mo_strndup(text, strlen(text));
    if (c->looked)
        ask_now(c);
    else
        maybe_ask(c);
}

/* Not for a host that is asked about already: the question is the same. */
static void search_program(struct conn *c)
{
    struct mo_egress *x = c->x;
    struct mo_egress_caller who = {.number = x->searched + 1};
    char host[MO_EGRESS_HOST_MAX + 1];

    put_host(c, host);
    if (!x->find_program || mo_egress_is_asked(x, host, c->port) ||
        !mo_egress_rate_take(x, &x->searches, SEARCHES_PER_S,
                             SEARCHES_AT_ONCE) ||
        !mo_egress_read_end(c->in_fd, true, &who.from, &who.from_port) ||
        !mo_egress_read_end(c->in_fd, false, &who.to, &who.to_port))
        return;
    x->searched++;
    if (x->find_program(x->ctx, &who) == 0)
        c->search = who.number;
}

static void on_in_read(void *ctx, char *p, size_t n)
{
    struct conn *c = ctx;

    if (!count_bytes(c, &c->sent, n))
        return;
    if (c->undecided) {
        read_undecided(c, mo_span(p, n));
    } else if (c->edge) {
        send_request(c, mo_span(p, n));
    } else if (c->checked) {
        copy(c, c->in, c->out, mo_span(p, n));
    } else {
        (void)mo_buf_put(&c->hello, p, n);
        send_first_bytes(c);
    }
    maybe_move(c, c->in, c->sent);
}

static void on_out_read(void *ctx, char *p, size_t n)
{
    struct conn *c = ctx;

    if (!count_bytes(c, &c->received, n))
        return;
    copy(c, c->out, c->in, mo_span(p, n));
    maybe_move(c, c->out, c->received);
}

static void on_in_eof(void *ctx)
{
    struct conn *c = ctx;

    c->in_eof = true;
    if (c->undecided) {
        refuse_conn(c, "the program gave up before a decision");
        return;
    }
    if (c->hello.len) {
        refuse_conn(c, "TLS that cannot be read");
        return;
    }
    if (!c->cut)
        mo_stream_shutdown(c->out);
    finish_conn(c);
}

static void on_out_eof(void *ctx)
{
    struct conn *c = ctx;

    c->out_eof = true;
    mo_stream_shutdown(c->in);
    finish_conn(c);
}

static void on_in_drain(void *ctx)
{
    struct conn *c = ctx;

    if (c->cut)
        finish_cut(c);
    else if (c->out && !c->out_eof)
        mo_stream_resume(c->out);
}

static void on_out_drain(void *ctx)
{
    struct conn *c = ctx;

    if (c->in && !c->in_eof)
        mo_stream_resume(c->in);
}

static void on_in_close(void *ctx, const struct mo_err *why)
{
    struct conn *c = ctx;

    c->in = NULL;
    if (c->ended)
        conn_maybe_free(c);
    else if (why && c->edge && !mo_edge_injected(c->edge))
        end_conn(c, why->msg); /* it may not trust us */
    else
        end_conn(c, why && !c->edge ? "reset by the program" : "closed");
}

static void on_out_close(void *ctx, const struct mo_err *why)
{
    struct conn *c = ctx;

    c->out = NULL;
    if (c->ended) {
        conn_maybe_free(c);
    } else if (why && c->edge && !mo_edge_is_open(c->edge)) {
        refuse_conn(c, why->msg);
    } else if (why && c->edge && c->in) {
        c->cut = true;
        mo_stream_pause(c->in);
        finish_cut(c);
    } else {
        end_conn(c, why ? "reset by the host" : "closed");
    }
}

static const struct mo_stream_cb in_cb = {.on_read = on_in_read,
                                          .on_ready = on_in_ready,
                                          .on_eof = on_in_eof,
                                          .on_drain = on_in_drain,
                                          .on_close = on_in_close};
static const struct mo_stream_cb out_cb = {.on_read = on_out_read,
                                           .on_ready = on_out_ready,
                                           .on_eof = on_out_eof,
                                           .on_drain = on_out_drain,
                                           .on_close = on_out_close};

/* --- connecting ---------------------------------------------------------- */

static void dial_next(struct conn *c, const struct mo_err *why);

static void on_dialed(void *ctx, struct mo_stream *s, const struct mo_err *why)
{
    struct conn *c = ctx;

    c->dial = NULL;
    if (c->ended) {
        if (s)
            mo_stream_close(s, NULL);
        conn_maybe_free(c);
        return;
    }
    if (!s) {
        dial_next(c, why);
        return;
    }
    c->out = s;
    c->last_ns = mo_loop_now(c->x->loop);
    mo_stream_attach(s, &out_cb, c);
    if (c->inject)
        mo_stream_pause(s); /* until it speaks TLS */
    mo_stream_resume(c->in);
    if (c->hello.len)
        send_first_bytes(c);
}

static void dial_next(struct conn *c, const struct mo_err *why)
{
    struct mo_err e;

    while (c->next < c->nto) {
        c->ip = c->to[c->next++];
        if (mo_dial_ip(c->x->loop, &c->ip, c->port, CONNECT_MS, on_dialed, c,
                       &c->dial, &e) == 0)
            return;
        why = &e;
    }
    end_conn(c, why->msg);
}

/* A host that a person allowed may be at an address that the policy names. */
static bool may_reach(const struct conn *c, size_t i)
{
    const struct mo_ip *ip = &c->name->found[i];

    return (!c->name->own[i] && mo_egress_may_reach(c->rule, ip)) ||
           (c->own &&
            mo_egress_find_address(c->x->policy, ip, (uint16_t)c->port));
}

/* Drops the addresses that the rule does not permit, and connects. */
static void use_found(struct conn *c)
{
    const struct mo_egress_name *n = c->name;

    for (size_t i = 0; i < n->nfound; i++)
        if (may_reach(c, i))
            c->to[c->nto++] = n->found[i];
    if (c->nto == 0) {
        c->ip = n->found[0];
        refuse_conn(c, "its address is in a private network or this machine's");
        return;
    }
    dial_next(c, NULL);
}

void mo_egress_conn_resolved(struct mo_list *waiting, const struct mo_err *why)
{
    struct mo_list all;

    mo_list_init(&all);
    mo_list_splice(&all, waiting);
    mo_list_drain (c, &all, struct conn, waiting) {
        if (why)
            end_conn(c, why->msg);
        else
            use_found(c);
    }
}

static void find_address(struct conn *c)
{
    if (c->rule->fixed) {
        c->to[c->nto++] = c->rule->ip;
        dial_next(c, NULL);
        return;
    }
    mo_list_push(&c->name->waiting, &c->waiting);
    if (mo_egress_lookup(c->x, c->name)) {
        mo_list_del(&c->waiting);
        use_found(c);
    }
}

/* --- after a decision ---------------------------------------------------- */

/* The decision as a rule: for this host at this port. */
static struct mo_egress_rule *own_rule(const struct conn *c, const char *text)
{
    struct mo_egress_rule *r = mo_new(struct mo_egress_rule);

    if (!r)
        return NULL;
    r->kind = c->name ? MO_EGRESS_HOST : MO_EGRESS_ADDRESS;
    r->fixed = !c->name;
    r->ip = c->ip;
    r->ports[r->nports++] = (uint16_t)c->port;
    (void)snprintf(r->text, sizeof(r->text), "%s", text);
    if (c->name)
        (void)snprintf(r->host, sizeof(r->host), "%s", c->name->text);
    return r;
}

static void go_on(struct conn *c, const char *text)
{
    c->undecided = false;
    c->own = own_rule(c, text);
    c->rule = c->own;
    c->last_ns = mo_loop_now(c->x->loop);
    mo_stream_pause(c->in);
    if (c->rule)
        find_address(c);
    else
        end_conn(c, "out of memory");
}

void mo_egress_conn_decided(struct mo_list *asking, bool allowed,
                            const char *reason)
{
    mo_list_drain (c, asking, struct conn, asking) {
        if (allowed)
            go_on(c, reason);
        else
            refuse_conn(c, reason);
    }
}

/* --- start --------------------------------------------------------------- */

/* Takes what was accepted, also on failure. */
static struct conn *conn_new(struct mo_egress *x,
                             const struct mo_egress_wish *w)
{
    mo_autofd int own = w->fd;
    struct conn *c = mo_new(struct conn);

    if (!c && w->stream)
        mo_stream_close(w->stream, NULL);
    if (!c)
        return NULL;
    c->in_fd = -1;
    c->in = w->stream;
    if (c->in)
        return c;
    c->in_fd = mo_take_fd(&own); /* the stream's, also on failure */
    if (mo_stream_from_fds(x->loop, c->in_fd, c->in_fd, &c->in, NULL) < 0) {
        mo_free(c);
        return NULL;
    }
    return c;
}

/* Decides, or begins to ask: the first bytes tell what the program wants. */
static void ask_about(struct conn *c, enum mo_egress_say say)
{
    if (say == MO_EGRESS_YES) {
        go_on(c, "approval rule");
        return;
    }
    c->undecided = true;
    mo_stream_resume(c->in);
    mo_timer_start(c->x->loop, &c->look, LOOK_MS);
    search_program(c);
}

void mo_egress_conn_start(struct mo_egress *x, const struct mo_egress_wish *w,
                          const struct mo_egress_rule *rule,
                          enum mo_egress_say say)
{
    const struct mo_egress_limits *l = &x->policy->limits;
    struct conn *c = conn_new(x, w);

    if (!c)
        return;
    c->x = x;
    c->rule = rule;
    c->name = w->name;
    c->ip = w->ip;
    c->port = w->port;
    c->checked = w->name == NULL;
    c->inject = w->name ? mo_egress_find_inject(x->policy, w->name->text,
                                                (uint16_t)w->port)
                        : NULL;
    c->began_ns = c->last_ns = mo_loop_now(x->loop);
    mo_buf_init(&c->hello, MO_HELLO_MAX + QUEUE_HIGH);
    mo_timer_init(&c->timer, on_timer);
    mo_timer_init(&c->look, on_look);
    mo_list_init(&c->waiting);
    mo_list_init(&c->asking);
    mo_list_push(&x->conns, &c->node);
    x->nconns++;
    mo_stream_attach(c->in, &in_cb, c);
    mo_stream_pause(c->in);
    mo_timer_start(x->loop, &c->timer,
                   l->idle_ms < l->life_ms ? l->idle_ms : l->life_ms);
    if (rule)
        find_address(c);
    else
        ask_about(c, say);
}

void mo_egress_conns_reset(struct mo_egress *x)
{
    struct mo_list all;

    mo_list_init(&all);
    mo_list_splice(&all, &x->conns);
    while (!mo_list_empty(&all)) {
        struct conn *c =
            mo_container_of(mo_list_shift(&all), struct conn, node);

        mo_list_push(&x->conns, &c->node);
        if (c->in) /* also one that is about to finish */
            mo_socket_drop_unsent(c->in_fd);
        if (!c->ended) {
            end_conn(c, "the box has ended");
            continue;
        }
        if (c->in)
            mo_stream_close(c->in, NULL);
        if (c->out)
            mo_stream_close(c->out, NULL);
    }
}
