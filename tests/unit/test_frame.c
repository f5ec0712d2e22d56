#include "codec/frame.h"
#include "mo_test.h"

#define MAX 8 /* small, so that rows can reach it */

/* Lines come out as "[line]", a failure as "!", a line that was skipped as
 * "<line>" (without the ">" when it has not ended). skipped: the outcome when
 * lines that are too long are skipped; NULL: the same as want. */
static const struct {
    const char *name, *in, *want;
    size_t waiting;
    const char *skipped;
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
    {"one over max", "123456789\n", "!", 0, "<123456789>"},
    {"one over max, no end", "123456789", "!", 0, "<123456789"},
    {"over max later", "ok\n1234567890\nno\n", "[ok]!", 0,
     "[ok]<1234567890>[no]"},
    {"dead stays dead", "1234567890\nok\n", "!", 0, "<1234567890>[ok]"},
    {"one over max with cr", "12345678\r\n", "!", 0, "<12345678\r>"},
    {"two over max", "123456789\n1234567890\nok\n", "!", 0,
     "<123456789><1234567890>[ok]"},
    {"over max, then max", "1234567890123\n12345678\n", "!", 0,
     "<1234567890123>[12345678]"},
    {"over max, then an empty line", "123456789\n\n", "!", 0, "<123456789>[]"},
    {"split utf-8 is harmless", "\xc3\xa9\n", "[\xc3\xa9]", 0},
};

struct player {
    struct mo_frame f;
    struct mo_buf log;
    bool skips, skipping, dead;
};

/* The rest of a line that is too long; false: it has not ended. */
static bool play_skip(struct player *p, struct mo_span *in)
{
    struct mo_span piece;
    int rc = 0;

    while (rc == 0 && in->n) {
        rc = mo_frame_skip(&p->f, in, &piece);
        mo_buf_span(&p->log, piece);
    }
    if (rc)
        mo_buf_putc(&p->log, '>');
    p->skipping = rc == 0;
    return rc;
}

/* The piece is copied, so that a line pointing into a dead piece shows. */
static void play(struct player *p, struct mo_span piece)
{
    char *copy = mo_strndup(piece.p, piece.n);
    struct mo_span in = mo_span(copy, piece.n), line;
    int rc = copy ? 1 : 0;

    if (rc == 1 && p->skipping)
        rc = play_skip(p, &in);
    while (rc == 1 && !p->dead) {
        rc = mo_frame_next(&p->f, &in, &line);
        if (rc == MO_ETOOBIG && p->skips) {
            assert_int_equal(mo_frame_next(&p->f, &in, &line), rc);
            mo_buf_putc(&p->log, '<');
            rc = play_skip(p, &in);
            continue;
        }
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

static void player_init(struct player *p, bool skips)
{
    memset(p, 0, sizeof(*p));
    p->skips = skips;
    mo_frame_init(&p->f, MAX);
    mo_buf_init(&p->log, 1024);
}

static void player_fini(struct player *p)
{
    mo_frame_fini(&p->f);
    mo_buf_fini(&p->log);
}

static const char *wanted(size_t i, bool skips)
{
    return skips && cases[i].skipped ? cases[i].skipped : cases[i].want;
}

static void play_row(size_t i, size_t cut, bool skips)
{
    struct mo_span in = mo_span_cstr(cases[i].in);
    struct player p;

    player_init(&p, skips);
    play(&p, mo_span_head(in, cut));
    play(&p, mo_span_skip(in, cut));
    check_row(cases[i].name, mo_span_is(mo_buf_view(&p.log), wanted(i, skips)));
    check_row(cases[i].name, mo_frame_waiting(&p.f) == cases[i].waiting);
    player_fini(&p);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(cases); i++) {
        for (size_t cut = 0; cut <= strlen(cases[i].in); cut++) {
            play_row(i, cut, false);
            play_row(i, cut, true);
        }
    }
}

static void play_bytes(size_t i, bool skips)
{
    struct mo_span in = mo_span_cstr(cases[i].in);
    struct player p;

    player_init(&p, skips);
    for (size_t at = 0; at < in.n; at++)
        play(&p, mo_span(in.p + at, 1));
    check_row(cases[i].name, mo_span_is(mo_buf_view(&p.log), wanted(i, skips)));
    player_fini(&p);
}

static void test_byte_by_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(cases); i++) {
        play_bytes(i, false);
        play_bytes(i, true);
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

/* A line that is skipped costs no memory once it is known to be too long. */
static void test_skip_keeps_nothing(void **state)
{
    size_t n = (size_t)1024 * 1024;
    char *big = mo_zalloc(n);
    struct mo_span in = mo_span(big, n), piece;
    struct mo_frame f;

    (void)state;
    memset(big, 'x', n);
    mo_frame_init(&f, n);
    assert_int_equal(mo_frame_next(&f, &in, &piece), 0);
    in = mo_span(big, n);
    assert_int_equal(mo_frame_next(&f, &in, &piece), MO_ETOOBIG);
    assert_int_equal(mo_frame_skip(&f, &in, &piece), 0);
    assert_int_equal(piece.n, n);
    assert_int_equal(in.n, n);
    assert_int_equal(mo_frame_skip(&f, &in, &piece), 0);
    assert_ptr_equal(piece.p, big);
    assert_int_equal(piece.n, n);
    assert_int_equal(in.n, 0);
    assert_int_equal(f.part.cap, 0);
    in = MO_SPAN("\nok\n");
    assert_int_equal(mo_frame_skip(&f, &in, &piece), 1);
    assert_int_equal(mo_frame_next(&f, &in, &piece), 1);
    assert_true(mo_span_is(piece, "ok"));
    mo_frame_fini(&f);
    mo_free(big);
}

static void body(void *ctx)
{
    struct player p;

    (void)ctx;
    player_init(&p, true);
    play(&p, MO_SPAN("abc"));
    play(&p, MO_SPAN("d\nef"));
    play(&p, MO_SPAN("12345678901\ngh"));
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
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_borrows),
        cmocka_unit_test(test_gives_back),
        cmocka_unit_test(test_skip_keeps_nothing),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
