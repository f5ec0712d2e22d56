/* Memory: the failure hook, the arena's cap and alignment, scope-bound fds. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "mo_test.h"

static void zalloc_is_zero_and_empty_is_something(void **s)
{
    unsigned char *p = mo_zalloc(100);
    void *none = mo_alloc(0);

    (void)s;
    assert_non_null(p);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(p[i], 0);
    assert_non_null(none);
    mo_free(p);
    mo_free(none);
    mo_free(NULL);
}

static void strndup_takes_any_bytes(void **s)
{
    char *a = mo_strndup("a\0b", 3);
    char *b = mo_strndup(NULL, 0);

    (void)s;
    assert_memory_equal(a, "a\0b", 4);
    assert_string_equal(b, "");
    assert_null(mo_strndup("x", SIZE_MAX));
    mo_free(a);
    mo_free(b);
}

static void realloc_keeps_the_old_on_failure(void **s)
{
    char *p = mo_strndup("keep", 4);

    (void)s;
    mo_mem_fail_at(1, false);
    assert_null(mo_realloc(p, 1000));
    assert_string_equal(p, "keep");
    p = mo_realloc(p, 1000);
    assert_non_null(p);
    assert_string_equal(p, "keep");
    mo_mem_fail_at(0, false);
    mo_free(p);
}

/* Which of five allocations succeed. */
static void run_five(char out[6])
{
    for (int i = 0; i < 5; i++) {
        void *p = mo_alloc(1);

        out[i] = p ? '+' : '-';
        mo_free(p);
    }
    out[5] = '\0';
}

static void failures_come_where_armed(void **s)
{
    static const struct {
        uint64_t at;
        bool sticky;
        const char *want;
    } rows[] = {
        {0, false, "+++++"}, {1, false, "-++++"}, {3, false, "++-++"},
        {3, true, "++---"},  {9, true, "+++++"},
    };
    char got[6];

    (void)s;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_mem_fail_at(rows[i].at, rows[i].sticky);
        run_five(got);
        check_row(rows[i].want, strcmp(got, rows[i].want) == 0);
        assert_int_equal(mo_mem_count(), 5);
    }
    mo_mem_fail_at(0, false);
}

/* Blocks of all small sizes are aligned, disjoint and keep their bytes. */
static void arena_pieces_do_not_touch(void **s)
{
    unsigned char *pieces[200];
    struct mo_arena a;

    (void)s;
    mo_arena_init(&a, 1 << 20);
    for (size_t i = 0; i < MO_COUNT(pieces); i++) {
        pieces[i] = mo_arena_alloc(&a, i);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        if (i)
            memset(pieces[i], (int)i, i);
    }
    for (size_t i = 0; i < MO_COUNT(pieces); i++) {
        for (size_t j = 0; j < i; j++)
            assert_int_equal(pieces[i][j], i);
    }
    mo_arena_fini(&a);
    assert_int_equal(a.held, 0);
}

static void arena_keeps_its_cap(void **s)
{
    static const size_t sizes[] = {1, 16, 100, 1000, 5000};
    static const size_t caps[] = {0, 10, 1000, 1040, 4096, 100000};

    (void)s;
    for (size_t c = 0; c < MO_COUNT(caps); c++) {
        for (size_t i = 0; i < MO_COUNT(sizes); i++) {
            struct mo_arena a;
            size_t got = 0;

            mo_arena_init(&a, caps[c]);
            while (mo_arena_alloc(&a, sizes[i]))
                got += sizes[i];
            assert_true(a.held <= caps[c]);
            assert_true(got <= caps[c]);
            mo_arena_fini(&a);
        }
    }
}

static void arena_refuses_absurd_sizes(void **s)
{
    struct mo_arena a;

    (void)s;
    mo_arena_init(&a, SIZE_MAX);
    assert_null(mo_arena_alloc(&a, SIZE_MAX));
    assert_null(mo_arena_alloc(&a, SIZE_MAX / 2 + 1));
    assert_null(mo_arena_strndup(&a, "x", SIZE_MAX));
    mo_arena_fini(&a);
}

/* A full arena can be reused after a reset, without calling malloc. */
static void arena_reset_reuses(void **s)
{
    struct mo_arena a;
    size_t held;

    (void)s;
    mo_arena_init(&a, 1 << 20);
    mo_arena_reset(&a);
    for (int i = 0; i < 100; i++)
        assert_non_null(mo_arena_alloc(&a, 1000));
    mo_arena_reset(&a);
    held = a.held;
    mo_mem_fail_at(1, true);
    assert_non_null(mo_arena_alloc(&a, 1000));
    mo_mem_fail_at(0, false);
    assert_int_equal(a.held, held);
    mo_arena_fini(&a);
}

static void arena_helpers(void **s)
{
    struct mo_arena a;
    unsigned char *z;
    uint64_t *n;

    (void)s;
    mo_arena_init(&a, 4096);
    assert_string_equal(mo_arena_strndup(&a, "hello", 4), "hell");
    assert_string_equal(mo_arena_strndup(&a, NULL, 0), "");
    z = mo_arena_alloc(&a, 64);
    memset(z, 0xff, 64);
    mo_arena_reset(&a);
    z = mo_arena_zalloc(&a, 128);
    for (size_t i = 0; i < 128; i++)
        assert_int_equal(z[i], 0);
    n = mo_arena_new(&a, uint64_t);
    assert_int_equal(*n, 0);
    mo_arena_fini(&a);
}

static void arena_body(void *ctx)
{
    struct mo_arena a;

    (void)ctx;
    mo_arena_init(&a, 100000);
    for (size_t i = 1; i < 40; i++) {
        char *p = mo_arena_strndup(&a, "0123456789", 10);

        if (p)
            assert_string_equal(p, "0123456789");
        (void)mo_arena_alloc(&a, i * 100);
    }
    mo_arena_reset(&a);
    (void)mo_arena_alloc(&a, 1);
    mo_arena_fini(&a);
}

static void arena_survives_failures(void **s)
{
    (void)s;
    torture(arena_body, NULL);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void fds_close_themselves(void **s)
{
    int seen, taken;

    (void)s;
    {
        mo_autofd int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

        seen = fd;
        assert_true(is_open(seen));
        errno = EXDEV;
    }
    assert_int_equal(errno, EXDEV); /* closing keeps errno */
    assert_false(is_open(seen));
    {
        mo_autofd int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        mo_autofd int none = -1;

        (void)none;
        taken = mo_take_fd(&fd);
        assert_int_equal(fd, -1);
    }
    assert_true(is_open(taken));
    mo_close_fd(&taken);
    assert_int_equal(taken, -1);
}

/* The leak check at exit verifies the first block. */
static void pointers_free_themselves(void **s)
{
    char *kept;

    (void)s;
    {
        mo_autofree char *p = mo_strndup("x", 1);
        mo_autofree char *none = NULL;

        assert_non_null(p);
        assert_null(none);
    }
    {
        mo_autofree char *p = mo_strndup("kept", 4);

        kept = mo_take_ptr(&p);
        assert_null(p);
    }
    assert_string_equal(kept, "kept");
    mo_free(kept);
}

static void arenas_free_themselves(void **s)
{
    int64_t before = mo_mem_live();

    (void)s;
    {
        mo_autoarena struct mo_arena a = {.cap = 4096};
        mo_autoarena struct mo_arena unused = {.cap = 4096};

        assert_non_null(mo_arena_alloc(&a, 100));
        assert_null(mo_arena_alloc(&a, 8192)); /* the cap applies */
        assert_int_equal(unused.held, 0);
    }
    assert_int_equal(mo_mem_live(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zalloc_is_zero_and_empty_is_something),
        cmocka_unit_test(strndup_takes_any_bytes),
        cmocka_unit_test(realloc_keeps_the_old_on_failure),
        cmocka_unit_test(failures_come_where_armed),
        cmocka_unit_test(arena_pieces_do_not_touch),
        cmocka_unit_test(arena_keeps_its_cap),
        cmocka_unit_test(arena_refuses_absurd_sizes),
        cmocka_unit_test(arena_reset_reuses),
        cmocka_unit_test(arena_helpers),
        cmocka_unit_test(arena_survives_failures),
        cmocka_unit_test(fds_close_themselves),
        cmocka_unit_test(pointers_free_themselves),
        cmocka_unit_test(arenas_free_themselves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
