#include "box/net_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "loop/watch.h"

#define TEXT_MAX 200

struct mo_net_socket {
    struct mo_loop *loop;
    struct mo_watch *watch; /* on the listener, then on the connection */
    mo_net_socket_fn *done;
    void *ctx;
};

union control {
    struct cmsghdr align;
    char room[CMSG_SPACE(sizeof(int) * MO_NET_SOCKETS_MAX)];
};

void mo_net_socket_cancel(struct mo_net_socket *s)
{
    if (!s)
        return;
    mo_watch_close(s->watch);
    mo_free(s);
}

/* --- the packet ---------------------------------------------------------- */

static size_t take_fds(struct msghdr *h, int fds[MO_NET_SOCKETS_MAX])
{
    size_t have = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (have < MO_NET_SOCKETS_MAX)
                fds[have++] = fd;
            else
                (void)close(fd);
        }
    }
    return have;
}

static int read_packet(int fd, int fds[MO_NET_SOCKETS_MAX], size_t *n,
                       struct mo_err *e)
{
    char text[TEXT_MAX];
    union control c;
    struct iovec v = {text, sizeof(text)};
    struct msghdr h = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &c,
                       .msg_controllen = sizeof(c)};
    ssize_t got = recvmsg(fd, &h, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

    *n = got < 0 ? 0 : take_fds(&h, fds);
    if (got < 0)
        return mo_fail_sys(e, "network container");
    if (got > 0 && text[0] == '+' && *n > 2)
        return 0;
    while (*n > 0)
        (void)close(fds[--*n]);
    return mo_fail(e, MO_EUNAVAIL, "network container: %.*s",
                   got > 1 ? (int)got - 1 : 9,
                   got > 1 ? text + 1 : "no answer");
}

static void on_packet(void *ctx, int fd)
{
    struct mo_net_socket *s = ctx;
    int fds[MO_NET_SOCKETS_MAX];
    struct mo_err e;
    size_t n = 0;
    int rc = read_packet(fd, fds, &n, &e);
    mo_net_socket_fn *done = s->done;
    void *to = s->ctx;

    mo_net_socket_cancel(s);
    done(to, fds, n, rc < 0 ? &e : NULL);
}

static void fail_later(struct mo_net_socket *s, const struct mo_err *e)
{
    mo_net_socket_fn *done = s->done;
    void *to = s->ctx;

    mo_net_socket_cancel(s);
    done(to, NULL, 0, e);
}

static void on_visit(void *ctx, int listener)
{
    struct mo_net_socket *s = ctx;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct mo_err e;

    if (fd < 0)
        return;
    mo_watch_close(mo_take_ptr(&s->watch));
    if (mo_watch_open(s->loop, fd, on_packet, s, &s->watch, &e) < 0)
        fail_later(s, &e);
}

/* --- opening ------------------------------------------------------------- */

/* Through /proc: a long path does not fit into an address. */
static int open_socket(int dir, const char *name, struct sockaddr_un *a)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/%s", dir,
                   name);
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int open_listener(const char *dir, struct mo_err *e)
{
    struct sockaddr_un a;
    mo_autofd int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    mo_autofd int fd = open_socket(at, "up", &a);

    if (at < 0 || fd < 0 ||
        bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
        fchmodat(at, "up", 0777, 0) < 0 || listen(fd, 1) < 0)
        return mo_fail_sys(e, "network: %s/up", dir);
    return mo_take_fd(&fd);
}

static int open_connection(const char *dir, struct mo_err *e)
{
    struct sockaddr_un a;
    mo_autofd int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    mo_autofd int fd = open_socket(at, "s", &a);

    if (at < 0 || fd < 0 ||
        connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
        return mo_fail_sys(e, "network container");
    return mo_take_fd(&fd);
}

static int watch_socket(struct mo_loop *l, int fd,
                        void (*fire)(void *ctx, int fd), mo_net_socket_fn *done,
                        void *ctx, struct mo_net_socket **out, struct mo_err *e)
{
    struct mo_net_socket *s;
    int rc;

    if (fd < 0)
        return fd;
    s = mo_new(struct mo_net_socket);
    if (!s) {
        mo_close_fd(&fd);
        return mo_fail(e, MO_ENOMEM, "network");
    }
    *s = (struct mo_net_socket){.loop = l, .done = done, .ctx = ctx};
    rc = mo_watch_open(l, fd, fire, s, &s->watch, e);
    if (rc < 0) {
        mo_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

int mo_net_socket_await(struct mo_loop *l, const char *dir,
                        mo_net_socket_fn *done, void *ctx,
                        struct mo_net_socket **out, struct mo_err *e)
{
    return watch_socket(l, open_listener(dir, e), on_visit, done, ctx, out, e);
}

int mo_net_socket_fetch(struct mo_loop *l, const char *dir,
                        mo_net_socket_fn *done, void *ctx,
                        struct mo_net_socket **out, struct mo_err *e)
{
    return watch_socket(l, open_connection(dir, e), on_packet, done, ctx, out,
                        e);
}

/* --- the directory ------------------------------------------------------- */

int mo_net_socket_mkdir(const char *dir, struct mo_err *e)
{
    if (mkdir(dir, 0700) < 0 || chmod(dir, 0777) < 0)
        return mo_fail_sys(e, "network: %s", dir);
    return 0;
}

void mo_net_socket_rmdir(const char *dir)
{
    mo_autofd int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (at < 0)
        return;
    (void)unlinkat(at, "up", 0);
    (void)unlinkat(at, "s", 0);
    (void)rmdir(dir);
}
