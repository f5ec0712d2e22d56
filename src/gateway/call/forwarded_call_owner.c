/* forwarded_call_owner.c - finds the client of a server's question, log message
 * or URL elicitation. The rules are in forwarded_call.h; it never guesses among
 * several clients. */
#include "gateway/call/forwarded_call.h"
#include "secrets/redact.h"

/* True for the same call or the same connection. */
static bool is_same_client(const struct forwarded_call *a,
                           const struct forwarded_call *b)
{
    return a == b || (a->peer && a->peer == b->peer);
}

/* A person may have several clients. */
static bool is_of_person(const struct server_slot *s)
{
    return mo_upstream_server(s->up)->per_person;
}

/* True if the server works on the call. One that is to be sent, or sent again,
 * has a child, too. */
static bool is_at(const struct forwarded_call *f, const struct mo_child *c)
{
    return f->child == c && (f->call || f->task);
}

struct forwarded_call *mo_forward_find_owner(struct server_slot *s,
                                             const struct mo_child *c,
                                             uint64_t number, bool *sure)
{
    bool shared = !mo_child_who(c).n || is_of_person(s), only = true;
    struct forwarded_call *newest = NULL;

    sure = sure ? sure : &only;
    *sure = true;
    mo_list_each_entry (f, &s->calls, struct forwarded_call, slot_node) {
        if (is_at(f, c) && number && f->number == number)
            return f;
    }
    mo_list_each_entry (f, &s->calls, struct forwarded_call, slot_node) {
        /* A call that HAS_TASK is found by its task id. */
        if (!is_at(f, c) || (!shared && f->client == CLIENT_HAS_TASK))
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

uint64_t mo_forward_session_of(const struct server_slot *s,
                               const struct mo_child *c)
{
    struct mo_span who = mo_child_who(c);
    uint64_t peer = 0;

    if (who.n || !s->g->single)
        return mo_rewrite_peer(who);
    mo_list_each_entry (x, &s->g->eps, struct gw_ep, node)
        if (!peer && mo_gw_shows(x->view, s))
            peer = mo_endpoint_only(x->ep);
    return peer;
}

static void send_log(struct gw_child *k, uint64_t peer, struct mo_json params)
{
    mo_list_each_entry_safe (x, &k->slot->g->eps, struct gw_ep, node)
        if (mo_gw_shows(x->view, k->slot))
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
        send_log(k, mo_forward_session_of(k->slot, k->child), params);
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

/* --- URL elicitations: which client was sent to which page ---------------
 *
 * A server of 2025-11-25 sends notifications/elicitation/complete with its
 * id of the elicitation when the person is done, possibly after the call has
 * ended. The entry here tells which client to notify. Limit: at
 * GW_ELICITATIONS_MAX no more entries are kept; such a client is not
 * notified. */

#define KEY_LEN_MAX ((size_t)4096)

struct elicitation {
    struct mo_endpoint *ep;
    uint64_t peer;
};

/* The key is the server's name, NUL, the person whose server it is, NUL, the
 * elicitation's id. */
static int put_key(const struct server_slot *s, const struct mo_child *c,
                   struct mo_json id, struct mo_buf *b)
{
    const char *name = mo_upstream_server(s->up)->name;

    if (!mo_json_is(id, MO_JSON_STRING))
        return MO_EINVAL;
    (void)mo_buf_put(b, name, strlen(name) + 1);
    if (is_of_person(s))
        (void)mo_buf_span(b, mo_child_who(c));
    (void)mo_buf_putc(b, '\0');
    return mo_json_str_buf(id, b);
}

void mo_elicitation_begin(const struct forwarded_call *f, struct mo_json params)
{
    struct mo_json id = mo_json_get(params, "elicitationId");
    struct elicitation *v, *old = NULL;
    mo_autobuf struct mo_buf key = {.max = KEY_LEN_MAX};

    if (!id.p || !f->peer || !f->slot || !f->child ||
        mo_mcp_is_modern(f->down->version))
        return;
    v = mo_new(struct elicitation);
    if (v)
        *v = (struct elicitation){f->ep, f->peer};
    if (v && (put_key(f->slot, f->child, id, &key) < 0 ||
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

    if (put_key(k->slot, k->child, mo_json_get(params, "elicitationId"),
                &key) == 0)
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
