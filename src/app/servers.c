#include "app/servers.h"

#include <stdio.h>

#include "app/boxed.h"
#include "app/config_keys.h"
#include "app/hub.h"
#include "app/target.h"
#include "mcp/link_sse.h"

#define ARENA_MAX  ((size_t)1024 * 1024)
#define AGAIN_MS   1000
#define AGAIN_MOST 60000

struct waiter {
    struct mo_list node;
    void (*done)(void *arg, const struct mo_err *why);
    void *arg;
};

struct server {
    struct mo_list node; /* in all->leaving */
    struct mo_servers *all;
    const struct mo_config_mcp *cfg; /* of all->cfg; leaving: nobody's */
    const struct mo_config *held;    /* `to` borrows from it; NULL: no conn */
    char name[MO_KEY_NAME_MAX + 1];
    char digest[65]; /* of all that makes it what it is */
    bool leaving, is_boxed;
    struct mo_arena arena; /* texts of `to`, for the present connection */
    struct mo_target to;
    struct mo_conn *conn; /* NULL: none; else open, or being opened */
    bool open;
    struct mo_err why;      /* the last failure */
    uint64_t again;         /* ns; not opened before */
    unsigned wait_ms;       /* the present pause; 0: none */
    struct mo_list waiters; /* struct waiter */
};

struct mo_servers {
    struct mo_loop *loop;
    const struct mo_config *cfg;
    struct mo_httpc *http;
    struct mo_guard *guard; /* NULL: no child was started yet */
    struct mo_boxed *boxed; /* NULL: no box was wanted yet */
    struct mo_agent *agent; /* to be told; or NULL */
    struct mo_tails *said;
    struct server *v[MO_SERVERS_MAX];
    size_t n;
    struct mo_list leaving; /* servers that are configured no more */
    bool closing, guarded;  /* guarded: the guard is on its way out */
    void (*gone)(void *ctx);
    void *gone_ctx;
    struct mo_later later; /* waiters of open servers, or the end */
};

/* --- who waits ----------------------------------------------------------- */

static void tell(struct server *s, const struct mo_err *why)
{
    struct mo_list all;

    mo_list_init(&all);
    mo_list_splice(&all, &s->waiters);
    while (!mo_list_empty(&all)) {
        struct waiter *w = mo_list_first(&all, struct waiter, node);

        mo_list_del(&w->node);
        w->done(w->arg, why);
        mo_free(w);
    }
}

static void maybe_gone(struct mo_servers *all);

/* A server that leaves has no connection any more. */
static void left(struct server *s)
{
    tell(s, &s->why);
    mo_list_del(&s->node);
    mo_free(s);
}

static void on_later(struct mo_later *d)
{
    struct mo_servers *all = mo_container_of(d, struct mo_servers, later);

    for (size_t i = 0; i < all->n; i++) {
        struct server *s = all->v[i];

        if (s->open)
            tell(s, NULL);
        else if (s->conn == NULL)
            tell(s, &s->why);
    }
    mo_list_each_safe (it, &all->leaving) {
        struct server *s = mo_container_of(it, struct server, node);

        if (s->conn == NULL)
            left(s);
    }
    if (all->closing)
        maybe_gone(all);
}

/* --- the connection's news ----------------------------------------------- */

static int on_dial(void *ctx, struct mo_conn *c, struct mo_err *e)
{
    struct server *s = ctx;
    struct mo_link *k = NULL;
    int rc = 0;

    if (s->is_boxed && s->leaving)
        return mo_fail(e, MO_ECLOSED, "it is not configured any more");
    if (s->is_boxed)
        return mo_boxed_dial(s->all->boxed, s->all->cfg, s->cfg, c, e);
    if (!s->to.is_remote)
        rc = mo_link_child(s->all->guard, &s->to.child, &k, e);
    else if (s->to.old_sse)
        rc = mo_link_sse(s->all->loop, &s->to.remote, &k, e);
    else
        rc = mo_link_http(s->all->loop, &s->to.remote, &k, e);
    if (rc < 0)
        return rc;
    mo_conn_dialed(c, k, NULL);
    return 0;
}

static void on_said(void *ctx, const char *who, struct mo_span bytes,
                    bool first)
{
    struct mo_servers *all = ctx;

    mo_tails_add(all->said, who, bytes, first);
}

static void on_open(void *ctx, struct mo_conn *c)
{
    struct server *s = ctx;

    (void)c;
    s->open = true;
    s->wait_ms = 0;
    tell(s, NULL);
    if (s->all->agent)
        mo_agent_stale(s->all->agent);
}

static void on_notify(void *ctx, struct mo_conn *c, const struct mo_rpc *m,
                      uint64_t stream_of)
{
    struct server *s = ctx;

    (void)c;
    (void)stream_of;
    if (s->all->agent &&
        mo_json_str_eq(m->method, MO_SPAN("notifications/tools/list_changed")))
        mo_agent_stale(s->all->agent);
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct server *s = ctx;
    struct mo_servers *all = s->all;
    bool was_open = s->open;

    s->conn = NULL;
    s->open = false;
    if (why)
        s->why = *why;
    else
        mo_fail(&s->why, MO_ECLOSED, "the server was closed");
    mo_target_scrub(&s->to, &s->why);
    mo_target_wipe(&s->to);
    mo_arena_fini(&s->arena);
    mo_config_unref(mo_take_ptr(&s->held));
    if (!was_open) {
        s->wait_ms = s->wait_ms ? s->wait_ms * 2 : AGAIN_MS;
        if (s->wait_ms > AGAIN_MOST)
            s->wait_ms = AGAIN_MOST;
        s->again = mo_now_ns() + s->wait_ms * MO_MS;
    }
    mo_log_err(mo_loop_log(all->loop), s->leaving ? MO_INFO : MO_WARN,
               "servers", &s->why, "%s", s->name);
    if (s->leaving)
        left(s);
    else
        tell(s, &s->why);
    if (all->closing)
        maybe_gone(all);
}

static void on_ask(void *ctx, struct mo_conn *c, struct mo_ask *a)
{
    struct server *s = ctx;

    if (s->all->agent)
        mo_agent_ask(s->all->agent, c, a);
    else
        mo_ask_refuse(a, -32601, "nobody is there to answer");
}

static void on_ask_gone(void *ctx, struct mo_ask *a)
{
    (void)ctx;
    mo_agent_ask_gone(a);
}

static const struct mo_conn_cb conn_cb = {.on_open = on_open,
                                          .on_ask = on_ask,
                                          .on_ask_gone = on_ask_gone,
                                          .on_notify = on_notify,
                                          .on_close = on_close};

/* --- opening ------------------------------------------------------------- */

/* What its link is made of: a box has its own way (boxed.h). */
static int prepare(struct server *s, struct mo_err *e)
{
    struct mo_peer_opts po = {.cfg = s->all->cfg, .server = s->cfg};
    struct mo_servers *all = s->all;

    s->to = (struct mo_target){.secrets = NULL};
    s->is_boxed = mo_boxed_is(s->cfg);
    if (s->is_boxed)
        return all->boxed ? 0
                          : mo_boxed_new(all->loop, all->said, &all->boxed, e);
    if (all->guard == NULL)
        all->guard = mo_guard_new(all->loop, e);
    if (all->guard == NULL || mo_target_init(&s->to, &s->arena, &po, e) < 0)
        return e->code;
    s->to.remote.http = all->http;
    s->to.child.said = on_said;
    s->to.child.said_ctx = all;
    s->to.child.who = s->name;
    if (mo_target_hide(&s->to, all->loop) < 0)
        mo_log(mo_loop_log(all->loop), MO_WARN, "servers",
               "%s: not every secret can be kept out of the log by its value",
               s->cfg->name);
    return 0;
}

static int connect_to(struct server *s, struct mo_err *e)
{
    struct mo_conn_opts co = {
        .mode = MO_CONN_AUTO,
        .capabilities = MO_SPAN(MO_AGENT_CAPABILITIES),
        .open_ms = (uint64_t)s->cfg->start_ms,
        .dial = on_dial,
        .cb = &conn_cb,
        .ctx = s,
    };
    int rc = 0;

    mo_arena_init(&s->arena, ARENA_MAX);
    rc = prepare(s, e);
    if (rc == 0)
        rc = mo_conn_open(s->all->loop, &co, &s->conn, e);
    if (rc == 0)
        s->held = mo_config_ref(s->all->cfg);
    if (rc < 0) {
        mo_target_scrub(&s->to, e);
        mo_target_wipe(&s->to);
        mo_arena_fini(&s->arena);
    }
    return rc;
}

static int use(void *ctx, size_t i,
               void (*done)(void *arg, const struct mo_err *why), void *arg,
               struct mo_err *e)
{
    struct mo_servers *all = ctx;
    struct server *s = i < all->n ? all->v[i] : NULL;
    struct waiter *w = NULL;

    if (all->closing)
        return mo_fail(e, MO_ECLOSED, "the program is ending");
    if (s == NULL)
        return mo_fail(e, MO_ENOTFOUND, "it is not configured any more");
    w = mo_new(struct waiter);
    if (w == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    w->done = done;
    w->arg = arg;
    mo_list_push(&s->waiters, &w->node);
    if (s->conn == NULL && mo_now_ns() >= s->again &&
        connect_to(s, &s->why) < 0)
        s->again = mo_now_ns() + AGAIN_MS * MO_MS;
    if (s->open || s->conn == NULL)
        mo_loop_defer(all->loop, &all->later);
    return 0;
}

static struct mo_conn *conn_of(void *ctx, size_t i, struct mo_err *e)
{
    struct mo_servers *all = ctx;
    struct server *s = i < all->n ? all->v[i] : NULL;

    if (s && s->open)
        return s->conn;
    if (s == NULL)
        mo_fail(e, MO_ENOTFOUND, "it is not configured any more");
    else if (s->conn)
        mo_fail(e, MO_EBUSY, "it is still starting");
    else
        *e = s->why;
    return NULL;
}

static size_t count(void *ctx)
{
    return ((struct mo_servers *)ctx)->n;
}

static const char *name_of(void *ctx, size_t i)
{
    const struct mo_servers *all = ctx;

    return i < all->n ? all->v[i]->name : "a server that was removed";
}

static uint64_t timeout_of(void *ctx, size_t i)
{
    const struct mo_servers *all = ctx;

    return i < all->n ? (uint64_t)all->v[i]->cfg->timeout_ms : 0;
}

struct mo_agent_servers mo_servers_for(struct mo_servers *s)
{
    return (struct mo_agent_servers){count, name_of,    conn_of,
                                     use,   timeout_of, s};
}

void mo_servers_tell(struct mo_servers *s, struct mo_agent *a)
{
    s->agent = a;
}

/* --- looking at one ------------------------------------------------------ */

static const char *state_of(const struct server *s)
{
    if (s->open)
        return "ok";
    if (s->conn)
        return "starting";
    return s->why.code ? "failed" : "cold";
}

bool mo_servers_find(const struct mo_servers *all, struct mo_span name,
                     size_t *out)
{
    for (*out = 0; *out < all->n; ++*out) {
        if (mo_span_is(name, all->v[*out]->name))
            return true;
    }
    return false;
}

void mo_servers_look(struct mo_servers *all, size_t i,
                     struct mo_server_look *out)
{
    const struct server *s = all->v[i];
    uint64_t now = mo_now_ns();

    *out = (struct mo_server_look){
        .cfg = s->cfg,
        .state = state_of(s),
        .conn = s->open ? s->conn : NULL,
        .why = s->why,
    };
    if (s->conn == NULL && s->again > now)
        out->retry_ms = (s->again - now) / MO_MS;
}

const struct mo_tails *mo_servers_said(const struct mo_servers *all)
{
    return all->said;
}

void mo_servers_stale(struct mo_servers *all)
{
    if (all->agent)
        mo_agent_stale(all->agent);
}

void mo_servers_retry(struct mo_servers *all, size_t i)
{
    all->v[i]->again = 0;
}

/* --- which there are ----------------------------------------------------- */

static struct server *server_new(struct mo_servers *all, const char *name,
                                 const char *digest)
{
    struct server *s = mo_new(struct server);

    if (s == NULL)
        return NULL;
    s->all = all;
    (void)snprintf(s->name, sizeof(s->name), "%s", name);
    (void)snprintf(s->digest, sizeof(s->digest), "%s", digest);
    mo_list_init(&s->node);
    mo_list_init(&s->waiters);
    return s;
}

static struct server *same_as_before(const struct mo_servers *all,
                                     const char *name, const char *digest)
{
    size_t i = 0;

    if (!mo_servers_find(all, mo_span_cstr(name), &i) ||
        strcmp(all->v[i]->digest, digest) != 0)
        return NULL;
    return all->v[i];
}

struct next { /* what a configuration makes of the servers */
    struct server *v[MO_SERVERS_MAX];
    const struct mo_config_mcp *cfg[MO_SERVERS_MAX];
    size_t n;
};

static bool is_in(const struct next *x, const struct server *s)
{
    for (size_t i = 0; i < x->n; i++) {
        if (x->v[i] == s)
            return true;
    }
    return false;
}

static int plan(struct mo_servers *all, const struct mo_config *cfg,
                struct next *x)
{
    for (size_t i = 0; i < cfg->mcp.n && x->n < MO_SERVERS_MAX; i++) {
        const struct mo_config_mcp *c = &cfg->mcp.v[i];
        struct mo_gw_server gw;
        struct server *s = NULL;

        if (!c->enabled)
            continue;
        mo_hub_server(cfg, c, &gw);
        s = same_as_before(all, c->name, gw.digest);
        if (s == NULL)
            s = server_new(all, c->name, gw.digest);
        if (s == NULL)
            return MO_ENOMEM;
        x->cfg[x->n] = c;
        x->v[x->n++] = s;
    }
    return 0;
}

static void forget_plan(const struct mo_servers *all, const struct next *x)
{
    for (size_t i = 0; i < x->n; i++) {
        bool old = false;

        for (size_t j = 0; j < all->n; j++)
            old |= all->v[j] == x->v[i];
        if (!old)
            mo_free(x->v[i]);
    }
}

static void leave(struct server *s)
{
    s->leaving = true;
    s->cfg = NULL;
    if (s->why.code == 0)
        mo_fail(&s->why, MO_ECANCELED, "it is not configured any more");
    mo_list_push(&s->all->leaving, &s->node);
    mo_tails_drop(s->all->said, s->name);
    if (s->conn)
        mo_conn_close(s->conn, &s->why);
}

int mo_servers_reload(struct mo_servers *all, const struct mo_config *cfg,
                      struct mo_err *e)
{
    const struct mo_config *old = all->cfg;
    struct next x = {.n = 0};

    if (plan(all, cfg, &x) < 0) {
        forget_plan(all, &x);
        return mo_fail(e, MO_ENOMEM, "servers: out of memory");
    }
    for (size_t i = 0; i < all->n; i++) {
        if (!is_in(&x, all->v[i]))
            leave(all->v[i]);
    }
    for (size_t i = 0; i < x.n; i++) {
        all->v[i] = x.v[i];
        all->v[i]->cfg = x.cfg[i];
    }
    all->n = x.n;
    all->cfg = mo_config_ref(cfg);
    mo_config_unref(old);
    mo_servers_stale(all);
    mo_loop_defer(all->loop, &all->later);
    return 0;
}

/* --- all of them --------------------------------------------------------- */

static void all_free(struct mo_servers *all)
{
    mo_later_cancel(&all->later);
    for (size_t i = 0; i < all->n; i++)
        mo_free(all->v[i]);
    mo_tails_free(all->said);
    mo_config_unref(all->cfg);
    mo_free(all);
}

int mo_servers_open(struct mo_loop *l, const struct mo_config *cfg,
                    struct mo_httpc *http, struct mo_servers **out,
                    struct mo_err *e)
{
    struct mo_servers *all = mo_new(struct mo_servers);

    if (all == NULL)
        return mo_fail(e, MO_ENOMEM, "servers: out of memory");
    all->loop = l;
    all->http = http;
    all->said = mo_tails_new(l);
    mo_list_init(&all->leaving);
    mo_later_init(&all->later, on_later);
    if (all->said == NULL || mo_servers_reload(all, cfg, e) < 0) {
        all_free(all);
        return mo_fail(e, MO_ENOMEM, "servers: out of memory");
    }
    *out = all;
    return 0;
}

static void on_guard_gone(void *ctx)
{
    struct mo_servers *all = ctx;
    void (*gone)(void *) = all->gone;
    void *gone_ctx = all->gone_ctx;

    all_free(all);
    gone(gone_ctx);
}

static void end_children(struct mo_servers *all);

static void on_boxed_gone(void *ctx)
{
    end_children(ctx);
}

/* Boxes, then plain children. */
static void end_children(struct mo_servers *all)
{
    if (all->boxed)
        mo_boxed_close(mo_take_ptr(&all->boxed), on_boxed_gone, all);
    else if (all->guard)
        mo_guard_stop(all->guard, on_guard_gone, all);
    else
        on_guard_gone(all);
}

static void maybe_gone(struct mo_servers *all)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i]->conn)
            return;
    if (all->guarded || !mo_list_empty(&all->leaving))
        return;
    all->guarded = true;
    end_children(all);
}

void mo_servers_close(struct mo_servers *s, void (*gone)(void *ctx), void *ctx)
{
    s->closing = true;
    s->agent = NULL;
    s->gone = gone;
    s->gone_ctx = ctx;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i]->conn)
            mo_conn_close(s->v[i]->conn, NULL);
    mo_loop_defer(s->loop, &s->later);
}
