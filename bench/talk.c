/* talk.c - one person who says the same thing again and again, and what
 * nobody could leave out of that.
 *
 *   talk PORT PID MODEL_PORT SESSION TEXT ASKS ROUNDS TURNS
 *
 * A round is TURNS turns (message to final answer) at the server PORT, then
 * as many websocket pings to it, then as often ASKS requests to the model
 * itself, of about the size the server sends. One line of JSON is the result:
 * of each round the medians of the turns and of ping and asks together, and
 * of all rounds the shortest turn, in us; and the CPU time PID used a turn.
 *
 * It blocks in read() and looks at no more of a message than its first bytes:
 * what it costs itself is little, and the same in both. A wrong answer ends
 * it with an error. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "meter.h"

#define IN_MAX     ((size_t)1 << 20)
#define ASK_BYTES  13000 /* the tools, and half of the history that fits */
#define ROUNDS_MAX 100
#define TURNS_MAX  1000
#define WARM       30
#define SAY_MAX    125 /* bytes of a short frame */
#define TEXT       0x81
#define PING       0x89
#define PONG       0x8a
#define MASKED     0x80

struct conn {
    int fd;
    char *in;
    size_t n; /* bytes of it */
};

static void open_conn(struct conn *c, unsigned port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    c->in = mo_zalloc(IN_MAX);
    if (c->fd < 0 || !c->in ||
        connect(c->fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        meter_die("cannot connect to port %u", port);
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void send_all(struct conn *c, struct mo_span s)
{
    if (send(c->fd, s.p, s.n, MSG_NOSIGNAL) != (ssize_t)s.n)
        meter_die("a short write");
}

static void more(struct conn *c)
{
    ssize_t n = read(c->fd, c->in + c->n, IN_MAX - c->n);

    if (n <= 0)
        meter_die("the connection was lost");
    c->n += (size_t)n;
}

static void drop(struct conn *c, size_t n)
{
    c->n -= n;
    memmove(c->in, c->in + n, c->n);
}

/* --- HTTP ---------------------------------------------------------------- */

static struct mo_span read_head(struct conn *c)
{
    ptrdiff_t end = -1;

    while (end < 0) {
        end = mo_span_search(mo_span(c->in, c->n), MO_SPAN("\r\n\r\n"));
        if (end < 0)
            more(c);
    }
    return mo_span(c->in, (size_t)end + 4);
}

static void ask_model(struct conn *c, struct mo_span request)
{
    static const char name[] = "content-length: ";
    struct mo_span head, s;
    uint64_t length = 0;
    ptrdiff_t at;

    send_all(c, request);
    head = read_head(c);
    at = mo_span_search(head, mo_span(name, sizeof(name) - 1));
    s = mo_span_skip(head, at < 0 ? head.n : (size_t)at + sizeof(name) - 1);
    if (mo_span_u64(mo_span_cut(&s, '\r'), &length) < 0)
        meter_die("the model says no length");
    while (c->n < head.n + length)
        more(c);
    drop(c, head.n + length);
}

/* --- websocket ----------------------------------------------------------- */

/* Under a mask of zeros: the bytes as they are. */
static void send_frame(struct conn *c, int kind, struct mo_span text)
{
    char frame[6 + SAY_MAX] = {(char)kind, (char)(MASKED | (int)text.n)};

    if (text.n > SAY_MAX)
        meter_die("a text of %zu bytes", text.n);
    memcpy(frame + 6, text.p, text.n);
    send_all(c, mo_span(frame, text.n + 6));
}

/* Its length with its head, once it is whole; else 0. */
static size_t whole_frame(const struct conn *c, struct mo_span *text)
{
    const unsigned char *p = (const unsigned char *)c->in;
    size_t head = 2, n = c->n > 1 ? p[1] & 127 : 0;

    if (n > 125)
        head = n == 126 ? 4 : 10;
    if (c->n < head)
        return 0;
    if (n > 125) {
        n = 0;
        for (size_t i = 2; i < head; i++)
            n = n << 8 | p[i];
    }
    if (c->n < head + n)
        return 0;
    *text = mo_span(c->in + head, n);
    return head + n;
}

static bool is_wrong(struct mo_span text)
{
    return mo_span_starts(text, MO_SPAN("42[\"agent:error\"")) ||
           mo_span_starts(text, MO_SPAN("42[\"error\""));
}

/* Frames until one of that kind that begins so. */
static void wait_for(struct conn *c, int kind, struct mo_span begin)
{
    for (bool found = false; !found;) {
        struct mo_span text;
        size_t n = whole_frame(c, &text);

        if (n == 0) {
            more(c);
            continue;
        }
        if (is_wrong(text))
            meter_die("%.*s", (int)(text.n < 300 ? text.n : 300), text.p);
        if (mo_span_is(text, "2"))
            send_frame(c, TEXT, MO_SPAN("3"));
        found = (unsigned char)c->in[0] == kind && mo_span_starts(text, begin);
        drop(c, n);
    }
}

static void join(struct conn *c, const char *session)
{
    char request[512];
    int n = snprintf(request, sizeof(request),
                     "GET /socket.io/?EIO=4&transport=websocket&sessionId=%s "
                     "HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
                     "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
                     session);

    send_all(c, mo_span(request, (size_t)n));
    drop(c, read_head(c).n);
    send_frame(c, TEXT, MO_SPAN("40"));
    wait_for(c, TEXT, MO_SPAN("42[\"session:history\""));
}

/* --- rounds -------------------------------------------------------------- */

struct bench {
    struct conn person, model;
    char say[SAY_MAX + 2], *request;
    unsigned asks, turns;
};

static void turn(struct bench *b)
{
    send_frame(&b->person, TEXT, mo_span_cstr(b->say));
    wait_for(&b->person, TEXT, MO_SPAN("42[\"agent:response\""));
}

static void ping(struct bench *b)
{
    send_frame(&b->person, PING, MO_SPAN(""));
    wait_for(&b->person, PONG, MO_SPAN(""));
}

static void ask(struct bench *b)
{
    for (unsigned i = 0; i < b->asks; i++)
        ask_model(&b->model, mo_span_cstr(b->request));
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median in us; *least, if given, becomes the least. */
static double run(struct bench *b, void (*one)(struct bench *b), double *least)
{
    static double took[TURNS_MAX];

    for (unsigned i = 0; i < b->turns; i++) {
        uint64_t began = meter_now_ns();

        one(b);
        took[i] = (double)(meter_now_ns() - began) / 1e3;
    }
    qsort(took, b->turns, sizeof(took[0]), by_size);
    if (least && (*least == 0 || took[0] < *least))
        *least = took[0];
    return took[b->turns / 2];
}

/* {"pad":"xxx","messages":[...]}, ASK_BYTES of it. */
static void make_request(struct bench *b, const char *text)
{
    char end[256];
    int tail = snprintf(end, sizeof(end),
                        "\",\"messages\":[{\"role\":\"user\",\"content\":"
                        "\"%s\"}]}",
                        text);
    char *p = mo_zalloc(ASK_BYTES + 512);
    int n;

    if (!p || tail < 0 || (size_t)tail >= sizeof(end))
        meter_die("no memory, or a long text");
    n = snprintf(p, 256,
                 "POST /v1/messages HTTP/1.1\r\nhost: x\r\n"
                 "content-length: %d\r\n\r\n",
                 ASK_BYTES);
    memset(p + n, 'x', ASK_BYTES);
    memcpy(p + n, "{\"pad\":\"", 8);
    memcpy(p + n + ASK_BYTES - tail, end, (size_t)tail);
    b->request = p;
}

static void print(const char *name, const double *v, unsigned n)
{
    printf("\"%s\":[", name);
    for (unsigned i = 0; i < n; i++)
        printf("%s%.1f", i ? "," : "", v[i]);
    printf("],");
}

int main(int argc, char **argv)
{
    static double ours[ROUNDS_MAX], floors[ROUNDS_MAX];
    static struct bench b;
    double least = 0;
    uint64_t cpu = 0;
    unsigned rounds;
    pid_t pid;

    if (argc != 9)
        meter_die("talk PORT PID MODEL_PORT SESSION TEXT ASKS ROUNDS TURNS");
    pid = (pid_t)meter_arg(argv[2], "PID", INT32_MAX);
    b.asks = meter_arg(argv[6], "ASKS", 16);
    rounds = meter_arg(argv[7], "ROUNDS", ROUNDS_MAX);
    b.turns = WARM;
    (void)snprintf(b.say, sizeof(b.say), "42[\"message\",\"%s\"]", argv[5]);
    make_request(&b, argv[5]);
    open_conn(&b.person, meter_arg(argv[1], "PORT", 65535));
    open_conn(&b.model, meter_arg(argv[3], "MODEL_PORT", 65535));
    join(&b.person, argv[4]);
    (void)run(&b, turn, NULL);
    (void)run(&b, ask, NULL);
    b.turns = meter_arg(argv[8], "TURNS", TURNS_MAX);
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t before = meter_cpu_ns(pid);

        ours[i] = run(&b, turn, &least);
        cpu += meter_cpu_ns(pid) - before;
        floors[i] = run(&b, ping, NULL) + run(&b, ask, NULL);
    }
    printf("{");
    print("ours", ours, rounds);
    print("floor", floors, rounds);
    printf("\"least\":%.1f,\"cpu\":%.1f}\n", least,
           (double)cpu / 1e3 / rounds / b.turns);
    return 0;
}
