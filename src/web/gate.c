#include "web/gate.h"

#include <stdio.h>

#include "codec/http/url.h"

static const struct mo_refusal let_in = {0, NULL, NULL};

static bool listed(const struct mo_gate *g, const struct mo_url *origin)
{
    for (size_t i = 0; i < g->norigins; i++) {
        struct mo_url u;

        if (mo_origin_parse(mo_span_cstr(g->origins[i]), &u) == 0 &&
            mo_origin_eq(&u, origin))
            return true;
    }
    return false;
}

struct mo_span mo_gate_listed(const struct mo_gate *g, const struct mo_req *rq)
{
    struct mo_span text = mo_http_get(rq->head, "Origin");
    struct mo_url origin;

    if (g->norigins && text.p && mo_origin_parse(text, &origin) == 0 &&
        listed(g, &origin))
        return text;
    return mo_span(NULL, 0);
}

/* True if a page of another site fetched it, other than by following a link. */
static bool is_embedded(const struct mo_req *rq)
{
    struct mo_span site = mo_http_get(rq->head, "Sec-Fetch-Site");
    struct mo_span mode = mo_http_get(rq->head, "Sec-Fetch-Mode");

    return (mo_span_is(site, "cross-site") || mo_span_is(site, "same-site")) &&
           !mo_span_is(mode, "navigate");
}

static bool origin_ok(const struct mo_gate *g, const struct mo_req *rq,
                      const struct mo_host *host)
{
    struct mo_span text = mo_http_get(rq->head, "Origin");
    struct mo_url origin;

    if (!text.p)
        return !is_embedded(rq);
    return mo_origin_parse(text, &origin) == 0 &&
           (mo_origin_is_host(&origin, host, mo_req_is_tls(rq)) ||
            listed(g, &origin));
}

bool mo_gate_has_tokens(const struct mo_gate *g)
{
    return g->token || g->npeople;
}

/* The owner of a token; "": the operator; NULL: invalid. Compares with all
 * tokens, so the time reveals nothing. */
static const char *whose(const struct mo_gate *g, struct mo_span token)
{
    const char *name = NULL;

    for (size_t i = 0; i < g->npeople; i++)
        if (mo_span_eq_ct(token, mo_span_cstr(g->people[i].token)))
            name = g->people[i].name;
    if (g->token && mo_span_eq_ct(token, mo_span_cstr(g->token)))
        name = "";
    return token.n ? name : NULL;
}

bool mo_gate_token_ok(const struct mo_gate *g, struct mo_span token)
{
    return whose(g, token) != NULL;
}

static struct mo_span bearer(const struct mo_req *rq)
{
    struct mo_span v = mo_http_get(rq->head, "Authorization");
    struct mo_span kind = mo_span_head(v, 7);

    if (!mo_span_ieq(kind, MO_SPAN("Bearer ")))
        return mo_span(NULL, 0);
    return mo_span_trim(mo_span_skip(v, 7));
}

static struct mo_span cookie(const struct mo_req *rq)
{
    struct mo_span all = mo_http_get(rq->head, "Cookie");

    while (all.p) {
        struct mo_span value = mo_span_trim(mo_span_cut(&all, ';'));
        struct mo_span name = mo_span_cut(&value, '=');

        if (mo_span_is(name, MO_GATE_COOKIE))
            return value;
    }
    return mo_span(NULL, 0);
}

struct mo_refusal mo_gate_check_page(const struct mo_gate *g,
                                     const struct mo_req *rq)
{
    static const struct mo_refusal bad = {
        400, "bad_host", "the Host header is missing or malformed"};
    static const struct mo_refusal stranger = {
        403, "host_refused",
        "without a token only localhost is served; use that name, or set "
        "server.token"};
    static const struct mo_refusal foreign = {
        403, "origin_refused",
        "this page may not use the server; add its origin to server.origins"};
    uint16_t port = mo_req_is_tls(rq) ? 443 : 80;
    struct mo_host host;

    if (mo_host_parse(mo_http_get(rq->head, "Host"), port, &host) < 0)
        return bad;
    if (!mo_gate_has_tokens(g) && !mo_host_is_loopback(&host))
        return stranger;
    return origin_ok(g, rq, &host) ? let_in : foreign;
}

struct mo_refusal mo_gate_check(const struct mo_gate *g, struct mo_req *rq)
{
    static const struct mo_refusal who = {
        401, "token_required",
        "send Authorization: Bearer TOKEN, or open /?token=TOKEN once"};
    struct mo_refusal no = mo_gate_check_page(g, rq);
    const char *name = NULL;

    rq->caller[0] = '\0';
    if (no.status || !mo_gate_has_tokens(g))
        return no;
    name = whose(g, bearer(rq));
    if (!name)
        name = whose(g, cookie(rq));
    if (!name)
        return who;
    (void)snprintf(rq->caller, sizeof(rq->caller), "%s", name);
    return no;
}
