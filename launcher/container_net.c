#include "launcher/container_net.h"

#include <errno.h>
#include <linux/capability.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "launcher/container_stream.h"

#define BACKLOG 8

union control {
    struct cmsghdr align;
    char room[CMSG_SPACE(sizeof(((struct mo_net *)0)->fds))];
};

/* --- the namespace ------------------------------------------------------- */

static int check_namespace(struct mo_err *e)
{
    struct if_nameindex *v = if_nameindex();
    int rc = 0;

    if (!v)
        return mo_fail_sys(e, "interfaces");
    for (const struct if_nameindex *i = v; i->if_index && rc == 0; i++)
        if (strcmp(i->if_name, "lo") != 0)
            rc = mo_fail(e, MO_EPOLICY,
                         "the network container has the interface %s",
                         i->if_name);
    if_freenameindex(v);
    return rc;
}

static int drop_capabilities(struct mo_err *e)
{
    struct __user_cap_header_struct head = {.version =
                                                _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_capset, &head, none) < 0)
        return mo_fail_sys(e, "capabilities");
    return 0;
}

static int make_network(struct mo_net *x, const char *ports, struct mo_err *e)
{
    int rc = check_namespace(e);

    if (rc == 0)
        rc = mo_net_make(x, ports, e);
    return rc ? rc : drop_capabilities(e);
}

/* --- handing out --------------------------------------------------------- */

static int open_socket(const char *name, struct sockaddr_un *a)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(a->sun_path, sizeof(a->sun_path), "%s", name);
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

/* Only those who can search the driver's directory can connect. */
static int listen_for_drivers(int *out, struct mo_err *e)
{
    struct sockaddr_un a;
    mo_autofd int fd = open_socket("s", &a);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
        chmod("s", 0777) < 0 || listen(fd, BACKLOG) < 0)
        return mo_fail_sys(e, "socket of the network container");
    *out = mo_take_fd(&fd);
    return 0;
}

static void send_sockets(int to, const struct mo_net *x)
{
    union control c;
    char yes = '+';
    struct iovec v = {&yes, 1};
    struct msghdr h = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &c,
                       .msg_controllen = CMSG_SPACE(sizeof(int) * x->n)};
    struct cmsghdr *m;

    memset(&c, 0, sizeof(c));
    m = CMSG_FIRSTHDR(&h);
    m->cmsg_level = SOL_SOCKET;
    m->cmsg_type = SCM_RIGHTS;
    m->cmsg_len = CMSG_LEN(sizeof(int) * x->n);
    memcpy(CMSG_DATA(m), x->fds, sizeof(int) * x->n);
    (void)sendmsg(to, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The driver that started us; it may have ended. why: NULL, or the failure. */
static void tell_driver(const struct mo_net *x, const struct mo_err *why)
{
    char text[sizeof(why->msg) + 1];
    struct sockaddr_un a;
    mo_autofd int fd = open_socket("up", &a);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
        return;
    if (!why) {
        send_sockets(fd, x);
        return;
    }
    (void)snprintf(text, sizeof(text), "-%s", why->msg);
    (void)send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void serve_drivers(int listener, const struct mo_net *x)
{
    for (;;) {
        mo_autofd int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd >= 0)
            send_sockets(fd, x);
        else if (errno != EINTR && errno != ECONNABORTED)
            return;
    }
}

/* Hands the sockets out in a directory. */
static int hand_out(const char *ports, const char *dir)
{
    struct mo_net x = {.n = 0};
    struct mo_err e;
    int listener = -1, rc;

    if (chdir(dir) < 0) {
        fprintf(stderr, "mo-box: %s: %s\n", dir, strerror(errno));
        return 1;
    }
    rc = make_network(&x, ports, &e);
    if (rc == 0)
        rc = listen_for_drivers(&listener, &e);
    tell_driver(&x, rc < 0 ? &e : NULL);
    if (rc == 0)
        serve_drivers(listener, &x);
    return 1;
}

int mo_container_net(const char *ports, const char *dir, const char *files)
{
    struct mo_net x = {.n = 0};
    struct mo_err e;

    if (strcmp(dir, MO_CONTAINER_STREAM) != 0)
        return hand_out(ports, dir);
    if (make_network(&x, ports, &e) == 0)
        return mo_container_stream(&x, files, false);
    fprintf(stderr, "%s\n", e.msg);
    return 1;
}
