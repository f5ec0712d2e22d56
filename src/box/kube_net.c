/* kube_net.c - the network of a kubernetes box.
 *
 * A pod with a network has a second container of our image. When both run, the
 * relay of launcher/pod_net.h is started in it by `exec`, and carries the box's
 * connections over its stdin and stdout (net_stream.h). They are decided about
 * here, as those of any box. The box is attached to after that, so a program of
 * our image finds its network when it starts.
 *
 * `exec`, because kubelets write the output of a container's own program to a
 * file of their node. The relay ends with its connection: an adopted box gets a
 * new one, and so does a box whose connection breaks, a few times. */
#include <stdio.h>

#include "box/kube_priv.h"

#define WAIT_MS   30000 /* for the relay to answer */
#define AGAIN_MS  300   /* until it is started again */
#define TRIES_MAX 20

/* A request to start the relay; may outlive the box. */
struct kb_exec {
    struct kb_box *b; /* NULL: it has let go */
    struct mo_kube_call *call;
};

static void start_relay(struct kb_box *b);

/* --- the end ------------------------------------------------------------- */

static void drop_stream(struct kb_net *x)
{
    mo_net_stream_close(mo_take_ptr(&x->stream));
    if (x->exec) {
        struct kb_exec *r = mo_take_ptr(&x->exec);

        r->b = NULL;
        mo_kube_cancel(r->call);
    }
}

static void on_relay_gone(void *ctx)
{
    struct kb_box *b = ctx;

    drop_stream(&b->net);
    mo_kbox_net_gone(b);
}

void mo_kbox_net_end(struct kb_box *b)
{
    struct kb_net *x = &b->net;

    x->waiting = false;
    x->ending = true;
    mo_timer_stop(mo_kb_of_box(b)->bs.loop, &x->timer);
    if (!mo_box_net_close(&x->net, on_relay_gone, b))
        on_relay_gone(b);
}

/* --- failures ------------------------------------------------------------ */

static void on_again(struct mo_timer *t)
{
    start_relay(mo_container_of(t, struct kb_box, net.timer));
}

static void try_again(struct kb_box *b)
{
    mo_timer_init(&b->net.timer, on_again);
    mo_timer_start(mo_kb_of_box(b)->bs.loop, &b->net.timer, AGAIN_MS);
}

static bool is_passing(const struct mo_err *why)
{
    return why->code == MO_EUNAVAIL || why->code == MO_ECLOSED ||
           why->code == MO_EIO;
}

static void fail_waiting(struct kb_box *b, const struct mo_err *why)
{
    struct kb_net *x = &b->net;
    struct mo_err e = *why;

    if (is_passing(why) && mo_now_ns() - x->since < WAIT_MS * MO_MS) {
        try_again(b);
        return;
    }
    x->waiting = false;
    (void)mo_wrap(&e, "network");
    if (b->adopted && why->code == MO_EUNAVAIL)
        mo_kbox_engine_gone(b, &e);
    else
        mo_kbox_give_up(b, &e);
}

/* While the box starts, or runs. */
static void handle_failure(struct kb_box *b, const struct mo_err *why)
{
    struct kb_net *x = &b->net;

    mo_timer_stop(mo_kb_of_box(b)->bs.loop, &x->timer);
    if (x->waiting) {
        fail_waiting(b, why);
    } else if (x->ending || b->step >= KB_REMOVING) {
        return;
    } else if (why->code == MO_EPROTO || x->tries++ == TRIES_MAX) {
        mo_log_err(mo_loop_log(mo_kb_of_box(b)->bs.loop), MO_WARN, "box", why,
                   "box %s has lost its network", b->name);
    } else {
        try_again(b);
    }
}

/* --- the relay ----------------------------------------------------------- */

static void finish_waiting(struct kb_box *b)
{
    struct kb_net *x = &b->net;
    struct mo_err e;

    mo_timer_stop(mo_kb_of_box(b)->bs.loop, &x->timer);
    x->waiting = false;
    if (mo_box_net_open_far(&x->net, b->name, b->spec.session, false, true,
                            &e) < 0)
        mo_kbox_give_up(b, &e);
    else
        mo_kbox_attach(b);
}

static void on_ready(void *ctx, bool v6)
{
    struct kb_box *b = ctx;
    struct kb_net *x = &b->net;
    struct mo_err e;

    (void)v6; /* a pod has none */
    x->tries = 0;
    if (!x->waiting)
        return;
    if (!x->files || b->adopted) {
        finish_waiting(b);
    } else if (mo_net_stream_send_files(x->stream, false, &e) < 0) {
        drop_stream(x);
        handle_failure(b, &e);
    }
}

static void on_filled(void *ctx)
{
    struct kb_box *b = ctx;

    if (b->net.waiting)
        finish_waiting(b);
}

static void on_end(void *ctx, const struct mo_err *why)
{
    struct kb_box *b = ctx;

    b->net.stream = NULL;
    handle_failure(b, why);
}

static const struct mo_net_stream_cb stream_cb = {on_ready, on_filled, on_end};

static void on_late(struct mo_timer *t)
{
    struct kb_box *b = mo_container_of(t, struct kb_box, net.timer);

    drop_stream(&b->net);
    handle_failure(b, mo_error(MO_ETIMEOUT, "its relay does not answer"));
}

static void on_exec(void *ctx, struct mo_stream *s, struct mo_span early,
                    enum mo_split_wire wire, const struct mo_err *why)
{
    struct kb_exec *r = ctx;
    struct kb_box *b = r->b;
    struct mo_err e;
    int rc = why ? why->code : 0;

    mo_free(r);
    if (!b) {
        if (s)
            mo_stream_close(s, NULL);
        return;
    }
    b->net.exec = NULL;
    if (why)
        e = *why;
    else
        rc = mo_net_stream_open(&b->net.net, s, wire, early, &stream_cb, b,
                                &b->net.stream, &e);
    if (rc < 0) {
        handle_failure(b, &e);
        return;
    }
    mo_timer_init(&b->net.timer, on_late);
    if (b->net.waiting)
        mo_timer_start(mo_kb_of_box(b)->bs.loop, &b->net.timer, WAIT_MS);
}

static int ask_exec(struct kb_box *b, struct mo_err *e)
{
    struct kb *d = mo_kb_of_box(b);
    struct kb_exec *r = mo_new(struct kb_exec);
    char path[MO_KUBE_PATH_MAX];
    int rc;

    if (!r)
        return mo_fail(e, MO_ENOMEM, "network");
    r->b = b;
    (void)snprintf(path, sizeof(path),
                   "/api/v1/namespaces/%s/pods/%s/exec?container=" MO_POD_NET
                   "&stdin=1&stdout=1&stderr=1&command=/mo-box"
                   "&command=--relay&command=%s%s",
                   d->ns, b->name, b->net.ports,
                   b->net.files ? "&command=" MO_POD_FILES : "");
    rc = mo_kube_attach(d->api, path, on_exec, r, &r->call, e);
    if (rc < 0)
        mo_free(r);
    else
        b->net.exec = r;
    return rc;
}

static void start_relay(struct kb_box *b)
{
    struct mo_err e;

    if (ask_exec(b, &e) < 0)
        handle_failure(b, &e);
}

void mo_kbox_net_start(struct kb_box *b)
{
    mo_kbox_move(b, KB_NETWORK);
    b->net.waiting = true;
    b->net.since = mo_now_ns();
    start_relay(b);
}

/* --- what a box is to have ------------------------------------------------ */

/* Programs reach names: no address but the loopback's can be ours. */
static int check_rules(const struct mo_egress_policy *p, struct mo_err *e)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct mo_egress_rule *r = &p->rules[i];

        if (r->kind == MO_EGRESS_ADDRESS)
            return mo_fail(e, MO_EINVAL,
                           "network: '%s': a pod reaches hosts by name only: "
                           "write NAME=%s",
                           r->text, r->text);
    }
    return 0;
}

int mo_kbox_net_want(struct kb_box *b, const struct mo_box_spec *spec,
                     struct mo_err *e)
{
    struct kb *d = mo_kb_of_box(b);
    struct kb_net *x = &b->net;
    int rc = mo_box_net_ports(spec->network, x->ports, e);

    if (rc == 0)
        rc = mo_box_net_want(&x->net, spec->network, e);
    if (rc == 0 && !x->ports[0])
        return 0;
    if (rc == 0 && d->no_exec)
        rc = mo_fail(e, MO_EINVAL,
                     "network: needs the right to exec in pods: see "
                     "docs/kubernetes.md");
    else if (rc == 0 && !d->image[0])
        rc = mo_fail(e, MO_EINVAL, "network: set 'sandbox.kubernetes.image'");
    else if (rc == 0)
        rc = check_rules(x->net.policy, e);
    x->wanted = rc == 0;
    x->files = x->wanted && x->net.policy->ninject > 0;
    if (rc < 0)
        (void)mo_box_net_close(&x->net, NULL, NULL);
    return rc;
}

/* Of a pod that is adopted. The ports become part of a request. */
int mo_kbox_net_read(struct kb_box *b, struct mo_json notes, struct mo_err *e)
{
    struct kb_net *x = &b->net;
    struct mo_json ports = mo_json_get(notes, "mo.net");

    x->ports[0] = '\0';
    if (mo_json_is(ports, MO_JSON_STRING) &&
        (mo_json_str_copy(ports, x->ports, sizeof(x->ports)) < 0 ||
         strspn(x->ports, "0123456789,") != strlen(x->ports)))
        return mo_fail(e, MO_EPOLICY, "box %s: its annotation mo.net", b->name);
    x->wanted = x->ports[0] != '\0';
    x->files = x->wanted &&
               mo_json_str_eq(mo_json_get(notes, "mo.trust"), MO_SPAN("1"));
    return 0;
}
