/* native_net.c - the network of a native box. See native.c.
 *
 * The keeper holds the box's sockets and hands them out with the pipes. Which
 * hosts may be reached is decided here, by the policy of this process: a box
 * that is adopted or revived follows the configuration of today, at the ports
 * that it was started with. Without a policy its connections are refused. */
#include <stdio.h>

#include "box/native_priv.h"

#define FIRST_FD 3 /* the sockets are behind the pipes */

void mo_native_net_init(struct mo_native_net *x, struct native *d)
{
    *x = (struct mo_native_net){.d = d};
}

int mo_native_net_want(struct mo_native_net *x, const char *network,
                       struct mo_err *e)
{
    if (!network || !*network)
        return 0;
    return mo_egress_policy_read(mo_span_cstr(network), &x->policy, e);
}

static void set_owner(struct mo_native_net *x, const char *owner)
{
    (void)snprintf(x->owner, sizeof(x->owner), "%s", owner ? owner : "");
}

void mo_native_net_claim(struct mo_native_net *x,
                         const struct mo_box_spec *spec)
{
    set_owner(x, spec->owner ? spec->owner : spec->session);
}

static void on_row(void *ctx, const struct mo_egress_row *r)
{
    const struct mo_native_net *x = ctx;
    const struct native *d = x->d;

    mo_log(mo_loop_log(d->bs.loop), MO_INFO, "egress",
           "box %s: %s%s%s:%u %s%s%s%s: %s, %llu bytes sent, %llu received",
           x->id, r->name, *r->name ? " at " : "", r->address, r->port,
           r->allowed ? "allowed" : "refused", *r->rule ? " by " : "", r->rule,
           r->injected ? ", with a secret" : "", r->reason,
           (unsigned long long)r->sent, (unsigned long long)r->received);
    if (d->on_connection)
        d->on_connection(d->connection_ctx, x->owner, r);
}

int mo_native_net_open(struct mo_native_net *x, struct mo_keeper_answer *a,
                       struct mo_err *e)
{
    struct mo_egress_opts o = {.fds = a->fds + FIRST_FD,
                               .nfds = a->m.fds - FIRST_FD,
                               .on_row = on_row,
                               .ctx = x};
    int rc = 0;

    if (o.nfds == 0)
        return 0;
    (void)snprintf(x->id, sizeof(x->id), "%s", a->m.u.desc.id);
    if (!*x->owner)
        set_owner(x, a->m.u.desc.session);
    if (!x->policy)
        rc = mo_native_net_want(x, "{}", e);
    if (rc == 0)
        rc = mo_native_authority(x->d, x->policy, e);
    if (rc < 0)
        return rc;
    o.authority = x->d->authority;
    o.secret = x->d->secret;
    o.secret_ctx = x->d->secret_ctx;
    o.policy = mo_take_ptr(&x->policy);
    return mo_egress_open(x->d->bs.loop, &o, &x->relay, e);
}

bool mo_native_net_close(struct mo_native_net *x, void (*gone)(void *ctx),
                         void *ctx)
{
    mo_egress_policy_free(mo_take_ptr(&x->policy));
    if (!x->relay)
        return false;
    mo_egress_close(mo_take_ptr(&x->relay), gone, ctx);
    return true;
}
