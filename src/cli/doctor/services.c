/* services.c - checks whether the port, Docker and Redis answer. Uses blocking
 * sockets with one deadline; only the doctor does. The sockets of the server
 * are in src/loop. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/doctor/doctor.h"
#include "codec/http/url.h"
#include "codec/resp.h"
#include "config/reference.h"
#include "secrets/resolve.h"
#include "store/redis_url.h"

#define ANSWER_MAX 512
#define HOST_MAX   256

/* --- sockets ------------------------------------------------------------- */

static int left_ms(uint64_t deadline)
{
    uint64_t now = mo_now_ns();

    return now >= deadline ? 0 : (int)((deadline - now) / MO_MS) + 1;
}

/* Waits for the socket; 0 or errno. */
static int wait_for(int fd, short what, uint64_t deadline)
{
    struct pollfd p = {.fd = fd, .events = what};
    int n;

    do
        n = poll(&p, 1, left_ms(deadline));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno;
    return n == 0 ? ETIMEDOUT : 0;
}

/* 0 or errno; the socket is non-blocking. */
static int connect_by(int fd, const struct sockaddr *sa, socklen_t len,
                      uint64_t deadline)
{
    socklen_t n = sizeof(int);
    int err = 0;

    if (connect(fd, sa, len) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return errno;
    err = wait_for(fd, POLLOUT, deadline);
    if (err)
        return err;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n) < 0)
        return errno;
    return err;
}

static int connect_unix(const char *path, uint64_t deadline, int *err)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    mo_autofd int fd =
        socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    *err = fd < 0 ? errno : 0;
    if (!*err && strlen(path) >= sizeof(sa.sun_path))
        *err = ENAMETOOLONG;
    if (*err)
        return -1;
    memcpy(sa.sun_path, path, strlen(path) + 1);
    *err = connect_by(fd, (const struct sockaddr *)&sa, sizeof(sa), deadline);
    return *err ? -1 : mo_take_fd(&fd);
}

static struct addrinfo *resolve(const char *host, const char *port, int flags)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *list = NULL;

    return getaddrinfo(host, port, &hints, &list) == 0 ? list : NULL;
}

static int connect_tcp(const char *host, const char *port, uint64_t deadline,
                       int *err)
{
    struct addrinfo *list = resolve(host, port, AI_NUMERICSERV);
    int fd = -1;

    *err = EHOSTUNREACH;
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                    0);
        *err = fd < 0 ? errno
                      : connect_by(fd, a->ai_addr, a->ai_addrlen, deadline);
        if (*err)
            mo_close_fd(&fd);
    }
    if (list)
        freeaddrinfo(list);
    return fd;
}

/* Sends a request that fits any socket buffer, reads until `enough` bytes. */
static int send_and_read(int fd, const char *question, char answer[ANSWER_MAX],
                         size_t enough, uint64_t deadline)
{
    size_t n = 0;
    int err = 0;

    if (send(fd, question, strlen(question), MSG_NOSIGNAL) < 0)
        return errno;
    while (n < enough && !err) {
        ssize_t got;

        err = wait_for(fd, POLLIN, deadline);
        if (err)
            break;
        got = recv(fd, answer + n, ANSWER_MAX - 1 - n, 0);
        if (got == 0)
            err = ECONNRESET;
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            err = errno;
        if (got > 0)
            n += (size_t)got;
    }
    answer[n] = '\0';
    return err;
}

/* "[user:pass@]host[:port][/...]" */
static bool split_host(struct mo_span s, char host[HOST_MAX], char port[8],
                       const char *usual)
{
    struct mo_span auth = mo_span_cut(&s, '/');
    struct mo_span rest;

    for (size_t i = auth.n; i > 0; i--) {
        if (auth.p[i - 1] == '@') {
            auth = mo_span_skip(auth, i);
            break;
        }
    }
    rest = auth;
    if (auth.n && auth.p[0] == '[') {
        rest = mo_span_skip(rest, 1);
        auth = mo_span_cut(&rest, ']');
        if (rest.n)
            rest = mo_span_skip(rest, 1);
    } else {
        auth = mo_span_cut(&rest, ':');
    }
    if (auth.n == 0)
        auth = MO_SPAN("localhost");
    if (auth.n >= HOST_MAX || rest.n >= 8)
        return false;
    (void)snprintf(host, HOST_MAX, "%.*s", (int)auth.n, auth.p);
    (void)snprintf(port, 8, "%.*s", rest.n ? (int)rest.n : 7,
                   rest.n ? rest.p : usual);
    return true;
}

/* --- our own port -------------------------------------------------------- */

static int try_bind(const struct addrinfo *a)
{
    mo_autofd int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    if (fd < 0)
        return errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, 1) < 0)
        return errno;
    return 0;
}

void mo_check_port(const struct mo_doctor *d, struct mo_finding *f)
{
    const struct mo_config_server *s = &d->cfg->server;
    struct addrinfo *list;
    char port[8];
    int err;

    if (mo_span_starts(mo_span_cstr(s->listen), MO_SPAN("unix:"))) {
        mo_found(f, MO_HEALTH_OK, "a unix socket is used: %.200s", s->listen);
        return;
    }
    (void)snprintf(port, sizeof(port), "%u", (unsigned)(s->port & 0xffff));
    list = resolve(s->listen, port, AI_PASSIVE | AI_NUMERICSERV);
    if (!list) {
        mo_found(f, MO_HEALTH_FAIL,
                 "'%.100s' is not an address of this machine", s->listen);
        mo_advise(f, "set server.listen to 127.0.0.1 or 0.0.0.0");
        return;
    }
    err = try_bind(list);
    freeaddrinfo(list);
    if (err == 0) {
        mo_found(f, MO_HEALTH_OK, "%.100s port %s is free", s->listen, port);
    } else if (err == EADDRINUSE) {
        mo_found(f, MO_HEALTH_WARN, "%.100s port %s is in use", s->listen,
                 port);
        mo_advise(f, "that is fine if it is our own server; else choose "
                     "another with --port or PORT");
    } else {
        mo_found(f, MO_HEALTH_FAIL, "cannot listen on %.100s port %s: %s",
                 s->listen, port, strerror(err));
        mo_advise(f, "choose another address or a port above 1023");
    }
}

/* --- container engine ---------------------------------------------------- */

static int connect_docker(const char *where, uint64_t deadline, int *err)
{
    struct mo_span s = mo_span_cstr(where);
    char host[HOST_MAX], port[8];
    ptrdiff_t at = mo_span_search(s, MO_SPAN("://"));

    if (mo_span_starts(s, MO_SPAN("unix://")))
        return connect_unix(where + sizeof("unix://") - 1, deadline, err);
    *err = EINVAL;
    if (at < 0 ||
        !split_host(mo_span_skip(s, (size_t)at + 3), host, port, "2375"))
        return -1;
    return connect_tcp(host, port, deadline, err);
}

void mo_check_docker(const struct mo_doctor *d, struct mo_finding *f)
{
    const struct mo_config_sandbox *box = &d->cfg->sandbox;
    uint64_t deadline = mo_now_ns() + MO_DOCTOR_WAIT_MS * MO_MS;
    enum mo_health bad =
        box->driver == MO_DRIVER_DOCKER ? MO_HEALTH_FAIL : MO_HEALTH_WARN;
    char answer[ANSWER_MAX];
    int err = 0;
    mo_autofd int fd = connect_docker(box->docker_host, deadline, &err);

    if (!err)
        err = send_and_read(fd, "GET /_ping HTTP/1.1\r\nHost: docker\r\n\r\n",
                            answer, sizeof("HTTP/1.1 200") - 1, deadline);
    if (!err && strncmp(answer, "HTTP/1.1 200", 12) == 0) {
        mo_found(f, MO_HEALTH_OK, "an engine answers at %.200s",
                 box->docker_host);
        return;
    }
    mo_found(f, bad, "no engine answers at %.200s%s%s", box->docker_host,
             err ? ": " : "", err ? strerror(err) : "");
    mo_advise(f, err == EACCES
                     ? "add yourself to the docker group, or use another "
                       "sandbox driver"
                     : "start Docker or podman, or set DOCKER_HOST; only "
                       "needed for boxes in containers");
}

/* --- Redis --------------------------------------------------------------- */

static int connect_redis(const char *addr, uint64_t deadline, int *err)
{
    struct mo_span s = mo_span_cstr(addr);
    char host[HOST_MAX], port[8];

    if (mo_span_strip(&s, MO_SPAN("unix:")))
        return connect_unix(s.p, deadline, err);
    *err = EINVAL;
    return split_host(s, host, port, "6379")
               ? connect_tcp(host, port, deadline, err)
               : -1;
}

/* AUTH if there is a password, else PING. A sentinel may have no password or
 * another one. */
static void put_question(const struct mo_rconf *c, struct mo_buf *b)
{
    const char *words[3] = {"AUTH"};
    size_t n = 1;

    if (c->password && !c->master[0]) {
        if (c->user)
            words[n++] = c->user;
        words[n++] = c->password;
    } else {
        words[0] = "PING";
    }
    (void)mo_resp_put_head(b, n);
    for (size_t i = 0; i < n; i++)
        (void)mo_resp_put(b, mo_span_cstr(words[i]));
}

/* answer: "+PONG", "+OK", or "-WORD ..." */
static void judge_redis(const struct mo_rconf *c, const char *addr,
                        const char *answer, struct mo_finding *f)
{
    size_t n = strspn(answer + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    bool lacks = strncmp(answer, "-NOAUTH", 7) == 0;

    if (strncmp(answer, "+PONG", 5) == 0 || strncmp(answer, "+OK", 3) == 0 ||
        (lacks && c->master[0])) {
        mo_found(f, MO_HEALTH_OK, "%.200s answers", addr);
    } else if (answer[0] == '-' && n > 0 && n < 20) {
        mo_found(f, MO_HEALTH_FAIL, "%.200s answers with the error %.*s", addr,
                 (int)n, answer + 1);
        if (c->password)
            mo_advise(f, "correct the user and the password in store.url");
        else if (lacks)
            mo_advise(f, "write the password into store.url: "
                         "redis://:${secret:NAME}@HOST");
    } else {
        mo_found(f, MO_HEALTH_FAIL, "%.200s answers, but not like Redis", addr);
    }
}

static void ask_redis(const struct mo_rconf *c, const char *addr,
                      struct mo_finding *f)
{
    uint64_t deadline = mo_now_ns() + MO_DOCTOR_WAIT_MS * MO_MS;
    mo_autowipe struct mo_buf question = {.max = (size_t)2 * MO_URL_MAX};
    char answer[ANSWER_MAX] = "";
    int err = 0;
    mo_autofd int fd = connect_redis(addr, deadline, &err);

    put_question(c, &question);
    if (!err && mo_buf_err(&question))
        err = ENOMEM;
    if (!err && !c->tls)
        err = send_and_read(fd, mo_buf_cstr(&question), answer, 5, deadline);
    if (err) {
        mo_found(f, MO_HEALTH_FAIL, "no answer from %.200s: %s", addr,
                 strerror(err));
        mo_advise(f, "start Redis, correct REDIS_URL or store.url, or use "
                     "sqlite:FILE");
    } else if (c->tls) {
        mo_found(f, MO_HEALTH_OK, "%.200s accepts connections", addr);
    } else {
        judge_redis(c, addr, answer, f);
    }
}

/* The address is resolved and parsed as serve does it. One host must answer. */
void mo_check_redis(const struct mo_doctor *d, struct mo_finding *f)
{
    mo_autowipe struct mo_buf url = {.max = MO_URL_MAX};
    struct mo_store_opts opts = {0};
    struct mo_rconf conf = {0};
    struct mo_err e;

    (void)mo_buf_room(&url, MO_URL_MAX);
    if (mo_reference_resolve(d->cfg, d->cfg->store.url, &url, &e) < 0) {
        mo_found(f, MO_HEALTH_FAIL, "store.url: %.250s", e.msg);
        return;
    }
    opts.url = mo_buf_cstr(&url);
    if (!mo_span_starts(mo_buf_view(&url), MO_SPAN("redis"))) {
        mo_found(f, MO_HEALTH_OK, "not used");
    } else if (mo_redis_url(&conf, &opts, &e) < 0) {
        mo_found(f, MO_HEALTH_FAIL, "%.250s", e.msg);
        mo_advise(f, "correct REDIS_URL or store.url; a password is written as "
                     "in every URL, with %%40 for @");
    } else {
        for (unsigned i = 0; i < conf.nseeds; i++) {
            ask_redis(&conf, conf.seeds[i].addr, f);
            if (f->health == MO_HEALTH_OK)
                break;
        }
    }
    mo_redis_url_fini(&conf);
}

/* --- embeddings ----------------------------------------------------------- */

#define HTTP_HEAD 12 /* "HTTP/1.1 200" */

/* Asks a server without TLS for its list of models; it gets no key. */
static void ask_models(int fd, const char *host, uint64_t deadline,
                       struct mo_finding *f)
{
    char question[HOST_MAX + 80], answer[ANSWER_MAX];
    int err;

    (void)snprintf(question, sizeof(question),
                   "GET /v1/models HTTP/1.1\r\nHost: %s\r\n"
                   "Connection: close\r\n\r\n",
                   host);
    err = send_and_read(fd, question, answer, HTTP_HEAD, deadline);
    if (err || strncmp(answer, "HTTP/1.", 7) != 0) {
        mo_found(f, MO_HEALTH_WARN,
                 "it accepts connections but sends no "
                 "HTTP answer: no second opinion");
        mo_advise(f, "check gateway.embeddings.url");
    } else {
        mo_found(f, MO_HEALTH_OK, "it answers");
    }
}

/* A part of a value that comes from a reference is not shown. */
static void connect_embeddings(struct mo_span url, bool show,
                               struct mo_finding *f)
{
    uint64_t deadline = mo_now_ns() + MO_DOCTOR_WAIT_MS * MO_MS;
    bool plain = mo_span_strip(&url, MO_SPAN("http://"));
    char host[HOST_MAX], port[8];
    mo_autofd int fd = -1;
    int err = 0;

    if (!plain)
        (void)mo_span_strip(&url, MO_SPAN("https://"));
    if (!split_host(url, host, port, plain ? "80" : "443")) {
        mo_found(f, MO_HEALTH_WARN, "gateway.embeddings.url has no host");
        return;
    }
    fd = connect_tcp(host, port, deadline, &err);
    if (fd < 0) {
        mo_found(f, MO_HEALTH_WARN,
                 "cannot connect to %.200s: the router has no second opinion",
                 show ? host : "the host of the reference");
        mo_advise(f, "start it, or remove gateway.embeddings.url");
    } else if (plain) {
        ask_models(fd, host, deadline, f);
    } else {
        mo_found(f, MO_HEALTH_OK, "it accepts connections");
    }
}

void mo_check_embeddings(const struct mo_doctor *d, struct mo_finding *f)
{
    const char *text = d->cfg->gateway.embeddings.url;
    mo_autowipe struct mo_buf url = {.max = MO_URL_MAX};
    struct mo_err e;

    if (!text || !*text) {
        mo_found(f, MO_HEALTH_OK, "not used");
        return;
    }
    (void)mo_buf_room(&url, MO_URL_MAX);
    if (mo_reference_resolve(d->cfg, text, &url, &e) < 0)
        mo_found(f, MO_HEALTH_WARN, "gateway.embeddings.url: %.250s", e.msg);
    else
        connect_embeddings(mo_buf_view(&url),
                           !mo_reference_any(mo_span_cstr(text)), f);
}
