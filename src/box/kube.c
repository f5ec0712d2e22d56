/* kube.c - the kubernetes driver: the cluster, the policy of all boxes, the
 * watch of their pods. */
#include <stdio.h>

#include "box/kube_priv.h"

#define POLICIES "/apis/networking.k8s.io/v1/namespaces/%s/networkpolicies"

/* --- who waits for the cluster ------------------------------------------- */

static void run_waiting(struct kb *d, const struct mo_err *why)
{
    struct mo_list now;

    mo_list_init(&now);
    mo_list_splice(&now, &d->waiting);
    mo_list_drain (w, &now, struct kb_wait, node)
        w->go(w, why);
}

/* --- its pods ------------------------------------------------------------ */

static void on_pod(void *ctx, struct mo_json pod, bool deleted)
{
    struct kb *d = ctx;
    struct mo_pod_state s;

    if (mo_pod_read(pod, &s, NULL) < 0)
        return;
    mo_list_each_entry_safe (b, &d->bs.boxes, struct kb_box, b.node) {
        if (strcmp(b->name, s.name) != 0)
            continue;
        if (mo_kbox_is_other(b, &s))
            b->state.deleting = true; /* ours is gone */
        else
            b->state = s;
        b->state.deleting |= deleted;
        b->listed = b->seen = true;
        mo_kbox_news(b);
    }
}

static void on_list(void *ctx)
{
    struct kb *d = ctx;

    mo_list_each_entry (b, &d->bs.boxes, struct kb_box, b.node)
        b->listed = false;
}

/* A box whose pod was not told must ask: it may be newer than the list. */
static void on_listed(void *ctx)
{
    struct kb *d = ctx;

    mo_list_each_entry_safe (b, &d->bs.boxes, struct kb_box, b.node) {
        if (b->listed)
            continue;
        b->doubt = true;
        mo_kbox_news(b);
    }
    d->lost = false;
    run_waiting(d, NULL);
}

static void on_lost(void *ctx, const struct mo_err *why)
{
    struct kb *d = ctx;

    if (!d->lost)
        mo_log_err(mo_loop_log(d->bs.loop), MO_WARN, "box", why,
                   "the pods of %s cannot be watched", d->ns);
    d->lost = true;
    run_waiting(d, why);
}

static const struct mo_pods_cb pods_cb = {on_pod, on_list, on_listed, on_lost};

static int start_watch(struct kb *d, struct mo_err *e)
{
    char selector[160];

    if (d->watch)
        return 0;
    (void)snprintf(selector, sizeof(selector),
                   "mo.role%%3Dbox%%2Cmo.store%%3D%s", d->store);
    return mo_pods_start(d->bs.loop, d->api, d->ns, selector, &pods_cb, d,
                         &d->watch, e);
}

/* --- the network policy -------------------------------------------------- */

static void watch_now(struct kb *d)
{
    struct mo_err e;

    if (start_watch(d, &e) < 0)
        run_waiting(d, &e);
    else if (mo_pods_is_up(d->watch))
        run_waiting(d, NULL);
}

static void take_policy(struct kb *d, struct mo_json policy)
{
    struct mo_err e;
    int rc = mo_pod_policy_compare(policy, &e);

    if (rc == 0 &&
        mo_json_str_copy(mo_json_get(mo_json_get(policy, "metadata"), "uid"),
                         d->policy_uid, sizeof(d->policy_uid)) < 0)
        rc = mo_fail(&e, MO_EPROTO, "the cluster's account of a NetworkPolicy");
    d->policy_ok = rc == 0;
    if (rc < 0)
        run_waiting(d, &e);
    else
        watch_now(d);
}

static void on_policy(void *ctx, const struct mo_kube_reply *r,
                      const struct mo_err *why);

static int make_policy(struct kb *d, struct mo_err *e)
{
    char path[MO_KUBE_PATH_MAX];
    mo_autobuf struct mo_buf body = {.max = KB_BODY_MAX};
    struct mo_kube_req req = {.method = "POST", .path = path};

    (void)snprintf(path, sizeof(path), POLICIES, d->ns);
    if (mo_pod_policy_write(&body) < 0)
        return mo_fail(e, MO_ENOMEM, "NetworkPolicy");
    req.body = mo_buf_view(&body);
    return mo_kube_ask(d->api, &req, on_policy, d, &d->greeting, e);
}

static int ask_policy(struct kb *d, struct mo_err *e)
{
    char path[MO_KUBE_PATH_MAX];
    struct mo_kube_req req = {.path = path};

    (void)snprintf(path, sizeof(path), POLICIES "/" MO_POD_POLICY, d->ns);
    return mo_kube_ask(d->api, &req, on_policy, d, &d->greeting, e);
}

/* Of asking and of making. Another instance may be faster with either. */
static void on_policy(void *ctx, const struct mo_kube_reply *r,
                      const struct mo_err *why)
{
    struct kb *d = ctx;
    struct mo_err e;

    d->greeting = NULL;
    if (!why) {
        take_policy(d, r->json);
        return;
    }
    e = *why;
    if ((why->code == MO_ENOTFOUND && make_policy(d, &e) == 0) ||
        (why->code == MO_EEXISTS && ask_policy(d, &e) == 0))
        return;
    (void)mo_wrap(&e, "NetworkPolicy " MO_POD_POLICY);
    run_waiting(d, &e);
}

static void on_later(struct mo_later *l)
{
    struct kb *d = mo_container_of(l, struct kb, later);
    struct mo_err e;

    if (mo_list_empty(&d->waiting) || d->greeting)
        return;
    if (d->policy_ok)
        watch_now(d);
    else if (ask_policy(d, &e) < 0)
        run_waiting(d, &e);
}

void mo_kb_wait(struct kb *d, struct kb_wait *w)
{
    mo_list_push(&d->waiting, &w->node);
    mo_loop_defer(d->bs.loop, &d->later);
}

/* --- opening and closing ------------------------------------------------- */

static void free_driver(struct kb *d)
{
    mo_later_cancel(&d->later);
    mo_box_net_fini(&d->bs);
    mo_free(d->network);
    mo_free(d->instance);
    mo_free(d->ns);
    mo_free(d->image);
    mo_free(d->runtime_class);
    mo_free(d->node_selector);
    mo_free(d->pull_secret);
    mo_free(d->pull_policy);
    mo_free(d->storage_class);
    mo_free(d);
}

static void on_api_gone(void *ctx)
{
    struct kb *d = ctx;
    struct mo_gone gone = d->bs.gone;

    run_waiting(d, mo_error(MO_ECLOSED, "the driver is closing"));
    free_driver(d);
    mo_gone_fire(gone);
}

static void kb_close(struct mo_boxes *bs)
{
    struct kb *d = mo_kb_of(bs);

    if (d->watch)
        mo_pods_stop(d->watch);
    mo_timer_stop(d->bs.loop, &d->relabel);
    mo_kube_close(d->api, on_api_gone, d);
}

static const struct mo_box_ops ops = {
    .name = "kubernetes",
    .box_size = sizeof(struct kb_box),
    .start = mo_kbox_start,
    .adopt = mo_kbox_adopt,
    .stop = mo_kbox_stop,
    .let_go = mo_kbox_let_go,
    .claim = mo_kbox_claim,
    .stats = mo_kb_stats,
    .list = mo_kb_list,
    .remove = mo_kb_remove,
    .files = mo_kb_files,
    .forget = mo_kb_forget,
    .check = mo_kb_check,
    .close = kb_close,
};

static int open_api(struct kb *d, const struct mo_box_cluster *c,
                    struct mo_err *e)
{
    struct mo_kube_access a;

    if (mo_kube_access_open(c->kubeconfig, c->context, &a, e) < 0)
        return e->code;
    d->ns = mo_boxes_text(c->ns && *c->ns ? c->ns : a.ns);
    if (!d->ns || !mo_kube_is_label(mo_span_cstr(d->ns))) {
        mo_kube_access_fini(&a);
        return d->ns
                   ? mo_fail(e, MO_EINVAL, "namespace '%s' is not valid", d->ns)
                   : mo_fail(e, MO_ENOMEM, "kubernetes");
    }
    d->api = mo_kube_new(d->bs.loop, &a, e);
    return d->api ? 0 : e->code;
}

int mo_boxes_kubernetes(struct mo_loop *l, const struct mo_boxes_opts *o,
                        struct mo_boxes **out, struct mo_err *e)
{
    static const struct mo_box_cluster none = {.ns = NULL};
    const struct mo_box_cluster *c = o->cluster ? o->cluster : &none;
    struct kb *d = mo_new(struct kb);

    if (!d)
        return mo_fail(e, MO_ENOMEM, "kubernetes");
    mo_boxes_setup(&d->bs, l, &ops);
    mo_list_init(&d->waiting);
    mo_later_init(&d->later, on_later);
    mo_kb_label_setup(d);
    mo_kb_label(o->store, d->store);
    d->bs.network_way = "over a stream, from the pod's second container";
    mo_box_net_setup(&d->bs, o);
    d->network = mo_boxes_text(o->network);
    d->instance = mo_boxes_text(o->instance);
    d->image = mo_boxes_text(c->image);
    d->runtime_class = mo_boxes_text(c->runtime_class);
    d->node_selector = mo_boxes_text(c->node_selector);
    d->pull_secret = mo_boxes_text(c->pull_secret);
    d->pull_policy = mo_boxes_text(c->pull_policy);
    d->storage_class = mo_boxes_text(c->storage_class);
    d->claims = c->claims;
    if (!d->network || !d->instance || !d->image || !d->runtime_class ||
        !d->node_selector || !d->pull_secret || !d->pull_policy ||
        !d->storage_class) {
        free_driver(d);
        return mo_fail(e, MO_ENOMEM, "kubernetes");
    }
    if (open_api(d, c, e) < 0) {
        free_driver(d);
        return e->code;
    }
    *out = &d->bs;
    return 0;
}
