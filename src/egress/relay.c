#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "egress/relay_priv.h"

#define ACCEPTS         64 /* at a time, so that the rest of the loop runs */
#define RETRY_MS        100
#define REPORTS_PER_S   10
#define REPORTS_AT_ONCE 50

/* --- reports ------------------------------------------------------------- */

bool mo_egress_rate_take(struct mo_egress *x, struct mo_egress_rate *r,
                         double per_s, double at_once)
{
    uint64_t now = mo_loop_now(x->loop);

    if (r->at_ns)
        r->left += (double)(now - r->at_ns) / 1e9 * per_s;
    if (r->left > at_once || !r->at_ns)
        r->left = at_once;
    r->at_ns = now;
    if (r->left < 1)
        return false;
    r->left -= 1;
    return true;
}

void mo_egress_report(struct mo_egress *x, struct mo_egress_row *row)
{
    if (!x->on_row)
        return;
    /* a box that causes many refusals must not fill the disk */
    if (!row->allowed &&
        !mo_egress_rate_take(x, &x->reports, REPORTS_PER_S, REPORTS_AT_ONCE)) {
        x->uncounted++;
        return;
    }
    row->uncounted = x->uncounted;
    x->uncounted = 0;
    x->on_row(x->ctx, row);
}

/* --- accepting ----------------------------------------------------------- */

static void refuse(struct mo_egress *x, struct mo_egress_wish *w,
                   const char *reason)
{
    char text[MO_IP_TEXT];
    struct mo_egress_row row = {.name = w->name ? w->name->text : "",
                                .address = text,
                                .port = w->port,
                                .rule = "",
                                .reason = reason};

    mo_socket_drop_unsent(w->fd);
    mo_close_fd(&w->fd);
    if (w->stream)
        mo_stream_close(w->stream, NULL);
    mo_ip_text(&w->ip, text);
    mo_egress_report(x, &row);
}

bool mo_egress_read_end(int fd, bool peer, struct mo_ip *ip, unsigned *port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = {.v6 = {.sin6_family = AF_UNSPEC}};
    socklen_t n = sizeof(a);

    if ((peer ? getpeername(fd, &a.any, &n) : getsockname(fd, &a.any, &n)) < 0)
        return false;
    *ip = (struct mo_ip){{[10] = 0xFF, [11] = 0xFF}};
    if (a.any.sa_family == AF_INET6)
        memcpy(ip->b, &a.v6.sin6_addr, 16);
    else
        memcpy(ip->b + 12, &a.v4.sin_addr, 4);
    *port = ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
    return true;
}

/* fd: the highest descriptor, as it tells how many there are. */
static void decide(struct mo_egress *x, struct mo_egress_wish w, int fd)
{
    const struct mo_egress_limits *l = &x->policy->limits;
    enum mo_egress_say say = MO_EGRESS_YES;
    const struct mo_egress_rule *rule;
    uint16_t port = (uint16_t)w.port;

    w.name = mo_egress_names_at(&x->names, &w.ip);
    rule = w.name ? mo_egress_find_name(x->policy, w.name->text, port)
                  : mo_egress_find_address(x->policy, &w.ip, port);
    if (!rule)
        say = mo_egress_ask_judge(x, &w);
    if (say == MO_EGRESS_NO)
        refuse(x, &w, "not allowed");
    else if (x->nconns >= l->connections)
        refuse(x, &w, "too many connections");
    else if (fd >= x->fd_max)
        refuse(x, &w, "too many connections of all boxes");
    else if (x->bytes >= l->bytes)
        refuse(x, &w, "too many bytes");
    else
        mo_egress_conn_start(x, &w, rule, say);
}

static void pause_all(struct mo_egress *x, bool paused)
{
    for (size_t i = 1; i < x->nwatches; i++)
        mo_watch_pause(x->watches[i], paused);
}

static void on_retry(struct mo_timer *t)
{
    pause_all(mo_container_of(t, struct mo_egress, retry), false);
}

/* Returns -1 when there is none, or none can be had now. */
static int accept_one(struct mo_egress *x, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0 || errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
        return fd;
    /* no descriptors or no memory: the connection stays in the queue */
    pause_all(x, true);
    mo_timer_start(x->loop, &x->retry, RETRY_MS);
    return -1;
}

static void on_dns_connection(void *ctx, int listener)
{
    struct mo_egress *x = ctx;

    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept_one(x, listener);

        if (fd < 0)
            return;
        mo_egress_dns_accept(x, fd);
    }
}

/* One at a time: most come alone, and a second call would only find that. The
 * next turn of the loop takes the next one. */
static void on_connection(void *ctx, int listener)
{
    struct mo_egress *x = ctx;
    int fd = accept_one(x, listener);
    struct mo_egress_wish w = {.fd = fd};

    if (fd < 0)
        return;
    if (mo_egress_read_end(fd, false, &w.ip, &w.port))
        decide(x, w, fd);
    else
        mo_close_fd(&fd);
}

/* The number that the next descriptor would have. */
static int lowest_free_fd(void)
{
    mo_autofd int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? INT_MAX : fd;
}

void mo_egress_accept(struct mo_egress *x, struct mo_stream *s,
                      const struct mo_ip *ip, unsigned port)
{
    struct mo_egress_wish w = {.fd = -1, .stream = s, .ip = *ip, .port = port};

    if (x->closing)
        mo_stream_close(s, NULL);
    else if (port == MO_EGRESS_DNS_PORT)
        mo_egress_dns_serve(x, s);
    else
        decide(x, w, lowest_free_fd());
}

/* --- open and close ------------------------------------------------------ */

static void relay_free(struct mo_egress *x)
{
    mo_timer_stop(x->loop, &x->retry);
    mo_edges_fini(&x->edges);
    mo_egress_names_fini(&x->names);
    mo_egress_policy_free(x->policy);
    mo_free(x);
}

static void on_gone(struct mo_later *d)
{
    struct mo_egress *x = mo_container_of(d, struct mo_egress, later);
    struct mo_gone gone = x->gone;

    if (x->uncounted && x->on_row) {
        struct mo_egress_row row = {.name = "",
                                    .address = "",
                                    .rule = "",
                                    .reason = "more refusals",
                                    .uncounted = x->uncounted};

        x->on_row(x->ctx, &row);
    }
    relay_free(x);
    mo_gone_fire(gone);
}

void mo_egress_maybe_free(struct mo_egress *x)
{
    if (x->closing && mo_list_empty(&x->conns) && mo_list_empty(&x->dns) &&
        mo_list_empty(&x->asks))
        mo_loop_defer(x->loop, &x->later);
}

static void close_watches(struct mo_egress *x)
{
    while (x->nwatches)
        mo_watch_close(x->watches[--x->nwatches]);
}

void mo_egress_close(struct mo_egress *x, void (*gone)(void *ctx), void *ctx)
{
    x->closing = true;
    x->gone = (struct mo_gone){gone, ctx};
    close_watches(x);
    mo_egress_lookups_drop(x);
    mo_egress_conns_reset(x);
    mo_egress_dns_reset(x);
    mo_egress_maybe_free(x);
}

/* Answers must come from the address that was asked. */
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

static int open_watches(struct mo_egress *x, const struct mo_egress_opts *o,
                        struct mo_err *e)
{
    int rc = 0;

    x->zone.v6 = o->v6;
    if (o->nfds == 0)
        return 0;
    if (o->nfds < 2 || o->nfds > MO_EGRESS_FDS_MAX ||
        !set_up_dns(o->fds[0], &x->zone.v6))
        return mo_fail(e, MO_EINVAL, "these are not the sockets of a box");
    for (size_t i = 0; rc == 0 && i < o->nfds; i++) {
        int on = 1;

        if (i > 1) /* its connections get it, too */
            (void)setsockopt(o->fds[i], IPPROTO_TCP, TCP_NODELAY, &on,
                             sizeof(on));
        rc = mo_watch_open(x->loop, mo_take_fd(&o->fds[i]),
                           i == 0   ? mo_egress_dns_datagram
                           : i == 1 ? on_dns_connection
                                    : on_connection,
                           x, &x->watches[i], e);
        x->nwatches += rc == 0;
    }
    return rc;
}

/* Hosts that are named get their addresses at once: a program that has cached
 * one finds it there after a restart of this process. */
static int add_hosts(struct mo_egress *x)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < x->policy->n; i++) {
        struct mo_egress_name *n;

        if (x->policy->rules[i].kind == MO_EGRESS_HOST)
            rc = mo_egress_names_add(&x->names, x->policy->rules[i].host, &n);
    }
    return rc;
}

/* The kernel gives the lowest free number, so the number of a new descriptor
 * tells how many this process has. A connection takes two: those of all boxes
 * together use at most 3/4 of the descriptors, the rest is for this program. */
static int highest_fd(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur > INT_MAX)
        return INT_MAX;
    return (int)(r.rlim_cur / 8 * 3);
}

static struct mo_egress *relay_new(struct mo_loop *l,
                                   const struct mo_egress_opts *o)
{
    struct mo_egress *x = mo_new(struct mo_egress);

    if (!x) {
        mo_egress_policy_free(o->policy);
        return NULL;
    }
    x->loop = l;
    x->policy = o->policy;
    x->zone = (struct mo_egress_zone){.policy = x->policy,
                                      .names = &x->names,
                                      .ask = x->policy->ask && o->asker};
    x->asker = o->asker;
    x->find_program = o->find_program;
    x->on_row = o->on_row;
    x->ctx = o->ctx;
    x->fd_max = highest_fd();
    mo_edges_init(&x->edges, l, o);
    mo_egress_names_init(&x->names, o->loopback);
    mo_timer_init(&x->retry, on_retry);
    mo_later_init(&x->later, on_gone);
    mo_list_init(&x->conns);
    mo_list_init(&x->asks);
    mo_list_init(&x->dns);
    mo_list_init(&x->queue);
    return x;
}

int mo_egress_open(struct mo_loop *l, const struct mo_egress_opts *o,
                   struct mo_egress **out, struct mo_err *e)
{
    struct mo_egress *x = relay_new(l, o);
    int rc = x ? 0 : mo_fail(e, MO_ENOMEM, "network");

    if (rc == 0)
        rc = open_watches(x, o, e);
    if (rc == 0 && add_hosts(x) < 0)
        rc = mo_fail(e, MO_ENOMEM, "network");
    for (size_t i = 0; rc < 0 && i < o->nfds; i++)
        mo_close_fd(&o->fds[i]);
    if (rc == 0) {
        *out = x;
    } else if (x) {
        close_watches(x);
        relay_free(x);
    }
    return rc;
}
