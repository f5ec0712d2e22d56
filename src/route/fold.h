/* fold.h - fold characters for comparison: lower case, no accents.
 *
 * One character in, one out. Simple case folding for Latin, Greek, Cyrillic and
 * Armenian; Latin letters lose their accents, kana their voicing marks,
 * full-width forms become narrow. Combining marks fold to nothing. Characters
 * not listed stay unchanged: missing the capital of a rare letter is harmless.
 * No locale, no allocation. */
#ifndef MO_ROUTE_FOLD_H
#define MO_ROUTE_FOLD_H

#include "base/str.h"

enum mo_fold_class {
    MO_FOLD_SPACE,  /* white space, control characters */
    MO_FOLD_PUNCT,  /* punctuation and symbols */
    MO_FOLD_LETTER, /* letters and marks of scripts with spaces between words */
    MO_FOLD_DIGIT,
    MO_FOLD_CJK, /* scripts without spaces: each character counts */
};

struct mo_fold_char {
    uint32_t cp; /* folded; 0: nothing is left */
    enum mo_fold_class what;
    bool upper; /* it was a capital letter */
};

/* Fold the first character of s, which must not be ASCII. */
size_t mo_fold_wide(struct mo_span s, struct mo_fold_char *out);

static inline void mo_fold_ascii(uint32_t cp, struct mo_fold_char *out)
{
    out->upper = cp >= 'A' && cp <= 'Z';
    out->cp = out->upper ? cp + 0x20 : cp;
    if (out->cp >= 'a' && out->cp <= 'z')
        out->what = MO_FOLD_LETTER;
    else if (cp >= '0' && cp <= '9')
        out->what = MO_FOLD_DIGIT;
    else
        out->what = cp <= ' ' || cp == 0x7F ? MO_FOLD_SPACE : MO_FOLD_PUNCT;
}

/* Fold the first character of s (not empty). Returns the bytes consumed, at
 * least 1. A byte that is not UTF-8 counts as a space. Inline, because every
 * request folds all of its text, most of it ASCII. */
static inline size_t mo_fold_next(struct mo_span s, struct mo_fold_char *out)
{
    if ((unsigned char)s.p[0] >= 0x80)
        return mo_fold_wide(s, out);
    mo_fold_ascii((unsigned char)s.p[0], out);
    return 1;
}

#endif
