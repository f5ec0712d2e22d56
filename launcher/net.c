#include "launcher/net.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

#define LOOPBACK 1 /* the interface's index in every namespace */
#define BACKLOG  511
#define DNS_PORT 53

/* --- routes -------------------------------------------------------------- */

struct request {
    struct nlmsghdr head;
    union {
        struct ifinfomsg link;
        struct {
            struct rtmsg route;
            struct rtattr attr;
            int interface;
        };
    };
};

/* Returns 0 or an errno. */
static int ask_kernel(int netlink, struct request *r)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr err;
        char rest[256]; /* the request again */
    } answer;
    ssize_t n;

    r->head.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    if (send(netlink, r, r->head.nlmsg_len, 0) < 0)
        return errno;
    n = recv(netlink, &answer, sizeof(answer), 0);
    if (n < (ssize_t)NLMSG_LENGTH(sizeof(answer.err)))
        return n < 0 ? errno : EPROTO;
    return answer.head.nlmsg_type == NLMSG_ERROR ? -answer.err.error : EPROTO;
}

static int raise_loopback(int netlink)
{
    struct request r = {
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.link)),
                 .nlmsg_type = RTM_NEWLINK},
        .link = {.ifi_index = LOOPBACK,
                 .ifi_flags = IFF_UP,
                 .ifi_change = IFF_UP},
    };

    return ask_kernel(netlink, &r);
}

/* ip route add local default dev lo */
static int make_all_local(int netlink, unsigned char family)
{
    struct request r = {
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.route)) +
                              RTA_LENGTH(sizeof(r.interface)),
                 .nlmsg_type = RTM_NEWROUTE,
                 .nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL},
        .route = {.rtm_family = family,
                  .rtm_table = RT_TABLE_LOCAL,
                  .rtm_protocol = RTPROT_BOOT,
                  .rtm_scope = RT_SCOPE_HOST,
                  .rtm_type = RTN_LOCAL},
        .attr = {.rta_len = RTA_LENGTH(sizeof(r.interface)),
                 .rta_type = RTA_OIF},
        .interface = LOOPBACK,
    };

    return ask_kernel(netlink, &r);
}

static int fail_with(struct mo_err *e, int sys, const char *what)
{
    errno = sys;
    return mo_fail_sys(e, "network of the box: %s", what);
}

static int set_routes(bool *v6, struct mo_err *e)
{
    mo_autofd int netlink =
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    int rc;

    if (netlink < 0)
        return fail_with(e, errno, "netlink");
    rc = raise_loopback(netlink);
    if (rc)
        return fail_with(e, rc, "loopback");
    rc = make_all_local(netlink, AF_INET);
    if (rc)
        return fail_with(e, rc, "route");
    *v6 = make_all_local(netlink, AF_INET6) == 0;
    return 0;
}

/* --- sockets ------------------------------------------------------------- */

struct kind {
    bool v6;
    bool plain; /* mo_net_listen() */
};

/* A relay that was started anew finds its ports in TIME_WAIT. */
static int reuse_port(int fd)
{
    int on = 1;

    return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

/* On all addresses. -1: errno. */
static int open_port(struct kind k, int type, unsigned port)
{
    bool v6 = k.v6;
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in a4 = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port)};
    bool local = k.plain && port == DNS_PORT;
    mo_autofd int fd =
        socket(v6 ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int off = 0;

    if (fd < 0)
        return -1;
    if (v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
        return -1;
    if (k.plain && type == SOCK_STREAM && reuse_port(fd) < 0)
        return -1;
    a4.sin_addr.s_addr = htonl(local ? INADDR_LOOPBACK : INADDR_ANY);
    if (v6 ? bind(fd, (const struct sockaddr *)&a6, sizeof(a6)) < 0
           : bind(fd, (const struct sockaddr *)&a4, sizeof(a4)) < 0)
        return -1;
    if (type == SOCK_STREAM && listen(fd, BACKLOG) < 0)
        return -1;
    return mo_take_fd(&fd);
}

static int add_port(struct mo_net *x, struct kind k, int type, unsigned port,
                    struct mo_err *e)
{
    if (x->n == MO_COUNT(x->fds))
        return mo_fail(e, MO_EPROTO, "network of the box: more than %d ports",
                       MO_BOXREQ_PORTS);
    x->fds[x->n] = open_port(k, type, port);
    if (x->fds[x->n] < 0)
        return mo_fail_sys(e, "network of the box: port %u", port);
    x->n++;
    return 0;
}

static int open_sockets(struct mo_net *x, struct kind k, const char *ports,
                        struct mo_err *e)
{
    struct mo_span rest = mo_span_cstr(ports);
    int rc = add_port(x, k, SOCK_DGRAM, DNS_PORT, e);

    if (rc == 0)
        rc = add_port(x, k, SOCK_STREAM, DNS_PORT, e);
    while (rc == 0 && rest.p) {
        struct mo_span word = mo_span_cut(&rest, ',');
        uint64_t port;

        if (mo_span_u64(word, &port) < 0 || port == 0 || port > 65535)
            return mo_fail(e, MO_EPROTO, "network of the box: not a port");
        rc = add_port(x, k, SOCK_STREAM, (unsigned)port, e);
    }
    return rc;
}

int mo_net_make(struct mo_net *x, const char *ports, struct mo_err *e)
{
    struct kind k = {.v6 = false};
    int rc = set_routes(&k.v6, e);

    x->n = 0;
    return rc ? rc : open_sockets(x, k, ports, e);
}

int mo_net_listen(struct mo_net *x, const char *ports, struct mo_err *e)
{
    x->n = 0;
    return open_sockets(x, (struct kind){.plain = true}, ports, e);
}

int mo_net_open(struct mo_net *x, const char *ports, struct mo_err *e)
{
    x->n = 0;
    if (!*ports)
        return 0;
    if (unshare(CLONE_NEWNET) < 0)
        return mo_fail_sys(e, "network namespace");
    return mo_net_make(x, ports, e);
}
