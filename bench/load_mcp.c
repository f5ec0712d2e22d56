/* load_mcp.c - an MCP client for the servers that are measured: tools/call of
 * `echo` in the 2025-11-25 revision.
 *
 *   load_mcp http PORT PID CONNECTIONS WARM CALLS
 *   load_mcp stdio WARM CALLS COMMAND...
 *   load_mcp sessions PORT PID COUNT
 *   load_mcp list COMMAND...
 *
 * Closed loop: a connection has a session of its own and one call in flight;
 * on stdio there is one call in flight at all. WARM calls are not counted.
 * The server (PID, or the child) is charged the CPU time that CALLS took, and
 * the median time from the first byte of a call to the last of its answer is
 * told. `sessions` opens COUNT of them, leaves them, and weighs PID's memory.
 * `list` starts COMMAND and tells how long it took until its tools were listed.
 * One line of JSON is the result.
 *
 * Answers may be JSON with a length or a chunked event stream. Each must hold
 * the message that was to be echoed, so a bare echo can be measured too: it is
 * what the floors are. Whatever else comes ends the run with an error. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "meter.h"

#define CONNS_MAX    1000
#define SESSIONS_MAX 100000
#define CALLS_MAX    10000000
#define EVENTS_MAX   256
#define IN_MAX       ((size_t)1024 * 1024) /* bytes of one answer */
#define SETTLE_US    500000
#define ALARM_S      120

#define MESSAGE                                                                \
    "The quick brown fox jumps over the lazy dog, and the dog says that two "  \
    "hundred bytes of text are about what a tool is asked for when somebody "  \
    "wants to know what the weather is like in a town by the sea."
#define INITIALIZE                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"     \
    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{"  \
    "\"name\":\"load\",\"version\":\"1\"}}}"
#define INITIALIZED                                                            \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
#define CALL                                                                   \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"     \
    "\"name\":\"echo\",\"arguments\":{\"message\":\"" MESSAGE "\"}}}"

/* --- what is counted ----------------------------------------------------- */

struct tally {
    pid_t pid;
    unsigned warm, calls;
    unsigned sent, done;
    uint64_t cpu0, cpu, wall0, wall;
    uint32_t *ns; /* of each counted call */
};

static void tally_init(struct tally *t, unsigned warm, unsigned calls)
{
    *t = (struct tally){.warm = warm, .calls = calls};
    t->ns = mo_alloc(calls * sizeof(*t->ns));
    if (!t->ns)
        meter_die("out of memory");
}

/* Is there another call to make? */
static bool tally_next(struct tally *t)
{
    if (t->sent == t->warm + t->calls)
        return false;
    t->sent++;
    return true;
}

static void tally_done(struct tally *t, uint64_t since)
{
    uint64_t ns = meter_now_ns() - since;

    t->done++;
    if (t->done > t->warm)
        t->ns[t->done - t->warm - 1] = (uint32_t)(ns < UINT32_MAX ? ns : 0);
    if (t->done == t->warm) {
        t->cpu0 = meter_cpu_ns(t->pid);
        t->wall0 = meter_now_ns();
    }
    if (t->done == t->warm + t->calls) {
        t->wall = meter_now_ns() - t->wall0;
        t->cpu = meter_cpu_ns(t->pid) - t->cpu0;
    }
}

static bool tally_over(const struct tally *t)
{
    return t->done == t->warm + t->calls;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void tally_print(struct tally *t)
{
    qsort(t->ns, t->calls, sizeof(*t->ns), by_size);
    printf("{\"ops\":%u,\"cpu_ns\":%llu,\"wall_ns\":%llu,\"p50_ns\":%u,"
           "\"p99_ns\":%u}\n",
           t->calls, (unsigned long long)t->cpu, (unsigned long long)t->wall,
           t->ns[t->calls / 2], t->ns[(size_t)t->calls * 99 / 100]);
    mo_free(t->ns);
}

/* --- http ---------------------------------------------------------------- */

enum stage { HELLO, READY, CALLING };

struct client {
    int fd;
    enum stage stage;
    uint64_t since;
    char session[128]; /* a header line, or empty: it gave none */
    char call[1024];   /* the repeated request */
    size_t ncall;
    char in[IN_MAX];
    size_t n;
};

static size_t put_post(char *out, size_t max, const char *session,
                       const char *body)
{
    int n = snprintf(out, max,
                     "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                     "Content-Type: application/json\r\n"
                     "Accept: application/json, text/event-stream\r\n"
                     "MCP-Protocol-Version: 2025-11-25\r\n%s"
                     "Content-Length: %zu\r\n\r\n%s",
                     session, strlen(body), body);

    if (n < 0 || (size_t)n >= max)
        meter_die("a request is too long");
    return (size_t)n;
}

/* The value of a header, names in any case; empty if it is missing. */
static struct mo_span header(struct mo_span head, const char *name)
{
    while (head.p && head.n) {
        struct mo_span row = mo_span_cut(&head, '\n');
        struct mo_span value = mo_span_cut(&row, '\r');
        struct mo_span key = mo_span_cut(&value, ':');

        if (mo_span_ieq(key, mo_span_cstr(name)))
            return mo_span_trim(value);
    }
    return mo_span(NULL, 0);
}

/* The length of the answer if it is whole, else 0. */
static size_t whole(struct mo_span in, struct mo_span *head)
{
    ptrdiff_t end = mo_span_search(in, MO_SPAN("\r\n\r\n"));
    struct mo_span length;
    uint64_t n = 0;

    if (end < 0)
        return 0;
    *head = mo_span_head(in, (size_t)end + 2);
    length = header(*head, "Content-Length");
    if (length.n && mo_span_u64(length, &n) == 0)
        return in.n >= (size_t)end + 4 + n ? (size_t)end + 4 + (size_t)n : 0;
    if (header(*head, "Transfer-Encoding").n)
        return mo_span_ends(in, MO_SPAN("\r\n0\r\n\r\n")) ? in.n : 0;
    return (size_t)end + 4; /* 202 */
}

static void send_all(int fd, const char *p, size_t n)
{
    if (send(fd, p, n, MSG_NOSIGNAL) != (ssize_t)n)
        meter_die("a request was not taken whole: %s", strerror(errno));
}

static void send_text(struct client *c, const char *body)
{
    char text[1024];

    send_all(c->fd, text, put_post(text, sizeof(text), c->session, body));
}

static void next_call(struct client *c, struct tally *t)
{
    if (!tally_next(t))
        return;
    c->since = meter_now_ns();
    send_all(c->fd, c->call, c->ncall);
}

static void on_answer(struct client *c, struct tally *t, struct mo_span head,
                      struct mo_span all)
{
    struct mo_span id = header(head, "Mcp-Session-Id");

    if (!mo_span_starts(all, MO_SPAN("HTTP/1.1 20")))
        meter_die("not what was wanted: %.*s", (int)(all.n < 300 ? all.n : 300),
                  all.p);
    switch (c->stage) {
    case HELLO:
        if (id.n)
            (void)snprintf(c->session, sizeof(c->session),
                           "Mcp-Session-Id: %.*s\r\n", (int)id.n, id.p);
        c->stage = READY;
        send_text(c, INITIALIZED);
        break;
    case READY:
        c->stage = CALLING;
        c->ncall = put_post(c->call, sizeof(c->call), c->session, CALL);
        next_call(c, t);
        break;
    case CALLING:
        if (mo_span_search(all, MO_SPAN(MESSAGE)) < 0)
            meter_die("a wrong answer: %.*s", (int)all.n, all.p);
        tally_done(t, c->since);
        next_call(c, t);
    }
}

static void on_readable(struct client *c, struct tally *t)
{
    ssize_t n = recv(c->fd, c->in + c->n, sizeof(c->in) - c->n, 0);
    struct mo_span in, head;
    size_t len;

    if (n <= 0)
        meter_die("a connection was lost, or an answer is too long");
    c->n += (size_t)n;
    in = mo_span(c->in, c->n);
    len = whole(in, &head);
    if (!len)
        return;
    if (len != c->n)
        meter_die("more than one answer to one request");
    c->n = 0;
    on_answer(c, t, head, in);
}

static int dial(const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port =
                                htons((uint16_t)meter_arg(port, "port", 65535)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        meter_die("connect: %s", strerror(errno));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

static void run_http(char **arg)
{
    unsigned nclients = meter_arg(arg[2], "connections", CONNS_MAX);
    struct client *clients = mo_zalloc(nclients * sizeof(*clients));
    struct epoll_event ev[EVENTS_MAX];
    int ep = epoll_create1(EPOLL_CLOEXEC);
    struct tally t;

    if (!clients || ep < 0)
        meter_die("out of memory");
    tally_init(&t, meter_arg(arg[3], "warm", CALLS_MAX),
               meter_arg(arg[4], "calls", CALLS_MAX));
    t.pid = (pid_t)meter_arg(arg[1], "pid", 1U << 22);
    for (unsigned i = 0; i < nclients; i++) {
        struct client *c = &clients[i];
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

        c->fd = dial(arg[0]);
        (void)epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &e);
        send_text(c, INITIALIZE);
    }
    while (!tally_over(&t)) {
        int n = epoll_wait(ep, ev, EVENTS_MAX, -1);

        for (int i = 0; i < n; i++)
            on_readable(ev[i].data.ptr, &t);
    }
    tally_print(&t);
    mo_free(clients);
}

/* --- sessions that are left ---------------------------------------------- */

/* One request and its answer. */
static void talk(struct client *c, const char *body)
{
    struct mo_span head = {NULL, 0};
    size_t len = 0;

    send_text(c, body);
    for (c->n = 0; !len; len = whole(mo_span(c->in, c->n), &head)) {
        ssize_t n = recv(c->fd, c->in + c->n, sizeof(c->in) - c->n, 0);

        if (n <= 0)
            meter_die("the connection was lost");
        c->n += (size_t)n;
    }
    if (!header(head, "Mcp-Session-Id").n)
        meter_die("no session: %.*s", (int)c->n, c->in);
}

static void run_sessions(char **arg)
{
    pid_t pid = (pid_t)meter_arg(arg[1], "pid", 1U << 22);
    unsigned count = meter_arg(arg[2], "sessions", SESSIONS_MAX);
    struct client *c = mo_new(struct client);
    struct meter_mem before, after;

    if (!c)
        meter_die("out of memory");
    c->fd = dial(arg[0]);
    talk(c, INITIALIZE);
    (void)usleep(SETTLE_US);
    before = meter_mem(pid);
    for (unsigned i = 0; i < count; i++)
        talk(c, INITIALIZE);
    (void)usleep(SETTLE_US);
    after = meter_mem(pid);
    printf("{\"rss0\":%llu,\"rss\":%llu}\n", (unsigned long long)before.rss,
           (unsigned long long)after.rss);
    mo_free(c);
}

/* --- stdio --------------------------------------------------------------- */

struct child {
    pid_t pid;
    int to, from;
    char in[IN_MAX];
    size_t n;
};

static void spawn_child(struct child *x, char **command)
{
    int in[2], out[2];

    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        meter_die("pipe: %s", strerror(errno));
    x->pid = fork();
    if (x->pid == 0) {
        (void)dup2(in[0], STDIN_FILENO);
        (void)dup2(out[1], STDOUT_FILENO);
        (void)execvp(command[0], command);
        _exit(127);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    x->to = in[1];
    x->from = out[0];
}

/* A line out, the next line with an answer in it back; notices are skipped. */
static struct mo_span line(struct child *x, const char *text, const char *want)
{
    size_t n = strlen(text);

    if (write(x->to, text, n) != (ssize_t)n)
        meter_die("the child does not read");
    x->n = 0;
    for (;;) {
        ssize_t got = read(x->from, x->in + x->n, sizeof(x->in) - x->n);

        if (got <= 0)
            meter_die("the child ended, or says too much");
        x->n += (size_t)got;
        if (x->in[x->n - 1] == '\n' &&
            mo_span_search(mo_span(x->in, x->n), mo_span_cstr(want)) >= 0)
            return mo_span(x->in, x->n);
    }
}

static void run_stdio(char **arg)
{
    struct child x = {.n = 0};
    struct tally t;

    tally_init(&t, meter_arg(arg[0], "warm", CALLS_MAX),
               meter_arg(arg[1], "calls", CALLS_MAX));
    spawn_child(&x, arg + 2);
    t.pid = x.pid;
    (void)line(&x, INITIALIZE "\n", "\"protocolVersion\"");
    (void)line(&x, INITIALIZED "\n" CALL "\n", MESSAGE);
    while (tally_next(&t)) {
        uint64_t since = meter_now_ns();

        (void)line(&x, CALL "\n", MESSAGE);
        tally_done(&t, since);
    }
    tally_print(&t);
    (void)close(x.to);
    (void)kill(x.pid, SIGTERM);
    (void)waitpid(x.pid, NULL, 0);
}

#define LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"

static void run_list(char **arg)
{
    struct child x = {.n = 0};
    uint64_t since = meter_now_ns();

    spawn_child(&x, arg);
    (void)line(&x, INITIALIZE "\n", "\"protocolVersion\"");
    (void)line(&x, INITIALIZED "\n" LIST "\n", "\"tools\":[{");
    printf("{\"ns\":%llu}\n", (unsigned long long)(meter_now_ns() - since));
    (void)close(x.to);
    (void)kill(x.pid, SIGTERM);
    (void)waitpid(x.pid, NULL, 0);
}

static const struct {
    const char *name;
    int least, most; /* arguments after it */
    void (*run)(char **arg);
} plans[] = {
    {"http", 5, 5, run_http},
    {"stdio", 3, 64, run_stdio},
    {"sessions", 3, 3, run_sessions},
    {"list", 1, 64, run_list},
};

int main(int argc, char **argv)
{
    (void)alarm(ALARM_S);
    for (size_t i = 0; argc > 1 && i < MO_COUNT(plans); i++) {
        if (strcmp(argv[1], plans[i].name) != 0 || argc - 2 < plans[i].least ||
            argc - 2 > plans[i].most)
            continue;
        plans[i].run(argv + 2);
        return 0;
    }
    meter_die("usage: load_mcp http|stdio|sessions ... (see the source)");
}
