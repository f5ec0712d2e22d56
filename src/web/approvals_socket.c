#include "web/approvals_socket.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "loop/httpu.h"

#define CONNS_MAX 16
#define PREFIX    "approvals-"
#define SUFFIX    ".sock"

struct mo_approvals_socket {
    struct mo_httpd *httpd;
    struct mo_api api;
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    struct mo_gone gone;
};

/* --- server side --------------------------------------------------------- */

static void send_link(const struct mo_buf *link, struct mo_req *rq)
{
    if (link && link->len > 0)
        mo_req_reply(rq, 200, "text/plain", mo_buf_view(link));
    else
        mo_req_problem(rq, 404, "no_page", "this process serves no page");
}

static void refuse_stranger(struct mo_approvals_socket *h, struct mo_req *rq)
{
    const struct mo_audit_row row = {
        .reason = "not_yours",
        .via = "socket",
        .peer = mo_span_cstr(mo_req_peer(rq)),
    };

    if (h->api.approvals)
        mo_audit_attempt(mo_approvals_audit(h->api.approvals), &row);
    mo_req_problem(rq, 403, "not_yours", "this is another user's server");
}

static void on_request(void *ctx, struct mo_req *rq)
{
    struct mo_approvals_socket *h = ctx;

    rq->caller[0] = rq->who[0] = rq->grant[0] = '\0';
    rq->role = MO_ROLE_OPERATOR;
    rq->door = "socket";
    if (!mo_req_is_own_user(rq))
        refuse_stranger(h, rq);
    else if (mo_span_is(rq->path, MO_APPROVALS_SOCKET_LINK))
        send_link(h->api.link, rq);
    else if (!mo_api_tokens_handle(&h->api, rq))
        mo_api_approvals_handle(&h->api, rq);
}

static int path_of(struct mo_approvals_socket *h, const char *dir,
                   struct mo_err *e)
{
    char run[PATH_MAX];
    int n = snprintf(run, sizeof(run), "%s/" MO_APPROVALS_SOCKET_DIR, dir);

    if (n < 0 || (size_t)n >= sizeof(run))
        return mo_fail(e, MO_ETOOBIG, "store.dir is too long");
    if (mo_file_mkdir(run, e) < 0)
        return e->code;
    n = snprintf(h->path, sizeof(h->path), "%s/" PREFIX "%ld" SUFFIX, run,
                 (long)getpid());
    if (n < 0 || (size_t)n >= sizeof(h->path))
        return mo_fail(e, MO_ETOOBIG, "%s is too long for a socket in it", run);
    return 0;
}

static void on_gone(void *ctx)
{
    struct mo_approvals_socket *h = ctx;
    struct mo_gone gone = h->gone;

    mo_free(h);
    mo_gone_fire(gone);
}

void mo_approvals_socket_close(struct mo_approvals_socket *h,
                               void (*gone)(void *ctx), void *ctx)
{
    h->gone = (struct mo_gone){gone, ctx};
    if (h->path[0])
        (void)unlink(h->path);
    mo_httpd_close(h->httpd, 0, on_gone, h);
}

int mo_approvals_socket_open(struct mo_loop *l, const char *dir,
                             const struct mo_api *api,
                             struct mo_approvals_socket **out, struct mo_err *e)
{
    struct mo_approvals_socket *h = mo_new(struct mo_approvals_socket);
    struct mo_httpd_opts o = {.limits = {.connections = CONNS_MAX},
                              .handler = on_request};
    char addr[sizeof(h->path) + 8];
    struct mo_listen_opts at = {.addr = addr, .backlog = CONNS_MAX};
    int rc;

    if (!h)
        return mo_fail(e, MO_ENOMEM, "approvals");
    h->api = *api;
    rc = path_of(h, dir, e);
    if (rc < 0) {
        mo_free(h);
        return rc;
    }
    (void)snprintf(addr, sizeof(addr), "unix:%s", h->path);
    o.ctx = h;
    h->httpd = mo_httpd_new(l, &o, e);
    if (!h->httpd) {
        mo_free(h);
        return e->code;
    }
    rc = mo_httpd_listen(h->httpd, &at, e);
    if (rc < 0) {
        h->path[0] = '\0'; /* the socket belongs to another process */
        mo_approvals_socket_close(h, NULL, NULL);
        return rc;
    }
    *out = h;
    return 0;
}

/* --- client side --------------------------------------------------------- */

struct asking {
    int status;
    struct mo_buf *out;
    bool done, gone;
    struct mo_err why;
};

static void on_head(void *ctx, const struct mo_http_head *head)
{
    ((struct asking *)ctx)->status = head->status;
}

static void on_data(void *ctx, struct mo_span data)
{
    (void)mo_buf_span(((struct asking *)ctx)->out, data);
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct asking *a = ctx;

    a->done = true;
    if (why)
        a->why = *why;
}

static void on_closed(void *ctx)
{
    ((struct asking *)ctx)->gone = true;
}

static bool is_set(void *flag)
{
    return *(bool *)flag;
}

int mo_approvals_socket_ask(struct mo_loop *l, const char *path,
                            const char *method, const char *url,
                            struct mo_span body, int *status,
                            struct mo_buf *out, struct mo_err *e)
{
    static const struct mo_http_cb cb = {on_head, on_data, on_done};
    struct asking a = {.out = out};
    char addr[PATH_MAX];
    struct mo_httpu_opts o = {.addr = addr};
    struct mo_http_call c = {
        .method = method,
        .url = url,
        .body = body,
        .total_ms = MO_APPROVALS_SOCKET_MS,
        .max_bytes = MO_APPROVALS_SOCKET_BYTES,
    };
    struct mo_httpu_x *x = NULL;
    struct mo_httpu *u;

    (void)snprintf(addr, sizeof(addr), "unix:%s", path);
    u = mo_httpu_new(l, &o, e);
    if (!u)
        return e->code;
    if (mo_httpu_start(u, &c, &cb, &a, &x, &a.why) == 0)
        while (!mo_loop_until(l, is_set, &a.done, MO_APPROVALS_SOCKET_MS))
            continue;
    mo_httpu_close(u, on_closed, &a);
    while (!mo_loop_until(l, is_set, &a.gone, MO_APPROVALS_SOCKET_MS))
        continue;
    *status = a.status;
    if (a.why.code)
        *e = a.why;
    return a.why.code ? a.why.code : mo_buf_err(out);
}

static bool is_socket_name(const char *name)
{
    struct mo_span s = mo_span_cstr(name);

    return mo_span_starts(s, MO_SPAN(PREFIX)) &&
           mo_span_ends(s, MO_SPAN(SUFFIX));
}

int mo_approvals_socket_each(const char *dir,
                             int (*fn)(void *ctx, const char *path), void *ctx,
                             struct mo_err *e)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/" MO_APPROVALS_SOCKET_DIR, dir);
    DIR *d;
    int rc = 0;

    if (n < 0 || (size_t)n >= sizeof(path))
        return mo_fail(e, MO_ETOOBIG, "store.dir is too long");
    d = opendir(path);
    if (!d && errno == ENOENT)
        return 0;
    if (!d)
        return mo_fail_sys(e, "%s", path);
    for (struct dirent *x = readdir(d); x && rc == 0; x = readdir(d)) {
        if (!is_socket_name(x->d_name))
            continue;
        n = snprintf(path, sizeof(path), "%s/" MO_APPROVALS_SOCKET_DIR "/%s",
                     dir, x->d_name);
        if (n > 0 && (size_t)n < sizeof(path))
            rc = fn(ctx, path);
    }
    (void)closedir(d);
    return rc;
}
