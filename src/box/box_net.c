#include "box/box_net.h"

#include <stdio.h>

#include "box/box_trust.h"

void mo_box_net_setup(struct mo_boxes *bs, const struct mo_boxes_opts *o)
{
    mo_autobuf struct mo_buf path = {.max = MO_BOXREQ_PATH_MAX};

    bs->on_connection = o->on_connection;
    bs->asker = o->asker;
    bs->connection_ctx = o->connection_ctx;
    bs->secret = o->secret;
    bs->secret_ctx = o->secret_ctx;
    (void)mo_buf_printf(&path, "%s/authority", o->dir ? o->dir : "");
    if (o->dir && !mo_buf_err(&path))
        bs->authority_dir = mo_strndup(path.p, path.len);
}

const char *mo_boxes_network_way(const struct mo_boxes *bs)
{
    return bs->network_way ? bs->network_way : "";
}

void mo_box_net_fini(struct mo_boxes *bs)
{
    mo_free(bs->authority_dir);
    mo_tls_authority_free(bs->authority);
}

void mo_box_net_init(struct mo_box_net *x, struct mo_boxes *bs)
{
    *x = (struct mo_box_net){.bs = bs};
}

int mo_box_net_want(struct mo_box_net *x, const char *network, struct mo_err *e)
{
    int rc;

    if (!network || !*network)
        return 0;
    rc = mo_egress_policy_read(mo_span_cstr(network), &x->policy, e);
    if (rc == 0 && x->policy->ninject && !x->bs->authority_dir)
        rc = mo_fail(e, MO_EINVAL,
                     "network.inject: there is no state directory");
    return rc;
}

static void set_owner(struct mo_box_net *x, const char *owner)
{
    (void)snprintf(x->owner, sizeof(x->owner), "%s", owner ? owner : "");
}

void mo_box_net_claim(struct mo_box_net *x, const struct mo_box_spec *spec)
{
    set_owner(x, spec->owner ? spec->owner : spec->session);
}

static void on_row(void *ctx, const struct mo_egress_row *r)
{
    const struct mo_box_net *x = ctx;
    const struct mo_boxes *bs = x->bs;

    mo_log(mo_loop_log(bs->loop), MO_INFO, "egress",
           "box %s: %s%s%s:%u %s%s%s%s: %s, %llu bytes sent, %llu received",
           x->id, r->name, *r->name ? " at " : "", r->address, r->port,
           r->allowed ? "allowed" : "refused", *r->rule ? " by " : "", r->rule,
           r->injected ? ", with a secret" : "", r->reason,
           (unsigned long long)r->sent, (unsigned long long)r->received);
    if (bs->on_connection)
        bs->on_connection(bs->connection_ctx, x->owner, r);
}

/* --- hosts that the box asks about --------------------------------------- */

static enum mo_egress_say on_judge(void *ctx,
                                   const struct mo_egress_question *q)
{
    const struct mo_box_net *x = ctx;

    return x->bs->asker->judge(x->bs->connection_ctx, x->owner, x->id, q);
}

static void on_ask(void *ctx, struct mo_egress_ask *a,
                   const struct mo_egress_question *q)
{
    const struct mo_box_net *x = ctx;

    x->bs->asker->ask(x->bs->connection_ctx, x->owner, x->id, a, q);
}

static void on_ask_gone(void *ctx, struct mo_egress_ask *a)
{
    const struct mo_box_net *x = ctx;

    x->bs->asker->gone(x->bs->connection_ctx, a);
}

static int on_find_program(void *ctx, const struct mo_egress_caller *c)
{
    const struct mo_box_net *x = ctx;

    return x->bs->find_program ? x->bs->find_program(x->bs, x->id, c)
                               : MO_EUNAVAIL;
}

static const struct mo_egress_asker asker = {on_judge, on_ask, on_ask_gone};

/* --- open and close ------------------------------------------------------ */

static int open_relay(struct mo_box_net *x, const char *id, const char *session,
                      struct mo_egress_opts *o, struct mo_err *e)
{
    int rc = 0;

    (void)snprintf(x->id, sizeof(x->id), "%s", id);
    if (!*x->owner)
        set_owner(x, session);
    if (!x->policy)
        rc = mo_box_net_want(x, "{}", e);
    if (rc == 0)
        rc = mo_box_trust_open(x->bs, x->policy, e);
    if (rc < 0)
        return rc;
    o->on_row = on_row;
    o->asker = x->bs->asker ? &asker : NULL;
    o->find_program = on_find_program;
    o->ctx = x;
    o->authority = x->bs->authority;
    o->secret = x->bs->secret;
    o->secret_ctx = x->bs->secret_ctx;
    o->policy = mo_take_ptr(&x->policy);
    return mo_egress_open(x->bs->loop, o, &x->relay, e);
}

int mo_box_net_open(struct mo_box_net *x, const char *id, const char *session,
                    int *fds, size_t n, struct mo_err *e)
{
    struct mo_egress_opts o = {.fds = fds, .nfds = n};

    return n ? open_relay(x, id, session, &o, e) : 0;
}

int mo_box_net_open_far(struct mo_box_net *x, const char *id,
                        const char *session, bool v6, bool loopback,
                        struct mo_err *e)
{
    struct mo_egress_opts o = {.v6 = v6, .loopback = loopback};

    return open_relay(x, id, session, &o, e);
}

bool mo_box_net_close(struct mo_box_net *x, void (*gone)(void *ctx), void *ctx)
{
    mo_egress_policy_free(mo_take_ptr(&x->policy));
    if (!x->relay)
        return false;
    mo_egress_close(mo_take_ptr(&x->relay), gone, ctx);
    if (x->bs->asker)
        x->bs->asker->closed(x->bs->connection_ctx, x->id);
    return true;
}

int mo_box_net_ports(const char *network, char out[MO_BOX_PORTS_MAX],
                     struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_BOX_PORTS_MAX - 1};
    struct mo_egress_policy *p = NULL;
    int rc;

    out[0] = '\0';
    if (!network || !*network)
        return 0;
    rc = mo_egress_policy_read(mo_span_cstr(network), &p, e);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < p->nports; i++)
        mo_buf_printf(&b, "%s%u", i ? "," : "", p->ports[i]);
    mo_egress_policy_free(p);
    rc = mo_buf_err(&b);
    if (rc < 0)
        return mo_fail(e, rc, "network");
    (void)snprintf(out, MO_BOX_PORTS_MAX, "%s", mo_buf_cstr(&b));
    return 0;
}
