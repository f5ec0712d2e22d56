/* pod_net.h - the network of a pod's box, made in its second container.
 *
 * The containers of a pod share a network namespace, in which nobody has rights
 * to change routes. All of 127.0.0.0/8 is local there: the box's name server
 * answers with such addresses (egress/names.h), and the sockets of
 * mo_net_listen() accept what programs send to them. The connections go over
 * stdin and stdout (container_stream.h), which the orchestrator has by `exec`:
 * the output of the container's own program would be in a log of its node.
 *
 * The NetworkPolicy of boxes keeps programs from everything else. If the pod
 * has an interface, it is seen at each start that the policy is enforced: the
 * API of the cluster, which every pod is told about, must not be reachable. */
#ifndef MO_LAUNCHER_POD_NET_H
#define MO_LAUNCHER_POD_NET_H

/* Returns the exit status when stdin has ended, or to fail, with a line on
 * stderr. ports: "80,443". files: as dir of mo_container_stream(). */
int mo_pod_net(const char *ports, const char *files);

/* The container's own program: does nothing. */
int mo_pod_pause(void);

#endif
