/* words.h - a text as the terms it is searched by.
 *
 * Folded (fold.h), cut at everything that is no letter or digit and inside
 * camelCase, stemmed as English, without the words that every request has.
 * A word in camelCase also gives the whole of it (GitHub: git, hub, github).
 * Writing without spaces gives every pair of neighbouring characters.
 *
 * Terms are at most MO_WORDS_TERM_MAX bytes; what is longer is cut. */
#ifndef MO_ROUTE_WORDS_H
#define MO_ROUTE_WORDS_H

#include "base/str.h"

#define MO_WORDS_TERM_MAX 64

struct mo_words; /* the stemmer; one for each thread that uses it */

struct mo_words *mo_words_new(void); /* NULL: no memory */
void mo_words_free(struct mo_words *w);

/* extra: the whole of a word whose parts were given before it. */
typedef void mo_words_fn(void *ctx, struct mo_span term, bool extra);

void mo_words_each(struct mo_words *w, struct mo_span text, mo_words_fn *on,
                   void *ctx);

/* The same cut, but plain words: no stems, nothing left out. */
void mo_words_plain(struct mo_span text, mo_words_fn *on, void *ctx);
/* These with one space between: what vectors are made of when the text is a
 * name. */
void mo_words_split(struct mo_span name, struct mo_buf *out);

#endif
