/* synonyms.h - words of tool catalogues for everyday words.
 *
 * People say flat, bug, picture or remember; catalogues say listing, issue,
 * image or memory. The table has general pairs only: no names of servers and
 * no whole requests. */
#ifndef MO_ROUTE_SYNONYMS_H
#define MO_ROUTE_SYNONYMS_H

#include "base/str.h"

#define MO_SYNONYM_WORDS 3 /* words of the longest phrase in the table */

/* The related words of a phrase of lower-case words joined by single spaces;
 * NULL: none are known. With '=' in front the first of them stands for the
 * phrase, whose words mean something else by themselves. */
const char *mo_synonyms(struct mo_span phrase);

#endif
