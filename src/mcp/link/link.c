#include "mcp/link/link.h"

/* The owner of a link that is closed before it has one. */
static const struct mo_link_cb nobody;

void mo_link_attach(struct mo_link *k, const struct mo_link_cb *cb, void *ctx)
{
    bool first = !k->cb;

    k->cb = cb;
    k->ctx = ctx;
    if (first && k->ops->start)
        k->ops->start(k);
}

int mo_link_send(struct mo_link *k, const struct mo_link_msg *m)
{
    if (k->closing)
        return MO_ECLOSED;
    if (k->ops->send)
        return k->ops->send(k, m);
    return k->inner ? mo_link_send(k->inner, m) : MO_ECLOSED;
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

bool mo_link_is_installing(const struct mo_link *k)
{
    return !k->closing && k->ops->installing && k->ops->installing(k);
}

void mo_link_close(struct mo_link *k, const struct mo_err *why)
{
    if (k->closing)
        return;
    if (!k->cb)
        mo_link_attach(k, &nobody, NULL);
    k->closing = true;
    if (why && !k->failing)
        k->why = *why;
    k->ops->close(k);
}

bool mo_link_fail(struct mo_link *k, const struct mo_err *why)
{
    if (mo_link_dead(k))
        return false;
    k->failing = true;
    k->why = *why;
    return true;
}

void mo_link_gone(struct mo_link *k)
{
    struct mo_link was = *k;

    mo_free(k);
    if (was.cb->on_close)
        was.cb->on_close(was.ctx, was.why.code ? &was.why : NULL);
}

void mo_link_pass_message(void *ctx, const struct mo_rpc *m, uint64_t stream_of)
{
    const struct mo_link *k = ctx;

    if (!k->closing)
        k->cb->on_message(k->ctx, m, stream_of);
}

void mo_link_pass_failed(void *ctx, uint64_t id, int status,
                         struct mo_span body, const struct mo_err *why)
{
    const struct mo_link *k = ctx;

    if (!k->closing)
        k->cb->on_failed(k->ctx, id, status, body, why);
}

void mo_link_pass_noise(void *ctx, struct mo_span line)
{
    const struct mo_link *k = ctx;

    if (!k->closing && k->cb->on_noise)
        k->cb->on_noise(k->ctx, line);
}
