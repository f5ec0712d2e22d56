#include "web/site.h"

#include "web/strikes.h"

#include <stdio.h>

#include "codec/http/url.h"
#include "codec/json/json.h"
#include "web/access.h"
#include "web/access_log.h"
#include "web/docs.h"
#include "web/oidc.h"
#include "web/page.h"
#include "web/resource.h"
#include "web/sign_in.h"
#include "web/site_meter.h"

struct mo_site {
    struct mo_loop *loop;
    struct mo_httpd *httpd;
    struct mo_siod *sio;
    struct mo_gate gate;
    struct mo_strikes strikes;
    struct mo_strikes_shared *shared; /* in place of strikes; or NULL */
    struct mo_audit *audit;           /* NULL: none */
    struct mo_route routes[MO_SITE_ROUTES_MAX];
    /* Of each route, to pass over most of them quickly: the bytes before "{",
     * and whether they are all of its path. */
    size_t literal[MO_SITE_ROUTES_MAX];
    int least[MO_SITE_ROUTES_MAX]; /* enum mo_role that may use it */
    bool is_exact[MO_SITE_ROUTES_MAX];
    size_t nroutes;
    struct mo_ready ready[MO_SITE_READY_MAX];
    size_t nready;
    struct mo_site_meter meter;
    void (*show)(void *ctx, struct mo_req *rq); /* /metrics; NULL: ours */
    void *show_ctx;
    void (*before)(void *ctx); /* each request; NULL: nothing */
    void *before_ctx;
    struct mo_buf headers; /* of every answer */
    bool draining, closing, httpd_gone, sio_gone;
    struct mo_gone gone;
};

/* --- headers of every answer --------------------------------------------- */

struct header {
    const char *name, *value;
};

/* Sent with every answer, also with those that httpd.c refuses itself. */
static const struct header common[] = {
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

static const char policy[] =
    "default-src 'self'; img-src 'self' data:; media-src 'self' data:; "
    "object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types vue";

static int build_headers(struct mo_site *s, const char *frames,
                         struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_HTTPD_HEADERS_MAX};

    (void)mo_buf_puts(&b, policy);
    if (frames)
        (void)mo_buf_printf(&b, "; frame-src 'self' %s", frames);
    mo_buf_init(&s->headers, MO_HTTPD_HEADERS_MAX);
    (void)mo_http1_put_header(&s->headers, "Content-Security-Policy",
                              mo_buf_view(&b));
    for (size_t i = 0; i < MO_COUNT(common); i++)
        (void)mo_http1_put_header(&s->headers, common[i].name,
                                  mo_span_cstr(common[i].value));
    if (mo_buf_err(&s->headers) || mo_buf_err(&b))
        return mo_fail(e, MO_ENOMEM, "web server");
    return 0;
}

/* Headers that let a page of a listed origin read the answer. */
static void put_cors(struct mo_site *s, struct mo_req *rq)
{
    struct mo_span origin = mo_gate_listed(&s->gate, rq);

    if (s->gate.norigins)
        mo_req_header(rq, "Vary", MO_SPAN("Origin"));
    if (!origin.p)
        return;
    mo_req_header(rq, "Access-Control-Allow-Origin", origin);
    mo_req_header(rq, "Access-Control-Allow-Credentials", MO_SPAN("true"));
    mo_req_header(rq, "Access-Control-Expose-Headers",
                  MO_SPAN("Mcp-Session-Id"));
}

static const struct header preflight[] = {
    {"Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, DELETE"},
    {"Access-Control-Allow-Headers",
     "Authorization, Content-Type, Last-Event-ID, Mcp-Session-Id, "
     "Mcp-Protocol-Version, Mcp-Method, Mcp-Name, "
     "traceparent, tracestate, baggage"},
    {"Access-Control-Max-Age", "600"},
};

/* Grant a CORS preflight of a listed origin. It carries no token. */
static bool took_preflight(struct mo_site *s, struct mo_req *rq)
{
    if (rq->head->method != MO_HTTP_OPTIONS ||
        !mo_http_get(rq->head, "Access-Control-Request-Method").p ||
        !mo_gate_listed(&s->gate, rq).p ||
        mo_gate_check_page(&s->gate, rq).status)
        return false;
    for (size_t i = 0; i < MO_COUNT(preflight); i++)
        mo_req_header(rq, preflight[i].name, mo_span_cstr(preflight[i].value));
    mo_req_reply(rq, 204, NULL, mo_span(NULL, 0));
    return true;
}

/* --- routes -------------------------------------------------------------- */

size_t mo_site_routes(const struct mo_site *s, const struct mo_route **out)
{
    *out = s->routes;
    return s->nroutes;
}

/* The bytes of a pattern before its first "{". */
static size_t literal_of(const struct mo_route *r)
{
    return strcspn(r->path, "{");
}

int mo_site_route(struct mo_site *s, const struct mo_route *r)
{
    int least = mo_access_route(r->method, r->path);

    if (s->nroutes == MO_SITE_ROUTES_MAX)
        return MO_EBUSY;
    if (least < 0)
        return MO_EPOLICY;
    s->least[s->nroutes] =
        (r->flags & MO_ROUTE_OPEN) ? (int)MO_ROLE_NONE : least;
    s->literal[s->nroutes] = literal_of(r);
    s->is_exact[s->nroutes] =
        !r->path[literal_of(r)] && !(r->flags & MO_ROUTE_PREFIX);
    s->routes[s->nroutes++] = *r;
    return 0;
}

int mo_site_add(struct mo_site *s, const struct mo_route *v, size_t n,
                void *ctx)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct mo_route r = v[i];

        r.ctx = ctx;
        rc = mo_site_route(s, &r);
    }
    return rc;
}

struct mo_span mo_req_segment(const struct mo_req *rq, unsigned i)
{
    struct mo_span rest = mo_span_skip(rq->path, 1), one = {NULL, 0};

    for (unsigned k = 0; k <= i; k++)
        one = mo_span_cut(&rest, '/');
    return one;
}

static bool path_fits(const struct mo_route *r, size_t literal,
                      struct mo_span path)
{
    struct mo_span pattern = {NULL, 0};

    if (path.n < literal || memcmp(path.p, r->path, literal) != 0)
        return false;
    pattern = mo_span_cstr(r->path + literal);
    path = mo_span_skip(path, literal);
    if (pattern.n == 0)
        return path.n == 0 || (r->flags & MO_ROUTE_PREFIX);
    while (pattern.p && path.p) {
        struct mo_span want = mo_span_cut(&pattern, '/');
        struct mo_span has = mo_span_cut(&path, '/');

        if (want.p[0] == '{' ? has.n == 0 : !mo_span_eq(want, has))
            return false;
    }
    return pattern.p == path.p;
}

static bool method_fits(const struct mo_route *r, enum mo_http_method m)
{
    return r->method == MO_HTTP_OTHER || r->method == m ||
           (r->method == MO_HTTP_GET && m == MO_HTTP_HEAD);
}

bool mo_route_fits(const struct mo_route *r, const struct mo_req *rq)
{
    return path_fits(r, literal_of(r), rq->path) &&
           method_fits(r, rq->head->method);
}

/* The route, or NULL; *path: the path that fits, which distinguishes 405 from
 * 404. */
static const struct mo_route *find(const struct mo_site *s,
                                   const struct mo_req *rq, const char **path)
{
    *path = NULL;
    for (size_t i = 0; i < s->nroutes; i++) {
        const struct mo_route *r = &s->routes[i];

        if ((s->is_exact[i] && s->literal[i] != rq->path.n) ||
            !path_fits(r, s->literal[i], rq->path) ||
            (*path && strcmp(*path, r->path) != 0))
            continue;
        *path = r->path;
        if (method_fits(r, rq->head->method))
            return r;
    }
    return NULL;
}

static void put_allow(struct mo_site *s, struct mo_req *rq, const char *path)
{
    mo_autobuf struct mo_buf b = {.max = 128};

    for (size_t i = 0; i < s->nroutes; i++) {
        const struct mo_route *r = &s->routes[i];

        if (strcmp(r->path, path) == 0)
            (void)mo_buf_printf(&b, "%s%s%s", b.len ? ", " : "",
                                mo_http_method_name(r->method),
                                r->method == MO_HTTP_GET ? ", HEAD" : "");
    }
    mo_req_header(rq, "Allow", mo_buf_view(&b));
}

void mo_route_call(const struct mo_route *r, void *ctx, struct mo_req *rq)
{
    rq->arg = r->arg;
    if (!r->body) {
        r->handle(ctx, rq);
        return;
    }
    rq->data = ctx;
    mo_req_body(rq, r->max, r->body);
}

static void answer(struct mo_site *s, struct mo_req *rq,
                   const struct mo_route *r, const char *path)
{
    if (r) {
        mo_route_call(r, r->ctx, rq);
    } else if (path) {
        put_allow(s, rq, path);
        mo_req_problem(
            rq, 405, "method_not_allowed",
            "this path does not support that method; see the Allow header");
    } else if (!mo_page_missing(rq)) {
        mo_req_problem(rq, 404, "not_found", "nothing is served at this path");
    }
}

bool mo_site_relayed(struct mo_site *s, struct mo_req *rq)
{
    const char *path = NULL;
    const struct mo_route *r = find(s, rq, &path);

    if (!r || !(r->flags & MO_ROUTE_WORKERS))
        return false;
    mo_route_call(r, r->ctx, rq);
    return true;
}

bool mo_site_strike(struct mo_site *s, struct mo_req *rq, struct mo_refusal *no)
{
    const char *peer = mo_req_peer(rq);
    uint64_t now = mo_loop_now(s->loop);
    unsigned wait = s->shared ? mo_strikes_shared_add(s->shared, peer, now)
                              : mo_strikes_add(&s->strikes, peer, now);
    char text[16];

    if (wait == 0)
        return true;
    (void)snprintf(text, sizeof(text), "%u", wait);
    mo_req_header(rq, "Retry-After", mo_span_cstr(text));
    *no = (struct mo_refusal){
        429, "too_many_tries",
        "too many requests without the right token; wait and try again"};
    return false;
}

void mo_site_note_refused(struct mo_site *s, const struct mo_req *rq,
                          const char *code, const char *door)
{
    struct mo_span origin = mo_http_get(rq->head, "Origin");
    const struct mo_audit_row row = {
        .reason = code,
        .via = door,
        .who = mo_span_cstr(rq->who),
        .peer = mo_span_cstr(mo_req_peer(rq)),
        .host = mo_http_get(rq->head, "Host"),
        .origin = origin.n ? origin : mo_http_get(rq->head, "Sec-Fetch-Site"),
        .path = mo_span_cstr(rq->tag), /* not the path: it may hold a token */
    };

    mo_audit_attempt(s->audit, &row);
}

/* Where a client finds out how to get a token (RFC 9728), and what was wrong
 * with the one it sent (RFC 6750). */
static void put_challenge(struct mo_site *s, struct mo_req *rq,
                          const struct mo_refusal *no,
                          const struct mo_gate_more *more)
{
    mo_autobuf struct mo_buf b = {.max = 2048};
    const struct mo_people *people = s->gate.people;
    bool is_scope = no->status == 403;

    (void)mo_buf_puts(&b, more->dpop ? "DPoP algs=\"" MO_PROOF_ALGS "\","
                                     : "Bearer");
    if (people && mo_people_has_providers(people)) {
        (void)mo_buf_printf(&b, " resource_metadata=\"%s" MO_RESOURCE_PATH "\"",
                            mo_people_url(people));
        if (strcmp(no->code, "token_required") != 0)
            (void)mo_buf_printf(&b, ", error=\"%s\"", no->code);
        if (is_scope)
            (void)mo_buf_printf(&b, ", scope=\"%s\"", more->why.msg);
    }
    mo_req_header(rq, "WWW-Authenticate", mo_buf_view(&b));
}

/* A person who opens the page without a cookie has attempted nothing. */
static void refuse(struct mo_site *s, struct mo_req *rq, struct mo_refusal no,
                   const struct mo_gate_more *more, bool is_view)
{
    const char *credential = mo_gate_credential(rq);

    if (no.status != 401 || !is_view || strcmp(credential, "none") != 0)
        mo_site_note_refused(s, rq, no.code, credential);
    if (!no.detail[0])
        no.detail = more->why.msg;
    if (no.status == 401 ? mo_site_strike(s, rq, &no)
                         : strcmp(no.code, "insufficient_scope") == 0)
        put_challenge(s, rq, &no, more);
    if (no.status == 401 && is_view)
        mo_sign_in_page(s, rq, 401);
    else
        mo_req_problem(rq, no.status, no.code, no.detail);
}

static struct mo_refusal check_role(const struct mo_site *s,
                                    const struct mo_route *r,
                                    const struct mo_req *rq)
{
    int least = r ? s->least[r - s->routes] : MO_ROLE_VIEWER;

    if (rq->role >= least)
        return (struct mo_refusal){0, NULL, NULL};
    if (least == MO_ROLE_OPERATOR)
        return (struct mo_refusal){403, "operator_only",
                                   "this needs the operator's token"};
    return (struct mo_refusal){403, "role_required",
                               "your role does not include this; the operator "
                               "gives roles in people.roles"};
}

/* A request whose credential cannot be checked yet. */
struct held {
    struct mo_provider_wait wait;
    struct mo_site *site;
    struct mo_req *rq;
};

static void admit(struct mo_site *s, struct mo_req *rq, bool may_wait);

static void on_read(struct mo_provider_wait *w, const struct mo_err *why)
{
    struct held *h = mo_container_of(w, struct held, wait);
    struct mo_site *s = h->site;
    struct mo_req *rq = h->rq;

    if (why)
        mo_log_err(mo_loop_log(s->loop), MO_WARN, "access", why,
                   "cannot check a token");
    mo_free(h);
    rq->gone = NULL;
    rq->data = NULL;
    admit(s, rq, false);
}

static void on_held_gone(struct mo_req *rq)
{
    struct held *h = rq->data;

    mo_provider_forget(&h->wait);
    mo_free(h);
}

static bool hold(struct mo_site *s, struct mo_req *rq,
                 const struct mo_gate_more *more)
{
    struct held *h = mo_new(struct held);

    if (!h)
        return false;
    *h = (struct held){.wait = {.done = on_read}, .site = s, .rq = rq};
    rq->data = h;
    rq->gone = on_held_gone;
    if (more->login.p)
        mo_login_wait(mo_people_logins(s->gate.people), more->login, &h->wait);
    else if (more->read_grants)
        mo_grants_read(s->gate.grants, &h->wait);
    else
        mo_people_find_out(s->gate.people, more->token, more->read, &h->wait);
    return true;
}

/* A stranger who looks for an unknown page may find it after the sign-in. */
static bool is_view(const struct mo_route *r, const char *path,
                    const struct mo_req *rq)
{
    return r ? (r->flags & MO_ROUTE_VIEW) != 0
             : !path && mo_page_is_looked_for(rq);
}

/* Checks who sent it, then answers. */
static void admit(struct mo_site *s, struct mo_req *rq, bool may_wait)
{
    struct mo_gate_more more = {.read = NULL};
    struct mo_refusal no = {0, NULL, NULL};
    const char *path = NULL;
    const struct mo_route *r = find(s, rq, &path);

    if (!r || s->least[r - s->routes] > MO_ROLE_NONE)
        no = mo_gate_check(&s->gate, rq, &more);
    if ((more.is_unknown || more.login.p || more.read_grants) && may_wait &&
        hold(s, rq, &more))
        return;
    if (!no.status && r)
        no = check_role(s, r, rq);
    if (no.status)
        refuse(s, rq, no, &more, is_view(r, path, rq));
    else
        answer(s, rq, r, path);
}

static void on_request(void *ctx, struct mo_req *rq)
{
    struct mo_site *s = ctx;
    const char *path = NULL;
    const struct mo_route *r = find(s, rq, &path);

    if (s->before)
        s->before(s->before_ctx);
    rq->tag = r ? r->path : "other";
    rq->caller[0] = rq->who[0] = rq->grant[0] = '\0';
    rq->door = "open";
    rq->role = MO_ROLE_NONE;
    put_cors(s, rq);
    if (took_preflight(s, rq) || mo_sign_in_by_link(s, rq))
        return;
    admit(s, rq, true);
}

/* --- health -------------------------------------------------------------- */

int mo_site_ready(struct mo_site *s, const struct mo_ready *r)
{
    if (s->nready == MO_SITE_READY_MAX)
        return MO_EBUSY;
    s->ready[s->nready++] = *r;
    return 0;
}

static const char *check_closing(void *ctx)
{
    const struct mo_site *s = ctx;

    return s->closing || s->draining ? "the server is shutting down" : NULL;
}

static void on_healthz(void *ctx, struct mo_req *rq)
{
    (void)ctx;
    mo_req_reply(rq, 200, "text/plain; charset=utf-8", MO_SPAN("ok\n"));
}

static bool put_checks(struct mo_site *s, struct mo_jw *w)
{
    bool all = true;

    mo_jw_member_arr(w, "checks");
    for (size_t i = 0; i < s->nready; i++) {
        const char *why = s->ready[i].check(s->ready[i].ctx);

        all = all && !why;
        mo_jw_obj(w);
        mo_jw_member_cstr(w, "name", s->ready[i].name);
        mo_jw_member_bool(w, "ok", !why);
        if (why)
            mo_jw_member_cstr(w, "reason", why);
        mo_jw_end(w);
    }
    mo_jw_end(w);
    return all;
}

static void on_readyz(void *ctx, struct mo_req *rq)
{
    struct mo_site *s = ctx;
    mo_autobuf struct mo_buf b = {.max = 8192};
    bool all;
    struct mo_jw w = mo_jw_object(&b);

    all = put_checks(s, &w);
    mo_jw_member_bool(&w, "ready", all);
    mo_jw_member_cstr(&w, "version", MO_VERSION);
    mo_jw_end(&w);
    mo_req_reply(rq, all ? 200 : 503, "application/json", mo_buf_view(&b));
}

/* --- metrics ------------------------------------------------------------- */

static void on_done(void *ctx, const struct mo_req *rq, int status, uint64_t ns)
{
    struct mo_site *s = ctx;

    mo_site_meter_count(&s->meter, rq->tag ? rq->tag : "bad", status, ns);
    mo_access_log(mo_loop_log(s->loop), rq, status, ns);
}

static void on_metrics(void *ctx, struct mo_req *rq)
{
    struct mo_site *s = ctx;

    if (s->show)
        s->show(s->show_ctx, rq);
    else
        mo_site_meter_show(&s->meter, rq);
}

/* --- the page ------------------------------------------------------------ */

static void on_sio(void *ctx, struct mo_req *rq)
{
    struct mo_site *s = ctx;

    if (s->sio)
        mo_siod_handle(s->sio, rq);
    else /* it ends before the last HTTP connection */
        mo_req_problem(rq, 503, "closing", "the server is shutting down");
}

/* --- the site ------------------------------------------------------------ */

static void add_routes(struct mo_site *s)
{
    static const struct mo_route fixed[] = {
        {MO_HTTP_GET, "/healthz", 0, on_healthz},
        {MO_HTTP_GET, "/readyz", 0, on_readyz},
        {MO_HTTP_GET, "/health", 0, on_readyz},
        {MO_HTTP_GET, "/metrics", 0, on_metrics},
        {MO_HTTP_OTHER, "/socket.io/", MO_ROUTE_PREFIX | MO_ROUTE_WORKERS,
         on_sio},
    };

    (void)mo_site_add(s, fixed, MO_COUNT(fixed) - (s->sio ? 0 : 1), s);
    mo_sign_in_routes(s); /* before the page's files: it has one of them */
    mo_page_routes(s);
    mo_docs_routes(s);
    mo_resource_routes(s);
    mo_oidc_routes(s);
}

static void site_free(struct mo_site *s)
{
    mo_site_meter_fini(&s->meter);
    mo_buf_fini(&s->headers);
    mo_free(s);
}

/* httpd last: before it exists, nothing needs the loop in order to be freed. */
static int site_build(struct mo_site *s, const struct mo_site_opts *o,
                      struct mo_err *e)
{
    struct mo_httpd_opts h = {.limits = o->limits,
                              .handler = on_request,
                              .done = on_done,
                              .ctx = s,
                              .tls = o->tls,
                              .crowd = o->crowd};
    int rc = build_headers(s, o->frames, e);

    if (rc == 0)
        rc = mo_site_meter_init(&s->meter, s->loop, e);
    if (rc < 0)
        return rc;
    s->shared = o->strikes;
    h.headers = mo_buf_view(&s->headers);
    s->httpd = mo_httpd_new(s->loop, &h, e);
    if (!s->httpd)
        return e->code;
    s->meter.httpd = s->httpd;
    if (o->sio)
        s->sio = mo_siod_new(s->loop, o->sio, e);
    s->meter.sio = s->sio;
    if (o->sio && !s->sio) {
        mo_httpd_close(s->httpd, 0, NULL, NULL);
        return e->code;
    }
    return 0;
}

/* A login has ended or has another role: closes what its person has open. */
static void on_login_ended(void *ctx, const char *who)
{
    struct mo_site *s = ctx;

    mo_site_drop(s, who, "page", NULL);
}

static void watch_logins(struct mo_site *s)
{
    if (s->gate.people)
        mo_logins_watch(mo_people_logins(s->gate.people), on_login_ended, s);
}

struct mo_site *mo_site_new(struct mo_loop *l, const struct mo_site_opts *o,
                            struct mo_err *e)
{
    struct mo_site *s = mo_new(struct mo_site);
    const struct mo_ready closing = {"accepting", check_closing, s};

    if (!s)
        return mo_null(mo_fail(e, MO_ENOMEM, "web server"));
    s->loop = l;
    s->gate = o->gate;
    watch_logins(s);
    if (site_build(s, o, e) < 0) {
        site_free(s);
        return NULL;
    }
    add_routes(s);
    (void)mo_site_ready(s, &closing);
    return s;
}

struct mo_httpd *mo_site_httpd(struct mo_site *s)
{
    return s->httpd;
}

const struct mo_gate *mo_site_gate_now(const struct mo_site *s)
{
    return &s->gate;
}

void mo_site_gate(struct mo_site *s, const struct mo_gate *g)
{
    s->gate = *g;
    watch_logins(s);
}

void mo_site_drop(struct mo_site *s, const char *who, const char *door,
                  const char *grant)
{
    mo_httpd_abort(s->httpd, who, door, grant);
    if (s->sio)
        mo_siod_drop(s->sio, who, door, grant);
}

void mo_site_audit(struct mo_site *s, struct mo_audit *a)
{
    s->audit = a;
}

struct mo_audit *mo_site_audit_now(const struct mo_site *s)
{
    return s->audit;
}

struct mo_prom *mo_site_prom(struct mo_site *s)
{
    return s->meter.prom;
}

void mo_site_metrics(struct mo_site *s,
                     void (*show)(void *ctx, struct mo_req *rq), void *ctx)
{
    s->show = show;
    s->show_ctx = ctx;
}

void mo_site_before(struct mo_site *s, void (*before)(void *ctx), void *ctx)
{
    s->before = before;
    s->before_ctx = ctx;
}

static void maybe_gone(struct mo_site *s)
{
    struct mo_gone gone = s->gone;

    if (!s->httpd_gone || !s->sio_gone)
        return;
    site_free(s);
    mo_gone_fire(gone);
}

static void on_httpd_gone(void *ctx)
{
    struct mo_site *s = ctx;

    s->httpd_gone = true;
    maybe_gone(s);
}

static void on_sio_gone(void *ctx)
{
    struct mo_site *s = ctx;

    s->sio_gone = true;
    s->sio = NULL;
    s->meter.sio = NULL;
    maybe_gone(s);
}

void mo_site_drain(struct mo_site *s)
{
    s->draining = true;
}

void mo_site_close(struct mo_site *s, uint64_t grace_ms,
                   void (*gone)(void *ctx), void *ctx)
{
    s->closing = true;
    if (s->gate.people)
        mo_logins_watch(mo_people_logins(s->gate.people), NULL, NULL);
    s->gone = (struct mo_gone){gone, ctx};
    s->sio_gone = s->sio == NULL;
    if (s->sio)
        mo_siod_close(s->sio, on_sio_gone, s);
    mo_httpd_close(s->httpd, grace_ms, on_httpd_gone, s);
}
