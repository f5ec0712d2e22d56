/* gateway_client.c - the connection of a conversation to the gateway.
 *
 * Each conversation has one connection inside this program
 * (mcp/server/link_inside.h). It is opened when tools are first loaded and
 * closed with the chat. Through it the gateway knows which conversation made a
 * call, and a server's questions during a call come back to that conversation.
 * A connection may outlive its chat by one iteration of the loop, but never its
 * agent. */
#include "agent/chat/load_tools.h"

#include "agent/chat/apps.h"
#include "agent/chat/calls.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/elicit.h"
#include "agent/chat/event.h"
#include "gateway/gateway.h"
#include "mcp/server/link_inside.h"

struct gateway_client {
    struct mo_agent *agent;
    struct chat *chat;    /* NULL: it was freed */
    struct mo_link *link; /* NULL: owned by conn */
    struct mo_conn *conn;
    uint64_t peer;
    bool open;
};

static int dial_gateway(void *ctx, struct mo_conn *conn, struct mo_err *e)
{
    struct gateway_client *r = ctx;

    if (r->link == NULL)
        return mo_fail(e, MO_ECLOSED,
                       "the connection to the gateway is closed");
    mo_conn_dialed(conn, mo_take_ptr(&r->link), NULL);
    return 0;
}

static void on_open(void *ctx, struct mo_conn *conn)
{
    (void)conn;
    ((struct gateway_client *)ctx)->open = true;
}

static void on_ask(void *ctx, struct mo_conn *conn, struct mo_ask *a)
{
    struct gateway_client *r = ctx;

    mo_chat_elicit_ask(r->chat, conn, a);
}

static void on_ask_gone(void *ctx, struct mo_ask *a)
{
    mo_chat_elicit_gone(((struct gateway_client *)ctx)->chat, a);
}

/* A changed tool list is loaded before the next model request. */
static void on_notify(void *ctx, struct mo_conn *conn, const struct mo_rpc *m,
                      uint64_t stream_of)
{
    struct chat *c = ((struct gateway_client *)ctx)->chat;

    if (c == NULL)
        return;
    if (mo_json_str_eq(m->method,
                       MO_SPAN("notifications/tools/list_changed")) ||
        (c->skills &&
         mo_json_str_eq(m->method,
                        MO_SPAN("notifications/resources/list_changed"))))
        c->stale = true; /* skills are announced as resources */
    else if (mo_json_str_eq(m->method,
                            MO_SPAN("notifications/resources/updated")))
        mo_chat_event_resource(c, mo_json_get(m->params, "uri"));
    else if (mo_json_str_eq(m->method, MO_SPAN("notifications/message")))
        mo_chat_event_relay(c, mo_chat_calls_running_as(c, conn, stream_of),
                            "tool:log", m->params);
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct gateway_client *r = ctx;
    struct mo_agent *a = r->agent;

    if (r->chat) {
        r->chat->gateway = NULL;
        r->chat->stale = true;
        if (why)
            mo_chat_log(r->chat, MO_WARN, 0, why,
                        "connection to the gateway lost");
    }
    if (r->link)
        mo_link_close(r->link, NULL);
    mo_free(r);
    a->ngateway_clients--;
    mo_agent_check(a);
}

static const struct mo_conn_cb conn_cb = {.on_open = on_open,
                                          .on_ask = on_ask,
                                          .on_ask_gone = on_ask_gone,
                                          .on_notify = on_notify,
                                          .on_close = on_close};

static int open_conn(struct gateway_client *r, const char *id, struct mo_err *e)
{
    const struct mo_agent *a = r->agent;
    struct mo_conn_opts o = {
        .mode = MO_CONN_LEGACY,
        .capabilities = mo_apps_capabilities(a),
        .dial = dial_gateway,
        .cb = &conn_cb,
        .ctx = r,
    };
    int rc = mo_link_inside(a->loop, a->o.servers.endpoint, mo_span_cstr(id),
                            mo_span_cstr(r->chat->owner), &r->link, e);

    if (rc < 0)
        return rc;
    r->peer = mo_link_inside_peer(r->link);
    rc = mo_conn_open(a->loop, &o, &r->conn, e);
    if (rc < 0)
        mo_link_close(r->link, NULL);
    return rc;
}

int mo_gateway_client_open(struct chat *c, struct mo_err *e)
{
    struct gateway_client *r = NULL;
    int rc = 0;

    if (c->gateway || c->agent->o.servers.gateway == NULL)
        return 0;
    r = mo_new(struct gateway_client);
    if (r == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    r->agent = c->agent;
    r->chat = c;
    rc = open_conn(r, c->id, e);
    if (rc < 0) {
        mo_free(r);
        return rc;
    }
    c->gateway = r;
    c->agent->ngateway_clients++;
    return 0;
}

void mo_gateway_client_drop(struct chat *c)
{
    struct gateway_client *r = mo_take_ptr(&c->gateway);

    if (r == NULL)
        return;
    r->chat = NULL;
    mo_conn_close(r->conn, NULL);
}

struct mo_conn *mo_gateway_client_conn(const struct chat *c)
{
    return c->gateway && c->gateway->open ? c->gateway->conn : NULL;
}

uint64_t mo_gateway_client_peer(const struct chat *c)
{
    return c->gateway ? c->gateway->peer : 0;
}
