/* Blocks are zeroed when reused, at most the limit is kept, none is lost. */
#include "base/pool.h"
#include "mo_test.h"

struct piece {
    char text[200];
};

static void dirty_pieces_come_back_clean(void **s)
{
    static const struct piece zero;
    struct mo_pool p = {.n = 0};

    (void)s;
    for (int i = 0; i < 3; i++) {
        struct piece *a = mo_pool_take(&p, sizeof(*a));
        struct piece *b = mo_pool_take(&p, sizeof(*b));

        assert_non_null(a);
        assert_non_null(b);
        assert_ptr_not_equal(a, b);
        assert_memory_equal(a, &zero, sizeof(zero));
        assert_memory_equal(b, &zero, sizeof(zero));
        memset(a, 'x', sizeof(*a));
        memset(b, 'y', sizeof(*b));
        mo_pool_give(&p, a);
        mo_pool_give(&p, b);
    }
    mo_pool_fini(&p);
    assert_null(p.first);
    assert_int_equal(p.n, 0);
}

static void a_pool_is_bounded(void **s)
{
    struct piece *v[2 * MO_POOL_MAX];
    struct mo_pool p = {.n = 0};

    (void)s;
    for (size_t i = 0; i < MO_COUNT(v); i++) {
        v[i] = mo_pool_take(&p, sizeof(*v[i]));
        assert_non_null(v[i]);
    }
    for (size_t i = 0; i < MO_COUNT(v); i++)
        mo_pool_give(&p, v[i]);
    mo_pool_give(&p, NULL);
    assert_true(p.n <= MO_POOL_MAX);
    mo_pool_fini(&p);
}

static void without_memory_there_is_none(void **s)
{
    struct mo_pool p = {.n = 0};

    (void)s;
    mo_mem_fail_at(1, true);
    assert_null(mo_pool_take(&p, sizeof(struct piece)));
    mo_mem_fail_at(0, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dirty_pieces_come_back_clean),
        cmocka_unit_test(a_pool_is_bounded),
        cmocka_unit_test(without_memory_there_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
