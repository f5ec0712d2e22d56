#include "codec/http/url.h"

#include "base/mem.h"

static bool one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static bool unreserved(char c)
{
    return mo_is_alpha(c) || mo_is_digit(c) || one_of(c, "-._~");
}

static bool subdelim(char c)
{
    return one_of(c, "!$&'()*+,;=");
}

/* True if s consists of unreserved, sub-delims, complete escapes and `extra`.
 */
static bool all_legal(struct mo_span s, const char *extra)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '%') {
            if (s.n - i < 3 || mo_hex_digit(s.p[i + 1]) < 0 ||
                mo_hex_digit(s.p[i + 2]) < 0)
                return false;
            i += 2;
        } else if (!unreserved(s.p[i]) && !subdelim(s.p[i]) &&
                   !one_of(s.p[i], extra)) {
            return false;
        }
    }
    return true;
}

/* --- hosts --------------------------------------------------------------- */

static bool hextet(struct mo_span s)
{
    return s.n >= 1 && s.n <= 4 && mo_span_only(s, "0123456789abcdefABCDEF");
}

/* Number of 16-bit groups in "a:b:c" (an IPv4 tail counts two), -1 if
 * malformed. Empty text has none. */
static int groups(struct mo_span s, bool may_end_v4)
{
    int n = 0;

    if (s.n == 0)
        return 0;
    while (s.p) {
        struct mo_span g = mo_span_cut(&s, ':');

        if (hextet(g))
            n++;
        else if (may_end_v4 && !s.p && mo_span_is_ip4(g))
            n += 2;
        else
            return -1;
    }
    return n;
}

/* RFC 4291 text, no zone. */
static bool ipv6_literal(struct mo_span s)
{
    ptrdiff_t gap = mo_span_search(s, MO_SPAN("::"));
    int before, after;

    if (gap < 0)
        return groups(s, true) == 8;
    before = groups(mo_span_head(s, (size_t)gap), false);
    after = groups(mo_span_skip(s, (size_t)gap + 2), true);
    return before >= 0 && after >= 0 && before + after <= 7;
}

/* Names are letters, digits, '-', '_' and '.'; no empty label but a final
 * one. A last label that begins with a digit makes it an address (WHATWG),
 * and then it must be a plain dotted quad: no 0x7f.1, no 2130706433. */
static bool host_name(struct mo_span s)
{
    struct mo_span rest = s, label = {0};
    bool dot_end = s.n > 1 && s.p[s.n - 1] == '.';

    if (s.n == 0 || s.n > MO_URL_HOST_MAX)
        return false;
    for (size_t i = 0; i < s.n; i++) /* every request has a Host header */
        if (!mo_is_alpha(s.p[i]) && !mo_is_digit(s.p[i]) &&
            !one_of(s.p[i], "-_."))
            return false;
    rest.n -= dot_end;
    while (rest.p) {
        label = mo_span_cut(&rest, '.');
        if (label.n == 0 || label.n > 63)
            return false;
    }
    return label.p &&
           (!mo_is_digit(label.p[0]) || (!dot_end && mo_span_is_ip4(s)));
}

static int read_port(struct mo_span s, uint16_t *port)
{
    uint64_t v;

    if (s.n > 5 || mo_span_u64(s, &v) < 0 || v == 0 || v > 65535)
        return MO_EINVAL;
    *port = (uint16_t)v;
    return 0;
}

/* ":port" or nothing. */
static int host_tail(struct mo_span s, struct mo_host *h)
{
    if (s.n == 0)
        return 0;
    if (s.p[0] != ':')
        return MO_EINVAL;
    h->has_port = true;
    return read_port(mo_span_skip(s, 1), &h->port);
}

int mo_host_parse(struct mo_span s, uint16_t default_port, struct mo_host *h)
{
    ptrdiff_t end;

    *h = (struct mo_host){.port = default_port};
    if (s.n && s.p[0] == '[') {
        end = mo_span_find(s, ']');
        if (end < 0)
            return MO_EINVAL;
        h->ipv6 = true;
        h->name = mo_span(s.p + 1, (size_t)end - 1);
        if (!ipv6_literal(h->name))
            return MO_EINVAL;
        return host_tail(mo_span_skip(s, (size_t)end + 1), h);
    }
    end = mo_span_find(s, ':');
    h->name = mo_span_head(s, end < 0 ? s.n : (size_t)end);
    if (!host_name(h->name))
        return MO_EINVAL;
    return host_tail(mo_span_skip(s, h->name.n), h);
}

static struct mo_span no_dot(struct mo_span s)
{
    s.n -= s.n > 1 && s.p[s.n - 1] == '.';
    return s;
}

/* The name without its final dot, ASCII case ignored, and the port. Addresses
 * are compared as text: "::1" is not "0:0:0:0:0:0:0:1". */
static bool same_host(const struct mo_host *a, const struct mo_host *b)
{
    return a->port == b->port && a->ipv6 == b->ipv6 &&
           mo_span_ieq(no_dot(a->name), no_dot(b->name));
}

bool mo_host_is_loopback(const struct mo_host *h)
{
    static const struct mo_span suffix = {".localhost", 10};
    struct mo_span n = no_dot(h->name);

    if (h->ipv6)
        return mo_span_is(n, "::1");
    if (mo_span_is_ip4(n))
        return mo_span_starts(n, MO_SPAN("127."));
    if (mo_span_ieq(n, MO_SPAN("localhost")))
        return true;
    return n.n > suffix.n &&
           mo_span_ieq(mo_span_skip(n, n.n - suffix.n), suffix);
}

/* --- URLs ---------------------------------------------------------------- */

static const struct {
    struct mo_span name;
    uint16_t port;
} schemes[] = {
    {{"http", 4}, 80}, {{"https", 5}, 443},  {{"ws", 2}, 80},
    {{"wss", 3}, 443}, {{"redis", 5}, 6379}, {{"rediss", 6}, 6379},
    {{"tcp", 3}, 0},   {{"unix", 4}, 0},     {{"file", 4}, 0},
};

/* 0 when we know none. */
static uint16_t default_port(struct mo_span scheme)
{
    for (size_t i = 0; i < MO_COUNT(schemes); i++) {
        if (mo_span_ieq(scheme, schemes[i].name))
            return schemes[i].port;
    }
    return 0;
}

static bool scheme_ok(struct mo_span s)
{
    return s.n && mo_is_alpha(s.p[0]) && mo_span_only(s, MO_ALNUM "+-.");
}

static bool hostless(struct mo_span scheme)
{
    return mo_span_ieq(scheme, MO_SPAN("unix")) ||
           mo_span_ieq(scheme, MO_SPAN("file"));
}

/* The first '@' divides; a second one is no legal byte of a host. */
static int read_authority(struct mo_span s, struct mo_url *u)
{
    ptrdiff_t at = mo_span_find(s, '@');
    struct mo_host h = {0};

    if (at >= 0) {
        u->userinfo = mo_span_head(s, (size_t)at);
        s = mo_span_skip(s, (size_t)at + 1);
        if (!all_legal(u->userinfo, ":"))
            return MO_EINVAL;
    }
    if (s.n == 0)
        return at < 0 && hostless(u->scheme) && u->path.n ? 0 : MO_EINVAL;
    if (mo_host_parse(s, default_port(u->scheme), &h) < 0)
        return MO_EINVAL;
    u->host = h.name;
    u->port = h.port;
    u->has_port = h.has_port;
    u->ipv6 = h.ipv6;
    return 0;
}

/* Cut *s before the first byte of `set`. */
static struct mo_span cut_before(struct mo_span *s, const char *set)
{
    size_t n = 0;

    while (n < s->n && !one_of(s->p[n], set))
        n++;
    return mo_span_take(s, n);
}

int mo_url_parse(struct mo_span s, struct mo_url *u, struct mo_err *e)
{
    struct mo_span authority;
    ptrdiff_t colon = mo_span_search(s, MO_SPAN("://"));

    *u = (struct mo_url){0};
    if (s.n > MO_URL_MAX)
        return mo_fail(e, MO_ETOOBIG, "URL longer than %zu", MO_URL_MAX);
    if (colon < 0 || !scheme_ok(mo_span_head(s, (size_t)colon)))
        return mo_fail(e, MO_EINVAL, "URL without a scheme");
    u->scheme = mo_span_head(s, (size_t)colon);
    s = mo_span_skip(s, (size_t)colon + 3);
    authority = cut_before(&s, "/?#");
    u->path = cut_before(&s, "?#");
    if (s.n && s.p[0] == '?') {
        s = mo_span_skip(s, 1);
        u->query = cut_before(&s, "#");
    }
    if (s.n)
        u->fragment = mo_span_skip(s, 1);
    if (read_authority(authority, u) < 0)
        return mo_fail(e, MO_EINVAL, "URL with a bad host or port");
    if (!all_legal(u->path, ":@/") || !all_legal(u->query, ":@/?") ||
        !all_legal(u->fragment, ":@/?"))
        return mo_fail(e, MO_EINVAL, "bad byte in URL");
    return 0;
}

/* --- origins ------------------------------------------------------------- */

int mo_origin_parse(struct mo_span s, struct mo_url *u)
{
    int rc = mo_url_parse(s, u, NULL);

    if (rc < 0)
        return rc;
    if (u->userinfo.p || u->path.n || u->query.p || u->fragment.p || !u->host.n)
        return MO_EINVAL;
    return 0;
}

static struct mo_host host_of(const struct mo_url *u)
{
    return (struct mo_host){.name = u->host, .port = u->port, .ipv6 = u->ipv6};
}

bool mo_origin_eq(const struct mo_url *a, const struct mo_url *b)
{
    struct mo_host ha = host_of(a), hb = host_of(b);

    return mo_span_ieq(a->scheme, b->scheme) && same_host(&ha, &hb);
}

bool mo_origin_is_host(const struct mo_url *origin, const struct mo_host *host,
                       bool tls)
{
    struct mo_host h = host_of(origin);
    struct mo_span s = origin->scheme;
    bool secure =
        mo_span_ieq(s, MO_SPAN("https")) || mo_span_ieq(s, MO_SPAN("wss"));
    bool plain =
        mo_span_ieq(s, MO_SPAN("http")) || mo_span_ieq(s, MO_SPAN("ws"));

    return (tls ? secure : plain) && same_host(&h, host);
}

/* --- escapes ------------------------------------------------------------- */

/* Decode the byte at *i and advance; -1 if malformed. NUL is refused. */
static int decode_at(struct mo_span s, size_t *i)
{
    int hi, lo;

    if (s.p[*i] == '\0')
        return -1;
    if (s.p[*i] != '%')
        return (unsigned char)s.p[(*i)++];
    if (s.n - *i < 3)
        return -1;
    hi = mo_hex_digit(s.p[*i + 1]);
    lo = mo_hex_digit(s.p[*i + 2]);
    if (hi < 0 || lo < 0 || (hi | lo) == 0)
        return -1;
    *i += 3;
    return hi << 4 | lo;
}

int mo_pct_decode(struct mo_buf *b, struct mo_span s, bool plus)
{
    char *out = mo_buf_room(b, s.n); /* decoding never grows */
    size_t n = 0;

    if (!out)
        return mo_buf_err(b);
    for (size_t i = 0; i < s.n;) {
        bool blank = plus && s.p[i] == '+';
        int c = decode_at(s, &i);

        if (c < 0)
            return MO_EINVAL;
        out[n++] = blank ? ' ' : (char)c;
    }
    mo_buf_add(b, n);
    return 0;
}

int mo_pct_encode(struct mo_buf *b, struct mo_span s)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        char esc[3] = {'%', digits[c >> 4], digits[c & 15]};

        if (unreserved(s.p[i]))
            mo_buf_putc(b, s.p[i]);
        else
            mo_buf_put(b, esc, sizeof(esc));
    }
    return mo_buf_err(b);
}

bool mo_query_next(struct mo_span *query, struct mo_span *key,
                   struct mo_span *value)
{
    while (query->p) {
        struct mo_span piece = mo_span_cut(query, '&');

        if (piece.n == 0)
            continue;
        *value = piece;
        *key = mo_span_cut(value, '=');
        return true;
    }
    return false;
}

/* Returns 1 if the escaped text decodes to exactly key, 0, or MO_EINVAL. */
static int stands_for(struct mo_span s, struct mo_span key)
{
    size_t n = 0;
    bool same = true;

    for (size_t i = 0; i < s.n; n++) {
        bool blank = s.p[i] == '+';
        int c = decode_at(s, &i);

        if (c < 0)
            return MO_EINVAL;
        if (n >= key.n || (char)(blank ? ' ' : c) != key.p[n])
            same = false;
    }
    return same && n == key.n;
}

int mo_query_get(struct mo_span query, const char *key, struct mo_buf *b)
{
    struct mo_span want = mo_span_cstr(key), k, v;

    while (mo_query_next(&query, &k, &v)) {
        int rc = stands_for(k, want);

        if (rc < 0)
            return rc;
        if (rc)
            return mo_pct_decode(b, v, true);
    }
    return MO_ENOTFOUND;
}
