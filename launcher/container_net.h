/* container_net.h - the network of a docker box, made inside a container.
 *
 * The driver starts a container of ours without a network, the network
 * container, and the box in its network namespace (src/box/docker_net.h). Here
 * is the network container's program. With CAP_NET_ADMIN it makes the network
 * of net.h in the namespace that it is in, then it gives up all capabilities
 * and hands the sockets out through a directory that it shares with the driver:
 *
 *   up  a socket of the driver: gets the sockets once, at the start
 *   s   our socket: whoever connects gets them, so that a restarted driver has
 *       them again
 *
 * A packet on either is "+" with the sockets, or "-" and a reason. The box does
 * not see the directory.
 *
 * If the driver is on another machine, the directory is MO_CONTAINER_STREAM:
 * the connections go over stdin and stdout (container_stream.h). A failure is a
 * line on stderr.
 *
 * Refuses a namespace with another interface than the loopback: the routes
 * would cut off whoever uses it. */
#ifndef MO_LAUNCHER_CONTAINER_NET_H
#define MO_LAUNCHER_CONTAINER_NET_H

#define MO_CONTAINER_STREAM "-" /* src/codec/net_frame.h */

/* Returns only to fail: the exit status. ports: "80,443". files: as dir of
 * mo_container_stream(). */
int mo_container_net(const char *ports, const char *dir, const char *files);

#endif
