/* index.h - text index over tools: scores by shared words (BM25F).
 *
 * A document is a tool, numbered from 0. Its fields are its own name,
 * description and parameters, and its server's name and description. Each term
 * has a list of postings: the documents that contain it and how often in each
 * field.
 *
 * Documents are added at the end or removed. mo_index_settle() applies all
 * changes to the postings in one pass, renumbers the documents and computes the
 * weight of each posting, so that a request only adds. Scores are valid only
 * when the index is settled. */
#ifndef MO_ROUTE_INDEX_H
#define MO_ROUTE_INDEX_H

#include "base/str.h"
#include "route/words.h"

#define MO_INDEX_DOCS_MAX 65536 /* document numbers have 16 bits */

enum mo_index_field {
    MO_FIELD_TOOL,
    MO_FIELD_ABOUT,
    MO_FIELD_PARAMS,
    MO_FIELD_SERVER,
    MO_FIELD_SERVER_ABOUT,
    MO_FIELDS,
};

struct mo_index_entry { /* a term in a document */
    uint32_t term, doc;
    uint8_t tf[MO_FIELDS];
};

struct mo_index {
    struct mo_words *words;
    /* terms: all bytes in one buffer, number -> start, hash -> number */
    struct mo_buf text;
    uint32_t *starts;
    uint32_t *slots;
    uint32_t nterms, nslots;
    size_t cap_terms;
    /* postings, by term */
    uint32_t *first; /* nterms at the last settle + 1 */
    uint32_t settled_terms;
    uint16_t *docs;
    uint8_t (*tfs)[MO_FIELDS];
    float *worth; /* added to its document's score */
    size_t npostings;
    /* documents */
    uint16_t (*lens)[MO_FIELDS];
    bool *dead;
    uint32_t ndocs, cap_docs;
    /* changes not yet in the postings */
    struct mo_index_entry *fresh;
    size_t nfresh, cap_fresh, from_fresh;
    bool dirty; /* not settled */
};

/* An array to resize: MO_INDEX_ARRAY(x->docs). */
struct mo_index_array {
    void **p;
    size_t size; /* of an element */
};
#define MO_INDEX_ARRAY(a) ((struct mo_index_array){(void **)&(a), sizeof(*(a))})

/* Give each of n arrays room for `count` elements. MO_ENOMEM: some of them may
 * have grown. */
int mo_index_resize(const struct mo_index_array *v, size_t n, size_t count);

int mo_index_init(struct mo_index *x); /* 0 or MO_ENOMEM */
void mo_index_fini(struct mo_index *x);

/* Start a new document; its number is stored in *doc. Add its texts field by
 * field before the next begin. 0, MO_EBUSY (too many) or MO_ENOMEM; call
 * mo_index_undo() after an error. */
int mo_index_begin(struct mo_index *x, uint32_t *doc);
int mo_index_text(struct mo_index *x, uint32_t doc, enum mo_index_field f,
                  struct mo_span text);
/* Remove every document from this number on; they must not be settled yet. */
void mo_index_undo(struct mo_index *x, uint32_t from, size_t nfresh);
void mo_index_kill(struct mo_index *x, uint32_t doc);

/* Apply all changes. Removed documents disappear; the others keep their
 * order. */
int mo_index_settle(struct mo_index *x);

/* Add to scores[ndocs], which the caller has zeroed. Returns the best score.
 * known: number of different terms of the request found in the index; asked:
 * number of different terms of the request. */
float mo_index_score(struct mo_index *x, struct mo_span request, float *scores,
                     unsigned *known, unsigned *asked);
/* Add `weight` of what these words would add; more words of the request.
 * Returns the best score. */
float mo_index_score_more(struct mo_index *x, struct mo_span words,
                          float weight, float *scores);

size_t mo_index_bytes(const struct mo_index *x);

#endif
