#include "connect/probe_hosts.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/mem.h"
#include "loop/net.h"

#define TRIES     16 /* to find a port that is free for TCP and UDP */
#define FINISH_MS 5000

struct mo_probe_hosts {
    struct mo_loop *loop;
    struct mo_listener *allowed, *closed;
    int udp;
    unsigned visits, strays;
    struct mo_list visitors;
    bool closing;
};

struct visitor {
    struct mo_probe_hosts *h;
    struct mo_list node;
    struct mo_stream *s;
    bool spoke;
};

/* --- visitors ------------------------------------------------------------ */

static void maybe_free(struct mo_probe_hosts *h)
{
    if (h->closing && mo_list_empty(&h->visitors))
        mo_free(h);
}

/* A connection counts with its first byte: the relay opens one before it has
 * seen what the program sends. */
static void on_read(void *ctx, char *p, size_t n)
{
    struct visitor *v = ctx;

    (void)p;
    (void)n;
    if (v->spoke)
        return;
    v->spoke = true;
    v->h->visits++;
    if (mo_stream_write(v->s, MO_SPAN(MO_PROBE_ANSWER)) == 0)
        mo_stream_finish(v->s, FINISH_MS);
    else
        mo_stream_close(v->s, NULL);
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct visitor *v = ctx;
    struct mo_probe_hosts *h = v->h;

    (void)why;
    mo_list_del(&v->node);
    mo_free(v);
    maybe_free(h);
}

static void on_visit(void *ctx, struct mo_stream *s)
{
    static const struct mo_stream_cb cb = {.on_read = on_read,
                                           .on_close = on_close};
    struct mo_probe_hosts *h = ctx;
    struct visitor *v = mo_new(struct visitor);

    if (!v) {
        mo_stream_close(s, NULL);
        return;
    }
    *v = (struct visitor){.h = h, .s = s};
    mo_list_push(&h->visitors, &v->node);
    mo_stream_attach(s, &cb, v);
}

static void on_stray(void *ctx, struct mo_stream *s)
{
    ((struct mo_probe_hosts *)ctx)->strays++;
    on_visit(ctx, s);
}

/* --- opening ------------------------------------------------------------- */

/* Sets *port to the one that the kernel gave. -1: errno. */
static int open_udp(unsigned *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof(a);
    mo_autofd int fd =
        socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&a, n) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        return -1;
    *port = ntohs(a.sin_port);
    return mo_take_fd(&fd);
}

static int open_closed(struct mo_probe_hosts *h, struct mo_err *e)
{
    int rc = MO_EIO;

    for (int i = 0; i < TRIES && rc < 0; i++) {
        char addr[32];
        struct mo_listen_opts o = {.addr = addr};
        unsigned port = 0;

        mo_close_fd(&h->udp);
        h->udp = open_udp(&port);
        if (h->udp < 0)
            return mo_fail_sys(e, "UDP");
        (void)snprintf(addr, sizeof(addr), "127.0.0.1:%u", port);
        rc = mo_listen(h->loop, &o, on_stray, h, &h->closed, e);
    }
    return rc;
}

int mo_probe_hosts_open(struct mo_loop *l, struct mo_probe_hosts **out,
                        struct mo_err *e)
{
    static const struct mo_listen_opts any = {.addr = "127.0.0.1:0"};
    struct mo_probe_hosts *h = mo_new(struct mo_probe_hosts);
    int rc;

    *out = NULL;
    if (!h)
        return mo_fail(e, MO_ENOMEM, "probe");
    h->loop = l;
    h->udp = -1;
    mo_list_init(&h->visitors);
    rc = mo_listen(l, &any, on_visit, h, &h->allowed, e);
    if (rc == 0)
        rc = open_closed(h, e);
    if (rc < 0) {
        mo_probe_hosts_close(h);
        return rc;
    }
    *out = h;
    return 0;
}

void mo_probe_hosts_close(struct mo_probe_hosts *h)
{
    if (!h)
        return;
    if (h->allowed)
        mo_listener_close(h->allowed);
    if (h->closed)
        mo_listener_close(h->closed);
    mo_close_fd(&h->udp);
    h->closing = true;
    mo_list_each_entry (v, &h->visitors, struct visitor, node)
        mo_stream_close(v->s, NULL);
    maybe_free(h);
}

/* --- what came ----------------------------------------------------------- */

unsigned mo_probe_hosts_port(const struct mo_probe_hosts *h)
{
    return mo_listener_port(h->allowed);
}

unsigned mo_probe_hosts_closed(const struct mo_probe_hosts *h)
{
    return mo_listener_port(h->closed);
}

static bool has_datagram(const struct mo_probe_hosts *h)
{
    char c;

    return recv(h->udp, &c, 1, MSG_DONTWAIT) >= 0;
}

bool mo_probe_hosts_alone(const struct mo_probe_hosts *h)
{
    return h->visits == MO_PROBE_VISITS && h->strays == 0 && !has_datagram(h);
}

void mo_probe_hosts_reset(struct mo_probe_hosts *h)
{
    h->visits = h->strays = 0;
    while (has_datagram(h))
        continue;
}
