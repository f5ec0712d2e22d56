/* box_net.h - the network of a box, for all drivers.
 *
 * A driver brings the sockets that listen in the box's namespace
 * (launcher/net.h). Which hosts may be reached is decided here, by the policy
 * of this process: a box that is adopted or revived follows the configuration
 * of today, at the ports that it was started with. Without a policy its
 * connections are refused. */
#ifndef MO_BOX_BOX_NET_H
#define MO_BOX_BOX_NET_H

#include "box/driver.h"
#include "codec/boxreq.h"

#define MO_BOX_PORTS_MAX (MO_BOXREQ_PORTS * sizeof("65535"))

struct mo_box_net {
    struct mo_boxes *bs;
    struct mo_egress_policy *policy; /* until the relay has it; NULL: none */
    struct mo_egress *relay;         /* NULL: none */
    char owner[MO_BOX_LABEL_MAX], id[MO_BOX_ID_MAX];
};

/* A driver's part: takes what o says about networks. bs->authority_dir stays
 * NULL without o->dir, or without memory. */
void mo_box_net_setup(struct mo_boxes *bs, const struct mo_boxes_opts *o);
void mo_box_net_fini(struct mo_boxes *bs);

void mo_box_net_init(struct mo_box_net *x, struct mo_boxes *bs);
/* Sets the policy. network: JSON; NULL or "": none. */
int mo_box_net_want(struct mo_box_net *x, const char *network,
                    struct mo_err *e);
/* Sets the owner in records. */
void mo_box_net_claim(struct mo_box_net *x, const struct mo_box_spec *spec);
/* Takes the descriptors and begins to relay. session: the owner, unless there
 * is one. n may be 0: there is no network. */
int mo_box_net_open(struct mo_box_net *x, const char *id, const char *session,
                    int *fds, size_t n, struct mo_err *e);
/* The same for a box whose connections are accepted elsewhere: they come by
 * mo_egress_accept(). loopback: as in its options. */
int mo_box_net_open_far(struct mo_box_net *x, const char *id,
                        const char *session, bool v6, bool loopback,
                        struct mo_err *e);
/* gone(ctx) later, or false: there was nothing to close. */
bool mo_box_net_close(struct mo_box_net *x, void (*gone)(void *ctx), void *ctx);

/* The ports to listen at: "80,443", or "" without a network. */
int mo_box_net_ports(const char *network, char out[MO_BOX_PORTS_MAX],
                     struct mo_err *e);

#endif
