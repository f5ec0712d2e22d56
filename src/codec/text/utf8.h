/* utf8.h - UTF-8: validation, encoding, decoding, cutting.
 *
 * Strict as RFC 3629: no overlong forms, no surrogates, nothing above
 * U+10FFFF. The incremental validator keeps its place in one word, so a text
 * may come in any pieces (WebSocket fragments, pipe reads) and is refused at
 * the first wrong byte, not at the end.
 *
 * Pure: no allocation, no locale, no state of its own. */
#ifndef MO_CODEC_TEXT_UTF8_H
#define MO_CODEC_TEXT_UTF8_H

#include "base/str.h"

#define MO_UTF8_REPLACEMENT 0xFFFDu
#define MO_UTF8_MAX         0x10FFFFu

bool mo_utf8_valid(struct mo_span s);

/* *state starts as 0. false: invalid, and so is everything fed later. */
bool mo_utf8_feed(uint32_t *state, struct mo_span s);
/* No character is incomplete: the text may end here. */
bool mo_utf8_complete(uint32_t state);

/* Offset of the first wrong byte, or s.n when there is none. The bytes of a
 * character that is cut off at the end count as right while they could still
 * become a character. */
size_t mo_utf8_good(struct mo_span s);

/* The greatest length <= max that does not cut a character of valid text. */
size_t mo_utf8_cut(struct mo_span s, size_t max);

/* Encode; bytes written. A surrogate or a number too big is MO_BUG_ON. */
size_t mo_utf8_put(char out[4], uint32_t cp);
/* Decode the first character: bytes used, or -1 (also for empty text). */
int mo_utf8_get(struct mo_span s, uint32_t *cp);

static inline bool mo_utf8_is_tail(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Length of the valid character at p (p < end), 0 when it is none. Inline:
 * the JSON scanner asks this for every non-ASCII character. */
static inline size_t mo_utf8_len(const char *p, const char *end)
{
    unsigned char c = (unsigned char)p[0], d;
    size_t left = (size_t)(end - p);

    if (c < 0x80)
        return 1;
    if (c < 0xC2 || c > 0xF4 || left < 2)
        return 0;
    d = (unsigned char)p[1];
    if (c < 0xE0)
        return mo_utf8_is_tail(p[1]) ? 2 : 0;
    if (c < 0xF0) {
        if (left < 3 || !mo_utf8_is_tail(p[2]))
            return 0;
        return d >= (c == 0xE0 ? 0xA0 : 0x80) && d <= (c == 0xED ? 0x9F : 0xBF)
                   ? 3
                   : 0;
    }
    if (left < 4 || !mo_utf8_is_tail(p[2]) || !mo_utf8_is_tail(p[3]))
        return 0;
    return d >= (c == 0xF0 ? 0x90 : 0x80) && d <= (c == 0xF4 ? 0x8F : 0xBF) ? 4
                                                                            : 0;
}

#endif
