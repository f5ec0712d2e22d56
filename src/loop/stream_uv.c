/* stream_uv.c - streams on a libuv handle: TCP, unix socket, pipe.
 *
 * A write is tried at once; bytes that the kernel does not take go to `out`. At
 * most one uv_write is active, on `sending`; when it ends the two buffers are
 * swapped. Both are freed when empty, so an idle connection holds none. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "loop/priv.h"

static uv_stream_t *wside(struct uvs *u)
{
    if (u->w)
        return (uv_stream_t *)u->w;
    return u->r_writes ? &u->r.stream : NULL;
}

void mo_uvs_fail(struct uvs *u, int rc, const char *what)
{
    struct mo_err e = {.code = 0};

    (void)mo_fail_uv(&e, rc, "%s %s", what, u->s.peer);
    if (rc == UV_EPIPE || rc == UV_ECONNRESET || rc == UV_ECANCELED)
        e.code = MO_ECLOSED;
    mo_stream_close(&u->s, &e);
}

static void uvs_alloc(uv_handle_t *h, size_t hint, uv_buf_t *out)
{
    struct uvs *u = h->data;

    (void)hint;
    if (u->raw && !u->s.finishing)
        *out = uv_buf_init(NULL, 0); /* libuv then reports UV_ENOBUFS */
    else
        *out = uv_buf_init(u->s.loop->read_buf, MO_LOOP_READ_BUF);
}

static void uvs_read(uv_stream_t *h, ssize_t n, const uv_buf_t *buf)
{
    struct uvs *u = h->data;

    if (n == UV_ENOBUFS && u->raw) {
        mo_stream_on_ready(&u->s);
    } else if (n > 0) {
        (void)mo_stream_on_data(&u->s, buf->base, (size_t)n);
    } else if (n == UV_EOF) {
        (void)uv_read_stop(h);
        mo_stream_on_eof(&u->s);
    } else if (n < 0) {
        mo_uvs_fail(u, (int)n, "read from");
    }
}

static bool uvs_raw(struct mo_stream *s)
{
    struct uvs *u = mo_container_of(s, struct uvs, s);

    u->raw = u->has_r && u->r.stream.type == UV_TCP;
    return u->raw;
}

static void uvs_reading(struct mo_stream *s, bool on)
{
    struct uvs *u = mo_container_of(s, struct uvs, s);
    uv_stream_t *h = &u->r.stream;
    int rc;

    if (!u->has_r)
        return;
    if (!on) {
        (void)uv_read_stop(h);
        return;
    }
    rc = uv_read_start(h, uvs_alloc, uvs_read);
    if (rc < 0)
        mo_uvs_fail(u, rc, "read from");
}

static size_t uvs_queued(const struct mo_stream *s)
{
    struct uvs *u = mo_container_of(s, struct uvs, s);

    if (!u->writing)
        return u->out.len;
    return u->out.len + uv_stream_get_write_queue_size(wside(u));
}

static void send_more(struct uvs *u);
static void start_shutdown(struct uvs *u);

static void on_sent(uv_write_t *req, int rc)
{
    struct uvs *u = req->data;

    u->writing = false;
    mo_buf_fini(&u->sending);
    if (u->s.closing)
        return;
    if (rc < 0) {
        mo_uvs_fail(u, rc, "write to");
        return;
    }
    if (u->out.len) {
        send_more(u);
        return;
    }
    if (u->shut)
        start_shutdown(u);
    mo_stream_on_drained(&u->s);
}

static void send_more(struct uvs *u)
{
    struct mo_buf empty = u->sending;
    uv_buf_t b;
    int rc;

    u->sending = u->out;
    u->out = empty;
    b = uv_buf_init(u->sending.p, (unsigned)u->sending.len);
    u->req.data = u;
    rc = uv_write(&u->req, wside(u), &b, 1, on_sent);
    if (rc < 0)
        mo_uvs_fail(u, rc, "write to");
    else
        u->writing = true;
}

/* Queue the part that write_now() left: everything after `done` bytes. */
static int queue_rest(struct uvs *u, const struct mo_span *v, size_t n,
                      size_t done)
{
    u->out.max = u->s.max_queue;
    for (size_t i = 0; i < n; i++) {
        struct mo_span rest = mo_span_skip(v[i], done);

        done -= v[i].n - rest.n;
        mo_buf_span(&u->out, rest);
    }
    if (mo_buf_err(&u->out)) {
        mo_uvs_fail(u, UV_ENOMEM, "write to");
        return MO_ENOMEM;
    }
    if (!u->writing)
        send_more(u);
    return u->s.closing ? MO_ECLOSED : 0;
}

/* One send() (socket) or write() (pipe) of a single part is the cheapest write:
 * no vector, no libuv. Small parts are joined for it. */
static ssize_t send_one(int fd, bool tcp, const char *p, size_t n)
{
    return tcp ? send(fd, p, n, MSG_NOSIGNAL) : write(fd, p, n);
}

static ssize_t send_pieces(struct mo_loop *l, int fd, bool tcp,
                           const uv_buf_t *v, unsigned n, size_t total)
{
    struct iovec *iov = (struct iovec *)(uintptr_t)v;
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
    size_t at = 0;

    if (n == 1)
        return send_one(fd, tcp, v->base, v->len);
    if (total > sizeof(l->gather))
        return tcp ? sendmsg(fd, &m, MSG_NOSIGNAL) : writev(fd, iov, (int)n);
    for (unsigned i = 0; i < n; i++) {
        memcpy(l->gather + at, v[i].base, v[i].len);
        at += v[i].len;
    }
    return send_one(fd, tcp, l->gather, at);
}

/* Bytes the kernel took, or a libuv error. libuv's own queue is empty. */
static int write_now(struct uvs *u, const uv_buf_t *v, unsigned n, size_t total)
{
    uv_stream_t *h = wside(u);
    uv_os_fd_t fd;
    ssize_t rc;

    if (uv_fileno((uv_handle_t *)h, &fd) < 0)
        return uv_try_write(h, v, n);
    do {
        rc = send_pieces(u->s.loop, fd, h->type == UV_TCP, v, n, total);
    } while (rc < 0 && errno == EINTR);
    return rc < 0 ? uv_translate_sys_error(errno) : (int)rc;
}

#define IOV_MAX_OURS 16

static int uvs_writev(struct mo_stream *s, const struct mo_span *v, size_t n)
{
    struct uvs *u = mo_container_of(s, struct uvs, s);
    uv_buf_t bufs[IOV_MAX_OURS];
    size_t total = 0;
    unsigned nb = 0;
    int rc = 0;

    if (!wside(u) || u->shut)
        return MO_ECLOSED;
    if (u->writing || u->out.len || n > IOV_MAX_OURS)
        return queue_rest(u, v, n, 0);
    for (size_t i = 0; i < n; i++) {
        if (!v[i].n)
            continue;
        bufs[nb++] = uv_buf_init((char *)(uintptr_t)v[i].p, (unsigned)v[i].n);
        total += v[i].n;
    }
    if (total)
        rc = write_now(u, bufs, nb, total);
    if (rc == UV_EAGAIN)
        rc = 0;
    if (rc < 0) {
        mo_uvs_fail(u, rc, "write to");
        return MO_ECLOSED;
    }
    return (size_t)rc == total ? 0 : queue_rest(u, v, n, (size_t)rc);
}

static void on_shut(uv_shutdown_t *req, int rc)
{
    struct uvs *u = req->data;

    (void)rc; /* a peer that has closed already shows up in read */
    if (u->s.finishing && u->s.eof && !u->s.closing)
        mo_stream_close(&u->s, NULL);
}

/* Shut down after the queue is sent: a separate write pipe is closed, a socket
 * is shut down. libuv would wait for its own queue but not for `out`. */
static void on_wpipe_shut(uv_shutdown_t *req, int rc);

static void start_shutdown(struct uvs *u)
{
    u->shut_req.data = u;
    if (uv_shutdown(&u->shut_req, wside(u), u->w ? on_wpipe_shut : on_shut) <
            0 &&
        u->s.finishing)
        mo_stream_close(&u->s, NULL);
}

static void uvs_shutdown(struct mo_stream *s)
{
    struct uvs *u = mo_container_of(s, struct uvs, s);

    if (!wside(u) || u->shut)
        return;
    u->shut = true;
    if (!u->writing)
        start_shutdown(u);
}

static void handle_gone(uv_handle_t *h)
{
    struct uvs *u = h->data;

    if (h == (uv_handle_t *)u->w) {
        mo_free(u->w);
        u->w = NULL;
    }
    u->open--;
    if (u->open || !u->s.closing)
        return;
    mo_buf_fini(&u->out);
    mo_buf_fini(&u->sending);
    mo_stream_gone(&u->s);
    mo_free(u);
}

static void close_handle(uv_handle_t *h)
{
    if (!uv_is_closing(h))
        uv_close(h, handle_gone);
}

static void on_wpipe_shut(uv_shutdown_t *req, int rc)
{
    struct uvs *u = req->data;

    on_shut(req, rc);
    if (u->w && rc != UV_ECANCELED)
        close_handle((uv_handle_t *)u->w);
}

static void on_no_handle(struct mo_later *d)
{
    struct uvs *u = mo_container_of(d, struct uvs, later);

    mo_stream_gone(&u->s);
    mo_free(u);
}

static void uvs_close(struct mo_stream *s)
{
    struct uvs *u = mo_container_of(s, struct uvs, s);

    if (u->w)
        close_handle((uv_handle_t *)u->w);
    if (u->has_r)
        close_handle((uv_handle_t *)&u->r);
    if (u->open == 0) { /* write-only, and its pipe is closed already */
        mo_buf_fini(&u->out);
        mo_buf_fini(&u->sending);
        mo_later_init(&u->later, on_no_handle);
        mo_loop_defer(s->loop, &u->later);
    }
}

static const struct mo_stream_ops uvs_ops = {
    .writev = uvs_writev,
    .queued = uvs_queued,
    .reading = uvs_reading,
    .shutdown = uvs_shutdown,
    .raw = uvs_raw,
    .move = mo_uvs_move,
    .close = uvs_close,
};

struct uvs *mo_uvs_new(struct mo_loop *l, enum uvs_kind kind)
{
    struct uvs *u = mo_new(struct uvs);
    int rc = 0;

    if (!u)
        return NULL;
    mo_buf_init(&u->out, MO_STREAM_QUEUE_MAX);
    mo_buf_init(&u->sending, MO_STREAM_QUEUE_MAX);
    if (kind == UVS_TCP)
        rc = uv_tcp_init(&l->uv, &u->r.tcp);
    else if (kind == UVS_PIPE)
        rc = uv_pipe_init(&l->uv, &u->r.pipe, 0);
    if (rc < 0) {
        mo_free(u);
        return NULL;
    }
    if (kind != UVS_NONE) {
        u->r.stream.data = u;
        u->has_r = true;
        u->r_writes = true;
        u->open = 1;
    }
    mo_stream_init(&u->s, l, &uvs_ops);
    return u;
}

void mo_uvs_name_tcp(struct uvs *u)
{
    struct sockaddr_storage ss;
    int n = sizeof(ss);
    char ip[48] = "";

    if (uv_tcp_getpeername(&u->r.tcp, (struct sockaddr *)&ss, &n) < 0)
        return;
    if (ss.ss_family == AF_INET6) {
        const struct sockaddr_in6 *a = (const struct sockaddr_in6 *)&ss;

        (void)uv_ip6_name(a, ip, sizeof(ip));
        (void)snprintf(u->s.peer, sizeof(u->s.peer), "[%s]:%u", ip,
                       ntohs(a->sin6_port));
    } else if (ss.ss_family == AF_INET) {
        const struct sockaddr_in *a = (const struct sockaddr_in *)&ss;

        (void)uv_ip4_name(a, ip, sizeof(ip));
        (void)snprintf(u->s.peer, sizeof(u->s.peer), "%s:%u", ip,
                       ntohs(a->sin_port));
    }
}

/* --- from descriptors ---------------------------------------------------- */

static bool is_inet(int fd)
{
    struct sockaddr_storage ss = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof(ss);

    if (getsockname(fd, (struct sockaddr *)&ss, &n) < 0)
        return false;
    return ss.ss_family == AF_INET || ss.ss_family == AF_INET6;
}

static int open_r(struct uvs *u, int *fd, bool inet)
{
    int rc = inet ? uv_tcp_open(&u->r.tcp, *fd) : uv_pipe_open(&u->r.pipe, *fd);

    if (rc == 0)
        *fd = -1; /* the handle owns it now */
    return rc;
}

static int open_w(struct uvs *u, int *fd)
{
    int rc;

    u->w = mo_new(uv_pipe_t);
    if (!u->w)
        return UV_ENOMEM;
    (void)uv_pipe_init(&u->s.loop->uv, u->w, 0);
    u->w->data = u;
    u->open++;
    rc = uv_pipe_open(u->w, *fd);
    if (rc == 0)
        *fd = -1;
    return rc;
}

int mo_stream_from_fds(struct mo_loop *l, int rfd, int wfd,
                       struct mo_stream **out, struct mo_err *e)
{
    mo_autofd int r = rfd;
    mo_autofd int w = wfd == rfd ? -1 : wfd;
    bool inet = r >= 0 && is_inet(r);
    enum uvs_kind kind = r < 0 ? UVS_NONE : inet ? UVS_TCP : UVS_PIPE;
    struct uvs *u;
    int rc = 0;

    /* libuv would abort() on a regular file */
    if (r >= 0 && !inet && uv_guess_handle(r) == UV_FILE)
        return mo_fail(e, MO_EINVAL,
                       "it is a file or device, not a pipe or socket");
    u = mo_uvs_new(l, kind);
    if (!u)
        return mo_fail(e, MO_ENOMEM, "stream");
    (void)snprintf(u->s.peer, sizeof(u->s.peer), "pipe");
    u->r_writes = wfd == rfd;
    if (r >= 0)
        rc = open_r(u, &r, inet);
    if (rc == 0 && w >= 0)
        rc = open_w(u, &w);
    if (rc < 0) {
        mo_stream_close(&u->s, NULL);
        return mo_fail_uv(e, rc, "stream");
    }
    if (inet)
        mo_uvs_name_tcp(u);
    *out = &u->s;
    return 0;
}

/* -1: it is no TCP connection of its own. */
static int tcp_socket_of(const struct mo_stream *s)
{
    const struct uvs *u = mo_container_of(s, struct uvs, s);
    int fd = -1;

    if (s->ops->tls || !u->has_r || u->r.stream.type != UV_TCP ||
        uv_fileno((const uv_handle_t *)&u->r, &fd) < 0)
        return -1;
    return fd;
}

void mo_stream_drop_unsent(struct mo_stream *s)
{
    mo_socket_drop_unsent(tcp_socket_of(s));
}

void mo_socket_drop_unsent(int fd)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};

    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

/* The kernel asks an idle peer every ms / 3, and gives up after ms without an
 * answer to that or to data (TCP_USER_TIMEOUT stands for the count of both). */
void mo_stream_notice_loss(struct mo_stream *s, unsigned ms)
{
    const int on = 1, s3 = ms < 3000 ? 1 : (int)(ms / 3000);
    int fd = tcp_socket_of(s);

    if (fd < 0)
        return;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &s3, sizeof(s3));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &s3, sizeof(s3));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}
