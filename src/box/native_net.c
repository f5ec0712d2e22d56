/* native_net.c - the network of a native box. See native.c.
 *
 * The keeper holds the box's sockets and the policy it was started with, and
 * hands out both with the pipes. So an adopted box has the network that it
 * had. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "box/native_priv.h"

#define FIRST_FD 3 /* behind the pipes: the policy, then the sockets */

void mo_native_net_init(struct mo_native_net *x, struct native *d)
{
    *x = (struct mo_native_net){.d = d, .policy = -1};
}

int mo_native_net_want(struct mo_native_net *x, const struct mo_box_spec *spec,
                       bool network, bool compare, struct mo_err *e)
{
    x->compare = compare;
    mo_native_net_claim(x, spec->owner ? spec->owner : spec->session);
    if (!network)
        return 0;
    return mo_keeper_seal(mo_span_cstr(spec->network), "mo-network", &x->policy,
                          e);
}

void mo_native_net_claim(struct mo_native_net *x, const char *owner)
{
    (void)snprintf(x->owner, sizeof(x->owner), "%s", owner ? owner : "");
}

/* --- records ------------------------------------------------------------- */

static void on_row(void *ctx, const struct mo_egress_row *r)
{
    const struct mo_native_net *x = ctx;
    const struct native *d = x->d;

    mo_log(mo_loop_log(d->bs.loop), MO_INFO, "egress",
           "box %s: %s%s%s:%u %s%s%s: %s, %llu bytes sent, %llu received",
           x->id, r->name, *r->name ? " at " : "", r->address, r->port,
           r->allowed ? "allowed" : "refused", *r->rule ? " by " : "", r->rule,
           r->reason, (unsigned long long)r->sent,
           (unsigned long long)r->received);
    if (d->on_connection)
        d->on_connection(d->connection_ctx, x->owner, r);
}

/* --- open and close ------------------------------------------------------ */

/* The bytes of a sealed file; none for fd -1. */
static int read_text(int fd, struct mo_buf *out, struct mo_err *e)
{
    off_t at = 0;
    ssize_t n = 0;

    while (fd >= 0) {
        char *room = mo_buf_room(out, 4096);

        if (!room)
            return mo_fail(e, mo_buf_err(out), "network of the box");
        n = pread(fd, room, 4096, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        mo_buf_add(out, (size_t)n);
        at += n;
    }
    return n < 0 ? mo_fail_sys(e, "network of the box") : 0;
}

/* A box that is revived must not keep a network that was withdrawn. */
static int compare_policies(const struct mo_native_net *x, struct mo_span has,
                            struct mo_err *e)
{
    mo_autobuf struct mo_buf wanted = {.max = MO_EGRESS_JSON_MAX + 4096};
    int rc = x->compare ? read_text(x->policy, &wanted, e) : 0;

    if (rc == 0 && x->compare && !mo_span_eq(mo_buf_view(&wanted), has))
        rc = mo_fail(e, MO_EPOLICY, "the box was started with another network");
    return rc;
}

static int start_relay(struct mo_native_net *x, struct mo_keeper_answer *a,
                       struct mo_span text, struct mo_err *e)
{
    struct mo_egress_opts o = {.fds = a->fds + FIRST_FD + 1,
                               .nfds = a->m.fds - FIRST_FD - 1,
                               .on_row = on_row,
                               .ctx = x};
    int rc = mo_egress_policy_read(text, &o.policy, e);

    return rc ? rc : mo_egress_open(x->d->bs.loop, &o, &x->relay, e);
}

int mo_native_net_open(struct mo_native_net *x, struct mo_keeper_answer *a,
                       struct mo_err *e)
{
    mo_autobuf struct mo_buf text = {.max = MO_EGRESS_JSON_MAX + 4096};
    bool has = a->m.fds > FIRST_FD + 1;
    int rc = read_text(has ? a->fds[FIRST_FD] : -1, &text, e);

    if (rc == 0)
        rc = compare_policies(x, mo_buf_view(&text), e);
    mo_close_fd(&x->policy);
    if (rc < 0 || !has)
        return rc;
    (void)snprintf(x->id, sizeof(x->id), "%s", a->m.u.desc.id);
    if (!*x->owner)
        mo_native_net_claim(x, a->m.u.desc.session);
    return start_relay(x, a, mo_buf_view(&text), e);
}

bool mo_native_net_close(struct mo_native_net *x, void (*gone)(void *ctx),
                         void *ctx)
{
    mo_close_fd(&x->policy);
    if (!x->relay)
        return false;
    mo_egress_close(mo_take_ptr(&x->relay), gone, ctx);
    return true;
}
