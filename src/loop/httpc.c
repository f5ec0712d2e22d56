/* httpc.c - the client: libcurl's multi handle on the event loop.
 *
 * libcurl tells which sockets to watch and when to call it next; each watched
 * socket has its own uv_poll. If a socket cannot be watched (no memory, no
 * descriptor), its request would hang. The whole multi handle is then marked
 * broken: its requests fail, and the next request creates a new one. */
#include "loop/httpc.h"

#include "loop/httpc_priv.h"
#include "loop/standalone.h"

#define ACTIVE_DEFAULT  64u
#define WAITING_DEFAULT 256u
#define KEPT_MAX        16L /* idle connections in libcurl's cache */

static void check_done(struct mo_httpc *c);

/* --- sockets and timer --------------------------------------------------- */

struct poll {
    uv_poll_t h;
    struct mo_list node;
    struct mo_httpc *c;
    curl_socket_t fd;
};

static void socket_action(struct mo_httpc *c, curl_socket_t fd, int what)
{
    int running;

    (void)c->f.curl_multi_socket_action(c->multi, fd, what, &running);
    check_done(c);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct poll *p = h->data;
    int what = status < 0 ? CURL_CSELECT_ERR : 0;

    if (events & UV_READABLE)
        what |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        what |= CURL_CSELECT_OUT;
    socket_action(p->c, p->fd, what);
}

static void on_timer(struct mo_timer *t)
{
    socket_action(mo_container_of(t, struct mo_httpc, timer),
                  CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *m, long ms, void *ctx)
{
    struct mo_httpc *c = ctx;

    (void)m;
    if (ms < 0)
        mo_timer_stop(c->loop, &c->timer);
    else
        mo_timer_start(c->loop, &c->timer, (uint64_t)ms);
    return 0;
}

static void poll_gone(uv_handle_t *h)
{
    struct poll *p = h->data;
    struct mo_httpc *c = p->c;

    mo_free(p);
    c->npolls--;
    mo_loop_defer(c->loop, &c->later);
}

static void poll_close(struct poll *p)
{
    mo_list_del(&p->node);
    (void)uv_poll_stop(&p->h);
    uv_close((uv_handle_t *)&p->h, poll_gone);
}

static struct poll *poll_new(struct mo_httpc *c, curl_socket_t fd)
{
    struct poll *p = mo_new(struct poll);

    if (!p)
        return NULL;
    if (uv_poll_init_socket(&c->loop->uv, &p->h, fd) < 0) {
        mo_free(p);
        return NULL;
    }
    p->c = c;
    p->fd = fd;
    p->h.data = p;
    c->npolls++;
    mo_list_push(&c->polls, &p->node);
    (void)c->f.curl_multi_assign(c->multi, fd, p);
    return p;
}

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *ctx,
                        void *known)
{
    struct mo_httpc *c = ctx;
    struct poll *p = known;
    int events = 0;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (p)
            poll_close(p);
        return 0;
    }
    if (!p)
        p = poll_new(c, fd);
    if (what & CURL_POLL_IN)
        events |= UV_READABLE;
    if (what & CURL_POLL_OUT)
        events |= UV_WRITABLE;
    if (p && uv_poll_start(&p->h, events, on_poll) == 0)
        return 0;
    c->broken = true;
    mo_loop_defer(c->loop, &c->later);
    return 0;
}

/* --- the library --------------------------------------------------------- */

static int load_curl(struct mo_httpc *c, struct mo_err *e)
{
#define ROW(fn) MO_DSO_SYM(struct mo_curl, fn),
    static const struct mo_dso_sym syms[] = {MO_CURL_FUNCTIONS(ROW)};
#undef ROW

    if (c->loaded)
        return 0;
    if (mo_dso_load("libcurl.so.4", "libcurl4", syms, MO_COUNT(syms), &c->f,
                    e) < 0)
        return mo_wrap(e, "HTTPS client");
    if (c->f.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return mo_fail(e, MO_EUNAVAIL, "HTTPS client: libcurl failed to start");
    c->loaded = true;
    return 0;
}

static int multi_open(struct mo_httpc *c, struct mo_err *e)
{
    if (c->multi)
        return 0;
    if (load_curl(c, e) < 0)
        return e ? e->code : MO_EUNAVAIL;
    c->multi = c->f.curl_multi_init();
    if (!c->multi)
        return mo_fail(e, MO_ENOMEM, "HTTPS client");
    (void)c->f.curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION,
                                 watch_socket);
    (void)c->f.curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    (void)c->f.curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    (void)c->f.curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    (void)c->f.curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, KEPT_MAX);
    return 0;
}

/* No request is in it any more. */
static void multi_close(struct mo_httpc *c)
{
    if (!c->multi)
        return;
    (void)c->f.curl_multi_cleanup(c->multi);
    c->multi = NULL;
    mo_timer_stop(c->loop, &c->timer);
    mo_list_each_safe (n, &c->polls)
        poll_close(mo_container_of(n, struct poll, node));
}

/* --- requests ------------------------------------------------------------ */

static void check_done(struct mo_httpc *c)
{
    CURLMsg *m;
    int left;

    for (m = c->f.curl_multi_info_read(c->multi, &left); m;
         m = c->f.curl_multi_info_read(c->multi, &left)) {
        char *x = NULL;

        if (m->msg != CURLMSG_DONE)
            continue;
        (void)c->f.curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &x);
        mo_httpc_x_verdict((struct mo_httpc_x *)(void *)x, m->data.result);
    }
}

static void on_x_later(struct mo_later *d)
{
    struct mo_httpc_x *x = mo_container_of(d, struct mo_httpc_x, later);
    struct mo_httpc *c = x->c;

    if (x->running) {
        (void)c->f.curl_multi_remove_handle(c->multi, x->easy);
        c->nactive--;
    }
    mo_list_del(&x->node);
    x->cb->on_done(x->ctx, x->err.code ? &x->err : NULL);
    mo_httpc_x_free(x);
    mo_loop_defer(c->loop, &c->later);
}

/* Added requests start at once: libcurl asks for a timer of 0 ms. */
static void start_waiting(struct mo_httpc *c)
{
    bool added = false;

    while (!mo_list_empty(&c->waiting) && c->nactive < c->max_active) {
        struct mo_httpc_x *x =
            mo_container_of(c->waiting.next, struct mo_httpc_x, node);
        struct mo_err e;

        mo_list_del(&x->node);
        mo_list_push(&c->busy, &x->node);
        c->nwaiting--;
        mo_httpc_x_move(x, HX_RUNNING);
        if (x->barred) {
            mo_httpc_x_bar(x);
            continue;
        }
        if (multi_open(c, &e) < 0) {
            mo_httpc_x_end(x, &e);
            continue;
        }
        mo_httpc_x_idle_start(x);
        if (c->f.curl_multi_add_handle(c->multi, x->easy) != CURLM_OK) {
            mo_httpc_x_end(x, mo_error(MO_ENOMEM, "request to %s", x->origin));
            continue;
        }
        x->running = true;
        c->nactive++;
        added = true;
    }
    if (added)
        socket_action(c, CURL_SOCKET_TIMEOUT, 0);
}

static void fail_all(struct mo_httpc *c)
{
    mo_list_each_entry_safe (x, &c->busy, struct mo_httpc_x, node) {
        mo_httpc_x_end(x, mo_error(MO_ENOMEM,
                                   "request to %s: no memory or descriptor",
                                   x->origin));
    }
}

int mo_httpc_start(struct mo_httpc *c, const struct mo_http_call *call,
                   const struct mo_http_cb *cb, void *ctx,
                   struct mo_httpc_x **out, struct mo_err *e)
{
    struct mo_httpc_x *x;

    if (c->closing)
        return mo_fail(e, MO_ECLOSED, "HTTPS client is closing");
    if (c->nwaiting >= c->max_waiting)
        return mo_fail(e, MO_EBUSY, "too many HTTPS requests are waiting");
    if (load_curl(c, e) < 0)
        return e ? e->code : MO_EUNAVAIL;
    x = mo_httpc_x_new(c, call, e);
    if (!x)
        return e ? e->code : MO_EINVAL;
    x->cb = cb;
    x->ctx = ctx;
    mo_later_init(&x->later, on_x_later);
    c->nwaiting++;
    mo_list_push(&c->waiting, &x->node);
    if (call->total_ms)
        mo_timer_start(c->loop, &x->total, call->total_ms);
    mo_loop_soon(c->loop, &c->later);
    *out = x;
    return 0;
}

/* --- the client ---------------------------------------------------------- */

static void on_later(struct mo_later *d)
{
    struct mo_httpc *c = mo_container_of(d, struct mo_httpc, later);
    struct mo_gone gone = c->gone;

    if (c->broken)
        fail_all(c);
    if (c->nactive == 0 && (c->broken || c->closing)) {
        multi_close(c);
        c->broken = false;
    }
    if (!c->closing) {
        if (!c->broken)
            start_waiting(c);
        return;
    }
    if (!mo_list_empty(&c->busy) || c->npolls)
        return;
    if (c->loaded)
        c->f.curl_global_cleanup();
    mo_free(c->ca);
    mo_free(c);
    mo_gone_fire(gone);
}

struct mo_httpc *mo_httpc_new(struct mo_loop *l, const struct mo_httpc_opts *o,
                              struct mo_err *e)
{
    struct mo_httpc *c = mo_new(struct mo_httpc);
    const char *ca = o->ca ? o->ca : mo_standalone_ca();

    if (c && ca)
        c->ca = mo_strndup(ca, strlen(ca));
    if (!c || (ca && !c->ca)) {
        mo_free(c);
        return mo_null(mo_fail(e, MO_ENOMEM, "HTTPS client"));
    }
    c->loop = l;
    c->gzip = o->gzip;
    c->max_active = o->active ? o->active : ACTIVE_DEFAULT;
    c->max_waiting = o->waiting ? o->waiting : WAITING_DEFAULT;
    mo_list_init(&c->waiting);
    mo_list_init(&c->busy);
    mo_list_init(&c->polls);
    mo_timer_init(&c->timer, on_timer);
    mo_later_init(&c->later, on_later);
    return c;
}

void mo_httpc_close(struct mo_httpc *c, void (*gone)(void *ctx), void *ctx)
{
    MO_BUG_ON(c->closing);
    c->closing = true;
    c->gone = (struct mo_gone){gone, ctx};
    /* First those that wait: they become busy. */
    mo_list_each_entry_safe (x, &c->waiting, struct mo_httpc_x, node)
        mo_httpc_cancel(x);
    mo_list_each_entry_safe (x, &c->busy, struct mo_httpc_x, node)
        mo_httpc_cancel(x);
    mo_loop_defer(c->loop, &c->later);
}
