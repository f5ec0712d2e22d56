/* net.h - the network of a box: every address is its own.
 *
 * The keeper moves to a fresh network namespace that has a loopback interface
 * and two routes, by which every IPv4 and IPv6 address is local. No packet can
 * leave it. On each allowed port one socket listens on all addresses, so it
 * accepts what a program sends to any host; the kernel refuses other ports. UDP
 * and TCP port 53 listen as well, for the box's name server.
 *
 * The keeper hands the sockets to its client, which decides about each
 * connection (src/egress). The runs of a box share the namespace, so a
 * restarted program finds the same network.
 *
 * On a kernel without IPv6 the sockets are of AF_INET; else they are of
 * AF_INET6 and take both families. */
#ifndef MO_LAUNCHER_NET_H
#define MO_LAUNCHER_NET_H

#include "codec/boxreq.h"

struct mo_net {
    int fds[MO_BOXREQ_PORTS + 2]; /* UDP 53, TCP 53, the ports in order */
    unsigned n;                   /* 0: no network */
};

/* In the namespace of this process, with CAP_NET_ADMIN there. ports: "80,443".
 */
int mo_net_make(struct mo_net *x, const char *ports, struct mo_err *e);
/* Without routes, and so without rights to make them: IPv4 only, the name
 * server at 127.0.0.1, the ports at every address. All of 127.0.0.0/8 is local
 * in any namespace. */
int mo_net_listen(struct mo_net *x, const char *ports, struct mo_err *e);
/* The same as mo_net_make() in a new namespace; "" makes nothing. Needs the
 * rights to create a namespace. */
int mo_net_open(struct mo_net *x, const char *ports, struct mo_err *e);

#endif
