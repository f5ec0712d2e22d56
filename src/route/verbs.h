/* verbs.h - what kind of doing a text speaks of: making, reading, changing ...
 *
 * Requests and names of tools use many verbs for few kinds of doing; two texts
 * of the same kind belong together a little more. A table of words, English
 * only: who finds nothing gets 0 and loses nothing. */
#ifndef MO_ROUTE_VERBS_H
#define MO_ROUTE_VERBS_H

#include "base/str.h"

/* The kinds of the verbs in the first words of a text, as bits. */
unsigned mo_verbs(struct mo_span text, unsigned words);

#endif
