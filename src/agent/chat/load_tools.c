/* load_tools.c - loads the tools of a conversation: of its box, of the servers
 * behind the gateway, and of the gateway itself; and blocks changed tools.
 *
 * Servers whose tool lists are unknown are started, all at once. When a
 * conversation opens, running servers are also asked again. A server that has
 * not answered after LOAD_MS is left out; its tools are added when it announces
 * them (gateway_client.c). A failing server only lacks its tools, and members
 * are told why.
 *
 * With many tools the model is offered the gateway's search tools instead
 * (router.c).
 *
 * A tool whose definition differs from the pinned one is neither offered to the
 * model nor run. Members see the old and the new definition, and any member can
 * accept the new one. Tools of the box and of the gateway itself come with the
 * program and are not checked. */
#include "agent/chat/load_tools.h"

#include "agent/chat/apps.h"
#include "agent/chat/chat_priv.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/event.h"
#include "agent/chat/script_tools.h"
#include "agent/chat/skills.h"
#include "gateway/inside.h"

_Static_assert(MO_TOOLS_NAME_MAX <= MO_LLM_NAME_MAX, "providers take it");

#define LOAD_MS    10000
#define OURS_MAX   ((size_t)256 * 1024)
#define BEFORE_MAX ((size_t)1024 * 1024)
#define BOXES_MAX  3 /* that may end while their tools are read */

/* --- changed tools ------------------------------------------------------- */

struct blocked {
    struct mo_list node;
    const struct mo_tool *tool; /* of the present catalogue */
    struct mo_buf before;       /* the pinned definition */
};

static void blocked_free(struct blocked *k)
{
    mo_buf_fini(&k->before);
    mo_free(k);
}

void mo_changed_tools_forget(struct chat *c)
{
    mo_list_drain (k, &c->blocked, struct blocked, node)
        blocked_free(k);
}

static int check_pin(struct chat *c, const struct mo_tool *t)
{
    struct blocked *k = mo_new(struct blocked);

    if (k == NULL)
        return MO_ENOMEM;
    k->tool = t;
    mo_buf_init(&k->before, BEFORE_MAX);
    if (mo_policy_tool_is_pinned(c->agent->o.policy, t, &k->before))
        blocked_free(k);
    else
        mo_list_push(&c->blocked, &k->node);
    return 0;
}

static int find_changed(struct chat *c)
{
    int rc = 0;

    mo_changed_tools_forget(c);
    for (size_t i = 0; rc == 0 && i < mo_tools_count(c->tools); i++)
        if (mo_tools_at(c->tools, i)->source == SOURCE_SERVERS)
            rc = check_pin(c, mo_tools_at(c->tools, i));
    mo_policy_flush_pins(c->agent->o.policy);
    return rc;
}

static struct blocked *find_blocked(const struct chat *c,
                                    const struct mo_tool *t)
{
    mo_list_each_entry (k, &c->blocked, struct blocked, node) {
        if (k->tool == t)
            return k;
    }
    return NULL;
}

struct mo_span mo_changed_tools_before(const struct chat *c,
                                       const struct mo_tool *t)
{
    struct blocked *k = find_blocked(c, t);

    return k ? mo_buf_view(&k->before) : mo_span(NULL, 0);
}

bool mo_changed_tools_is_blocked(const struct chat *c, const struct mo_tool *t)
{
    return find_blocked(c, t) != NULL;
}

static void audit_acceptance(const struct mo_member *m, const struct mo_tool *t)
{
    mo_chat_audit(m->chat, &(struct mo_audit_row){.event = "accepted",
                                                  .subject = t->name,
                                                  .digest = t->digest,
                                                  .who = mo_span_cstr(m->who)});
}

void mo_chat_accept(struct mo_member *m, struct mo_span tool,
                    struct mo_span digest, mo_ack_fn *done, void *ctx)
{
    struct chat *c = m->chat;
    struct mo_policy *p = c->agent->o.policy;
    const struct mo_tool *t = mo_tools_find(c->tools, tool);
    struct blocked *k = t ? find_blocked(c, t) : NULL;
    struct ack ack = {done, ctx};
    char text[160];

    if (k == NULL && mo_skills_accept(m, tool, digest, &ack))
        return;
    if (k == NULL) {
        mo_chat_ack(&ack, "unknown_tool", "this tool has no change to accept");
        return;
    }
    if (!mo_span_eq_ct(digest, mo_span_cstr(t->digest))) {
        mo_chat_ack(&ack, "changed",
                    "the tool has changed again; look at it again");
        return;
    }
    if (mo_policy_accept_tool(p, t) < 0) {
        mo_chat_ack(&ack, "failed", "out of memory");
        return;
    }
    audit_acceptance(m, t);
    mo_list_del(&k->node);
    blocked_free(k);
    snprintf(text, sizeof(text), "The change of %.*s was accepted.",
             (int)tool.n, tool.p);
    mo_chat_event_message(c, NULL, text);
    mo_agent_stale(c->agent); /* other conversations block it too */
    mo_chat_ack_ok(&ack, mo_span(NULL, 0));
}

/* --- loading ------------------------------------------------------------- */

struct tool_load {
    struct chat *chat;
    bool reading;   /* waits for the lists of servers; else for the catalogue */
    unsigned boxes; /* that have ended meanwhile */
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
static void load_catalog(struct tool_load *g);
static void on_tools_loaded(void *ctx, const struct mo_err *why);

static void on_next_box(void *ctx, const struct mo_session_info *info,
                        const struct mo_err *why)
{
    struct tool_load *g = ctx;

    if (info)
        g->chat->info = *info;
    if (why)
        g->boxes = BOXES_MAX; /* there is none */
    if (why)
        on_tools_loaded(g, why);
    else
        load_catalog(g);
}

/* A box that ends while the conversation opens is replaced like any other:
 * nobody is sent away for it. */
static bool take_next_box(struct tool_load *g)
{
    struct chat *c = g->chat;
    struct mo_err e;

    return c->state == CHAT_OPENING && c->hold && g->boxes++ < BOXES_MAX &&
           mo_session_use(c->hold, on_next_box, g, &e) == 0;
}

static void on_tools_loaded(void *ctx, const struct mo_err *why)
{
    struct tool_load *g = ctx;
    struct chat *c = g->chat;

    if (why && take_next_box(g))
        return;
    mo_free(g);
    c->tool_load = NULL;
    if (why == NULL) {
        add_missing_servers(c);
        if (find_changed(c) < 0)
            add_trouble(c, "changed servers", "out of memory");
        add_blocked_tools(c);
        mo_skills_put_troubles(c);
    }
    mo_chat_tools(c, why);
}

/* Scripts need no other tools than a search: they call the others by name. */
static bool offers_search(const struct chat *c)
{
    enum mo_gw_expose offer = mo_script_offer(c);

    if (offer != MO_GW_AUTO)
        return offer != MO_GW_ALL;
    return mo_gateway_is_large(c->agent->o.servers.gateway);
}

/* The gateway's own tools and read_skill, as a JSON array; none: no memory. */
static struct mo_json list_ours(const struct chat *c, bool search,
                                struct mo_buf *out)
{
    mo_autobuf struct mo_buf b = {.max = OURS_MAX};
    struct mo_json_doc doc = {.root = {NULL, 0}};

    if (mo_gateway_ours(c->agent->o.servers.gateway, search, &b) < 0 ||
        mo_json_parse(mo_buf_view(&b), 0, &doc, NULL) < 0 ||
        mo_skills_add_tool(c, mo_json_get(doc.root, "tools"), out) < 0)
        return (struct mo_json){NULL, 0};
    return (struct mo_json){out->p, out->len};
}

/* Adds the gateway's own tools after those of the box, then those of the
 * servers. */
static size_t add_gateway_sources(const struct chat *c,
                                  struct mo_tool_source *v, struct mo_buf *ours)
{
    const struct mo_agent_servers *s = &c->agent->o.servers;
    bool search = offers_search(c);

    v[SOURCE_ROUTER] =
        (struct mo_tool_source){.name = MO_SPAN(ROUTER_NAME), .bare = true};
    v[SOURCE_ROUTER].list = list_ours(c, search, ours);
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
    mo_skills_load(c);
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
                                  .person = mo_span_cstr(c->owner),
                                  .caps = mo_apps_capabilities(c->agent),
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
