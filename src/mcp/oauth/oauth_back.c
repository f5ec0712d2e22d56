#include "mcp/oauth/oauth_back.h"

#include <stdio.h>

#include "base/mem.h"
#include "codec/http/url.h"
#include "loop/httpd.h"

#define GRACE_MS 1000u

struct mo_back {
    struct mo_httpd *httpd;
    int (*on_query)(void *ctx, struct mo_span query);
    void *ctx;
    struct mo_gone gone;
    char uri[MO_BACK_URI_MAX];
    struct mo_span path; /* in uri */
};

/* --- addresses ----------------------------------------------------------- */

static const char *check_uri(const char *uri, struct mo_url *u)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "::1"};
    bool ours = false;

    if (strlen(uri) >= MO_BACK_URI_MAX - 8 || /* leave space for a port */
        mo_url_parse(mo_span_cstr(uri), u, NULL) < 0 ||
        !mo_span_is(u->scheme, "http"))
        return "must be an address that starts with http://";
    for (size_t i = 0; i < MO_COUNT(hosts); i++)
        ours = ours || mo_span_ieq(u->host, mo_span_cstr(hosts[i]));
    if (!ours)
        return "must be at 127.0.0.1, localhost or [::1]";
    if (u->userinfo.p || u->query.p || u->fragment.p || u->path.n == 0)
        return "must end in a path, with nothing after it";
    return NULL;
}

const char *mo_back_check(const char *uri)
{
    struct mo_url u;

    return check_uri(uri, &u);
}

bool mo_back_same(const char *uri, const char *other)
{
    struct mo_url u, o;

    if (check_uri(uri, &u) || check_uri(other, &o))
        return false;
    return mo_span_ieq(u.host, o.host) && mo_span_eq(u.path, o.path) &&
           (!u.has_port || (o.has_port && u.port == o.port));
}

/* --- the listener -------------------------------------------------------- */

static void send_page(struct mo_req *rq, int status, const char *text)
{
    mo_req_header(rq, "Cache-Control", MO_SPAN("no-store"));
    mo_req_header(rq, "Referrer-Policy", MO_SPAN("no-referrer"));
    mo_req_reply(rq, status, "text/plain; charset=utf-8", mo_span_cstr(text));
}

static void on_request(void *ctx, struct mo_req *rq)
{
    struct mo_back *b = ctx;

    if (!mo_span_eq(rq->path, b->path))
        send_page(rq, 404, "There is nothing here.\n");
    else if (rq->head->method != MO_HTTP_GET)
        send_page(rq, 405, "Only GET is supported.\n");
    else if (!b->on_query || b->on_query(b->ctx, rq->query) < 0)
        send_page(rq, 400, "This is not the answer to a pending sign-in.\n");
    else
        send_page(rq, 200, "Done. This window can be closed.\n");
}

static void on_gone(void *ctx)
{
    struct mo_back *b = ctx;
    struct mo_gone gone = b->gone;

    mo_free(b);
    mo_gone_fire(gone);
}

static int listen_at(struct mo_back *b, const struct mo_url *u,
                     struct mo_err *e)
{
    char addr[32];
    struct mo_listen_opts lo = {.addr = addr, .backlog = 8};
    const char *ends[] = {u->ipv6 ? "[" : "", u->ipv6 ? "]" : ""};
    size_t n;
    int rc;

    (void)snprintf(addr, sizeof(addr), "%s:%u", u->ipv6 ? "[::1]" : "127.0.0.1",
                   u->has_port ? u->port : 0);
    rc = mo_httpd_listen(b->httpd, &lo, e);
    if (rc < 0)
        return rc;
    n = (size_t)snprintf(b->uri, sizeof(b->uri), "http://%s%.*s%s:%u", ends[0],
                         (int)u->host.n, u->host.p, ends[1],
                         mo_httpd_port(b->httpd));
    (void)snprintf(b->uri + n, sizeof(b->uri) - n, "%.*s", (int)u->path.n,
                   u->path.p);
    b->path = mo_span_cstr(b->uri + n);
    return 0;
}

int mo_back_open(struct mo_loop *l, const char *uri,
                 int (*on_query)(void *ctx, struct mo_span query), void *ctx,
                 struct mo_back **out, struct mo_err *e)
{
    struct mo_back *b = mo_new(struct mo_back);
    struct mo_httpd_opts ho = {
        .limits = {.connections = 8, .requests = 16, .body = 1024},
        .handler = on_request,
        .ctx = b,
    };
    const char *wrong;
    struct mo_url u;
    int rc;

    if (!b)
        return mo_fail(e, MO_ENOMEM, "sign-in");
    wrong = check_uri(uri ? uri : MO_BACK_URI, &u);
    b->httpd = wrong ? NULL : mo_httpd_new(l, &ho, e);
    if (!b->httpd) {
        mo_free(b);
        return wrong ? mo_fail(e, MO_EINVAL, "the redirect %s", wrong)
                     : (e ? e->code : MO_ENOMEM);
    }
    rc = listen_at(b, &u, e);
    if (rc < 0) {
        mo_back_close(b, NULL, NULL);
        return rc;
    }
    b->on_query = on_query;
    b->ctx = ctx;
    *out = b;
    return 0;
}

const char *mo_back_uri(const struct mo_back *b)
{
    return b->uri;
}

void mo_back_close(struct mo_back *b, void (*gone)(void *ctx), void *ctx)
{
    b->on_query = NULL;
    b->gone = (struct mo_gone){gone, ctx};
    mo_httpd_close(b->httpd, GRACE_MS, on_gone, b);
}
