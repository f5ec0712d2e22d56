/* The hash map, compared with a plain array. */
#include "base/map.h"
#include "mo_test.h"

/* The reference vectors of SipHash's authors: key 00..0f, text 00 01 02 .. */
static void siphash_is_siphash(void **s)
{
    static const struct {
        size_t n;
        uint64_t want;
    } rows[] = {
        {0, 0x726fdb47dd0e0e31u},  {1, 0x74f839c593dc67fdu},
        {7, 0xab0200f58b01d137u},  {8, 0x93f5f5799a932462u},
        {15, 0xa129ca6149be45e5u}, {63, 0x958a324ceb064572u},
    };
    char text[64];

    (void)s;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)i;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        assert_true(mo_siphash(0x0706050403020100u, 0x0f0e0d0c0b0a0908u,
                               mo_span(text, rows[i].n)) == rows[i].want);
}

static void empty_maps_are_usable(void **s)
{
    struct mo_map m;
    int seen = 0;

    (void)s;
    mo_map_init(&m, 10);
    assert_null(mo_map_get(&m, MO_SPAN("x")));
    assert_null(mo_map_del(&m, MO_SPAN("x")));
    mo_map_each (en, &m) {
        seen++;
    }
    assert_int_equal(seen, 0);
    mo_map_clear(&m);
    mo_map_fini(&m);
    mo_map_fini(&m);
}

static void put_get_replace_delete(void **s)
{
    struct mo_map m;
    int a, b;
    void *old = &m;

    (void)s;
    mo_map_init(&m, 10);
    assert_int_equal(mo_map_put(&m, MO_SPAN("k"), &a, &old), 0);
    assert_null(old);
    assert_ptr_equal(mo_map_get(&m, MO_SPAN("k")), &a);
    assert_int_equal(mo_map_put(&m, MO_SPAN("k"), &b, &old), 0);
    assert_ptr_equal(old, &a);
    assert_int_equal(m.len, 1);
    assert_int_equal(mo_map_put(&m, MO_SPAN(""), &a, NULL), 0);
    assert_int_equal(mo_map_put(&m, MO_SPAN("k\0l"), &a, NULL), 0);
    assert_ptr_equal(mo_map_get(&m, MO_SPAN("k")), &b);
    assert_ptr_equal(mo_map_get(&m, mo_span(NULL, 0)), &a);
    assert_ptr_equal(mo_map_del(&m, MO_SPAN("k")), &b);
    assert_null(mo_map_get(&m, MO_SPAN("k")));
    assert_ptr_equal(mo_map_get(&m, MO_SPAN("k\0l")), &a);
    assert_int_equal(m.len, 2);
    mo_map_fini(&m);
}

static void full_maps_say_so(void **s)
{
    struct mo_map m;
    void *old;
    int v;

    (void)s;
    mo_map_init(&m, 2);
    assert_int_equal(mo_map_put(&m, MO_SPAN("a"), &v, NULL), 0);
    assert_int_equal(mo_map_put(&m, MO_SPAN("b"), &v, NULL), 0);
    assert_int_equal(mo_map_put(&m, MO_SPAN("c"), &v, &old), MO_EBUSY);
    assert_null(old);
    assert_int_equal(mo_map_put(&m, MO_SPAN("b"), &m, NULL), 0);
    assert_null(mo_map_get(&m, MO_SPAN("c")));
    assert_non_null(mo_map_del(&m, MO_SPAN("a")));
    assert_int_equal(mo_map_put(&m, MO_SPAN("c"), &v, NULL), 0);
    mo_map_clear(&m);
    assert_int_equal(m.len, 0);
    assert_null(mo_map_get(&m, MO_SPAN("c")));
    assert_int_equal(mo_map_put(&m, MO_SPAN("c"), &v, NULL), 0);
    mo_map_fini(&m);
}

#define KEYS 300

static struct mo_span key_of(size_t i, char tmp[16])
{
    return mo_span(tmp, (size_t)snprintf(tmp, 16, "key%zu", i));
}

/* Every key is as in the array, and iteration visits each exactly once. */
static void compare(const struct mo_map *m, char *const model[KEYS])
{
    size_t seen = 0, want = 0;
    char tmp[16];

    for (size_t i = 0; i < KEYS; i++) {
        assert_ptr_equal(mo_map_get(m, key_of(i, tmp)), model[i]);
        want += model[i] != NULL;
    }
    mo_map_each (en, m) {
        assert_ptr_equal(mo_map_get(m, mo_map_key(en)), en->value);
        seen++;
    }
    assert_int_equal(m->len, want);
    assert_int_equal(seen, want);
}

/* A fixed sequence of puts and deletes. The map is kept nearly full, so that
 * deletion closes holes in chains of every shape. */
static void behaves_like_an_array(void **s)
{
    static char values[KEYS];
    char *model[KEYS] = {NULL}, tmp[16];
    uint32_t x = 12345;
    struct mo_map m;

    (void)s;
    mo_map_init(&m, KEYS);
    for (int step = 0; step < 6000; step++) {
        size_t i;

        x = x * 1664525u + 1013904223u;
        i = (x >> 8) % KEYS;
        if (x >> 30 == 0) {
            assert_ptr_equal(mo_map_del(&m, key_of(i, tmp)), model[i]);
            model[i] = NULL;
        } else {
            assert_int_equal(mo_map_put(&m, key_of(i, tmp), &values[i], NULL),
                             0);
            model[i] = &values[i];
        }
        if (step % 50 == 0)
            compare(&m, model);
    }
    for (size_t i = 0; i < KEYS; i++) {
        assert_ptr_equal(mo_map_del(&m, key_of(i, tmp)), model[i]);
        model[i] = NULL;
    }
    compare(&m, model);
    mo_map_fini(&m);
}

/* Lent keys are the caller's bytes and are not freed. */
static void lent_keys_are_not_copied(void **s)
{
    static const char *const keys[] = {"a", "bc", "def", "", "ghij"};
    struct mo_map m;
    int v;

    (void)s;
    mo_map_init_lent(&m, 10);
    for (size_t i = 0; i < MO_COUNT(keys); i++)
        assert_int_equal(mo_map_add(&m, mo_span_cstr(keys[i]), &v), 0);
    mo_map_each (en, &m) {
        bool ours = false;

        for (size_t i = 0; i < MO_COUNT(keys); i++)
            ours |= en->key == keys[i];
        assert_true(ours);
    }
    assert_ptr_equal(mo_map_del(&m, MO_SPAN("bc")), &v);
    assert_null(mo_map_get(&m, MO_SPAN("bc")));
    assert_ptr_equal(mo_map_get(&m, MO_SPAN("def")), &v);
    assert_int_equal(m.len, 4);
    mo_map_clear(&m);
    assert_null(mo_map_get(&m, MO_SPAN("def")));
    assert_int_equal(mo_map_add(&m, MO_SPAN("x"), &v), 0);
    mo_map_fini(&m);
    assert_int_equal(m.len, 0);
}

/* Existing entries stay, and the reserved number fits without growing. */
static void reserved_room_is_enough(void **s)
{
    char tmp[16];
    int v;

    (void)s;
    for (size_t n = 0; n < 100; n += 7) {
        struct mo_map m;
        size_t cap = 0;

        mo_map_init(&m, 200);
        assert_int_equal(mo_map_put(&m, MO_SPAN("first"), &v, NULL), 0);
        assert_int_equal(mo_map_reserve(&m, n + 1), 0);
        cap = m.cap;
        for (size_t i = 0; i < n; i++)
            assert_int_equal(mo_map_put(&m, key_of(i, tmp), &v, NULL), 0);
        assert_int_equal(m.cap, cap);
        assert_ptr_equal(mo_map_get(&m, MO_SPAN("first")), &v);
        mo_map_fini(&m);
    }
}

/* A put that fails leaves the map unchanged. */
static void map_body(void *ctx)
{
    size_t put = 0;
    struct mo_map m;
    char tmp[16];

    mo_map_init(&m, 100);
    assert_true(mo_map_reserve(&m, 10) <= 0);
    for (size_t i = 0; i < 30; i++) {
        int rc = mo_map_put(&m, key_of(i, tmp), ctx, NULL);

        assert_true(rc == 0 || rc == MO_ENOMEM);
        put += rc == 0;
        assert_true((mo_map_get(&m, key_of(i, tmp)) == ctx) == (rc == 0));
        assert_int_equal(m.len, put);
    }
    mo_map_fini(&m);
}

static void maps_survive_failures(void **s)
{
    int v;

    (void)s;
    torture(map_body, &v);
}

static void add_does_not_replace(void **s)
{
    int one = 1, two = 2;
    struct mo_map m;

    (void)s;
    mo_map_init(&m, 2);
    assert_int_equal(mo_map_add(&m, MO_SPAN("a"), &one), 0);
    assert_int_equal(mo_map_add(&m, MO_SPAN("a"), &two), MO_EEXISTS);
    assert_ptr_equal(mo_map_get(&m, MO_SPAN("a")), &one);
    assert_int_equal(mo_map_add(&m, MO_SPAN("b"), &two), 0);
    assert_int_equal(mo_map_add(&m, MO_SPAN("c"), &two), MO_EBUSY);
    assert_int_equal(m.len, 2);
    mo_map_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siphash_is_siphash),
        cmocka_unit_test(add_does_not_replace),
        cmocka_unit_test(empty_maps_are_usable),
        cmocka_unit_test(put_get_replace_delete),
        cmocka_unit_test(full_maps_say_so),
        cmocka_unit_test(behaves_like_an_array),
        cmocka_unit_test(lent_keys_are_not_copied),
        cmocka_unit_test(reserved_room_is_enough),
        cmocka_unit_test(maps_survive_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
