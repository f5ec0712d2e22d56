#include "route/index.h"

#include <math.h>

#include "base/mem.h"
#include "route/row.h"

#define K1        2.0f
#define TERMS_MAX ((uint32_t)1 << 22)
#define TEXT_MAX  ((size_t)64 * 1024 * 1024)
#define QUERY_MAX 128 /* different terms of one request */

static const struct {
    float weight, b;
} fields[MO_FIELDS] = {
    [MO_FIELD_TOOL] = {1.5f, 0.8f},         [MO_FIELD_ABOUT] = {0.4f, 0.6f},
    [MO_FIELD_PARAMS] = {0.9f, 0.3f},       [MO_FIELD_SERVER] = {1.4f, 0.6f},
    [MO_FIELD_SERVER_ABOUT] = {1.0f, 0.5f},
};

int mo_index_init(struct mo_index *x)
{
    *x = (struct mo_index){.words = mo_words_new(), .dirty = true};
    mo_buf_init(&x->text, TEXT_MAX);
    return x->words ? 0 : MO_ENOMEM;
}

void mo_index_fini(struct mo_index *x)
{
    void *const arrays[] = {x->starts, x->slots, x->first, x->docs, x->tfs,
                            x->worth,  x->lens,  x->dead,  x->fresh};

    mo_words_free(x->words);
    mo_buf_fini(&x->text);
    for (size_t i = 0; i < MO_COUNT(arrays); i++)
        mo_free(arrays[i]);
}

int mo_index_resize(const struct mo_index_array *v, size_t n, size_t count)
{
    for (size_t i = 0; i < n; i++) {
        void *p = mo_realloc(*v[i].p, v[i].size * count);

        if (!p)
            return MO_ENOMEM;
        *v[i].p = p;
    }
    return 0;
}

/* Double an array of n elements if it is full. */
static int grow_array(struct mo_index_array v, size_t n, size_t *cap)
{
    size_t wider = *cap ? *cap * 2 : 64;

    if (n < *cap)
        return 0;
    if (mo_index_resize(&v, 1, wider) < 0)
        return MO_ENOMEM;
    *cap = wider;
    return 0;
}

/* --- terms --------------------------------------------------------------- */

static struct mo_span term_text(const struct mo_index *x, uint32_t t)
{
    size_t end = t + 1 < x->nterms ? x->starts[t + 1] : x->text.len;

    return mo_span(x->text.p + x->starts[t], end - x->starts[t]);
}

/* The slot of a term: where it is, or where it belongs. */
static uint32_t *slot_of(const struct mo_index *x, struct mo_span s)
{
    uint32_t i = mo_words_hash(s) & (x->nslots - 1);

    while (x->slots[i] && !mo_span_eq(term_text(x, x->slots[i] - 1), s))
        i = (i + 1) & (x->nslots - 1);
    return &x->slots[i];
}

static int grow_slots(struct mo_index *x)
{
    uint32_t n = x->nslots ? x->nslots * 2 : 1024;
    uint32_t *old = x->slots;

    x->slots = mo_zalloc(n * sizeof(*x->slots));
    if (!x->slots) {
        x->slots = old;
        return MO_ENOMEM;
    }
    x->nslots = n;
    mo_free(old);
    for (uint32_t t = 0; t < x->nterms; t++)
        *slot_of(x, term_text(x, t)) = t + 1;
    return 0;
}

static int add_term(struct mo_index *x, struct mo_span s, uint32_t *out)
{
    uint32_t *slot;
    int rc = 0;

    if (x->nterms * 4 >= x->nslots * 3)
        rc = grow_slots(x);
    if (rc < 0)
        return rc;
    slot = slot_of(x, s);
    if (*slot) {
        *out = *slot - 1;
        return 0;
    }
    if (x->nterms == TERMS_MAX ||
        grow_array(MO_INDEX_ARRAY(x->starts), x->nterms, &x->cap_terms) < 0)
        return MO_ENOMEM;
    x->starts[x->nterms] = (uint32_t)x->text.len;
    rc = mo_buf_span(&x->text, s);
    if (rc < 0)
        return rc;
    *slot = ++x->nterms;
    *out = x->nterms - 1;
    return 0;
}

static bool find_term(const struct mo_index *x, struct mo_span s, uint32_t *out)
{
    uint32_t *slot = x->nslots ? slot_of(x, s) : NULL;

    if (!slot || !*slot)
        return false;
    *out = *slot - 1;
    return true;
}

/* --- documents ----------------------------------------------------------- */

int mo_index_begin(struct mo_index *x, uint32_t *doc)
{
    const struct mo_index_array all[] = {MO_INDEX_ARRAY(x->lens),
                                         MO_INDEX_ARRAY(x->dead)};
    uint32_t cap = x->cap_docs ? x->cap_docs * 2 : 64;

    if (x->ndocs == MO_INDEX_DOCS_MAX)
        return MO_EBUSY;
    if (x->ndocs == x->cap_docs) {
        if (mo_index_resize(all, MO_COUNT(all), cap) < 0)
            return MO_ENOMEM;
        x->cap_docs = cap;
    }
    *doc = x->ndocs++;
    memset(x->lens[*doc], 0, sizeof(*x->lens));
    x->dead[*doc] = false;
    x->from_fresh = x->nfresh;
    x->dirty = true;
    return 0;
}

struct adding {
    struct mo_index *x;
    uint32_t doc;
    enum mo_index_field field;
    int rc;
};

static struct mo_index_entry *entry_for(struct mo_index *x, uint32_t term,
                                        uint32_t doc)
{
    for (size_t i = x->from_fresh; i < x->nfresh; i++)
        if (x->fresh[i].term == term)
            return &x->fresh[i];
    if (grow_array(MO_INDEX_ARRAY(x->fresh), x->nfresh, &x->cap_fresh) < 0)
        return NULL;
    x->fresh[x->nfresh] = (struct mo_index_entry){.term = term, .doc = doc};
    return &x->fresh[x->nfresh++];
}

static void on_doc_term(void *ctx, struct mo_span s, bool extra)
{
    struct adding *a = ctx;
    struct mo_index_entry *en = NULL;
    uint16_t *len = &a->x->lens[a->doc][a->field];
    uint32_t term = 0;

    if (a->rc == 0)
        a->rc = add_term(a->x, s, &term);
    if (a->rc < 0)
        return;
    en = entry_for(a->x, term, a->doc);
    if (!en) {
        a->rc = MO_ENOMEM;
        return;
    }
    if (en->tf[a->field] < UINT8_MAX)
        en->tf[a->field]++;
    if (!extra && *len < UINT16_MAX)
        (*len)++;
}

int mo_index_text(struct mo_index *x, uint32_t doc, enum mo_index_field f,
                  struct mo_span text)
{
    struct adding a = {x, doc, f, 0};

    mo_words_each(x->words, text, on_doc_term, &a);
    return a.rc;
}

void mo_index_undo(struct mo_index *x, uint32_t from, size_t nfresh)
{
    x->ndocs = from;
    x->nfresh = nfresh;
    if (mo_buf_err(&x->text)) /* terms stay, but not the one that failed */
        x->text.err = 0;
}

void mo_index_kill(struct mo_index *x, uint32_t doc)
{
    x->dead[doc] = true;
    x->dirty = true;
}

/* --- settle -------------------------------------------------------------- */

struct postings {
    uint32_t *first;
    uint16_t *docs;
    uint8_t (*tfs)[MO_FIELDS];
    float *worth;
};

static void free_postings(struct postings *p)
{
    mo_free(p->first);
    mo_free(p->docs);
    mo_free(p->tfs);
    mo_free(p->worth);
}

/* Set first[t + 1] to the number of postings of term t, then sum them up. */
static size_t count_postings(const struct mo_index *x, uint32_t *first)
{
    for (uint32_t t = 0; t < x->settled_terms; t++)
        for (uint32_t i = x->first[t]; i < x->first[t + 1]; i++)
            first[t + 1] += !x->dead[x->docs[i]];
    for (size_t i = 0; i < x->nfresh; i++)
        first[x->fresh[i].term + 1] += !x->dead[x->fresh[i].doc];
    for (uint32_t t = 0; t < x->nterms; t++)
        first[t + 1] += first[t];
    return first[x->nterms];
}

/* at[t]: where the next posting of t goes. */
static void fill_postings(const struct mo_index *x, const struct postings *p,
                          uint32_t *at, const uint32_t *moved)
{
    for (uint32_t t = 0; t < x->settled_terms; t++)
        for (uint32_t i = x->first[t]; i < x->first[t + 1]; i++)
            if (!x->dead[x->docs[i]]) {
                p->docs[at[t]] = (uint16_t)moved[x->docs[i]];
                memcpy(p->tfs[at[t]++], x->tfs[i], MO_FIELDS);
            }
    for (size_t i = 0; i < x->nfresh; i++) {
        const struct mo_index_entry *en = &x->fresh[i];

        if (x->dead[en->doc])
            continue;
        p->docs[at[en->term]] = (uint16_t)moved[en->doc];
        memcpy(p->tfs[at[en->term]++], en->tf, MO_FIELDS);
    }
}

/* Compact the documents; moved[old] = new. Returns how many are left. */
static uint32_t move_docs(struct mo_index *x, uint32_t *moved)
{
    uint32_t n = 0;

    for (uint32_t d = 0; d < x->ndocs; d++) {
        if (x->dead[d])
            continue;
        moved[d] = n;
        memmove(x->lens[n++], x->lens[d], sizeof(*x->lens));
    }
    return n;
}

/* norms[doc][field] = weight of one occurrence there. */
static void weigh_docs(const struct mo_index *x, float (*norms)[MO_FIELDS])
{
    double sum[MO_FIELDS] = {0};

    for (uint32_t d = 0; d < x->ndocs; d++)
        for (size_t f = 0; f < MO_FIELDS; f++)
            sum[f] += x->lens[d][f];
    for (uint32_t d = 0; d < x->ndocs; d++)
        for (size_t f = 0; f < MO_FIELDS; f++) {
            double mean = sum[f] / x->ndocs;
            double len = mean > 0 ? x->lens[d][f] / mean : 1;

            norms[d][f] = (float)(fields[f].weight /
                                  (1 - fields[f].b + fields[f].b * len));
        }
}

static void weigh_term(struct mo_index *x, uint32_t t,
                       float (*norms)[MO_FIELDS])
{
    uint32_t from = x->first[t], to = x->first[t + 1];
    float df = (float)(to - from);
    float idf = logf(1.0f + ((float)x->ndocs - df + 0.5f) / (df + 0.5f));

    for (uint32_t i = from; i < to; i++) {
        const float *norm = norms[x->docs[i]];
        float tf = 0;

        for (size_t f = 0; f < MO_FIELDS; f++)
            tf += (float)x->tfs[i][f] * norm[f];
        x->worth[i] = idf * tf / (K1 + tf);
    }
}

/* Install the new postings; no document is fresh or dead afterwards. */
static void install_postings(struct mo_index *x, const struct postings *p,
                             uint32_t ndocs)
{
    struct postings old = {x->first, x->docs, x->tfs, x->worth};

    free_postings(&old);
    x->first = p->first;
    x->docs = p->docs;
    x->tfs = p->tfs;
    x->worth = p->worth;
    x->settled_terms = x->nterms;
    x->npostings = p->first[x->nterms];
    x->ndocs = ndocs;
    if (x->cap_docs)
        memset(x->dead, 0, x->cap_docs * sizeof(*x->dead));
    mo_free(x->fresh);
    x->fresh = NULL;
    x->nfresh = x->cap_fresh = 0;
    x->dirty = false;
}

struct settling {
    struct postings p;
    uint32_t *moved, *at;
    float (*norms)[MO_FIELDS];
};

/* Allocate everything at once. MO_ENOMEM may leave some of it allocated. */
static int alloc_settling(const struct mo_index *x, struct settling *k)
{
    size_t docs = (size_t)x->ndocs + 1, terms = (size_t)x->nterms + 1, n;

    k->moved = mo_alloc(docs * sizeof(*k->moved));
    k->norms = mo_alloc(docs * sizeof(*k->norms));
    k->at = mo_alloc(terms * sizeof(*k->at));
    k->p.first = mo_zalloc(terms * sizeof(*k->p.first));
    if (!k->moved || !k->norms || !k->at || !k->p.first)
        return MO_ENOMEM;
    n = count_postings(x, k->p.first) + 1; /* never 0 bytes */
    k->p.docs = mo_alloc(n * sizeof(*k->p.docs));
    k->p.tfs = mo_alloc(n * sizeof(*k->p.tfs));
    k->p.worth = mo_alloc(n * sizeof(*k->p.worth));
    return k->p.docs && k->p.tfs && k->p.worth ? 0 : MO_ENOMEM;
}

static void settle_index(struct mo_index *x, struct settling *k)
{
    uint32_t ndocs;

    memcpy(k->at, k->p.first, ((size_t)x->nterms + 1) * sizeof(*k->at));
    ndocs = move_docs(x, k->moved);
    fill_postings(x, &k->p, k->at, k->moved);
    install_postings(x, &k->p, ndocs);
    weigh_docs(x, k->norms);
    for (uint32_t t = 0; t < x->nterms; t++)
        weigh_term(x, t, k->norms);
}

int mo_index_settle(struct mo_index *x)
{
    struct settling k = {.moved = NULL};
    int rc;

    if (!x->dirty)
        return 0;
    rc = alloc_settling(x, &k);
    if (rc == 0)
        settle_index(x, &k);
    else
        free_postings(&k.p);
    mo_free(k.moved);
    mo_free(k.norms);
    mo_free(k.at);
    return rc;
}

/* --- search -------------------------------------------------------------- */

struct asking {
    const struct mo_index *x;
    uint32_t terms[QUERY_MAX];
    unsigned n, asked;
};

static void on_query_term(void *ctx, struct mo_span s, bool extra)
{
    struct asking *q = ctx;
    uint32_t term;

    if (!extra)
        q->asked++;
    if (q->n == QUERY_MAX || !find_term(q->x, s, &term) ||
        term >= q->x->settled_terms ||
        q->x->first[term] == q->x->first[term + 1])
        return;
    for (unsigned i = 0; i < q->n; i++)
        if (q->terms[i] == term)
            return;
    q->terms[q->n++] = term;
}

static void score_term(const struct mo_index *x, uint32_t t, float *scores)
{
    for (uint32_t i = x->first[t]; i < x->first[t + 1]; i++)
        scores[x->docs[i]] += x->worth[i];
}

float mo_index_score(struct mo_index *x, struct mo_span request, float *scores,
                     unsigned *known, unsigned *asked)
{
    struct asking q = {.x = x};

    mo_words_each(x->words, request, on_query_term, &q);
    for (unsigned i = 0; i < q.n; i++)
        score_term(x, q.terms[i], scores);
    *known = q.n;
    *asked = q.asked;
    return mo_row_most(scores, x->ndocs);
}

float mo_index_score_more(struct mo_index *x, struct mo_span words,
                          float weight, float *scores)
{
    struct asking q = {.x = x};

    mo_words_each(x->words, words, on_query_term, &q);
    for (unsigned k = 0; k < q.n; k++)
        for (uint32_t i = x->first[q.terms[k]]; i < x->first[q.terms[k] + 1];
             i++)
            scores[x->docs[i]] += weight * x->worth[i];
    return mo_row_most(scores, x->ndocs);
}

size_t mo_index_bytes(const struct mo_index *x)
{
    return x->text.cap + x->cap_terms * sizeof(*x->starts) +
           x->nslots * sizeof(*x->slots) +
           ((size_t)x->settled_terms + 1) * sizeof(*x->first) +
           x->npostings * (sizeof(*x->docs) + MO_FIELDS + sizeof(*x->worth)) +
           x->cap_docs * (sizeof(*x->lens) + sizeof(*x->dead)) +
           x->cap_fresh * sizeof(*x->fresh);
}
