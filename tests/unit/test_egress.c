/* The relay, with a real namespace of launcher/net.c.
 *
 * Each case forks a child that moves to such a namespace, passes its sockets to
 * the test and then acts as the program in the box. The test relays, with an
 * echo server on 127.0.0.1. */
#include "egress/relay_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/dns.h"
#include "launcher/net.h"
#include "loop/net.h"
#include "loop/watch.h"
#include "mo_net.h"

#define ROWS_MAX  64
#define ECHO_HIGH ((size_t)256 * 1024)

struct row {
    char name[64], address[MO_IP_TEXT], rule[64], reason[120];
    char program[MO_EGRESS_PROGRAM_MAX];
    bool allowed;
    unsigned port, uncounted;
    uint64_t sent, received;
};

struct world {
    struct mo_loop *l;
    struct mo_listener *echo;
    unsigned port; /* of the echo server */
    struct mo_egress *x;
    bool gone;
    pid_t pid;
    struct mo_watch *end; /* of the child */
    int status;
    bool exited;
    struct row rows[ROWS_MAX];
    size_t nrows;
    struct mo_egress_ask *waits; /* about wait.ask */
    char asked[512];             /* questions, in order */
    unsigned withdrawn;
    unsigned searches;      /* for programs */
    struct mo_later named;  /* the answer to the last one */
    uint64_t search_number; /* of it */
};

/* --- a resolver that answers with private addresses ---------------------- */

static int lookups;

static struct addrinfo *new_result(const char *text, struct addrinfo *next)
{
    struct addrinfo *ai = calloc(1, sizeof(*ai));
    struct sockaddr_in6 *a6 = calloc(1, sizeof(*a6));
    struct sockaddr_in *a4 = (struct sockaddr_in *)(void *)a6;
    struct mo_ip ip;
    bool v4;

    assert_true(mo_ip_parse(mo_span_cstr(text), &ip));
    v4 = mo_ip_is_v4(&ip);
    *ai = (struct addrinfo){.ai_family = v4 ? AF_INET : AF_INET6,
                            .ai_addr = (struct sockaddr *)a6,
                            .ai_addrlen = v4 ? sizeof(*a4) : sizeof(*a6),
                            .ai_next = next};
    a6->sin6_family = (sa_family_t)ai->ai_family;
    if (v4)
        memcpy(&a4->sin_addr, ip.b + 12, 4);
    else
        memcpy(&a6->sin6_addr, ip.b, 16);
    return ai;
}

/* Also called for the address of the echo server. */
int getaddrinfo(const char *name, const char *service,
                const struct addrinfo *hints, struct addrinfo **out)
{
    static const char *const private[] = {
        "10.0.0.1", "127.0.0.1",     "169.254.169.254", "100.64.0.1",
        "::1",      "fd00:ec2::254", "64:ff9b::a00:1",  "192.0.2.1",
    };

    (void)service;
    (void)hints;
    *out = NULL;
    if (strcmp(name, "127.0.0.1") == 0) {
        *out = new_result(name, NULL);
        return 0;
    }
    lookups++;
    if (strlen(name) > 4 && strcmp(name + strlen(name) - 4, ".ask") == 0) {
        bool meta = strcmp(name, "metadata.ask") == 0;

        *out = new_result(meta ? "169.254.169.254" : "127.0.0.1", NULL);
        return 0;
    }
    if (strcmp(name, "private.test") != 0)
        return EAI_NONAME;
    for (size_t i = 0; i < MO_COUNT(private); i++)
        *out = new_result(private[i], *out);
    return 0;
}

void freeaddrinfo(struct addrinfo *ai)
{
    while (ai) {
        struct addrinfo *next = ai->ai_next;

        free(ai->ai_addr);
        free(ai);
        ai = next;
    }
}

/* --- in the child: failures are exit codes, by line ---------------------- */

#define must(cond)                                                             \
    do {                                                                       \
        if (!(cond)) {                                                         \
            fprintf(stderr, "child: line %d: %s, errno %d\n", __LINE__, #cond, \
                    errno);                                                    \
            _exit(1);                                                          \
        }                                                                      \
    } while (0)

static int dial(const char *ip, unsigned port)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6,
                             .sin6_port = htons((uint16_t)port)};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    struct mo_ip to;

    must(mo_ip_parse(mo_span_cstr(ip), &to));
    memcpy(&a.sin6_addr, to.b, 16);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    (void)close(fd);
    return -errno;
}

/* Sends, ends its output, reads all. Returns bytes, or -errno. */
static ssize_t talk(int fd, struct mo_span out, char *in, size_t max)
{
    size_t got = 0;
    ssize_t n = 0;

    if (out.n && send(fd, out.p, out.n, MSG_NOSIGNAL) != (ssize_t)out.n)
        return -errno;
    (void)shutdown(fd, SHUT_WR);
    while (got < max) {
        n = recv(fd, in + got, max - got, 0);
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    n = n < 0 ? -errno : (ssize_t)got;
    (void)close(fd);
    return n;
}

/* The connection is accepted by the kernel and reset by the relay. */
static bool is_reset(int fd, struct mo_span out)
{
    char in[64];
    ssize_t n;

    if (fd < 0)
        return fd == -ECONNRESET;
    n = talk(fd, out, in, sizeof(in));
    return n == -ECONNRESET || n == -EPIPE;
}

static size_t put_query(char *q, const char *name, int type)
{
    static const char head[12] = {0x12, 0x34, 1, 0, 0, 1};
    struct mo_span rest = mo_span_cstr(name);
    size_t n = sizeof(head);

    memcpy(q, head, sizeof(head));
    while (rest.p) {
        struct mo_span label = mo_span_cut(&rest, '.');

        q[n++] = (char)label.n;
        memcpy(q + n, label.p, label.n);
        n += label.n;
    }
    memcpy(q + n, (char[]){0, 0, (char)type, 0, 1}, 5);
    return n + 5;
}

/* The address in an answer; false: there is none. */
static bool read_answer(const char *a, size_t n, int type, char *out)
{
    struct mo_ip ip = {{[10] = 0xFF, [11] = 0xFF}};
    size_t len = type == MO_DNS_A ? 4 : 16;

    if (n < 12 + len || a[7] != 1)
        return false;
    memcpy(ip.b + 16 - len, a + n - len, len);
    mo_ip_text(&ip, out);
    return true;
}

/* Asks the name server at `server`. Returns the code of the answer. */
static int ask(const char *server, const char *name, int type, char *out)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(53)};
    int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    struct mo_ip to;
    char q[512];
    size_t len = put_query(q, name, type);
    ssize_t n;

    must(mo_ip_parse(mo_span_cstr(server), &to));
    memcpy(&a.sin6_addr, to.b, 16);
    /* connected: answers of another address would not be received */
    must(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
    must(send(fd, q, len, 0) == (ssize_t)len);
    n = recv(fd, q, sizeof(q), 0);
    must(n >= 12);
    (void)close(fd);
    *out = '\0';
    (void)read_answer(q, (size_t)n, type, out);
    return q[3] & 15;
}

static void send_fds(int sock, const struct mo_net *net)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(net->fds))];
    } c = {.room = {0}};
    char byte = (char)net->n;
    struct iovec v = {&byte, 1};
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &c,
                       .msg_controllen = CMSG_SPACE(net->n * sizeof(int))};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);

    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(net->n * sizeof(int));
    memcpy(CMSG_DATA(h), net->fds, net->n * sizeof(int));
    must(sendmsg(sock, &m, 0) == 1);
}

/* --- the test's side ----------------------------------------------------- */

struct echo {
    struct mo_stream *s;
};

static uint64_t echoed;

static void echo_read(void *ctx, char *p, size_t n)
{
    struct echo *c = ctx;

    echoed += n;
    (void)mo_stream_write(c->s, mo_span(p, n));
    if (mo_stream_queued(c->s) > ECHO_HIGH)
        mo_stream_pause(c->s);
}

static void echo_drain(void *ctx)
{
    struct echo *c = ctx;

    mo_stream_resume(c->s);
}

static void echo_eof(void *ctx)
{
    struct echo *c = ctx;

    mo_stream_finish(c->s, WAIT_MS);
}

static void echo_close(void *ctx, const struct mo_err *why)
{
    (void)why;
    mo_free(ctx);
}

static void on_accept(void *ctx, struct mo_stream *s)
{
    static const struct mo_stream_cb cb = {.on_read = echo_read,
                                           .on_eof = echo_eof,
                                           .on_drain = echo_drain,
                                           .on_close = echo_close};
    struct echo *c = mo_new(struct echo);

    (void)ctx;
    assert_non_null(c);
    c->s = s;
    mo_stream_attach(s, &cb, c);
}

static void on_row(void *ctx, const struct mo_egress_row *row)
{
    struct world *w = ctx;
    struct row *r = &w->rows[w->nrows];

    assert_true(w->nrows < ROWS_MAX);
    w->nrows++;
    (void)snprintf(r->name, sizeof(r->name), "%s", row->name);
    (void)snprintf(r->address, sizeof(r->address), "%s", row->address);
    (void)snprintf(r->rule, sizeof(r->rule), "%s", row->rule);
    (void)snprintf(r->reason, sizeof(r->reason), "%s", row->reason);
    (void)snprintf(r->program, sizeof(r->program), "%s",
                   row->program ? row->program : "");
    r->allowed = row->allowed;
    r->port = row->port;
    r->uncounted = row->uncounted;
    r->sent = row->sent;
    r->received = row->received;
}

static int take_fds(int sock, int *fds)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * (MO_BOXREQ_PORTS + 2))];
    } c;
    char byte;
    struct iovec v = {&byte, 1};
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &c,
                       .msg_controllen = sizeof(c)};

    assert_int_equal(recvmsg(sock, &m, MSG_CMSG_CLOEXEC), 1);
    memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&m)), (size_t)byte * sizeof(int));
    return byte;
}

static void on_child_end(void *ctx, int fd)
{
    struct world *w = ctx;

    (void)fd;
    assert_int_equal(waitpid(w->pid, &w->status, 0), w->pid);
    w->exited = true;
    mo_watch_close(mo_take_ptr(&w->end));
}

static void on_gone(void *ctx)
{
    ((struct world *)ctx)->gone = true;
}

static bool has_exited(void *ctx)
{
    return ((struct world *)ctx)->exited;
}

static bool is_gone(void *ctx)
{
    return ((struct world *)ctx)->gone;
}

static void run_child(int sock, int life, const char *ports, unsigned port,
                      void (*program)(unsigned port))
{
    struct mo_net net;
    struct mo_err e;
    char go;

    must(geteuid() == 0 || unshare(CLONE_NEWUSER) == 0);
    if (mo_net_open(&net, ports, &e) < 0) {
        fprintf(stderr, "%s\n", e.msg);
        _exit(1);
    }
    send_fds(sock, &net);
    for (unsigned i = 0; i < net.n; i++)
        (void)close(net.fds[i]);
    must(read(sock, &go, 1) == 1);
    (void)life; /* its end tells the test that we are gone */
    program(port);
    _exit(0);
}

/* --- an asker, which decides by the name of the host --------------------- */

static bool starts(const char *host, const char *with)
{
    return strncmp(host, with, strlen(with)) == 0;
}

/* The connection to go.ask is the sign to answer about wait.ask. */
static enum mo_egress_say on_judge(void *ctx,
                                   const struct mo_egress_question *q)
{
    struct world *w = ctx;

    if (starts(q->host, "go.")) {
        assert_non_null(w->waits);
        assert_ptr_equal(mo_egress_ask_data(w->waits), w);
        mo_egress_answer_ask(mo_take_ptr(&w->waits), true, "later");
    }
    return starts(q->host, "yes")  ? MO_EGRESS_YES
           : starts(q->host, "no") ? MO_EGRESS_NO
                                   : MO_EGRESS_ASK;
}

static void on_ask(void *ctx, struct mo_egress_ask *a,
                   const struct mo_egress_question *q)
{
    struct world *w = ctx;
    size_t n = strlen(w->asked);

    (void)snprintf(w->asked + n, sizeof(w->asked) - n, "%s[%s%s%s%s] ", q->host,
                   q->request, q->tls ? "TLS" : "", *q->program ? " by " : "",
                   q->program);
    if (starts(q->host, "wait")) {
        mo_egress_ask_set(a, w);
        w->waits = a;
    } else if (!starts(q->host, "gone") && !starts(q->host, "many")) {
        mo_egress_answer_ask(
            a, !starts(q->host, "deny") && !starts(q->host, "93."), "said");
    }
}

static void on_withdrawn(void *ctx, struct mo_egress_ask *a)
{
    struct world *w = ctx;

    (void)a;
    w->withdrawn++;
}

static const struct mo_egress_asker asker = {on_judge, on_ask, on_withdrawn};

/* --- programs of the box ------------------------------------------------- */

static void on_named(struct mo_later *d)
{
    struct world *w = mo_container_of(d, struct world, named);

    mo_egress_name_caller(w->x, 0, MO_SPAN("nobody"));
    mo_egress_name_caller(w->x, w->search_number + 1, MO_SPAN("nobody"));
    mo_egress_name_caller(w->x, w->search_number, MO_SPAN("/a\n%\x1b"));
    mo_egress_name_caller(w->x, w->search_number, MO_SPAN("again"));
}

/* The first is found, the second is not known, the others cannot be looked
 * for. */
static int find_program(void *ctx, const struct mo_egress_caller *c)
{
    struct world *w = ctx;

    assert_int_equal(c->to_port, w->port);
    assert_true(c->from_port > 0 && c->from_port != c->to_port);
    assert_true(mo_egress_is_inside(&c->to));
    w->searches++;
    if (w->searches > 2)
        return MO_EBUSY;
    w->search_number = c->number;
    if (w->searches == 1)
        mo_loop_defer(w->l, &w->named);
    return 0;
}

static mo_egress_find_fn *finder; /* of the next setup() */

/* PORT in json is that of the echo server. */
static void setup(struct world *w, const char *json,
                  void (*program)(unsigned port))
{
    struct mo_listen_opts lo = {.addr = "127.0.0.1:0"};
    struct mo_egress_opts o = {
        .on_row = on_row, .ctx = w, .asker = &asker, .find_program = finder};
    mo_autobuf struct mo_buf text = {.max = 4096}, ports = {.max = 256};
    int sock[2], life[2], fds[MO_BOXREQ_PORTS + 2];
    struct mo_err e;

    *w = (struct world){.l = loop_new()};
    mo_later_init(&w->named, on_named);
    assert_int_equal(mo_listen(w->l, &lo, on_accept, NULL, &w->echo, &e), 0);
    w->port = mo_listener_port(w->echo);
    for (struct mo_span rest = mo_span_cstr(json); rest.n;) {
        ptrdiff_t at = mo_span_search(rest, MO_SPAN("PORT"));

        mo_buf_span(&text, mo_span_take(&rest, at < 0 ? rest.n : (size_t)at));
        if (mo_span_strip(&rest, MO_SPAN("PORT")))
            mo_buf_u64(&text, w->port);
    }
    if (mo_egress_policy_read(mo_span_cstr(mo_buf_cstr(&text)), &o.policy, &e))
        fail_msg("%s", e.msg);
    for (size_t i = 0; i < o.policy->nports; i++)
        (void)mo_buf_printf(&ports, "%s%u", i ? "," : "", o.policy->ports[i]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
    assert_int_equal(pipe(life), 0);
    w->pid = fork();
    assert_true(w->pid >= 0);
    if (w->pid == 0) {
        (void)close(life[0]);
        run_child(sock[1], life[1], mo_buf_cstr(&ports), w->port, program);
    }
    (void)close(life[1]);
    (void)close(sock[1]);
    o.nfds = (size_t)take_fds(sock[0], fds);
    o.fds = fds;
    if (mo_egress_open(w->l, &o, &w->x, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(mo_watch_open(w->l, life[0], on_child_end, w, &w->end, &e),
                     0);
    assert_int_equal(write(sock[0], "g", 1), 1);
    (void)close(sock[0]);
}

static void teardown(struct world *w)
{
    wait_for(w->l, has_exited, w);
    assert_true(WIFEXITED(w->status));
    assert_int_equal(WEXITSTATUS(w->status), 0);
    mo_egress_close(w->x, on_gone, w);
    assert_false(w->gone);
    wait_for(w->l, is_gone, w);
    mo_listener_close(w->echo);
    mo_loop_run(w->l);
    assert_int_equal(mo_loop_stats(w->l).streams, 0);
    mo_loop_free(w->l);
}

static const struct row *find_row(const struct world *w, const char *reason)
{
    for (size_t i = 0; i < w->nrows; i++)
        if (strstr(w->rows[i].reason, reason))
            return &w->rows[i];
    fail_msg("no row '%s' of %zu", reason, w->nrows);
    return NULL;
}

/* --- cases --------------------------------------------------------------- */

static void use_names(unsigned port)
{
    char ip[MO_IP_TEXT], again[MO_IP_TEXT], in[64];

    must(ask("127.0.0.1", "api.test", MO_DNS_A, ip) == MO_DNS_NOERROR);
    must(strncmp(ip, "198.18.", 7) == 0 || strncmp(ip, "198.19.", 7) == 0);
    must(talk(dial(ip, port), MO_SPAN("hello"), in, sizeof(in)) == 5);
    must(memcmp(in, "hello", 5) == 0);
    must(ask("127.0.0.1", "API.test", MO_DNS_AAAA, again) == MO_DNS_NOERROR);
    must(strncmp(again, "fd6d:", 5) == 0);
    must(talk(dial(again, port), MO_SPAN("hello!"), in, sizeof(in)) == 6);
    /* whatever server is asked, over both families */
    must(ask("8.8.8.8", "api.test", MO_DNS_A, again) == MO_DNS_NOERROR);
    must(strcmp(ip, again) == 0);
    must(ask("::1", "api.test", MO_DNS_A, again) == MO_DNS_NOERROR);
    must(ask("2001:4860:4860::8888", "api.test", MO_DNS_A, again) ==
         MO_DNS_NOERROR);
    must(ask("127.0.0.1", "other.test", MO_DNS_A, again) == MO_DNS_NXDOMAIN);
}

static void test_names(void **state)
{
    struct world w;
    const struct row *r;

    (void)state;
    setup(&w, "{\"allow\":[\"api.test=127.0.0.1:PORT\"]}", use_names);
    teardown(&w);
    assert_int_equal(w.nrows, 2);
    r = &w.rows[0];
    assert_string_equal(r->name, "api.test");
    assert_string_equal(r->address, "127.0.0.1");
    assert_string_equal(r->reason, "closed");
    assert_true(r->allowed && strstr(r->rule, "api.test="));
    assert_int_equal(r->port, w.port);
    assert_int_equal(r->sent, 5);
    assert_int_equal(r->received, 5);
}

static void ask_over_tcp(unsigned port)
{
    char q[512], in[512], ip[MO_IP_TEXT];
    int fd = dial("1.1.1.1", 53);
    size_t n = put_query(q + 2, "api.test", MO_DNS_A);
    ssize_t got;

    (void)port;
    q[0] = 0;
    q[1] = (char)n;
    must(fd >= 0);
    must(send(fd, q, 1, 0) == 1); /* in pieces */
    must(send(fd, q + 1, n + 1, 0) == (ssize_t)n + 1);
    got = talk(fd, mo_span(q, n + 2), in, sizeof(in));
    must(got > 0 && got % 2 == 0); /* two answers */
    must(read_answer(in + 2, (size_t)got / 2 - 2, MO_DNS_A, ip));
    fd = dial("1.1.1.1", 53);
    must(talk(fd, MO_SPAN("\xff\xff"), in, sizeof(in)) <= 0);
}

static void test_dns_over_tcp(void **state)
{
    struct world w;

    (void)state;
    setup(&w, "{\"allow\":[\"api.test=127.0.0.1:PORT\"]}", ask_over_tcp);
    teardown(&w);
    assert_int_equal(w.nrows, 0);
}

static void try_others(unsigned port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(443)};
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    char ip[MO_IP_TEXT];

    must(is_reset(dial("93.184.216.34", port), MO_SPAN("x")));
    must(is_reset(dial("169.254.169.254", port), MO_SPAN("x")));
    must(is_reset(dial("127.0.0.1", port), MO_SPAN("x")));
    must(is_reset(dial("198.18.77.77", port), MO_SPAN("x")));
    must(is_reset(dial("2606:4700::1111", port), MO_SPAN("x")));
    must(ask("127.0.0.1", "only80.test", MO_DNS_A, ip) == MO_DNS_NOERROR);
    must(is_reset(dial(ip, port), MO_SPAN("x")));
    for (unsigned p = 1; p < 1000; p++) /* a scan */
        must(p == 53 || p == 80 || dial("10.0.0.1", p) == -ECONNREFUSED);
    (void)inet_pton(AF_INET, "93.184.216.34", &a.sin_addr); /* QUIC */
    must(connect(udp, (struct sockaddr *)&a, sizeof(a)) == 0);
    must(send(udp, "x", 1, 0) == 1);
    must(recv(udp, ip, 1, 0) < 0 && errno == ECONNREFUSED);
}

static void test_others(void **state)
{
    struct world w;

    (void)state;
    setup(&w, "{\"allow\":[\"api.test=127.0.0.1:PORT\",\"only80.test:80\"]}",
          try_others);
    teardown(&w);
    assert_int_equal(w.nrows, 6);
    for (size_t i = 0; i < w.nrows; i++) {
        assert_false(w.rows[i].allowed);
        assert_string_equal(w.rows[i].reason, "not allowed");
    }
    assert_string_equal(w.rows[0].address, "93.184.216.34");
    assert_string_equal(w.rows[5].name, "only80.test");
}

static void use_address(unsigned port)
{
    char in[64];

    must(talk(dial("127.0.0.1", port), MO_SPAN("raw"), in, sizeof(in)) == 3);
    /* an IPv4 address written as IPv6 is the same address */
    must(talk(dial("::ffff:127.0.0.1", port), MO_SPAN("raw"), in, sizeof(in)) ==
         3);
    must(is_reset(dial("127.0.0.2", port), MO_SPAN("x")));
}

static void test_address(void **state)
{
    struct world w;

    (void)state;
    setup(&w, "{\"allow\":[\"127.0.0.1:PORT\"]}", use_address);
    teardown(&w);
    assert_int_equal(w.nrows, 3);
    assert_string_equal(w.rows[0].name, "");
}

/* A ClientHello that is as short as possible. */
static size_t put_hello(char *b, const char *name)
{
    size_t n = strlen(name), ext = n ? n + 9 : 0, body = 34 + 7 + 2 + ext;
    size_t at = 0;
    const char head[] = {0x16, 3, 1, 0, (char)(body + 4), 1, 0, 0, (char)body};

    memcpy(b, head, sizeof(head));
    at = sizeof(head);
    memset(b + at, 3, 34);
    at += 34;
    memcpy(b + at, "\0\0\2\x13\1\1\0", 7);
    at += 7;
    b[at++] = 0;
    b[at++] = (char)ext;
    if (n) {
        const char sni[] = {0, 0, 0,      (char)(n + 5), 0, (char)(n + 3),
                            0, 0, (char)n};

        memcpy(b + at, sni, sizeof(sni));
        memcpy(b + at + sizeof(sni), name, n);
        at += sizeof(sni) + n;
    }
    return at;
}

static void use_tls(unsigned port)
{
    char ip[MO_IP_TEXT], hello[256], in[512];
    size_t n;
    int fd;

    must(ask("127.0.0.1", "api.test", MO_DNS_A, ip) == MO_DNS_NOERROR);
    n = put_hello(hello, "API.test");
    fd = dial(ip, port);
    must(send(fd, hello, 3, 0) == 3); /* in pieces */
    must(talk(fd, mo_span(hello + 3, n - 3), in, sizeof(in)) == (ssize_t)n);
    must(memcmp(in, hello, n) == 0);
    n = put_hello(hello, "evil.test");
    must(is_reset(dial(ip, port), mo_span(hello, n)));
    n = put_hello(hello, "");
    must(is_reset(dial(ip, port), mo_span(hello, n)));
    n = put_hello(hello, "api.test");
    must(is_reset(dial(ip, port), mo_span(hello, n - 1))); /* cut */
    hello[5] = 2;
    must(is_reset(dial(ip, port), mo_span(hello, n))); /* not a ClientHello */
    /* an allowed address has no name to compare */
    n = put_hello(hello, "");
    must(talk(dial("127.0.0.1", port), mo_span(hello, n), in, sizeof(in)) ==
         (ssize_t)n);
}

static void test_tls(void **state)
{
    struct world w;

    (void)state;
    setup(&w, "{\"allow\":[\"api.test=127.0.0.1:PORT\",\"127.0.0.1:PORT\"]}",
          use_tls);
    teardown(&w);
    assert_int_equal(w.nrows, 6);
    assert_int_equal(find_row(&w, "another host")->received, 0);
    assert_false(find_row(&w, "names no host")->allowed);
    assert_false(find_row(&w, "cannot be read")->allowed);
}

static void use_limits(unsigned port)
{
    char in[4096], out[4096] = {0};
    int a = dial("127.0.0.1", port), b = dial("127.0.0.1", port);

    /* both are accepted by the relay when they echo */
    must(send(a, "a", 1, 0) == 1 && recv(a, in, 1, 0) == 1);
    must(send(b, "b", 1, 0) == 1 && recv(b, in, 1, 0) == 1);
    must(is_reset(dial("127.0.0.1", port), MO_SPAN("c")));
    must(talk(b, MO_SPAN("end"), in, sizeof(in)) == 3);
    for (;;) { /* a megabyte, in both directions together */
        if (send(a, out, sizeof(out), MSG_NOSIGNAL) < 0 ||
            recv(a, in, sizeof(in), 0) <= 0)
            break;
    }
    must(errno == ECONNRESET || errno == EPIPE);
    must(is_reset(dial("127.0.0.1", port), MO_SPAN("d")));
}

static void test_limits(void **state)
{
    struct world w;

    (void)state;
    setup(&w,
          "{\"allow\":[\"127.0.0.1:PORT\"],\"maxConnections\":2,"
          "\"maxMegabytes\":1}",
          use_limits);
    teardown(&w);
    assert_int_equal(w.nrows, 4);
    assert_false(find_row(&w, "too many connections")->allowed);
    assert_true(find_row(&w, "too many bytes")->allowed);
    assert_false(w.rows[3].allowed);
}

static void use_bad_hosts(unsigned port)
{
    char ip[MO_IP_TEXT];

    (void)port;
    must(ask("127.0.0.1", "private.test", MO_DNS_A, ip) == MO_DNS_NOERROR);
    must(is_reset(dial(ip, 80), MO_SPAN("x")));
    must(is_reset(dial(ip, 443), MO_SPAN("x")));
    must(ask("127.0.0.1", "none.test", MO_DNS_A, ip) == MO_DNS_NOERROR);
    must(is_reset(dial(ip, 80), MO_SPAN("x")));
    must(ask("127.0.0.1", "closed.test", MO_DNS_A, ip) == MO_DNS_NOERROR);
    must(is_reset(dial(ip, 1), MO_SPAN("x")));
    must(ask("127.0.0.1", "secret.evil", MO_DNS_A, ip) == MO_DNS_NXDOMAIN);
}

/* A name that is allowed leads to no private address. Other names are not even
 * resolved. */
static void test_bad_hosts(void **state)
{
    struct world w;

    (void)state;
    setup(&w, "{\"allow\":[\"*.test\",\"closed.test=127.0.0.1:1\"]}",
          use_bad_hosts);
    lookups = 0;
    teardown(&w);
    assert_int_equal(w.nrows, 4);
    assert_string_equal(w.rows[0].name, "private.test");
    assert_false(find_row(&w, "private network")->allowed);
    assert_string_equal(w.rows[1].reason, w.rows[0].reason);
    assert_true(find_row(&w, "none.test")->allowed);
    assert_true(find_row(&w, "connect to")->allowed);
    assert_int_equal(lookups, 2); /* one serves two connections */
}

static void open_many(unsigned port)
{
    for (int i = 0; i < 2000; i++)
        must(is_reset(dial("10.9.8.7", port), MO_SPAN("x")));
}

/* Refusals are counted when there are too many to report. */
static void test_many(void **state)
{
    struct world w;
    unsigned all = 0;

    (void)state;
    setup(&w, "{\"allow\":[\"127.0.0.1:PORT\"]}", open_many);
    teardown(&w);
    assert_true(w.nrows < ROWS_MAX);
    for (size_t i = 0; i < w.nrows; i++)
        all += w.rows[i].uncounted + (w.rows[i].port != 0);
    assert_int_equal(all, 2000);
}

static void hold_open(unsigned port)
{
    char in[8];
    int fd = dial("127.0.0.1", port);

    must(send(fd, "x", 1, 0) == 1 && recv(fd, in, 1, 0) == 1);
    must(recv(fd, in, 1, 0) < 0 && errno == ECONNRESET);
}

/* Whichever call is the first to see it. */
static void wait_for_reset(unsigned port)
{
    char in[8];
    int fd = dial("127.0.0.1", port);
    ssize_t n = -1;

    errno = fd < 0 ? -fd : 0;
    if (fd >= 0)
        n = send(fd, "x", 1, MSG_NOSIGNAL);
    while (n > 0)
        n = recv(fd, in, 1, 0);
    must(n < 0 && (errno == ECONNRESET || errno == EPIPE));
}

static bool has_a_stream_pair(void *ctx)
{
    struct world *w = ctx;

    return mo_loop_stats(w->l).streams >= 3; /* in, out, the echo server's */
}

/* Closing the relay resets what is open. */
static void test_close(void **state)
{
    struct world w;

    (void)state;
    setup(&w, "{\"allow\":[\"127.0.0.1:PORT\"]}", wait_for_reset);
    wait_for(w.l, has_a_stream_pair, &w);
    mo_egress_close(w.x, on_gone, &w);
    wait_for(w.l, is_gone, &w);
    wait_for(w.l, has_exited, &w);
    assert_int_equal(w.status, 0);
    assert_int_equal(w.nrows, 1);
    assert_string_equal(w.rows[0].reason, "the box has ended");
    mo_listener_close(w.echo);
    mo_loop_run(w.l);
    mo_loop_free(w.l);
}

static void test_idle(void **state)
{
    struct world w;

    (void)state;
    setup(&w, "{\"allow\":[\"127.0.0.1:PORT\"],\"idleSeconds\":1}", hold_open);
    teardown(&w);
    assert_string_equal(w.rows[0].reason, "idle for too long");
}

static void open_five(unsigned port)
{
    char in[8];
    int fd[5];

    for (int i = 0; i < 5; i++)
        must((fd[i] = dial("127.0.0.1", port)) >= 0);
    for (int i = 0; i < 5; i++)
        must(talk(fd[i], MO_SPAN("five"), in, sizeof(in)) == 4);
}

static void raise_limit(struct mo_timer *t)
{
    struct rlimit r;

    (void)t;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
    r.rlim_cur = r.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
}

/* Without descriptors connections wait until there are some. */
static void test_no_descriptors(void **state)
{
    struct mo_timer later;
    struct rlimit r;
    struct world w;

    (void)state;
    setup(&w, "{\"allow\":[\"127.0.0.1:PORT\"]}", open_five);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
    r.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
    mo_timer_init(&later, raise_limit);
    mo_timer_start(w.l, &later, 250);
    teardown(&w);
    assert_int_equal(w.nrows, 5);
}

static void open_forty(unsigned port)
{
    char in[1];
    int fd[40], ok = 0;

    for (int i = 0; i < 40; i++)
        must((fd[i] = dial("127.0.0.1", port)) >= 0 || fd[i] == -ECONNRESET);
    for (int i = 0; i < 40; i++)
        ok += fd[i] >= 0 && send(fd[i], "x", 1, MSG_NOSIGNAL) == 1 &&
              recv(fd[i], in, 1, 0) == 1;
    must(ok > 0 && ok < 30);
}

/* Connections of boxes leave descriptors for the rest of the program. */
static void test_descriptors_left(void **state)
{
    unsigned refused = 0;
    struct rlimit r;
    struct world w;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
    r.rlim_cur = (fds_open() + 24) / 3 * 8;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
    setup(&w, "{\"allow\":[\"127.0.0.1:PORT\"]}", open_forty);
    teardown(&w);
    raise_limit(NULL);
    assert_int_equal(w.nrows, 40);
    for (size_t i = 0; i < w.nrows; i++)
        refused +=
            strcmp(w.rows[i].reason, "too many connections of all boxes") == 0;
    assert_true(refused > 10 && refused < 40);
}

#define LONG ((size_t)8 * 1024 * 1024)

static char nth_byte(size_t i)
{
    return (char)((i * 2654435761u) >> 13);
}

static void send_long(int fd)
{
    static char out[LONG];

    for (size_t i = 0; i < LONG; i++)
        out[i] = nth_byte(i);
    for (size_t done = 0; done < LONG;) {
        ssize_t n = send(fd, out + done, LONG - done, MSG_NOSIGNAL);

        must(n > 0);
        done += (size_t)n;
    }
    must(shutdown(fd, SHUT_WR) == 0);
}

/* Sends 8 MiB and reads them back, in pieces of this size: if they are small,
 * the relay has to wait for us. */
static void exchange_long(unsigned port, size_t piece)
{
    static char in[64 * 1024];
    int fd = dial("127.0.0.1", port), status;
    size_t got = 0;
    pid_t writer;
    ssize_t n;

    must(fd >= 0);
    writer = fork();
    must(writer >= 0);
    if (writer == 0) {
        send_long(fd);
        _exit(0);
    }
    do {
        n = recv(fd, in, piece, 0);
        for (ssize_t i = 0; i < n; i++)
            must(in[i] == nth_byte(got++));
    } while (n > 0);
    must(n == 0 && got == LONG);
    must(waitpid(writer, &status, 0) == writer && status == 0);
}

static void exchange_two(unsigned port)
{
    exchange_long(port, (size_t)64 * 1024);
    exchange_long(port, 700);
}

/* Long transfers are moved, not copied; the bytes are the same. */
static void test_long(void **state)
{
    unsigned before = fds_open();
    struct world w;

    (void)state;
    setup(&w, "{\"allow\":[\"127.0.0.1:PORT\"]}", exchange_two);
    teardown(&w);
    assert_int_equal(w.nrows, 2);
    for (size_t i = 0; i < w.nrows; i++) {
        assert_string_equal(w.rows[i].reason, "closed");
        assert_int_equal(w.rows[i].sent, LONG);
        assert_int_equal(w.rows[i].received, LONG);
    }
    assert_int_equal(fds_open(), before);
}

static void send_too_much(unsigned port)
{
    static char out[64 * 1024];
    int fd = dial("127.0.0.1", port);
    size_t done = 0;
    ssize_t n = 1;

    must(fd >= 0);
    while (n > 0) {
        (void)recv(fd, out, sizeof(out), MSG_DONTWAIT);
        n = send(fd, out, sizeof(out), MSG_NOSIGNAL);
        done += n > 0 ? (size_t)n : 0;
        must(done < LONG * 4);
    }
    must(errno == ECONNRESET || errno == EPIPE);
}

/* The limit holds to the byte, also if bytes are moved. */
static void test_long_limit(void **state)
{
    uint64_t mib = 1024 * 1024, total;
    struct world w;

    (void)state;
    echoed = 0;
    setup(&w, "{\"allow\":[\"127.0.0.1:PORT\"],\"maxMegabytes\":2}",
          send_too_much);
    teardown(&w);
    assert_string_equal(w.rows[0].reason, "too many bytes");
    total = w.rows[0].sent + w.rows[0].received;
    assert_true(total > 2 * mib && total <= 2 * mib + 64 * 1024);
    assert_true(echoed > 0 && echoed <= 2 * mib);
}

static int local_socket(int type)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    if (type == SOCK_STREAM)
        assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void open_and_close(void *ctx)
{
    int fds[] = {local_socket(SOCK_DGRAM), local_socket(SOCK_STREAM),
                 local_socket(SOCK_STREAM)};
    struct mo_egress_opts o = {.fds = fds, .nfds = MO_COUNT(fds)};
    struct mo_loop *l = mo_loop_new(NULL, NULL);
    struct world w = {.l = l};

    (void)ctx;
    if (l &&
        mo_egress_policy_read(MO_SPAN("{\"allow\":[\"a.test\"]}"), &o.policy,
                              NULL) == 0 &&
        mo_egress_open(l, &o, &w.x, NULL) == 0) {
        mo_egress_close(w.x, on_gone, &w);
        wait_for(l, is_gone, &w);
    }
    for (size_t i = 0; i < MO_COUNT(fds); i++)
        mo_close_fd(&fds[i]);
    if (l)
        mo_loop_run(l);
    if (l)
        mo_loop_free(l);
}

static void test_memory(void **state)
{
    unsigned before = fds_open();

    (void)state;
    torture(open_and_close, NULL);
    assert_int_equal(fds_open(), before);
}

/* Connects to a name and sends. < 0: refused, maybe before that. */
static int open_name(const char *name, unsigned port, struct mo_span out)
{
    char ip[MO_IP_TEXT];
    ssize_t n;
    int fd;

    must(ask("127.0.0.1", name, MO_DNS_A, ip) == MO_DNS_NOERROR);
    fd = dial(ip, port);
    if (fd < 0 || !out.n)
        return fd;
    n = send(fd, out.p, out.n, MSG_NOSIGNAL);
    if (n < 0 && (errno == ECONNRESET || errno == EPIPE)) {
        (void)close(fd);
        return -ECONNRESET;
    }
    must(n == (ssize_t)out.n);
    return fd;
}

/* Reads as many bytes. */
static bool comes_back(int fd, struct mo_span out)
{
    char in[256];
    ssize_t n = fd < 0 ? -1 : recv(fd, in, out.n, MSG_WAITALL);

    (void)close(fd);
    return n == (ssize_t)out.n && memcmp(in, out.p, out.n) == 0;
}

static bool fails(int fd)
{
    char in[1];
    ssize_t n = fd < 0 ? fd : recv(fd, in, 1, 0);

    if (fd >= 0)
        (void)close(fd);
    return n < 0;
}

static void use_ask(unsigned port)
{
    static const struct mo_span get = MO_SPAN("GET /a?b HTTP/1.1\r\n\r\n");
    int first, second;

    must(comes_back(open_name("yes.ask", port, get), get));
    must(fails(open_name("no.ask", port, get)));
    must(comes_back(open_name("soon.ask", port, get), get));
    must(fails(open_name("deny.ask", port, MO_SPAN("POST /x HTTP/1.0\r\n"))));
    must(comes_back(open_name("odd.ask", port, MO_SPAN("\x01x")),
                    MO_SPAN("\x01x")));
    /* the program waits for the host: asked without a byte */
    must(fails(open_name("deny-quiet.ask", port, MO_SPAN(""))));
    /* a yes does not reach private addresses, and a public one is asked about
     */
    must(fails(open_name("metadata.ask", port, get)));
    must(fails(dial("10.0.0.1", port)));
    must(fails(dial("198.18.0.1", port)));
    second = dial("93.184.216.34", port);
    must(send(second, get.p, get.n, MSG_NOSIGNAL) == (ssize_t)get.n);
    must(fails(second));
    /* TLS for another host is refused before anybody is asked */
    second = open_name("tls.ask", port, mo_span(NULL, 0));
    must(send(second, "\x16\x03\x01\xff\xff", 5, MSG_NOSIGNAL) == 5);
    must(fails(second));
    /* two connections, one question; both go on */
    first = open_name("wait.ask", port, get);
    second = open_name("wait.ask", port, get);
    must(second >= 0);
    must(comes_back(open_name("yes.ask", port, get), get)); /* both were read */
    must(comes_back(open_name("go.ask", port, get), get));
    must(comes_back(first, get) && comes_back(second, get));
    (void)close(open_name("gone.ask", port, get));
}

static bool was_withdrawn(void *ctx)
{
    return ((struct world *)ctx)->withdrawn == 1;
}

static void test_ask(void **state)
{
    struct world w;
    int by_rule = 0;

    (void)state;
    lookups = 0;
    setup(&w, "{\"allow\":[\"127.0.0.1:PORT\"],\"ask\":true}", use_ask);
    wait_for(w.l, was_withdrawn, &w);
    teardown(&w);
    assert_string_equal(
        w.asked,
        "soon.ask[GET /a?b] deny.ask[POST /x] odd.ask[] deny-quiet.ask[] "
        "metadata.ask[GET /a?b] 93.184.216.34[GET /a?b] wait.ask[GET /a?b] "
        "go.ask[GET /a?b] "
        "gone.ask[GET /a?b] ");
    assert_int_equal(lookups, 6); /* only what was allowed */
    assert_string_equal(find_row(&w, "said")->name, "deny.ask");
    assert_string_equal(find_row(&w, "private network")->name, "metadata.ask");
    assert_string_equal(find_row(&w, "gave up")->name, "gone.ask");
    assert_string_equal(find_row(&w, "cannot be read")->name, "tls.ask");
    for (size_t i = 0; i < w.nrows; i++)
        if (strcmp(w.rows[i].rule, "approval rule") == 0)
            by_rule += w.rows[i].allowed && starts(w.rows[i].name, "yes.ask");
    assert_int_equal(by_rule, 2);
}

/* A search that does not end delays a question, no more. */
static void use_programs(unsigned port)
{
    static const struct mo_span get = MO_SPAN("GET / HTTP/1.1\r\n\r\n");

    must(comes_back(open_name("yes.ask", port, get), get));
    must(comes_back(open_name("a.ask", port, get), get));
    must(comes_back(open_name("b.ask", port, get), get));
    must(comes_back(open_name("c.ask", port, get), get));
}

static void test_ask_programs(void **state)
{
    struct world w;

    (void)state;
    finder = find_program;
    setup(&w, "{\"allow\":[\"127.0.0.1:PORT\"],\"ask\":true}", use_programs);
    finder = NULL;
    teardown(&w);
    assert_string_equal(w.asked, "a.ask[GET / by /a%0A%25%1B] b.ask[GET /] "
                                 "c.ask[GET /] ");
    assert_int_equal(w.searches, 3); /* not for a host that a rule allows */
    for (size_t i = 0; i < w.nrows; i++)
        assert_string_equal(w.rows[i].program,
                            starts(w.rows[i].name, "a.") ? "/a%0A%25%1B" : "");
}

/* Names and questions have limits; what a box waits for ends with it. */
static void ask_many(unsigned port)
{
    char name[32], ip[MO_IP_TEXT];
    int rc = 0, n = 0;

    for (int i = 0; i <= MO_EGRESS_ASKS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "many%d.ask", i);
        (void)open_name(name, port, MO_SPAN("GET / HTTP/1.1\n"));
    }
    must(fails(open_name("many-more.ask", port, MO_SPAN("GET / HTTP/1.1\n"))));
    while (n < 5000 && rc == MO_DNS_NOERROR) {
        (void)snprintf(name, sizeof(name), "n%d.ask", n++);
        rc = ask("127.0.0.1", name, MO_DNS_A, ip);
    }
    must(rc == MO_DNS_SERVFAIL && n > 2000 && n < 2100);
    must(ask("127.0.0.1", "x.allowed.test", MO_DNS_A, ip) == MO_DNS_NOERROR);
    must(ask("127.0.0.1", "n7.ask", MO_DNS_A, ip) == MO_DNS_NOERROR);
}

static void test_ask_limits(void **state)
{
    struct world w;

    (void)state;
    setup(&w, "{\"allow\":[\"*.allowed.test:PORT\"],\"ask\":true}", ask_many);
    teardown(&w);
    (void)find_row(&w, "too many hosts");
    assert_int_equal(w.withdrawn, MO_EGRESS_ASKS_MAX);
}

/* A program waits for a person when the relay closes. */
static void ask_and_stay(unsigned port)
{
    int fd = open_name("gone.ask", port, MO_SPAN("GET / HTTP/1.1\n"));

    must(fails(fd));
}

static bool is_asked(void *ctx)
{
    return ((struct world *)ctx)->asked[0] != '\0';
}

static void test_ask_close(void **state)
{
    struct world w;

    (void)state;
    setup(&w, "{\"allow\":[\"127.0.0.1:PORT\"],\"ask\":true}", ask_and_stay);
    wait_for(w.l, is_asked, &w);
    mo_egress_close(w.x, on_gone, &w);
    wait_for(w.l, is_gone, &w);
    assert_int_equal(w.withdrawn, 1);
    wait_for(w.l, has_exited, &w);
    assert_int_equal(WEXITSTATUS(w.status), 0);
    mo_listener_close(w.echo);
    mo_loop_run(w.l);
    mo_loop_free(w.l);
}

static void test_requests(void **state)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"GET / HTTP/1.1\r\n", "GET /"},
        {"M-SEARCH * HTTP/1.1\n", "M-SEARCH *"},
        {"CONNECT a.test:443 HTTP/1.1\r\n\r\n", "CONNECT a.test:443"},
        {"get / HTTP/1.1\n", ""},
        {"GET /a b HTTP/1.1\n", ""},
        {"GET /\x1b[2J HTTP/1.1\n", ""},
        {"GET /\xc3\xa9 HTTP/1.1\n", ""},
        {"GET\n", ""},
        {"ABCDEFGHIJKLMNOPQRST / HTTP/1.1\n", ""},
        {"SSH-2.0-x\r\n", ""},
        {"\x16\x03", ""},
    };
    char out[MO_EGRESS_REQUEST_MAX], long_path[600];

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span all = mo_span_cstr(rows[i].in);

        assert_true(mo_egress_read_request(all, out));
        assert_string_equal(out, rows[i].out);
        for (size_t n = 0; n < all.n; n++) /* pieces never show another one */
            if (mo_egress_read_request(mo_span_head(all, n), out))
                assert_true(strncmp(rows[i].out, out, strlen(out)) == 0);
    }
    memset(long_path, 'x', sizeof(long_path));
    memcpy(long_path, "GET /", 5);
    assert_true(mo_egress_read_request(mo_span(long_path, 600), out));
    assert_int_equal(strlen(out), MO_EGRESS_REQUEST_MAX - 1);
}

static void test_wrong_sockets(void **state)
{
    struct mo_egress_opts o = {.nfds = 2};
    struct mo_loop *l = loop_new();
    struct mo_egress *x;
    struct mo_err e;
    int fds[2];

    (void)state;
    assert_int_equal(pipe(fds), 0);
    o.fds = fds;
    assert_int_equal(mo_egress_policy_read(MO_SPAN("{}"), &o.policy, &e), 0);
    assert_int_equal(mo_egress_open(l, &o, &x, &e), MO_EINVAL);
    assert_int_equal(fds[0], -1);
    mo_loop_run(l);
    mo_loop_free(l);
}

/* --- connections that were accepted elsewhere ---------------------------- */

#define ELSEWHERE_BYTES ((size_t)600 * 1024)

static bool has_all(void *ctx)
{
    return ((struct end *)ctx)->got.len == ELSEWHERE_BYTES;
}

/* The program's end of a connection to this address. */
static void connect_to(struct world *w, struct end *e, const char *ip,
                       unsigned port)
{
    struct mo_stream *pair[2];
    struct mo_ip to;

    assert_true(mo_ip_parse(mo_span_cstr(ip), &to));
    stream_pair(w->l, pair);
    end_init(e);
    end_attach(e, pair[0]);
    mo_egress_accept(w->x, pair[1], &to, port);
}

static void ask_elsewhere(struct world *w)
{
    mo_autobuf struct mo_buf out = {.max = MO_DNS_ANSWER_MAX};
    char q[MO_DNS_QUERY_MAX], text[64];
    size_t n = put_query(q, "a.test", 28);

    assert_true(mo_egress_query(w->x, mo_span(q, n), &out));
    assert_true(read_answer(out.p, out.len, 28, text));
    assert_false(mo_egress_query(w->x, MO_SPAN("none"), &out));
}

static void test_elsewhere(void **state)
{
    static char big[ELSEWHERE_BYTES];
    struct mo_listen_opts lo = {.addr = "127.0.0.1:0"};
    struct world w = {.l = loop_new()};
    struct mo_egress_opts o = {.on_row = on_row, .ctx = &w, .v6 = true};
    struct end good, bad, dns;
    char json[128];

    (void)state;
    assert_int_equal(mo_listen(w.l, &lo, on_accept, NULL, &w.echo, NULL), 0);
    w.port = mo_listener_port(w.echo);
    (void)snprintf(json, sizeof(json),
                   "{\"allow\":[\"127.0.0.1:%u\",\"a.test\"]}", w.port);
    assert_int_equal(mo_egress_policy_read(mo_span_cstr(json), &o.policy, NULL),
                     0);
    assert_int_equal(mo_egress_open(w.l, &o, &w.x, NULL), 0);
    ask_elsewhere(&w);
    connect_to(&w, &good, "127.0.0.1", w.port);
    connect_to(&w, &bad, "127.0.0.2", w.port);
    connect_to(&w, &dns, "8.8.8.8", 53);
    assert_int_equal(mo_stream_write(good.s, mo_span(big, sizeof(big))), 0);
    wait_for(w.l, has_all, &good);
    wait_for(w.l, end_at_eof, &bad);
    assert_non_null(find_row(&w, "not allowed"));
    mo_stream_shutdown(good.s);
    wait_for(w.l, end_at_eof, &good);
    mo_egress_close(w.x, on_gone, &w); /* with the name server's connection */
    wait_for(w.l, is_gone, &w);
    mo_stream_close(good.s, NULL);
    mo_stream_close(bad.s, NULL);
    mo_stream_close(dns.s, NULL);
    mo_listener_close(w.echo);
    mo_loop_run(w.l);
    assert_int_equal(mo_loop_stats(w.l).streams, 0);
    mo_loop_free(w.l);
    mo_buf_fini(&good.got);
    mo_buf_fini(&bad.got);
    mo_buf_fini(&dns.got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_dns_over_tcp),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_address),
        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_bad_hosts),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_no_descriptors),
        cmocka_unit_test(test_descriptors_left),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_long_limit),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_ask),
        cmocka_unit_test(test_ask_programs),
        cmocka_unit_test(test_ask_limits),
        cmocka_unit_test(test_ask_close),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_wrong_sockets),
        cmocka_unit_test(test_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
