#include "servers/view_table.h"

#include <stdio.h>

#include "base/mem.h"
#include "config/keys.h"

struct table_view {
    struct mo_list node;
    char name[MO_KEY_NAME_MAX + 1];
    char title[MO_KEY_NAME_MAX + 32];
    struct mo_gw_view *view;
    struct mo_endpoint *ep;
    bool serving;
    void *door;
    /* As the door was opened: */
    const struct mo_config *cfg;
    const struct mo_config_view *settings;
    bool removed;
};

/* --- settings ------------------------------------------------------------ */

const struct mo_config_view *mo_view_config(const struct mo_config *cfg,
                                            struct mo_span name)
{
    for (size_t i = 0; i < cfg->views.n; i++)
        if (mo_span_is(name, cfg->views.v[i].name))
            return &cfg->views.v[i];
    return NULL;
}

bool mo_view_is_for(const struct mo_config_view *v, const char *caller,
                    int role)
{
    if (role < v->role)
        return false;
    if (!*caller || !v->people.n)
        return true;
    for (size_t i = 0; i < v->people.n; i++)
        if (strcmp(v->people.v[i], caller) == 0)
            return true;
    return false;
}

static bool has_same_people(const struct mo_config_view *a,
                            const struct mo_config_view *b)
{
    bool same = a->role == b->role && a->people.n == b->people.n;

    for (size_t i = 0; same && i < a->people.n; i++)
        same = strcmp(a->people.v[i], b->people.v[i]) == 0;
    return same;
}

static void keep_settings(struct table_view *x, const struct mo_config *cfg,
                          const struct mo_config_view *c)
{
    const struct mo_config *old = x->cfg;

    x->cfg = mo_config_ref(cfg);
    x->settings = c;
    mo_config_unref(old);
}

/* --- one view ------------------------------------------------------------ */

static void table_view_free(struct mo_view_table *t, struct table_view *x)
{
    if (x->serving)
        mo_gateway_unserve(t->gateway, x->ep);
    if (x->ep)
        mo_endpoint_free(x->ep);
    mo_gateway_view_free(x->view);
    mo_config_unref(x->cfg);
    mo_list_del(&x->node);
    mo_free(x);
}

static int make_endpoint(struct mo_view_table *t, struct table_view *x,
                         struct mo_err *e)
{
    struct mo_endpoint_opts o = {
        .name = "mcp-orchestrator",
        .title = x->title,
        .version = MO_VERSION,
        .limits = {.ask_ms = t->ask_ms},
    };
    int rc;

    (void)snprintf(x->title, sizeof(x->title), "MCP Orchestrator: %s", x->name);
    mo_gateway_view_endpoint(x->view, &o);
    x->ep = mo_endpoint_new(t->loop, &o, e);
    if (!x->ep)
        return e->code;
    rc = mo_gateway_view_serve(x->view, x->ep);
    x->serving = rc == 0;
    return rc < 0 ? mo_fail(e, rc, "view %s", x->name) : 0;
}

static void open_door(struct mo_view_table *t, struct table_view *x)
{
    if (t->doors.open)
        x->door = t->doors.open(t->doors.ctx, x->name, x->ep);
}

/* True if the sessions have ended. */
static bool close_door(struct mo_view_table *t, struct table_view *x)
{
    void *door = mo_take_ptr(&x->door);

    return !door || t->doors.close(t->doors.ctx, door);
}

static int add_view(struct mo_view_table *t, const struct mo_config *cfg,
                    const struct mo_config_view *c, struct mo_err *e)
{
    struct table_view *x = mo_new(struct table_view);

    if (!x)
        return mo_fail(e, MO_ENOMEM, "view %s", c->name);
    (void)snprintf(x->name, sizeof(x->name), "%s", c->name);
    mo_list_push(&t->views, &x->node);
    x->view = mo_gateway_view_new(t->gateway, c, e);
    if (!x->view || make_endpoint(t, x, e) < 0) {
        table_view_free(t, x);
        return e->code;
    }
    keep_settings(x, cfg, c);
    open_door(t, x);
    return 0;
}

static int change_view(struct mo_view_table *t, struct table_view *x,
                       const struct mo_config *cfg,
                       const struct mo_config_view *c, struct mo_err *e)
{
    bool same = has_same_people(x->settings, c);
    int rc = mo_gateway_view_change(x->view, c, e);

    mo_endpoint_ask_ms(x->ep, t->ask_ms);
    if (rc < 0)
        return rc;
    keep_settings(x, cfg, c);
    if (!same && t->doors.by_people && close_door(t, x))
        open_door(t, x);
    return 0;
}

static void remove_view(struct mo_view_table *t, struct table_view *x)
{
    char why[sizeof(x->name) + 64];

    (void)snprintf(why, sizeof(why),
                   "the view %s was removed from the configuration", x->name);
    x->removed = true;
    mo_gateway_view_end(x->view, why);
    if (close_door(t, x))
        table_view_free(t, x);
}

/* --- all ----------------------------------------------------------------- */

static struct table_view *find_view(const struct mo_view_table *t,
                                    struct mo_span name)
{
    mo_list_each_entry (x, &t->views, struct table_view, node)
        if (!x->removed && mo_span_is(name, x->name))
            return x;
    return NULL;
}

void mo_view_table_init(struct mo_view_table *t, struct mo_loop *l)
{
    *t = (struct mo_view_table){.loop = l};
    mo_list_init(&t->views);
}

void mo_view_table_doors(struct mo_view_table *t,
                         const struct mo_view_doors *doors)
{
    t->doors = doors ? *doors : (struct mo_view_doors){.open = NULL};
    mo_list_each_entry (x, &t->views, struct table_view, node) {
        x->door = NULL;
        open_door(t, x);
    }
}

int mo_view_table_reload(struct mo_view_table *t, const struct mo_config *cfg,
                         struct mo_err *e)
{
    int rc = 0;

    mo_list_each_entry_safe (x, &t->views, struct table_view, node)
        if (!x->removed && !mo_view_config(cfg, mo_span_cstr(x->name)))
            remove_view(t, x);
    for (size_t i = 0; i < cfg->views.n; i++) {
        const struct mo_config_view *c = &cfg->views.v[i];
        struct table_view *x = find_view(t, mo_span_cstr(c->name));
        int one = x ? change_view(t, x, cfg, c, e) : add_view(t, cfg, c, e);

        rc = rc < 0 ? rc : one;
    }
    return rc;
}

void mo_view_table_close(struct mo_view_table *t)
{
    mo_list_each_entry_safe (x, &t->views, struct table_view, node)
        table_view_free(t, x);
}

struct mo_gw_view *mo_view_table_find(const struct mo_view_table *t,
                                      struct mo_span name)
{
    const struct table_view *x = find_view(t, name);

    return x ? x->view : NULL;
}
