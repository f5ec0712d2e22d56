/* peers.c - opens and closes what peer.h describes. */
#include <stdio.h>

#include "peer/priv.h"

static void on_over(struct mo_later *d)
{
    struct mo_peers *p = mo_container_of(d, struct mo_peers, later);
    struct mo_gone gone = p->gone;

    mo_free(p);
    mo_gone_fire(gone);
}

void mo_peers_settle(struct mo_peers *p)
{
    if (p->closing && p->nguests == 0 && p->nseats == 0 && p->pending == 0)
        mo_loop_defer(p->loop, &p->later);
}

/* Others wait for the lease then, as for a process on another machine. */
static void listen_for_guests(struct mo_peers *p, const char *dir)
{
    struct mo_err e;
    int n = snprintf(p->path, sizeof(p->path), "%s/%s" MO_INSTANCE_PEER, dir,
                     p->instance);
    int rc = 0;

    if (n < 0 || (size_t)n >= sizeof(p->path))
        rc = mo_fail(&e, MO_ETOOBIG, "%s is too long for a socket in it", dir);
    if (rc == 0 && p->agent)
        rc = mo_peer_guests_open(p, &e);
    if (rc == 0)
        return;
    p->path[0] = '\0';
    mo_log_err(mo_loop_log(p->loop), MO_WARN, "peer", &e,
               "other processes cannot join our conversations");
}

int mo_peers_open(struct mo_loop *l, const struct mo_peers_opts *o,
                  struct mo_peers **out, struct mo_err *e)
{
    struct mo_peers *p = mo_new(struct mo_peers);

    if (!p)
        return mo_fail(e, MO_ENOMEM, "peers");
    p->loop = l;
    p->agent = o->agent;
    p->store = o->store;
    (void)snprintf(p->instance, sizeof(p->instance), "%s", o->instance);
    mo_list_init(&p->guests);
    mo_list_init(&p->seats);
    mo_later_init(&p->later, on_over);
    mo_peer_address_init(p);
    if (o->dir)
        listen_for_guests(p, o->dir);
    mo_peer_address_publish(p);
    *out = p;
    return 0;
}

void mo_peers_cluster(struct mo_peers *p, struct mo_cluster *c)
{
    p->cluster = c;
    mo_cluster_name(c, p->instance);
    mo_cluster_take(c, MO_CLUSTER_PEER, mo_peer_guest_far, p);
    mo_peer_address_again(p);
}

struct mo_agent *mo_peers_agent(const struct mo_peers *p)
{
    return p->agent;
}

void mo_peers_people(struct mo_peers *p, struct mo_people *const *people)
{
    p->people = people;
}

int mo_peer_join_here(struct mo_peers *p, struct mo_join *j,
                      const struct mo_member_cb *cb, void *ctx,
                      struct mo_member **out, struct mo_err *e)
{
    j->person.people = p->people ? *p->people : NULL;
    return j->reads ? mo_chat_follow(p->agent, j, cb, ctx, out, e)
                    : mo_chat_join(p->agent, j, cb, ctx, out, e);
}

void mo_peers_stop(struct mo_peers *p)
{
    p->stopped = true;
    mo_seats_stop(p);
    if (p->cluster)
        mo_cluster_stop(p->cluster);
    if (!p->path[0] && !p->cluster)
        return;
    if (p->listener)
        mo_peer_guests_stop(p);
    mo_peer_address_remove(p);
}

void mo_peers_close(struct mo_peers *p, void (*gone)(void *ctx), void *ctx)
{
    MO_BUG_ON(!p->stopped);
    p->closing = true;
    p->agent = NULL;
    p->gone = (struct mo_gone){gone, ctx};
    mo_peers_settle(p);
}
