/* verbs.h - classify the verbs of a text: create, read, change and so on.
 *
 * Requests and tool names use many verbs for a few kinds of action; two texts
 * of the same kind match a little better, two of different kinds a little
 * worse. A table of English words: a text without a known verb gets 0, which
 * has no effect. */
#ifndef MO_ROUTE_VERBS_H
#define MO_ROUTE_VERBS_H

#include "base/str.h"

enum {
    MO_VERB_CREATE = 1 << 0,
    MO_VERB_READ = 1 << 1,
    MO_VERB_UPDATE = 1 << 2,
    MO_VERB_DELETE = 1 << 3,
    MO_VERB_SEARCH = 1 << 4,
    MO_VERB_SEND = 1 << 5,
    MO_VERB_COUNT = 1 << 6,
    MO_VERB_CHANGE = 1 << 7, /* convert one form to another */
    MO_VERB_VISIT = 1 << 8,  /* go to an address */
    MO_VERB_RUN = 1 << 9,
};

/* The kinds of the verbs among the first words of a name, as bits. */
unsigned mo_verbs(struct mo_span text, unsigned words);

struct mo_verbs_asked {
    unsigned kinds;
    /* Kinds that contradict the request: to read against to change, to delete
     * against everything else. 0 if it asks for both. */
    unsigned against;
    bool question; /* it begins with a word of asking: "which", "who" */
};

/* The verbs of a request. The word behind a verb counts too: to open an issue
 * makes one, to open the issue reads it. address: the request contains one, so
 * to open or show is to visit. */
struct mo_verbs_asked mo_verbs_asked(struct mo_span text, unsigned words,
                                     bool address);

#endif
