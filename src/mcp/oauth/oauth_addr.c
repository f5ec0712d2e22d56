#include "mcp/oauth/oauth_addr.h"

#include <arpa/inet.h>

#include "codec/http/url.h"
#include "codec/ip.h"

int mo_oauth_keep(struct mo_arena *a, struct mo_span s, const char **out)
{
    *out = mo_arena_strndup(a, s.p, s.n);
    return *out ? 0 : MO_ENOMEM;
}

int mo_oauth_copy(struct mo_arena *a, const char *from, const char **to)
{
    if (from)
        return mo_oauth_keep(a, mo_span_cstr(from), to);
    *to = NULL;
    return 0;
}

int mo_oauth_keep_buf(struct mo_arena *a, const struct mo_buf *b,
                      const char **out)
{
    return mo_buf_err(b) ? mo_buf_err(b)
                         : mo_oauth_keep(a, mo_buf_view(b), out);
}

/* --- addresses ----------------------------------------------------------- */

static bool is_loopback(const struct mo_url *u)
{
    struct mo_host h = {.name = u->host, .ipv6 = u->ipv6};

    return mo_host_is_loopback(&h);
}

/* Literal addresses only; names are checked when they are resolved. */
static bool is_private(const struct mo_url *u)
{
    char text[64];
    unsigned char b[16];

    if (is_loopback(u))
        return true;
    if (u->host.n >= sizeof(text))
        return false;
    memcpy(text, u->host.p, u->host.n);
    text[u->host.n] = '\0';
    if (u->ipv6)
        return inet_pton(AF_INET6, text, b) != 1 || mo_ip6_is_private(b);
    return inet_pton(AF_INET, text, b) == 1 && mo_ip4_is_private(b);
}

bool mo_oauth_is_private(const char *url)
{
    struct mo_url u;

    return mo_url_parse(mo_span_cstr(url), &u, NULL) == 0 && is_private(&u);
}

bool mo_oauth_same_host(const char *a, const char *b)
{
    struct mo_url x, y;

    return mo_url_parse(mo_span_cstr(a), &x, NULL) == 0 &&
           mo_url_parse(mo_span_cstr(b), &y, NULL) == 0 && x.ipv6 == y.ipv6 &&
           x.host.n && mo_span_ieq(x.host, y.host);
}

bool mo_oauth_same_issuer(const char *a, const char *b)
{
    struct mo_span x = mo_span_cstr(a), y = mo_span_cstr(b);

    while (mo_span_ends(x, MO_SPAN("/")))
        x.n--;
    while (mo_span_ends(y, MO_SPAN("/")))
        y.n--;
    return mo_span_eq(x, y);
}

int mo_oauth_url_ok(const char *url, const char *server, struct mo_err *e)
{
    struct mo_url u;

    if (mo_url_parse(mo_span_cstr(url), &u, NULL) < 0 || u.fragment.p ||
        u.userinfo.p || u.host.n == 0)
        return mo_fail(e, MO_EPOLICY, "not an acceptable address");
    if (!mo_span_ieq(u.scheme, MO_SPAN("https")) &&
        !(mo_span_ieq(u.scheme, MO_SPAN("http")) && is_loopback(&u)))
        return mo_fail(e, MO_EPOLICY, "%.*s needs TLS (https)",
                       (int)(u.host.n < 100 ? u.host.n : 100), u.host.p);
    if (!is_private(&u) || mo_oauth_is_private(server))
        return 0;
    return mo_fail(e, MO_EPOLICY,
                   "a public server refers to the private address %.*s",
                   (int)(u.host.n < 100 ? u.host.n : 100), u.host.p);
}

static void put_origin(struct mo_buf *b, const struct mo_url *u)
{
    mo_buf_span(b, u->scheme);
    mo_buf_puts(b, u->ipv6 ? "://[" : "://");
    mo_buf_span(b, u->host);
    if (u->ipv6)
        mo_buf_putc(b, ']');
    if (u->has_port)
        mo_buf_printf(b, ":%u", u->port);
}

struct mo_span mo_oauth_bare_path(const struct mo_url *u)
{
    struct mo_span p = u->path;

    while (p.n && p.p[p.n - 1] == '/')
        p.n--;
    return p;
}

/* Add an address: origin, `before`, the URL's path, `behind`. */
static int add_url(struct mo_arena *a, struct mo_oauth_urls *out,
                   const struct mo_url *u, const char *before,
                   struct mo_span path, const char *behind)
{
    mo_autobuf struct mo_buf b = {.max = MO_URL_MAX};

    put_origin(&b, u);
    mo_buf_puts(&b, before);
    mo_buf_span(&b, path);
    mo_buf_puts(&b, behind);
    return mo_oauth_keep_buf(a, &b, &out->v[out->n++]);
}

int mo_oauth_at_origin(struct mo_arena *a, const char *url, const char *path,
                       const char **out)
{
    struct mo_oauth_urls list = {.n = 0};
    struct mo_url u;
    int rc = mo_url_parse(mo_span_cstr(url), &u, NULL);

    if (rc == 0)
        rc = add_url(a, &list, &u, path, mo_span(NULL, 0), "");
    *out = list.v[0];
    return rc;
}

int mo_oauth_resource_urls(struct mo_arena *a, const char *server,
                           const char *told, struct mo_oauth_urls *out)
{
    static const char known[] = "/.well-known/oauth-protected-resource";
    struct mo_url u;
    int rc = mo_url_parse(mo_span_cstr(server), &u, NULL);

    *out = (struct mo_oauth_urls){.n = 0};
    if (rc < 0)
        return rc;
    if (told)
        return mo_oauth_keep(a, mo_span_cstr(told), &out->v[out->n++]);
    if (mo_oauth_bare_path(&u).n)
        rc = add_url(a, out, &u, known, mo_oauth_bare_path(&u), "");
    if (rc == 0)
        rc = add_url(a, out, &u, known, mo_span(NULL, 0), "");
    return rc;
}

int mo_oauth_issuer_urls(struct mo_arena *a, const char *issuer,
                         struct mo_oauth_urls *out)
{
    static const char oauth[] = "/.well-known/oauth-authorization-server";
    static const char oidc[] = "/.well-known/openid-configuration";
    struct mo_span path;
    struct mo_url u;
    int rc = mo_url_parse(mo_span_cstr(issuer), &u, NULL);

    *out = (struct mo_oauth_urls){.n = 0};
    if (rc < 0)
        return rc;
    path = mo_oauth_bare_path(&u);
    rc = add_url(a, out, &u, oauth, path, "");
    if (rc == 0)
        rc = add_url(a, out, &u, oidc, path, "");
    if (rc == 0 && path.n)
        rc = add_url(a, out, &u, "", path, oidc);
    return rc;
}
