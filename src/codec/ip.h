/* ip.h - is an IP address one of this machine or of a private network?
 *
 * Used before connecting to an address that a peer has named: a peer must not
 * make us reach these. Private are unspecified, loopback, private, shared
 * (100.64/10), link-local, unique-local, multicast and reserved addresses, and
 * IPv6 addresses that embed such an IPv4 address in any form. */
#ifndef MO_CODEC_IP_H
#define MO_CODEC_IP_H

#include <stdbool.h>

bool mo_ip4_is_private(const unsigned char b[4]); /* network order */
bool mo_ip6_is_private(const unsigned char b[16]);

#endif
