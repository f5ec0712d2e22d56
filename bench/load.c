/* load.c - the other end: clients for the servers that are measured.
 *
 *   load http PORT PID CONNECTIONS WARM OPERATIONS
 *   load ws   PORT PID CONNECTIONS WARM OPERATIONS
 *   load sio  PORT PID CONNECTIONS
 *
 * Closed loop: each connection has one request in flight and sends the next
 * when the answer is whole. All connections are made first, WARM operations
 * are not counted, then OPERATIONS are, and PID is charged the CPU time it
 * used for them. `sio` only connects, holds still and weighs PID's memory.
 * One line of JSON is the result. Loopback only, every run ends by itself
 * after TIME_MAX.
 *
 * A client follows a plan: a few steps of "send this, wait for one message
 * that begins so"; the last step is repeated. Requests are the same bytes
 * every time (also their websocket mask), so that the client costs little.
 * A wrong answer, a short write or a lost connection ends the run with an
 * error: a broken server must not look fast. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "meter.h"

#define TIME_MAX_NS  ((uint64_t)30 * 1000000000u)
#define SETTLE_NS    ((uint64_t)1500 * 1000000u) /* before memory is weighed */
#define CONNS_MAX    10000
#define OPENING_MAX  64 /* connections in the making at a time */
#define EVENTS_MAX   256
#define IN_MAX       2048 /* bytes of one answer */
#define BODY_BYTES   300
#define TEXT_BYTES   200
#define FRAME_MASKED 0x80

/* --- plans --------------------------------------------------------------- */

struct step {
    struct mo_span send; /* may be empty: the server speaks first */
    /* The length of the message at p if it is whole, else 0; *text is set to
     * what `want` must begin. */
    size_t (*whole)(struct mo_span in, struct mo_span *text);
    const char *want;
};

struct plan {
    const char *name;
    struct step steps[3];
    size_t nsteps;
    bool hold; /* do not repeat the last step */
};

static char http_text[1024], frame_text[TEXT_BYTES + 8];

#define UPGRADE(path)                                                          \
    "GET " path " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"      \
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"                      \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

static size_t whole_head(struct mo_span in, struct mo_span *text)
{
    ptrdiff_t end = mo_span_search(in, MO_SPAN("\r\n\r\n"));

    *text = in;
    return end < 0 ? 0 : (size_t)end + 4;
}

/* Servers spell the name differently; the value is plain digits. */
static size_t body_length(struct mo_span head)
{
    static const char name[] = "\r\nContent-Length: ";

    for (size_t i = 0; i + sizeof(name) <= head.n; i++) {
        struct mo_span rest = mo_span_skip(head, i);
        uint64_t v;

        if (head.p[i] != '\r' ||
            !mo_span_ieq(mo_span_head(rest, 18), mo_span(name, 18)))
            continue;
        rest = mo_span_skip(rest, sizeof(name) - 1);
        if (mo_span_u64(mo_span_cut(&rest, '\r'), &v) == 0 && v < IN_MAX)
            return (size_t)v;
    }
    meter_die("an answer without Content-Length");
}

static size_t whole_answer(struct mo_span in, struct mo_span *text)
{
    size_t head = whole_head(in, text);
    size_t n;

    if (!head)
        return 0;
    n = head + body_length(mo_span_head(in, head));
    return in.n < n ? 0 : n;
}

/* A server's frame: not masked, shorter than 64 KiB. */
static size_t whole_frame(struct mo_span in, struct mo_span *text)
{
    const unsigned char *p = (const unsigned char *)in.p;
    size_t head = 2, n;

    if (in.n < 4)
        return 0;
    n = p[1];
    if (n == 126) {
        head = 4;
        n = (size_t)p[2] << 8 | p[3];
    } else if (n > 126) {
        meter_die("a frame that is too long, or masked");
    }
    *text = mo_span(in.p + head, n);
    return in.n < head + n ? 0 : head + n;
}

/* Masked with zeros, which leave the bytes as they are: legal, and neither
 * side can tell. Two-byte lengths only. */
static struct mo_span make_frame(char *out, struct mo_span payload)
{
    size_t n = 0;

    out[n++] = (char)0x81;
    if (payload.n < 126) {
        out[n++] = (char)(FRAME_MASKED | payload.n);
    } else {
        out[n++] = (char)(FRAME_MASKED | 126);
        out[n++] = (char)(payload.n >> 8);
        out[n++] = (char)(payload.n & 0xff);
    }
    memset(out + n, 0, 4);
    memcpy(out + n + 4, payload.p, payload.n);
    return mo_span(out, n + 4 + payload.n);
}

/* A tools/call as a client would send it, filled up to its size. */
static struct mo_span make_text(char *out, size_t size)
{
    static const char head[] =
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{"
        "\"name\":\"write_file\",\"arguments\":{\"path\":\"notes/today.md\","
        "\"content\":\"";
    static const char tail[] = "\"}}}";

    memset(out, 'x', size);
    memcpy(out, head, sizeof(head) - 1);
    memcpy(out + size - (sizeof(tail) - 1), tail, sizeof(tail) - 1);
    return mo_span(out, size);
}

static struct mo_span make_post(void)
{
    int n = snprintf(http_text, sizeof(http_text),
                     "POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                     "User-Agent: load\r\nAccept: application/json\r\n"
                     "Content-Type: application/json\r\n"
                     "Content-Length: %d\r\n\r\n",
                     BODY_BYTES);

    (void)make_text(http_text + n, BODY_BYTES);
    return mo_span(http_text, (size_t)n + BODY_BYTES);
}

static struct plan make_plan(const char *name)
{
    static char connect[8];
    char text[TEXT_BYTES];

    if (strcmp(name, "http") == 0)
        return (struct plan){
            "http", {{make_post(), whole_answer, "HTTP/1.1 200"}}, 1, false};
    if (strcmp(name, "ws") == 0)
        return (struct plan){
            "ws",
            {{MO_SPAN(UPGRADE("/ws")), whole_head, "HTTP/1.1 101"},
             {make_frame(frame_text, make_text(text, sizeof(text))),
              whole_frame, "{\"jsonrpc\":\"2.0\""}},
            2,
            false};
    if (strcmp(name, "sio") == 0)
        return (struct plan){
            "sio",
            {{MO_SPAN(UPGRADE("/socket.io/?EIO=4&transport=websocket")),
              whole_head, "HTTP/1.1 101"},
             {{NULL, 0}, whole_frame, "0{"},
             {make_frame(connect, MO_SPAN("40")), whole_frame, "40{"}},
            3,
            true};
    meter_die("unknown plan %s", name);
}

/* --- clients ------------------------------------------------------------- */

struct client {
    int fd;
    bool connected, holds; /* holds: its plan is done */
    size_t step;
    size_t len;
    char in[IN_MAX];
};

struct load {
    struct plan plan;
    struct sockaddr_in to;
    pid_t pid;
    int ep;
    struct client *clients;
    size_t nclients, opened, ready;
    uint64_t warm, total, sent, done;
    uint64_t cpu0, wall0, cpu, wall; /* of the counted operations */
    uint64_t deadline;
    bool running;
};

static void send_step(struct load *l, struct client *c)
{
    struct mo_span s = l->plan.steps[c->step].send;

    if (s.n && send(c->fd, s.p, s.n, MSG_NOSIGNAL) != (ssize_t)s.n)
        meter_die("%s: a request was not taken whole: %s", l->plan.name,
                  strerror(errno));
}

static void open_next(struct load *l)
{
    struct client *c = &l->clients[l->opened++];
    struct epoll_event ev = {.events = EPOLLOUT, .data.ptr = c};
    int on = 1;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        meter_die("socket: %s", strerror(errno));
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(c->fd, (struct sockaddr *)&l->to, sizeof(l->to)) < 0 &&
        errno != EINPROGRESS)
        meter_die("connect: %s", strerror(errno));
    if (epoll_ctl(l->ep, EPOLL_CTL_ADD, c->fd, &ev) < 0)
        meter_die("epoll_ctl: %s", strerror(errno));
}

static void mark_start(struct load *l)
{
    l->cpu0 = meter_cpu_ns(l->pid);
    l->wall0 = meter_now_ns();
}

static void repeat(struct load *l, struct client *c)
{
    if (l->sent == l->warm + l->total)
        return;
    l->sent++;
    send_step(l, c);
}

/* Everybody is connected: the repeated step begins. */
static void start_running(struct load *l)
{
    l->running = true;
    if (!l->warm)
        mark_start(l);
    for (size_t i = 0; i < l->nclients && !l->plan.hold; i++)
        repeat(l, &l->clients[i]);
}

static void client_ready(struct load *l)
{
    l->ready++;
    if (l->opened < l->nclients)
        open_next(l);
    if (l->ready == l->nclients)
        start_running(l);
}

static void on_connected(struct load *l, struct client *c)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    socklen_t n = sizeof(int);
    int err = 0;

    (void)getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &n);
    if (err)
        meter_die("connect: %s", strerror(err));
    c->connected = true;
    (void)epoll_ctl(l->ep, EPOLL_CTL_MOD, c->fd, &ev);
    if (l->plan.nsteps == 1)
        client_ready(l);
    else
        send_step(l, c);
}

/* One whole, right message came for step c->step. */
static void on_message(struct load *l, struct client *c)
{
    bool last = c->step + 1 == l->plan.nsteps;

    if (l->running) {
        l->done++;
        if (l->done == l->warm)
            mark_start(l);
        if (l->done == l->warm + l->total) {
            l->cpu = meter_cpu_ns(l->pid) - l->cpu0;
            l->wall = meter_now_ns() - l->wall0;
        }
        repeat(l, c);
        return;
    }
    if (last) { /* only with hold */
        c->holds = true;
        client_ready(l);
        return;
    }
    c->step++;
    if (c->step + 1 == l->plan.nsteps && !l->plan.hold)
        client_ready(l);
    else
        send_step(l, c);
}

/* Engine.IO's heartbeat comes when it likes; whoever only holds its place
 * does not care for anything else. */
static bool is_aside(struct load *l, struct client *c, struct mo_span text)
{
    char frame[8];
    struct mo_span pong;

    if (!l->plan.hold || !mo_span_is(text, "2"))
        return c->holds;
    pong = make_frame(frame, MO_SPAN("3"));
    (void)send(c->fd, pong.p, pong.n, MSG_NOSIGNAL);
    return true;
}

static void on_input(struct load *l, struct client *c)
{
    struct mo_span in, text;
    ssize_t n = recv(c->fd, c->in + c->len, sizeof(c->in) - c->len, 0);

    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0)
        meter_die("%s: the server closed a connection", l->plan.name);
    c->len += (size_t)n;
    in = mo_span(c->in, c->len);
    while (in.n) {
        const struct step *st = &l->plan.steps[c->step];
        size_t m = st->whole(in, &text);

        if (!m)
            break;
        if (!is_aside(l, c, text)) {
            if (!mo_span_starts(text, mo_span_cstr(st->want)))
                meter_die("%s: wrong answer: %.*s", l->plan.name,
                          (int)(text.n < 60 ? text.n : 60), text.p);
            on_message(l, c);
        }
        in = mo_span_skip(in, m);
    }
    memmove(c->in, in.p, in.n);
    c->len = in.n;
}

static void turn(struct load *l, int wait_ms)
{
    struct epoll_event ev[EVENTS_MAX];
    int n = epoll_wait(l->ep, ev, EVENTS_MAX, wait_ms);

    for (int i = 0; i < n; i++) {
        struct client *c = ev[i].data.ptr;

        if (c->connected)
            on_input(l, c);
        else
            on_connected(l, c);
    }
    if (meter_now_ns() > l->deadline)
        meter_die("%s: not done in time (%zu of %zu connected, %llu answers)",
                  l->plan.name, l->ready, l->nclients,
                  (unsigned long long)l->done);
}

/* --- the two kinds of run ------------------------------------------------ */

static void run_loop(struct load *l)
{
    while (l->done < l->warm + l->total)
        turn(l, 100);
    printf("{\"ops\":%llu,\"cpu_ns\":%llu,\"wall_ns\":%llu}\n",
           (unsigned long long)l->total, (unsigned long long)l->cpu,
           (unsigned long long)l->wall);
}

static void settle(struct load *l)
{
    uint64_t until = meter_now_ns() + SETTLE_NS;

    while (meter_now_ns() < until)
        turn(l, 50);
}

static void run_hold(struct load *l)
{
    struct meter_mem a = meter_mem(l->pid), b;

    while (!l->running)
        turn(l, 100);
    settle(l);
    b = meter_mem(l->pid);
    printf("{\"conns\":%zu,\"rss0\":%llu,\"rss\":%llu,\"pss0\":%llu,"
           "\"pss\":%llu}\n",
           l->nclients, (unsigned long long)a.rss, (unsigned long long)b.rss,
           (unsigned long long)a.pss, (unsigned long long)b.pss);
}

int main(int argc, char **argv)
{
    struct load l = {.deadline = meter_now_ns() + TIME_MAX_NS};

    if (argc != 5 && argc != 7)
        meter_die("usage: load PLAN PORT PID CONNECTIONS [WARM OPERATIONS]");
    l.plan = make_plan(argv[1]);
    if (l.plan.hold != (argc == 5))
        meter_die("%s: wrong number of arguments", argv[1]);
    l.to = (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)meter_arg(argv[2], "port", 65535)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    l.pid = (pid_t)meter_arg(argv[3], "pid", 1 << 22);
    l.nclients = meter_arg(argv[4], "connections", CONNS_MAX);
    if (argc == 7) {
        l.warm = meter_arg(argv[5], "warm", 1u << 30);
        l.total = meter_arg(argv[6], "operations", 1u << 30);
    }
    l.clients = mo_zalloc(l.nclients * sizeof(*l.clients));
    l.ep = epoll_create1(EPOLL_CLOEXEC);
    if (!l.clients || l.ep < 0)
        meter_die("no memory");
    while (l.opened < l.nclients && l.opened < OPENING_MAX)
        open_next(&l);
    if (l.plan.hold)
        run_hold(&l);
    else
        run_loop(&l);
    mo_free(l.clients);
    return 0;
}
