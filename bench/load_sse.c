/* load_sse.c - the client of load_mcp.c for servers that only speak HTTP+SSE,
 * the transport of 2024-11-05: requests go out as POST, answers come in as
 * events of a GET that stays open.
 *
 *   load_sse [OPTIONS] PATH PORT PID CONNECTIONS WARM CALLS
 *
 * PATH is where the events are. Closed loop: each client has its two
 * connections and one call in flight; a call is over when its event has come
 * and its POST has been answered, and its time is that of the event. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "tally.h"

#define CONNS_MAX  100
#define EVENTS_MAX 256
#define IN_MAX     ((size_t)3 * 1024 * 1024) /* bytes of one answer */
#define ALARM_S    120

struct load {
    struct wish wish;
    struct tally t;
};

struct sock {
    struct client *c;
    int fd;
    size_t n;
    char in[IN_MAX];
};

struct client {
    struct load *l;
    struct sock events, post;
    char where[256]; /* of the POST */
    uint64_t since;
    bool said, taken; /* of the call in flight: the event, the POST's answer */
    char call[2 * TALLY_TEXT_MAX];
    size_t ncall;
    char *number;
};

/* --- bytes --------------------------------------------------------------- */

static void send_all(int fd, const char *p, size_t n)
{
    if (send(fd, p, n, MSG_NOSIGNAL) != (ssize_t)n)
        meter_die("a request was not taken whole: %s", strerror(errno));
}

static void take(struct sock *s)
{
    ssize_t n = recv(s->fd, s->in + s->n, sizeof(s->in) - s->n, 0);

    if (n <= 0)
        meter_die("a connection was lost, or an answer is too long");
    s->n += (size_t)n;
}

/* An event ends with an empty line; the end of its chunk may follow. */
static bool is_whole(const struct sock *s)
{
    struct mo_span in = mo_span(s->in, s->n);

    return mo_span_ends(in, MO_SPAN("\n\n")) ||
           mo_span_ends(in, MO_SPAN("\n\n\r\n"));
}

static void wait_event(struct sock *s, const char *want)
{
    s->n = 0;
    do {
        take(s);
    } while (!is_whole(s) ||
             mo_span_search(mo_span(s->in, s->n), mo_span_cstr(want)) < 0);
}

/* "Accepted", with a length or in chunks, comes in one piece. */
static bool is_taken(const struct sock *s)
{
    struct mo_span in = mo_span(s->in, s->n);

    if (mo_span_search(in, MO_SPAN("\r\n\r\n")) < 0)
        return false;
    if (!mo_span_starts(in, MO_SPAN("HTTP/1.1 20")))
        meter_die("refused: %.*s", (int)(s->n < 300 ? s->n : 300), s->in);
    return mo_span_search(in, MO_SPAN("chunked")) < 0 ||
           mo_span_ends(in, MO_SPAN("\r\n0\r\n\r\n"));
}

/* --- the beginning ------------------------------------------------------- */

static size_t put_post(const struct client *c, char *out, size_t max,
                       const char *body)
{
    int n = snprintf(out, max,
                     "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                     "Content-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n%s",
                     c->where, strlen(body), body);

    if (n < 0 || (size_t)n >= max)
        meter_die("a request is too long");
    return (size_t)n;
}

static void post(struct client *c, const char *body)
{
    char text[TALLY_TEXT_MAX];

    send_all(c->post.fd, text, put_post(c, text, sizeof(text), body));
    c->post.n = 0;
    do {
        take(&c->post);
    } while (!is_taken(&c->post));
    c->post.n = 0;
}

/* The first event says where requests go. */
static void read_where(struct client *c)
{
    struct mo_span in, line;
    ptrdiff_t at;

    wait_event(&c->events, "event: endpoint");
    in = mo_span(c->events.in, c->events.n);
    at = mo_span_search(in, MO_SPAN("data: "));
    if (at < 0)
        meter_die("no endpoint: %.*s", (int)in.n, in.p);
    in = mo_span_skip(in, (size_t)at + strlen("data: "));
    line = mo_span_trim(mo_span_cut(&in, '\n'));
    (void)snprintf(c->where, sizeof(c->where), "%.*s", (int)line.n, line.p);
}

static void open_client(struct client *c, const char *path, const char *port)
{
    char text[TALLY_TEXT_MAX];
    int n = snprintf(text, sizeof(text),
                     "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                     "Accept: text/event-stream\r\n\r\n",
                     path);

    c->events.c = c->post.c = c;
    c->events.fd = tally_dial(port);
    c->post.fd = tally_dial(port);
    send_all(c->events.fd, text, (size_t)n);
    read_where(c);
    post(c, INITIALIZE);
    wait_event(&c->events, "\"protocolVersion\"");
    post(c, INITIALIZED);
    c->events.n = 0;
    wish_put(&c->l->wish, text);
    c->ncall = put_post(c, c->call, sizeof(c->call), text);
    c->number = wish_field(c->call);
}

/* --- the load ------------------------------------------------------------ */

static void next_call(struct client *c)
{
    if (!tally_next(&c->l->t))
        return;
    wish_number(c->number, c->l->t.sent);
    c->said = c->taken = false;
    c->since = meter_now_ns();
    send_all(c->post.fd, c->call, c->ncall);
}

static void on_readable(struct sock *s)
{
    struct client *c = s->c;

    take(s);
    if (s == &c->post && is_taken(s)) {
        c->taken = true;
        s->n = 0;
    } else if (s == &c->events && is_whole(s)) {
        /* a sign of life is no answer */
        c->said = mo_span_search(mo_span(s->in, s->n),
                                 mo_span_cstr(c->l->wish.want)) >= 0;
        if (c->said)
            tally_done(&c->l->t, c->since);
        s->n = 0;
    }
    if (c->said && c->taken)
        next_call(c);
}

static void watch(int ep, struct sock *s)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};

    (void)epoll_ctl(ep, EPOLL_CTL_ADD, s->fd, &e);
}

static void run(struct load *l, char **arg)
{
    unsigned n = meter_arg(arg[3], "connections", CONNS_MAX);
    struct client *clients = mo_zalloc(n * sizeof(*clients));
    struct epoll_event ev[EVENTS_MAX];
    int ep = epoll_create1(EPOLL_CLOEXEC);

    if (!clients || ep < 0)
        meter_die("out of memory");
    tally_init(&l->t, arg[4], arg[5]);
    l->t.pid = (pid_t)meter_arg(arg[2], "pid", 1U << 22);
    for (unsigned i = 0; i < n; i++) {
        clients[i].l = l;
        open_client(&clients[i], arg[0], arg[1]);
        watch(ep, &clients[i].events);
        watch(ep, &clients[i].post);
    }
    for (unsigned i = 0; i < n; i++)
        next_call(&clients[i]);
    while (!tally_over(&l->t)) {
        int got = epoll_wait(ep, ev, EVENTS_MAX, -1);

        for (int i = 0; i < got; i++)
            on_readable(ev[i].data.ptr);
    }
    tally_print(&l->t);
    mo_free(clients);
}

int main(int argc, char **argv)
{
    struct load l;

    (void)alarm(ALARM_S);
    wish_read(&l.wish, &argc, &argv);
    if (argc != 7)
        meter_die("usage: load_sse PATH PORT PID CONNECTIONS WARM CALLS");
    run(&l, argv + 1);
    return 0;
}
