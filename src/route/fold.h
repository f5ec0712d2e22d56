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

/* The first character of s (not empty); bytes used, at least 1. A byte that
 * is no UTF-8 counts as a space. */
size_t mo_fold_next(struct mo_span s, struct mo_fold_char *out);

#endif
