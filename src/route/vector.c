#include "route/vector.h"

#include <math.h>
#if defined(__aarch64__) && !defined(__clang__)
#    include <arm_neon.h>
#    include <sys/auxv.h>
#endif

#include "base/mem.h"
#include "codec/utf8.h"
#include "route/fold.h"

#define MAGIC      "MSV1"
#define HEAD       12
#define WORD_MAX   100 /* bytes; a longer one is no word */
#define PIECES_MAX 65534
#define SLOTS      ((size_t)1 << 17)

struct mo_vectors {
    struct mo_span pieces;
    const char *scales; /* float[rows], perhaps not aligned */
    const int8_t *rows;
    uint32_t n;
    uint32_t *starts; /* of each piece in `pieces`; n + 1 */
    uint16_t *slots;  /* hash -> row + 1; 0: free */
};

/* --- the table ----------------------------------------------------------- */

static uint32_t hash(struct mo_span s)
{
    uint32_t h = 2166136261u; /* FNV-1a: our own fixed list, no enemy */

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 16777619u;
    return h ^ (h >> 15);
}

static struct mo_span piece(const struct mo_vectors *v, uint32_t i)
{
    return mo_span(v->pieces.p + v->starts[i],
                   v->starts[i + 1] - v->starts[i] - 1);
}

/* The row of a piece, or -1. */
static int find(const struct mo_vectors *v, struct mo_span s)
{
    for (size_t i = hash(s) % SLOTS; v->slots[i]; i = (i + 1) % SLOTS)
        if (mo_span_eq(piece(v, v->slots[i] - 1u), s))
            return v->slots[i] - 1;
    return -1;
}

static void put(struct mo_vectors *v, uint32_t row)
{
    size_t i = hash(piece(v, row)) % SLOTS;

    while (v->slots[i])
        i = (i + 1) % SLOTS;
    v->slots[i] = (uint16_t)(row + 1);
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
    for (row = 0; row < v->n; row++)
        if (!is_special(piece(v, row)))
            put(v, row);
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

static void add_row(const struct mo_vectors *v, int row,
                    struct mo_vector_sum *sum)
{
    const int8_t *q = v->rows + (size_t)row * MO_VECTOR_DIM;
    float scale;

    memcpy(&scale, v->scales + (size_t)row * sizeof(scale), sizeof(scale));
    for (size_t i = 0; i < MO_VECTOR_DIM; i++)
        sum->v[i] += scale * (float)q[i];
    sum->n++;
}

/* The longest piece at the start of w; `rest`: it follows another one. */
static int longest(const struct mo_vectors *v, struct mo_span w, bool rest,
                   size_t *used)
{
    char text[WORD_MAX + 2] = "##";
    size_t skip = rest ? 2 : 0;

    memcpy(text + skip, w.p, w.n);
    for (size_t n = w.n; n > 0; n = mo_utf8_cut(w, n - 1)) {
        int row = find(v, mo_span(text, skip + n));

        if (row >= 0) {
            *used = n;
            return row;
        }
    }
    return -1;
}

/* A word that cannot be put together from pieces counts for nothing. */
static void add_word(const struct mo_vectors *v, struct mo_span w,
                     struct mo_vector_sum *sum)
{
    int rows[WORD_MAX];
    size_t n = 0, used = 0;
    bool rest = false;

    while (w.n) {
        int row = longest(v, w, rest, &used);

        if (row < 0)
            return;
        rows[n++] = row;
        rest = true;
        w = mo_span_skip(w, used);
    }
    for (size_t i = 0; i < n; i++)
        add_row(v, rows[i], sum);
}

struct word {
    char text[WORD_MAX + 4];
    size_t n;
    bool too_long;
};

static void end_word(const struct mo_vectors *v, struct word *w,
                     struct mo_vector_sum *sum)
{
    if (w->n && !w->too_long)
        add_word(v, mo_span(w->text, w->n), sum);
    w->n = 0;
    w->too_long = false;
}

void mo_vector_add(const struct mo_vectors *v, struct mo_span text,
                   struct mo_vector_sum *sum)
{
    struct word w = {.n = 0};
    struct mo_fold_char c;

    while (text.n) {
        bool alone;

        text = mo_span_skip(text, mo_fold_next(text, &c));
        alone = c.what == MO_FOLD_PUNCT || c.what == MO_FOLD_CJK;
        if (alone || c.what == MO_FOLD_SPACE)
            end_word(v, &w, sum);
        if (c.what == MO_FOLD_SPACE || c.cp == 0)
            continue;
        if (w.n + 4 > WORD_MAX)
            w.too_long = true;
        else
            w.n += mo_utf8_put(w.text + w.n, c.cp);
        if (alone)
            end_word(v, &w, sum);
    }
    end_word(v, &w, sum);
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

void mo_vector_pack(const float v[MO_VECTOR_DIM], struct mo_vector8 *out)
{
    float most = 0, up;

    for (size_t i = 0; i < MO_VECTOR_DIM; i++)
        most = fabsf(v[i]) > most ? fabsf(v[i]) : most;
    up = most > 0 ? 127.0f / most : 0;
    for (size_t i = 0; i < MO_VECTOR_DIM; i++)
        out->q[i] = (int8_t)lrintf(v[i] * up);
    out->scale = most / 127.0f;
}

static int32_t sum_plain(const int8_t *a, const int8_t *b)
{
    int32_t sum = 0;

    for (size_t i = 0; i < MO_VECTOR_DIM; i++)
        sum += (int32_t)a[i] * b[i];
    return sum;
}

/* Processors that multiply sixteen pairs at once take a fifth of the time.
 * clang 14 offers that only to whole files; its builds are not shipped. */
#if defined(__aarch64__) && !defined(__clang__)

static bool can(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}

__attribute__((target("arch=armv8.2-a+dotprod"))) static int32_t
sum_cpu(const int8_t *a, const int8_t *b)
{
    int32x4_t even = vdupq_n_s32(0), odd = even;

    for (size_t i = 0; i < MO_VECTOR_DIM; i += 32) {
        even = vdotq_s32(even, vld1q_s8(a + i), vld1q_s8(b + i));
        odd = vdotq_s32(odd, vld1q_s8(a + i + 16), vld1q_s8(b + i + 16));
    }
    return vaddvq_s32(vaddq_s32(even, odd));
}

#else

static bool can(void)
{
    return false;
}

static int32_t sum_cpu(const int8_t *a, const int8_t *b)
{
    return sum_plain(a, b);
}

#endif

float mo_vector_dot(const struct mo_vector8 *a, const struct mo_vector8 *b)
{
    return (float)sum_plain(a->q, b->q) * a->scale * b->scale;
}

void mo_vector_dots(const struct mo_vector8 *a, const struct mo_vector8 *first,
                    size_t step, size_t n, float *out)
{
    const char *at = (const char *)first;
    bool cpu = can();

    for (size_t i = 0; i < n; i++, at += step) {
        const struct mo_vector8 *b = (const void *)at;
        int32_t sum = cpu ? sum_cpu(a->q, b->q) : sum_plain(a->q, b->q);

        out[i] = (float)sum * a->scale * b->scale;
    }
}
