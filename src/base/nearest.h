/* nearest.h - find the known word a mistyped word is closest to.
 *
 * Used for "did you mean ...?" by the command line and the configuration. The
 * distance counts inserted, dropped, changed and swapped letters; case is
 * ignored. About a third of the letters may be wrong; beyond that there is no
 * guess, because a bad guess is worse than none. Words over MO_NEAREST_MAX
 * bytes get no guess. */
#ifndef MO_BASE_NEAREST_H
#define MO_BASE_NEAREST_H

#include "base/str.h"

#define MO_NEAREST_MAX 48

/* Letters to change to turn a into b; MO_NEAREST_MAX + 1 when one is too
 * long. */
unsigned mo_nearest_distance(struct mo_span a, struct mo_span b);

/* Search state: offer every candidate, then read best (NULL: no guess). */
struct mo_nearest {
    struct mo_span word;
    const char *best;
    unsigned distance;
};

void mo_nearest_init(struct mo_nearest *s, struct mo_span word);
void mo_nearest_offer(struct mo_nearest *s, const char *candidate);

#endif
