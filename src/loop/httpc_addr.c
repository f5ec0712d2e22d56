/* httpc_addr.c - restrict which addresses a request connects to.
 *
 * An attacker may give us a name that resolves to an address in our network. So
 * the address is checked, not the name, at the moment a socket is created for
 * it. An earlier DNS answer or a connection opened for another request does not
 * matter.
 *
 * Behind a proxy the address is the proxy's; the proxy's own rules apply. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "codec/ip.h"
#include "loop/httpc_priv.h"

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

static bool is_set(const char *const *names)
{
    for (; *names; names++) {
        const char *v = getenv(*names);

        if (v && *v)
            return true;
    }
    return false;
}

/* The environment variables that libcurl reads. */
static bool has_proxy(const char *url)
{
    static const char *const plain[] = {"http_proxy", "all_proxy", "ALL_PROXY",
                                        NULL};
    static const char *const tls[] = {"https_proxy", "HTTPS_PROXY", "all_proxy",
                                      "ALL_PROXY", NULL};
    struct mo_span scheme = mo_span_head(mo_span_cstr(url), 6);

    return is_set(mo_span_ieq(scheme, MO_SPAN("https:")) ? tls : plain);
}

bool mo_httpc_x_public_only(struct mo_httpc_x *x, const char *url)
{
    const struct mo_curl *f = &x->c->f;

    if (has_proxy(url))
        return true;
    return f->curl_easy_setopt(x->easy, CURLOPT_OPENSOCKETFUNCTION,
                               on_socket) == CURLE_OK &&
           f->curl_easy_setopt(x->easy, CURLOPT_OPENSOCKETDATA, x) ==
               CURLE_OK &&
           f->curl_easy_setopt(x->easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK;
}

bool mo_httpc_at_private(const struct mo_httpc_x *x)
{
    unsigned char b[16];
    char *text = NULL;

    (void)x->c->f.curl_easy_getinfo(x->easy, CURLINFO_PRIMARY_IP, &text);
    if (!text)
        return false;
    if (inet_pton(AF_INET, text, b) == 1)
        return mo_ip4_is_private(b);
    return inet_pton(AF_INET6, text, b) == 1 && mo_ip6_is_private(b);
}
