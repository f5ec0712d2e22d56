/* nearest.h - "did you mean ...?"
 *
 * One place decides which known word a mistyped one was meant to be, so that
 * the command line and the configuration guess alike. Distance counts
 * inserted, dropped, changed and swapped letters; case is ignored. A guess
 * that is too far away is worse than none: about a third of the letters may
 * be wrong, no more. Words over MO_NEAREST_MAX bytes get no guess. */
#ifndef MO_BASE_NEAREST_H
#define MO_BASE_NEAREST_H

#include "base/str.h"

#define MO_NEAREST_MAX 48

/* Letters to change to get from a to b; MO_NEAREST_MAX + 1 when too long. */
unsigned mo_nearest_distance(struct mo_span a, struct mo_span b);

/* A running search: offer all candidates, then read best (NULL: none). */
struct mo_nearest {
    struct mo_span word;
    const char *best;
    unsigned distance;
};

void mo_nearest_init(struct mo_nearest *s, struct mo_span word);
void mo_nearest_offer(struct mo_nearest *s, const char *candidate);

#endif
