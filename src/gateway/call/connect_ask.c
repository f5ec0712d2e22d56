/* connect_ask.c - asks a person to connect to a server that gets their own
 * credentials.
 *
 * The client is asked to open an address (elicitation of mode url), which is
 * one of our page: there the person is known, so nobody else can be made to
 * sign in for them. When the client says that the person agreed, the call waits
 * CONNECT_MS for the connection and goes on by itself. A client that cannot ask
 * gets the address as an error.
 *
 * Limit: CONNECTS_MAX calls wait; others get the address. */
#include "gateway/call/forwarded_call.h"

#define KEY          "connect"
#define CONNECT_MS   300000u
#define CHECK_MS     2000u /* another process may have connected the person */
#define CONNECTS_MAX 1024u
#define ADDRESS_MAX  ((size_t)4096)

struct connect_wait {
    struct mo_list node;
    struct mo_gateway *g;
    struct mo_ep_call *c;
    const char *server; /* of its slot; follows */
    uint64_t since_ms;
    struct mo_timer timer;
};

static const struct mo_span nothing = {NULL, 0};

static bool is_connected(struct mo_gateway *g, const struct mo_ep_call *c,
                         const char *server, struct mo_buf *address)
{
    const struct mo_upstream_opts *o = &g->o.up;

    return !o->connected || o->connected(o->ctx, server, c->person, address);
}

bool mo_connect_has(struct mo_gateway *g, const struct mo_ep_call *c,
                    const struct server_slot *s)
{
    const struct mo_gw_server *v = mo_upstream_server(s->up);
    mo_autobuf struct mo_buf address = {.max = ADDRESS_MAX};

    return !v->per_person || is_connected(g, c, v->name, &address);
}

/* The model reads it, and tells the person. */
static void refuse(struct mo_ep_call *c, const char *server,
                   struct mo_buf *address)
{
    mo_autobuf struct mo_buf b = {.max = 2 * ADDRESS_MAX};
    const char *text;

    (void)mo_buf_printf(&b, "%s: you are not connected to this server. ",
                        server);
    if (address->len)
        (void)mo_buf_printf(&b, "Open %s in a browser, connect, and call again",
                            mo_buf_cstr(address));
    else
        (void)mo_buf_printf(&b, "Run `mcp-orchestrator mcp test --sign-in %s`",
                            server);
    text = mo_buf_err(&b) ? "not connected to this server" : mo_buf_cstr(&b);
    if (mo_span_is(c->method, "tools/call"))
        mo_ep_call_fail(c, text);
    else
        mo_ep_call_error(c, MO_RPC_INTERNAL, text, nothing);
}

/* --- waiting for the person ----------------------------------------------- */

static struct mo_ep_call *end_wait(struct connect_wait *w)
{
    struct mo_ep_call *c = w->c;

    mo_timer_stop(w->g->loop, &w->timer);
    mo_list_del(&w->node);
    mo_free(w);
    c->data = NULL;
    c->canceled = NULL;
    return c;
}

static void on_canceled(struct mo_ep_call *c)
{
    mo_ep_call_error(end_wait(c->data), MO_RPC_INTERNAL, "cancelled", nothing);
}

/* Goes on with the call, or keeps waiting. */
static void check_wait(struct connect_wait *w)
{
    struct mo_gateway *g = w->g;
    mo_autobuf struct mo_buf address = {.max = ADDRESS_MAX};
    bool late = mo_now_ns() / MO_MS - w->since_ms > CONNECT_MS;

    if (is_connected(g, w->c, w->server, &address)) {
        g->restart(g, end_wait(w));
    } else if (late) {
        mo_autobuf struct mo_buf name = {.max = ADDRESS_MAX};

        (void)mo_buf_puts(&name, w->server);
        refuse(end_wait(w), mo_buf_cstr(&name), &address);
    } else {
        mo_timer_start(g->loop, &w->timer, CHECK_MS);
    }
}

static void on_timer(struct mo_timer *t)
{
    check_wait(mo_container_of(t, struct connect_wait, timer));
}

static unsigned count_waits(const struct mo_gateway *g)
{
    unsigned n = 0;

    mo_list_each (it, &g->connects)
        n++;
    return n;
}

/* False: too many wait. */
static bool wait_for_person(struct mo_gateway *g, struct mo_ep_call *c,
                            const char *server)
{
    size_t n = strlen(server) + 1;
    struct connect_wait *w = NULL;

    if (count_waits(g) < CONNECTS_MAX)
        w = mo_zalloc(sizeof(*w) + n);
    if (!w)
        return false;
    w->g = g;
    w->c = c;
    w->since_ms = mo_now_ns() / MO_MS;
    memcpy(w + 1, server, n);
    w->server = (const char *)(w + 1);
    mo_timer_init(&w->timer, on_timer);
    mo_timer_start(g->loop, &w->timer, CHECK_MS);
    mo_list_push(&g->connects, &w->node);
    c->data = w;
    c->canceled = on_canceled;
    return true;
}

void mo_connect_check(struct mo_gateway *g)
{
    struct mo_list now;

    mo_list_init(&now);
    mo_list_splice(&now, &g->connects);
    while (!mo_list_empty(&now)) {
        struct connect_wait *w = mo_list_first(&now, struct connect_wait, node);

        mo_list_del(&w->node);
        mo_list_push(&g->connects, &w->node);
        check_wait(w);
    }
}

void mo_connect_end(struct mo_gateway *g, const struct mo_gw_view *v,
                    const char *why)
{
    mo_list_each_entry_safe (w, &g->connects, struct connect_wait, node) {
        if (!v || w->c->scope == v)
            mo_ep_call_error(end_wait(w), MO_RPC_INTERNAL, why, nothing);
    }
}

/* --- asking --------------------------------------------------------------- */

/* False: the client cannot be asked. */
static bool ask(struct mo_ep_call *c, const char *server,
                struct mo_buf *address)
{
    mo_autobuf struct mo_buf b = {.max = 4 * ADDRESS_MAX},
                             text = {.max = ADDRESS_MAX};
    struct mo_jw w = mo_jw_object(&b);

    (void)mo_buf_printf(&text,
                        "%s needs your own account there. Open the page to "
                        "connect it.",
                        server);
    mo_jw_member_cstr(&w, "mode", "url");
    mo_jw_member_cstr(&w, "message", mo_buf_cstr(&text));
    mo_jw_member_cstr(&w, "url", mo_buf_cstr(address));
    mo_jw_end(&w);
    if (!address->len || mo_buf_err(&b) || mo_buf_err(&text) ||
        !mo_ep_call_may_ask(c) ||
        !mo_ep_call_takes(c, "elicitation/create",
                          (struct mo_json){b.p, b.len}))
        return false;
    mo_ep_call_need(c, KEY, "elicitation/create", mo_buf_view(&b));
    (void)mo_ep_call_wait(c);
    return true;
}

bool mo_connect_ready(struct mo_gateway *g, struct mo_ep_call *c,
                      const struct server_slot *s)
{
    const char *server = mo_upstream_server(s->up)->name;
    mo_autobuf struct mo_buf address = {.max = ADDRESS_MAX};
    struct mo_json in, no;

    if (is_connected(g, c, server, &address))
        return true;
    in = mo_ep_call_input(c, KEY);
    no = mo_ep_call_refusal(c, KEY);
    if (!in.p && !no.p && ask(c, server, &address))
        return false;
    if (!mo_json_str_eq(mo_json_get(in, "action"), MO_SPAN("accept")) ||
        !wait_for_person(g, c, server))
        refuse(c, server, &address);
    return false;
}
