/* httpc_route.c - how a request reaches its host: through a proxy or directly,
 * and to which addresses.
 *
 * An attacker may give us a name that resolves to an address in our network. So
 * the address is checked, not the name, at the moment a socket is created for
 * it. An earlier DNS answer or a connection opened for another request does not
 * matter.
 *
 * This file decides whether a proxy is used, by the variables that libcurl
 * reads, and tells libcurl: so a host of NO_PROXY is a direct connection for
 * both. Through a proxy only the proxy resolves the name. Then literal
 * addresses and "localhost" are refused here, and the proxy's own rules decide
 * about other names. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "codec/http/url.h"
#include "codec/ip.h"
#include "loop/httpc_priv.h"

/* --- addresses ----------------------------------------------------------- */

static bool is_private(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return mo_ip4_is_private(
            (const void *)&((const struct sockaddr_in *)(const void *)a)
                ->sin_addr);
    if (a->sa_family == AF_INET6)
        return mo_ip6_is_private(
            (const void *)&((const struct sockaddr_in6 *)(const void *)a)
                ->sin6_addr);
    return true; /* not an internet address */
}

/* Reads an address: 4 or 16 bytes, or 0 for a name. */
static unsigned read_address(const char *text, unsigned char b[16])
{
    if (inet_pton(AF_INET, text, b) == 1)
        return 4;
    return inet_pton(AF_INET6, text, b) == 1 ? 16 : 0;
}

static bool is_private_text(const char *host)
{
    struct mo_host name = {.name = mo_span_cstr(host)};
    unsigned char b[16];
    unsigned n = read_address(host, b);

    if (n)
        return n == 4 ? mo_ip4_is_private(b) : mo_ip6_is_private(b);
    return mo_host_is_loopback(&name);
}

static curl_socket_t on_socket(void *ctx, curlsocktype purpose,
                               struct curl_sockaddr *a)
{
    struct mo_httpc_x *x = ctx;

    (void)purpose;
    if (is_private(&a->addr)) {
        x->barred = true;
        return CURL_SOCKET_BAD;
    }
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

bool mo_httpc_at_private(const struct mo_httpc_x *x)
{
    char *text = NULL;

    if (x->proxied)
        return is_private_text(x->host);
    (void)x->c->f.curl_easy_getinfo(x->easy, CURLINFO_PRIMARY_IP, &text);
    return text && is_private_text(text);
}

/* --- proxy --------------------------------------------------------------- */

static const char *first_set(const char *const *names)
{
    for (; *names; names++) {
        const char *v = getenv(*names);

        if (v && *v)
            return v;
    }
    return NULL;
}

static const char *proxy_of(const char *url)
{
    static const char *const plain[] = {"http_proxy", "all_proxy", "ALL_PROXY",
                                        NULL};
    static const char *const tls[] = {"https_proxy", "HTTPS_PROXY", "all_proxy",
                                      "ALL_PROXY", NULL};
    struct mo_span scheme = mo_span_head(mo_span_cstr(url), 6);

    return first_set(mo_span_ieq(scheme, MO_SPAN("https:")) ? tls : plain);
}

static bool same_bits(const unsigned char *a, const unsigned char *b,
                      unsigned bits)
{
    unsigned char mask = (unsigned char)(0xFF00u >> bits % 8);

    return memcmp(a, b, bits / 8) == 0 &&
           (bits % 8 == 0 || ((a[bits / 8] ^ b[bits / 8]) & mask) == 0);
}

/* "192.0.2.1", "192.0.2.0/24" */
static bool is_in_net(const unsigned char *a, unsigned n, struct mo_span net)
{
    struct mo_span rest = net, text = mo_span_cut(&rest, '/');
    unsigned char b[16];
    char room[64];
    uint64_t bits = n * 8;

    if (text.n >= sizeof(room))
        return false;
    memcpy(room, text.p, text.n);
    room[text.n] = 0;
    if (rest.p && (mo_span_u64(rest, &bits) < 0 || bits > n * 8))
        return false;
    return read_address(room, b) == n && same_bits(a, b, (unsigned)bits);
}

/* "example.com" and ".example.com": the host itself and all below it */
static bool is_in_domain(struct mo_span host, struct mo_span domain)
{
    (void)mo_span_strip(&domain, MO_SPAN("."));
    while (mo_span_ends(domain, MO_SPAN(".")))
        domain.n--;
    while (mo_span_ends(host, MO_SPAN(".")))
        host.n--;
    if (!domain.n || host.n < domain.n)
        return false;
    if (host.n > domain.n && host.p[host.n - domain.n - 1] != '.')
        return false;
    return mo_span_ieq(mo_span_skip(host, host.n - domain.n), domain);
}

/* Does NO_PROXY have this host? */
static bool is_without_proxy(const char *host)
{
    static const char *const names[] = {"no_proxy", "NO_PROXY", NULL};
    const char *list = first_set(names);
    unsigned char a[16];
    unsigned n = read_address(host, a);

    if (!list)
        return false;
    if (strcmp(list, "*") == 0)
        return true;
    while (*list) {
        struct mo_span item = mo_span(list, strcspn(list, ", \t"));

        if (item.n && (n ? is_in_net(a, n, item)
                         : is_in_domain(mo_span_cstr(host), item)))
            return true;
        list += item.n + (list[item.n] != 0);
    }
    return false;
}

/* --- the route ----------------------------------------------------------- */

/* Sets the host as libcurl reads it: "0x7f.1" is 127.0.0.1 there too. */
static bool set_host(struct mo_httpc_x *x, const char *url)
{
    const struct mo_curl *f = &x->c->f;
    CURLU *u = f->curl_url();
    char *host = NULL;
    struct mo_span s;
    bool ok;

    if (u && f->curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK)
        (void)f->curl_url_get(u, CURLUPART_HOST, &host, 0);
    s = mo_span_cstr(host);
    if (mo_span_strip(&s, MO_SPAN("[")) && s.n)
        s.n--;
    ok = s.n < sizeof(x->host);
    if (ok && s.n)
        memcpy(x->host, s.p, s.n);
    f->curl_free(host);
    f->curl_url_cleanup(u);
    return ok;
}

/* libcurl reads the environment unless told otherwise; "" is "no proxy" and
 * "no exceptions". */
static bool set_proxy(struct mo_httpc_x *x, const char *proxy)
{
    const struct mo_curl *f = &x->c->f;

    return f->curl_easy_setopt(x->easy, CURLOPT_PROXY, proxy) == CURLE_OK &&
           f->curl_easy_setopt(x->easy, CURLOPT_NOPROXY, "") == CURLE_OK;
}

static bool set_guard(struct mo_httpc_x *x)
{
    const struct mo_curl *f = &x->c->f;

    return f->curl_easy_setopt(x->easy, CURLOPT_OPENSOCKETFUNCTION,
                               on_socket) == CURLE_OK &&
           f->curl_easy_setopt(x->easy, CURLOPT_OPENSOCKETDATA, x) ==
               CURLE_OK &&
           f->curl_easy_setopt(x->easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK;
}

bool mo_httpc_x_route(struct mo_httpc_x *x, const char *url, bool public_only)
{
    const char *proxy = proxy_of(url);

    if (!set_host(x, url))
        return false;
    x->proxied = proxy && !is_without_proxy(x->host);
    if (!set_proxy(x, x->proxied ? proxy : ""))
        return false;
    if (!public_only)
        return true;
    if (x->proxied)
        x->barred = is_private_text(x->host);
    return x->proxied || set_guard(x);
}
