#include "egress/name_server.h"

#include "codec/dns.h"

/* 127.0.0.1 and ::1: some programs ask for it. */
static struct mo_ip local_address(bool v6)
{
    static const struct mo_ip ip4 = {
        {[10] = 0xFF, [11] = 0xFF, [12] = 127, [15] = 1}};
    static const struct mo_ip ip6 = {{[15] = 1}};

    return v6 ? ip6 : ip4;
}

static enum mo_dns_rcode find_addresses(const struct mo_egress_zone *z,
                                        const struct mo_dns_query *q,
                                        struct mo_ip *v4, struct mo_ip *v6)
{
    char host[MO_EGRESS_HOST_MAX + 1];
    struct mo_egress_name *name;

    if (q->odd || !mo_egress_host(mo_span(q->name, q->name_len), host))
        return MO_DNS_NXDOMAIN;
    if (strcmp(host, "localhost") == 0) {
        *v4 = local_address(false);
        *v6 = local_address(true);
        return MO_DNS_NOERROR;
    }
    if (!mo_egress_find_name(z->policy, host, 0)) {
        if (!z->ask)
            return MO_DNS_NXDOMAIN;
        if (z->names->by_text.len >= MO_EGRESS_NAMES_MAX / 2 &&
            !mo_map_get(&z->names->by_text, mo_span_cstr(host)))
            return MO_DNS_SERVFAIL;
    }
    if (mo_egress_names_add(z->names, host, &name) < 0)
        return MO_DNS_SERVFAIL;
    *v4 = mo_egress_name_v4(z->names, name);
    *v6 = mo_egress_name_v6(name);
    return MO_DNS_NOERROR;
}

bool mo_egress_answer(const struct mo_egress_zone *z, struct mo_span query,
                      struct mo_buf *out)
{
    struct mo_dns_answer a = {.ttl = MO_EGRESS_TTL_S};
    struct mo_dns_query q;
    struct mo_ip v4, v6;
    int rc = mo_dns_read(query, &q);

    if (rc < 0)
        return false;
    a.rcode = (enum mo_dns_rcode)rc;
    if (rc == MO_DNS_NOERROR)
        a.rcode = find_addresses(z, &q, &v4, &v6);
    if (a.rcode == MO_DNS_NOERROR) {
        if (q.type == MO_DNS_A || q.type == MO_DNS_ANY)
            a.ip = &v4;
        else if (q.type == MO_DNS_AAAA && z->v6)
            a.ip = &v6;
    }
    mo_dns_write(out, &q, &a);
    return true;
}
