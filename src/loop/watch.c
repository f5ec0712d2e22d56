#include "loop/watch.h"

#include "loop/priv.h"

struct mo_watch {
    uv_poll_t h;
    int fd;
    void (*fire)(void *ctx, int fd);
    void *ctx;
};

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct mo_watch *w = h->data;

    (void)status; /* an error shows when it is read */
    (void)events;
    w->fire(w->ctx, w->fd);
}

int mo_watch_open(struct mo_loop *l, int fd, void (*fire)(void *ctx, int fd),
                  void *ctx, struct mo_watch **out, struct mo_err *e)
{
    mo_autofd int own = fd;
    struct mo_watch *w = mo_new(struct mo_watch);
    int rc;

    if (!w)
        return mo_fail(e, MO_ENOMEM, "watch");
    rc = mo_loop_watch(l, &w->h, own, on_poll, w);
    if (rc < 0) {
        mo_free(w);
        return mo_fail_uv(e, rc, "watch");
    }
    w->fd = mo_take_fd(&own);
    w->fire = fire;
    w->ctx = ctx;
    *out = w;
    return 0;
}

void mo_watch_pause(struct mo_watch *w, bool paused)
{
    if (paused)
        (void)uv_poll_stop(&w->h);
    else
        (void)uv_poll_start(&w->h, UV_READABLE, on_poll);
}

static void on_closed(uv_handle_t *h)
{
    mo_free(h->data);
}

void mo_watch_close(struct mo_watch *w)
{
    if (!w)
        return;
    uv_close((uv_handle_t *)&w->h, on_closed); /* takes it out of epoll */
    mo_close_fd(&w->fd);
}
