/* timer.c - an intrusive pairing heap: the root is the nearest deadline.
 *
 * Links: child = first child, next = right sibling, prev = left sibling or, for
 * a first child, the parent. A stopped timer has at == 0 and no links. Insert
 * and peek are O(1), removal is amortised O(log n), nothing allocates. */
#include "loop/priv.h"

static struct mo_timer *meld(struct mo_timer *a, struct mo_timer *b)
{
    if (!a)
        return b;
    if (!b)
        return a;
    if (b->at < a->at) {
        struct mo_timer *t = a;

        a = b;
        b = t;
    }
    b->next = a->child;
    if (a->child)
        a->child->prev = b;
    b->prev = a;
    a->child = b;
    return a;
}

/* Meld siblings in pairs left to right, then all pairs right to left. The first
 * pass links the pairs backwards through prev. */
static struct mo_timer *meld_siblings(struct mo_timer *first)
{
    struct mo_timer *pairs = NULL;
    struct mo_timer *root = NULL;

    while (first) {
        struct mo_timer *a = first;
        struct mo_timer *b = a->next;

        first = b ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b)
            b->next = b->prev = NULL;
        a = meld(a, b);
        a->prev = pairs;
        pairs = a;
    }
    while (pairs) {
        struct mo_timer *rest = pairs->prev;

        pairs->prev = NULL;
        root = meld(root, pairs);
        pairs = rest;
    }
    return root;
}

static void heap_remove(struct mo_loop *l, struct mo_timer *t)
{
    struct mo_timer *below = meld_siblings(t->child);

    if (t == l->heap) {
        l->heap = below;
    } else {
        if (t->prev->child == t)
            t->prev->child = t->next;
        else
            t->prev->next = t->next;
        if (t->next)
            t->next->prev = t->prev;
        l->heap = meld(l->heap, below);
    }
    t->child = t->next = t->prev = NULL;
    t->at = 0;
    l->stats.timers--;
}

static void on_tick(uv_timer_t *h);

/* Set the libuv timer to the root. It fires up to a millisecond late, never
 * early: on_tick() checks the clock again. */
static void arm_tick(struct mo_loop *l)
{
    uint64_t now = mo_now_ns();
    uint64_t wait = 0;

    if (!l->heap) {
        (void)uv_timer_stop(&l->tick);
        return;
    }
    if (l->heap->at > now)
        wait = (l->heap->at - now + MO_MS - 1) / MO_MS;
    uv_update_time(&l->uv);
    (void)uv_timer_start(&l->tick, on_tick, wait, 0);
}

static void on_tick(uv_timer_t *h)
{
    struct mo_loop *l = h->data;
    uint64_t now = mo_now_ns();

    while (l->heap && l->heap->at <= now) {
        struct mo_timer *t = l->heap;

        heap_remove(l, t);
        t->fire(t);
    }
    arm_tick(l);
    if (l->until)
        uv_stop(&l->uv);
}

void mo_timer_start(struct mo_loop *l, struct mo_timer *t, uint64_t ms)
{
    struct mo_timer *root;

    if (t->at)
        heap_remove(l, t);
    root = l->heap;
    t->at = mo_now_ns() + ms * MO_MS;
    l->heap = meld(l->heap, t);
    l->stats.timers++;
    /* a later deadline is noticed when the armed one fires */
    if (l->heap != root || !uv_is_active((uv_handle_t *)&l->tick))
        arm_tick(l);
}

void mo_timer_stop(struct mo_loop *l, struct mo_timer *t)
{
    if (!t->at)
        return;
    heap_remove(l, t);
    if (!l->heap)
        (void)uv_timer_stop(&l->tick);
}
