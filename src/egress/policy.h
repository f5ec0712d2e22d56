/* policy.h - which hosts a box may reach, and how much.
 *
 * A policy is JSON: "none", or an object
 *
 *   {"allow": [...], "ask": false, "maxConnections": 128,
 *    "maxMegabytes": 10240, "idleSeconds": 900, "maxSeconds": 86400,
 *    "inject": {"api.github.com": {"Authorization": "Bearer ${secret:x}"}}}
 *
 * An entry of `allow` is a host, with or without a port:
 *
 *   api.github.com         this host, at the ports 80 and 443
 *   api.github.com:443     at this port only
 *   *.example.org          hosts one level below example.org, not itself
 *   **.example.org         hosts at any level below it, not itself
 *   **                     every host
 *   10.0.0.5:5432          this address; [2001:db8::1]:22 if it is IPv6
 *   db.test=10.0.0.5:5432  the host db.test, which is at this address
 *
 * Names are compared in lower case and without a last dot. A name that is not
 * ASCII must be written in its ASCII form (xn--...). A name whose last label
 * can be read as a number is refused: some programs would take it for an
 * address.
 *
 * A host that is allowed by its name is reached only at public addresses
 * (codec/ip.h) of other machines. Others must be named by an entry.
 *
 * `ask`: a person decides about public hosts that no entry allows, at the ports
 * 80, 443 and those of the entries.
 *
 * A key of `inject` is a host that an entry allows, HOST or HOST:PORT; HOST
 * stands for each of its ports. The relay sets these headers in every request
 * (edge.h). References in their values stay as they are in a policy.
 *
 * Limits: MO_EGRESS_RULES_MAX entries, MO_EGRESS_PORTS_MAX different ports;
 * more fail; likewise MO_EGRESS_INJECT_MAX hosts with
 * MO_EGRESS_HEADERS_MAX headers each. Port 53 is that of the box's name server
 * and cannot be allowed. */
#ifndef MO_EGRESS_POLICY_H
#define MO_EGRESS_POLICY_H

#include "codec/ip.h"

#define MO_EGRESS_RULES_MAX       256
#define MO_EGRESS_PORTS_MAX       32
#define MO_EGRESS_HOST_MAX        253 /* bytes of a name */
#define MO_EGRESS_TEXT_MAX        512 /* bytes of an entry */
#define MO_EGRESS_JSON_MAX        ((size_t)256 * 1024)
#define MO_EGRESS_DNS_PORT        53
#define MO_EGRESS_CONNECTIONS_MAX 4096
#define MO_EGRESS_INJECT_MAX      32
#define MO_EGRESS_HEADERS_MAX     8

enum mo_egress_kind {
    MO_EGRESS_HOST,
    MO_EGRESS_ONE_BELOW,
    MO_EGRESS_ALL_BELOW,
    MO_EGRESS_EVERY,
    MO_EGRESS_ADDRESS,
};

struct mo_egress_rule {
    char text[MO_EGRESS_TEXT_MAX + 1]; /* as written, for people */
    enum mo_egress_kind kind;
    char host[MO_EGRESS_HOST_MAX + 1]; /* of the first three kinds */
    bool fixed; /* only at ip: an ADDRESS, or a HOST with its address */
    struct mo_ip ip;
    uint16_t ports[2];
    unsigned nports;
};

struct mo_egress_inject {
    char host[MO_EGRESS_HOST_MAX + 1];
    uint16_t port; /* 0: each that is allowed */
    struct {
        char *name, *value;
    } headers[MO_EGRESS_HEADERS_MAX];
    size_t n;
};

struct mo_egress_limits {
    unsigned connections; /* at a time */
    uint64_t bytes;       /* of the box, both directions together */
    uint64_t idle_ms;     /* of a connection without a byte */
    uint64_t life_ms;     /* of a connection */
};
extern const struct mo_egress_limits mo_egress_limits_default;

struct mo_egress_policy {
    struct mo_egress_rule *rules;
    size_t n;
    uint16_t ports[MO_EGRESS_PORTS_MAX]; /* of all rules, ascending */
    size_t nports;                       /* 0: no network */
    bool ask;                            /* about hosts that no rule allows */
    struct mo_egress_limits limits;
    struct mo_egress_inject *inject;
    size_t ninject;
};

/* A host name in the form that rules have. False: it is none. */
bool mo_egress_host(struct mo_span name, char out[MO_EGRESS_HOST_MAX + 1]);

/* One entry of `allow`. MO_EINVAL says what is wrong with it. */
int mo_egress_rule_read(struct mo_span text, struct mo_egress_rule *out,
                        struct mo_err *e);

struct mo_json;
/* Of a policy whose rules are not read yet (inject.c). */
int mo_egress_inject_read(struct mo_egress_policy *p, struct mo_json v,
                          struct mo_err *e);
void mo_egress_inject_free(struct mo_egress_policy *p);
/* The headers that are set in requests to this host, or NULL. */
const struct mo_egress_inject *
mo_egress_find_inject(const struct mo_egress_policy *p, const char *name,
                      uint16_t port);

int mo_egress_policy_read(struct mo_span json, struct mo_egress_policy **out,
                          struct mo_err *e);
void mo_egress_policy_free(struct mo_egress_policy *p);

/* The rule that allows this host or address, or NULL. name: as
 * mo_egress_host() makes it. port 0: at any port. */
const struct mo_egress_rule *
mo_egress_find_name(const struct mo_egress_policy *p, const char *name,
                    uint16_t port);
const struct mo_egress_rule *
mo_egress_find_address(const struct mo_egress_policy *p, const struct mo_ip *ip,
                       uint16_t port);
/* May a connection that this rule allows go to this address? */
bool mo_egress_may_reach(const struct mo_egress_rule *r,
                         const struct mo_ip *ip);

#endif
