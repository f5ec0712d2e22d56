#include "toolbox/network_check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#define WAIT_S      10
#define MESSAGE_MAX 256
#define RESOLVER    "127.0.0.1" /* of every box with a network */

struct check {
    const char *port, *closed;
};

struct message {
    uint8_t p[MESSAGE_MAX];
    size_t n;
};

static void put_bytes(struct message *m, const void *p, size_t n)
{
    MO_BUG_ON(n > sizeof(m->p) - m->n);
    memcpy(m->p + m->n, p, n);
    m->n += n;
}

static void put_u16(struct message *m, size_t v)
{
    const uint8_t b[] = {(uint8_t)(v >> 8), (uint8_t)v};

    put_bytes(m, b, sizeof(b));
}

/* --- a connection -------------------------------------------------------- */

enum outcome { ANSWERED, REFUSED, NEITHER };

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    };
    socklen_t len;
};

static bool read_address(const char *host, const char *port, struct address *a)
{
    uint64_t number = 0;

    memset(a, 0, sizeof(*a));
    if (mo_span_u64(mo_span_cstr(port), &number) < 0 || number > UINT16_MAX)
        return false;
    if (inet_pton(AF_INET, host, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons((uint16_t)number);
        a->len = sizeof(a->v4);
        return true;
    }
    if (inet_pton(AF_INET6, host, &a->v6.sin6_addr) != 1)
        return false;
    a->v6.sin6_family = AF_INET6;
    a->v6.sin6_port = htons((uint16_t)number);
    a->len = sizeof(a->v6);
    return true;
}

/* -1: errno. */
static int open_connection(const struct address *a, int type)
{
    const struct timeval wait = {.tv_sec = WAIT_S};
    mo_autofd int fd = socket(a->any.sa_family, type | SOCK_CLOEXEC, 0);

    if (fd < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0 ||
        connect(fd, &a->any, a->len) < 0)
        return -1;
    return mo_take_fd(&fd);
}

/* --- names ---------------------------------------------------------------
 *
 * One DNS question to the box's resolver. The C library's would be a tenth of
 * this program. */

enum named { NAMED, NO_SUCH_NAME, NO_ANSWER };

enum { DNS_ID = 0x6d6f, DNS_HEAD = 12, DNS_A = 1, DNS_IN = 1 };

static void put_question(struct message *m, const char *name)
{
    struct mo_span rest = mo_span_cstr(name);

    put_u16(m, DNS_ID);
    put_u16(m, 0x0100); /* recursion desired */
    put_u16(m, 1);      /* questions; then answers, authorities, additional */
    put_u16(m, 0);
    put_u16(m, 0);
    put_u16(m, 0);
    while (rest.n) {
        struct mo_span label = mo_span_cut(&rest, '.');
        const uint8_t len = (uint8_t)label.n;

        put_bytes(m, &len, 1);
        put_bytes(m, label.p, label.n);
    }
    put_bytes(m, "", 1);
    put_u16(m, DNS_A);
    put_u16(m, DNS_IN);
}

static unsigned u16_at(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

/* The place behind a name; past the end: there is none. */
static size_t skip_name(const uint8_t *p, size_t n, size_t at)
{
    while (at < n && p[at] != 0) {
        if (p[at] >= 0xc0)
            return at + 2;
        at += (size_t)p[at] + 1;
    }
    return at + 1;
}

/* The first address among the answers. */
static bool find_answer(const uint8_t *p, size_t n, uint8_t out[4])
{
    size_t at = skip_name(p, n, DNS_HEAD) + 4;

    for (unsigned left = u16_at(p + 6); left > 0; left--) {
        size_t len = 0;

        at = skip_name(p, n, at);
        if (at + 10 > n)
            return false;
        len = u16_at(p + at + 8);
        if (at + 10 + len > n)
            return false;
        if (u16_at(p + at) == DNS_A && len == 4) {
            memcpy(out, p + at + 10, 4);
            return true;
        }
        at += 10 + len;
    }
    return false;
}

static enum named ask_name(const char *name, uint8_t out[4])
{
    struct message m = {.n = 0};
    uint8_t got[512];
    struct address to;
    mo_autofd int fd = -1;
    ssize_t n = 0;

    put_question(&m, name);
    if (!read_address(RESOLVER, "53", &to))
        return NO_ANSWER;
    fd = open_connection(&to, SOCK_DGRAM);
    if (fd < 0 || send(fd, m.p, m.n, MSG_NOSIGNAL) < 0)
        return NO_ANSWER;
    n = recv(fd, got, sizeof(got), 0);
    if (n < DNS_HEAD || u16_at(got) != DNS_ID)
        return NO_ANSWER;
    if ((got[3] & 15) == 3 || ((got[3] & 15) == 0 && u16_at(got + 6) == 0))
        return NO_SUCH_NAME;
    return find_answer(got, (size_t)n, out) ? NAMED : NO_ANSWER;
}

/* By its number or by its name. */
static bool find_address(const char *host, const char *port, struct address *a)
{
    if (read_address(host, port, a))
        return true;
    return read_address("0.0.0.0", port, a) &&
           ask_name(host, (uint8_t *)&a->v4.sin_addr) == NAMED;
}

/* A machine without IPv6 has no such address. */
static bool is_refusal(int error)
{
    return error == ECONNREFUSED || error == ECONNRESET ||
           error == ECONNABORTED || error == EPIPE || error == ENETUNREACH ||
           error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
}

static enum outcome send_and_read(int fd, const void *p, size_t n)
{
    char got[sizeof(MO_CHECK_ANSWER)] = "";
    size_t have = 0;
    ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

    while (k > 0 && have < sizeof(got) - 1) {
        k = recv(fd, got + have, sizeof(got) - 1 - have, 0);
        have += k > 0 ? (size_t)k : 0;
    }
    if (k < 0)
        return is_refusal(errno) ? REFUSED : NEITHER;
    return strcmp(got, MO_CHECK_ANSWER) == 0 ? ANSWERED : NEITHER;
}

static enum outcome try_host(const char *host, const char *port, int type,
                             const void *p, size_t n)
{
    mo_autofd int fd = -1;
    struct address a;

    if (!find_address(host, port, &a))
        return NEITHER;
    fd = open_connection(&a, type);
    if (fd < 0)
        return is_refusal(errno) ? REFUSED : NEITHER;
    return send_and_read(fd, p, n);
}

static enum outcome try_tcp(const char *host, const char *port)
{
    return try_host(host, port, SOCK_STREAM, "x", 1);
}

static bool refuses_all(const char *const *hosts, const char *port)
{
    for (; *hosts; hosts++)
        if (try_tcp(*hosts, port) != REFUSED)
            return false;
    return true;
}

/* --- TLS ----------------------------------------------------------------- */

/* The first message of a TLS client that wants this host. */
static void put_hello(struct message *h, const char *host)
{
    static const uint8_t zero[32];
    const size_t name = strlen(host), extension = name + 5;
    const size_t body = 2 + 32 + 1 + 2 + 2 + 2 + 2 + 4 + extension;

    put_bytes(h, "\x16\x03\x01", 3); /* record */
    put_u16(h, 4 + body);
    put_bytes(h, "\x01\x00", 2); /* ClientHello */
    put_u16(h, body);
    put_u16(h, 0x0303);
    put_bytes(h, zero, sizeof(zero)); /* random */
    put_bytes(h, zero, 1);            /* no session */
    put_u16(h, 2);
    put_u16(h, 0x1301);          /* one cipher */
    put_bytes(h, "\x01\x00", 2); /* no compression */
    put_u16(h, 4 + extension);   /* extensions */
    put_u16(h, 0);               /* server_name */
    put_u16(h, extension);
    put_u16(h, name + 3);
    put_bytes(h, zero, 1);
    put_u16(h, name);
    put_bytes(h, host, name);
}

static enum outcome try_tls(const struct check *c, const char *host)
{
    struct message h = {.n = 0};

    put_hello(&h, host);
    return try_host(MO_CHECK_ALLOWED, c->port, SOCK_STREAM, h.p, h.n);
}

/* --- the controls -------------------------------------------------------- */

static bool reaches_allowed(const struct check *c)
{
    return try_tcp(MO_CHECK_ALLOWED, c->port) == ANSWERED;
}

static bool hides_other_names(const struct check *c)
{
    static const char *const names[] = {MO_CHECK_OTHER, "www." MO_CHECK_ALLOWED,
                                        "example.org", NULL};
    uint8_t address[4];

    (void)c;
    for (const char *const *v = names; *v; v++)
        if (ask_name(*v, address) != NO_SUCH_NAME)
            return false;
    return true;
}

static bool refuses_addresses(const struct check *c)
{
    static const char *const hosts[] = {"203.0.113.1", "93.184.216.34",
                                        "2001:db8::1", "2606:4700::1111", NULL};

    return refuses_all(hosts, c->port);
}

/* At 127.0.0.1 somebody listens outside. */
static bool refuses_private(const struct check *c)
{
    static const char *const hosts[] = {
        "127.0.0.1",   "10.0.0.1",        "172.16.0.1",
        "192.168.0.1", "169.254.169.254", "100.64.0.1",
        "::1",         "fd00:ec2::254",   NULL};

    return refuses_all(hosts, c->port);
}

static bool refuses_ports(const struct check *c)
{
    return try_tcp(MO_CHECK_ALLOWED, c->closed) == REFUSED &&
           try_tcp(MO_CHECK_ALLOWED, "1") == REFUSED;
}

static bool refuses_udp(const struct check *c)
{
    return try_host("127.0.0.1", c->closed, SOCK_DGRAM, "x", 1) == REFUSED &&
           try_host(MO_CHECK_ALLOWED, c->port, SOCK_DGRAM, "x", 1) == REFUSED &&
           try_host("203.0.113.1", "443", SOCK_DGRAM, "x", 1) == REFUSED;
}

static bool compares_tls(const struct check *c)
{
    return try_tls(c, MO_CHECK_ALLOWED) == ANSWERED &&
           try_tls(c, MO_CHECK_OTHER) == REFUSED;
}

int tb_network_check(const char *port, const char *closed)
{
    static const struct {
        const char *name; /* as in connect/box_probe.c */
        bool (*holds)(const struct check *c);
    } controls[] = {
        {"allowed host", reaches_allowed}, {"other names", hides_other_names},
        {"addresses", refuses_addresses},  {"private ranges", refuses_private},
        {"other ports", refuses_ports},    {"UDP", refuses_udp},
        {"TLS names", compares_tls},
    };
    const struct check c = {port, closed};

    for (size_t i = 0; i < MO_COUNT(controls); i++)
        (void)fprintf(stdout, "%s%s\n", controls[i].holds(&c) ? "+" : "-",
                      controls[i].name);
    return 0;
}
