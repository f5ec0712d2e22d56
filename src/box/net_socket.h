/* net_socket.h - gets the sockets of a docker box's network.
 *
 * The network container (launcher/container_net.h) shares a directory with us
 * and hands its sockets out there. mo_net_socket_await() listens before the
 * container is started, mo_net_socket_fetch() connects to one that runs.
 *
 * Nothing of the peer is trusted but that it is in that directory: it is the
 * launcher, with sockets of a namespace in which only boxes are. */
#ifndef MO_BOX_NET_SOCKET_H
#define MO_BOX_NET_SOCKET_H

#include "egress/policy.h"
#include "loop/loop.h"

#define MO_NET_SOCKETS_MAX (MO_EGRESS_PORTS_MAX + 2)

struct mo_net_socket;

/* Fires once, from the loop: with the sockets, which belong to the receiver, or
 * with the reason. The object is gone then. */
typedef void mo_net_socket_fn(void *ctx, const int *fds, size_t n,
                              const struct mo_err *why);

int mo_net_socket_await(struct mo_loop *l, const char *dir,
                        mo_net_socket_fn *done, void *ctx,
                        struct mo_net_socket **out, struct mo_err *e);
int mo_net_socket_fetch(struct mo_loop *l, const char *dir,
                        mo_net_socket_fn *done, void *ctx,
                        struct mo_net_socket **out, struct mo_err *e);
/* done() is not called any more. NULL is fine. */
void mo_net_socket_cancel(struct mo_net_socket *s);

/* The directory: made for one container, whose root may have another number
 * here; ours is the directory above it. */
int mo_net_socket_mkdir(const char *dir, struct mo_err *e);
void mo_net_socket_rmdir(const char *dir);

#endif
