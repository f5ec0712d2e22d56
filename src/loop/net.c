#include "loop/net.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "loop/priv.h"

#define BACKLOG_DEFAULT 511
#define HOST_MAX        256
#define ACCEPT_RETRY_MS 100

/* --- addresses as text --------------------------------------------------- */

struct addr {
    bool is_unix;
    char host[HOST_MAX]; /* or the path of a unix socket */
    char port[8];
};

static int put_part(char *out, size_t room, struct mo_span s, const char *text,
                    struct mo_err *e)
{
    if (s.n >= room)
        return mo_fail(e, MO_EINVAL, "address '%s' is too long", text);
    if (s.n)
        memcpy(out, s.p, s.n);
    out[s.n] = '\0';
    return 0;
}

static int parse_addr(const char *text, struct addr *a, struct mo_err *e)
{
    struct mo_span s = mo_span_cstr(text);
    struct mo_span host = s;
    struct mo_span port;
    uint64_t n;

    a->is_unix = mo_span_starts(s, MO_SPAN("unix:"));
    a->port[0] = '\0';
    if (a->is_unix)
        return put_part(a->host, sizeof(((struct sockaddr_un *)0)->sun_path),
                        mo_span_skip(s, 5), text, e);
    while (host.n && host.p[host.n - 1] != ':')
        host.n--;
    if (host.n < 2)
        return mo_fail(e, MO_EINVAL, "address '%s' is not host:port", text);
    port = mo_span_skip(s, host.n);
    host.n--;
    if (mo_span_u64(port, &n) < 0 || n > 65535)
        return mo_fail(e, MO_EINVAL, "address '%s': bad port", text);
    if (host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = mo_span(host.p + 1, host.n - 2);
    else if (mo_span_find(host, ':') >= 0)
        return mo_fail(e, MO_EINVAL, "address '%s': write IPv6 as [::1]:port",
                       text);
    if (put_part(a->port, sizeof(a->port), port, text, e) < 0)
        return MO_EINVAL;
    return put_part(a->host, sizeof(a->host), host, text, e);
}

/* --- listening ----------------------------------------------------------- */

struct mo_listener {
    struct mo_loop *loop;
    union {
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } h;
    bool is_unix, paused, waiting, keeps_path;
    struct mo_timer retry; /* after an allocation failure */
    unsigned port;
    void (*accept)(void *ctx, struct mo_stream *s);
    void *ctx;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

static void name_unix(struct uvs *u)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t n = sizeof(peer);
    int fd = -1;
    bool known = uv_fileno((const uv_handle_t *)&u->r, &fd) == 0 &&
                 getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0;

    u->s.is_own_user = known && (peer.uid == geteuid() || peer.uid == 0);
    (void)snprintf(u->s.peer, sizeof(u->s.peer), "unix uid %ld",
                   known ? (long)peer.uid : -1L);
}

/* The stream has a peer now. */
static void name_peer(struct uvs *u, bool is_unix)
{
    if (is_unix) {
        name_unix(u);
        return;
    }
    (void)uv_tcp_nodelay(&u->r.tcp, 1);
    if (!*u->s.peer)
        mo_uvs_name_tcp(u);
}

static void accept_one(struct mo_listener *ls)
{
    struct uvs *u = mo_uvs_new(ls->loop, ls->is_unix ? UVS_PIPE : UVS_TCP);

    if (!u) {
        mo_log(ls->loop->log, MO_WARN, "net", "accept: out of memory");
        ls->waiting = true; /* libuv keeps the connection until accepted */
        mo_timer_start(ls->loop, &ls->retry, ACCEPT_RETRY_MS);
        return;
    }
    if (uv_accept(&ls->h.stream, &u->r.stream) < 0) {
        mo_stream_close(&u->s, NULL);
        return;
    }
    name_peer(u, ls->is_unix);
    ls->accept(ls->ctx, &u->s);
}

static void on_connection(uv_stream_t *h, int status)
{
    struct mo_listener *ls = h->data;

    if (status < 0)
        mo_log(ls->loop->log, MO_WARN, "net", "accept: %s",
               uv_strerror(status));
    else if (ls->paused)
        ls->waiting = true; /* not accepting makes libuv stop listening */
    else
        accept_one(ls);
}

void mo_listener_pause(struct mo_listener *ls, bool paused)
{
    ls->paused = paused;
    if (paused || !ls->waiting)
        return;
    ls->waiting = false;
    accept_one(ls);
}

static void on_retry(struct mo_timer *t)
{
    struct mo_listener *ls = mo_container_of(t, struct mo_listener, retry);

    mo_listener_pause(ls, ls->paused);
}

/* Remove a socket file whose owner is dead: it refuses connections. */
static void remove_stale(const struct sockaddr_un *un)
{
    mo_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct stat st;

    if (fd < 0 || lstat(un->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return;
    if (connect(fd, (const struct sockaddr *)un, sizeof(*un)) < 0 &&
        errno == ECONNREFUSED)
        (void)unlink(un->sun_path);
}

static int bind_unix(const struct addr *a, unsigned mode, int *out,
                     struct mo_err *e)
{
    mo_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    mode_t old;
    int rc;

    if (fd < 0)
        return mo_fail_sys(e, "socket");
    rc = put_part(un.sun_path, sizeof(un.sun_path), mo_span_cstr(a->host),
                  a->host, e);
    if (rc < 0)
        return rc;
    remove_stale(&un);
    old = umask(0777 & ~(mode ? mode : 0600));
    rc = bind(fd, (struct sockaddr *)&un, sizeof(un));
    (void)umask(old);
    if (rc < 0)
        return mo_fail_sys(e, "listen on unix:%s", a->host);
    *out = mo_take_fd(&fd);
    return 0;
}

static int bind_one(const struct addrinfo *ai, int *out)
{
    mo_autofd int fd =
        socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0)
        return -1;
    *out = mo_take_fd(&fd);
    return 0;
}

/* Resolving the name blocks; this happens at start only. */
static int bind_tcp(const struct addr *a, const char *text, int *out,
                    struct mo_err *e)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    int rc = getaddrinfo(a->host, a->port, &hints, &list);

    if (rc != 0)
        return mo_fail(e, MO_EINVAL, "listen on %s: %s", text,
                       gai_strerror(rc));
    rc = -1;
    for (struct addrinfo *ai = list; ai && rc < 0; ai = ai->ai_next)
        rc = bind_one(ai, out);
    if (rc < 0)
        (void)mo_fail_sys(e, "listen on %s", text);
    freeaddrinfo(list);
    return rc < 0 ? MO_EIO : 0;
}

unsigned mo_listen_port(int fd)
{
    struct sockaddr_storage ss = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof(ss);

    if (getsockname(fd, (struct sockaddr *)&ss, &n) < 0)
        return 0;
    if (ss.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&ss)->sin6_port);
    if (ss.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&ss)->sin_port);
    return 0;
}

static void listener_gone(uv_handle_t *h)
{
    mo_free(h->data);
}

void mo_listener_close(struct mo_listener *ls)
{
    if (!ls)
        return;
    if (ls->is_unix && !ls->keeps_path)
        (void)unlink(ls->path);
    mo_timer_stop(ls->loop, &ls->retry);
    uv_close((uv_handle_t *)&ls->h, listener_gone);
}

/* The handle owns fd on success. */
static int start_listening(struct mo_listener *ls, int *fd, int backlog)
{
    int rc;

    ls->h.stream.data = ls;
    ls->port = mo_listen_port(*fd);
    if (ls->is_unix)
        rc = uv_pipe_open(&ls->h.pipe, *fd);
    else
        rc = uv_tcp_open(&ls->h.tcp, *fd);
    if (rc < 0)
        return rc;
    *fd = -1;
    return uv_listen(&ls->h.stream, backlog, on_connection);
}

/* The first one was bound without SO_REUSEPORT, so nobody else listens there;
 * the kernel lets only sockets of the same user in. */
static int bind_like(int first, int *out)
{
    struct sockaddr_storage ss = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof(ss);
    mo_autofd int fd = -1;
    int on = 1;

    if (getsockname(first, (struct sockaddr *)&ss, &n) < 0)
        return -1;
    if (ss.ss_family == AF_UNIX) {
        *out = fcntl(first, F_DUPFD_CLOEXEC, 3);
        return *out < 0 ? -1 : 0;
    }
    fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 ||
        setsockopt(first, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0 ||
        bind(fd, (struct sockaddr *)&ss, n) < 0)
        return -1;
    *out = mo_take_fd(&fd);
    return 0;
}

int mo_listen_bind(const struct mo_listen_opts *o, int *fds, size_t n,
                   struct mo_err *e)
{
    struct addr a;
    size_t i = 0;
    int rc = parse_addr(o->addr, &a, e);

    if (rc == 0)
        rc = a.is_unix ? bind_unix(&a, o->mode, fds, e)
                       : bind_tcp(&a, o->addr, fds, e);
    for (i = rc == 0 ? 1 : 0; rc == 0 && i < n; i++)
        if (bind_like(fds[0], &fds[i]) < 0)
            rc = mo_fail_sys(e, "listen on %s", o->addr);
    while (rc < 0 && i > 1) /* the last one failed */
        (void)close(fds[--i - 1]);
    return rc;
}

int mo_listen(struct mo_loop *l, const struct mo_listen_opts *o,
              void (*accept)(void *ctx, struct mo_stream *s), void *ctx,
              struct mo_listener **out, struct mo_err *e)
{
    mo_autofd int fd = o->bound ? o->bound : -1;
    struct mo_listener *ls;
    struct addr a;
    int rc = 0;

    if (parse_addr(o->addr, &a, e) < 0)
        return MO_EINVAL;
    if (fd < 0)
        rc = mo_listen_bind(o, &fd, 1, e);
    if (rc < 0)
        return rc;
    ls = mo_new(struct mo_listener);
    if (!ls)
        return mo_fail(e, MO_ENOMEM, "listen on %s", o->addr);
    ls->loop = l;
    ls->is_unix = a.is_unix;
    ls->keeps_path = o->keeps_path;
    ls->accept = accept;
    ls->ctx = ctx;
    mo_timer_init(&ls->retry, on_retry);
    if (a.is_unix) /* it fits: bind_unix() checked it */
        (void)put_part(ls->path, sizeof(ls->path), mo_span_cstr(a.host), "",
                       NULL);
    if (a.is_unix)
        (void)uv_pipe_init(&l->uv, &ls->h.pipe, 0);
    else
        (void)uv_tcp_init(&l->uv, &ls->h.tcp);
    rc = start_listening(ls, &fd, o->backlog ? o->backlog : BACKLOG_DEFAULT);
    if (rc < 0) {
        mo_listener_close(ls);
        return mo_fail_uv(e, rc, "listen on %s", o->addr);
    }
    *out = ls;
    return 0;
}

unsigned mo_listener_port(const struct mo_listener *ls)
{
    return ls->port;
}

/* --- dialling ------------------------------------------------------------
 *
 * RESOLVE -> CONNECT (each address in turn) -> done. The object lives until
 * done has fired and none of its libuv requests is active. */

struct mo_dial {
    struct mo_loop *loop;
    struct addr addr;
    struct addrinfo *list, *next;
    struct uvs *u; /* the current attempt */
    uv_getaddrinfo_t resolve;
    uv_connect_t connect;
    bool resolving, connecting, canceled, ended;
    struct mo_timer deadline;
    struct mo_later later;
    struct mo_err why; /* error of the last attempt */
    void (*done)(void *ctx, struct mo_stream *s, const struct mo_err *why);
    void *ctx;
};

static void dial_maybe_free(struct mo_dial *d)
{
    if (!d->ended || d->resolving || d->connecting)
        return;
    mo_timer_stop(d->loop, &d->deadline);
    mo_later_cancel(&d->later);
    if (d->list)
        uv_freeaddrinfo(d->list);
    mo_free(d);
}

/* Only the first call counts. Always from the loop; may free d. */
static void dial_end(struct mo_dial *d, struct uvs *u)
{
    if (d->ended)
        return; /* canceled and timed out */
    d->ended = true;
    mo_timer_stop(d->loop, &d->deadline);
    d->done(d->ctx, u ? &u->s : NULL, u ? NULL : &d->why);
    dial_maybe_free(d);
}

static void dial_drop(struct mo_dial *d)
{
    if (d->u)
        mo_stream_close(&d->u->s, NULL); /* on_connected gets ECANCELED */
    if (d->resolving)
        (void)uv_cancel((uv_req_t *)&d->resolve);
}

static void on_dial_timeout(struct mo_timer *t)
{
    struct mo_dial *d = mo_container_of(t, struct mo_dial, deadline);

    (void)mo_fail(&d->why, MO_ETIMEOUT, "connect to %s:%s: timed out",
                  d->addr.host, d->addr.port);
    dial_drop(d);
    dial_end(d, NULL);
}

static void try_next(struct mo_dial *d);

static void dial_note(struct mo_dial *d, int rc)
{
    if (d->addr.is_unix)
        (void)mo_fail_uv(&d->why, rc, "connect to unix:%s", d->addr.host);
    else
        (void)mo_fail_uv(&d->why, rc, "connect to %s:%s", d->addr.host,
                         d->addr.port);
    d->why.code = MO_EUNAVAIL;
}

static void on_connected(uv_connect_t *req, int rc)
{
    struct mo_dial *d = req->data;
    struct uvs *u = d->u;

    d->connecting = false;
    d->u = NULL;
    if (d->ended || d->canceled) {
        dial_maybe_free(d);
        return;
    }
    if (rc < 0) {
        mo_stream_close(&u->s, NULL);
        dial_note(d, rc);
        try_next(d);
        return;
    }
    name_peer(u, d->addr.is_unix);
    dial_end(d, u);
}

static int connect_to(struct mo_dial *d, const struct sockaddr *sa)
{
    int rc;

    d->u = mo_uvs_new(d->loop, sa ? UVS_TCP : UVS_PIPE);
    if (!d->u)
        return UV_ENOMEM;
    d->connect.data = d;
    if (sa) {
        rc = uv_tcp_connect(&d->connect, &d->u->r.tcp, sa, on_connected);
    } else {
        uv_pipe_connect(&d->connect, &d->u->r.pipe, d->addr.host, on_connected);
        rc = 0;
    }
    if (rc < 0) {
        mo_stream_close(&d->u->s, NULL);
        d->u = NULL;
        return rc;
    }
    d->connecting = true;
    return 0;
}

static void try_next(struct mo_dial *d)
{
    while (d->next) {
        const struct addrinfo *ai = d->next;
        int rc;

        d->next = ai->ai_next;
        rc = connect_to(d, ai->ai_addr);
        if (rc == 0)
            return;
        dial_note(d, rc);
    }
    dial_end(d, NULL);
}

static void on_resolved(uv_getaddrinfo_t *req, int rc, struct addrinfo *list)
{
    struct mo_dial *d = req->data;

    d->resolving = false;
    d->list = list;
    if (d->ended || d->canceled) {
        dial_maybe_free(d);
        return;
    }
    if (rc < 0)
        dial_note(d, rc);
    d->next = list;
    try_next(d);
}

static void dial_begin(struct mo_later *later)
{
    struct mo_dial *d = mo_container_of(later, struct mo_dial, later);
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV};
    int rc;

    if (d->addr.is_unix) {
        rc = connect_to(d, NULL);
    } else {
        d->resolve.data = d;
        rc = uv_getaddrinfo(&d->loop->uv, &d->resolve, on_resolved,
                            d->addr.host, d->addr.port, &hints);
        d->resolving = rc == 0;
    }
    if (rc == 0)
        return;
    dial_note(d, rc);
    dial_end(d, NULL);
}

static struct mo_dial *dial_new(struct mo_loop *l,
                                void (*done)(void *ctx, struct mo_stream *s,
                                             const struct mo_err *why),
                                void *ctx)
{
    struct mo_dial *d = mo_new(struct mo_dial);

    if (!d)
        return NULL;
    d->loop = l;
    d->done = done;
    d->ctx = ctx;
    mo_timer_init(&d->deadline, on_dial_timeout);
    mo_later_init(&d->later, dial_begin);
    return d;
}

int mo_dial(struct mo_loop *l, const char *addr, uint64_t timeout_ms,
            void (*done)(void *ctx, struct mo_stream *s,
                         const struct mo_err *why),
            void *ctx, struct mo_dial **out, struct mo_err *e)
{
    struct mo_dial *d = dial_new(l, done, ctx);

    if (!d)
        return mo_fail(e, MO_ENOMEM, "connect to %s", addr);
    if (parse_addr(addr, &d->addr, e) < 0) {
        mo_free(d);
        return MO_EINVAL;
    }
    (void)mo_fail(&d->why, MO_EUNAVAIL, "connect to %s: no address", addr);
    mo_timer_start(l, &d->deadline, timeout_ms);
    mo_loop_defer(l, &d->later);
    if (out)
        *out = d;
    return 0;
}

static void put_sockaddr(const struct mo_ip *ip, unsigned port,
                         struct sockaddr_storage *out)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

    if (mo_ip_is_v4(ip)) {
        *v4 = (struct sockaddr_in){.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port)};
        memcpy(&v4->sin_addr, ip->b + 12, 4);
    } else {
        *v6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
                                    .sin6_port = htons((uint16_t)port)};
        memcpy(&v6->sin6_addr, ip->b, 16);
    }
}

/* Nothing is to be resolved, so it connects at once; libuv reports the end from
 * the loop. */
int mo_dial_ip(struct mo_loop *l, const struct mo_ip *ip, unsigned port,
               uint64_t timeout_ms,
               void (*done)(void *ctx, struct mo_stream *s,
                            const struct mo_err *why),
               void *ctx, struct mo_dial **out, struct mo_err *e)
{
    struct mo_dial *d = dial_new(l, done, ctx);
    struct sockaddr_storage to;
    int rc;

    if (!d)
        return mo_fail(e, MO_ENOMEM, "connect");
    mo_ip_text(ip, d->addr.host);
    (void)snprintf(d->addr.port, sizeof(d->addr.port), "%u", port);
    put_sockaddr(ip, port, &to);
    rc = connect_to(d, (const struct sockaddr *)&to);
    if (rc < 0) {
        dial_note(d, rc);
        *e = d->why;
        mo_free(d);
        return e->code;
    }
    (void)snprintf(d->u->s.peer, sizeof(d->u->s.peer),
                   mo_ip_is_v4(ip) ? "%s:%s" : "[%s]:%s", d->addr.host,
                   d->addr.port);
    mo_timer_start(l, &d->deadline, timeout_ms);
    *out = d;
    return 0;
}

static void dial_canceled(struct mo_later *later)
{
    struct mo_dial *d = mo_container_of(later, struct mo_dial, later);

    dial_end(d, NULL);
}

void mo_dial_cancel(struct mo_dial *d)
{
    if (d->ended || d->canceled)
        return;
    d->canceled = true;
    (void)mo_fail(&d->why, MO_ECANCELED, "connect to %s: canceled",
                  d->addr.host);
    mo_later_cancel(&d->later);
    mo_later_init(&d->later, dial_canceled);
    mo_loop_defer(d->loop, &d->later);
    dial_drop(d);
}
