/* rule.c - one entry of `allow`; see policy.h. */
#include "egress/names.h"
#include "egress/policy.h"

#define LABEL_MAX 63
#define HTTP      80
#define HTTPS     443

/* --- host names ---------------------------------------------------------- */

static bool is_label(struct mo_span s)
{
    if (s.n == 0 || s.n > LABEL_MAX || s.p[0] == '-' || s.p[s.n - 1] == '-')
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!mo_is_alpha(s.p[i]) && !mo_is_digit(s.p[i]) && s.p[i] != '-' &&
            s.p[i] != '_')
            return false;
    return true;
}

/* "127.1", "0x7f000001": inet_aton() reads these as addresses. */
static bool is_number(struct mo_span label)
{
    bool hex = label.n >= 2 && label.p[0] == '0' && (label.p[1] | 32) == 'x';

    return hex ? mo_span_only(mo_span_skip(label, 2), "0123456789abcdefABCDEF")
               : mo_span_only(label, "0123456789");
}

bool mo_egress_host(struct mo_span name, char out[MO_EGRESS_HOST_MAX + 1])
{
    struct mo_span rest, label = MO_SPAN("");

    out[0] = '\0';
    if (name.n && name.p[name.n - 1] == '.')
        name.n--;
    if (name.n == 0 || name.n > MO_EGRESS_HOST_MAX)
        return false;
    for (rest = name; rest.p;) {
        label = mo_span_cut(&rest, '.');
        if (!is_label(label))
            return false;
    }
    if (is_number(label))
        return false;
    for (size_t i = 0; i < name.n; i++)
        out[i] = mo_lower(name.p[i]);
    out[name.n] = '\0';
    return true;
}

/* --- ports and addresses ------------------------------------------------- */

static int set_ports(struct mo_egress_rule *r, struct mo_span port,
                     struct mo_err *e)
{
    uint64_t v;

    if (!port.p) {
        r->ports[0] = HTTP;
        r->ports[1] = HTTPS;
        r->nports = 2;
        return 0;
    }
    if (mo_span_u64(port, &v) < 0 || port.p[0] == '0' || v > 65535)
        return mo_fail(e, MO_EINVAL, "'%s': a port is 1 to 65535", r->text);
    if (v == MO_EGRESS_DNS_PORT)
        return mo_fail(e, MO_EINVAL,
                       "'%s': port 53 is that of the box's own name server",
                       r->text);
    r->ports[0] = (uint16_t)v;
    r->nports = 1;
    return 0;
}

/* Addresses that are no host, or that stand for another one. */
static const char *unfit_address(const struct mo_ip *ip)
{
    static const struct mo_ip any = {{0}};
    const unsigned char *v4 = ip->b + 12;

    if (mo_ip_embeds_v4(ip))
        return "write the IPv4 address that it stands for";
    if (mo_egress_is_inside(ip))
        return "boxes use it for names";
    if (mo_ip_eq(ip, &any) || (mo_ip_is_v4(ip) && v4[0] == 0))
        return "it is no host";
    if (ip->b[0] == 0xFF || (mo_ip_is_v4(ip) && v4[0] >= 224))
        return "it is not the address of one host";
    if (ip->b[0] == 0xFE && (ip->b[1] & 0xC0) == 0x80)
        return "it is valid on one link only";
    return NULL;
}

/* "10.0.0.5:5432", "[::1]:22"; the port may be missing. False: it is no
 * address. */
static bool split_address(struct mo_span s, struct mo_span *port,
                          struct mo_ip *ip)
{
    bool v6 = mo_span_strip(&s, MO_SPAN("["));
    struct mo_span host = mo_span_cut(&s, v6 ? ']' : ':');

    *port = s;
    if (v6 && !s.p)
        return false; /* not closed */
    if (v6 && s.n == 0)
        *port = mo_span(NULL, 0);
    else if (v6 && !mo_span_strip(port, MO_SPAN(":")))
        return false;
    return mo_ip_parse(host, ip) && mo_ip_is_v4(ip) == !v6;
}

static int set_address(struct mo_egress_rule *r, struct mo_span s,
                       struct mo_err *e)
{
    struct mo_span port;
    const char *unfit;

    if (!split_address(s, &port, &r->ip))
        return mo_fail(e, MO_EINVAL,
                       "'%s': write an address as 10.0.0.5:5432 or [::1]:22",
                       r->text);
    unfit = unfit_address(&r->ip);
    if (unfit)
        return mo_fail(e, MO_EINVAL, "'%s': this address cannot be allowed: %s",
                       r->text, unfit);
    r->fixed = true;
    return set_ports(r, port, e);
}

/* --- the entry ----------------------------------------------------------- */

static int set_host(struct mo_egress_rule *r, struct mo_span host,
                    struct mo_err *e)
{
    if (mo_span_strip(&host, MO_SPAN("**.")))
        r->kind = MO_EGRESS_ALL_BELOW;
    else if (mo_span_strip(&host, MO_SPAN("*.")))
        r->kind = MO_EGRESS_ONE_BELOW;
    if (mo_span_find(host, '*') >= 0)
        return mo_fail(e, MO_EINVAL,
                       "'%s': '*.' and '**.' can stand only at the start",
                       r->text);
    if (!mo_span_between(host, ' ', '~'))
        return mo_fail(e, MO_EINVAL,
                       "'%s': write the name in its ASCII form (xn--...)",
                       r->text);
    if (!mo_egress_host(host, r->host))
        return mo_fail(e, MO_EINVAL, "'%s' is not the name of a host", r->text);
    if (strcmp(r->host, "localhost") == 0)
        return mo_fail(e, MO_EINVAL,
                       "'%s' is the box itself; for a server on this machine "
                       "write 127.0.0.1:PORT",
                       r->text);
    return 0;
}

static int read_host(struct mo_egress_rule *r, struct mo_span s,
                     struct mo_err *e)
{
    struct mo_span port = s, host = mo_span_cut(&port, ':');
    int rc = 0;

    if (mo_span_search(s, MO_SPAN("/")) >= 0)
        return mo_fail(e, MO_EINVAL,
                       "'%s': write HOST or HOST:PORT, not an URL or a network",
                       r->text);
    if (port.p && mo_span_find(port, ':') >= 0)
        return mo_fail(e, MO_EINVAL, "'%s': write IPv6 as [ADDRESS]:PORT",
                       r->text);
    if (mo_span_is(host, "**"))
        r->kind = MO_EGRESS_EVERY;
    else
        rc = set_host(r, host, e);
    return rc ? rc : set_ports(r, port, e);
}

/* "NAME=ADDRESS" */
static int read_fixed(struct mo_egress_rule *r, struct mo_span name,
                      struct mo_span address, struct mo_err *e)
{
    int rc = set_host(r, name, e);

    if (rc == 0 && r->kind != MO_EGRESS_HOST)
        rc = mo_fail(e, MO_EINVAL, "'%s': only one host can have an address",
                     r->text);
    return rc ? rc : set_address(r, address, e);
}

int mo_egress_rule_read(struct mo_span text, struct mo_egress_rule *out,
                        struct mo_err *e)
{
    struct mo_span s = text, port;
    struct mo_ip ip;

    *out = (struct mo_egress_rule){.kind = MO_EGRESS_HOST};
    if (text.n == 0 || text.n > MO_EGRESS_TEXT_MAX ||
        mo_span_find(text, '\0') >= 0)
        return mo_fail(e, MO_EINVAL, "an entry has 1 to %d bytes",
                       MO_EGRESS_TEXT_MAX);
    memcpy(out->text, text.p, text.n);
    if (mo_span_find(text, '=') >= 0) {
        struct mo_span name = mo_span_cut(&s, '=');

        return read_fixed(out, name, s, e);
    }
    if (text.p[0] != '[' && !split_address(text, &port, &ip))
        return read_host(out, text, e);
    out->kind = MO_EGRESS_ADDRESS;
    return set_address(out, text, e);
}
