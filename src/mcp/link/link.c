#include "mcp/link/link.h"

/* --- callbacks of a link that is closed before it has an owner ----------- */

static void ignore_message(void *ctx, const struct mo_rpc *m,
                           uint64_t stream_of)
{
    (void)ctx;
    (void)m;
    (void)stream_of;
}

static void ignore_failed(void *ctx, uint64_t id, int status,
                          struct mo_span body, const struct mo_err *why)
{
    (void)ctx;
    (void)id;
    (void)status;
    (void)body;
    (void)why;
}

static void ignore_close(void *ctx, const struct mo_err *why)
{
    (void)ctx;
    (void)why;
}

static const struct mo_link_cb nobody = {
    .on_message = ignore_message,
    .on_failed = ignore_failed,
    .on_close = ignore_close,
};

/* --- dispatch ------------------------------------------------------------ */

void mo_link_attach(struct mo_link *k, const struct mo_link_cb *cb, void *ctx)
{
    bool first = !k->cb;

    k->cb = cb;
    k->ctx = ctx;
    if (first)
        k->ops->start(k);
}

int mo_link_send(struct mo_link *k, const struct mo_link_msg *m)
{
    return k->closing ? MO_ECLOSED : k->ops->send(k, m);
}

void mo_link_forget(struct mo_link *k, uint64_t id)
{
    if (!k->closing && k->ops->forget)
        k->ops->forget(k, id);
}

void mo_link_opened(struct mo_link *k, const char *version)
{
    if (!k->closing && k->ops->opened)
        k->ops->opened(k, version);
}

bool mo_link_is_http(const struct mo_link *k)
{
    return k->ops->http;
}

void mo_link_close(struct mo_link *k, const struct mo_err *why)
{
    if (k->closing)
        return;
    if (!k->cb)
        mo_link_attach(k, &nobody, NULL);
    k->closing = true;
    k->ops->close(k, why);
}
