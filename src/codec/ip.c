#include "codec/ip.h"

#include <arpa/inet.h>

#include "base/mem.h"

struct net {
    unsigned char b[16];
    unsigned bits;
};

/* Addresses that are not global, from IANA's registries of special addresses,
 * and a public address that answers only machines of one cloud. */
static const struct net nets4[] = {
    {{0, 0, 0, 0}, 8},       {{10, 0, 0, 0}, 8},       {{100, 64, 0, 0}, 10},
    {{127, 0, 0, 0}, 8},     {{169, 254, 0, 0}, 16},   {{172, 16, 0, 0}, 12},
    {{192, 0, 0, 0}, 24},    {{192, 168, 0, 0}, 16},   {{198, 18, 0, 0}, 15},
    {{224, 0, 0, 0}, 3},     {{168, 63, 129, 16}, 32}, /* metadata of Azure */
    {{192, 0, 2, 0}, 24},                              /* documentation */
    {{198, 51, 100, 0}, 24}, {{203, 0, 113, 0}, 24},
};
static const struct net nets6[] = {
    {{0}, 96},                                  /* ::, ::1, ::a.b.c.d */
    {{0xFC}, 7},                                /* unique local */
    {{0xFE, 0x80}, 9},                          /* link local, site local */
    {{0xFF}, 8},                                /* multicast */
    {{0x00, 0x64, 0xFF, 0x9B, 0x00, 0x01}, 48}, /* local NAT64 */
    {{0x01, 0x00}, 64},                         /* discarded */
    {{0x20, 0x01, 0x00, 0x00}, 32},             /* Teredo */
    {{0x20, 0x01, 0x0D, 0xB8}, 32},             /* documentation */
    {{0x3F, 0xFF}, 20},
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

static const unsigned char mapped[12] = {[10] = 0xFF, [11] = 0xFF};

bool mo_ip_is_v4(const struct mo_ip *ip)
{
    return memcmp(ip->b, mapped, sizeof(mapped)) == 0;
}

bool mo_ip_embeds_v4(const struct mo_ip *ip)
{
    for (size_t i = 0; i < MO_COUNT(hiding); i++) {
        if (in_net(ip->b, hiding[i].b, hiding[i].bits))
            return !mo_ip_is_v4(ip);
    }
    return false;
}

bool mo_ip_parse(struct mo_span text, struct mo_ip *out)
{
    char room[MO_IP_TEXT];

    if (text.n == 0 || text.n >= sizeof(room))
        return false;
    memcpy(room, text.p, text.n);
    room[text.n] = '\0';
    memcpy(out->b, mapped, sizeof(mapped));
    if (mo_span_is_ip4(text))
        return inet_pton(AF_INET, room, out->b + 12) == 1;
    return strlen(room) == text.n && inet_pton(AF_INET6, room, out->b) == 1;
}

void mo_ip_text(const struct mo_ip *ip, char out[MO_IP_TEXT])
{
    bool v4 = mo_ip_is_v4(ip);

    if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? ip->b + 12 : ip->b, out,
                   MO_IP_TEXT))
        out[0] = '\0';
}
