#include "people/people.h"

#include <stdio.h>

#include "base/clock.h"
#include "config/keys.h"
#include "people/login.h"

#define URL_MAX 512

struct mo_people {
    struct mo_loop *loop;
    struct mo_httpc *http;
    const struct mo_config *config;
    struct mo_provider *providers[MO_KEY_PROVIDERS_MAX];
    size_t nproviders;
    struct mo_access_tokens *tokens;
    struct mo_proofs proofs;
    struct mo_logins *logins;
    struct mo_introspect *introspect; /* NULL: no provider has it */
    char listened[URL_MAX];           /* the address without people.url */
    char url[URL_MAX], resource[URL_MAX + 8];
};

/* --- addresses ----------------------------------------------------------- */

static void take_url(struct mo_people *p)
{
    const char *url =
        p->config->people.url ? p->config->people.url : p->listened;
    size_t n = strlen(url);

    while (n && url[n - 1] == '/')
        n--;
    (void)snprintf(p->url, sizeof(p->url), "%.*s", (int)n, url);
    (void)snprintf(p->resource, sizeof(p->resource), "%s/mcp", p->url);
    mo_access_tokens_clear(p->tokens);
}

int mo_people_set_url(struct mo_people *p, const char *url, struct mo_err *e)
{
    if (strlen(url) >= sizeof(p->listened))
        return mo_fail(e, MO_ETOOBIG, "the server's address is too long");
    memcpy(p->listened, url, strlen(url) + 1);
    take_url(p);
    return 0;
}

const char *mo_people_url(const struct mo_people *p)
{
    return p->url;
}

const char *mo_people_resource(const struct mo_people *p)
{
    return p->resource;
}

/* --- providers ----------------------------------------------------------- */

static void close_providers(struct mo_people *p)
{
    for (size_t i = 0; i < p->nproviders; i++)
        mo_provider_close(p->providers[i]);
    p->nproviders = 0;
}

static int open_providers(struct mo_people *p, const struct mo_config *c,
                          struct mo_provider **v, struct mo_err *e)
{
    const struct mo_config_providers *all = &c->people.providers;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < all->n; i++) {
        rc = mo_provider_new(p->loop, p->http, all->v[i].issuer, &v[i], e);
        while (rc < 0 && i > 0)
            mo_provider_close(v[--i]);
    }
    return rc;
}

/* Only one has `introspect` (config/check.c). */
static int open_introspect(struct mo_people *p, const struct mo_config *c,
                           struct mo_provider *const *v,
                           struct mo_introspect **out, struct mo_err *e)
{
    struct mo_introspect_opts o = {
        .loop = p->loop,
        .http = p->http,
        .access = {.config = c, .audience = p->resource},
    };

    for (; o.index < c->people.providers.n; o.index++) {
        if (!c->people.providers.v[o.index].introspect)
            continue;
        o.provider = v[o.index];
        return mo_introspect_new(&o, out, e);
    }
    return 0;
}

/* A provider keeps its keys if its entry did not move: the keys are found
 * again soon, so everything else is read anew. */
int mo_people_reload(struct mo_people *p, const struct mo_config *c,
                     struct mo_err *e)
{
    struct mo_provider *v[MO_KEY_PROVIDERS_MAX];
    struct mo_introspect *next = NULL, *old = p->introspect;
    int rc;

    if (c->people.url && strlen(c->people.url) >= URL_MAX)
        return mo_fail(e, MO_EINVAL, "people.url is too long");
    rc = open_providers(p, c, v, e);
    if (rc < 0)
        return rc;
    rc = open_introspect(p, c, v, &next, e);
    for (size_t i = 0; rc < 0 && i < c->people.providers.n; i++)
        mo_provider_close(v[i]);
    if (rc < 0)
        return rc;
    p->introspect = next; /* who waited for the old one asks this one */
    close_providers(p);
    for (size_t i = 0; i < c->people.providers.n; i++)
        p->providers[i] = v[i];
    p->nproviders = c->people.providers.n;
    mo_config_unref(p->config);
    p->config = mo_config_ref(c);
    take_url(p);
    mo_introspect_close(old);
    mo_logins_reload(p->logins);
    return 0;
}

struct mo_logins *mo_people_logins(const struct mo_people *p)
{
    return p->logins;
}

bool mo_people_has_providers(const struct mo_people *p)
{
    return p->nproviders > 0;
}

const struct mo_config *mo_people_config(const struct mo_people *p)
{
    return p->config;
}

struct mo_provider *mo_people_provider(const struct mo_people *p,
                                       struct mo_span name,
                                       const struct mo_config_provider **c)
{
    for (size_t i = 0; i < p->nproviders; i++) {
        *c = &p->config->people.providers.v[i];
        if (mo_span_is(name, (*c)->name))
            return p->providers[i];
    }
    return NULL;
}

struct mo_httpc *mo_people_http(const struct mo_people *p)
{
    return p->http;
}

/* --- groups -------------------------------------------------------------- */

bool mo_people_member(const struct mo_people *p, const char *name,
                      struct mo_span entry)
{
    struct mo_span provider = mo_span_cut(&entry, '/');
    struct mo_span rest = mo_span_cstr(name);

    if (!entry.p || !mo_span_strip(&rest, provider) || !rest.n ||
        rest.p[0] != ':')
        return false;
    return mo_logins_member(p->logins, name, entry) ||
           mo_access_tokens_member(p->tokens, name, entry) ||
           (p->introspect && mo_introspect_member(p->introspect, name, entry));
}

void mo_people_groups(const struct mo_people *p, const char *name,
                      struct mo_buf *out)
{
    mo_logins_groups(p->logins, name, out);
    mo_access_tokens_groups(p->tokens, name, out);
    if (p->introspect)
        mo_introspect_groups(p->introspect, name, out);
}

/* --- credentials --------------------------------------------------------- */

bool mo_people_may_know(const struct mo_people *p, struct mo_span token)
{
    return mo_jwt_looks_like(token) || (p->introspect && token.n > 0);
}

int mo_people_check(struct mo_people *p, struct mo_span token,
                    struct mo_person *out, struct mo_provider **from,
                    struct mo_err *e)
{
    const struct mo_access_opts o = {
        .config = p->config,
        .providers = p->providers,
        .audience = p->resource,
    };

    if (mo_jwt_looks_like(token) || !p->introspect)
        return mo_access_token_check(p->tokens, &o, token, out, from, e);
    return mo_introspect_check(p->introspect, token, out, e);
}

int mo_people_prove(struct mo_people *p, const struct mo_person *who,
                    struct mo_proof *in, struct mo_err *e)
{
    in->url = p->url;
    in->now_s = mo_wall_ms() / 1000;
    return mo_proof_check(&p->proofs, in, who->jkt, e);
}

void mo_people_find_out(struct mo_people *p, struct mo_span token,
                        struct mo_provider *from, struct mo_provider_wait *w)
{
    if (from)
        mo_provider_read(from, w);
    else
        mo_introspect_ask(p->introspect, token, w);
}

void mo_people_share(struct mo_people *p, struct mo_proofs_shared *proofs)
{
    p->proofs.shared = proofs;
}

/* --- begin and end ------------------------------------------------------- */

static void free_people(struct mo_people *p)
{
    mo_logins_free(p->logins);
    mo_access_tokens_free(p->tokens);
    mo_proofs_fini(&p->proofs);
    mo_config_unref(p->config);
    mo_free(p);
}

int mo_people_new(struct mo_loop *l, const struct mo_config *c,
                  struct mo_people **out, struct mo_err *e)
{
    const struct mo_httpc_opts o = {.active = 8};
    struct mo_people *p = mo_new(struct mo_people);
    int rc;

    if (!p)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    p->loop = l;
    mo_proofs_init(&p->proofs);
    rc = mo_access_tokens_new(&p->tokens, e);
    if (rc == 0)
        rc = mo_logins_new(p, l, &p->logins, e);
    if (rc == 0)
        p->http = mo_httpc_new(l, &o, e);
    if (rc == 0 && !p->http)
        rc = e->code;
    if (rc == 0)
        rc = mo_people_reload(p, c, e);
    if (rc == 0)
        *out = p;
    else if (p->http)
        mo_people_close(p, NULL, NULL);
    else
        free_people(p);
    return rc;
}

void mo_people_close(struct mo_people *p, void (*gone)(void *ctx), void *ctx)
{
    struct mo_introspect *last = p->introspect;

    mo_logins_free(mo_take_ptr(&p->logins));
    p->introspect = NULL;
    mo_introspect_close(last);
    close_providers(p);
    mo_httpc_close(p->http, gone, ctx);
    free_people(p);
}
