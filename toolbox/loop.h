/* loop.h - one thread waits for everything.
 *
 * Watches (a descriptor and what to wait for), timers, and idle steps: small
 * pieces of long work that are done while nothing else is to do. Each is the
 * caller's storage; all callbacks run from tb_loop_round(), and any of them
 * may start or stop any watch, timer or step.
 *
 * Limit: TB_WATCH_MAX watches, more is our mistake (MO_BUG_ON): the rooms
 * above are born with limits that stay below. */
#ifndef TB_LOOP_H
#define TB_LOOP_H

#include <poll.h>

#include "base/clock.h"
#include "base/list.h"

#define TB_WATCH_MAX 160

struct tb_watch {
    struct mo_list node;
    struct tb_loop *loop; /* NULL: not started */
    int fd;
    short events; /* 0: not now */
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
/* Wait and call what is ready. MO_EIO when waiting itself fails. */
int tb_loop_round(struct tb_loop *l, struct mo_err *e);

void tb_watch_start(struct tb_loop *l, struct tb_watch *w, int fd, short events,
                    void (*ready)(struct tb_watch *w));
void tb_watch_stop(struct tb_watch *w); /* also when not started */

/* start again: the time is moved. */
void tb_timer_init(struct tb_timer *t, void (*fire)(struct tb_timer *t));
void tb_timer_start(struct tb_loop *l, struct tb_timer *t, uint64_t ns);
void tb_timer_stop(struct tb_timer *t);

void tb_idle_init(struct tb_idle *i, void (*step)(struct tb_idle *i));
void tb_idle_start(struct tb_loop *l, struct tb_idle *i);
void tb_idle_stop(struct tb_idle *i);

#endif
