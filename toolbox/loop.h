/* loop.h - the event loop of the toolbox; one thread.
 *
 * It has watches (a descriptor and events), timers, and idle steps: small parts
 * of long work, run while there is nothing else to do. All are the caller's
 * storage. All callbacks run from tb_loop_round(), and each may start or stop
 * any watch, timer or step.
 *
 * Limit: TB_WATCH_MAX watches. More is a bug (MO_BUG_ON), because the limits of
 * all users add up to less. */
#ifndef TB_LOOP_H
#define TB_LOOP_H

#include <poll.h>

#include "base/clock.h"
#include "base/list.h"

#define TB_WATCH_MAX 192

struct tb_watch {
    struct mo_list node;
    struct tb_loop *loop; /* NULL: not started */
    int fd;
    short events; /* 0: none for now */
    int slot;     /* in this round, or -1 */
    void (*ready)(struct tb_watch *w);
};

struct tb_timer {
    struct mo_list node;
    uint64_t at; /* mo_now_ns() */
    void (*fire)(struct tb_timer *t);
};

struct tb_idle {
    struct mo_list node;
    void (*step)(struct tb_idle *i);
};

struct tb_loop {
    struct mo_list watches, timers, idles;
    struct tb_watch *round[TB_WATCH_MAX];
};

void tb_loop_init(struct tb_loop *l);
/* Wait once and call what is ready. MO_EIO if waiting fails. */
int tb_loop_round(struct tb_loop *l, struct mo_err *e);

void tb_watch_start(struct tb_loop *l, struct tb_watch *w, int fd, short events,
                    void (*ready)(struct tb_watch *w));
void tb_watch_stop(struct tb_watch *w); /* allowed when not started */

/* Starting a running timer moves its time. */
void tb_timer_init(struct tb_timer *t, void (*fire)(struct tb_timer *t));
void tb_timer_start(struct tb_loop *l, struct tb_timer *t, uint64_t ns);
void tb_timer_stop(struct tb_timer *t);

void tb_idle_init(struct tb_idle *i, void (*step)(struct tb_idle *i));
void tb_idle_start(struct tb_loop *l, struct tb_idle *i);
void tb_idle_stop(struct tb_idle *i);

#endif
