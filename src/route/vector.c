#include "route/vector.h"

#include <math.h>

#include "base/mem.h"
#include "codec/text/utf8.h"
#include "route/fold.h"

#define MAGIC      "MSV1"
#define HEAD       12
#define WORD_MAX   100            /* bytes; a longer one is ignored */
#define WAITING    (2 * WORD_MAX) /* rows; a word has at most one per byte */
#define PART       16
#define PIECES_MAX 65534
#define MARK_MAX   2 /* bytes of the mark before a non-initial piece */
#define SLOTS      ((size_t)1 << 17)

struct mo_vectors {
    struct mo_span pieces;
    const char *scales; /* float[rows], may be unaligned */
    const int8_t *rows;
    uint32_t n;
    size_t longest;   /* bytes of the longest piece, mark included */
    uint32_t *starts; /* of each piece in `pieces`; n + 1 */
    uint16_t *slots;  /* hash -> row + 1; 0: free */
};

/* --- the table ----------------------------------------------------------- */

/* FNV-1a: the list is fixed and ours. The hash can be undone byte by byte, so
 * all prefixes of a word cost one pass over it. */
static uint32_t hash_more(uint32_t h, char c)
{
    return (h ^ (unsigned char)c) * 16777619u;
}

static uint32_t hash_less(uint32_t h, char last)
{
    return (h * 899433627u) ^ (unsigned char)last;
}

static uint32_t hash_on(uint32_t h, struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++)
        h = hash_more(h, s.p[i]);
    return h;
}

static uint32_t hash_text(struct mo_span s)
{
    return hash_on(2166136261u, s);
}

static size_t piece_slot(uint32_t h)
{
    return (h ^ (h >> 15)) % SLOTS;
}

static struct mo_span piece_text(const struct mo_vectors *v, uint32_t i)
{
    return mo_span(v->pieces.p + v->starts[i],
                   v->starts[i + 1] - v->starts[i] - 1);
}

/* The row of the piece mark + s with hash h, or -1. */
static int find_piece(const struct mo_vectors *v, struct mo_span mark,
                      struct mo_span s, uint32_t h)
{
    for (size_t i = piece_slot(h); v->slots[i]; i = (i + 1) % SLOTS) {
        struct mo_span p = piece_text(v, v->slots[i] - 1u);

        if (p.n == mark.n + s.n && mo_span_starts(p, mark) &&
            memcmp(p.p + mark.n, s.p, s.n) == 0)
            return v->slots[i] - 1;
    }
    return -1;
}

static void put_piece(struct mo_vectors *v, uint32_t row)
{
    size_t i = piece_slot(hash_text(piece_text(v, row)));

    while (v->slots[i])
        i = (i + 1) % SLOTS;
    v->slots[i] = (uint16_t)(row + 1);
    if (piece_text(v, row).n > v->longest)
        v->longest = piece_text(v, row).n;
}

/* "[CLS]" and the like never come from a text. */
static bool is_special(struct mo_span s)
{
    return s.n > 2 && s.p[0] == '[' && s.p[s.n - 1] == ']';
}

static int read_pieces(struct mo_vectors *v)
{
    uint32_t at = 0, row = 0;

    v->starts = mo_alloc((v->n + 1) * sizeof(*v->starts));
    v->slots = mo_zalloc(SLOTS * sizeof(*v->slots));
    if (!v->starts || !v->slots)
        return MO_ENOMEM;
    for (; row < v->n && at < v->pieces.n; row++) {
        ptrdiff_t n = mo_span_find(mo_span_skip(v->pieces, at), '\n');

        if (n < 0)
            return MO_EPROTO;
        v->starts[row] = at;
        at += (uint32_t)n + 1;
    }
    if (row < v->n || at != v->pieces.n)
        return MO_EPROTO;
    v->starts[row] = at;
    v->longest = MARK_MAX;
    for (row = 0; row < v->n; row++)
        if (!is_special(piece_text(v, row)))
            put_piece(v, row);
    return 0;
}

static int read_table(struct mo_vectors *v, struct mo_span table)
{
    uint32_t dim;

    if (table.n < HEAD || memcmp(table.p, MAGIC, 4) != 0)
        return MO_EPROTO;
    memcpy(&v->n, table.p + 4, 4);
    memcpy(&dim, table.p + 8, 4);
    if (dim != MO_VECTOR_DIM || v->n == 0 || v->n > PIECES_MAX ||
        table.n != HEAD + (size_t)v->n * (sizeof(float) + MO_VECTOR_DIM))
        return MO_EPROTO;
    v->scales = table.p + HEAD;
    v->rows = (const int8_t *)(v->scales + (size_t)v->n * sizeof(float));
    return 0;
}

struct mo_vectors *mo_vectors_new(struct mo_span table, struct mo_span pieces,
                                  struct mo_err *e)
{
    struct mo_vectors *v = mo_new(struct mo_vectors);
    int rc = v ? 0 : MO_ENOMEM;

    if (rc == 0)
        rc = read_table(v, table);
    if (rc == 0) {
        v->pieces = pieces;
        rc = read_pieces(v);
    }
    if (rc == 0)
        return v;
    (void)mo_fail(e, rc, "vector table");
    mo_vectors_free(v);
    return NULL;
}

void mo_vectors_free(struct mo_vectors *v)
{
    if (!v)
        return;
    mo_free(v->starts);
    mo_free(v->slots);
    mo_free(v);
}

/* --- a text -------------------------------------------------------------- */

/* The longest piece at the start of w; `rest`: not the word's first piece. */
static int longest_piece(const struct mo_vectors *v, struct mo_span w,
                         bool rest, size_t *used)
{
    struct mo_span mark = rest ? MO_SPAN("##") : MO_SPAN("");
    size_t n = w.n + mark.n < v->longest ? w.n : v->longest - mark.n;
    uint32_t h = hash_on(hash_text(mark), mo_span_head(w, n));

    for (; n > 0; n--) {
        int row = -1;

        if (n == w.n || !mo_utf8_is_tail(w.p[n]))
            row = find_piece(v, mark, mo_span(w.p, n), h);
        if (row >= 0) {
            *used = n;
            return row;
        }
        h = hash_less(h, w.p[n - 1]);
    }
    return -1;
}

/* Rows waiting to be added, many at a time. */
struct waiting {
    int rows[WAITING];
    float scales[WAITING];
    size_t n;
};

/* Add the same part of every row, in order: the sums stay in registers. */
static void add_part(const struct mo_vectors *v, const struct waiting *a,
                     size_t from, float *sum)
{
    float part[PART];

    memcpy(part, sum + from, sizeof(part));
    for (size_t k = 0; k < a->n; k++) {
        const int8_t *q = v->rows + (size_t)a->rows[k] * MO_VECTOR_DIM + from;

        for (size_t i = 0; i < PART; i++)
            part[i] += a->scales[k] * (float)q[i];
    }
    memcpy(sum + from, part, sizeof(part));
}

static void add_waiting(const struct mo_vectors *v, struct waiting *a,
                        struct mo_vector_sum *sum)
{
    for (size_t i = 0; i < a->n; i++)
        memcpy(&a->scales[i], v->scales + (size_t)a->rows[i] * sizeof(float),
               sizeof(float));
    for (size_t from = 0; from < MO_VECTOR_DIM; from += PART)
        add_part(v, a, from, sum->v);
    sum->n += (unsigned)a->n;
    a->n = 0;
}

/* A word that cannot be composed of pieces is ignored. */
static void add_word(const struct mo_vectors *v, struct mo_span w,
                     struct waiting *a, struct mo_vector_sum *sum)
{
    size_t before = 0, used = 0;
    bool rest = false;

    if (a->n + w.n > WAITING)
        add_waiting(v, a, sum);
    before = a->n;
    while (w.n) {
        int row = longest_piece(v, w, rest, &used);

        if (row < 0) {
            a->n = before;
            return;
        }
        a->rows[a->n++] = row;
        rest = true;
        w = mo_span_skip(w, used);
    }
}

struct word {
    char text[WORD_MAX + 4];
    size_t n;
    bool too_long;
};

static void end_word(const struct mo_vectors *v, struct word *w,
                     struct waiting *a, struct mo_vector_sum *sum)
{
    if (w->n && !w->too_long)
        add_word(v, mo_span(w->text, w->n), a, sum);
    w->n = 0;
    w->too_long = false;
}

void mo_vector_add(const struct mo_vectors *v, struct mo_span text,
                   struct mo_vector_sum *sum)
{
    struct waiting a = {.n = 0};
    struct word w = {.n = 0};
    struct mo_fold_char c;

    while (text.n) {
        bool alone;

        text = mo_span_skip(text, mo_fold_next(text, &c));
        alone = c.what == MO_FOLD_PUNCT || c.what == MO_FOLD_CJK;
        if (alone || c.what == MO_FOLD_SPACE)
            end_word(v, &w, &a, sum);
        if (c.what == MO_FOLD_SPACE || c.cp == 0)
            continue;
        if (w.n + 4 > WORD_MAX)
            w.too_long = true;
        else
            w.n += mo_utf8_put(w.text + w.n, c.cp);
        if (alone)
            end_word(v, &w, &a, sum);
    }
    end_word(v, &w, &a, sum);
    add_waiting(v, &a, sum);
}

/* --- arithmetic ---------------------------------------------------------- */

void mo_vector_norm(struct mo_vector_sum *sum)
{
    float sq = 0;

    for (size_t i = 0; i < MO_VECTOR_DIM; i++)
        sq += sum->v[i] * sum->v[i];
    if (sq > 0)
        sq = 1.0f / sqrtf(sq);
    for (size_t i = 0; i < MO_VECTOR_DIM; i++)
        sum->v[i] *= sq;
}
