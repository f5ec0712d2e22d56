/* ip.h - is an IP address one of this machine or of a private network?
 *
 * For whoever is sent to an address by a stranger: what lies there must not
 * be reached that way. Counted as private are the unspecified, loopback,
 * private, shared (100.64/10), link-local, unique-local, multicast and
 * reserved ones, and IPv4 inside IPv6 in any of its clothes. */
#ifndef MO_CODEC_IP_H
#define MO_CODEC_IP_H

#include <stdbool.h>

bool mo_ip4_is_private(const unsigned char b[4]); /* network order */
bool mo_ip6_is_private(const unsigned char b[16]);

#endif
