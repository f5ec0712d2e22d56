/* named.c - find tools whose name appears in a request.
 *
 * A hash table holds every tool's name. Words of the request that look like an
 * identifier are looked up, and so is the part behind each character that may
 * separate a server's name from a tool's. Names are hashed from their end, so
 * all suffixes of a word cost one pass over it. */
#include "route/route_priv.h"

#define NAMED 10.0f /* greater than any score */

/* --- the table ----------------------------------------------------------- */

static uint32_t hash_more(uint32_t h, char c)
{
    return (h ^ (unsigned char)mo_lower(c)) * 16777619u;
}

static uint32_t *slot_of(const struct mo_route *r, uint32_t h)
{
    return &r->name_slots[(h ^ (h >> 15)) & (r->nname_slots - 1)];
}

size_t mo_route_name_slots(size_t ntools)
{
    size_t n = 64;

    while (n < ntools * 2)
        n *= 2;
    return n;
}

void mo_route_list_names(struct mo_route *r)
{
    r->nname_slots = mo_route_name_slots(r->ntools);
    memset(r->name_slots, 0, r->nname_slots * sizeof(*r->name_slots));
    for (uint32_t t = 0; t < r->ntools; t++) {
        struct mo_span name = tool_name(r, t);
        uint32_t h = 0, *slot;

        while (name.n)
            h = hash_more(h, name.p[--name.n]);
        slot = slot_of(r, h);
        r->next_named[t] = *slot;
        *slot = t + 1;
    }
}

/* --- the request --------------------------------------------------------- */

/* Separates a server's name from a tool's. */
static inline bool is_separator(char c)
{
    return c == '_' || c == '/' || c == '.' || c == ':';
}

static inline bool is_name_byte(char c)
{
    return mo_is_alpha(c) || mo_is_digit(c) || (c & 0x80) || is_separator(c) ||
           c == '-';
}

/* True for identifiers: a_b, a-b-c, a/b, a:b, aB. Not AaBb, which may be a
 * product name, and not one hyphen, which may join two words. */
static bool looks_like_name(struct mo_span w)
{
    bool small = w.n && w.p[0] >= 'a' && w.p[0] <= 'z';
    unsigned hyphens = 0;

    for (size_t i = 1; i + 1 < w.n; i++) {
        char c = w.p[i];

        if ((is_separator(c) && c != '.') || (small && c >= 'A' && c <= 'Z'))
            return true;
        hyphens += c == '-';
    }
    return hyphens > 1;
}

/* True if w is the tool's name, or server and tool: files/read, files.read,
 * files:read, files__read. */
static bool is_named(const struct mo_route *r, uint32_t t, struct mo_span w)
{
    struct mo_span name = tool_name(r, t);
    struct mo_span server = server_name(r, r->tools[t].server);
    struct mo_span mid;

    if (mo_span_ieq(w, name))
        return true;
    if (w.n <= server.n + name.n ||
        !mo_span_ieq(mo_span_head(w, server.n), server) ||
        !mo_span_ieq(mo_span_skip(w, w.n - name.n), name))
        return false;
    mid = mo_span_skip(mo_span_head(w, w.n - name.n), server.n);
    return (mid.n == 1 && is_separator(mid.p[0])) || mo_span_is(mid, "__");
}

/* Raise the tools whose name is the suffix of w at `from`, with hash h. */
static bool raise_suffix(struct mo_route *r, struct mo_span w, size_t from,
                         uint32_t h)
{
    bool any = false;

    for (uint32_t t = *slot_of(r, h); t; t = r->next_named[t - 1]) {
        if (r->tools[t - 1].n != w.n - from || !is_named(r, t - 1, w))
            continue;
        r->scores[t - 1] += NAMED;
        any = true;
    }
    return any;
}

/* Raise every tool that this word of the request names above all others. */
static bool raise_named(struct mo_route *r, struct mo_span w)
{
    bool any = false;
    uint32_t h = 0;

    for (size_t i = w.n; i > 0; i--) {
        if (is_separator(w.p[i - 1]))
            any |= raise_suffix(r, w, i, h);
        h = hash_more(h, w.p[i - 1]);
    }
    return raise_suffix(r, w, 0, h) || any;
}

/* The next run of name bytes, without punctuation at its end; empty if there is
 * none. */
static struct mo_span next_name(struct mo_span *rest)
{
    struct mo_span w;
    size_t n = 0;

    while (rest->n && !is_name_byte(rest->p[0]))
        *rest = mo_span_skip(*rest, 1);
    while (n < rest->n && is_name_byte(rest->p[n]))
        n++;
    w = mo_span_take(rest, n);
    while (w.n && strchr(".:/-", w.p[w.n - 1]))
        w.n--;
    return w;
}

bool mo_route_raise_named(struct mo_route *r, struct mo_span request)
{
    struct mo_span all = mo_span_trim(request), rest = all;
    bool any = false;

    while (rest.n) {
        struct mo_span w = next_name(&rest);

        if (w.n > 1 && (w.n == all.n || looks_like_name(w)))
            any |= raise_named(r, w);
    }
    return any;
}
