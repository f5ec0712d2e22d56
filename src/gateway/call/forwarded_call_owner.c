/* forwarded_call_owner.c - finds the client of a server's question or log
 * message. The rules are in forwarded_call.h; it never guesses among several
 * clients. */
#include "gateway/call/forwarded_call.h"
#include "secrets/redact.h"

/* True for the same call or the same connection. */
static bool is_same_client(const struct forwarded_call *a,
                           const struct forwarded_call *b)
{
    return a == b || (a->peer && a->peer == b->peer);
}

struct forwarded_call *mo_forward_find_owner(struct server_slot *s,
                                             const struct mo_child *c,
                                             uint64_t number, bool *sure)
{
    bool shared = !mo_child_who(c).n, only = true;
    struct forwarded_call *newest = NULL;

    sure = sure ? sure : &only;
    *sure = true;
    mo_list_each_entry (f, &s->calls, struct forwarded_call, slot_node) {
        if (f->child == c && number && f->number == number)
            return f;
    }
    mo_list_each_entry (f, &s->calls, struct forwarded_call, slot_node) {
        /* A call that HAS_TASK is found by its task id. */
        if (f->child != c || (!shared && f->client == CLIENT_HAS_TASK))
            continue;
        if (newest && shared && !is_same_client(newest, f))
            return NULL;
        *sure = newest == NULL;
        newest = f;
    }
    return newest;
}

struct forwarded_call *mo_forward_find_task_owner(struct server_slot *s,
                                                  const struct mo_child *c,
                                                  struct mo_json params)
{
    struct mo_json of =
        mo_json_get(mo_json_get(params, "_meta"), MO_MCP_P_TASK);
    struct mo_json id = mo_json_get(of, "taskId");

    mo_list_each_entry (f, &s->calls, struct forwarded_call, slot_node) {
        if (id.p && f->child == c && f->task && mo_task_is_named(f->task, id))
            return f;
    }
    return NULL;
}

uint64_t mo_forward_session_of(const struct mo_gateway *g,
                               const struct mo_child *c)
{
    struct mo_span who = mo_child_who(c);
    uint64_t peer = 0;

    if (who.n || !g->single)
        return mo_rewrite_peer(who);
    mo_list_each_entry (x, &g->eps, struct gw_ep, node)
        peer = mo_endpoint_only(x->ep);
    return peer;
}

static void send_log(struct gw_child *k, uint64_t peer, struct mo_json params)
{
    mo_list_each_entry_safe (x, &k->slot->g->eps, struct gw_ep, node)
        mo_endpoint_log(x->ep, peer, params);
}

/* A legacy client's message without a sure owner goes to its notification
 * stream. */
static void route_log(struct gw_child *k, uint64_t stream_of,
                      struct mo_json params)
{
    struct forwarded_call *f =
        mo_forward_find_task_owner(k->slot, k->child, params);
    bool sure = true;

    if (!f)
        f = mo_forward_find_owner(k->slot, k->child, stream_of, &sure);
    if (!f)
        send_log(k, mo_forward_session_of(k->slot->g, k->child), params);
    else if (f->down && !sure && !mo_mcp_is_modern(f->down->version))
        send_log(k, f->peer, params);
    else if (f->down)
        mo_ep_call_log_raw(f->down, params);
}

void mo_forward_log(struct gw_child *k, uint64_t stream_of,
                    struct mo_json params)
{
    mo_autobuf struct mo_buf b = {.max = 2 * GW_TEXT_MAX};

    params = mo_redact(k->slot->g->loop, params, &b);
    if (params.p)
        route_log(k, stream_of, params);
}
