/* floor_http.c - the least an HTTP echo can cost: epoll and llhttp, no more.
 *
 *   floor_http       (listens on any port and prints it)
 *
 * No limits, no time-outs, no strictness, no care for slow readers: this is
 * what our server is measured against, not a model for it. */
#include <errno.h>
#include <llhttp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"
#include "meter.h"

#define EVENTS_MAX 256
#define READ_BUF   65536
#define BACKLOG    511

struct conn {
    llhttp_t parser;
    int fd;
    struct iovec body;
};

static int on_body(llhttp_t *p, const char *at, size_t n)
{
    struct conn *c = p->data;

    c->body = (struct iovec){(void *)(uintptr_t)at, n};
    return 0;
}

static int on_complete(llhttp_t *p)
{
    struct conn *c = p->data;
    char head[128];
    int n = snprintf(head, sizeof(head),
                     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     c->body.iov_len);
    struct iovec v[2] = {{head, (size_t)n}, c->body};

    c->body.iov_len = 0;
    return writev(c->fd, v, 2) < 0 ? -1 : 0;
}

static void accept_all(int ls, int ep, const llhttp_settings_t *set)
{
    int on = 1;

    for (;;) {
        int fd = accept4(ls, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        struct conn *c = fd < 0 ? NULL : mo_new(struct conn);
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};

        if (!c)
            return;
        c->fd = fd;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        llhttp_init(&c->parser, HTTP_REQUEST, set);
        c->parser.data = c;
        (void)epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
    }
}

static void serve(struct conn *c, char *buf)
{
    ssize_t n = recv(c->fd, buf, READ_BUF, 0);

    if (n < 0 && errno == EAGAIN)
        return;
    if (n > 0 && llhttp_execute(&c->parser, buf, (size_t)n) == HPE_OK)
        return;
    (void)close(c->fd);
    mo_free(c);
}

static int listen_on(unsigned port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    socklen_t n = sizeof(a);

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 ||
        listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        meter_die("listen: %s", strerror(errno));
    printf("%u\n", ntohs(a.sin_port));
    (void)fflush(stdout);
    return fd;
}

int main(void)
{
    static char buf[READ_BUF];
    struct epoll_event ev[EVENTS_MAX] = {{.events = EPOLLIN}};
    int ls = listen_on(0);
    int ep = epoll_create1(EPOLL_CLOEXEC);
    llhttp_settings_t set;

    llhttp_settings_init(&set);
    set.on_body = on_body;
    set.on_message_complete = on_complete;
    ev[0].data.ptr = NULL;
    (void)epoll_ctl(ep, EPOLL_CTL_ADD, ls, &ev[0]);
    for (;;) {
        int n = epoll_wait(ep, ev, EVENTS_MAX, -1);

        for (int i = 0; i < n; i++) {
            if (ev[i].data.ptr)
                serve(ev[i].data.ptr, buf);
            else
                accept_all(ls, ep, &set);
        }
    }
}
