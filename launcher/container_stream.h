/* container_stream.h - carries the connections of a box over stdin and stdout.
 *
 * Part of the network container's program, for an engine that is not on the
 * orchestrator's machine (container_net.h) and for pods (pod_net.h): accepts
 * connections at the sockets of the network and passes them on as frames
 * (codec/net_frame.h). Decides nothing.
 *
 * A HELLO resets all connections: it comes from an orchestrator that does not
 * know them. While nobody reads our stdout, the engine drops what we write, so
 * connections wait for such a HELLO.
 *
 * Limits: MO_NET_CHANNELS_MAX connections, more wait in the listeners' queues;
 * MO_NET_WINDOW bytes to each program; OUT_HIGH bytes to the orchestrator, then
 * nothing more is read; PENDING queries, the oldest is forgotten. */
#ifndef MO_LAUNCHER_CONTAINER_STREAM_H
#define MO_LAUNCHER_CONTAINER_STREAM_H

#include "launcher/net.h"

/* Returns when stdin or stdout has ended: the exit status. Uses standard input
 * and output without blocking. dir: a directory for the files of FILE frames,
 * which the box sees; NULL: they are not taken. loopback: connections to other
 * addresses than those of 127.0.0.0/8 come from outside and are reset. */
int mo_container_stream(const struct mo_net *net, const char *dir,
                        bool loopback);

#endif
