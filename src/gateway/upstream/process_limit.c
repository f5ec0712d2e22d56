/* process_limit.c - how many children there may be.
 *
 * Who is on the way out still takes its place. A NEW child waits only while
 * there is a place on its way to being free for it; everybody else is told at
 * once that there is no room. */
#include "gateway/upstream/upstream_priv.h"

void mo_upstream_pool_init(struct mo_upstream_pool *p, unsigned max)
{
    *p = (struct mo_upstream_pool){.max = max ? max : MO_UPSTREAM_ALL_MAX};
    mo_list_init(&p->idle);
    mo_list_init(&p->queue);
}

static unsigned limit(const struct mo_upstream *u)
{
    return u->s.per_session ? MO_UPSTREAM_CHILDREN_MAX : u->s.instances;
}

static unsigned running(const struct mo_upstream *u)
{
    return u->count[CH_STARTING] + u->count[CH_OPEN] + u->count[CH_CLOSING];
}

/* The same session's last child must be gone: a session has one. */
static bool has_twin(const struct mo_child *c)
{
    if (!c->up->s.per_session || c->up->count[CH_CLOSING] == 0)
        return false;
    mo_list_each (it, &c->up->children) {
        struct mo_child *t = mo_container_of(it, struct mo_child, node);

        if (t->state == CH_CLOSING &&
            mo_span_eq(mo_upstream_child_who(t), mo_upstream_child_who(c)))
            return true;
    }
    return false;
}

static bool room_enough(const struct mo_child *c)
{
    return c->up->pool->running < c->up->pool->max &&
           running(c->up) < limit(c->up) && !has_twin(c);
}

static bool evict(struct mo_upstream_pool *p, const struct mo_upstream *of)
{
    mo_list_each (it, &p->idle) {
        struct mo_child *c = mo_container_of(it, struct mo_child, idle_node);

        if (of && c->up != of)
            continue;
        mo_upstream_child_close(c, MO_ECANCELED,
                                "stopped to make room for another");
        return true;
    }
    return false;
}

/* Is a place on its way to being free? An idle child is closed if it must. */
static bool room_soon(const struct mo_child *c)
{
    struct mo_upstream *u = c->up;
    struct mo_upstream_pool *p = u->pool;

    if (running(u) >= limit(u) && u->count[CH_CLOSING] < u->count[CH_NEW] &&
        !evict(p, u))
        return false;
    return p->running < p->max || p->closing >= p->queued || evict(p, NULL);
}

bool mo_process_limit_settle(struct mo_child *c)
{
    if (room_enough(c))
        mo_upstream_child_start(c);
    else if (!room_soon(c)) {
        mo_upstream_child_drop(c, NO_ROOM);
        return false;
    }
    return true;
}

/* Nothing of this takes others out of the queue: what ends is dealt with
 * later. */
void mo_process_limit_made(struct mo_upstream_pool *p)
{
    mo_list_each_safe (it, &p->queue)
        (void)mo_process_limit_settle(
            mo_container_of(it, struct mo_child, queue_node));
}
