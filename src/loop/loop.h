/* loop.h - the event loop, its timers and its deferred calls.
 *
 * One thread, one loop. Other rooms see neither libuv nor epoll: they use
 * streams (stream.h), timers and deferred calls.
 *
 * Timers are our own: an intrusive pairing heap behind a single uv_timer.
 * Starting one cannot fail. Stopping one takes effect at once and needs no
 * close callback, so a timer can live in any struct and be freed with it.
 *
 * A callback never fires from inside the call that requested it. Code that has
 * a result at once uses mo_loop_defer(). */
#ifndef MO_LOOP_LOOP_H
#define MO_LOOP_LOOP_H

#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"

struct mo_loop;

struct mo_loop *mo_loop_new(struct mo_log *log, struct mo_err *e);
/* Everything opened on the loop must be closed before. */
void mo_loop_free(struct mo_loop *l);

void mo_loop_run(struct mo_loop *l);  /* until idle or stopped */
void mo_loop_stop(struct mo_loop *l); /* run() returns after this iteration */
/* Run until pred(ctx) or the deadline; true if pred. For tests and shutdown. */
bool mo_loop_until(struct mo_loop *l, bool (*pred)(void *ctx), void *ctx,
                   uint64_t timeout_ms);

const struct mo_log *mo_loop_log(const struct mo_loop *l);
/* Hide a text in the log from now on, as mo_log_secret() does. */
int mo_loop_secret(struct mo_loop *l, struct mo_span secret);
/* ... and as mo_log_secret_renew(). */
int mo_loop_secret_renew(struct mo_loop *l, struct mo_log_renewed *r,
                         struct mo_span secret);
/* Hide all of those in a message that is shown elsewhere. */
void mo_loop_blank(const struct mo_loop *l, struct mo_err *e);
uint64_t mo_loop_now(const struct mo_loop *l); /* ns, cached per iteration */

/* The tracer of what runs on this loop (trace/trace.h); NULL: tracing is off.
 * Borrowed. */
struct mo_tracer;
struct mo_tracer *mo_loop_tracer(const struct mo_loop *l);
void mo_loop_set_tracer(struct mo_loop *l, struct mo_tracer *t);

/* The callback of an object that has ended, if its owner wants one. */
struct mo_gone {
    void (*fire)(void *ctx);
    void *ctx;
};

static inline void mo_gone_fire(struct mo_gone g)
{
    if (g.fire)
        g.fire(g.ctx);
}

/* --- timers -------------------------------------------------------------- */

struct mo_timer {
    void (*fire)(struct mo_timer *t);
    uint64_t at;                          /* ns; 0: not running */
    struct mo_timer *child, *next, *prev; /* heap links */
};

static inline void mo_timer_init(struct mo_timer *t,
                                 void (*fire)(struct mo_timer *))
{
    *t = (struct mo_timer){.fire = fire};
}

static inline bool mo_timer_on(const struct mo_timer *t)
{
    return t->at != 0;
}

/* (Re)start to fire once, ms from now. Never fires inside this call. */
void mo_timer_start(struct mo_loop *l, struct mo_timer *t, uint64_t ms);
void mo_timer_stop(struct mo_loop *l, struct mo_timer *t);

/* --- deferred calls: run before the loop waits again --------------------- */

struct mo_later {
    struct mo_list node;
    void (*fire)(struct mo_later *d);
};

static inline void mo_later_init(struct mo_later *d,
                                 void (*fire)(struct mo_later *))
{
    mo_list_init(&d->node);
    d->fire = fire;
}

void mo_loop_defer(struct mo_loop *l, struct mo_later *d); /* at most once */
/* Like mo_loop_defer(), but without another iteration: runs after the events
 * that arrived together. Use it to collect bytes to send or writes to group. */
void mo_loop_soon(struct mo_loop *l, struct mo_later *d);
void mo_later_cancel(struct mo_later *d);

/* --- signals ------------------------------------------------------------- */

struct mo_signal;
struct mo_signal *mo_signal_start(struct mo_loop *l, int signo,
                                  void (*fire)(void *ctx, int signo), void *ctx,
                                  struct mo_err *e);
void mo_signal_stop(struct mo_signal *s); /* freed later, by itself */

/* --- statistics for /metrics and leak checks ----------------------------- */

struct mo_loop_stats {
    unsigned streams; /* open now */
    unsigned timers;
    uint64_t turns;
};
struct mo_loop_stats mo_loop_stats(const struct mo_loop *l);

#endif
