/* fuzz_utf8.c - the validator against a decoder written another way, and in
 * pieces against the whole. */
#include <stdlib.h>

#include "codec/text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* Slow and plain: collect the bits, then ask whether this was the shortest
 * way to write an allowed number. Returns bytes used, 0 when wrong. */
static size_t reference(const uint8_t *p, size_t n, uint32_t *cp)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = p[0] < 0x80             ? 1
                 : (p[0] & 0xE0) == 0xC0 ? 2
                 : (p[0] & 0xF0) == 0xE0 ? 3
                 : (p[0] & 0xF8) == 0xF0 ? 4
                                         : 0;

    if (len == 0 || len > n)
        return 0;
    *cp = len == 1 ? p[0] : p[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        *cp = *cp << 6 | (p[i] & 0x3F);
    }
    if (*cp < least[len] || *cp > 0x10FFFF || (*cp >> 11) == 0x1B)
        return 0;
    return len;
}

static bool reference_valid(struct mo_span s)
{
    uint32_t cp;

    for (size_t at = 0; at < s.n;) {
        const uint8_t *p = (const uint8_t *)s.p + at;
        size_t n = reference(p, s.n - at, &cp);
        uint32_t got = 0;
        char out[4];

        if (n == 0) {
            must(mo_utf8_get(mo_span_skip(s, at), &got) == -1);
            return false;
        }
        must(mo_utf8_get(mo_span_skip(s, at), &got) == (int)n && got == cp);
        must(mo_utf8_put(out, cp) == n && memcmp(out, p, n) == 0);
        at += n;
    }
    return true;
}

static void check_pieces(struct mo_span s, size_t cut, bool valid, size_t good)
{
    uint32_t st = 0;
    bool ok = mo_utf8_feed(&st, mo_span_head(s, cut));

    must(ok == (good >= cut));
    ok = mo_utf8_feed(&st, mo_span_skip(s, cut));
    must(ok == (good == s.n));
    must((ok && mo_utf8_complete(st)) == valid);
}

static void check_cut(struct mo_span s, size_t max)
{
    size_t n = mo_utf8_cut(s, max);

    must(n <= max && n <= s.n && (n == s.n || n + 4 > max));
    must(mo_utf8_valid(mo_span_head(s, n)));
    must(mo_utf8_valid(mo_span_skip(s, n)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span s = mo_span((const char *)data, n);
    bool valid = reference_valid(s);
    size_t good = mo_utf8_good(s);

    must(mo_utf8_valid(s) == valid);
    must(good <= n && (!valid || good == n));
    for (size_t cut = 0; cut <= n && cut < 80; cut++) {
        check_pieces(s, cut, valid, good);
        if (valid)
            check_cut(s, cut);
    }
    return 0;
}
