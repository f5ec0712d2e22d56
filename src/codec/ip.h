/* ip.h - IP addresses: as text, and is one of this machine or of a private
 * network?
 *
 * Used before connecting to an address that a peer has named: a peer must not
 * make us reach these. Private are unspecified, loopback, private, shared
 * (100.64/10), link-local, unique-local, multicast, documentation and reserved
 * addresses, the metadata services of clouds, and IPv6 addresses that embed
 * such an IPv4 address in any form. */
#ifndef MO_CODEC_IP_H
#define MO_CODEC_IP_H

#include "base/str.h"

/* IPv4 addresses are stored as ::ffff:a.b.c.d. */
struct mo_ip {
    unsigned char b[16]; /* network order */
};

#define MO_IP_TEXT 46 /* bytes of a text, NUL included */

/* "192.0.2.1" or "2001:db8::1": no brackets, no zone, no leading zeros. */
bool mo_ip_parse(struct mo_span text, struct mo_ip *out);
void mo_ip_text(const struct mo_ip *ip, char out[MO_IP_TEXT]);
bool mo_ip_is_v4(const struct mo_ip *ip);
static inline bool mo_ip_eq(const struct mo_ip *a, const struct mo_ip *b)
{
    return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}
/* The IPv4 address that an IPv6 address stands for, by NAT64 or 6to4. */
bool mo_ip_embeds_v4(const struct mo_ip *ip);

bool mo_ip4_is_private(const unsigned char b[4]); /* network order */
bool mo_ip6_is_private(const unsigned char b[16]);
static inline bool mo_ip_is_private(const struct mo_ip *ip)
{
    return mo_ip6_is_private(ip->b);
}

#endif
