#include "launcher/pod_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "launcher/container_stream.h"

#define PROBES     20   /* a plugin may enforce a policy a little later */
#define PROBE_MS   1000 /* no answer in this time: there is no way */
#define PAUSE_NS   500000000
#define BIND_TRIES 20 /* the relay before this one may still be ending */

static void wait_a_little(void)
{
    const struct timespec t = {.tv_nsec = PAUSE_NS};

    (void)nanosleep(&t, NULL);
}

/* --- is the policy enforced? --------------------------------------------- */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static int has_interface(bool *out, struct mo_err *e)
{
    struct if_nameindex *v = if_nameindex();

    if (!v)
        return mo_fail_sys(e, "interfaces");
    *out = false;
    for (const struct if_nameindex *i = v; i->if_index; i++)
        *out |= strcmp(i->if_name, "lo") != 0;
    if_freenameindex(v);
    return 0;
}

static bool read_api(union address *a, socklen_t *n)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    uint64_t p = 0;

    memset(a, 0, sizeof(*a));
    if (!host || !port || mo_span_u64(mo_span_cstr(port), &p) < 0 || p == 0 ||
        p > 65535)
        return false;
    if (inet_pton(AF_INET, host, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons((uint16_t)p);
        *n = sizeof(a->v4);
        return true;
    }
    a->v6.sin6_family = AF_INET6;
    a->v6.sin6_port = htons((uint16_t)p);
    *n = sizeof(a->v6);
    return inet_pton(AF_INET6, host, &a->v6.sin6_addr) == 1;
}

static bool can_connect(const union address *a, socklen_t n)
{
    mo_autofd int fd =
        socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof(error);

    if (fd < 0)
        return false;
    if (connect(fd, &a->any, n) == 0)
        return true;
    if (errno != EINPROGRESS || poll(&p, 1, PROBE_MS) != 1)
        return false;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
           error == 0;
}

static int check_policy(struct mo_err *e)
{
    union address api;
    socklen_t n = 0;
    bool any = false;
    int rc = has_interface(&any, e);

    if (rc < 0 || !any)
        return rc;
    if (!read_api(&api, &n))
        return mo_fail(e, MO_EPOLICY,
                       "the pod is not told where the cluster's API is, so it "
                       "cannot be seen that NetworkPolicy is enforced");
    for (int i = 0; i < PROBES; i++) {
        if (!can_connect(&api, n))
            return 0;
        wait_a_little();
    }
    return mo_fail(e, MO_EPOLICY,
                   "the network plugin of the cluster does not enforce "
                   "NetworkPolicy: the pod reaches the cluster's API");
}

/* --- the relay ----------------------------------------------------------- */

static int open_sockets(struct mo_net *x, const char *ports, struct mo_err *e)
{
    int rc = 0;

    for (int i = 0; i < BIND_TRIES; i++) {
        rc = mo_net_listen(x, ports, e);
        if (rc == 0 || e->sys != EADDRINUSE)
            break;
        while (x->n > 0)
            mo_close_fd(&x->fds[--x->n]);
        wait_a_little();
    }
    return rc;
}

int mo_pod_net(const char *ports, const char *files)
{
    struct mo_net x = {.n = 0};
    struct mo_err e = {0};
    int rc = check_policy(&e);

    if (rc == 0)
        rc = open_sockets(&x, ports, &e);
    if (rc == 0)
        return mo_container_stream(&x, files, true);
    (void)fprintf(stderr, "%s%s\n", e.msg,
                  e.sys == EACCES ? ": the cluster did not set "
                                    "net.ipv4.ip_unprivileged_port_start"
                                  : "");
    return 1;
}

int mo_pod_pause(void)
{
    for (;;)
        (void)pause();
}
