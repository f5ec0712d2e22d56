#include "toolbox/loop.h"

#include <errno.h>
#include <limits.h>

void tb_loop_init(struct tb_loop *l)
{
    mo_list_init(&l->watches);
    mo_list_init(&l->timers);
    mo_list_init(&l->idles);
}

void tb_watch_start(struct tb_loop *l, struct tb_watch *w, int fd, short events,
                    void (*ready)(struct tb_watch *w))
{
    *w = (struct tb_watch){
        .loop = l, .fd = fd, .events = events, .slot = -1, .ready = ready};
    mo_list_push(&l->watches, &w->node);
}

void tb_watch_stop(struct tb_watch *w)
{
    if (!w->loop)
        return;
    mo_list_del(&w->node);
    if (w->slot >= 0)
        w->loop->round[w->slot] = NULL;
    w->loop = NULL;
}

void tb_timer_init(struct tb_timer *t, void (*fire)(struct tb_timer *t))
{
    mo_list_init(&t->node);
    t->fire = fire;
}

void tb_timer_start(struct tb_loop *l, struct tb_timer *t, uint64_t ns)
{
    mo_list_del(&t->node);
    t->at = mo_now_ns() + ns;
    mo_list_push(&l->timers, &t->node);
}

void tb_timer_stop(struct tb_timer *t)
{
    mo_list_del(&t->node);
}

void tb_idle_init(struct tb_idle *i, void (*step)(struct tb_idle *i))
{
    mo_list_init(&i->node);
    i->step = step;
}

void tb_idle_start(struct tb_loop *l, struct tb_idle *i)
{
    mo_list_del(&i->node);
    mo_list_push(&l->idles, &i->node);
}

void tb_idle_stop(struct tb_idle *i)
{
    mo_list_del(&i->node);
}

/* --- one round ----------------------------------------------------------- */

static nfds_t gather_watches(struct tb_loop *l, struct pollfd *fds)
{
    nfds_t n = 0;

    mo_list_each (it, &l->watches) {
        struct tb_watch *w = mo_container_of(it, struct tb_watch, node);

        w->slot = -1;
        if (!w->events)
            continue; /* poll reports a hang-up even with no events */
        MO_BUG_ON(n == TB_WATCH_MAX);
        w->slot = (int)n;
        l->round[n] = w;
        fds[n++] = (struct pollfd){.fd = w->fd, .events = w->events};
    }
    return n;
}

/* Milliseconds until the next timer, rounded up; -1: none. */
static int next_timer_ms(const struct tb_loop *l)
{
    uint64_t now = mo_now_ns(), next = UINT64_MAX, ms;

    if (!mo_list_empty(&l->idles))
        return 0;
    mo_list_each (it, &l->timers) {
        const struct tb_timer *t = mo_container_of(it, struct tb_timer, node);

        next = t->at < next ? t->at : next;
    }
    if (next == UINT64_MAX)
        return -1;
    ms = next <= now ? 0 : (next - now + MO_MS - 1) / MO_MS;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

static struct tb_timer *due_timer(const struct tb_loop *l, uint64_t now)
{
    mo_list_each (it, &l->timers) {
        struct tb_timer *t = mo_container_of(it, struct tb_timer, node);

        if (t->at <= now)
            return t;
    }
    return NULL;
}

static void fire_timers(struct tb_loop *l)
{
    uint64_t now = mo_now_ns(); /* timers started now wait for the next round */

    for (;;) {
        struct tb_timer *t = due_timer(l, now);

        if (!t)
            return;
        tb_timer_stop(t);
        t->fire(t);
    }
}

/* A step may end itself or others, so take them off one by one. */
static void step_idles(struct tb_loop *l)
{
    struct mo_list todo;

    mo_list_init(&todo);
    mo_list_splice(&todo, &l->idles);
    while (!mo_list_empty(&todo)) {
        struct tb_idle *i = mo_container_of(todo.next, struct tb_idle, node);

        tb_idle_start(l, i);
        i->step(i);
    }
}

int tb_loop_round(struct tb_loop *l, struct mo_err *e)
{
    struct pollfd fds[TB_WATCH_MAX];
    nfds_t n = gather_watches(l, fds);
    int rc = poll(fds, n, next_timer_ms(l));

    if (rc < 0 && errno != EINTR)
        return mo_fail_sys(e, "poll");
    for (nfds_t i = 0; rc > 0 && i < n; i++) {
        struct tb_watch *w = l->round[i];

        if (!w || !fds[i].revents)
            continue;
        w->slot = -1;
        w->ready(w);
    }
    mo_list_each (it, &l->watches)
        mo_container_of(it, struct tb_watch, node)->slot = -1;
    fire_timers(l);
    step_idles(l);
    return 0;
}
