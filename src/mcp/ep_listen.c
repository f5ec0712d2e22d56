/* ep_listen.c - subscriptions/listen: what a modern client wants to be told.
 *
 * A listen is a call that the endpoint holds until somebody ends it. What was
 * acknowledged is its filter; endpoint.c looks at it when there are news. */
#include "mcp/ep_priv.h"

static const struct mo_span nothing = {NULL, 0};

static const struct {
    const char *key;
    unsigned cap;
} kinds[] = {
    [MO_EP_CH_TOOLS] = {"toolsListChanged", MO_EP_TOOLS},
    [MO_EP_CH_PROMPTS] = {"promptsListChanged", MO_EP_PROMPTS},
    [MO_EP_CH_RESOURCES] = {"resourcesListChanged", MO_EP_RESOURCES},
};

static int read_uris(struct mo_ep_filter *f, struct mo_json arr)
{
    struct mo_json_iter it;
    struct mo_json key, val;

    mo_json_iter(&it, arr);
    while (mo_json_next(&it, &key, &val)) {
        struct mo_buf b;
        int rc;

        mo_buf_init(&b, EP_CALL_EXTRA);
        rc = mo_json_is(val, MO_JSON_STRING) ? mo_json_str_buf(val, &b)
                                             : MO_EINVAL;
        if (rc == 0)
            rc = mo_map_put(&f->uris, mo_buf_view(&b), f, NULL);
        mo_buf_fini(&b);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_filter(struct call *c, struct mo_json wanted)
{
    unsigned caps = c->ep->o.caps;
    struct mo_ep_filter *f = mo_new(struct mo_ep_filter);

    if (!f)
        return MO_ENOMEM;
    mo_map_init(&f->uris, c->ep->o.limits.uris);
    c->filter = f;
    c->ep->nlistens++;
    for (size_t i = 0; i < MO_COUNT(kinds); i++) {
        bool on = false;

        (void)mo_json_bool(mo_json_get(wanted, kinds[i].key), &on);
        f->what[i] = on && (caps & kinds[i].cap) && (caps & MO_EP_LISTCHANGED);
    }
    if (!(caps & MO_EP_SUBSCRIBE))
        return 0;
    return read_uris(f, mo_json_get(wanted, "resourceSubscriptions"));
}

static void put_ack(struct call *c, struct mo_json wanted)
{
    struct mo_json uris = mo_json_get(wanted, "resourceSubscriptions");
    struct mo_jw w;

    mo_jw_init(&w, mo_ep_scratch(c->ep));
    mo_jw_obj(&w);
    mo_jw_key(&w, "jsonrpc");
    mo_jw_cstr(&w, "2.0");
    mo_jw_key(&w, "method");
    mo_jw_cstr(&w, "notifications/subscriptions/acknowledged");
    mo_jw_key(&w, "params");
    mo_jw_obj(&w);
    mo_jw_key(&w, "notifications");
    mo_jw_obj(&w);
    for (size_t i = 0; i < MO_COUNT(kinds); i++) {
        if (!c->filter->what[i])
            continue;
        mo_jw_key(&w, kinds[i].key);
        mo_jw_bool(&w, true);
    }
    if (c->filter->uris.len) {
        mo_jw_key(&w, "resourceSubscriptions");
        mo_jw_raw(&w, mo_json_text(uris));
    }
    mo_jw_end(&w);
    mo_jw_key(&w, "_meta");
    mo_jw_obj(&w);
    mo_jw_key(&w, MO_MCP_P_SUB);
    mo_jw_raw(&w, mo_json_text(c->id));
    mo_jw_end(&w);
    mo_jw_end(&w);
    mo_jw_end(&w);
}

void mo_ep_listen(struct call *c)
{
    struct mo_json wanted = mo_json_get(c->pub.params, "notifications");

    if (!mo_json_is(wanted, MO_JSON_OBJECT)) {
        mo_ep_call_refuse(c, 200, MO_RPC_INVALID_PARAMS,
                          "params.notifications must be an object", nothing);
        return;
    }
    if (c->ep->nlistens >= c->ep->o.limits.listens) {
        mo_ep_call_refuse(c, 200, MO_RPC_INTERNAL, "too many listens", nothing);
        return;
    }
    if (read_filter(c, wanted) < 0) {
        mo_ep_call_refuse(c, 200, MO_RPC_INVALID_PARAMS,
                          "params.notifications is malformed or too long",
                          nothing);
        return;
    }
    c->state = CALL_LISTENING;
    put_ack(c, wanted);
    if (!mo_buf_err(&c->ep->scratch))
        c->way->note(c->way, mo_buf_view(&c->ep->scratch));
    mo_ep_scratch_done(c->ep);
}
