#include "codec/ip.h"

#include "base/mem.h"
#include "base/str.h"

struct net {
    unsigned char b[16];
    unsigned bits;
};

/* Addresses that are not global, from IANA's registries of special addresses.
 */
static const struct net nets4[] = {
    {{0, 0, 0, 0}, 8},    {{10, 0, 0, 0}, 8},     {{100, 64, 0, 0}, 10},
    {{127, 0, 0, 0}, 8},  {{169, 254, 0, 0}, 16}, {{172, 16, 0, 0}, 12},
    {{192, 0, 0, 0}, 24}, {{192, 168, 0, 0}, 16}, {{198, 18, 0, 0}, 15},
    {{224, 0, 0, 0}, 3},
};
static const struct net nets6[] = {
    {{0}, 96},                                  /* ::, ::1, ::a.b.c.d */
    {{0xFC}, 7},                                /* unique local */
    {{0xFE, 0x80}, 9},                          /* link local, site local */
    {{0xFF}, 8},                                /* multicast */
    {{0x00, 0x64, 0xFF, 0x9B, 0x00, 0x01}, 48}, /* local NAT64 */
};

/* IPv6 prefixes that embed an IPv4 address, and the offset of its four bytes.
 */
static const struct {
    unsigned char b[16];
    unsigned bits, at;
} hiding[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF}, 96, 12}, /* mapped */
    {{0x00, 0x64, 0xFF, 0x9B}, 96, 12},                   /* NAT64 */
    {{0x20, 0x02}, 16, 2},                                /* 6to4 */
};

static bool in_net(const unsigned char *a, const unsigned char *net,
                   unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    unsigned char mask = (unsigned char)(0xFF00u >> rest);

    return memcmp(a, net, whole) == 0 &&
           (rest == 0 || (a[whole] & mask) == (net[whole] & mask));
}

static bool in_any(const unsigned char *a, const struct net *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (in_net(a, v[i].b, v[i].bits))
            return true;
    }
    return false;
}

bool mo_ip4_is_private(const unsigned char b[4])
{
    return in_any(b, nets4, MO_COUNT(nets4));
}

bool mo_ip6_is_private(const unsigned char b[16])
{
    for (size_t i = 0; i < MO_COUNT(hiding); i++) {
        if (in_net(b, hiding[i].b, hiding[i].bits))
            return mo_ip4_is_private(b + hiding[i].at);
    }
    return in_any(b, nets6, MO_COUNT(nets6));
}
