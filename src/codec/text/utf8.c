#include "codec/text/utf8.h"

#include "codec/text/vec.h"

/* The state of the validator: the number of bytes the character still needs,
 * and the range of the next one (only the second byte's is ever narrower than
 * 80..BF). 0 = between characters. */
#define STATE(need, lo, hi)                                                    \
    ((uint32_t)(need) | (uint32_t)(lo) << 8 | (uint32_t)(hi) << 16)
#define STATE_NEED(s) ((s)&0xFF)
#define STATE_LO(s)   ((s) >> 8 & 0xFF)
#define STATE_HI(s)   ((s) >> 16 & 0xFF)
#define STATE_BAD     UINT32_MAX

static const char *skip_ascii(const char *p, const char *end)
{
    while (end - p >= MO_VEC_WIDTH) {
        uint64_t m = mo_vec_mask(mo_vec_high(mo_vec_load(p)));

        if (m)
            return p + mo_vec_first(m);
        p += MO_VEC_WIDTH;
    }
    while (p < end && (unsigned char)*p < 0x80)
        p++;
    return p;
}

/* Skip complete valid characters. */
static const char *skip_good(const char *p, const char *end)
{
    while (p < end) {
        size_t n;

        p = skip_ascii(p, end);
        if (p == end)
            break;
        n = mo_utf8_len(p, end);
        if (n == 0)
            break;
        p += n;
    }
    return p;
}

bool mo_utf8_valid(struct mo_span s)
{
    return s.n == 0 || skip_good(s.p, s.p + s.n) == s.p + s.n;
}

static uint32_t first_state(unsigned char c)
{
    if (c < 0x80)
        return 0;
    if (c < 0xC2 || c > 0xF4)
        return STATE_BAD;
    if (c < 0xE0)
        return STATE(1, 0x80, 0xBF);
    if (c < 0xF0)
        return STATE(2, c == 0xE0 ? 0xA0 : 0x80, c == 0xED ? 0x9F : 0xBF);
    return STATE(3, c == 0xF0 ? 0x90 : 0x80, c == 0xF4 ? 0x8F : 0xBF);
}

static uint32_t next_state(uint32_t st, unsigned char c)
{
    if (st == STATE_BAD)
        return STATE_BAD;
    if (st == 0)
        return first_state(c);
    if (c < STATE_LO(st) || c > STATE_HI(st))
        return STATE_BAD;
    return STATE_NEED(st) == 1 ? 0 : STATE(STATE_NEED(st) - 1, 0x80, 0xBF);
}

bool mo_utf8_feed(uint32_t *state, struct mo_span s)
{
    const char *p = s.p, *end = s.n ? s.p + s.n : s.p;
    uint32_t st = *state;

    while (p < end && st != STATE_BAD) {
        if (st == 0)
            p = skip_good(p, end);
        if (p < end)
            st = next_state(st, (unsigned char)*p++);
    }
    *state = st;
    return st != STATE_BAD;
}

bool mo_utf8_complete(uint32_t state)
{
    return state == 0;
}

size_t mo_utf8_good(struct mo_span s)
{
    const char *p = s.p, *end = s.n ? s.p + s.n : s.p;
    uint32_t st = 0;

    if (s.n == 0)
        return 0;
    p = skip_good(p, end);
    for (; p < end; p++) {
        st = next_state(st, (unsigned char)*p);
        if (st == STATE_BAD)
            break;
    }
    return (size_t)(p - s.p);
}

size_t mo_utf8_cut(struct mo_span s, size_t max)
{
    size_t n = max;

    if (s.n <= max)
        return s.n;
    while (n > 0 && max - n < 3 && mo_utf8_is_tail(s.p[n]))
        n--;
    /* Four continuation bytes in a row are not UTF-8: any cut will do. */
    return n > 0 && mo_utf8_is_tail(s.p[n]) ? max : n;
}

size_t mo_utf8_put(char out[4], uint32_t cp)
{
    MO_BUG_ON(cp > MO_UTF8_MAX || (cp >= 0xD800 && cp <= 0xDFFF));
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

int mo_utf8_get(struct mo_span s, uint32_t *cp)
{
    static const uint8_t lead_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    size_t n = s.n ? mo_utf8_len(s.p, s.p + s.n) : 0;
    uint32_t v;

    if (n == 0)
        return -1;
    v = (uint32_t)(unsigned char)s.p[0] & lead_bits[n];
    for (size_t i = 1; i < n; i++)
        v = v << 6 | ((unsigned char)s.p[i] & 0x3F);
    *cp = v;
    return (int)n;
}
