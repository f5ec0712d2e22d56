#include "loop/loop.h"

#include <signal.h>

#include "loop/priv.h"

#define SOON_ROUNDS  8  /* before the sockets are polled again */
#define LOG_FLUSH_MS 10 /* the longest that a line of the log waits */

int mo_fail_uv(struct mo_err *e, int uverr, const char *fmt, ...)
{
    int sys = uverr < 0 && uverr > -4096 ? -uverr : 0;
    va_list ap;

    va_start(ap, fmt);
    (void)mo_vfail(e, MO_EIO, sys, uv_strerror(uverr), fmt, ap);
    va_end(ap);
    return MO_EIO;
}

int mo_loop_watch(struct mo_loop *l, uv_poll_t *h, int fd, uv_poll_cb cb,
                  void *data)
{
    int rc = uv_poll_init(&l->uv, h, fd);

    if (rc == 0) {
        h->data = data;
        (void)uv_poll_start(h, UV_READABLE, cb);
    }
    return rc;
}

static void run_later(uv_idle_t *h);

/* Run only the calls that were in the list at the start, so a call that defers
 * itself again cannot starve the sockets. */
static void run_list(struct mo_list *list)
{
    struct mo_list now;

    mo_list_init(&now);
    mo_list_splice(&now, list);
    mo_list_drain (d, &now, struct mo_later, node) {
        d->fire(d);
    }
}

/* Also run calls added meanwhile: nothing may be left when the loop waits,
 * because nothing would wake it for them. */
static void run_soon(struct mo_loop *l)
{
    bool some = !mo_list_empty(&l->soon);

    for (int i = 0; i < SOON_ROUNDS && !mo_list_empty(&l->soon); i++)
        run_list(&l->soon);
    if (mo_list_empty(&l->soon))
        uv_unref((uv_handle_t *)&l->before);
    else
        (void)uv_idle_start(&l->spin, run_later);
    if (l->until && some)
        uv_stop(&l->uv);
}

static void flush_log(struct mo_timer *t)
{
    mo_log_flush(mo_container_of(t, struct mo_loop, log_flush)->log);
}

static void run_before(uv_prepare_t *h)
{
    struct mo_loop *l = h->data;

    run_soon(l);
    if (mo_log_has_collected(l->log) && !mo_timer_on(&l->log_flush))
        mo_timer_start(l, &l->log_flush, LOG_FLUSH_MS);
}

static void run_after(uv_check_t *h)
{
    run_soon(h->data);
}

static void run_later(uv_idle_t *h)
{
    struct mo_loop *l = h->data;

    l->stats.turns++;
    run_list(&l->later);
    if (mo_list_empty(&l->later) && mo_list_empty(&l->soon))
        (void)uv_idle_stop(&l->spin);
    if (l->until)
        uv_stop(&l->uv);
}

/* These calls cannot fail. */
static void init_handles(struct mo_loop *l)
{
    (void)uv_timer_init(&l->uv, &l->tick);
    (void)uv_idle_init(&l->uv, &l->spin);
    (void)uv_prepare_init(&l->uv, &l->before);
    (void)uv_check_init(&l->uv, &l->after);
    l->tick.data = l;
    l->spin.data = l;
    l->before.data = l;
    l->after.data = l;
    (void)uv_prepare_start(&l->before, run_before);
    (void)uv_check_start(&l->after, run_after);
    uv_unref((uv_handle_t *)&l->before);
    uv_unref((uv_handle_t *)&l->after);
}

struct mo_loop *mo_loop_new(struct mo_log *log, struct mo_err *e)
{
    struct mo_loop *l = mo_new(struct mo_loop);
    int rc;

    if (!l)
        goto nomem;
    l->read_buf = mo_alloc(MO_LOOP_READ_BUF);
    if (!l->read_buf)
        goto nomem;
    rc = uv_loop_init(&l->uv);
    if (rc < 0) {
        mo_free(l->read_buf);
        mo_free(l);
        return mo_null(mo_fail_uv(e, rc, "event loop"));
    }
    l->log = log;
    l->pipe[0] = l->pipe[1] = -1;
    mo_list_init(&l->later);
    mo_list_init(&l->soon);
    mo_timer_init(&l->log_flush, flush_log);
    init_handles(l);
    (void)signal(SIGPIPE, SIG_IGN);
    return l;
nomem:
    mo_free(l);
    return mo_null(mo_fail(e, MO_ENOMEM, "event loop"));
}

void mo_loop_free(struct mo_loop *l)
{
    if (!l)
        return;
    uv_close((uv_handle_t *)&l->tick, NULL);
    uv_close((uv_handle_t *)&l->spin, NULL);
    uv_close((uv_handle_t *)&l->before, NULL);
    uv_close((uv_handle_t *)&l->after, NULL);
    (void)uv_run(&l->uv, UV_RUN_DEFAULT);
    MO_BUG_ON(l->stats.streams != 0);
    MO_BUG_ON(uv_loop_close(&l->uv) != 0);
    mo_loop_drop_pipe(l);
    mo_free(l->read_buf);
    mo_free(l);
}

void mo_loop_run(struct mo_loop *l)
{
    (void)uv_run(&l->uv, UV_RUN_DEFAULT);
}

void mo_loop_stop(struct mo_loop *l)
{
    uv_stop(&l->uv);
}

struct deadline {
    struct mo_timer timer;
    bool passed;
};

static void on_deadline(struct mo_timer *t)
{
    mo_container_of(t, struct deadline, timer)->passed = true;
}

bool mo_loop_until(struct mo_loop *l, bool (*pred)(void *ctx), void *ctx,
                   uint64_t timeout_ms)
{
    struct deadline d = {.passed = false};

    mo_timer_init(&d.timer, on_deadline);
    mo_timer_start(l, &d.timer, timeout_ms);
    /* uv_run() runs timers and deferred calls first and then waits for a
     * socket. With `until` set they make it return, so that pred is checked. */
    l->until = true;
    while (!pred(ctx) && !d.passed)
        (void)uv_run(&l->uv, UV_RUN_ONCE);
    l->until = false;
    mo_timer_stop(l, &d.timer);
    return pred(ctx);
}

const struct mo_log *mo_loop_log(const struct mo_loop *l)
{
    return l->log;
}

struct mo_tracer *mo_loop_tracer(const struct mo_loop *l)
{
    return l->tracer;
}

void mo_loop_set_tracer(struct mo_loop *l, struct mo_tracer *t)
{
    l->tracer = t;
}

int mo_loop_secret(struct mo_loop *l, struct mo_span secret)
{
    return l->log ? mo_log_secret(l->log, secret) : 0;
}

int mo_loop_secret_renew(struct mo_loop *l, struct mo_log_renewed *r,
                         struct mo_span secret)
{
    return l->log ? mo_log_secret_renew(l->log, r, secret) : 0;
}

void mo_loop_blank(const struct mo_loop *l, struct mo_err *e)
{
    for (size_t i = 0; l->log && i < l->log->nsecrets; i++)
        mo_log_blank(e->msg, mo_span_cstr(l->log->secrets[i]));
}

uint64_t mo_loop_now(const struct mo_loop *l)
{
    return uv_now(&l->uv) * MO_MS;
}

void mo_loop_defer(struct mo_loop *l, struct mo_later *d)
{
    if (!mo_list_empty(&d->node))
        return;
    mo_list_push(&l->later, &d->node);
    (void)uv_idle_start(&l->spin, run_later);
}

void mo_loop_soon(struct mo_loop *l, struct mo_later *d)
{
    if (!mo_list_empty(&d->node))
        return;
    mo_list_push(&l->soon, &d->node);
    uv_ref((uv_handle_t *)&l->before); /* the loop does not end before it ran */
}

void mo_later_cancel(struct mo_later *d)
{
    mo_list_del(&d->node);
}

struct mo_loop_stats mo_loop_stats(const struct mo_loop *l)
{
    return l->stats;
}

struct mo_signal {
    uv_signal_t h;
    void (*fire)(void *ctx, int signo);
    void *ctx;
};

static void on_signal(uv_signal_t *h, int signo)
{
    struct mo_signal *s = h->data;

    s->fire(s->ctx, signo);
}

static void signal_gone(uv_handle_t *h)
{
    mo_free(h->data);
}

struct mo_signal *mo_signal_start(struct mo_loop *l, int signo,
                                  void (*fire)(void *ctx, int signo), void *ctx,
                                  struct mo_err *e)
{
    struct mo_signal *s = mo_new(struct mo_signal);
    int rc;

    if (!s)
        return mo_null(mo_fail(e, MO_ENOMEM, "signal handler"));
    s->fire = fire;
    s->ctx = ctx;
    s->h.data = s;
    rc = uv_signal_init(&l->uv, &s->h);
    if (rc < 0) {
        mo_free(s);
        return mo_null(mo_fail_uv(e, rc, "signal handler"));
    }
    rc = uv_signal_start(&s->h, on_signal, signo);
    if (rc < 0) {
        (void)mo_fail_uv(e, rc, "signal %d", signo);
        uv_close((uv_handle_t *)&s->h, signal_gone);
        return NULL;
    }
    uv_unref((uv_handle_t *)&s->h);
    return s;
}

void mo_signal_stop(struct mo_signal *s)
{
    if (!s)
        return;
    uv_close((uv_handle_t *)&s->h, signal_gone);
}
