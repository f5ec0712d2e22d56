/* inject.c - `inject` of a policy; see policy.h. */
#include "codec/http/http1.h"
#include "codec/json/json.h"
#include "egress/policy.h"

#define ARENA_MAX ((size_t)64 * 1024)

void mo_egress_inject_free(struct mo_egress_policy *p)
{
    for (size_t i = 0; i < p->ninject; i++)
        for (size_t k = 0; k < p->inject[i].n; k++) {
            mo_free(p->inject[i].headers[k].name);
            mo_free(p->inject[i].headers[k].value);
        }
    mo_free(p->inject);
}

/* Headers that say where a message ends or what becomes of the connection. */
static bool is_framing(struct mo_span name)
{
    static const char *const rows[] = {
        "connection",     "content-length",    "expect",
        "host",           "keep-alive",        "te",
        "trailer",        "transfer-encoding", "upgrade",
        "http2-settings", "proxy-connection",
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++)
        if (mo_span_ieq(name, mo_span_cstr(rows[i])))
            return true;
    return false;
}

static bool has_header(const struct mo_egress_inject *j, struct mo_span name)
{
    for (size_t i = 0; i < j->n; i++)
        if (mo_span_ieq(name, mo_span_cstr(j->headers[i].name)))
            return true;
    return false;
}

static int add_header(struct mo_egress_inject *j, struct mo_json key,
                      struct mo_json text, struct mo_err *e)
{
    mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};
    struct mo_span name, value;

    if (j->n == MO_EGRESS_HEADERS_MAX)
        return mo_fail(e, MO_EINVAL, "inject: '%s' has more than %d headers",
                       j->host, MO_EGRESS_HEADERS_MAX);
    if (mo_json_str(key, &a, &name) < 0 || !mo_http_is_token(name) ||
        is_framing(name))
        return mo_fail(e, MO_EINVAL,
                       "inject: '%s': '%.*s' is not a header that can be set",
                       j->host, (int)mo_span_head(mo_json_text(key), 60).n,
                       key.p);
    if (has_header(j, name))
        return mo_fail(e, MO_EINVAL, "inject: '%s' has '%.*s' twice", j->host,
                       (int)mo_span_head(name, 60).n, name.p);
    if (!mo_json_is(text, MO_JSON_STRING) || mo_json_str(text, &a, &value) < 0)
        return mo_fail(e, MO_EINVAL, "inject: '%s': '%.*s' must be a text",
                       j->host, (int)mo_span_head(name, 60).n, name.p);
    j->headers[j->n].name = mo_strndup(name.p, name.n);
    j->headers[j->n].value = mo_strndup(value.p, value.n);
    j->n++;
    return j->headers[j->n - 1].name && j->headers[j->n - 1].value
               ? 0
               : mo_fail(e, MO_ENOMEM, "network");
}

/* "HOST" or "HOST:PORT" */
static int read_host(struct mo_egress_inject *j, struct mo_json key,
                     struct mo_err *e)
{
    mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};
    struct mo_span host, port;
    uint64_t n = 0;

    if (mo_json_str(key, &a, &port) < 0)
        return mo_fail(e, MO_EINVAL, "inject: a host is too long");
    host = mo_span_cut(&port, ':');
    if (port.p && (mo_span_u64(port, &n) < 0 || n == 0 || n > 65535))
        return mo_fail(e, MO_EINVAL, "inject: '%.*s': a port is 1 to 65535",
                       (int)mo_span_head(host, 60).n, host.p);
    j->port = (uint16_t)n;
    if (!mo_egress_host(host, j->host))
        return mo_fail(e, MO_EINVAL,
                       "inject: '%.*s' must be HOST or HOST:PORT, without '*'",
                       (int)mo_span_head(host, 60).n, host.p);
    return 0;
}

static int add_host(struct mo_egress_policy *p, struct mo_json key,
                    struct mo_json headers, struct mo_err *e)
{
    struct mo_egress_inject *j = &p->inject[p->ninject];
    int rc = read_host(j, key, e);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < p->ninject; i++)
        if (strcmp(p->inject[i].host, j->host) == 0 &&
            p->inject[i].port == j->port)
            return mo_fail(e, MO_EINVAL, "inject: '%s' is given twice",
                           j->host);
    p->ninject++; /* to be freed */
    if (mo_json_len(headers) == 0 || !mo_json_is(headers, MO_JSON_OBJECT))
        return mo_fail(
            e, MO_EINVAL,
            "inject: '%s' must be an object: { \"HEADER\": \"...\" }", j->host);
    mo_json_each_while (it, headers, rc == 0)
        rc = add_header(j, it.key, it.val, e);
    return rc;
}

int mo_egress_inject_read(struct mo_egress_policy *p, struct mo_json v,
                          struct mo_err *e)
{
    size_t n = mo_json_len(v);
    int rc = 0;

    if (!mo_json_is(v, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL, "inject must be an object");
    if (n > MO_EGRESS_INJECT_MAX)
        return mo_fail(e, MO_EINVAL, "inject has more than %d hosts",
                       MO_EGRESS_INJECT_MAX);
    if (p->inject)
        return mo_fail(e, MO_EINVAL, "inject is given twice");
    p->inject = mo_zalloc((n + 1) * sizeof(*p->inject));
    if (!p->inject)
        return mo_fail(e, MO_ENOMEM, "network");
    mo_json_each_while (it, v, rc == 0)
        rc = add_host(p, it.key, it.val, e);
    return rc;
}

const struct mo_egress_inject *
mo_egress_find_inject(const struct mo_egress_policy *p, const char *name,
                      uint16_t port)
{
    const struct mo_egress_inject *found = NULL;

    for (size_t i = 0; i < p->ninject; i++) {
        const struct mo_egress_inject *j = &p->inject[i];

        if (strcmp(j->host, name) != 0 || (j->port && j->port != port))
            continue;
        if (j->port)
            return j; /* it says more than one for every port */
        found = j;
    }
    return found;
}
