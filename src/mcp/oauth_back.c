#include "mcp/oauth_back.h"

#include <stdio.h>

#include "base/mem.h"
#include "loop/httpd.h"

#define GRACE_MS 1000u

struct mo_back {
    struct mo_httpd *httpd;
    int (*on_query)(void *ctx, struct mo_span query);
    void *ctx;
    void (*gone)(void *ctx);
    void *gone_ctx;
    char uri[64];
};

static void answer(struct mo_req *rq, int status, const char *text)
{
    mo_req_header(rq, "Cache-Control", MO_SPAN("no-store"));
    mo_req_header(rq, "Referrer-Policy", MO_SPAN("no-referrer"));
    mo_req_reply(rq, status, "text/plain; charset=utf-8", mo_span_cstr(text));
}

static void on_request(void *ctx, struct mo_req *rq)
{
    struct mo_back *b = ctx;

    if (!mo_span_is(rq->path, "/callback"))
        answer(rq, 404, "There is nothing here.\n");
    else if (rq->head->method != MO_HTTP_GET)
        answer(rq, 405, "Only GET is known here.\n");
    else if (!b->on_query || b->on_query(b->ctx, rq->query) < 0)
        answer(rq, 400, "This is not the answer to a sign-in of ours.\n");
    else
        answer(rq, 200, "Done. This window can be closed.\n");
}

static void on_gone(void *ctx)
{
    struct mo_back *b = ctx;
    void (*gone)(void *) = b->gone;
    void *gone_ctx = b->gone_ctx;

    mo_free(b);
    if (gone)
        gone(gone_ctx);
}

int mo_back_open(struct mo_loop *l,
                 int (*on_query)(void *ctx, struct mo_span query), void *ctx,
                 struct mo_back **out, struct mo_err *e)
{
    struct mo_back *b = mo_new(struct mo_back);
    struct mo_httpd_opts ho = {
        .limits = {.connections = 8, .requests = 16, .body = 1024},
        .handler = on_request,
        .ctx = b,
    };
    struct mo_listen_opts lo = {.addr = "127.0.0.1:0", .backlog = 8};
    int rc;

    if (!b)
        return mo_fail(e, MO_ENOMEM, "sign-in");
    b->httpd = mo_httpd_new(l, &ho, e);
    if (!b->httpd) {
        mo_free(b);
        return e ? e->code : MO_ENOMEM;
    }
    rc = mo_httpd_listen(b->httpd, &lo, e);
    if (rc < 0) {
        mo_back_close(b, NULL, NULL);
        return rc;
    }
    b->on_query = on_query;
    b->ctx = ctx;
    (void)snprintf(b->uri, sizeof(b->uri), "http://127.0.0.1:%u/callback",
                   mo_httpd_port(b->httpd));
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
    b->gone = gone;
    b->gone_ctx = ctx;
    mo_httpd_close(b->httpd, GRACE_MS, on_gone, b);
}
