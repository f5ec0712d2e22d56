/* words.h - split a text into search terms.
 *
 * The text is folded (fold.h), split at everything that is not a letter or
 * digit and inside camelCase, and stemmed as English. Words that every request
 * contains are left out. A camelCase word also yields the whole word (GitHub:
 * git, hub, github). Scripts without spaces yield every pair of adjacent
 * characters.
 *
 * A term is at most MO_WORDS_TERM_MAX bytes; longer ones are truncated. */
#ifndef MO_ROUTE_WORDS_H
#define MO_ROUTE_WORDS_H

#include "base/str.h"

#define MO_WORDS_TERM_MAX 64

struct mo_words; /* stemmer and caches; one per thread */

struct mo_words *mo_words_new(void); /* NULL: no memory */
void mo_words_free(struct mo_words *w);

/* extra: a whole word whose parts were reported before it. */
typedef void mo_words_fn(void *ctx, struct mo_span term, bool extra);

/* w NULL: the same split, without stemming and without leaving out words. */
void mo_words_each(struct mo_words *w, struct mo_span text, mo_words_fn *on,
                   void *ctx);
/* The plain words joined by spaces: the vector of a name is computed from
 * them. */
void mo_words_split(struct mo_span name, struct mo_buf *out);

/* FNV-1a. */
uint32_t mo_words_hash(struct mo_span s);

#endif
