/* stem.h - English word stems, from the system's libstemmer.
 *
 * libstemmer's sb_stemmer_new() selects a language by name and so links the
 * tables of all languages: 12,000 pointers to relocate and 75 pages of memory
 * at every start. This file calls the English stemmer directly. The library is
 * linked statically, so the tests check the declarations in stem.c against the
 * very library that is shipped.
 *
 * Ownership: a stem is borrowed until the next call. Limits: none; the caller
 * limits the length of the word. */
#ifndef MO_ROUTE_STEM_H
#define MO_ROUTE_STEM_H

#include "base/str.h"

struct mo_stem; /* one per thread */

struct mo_stem *mo_stem_new(void);    /* NULL: no memory */
void mo_stem_free(struct mo_stem *s); /* NULL is fine */

/* word: UTF-8, lower case. Returns the word itself when out of memory. */
struct mo_span mo_stem(struct mo_stem *s, struct mo_span word);

#endif
