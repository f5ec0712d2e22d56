/* tls_talk.c - a host and a client that cost little, with and without TLS.
 *
 *   tls_talk host CERT KEY           listens on 127.0.0.1, prints its port
 *   tls_talk get HOST[=IP] PORT kept|new COUNT BYTES
 *
 * The client asks COUNT times for an answer of BYTES, on one connection or on a
 * new one each time, and prints one line of JSON: the median of a request and
 * its own CPU time. With CERT "-" both speak plain TCP ("get" tells by
 * BENCH_PLAIN in its environment, and by BENCH_CPU the processor to stay on,
 * from 1). The host serves some connections at once, as any does: one that a
 * relay ends a little later does not delay the next. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "meter.h"

#define PIECE     ((size_t)64 * 1024)
#define COUNT_MAX 1000000
#define HEAD_MAX  256
#define THREADS   4

struct talk {
    int fd;
    SSL *ssl; /* NULL: plain */
};

static char piece[PIECE];

static ssize_t take(struct talk *t, char *p, size_t n)
{
    return t->ssl ? SSL_read(t->ssl, p, (int)n) : recv(t->fd, p, n, 0);
}

static bool give(struct talk *t, const char *p, size_t n)
{
    while (n) {
        ssize_t done = t->ssl ? SSL_write(t->ssl, p, (int)n)
                              : send(t->fd, p, n, MSG_NOSIGNAL);

        if (done <= 0)
            return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

static void hang_up(struct talk *t)
{
    if (t->ssl) {
        (void)SSL_shutdown(t->ssl);
        SSL_free(t->ssl);
    }
    (void)close(t->fd);
}

/* Reads to the empty line. Returns the number behind `key`, or -1; what
 * followed the head is counted in *more. */
static long long read_head(struct talk *t, const char *key, size_t *more)
{
    char head[HEAD_MAX + 1];
    const char *end = NULL, *at;
    size_t n = 0;

    while (!end && n < HEAD_MAX) {
        ssize_t got = take(t, head + n, HEAD_MAX - n);

        if (got <= 0)
            return -1;
        n += (size_t)got;
        head[n] = '\0';
        end = strstr(head, "\r\n\r\n");
    }
    at = strstr(head, key);
    if (!end || !at)
        return -1;
    *more = n - (size_t)(end + 4 - head);
    return strtoll(at + strlen(key), NULL, 10);
}

/* --- the host ------------------------------------------------------------ */

static void serve(struct talk *t)
{
    for (;;) {
        char head[HEAD_MAX];
        size_t more = 0;
        long long left = read_head(t, "GET /", &more);
        int n =
            snprintf(head, sizeof(head),
                     "HTTP/1.1 200 OK\r\nContent-Length: %lld\r\n\r\n", left);

        if (left < 0 || !give(t, head, (size_t)n))
            return;
        while (left > 0) {
            size_t now = (size_t)left < PIECE ? (size_t)left : PIECE;

            if (!give(t, piece, now))
                return;
            left -= (long long)now;
        }
    }
}

struct host {
    int listener;
    SSL_CTX *ctx; /* NULL: plain */
};

static void *serve_all(void *arg)
{
    const struct host *h = arg;
    int on = 1;

    for (;;) {
        struct talk t = {.fd = accept(h->listener, NULL, NULL)};

        if (t.fd < 0)
            continue;
        (void)setsockopt(t.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        t.ssl = h->ctx ? SSL_new(h->ctx) : NULL;
        if (t.ssl)
            (void)SSL_set_fd(t.ssl, t.fd);
        if (!t.ssl || SSL_accept(t.ssl) == 1)
            serve(&t);
        hang_up(&t);
    }
    return NULL;
}

static int run_host(const char *cert, const char *key)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    struct host h = {.listener =
                         socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    pthread_t thread;

    if (strcmp(cert, "-") != 0) {
        h.ctx = SSL_CTX_new(TLS_server_method());
        if (SSL_CTX_use_certificate_file(h.ctx, cert, SSL_FILETYPE_PEM) != 1 ||
            SSL_CTX_use_PrivateKey_file(h.ctx, key, SSL_FILETYPE_PEM) != 1)
            meter_die("certificate");
    }
    if (h.listener < 0 || bind(h.listener, (struct sockaddr *)&a, n) < 0 ||
        listen(h.listener, 64) < 0 ||
        getsockname(h.listener, (struct sockaddr *)&a, &n) < 0)
        meter_die("listen: %s", strerror(errno));
    printf("%u\n", ntohs(a.sin_port));
    (void)fflush(stdout);
    for (int i = 1; i < THREADS; i++)
        if (pthread_create(&thread, NULL, serve_all, &h))
            meter_die("thread");
    serve_all(&h);
    return 0;
}

/* --- the client ---------------------------------------------------------- */

struct target {
    const char *name;
    SSL_CTX *ctx; /* NULL: plain */
    struct addrinfo *at;
};

static struct talk call(const struct target *to)
{
    struct talk t = {.fd = socket(to->at->ai_family, SOCK_STREAM, 0)};
    int on = 1;

    if (t.fd < 0 || connect(t.fd, to->at->ai_addr, to->at->ai_addrlen) < 0)
        meter_die("connect: %s", strerror(errno));
    (void)setsockopt(t.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (!to->ctx)
        return t;
    t.ssl = SSL_new(to->ctx);
    (void)SSL_set_fd(t.ssl, t.fd);
    (void)SSL_set_tlsext_host_name(t.ssl, to->name);
    if (SSL_connect(t.ssl) != 1)
        meter_die("TLS");
    return t;
}

static void get(struct talk *t, unsigned bytes)
{
    char ask[HEAD_MAX];
    int n = snprintf(ask, sizeof(ask), "GET /%u HTTP/1.1\r\n\r\n", bytes);
    size_t had = 0;
    long long left;

    if (!give(t, ask, (size_t)n))
        meter_die("send");
    left = read_head(t, "Content-Length: ", &had);
    left = left < 0 ? left : left - (long long)had;
    while (left > 0) {
        ssize_t got = take(t, piece, sizeof(piece));

        left = got <= 0 ? -1 : left - got;
    }
    if (left < 0)
        meter_die("the answer is too short");
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static uint64_t own_cpu_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void measure(const struct target *to, bool fresh, unsigned count,
                    unsigned bytes)
{
    uint64_t *ns = mo_zalloc(count * sizeof(*ns));
    struct talk t = {.fd = -1};
    uint64_t cpu;

    if (!ns)
        meter_die("memory");
    if (!fresh)
        t = call(to);
    cpu = own_cpu_ns();
    for (unsigned i = 0; i < count; i++) {
        uint64_t from = meter_now_ns();

        if (fresh)
            t = call(to);
        get(&t, bytes);
        ns[i] = meter_now_ns() - from;
        if (fresh)
            hang_up(&t);
    }
    cpu = own_cpu_ns() - cpu;
    qsort(ns, count, sizeof(*ns), by_size);
    printf("{\"p50_ns\":%llu,\"cpu_ns\":%llu}\n",
           (unsigned long long)ns[count / 2], (unsigned long long)cpu);
    mo_free(ns);
}

static void run_get(char *host, const char *port, const char *how,
                    unsigned count, unsigned bytes)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    char *ip = strchr(host, '=');
    const char *cpu = getenv("BENCH_CPU");
    cpu_set_t set;
    struct target to = {.name = host};
    int rc;

    if (ip)
        *ip++ = '\0';
    if (cpu) {
        CPU_ZERO(&set);
        CPU_SET(meter_arg(cpu, "BENCH_CPU", CPU_SETSIZE) - 1, &set);
        if (sched_setaffinity(0, sizeof(set), &set) < 0)
            meter_die("BENCH_CPU: %s", strerror(errno));
    }
    rc = getaddrinfo(ip ? ip : host, port, &hints, &to.at);
    if (rc)
        meter_die("%s: %s", host, gai_strerror(rc));
    if (!getenv("BENCH_PLAIN"))
        to.ctx = SSL_CTX_new(TLS_client_method());
    measure(&to, strcmp(how, "new") == 0, count, bytes);
    freeaddrinfo(to.at);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "host") == 0)
        return run_host(argv[2], argv[3]);
    if (argc != 7 || strcmp(argv[1], "get") != 0)
        meter_die("usage: tls_talk host CERT KEY | get HOST[=IP] PORT kept|new "
                  "COUNT BYTES");
    run_get(argv[2], argv[3], argv[4], meter_arg(argv[5], "count", COUNT_MAX),
            meter_arg(argv[6], "bytes", 2000000000));
    return 0;
}
