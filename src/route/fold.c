#include "route/fold.h"

#include "base/mem.h"
#include "codec/text/utf8.h"

/* Latin-1 and Latin Extended-A, U+00C0 to U+017F, without accents. 0: the
 * letter has no plain form; a capital becomes a small letter instead. Letters
 * that stand for two (ae, oe, ss, th) keep their own small form. */
static const char latin[] =
    /* C0 */ "aaaaaa\0ceeeeiiii"
             /* D0 */ "\0nooooo\0\0uuuuy\0\0"
             /* E0 */ "aaaaaa\0ceeeeiiii"
             /* F0 */ "\0nooooo\0\0uuuuy\0y"
             /* 100 */ "aaaaaaccccccccdd"
             /* 110 */ "\0\0eeeeeeeeeegggg"
             /* 120 */ "gggghh\0\0iiiiiiii"
             /* 130 */ "i\0\0\0jjkk\0llllll\0"
             /* 140 */ "\0\0\0nnnnnn\0\0\0oooo"
             /* 150 */ "oo\0\0rrrrrrssssss"
             /* 160 */ "sstttt\0\0uuuuuuuu"
             /* 170 */ "uuuuwwyyyzzzzzz\0";

#define LATIN_FIRST 0xC0u
#define LATIN_LAST  0x17Fu

struct range {
    uint32_t from, to;
};

static bool is_in(const struct range *v, size_t n, uint32_t cp)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (cp > v[mid].to)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && cp >= v[lo].from;
}

/* Sorted. Characters in neither table are letters. */
static const struct range puncts[] = {
    {0x21, 0x2F},     {0x3A, 0x40},     {0x5B, 0x60},     {0x7B, 0x7E},
    {0xA1, 0xA9},     {0xAB, 0xB4},     {0xB6, 0xB9},     {0xBB, 0xBF},
    {0xD7, 0xD7},     {0xF7, 0xF7},     {0x2010, 0x2027}, {0x2030, 0x205E},
    {0x20A0, 0x20C0}, {0x2100, 0x214F}, {0x2190, 0x2BFF}, {0x2E00, 0x2E7F},
    {0x3001, 0x3004}, {0x3008, 0x3020}, {0x3030, 0x3030}, {0x30FB, 0x30FB},
    {0xFE10, 0xFE1F}, {0xFE30, 0xFE6B}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF20},
    {0xFF3B, 0xFF40}, {0xFF5B, 0xFF65}, {0xFFE0, 0xFFEE}, {0x1F000, 0x1FAFF},
};
static const struct range spaces[] = {
    {0x00, 0x20},     {0x7F, 0xA0},     {0xAD, 0xAD},       {0x1680, 0x1680},
    {0x2000, 0x200F}, {0x2028, 0x202F}, {0x205F, 0x206F},   {0x3000, 0x3000},
    {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFD}, {0xE0000, 0xE007F},
};
static const struct range marks[] = {
    {0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x64B, 0x65F},
    {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF}, {0x3099, 0x309C},
    {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
};
static const struct range cjk[] = {
    {0x3005, 0x3007}, {0x3041, 0x30FA},   {0x30FC, 0x30FF}, {0x3100, 0x312F},
    {0x31F0, 0x31FF}, {0x3400, 0x4DBF},   {0x4E00, 0x9FFF}, {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF}, {0x20000, 0x2FA1F},
};

/* Kana with a voicing mark are one or two above the plain one. */
static uint32_t fold_kana(uint32_t cp)
{
    uint32_t base = cp >= 0x30A1 ? 0x60 : 0, k = cp - base;

    if (k >= 0x304B && k <= 0x3062 && k % 2 == 0)
        return cp - 1; /* ka .. di */
    if (k >= 0x3064 && k <= 0x3069 && k % 2 == 1)
        return k == 0x3065 || k == 0x3067 || k == 0x3069 ? cp - 1 : cp;
    if (k >= 0x306F && k <= 0x307D)
        return cp - (k - 0x306F) % 3;    /* ha, ba, pa .. po */
    return k == 0x3094 ? cp - 0x4E : cp; /* vu */
}

static uint32_t fold_latin(uint32_t cp, bool *upper)
{
    char plain = latin[cp - LATIN_FIRST];
    bool even_is_big = (cp >= 0x100 && cp <= 0x137) || cp >= 0x14A;

    if (cp < 0xE0)
        *upper = cp != 0xDF;
    else if (cp >= 0x100 && cp != 0x138 && cp != 0x149 && cp < 0x178)
        *upper = even_is_big ? cp % 2 == 0 : cp % 2 == 1;
    else
        *upper = cp == 0x178 || cp == 0x179 || cp == 0x17B || cp == 0x17D;
    if (plain)
        return (uint32_t)plain;
    if (!*upper)
        return cp;
    return cp < 0xE0 ? cp + 0x20 : cp + 1;
}

static uint32_t fold_other(uint32_t cp, bool *upper)
{
    uint32_t to = cp;

    if (cp >= 0x391 && cp <= 0x3A9) /* Greek */
        to = cp + 0x20;
    else if (cp == 0x3C2) /* its final sigma */
        return 0x3C3;
    else if (cp >= 0x410 && cp <= 0x42F) /* Cyrillic */
        to = cp + 0x20;
    else if (cp >= 0x400 && cp <= 0x40F)
        to = cp + 0x50;
    else if (cp >= 0x460 && cp <= 0x52F && cp % 2 == 0)
        to = cp + 1;
    else if (cp >= 0x531 && cp <= 0x556) /* Armenian */
        to = cp + 0x30;
    *upper = to != cp;
    if (to == 0x439 || to == 0x451) /* short i, yo */
        return to == 0x439 ? 0x438 : 0x435;
    return to;
}

static void fold_char(uint32_t cp, struct mo_fold_char *out)
{
    out->cp = cp;
    out->what = MO_FOLD_LETTER;
    if (cp >= 0xFF01 && cp <= 0xFF5E) { /* full width */
        mo_fold_ascii(cp - 0xFEE0, out);
        return;
    }
    if (is_in(spaces, MO_COUNT(spaces), cp))
        out->what = MO_FOLD_SPACE;
    else if (is_in(marks, MO_COUNT(marks), cp))
        out->cp = 0;
    else if (is_in(puncts, MO_COUNT(puncts), cp))
        out->what = MO_FOLD_PUNCT;
    else if (is_in(cjk, MO_COUNT(cjk), cp))
        out->what = MO_FOLD_CJK;
    if (out->what == MO_FOLD_CJK)
        out->cp = cp < 0x3100 ? fold_kana(cp) : cp;
    else if (out->what == MO_FOLD_LETTER && out->cp)
        out->cp = cp >= LATIN_FIRST && cp <= LATIN_LAST
                      ? fold_latin(cp, &out->upper)
                      : fold_other(cp, &out->upper);
}

size_t mo_fold_wide(struct mo_span s, struct mo_fold_char *out)
{
    uint32_t cp = 0;
    int n = mo_utf8_get(s, &cp);

    *out = (struct mo_fold_char){.what = MO_FOLD_SPACE};
    if (n < 0)
        return 1;
    fold_char(cp, out);
    return (size_t)n;
}
