/* request.h - read a request before it is searched for.
 *
 * A request in plain words contains more than words to compare. Addresses and
 * file names are not words: they say that a tool for addresses or files is
 * meant. Names of people, places and firms are no words of a catalogue either.
 * The verb says whether something is to be made or read ("open a bug report",
 * "open the bug report"). Everyday words have counterparts in the language of
 * tools (synonyms.h).
 *
 * Pure: one pass over the text, no memory. */
#ifndef MO_ROUTE_REQUEST_H
#define MO_ROUTE_REQUEST_H

#include "route/route.h"
#include "route/verbs.h"

#define MO_REQUEST_MORE_MAX 512 /* bytes of related words */

struct mo_request {
    /* The text without addresses, file names and their like. */
    char text[MO_ROUTE_TEXT_MAX + 2];
    size_t n;
    /* Related words, separated by spaces. */
    char more[MO_REQUEST_MORE_MAX];
    size_t nmore;
    unsigned words;
    struct mo_verbs_asked verbs;
    bool address; /* it contains a URL or the name of a host */
    bool file;    /* it contains the name of a file */
};

void mo_request_read(struct mo_span request, struct mo_request *out);

/* True if the name of a parameter is one for addresses; for files. */
bool mo_request_is_address_param(struct mo_span name);
bool mo_request_is_file_param(struct mo_span name);

#endif
