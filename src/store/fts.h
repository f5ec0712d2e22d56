/* fts.h - splits a text into words, as the full-text index of SQLite does.
 * Private to store/.
 *
 * It is SQLite's own tokenizer (unicode61, diacritics removed), so a search in
 * Redis finds the same words as one in SQLite. The library is loaded at the
 * first use; it opens no file. One thread at a time. */
#ifndef MO_STORE_FTS_H
#define MO_STORE_FTS_H

#include "base/str.h"

struct mo_fts;

/* MO_EUNAVAIL: the library is missing or has no full-text search. */
int mo_fts_new(struct mo_fts **out, struct mo_err *e);
void mo_fts_free(struct mo_fts *w); /* NULL is accepted */

/* Calls each() for every word in order: letters and digits, folded. A word is
 * borrowed until each() returns; false ends the splitting. MO_ENOMEM. */
int mo_fts_each(struct mo_fts *w, struct mo_span text,
                bool (*each)(void *ctx, struct mo_span word), void *ctx);

#endif
