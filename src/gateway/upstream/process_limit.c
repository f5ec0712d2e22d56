/* process_limit.c - limits the number of children.
 *
 * A closing child still takes its place. A NEW child waits only while a
 * place is about to become free; otherwise its requests fail at once. */
#include "gateway/upstream/upstream_priv.h"

void mo_upstream_pool_init(struct mo_upstream_pool *p, unsigned max)
{
    *p = (struct mo_upstream_pool){.max = max ? max : MO_UPSTREAM_POOL_MAX};
    mo_list_init(&p->idle);
    mo_list_init(&p->queue);
}

static unsigned child_limit(const struct mo_upstream *u)
{
    return u->server.per_session ? MO_UPSTREAM_CHILDREN_MAX
                                 : u->server.instances;
}

static unsigned count_running(const struct mo_upstream *u)
{
    return u->count[CH_STARTING] + u->count[CH_OPEN] + u->count[CH_CLOSING];
}

/* True while the session's previous child is closing: a session has one
 * child at a time. */
static bool has_closing_twin(const struct mo_child *c)
{
    if (!c->up->server.per_session || c->up->count[CH_CLOSING] == 0)
        return false;
    mo_list_each_entry (t, &c->up->children, struct mo_child, node) {
        if (t->state == CH_CLOSING &&
            mo_span_eq(mo_child_who(t), mo_child_who(c)))
            return true;
    }
    return false;
}

static bool has_room(const struct mo_child *c)
{
    return c->up->pool->running < c->up->pool->max &&
           count_running(c->up) < child_limit(c->up) && !has_closing_twin(c);
}

static bool close_oldest_idle(struct mo_upstream_pool *p,
                              const struct mo_upstream *of)
{
    mo_list_each_entry (c, &p->idle, struct mo_child, idle_node) {
        if (of && c->up != of)
            continue;
        mo_upstream_child_close(c, MO_ECANCELED,
                                "stopped to make room for another server");
        return true;
    }
    return false;
}

/* True if a place is about to become free. Closes an idle child if needed. */
static bool make_room(const struct mo_child *c)
{
    struct mo_upstream *u = c->up;
    struct mo_upstream_pool *p = u->pool;

    if (count_running(u) >= child_limit(u) &&
        u->count[CH_CLOSING] < u->count[CH_NEW] && !close_oldest_idle(p, u))
        return false;
    return p->running < p->max || p->closing >= p->queued ||
           close_oldest_idle(p, NULL);
}

bool mo_process_limit_admit(struct mo_child *c)
{
    if (has_room(c))
        mo_upstream_child_start(c);
    else if (!make_room(c)) {
        mo_upstream_child_end(c, REFUSED_ROOM);
        return false;
    }
    return true;
}

/* Safe to iterate: admitting a child takes no other child out of the queue,
 * since ends are handled later. */
void mo_process_limit_freed(struct mo_upstream_pool *p)
{
    mo_list_each_safe (it, &p->queue)
        (void)mo_process_limit_admit(
            mo_container_of(it, struct mo_child, queue_node));
}
