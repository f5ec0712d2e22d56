#include "launcher/container_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/ca_files.h"
#include "codec/net_frame.h"

#define OUT_HIGH  ((size_t)128 * 1024)
#define OUT_MAX   ((size_t)1024 * 1024)
#define READ_MAX  ((size_t)64 * 1024)
#define PENDING   64
#define QUERY_MAX 1024
#define ACCEPTS   16 /* of a socket at a time */
#define DATAGRAMS 16
#define LOOPBACK  127 /* first byte of an IPv4 address */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

#define CONTROL_MAX CMSG_SPACE(sizeof(struct in6_pktinfo))

struct channel {
    uint32_t id; /* 0: free */
    int fd;
    uint32_t credit;   /* bytes that may be sent to the orchestrator */
    uint32_t owed;     /* bytes written that no CREDIT was sent for */
    struct mo_buf out; /* to the program */
    bool sent_eof;     /* the program has ended its output */
    bool got_eof;      /* the host has */
    bool shut;         /* ... and the program knows */
    int slot;          /* in the poll table, or -1 */
};

/* A query that was passed on: where its answer goes. */
struct query {
    uint32_t id;
    union address peer;
    socklen_t peer_len;
    _Alignas(struct cmsghdr) char control[CONTROL_MAX];
    size_t control_len;
};

struct carrier {
    const struct mo_net *net;
    struct mo_net_frames frames;
    struct mo_buf out; /* to the orchestrator */
    uint32_t last_id, last_query;
    unsigned n;
    bool greeted, v6, loopback, done;
    const char *dir;  /* for files; or NULL */
    int file;         /* that is being written, or -1 */
    uint32_t file_id; /* its id; 0: none */
    bool file_failed;
    struct channel channels[MO_NET_CHANNELS_MAX];
    struct query queries[PENDING];
    struct pollfd polls[MO_NET_CHANNELS_MAX + MO_BOXREQ_PORTS + 8];
    char room[READ_MAX];
};

/* --- a connection -------------------------------------------------------- */

static void close_channel(struct carrier *x, struct channel *c, bool reset)
{
    struct linger now = {.l_onoff = 1};

    if (reset)
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    mo_close_fd(&c->fd);
    mo_buf_fini(&c->out);
    c->id = 0;
    x->n--;
}

static void send_reset(struct carrier *x, struct channel *c)
{
    (void)mo_net_put(&x->out, MO_NET_RESET, c->id, mo_span("", 0));
    close_channel(x, c, true);
}

static void reset_all(struct carrier *x)
{
    mo_close_fd(&x->file);
    x->file_id = 0;
    for (size_t i = 0; i < MO_COUNT(x->channels); i++)
        if (x->channels[i].id)
            close_channel(x, &x->channels[i], true);
}

static struct channel *find_channel(struct carrier *x, uint32_t id)
{
    for (size_t i = 0; i < MO_COUNT(x->channels); i++)
        if (x->channels[i].id == id)
            return &x->channels[i];
    return NULL;
}

/* Both directions have ended, and the program has everything. */
static void close_if_over(struct carrier *x, struct channel *c)
{
    if (c->id && c->sent_eof && c->shut)
        close_channel(x, c, false);
}

/* Writes what the program takes. */
static void flush_channel(struct carrier *x, struct channel *c)
{
    while (c->out.len) {
        ssize_t n =
            send(c->fd, c->out.p, c->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            send_reset(x, c);
            return;
        }
        mo_buf_drop(&c->out, (size_t)n);
        c->owed += (uint32_t)n;
    }
    if (!c->got_eof && c->owed >= MO_NET_WINDOW / 2) {
        (void)mo_net_put_credit(&x->out, c->id, c->owed);
        c->owed = 0;
    }
    if (c->got_eof && !c->out.len && !c->shut) {
        c->shut = true;
        (void)shutdown(c->fd, SHUT_WR);
    }
    close_if_over(x, c);
}

static void read_channel(struct carrier *x, struct channel *c)
{
    size_t most = c->credit < MO_NET_DATA_MAX ? c->credit : MO_NET_DATA_MAX;
    ssize_t n = recv(c->fd, x->room, most, MSG_DONTWAIT);

    if (n > 0) {
        (void)mo_net_put(&x->out, MO_NET_DATA, c->id,
                         mo_span(x->room, (size_t)n));
        c->credit -= (uint32_t)n;
    } else if (n == 0) {
        c->sent_eof = true;
        (void)mo_net_put(&x->out, MO_NET_EOF, c->id, mo_span("", 0));
        close_if_over(x, c);
    } else if (errno != EAGAIN && errno != EINTR) {
        send_reset(x, c);
    }
}

/* --- new connections ----------------------------------------------------- */

static bool read_address(int fd, struct mo_ip *ip, unsigned *port)
{
    union address a;
    socklen_t n = sizeof(a);

    memset(&a, 0, sizeof(a));
    if (getsockname(fd, &a.any, &n) < 0)
        return false;
    memset(ip, 0, sizeof(*ip));
    if (a.any.sa_family == AF_INET6) {
        memcpy(ip->b, &a.v6.sin6_addr, 16);
        *port = ntohs(a.v6.sin6_port);
    } else {
        ip->b[10] = ip->b[11] = 0xFF;
        memcpy(ip->b + 12, &a.v4.sin_addr, 4);
        *port = ntohs(a.v4.sin_port);
    }
    return true;
}

/* False: there is none, or no room for one. */
static bool accept_one(struct carrier *x, int listener)
{
    struct channel *c = find_channel(x, 0);
    uint32_t id = mo_net_next_id(x->last_id);
    mo_autofd int fd = -1;
    struct mo_ip ip;
    unsigned port;
    int on = 1;

    if (!c || !id)
        return false;
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return errno == EINTR || errno == ECONNABORTED;
    if (!read_address(fd, &ip, &port) || (x->loopback && ip.b[12] != LOOPBACK))
        return true;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    *c = (struct channel){.id = id, .credit = MO_NET_WINDOW};
    c->fd = mo_take_fd(&fd);
    mo_buf_init(&c->out, MO_NET_WINDOW);
    x->last_id = id;
    x->n++;
    (void)mo_net_put_open(&x->out, id, &ip, port);
    return true;
}

/* --- queries ------------------------------------------------------------- */

/* The address that was asked is the one to answer from. */
static void keep_source(struct query *q)
{
    struct msghdr m = {.msg_control = q->control,
                       .msg_controllen = q->control_len};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    if (c && c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
        ((struct in6_pktinfo *)(void *)CMSG_DATA(c))->ipi6_ifindex = 0;
    } else if (c && c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
        struct in_pktinfo *v4 = (void *)CMSG_DATA(c);

        v4->ipi_ifindex = 0;
        v4->ipi_spec_dst = v4->ipi_addr;
    } else {
        q->control_len = 0;
    }
}

static bool take_query(struct carrier *x, int fd)
{
    uint32_t id = mo_net_next_id(x->last_query);
    struct query *q = &x->queries[id % PENDING];
    struct iovec v = {x->room, QUERY_MAX};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    ssize_t n;

    q->id = 0;
    m.msg_name = &q->peer;
    m.msg_namelen = sizeof(q->peer);
    m.msg_control = q->control;
    m.msg_controllen = sizeof(q->control);
    n = recvmsg(fd, &m, MSG_DONTWAIT);
    if (n < 0)
        return errno == EINTR;
    if (n == 0 || !id || (m.msg_flags & MSG_TRUNC))
        return true;
    q->id = x->last_query = id;
    q->peer_len = m.msg_namelen;
    q->control_len = m.msg_controllen;
    keep_source(q);
    (void)mo_net_put(&x->out, MO_NET_QUERY, id, mo_span(x->room, (size_t)n));
    return true;
}

static void take_answer(struct carrier *x, const struct mo_net_frame *f)
{
    struct query *q = &x->queries[f->id % PENDING];
    struct iovec v = {(char *)(uintptr_t)f->data.p, f->data.n};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

    if (q->id != f->id)
        return; /* late */
    m.msg_name = &q->peer;
    m.msg_namelen = q->peer_len;
    m.msg_control = q->control_len ? q->control : NULL;
    m.msg_controllen = q->control_len;
    (void)sendmsg(x->net->fds[0], &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    q->id = 0;
}

/* --- frames of the orchestrator ------------------------------------------ */

static bool take_data(struct carrier *x, struct channel *c, struct mo_span data)
{
    if (c->got_eof || c->out.len + c->owed + data.n > MO_NET_WINDOW ||
        mo_buf_span(&c->out, data) < 0)
        return false;
    flush_channel(x, c);
    return true;
}

static bool take_eof(struct carrier *x, struct channel *c)
{
    if (c->got_eof)
        return false;
    c->got_eof = true;
    flush_channel(x, c);
    return true;
}

static bool take_credit(struct channel *c, uint32_t n)
{
    if (n > MO_NET_WINDOW - c->credit)
        return false;
    c->credit += n;
    return true;
}

/* --- files ---------------------------------------------------------------
 *
 * Each is written once, into a directory that only we can write to. */

static const char *const file_names[] = {
    [MO_NET_FILE_BUNDLE] = MO_CA_BUNDLE,
    [MO_NET_FILE_JAVA] = "java/" MO_CA_JAVA,
};

static int open_file(const char *dir, uint32_t id)
{
    mo_autofd int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (at < 0 || (id == MO_NET_FILE_JAVA && mkdirat(at, "java", 0755) < 0))
        return -1;
    return openat(at, file_names[id],
                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
}

/* Another name that distributions have for it. */
static bool link_bundle(const char *dir)
{
    mo_autofd int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    return at >= 0 && linkat(at, MO_CA_BUNDLE, at, "tls-ca-bundle.pem", 0) == 0;
}

static bool write_all(int fd, struct mo_span data)
{
    while (data.n) {
        ssize_t n = write(fd, data.p, data.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data = mo_span_skip(data, (size_t)n);
    }
    return true;
}

/* False: it breaks the protocol. */
static bool take_file(struct carrier *x, const struct mo_net_frame *f)
{
    if (!x->dir || (x->file_id && x->file_id != f->id))
        return false;
    if (!x->file_id) {
        x->file_id = f->id;
        x->file = open_file(x->dir, f->id);
        x->file_failed = x->file < 0;
    }
    x->file_failed = x->file_failed || !write_all(x->file, f->data);
    if (f->flags != 1)
        return true;
    if (!x->file_failed && f->id == MO_NET_FILE_BUNDLE)
        x->file_failed = !link_bundle(x->dir);
    (void)mo_net_put_file(&x->out, f->id, !x->file_failed, mo_span("", 0));
    mo_close_fd(&x->file);
    x->file_id = 0;
    return true;
}

static void take_hello(struct carrier *x, const struct mo_net_frame *f)
{
    reset_all(x);
    memset(x->queries, 0, sizeof(x->queries));
    x->greeted = true;
    (void)mo_net_put_hello(&x->out, (const unsigned char *)f->data.p,
                           x->v6 ? MO_NET_V6 : 0);
}

/* False: it breaks the protocol. */
static bool take_frame(struct carrier *x, const struct mo_net_frame *f)
{
    struct channel *c;

    if (f->type == MO_NET_HELLO) {
        take_hello(x, f);
        return true;
    }
    if (f->type == MO_NET_ANSWER) {
        take_answer(x, f);
        return true;
    }
    if (f->type == MO_NET_FILE)
        return take_file(x, f);
    if (f->id > x->last_id)
        return false;
    c = find_channel(x, f->id);
    if (!c)
        return true; /* late */
    switch (f->type) {
    case MO_NET_DATA:
        return take_data(x, c, f->data);
    case MO_NET_EOF:
        return take_eof(x, c);
    case MO_NET_CREDIT:
        return take_credit(c, f->credit);
    default:
        close_channel(x, c, true);
        return true;
    }
}

/* An orchestrator that makes mistakes gets nothing more; the next one greets.
 */
static void lose_step(struct carrier *x)
{
    reset_all(x);
    mo_net_frames_refuse(&x->frames);
    x->greeted = false;
}

static void read_frames(struct carrier *x)
{
    ssize_t n = read(STDIN_FILENO, x->room, sizeof(x->room));
    struct mo_net_frame f;
    struct mo_span in;

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        x->done = true;
    if (n <= 0)
        return;
    in = mo_span(x->room, (size_t)n);
    for (;;) {
        int rc = mo_net_frames_next(&x->frames, &in, &f);

        if (rc == 0)
            return;
        if (rc < 0 || !take_frame(x, &f))
            lose_step(x);
    }
}

static void write_frames(struct carrier *x)
{
    ssize_t n = write(STDOUT_FILENO, x->out.p, x->out.len);

    if (n > 0)
        mo_buf_drop(&x->out, (size_t)n);
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        x->done = true;
}

/* --- the loop ------------------------------------------------------------ */

static int add_poll(struct carrier *x, nfds_t *n, int fd, short events)
{
    x->polls[*n] = (struct pollfd){.fd = fd, .events = events};
    return (int)(*n)++;
}

/* A channel that waits for nothing is not polled: a reset is seen when it is
 * written to. */
static void poll_channels(struct carrier *x, nfds_t *n, bool reading)
{
    for (size_t i = 0; i < MO_COUNT(x->channels); i++) {
        struct channel *c = &x->channels[i];
        short events = 0;

        c->slot = -1;
        if (!c->id)
            continue;
        if (reading && c->credit && !c->sent_eof)
            events |= POLLIN;
        if (c->out.len)
            events |= POLLOUT;
        if (events)
            c->slot = add_poll(x, n, c->fd, events);
    }
}

static void serve_channels(struct carrier *x)
{
    for (size_t i = 0; i < MO_COUNT(x->channels); i++) {
        struct channel *c = &x->channels[i];
        uint32_t id = c->id;
        short got = id && c->slot >= 0 ? x->polls[c->slot].revents : 0;

        if (got & POLLOUT)
            flush_channel(x, c);
        if (c->id == id && (got & (POLLIN | POLLHUP | POLLERR)) &&
            x->out.len < OUT_HIGH && c->credit && !c->sent_eof)
            read_channel(x, c);
        else if (c->id && c->id == id && (got & POLLERR))
            send_reset(x, c);
    }
}

static void serve_listeners(struct carrier *x, size_t first)
{
    for (size_t i = 0; i < x->net->n; i++) {
        if (!x->polls[first + i].revents)
            continue;
        for (int k = 0; k < (i ? ACCEPTS : DATAGRAMS); k++)
            if (x->out.len >= OUT_HIGH || !(i ? accept_one(x, x->net->fds[i])
                                              : take_query(x, x->net->fds[i])))
                break;
    }
}

static void run_once(struct carrier *x)
{
    bool reading = x->greeted && x->out.len < OUT_HIGH;
    nfds_t n = 0;
    size_t first = 0;
    int in, out;

    in = add_poll(x, &n, x->out.len < OUT_MAX / 2 ? STDIN_FILENO : -1, POLLIN);
    out = add_poll(x, &n, x->out.len ? STDOUT_FILENO : -1, POLLOUT);
    first = n;
    for (size_t i = 0; reading && i < x->net->n; i++)
        (void)add_poll(x, &n,
                       i && x->n == MO_NET_CHANNELS_MAX ? -1 : x->net->fds[i],
                       POLLIN);
    poll_channels(x, &n, reading);
    if (poll(x->polls, n, -1) < 0) {
        x->done = errno != EINTR;
        return;
    }
    if (x->polls[out].revents)
        write_frames(x);
    serve_channels(x);
    if (reading)
        serve_listeners(x, first);
    if (x->polls[in].revents)
        read_frames(x);
    x->done |= mo_buf_err(&x->out) != 0;
}

/* Answers come from the address that was asked. */
static bool set_up_dns(int fd, bool *v6)
{
    int family = 0, on = 1;
    socklen_t n = sizeof(family);

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &n) < 0)
        return false;
    *v6 = family == AF_INET6;
    if (*v6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on));
    return setsockopt(fd, *v6 ? IPPROTO_IPV6 : IPPROTO_IP,
                      *v6 ? IPV6_RECVPKTINFO : IP_PKTINFO, &on,
                      sizeof(on)) == 0;
}

int mo_container_stream(const struct mo_net *net, const char *dir,
                        bool loopback)
{
    struct carrier *x = mo_new(struct carrier);

    if (!x)
        return 1;
    x->net = net;
    x->dir = dir;
    x->loopback = loopback;
    x->file = -1;
    mo_net_frames_init(&x->frames, false);
    mo_buf_init(&x->out, OUT_MAX);
    (void)signal(SIGPIPE, SIG_IGN);
    for (int fd = 0; fd < 2; fd++)
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    x->done = !set_up_dns(net->fds[0], &x->v6);
    while (!x->done)
        run_once(x);
    reset_all(x);
    mo_buf_fini(&x->out);
    mo_free(x);
    return 1;
}
