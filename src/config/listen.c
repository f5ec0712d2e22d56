/* listen.c - tests on values of `server.listen`; see listen.h. */
#include "config/listen.h"

#include "codec/http/url.h"

bool mo_listen_is_unix(const char *listen)
{
    return strncmp(listen, "unix:", 5) == 0;
}

struct mo_span mo_listen_host(const char *listen)
{
    struct mo_span s = mo_span_cstr(listen);

    if (s.n > 2 && s.p[0] == '[' && s.p[s.n - 1] == ']')
        return mo_span(s.p + 1, s.n - 2);
    return s;
}

bool mo_listen_is_ipv6(const char *listen)
{
    return mo_span_find(mo_listen_host(listen), ':') >= 0;
}

bool mo_listen_is_local(const char *listen)
{
    struct mo_host h = {.name = mo_listen_host(listen),
                        .ipv6 = mo_listen_is_ipv6(listen)};

    return mo_listen_is_unix(listen) || mo_host_is_loopback(&h);
}
