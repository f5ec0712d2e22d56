#include "toolbox/network_check.h"

#include <errno.h>
#include <netdb.h>
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

#define WAIT_S    10
#define HELLO_MAX 256

struct check {
    const char *port, *closed;
};

/* --- a connection -------------------------------------------------------- */

enum outcome { ANSWERED, REFUSED, NEITHER };

/* The first address, as a number or by its name. NULL: *why is EAI_*. */
static struct addrinfo *find_address(const char *host, const char *port,
                                     int type, int *why)
{
    struct addrinfo hints = {.ai_socktype = type}, *a = NULL;
    int rc = getaddrinfo(host, port, &hints, &a);

    if (why)
        *why = rc;
    return rc == 0 ? a : NULL;
}

/* -1: errno. */
static int open_connection(const struct addrinfo *a)
{
    const struct timeval wait = {.tv_sec = WAIT_S};
    mo_autofd int fd =
        socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);

    if (fd < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0 ||
        connect(fd, a->ai_addr, a->ai_addrlen) < 0)
        return -1;
    return mo_take_fd(&fd);
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
    struct addrinfo *a = find_address(host, port, type, NULL);
    mo_autofd int fd = a ? open_connection(a) : -1;
    int error = errno;

    if (!a)
        return NEITHER;
    freeaddrinfo(a);
    if (fd < 0)
        return is_refusal(error) ? REFUSED : NEITHER;
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

struct hello {
    uint8_t p[HELLO_MAX];
    size_t n;
};

static void put_bytes(struct hello *h, const void *p, size_t n)
{
    MO_BUG_ON(n > sizeof(h->p) - h->n);
    memcpy(h->p + h->n, p, n);
    h->n += n;
}

static void put_u16(struct hello *h, size_t v)
{
    const uint8_t b[] = {(uint8_t)(v >> 8), (uint8_t)v};

    put_bytes(h, b, sizeof(b));
}

/* The first message of a TLS client that wants this host. */
static void put_hello(struct hello *h, const char *host)
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
    struct hello h = {.n = 0};

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
    bool hidden = true;

    for (const char *const *v = names; *v; v++) {
        int why = 0;
        struct addrinfo *a = find_address(*v, c->port, SOCK_STREAM, &why);

        hidden = hidden && why == EAI_NONAME;
        if (a)
            freeaddrinfo(a);
    }
    return hidden;
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
