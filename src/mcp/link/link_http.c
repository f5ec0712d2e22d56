/* link_http.c - the link: order of messages, the gate, closing.
 *
 * Exchanges are in link_http_x.c. on_later() frees the link when it is closing
 * and the last exchange is gone. */
#include <stdio.h>

#include "mcp/era.h"
#include "mcp/link/link_http_priv.h"

/* --- the gate and the GET stream ----------------------------------------- */

static void start_listening(struct http *h)
{
    struct xchg *x;
    struct mo_err e;

    if (h->k.closing || !h->open || h->listening)
        return;
    x = mo_link_http_x_new(h, LISTEN, 0);
    if (!x)
        return; /* best effort: only the server's own messages are lost */
    h->listening = true;
    if (mo_link_http_build_get(x) < 0 || mo_link_http_x_run(x, &e) < 0)
        mo_link_http_x_drop(x);
}

void mo_link_http_open_gate(struct http *h)
{
    h->gate = NULL;
    if (h->k.closing)
        return;
    start_listening(h);
    mo_loop_defer(h->loop, &h->later);
}

/* Send the messages that waited for the gate. mo_link_http_x_fail() may free
 * other exchanges, so the search restarts each time. */
static void release_waiting(struct http *h)
{
    struct mo_err e;
    bool again = true;

    while (again && !h->gate && !h->k.closing) {
        again = false;
        mo_list_each_entry (x, &h->xs, struct xchg, node) {
            if (x->state != WAITING)
                continue;
            if (mo_link_http_x_run(x, &e) < 0)
                mo_link_http_x_fail(x, &e);
            again = true;
            break;
        }
    }
}

/* --- the link's side ----------------------------------------------------- */

static int http_send(struct mo_link *k, const struct mo_link_msg *m)
{
    struct http *h = mo_container_of(k, struct http, k);
    bool gate = h->gate_next && !m->id;
    struct xchg *x;
    struct mo_err e;
    int rc;

    if (m->id ? h->nstreams >= h->o.streams : h->nextra >= MO_LINK_HTTP_EXTRA)
        return MO_EBUSY;
    if (m->text.n > h->o.message_max)
        return MO_ETOOBIG;
    x = mo_link_http_x_new(h, POST, m->id);
    if (!x)
        return MO_ENOMEM;
    x->modern = m->modern;
    rc = mo_link_http_build_post(x, m);
    if (rc == 0 && !h->gate)
        rc = mo_link_http_x_run(x, &e);
    if (rc < 0) {
        mo_link_http_x_drop(x);
        return rc;
    }
    if (gate) {
        h->gate_next = false;
        h->gate = x;
    }
    return 0;
}

static void http_forget(struct mo_link *k, uint64_t id)
{
    struct http *h = mo_container_of(k, struct http, k);

    mo_list_each_entry (x, &h->xs, struct xchg, node) {
        if (x->id != id || !id || x->quiet)
            continue;
        if (!x->answered) /* else its connection can be reused */
            mo_link_http_x_stop(x);
        return;
    }
}

static void http_opened(struct mo_link *k, const char *version)
{
    struct http *h = mo_container_of(k, struct http, k);

    if (mo_mcp_text_is_modern(mo_span_cstr(version)))
        return;
    (void)snprintf(h->version, sizeof(h->version), "%s", version);
    h->open = true;
    h->gate_next = true;
}

static void send_delete(struct http *h)
{
    struct xchg *x = mo_link_http_x_new(h, BYE, 0);
    struct mo_err e;

    if (x && (mo_link_http_build_bare(x, h->version) < 0 ||
              mo_link_http_x_run(x, &e) < 0))
        mo_link_http_x_drop(x);
}

static void http_close(struct mo_link *k)
{
    struct http *h = mo_container_of(k, struct http, k);

    mo_list_each_safe (n, &h->xs)
        mo_link_http_x_stop(mo_container_of(n, struct xchg, node));
    if (h->session[0])
        send_delete(h);
    mo_loop_defer(h->loop, &h->later);
}

static void on_later(struct mo_later *d)
{
    struct http *h = mo_container_of(d, struct http, later);

    if (!h->k.closing) {
        release_waiting(h);
    } else if (mo_list_empty(&h->xs)) {
        mo_buf_fini(&h->challenge);
        mo_arena_fini(&h->a);
        mo_link_gone(&h->k);
    }
}

static const struct mo_link_ops http_ops = {
    .send = http_send,
    .forget = http_forget,
    .opened = http_opened,
    .close = http_close,
    .http = true,
};

/* --- making one ---------------------------------------------------------- */

int mo_link_http(struct mo_loop *l, const struct mo_link_http_opts *o,
                 struct mo_link **out, struct mo_err *e)
{
    struct http *h = mo_new(struct http);
    int rc = 0;

    if (!h)
        return mo_fail(e, MO_ENOMEM, "link");
    h->k.ops = &http_ops;
    h->loop = l;
    mo_budget_init(&h->budget, mo_loop_now(l));
    mo_list_init(&h->xs);
    mo_later_init(&h->later, on_later);
    mo_buf_init(&h->challenge, MO_LINK_HTTP_CHALLENGE);
    mo_arena_init(&h->a, 8 * MO_HTTP_HEAD_MAX);
    if (o->nheaders > MO_LINK_HTTP_OWN_MAX)
        rc = MO_EBUSY;
    else if (!mo_link_http_copy_opts(o, &h->a, &h->o))
        rc = MO_ENOMEM;
    if (rc < 0) {
        mo_arena_fini(&h->a);
        mo_free(h);
        return mo_fail(e, rc, "link to an HTTP server");
    }
    *out = &h->k;
    return 0;
}
