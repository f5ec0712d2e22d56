/* probe_hosts.h - the outside of a probe box's network.
 *
 * Listens on this machine at two ports, with TCP. The box may reach the first
 * by the name MO_PROBE_ALLOWED; the second, where UDP is received as well, is
 * there to be missed. Whatever comes gets MO_PROBE_ANSWER after its first byte
 * and is counted. toolbox/network_check.h is the other side. */
#ifndef MO_CONNECT_PROBE_HOSTS_H
#define MO_CONNECT_PROBE_HOSTS_H

#include "loop/loop.h"

#define MO_PROBE_ALLOWED "allowed.test"
#define MO_PROBE_ANSWER  "here"
#define MO_PROBE_VISITS  2 /* that the box may make: plain and with TLS */

struct mo_probe_hosts;

int mo_probe_hosts_open(struct mo_loop *l, struct mo_probe_hosts **out,
                        struct mo_err *e);
/* NULL is fine. Needs the loop once more if connections are left. */
void mo_probe_hosts_close(struct mo_probe_hosts *h);

unsigned mo_probe_hosts_port(const struct mo_probe_hosts *h);
unsigned mo_probe_hosts_closed(const struct mo_probe_hosts *h);
/* True if the allowed visits came and nothing else. */
bool mo_probe_hosts_alone(const struct mo_probe_hosts *h);
/* Counts anew, for the next box. */
void mo_probe_hosts_reset(struct mo_probe_hosts *h);

#endif
