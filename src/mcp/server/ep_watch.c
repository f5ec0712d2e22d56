/* ep_watch.c - subscriptions and log levels of all clients together.
 *
 * The handler is told when the first client subscribes to a resource, when the
 * last one unsubscribes, and when the most verbose log level changes. */
#include "mcp/server/ep_priv.h"

/* The map holds counts. */
static uintptr_t count_of(const struct mo_endpoint *ep, struct mo_span uri)
{
    return (uintptr_t)mo_map_get(&ep->watched, uri);
}

static void notify_handler(struct mo_endpoint *ep, struct mo_span uri, bool on)
{
    if (ep->o.watch)
        ep->o.watch(ep->o.ctx, uri, on);
}

int mo_ep_watch(struct mo_endpoint *ep, struct mo_span uri)
{
    uintptr_t n = count_of(ep, uri) + 1;
    int rc = mo_map_put(&ep->watched, uri, (void *)n, NULL); /* NOLINT */

    if (rc == 0 && n == 1)
        notify_handler(ep, uri, true);
    return rc;
}

void mo_ep_unwatch(struct mo_endpoint *ep, struct mo_span uri)
{
    uintptr_t n = count_of(ep, uri);

    if (n > 1) {
        /* Replacing needs no memory. */
        (void)mo_map_put(&ep->watched, uri, (void *)(n - 1), NULL); /* NOLINT */
        return;
    }
    if (mo_map_del(&ep->watched, uri))
        notify_handler(ep, uri, false);
}

int mo_ep_watch_all(struct mo_endpoint *ep, const struct mo_map *uris)
{
    int rc = 0;

    mo_map_each (en, uris) {
        rc = mo_ep_watch(ep, mo_map_key(en));
        if (rc == 0)
            continue;
        mo_map_each (done, uris) {
            if (done == en)
                break;
            mo_ep_unwatch(ep, mo_map_key(done));
        }
        break;
    }
    return rc;
}

void mo_ep_unwatch_all(struct mo_endpoint *ep, const struct mo_map *uris)
{
    mo_map_each (en, uris)
        mo_ep_unwatch(ep, mo_map_key(en));
}

void mo_ep_watch_tasks(struct call *c, bool on)
{
    const struct mo_endpoint_opts *o = &c->ep->o;

    mo_map_each (en, &c->filter->tasks) {
        if (o->watch_task)
            o->watch_task(o->ctx, &c->pub, mo_map_key(en), on);
    }
}

void mo_ep_level_wanted(struct mo_endpoint *ep, enum mo_mcp_level lv, bool on)
{
    unsigned least = 0;

    if (lv == MO_MCP_LEVELS)
        return;
    ep->levels[lv] += on ? 1 : -1U;
    while (least < MO_MCP_LEVELS && !ep->levels[least])
        least++;
    if (least == (unsigned)ep->level)
        return;
    ep->level = (enum mo_mcp_level)least;
    if (ep->o.level)
        ep->o.level(ep->o.ctx, ep->level);
}

enum mo_mcp_level mo_endpoint_level(const struct mo_endpoint *ep)
{
    return ep->level;
}
