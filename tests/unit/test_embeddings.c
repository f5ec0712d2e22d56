/* Answers of an embeddings server, whatever it sends. */
#include "mo_test.h"

#include "gateway/router/embeddings_answer.h"

static int read_answer(const char *body, size_t n, size_t *dim,
                       struct embedding **out)
{
    struct mo_err e;

    return mo_embeddings_answer(mo_span_cstr(body), n, dim, out, &e);
}

static void test_good(void **state)
{
    struct embedding *v[2] = {NULL, NULL};
    size_t dim = 0;

    (void)state;
    assert_int_equal(
        read_answer("{\"object\":\"list\",\"data\":["
                    "{\"index\":1,\"embedding\":[0,-2.5e-1]},"
                    "{\"index\":0,\"embedding\":[1,0]}],\"model\":\"x\"}",
                    2, &dim, v),
        0);
    assert_int_equal(dim, 2);
    assert_int_equal(v[0]->v[0], 127);
    assert_int_equal(v[1]->v[1], -127);
    assert_true(mo_embedding_near(v[0], v[0]) > 0.999f);
    assert_true(mo_embedding_near(v[0], v[1]) < 0.001f);
    assert_true(mo_embedding_near(v[0], NULL) < -1);
    mo_free(v[0]);
    mo_free(v[1]);
}

static const char *const bad[] = {
    "",
    "nothing",
    "[]",
    "{}",
    "{\"data\":{}}",
    "{\"data\":[]}",
    "{\"data\":[{}]}",
    "{\"data\":[1]}",
    "{\"data\":[{\"embedding\":\"AAAA\"}]}",
    "{\"data\":[{\"embedding\":[]}]}",
    "{\"data\":[{\"embedding\":[0,0,0]}]}",
    "{\"data\":[{\"embedding\":[1,2]}]}",
    "{\"data\":[{\"embedding\":[1,2,3,4]}]}",
    "{\"data\":[{\"embedding\":[1,NaN,3]}]}",
    "{\"data\":[{\"embedding\":[1,null,3]}]}",
    "{\"data\":[{\"embedding\":[1,1e999,3]}]}",
    "{\"data\":[{\"embedding\":[1,\"2\",3]}]}",
    "{\"data\":[{\"index\":1,\"embedding\":[1,2,3]}]}",
    "{\"data\":[{\"index\":-1,\"embedding\":[1,2,3]}]}",
    "{\"data\":[{\"embedding\":[1,2,3]},{\"index\":0,\"embedding\":[1,2,3]}]}",
    "{\"data\":[{\"embedding\":[1,2,3]},{\"embedding\":[1,2,3]}]}",
};

/* Nothing of a bad answer is used. */
static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(bad); i++) {
        struct embedding *v = NULL;
        size_t dim = 3;

        assert_true(read_answer(bad[i], 1, &dim, &v) < 0);
        assert_null(v);
        assert_int_equal(dim, 3);
    }
}

static void test_too_long(void **state)
{
    mo_autobuf struct mo_buf b = {.max = 1 << 20};
    struct embedding *v = NULL;
    size_t dim = 0;

    (void)state;
    mo_buf_puts(&b, "{\"data\":[{\"embedding\":[1");
    for (size_t i = 1; i <= EMBEDDINGS_DIM_MAX; i++)
        mo_buf_puts(&b, ",1");
    mo_buf_puts(&b, "]}]}");
    assert_true(read_answer(mo_buf_cstr(&b), 1, &dim, &v) < 0);
    assert_null(v);
}

static void try_answer(void *ctx)
{
    struct embedding *v[1] = {NULL};
    size_t dim = 0;

    (void)ctx;
    (void)read_answer("{\"data\":[{\"embedding\":[1,2]}]}", 1, &dim, v);
    mo_free(v[0]);
}

static void test_memory(void **state)
{
    (void)state;
    torture(try_answer, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests_name("embeddings", tests, NULL, NULL);
}
