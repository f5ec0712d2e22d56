#include "egress/policy.h"

#include "codec/json/json.h"

#define MIB           ((uint64_t)1024 * 1024)
#define JSON_DEPTH    8
#define ARENA_MAX     ((size_t)64 * 1024)
#define MEGABYTES_MAX ((uint64_t)1024 * 1024 * 1024)
#define YEAR_S        ((uint64_t)366 * 86400)

const struct mo_egress_limits mo_egress_limits_default = {
    .connections = 128,
    .bytes = 10240 * MIB,
    .idle_ms = (uint64_t)900 * 1000,
    .life_ms = (uint64_t)86400 * 1000,
};

void mo_egress_policy_free(struct mo_egress_policy *p)
{
    if (!p)
        return;
    mo_egress_inject_free(p);
    mo_free(p->rules);
    mo_free(p);
}

/* --- reading ------------------------------------------------------------- */

static int add_port(struct mo_egress_policy *p, uint16_t port, struct mo_err *e)
{
    size_t i = 0;

    while (i < p->nports && p->ports[i] < port)
        i++;
    if (i < p->nports && p->ports[i] == port)
        return 0;
    if (p->nports == MO_EGRESS_PORTS_MAX)
        return mo_fail(e, MO_EINVAL, "allow: more than %d different ports",
                       MO_EGRESS_PORTS_MAX);
    memmove(p->ports + i + 1, p->ports + i,
            (p->nports - i) * sizeof(p->ports[0]));
    p->ports[i] = port;
    p->nports++;
    return 0;
}

static int add_rule(struct mo_egress_policy *p, struct mo_json text,
                    struct mo_err *e)
{
    mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};
    struct mo_egress_rule *r = &p->rules[p->n];
    struct mo_span s;
    int rc;

    if (!mo_json_is(text, MO_JSON_STRING))
        return mo_fail(e, MO_EINVAL, "allow: an entry must be a text");
    if (mo_json_str(text, &a, &s) < 0)
        return mo_fail(e, MO_EINVAL, "allow: an entry is too long");
    rc = mo_egress_rule_read(s, r, e);
    for (unsigned i = 0; rc == 0 && i < r->nports; i++)
        rc = add_port(p, r->ports[i], e);
    p->n += rc == 0;
    return rc;
}

static int read_allow(struct mo_egress_policy *p, struct mo_json v,
                      struct mo_err *e)
{
    size_t n = mo_json_len(v);
    int rc = 0;

    if (!mo_json_is(v, MO_JSON_ARRAY))
        return mo_fail(e, MO_EINVAL, "allow must be a list");
    if (n > MO_EGRESS_RULES_MAX)
        return mo_fail(e, MO_EINVAL, "allow has more than %d entries",
                       MO_EGRESS_RULES_MAX);
    if (p->rules)
        return mo_fail(e, MO_EINVAL, "allow is given twice");
    p->rules = mo_zalloc((n + 1) * sizeof(*p->rules));
    if (!p->rules)
        return mo_fail(e, MO_ENOMEM, "network");
    mo_json_each_while (it, v, rc == 0)
        rc = add_rule(p, it.val, e);
    return rc;
}

static int read_number(struct mo_json v, const char *name, uint64_t max,
                       uint64_t *out, struct mo_err *e)
{
    if (mo_json_u64(v, out) < 0 || *out < 1 || *out > max)
        return mo_fail(e, MO_EINVAL, "%s must be a number from 1 to %llu", name,
                       (unsigned long long)max);
    return 0;
}

static int read_ask(struct mo_egress_policy *p, struct mo_json v,
                    struct mo_err *e)
{
    static const uint16_t ports[] = {80, 443};
    int rc = 0;

    if (mo_json_bool(v, &p->ask) < 0)
        return mo_fail(e, MO_EINVAL, "ask must be true or false");
    for (size_t i = 0; p->ask && rc == 0 && i < MO_COUNT(ports); i++)
        rc = add_port(p, ports[i], e);
    return rc;
}

static int read_member(struct mo_egress_policy *p, struct mo_json key,
                       struct mo_json v, struct mo_err *e)
{
    struct mo_egress_limits *l = &p->limits;
    uint64_t n = 0;
    int rc = 0;

    if (mo_json_str_eq(key, MO_SPAN("allow")))
        return read_allow(p, v, e);
    if (mo_json_str_eq(key, MO_SPAN("ask")))
        return read_ask(p, v, e);
    if (mo_json_str_eq(key, MO_SPAN("inject")))
        return mo_egress_inject_read(p, v, e);
    if (mo_json_str_eq(key, MO_SPAN("maxConnections"))) {
        rc = read_number(v, "maxConnections", MO_EGRESS_CONNECTIONS_MAX, &n, e);
        l->connections = (unsigned)n;
    } else if (mo_json_str_eq(key, MO_SPAN("maxMegabytes"))) {
        rc = read_number(v, "maxMegabytes", MEGABYTES_MAX, &n, e);
        l->bytes = n * MIB;
    } else if (mo_json_str_eq(key, MO_SPAN("idleSeconds"))) {
        rc = read_number(v, "idleSeconds", YEAR_S, &n, e);
        l->idle_ms = n * 1000;
    } else if (mo_json_str_eq(key, MO_SPAN("maxSeconds"))) {
        rc = read_number(v, "maxSeconds", YEAR_S, &n, e);
        l->life_ms = n * 1000;
    } else {
        rc = mo_fail(e, MO_EINVAL, "unknown key %.*s",
                     (int)mo_span_head(mo_json_text(key), 80).n, key.p);
    }
    return rc;
}

/* A secret is for a host that somebody has named. */
static int check_inject(const struct mo_egress_policy *p, struct mo_err *e)
{
    for (size_t i = 0; i < p->ninject; i++) {
        const struct mo_egress_inject *j = &p->inject[i];

        if (!mo_egress_find_name(p, j->host, j->port))
            return mo_fail(e, MO_EINVAL,
                           "inject: '%s' is not allowed by an entry of allow",
                           j->host);
    }
    return 0;
}

static int read_policy(struct mo_egress_policy *p, struct mo_json v,
                       struct mo_err *e)
{
    int rc = 0;

    p->limits = mo_egress_limits_default;
    if (mo_json_str_eq(v, MO_SPAN("none")))
        return 0;
    if (!mo_json_is(v, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL,
                       "must be \"none\" or an object: { \"allow\": [ ... ] }");
    mo_json_each_while (it, v, rc == 0)
        rc = read_member(p, it.key, it.val, e);
    return rc ? rc : check_inject(p, e);
}

int mo_egress_policy_read(struct mo_span json, struct mo_egress_policy **out,
                          struct mo_err *e)
{
    struct mo_egress_policy *p;
    struct mo_json_doc doc;
    int rc;

    if (json.n > MO_EGRESS_JSON_MAX)
        return mo_fail(e, MO_ETOOBIG, "network: too long");
    rc = mo_json_parse(json, JSON_DEPTH, &doc, e);
    if (rc < 0)
        return rc;
    p = mo_new(struct mo_egress_policy);
    if (!p)
        return mo_fail(e, MO_ENOMEM, "network");
    rc = read_policy(p, doc.root, e);
    if (rc < 0) {
        mo_egress_policy_free(p);
        return rc;
    }
    *out = p;
    return 0;
}

/* --- judging ------------------------------------------------------------- */

static bool has_port(const struct mo_egress_rule *r, uint16_t port)
{
    return port == 0 || r->ports[0] == port ||
           (r->nports > 1 && r->ports[1] == port);
}

static bool has_name(const struct mo_egress_rule *r, struct mo_span name)
{
    struct mo_span host = mo_span_cstr(r->host), below;

    if (r->kind == MO_EGRESS_HOST)
        return mo_span_eq(name, host);
    if (r->kind == MO_EGRESS_EVERY)
        return true;
    if (r->kind == MO_EGRESS_ADDRESS || name.n < host.n + 2 ||
        !mo_span_ends(name, host))
        return false;
    below = mo_span_head(name, name.n - host.n);
    if (below.p[below.n - 1] != '.')
        return false;
    return r->kind == MO_EGRESS_ALL_BELOW ||
           mo_span_find(below, '.') == (ptrdiff_t)below.n - 1;
}

/* An entry for the host itself goes first: it may have an address. */
const struct mo_egress_rule *
mo_egress_find_name(const struct mo_egress_policy *p, const char *name,
                    uint16_t port)
{
    const struct mo_egress_rule *found = NULL;
    struct mo_span s = mo_span_cstr(name);

    for (size_t i = 0; i < p->n; i++) {
        const struct mo_egress_rule *r = &p->rules[i];

        if (!has_port(r, port) || !has_name(r, s))
            continue;
        if (r->kind == MO_EGRESS_HOST)
            return r;
        found = found ? found : r;
    }
    return found;
}

const struct mo_egress_rule *
mo_egress_find_address(const struct mo_egress_policy *p, const struct mo_ip *ip,
                       uint16_t port)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct mo_egress_rule *r = &p->rules[i];

        if (r->kind == MO_EGRESS_ADDRESS && mo_ip_eq(&r->ip, ip) &&
            has_port(r, port))
            return r;
    }
    return NULL;
}

bool mo_egress_may_reach(const struct mo_egress_rule *r, const struct mo_ip *ip)
{
    return r->fixed ? mo_ip_eq(&r->ip, ip) : !mo_ip_is_private(ip);
}
