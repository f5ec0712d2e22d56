#include "mcp/oauth/oauth_ask.h"

static void on_head(void *ctx, const struct mo_http_head *h)
{
    struct mo_oauth_ask *q = ctx;

    q->status = h->status;
    if (q->dpop)
        mo_dpop_nonce(q->dpop, mo_http_get(h, "DPoP-Nonce"));
}

static void on_data(void *ctx, struct mo_span data)
{
    (void)mo_buf_span(&((struct mo_oauth_ask *)ctx)->body, data);
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct mo_oauth_ask *q = ctx;

    q->x = NULL;
    if (!why && mo_buf_err(&q->body))
        q->done(q, mo_error(mo_buf_err(&q->body), "the answer is too big"));
    else
        q->done(q, why);
}

static const struct mo_http_cb call_cb = {
    .on_head = on_head,
    .on_data = on_data,
    .on_done = on_done,
};

static int start(struct mo_oauth_ask *q, struct mo_http_call *c,
                 struct mo_err *e)
{
    int rc = mo_oauth_url_ok(c->url, q->server, e);

    if (rc < 0)
        return rc;
    MO_BUG_ON(q->x);
    c->total_ms = MO_OAUTH_ASK_MS;
    c->max_bytes = MO_OAUTH_DOC_MAX;
    c->public_only = !q->local && !mo_oauth_is_private(q->server);
    q->status = 0;
    mo_buf_reset(&q->body);
    return mo_httpc_start(q->http, c, &call_cb, q, &q->x, e);
}

int mo_oauth_ask(struct mo_oauth_ask *q, const char *url, const char *type,
                 struct mo_span body, struct mo_span basic, struct mo_err *e)
{
    const struct mo_dpop_request r = {.method = "POST", .url = url};
    mo_autobuf struct mo_buf proof = {.max = MO_DPOP_PROOF_MAX};
    struct mo_http_header hs[4] = {
        {MO_SPAN("Accept"), MO_SPAN("application/json")},
        {MO_SPAN("Content-Type"), mo_span_cstr(type)},
    };
    struct mo_http_call c = {
        .method = type ? "POST" : "GET",
        .url = url,
        .headers = hs,
        .nheaders = type ? 2 : 1,
        .body = body,
    };

    if (type && basic.n)
        hs[c.nheaders++] =
            (struct mo_http_header){MO_SPAN("Authorization"), basic};
    if (type && q->dpop) {
        if (mo_dpop_proof(q->dpop, &r, &proof, e) < 0)
            return e->code;
        hs[c.nheaders++] =
            (struct mo_http_header){MO_SPAN("DPoP"), mo_buf_view(&proof)};
    }
    return start(q, &c, e);
}

int mo_oauth_ask_with(struct mo_oauth_ask *q, const char *url,
                      struct mo_span authorization, struct mo_err *e)
{
    const struct mo_http_header hs[] = {
        {MO_SPAN("Accept"), MO_SPAN("application/json")},
        {MO_SPAN("Authorization"), authorization},
    };
    struct mo_http_call c = {
        .method = "GET", .url = url, .headers = hs, .nheaders = MO_COUNT(hs)};

    return start(q, &c, e);
}

bool mo_oauth_ask_cancel(struct mo_oauth_ask *q)
{
    if (q->x)
        mo_httpc_cancel(q->x);
    return q->x != NULL;
}

void mo_oauth_ask_init(struct mo_oauth_ask *q)
{
    q->status = 0;
    q->x = NULL;
    mo_buf_init(&q->body, MO_OAUTH_DOC_MAX);
}

void mo_oauth_ask_fini(struct mo_oauth_ask *q)
{
    MO_BUG_ON(q->x);
    mo_buf_wipe(&q->body);
}
