/* dns.h - the part of DNS that a name server for one box needs.
 *
 * Reads one query and writes one answer with addresses, or with the reason why
 * there are none. It resolves nothing and keeps no records.
 *
 * Strict: one question, no records but the OPT of EDNS, no compression, no
 * bytes behind the end. Text that is no query at all has no answer.
 *
 * Ownership: the question is borrowed from the query's bytes. */
#ifndef MO_CODEC_DNS_H
#define MO_CODEC_DNS_H

#include "codec/ip.h"

#define MO_DNS_NAME_MAX   253 /* bytes of a name, without the last dot */
#define MO_DNS_QUERY_MAX  1232
#define MO_DNS_ANSWER_MAX 512 /* what every client takes without EDNS */

enum { MO_DNS_A = 1, MO_DNS_AAAA = 28, MO_DNS_ANY = 255 };

enum mo_dns_rcode {
    MO_DNS_NOERROR = 0,
    MO_DNS_FORMERR = 1,
    MO_DNS_SERVFAIL = 2,
    MO_DNS_NXDOMAIN = 3,
    MO_DNS_NOTIMP = 4,
    MO_DNS_REFUSED = 5,
};

struct mo_dns_query {
    uint16_t id, type;
    bool recursion, edns;
    bool odd; /* a label has bytes that no host name has */
    char name[MO_DNS_NAME_MAX + 1]; /* lower case, without the last dot */
    size_t name_len;
    struct mo_span question; /* as it came; empty if it is not usable */
};

/* MO_DNS_NOERROR: a question of class IN. Another code: answer with it.
 * MO_EPROTO: not a query, do not answer. */
int mo_dns_read(struct mo_span in, struct mo_dns_query *q);

struct mo_dns_answer {
    enum mo_dns_rcode rcode;
    bool truncated;         /* asks the client to come back over TCP */
    const struct mo_ip *ip; /* one record, or NULL */
    uint32_t ttl;           /* s */
};

/* Appends at most MO_DNS_ANSWER_MAX bytes. */
void mo_dns_write(struct mo_buf *b, const struct mo_dns_query *q,
                  const struct mo_dns_answer *a);

#endif
