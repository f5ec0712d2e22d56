/*
 * gather.c - the tools of a conversation, from its box and from the servers
 * that all conversations share.
 *
 * Servers are asked for a connection all at once; who has none after
 * GATHER_MS is left out, and brings its tools when it is there after all
 * (mo_agent_stale()). A server that fails only lacks its tools: members are
 * told why when they come.
 */
#include "agent/chat_priv.h"

#define GATHER_MS 10000

struct gather {
    struct chat *chat;     /* NULL: it is over, answers only come home */
    unsigned waiting;      /* servers that have not answered */
    bool loading;          /* the catalogue is being read */
    struct mo_timer timer; /* no longer than that */
    struct mo_later later; /* all have answered */
    size_t n;
    struct wait {
        struct gather *g;
        size_t server;
        bool answered;
    } v[];
};

static void release(struct gather *g)
{
    if (g->chat == NULL && g->waiting == 0)
        mo_free(g);
}

static void trouble(struct chat *c, const char *server, const char *why)
{
    struct mo_buf *b = &c->troubles;

    mo_buf_printf(b, "The tools of %s are not there: %s", server, why);
    mo_buf_putc(b, '\0');
}

static void tell_blocked(struct chat *c)
{
    for (size_t i = 0; i < mo_tools_count(c->tools); i++) {
        const struct mo_tool *t = mo_tools_at(c->tools, i);

        if (!pinned_is_blocked(c, t))
            continue;
        mo_buf_printf(&c->troubles,
                      "%.*s is not what it was when it was first seen; it is "
                      "not used until somebody accepts the change.",
                      (int)t->name.n, t->name.p);
        mo_buf_putc(&c->troubles, '\0');
    }
}

/* The catalogue is there; say what is missing. */
static void on_tools(void *ctx, const struct mo_err *why)
{
    struct gather *g = ctx;
    struct chat *c = mo_take_ptr(&g->chat);
    const struct mo_agent_servers *s = &c->agent->o.servers;

    for (size_t i = 0; why == NULL && i < g->n; i++) {
        const char *failed = mo_tools_failed(c->tools, i + 1);

        if (failed)
            trouble(c, s->name(s->ctx, g->v[i].server), failed);
    }
    release(g);
    c->gather = NULL;
    if (why == NULL && pinned_look(c) < 0)
        trouble(c, "changed servers", "out of memory");
    tell_blocked(c);
    chat_tools(c, why);
}

static void load(struct gather *g)
{
    struct chat *c = g->chat;
    const struct mo_agent_servers *s = &c->agent->o.servers;
    struct mo_tool_source v[MO_TOOLS_SOURCES_MAX] = {
        {MO_SPAN("box"), c->info.conn, true}};
    size_t n = 0;
    struct mo_err e;

    g->loading = true;
    c->stale = false; /* what is open now is what is read */
    mo_timer_stop(c->agent->loop, &g->timer);
    for (size_t i = 0; i < g->n; i++) {
        size_t at = g->v[i].server;
        struct mo_conn *conn = s->conn(s->ctx, at, &e);

        if (conn == NULL) {
            trouble(c, s->name(s->ctx, at), e.msg);
            continue;
        }
        g->v[n].server = at; /* the n-th source is this server */
        v[++n] = (struct mo_tool_source){mo_span_cstr(s->name(s->ctx, at)),
                                         conn, false};
    }
    g->n = n;
    if (c->info.conn == NULL)
        mo_fail(&e, MO_EUNAVAIL, "the box has gone");
    else if (mo_tools_load(c->tools, v, n + 1, on_tools, g, &e) == 0)
        return;
    on_tools(g, &e);
}

static void on_late(struct mo_timer *t)
{
    load(mo_container_of(t, struct gather, timer));
}

static void on_all(struct mo_later *d)
{
    struct gather *g = mo_container_of(d, struct gather, later);

    if (g->chat && !g->loading)
        load(g);
}

static void on_server(void *arg, const struct mo_err *why)
{
    struct wait *w = arg;
    struct gather *g = w->g;

    (void)why; /* asked again when the list is made */
    g->waiting--;
    if (g->chat == NULL)
        release(g);
    else if (g->waiting == 0)
        mo_loop_defer(g->chat->agent->loop, &g->later);
}

void gather_start(struct chat *c)
{
    const struct mo_agent_servers *s = &c->agent->o.servers;
    size_t n = s->count ? s->count(s->ctx) : 0;
    struct gather *g = NULL;
    struct mo_err e;

    if (n > MO_TOOLS_SOURCES_MAX - 1)
        n = MO_TOOLS_SOURCES_MAX - 1;
    mo_buf_reset(&c->troubles);
    g = mo_zalloc(sizeof(*g) + n * sizeof(g->v[0]));
    c->writes++;
    c->gather = g;
    if (g == NULL) {
        mo_fail(&e, MO_ENOMEM, "out of memory");
        chat_tools(c, &e);
        return;
    }
    g->chat = c;
    g->n = n;
    mo_timer_init(&g->timer, on_late);
    mo_later_init(&g->later, on_all);
    for (size_t i = 0; i < n; i++) {
        g->v[i] = (struct wait){.g = g, .server = i};
        if (s->use(s->ctx, i, on_server, &g->v[i], &e) == 0)
            g->waiting++;
    }
    if (g->waiting > 0)
        mo_timer_start(c->agent->loop, &g->timer, GATHER_MS);
    else
        mo_loop_defer(c->agent->loop, &g->later);
}

/* The server a tool is from; false: it is the box's own. */
bool gather_server(const struct chat *c, const struct mo_tool *t, size_t *out)
{
    const struct mo_agent_servers *s = &c->agent->o.servers;
    size_t n = t->source > 0 && s->count ? s->count(s->ctx) : 0;

    for (*out = 0; *out < n; ++*out)
        if (mo_span_is(t->def.server, s->name(s->ctx, *out)))
            return true;
    return false;
}
