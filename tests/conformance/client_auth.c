/* client_auth.c - the scenarios of authorization.
 *
 * They differ in what the mock does, not in what the client does: connect,
 * list the tools, call one, and get all the tokens that takes. The mock's
 * authorization endpoint answers at once with a redirect, so the person with
 * the browser is one GET that is not followed. */
#include "conformance/client.h"

#include <stdio.h>

#include "mcp/oauth/oauth.h"

#define REDIRECT    "http://localhost:3000/callback"
#define CLIENT_URL  "https://conformance-test.local/client-metadata.json"
#define WAIT_MS     60000u
#define CONTEXT_MAX ((size_t)4096)

struct browser {
    struct driver *d;
    struct mo_oauth *oauth;
    struct mo_buf location;
    bool gone;
};

static void on_head(void *ctx, const struct mo_http_head *h)
{
    struct browser *b = ctx;

    mo_buf_reset(&b->location);
    if (h->status >= 300 && h->status < 400)
        mo_buf_span(&b->location, mo_http_get(h, "location"));
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct browser *b = ctx;
    struct mo_err e;

    if (why || b->location.len == 0)
        (void)fprintf(stderr, "browser: no redirect\n");
    else if (mo_oauth_redirected(b->oauth, mo_buf_view(&b->location), &e) < 0)
        (void)fprintf(stderr, "browser: %s\n", e.msg);
}

static const struct mo_http_cb browser_cb = {
    .on_head = on_head,
    .on_done = on_done,
};

static void on_sign_in(void *ctx, const char *url)
{
    struct browser *b = ctx;
    struct mo_http_call c = {.url = url, .total_ms = WAIT_MS};
    struct mo_httpc_x *x;
    struct mo_err e;

    if (mo_httpc_start(b->d->http, &c, &browser_cb, b, &x, &e) < 0)
        (void)fprintf(stderr, "browser: %s\n", e.msg);
}

static void on_gone(void *ctx)
{
    ((struct browser *)ctx)->gone = true;
}

static bool is_gone(void *ctx)
{
    return ((struct browser *)ctx)->gone;
}

/* Connect, list, call. */
static int visit(struct driver *d)
{
    struct mo_err e = {0};
    struct mo_json out;
    int rc = driver_open(d, &e);

    if (rc == 0)
        rc = driver_list(d, "tools/list", "tools", &out, &e);
    if (rc == 0)
        rc = driver_tool(d, "test-tool", MO_SPAN("{}"), &out, &e);
    if (rc < 0)
        (void)fprintf(stderr, "%s: %s\n", d->scenario, e.msg);
    driver_close(d);
    return rc;
}

static const char *context_text(struct driver *d, const char *key,
                                struct mo_buf *b)
{
    mo_buf_init(b, CONTEXT_MAX);
    if (mo_json_str_buf(mo_json_get(d->context, key), b) < 0 || b->len == 0)
        return NULL;
    return mo_buf_cstr(b);
}

/* The extensions: what the suite says is what an operator would configure. */
static void choose_grant(struct driver *d, struct mo_oauth_machine *m,
                         struct mo_buf v[4])
{
    static const struct {
        const char *scenario;
        enum mo_machine_grant grant;
        const char *assertion;
    } rows[] = {
        {"auth/client-credentials-basic", MO_MACHINE_CLIENT, ""},
        {"auth/client-credentials-jwt", MO_MACHINE_CLIENT, ""},
        {"auth/wif-jwt-bearer", MO_MACHINE_WORKLOAD, "valid_jwt"},
        {"auth/enterprise-managed-authorization", MO_MACHINE_ENTERPRISE,
         "idp_id_token"},
    };

    for (size_t i = 0; i < 4; i++)
        mo_buf_init(&v[i], CONTEXT_MAX);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (strcmp(d->scenario, rows[i].scenario) != 0)
            continue;
        m->grant = rows[i].grant;
        m->assertion = context_text(d, rows[i].assertion, &v[0]);
        m->private_key = context_text(d, "private_key_pem", &v[1]);
        m->idp_token = context_text(d, "idp_token_endpoint", &v[2]);
        m->idp_client = context_text(d, "idp_client_id", &v[3]);
    }
}

static int with_oauth(struct driver *d, struct mo_tokens *tokens)
{
    struct browser b = {.d = d};
    struct mo_buf id, secret, more[4];
    struct mo_oauth_opts o = {
        .loop = d->loop,
        .http = d->http,
        .tokens = tokens,
        .server = d->url,
        .client_name = "mo-conformance-client",
        .client_id = context_text(d, "client_id", &id),
        .client_secret = context_text(d, "client_secret", &secret),
        .client_url = CLIENT_URL,
        .redirect = REDIRECT,
        .wait = true,
        .on_sign_in = on_sign_in,
        .ctx = &b,
    };
    struct mo_err e;
    int rc;

    mo_buf_init(&b.location, MO_HTTP_HEAD_MAX);
    choose_grant(d, &o.machine, more);
    rc = mo_oauth_new(&o, &b.oauth, &e);
    if (rc == 0) {
        d->link.auth = mo_oauth_auth(b.oauth);
        rc = visit(d);
        mo_oauth_close(b.oauth, on_gone, &b);
        (void)mo_loop_until(d->loop, is_gone, &b, WAIT_MS);
    }
    mo_buf_fini(&b.location);
    mo_buf_fini(&id);
    mo_buf_fini(&secret);
    for (size_t i = 0; i < MO_COUNT(more); i++)
        mo_buf_fini(&more[i]);
    return rc;
}

int auth_scenario(struct driver *d, const char *name)
{
    struct mo_tokens *tokens;
    struct mo_err e;
    int rc;

    if (!mo_span_starts(mo_span_cstr(name), MO_SPAN("auth/")))
        return NO_SUCH_SCENARIO;
    rc = mo_tokens_open(NULL, &tokens, &e);
    if (rc < 0)
        return rc;
    rc = with_oauth(d, tokens);
    mo_tokens_close(tokens);
    return rc;
}
