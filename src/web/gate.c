#include "web/gate.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/rand.h"
#include "codec/http/url.h"
#include "codec/sha256.h"

#define COOKIES_MAX     16u /* of our name; more are an attack */
#define COOKIE_NAME_MAX 32

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

bool mo_gate_is_foreign(const struct mo_req *rq)
{
    struct mo_span site = mo_http_get(rq->head, "Sec-Fetch-Site");

    return mo_span_is(site, "cross-site") || mo_span_is(site, "same-site");
}

/* True if a page of another site fetched it, other than by following a link. */
static bool is_embedded(const struct mo_req *rq)
{
    return mo_gate_is_foreign(rq) &&
           !mo_span_is(mo_http_get(rq->head, "Sec-Fetch-Mode"), "navigate");
}

static int asked_host(const struct mo_req *rq, struct mo_host *out)
{
    return mo_host_parse(mo_http_get(rq->head, "Host"),
                         mo_req_is_tls(rq) ? 443 : 80, out);
}

/* A page of this server, or of a listed origin. */
static bool page_ok(const struct mo_gate *g, const struct mo_req *rq,
                    const struct mo_host *host, const struct mo_url *page)
{
    return mo_origin_is_host(page, host, mo_req_is_tls(rq)) || listed(g, page);
}

static bool origin_ok(const struct mo_gate *g, const struct mo_req *rq,
                      const struct mo_host *host)
{
    struct mo_span text = mo_http_get(rq->head, "Origin");
    struct mo_url origin;

    if (!text.p)
        return !is_embedded(rq);
    return mo_origin_parse(text, &origin) == 0 && page_ok(g, rq, host, &origin);
}

/* The page that the Referer names. A browser leaves its user name out. */
static int read_referer(const struct mo_req *rq, struct mo_url *page)
{
    int rc = mo_url_parse(mo_http_get(rq->head, "Referer"), page, NULL);

    return rc == 0 && page->userinfo.p ? MO_EINVAL : rc;
}

bool mo_gate_referer_ok(const struct mo_gate *g, const struct mo_req *rq)
{
    struct mo_host host;
    struct mo_url page;

    if (!mo_http_get(rq->head, "Referer").p)
        return true;
    return read_referer(rq, &page) == 0 && asked_host(rq, &host) == 0 &&
           page_ok(g, rq, &host, &page);
}

/* The browser came to this host by https: to us, or to a proxy whose origin is
 * listed, as the page says that sent the request. */
static bool is_by_https(const struct mo_gate *g, const struct mo_req *rq)
{
    struct mo_span origin = mo_http_get(rq->head, "Origin");
    struct mo_host host;
    struct mo_url page;

    if (mo_req_is_tls(rq))
        return true;
    return (origin.p ? mo_origin_parse(origin, &page)
                     : read_referer(rq, &page)) == 0 &&
           mo_host_parse(mo_http_get(rq->head, "Host"), 443, &host) == 0 &&
           mo_origin_is_host(&page, &host, true) && listed(g, &page);
}

bool mo_gate_has_tokens(const struct mo_gate *g)
{
    return g->token || g->ntokens ||
           (g->people && mo_people_has_providers(g->people));
}

/* The owner of a token; "": the operator; NULL: invalid. Compares with all
 * tokens, so the time reveals nothing. */
static const char *whose(const struct mo_gate *g, struct mo_span token)
{
    const char *name = NULL;

    for (size_t i = 0; i < g->ntokens; i++)
        if (mo_span_eq_ct(token, mo_span_cstr(g->tokens[i].token)))
            name = g->tokens[i].name;
    if (g->token && mo_span_eq_ct(token, mo_span_cstr(g->token)))
        name = "";
    return token.n ? name : NULL;
}

bool mo_gate_token_ok(const struct mo_gate *g, struct mo_span token)
{
    return whose(g, token) != NULL || mo_grant_looks_like(token);
}

/* The token of a scheme, which ends with a blank; empty: none. */
static struct mo_span sent_as(const struct mo_req *rq, struct mo_span scheme)
{
    struct mo_span v = mo_http_get(rq->head, "Authorization");

    if (!mo_span_ieq(mo_span_head(v, scheme.n), scheme))
        return mo_span(NULL, 0);
    return mo_span_trim(mo_span_skip(v, scheme.n));
}

static struct mo_span bearer(const struct mo_req *rq)
{
    return sent_as(rq, MO_SPAN("Bearer "));
}

/* The only proof of the request; empty: none, or several. */
static struct mo_span proof_of(const struct mo_req *rq)
{
    struct mo_span found = {NULL, 0};

    for (size_t i = 0; i < rq->head->nheaders; i++) {
        if (!mo_span_ieq(rq->head->headers[i].name, MO_SPAN("DPoP")))
            continue;
        if (found.p)
            return mo_span(NULL, 0);
        found = rq->head->headers[i].value;
    }
    return found;
}

/* An operator uses everybody's data, also one with a name. */
static void admit(struct mo_req *rq, const char *door, struct mo_span name,
                  enum mo_role role)
{
    rq->door = door;
    rq->role = (int)role;
    (void)snprintf(rq->who, sizeof(rq->who), "%.*s", (int)name.n, name.p);
    if (role < MO_ROLE_OPERATOR)
        memcpy(rq->caller, rq->who, sizeof(rq->caller));
}

/* The role of a name in server.tokens; "": the operator. */
static enum mo_role role_of(const struct mo_gate *g, struct mo_span name)
{
    for (size_t i = 0; i < g->ntokens; i++)
        if (mo_span_is(name, g->tokens[i].name))
            return g->tokens[i].role;
    return name.n ? MO_ROLE_NONE : MO_ROLE_OPERATOR;
}

/* --- the cookie ----------------------------------------------------------- */

static void name_cookie(const struct mo_host *host, char out[COOKIE_NAME_MAX])
{
    (void)snprintf(out, COOKIE_NAME_MAX, MO_GATE_COOKIE "%u",
                   (unsigned)host->port);
}

/* The value of the next cookie of that name in *all; p NULL: none. */
static struct mo_span next_cookie(struct mo_span *all, const char *wanted)
{
    while (all->p) {
        struct mo_span value = mo_span_trim(mo_span_cut(all, ';'));
        struct mo_span name = mo_span_cut(&value, '=');

        if (mo_span_is(name, wanted) && value.p)
            return value;
    }
    return mo_span(NULL, 0);
}

static void sign_cookie(const char *token, const struct mo_host *host,
                        struct mo_span name_and_end,
                        char out[MO_SHA256_HEX + 1])
{
    unsigned char digest[MO_SHA256_LEN];
    char port[16];
    struct mo_hmac m;

    (void)snprintf(port, sizeof(port), ":%u ", (unsigned)host->port);
    mo_hmac_init(&m, mo_span_cstr(token));
    mo_hmac_put(&m, "cookie ", 7);
    for (size_t i = 0; i < host->name.n; i++) {
        char c = mo_lower(host->name.p[i]);

        mo_hmac_put(&m, &c, 1);
    }
    mo_hmac_put(&m, port, strlen(port));
    mo_hmac_put(&m, name_and_end.p, name_and_end.n);
    mo_hmac_end(&m, digest);
    mo_hex(digest, sizeof(digest), out);
    explicit_bzero(&m, sizeof(m));
}

static const char *token_of(const struct mo_gate *g, struct mo_span name)
{
    if (name.n == 0)
        return g->token;
    for (size_t i = 0; i < g->ntokens; i++)
        if (mo_span_is(name, g->tokens[i].name))
            return g->tokens[i].token;
    return NULL;
}

static struct mo_span cut_last(struct mo_span *s)
{
    struct mo_span last = *s;

    for (size_t i = s->n; i > 0; i--) {
        if (s->p[i - 1] != '.')
            continue;
        last = mo_span_skip(*s, i);
        s->n = i - 1;
        return last;
    }
    s->n = 0;
    return last;
}

/* Reads "NAME.END.DIGEST". */
static bool read_cookie(const struct mo_gate *g, const struct mo_host *host,
                        struct mo_span rest, struct mo_span *name)
{
    struct mo_span digest = cut_last(&rest), name_and_end = rest;
    char want[MO_SHA256_HEX + 1];
    const char *token;
    uint64_t end = 0;

    if (mo_span_u64(cut_last(&rest), &end) < 0 || end < mo_wall_ms() / 1000)
        return false;
    *name = rest;
    token = token_of(g, rest);
    if (!token)
        return false;
    sign_cookie(token, host, name_and_end, want);
    return mo_span_eq_ct(digest, mo_span_cstr(want));
}

/* The person whose cookie the request carries. A page at another port of this
 * host can add cookies of our name: those that are not valid do not count, and
 * of two persons neither does. */
static bool find_signed_in(const struct mo_gate *g, const struct mo_req *rq,
                           struct mo_span *name)
{
    struct mo_span all = mo_http_get(rq->head, "Cookie"), value, who;
    char cookie_name[COOKIE_NAME_MAX];
    struct mo_host host;
    bool found = false;

    if (!all.p || asked_host(rq, &host) < 0)
        return false;
    name_cookie(&host, cookie_name);
    for (unsigned i = 0; i < COOKIES_MAX; i++) {
        value = next_cookie(&all, cookie_name);
        if (!value.p)
            return found;
        if (!read_cookie(g, &host, value, &who))
            continue;
        if (found && !mo_span_eq(who, *name))
            return false;
        found = true;
        *name = who;
    }
    return false;
}

int mo_gate_cookie(const struct mo_gate *g, struct mo_req *rq,
                   struct mo_span token, struct mo_buf *out)
{
    const char *name = whose(g, token);
    char text[MO_REQ_CALLER_MAX + 24], digest[MO_SHA256_HEX + 1];
    uint64_t end = mo_wall_ms() / 1000 + MO_GATE_COOKIE_S;
    struct mo_host host;

    if (!name || asked_host(rq, &host) < 0)
        return MO_EPOLICY;
    (void)snprintf(text, sizeof(text), "%s.%llu", name,
                   (unsigned long long)end);
    sign_cookie(token_of(g, mo_span_cstr(name)), &host, mo_span_cstr(text),
                digest);
    admit(rq, rq->door, mo_span_cstr(name), role_of(g, mo_span_cstr(name)));
    return mo_buf_printf(out,
                         MO_GATE_COOKIE "%u=%s.%s; Path=/; Max-Age=%llu; "
                                        "HttpOnly; SameSite=Strict%s",
                         (unsigned)host.port, text, digest,
                         (unsigned long long)MO_GATE_COOKIE_S,
                         is_by_https(g, rq) ? "; Secure" : "");
}

/* --- logins -------------------------------------------------------------- */

#define HOST_TEXT 280

/* "host:port", in lower case; "": too long. */
static struct mo_span host_text(const struct mo_req *rq, char out[HOST_TEXT])
{
    struct mo_host host;
    size_t n = 0;

    if (asked_host(rq, &host) < 0 || host.name.n + 8 > HOST_TEXT)
        return mo_span(NULL, 0);
    for (; n < host.name.n; n++)
        out[n] = mo_lower(host.name.p[n]);
    n += (size_t)snprintf(out + n, HOST_TEXT - n, ":%u", (unsigned)host.port);
    return mo_span(out, n);
}

unsigned mo_gate_port(const struct mo_req *rq)
{
    struct mo_host host;

    return asked_host(rq, &host) < 0 ? 0 : host.port;
}

struct mo_span mo_gate_find_cookie(const struct mo_req *rq, const char *name)
{
    struct mo_span all = mo_http_get(rq->head, "Cookie");

    return next_cookie(&all, name);
}

/* The secret of the next login among the cookies; p NULL: none. */
static struct mo_span next_login(const struct mo_req *rq, struct mo_span *all)
{
    char name[COOKIE_NAME_MAX];
    struct mo_span value;
    struct mo_host host;

    if (asked_host(rq, &host) < 0)
        return mo_span(NULL, 0);
    name_cookie(&host, name);
    do
        value = next_cookie(all, name);
    while (value.p && !mo_span_starts(value, MO_SPAN(MO_LOGIN_PREFIX)));
    return value;
}

/* MO_EUNAVAIL: `more` says which login must be renewed first. */
static int find_login(const struct mo_gate *g, const struct mo_req *rq,
                      struct mo_person *out, struct mo_gate_more *more)
{
    struct mo_span all = mo_http_get(rq->head, "Cookie"), secret = {NULL, 0};
    struct mo_span host;
    char text[HOST_TEXT];
    int rc = MO_ENOTFOUND;

    if (!g->people || !all.p)
        return rc;
    host = host_text(rq, text);
    for (unsigned i = 0; rc == MO_ENOTFOUND && i < COOKIES_MAX; i++) {
        secret = next_login(rq, &all);
        if (!secret.p)
            break;
        rc = mo_login_check(mo_people_logins(g->people), secret, host, out);
    }
    if (rc == MO_EUNAVAIL)
        more->login = secret;
    return rc;
}

int mo_gate_log_in(const struct mo_gate *g, struct mo_req *rq,
                   const char *provider, const struct mo_exchanged *got,
                   struct mo_buf *out, struct mo_err *e)
{
    char text[HOST_TEXT], secret[MO_LOGIN_SECRET + 1];
    const struct mo_login_new n = {
        .got = got, .provider = provider, .host = host_text(rq, text)};
    bool is_https = mo_span_starts(mo_span_cstr(mo_people_url(g->people)),
                                   MO_SPAN("https:"));
    int rc = mo_login_begin(mo_people_logins(g->people), &n, secret, e);

    if (rc < 0)
        return rc;
    if (g->grants)
        mo_grants_saw(g->grants, got->who.name, got->who.role);
    admit(rq, "page", mo_span_cstr(got->who.name), got->who.role);
    (void)mo_buf_printf(out,
                        MO_GATE_COOKIE "%u=%s; Path=/; Max-Age=%llu; "
                                       "HttpOnly; SameSite=Strict%s",
                        mo_gate_port(rq), secret,
                        (unsigned long long)MO_LOGIN_S,
                        mo_req_is_tls(rq) || is_https ? "; Secure" : "");
    explicit_bzero(secret, sizeof(secret));
    return mo_buf_err(out) ? mo_fail(e, MO_ENOMEM, "out of memory") : 0;
}

void mo_gate_log_out(const struct mo_gate *g, const struct mo_req *rq)
{
    struct mo_span all = mo_http_get(rq->head, "Cookie"), secret;
    char who[MO_PERSON_MAX];

    for (unsigned i = 0; g->people && all.p && i < COOKIES_MAX; i++) {
        secret = next_login(rq, &all);
        if (!secret.p)
            return;
        mo_login_end(mo_people_logins(g->people), secret, true, who);
    }
}

int mo_gate_no_cookie(const struct mo_req *rq, struct mo_buf *out)
{
    struct mo_host host;

    if (asked_host(rq, &host) < 0)
        return MO_EINVAL;
    return mo_buf_printf(out,
                         MO_GATE_COOKIE "%u=; Path=/; Max-Age=0; "
                                        "HttpOnly; SameSite=Strict%s",
                         (unsigned)host.port,
                         mo_req_is_tls(rq) ? "; Secure" : "");
}

/* --- the request ---------------------------------------------------------- */

struct mo_refusal mo_gate_check_page(const struct mo_gate *g,
                                     const struct mo_req *rq)
{
    static const struct mo_refusal bad = {
        400, "bad_host", "the Host header is missing or malformed"};
    static const struct mo_refusal stranger = {
        403, "host_refused",
        "with --no-auth only localhost is served; use that name, or start "
        "without --no-auth"};
    static const struct mo_refusal foreign = {
        403, "origin_refused",
        "this page may not use the server; add its origin to server.origins"};
    struct mo_host host;

    if (asked_host(rq, &host) < 0)
        return bad;
    if (!mo_gate_has_tokens(g) && !mo_host_is_loopback(&host))
        return stranger;
    return origin_ok(g, rq, &host) ? let_in : foreign;
}

/* True for a request of a browser or through a proxy: a proxy of this user may
 * connect to the socket for the whole network, and name us "localhost". */
static bool is_on_behalf(const struct mo_req *rq)
{
    static const char *const marks[] = {
        "Forwarded",        "X-Forwarded-For",
        "X-Forwarded-Host", "X-Forwarded-Proto",
        "X-Real-IP",        "Via",
        "Origin",           "Referer",
        "Sec-Fetch-Site",   "Cookie",
    };

    for (size_t i = 0; i < MO_COUNT(marks); i++)
        if (mo_http_get(rq->head, marks[i]).p)
            return true;
    return rq->head->minor < 1; /* as nginx speaks to its backends */
}

/* By a unix socket, on one's own behalf. A request of another worker is always
 * that of a client, which may have written its head itself. */
static bool is_own_user(const struct mo_req *rq)
{
    struct mo_host host;

    return !mo_req_is_inner(rq) && mo_req_is_own_user(rq) &&
           !is_on_behalf(rq) && asked_host(rq, &host) == 0 &&
           mo_host_is_loopback(&host);
}

/* Their personal tokens have at most the role that they have now. */
static void saw(const struct mo_gate *g, const struct mo_person *person)
{
    if (g->grants)
        mo_grants_saw(g->grants, person->name, person->role);
}

/* A token that is bound to a key needs a proof (people/proof.h). */
static struct mo_refusal check_proof(const struct mo_gate *g,
                                     const struct mo_req *rq,
                                     struct mo_span token, bool as_dpop,
                                     const struct mo_person *person,
                                     struct mo_gate_more *more)
{
    static const struct mo_refusal bad = {401, "invalid_dpop_proof", ""},
                                   busy = {503, "too_many_proofs", ""};
    struct mo_proof in = {.sent = as_dpop, .passed_on = mo_req_is_inner(rq)};
    int rc;

    if (!in.sent && !person->jkt[0])
        return let_in;
    in.text = proof_of(rq);
    in.method = rq->head->method_text;
    in.path = rq->path;
    in.token = token;
    more->dpop = true;
    rc = mo_people_prove(g->people, person, &in, &more->why);
    if (rc == MO_EBUSY)
        return busy;
    return rc < 0 ? bad : let_in;
}

/* A token of a provider, signed or not. */
static struct mo_refusal check_signed(const struct mo_gate *g,
                                      struct mo_req *rq, struct mo_span token,
                                      bool as_dpop, struct mo_gate_more *more)
{
    static const struct mo_refusal invalid = {401, "invalid_token", ""},
                                   scope = {403, "insufficient_scope",
                                            "the token lacks a scope"},
                                   no_role = {403, "no_role", ""},
                                   busy = {503, "provider_busy", ""};
    struct mo_provider *from = NULL;
    struct mo_refusal no;
    struct mo_person person;

    switch (mo_people_check(g->people, token, &person, &from, &more->why)) {
    case 0:
        no = check_proof(g, rq, token, as_dpop, &person, more);
        if (no.status)
            return no;
        saw(g, &person);
        /* A client's credential: it cannot approve the client's own calls. */
        admit(rq, "token", mo_span_cstr(person.name), person.role);
        return let_in;
    case MO_EUNAVAIL:
        more->is_unknown = true;
        more->read = from;
        more->token = token;
        return busy;
    case MO_EBUSY:
        return busy;
    case MO_EINVAL:
        return scope;
    case MO_ENOTFOUND:
        if (g->grants)
            mo_grants_saw(g->grants, person.name, MO_ROLE_NONE);
        return no_role;
    default:
        return invalid;
    }
}

/* By the cookie of a login. False: there is none. */
static bool check_login(const struct mo_gate *g, struct mo_req *rq,
                        struct mo_gate_more *more, struct mo_refusal *no)
{
    static const struct mo_refusal renew = {
        401, "signed_out", "the provider does not answer; sign in again"};
    struct mo_person person;
    int rc = find_login(g, rq, &person, more);

    if (rc == MO_ENOTFOUND)
        return false;
    *no = rc == 0 ? let_in : renew;
    if (rc < 0)
        return true;
    saw(g, &person);
    admit(rq, "page", mo_span_cstr(person.name), person.role);
    return true;
}

/* --- personal tokens ------------------------------------------------------ */

enum mo_role mo_gate_role_now(const struct mo_gate *g, const char *name)
{
    if (!strchr(name, ':'))
        return name[0] || g->token ? role_of(g, mo_span_cstr(name))
                                   : MO_ROLE_NONE;
    if (!g->people || !g->grants)
        return MO_ROLE_NONE;
    return mo_person_role_now(mo_people_config(g->people), name,
                              mo_grants_seen(g->grants, name));
}

static bool is_at_view(const struct mo_grant *t, struct mo_span path)
{
    return t->nviews == 0 || (mo_span_strip(&path, MO_SPAN("/mcp/")) &&
                              mo_grant_has_view(t, path));
}

/* The operator has no name, but a lesser role must not use everybody's data:
 * such a token is a person of its own. No other name has a '+'. */
static void admit_grant(struct mo_req *rq, const struct mo_grant *t,
                        enum mo_role role)
{
    char name[MO_REQ_CALLER_MAX];

    (void)snprintf(name, sizeof(name), "operator+%s", t->id);
    admit(
        rq, "token",
        mo_span_cstr(t->owner[0] || role == MO_ROLE_OPERATOR ? t->owner : name),
        role);
    memcpy(rq->grant, t->id, sizeof(t->id));
}

static struct mo_refusal check_grant(const struct mo_gate *g, struct mo_req *rq,
                                     struct mo_span token,
                                     struct mo_gate_more *more)
{
    static const struct mo_refusal
        invalid = {401, "invalid_token", ""},
        no_role = {403, "no_role",
                   "the owner of this token has no role here any more, or has "
                   "not signed in for 30 days"},
        view = {403, "view_required",
                "this token is for some views "
                "only: use /mcp/VIEW"},
        wait = {503, "not_ready",
                "personal tokens cannot be checked "
                "now; try again"};
    const struct mo_grant *t = NULL;
    enum mo_role role;
    int rc = g->grants ? mo_grants_check(g->grants, token, &t, &more->why)
                       : MO_EUNAVAIL;

    _Static_assert(MO_REQ_GRANT_MAX > MO_GRANT_ID, "an id");
    if (rc == MO_EUNAVAIL) {
        more->read_grants = g->grants != NULL;
        return wait;
    }
    if (rc < 0)
        return invalid;
    role = mo_gate_role_now(g, t->owner);
    if (role == MO_ROLE_NONE)
        return no_role;
    admit_grant(rq, t, t->role < role ? t->role : role);
    return is_at_view(t, rq->path) ? let_in : view;
}

struct mo_refusal mo_gate_check(const struct mo_gate *g, struct mo_req *rq,
                                struct mo_gate_more *more)
{
    static const struct mo_refusal who = {
        401, "token_required",
        "send Authorization: Bearer TOKEN, or sign in: `mcp-orchestrator open` "
        "prints a link for the browser"};
    struct mo_refusal no = mo_gate_check_page(g, rq);
    struct mo_span signed_in, token = bearer(rq);
    struct mo_span bound = {NULL, 0};
    struct mo_gate_more unused;
    const char *name = NULL;

    if (!more)
        more = &unused;
    *more = (struct mo_gate_more){.read = NULL};
    rq->who[0] = rq->caller[0] = rq->grant[0] = '\0';
    rq->door = "open";
    rq->role = MO_ROLE_OPERATOR;
    if (no.status || !mo_gate_has_tokens(g))
        return no;
    if (!token.n)
        bound = sent_as(rq, MO_SPAN("DPoP "));
    name = whose(g, token);
    if (name)
        admit(rq, "token", mo_span_cstr(name), role_of(g, mo_span_cstr(name)));
    else if (mo_span_starts(token, MO_SPAN(MO_GRANT_PREFIX)))
        return check_grant(g, rq, token, more);
    else if (g->people && mo_people_may_know(g->people, token))
        return check_signed(g, rq, token, false, more);
    else if (g->people && mo_people_may_know(g->people, bound))
        return check_signed(g, rq, bound, true, more);
    else if (find_signed_in(g, rq, &signed_in))
        admit(rq, "page", signed_in, role_of(g, signed_in));
    else if (check_login(g, rq, more, &no))
        return no;
    else if (is_own_user(rq))
        rq->door = "socket";
    else
        return who;
    return no;
}

const char *mo_gate_credential(const struct mo_req *rq)
{
    struct mo_span all = mo_http_get(rq->head, "Cookie");
    char cookie_name[COOKIE_NAME_MAX];
    struct mo_host host;

    if (mo_http_get(rq->head, "Authorization").p)
        return "token";
    if (!all.p || asked_host(rq, &host) < 0)
        return "none";
    name_cookie(&host, cookie_name);
    return next_cookie(&all, cookie_name).p ? "cookie" : "none";
}
