#include "app/service_manager.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "config/listen.h"

#define FIRST_FD 3

/* --- the socket ---------------------------------------------------------- */

/* How many descriptors were passed to this process. */
static uint64_t count_passed(void)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    uint64_t whose = 0, n = 0;

    if (!pid || !fds || mo_span_u64(mo_span_cstr(pid), &whose) < 0 ||
        whose != (uint64_t)getpid() || mo_span_u64(mo_span_cstr(fds), &n) < 0)
        return 0;
    return n;
}

static bool has_host(const struct sockaddr_storage *ss, const char *listen)
{
    const struct sockaddr_in *in4 = (const void *)ss;
    const struct sockaddr_in6 *in6 = (const void *)ss;
    struct mo_span host = mo_listen_host(listen);
    char text[INET6_ADDRSTRLEN];
    struct in6_addr a6;
    struct in_addr a4;
    bool is_name = mo_span_is(host, "localhost");

    if (is_name)
        host = ss->ss_family == AF_INET ? MO_SPAN("127.0.0.1") : MO_SPAN("::1");
    if (host.n >= sizeof(text))
        return false;
    (void)snprintf(text, sizeof(text), "%.*s", (int)host.n, host.p);
    if (ss->ss_family == AF_INET)
        return inet_pton(AF_INET, text, &a4) == 1 &&
               memcmp(&a4, &in4->sin_addr, sizeof(a4)) == 0;
    return inet_pton(AF_INET6, text, &a6) == 1 &&
           memcmp(&a6, &in6->sin6_addr, sizeof(a6)) == 0;
}

static unsigned port_of(const struct sockaddr_storage *ss)
{
    const struct sockaddr_in *in4 = (const void *)ss;
    const struct sockaddr_in6 *in6 = (const void *)ss;

    return ntohs(ss->ss_family == AF_INET ? in4->sin_port : in6->sin6_port);
}

static int get_int(int fd, int what)
{
    int value = -1;
    socklen_t n = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, what, &value, &n) < 0 ? -1 : value;
}

static int check_socket(const struct mo_config_server *c, struct mo_err *e)
{
    struct sockaddr_storage ss = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof(ss);

    if (get_int(FIRST_FD, SO_TYPE) != SOCK_STREAM ||
        get_int(FIRST_FD, SO_ACCEPTCONN) != 1 ||
        getsockname(FIRST_FD, (struct sockaddr *)&ss, &n) < 0 ||
        (ss.ss_family != AF_INET && ss.ss_family != AF_INET6))
        return mo_fail(e, MO_EINVAL,
                       "what the service manager passed is no listening TCP "
                       "socket (LISTEN_FDS)");
    if (!has_host(&ss, c->listen) ||
        (c->port && port_of(&ss) != (unsigned)c->port))
        return mo_fail(e, MO_EINVAL,
                       "the socket that the service manager passed (port %u) "
                       "is not at server.listen %s, server.port %lld: set both "
                       "to the same",
                       port_of(&ss), c->listen, (long long)c->port);
    return 0;
}

int mo_service_manager_socket(const struct mo_config_server *c, int *fd,
                              struct mo_err *e)
{
    uint64_t n = count_passed();
    int rc;

    *fd = 0;
    if (n == 0)
        return 0;
    if (n > 1)
        return mo_fail(e, MO_EINVAL,
                       "the service manager passed %llu sockets; one is enough",
                       (unsigned long long)n);
    rc = check_socket(c, e);
    if (rc == 0 && fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC) < 0)
        rc = mo_fail_sys(e, "the socket of the service manager");
    if (rc == 0)
        *fd = FIRST_FD;
    return rc;
}

/* --- messages ------------------------------------------------------------ */

/* Lost if nobody reads: the service manager has its own timeouts. */
static void notify(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = path ? strlen(path) : 0;
    mo_autofd int fd = -1;

    if (n < 2 || n >= sizeof(a.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(a.sun_path, path, n);
    if (path[0] == '@')
        a.sun_path[0] = '\0'; /* an abstract name */
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL,
                     (const struct sockaddr *)&a,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
}

void mo_service_manager_ready(void)
{
    notify("READY=1");
}

void mo_service_manager_reloading(void)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
                   (unsigned long long)(mo_now_ns() / 1000));
    notify(text);
}

void mo_service_manager_stopping(int64_t seconds)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "STOPPING=1\nEXTEND_TIMEOUT_USEC=%lld",
                   (long long)seconds * 1000000);
    notify(text);
}
