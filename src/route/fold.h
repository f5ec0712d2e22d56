/* fold.h - letters as the router compares them: small, without accents.
 *
 * One character in, one out. Simple case folding for Latin, Greek, Cyrillic
 * and Armenian, accents taken off Latin, kana without their voicing marks,
 * full-width forms made narrow. Combining marks fold to nothing. What is not
 * listed stays as it is: a router may miss a rare letter's capital, it must
 * never fail on one. No locale, no allocation. */
#ifndef MO_ROUTE_FOLD_H
#define MO_ROUTE_FOLD_H

#include "base/str.h"

enum mo_fold_class {
    MO_FOLD_SPACE,  /* white space, controls */
    MO_FOLD_PUNCT,  /* punctuation and symbols */
    MO_FOLD_LETTER, /* letters and marks of words with spaces between */
    MO_FOLD_DIGIT,
    MO_FOLD_CJK, /* writing without spaces: each character counts */
};

struct mo_fold_char {
    uint32_t cp; /* folded; 0: nothing is left of it */
    enum mo_fold_class what;
    bool upper; /* it was a capital */
};

/* The first character of s, which is none of ASCII. */
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

/* The first character of s (not empty); bytes used, at least 1. A byte that
 * is no UTF-8 counts as a space. Inline: every request folds all of its text,
 * and most is ASCII. */
static inline size_t mo_fold_next(struct mo_span s, struct mo_fold_char *out)
{
    if ((unsigned char)s.p[0] >= 0x80)
        return mo_fold_wide(s, out);
    mo_fold_ascii((unsigned char)s.p[0], out);
    return 1;
}

#endif
