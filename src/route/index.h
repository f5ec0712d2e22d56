/* index.h - which tools share words with a request (BM25F).
 *
 * A document is a tool, numbered from 0; its fields are its own name,
 * description and parameters, and its server's name and description. Each
 * term has its postings: the documents it is in, and how often in each field.
 *
 * Documents are added at the end, or cleared; mo_index_settle() puts both
 * into the postings at once, in one pass over all of them, renumbers, and
 * works out what each posting is worth: a request has only to add. Scores are
 * asked for only when settled. */
#ifndef MO_ROUTE_INDEX_H
#define MO_ROUTE_INDEX_H

#include "base/str.h"
#include "route/words.h"

#define MO_INDEX_DOCS_MAX 65536 /* their numbers have 16 bits */

enum mo_index_field {
    MO_FIELD_TOOL,
    MO_FIELD_ABOUT,
    MO_FIELD_PARAMS,
    MO_FIELD_SERVER,
    MO_FIELD_SERVER_ABOUT,
    MO_FIELDS,
};

struct mo_index_entry { /* a term of a document */
    uint32_t term, doc;
    uint8_t tf[MO_FIELDS];
};

struct mo_index {
    struct mo_words *words;
    /* terms: their bytes in one piece, number -> start, hash -> number */
    struct mo_buf text;
    uint32_t *starts;
    uint32_t *slots;
    uint32_t nterms, cap_terms, nslots;
    /* postings, by term */
    uint32_t *first; /* nterms at the last settling + 1 */
    uint32_t settled_terms;
    uint16_t *docs;
    uint8_t (*tfs)[MO_FIELDS];
    float *worth; /* what it adds to its document's score */
    size_t npostings;
    /* documents */
    uint16_t (*lens)[MO_FIELDS];
    bool *dead;
    uint32_t ndocs, cap_docs;
    /* what is not in the postings yet */
    struct mo_index_entry *fresh;
    size_t nfresh, cap_fresh, from_fresh;
    bool dirty; /* not settled */
};

int mo_index_init(struct mo_index *x); /* 0 or MO_ENOMEM */
void mo_index_fini(struct mo_index *x);

/* A new document; its number in *doc. Texts are added to it, field by field,
 * before the next one is begun. 0, MO_EBUSY (too many) or MO_ENOMEM;
 * mo_index_undo() then. */
int mo_index_begin(struct mo_index *x, uint32_t *doc);
int mo_index_text(struct mo_index *x, uint32_t doc, enum mo_index_field f,
                  struct mo_span text);
/* Take back every document from this number on (not settled yet). */
void mo_index_undo(struct mo_index *x, uint32_t from, size_t nfresh);
void mo_index_kill(struct mo_index *x, uint32_t doc);

/* Documents that were killed are gone, the others move up in their order. */
int mo_index_settle(struct mo_index *x);

/* scores[ndocs], zeroed by the caller, get their sums; the best one is
 * returned. known: how many different terms of the request are in the index,
 * asked: how many it has. */
float mo_index_score(struct mo_index *x, struct mo_span request, float *scores,
                     unsigned *known, unsigned *asked);

size_t mo_index_bytes(const struct mo_index *x);

#endif
