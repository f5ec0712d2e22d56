#include "codec/frame.h"
#include "mo_test.h"

#define MAX 8 /* small, so that rows can reach it */

/* Lines come out as "[line]", a failure as "!". */
static const struct {
    const char *name, *in, *want;
    size_t waiting;
} cases[] = {
    {"nothing", "", "", 0},
    {"partial line waits", "abc", "", 3},
    {"one line", "abc\n", "[abc]", 0},
    {"two lines", "abc\nde\n", "[abc][de]", 0},
    {"empty lines are lines", "\n\n", "[][]", 0},
    {"crlf", "abc\r\nde\r\n", "[abc][de]", 0},
    {"cr alone ends nothing", "a\rb\n", "[a\rb]", 0},
    {"only one cr goes", "a\r\r\n", "[a\r]", 0},
    {"cr at the end waits", "a\r", "", 2},
    {"exactly max", "12345678\n", "[12345678]", 0},
    {"exactly max, no end", "12345678", "", 8},
    {"exactly max with cr", "1234567\r\n", "[1234567]", 0},
    {"one over max", "123456789\n", "!", 0},
    {"one over max, no end", "123456789", "!", 0},
    {"over max later", "ok\n1234567890\nno\n", "[ok]!", 0},
    {"dead stays dead", "1234567890\nok\n", "!", 0},
    {"split utf-8 is harmless", "\xc3\xa9\n", "[\xc3\xa9]", 0},
};

struct player {
    struct mo_frame f;
    struct mo_buf log;
    bool dead;
};

/* The piece is copied, so that a line pointing into a dead piece shows. */
static void play(struct player *p, struct mo_span piece)
{
    char *copy = mo_strndup(piece.p, piece.n);
    struct mo_span in = mo_span(copy, piece.n), line;
    int rc = copy ? 1 : 0;

    while (rc == 1 && !p->dead) {
        rc = mo_frame_next(&p->f, &in, &line);
        if (rc < 0) {
            p->dead = true;
            mo_buf_puts(&p->log, rc == MO_ETOOBIG ? "!" : "?");
            assert_int_equal(mo_frame_next(&p->f, &in, &line), rc);
        }
        if (rc != 1)
            break;
        mo_buf_putc(&p->log, '[');
        mo_buf_span(&p->log, line);
        mo_buf_putc(&p->log, ']');
    }
    mo_free(copy);
}

static void player_init(struct player *p)
{
    memset(p, 0, sizeof(*p));
    mo_frame_init(&p->f, MAX);
    mo_buf_init(&p->log, 1024);
}

static void player_fini(struct player *p)
{
    mo_frame_fini(&p->f);
    mo_buf_fini(&p->log);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(cases); i++) {
        struct mo_span in = mo_span_cstr(cases[i].in);

        for (size_t cut = 0; cut <= in.n; cut++) {
            struct player p;

            player_init(&p);
            play(&p, mo_span_head(in, cut));
            play(&p, mo_span_skip(in, cut));
            check_row(cases[i].name,
                      mo_span_is(mo_buf_view(&p.log), cases[i].want));
            check_row(cases[i].name,
                      mo_frame_waiting(&p.f) == cases[i].waiting);
            player_fini(&p);
        }
    }
}

static void test_byte_by_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(cases); i++) {
        struct mo_span in = mo_span_cstr(cases[i].in);
        struct player p;

        player_init(&p);
        for (size_t at = 0; at < in.n; at++)
            play(&p, mo_span(in.p + at, 1));
        check_row(cases[i].name,
                  mo_span_is(mo_buf_view(&p.log), cases[i].want));
        player_fini(&p);
    }
}

/* A line in one piece is not copied: the span is the caller's. */
static void test_borrows(void **state)
{
    char text[] = "hello\n";
    struct mo_span in = mo_span(text, 6), line;
    struct mo_frame f;

    (void)state;
    mo_frame_init(&f, 100);
    assert_int_equal(mo_frame_next(&f, &in, &line), 1);
    assert_ptr_equal(line.p, text);
    assert_int_equal(f.part.cap, 0);
    mo_frame_fini(&f);
}

/* After a big line the memory is given back. */
static void test_gives_back(void **state)
{
    size_t n = (size_t)1024 * 1024;
    char *big = mo_zalloc(n);
    struct mo_span in = mo_span(big, n), line;
    struct mo_frame f;

    (void)state;
    memset(big, 'x', n);
    mo_frame_init(&f, 2 * n);
    assert_int_equal(mo_frame_next(&f, &in, &line), 0);
    in = MO_SPAN("\n");
    assert_int_equal(mo_frame_next(&f, &in, &line), 1);
    assert_int_equal(line.n, n);
    in = MO_SPAN("");
    assert_int_equal(mo_frame_next(&f, &in, &line), 0);
    assert_int_equal(f.part.cap, 0);
    mo_frame_fini(&f);
    mo_free(big);
}

static void body(void *ctx)
{
    struct player p;

    (void)ctx;
    player_init(&p);
    play(&p, MO_SPAN("abc"));
    play(&p, MO_SPAN("d\nef"));
    player_fini(&p);
}

static void test_no_memory(void **state)
{
    (void)state;
    torture(body, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_borrows),   cmocka_unit_test(test_gives_back),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
