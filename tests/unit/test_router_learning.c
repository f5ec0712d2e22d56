/* Learning from choices: bounded, stored, and forgotten on request. */
#include "mo_test.h"

#include <unistd.h>

#include "gateway/router/router_learning.h"
#include "loop/loop.h"

static struct mo_route_answer answer(void)
{
    struct mo_route_answer a = {.n = 3};

    a.hits[0] = (struct mo_route_hit){.server = MO_SPAN("a"),
                                      .tool = MO_SPAN("x"),
                                      .score = 2.0f,
                                      .confidence = 0.75f};
    a.hits[1] = (struct mo_route_hit){.server = MO_SPAN("b"),
                                      .tool = MO_SPAN("y"),
                                      .score = 1.9f,
                                      .confidence = 0.7f};
    a.hits[2] = (struct mo_route_hit){.server = MO_SPAN("c"),
                                      .tool = MO_SPAN("z"),
                                      .score = 0.5f,
                                      .confidence = 0.1f};
    return a;
}

static void choose(struct router_learning *h, const char *words,
                   const char *server, const char *tool)
{
    struct mo_route_answer a = answer();

    mo_router_learning_shown(h, "me", mo_span_cstr(words), &a);
    mo_router_learning_chose(h, "me", mo_span_cstr(server), mo_span_cstr(tool));
}

static struct mo_route_answer ask(struct router_learning *h, const char *words)
{
    struct mo_route_answer a = answer();

    mo_router_learning_apply(h, mo_span_cstr(words), &a);
    return a;
}

static void test_learns(void **state)
{
    struct mo_loop *l = mo_loop_new(NULL, NULL);
    struct router_learning *h = mo_router_learning_new(l, NULL);
    struct mo_route_answer a;

    (void)state;
    a = ask(h, "open the ticket");
    assert_true(mo_span_is(a.hits[0].server, "a"));
    choose(h, "open the ticket", "b", "y");
    a = ask(h, "Open a TICKET!");
    assert_true(mo_span_is(a.hits[0].server, "b"));
    a = ask(h, "something else altogether");
    assert_true(mo_span_is(a.hits[0].server, "a"));
    /* a request that names the tool is not adjusted */
    a = answer();
    a.named = true;
    mo_router_learning_apply(h, MO_SPAN("open the ticket"), &a);
    assert_true(mo_span_is(a.hits[0].server, "a"));
    mo_router_learning_free(h);
    mo_loop_free(l);
}

/* However many choices: a distant tool stays distant, and unsure stays
 * unsure. */
static void test_bounded(void **state)
{
    struct mo_loop *l = mo_loop_new(NULL, NULL);
    struct router_learning *h = mo_router_learning_new(l, NULL);
    struct mo_route_answer a;

    (void)state;
    for (int i = 0; i < 1000; i++)
        choose(h, "open the ticket", "c", "z");
    a = ask(h, "open the ticket");
    assert_true(mo_span_is(a.hits[2].server, "c"));
    assert_true(a.hits[2].confidence <= 0.1f + LEARNING_CONFIDENCE + 1e-6f);
    assert_true(a.hits[2].score <= 0.5f + LEARNING_SCORE + 1e-6f);
    for (size_t i = 0; i < a.n; i++)
        assert_true(a.hits[i].confidence < MO_ROUTE_SURE);
    /* more words than there are rows */
    for (int i = 0; i < 3000; i++) {
        char words[64];

        (void)snprintf(words, sizeof(words), "word%d other%d", i, i);
        choose(h, words, "a", "x");
    }
    mo_router_learning_free(h);
    mo_loop_free(l);
}

/* Only answers shown to this client, and only tools in them. */
static void test_whose(void **state)
{
    struct mo_loop *l = mo_loop_new(NULL, NULL);
    struct router_learning *h = mo_router_learning_new(l, NULL);
    struct mo_route_answer a = answer();

    (void)state;
    mo_router_learning_shown(h, "me", MO_SPAN("open the ticket"), &a);
    mo_router_learning_chose(h, "somebody", MO_SPAN("b"), MO_SPAN("y"));
    mo_router_learning_chose(h, "me", MO_SPAN("b"), MO_SPAN("never shown"));
    mo_router_learning_chose(h, "me", MO_SPAN("b"),
                             MO_SPAN("y")); /* used up by that */
    a = ask(h, "open the ticket");
    assert_true(mo_span_is(a.hits[0].server, "a"));
    mo_router_learning_free(h);
    mo_loop_free(l);
}

static void test_kept(void **state)
{
    struct mo_loop *l = mo_loop_new(NULL, NULL);
    char path[] = "/tmp/mo-habit-XXXXXX";
    int fd = mkstemp(path);
    struct router_learning *h;

    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    (void)unlink(path);
    h = mo_router_learning_new(l, path);
    choose(h, "open the ticket", "b", "y");
    mo_router_learning_free(h); /* writes it */
    h = mo_router_learning_new(l, path);
    assert_true(mo_span_is(ask(h, "open the ticket").hits[0].server, "b"));
    assert_int_equal(unlink(path), 0);
    assert_true(mo_span_is(ask(h, "open the ticket").hits[0].server, "a"));
    mo_router_learning_free(h);
    assert_int_not_equal(access(path, F_OK), 0); /* and is not made again */
    mo_loop_free(l);
}

/* Taught directly, for and against, and forgotten with its file. */
static void test_taught(void **state)
{
    struct mo_loop *l = mo_loop_new(NULL, NULL);
    const struct mo_span words = MO_SPAN("open the ticket");
    char path[] = "/tmp/mo-habit-XXXXXX";
    int fd = mkstemp(path);
    struct router_learning *h;

    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    h = mo_router_learning_new(l, path);
    assert_int_equal(mo_router_learning_count(h), 0);
    mo_router_learning_teach(h, words, MO_SPAN("b"), MO_SPAN("y"), true);
    /* a pair for each word, and one for the request */
    assert_int_equal(mo_router_learning_count(h), 4);
    assert_true(mo_router_learning_lean(h, words, MO_SPAN("b"), MO_SPAN("y")) >
                0);
    assert_true(mo_span_is(ask(h, "open the ticket").hits[0].server, "b"));
    mo_router_learning_teach(h, words, MO_SPAN("b"), MO_SPAN("y"), false);
    mo_router_learning_teach(h, words, MO_SPAN("b"), MO_SPAN("y"), false);
    assert_true(mo_router_learning_lean(h, words, MO_SPAN("b"), MO_SPAN("y")) <
                0);
    assert_true(mo_span_is(ask(h, "open the ticket").hits[0].server, "a"));
    mo_router_learning_forget(h);
    assert_int_equal(mo_router_learning_count(h), 0);
    assert_int_not_equal(access(path, F_OK), 0);
    mo_router_learning_free(h);
    assert_int_not_equal(access(path, F_OK), 0);
    mo_loop_free(l);
}

/* A lesson decides for its own request, also when a new server changes all
 * scores; not for requests that only share words with it. */
static void test_taught_stays(void **state)
{
    struct mo_loop *l = mo_loop_new(NULL, NULL);
    struct router_learning *h = mo_router_learning_new(l, NULL);
    const struct mo_span words = MO_SPAN("add two numbers");
    struct mo_route_answer a;

    (void)state;
    mo_router_learning_teach(h, words, MO_SPAN("c"), MO_SPAN("z"), true);
    assert_true(mo_span_is(ask(h, "add two numbers").hits[0].tool, "z"));
    a = answer();
    a.hits[3] = a.hits[2];
    a.hits[2] = a.hits[1];
    a.hits[1] = a.hits[0];
    a.hits[0] = (struct mo_route_hit){.server = MO_SPAN("new"),
                                      .tool = MO_SPAN("add_numbers"),
                                      .score = 9.0f,
                                      .confidence = 0.9f};
    a.n = 4;
    mo_router_learning_apply(h, MO_SPAN("Numbers: add two!"), &a);
    assert_true(mo_span_is(a.hits[0].tool, "z"));
    assert_true(mo_span_is(a.hits[1].tool, "add_numbers"));
    assert_true(a.hits[0].confidence <= 0.21f); /* unsure stays unsure */
    assert_true(mo_span_is(ask(h, "add two rows").hits[0].tool, "x"));
    mo_router_learning_teach(h, words, MO_SPAN("c"), MO_SPAN("z"), false);
    assert_true(mo_span_is(ask(h, "add two numbers").hits[0].tool, "x"));
    mo_router_learning_free(h);
    mo_loop_free(l);
}

/* The file is untrusted: any content is harmless. */
static void test_bad_file(void **state)
{
    static const char *const texts[] = {
        "",
        "mo-habit 1\n",
        "mo-habit 1\nzz",
        "mo-habit 1\n1 2 3",
        "mo-habit 1\n1 2 99999999999999999999\n1 2 x\n",
        "mo-habit 9\n1 2 3\n",
        "mo-habit 1\n\n\n"};
    struct mo_loop *l = mo_loop_new(NULL, NULL);

    (void)state;
    for (size_t i = 0; i < MO_COUNT(texts); i++) {
        char path[] = "/tmp/mo-habit-XXXXXX";
        int fd = mkstemp(path);
        struct router_learning *h;

        assert_int_equal(write(fd, texts[i], strlen(texts[i])),
                         strlen(texts[i]));
        (void)close(fd);
        h = mo_router_learning_new(l, path);
        assert_true(mo_span_is(ask(h, "open").hits[0].server, "a"));
        mo_router_learning_free(h);
        (void)unlink(path);
    }
    mo_loop_free(l);
}

static void torture_body(void *arg)
{
    struct router_learning *h =
        mo_router_learning_new(arg, "/nonexistent/habit");

    if (!h)
        return;
    choose(h, "open the ticket", "b", "y");
    mo_router_learning_teach(h, MO_SPAN("open the door"), MO_SPAN("b"),
                             MO_SPAN("y"), false);
    (void)ask(h, "open the ticket");
    mo_router_learning_free(h);
}

/* Two workers: lessons are known to both at once, and none is lost. */
static void test_shared(void **state)
{
    char path[] = "/tmp/mo-habit-XXXXXX";
    struct mo_loop *l = mo_loop_new(NULL, NULL);
    struct router_learning *p = NULL, *q = NULL;
    atomic_uint changes = 0;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    (void)unlink(path);
    p = mo_router_learning_new(l, path);
    q = mo_router_learning_new(l, path);
    mo_router_learning_share(p, &changes);
    mo_router_learning_share(q, &changes);
    mo_router_learning_teach(p, MO_SPAN("open"), MO_SPAN("b"), MO_SPAN("y"),
                             true);
    /* for the word and for the request */
    assert_int_equal(mo_router_learning_count(q), 2);
    mo_router_learning_teach(q, MO_SPAN("close"), MO_SPAN("b"), MO_SPAN("y"),
                             true);
    mo_router_learning_teach(q, MO_SPAN("open"), MO_SPAN("b"), MO_SPAN("y"),
                             true);
    assert_int_equal(mo_router_learning_count(p), 4);
    assert_true(mo_router_learning_lean(p, MO_SPAN("open"), MO_SPAN("b"),
                                        MO_SPAN("y")) >
                mo_router_learning_lean(p, MO_SPAN("close"), MO_SPAN("b"),
                                        MO_SPAN("y")));
    choose(p, "seldom", "a", "x"); /* a choice is written later */
    assert_int_equal(mo_router_learning_count(q), 4);
    mo_router_learning_teach(q, MO_SPAN("open"), MO_SPAN("b"), MO_SPAN("y"),
                             false);
    assert_int_equal(mo_router_learning_count(p), 5); /* and not forgotten */
    mo_router_learning_forget(q);
    assert_int_equal(mo_router_learning_count(p), 0);
    mo_router_learning_free(p);
    mo_router_learning_free(q);
    assert_int_not_equal(access(path, F_OK), 0);
    mo_loop_free(l);
}

static void test_torture(void **state)
{
    struct mo_loop *l = mo_loop_new(NULL, NULL);

    (void)state;
    torture(torture_body, l);
    mo_loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns),       cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_whose),        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_bad_file),     cmocka_unit_test(test_torture),
        cmocka_unit_test(test_taught),       cmocka_unit_test(test_shared),
        cmocka_unit_test(test_taught_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
