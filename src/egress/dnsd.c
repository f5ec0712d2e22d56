/* dnsd.c - the name server of a box over UDP and TCP. See name_server.h. */
#include <netinet/in.h>
#include <sys/socket.h>

#include "codec/dns.h"
#include "egress/relay_priv.h"

#define DATAGRAMS 32 /* at a time, so that the rest of the loop runs */
#define CONNS_MAX 16
#define IDLE_MS   10000
#define FINISH_MS 2000

/* --- UDP ----------------------------------------------------------------- */

union control {
    struct cmsghdr align;
    char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

/* Keeps the address that was asked, as the one to answer from. The interface is
 * left to the kernel. */
static void keep_source(struct msghdr *m)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(m);
    struct in6_pktinfo *v6;
    struct in_pktinfo *v4;

    if (!c)
        return;
    if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
        v6 = (void *)CMSG_DATA(c);
        v6->ipi6_ifindex = 0;
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
        v4 = (void *)CMSG_DATA(c);
        v4->ipi_ifindex = 0;
        v4->ipi_spec_dst = v4->ipi_addr;
    } else {
        m->msg_controllen = 0;
    }
}

/* Returns false when no datagram waits. */
static bool answer_one(struct mo_egress *x, int fd)
{
    mo_autobuf struct mo_buf out = {.max = MO_DNS_ANSWER_MAX};
    char in[MO_DNS_QUERY_MAX + 1];
    struct sockaddr_storage peer;
    union control control;
    struct iovec v = {in, sizeof(in)};
    struct msghdr m = {.msg_name = &peer,
                       .msg_namelen = sizeof(peer),
                       .msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(fd, &m, 0);

    if (n < 0)
        return false;
    if (!mo_egress_answer(&x->zone, mo_span(in, (size_t)n), &out) ||
        mo_buf_err(&out))
        return true;
    keep_source(&m);
    v = (struct iovec){out.p, out.len};
    (void)sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL); /* or it asks again */
    return true;
}

void mo_egress_dns_datagram(void *ctx, int fd)
{
    struct mo_egress *x = ctx;

    for (int i = 0; i < DATAGRAMS && answer_one(x, fd); i++) {
    }
}

/* --- TCP ----------------------------------------------------------------- */

struct dns_conn {
    struct mo_list node;
    struct mo_egress *x;
    struct mo_stream *s;
    struct mo_buf in;
    struct mo_timer timer;
};

/* Takes one query with its length in front. 0: it is not complete. */
static int take_query(struct mo_span *in, struct mo_span *query)
{
    size_t n;

    if (in->n < 2)
        return 0;
    n = (size_t)(unsigned char)in->p[0] << 8 | (unsigned char)in->p[1];
    if (n > MO_DNS_QUERY_MAX)
        return MO_ETOOBIG;
    if (in->n < 2 + n)
        return 0;
    *query = mo_span(in->p + 2, n);
    *in = mo_span_skip(*in, 2 + n);
    return 1;
}

static int answer_query(struct dns_conn *c, struct mo_span query)
{
    mo_autobuf struct mo_buf out = {.max = 2 + MO_DNS_ANSWER_MAX};
    size_t n;

    mo_buf_put(&out, "\0\0", 2);
    if (!mo_egress_answer(&c->x->zone, query, &out) || mo_buf_err(&out))
        return MO_EPROTO;
    n = out.len - 2;
    out.p[0] = (char)(n >> 8);
    out.p[1] = (char)n;
    return mo_stream_write(c->s, mo_buf_view(&out));
}

static void on_read(void *ctx, char *p, size_t n)
{
    struct dns_conn *c = ctx;
    struct mo_span in, query;
    int rc = mo_buf_put(&c->in, p, n);
    size_t all = c->in.len;

    in = mo_buf_view(&c->in);
    while (rc == 0) {
        rc = take_query(&in, &query);
        if (rc == 0)
            break;
        if (rc == 1)
            rc = answer_query(c, query);
    }
    if (rc < 0) {
        mo_stream_close(c->s, NULL);
        return;
    }
    mo_buf_drop(&c->in, all - in.n);
    mo_timer_start(c->x->loop, &c->timer, IDLE_MS);
}

static void on_eof(void *ctx)
{
    struct dns_conn *c = ctx;

    mo_stream_finish(c->s, FINISH_MS);
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct dns_conn *c = ctx;
    struct mo_egress *x = c->x;

    (void)why;
    mo_timer_stop(x->loop, &c->timer);
    mo_list_del(&c->node);
    mo_buf_fini(&c->in);
    mo_free(c);
    x->ndns--;
    mo_egress_maybe_free(x);
}

static void on_timer(struct mo_timer *t)
{
    struct dns_conn *c = mo_container_of(t, struct dns_conn, timer);

    mo_stream_close(c->s, NULL);
}

void mo_egress_dns_serve(struct mo_egress *x, struct mo_stream *s)
{
    static const struct mo_stream_cb cb = {
        .on_read = on_read, .on_eof = on_eof, .on_close = on_close};
    struct dns_conn *c = x->ndns < CONNS_MAX ? mo_new(struct dns_conn) : NULL;

    if (!c) {
        mo_stream_close(s, NULL);
        return;
    }
    c->s = s;
    c->x = x;
    mo_buf_init(&c->in, MO_STREAM_QUEUE_MAX);
    mo_timer_init(&c->timer, on_timer);
    mo_list_push(&x->dns, &c->node);
    x->ndns++;
    mo_stream_attach(c->s, &cb, c);
    mo_timer_start(x->loop, &c->timer, IDLE_MS);
}

void mo_egress_dns_accept(struct mo_egress *x, int fd)
{
    struct mo_stream *s;

    if (x->ndns >= CONNS_MAX || fd >= x->fd_max) {
        mo_socket_drop_unsent(fd);
        mo_close_fd(&fd);
    } else if (mo_stream_from_fds(x->loop, fd, fd, &s, NULL) == 0) {
        mo_egress_dns_serve(x, s);
    }
}

bool mo_egress_query(struct mo_egress *x, struct mo_span query,
                     struct mo_buf *out)
{
    return query.n <= MO_DNS_QUERY_MAX + 1 &&
           mo_egress_answer(&x->zone, query, out) && !mo_buf_err(out);
}

void mo_egress_dns_reset(struct mo_egress *x)
{
    mo_list_each_entry (c, &x->dns, struct dns_conn, node)
        mo_stream_close(c->s, NULL);
}
