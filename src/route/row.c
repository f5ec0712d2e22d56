#include "route/row.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define LANES 4
#define BLOCK ((size_t)16) /* skipped when nothing in it is good enough */

typedef float lanes __attribute__((vector_size(16), aligned(4), may_alias));
typedef int64_t halves __attribute__((vector_size(16)));
typedef int32_t masks __attribute__((vector_size(16), aligned(4), may_alias));

static lanes load_lanes(const float *v)
{
    return *(const lanes *)v;
}

static lanes fill_lanes(float x)
{
    return (lanes){x, x, x, x};
}

static lanes max_lanes(lanes a, lanes b)
{
    masks is = a > b;

    return (lanes)((is & (masks)a) | (~is & (masks)b));
}

/* --- maximum ------------------------------------------------------------- */

static float max_float(float a, float b)
{
    return a > b ? a : b;
}

float mo_row_most(const float *v, size_t n)
{
    lanes best = fill_lanes(0), other = best;
    float most;
    size_t i = 0;

    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        best = max_lanes(load_lanes(v + i), best);
        other = max_lanes(load_lanes(v + i + LANES), other);
    }
    best = max_lanes(other, best);
    most = max_float(max_float(best[0], best[1]), max_float(best[2], best[3]));
    for (; i < n; i++)
        most = max_float(v[i], most);
    return most;
}

/* An integer with the same order as v; applying it twice gives v back. */
static int32_t key_of(float v)
{
    int32_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return bits ^ ((bits >> 31) & INT32_MAX);
}

static float of_key(int32_t key)
{
    float v;

    key ^= (key >> 31) & INT32_MAX;
    memcpy(&v, &key, sizeof(v));
    return v;
}

static int32_t max_key(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t min_key(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Without branches, because the comparisons cannot be predicted; with integers
 * the compilers manage that. */
void mo_row_best(const float *v, size_t n, float best[MO_ROW_BEST])
{
    int32_t a = key_of(-INFINITY), b = a, c = a;

    for (size_t i = 0; i < n; i++) {
        int32_t first = key_of(v[i]);
        int32_t second = min_key(first, a), third = min_key(second, b);

        a = max_key(first, a);
        b = max_key(second, b);
        c = max_key(third, c);
    }
    best[0] = of_key(a);
    best[1] = of_key(b);
    best[2] = of_key(c);
}

/* --- join ---------------------------------------------------------------- */

static void join_one(const struct mo_row_parts *p, float most, float *word,
                     uint32_t kind, float *score)
{
    *word /= most;
    *score = *word + *score / p->scale;
    for (size_t i = 0; i < MO_ROW_BONUSES; i++)
        if (kind & p->v[i].kinds)
            *score += p->v[i].bonus;
}

static void join_four(const struct mo_row_parts *p, float most, float *words,
                      const uint32_t *kinds, float *scores)
{
    masks kind = *(const masks *)kinds;
    lanes word = load_lanes(words) / most;
    lanes score = word + load_lanes(scores) / p->scale;

    for (size_t i = 0; i < MO_ROW_BONUSES; i++) {
        masks has = (kind & (int32_t)p->v[i].kinds) != 0;

        score += (lanes)(has & (masks)fill_lanes(p->v[i].bonus));
    }
    *(lanes *)words = word;
    *(lanes *)scores = score;
}

void mo_row_join(const struct mo_row_parts *p, float *words,
                 const uint32_t *kinds, float *scores, size_t n)
{
    float most = p->most > 0 ? p->most : 1;
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        join_four(p, most, words + i, kinds + i, scores + i);
    for (; i < n; i++)
        join_one(p, most, words + i, kinds[i], scores + i);
}

/* --- pick ---------------------------------------------------------------- */

static bool is_any_from(const float *v, float least)
{
    masks a = (load_lanes(v) >= least) | (load_lanes(v + LANES) >= least);
    masks b = (load_lanes(v + 2 * LANES) >= least) |
              (load_lanes(v + 3 * LANES) >= least);
    halves is = (halves)(a | b);

    return (is[0] | is[1]) != 0;
}

/* Insert index i into the `have` best of v if it belongs there. Returns the new
 * count. */
static size_t insert_best(const float *v, size_t have, size_t max, uint32_t i,
                          uint32_t *out)
{
    size_t to = have;

    while (to > 0 && v[i] > v[out[to - 1]])
        to--;
    if (to == max)
        return have;
    if (have < max)
        have++;
    for (size_t k = have - 1; k > to; k--)
        out[k] = out[k - 1];
    out[to] = i;
    return have;
}

size_t mo_row_pick(const float *v, size_t n, size_t max, float floor,
                   uint32_t *out)
{
    size_t have = 0, i = 0;

    if (max == 0)
        return 0;
    while (i < n) {
        size_t end = i + BLOCK < n ? i + BLOCK : n;
        float least = have == max ? v[out[max - 1]] : floor;

        if (end - i == BLOCK && !is_any_from(v + i, least)) {
            i = end;
            continue;
        }
        for (; i < end; i++)
            if (v[i] >= floor)
                have = insert_best(v, have, max, (uint32_t)i, out);
    }
    return have;
}
