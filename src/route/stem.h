/* stem.h - English stems, by the system's libstemmer.
 *
 * Its own front, sb_stemmer_new(), knows every language by name, and so links
 * the tables of all of them: 12,000 pointers that the loader has to adjust,
 * and 75 pages of memory, at each start of a program that only ever asks for
 * one. Here is that one. The library is linked statically, so what is said of
 * it in stem.c is checked by the tests of the build that uses it.
 *
 * Ownership: a stem is borrowed until the next is asked for.
 * Limits: none of its own; whoever asks has cut the word. */
#ifndef MO_ROUTE_STEM_H
#define MO_ROUTE_STEM_H

#include "base/str.h"

struct mo_stem; /* one for each thread that uses it */

struct mo_stem *mo_stem_new(void);    /* NULL: no memory */
void mo_stem_free(struct mo_stem *s); /* NULL is fine */

/* word: UTF-8, small letters. The word itself when there is no memory. */
struct mo_span mo_stem(struct mo_stem *s, struct mo_span word);

#endif
