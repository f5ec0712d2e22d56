#include "launcher/wire.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

#define CHUNK 4096

union control {
    struct cmsghdr align;
    char room[CMSG_SPACE(sizeof(int) * MO_BOXMSG_FDS_MAX)];
};

static void drop_fds(struct mo_wire *w)
{
    for (unsigned i = 0; i < w->nfds; i++)
        mo_close_fd(&w->fds[i]);
    w->nfds = 0;
}

void mo_wire_init(struct mo_wire *w, int fd)
{
    *w = (struct mo_wire){.fd = fd};
    mo_buf_init(&w->in, MO_BOXMSG_HEAD + MO_BOXMSG_MAX + CHUNK);
}

void mo_wire_fini(struct mo_wire *w)
{
    drop_fds(w);
    mo_buf_fini(&w->in);
    mo_close_fd(&w->fd);
}

static void keep_fds(struct mo_wire *w, struct msghdr *h)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (w->nfds < MO_BOXMSG_FDS_MAX)
                w->fds[w->nfds++] = fd;
            else
                close(fd);
        }
    }
}

static void forget_frame(struct mo_wire *w)
{
    if (!w->done)
        return;
    mo_buf_drop(&w->in, w->done);
    w->done = 0;
    drop_fds(w);
}

int mo_wire_fill(struct mo_wire *w, struct mo_err *e)
{
    char *room;
    union control c;
    struct iovec v;
    struct msghdr h = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &c,
                       .msg_controllen = sizeof(c)};
    ssize_t n;

    forget_frame(w);
    room = mo_buf_room(&w->in, CHUNK);
    if (!room)
        return mo_fail(e, mo_buf_err(&w->in), "keeper: frame");
    v = (struct iovec){room, CHUNK};
    n = recvmsg(w->fd, &h, MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        return mo_fail_sys(e, "keeper: socket");
    keep_fds(w, &h);
    if (n == 0)
        return mo_fail(e, MO_ECLOSED, "keeper: socket closed");
    mo_buf_add(&w->in, (size_t)n);
    return 0;
}

int mo_wire_next(struct mo_wire *w, struct mo_boxmsg *out, struct mo_err *e)
{
    struct mo_span in;
    int rc;

    forget_frame(w);
    in = mo_buf_view(&w->in);
    rc = mo_boxmsg_next(&in, out, e);
    if (rc != 1)
        return rc;
    w->done = w->in.len - in.n;
    if (out->fds != w->nfds)
        return mo_fail(e, MO_EPROTO, "keeper: %u descriptors, not %u", w->nfds,
                       out->fds);
    return 1;
}

int mo_wire_take_fd(struct mo_wire *w, unsigned i)
{
    return i < w->nfds ? mo_take_fd(&w->fds[i]) : -1;
}

static void put_fds(struct msghdr *h, union control *c, const int *fds,
                    unsigned n)
{
    struct cmsghdr *m;

    if (n == 0)
        return;
    memset(c, 0, sizeof(*c));
    h->msg_control = c;
    h->msg_controllen = CMSG_SPACE(sizeof(int) * n);
    m = CMSG_FIRSTHDR(h);
    m->cmsg_level = SOL_SOCKET;
    m->cmsg_type = SCM_RIGHTS;
    m->cmsg_len = CMSG_LEN(sizeof(int) * n);
    memcpy(CMSG_DATA(m), fds, sizeof(int) * n);
}

int mo_wire_send(int fd, const struct mo_boxmsg *m, const int *fds,
                 struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_BOXMSG_HEAD + MO_BOXMSG_MAX};
    union control c;
    struct iovec v;
    struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
    int rc = mo_boxmsg_put(&b, m, e);

    if (rc < 0)
        return rc;
    v = (struct iovec){b.p, b.len};
    put_fds(&h, &c, fds, m->fds);
    if (sendmsg(fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)b.len)
        return mo_fail(e, MO_EBUSY, "keeper: the peer does not read");
    return 0;
}
