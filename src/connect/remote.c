#include "connect/remote.h"

#include <limits.h>
#include <stdio.h>

#include "base/file.h"
#include "codec/http/url.h"
#include "codec/json/json.h"
#include "connect/sign_in.h"
#include "people/people.h"

#define ARENA_MAX  ((size_t)512 * 1024)
#define FOREVER_MS ((uint64_t)24 * 3600 * 1000) /* flows have limits */
#define RESOURCE   "/.well-known/oauth-protected-resource/mcp"

struct mo_remote {
    struct mo_loop *loop;
    struct mo_arena a;
    struct mo_httpc *http;
    struct mo_tokens *tokens;
    const char *url, *server; /* the origin; its /mcp */
    struct mo_oauth *oauth;   /* NULL: not used yet */
    bool local;               /* it is at a private address */
    struct mo_remote_provider providers[MO_REMOTE_PROVIDERS_MAX];
    size_t nproviders;
    /* the request under way */
    struct mo_httpc_x *x;
    struct mo_buf *out;
    struct mo_auth *prover; /* its token was sent with a proof; or NULL */
    bool sent;              /* a token was sent, */
    uint64_t serial;        /* this one */
    int status;
    char *challenge; /* of a refusal */
    bool done;
    struct mo_err why;
    struct mo_auth_wait wait;
};

static bool is_done(void *ctx)
{
    return ((struct mo_remote *)ctx)->done;
}

static void wait_for(struct mo_remote *r)
{
    while (!mo_loop_until(r->loop, is_done, r, FOREVER_MS))
        continue;
}

static void on_gone(void *ctx)
{
    ((struct mo_remote *)ctx)->done = true;
}

/* --- requests ------------------------------------------------------------ */

static void on_head(void *ctx, const struct mo_http_head *h)
{
    struct mo_remote *r = ctx;
    struct mo_span told = mo_http_get(h, "WWW-Authenticate");

    if (r->prover)
        r->prover->ops->nonce(r->prover, mo_http_get(h, "DPoP-Nonce"));
    r->status = h->status;
    r->local = mo_httpc_at_private(r->x);
    mo_free(mo_take_ptr(&r->challenge));
    if (told.p)
        r->challenge = mo_strndup(told.p, told.n);
}

static void on_data(void *ctx, struct mo_span data)
{
    (void)mo_buf_span(((struct mo_remote *)ctx)->out, data);
}

static void on_answer(void *ctx, const struct mo_err *why)
{
    struct mo_remote *r = ctx;

    r->x = NULL;
    r->done = true;
    r->why = why ? *why : (struct mo_err){0};
}

/* Puts the headers of the token, if there is one. */
static void put_token(struct mo_remote *r, struct mo_auth *auth,
                      struct mo_http_call *c, struct mo_http_header *hs)
{
    struct mo_span v = auth->ops->header(auth, &r->serial);

    r->sent = v.n > 0;
    if (!r->sent)
        return;
    hs[c->nheaders++] = (struct mo_http_header){MO_SPAN("Authorization"), v};
    v = auth->ops->proof(auth, c->method, c->url);
    if (v.n == 0)
        return;
    hs[c->nheaders++] = (struct mo_http_header){MO_SPAN("DPoP"), v};
    r->prover = auth;
}

/* auth: whose token is sent; or NULL. */
static int ask_once(struct mo_remote *r, const char *path, struct mo_span body,
                    struct mo_auth *auth, struct mo_err *e)
{
    static const struct mo_http_cb cb = {on_head, on_data, on_answer};
    mo_autobuf struct mo_buf url = {.max = MO_URL_MAX};
    struct mo_http_header hs[4] = {
        {MO_SPAN("Accept"), MO_SPAN("application/json")},
        {MO_SPAN("Content-Type"), MO_SPAN("application/json")},
    };
    struct mo_http_call c = {
        .method = body.p ? "POST" : "GET",
        .headers = hs,
        .nheaders = body.p ? 2 : 1,
        .body = body,
        .total_ms = MO_REMOTE_MS,
        .max_bytes = MO_REMOTE_BYTES,
    };
    int rc;

    (void)mo_buf_printf(&url, "%s%s", r->url, path);
    if (mo_buf_err(&url))
        return mo_fail(e, MO_ETOOBIG, "the address is too long");
    c.url = mo_buf_cstr(&url);
    r->prover = NULL;
    r->sent = false;
    if (auth)
        put_token(r, auth, &c, hs);
    mo_buf_reset(r->out);
    r->done = false;
    rc = mo_httpc_start(r->http, &c, &cb, r, &r->x, e);
    if (rc < 0)
        return rc;
    wait_for(r);
    if (r->why.code == 0 && mo_buf_err(r->out))
        return mo_fail(e, mo_buf_err(r->out), "the answer is too big");
    if (r->why.code == 0)
        return 0;
    *e = r->why;
    return mo_wrap(e, "%s", r->url);
}

static void on_ticket(struct mo_auth_wait *w, const struct mo_err *why)
{
    struct mo_remote *r = mo_container_of(w, struct mo_remote, wait);

    r->done = true;
    r->why = why ? *why : (struct mo_err){0};
}

static int open_oauth(struct mo_remote *r, struct mo_err *e)
{
    const struct mo_oauth_opts o = {
        .loop = r->loop,
        .http = r->http,
        .tokens = r->tokens,
        .server = r->server,
        .mute = true,
    };

    return r->oauth ? 0 : mo_oauth_new(&o, &r->oauth, e);
}

static void close_oauth(struct mo_remote *r)
{
    if (!r->oauth)
        return;
    r->done = false;
    mo_oauth_close(mo_take_ptr(&r->oauth), on_gone, r);
    wait_for(r);
}

/* Lets a refusal lead to another token; 0: there is one. */
static int renew(struct mo_remote *r, struct mo_err *e)
{
    struct mo_auth *auth = mo_oauth_auth(r->oauth);
    int rc;

    r->wait = (struct mo_auth_wait){
        .serial = r->serial, .local = r->local, .done = on_ticket};
    mo_list_init(&r->wait.node);
    r->done = false;
    rc = auth->ops->refused(auth, &r->wait, 401, mo_span_cstr(r->challenge), e);
    if (rc < 0)
        return rc;
    wait_for(r);
    if (r->why.code)
        *e = r->why;
    return r->why.code;
}

int mo_remote_ask(struct mo_remote *r, const char *path, struct mo_span body,
                  int *status, struct mo_buf *out, struct mo_err *e)
{
    struct mo_auth *auth;
    int rc = open_oauth(r, e);

    if (rc < 0)
        return rc;
    r->out = out;
    auth = mo_oauth_auth(r->oauth);
    rc = ask_once(r, path, body, auth, e);
    if (rc == 0 && r->status == 401 && r->sent && renew(r, e) == 0)
        rc = ask_once(r, path, body, auth, e);
    *status = r->status;
    if (rc == 0 && r->status == 401)
        rc = mo_fail(e, MO_EPOLICY,
                     "nobody is signed in at %s%s; `mcp-orchestrator login "
                     "%s` does it",
                     r->url, r->sent ? " any more" : "", r->url);
    return rc;
}

/* --- providers ----------------------------------------------------------- */

static int keep_member(struct mo_remote *r, struct mo_json object,
                       const char *key, const char **out)
{
    struct mo_json v = mo_json_get(object, key);
    struct mo_span s;

    if (!mo_json_is(v, MO_JSON_STRING) || v.n > MO_OAUTH_TEXT_MAX)
        return MO_EPROTO;
    if (mo_json_str(v, &r->a, &s) < 0 || !mo_span_between(s, ' ', '~'))
        return MO_EPROTO;
    return mo_oauth_keep(&r->a, s, out);
}

static int keep_scopes(struct mo_remote *r, struct mo_json list,
                       const char **out)
{
    mo_autobuf struct mo_buf b = {.max = MO_OAUTH_TEXT_MAX};

    mo_json_each_while (m, list, mo_json_is(list, MO_JSON_ARRAY)) {
        if (b.len)
            (void)mo_buf_putc(&b, ' ');
        if (mo_json_str_buf(m.val, &b) < 0)
            return MO_EPROTO;
    }
    if (!mo_span_between(mo_buf_view(&b), ' ', '~') ||
        mo_span_find(mo_buf_view(&b), '"') >= 0)
        return MO_EPROTO;
    return b.len ? mo_oauth_keep_buf(&r->a, &b, out) : 0;
}

static void take_provider(struct mo_remote *r, struct mo_json v)
{
    struct mo_remote_provider p = {.name = NULL};

    if (r->nproviders == MO_REMOTE_PROVIDERS_MAX ||
        keep_member(r, v, "name", &p.name) < 0 ||
        keep_member(r, v, "issuer", &p.issuer) < 0 ||
        keep_scopes(r, mo_json_get(v, "scopes_supported"), &p.scope) < 0)
        return;
    if (keep_member(r, v, "title", &p.title) < 0) /* or not ASCII */
        p.title = p.name;
    (void)keep_member(r, v, "client_id", &p.client);
    r->providers[r->nproviders++] = p;
}

static int read_providers(struct mo_remote *r, struct mo_span body,
                          struct mo_err *e)
{
    struct mo_oauth_resource resource;
    struct mo_json_doc doc;
    int rc = mo_oauth_resource_parse(&r->a, body, r->server, &resource, e);

    if (rc == MO_EPOLICY && resource.resource)
        return mo_fail(e, MO_EPOLICY,
                       "the server calls itself %.200s; sign in there",
                       resource.resource);
    if (rc < 0 || mo_json_parse(body, 0, &doc, e) < 0)
        return mo_wrap(e, "%s", r->url);
    mo_json_each (m, mo_json_get(doc.root, MO_PEOPLE_PROVIDERS))
        take_provider(r, m.val);
    return 0;
}

int mo_remote_providers(struct mo_remote *r,
                        const struct mo_remote_provider **v, size_t *n,
                        struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_OAUTH_DOC_MAX};
    int rc;

    r->out = &b;
    rc = ask_once(r, RESOURCE, mo_span(NULL, 0), NULL, e);
    if (rc == 0 && r->status == 200)
        rc = read_providers(r, mo_buf_view(&b), e);
    else if (rc == 0 && r->status != 404)
        rc = mo_fail(e, MO_EUNAVAIL, "%s answers %d", r->url, r->status);
    if (rc == 0 && r->nproviders == 0)
        rc = mo_fail(e, MO_ENOTFOUND, "%s has no provider to sign in with",
                     r->url);
    *v = r->providers;
    *n = r->nproviders;
    return rc;
}

/* --- signing in ---------------------------------------------------------- */

/* A sign-in with tokens in memory: the old ones stay valid until it has
 * succeeded. The client of an earlier registration is used again. */
static int copy_client(struct mo_remote *r, const struct mo_remote_provider *p,
                       struct mo_tokens *to, struct mo_err *e)
{
    const struct mo_token *old = mo_tokens_get(r->tokens, p->issuer, r->server);
    struct mo_token k;

    if (!old || p->client)
        return 0;
    k = *old;
    k.access = k.refresh = k.dpop = NULL;
    return mo_tokens_put(to, &k, e);
}

static int start_flow(struct mo_remote *r, const struct mo_remote_provider *p,
                      struct mo_err *e)
{
    struct mo_auth *auth = mo_oauth_auth(r->oauth);
    mo_autobuf struct mo_buf told = {.max = 2 * MO_OAUTH_TEXT_MAX};
    int rc;

    (void)mo_buf_puts(&told, "Bearer");
    if (p->scope)
        (void)mo_buf_printf(&told, " scope=\"%s\"", p->scope);
    r->wait = (struct mo_auth_wait){.local = r->local, .done = on_ticket};
    mo_list_init(&r->wait.node);
    r->done = false;
    rc = auth->ops->refused(auth, &r->wait, 401, mo_buf_view(&told), e);
    if (rc < 0)
        return rc;
    wait_for(r);
    if (r->why.code)
        *e = r->why;
    return r->why.code;
}

/* Asks the server who has signed in. */
static int ask_who(struct mo_remote *r, struct mo_buf *me, struct mo_err *e)
{
    int rc;

    r->out = me;
    rc = ask_once(r, "/api/me", mo_span(NULL, 0), mo_oauth_auth(r->oauth), e);
    if (rc < 0 || r->status == 200)
        return rc;
    if (r->status == 403)
        return mo_fail(e, MO_EPOLICY, "you have no role at %s", r->url);
    return mo_fail(e, MO_EPOLICY,
                   "%s does not accept the provider's token (%d): its "
                   "audience or its scopes are others",
                   r->url, r->status);
}

static int sign_in(struct mo_remote *r, const struct mo_remote_provider *p,
                   const struct mo_remote_person *person,
                   struct mo_tokens *memory, struct mo_buf *me,
                   struct mo_err *e)
{
    const struct mo_oauth_opts o = {
        .loop = r->loop,
        .http = r->http,
        .tokens = memory,
        .server = r->server,
        .client_id = p->client,
        .issuer = p->issuer,
        .wait = true,
        .on_sign_in = person->on_url,
        .on_device = person->on_device,
        .ctx = person->ctx,
    };
    int rc = copy_client(r, p, memory, e);

    if (rc == 0)
        rc = mo_oauth_new(&o, &r->oauth, e);
    if (rc == 0)
        rc = start_flow(r, p, e);
    if (rc == 0)
        rc = ask_who(r, me, e);
    close_oauth(r);
    return rc;
}

int mo_remote_login(struct mo_remote *r, const struct mo_remote_provider *p,
                    const struct mo_remote_person *person, struct mo_buf *me,
                    struct mo_err *e)
{
    struct mo_tokens *memory = NULL;
    const struct mo_token *k;
    int rc = mo_oauth_url_ok(p->issuer, r->server, e);

    if (rc < 0)
        return mo_wrap(e, "%s", p->issuer);
    close_oauth(r);
    rc = mo_tokens_open(NULL, &memory, e);
    if (rc < 0)
        return rc;
    rc = sign_in(r, p, person, memory, me, e);
    k = rc == 0 ? mo_tokens_get(memory, p->issuer, r->server) : NULL;
    if (rc == 0 && (!k || !k->access))
        rc = mo_fail(e, MO_EPROTO, "the provider sent no token");
    if (rc == 0)
        rc = mo_tokens_drop(r->tokens, NULL, r->server, e);
    if (rc == 0)
        rc = mo_tokens_put(r->tokens, k, e);
    mo_tokens_close(memory);
    return rc;
}

int mo_remote_logout(struct mo_remote *r, struct mo_err *e)
{
    close_oauth(r);
    if (!mo_remote_has_token(r))
        return mo_fail(e, MO_ENOTFOUND, "nobody is signed in at %s", r->url);
    return mo_tokens_drop(r->tokens, NULL, r->server, e);
}

bool mo_remote_has_token(const struct mo_remote *r)
{
    const struct mo_token *k = mo_tokens_get(r->tokens, NULL, r->server);

    return k && (k->access || k->refresh);
}

/* --- open and close ------------------------------------------------------ */

const char *mo_remote_url(const struct mo_remote *r)
{
    return r->url;
}

static int take_url(struct mo_remote *r, const struct mo_config *cfg,
                    const char *url, struct mo_err *e)
{
    mo_autobuf struct mo_buf own = {.max = MO_URL_MAX};
    int rc;

    if (!url && cfg->people.url)
        url = cfg->people.url;
    if (!url) {
        (void)mo_buf_printf(&own, "http%s://localhost:%lld",
                            cfg->server.tls.cert ? "s" : "",
                            (long long)cfg->server.port);
        url = mo_buf_cstr(&own);
    }
    rc = mo_oauth_url_ok(url, url, e);
    if (rc == 0)
        rc = mo_oauth_at_origin(&r->a, url, "", &r->url);
    if (rc == 0)
        rc = mo_oauth_at_origin(&r->a, url, "/mcp", &r->server);
    return rc < 0 ? mo_wrap(e, "%.200s", url) : 0;
}

static int open_files(struct mo_remote *r, const struct mo_config *cfg,
                      struct mo_err *e)
{
    const struct mo_httpc_opts ho = {.active = 4};
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/" MO_SIGN_IN_FILE, cfg->store.dir);

    if (n < 0 || (size_t)n >= sizeof(path))
        return mo_fail(e, MO_ETOOBIG, "the path of the token file");
    if (mo_file_mkdir(cfg->store.dir, e) < 0)
        return e->code;
    n = mo_tokens_open(path, &r->tokens, e);
    if (n < 0)
        return n;
    r->http = mo_httpc_new(r->loop, &ho, e);
    return r->http ? 0 : e->code;
}

int mo_remote_open(struct mo_loop *l, const struct mo_config *cfg,
                   const char *url, struct mo_remote **out, struct mo_err *e)
{
    struct mo_remote *r = mo_new(struct mo_remote);
    int rc;

    if (!r)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    r->loop = l;
    mo_arena_init(&r->a, ARENA_MAX);
    rc = take_url(r, cfg, url, e);
    if (rc == 0)
        rc = open_files(r, cfg, e);
    if (rc < 0)
        mo_remote_close(r);
    else
        *out = r;
    return rc;
}

void mo_remote_close(struct mo_remote *r)
{
    if (!r)
        return;
    close_oauth(r);
    if (r->http) {
        r->done = false;
        mo_httpc_close(r->http, on_gone, r);
        wait_for(r);
    }
    mo_tokens_close(r->tokens);
    mo_free(r->challenge);
    mo_arena_fini(&r->a);
    mo_free(r);
}
