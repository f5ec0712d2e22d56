/* slot.c - looks up slots and children, and frees removed slots. */
#include "gateway/state/state.h"

struct server_slot *mo_gw_slot(struct mo_gateway *g, unsigned no)
{
    return no < g->n ? g->v[no] : NULL;
}

struct server_slot *mo_gw_find_slot(const struct mo_gateway *g,
                                    struct mo_span name)
{
    for (size_t i = 0; i < g->n; i++) {
        if (mo_span_is(name, mo_upstream_server(g->v[i]->up)->name))
            return g->v[i];
    }
    return NULL;
}

struct gw_child *mo_gw_child(const struct server_slot *s,
                             const struct mo_child *c)
{
    mo_list_each_entry (k, &s->children, struct gw_child, node) {
        if (k->child == c)
            return k;
    }
    return NULL;
}

void mo_gw_slot_check(struct server_slot *s)
{
    struct mo_gateway *g = s->g;

    if (!mo_list_empty(&s->calls))
        return;
    if (s->no == SLOT_NONE && !s->closing)
        mo_loop_defer(g->loop, &s->leave);
    if (!s->gone)
        return;
    mo_list_del(&s->node);
    mo_later_cancel(&s->leave);
    mo_free(s);
    if (g->closing && mo_list_empty(&g->leaving))
        mo_loop_defer(g->loop, &g->ending);
}
