/* verbs.h - classify the verbs of a text: create, read, change and so on.
 *
 * Requests and tool names use many verbs for a few kinds of action; two texts
 * of the same kind match a little better. A table of English words: a text
 * without a known verb gets 0, which has no effect. */
#ifndef MO_ROUTE_VERBS_H
#define MO_ROUTE_VERBS_H

#include "base/str.h"

/* The kinds of the verbs among the first words of a text, as bits. */
unsigned mo_verbs(struct mo_span text, unsigned words);

#endif
