/* One attach connection as two streams. */
#include <sys/socket.h>
#include <unistd.h>

#include "loop/split.h"

#include "mo_net.h"

struct rig {
    struct mo_loop *l;
    struct end far; /* the engine's end of the connection */
    struct end io, err;
    struct mo_split_io split;
    int ends;
    enum mo_split_end how;
    struct mo_err why;
    unsigned fds;
};

static void on_end(void *ctx, enum mo_split_end how, const struct mo_err *why)
{
    struct rig *r = ctx;

    r->ends++;
    r->how = how;
    if (why)
        r->why = *why;
}

static int rig_up(struct rig *r, struct mo_span early)
{
    struct mo_stream *pair[2];

    *r = (struct rig){.fds = fds_open()};
    r->l = loop_new();
    end_init(&r->far);
    end_init(&r->io);
    end_init(&r->err);
    stream_pair(r->l, pair);
    end_attach(&r->far, pair[0]);
    if (mo_split(pair[1], MO_SPLIT_DOCKER, early, on_end, r, &r->split, NULL) <
        0)
        return -1;
    assert_int_equal(r->ends, 0);
    return 0;
}

static void attach_both(struct rig *r)
{
    end_attach(&r->io, r->split.io);
    end_attach(&r->err, r->split.err);
}

static void rig_down(struct rig *r)
{
    struct end *ends[] = {&r->io, &r->err, &r->far};

    for (size_t i = 0; i < MO_COUNT(ends); i++)
        if (ends[i]->s)
            mo_stream_close(ends[i]->s, NULL);
    mo_loop_run(r->l);
    mo_loop_free(r->l);
    for (size_t i = 0; i < MO_COUNT(ends); i++)
        mo_buf_fini(&ends[i]->got);
    assert_int_equal(fds_open(), r->fds);
}

static void say(struct rig *r, int stream, struct mo_span data)
{
    char head[8] = {(char)stream,
                    0,
                    0,
                    0,
                    (char)(data.n >> 24),
                    (char)(data.n >> 16),
                    (char)(data.n >> 8),
                    (char)data.n};
    struct mo_span v[] = {mo_span(head, 8), data};

    assert_int_equal(mo_stream_writev(r->far.s, v, 2), 0);
}

static void turns(struct rig *r)
{
    for (int i = 0; i < 20; i++)
        (void)mo_loop_until(r->l, end_closed, &(struct end){.closes = 0}, 1);
}

static bool is(const struct end *e, const char *text)
{
    return mo_span_is(mo_buf_view(&e->got), text);
}

static void each_gets_its_own(void **state)
{
    struct rig r;

    (void)state;
    assert_int_equal(rig_up(&r, MO_SPAN("\1\0\0\0\0\0\0\5early")), 0);
    attach_both(&r);
    say(&r, 1, MO_SPAN(" one"));
    say(&r, 2, MO_SPAN("two"));
    say(&r, 1, MO_SPAN(" three"));
    turns(&r);
    assert_true(is(&r.io, "early one three"));
    assert_true(is(&r.err, "two"));
    assert_int_equal(mo_stream_write(r.io.s, MO_SPAN("in")), 0);
    assert_int_equal(mo_stream_write(r.err.s, MO_SPAN("in")), MO_ECLOSED);
    assert_int_equal(mo_stream_queued(r.err.s), 0);
    turns(&r);
    assert_true(is(&r.far, "in"));
    mo_stream_shutdown(r.io.s);
    wait_for(r.l, end_at_eof, &r.far);
    rig_down(&r);
    assert_int_equal(r.ends, 1);
    assert_int_equal(r.how, MO_SPLIT_CLOSED);
}

static void eof_comes_after_the_last_byte(void **state)
{
    struct rig r;

    (void)state;
    assert_int_equal(rig_up(&r, MO_SPAN("")), 0);
    attach_both(&r);
    mo_stream_pause(r.io.s);
    say(&r, 1, MO_SPAN("last"));
    turns(&r);
    assert_int_equal(r.io.reads, 0);
    mo_stream_shutdown(r.far.s);
    turns(&r);
    assert_false(r.io.eof);
    mo_stream_resume(r.io.s);
    wait_for(r.l, end_at_eof, &r.io);
    wait_for(r.l, end_at_eof, &r.err);
    assert_true(is(&r.io, "last"));
    assert_int_equal(r.ends, 1);
    assert_int_equal(r.how, MO_SPLIT_EOF);
    rig_down(&r);
    assert_int_equal(r.ends, 1);
}

static void who_does_not_read_stops_it(void **state)
{
    static char big[64 * 1024];
    struct rig r;
    size_t queued;

    (void)state;
    memset(big, 'a', sizeof(big));
    assert_int_equal(rig_up(&r, MO_SPAN("")), 0);
    attach_both(&r);
    mo_stream_limit(r.far.s, GOT_MAX);
    mo_stream_pause(r.io.s);
    for (int i = 0; i < 64; i++)
        say(&r, 1, mo_span(big, sizeof(big)));
    turns(&r);
    queued = mo_stream_queued(r.far.s);
    assert_true(queued > 32 * sizeof(big));
    turns(&r);
    assert_int_equal(mo_stream_queued(r.far.s), queued);
    mo_stream_resume(r.io.s);
    while (r.io.got.len < 64 * sizeof(big))
        turns(&r);
    rig_down(&r);
}

/* --- stderr -------------------------------------------------------------- */

static void nobody_wants_stderr(void **state)
{
    static char big[64 * 1024];
    struct rig r;

    (void)state;
    memset(big, 'e', sizeof(big));
    for (int closed = 0; closed < 2; closed++) {
        assert_int_equal(rig_up(&r, MO_SPAN("")), 0);
        end_attach(&r.io, r.split.io);
        if (closed)
            mo_stream_close(r.split.err, NULL);
        mo_stream_limit(r.far.s, GOT_MAX);
        for (int i = 0; i < 64; i++)
            say(&r, 2, mo_span(big, sizeof(big)));
        say(&r, 1, MO_SPAN("through"));
        while (!r.io.got.len)
            turns(&r);
        assert_true(is(&r.io, "through"));
        if (!closed) { /* the first of it is kept */
            end_attach(&r.err, r.split.err);
            turns(&r);
            assert_true(r.err.got.len > 0 && r.err.got.len <= sizeof(big));
        }
        rig_down(&r);
    }
}

static void closing_one_leaves_the_other(void **state)
{
    struct rig r;

    (void)state;
    assert_int_equal(rig_up(&r, MO_SPAN("")), 0);
    attach_both(&r);
    mo_stream_close(r.io.s, NULL);
    turns(&r);
    assert_int_equal(r.io.closes, 1);
    say(&r, 1, MO_SPAN("lost"));
    say(&r, 2, MO_SPAN("heard"));
    turns(&r);
    assert_true(is(&r.err, "heard"));
    assert_int_equal(r.far.closes, 0);
    mo_stream_close(r.err.s, NULL);
    wait_for(r.l, end_at_eof, &r.far);
    turns(&r);
    assert_int_equal(r.ends, 1);
    assert_int_equal(r.how, MO_SPLIT_CLOSED);
    rig_down(&r);
}

static void close_both_in_a_read(struct end *me)
{
    struct rig *r = me->data;

    mo_stream_close(r->split.io, NULL);
    mo_stream_close(r->split.err, NULL);
}

static void closed_from_inside(void **state)
{
    struct rig r;

    (void)state;
    assert_int_equal(rig_up(&r, MO_SPAN("\1\0\0\0\0\0\0\1a\2\0\0\0\0\0\0\1b"
                                        "\1\0\0\0\0\0\0\1c")),
                     0);
    attach_both(&r);
    r.io.saw = close_both_in_a_read;
    r.io.data = &r;
    turns(&r);
    assert_int_equal(r.io.closes, 1);
    assert_int_equal(r.err.closes, 1);
    rig_down(&r);
}

/* --- invalid frames and broken connections ------------------------------- */

static void nonsense_ends_both(void **state)
{
    static const struct {
        const char *name;
        struct mo_span in;
        bool then_end;
        int code;
    } rows[] = {
        {"stream 3", MO_SPAN("\3\0\0\0\0\0\0\1a"), false, MO_EPROTO},
        {"filler", MO_SPAN("\1\1\0\0\0\0\0\1a"), false, MO_EPROTO},
        {"4 GiB", MO_SPAN("\1\0\0\0\377\377\377\377"), false, MO_EPROTO},
        {"half a head", MO_SPAN("\1\0\0"), true, MO_ECLOSED},
        {"half a frame", MO_SPAN("\1\0\0\0\0\0\0\5ab"), true, MO_ECLOSED},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        for (int early = 0; early < 2; early++) {
            struct rig r;

            assert_int_equal(rig_up(&r, early ? rows[i].in : MO_SPAN("")), 0);
            attach_both(&r);
            if (!early)
                (void)mo_stream_write(r.far.s, rows[i].in);
            if (rows[i].then_end)
                mo_stream_shutdown(r.far.s);
            wait_for(r.l, end_closed, &r.io);
            wait_for(r.l, end_closed, &r.err);
            check_row(rows[i].name, r.io.why.code == rows[i].code);
            check_row(rows[i].name, r.ends == 1 && r.how == MO_SPLIT_BROKEN);
            check_row(rows[i].name, r.why.code == rows[i].code);
            rig_down(&r);
        }
}

static void an_end_is_kept_for_who_comes(void **state)
{
    struct rig r;

    (void)state;
    assert_int_equal(rig_up(&r, MO_SPAN("\1\0\0\0\0\0\0\2ab")), 0);
    mo_stream_close(r.far.s, NULL);
    turns(&r);
    attach_both(&r);
    wait_for(r.l, end_at_eof, &r.io);
    wait_for(r.l, end_at_eof, &r.err);
    assert_true(is(&r.io, "ab"));
    rig_down(&r);

    assert_int_equal(rig_up(&r, MO_SPAN("\7")), 0);
    turns(&r);
    assert_int_equal(r.ends, 0);
    (void)mo_stream_write(r.far.s, MO_SPAN("\0\0\0\0\0\0\0"));
    turns(&r);
    assert_int_equal(r.ends, 0); /* no reader yet */
    attach_both(&r);
    wait_for(r.l, end_closed, &r.io);
    assert_int_equal(r.io.why.code, MO_EPROTO);
    rig_down(&r);
}

static void forgotten(void **state)
{
    struct rig r;

    (void)state;
    assert_int_equal(rig_up(&r, MO_SPAN("")), 0);
    attach_both(&r);
    mo_split_forget(r.split.split);
    say(&r, 1, MO_SPAN("still"));
    turns(&r);
    assert_true(is(&r.io, "still"));
    rig_down(&r);
    assert_int_equal(r.ends, 0);
}

static void torture_body(void *ctx)
{
    struct mo_stream *pair[2];
    struct end far, io, err;
    struct mo_split_io sp;
    struct rig r = {.ends = 0};
    struct mo_loop *l = mo_loop_new(NULL, NULL);
    int fd[2];

    (void)ctx;
    if (!l)
        return;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    if (mo_stream_from_fds(l, fd[0], fd[0], &pair[0], NULL) < 0) {
        (void)close(fd[1]);
        mo_loop_run(l);
        mo_loop_free(l);
        return;
    }
    end_init(&far);
    end_init(&io);
    end_init(&err);
    end_attach(&far, pair[0]);
    if (mo_stream_from_fds(l, fd[1], fd[1], &pair[1], NULL) == 0 &&
        mo_split(pair[1], MO_SPLIT_DOCKER,
                 MO_SPAN("\1\0\0\0\0\0\0\2ab\2\0\0\0\0\0\0\1c"), on_end, &r,
                 &sp, NULL) == 0) {
        end_attach(&io, sp.io);
        end_attach(&err, sp.err);
        (void)mo_loop_until(l, end_closed, &far, 1);
    }
    if (io.s)
        mo_stream_close(io.s, NULL);
    if (err.s)
        mo_stream_close(err.s, NULL);
    if (far.s)
        mo_stream_close(far.s, NULL);
    mo_loop_run(l);
    mo_loop_free(l);
    mo_buf_fini(&far.got);
    mo_buf_fini(&io.got);
    mo_buf_fini(&err.got);
}

static void memory_may_fail(void **state)
{
    (void)state;
    torture(torture_body, NULL);
}

/* The first loop of a process opens descriptors that all share. */
static int first_loop(void **state)
{
    (void)state;
    mo_loop_free(loop_new());
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gets_its_own),
        cmocka_unit_test(eof_comes_after_the_last_byte),
        cmocka_unit_test(who_does_not_read_stops_it),
        cmocka_unit_test(nobody_wants_stderr),
        cmocka_unit_test(closing_one_leaves_the_other),
        cmocka_unit_test(closed_from_inside),
        cmocka_unit_test(nonsense_ends_both),
        cmocka_unit_test(an_end_is_kept_for_who_comes),
        cmocka_unit_test(forgotten),
        cmocka_unit_test(memory_may_fail),
    };

    return cmocka_run_group_tests(tests, first_loop, NULL);
}
