/* load_tools.c - loads the tools of a conversation: of its box, of the servers
 * behind the gateway, and of the gateway itself.
 *
 * Servers whose tool lists are unknown are started, all at once. When a
 * conversation opens, running servers are also asked again. A server that has
 * not answered after LOAD_MS is left out; its tools are added when it announces
 * them (gateway_client.c). A failing server only lacks its tools, and members
 * are told why.
 *
 * With many tools the model is offered the gateway's search tools instead
 * (router.c). */
#include "agent/chat/load_tools.h"

#include "agent/chat/changed_tools.h"
#include "agent/chat/chat_priv.h"
#include "agent/chat/gateway_client.h"
#include "gateway/inside.h"

_Static_assert(MO_TOOLS_NAME_MAX <= MO_LLM_NAME_MAX, "providers take it");

#define LOAD_MS  10000
#define OURS_MAX ((size_t)256 * 1024)

struct tool_load {
    struct chat *chat;
    bool reading; /* waits for the lists of servers; else for the catalogue */
    struct mo_gw_read read; /* the request to the gateway */
    struct mo_later later;  /* starts the load without a list request */
};

static void add_trouble(struct chat *c, const char *server, const char *why)
{
    struct mo_buf *b = &c->troubles;

    mo_buf_printf(b, "The tools of %s are missing: %s", server, why);
    mo_buf_putc(b, '\0');
}

static void add_missing_servers(struct chat *c)
{
    const struct mo_gateway *g = c->agent->o.servers.gateway;
    size_t n = g ? mo_gateway_count(g) : 0;

    for (unsigned i = 0; i < n; i++) {
        const struct mo_catalog *cat = mo_gateway_catalog(g);
        const char *why = mo_catalog_why(cat, i);

        if (!mo_catalog_known(cat, i))
            add_trouble(c, mo_catalog_about(cat, i).name,
                        why ? why : "the server is still starting");
    }
}

static void add_blocked_tools(struct chat *c)
{
    for (size_t i = 0; i < mo_tools_count(c->tools); i++) {
        const struct mo_tool *t = mo_tools_at(c->tools, i);

        if (!mo_changed_tools_is_blocked(c, t))
            continue;
        mo_buf_printf(&c->troubles,
                      "The definition of %.*s has changed. The tool is not "
                      "used until somebody accepts the change.",
                      (int)t->name.n, t->name.p);
        mo_buf_putc(&c->troubles, '\0');
    }
}

/* The catalogue is loaded; report missing tools. */
static void on_tools_loaded(void *ctx, const struct mo_err *why)
{
    struct tool_load *g = ctx;
    struct chat *c = g->chat;

    mo_free(g);
    c->tool_load = NULL;
    if (why == NULL) {
        add_missing_servers(c);
        if (mo_changed_tools_find(c) < 0)
            add_trouble(c, "changed servers", "out of memory");
        add_blocked_tools(c);
    }
    mo_chat_tools(c, why);
}

static bool offers_search(const struct mo_agent_servers *s)
{
    if (s->offer != MO_GW_AUTO)
        return s->offer == MO_GW_SEARCH;
    return mo_gateway_is_large(s->gateway);
}

/* Adds the gateway's own tools after those of the box, then those of the
 * servers. */
static size_t add_gateway_sources(const struct chat *c,
                                  struct mo_tool_source *v, struct mo_buf *ours)
{
    const struct mo_agent_servers *s = &c->agent->o.servers;
    bool search = offers_search(s);
    struct mo_json_doc doc;

    v[SOURCE_ROUTER] =
        (struct mo_tool_source){.name = MO_SPAN(ROUTER_NAME), .bare = true};
    if (mo_gateway_ours(s->gateway, search, ours) == 0 &&
        mo_json_parse(mo_buf_view(ours), 0, &doc, NULL) == 0)
        v[SOURCE_ROUTER].list = mo_json_get(doc.root, "tools");
    v[SOURCE_SERVERS] = (struct mo_tool_source){.gateway = s->gateway};
    return search ? SOURCE_SERVERS : SOURCE_SERVERS + 1;
}

static void load_catalog(struct tool_load *g)
{
    struct chat *c = g->chat;
    struct mo_tool_source v[SOURCE_SERVERS + 1] = {
        {.name = MO_SPAN("box"), .conn = c->info.conn, .bare = true}};
    mo_autobuf struct mo_buf ours = {.max = OURS_MAX};
    struct mo_err e;
    size_t n = 1;
    int rc = 0;

    c->stale = false; /* later changes set it again */
    if (c->agent->o.servers.gateway)
        n = add_gateway_sources(c, v, &ours);
    if (c->state == CHAT_ENDING)
        rc = mo_fail(&e, MO_ECLOSED, "the session ended");
    else if (c->info.conn == NULL)
        rc = mo_fail(&e, MO_EUNAVAIL, "the box has ended");
    else
        rc = mo_tools_load(c->tools, v, n, on_tools_loaded, g, &e);
    if (rc < 0)
        on_tools_loaded(g, &e);
}

static void load_later(struct mo_later *d)
{
    load_catalog(mo_container_of(d, struct tool_load, later));
}

static void on_lists_read(struct mo_gw_read *r)
{
    struct tool_load *g = mo_container_of(r, struct tool_load, read);

    g->reading = false;
    load_catalog(g);
}

static void read_lists(struct tool_load *g)
{
    struct chat *c = g->chat;
    struct mo_err e;

    if (mo_gateway_client_open(c, &e) < 0)
        add_trouble(c, "all servers", e.msg);
    g->read = (struct mo_gw_read){.again = c->state == CHAT_OPENING,
                                  .peer = mo_gateway_client_peer(c),
                                  .caps = MO_SPAN(MO_AGENT_CAPABILITIES),
                                  .ms = LOAD_MS,
                                  .done = on_lists_read};
    g->reading = true;
    mo_gateway_read(c->agent->o.servers.gateway, &g->read);
}

void mo_load_tools_start(struct chat *c)
{
    struct tool_load *g = mo_new(struct tool_load);
    struct mo_err e;

    mo_buf_reset(&c->troubles);
    c->writes++;
    c->tool_load = g;
    if (g == NULL) {
        mo_fail(&e, MO_ENOMEM, "out of memory");
        mo_chat_tools(c, &e);
        return;
    }
    g->chat = c;
    mo_later_init(&g->later, load_later);
    if (c->agent->o.servers.gateway)
        read_lists(g);
    else
        mo_loop_defer(c->agent->loop, &g->later);
}

void mo_load_tools_stop(struct chat *c)
{
    struct tool_load *g = c->tool_load;

    if (g == NULL || !g->reading)
        return;
    g->reading = false;
    mo_gateway_unread(&g->read);
    mo_loop_defer(c->agent->loop, &g->later);
}
