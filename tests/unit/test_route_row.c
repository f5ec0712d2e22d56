/* route/row: the vector code gives bit-identical results to a scalar loop, for
 * every length and alignment. */
#include "mo_test.h"

#include <math.h>

#include "route/row.h"

#define LEN  75
#define FEW  12
#define TURN 40

/* Small integers now and then, so that some are equal; some below 0. */
static float some(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    if (*state % 5 == 0)
        return (float)(*state >> 28) - 4;
    return (float)(*state >> 8) / (float)(1 << 22) - 1;
}

static void fill(float *v, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++)
        v[i] = some(&seed);
}

static void test_most(void **state)
{
    float v[LEN + 3];

    (void)state;
    for (size_t n = 0; n <= LEN; n++) {
        float *row = v + n % 3, most = 0;

        fill(row, n, (uint32_t)n);
        for (size_t i = 0; i < n; i++)
            most = row[i] > most ? row[i] : most;
        assert_true(mo_row_most(row, n) == most);
    }
    for (size_t i = 0; i < LEN; i++)
        v[i] = -1;
    assert_true(mo_row_most(v, LEN) == 0);
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x < y) - (x > y);
}

static void test_best(void **state)
{
    float v[LEN], sorted[LEN], best[MO_ROW_BEST];

    (void)state;
    for (size_t n = 0; n <= LEN; n++) {
        fill(v, n, (uint32_t)n * 77);
        memcpy(sorted, v, sizeof(v));
        qsort(sorted, n, sizeof(*sorted), by_size);
        mo_row_best(v, n, best);
        for (size_t i = 0; i < MO_ROW_BEST; i++)
            assert_true(best[i] == (i < n ? sorted[i] : -INFINITY));
    }
}

static void test_join(void **state)
{
    struct mo_row_parts p = {.scale = 0.3f,
                             .v = {{5, 0.1f}, {8, -0.05f}, {1, 0.3f}}};
    float words[LEN], scores[LEN], w[LEN], s[LEN];
    uint32_t kinds[LEN];

    (void)state;
    for (size_t n = 0; n <= LEN; n++) {
        fill(words, LEN, (uint32_t)n + 1);
        fill(scores, LEN, (uint32_t)n + 2);
        for (size_t i = 0; i < LEN; i++)
            kinds[i] = (uint32_t)(i * 7 + n) % 16;
        memcpy(w, words, sizeof(w));
        memcpy(s, scores, sizeof(s));
        p.most = n % 4 ? 3.7f : 0;
        mo_row_join(&p, w, kinds, s, n);
        for (size_t i = 0; i < LEN; i++) {
            float word = p.most > 0 ? words[i] / p.most : words[i];
            float score = word + scores[i] / p.scale;

            for (size_t k = 0; k < MO_ROW_BONUSES; k++)
                if (kinds[i] & p.v[k].kinds)
                    score += p.v[k].bonus;
            assert_true(w[i] == (i < n ? word : words[i]));
            assert_true(s[i] == (i < n ? score : scores[i]));
        }
    }
}

/* Reference: scan all, take the best that is left. */
static size_t pick_plain(const float *v, size_t n, size_t max, float floor,
                         uint32_t *out)
{
    bool taken[LEN] = {false};
    size_t have = 0;

    while (have < max) {
        size_t best = n;

        for (size_t i = 0; i < n; i++)
            if (!taken[i] && v[i] >= floor && (best == n || v[i] > v[best]))
                best = i;
        if (best == n)
            break;
        taken[best] = true;
        out[have++] = (uint32_t)best;
    }
    return have;
}

static void test_pick(void **state)
{
    static const float floors[] = {-INFINITY, -0.5f, 0, 1, 3, 100};
    uint32_t quick[FEW], plain[FEW];
    float v[LEN];

    (void)state;
    for (uint32_t turn = 0; turn < TURN; turn++) {
        size_t n = turn * 31 % (LEN + 1), max = turn % (FEW + 1);
        float floor = floors[turn % MO_COUNT(floors)];
        size_t have;

        fill(v, n, turn);
        have = mo_row_pick(v, n, max, floor, quick);
        assert_int_equal(have, pick_plain(v, n, max, floor, plain));
        assert_memory_equal(quick, plain, have * sizeof(*quick));
    }
    for (size_t i = 0; i < LEN; i++)
        v[i] = -INFINITY; /* servers without tools */
    assert_int_equal(mo_row_pick(v, LEN, FEW, -INFINITY, quick), FEW);
    assert_int_equal(quick[FEW - 1], FEW - 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_most),
        cmocka_unit_test(test_best),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_pick),
    };

    return cmocka_run_group_tests_name("route_row", tests, NULL, NULL);
}
