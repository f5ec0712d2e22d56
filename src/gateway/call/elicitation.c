/* elicitation.c - URL elicitations: which client was sent to which page.
 *
 * A server of 2025-11-25 sends notifications/elicitation/complete with its
 * id of the elicitation when the person is done, possibly after the call has
 * ended. The entry here tells which client to notify. Limit: at
 * GW_ELICITATIONS_MAX no more entries are kept; such a client is not
 * notified. */
#include "gateway/call/forwarded_call.h"

#define KEY_LEN_MAX ((size_t)4096)

struct elicitation {
    struct mo_endpoint *ep;
    uint64_t peer;
};

/* The key is the server's name, NUL, the elicitation's id. */
static int put_key(const struct server_slot *s, struct mo_json id,
                   struct mo_buf *b)
{
    const char *name = mo_upstream_server(s->up)->name;

    if (!mo_json_is(id, MO_JSON_STRING))
        return MO_EINVAL;
    (void)mo_buf_put(b, name, strlen(name) + 1);
    return mo_json_str_buf(id, b);
}

void mo_elicitation_begin(const struct forwarded_call *f, struct mo_json params)
{
    struct mo_json id = mo_json_get(params, "elicitationId");
    struct elicitation *v, *old = NULL;
    mo_autobuf struct mo_buf key = {.max = KEY_LEN_MAX};

    if (!id.p || !f->peer || !f->slot || mo_mcp_is_modern(f->down->version))
        return;
    v = mo_new(struct elicitation);
    if (v)
        *v = (struct elicitation){f->ep, f->peer};
    if (v && (put_key(f->slot, id, &key) < 0 ||
              mo_map_put(&f->g->elicitations, mo_buf_view(&key), v,
                         (void **)&old) < 0))
        old = v;
    mo_free(old);
}

void mo_elicitation_done(struct gw_child *k, struct mo_json params)
{
    struct mo_gateway *g = k->slot->g;
    struct elicitation *v = NULL;
    mo_autobuf struct mo_buf key = {.max = KEY_LEN_MAX};

    if (put_key(k->slot, mo_json_get(params, "elicitationId"), &key) == 0)
        v = mo_map_del(&g->elicitations, mo_buf_view(&key));
    if (v)
        mo_endpoint_tell(v->ep, v->peer, "notifications/elicitation/complete",
                         mo_json_text(params));
    mo_free(v);
}

/* Deletes one entry; deleting moves the others, so the caller starts again. */
static bool forget_one(struct mo_gateway *g, const struct mo_endpoint *ep,
                       uint64_t peer)
{
    mo_map_each (en, &g->elicitations) {
        struct elicitation *v = en->value;

        if (peer ? v->peer != peer : v->ep != ep)
            continue;
        (void)mo_map_del(&g->elicitations, mo_map_key(en));
        mo_free(v);
        return true;
    }
    return false;
}

void mo_elicitation_forget(struct mo_gateway *g, const struct mo_endpoint *ep,
                           uint64_t peer)
{
    bool more = true;

    while (more)
        more = forget_one(g, ep, peer);
}
