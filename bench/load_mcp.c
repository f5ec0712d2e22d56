/* load_mcp.c - an MCP client for the servers that are measured: tools/call in
 * the 2025-11-25 revision, of `echo` or what the options say (tally.h).
 *
 *   load_mcp [OPTIONS] http PORT PID CONNECTIONS WARM CALLS
 *   load_mcp [OPTIONS] stdio WARM CALLS COMMAND...
 *   load_mcp sessions PORT PID COUNT
 *   load_mcp list COMMAND...
 *
 * Closed loop: a connection has a session of its own and one call in flight;
 * on stdio there is one call in flight at all. `sessions` opens COUNT of them,
 * leaves them, and weighs PID's memory. `list` starts COMMAND and tells how
 * long it took until its tools were listed, and how many processes it had
 * started by then. One line of JSON is the result.
 *
 * Answers may be JSON with a length or a chunked event stream. Each must hold
 * the text that is wanted, so a bare echo can be measured too: it is what the
 * floors are. Whatever else comes ends the run with an error. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "tally.h"

#define BENCH_TOKEN  "of-the-benchmarks-only" /* as in kit.mjs */
#define CONNS_MAX    1000
#define SESSIONS_MAX 100000
#define EVENTS_MAX   256
#define IN_MAX       ((size_t)3 * 1024 * 1024) /* bytes of one answer */
#define SETTLE_US    500000
#define ALARM_S      120

/* --- http ---------------------------------------------------------------- */

enum stage { HELLO, READY, CALLING };

struct load {
    struct wish wish;
    struct tally t;
};

struct client {
    struct load *l;
    int fd;
    enum stage stage;
    uint64_t since;
    char session[1024];            /* a header line, or empty: it gave none */
    char call[2 * TALLY_TEXT_MAX]; /* the repeated request */
    size_t ncall;
    char *number; /* in it; NULL: it has none */
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
                     "MCP-Protocol-Version: 2025-11-25\r\n"
                     "Authorization: Bearer " BENCH_TOKEN "\r\n%s"
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
    char text[TALLY_TEXT_MAX];

    send_all(c->fd, text, put_post(text, sizeof(text), c->session, body));
}

static void prepare(struct client *c)
{
    char body[TALLY_TEXT_MAX];

    wish_put(&c->l->wish, body);
    c->ncall = put_post(c->call, sizeof(c->call), c->session, body);
    c->number = wish_field(c->call);
}

static void next_call(struct client *c)
{
    if (!tally_next(&c->l->t))
        return;
    wish_number(c->number, c->l->t.sent);
    c->since = meter_now_ns();
    send_all(c->fd, c->call, c->ncall);
}

static void on_answer(struct client *c, struct mo_span head, struct mo_span all)
{
    struct mo_span id = header(head, "Mcp-Session-Id");

    if (!mo_span_starts(all, MO_SPAN("HTTP/1.1 20")))
        meter_die("not what was wanted: %.*s", (int)(all.n < 300 ? all.n : 300),
                  all.p);
    switch (c->stage) {
    case HELLO:
        if (id.n > sizeof(c->session) - 32)
            meter_die("a session id is too long");
        if (id.n)
            (void)snprintf(c->session, sizeof(c->session),
                           "Mcp-Session-Id: %.*s\r\n", (int)id.n, id.p);
        c->stage = READY;
        send_text(c, INITIALIZED);
        break;
    case READY:
        c->stage = CALLING;
        prepare(c);
        next_call(c);
        break;
    case CALLING:
        if (mo_span_search(all, mo_span_cstr(c->l->wish.want)) < 0)
            meter_die("a wrong answer: %.*s", (int)all.n, all.p);
        tally_done(&c->l->t, c->since);
        next_call(c);
    }
}

static void on_readable(struct client *c)
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
    on_answer(c, head, in);
}

static void run_http(struct load *l, char **arg)
{
    unsigned nclients = meter_arg(arg[2], "connections", CONNS_MAX);
    struct client *clients = mo_zalloc(nclients * sizeof(*clients));
    struct epoll_event ev[EVENTS_MAX];
    int ep = epoll_create1(EPOLL_CLOEXEC);

    if (!clients || ep < 0)
        meter_die("out of memory");
    tally_init(&l->t, arg[3], arg[4]);
    l->t.pid = (pid_t)meter_arg(arg[1], "pid", 1U << 22);
    for (unsigned i = 0; i < nclients; i++) {
        struct client *c = &clients[i];
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

        c->l = l;
        c->fd = tally_dial(arg[0]);
        (void)epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &e);
        send_text(c, INITIALIZE);
    }
    while (!tally_over(&l->t)) {
        int n = epoll_wait(ep, ev, EVENTS_MAX, -1);

        for (int i = 0; i < n; i++)
            on_readable(ev[i].data.ptr);
    }
    tally_print(&l->t);
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

static void run_sessions(struct load *l, char **arg)
{
    pid_t pid = (pid_t)meter_arg(arg[1], "pid", 1U << 22);
    unsigned count = meter_arg(arg[2], "sessions", SESSIONS_MAX);
    struct client *c = mo_new(struct client);
    struct meter_mem before, after;

    if (!c)
        meter_die("out of memory");
    c->l = l;
    c->fd = tally_dial(arg[0]);
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
    posix_spawn_file_actions_t fa;
    int in[2], out[2];

    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        meter_die("pipe: %s", strerror(errno));
    (void)posix_spawn_file_actions_init(&fa);
    (void)posix_spawn_file_actions_adddup2(&fa, in[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&fa, out[1], STDOUT_FILENO);
    if (posix_spawnp(&x->pid, command[0], &fa, NULL, command, environ) != 0)
        meter_die("%s cannot be started", command[0]);
    (void)posix_spawn_file_actions_destroy(&fa);
    (void)close(in[0]);
    (void)close(out[1]);
    x->to = in[1];
    x->from = out[0];
}

/* A line out, and back what came up to the end of the line with the wanted
 * text in it; notices are skipped. Nothing is wanted: nothing is waited for. */
static struct mo_span line(struct child *x, const char *text, const char *want)
{
    size_t n = strlen(text);

    if (write(x->to, text, n) != (ssize_t)n)
        meter_die("the child does not read");
    x->n = 0;
    while (*want) {
        ssize_t got = read(x->from, x->in + x->n, sizeof(x->in) - x->n);

        if (got <= 0)
            meter_die("the child ended, or says too much");
        x->n += (size_t)got;
        if (x->in[x->n - 1] == '\n' &&
            mo_span_search(mo_span(x->in, x->n), mo_span_cstr(want)) >= 0)
            break;
    }
    return mo_span(x->in, x->n);
}

static void end_child(struct child *x)
{
    (void)close(x->to);
    (void)kill(x->pid, SIGTERM);
    (void)waitpid(x->pid, NULL, 0);
    mo_free(x);
}

static struct child *new_child(char **command)
{
    struct child *x = mo_new(struct child);

    if (!x)
        meter_die("out of memory");
    spawn_child(x, command);
    (void)line(x, INITIALIZE "\n", "\"protocolVersion\"");
    (void)line(x, INITIALIZED "\n", "");
    return x;
}

static void run_stdio(struct load *l, char **arg)
{
    char call[TALLY_TEXT_MAX + 1];
    struct child *x;
    char *number;

    wish_put(&l->wish, call);
    number = wish_field(call);
    call[strlen(call) + 1] = '\0';
    call[strlen(call)] = '\n';
    tally_init(&l->t, arg[0], arg[1]);
    x = new_child(arg + 2);
    l->t.pid = x->pid;
    while (tally_next(&l->t)) {
        uint64_t since = meter_now_ns();

        wish_number(number, l->t.sent);
        (void)line(x, call, l->wish.want);
        tally_done(&l->t, since);
    }
    tally_print(&l->t);
    end_child(x);
}

#define LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n"

static void run_list(struct load *l, char **arg)
{
    uint64_t since = meter_now_ns(), ns;
    struct child *x = new_child(arg);
    struct mo_span got = line(x, LIST, "\"tools\":[{");

    (void)l;
    ns = meter_now_ns() - since;
    printf("{\"ns\":%llu,\"bytes\":%zu,\"children\":%u}\n",
           (unsigned long long)ns, got.n, meter_children(x->pid));
    end_child(x);
}

static const struct {
    const char *name;
    int least, most; /* arguments after it */
    void (*run)(struct load *l, char **arg);
} plans[] = {
    {"http", 5, 5, run_http},
    {"stdio", 3, 64, run_stdio},
    {"sessions", 3, 3, run_sessions},
    {"list", 1, 64, run_list},
};

int main(int argc, char **argv)
{
    struct load l;

    (void)alarm(ALARM_S);
    wish_read(&l.wish, &argc, &argv);
    for (size_t i = 0; argc > 1 && i < MO_COUNT(plans); i++) {
        if (strcmp(argv[1], plans[i].name) != 0 || argc - 2 < plans[i].least ||
            argc - 2 > plans[i].most)
            continue;
        plans[i].run(&l, argv + 2);
        return 0;
    }
    meter_die("usage: load_mcp http|stdio|sessions|list ... (see the source)");
}
